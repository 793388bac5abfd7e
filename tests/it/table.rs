//! The vector table and `index`: answers are the same with and without it, it is never trusted over
//! the store, and no answer is lost by a killed, concurrent or failed build, or a damaged table.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ack_memory::Service;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::cli::ack;
use crate::curate::decide;
use crate::decisions::decide as logged;
use crate::query::bulk;
use crate::support::{
    Ask, Root, Sql, fingerprint, memory, result_ids, run_sql, titled, write_file,
};

const SUBJECTS: [&str; 8] = [
    "connection pool",
    "row lock",
    "flex layout",
    "certificate",
    "lock file",
    "stack trace",
    "cron job",
    "feature flag",
];
const EVENTS: [&str; 7] = [
    "times out",
    "is lost after a restart",
    "fails in production only",
    "differs between machines",
    "was renamed",
    "leaks memory",
    "is slow",
];

/// Memories on different subjects.
fn memories(count: usize) -> Vec<Value> {
    (0..count)
        .map(|n| {
            let title = format!("The {} of service {} {}", SUBJECTS[n % 8], n % 97, EVENTS[(n / 8) % 7]);
            let rest = json!({
                "facts": [format!("seen {n} times with {}", SUBJECTS[(n * 5 + 3) % 8])], "concepts": [SUBJECTS[(n / 3) % 8].split(' ').next()],
                "files": [format!("src/part{}/mod.rs", n % 11)], "project": format!("p{}", n % 5), "type": if n % 4 == 0 { "decision" } else { "bugfix" },
                "status": (["approved", "approved", "promoted", "staging"][n % 4]), "created_at": format!("2026-01-{:02}T00:00:00Z", 1 + n % 28),
                "narrative": format!("It {} whenever the {} changes. ", EVENTS[n % 7], SUBJECTS[(n / 5) % 8]).repeat(1 + n % 3),
            });
            memory(&format!("m{n:05}"), &title, rest)
        })
        .collect()
}

