//! Words and identifiers: what is typed meets what was written, and the memory that holds an
//! identifier comes first.

use std::fmt::Write as _;

use ack_memory::Service;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::query::bulk;
use crate::support::{Root, ids, memory};

/// The ids found, best first, what it contains behind its hit.
fn found(service: &Service, words: &str) -> Vec<String> {
    let answer = call(
        service,
        "query_memories",
        json!({ "query": words, "limit": 50, "max_tokens": 20_000 }),
    )
    .unwrap();
    let results = answer["results"].as_array().unwrap();
    results
        .iter()
        .flat_map(|hit| std::iter::once(hit).chain(hit["also"].as_array().into_iter().flatten()))
        .map(|hit| hit["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Identifiers of every kind, each with the words that form it.
fn identifiers() -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let nouns = [
        "LOCKFILE",
        "REGISTRY",
        "PEER",
        "TARBALL",
        "WORKSPACE",
        "INTEGRITY",
    ];
    let ends = ["OUTDATED", "MISSING", "BROKEN", "UNEXPECTED"];
    for noun in nouns {
        for end in ends {
            all.push(("error code", format!("ERR_PNPM_{end}_{noun}")));
        }
    }
    for (noun, end) in [
        ("CONFIG", "MISSING"),
        ("CACHE", "BROKEN"),
        ("TOKEN", "UNEXPECTED"),
        ("HOST", "UNKNOWN"),
        ("SOCKET", "CLOSED"),
    ] {
        all.push(("error code", format!("E_{noun}_{end}")));
    }
    for code in [382, 499, 502, 505, 597, 106] {
        all.push(("compiler code", format!("E0{code}")));
    }
    for code in ["40P01", "22P02", "42P01", "25P03", "55P03", "0A000"] {
        all.push(("SQLSTATE", format!("SQLSTATE {code}")));
    }
    for folder in ["store", "query", "scope", "index"] {
        for file in ["open.rs", "read.rs", "layout.rs", "mod.rs"] {
            all.push(("path", format!("src/{folder}/{file}")));
        }
    }
    for (one, two) in [
        ("select", "branch"),
        ("task", "spawn_blocking"),
        ("sync", "mpsc"),
        ("time", "interval"),
        ("fs", "read_dir"),
        ("net", "TcpListener"),
    ] {
        all.push(("qualified name", format!("tokio::{one}::{two}")));
        all.push(("qualified name", format!("async_std::{one}::{two}")));
    }
    for flag in [
        "--frozen-lockfile",
        "--no-optional",
        "--ignore-scripts",
        "--prefer-offline",
        "--target-dir",
        "--no-default-features",
        "--locked",
        "-Zbuild-std",
    ] {
        all.push(("flag", flag.to_owned()));
    }
    for version in [
        "1.2.3",
        "1.2.4",
        "v2.0.1",
        "v2.1.0",
        "18.2.0-rc.1",
        "3.46.1",
    ] {
        all.push(("version", version.to_owned()));
    }
    for one in ["fetch", "render", "parse"] {
        for two in ["User", "Account", "Ledger"] {
            all.push(("camel case", format!("{one}{two}Profile")));
            all.push((
                "snake case",
                format!("{one}_{}_profile", two.to_lowercase()),
            ));
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
    for (number, (kind, identifier)) in identifiers().into_iter().enumerate() {
        let words = pieces(&identifier).join(" ");
        let id = format!("target-{number:03}");
        let filler = "The cause was found after a long search through the logs of the staging cluster, and the fix went out the same day. ";
        let target = match number % 4 {
            0 => memory(
                &id,
                &format!("What to do about {identifier}"),
                json!({ "narrative": filler }),
            ),
            1 => memory(
                &id,
                &format!("A failure on Monday {number}0"),
                json!({ "facts": [format!("the log says {identifier}, then stops")] }),
            ),
            2 => memory(
                &id,
                &format!("A failure on Tuesday {number}0"),
                json!({ "narrative": format!("{filler}The log said `{identifier}`. {filler}") }),
            ),
            _ => memory(
                &id,
                &format!("A failure on Friday {number}0"),
                json!({ "subtitle": format!("seen as \"{identifier}\"") }),
            ),
        };
        memories.push(target);
        targets.push((kind, identifier, id));
        memories.push(memory(
            &format!("words-{number:03}"),
            &format!("{words}: how {words} work together ({number}0)"),
            json!({ "concepts": words.split(' ').collect::<Vec<_>>() }),
        ));
        let mut long = String::new();
        for turn in 0..12 {
            let _ = write!(
                long,
                "In case {turn} the {words} mattered more than {}. {filler}",
                words.split(' ').next_back().unwrap()
            );
        }
        memories.push(memory(
            &format!("long-{number:03}"),
            &format!("Long notes {number}0 on {words}"),
            json!({ "narrative": long }),
        ));
    }
    assert!(memories.len() >= 300, "{}", memories.len());
    bulk(&root, "alpha", &memories);
    (root, targets)
}

/// Asserts that each target is the first result of its query, and prints the share that is.
fn hit_at_one(what: &str, query: impl Fn(&str) -> String) {
    let (root, targets) = store();
    let service = root.service();
    let mut missed = Vec::new();
    for (kind, identifier, id) in &targets {
        let ids = found(&service, &query(identifier));
        if ids.first() != Some(id) {
            let rank = ids.iter().position(|found| found == id).map_or_else(
                || "nowhere".to_owned(),
                |place| format!("rank {}", place + 1),
            );
            missed.push(format!("{kind} `{identifier}` ({id}): {rank}"));
        }
    }
    let (hit, all) = (targets.len() - missed.len(), targets.len());
    assert!(
        missed.is_empty(),
        "{what}: hit@1 is {hit} of {all}\n{}",
        missed.join("\n")
    );
}

#[test]
fn a_bare_identifier_ranks_its_memory_first() {
    hit_at_one("bare", str::to_owned);
}

#[test]
fn an_identifier_in_a_sentence_ranks_its_memory_first() {
    hit_at_one("sentence", |identifier| {
        format!(
            "Since this morning our pipeline stops with {identifier}. Has anyone met this before?"
        )
    });
}

#[test]
fn an_identifier_in_quotes_or_brackets_ranks_its_memory_first() {
    hit_at_one("quoted", |identifier| {
        format!("error[\"{identifier}\"]: (see `{identifier}`)")
    });
}

#[test]
fn an_identifier_in_typographic_quotes_or_another_script_ranks_its_memory_first() {
    hit_at_one("typographic quotes", |identifier| {
        format!("the log says ‘{identifier}’")
    });
    hit_at_one("Japanese", |identifier| {
        format!("本番環境で{identifier}が出て止まる")
    });
}

#[test]
fn a_path_with_a_line_number_finds_the_memory_about_the_file_first() {
    let (root, targets) = store();
    let service = root.service();
    let missed: Vec<&str> = targets
        .iter()
        .filter(|(kind, ..)| *kind == "path")
        .filter(|(_, path, id)| {
            found(&service, &format!("thread panicked at {path}:42:7")).first() != Some(id)
        })
        .map(|(_, path, _)| path.as_str())
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn an_identifier_deep_in_a_long_text_comes_before_texts_that_only_share_its_words() {
    let root = Root::new();
    let filler =
        "The cause was found after a long search through the logs of the staging cluster. "
            .repeat(30);
    let mut memories = vec![memory(
        "target",
        "A failure on Monday",
        json!({ "narrative": format!("{filler}ERR_PNPM_OUTDATED_LOCKFILE {filler}") }),
    )];
    memories.extend((0..30).map(|n| {
        memory(
            &format!("words{n}"),
            &format!("pnpm err: outdated lockfile, case {n}0"),
            json!({ "concepts": ["pnpm", "lockfile", "outdated"] }),
        )
    }));
    bulk(&root, "alpha", &memories);
    assert_eq!(
        found(&root.service(), "ERR_PNPM_OUTDATED_LOCKFILE")
            .first()
            .map(String::as_str),
        Some("target")
    );
}

#[test]
fn a_common_name_in_a_sentence_is_one_word_among_others() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory(
                "cause",
                "Casting a large integer to a small one wraps around silently",
                json!({ "narrative": "Casting a negative integer wraps around as well. Check the range." }),
            ),
            memory(
                "mention",
                "Column types of the import",
                json!({ "narrative": "The first column is `i8`, the second is made by `to_string`." }),
            ),
            memory("other", "Rounding of prices", json!({})),
        ],
    );
    let service = root.service();
    for name in ["i8", "to_string"] {
        let ids = found(
            &service,
            &format!("casting an integer near {name} wraps around silently"),
        );
        assert_eq!(ids.first().map(String::as_str), Some("cause"), "{name}");
        assert_eq!(
            found(&service, name).first().map(String::as_str),
            Some("mention")
        );
    }
}

#[test]
fn query_syntax_of_other_engines_is_plain_text() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory(
                "a",
                "Lock order of accounts",
                json!({ "narrative": "AND OR NOT NEAR" }),
            ),
            memory("b", "Unrelated", json!({})),
        ],
    );
    let service = root.service();
    for words in [
        "lock\"",
        "\"lock",
        "lock*",
        "lock AND",
        "AND lock OR NOT",
        "lock NEAR/2 order",
        "title:lock",
        "^lock",
        "(lock",
        "lock)",
        "{lock order}",
        "-lock",
        "+lock",
        "lock -order",
        "'; DROP TABLE memories; --",
        "lock' OR '1'='1",
        "lock%",
        "lock_",
        "lock\\",
        "[lock",
        ".*lock.*",
        "(?i)lock",
        "lock{1,9999999}",
        "lock\0order",
        "lock ~0.8",
        "lock^4",
        "/lock/",
        "col : lock",
        "lock\u{202e}",
        "$(lock)",
        "`lock`",
        "<lock>",
        "lock&&order",
        "lock||order",
        "\\x00lock order",
        "NEAR(lock order, 5)",
    ] {
        let ids = found(&service, words);
        let expected = if words.contains("DROP") {
            &["b"][..0]
        } else {
            &["a"][..]
        };
        assert_eq!(ids, expected, "{words}");
    }
}

