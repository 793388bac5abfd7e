//! Words and identifiers: what is typed meets what was written, and the memory that holds an
//! identifier comes first.

use ack_memory::Service;
use serde_json::{Value, json};

use crate::query::bulk;
use crate::support::{Ask, Root, memory, result_ids, rows, titled, unreviewed};

/// The ids found, best first, what it contains behind its hit.
fn found(service: &Service, words: &str) -> Vec<String> {
    let answer = service.find(json!({ "query": words, "limit": 50, "max_tokens": 20_000 }));
    let results = answer["results"].as_array().unwrap();
    results
        .iter()
        .flat_map(|hit| std::iter::once(hit).chain(hit["also"].as_array().into_iter().flatten()))
        .map(|hit| hit["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Identifiers of every kind, each with the words that form it.
fn identifiers() -> Vec<(&'static str, String)> {
    let each = |text: &'static str| text.split(' ');
    let mut all = Vec::new();
    for noun in each("LOCKFILE REGISTRY PEER TARBALL WORKSPACE INTEGRITY") {
        for end in each("OUTDATED MISSING BROKEN UNEXPECTED") {
            all.push(("error code", format!("ERR_PNPM_{end}_{noun}")));
        }
    }
    for name in each("CONFIG_MISSING CACHE_BROKEN TOKEN_UNEXPECTED HOST_UNKNOWN SOCKET_CLOSED") {
        all.push(("error code", format!("E_{name}")));
    }
    for code in [382, 499, 502, 505, 597, 106] {
        all.push(("compiler code", format!("E0{code}")));
    }
    for code in each("40P01 22P02 42P01 25P03 55P03 0A000") {
        all.push(("SQLSTATE", format!("SQLSTATE {code}")));
    }
    for folder in each("store query scope index") {
        for file in each("open.rs read.rs layout.rs mod.rs") {
            all.push(("path", format!("src/{folder}/{file}")));
        }
    }
    let names = "select::branch task::spawn_blocking sync::mpsc time::interval fs::read_dir \
                 net::TcpListener";
    for name in each(names) {
        all.push(("qualified name", format!("tokio::{name}")));
        all.push(("qualified name", format!("async_std::{name}")));
    }
    let flags = "--frozen-lockfile --no-optional --ignore-scripts --prefer-offline --target-dir \
                 --no-default-features --locked -Zbuild-std";
    all.extend(each(flags).map(|flag| ("flag", flag.to_owned())));
    let versions = each("1.2.3 1.2.4 v2.0.1 v2.1.0 18.2.0-rc.1 3.46.1");
    all.extend(versions.map(|version| ("version", version.to_owned())));
    for one in each("fetch render parse") {
        for two in each("User Account Ledger") {
            let lower = two.to_lowercase();
            all.push(("camel case", format!("{one}{two}Profile")));
            all.push(("snake case", format!("{one}_{lower}_profile")));
        }
    }
    all
}

/// The words and numbers inside an identifier, none of which is the identifier itself.
fn pieces(identifier: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in identifier.chars() {
        let camel = c.is_uppercase() && spaced.ends_with(char::is_lowercase);
        let number = (c.is_ascii_digit() && spaced.ends_with(char::is_alphabetic))
            || (c.is_alphabetic() && spaced.ends_with(|last: char| last.is_ascii_digit()));
        if camel || number {
            spaced.push(' ');
        }
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    spaced.split_whitespace().map(str::to_lowercase).collect()
}

/// A store of targets (the identifier occurs once, in one of the fields) and distractors (its
/// words, often).
fn store() -> (Root, Vec<(&'static str, String, String)>) {
    let root = Root::new();
    let mut memories = Vec::new();
    let mut targets = Vec::new();
    let filler = "The cause was found after a long search through the logs of the staging cluster, and the fix went out the same day. ";
    for (number, (kind, identifier)) in identifiers().into_iter().enumerate() {
        let words = pieces(&identifier).join(" ");
        let last = words.split(' ').next_back().unwrap();
        let id = format!("target-{number:03}");
        let on_a_day = format!("A failure on Monday {number}0");
        memories.push(match number % 4 {
            0 => {
                let title = format!("What to do about {identifier}");
                memory(&id, &title, json!({ "narrative": filler }))
            }
            1 => {
                let fact = format!("the log says {identifier}, then stops");
                memory(&id, &on_a_day, json!({ "facts": [fact] }))
            }
            2 => {
                let text = format!("{filler}The log said `{identifier}`. {filler}");
                memory(&id, &on_a_day, json!({ "narrative": text }))
            }
            _ => {
                let seen = format!("seen as \"{identifier}\"");
                memory(&id, &on_a_day, json!({ "subtitle": seen }))
            }
        });
        targets.push((kind, identifier, id));
        memories.push(memory(
            &format!("words-{number:03}"),
            &format!("{words}: how {words} work together ({number}0)"),
            json!({ "concepts": words.split(' ').collect::<Vec<_>>() }),
        ));
        let long: String = (0..12)
            .map(|turn| format!("In case {turn} the {words} mattered more than {last}. {filler}"))
            .collect();
        let title = format!("Long notes {number}0 on {words}");
        memories.push(memory(&format!("long-{number:03}"), &title, json!({ "narrative": long })));
    }
    assert!(memories.len() >= 300, "{}", memories.len());
    bulk(&root, "alpha", &memories);
    (root, targets)
}

#[test]
fn an_identifier_ranks_its_memory_first_whatever_stands_around_it() {
    let (root, targets) = store();
    let service = root.service();
    for around in [
        "{}",
        "Since this morning our pipeline stops with {}. Has anyone met this before?",
        "error[\"{}\"]: (see `{}`)",
        "the log says ‘{}’",
        "本番環境で{}が出て止まる",
        "thread panicked at {}:42:7",
    ] {
        let with_line = around.ends_with("{}:42:7");
        let asked = targets.iter().filter(|(kind, ..)| !with_line || *kind == "path");
        let missed: Vec<_> = asked
            .filter(|(_, name, id)| {
                found(&service, &around.replace("{}", name)).first() != Some(id)
            })
            .collect();
        assert!(missed.is_empty(), "{around}: {missed:?}");
    }
}

#[test]
fn a_common_name_in_a_sentence_is_one_word_among_others() {
    let root = Root::new();
    let title = "Casting a large integer to a small one wraps around silently";
    let cause = "Casting a negative integer wraps around as well. Check the range.";
    let mention = "The first column is `i8`, the second is made by `to_string`.";
    let first = json!({ "narrative": mention });
    let memories = [
        memory("cause", title, json!({ "narrative": cause })),
        memory("mention", "Column types of the import", first),
        titled("other", "Rounding of prices"),
    ];
    root.store("alpha", &memories);
    let service = root.service();
    for name in ["i8", "to_string"] {
        let sentence = format!("casting an integer near {name} wraps around silently");
        assert_eq!(found(&service, &sentence)[0], "cause", "{name}");
        assert_eq!(found(&service, name)[0], "mention");
    }
}

#[test]
fn query_syntax_of_other_engines_is_plain_text() {
    let root = Root::new();
    let arguments = json!({ "narrative": "AND OR NOT NEAR" });
    let lock = memory("a", "Lock order of accounts", arguments);
    root.store("alpha", &[lock, titled("b", "Unrelated")]);
    let service = root.service();
    let lines = r#"lock"
"lock
lock*
lock AND
AND lock OR NOT
lock NEAR/2 order
title:lock
^lock
(lock
lock)
{lock order}
-lock
+lock
lock -order
lock' OR '1'='1
lock%
lock_
lock\
[lock
.*lock.*
(?i)lock
lock{1,9999999}
lock ~0.8
lock^4
/lock/
col : lock
$(lock)
`lock`
<lock>
lock&&order
lock||order
\x00lock order
NEAR(lock order, 5)"#;
    for words in lines.lines().chain(["lock\0order", "lock\u{202e}"]) {
        assert_eq!(found(&service, words), ["a"], "{words}");
    }
    assert_eq!(found(&service, "'; DROP TABLE memories; --"), [""; 0]);
}

#[test]
fn words_of_every_script_are_found() {
    // Each script: the title, what the text says, and what is typed.
    let notes = "\
        データベースの接続が切れる / 接続プールの上限に達した。設定を変更する必要がある。 / データベース|接続プール|設定の変更
        Größenänderung schlägt fehl / Überlauf bei 4096 / Größenänderung|grossenanderung|ÜBERLAUF|u\u{308}berlauf|schlägt
        Ошибка подключения к базе данных / Превышено время ожидания / ошибка|ОШИБКА ПОДКЛЮЧЕНИЯ|превышено
        שגיאה בחיבור למסד הנתונים / חומת האש חוסמת את היציאה / שגיאה|חומת האש
        数据库连接池耗尽 / 需要增加最大连接数,并检查锁。 / 连接池|锁|数据库
        Échec de la déconnexion à l'arrêt / - / echec|déconnexion|arret
        데이터베이스 연결 오류 / - / 데이터베이스|오류
        Σφάλμα σύνδεσης στη βάση / - / σφαλμα|ΣΦΆΛΜΑ
        Database connection pool is exhausted / - / exhausted";
    let notes = notes.lines().map(|line| line.trim().split(" / ").collect::<Vec<_>>());
    let notes: Vec<Vec<&str>> = notes.collect();
    let of = |note: &Vec<&str>| memory(note[0], note[0], json!({ "narrative": note[1] }));
    let root = Root::with("alpha", &notes.iter().map(of).collect::<Vec<_>>());
    let service = root.service();
    for note in notes {
        for words in note[2].split('|') {
            // By meaning, a note in another language may say the same.
            let query = json!({ "query": words, "mode": "lexical" });
            assert_eq!(result_ids(&service.find(query))[0], note[0], "{words}");
            assert!(found(&service, words).contains(&note[0].to_owned()), "{words}");
        }
    }
}

/// Every way to mistype one letter of a word: left out, doubled, swapped with the next, replaced.
fn typos(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let mut typos = Vec::new();
    for position in 0..letters.len() {
        let mut without = letters.clone();
        let letter = without.remove(position);
        typos.push(without.iter().collect());
        let mut doubled = letters.clone();
        doubled.insert(position, letter);
        typos.push(doubled.into_iter().collect());
        let mut other = letters.clone();
        other[position] = if letter.is_ascii() {
            if letter == 'q' { 'z' } else { 'q' }
        } else if letter == 'щ' {
            'ф'
        } else {
            'щ'
        };
        typos.push(other.into_iter().collect());
        if position + 1 < letters.len() && letters[position] != letters[position + 1] {
            let mut swapped = letters.clone();
            swapped.swap(position, position + 1);
            typos.push(swapped.into_iter().collect());
        }
    }
    typos
}

#[test]
fn a_typo_is_corrected() {
    let words = "deployment migration certificate deadlock serialization kubernetes timeout \
                 postgres authentication retries ошибка подключение";
    let root = Root::new();
    let numbered = (0..).zip(words.split(' '));
    let about = |(n, word): (usize, &str)| titled(word, &format!("About {word} {n}0"));
    bulk(&root, "alpha", &numbered.map(about).collect::<Vec<_>>());
    let service = root.service();
    // In the first letter, more may be missed: the index knows stems, and if half of one is
    // missing, too little is left.
    for (in_the_first, share) in [(false, 50), (true, 20)] {
        let typos = words.split(' ').flat_map(|word| {
            let begins = |typo: &String| typo.chars().next() == word.chars().next();
            let all = typos(word).into_iter();
            all.filter(move |typo| begins(typo) != in_the_first).map(move |typo| (word, typo))
        });
        let all: Vec<_> = typos.collect();
        let finds =
            |word: &str, typo: &str| found(&service, typo).first().is_some_and(|id| id == word);
        let missed: Vec<_> = all.iter().filter(|(word, typo)| !finds(word, typo)).collect();
        assert!(
            missed.len() * share <= all.len(),
            "{} of {} typos do not find the word: {missed:?}",
            missed.len(),
            all.len()
        );
    }
}

#[test]
fn a_typo_is_not_corrected_to_words_of_unreviewed_memories() {
    let root = Root::new();
    let others = "serializatioz serializatiom serializatiov serializatioa".split(' ');
    let waiting = others.map(|word| unreviewed(word, &format!("About {word}")));
    let reviewed = [titled("a", "About serialization")];
    root.store("alpha", &reviewed.into_iter().chain(waiting).collect::<Vec<_>>());
    assert_eq!(found(&root.service(), "serializatiox"), ["a"]);
}

#[test]
fn parts_and_other_spellings_of_an_identifier_find_it() {
    let memories = [
        titled("code", "ERR_PNPM_OUTDATED_LOCKFILE on CI"),
        titled("camel", "fetchUserProfile is called twice"),
        titled("path", "src/store/ack.rs holds the layout"),
        titled("version", "Broken since v1.2.3"),
        titled("package", "react@18.2.0 breaks hydration"),
        titled("flag", "Pass --frozen-lockfile in CI"),
    ];
    let root = Root::with("alpha", &memories);
    let service = root.service();
    for (words, id) in [
        ("outdated lockfile", "code"),
        ("err_pnpm_outdated_lockfile", "code"),
        ("fetch user profile", "camel"),
        ("FetchUserProfile", "camel"),
        ("ack.rs", "path"),
        ("store/ack.rs", "path"),
        ("./src/store/ack.rs", "path"),
        ("1.2.3", "version"),
        ("V1.2.3", "version"),
        ("18.2.0", "package"),
        ("react 18.2.0", "package"),
        ("frozen-lockfile", "flag"),
        ("--frozen-lockfile=true", "flag"),
    ] {
        assert_eq!(found(&service, words)[0], id, "{words}");
    }
}

#[test]
fn a_word_that_every_memory_holds_is_found_like_any_other() {
    let memories: Vec<Value> = (0..1_500)
        .map(|number| {
            let title = if number == 700 { "Kubernetes drains nodes" } else { "Kubernetes" };
            let rest = json!({ "narrative": format!("note ERR_{number:05}"), "project": (["one", "two"][number % 2]) });
            memory(&format!("m{number:04}"), title, rest)
        })
        .collect();
    let root = Root::new();
    let _store = bulk(&root, "alpha", &memories);
    let service = root.service();
    for mode in ["lexical", "hybrid"] {
        let ask = |query: &str, project: Option<&str>| {
            let question = json!({ "query": query, "mode": mode, "project": project, "limit": 30, "max_tokens": 20_000 });
            let answer = service.find(question);
            (result_ids(&answer), answer["total"].as_u64().unwrap())
        };
        assert_eq!(ask("kubernetes", None).1, 1_500, "{mode}");
        let (found, total) = ask("kubernetes drains", Some("one"));
        assert_eq!(found[0].as_str(), "m0700", "{mode}");
        assert_eq!(found.len(), 30, "{mode}");
        assert_eq!(total, 750, "{mode}");
        // What matches best is elsewhere. Of two legs, neither is certain of the others.
        let (found, total) = ask("kubernetes drains", Some("two"));
        let certain = if mode == "lexical" { 30 } else { 3 };
        assert_eq!((found.len(), total), (certain, 750), "{mode}");
    }
}

/// The ids found by words and meaning, best first.
fn best(service: &Service, query: &str, mode: &str) -> Vec<String> {
    let arguments = json!({ "query": query, "mode": mode });
    result_ids(&service.find(arguments))
}

#[test]
fn a_typo_is_also_searched_as_written() {
    let memories = rows(
        "id | title | narrative",
        "
        advisory | Postgres migrations take an advisory lock | Two deployments at once would run the same step twice.
        vacuum | Postgres locks a table in a full vacuum | Until it is done, nobody reads from it.
        order | Postgres migrations run in order | A lock file in the folder names the last one.
        throttle | Requests above the limit are throttled | The gateway answers 429 until the minute is over.
        ",
    );
    let root = Root::with("demo", &memories);
    let service = root.service();
    let right = best(&service, "postgres advisory lock", "hybrid");
    assert_eq!(right[0], "advisory");
    for typo in ["advisroy", "advisry", "advizory", "addvisory"] {
        let query = format!("postgres {typo} lock");
        assert_eq!(best(&service, &query, "hybrid"), right, "{query}");
        assert_eq!(best(&service, &query, "lexical")[0], "advisory", "{query}");
    }
    // Semantic retrieval sees the word as it is written, too.
    assert_eq!(best(&service, "thorttling", "semantic")[0], "throttle");
    assert_eq!(best(&service, "gatewya trottle", "hybrid")[0], "throttle");
    // But `async` is no misspelt `sync`.
    let root = Root::with("demo", &[titled("sync", "Folders sync at night")]);
    let service = root.service();
    let score = |query: &str| {
        let answer = service.find(json!({ "query": query, "mode": "semantic" }));
        answer["results"][0]["score"].clone()
    };
    assert_eq!(score("synnc"), score("sync"));
    assert_ne!(score("async"), score("sync"));
}

#[test]
fn a_part_of_a_compound_finds_it() {
    let root = Root::new();
    let pool = json!({ "narrative": "Die Größe war falsch." });
    let memories = [
        memory("pool", "Datenbankverbindungspool erschöpft", pool),
        titled("booking", "Rückbuchungen doppelt verbucht"),
        titled("arabic", "نفدت الذاكرة عند بناء المشروع"),
        titled("clock", "The clock of the runner is wrong"),
    ];
    root.store("demo", &memories);
    let service = root.service();
    for (query, id) in [
        ("Datenbank", "pool"),
        ("groesse", "pool"),
        ("Verbindungspool", "pool"),
        ("Rueckbuchung", "booking"),
        ("ذاكرة", "arabic"),
    ] {
        assert_eq!(best(&service, query, "lexical"), [id], "{query}");
    }
    assert!(best(&service, "lock", "lexical").is_empty());
}

/// Identifiers that contain another one, and others that only look so.
const COMPOSITES: &str = "\
10.0.0.12 10.0.0.12:8443 10.0.0.123
10.1.0.0 10.1.0.0/16 110.1.0.0
18.2.0 18.2.0-beta.1 18.2.01
v22.11 node@v22.11.0 v22.110
9fceb02 9fceb02d0ae598e95dc970b74767f19372d61af8 9fceb12d0ae
550e8400-e29b 550e8400-e29b-41d4-a716-446655440000 550e8401-e29b
src/billing/round.rs crates/ledger/src/billing/round.rs:42 src/billing/ground.rs
foo::bar foo::bar::baz foo::bard
datasource.url.main spring.datasource.url.main datasource.url.domain
ERR_X-12 ERR_X-12/retry ERR_X-123
redis:7.2 redis:7.2-alpine redis:7.25
PROJ-1234 feature/PROJ-1234-login PROJ-12345
00:1b:44:11 00:1b:44:11:3a:b7 00:1b:44:12
mail.example.org dana@mail.example.org mail.example.orga
pkg@1.2.3 pkg@1.2.3-rc.4 pkg@1.2.30
--max-old-space-size --max-old-space-size=4096 --max-old-space-sizes
PAY_LOG_LEVEL PAY_LOG_LEVEL=debug,hyper=info PAY_LOG_LEVELS
api.internal.net https://api.internal.net:9443/v1/health api.internal.network";

#[test]
fn an_identifier_finds_those_that_contain_it_and_those_it_contains() {
    let composites: Vec<Vec<&str>> =
        COMPOSITES.lines().map(|line| line.split(' ').collect()).collect();
    // A store with some of the three of each line.
    let service_of = |columns: &[usize]| {
        let root = Root::new();
        let mut memories = Vec::new();
        for (number, line) in composites.iter().enumerate() {
            for column in columns {
                let kind = ["short", "long", "other"][*column];
                let text = format!("It was about {} again.", line[*column]);
                let title = format!("Log entry {number}");
                memories.push(memory(
                    &format!("{kind}{number}"),
                    &title,
                    json!({ "narrative": text }),
                ));
            }
        }
        bulk(&root, "alpha", &memories);
        (root.service(), root)
    };
    let (both, _both) = service_of(&[1, 0, 2]);
    let (long_only, _long) = service_of(&[1, 2]);
    let (short_only, _short) = service_of(&[0, 2]);
    for (number, line) in composites.iter().enumerate() {
        let (short, long) = (format!("short{number}"), format!("long{number}"));
        for (typed, own, other, other_only) in
            [(line[0], &short, &long, &long_only), (line[1], &long, &short, &short_only)]
        {
            for query in [typed.to_owned(), format!("what about {typed} again")] {
                for mode in ["lexical", "hybrid"] {
                    let found = best(&both, &query, mode);
                    assert!(
                        &found[0] == own && found.contains(other),
                        "{query}, {mode}: {found:?}"
                    );
                    let found = best(other_only, &query, mode);
                    assert_eq!(found.first(), Some(other), "{query}, {mode}, it alone");
                }
            }
        }
    }
}

#[test]
fn a_memory_with_the_whole_identifier_comes_before_many_with_longer_ones() {
    let root = Root::new();
    let mut memories = vec![memory(
        "whole",
        "A long report",
        json!({ "narrative": format!("{} It named 10.0.0.12 once.", "Nothing new. ".repeat(200)) }),
    )];
    memories.extend((0..40).map(|port| {
        let title = format!("10.0.0.12:80{port:02} and 10.0.0.12:90{port:02} closed");
        titled(&format!("port{port}"), &title)
    }));
    bulk(&root, "alpha", &memories);
    let service = root.service();
    for mode in ["lexical", "hybrid"] {
        let found = best(&service, "10.0.0.12", mode);
        assert_eq!(found[0], "whole", "{mode}: {found:?}");
        assert!(found.len() > 5, "{mode}: {found:?}");
    }
}