/// `index` with static vectors, with which answers are the same as without a table.
fn index(root: &Path, arguments: &[&str]) -> Command {
    let encoder = match arguments.contains(&"--encoder") {
        true => &[][..],
        false => &["--encoder", "static"],
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_ack-memory"));
    command
        .env_clear()
        .env("HOME", root)
        .arg("--root")
        .arg(root)
        .arg("index")
        .args(encoder)
        .args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn done(output: &Output) -> String {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{text}");
    text
}

pub fn build(root: &Root) -> String {
    done(&index(root.path(), &["--all"]).output().unwrap())
}

fn questions() -> Vec<Value> {
    vec![
        json!({ "query": "pool times out", "limit": 50, "max_tokens": 20_000 }),
        json!({ "query": "the page layout breaks", "mode": "semantic", "limit": 50, "max_tokens": 20_000 }),
        json!({ "query": "certificate restart", "mode": "lexical", "limit": 50, "max_tokens": 20_000 }),
        json!({ "query": "src/part3/mod.rs stack trace", "project": "p2", "limit": 20 }),
        json!({ "query": "memory leak", "status": "all", "type": "decision" }),
        json!({ "like": "m00004", "limit": 20 }),
        json!({ "tags": ["cron"], "limit": 20 }),
        json!({ "query": "restrat of the crn job" }),
    ]
}

/// The ids that each question finds.
fn found(service: &Service) -> Vec<Vec<String>> {
    answers(service).iter().map(result_ids).collect()
}

fn answers(service: &Service) -> Vec<Value> {
    questions().into_iter().map(|question| service.find(question)).collect()
}

fn table(root: &Root) -> PathBuf {
    root.scope_folder("alpha").join("lance/memories.lance")
}

/// What `list_scopes` reports about the scope's table.
fn info(service: &Service) -> Value {
    service.scopes(json!({ "scope": "alpha" }))["scopes"][0].clone()
}

#[test]
fn answers_are_the_same_with_and_without_a_table() {
    let root = Root::new();
    bulk(&root, "alpha", &memories(1_500));
    let without = answers(&root.service());
    assert!(info(&root.service()).get("index").is_none());
    let before = fingerprint(&root.scope_folder("alpha").join("memory.db"));
    let said = "1,500 rows were added, 0 removed, 0 were unchanged";
    assert_contains!(build(&root), said);
    assert_eq!(
        before,
        fingerprint(&root.scope_folder("alpha").join("memory.db")),
        "the store is not touched"
    );
    let lance = fingerprint(&root.scope_folder("alpha").join("lance"));
    let service = root.service();
    assert_eq!(answers(&service), without);
    assert_eq!(
        lance,
        fingerprint(&root.scope_folder("alpha").join("lance")),
        "a reader writes nothing into the table either"
    );
    let table = &info(&service)["index"];
    assert_eq!(table["rows"], json!(1_500));
    assert_eq!(table["coverage"], json!(1.0));
    assert_eq!(table["embedder"], "static-minilm");
    let said = "0 rows were added, 0 removed, 1,500 were unchanged";
    assert_contains!(build(&root), said);
    assert_eq!(answers(&service), without);
}

#[test]
fn changes_after_a_build_are_found_and_rejected_rows_are_not_served() {
    let root = Root::new();
    bulk(&root, "alpha", &memories(300));
    build(&root);
    let running = root.service();
    answers(&running);
    let store = Connection::open(root.scope_folder("alpha").join("memory.db")).unwrap();
    store.sql("UPDATE memories SET title = 'Zeppelins are inflated with helium' WHERE id = 'm00010';
             UPDATE memories SET status = 'rejected' WHERE id = 'm00001';
             UPDATE memories SET status = 'approved' WHERE id = 'm00003';
             DELETE FROM memories WHERE id = 'm00002';
             INSERT INTO memories (id, title, status) VALUES ('new', 'A dirigible is filled with gas', 'approved');");
    let fresh = Root::new();
    std::fs::copy(
        root.scope_folder("alpha").join("memory.db"),
        fresh.scope_folder("alpha").join("memory.db"),
    )
    .unwrap();
    let expected = answers(&fresh.service());
    for (what, service) in [("a running server", &running), ("a new one", &root.service())] {
        assert_eq!(answers(service), expected, "{what}");
        let airships = service
            .find(json!({ "query": "airship balloon gas helium", "mode": "semantic", "limit": 2 }));
        let mut found = result_ids(&airships);
        found.sort();
        assert_eq!(found, ["m00010", "new"], "{what}: {airships:#}");
        assert_eq!(
            call(service, "get_memory", json!({ "id": "m00001", "status": "all" }))
                .unwrap_err()
                .code(),
            "memory_not_served"
        );
    }
    let coverage = info(&root.service())["index"]["coverage"].as_f64().unwrap();
    assert!((0.97..1.0).contains(&coverage), "{coverage}");
    let dry = done(&index(root.path(), &["--all", "--dry-run"]).output().unwrap());
    assert_contains!(dry, "3 rows would be added, 4 removed");
    let said = "3 rows were added, 4 removed, 296 were unchanged";
    assert_contains!(build(&root), said);
    assert_eq!(info(&root.service())["index"]["coverage"], 1.0);
    assert_eq!(answers(&running), expected);
}

#[test]
fn a_decision_costs_no_row_of_the_table() {
    let root = Root::new();
    bulk(&root, "alpha", &memories(300));
    build(&root);
    let running = root.service();
    answers(&running);
    let folder = root.scope_folder("alpha");
    for number in (3..300).step_by(4) {
        logged(&folder, "memory.db", &format!("m{number:05}"), "approve", json!({}));
    }
    logged(&folder, "memory.db", "m00001", "reject", json!({}));
    let fresh = Root::new();
    for file in ["memory.db", "decisions.jsonl"] {
        let copy = fresh.scope_folder("alpha").join(file);
        std::fs::copy(folder.join(file), copy).unwrap();
    }
    let expected = answers(&fresh.service());
    let said = "0 rows were added, 1 removed, 299 were unchanged";
    for built in [false, true] {
        for service in [&running, &root.service()] {
            assert_eq!(answers(service), expected, "{built}");
            assert_eq!(info(service)["index"]["coverage"], 1.0, "{built}");
        }
        if !built {
            assert_contains!(build(&root), said);
        }
    }
    // What a damaged listing of the rows says does not count.
    let listing = folder.join("lance/listing");
    let whole = std::fs::read(&listing).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        write_file(&listing, damaged);
        assert_eq!(answers(&root.service()), expected, "the byte at {at}");
        write_file(&listing, &whole[..at]);
        assert_eq!(answers(&root.service()), expected, "cut at {at}");
    }
}

#[test]
fn many_small_builds_leave_one_compact_table() {
    let root = Root::new();
    let all = memories(60);
    let connection = bulk(&root, "alpha", &all[..20]);
    build(&root);
    for round in 0..40 {
        // Rows are added and changed, so that batches are emptied too.
        bulk(&root, "alpha", &all[20 + round..=20 + round]);
        let changed = i64::try_from(round % 30).unwrap() + 1;
        let sql = "UPDATE memories SET title = title || ' again' WHERE rowid = ?1";
        assert_eq!(connection.execute(sql, [changed]).unwrap(), 1);
        build(&root);
    }
    let service = root.service();
    let with = answers(&service);
    let found = &info(&service)["index"];
    assert_eq!(found["coverage"], json!(1.0), "{found}");
    assert_eq!(found["rows"], 60, "{found}");
    std::fs::remove_dir_all(root.scope_folder("alpha").join("lance")).unwrap();
    assert_eq!(with, answers(&root.service()));
}

#[test]
fn a_changed_unreviewed_policy_takes_effect() {
    let root = Root::new();
    let path = root.scope_folder("alpha").join("memory.db");
    run_sql(
        path,
        "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT); INSERT INTO memories VALUES ('a', 'Certificates expire'), ('b', 'Pools drain')",
    );
    root.manifest("alpha", "unreviewed = \"approved\"");
    build(&root);
    let found = &result_ids(&root.service().find(json!({ "query": "certificates" })))[0];
    assert_eq!(*found, "a");
    root.manifest("alpha", "unreviewed = \"staging\"");
    let answer = root.service().find(json!({ "query": "certificates" }));
    assert!(
        result_ids(&answer).is_empty() && answer["hidden"]["by_status"].as_u64().unwrap() >= 1,
        "{answer:#}"
    );
}

#[test]
fn a_damaged_removed_or_foreign_table_is_only_a_note_and_can_be_rebuilt() {
    let root = Root::new();
    bulk(&root, "alpha", &memories(400));
    let expected: Vec<Vec<String>> = found(&root.service());
    build(&root);
    let mut noted = 0;
    let mut random = 2_463_534_242u32;
    for turn in 0..60usize {
        let files: Vec<PathBuf> = walkdir::WalkDir::new(table(&root))
            .sort_by_file_name()
            .into_iter()
            .map(Result::unwrap)
            .filter(|entry| entry.file_type().is_file() && entry.metadata().unwrap().len() > 0)
            .map(walkdir::DirEntry::into_path)
            .collect();
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let file = &files[turn % files.len()];
        let whole = std::fs::read(file).unwrap();
        let cut = random as usize % whole.len();
        write_file(file, &whole[..cut]);
        let service = root.service();
        let damaged = answers(&service);
        assert_eq!(
            damaged.iter().map(result_ids).collect::<Vec<_>>(),
            expected,
            "{} cut to {cut}",
            file.display()
        );
        let notes = damaged[0]["notes"].as_array();
        noted += usize::from(
            notes.is_some_and(|notes| notes.iter().any(|note| note["kind"] == "index_unusable")),
        );
        if turn % 3 == 0 {
            build(&root);
            let info = info(&root.service());
            assert_eq!(
                (&info["index"]["coverage"], &info["health"]["state"]),
                (&json!(1.0), &json!("ok")),
                "after {} was cut to {cut}",
                file.display()
            );
        } else {
            write_file(file, &whole);
        }
    }
    assert!(noted > 5, "only {noted} of 60 cuts were noticed");
    done(&index(root.path(), &["--all", "--rebuild"]).output().unwrap());
    let running = root.service();
    assert_eq!(found(&running), expected);
    std::fs::remove_dir_all(root.scope_folder("alpha").join("lance")).unwrap();
    assert_eq!(found(&running), expected, "removed while it was in use");
    std::fs::create_dir_all(table(&root).join("_refs/tags")).unwrap();
    write_file(table(&root).join("_refs/tags/published.json"), "{}");
    let answer = &answers(&running)[0];
    assert_eq!(result_ids(answer), expected[0].clone(), "{answer:#}");
    assert_eq!(answer["notes"][0]["kind"], "index_unusable", "{answer:#}");
    build(&root);
    assert_eq!(info(&running)["index"]["rows"], 400);
}

#[test]
fn a_flipped_bit_in_a_table_is_noticed_and_repaired() {
    let root = Root::new();
    bulk(&root, "alpha", &memories(200));
    let scores = |answers: &[Value]| -> Vec<Value> {
        let hits = answers.iter().map(|answer| answer["results"].clone());
        hits.collect()
    };
    let expected = scores(&answers(&root.service()));
    build(&root);
    let mut random = 2_463_534_242u32;
    let (mut noted, mut turns) = (0, 0);
    while turns < 40 {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let at = random as usize;
        // Of the files, only those of the newest version are read.
        let data = walkdir::WalkDir::new(table(&root).join("data")).into_iter();
        let files: Vec<(PathBuf, Vec<u8>)> = data
            .map(|entry| entry.unwrap().into_path())
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect();
        for (path, whole) in &files {
            let mut flipped = whole.clone();
            flipped[at % whole.len()] ^= 1 << (turns % 8);
            write_file(path, flipped);
        }
        let damaged = answers(&root.service());
        assert!(scores(&damaged) == expected, "the byte at {at}");
        let notes = damaged[0]["notes"].as_array().into_iter().flatten();
        let note = notes
            .filter(|note| note["kind"] == "index_unusable")
            .find_map(|note| note["message"].as_str());
        if let Some(note) = note {
            noted += 1;
            assert_lacks!(note, ".rs:", "panicked");
            build(&root);
            let answers = answers(&root.service());
            assert!(scores(&answers) == expected, "the byte at {at}");
            assert_eq!(info(&root.service())["health"]["state"], "ok");
        } else {
            for (path, whole) in files {
                write_file(path, whole);
            }
        }
        turns += 1;
    }
    // The columns for other tools, and padding, are not read.
    assert!(noted > 5, "only {noted} of {turns} flips were noticed");
}

/// Whether a file under a folder has a word, in any case.
fn is_in_a_file(folder: &Path, word: &str) -> bool {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten();
    let mut files = files.filter(|entry| entry.file_type().is_file());
    files.any(|entry| {
        let content = std::fs::read(entry.path()).unwrap().to_ascii_lowercase();
        content.windows(word.len()).any(|part| part == word.as_bytes())
    })
}

#[test]
fn no_file_of_the_table_keeps_what_the_store_forgot() {
    // The second table is searched on disk, so it has indexes.
    for (rows, settings) in [(300, ""), (10_200, "limits.resident = 10000")] {
        let root = Root::new();
        write_file(root.path().join("config.toml"), settings);
        let mut all = memories(rows);
        let secret = json!({
            "facts": ["the quorblatted valve"], "concepts": ["frumious"], "project": "vexilproj",
            "narrative": "Only the snorkelwack knows.", "files": ["src/thwimble.rs"]
        });
        all.push(memory("gone", "Zyzzogeton migrates", secret));
        all.push(titled("kept", "Kwyjibo migrates"));
        all.push(titled("edited", "Glorpzib before"));
        let store = bulk(&root, "alpha", &all);
        build(&root);
        let lance = root.scope_folder("alpha").join("lance");
        let gone =
            ["zyzzog", "quorbla", "frumiou", "vexilproj", "snorkelwa", "thwimble", "glorpzib"];
        for word in gone.iter().chain(&["kwyjibo"]) {
            assert!(is_in_a_file(&lance, word), "{rows}: the control `{word}`");
        }
        store.sql(
            "DELETE FROM memories WHERE id = 'gone';
                 UPDATE memories SET title = 'Flibberty after' WHERE id = 'edited';",
        );
        // A build that is killed leaves a table from which the next one removes the rest.
        for milliseconds in [40, 120, 400] {
            let mut killed = index(root.path(), &["--all"]).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(milliseconds));
            killed.kill().unwrap();
            killed.wait().unwrap();
        }
        build(&root);
        for word in gone {
            assert!(!is_in_a_file(&lance, word), "{rows}: `{word}` is still there");
        }
        for word in ["kwyjibo", "flibbert"] {
            assert!(is_in_a_file(&lance, word), "{rows}: the control `{word}`");
        }
        let count = i64::try_from(rows).unwrap() + 2;
        let service = root.service();
        let found = json!({ "query": "flibberty after", "limit": 1 });
        assert_eq!(result_ids(&service.find(found)), ["edited"]);
        let table = &info(&service)["index"];
        assert_eq!(table["rows"], json!(count));
        assert_eq!(table["coverage"], json!(1.0));
    }
}

#[test]
fn a_build_killed_at_any_moment_leaves_a_usable_table() {
    let root = Root::new();
    bulk(&root, "alpha", &memories(2_000));
    let expected: Vec<Vec<String>> = found(&root.service());
    let store = Connection::open(root.scope_folder("alpha").join("memory.db")).unwrap();
    let running = root.service();
    let mut random = 88_172_645_463_325_252u64;
    let mut killed = 0;
    for turn in 0..56 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // The work differs from round to round: a first build, an update, a rebuild.
        let sql = "UPDATE memories SET confidence = ?1 WHERE rowid % 7 = ?2";
        store.sql_with(sql, (f64::from(turn) / 100.0, turn % 7));
        let arguments: &[&str] = if turn % 10 == 9 { &["--all", "--rebuild"] } else { &["--all"] };
        let mut build = index(root.path(), arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(5 + random % 300));
        killed += usize::from(build.try_wait().unwrap().is_none());
        build.kill().unwrap();
        build.wait().unwrap();
        if turn % 4 == 0 {
            for (what, service) in [("running", &running), ("new", &root.service())] {
                let found = found(service);
                assert_eq!(found, expected, "{what} server after kill {turn}");
            }
        }
    }
    assert!(killed >= 25, "only {killed} builds were still running when they were killed");
    build(&root);
    let service = root.service();
    assert_eq!(found(&service), expected);
    assert_eq!(info(&service)["index"]["rows"], json!(2_000));
    assert_eq!(info(&service)["index"]["coverage"], json!(1.0));
}