#[test]
fn words_of_every_script_are_found() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory(
                "japanese",
                "データベースの接続が切れる",
                json!({ "narrative": "接続プールの上限に達した。設定を変更する必要がある。" }),
            ),
            memory(
                "german",
                "Größenänderung der Warteschlange schlägt fehl",
                json!({ "facts": ["Überlauf bei 4096 Einträgen"] }),
            ),
            memory(
                "russian",
                "Ошибка подключения к базе данных",
                json!({ "narrative": "Превышено время ожидания" }),
            ),
            memory(
                "hebrew",
                "שגיאה בחיבור למסד הנתונים",
                json!({ "facts": ["חומת האש חוסמת את היציאה"] }),
            ),
            memory(
                "chinese",
                "数据库连接池耗尽",
                json!({ "narrative": "需要增加最大连接数,并检查锁。" }),
            ),
            memory("french", "Échec de la déconnexion à l'arrêt", json!({})),
            memory("korean", "데이터베이스 연결 오류", json!({})),
            memory("greek", "Σφάλμα σύνδεσης στη βάση", json!({})),
            memory(
                "english",
                "Database connection pool is exhausted",
                json!({}),
            ),
        ],
    );
    let service = root.service();
    let mut missed = Vec::new();
    for (words, id) in [
        ("データベース", "japanese"),
        ("接続プール", "japanese"),
        ("設定の変更", "japanese"),
        ("Größenänderung", "german"),
        ("grossenanderung", "german"),
        ("ÜBERLAUF", "german"),
        ("u\u{308}berlauf", "german"),
        ("schlägt", "german"),
        ("ошибка", "russian"),
        ("ОШИБКА ПОДКЛЮЧЕНИЯ", "russian"),
        ("превышено", "russian"),
        ("שגיאה", "hebrew"),
        ("חומת האש", "hebrew"),
        ("连接池", "chinese"),
        ("锁", "chinese"),
        ("数据库", "chinese"),
        ("echec", "french"),
        ("déconnexion", "french"),
        ("arret", "french"),
        ("데이터베이스", "korean"),
        ("오류", "korean"),
        ("σφαλμα", "greek"),
        ("ΣΦΆΛΜΑ", "greek"),
    ] {
        let ids = found(&service, words);
        if ids.first().map(String::as_str) != Some(id) {
            missed.push(format!("{words}: {ids:?}, not {id}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
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

/// The typos of some words that do not find them, of those that `chosen` takes (word, typo).
fn missed_typos(chosen: impl Fn(&str, &str) -> bool) -> (Vec<String>, usize) {
    let words = [
        "deployment",
        "migration",
        "certificate",
        "deadlock",
        "serialization",
        "kubernetes",
        "timeout",
        "postgres",
        "authentication",
        "retries",
        "ошибка",
        "подключение",
    ];
    let root = Root::new();
    let memories: Vec<Value> = words
        .iter()
        .enumerate()
        .map(|(n, word)| memory(word, &format!("About {word} {n}0"), json!({})))
        .collect();
    bulk(&root, "alpha", &memories);
    let service = root.service();
    let (mut missed, mut all) = (Vec::new(), 0);
    for word in words {
        for typo in typos(word).into_iter().filter(|typo| chosen(word, typo)) {
            all += 1;
            if found(&service, &typo).first().map(String::as_str) != Some(word) {
                missed.push(format!("{typo} ({word})"));
            }
        }
    }
    (missed, all)
}

#[test]
fn a_typo_after_the_first_letter_is_corrected() {
    let (missed, all) = missed_typos(|word, typo| word.chars().next() == typo.chars().next());
    assert!(
        missed.len() * 50 <= all,
        "{} of {all} typos do not find the word: {}",
        missed.len(),
        missed.join(", ")
    );
}

#[test]
fn a_typo_in_the_first_letter_is_corrected() {
    let (missed, all) = missed_typos(|word, typo| word.chars().next() != typo.chars().next());
    // The index knows stems: if half of one is missing, too little is left.
    assert!(
        missed.len() * 20 <= all,
        "{} of {all} typos do not find the word: {}",
        missed.len(),
        missed.join(", ")
    );
}

#[test]
fn a_typo_is_not_corrected_to_words_of_unreviewed_memories() {
    let root = Root::new();
    let mut memories = vec![memory("a", "About serialization", json!({}))];
    memories.extend(
        [
            "serializatioz",
            "serializatiom",
            "serializatiov",
            "serializatioa",
        ]
        .iter()
        .map(|word| {
            memory(
                word,
                &format!("About {word}"),
                json!({ "status": "staging" }),
            )
        }),
    );
    root.store("alpha", &memories);
    assert_eq!(found(&root.service(), "serializatiox"), ["a"]);
}

#[test]
fn parts_and_other_spellings_of_an_identifier_find_it() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory("code", "ERR_PNPM_OUTDATED_LOCKFILE on CI", json!({})),
            memory("camel", "fetchUserProfile is called twice", json!({})),
            memory("path", "src/store/ack.rs holds the layout", json!({})),
            memory("version", "Broken since v1.2.3", json!({})),
            memory("package", "react@18.2.0 breaks hydration", json!({})),
            memory("flag", "Pass --frozen-lockfile in CI", json!({})),
        ],
    );
    let service = root.service();
    let mut missed = Vec::new();
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
        let ids = found(&service, words);
        if ids.first().map(String::as_str) != Some(id) {
            missed.push(format!("{words}: {ids:?}, not {id}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
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
            call(&service, "query_memories", question).unwrap()
        };
        let answer = ask("kubernetes", None);
        assert_eq!(answer["total"], 1_500, "{mode}");
        let answer = ask("kubernetes drains", Some("one"));
        assert_eq!(
            (&answer["results"][0]["id"], &answer["total"]),
            (&json!("m0700"), &json!(750)),
            "{mode}"
        );
        assert_eq!(answer["results"].as_array().unwrap().len(), 30, "{mode}");
        // What matches best is elsewhere. Of two legs, neither is certain of the others.
        let answer = ask("kubernetes drains", Some("two"));
        assert_eq!(
            (
                answer["results"].as_array().unwrap().len(),
                &answer["total"]
            ),
            (if mode == "lexical" { 30 } else { 3 }, &json!(750)),
            "{mode}"
        );
    }
}

/// The ids found by words and meaning, best first.
fn best(service: &Service, query: &str, mode: &str) -> Vec<String> {
    let arguments = json!({ "query": query, "mode": mode });
    ids(&call(service, "query_memories", arguments).unwrap()["results"])
}

#[test]
fn a_typo_is_also_searched_as_written() {
    let root = Root::new();
    let rest = |text: &str| json!({ "narrative": text });
    root.store(
        "demo",
        &[
            memory(
                "advisory",
                "Postgres migrations take an advisory lock",
                rest("Two deployments at once would run the same step twice."),
            ),
            memory(
                "vacuum",
                "Postgres locks a table in a full vacuum",
                rest("Until it is done, nobody reads from it."),
            ),
            memory(
                "order",
                "Postgres migrations run in order",
                rest("A lock file in the folder names the last one."),
            ),
            memory(
                "throttle",
                "Requests above the limit are throttled",
                rest("The gateway answers 429 until the minute is over."),
            ),
        ],
    );
    let service = root.service();
    let right = best(&service, "postgres advisory lock", "hybrid");
    assert_eq!(right[0], "advisory");
    for query in [
        "postgres advisroy lock",
        "postgres advisry lock",
        "postgres advizory lock",
        "postgres addvisory lock",
    ] {
        assert_eq!(best(&service, query, "hybrid"), right, "{query}");
        assert_eq!(best(&service, query, "lexical")[0], "advisory", "{query}");
    }
    // Semantic retrieval sees the word as it is written, too.
    assert_eq!(best(&service, "thorttling", "semantic")[0], "throttle");
    assert_eq!(best(&service, "gatewya trottle", "hybrid")[0], "throttle");
    // But `async` is no misspelt `sync`.
    let root = Root::new();
    root.store(
        "demo",
        &[memory("sync", "Folders sync at night", json!({}))],
    );
    let service = root.service();
    let score = |query: &str| {
        let arguments = json!({ "query": query, "mode": "semantic" });
        call(&service, "query_memories", arguments).unwrap()["results"][0]["score"].clone()
    };
    assert_eq!(score("synnc"), score("sync"));
    assert_ne!(score("async"), score("sync"));
}

#[test]
fn a_part_of_a_compound_finds_it() {
    let root = Root::new();
    root.store(
        "demo",
        &[
            memory(
                "pool",
                "Datenbankverbindungspool erschöpft",
                json!({ "narrative": "Die Größe war falsch." }),
            ),
            memory("booking", "Rückbuchungen doppelt verbucht", json!({})),
            memory("arabic", "نفدت الذاكرة عند بناء المشروع", json!({})),
            memory("clock", "The clock of the runner is wrong", json!({})),
        ],
    );
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
const COMPOSITES: &[(&str, &str, &str)] = &[
    ("10.0.0.12", "10.0.0.12:8443", "10.0.0.123"),
    ("10.1.0.0", "10.1.0.0/16", "110.1.0.0"),
    ("18.2.0", "18.2.0-beta.1", "18.2.01"),
    ("v22.11", "node@v22.11.0", "v22.110"),
    (
        "9fceb02",
        "9fceb02d0ae598e95dc970b74767f19372d61af8",
        "9fceb12d0ae",
    ),
    (
        "550e8400-e29b",
        "550e8400-e29b-41d4-a716-446655440000",
        "550e8401-e29b",
    ),
    (
        "src/billing/round.rs",
        "crates/ledger/src/billing/round.rs:42",
        "src/billing/ground.rs",
    ),
    ("foo::bar", "foo::bar::baz", "foo::bard"),
    (
        "datasource.url.main",
        "spring.datasource.url.main",
        "datasource.url.domain",
    ),
    ("ERR_X-12", "ERR_X-12/retry", "ERR_X-123"),
    ("redis:7.2", "redis:7.2-alpine", "redis:7.25"),
    ("PROJ-1234", "feature/PROJ-1234-login", "PROJ-12345"),
    ("00:1b:44:11", "00:1b:44:11:3a:b7", "00:1b:44:12"),
    (
        "mail.example.org",
        "dana@mail.example.org",
        "mail.example.orga",
    ),
    ("pkg@1.2.3", "pkg@1.2.3-rc.4", "pkg@1.2.30"),
    (
        "--max-old-space-size",
        "--max-old-space-size=4096",
        "--max-old-space-sizes",
    ),
    (
        "PAY_LOG_LEVEL",
        "PAY_LOG_LEVEL=debug,hyper=info",
        "PAY_LOG_LEVELS",
    ),
    (
        "api.internal.net",
        "https://api.internal.net:9443/v1/health",
        "api.internal.network",
    ),
];

#[test]
fn an_identifier_finds_those_that_contain_it_and_those_it_contains() {
    let text =
        |identifier: &str| json!({ "narrative": format!("It was about {identifier} again.") });
    let of = |number: usize, kind: &str, identifier: &str| {
        memory(
            &format!("{kind}{number}"),
            &format!("Log entry {number}"),
            text(identifier),
        )
    };
    let numbered = || COMPOSITES.iter().enumerate();
    let service_of = |memories: Vec<Value>| {
        let root = Root::new();
        bulk(&root, "alpha", &memories);
        let service = root.service();
        (root, service)
    };
    let all = numbered().flat_map(|(number, (short, long, other))| {
        let kinds = [("long", long), ("short", short), ("other", other)];
        kinds.map(|(kind, identifier)| of(number, kind, identifier))
    });
    let (_all, both) = service_of(all.collect());
    let only = |kind: &'static str| {
        let memories = numbered().flat_map(|(number, (short, long, other))| {
            let identifier = if kind == "long" { long } else { short };
            [of(number, kind, identifier), of(number, "other", other)]
        });
        service_of(memories.collect())
    };
    let ((_long, long_only), (_short, short_only)) = (only("long"), only("short"));
    let mut missed = Vec::new();
    for (number, (short, long, _)) in numbered() {
        for query in [(*short).to_owned(), format!("what about {short} again")] {
            for mode in ["lexical", "hybrid"] {
                let found = best(&both, &query, mode);
                if found.first() != Some(&format!("short{number}"))
                    || !found.contains(&format!("long{number}"))
                {
                    missed.push(format!("{query}, {mode}: {found:?}"));
                }
                let found = best(&long_only, &query, mode);
                if found.first() != Some(&format!("long{number}")) {
                    missed.push(format!("{query}, {mode}, only the long one: {found:?}"));
                }
            }
        }
        for query in [(*long).to_owned(), format!("what about {long} again")] {
            for mode in ["lexical", "hybrid"] {
                let found = best(&both, &query, mode);
                if found.first() != Some(&format!("long{number}"))
                    || !found.contains(&format!("short{number}"))
                {
                    missed.push(format!("{query}, {mode}: {found:?}"));
                }
                let found = best(&short_only, &query, mode);
                if found.first() != Some(&format!("short{number}")) {
                    missed.push(format!("{query}, {mode}, only the short one: {found:?}"));
                }
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
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
        memory(&format!("port{port}"), &title, json!({}))
    }));
    bulk(&root, "alpha", &memories);
    let service = root.service();
    for mode in ["lexical", "hybrid"] {
        let found = best(&service, "10.0.0.12", mode);
        assert_eq!(found[0], "whole", "{mode}: {found:?}");
        assert!(found.len() > 5, "{mode}: {found:?}");
    }
}