#[test]
fn concurrent_builds_take_turns_and_a_server_keeps_answering() {
    let root = Root::new();
    bulk(&root, "alpha", &memories(2_000));
    let service = root.service();
    let expected: Vec<Vec<String>> = found(&service);
    let builds: Vec<_> = (0..2).map(|_| index(root.path(), &["--all"]).spawn().unwrap()).collect();
    for _ in 0..5 {
        assert_eq!(found(&service), expected);
    }
    let outputs: Vec<Output> =
        builds.into_iter().map(|build| build.wait_with_output().unwrap()).collect();
    assert!(outputs.iter().any(|output| output.status.success()));
    for output in outputs.iter().filter(|output| !output.status.success()) {
        let text = String::from_utf8_lossy(&output.stderr);
        assert_contains!(text, "another `index` is working on it", "wait until");
    }
    assert_eq!(info(&root.service())["index"]["rows"], 2_000);
}

#[test]
fn a_full_disk_leaves_the_published_table_as_it_was() {
    let root = Root::new();
    bulk(&root, "alpha", &memories(600));
    build(&root);
    let store = Connection::open(root.scope_folder("alpha").join("memory.db")).unwrap();
    store.sql("UPDATE memories SET title = title || ' again'");
    let expected: Vec<Vec<String>> = found(&root.service());
    // Files may not grow beyond 64 kB, which is what a full disk is like to a writer.
    let script = format!(
        "trap '' XFSZ; ulimit -f 128; exec '{}' --root '{}' index --all",
        env!("CARGO_BIN_EXE_ack-memory"),
        root.path().display()
    );
    let output =
        Command::new("sh").arg("-c").arg(script).env("HOME", root.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it was to fail: {text}");
    assert_contains!(text, "cannot be built", "searches work without it");
    let service = root.service();
    assert_eq!(found(&service), expected);
    let found = &info(&service)["index"]["rows"];
    assert_eq!(*found, 600, "the published version is still there");
    build(&root);
    assert_eq!(info(&root.service())["index"]["coverage"], 1.0);
}

#[test]
fn commands_that_change_a_scope_bring_its_table_up_to_date() {
    let root = Root::new();
    let lines = root.path().join("lines.jsonl");
    let write_lines = |count: usize| {
        let line = |number| json!({ "id": format!("m-{number}"), "title": format!("Pool {number} drains") });
        let text: String = (0..count).map(|number| format!("{}\n", line(number))).collect();
        write_file(&lines, text);
    };
    let rows = || info(&root.service())["index"]["rows"].as_u64();
    let import = ["import", lines.to_str().unwrap(), "--scope", "alpha"];
    // A few memories are not worth a table.
    write_lines(9);
    ack(root.path(), &import).ok();
    assert_eq!(rows(), None);
    write_lines(10);
    let outcome = ack(root.path(), &import);
    assert!(outcome.err.is_empty(), "{}", outcome.err);
    assert_eq!(rows(), Some(10));
    // A person can leave it out, and a command that changes nothing writes nothing.
    write_lines(11);
    ack(root.path(), &[&import[..], &["--no-index"]].concat()).ok();
    write_lines(12);
    ack(root.path(), &[&import[..], &["--dry-run"]].concat()).ok();
    assert_eq!(rows(), Some(10));
    // A decision is a change.
    let listed = ack(root.path(), &["review", "--list", "--json"]).json();
    assert_eq!(rows(), Some(10));
    let mut decision = listed["waiting"][0].clone();
    decision["verdict"] = json!("approve");
    let decisions = root.path().join("decisions.jsonl");
    write_file(&decisions, format!("{decision}\n"));
    let apply = ["review", "--apply", decisions.to_str().unwrap()];
    decide(root.path(), &apply).ok();
    assert_eq!(rows(), Some(11));
    // While another build runs, the command says so and is done all the same.
    let lock = std::fs::File::open(root.scope_folder("alpha").join("lance/.lock")).unwrap();
    lock.lock().unwrap();
    let outcome = ack(root.path(), &import);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let note = "the vector table of scope `alpha` cannot be built: another `index` is working";
    assert_contains!(outcome.err, note);
    assert_eq!(rows(), Some(11));
    drop(lock);
    // A scope that is added gets one, and `setup` brings all of them up to date.
    let other = Root::new();
    let store = other.scope_folder("store").join("memory.db");
    bulk(&other, "store", &memories(20));
    let add = ["scopes", "add", "added", "--store", store.to_str().unwrap()];
    let table_of_added = root.path().join("scopes/added/lance");
    ack(root.path(), &add).ok();
    assert!(!table_of_added.exists());
    ack(root.path(), &[&add[..], &["--yes"]].concat()).ok();
    assert!(table_of_added.exists());
    ack(root.path(), &["setup", "--dry-run"]).ok();
    assert_eq!(rows(), Some(11));
    let refused = ack(root.path(), &["setup"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert_eq!(rows(), Some(11));
    ack(root.path(), &["setup", "--yes"]).ok();
    assert_eq!(rows(), Some(12));
}
