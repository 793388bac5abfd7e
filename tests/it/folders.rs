//! Notes in files, opened in place: each dialect, files that change while they are served, and
//! input that is broken.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ack_memory::Service;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use serde_json::{Value, json};

use crate::arguments::call;
use crate::changes::git;
use crate::cli::ack;
use crate::curate::decide;
use crate::store_support::{serve_notes, write};
use crate::support::{Ask, Root, fingerprint, outside, result_ids, write_file};

fn found(service: &Service, query: &str) -> Vec<String> {
    result_ids(&service.find(json!({ "query": query, "limit": 5 })))
}

/// The ids of the notes that contain the words. If none does, merely near ones are not shown.
fn with_words(service: &Service, query: &str) -> Vec<String> {
    let arguments = json!({ "query": query, "limit": 5, "mode": "lexical" });
    result_ids(&service.find(arguments))
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

fn problems(service: &Service) -> String {
    let scopes = service.scopes(json!({}));
    scopes["scopes"][0]["health"]["problems"].to_string()
}

fn memory_count(service: &Service) -> Value {
    service.scopes(json!({}))["scopes"][0]["memory_count"].clone()
}

fn get(service: &Service, id: &str, include: &str) -> Value {
    let mut arguments = json!({ "id": id });
    if !include.is_empty() {
        arguments["include"] = json!(include);
    }
    service.fetch(arguments)
}

/// A copy of one of the stores that other programs wrote.
fn real(name: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let from = outside("ACK_TEST_REAL_STORES")?.join(name);
    let to = tempfile::tempdir().unwrap();
    for entry in walkdir::WalkDir::new(&from) {
        let entry = entry.unwrap();
        let target = to.path().join(entry.path().strip_prefix(&from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(target).unwrap();
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
    let path = to.path().to_owned();
    Some((to, path))
}

#[test]
fn every_note_waits_for_review_until_a_decision() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "a.md",
        "---\ntitle: Approved by itself\nstatus: approved\nverified:\n  - by: human:ana\n---\nText",
    );
    let root = Root::new();
    root.manifest("notes", &format!("store = '{}'", folder.path().display()));
    let service = root.service();
    assert_eq!(with_words(&service, "approved"), Vec::<String>::new());
    let scopes = service.scopes(json!({}));
    assert_eq!(scopes["scopes"][0]["counts"]["staging"], 1, "{scopes:#}");
}

#[test]
fn a_changed_note_is_noticed_by_the_next_query() {
    let folder = tempfile::tempdir().unwrap();
    let text = "# Deploy on Tuesday\n\nNot before noon.";
    let path = write(folder.path(), "deploy.md", text);
    let (_root, service) = serve_notes(folder.path());
    assert_eq!(found(&service, "tuesday"), ["deploy"]);
    // The same length, immediately: metadata alone might not show it.
    write_file(&path, "# Deploy on Fridays\n\nNot before noon.");
    assert_eq!(found(&service, "fridays"), ["deploy"]);
    let replaced = write(folder.path(), "other.tmp", "# Deploy by hand");
    fs::rename(replaced, &path).unwrap();
    assert_eq!(get(&service, "deploy", "")["title"], "Deploy by hand");
    let text = "# Rollback with one command";
    write(folder.path(), "deep/er/new.md", text);
    assert_eq!(found(&service, "rollback"), ["deep/er/new"]);
    fs::remove_file(&path).unwrap();
    assert_eq!(with_words(&service, "deploy hand"), Vec::<String>::new());
    fs::rename(folder.path().join("deep"), folder.path().join("flat")).unwrap();
    assert_eq!(found(&service, "rollback"), ["flat/er/new"]);
}

#[test]
fn changes_without_watch_events_in_the_folder_are_noticed() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("kept/notes");
    let inside = write(&folder, "deploy.md", "# Deploy on Tuesday");
    let (_root, service) = serve_notes(&folder);
    assert_eq!(with_words(&service, "tuesday"), ["deploy"]);
    // Through a name in another folder: this causes no event, and the folder is listed again later.
    let elsewhere = outer.path().join("elsewhere.md");
    fs::hard_link(&inside, &elsewhere).unwrap();
    write_file(&elsewhere, "# Deploy on Fridays");
    let until = Instant::now() + Duration::from_secs(20);
    while with_words(&service, "fridays") != ["deploy"] {
        assert!(Instant::now() < until, "never seen");
        std::thread::sleep(Duration::from_millis(200));
    }
    // From then on it is known to have two names.
    write_file(&elsewhere, "# Deploy on Mondays");
    assert_eq!(with_words(&service, "mondays"), ["deploy"]);
    fs::remove_file(elsewhere).unwrap();
    assert_eq!(with_words(&service, "mondays"), ["deploy"]);
    // Another folder replaces it, by renaming a folder above it.
    fs::rename(outer.path().join("kept"), outer.path().join("old")).unwrap();
    write(&folder, "rollback.md", "# Rollback with one command");
    assert_eq!(found(&service, "rollback"), ["rollback"]);
    assert_eq!(with_words(&service, "mondays"), Vec::<String>::new());
    // A note in a folder that was empty when it was listed.
    fs::create_dir_all(folder.join("a/b")).unwrap();
    assert_eq!(found(&service, "rollback"), ["rollback"]);
    write(&folder, "a/b/canary.md", "# Canary first");
    assert_eq!(found(&service, "canary"), ["a/b/canary"]);
}

#[test]
fn markdown_links_between_notes_are_links_between_memories() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "ops/retry.md",
        "---\nid: retry-twice\n---\n# Retry\n\nSee [how](../net/Two%20Words.md#when), [[jitter]] and \
         [it again](jitter.md).\n`[code](../never.md)` [outside](../../x.md) [gone](gone.md) \
         [main](/main.rs) [site](https://example.org/never.md)\n\n- [Top](/never.md) of all\n",
    );
    write(folder.path(), "net/Two Words.md", "# When to wait\n");
    write(folder.path(), "ops/jitter.md", "# Jitter\n");
    write(folder.path(), "x.md", "# Not this\n");
    let (_root, service) = serve_notes(folder.path());
    let linked = |id: &str| {
        let links = get(&service, id, "links")["links"].clone();
        let links = links.as_array().cloned().unwrap_or_default();
        let mut listed: Vec<String> = links
            .iter()
            .map(|link| format!("{} {}", link["from_id"], link["to_id"]).replace('"', ""))
            .collect();
        listed.sort();
        listed
    };
    let known = ["retry-twice net/Two Words", "retry-twice ops/jitter"];
    assert_eq!(linked("retry-twice"), known);
    // The other side knows, and a note that comes later is found.
    assert_eq!(linked("net/Two Words"), known);
    write(folder.path(), "never.md", "---\nid: n-1\n---\n# Never\n");
    assert_eq!(linked("retry-twice"), ["retry-twice n-1", known[0], known[1]]);
}

#[test]
fn broken_files_do_not_affect_others() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    write(inside, "good.md", "# A good note about deadlocks");
    write(inside, "binary.md", [0_u8, 159, 146, 150]);
    write(inside, "latin1.md", b"# Caf\xe9 deadlocks");
    write(inside, "empty.md", "");
    write(inside, "unclosed.md", "---\nname: x\n# deadlocks");
    fs::File::create(inside.join("huge.md")).unwrap().set_len(100 << 20).unwrap();
    std::os::unix::fs::symlink(inside, inside.join("loop")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", inside.join("secret.md")).unwrap();
    nix::unistd::mkfifo(&inside.join("pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    write(inside, ".git/hidden.md", "# deadlocks in hidden files");
    let before = fingerprint(inside);
    let (_root, service) = serve_notes(inside);
    let ids = sorted(found(&service, "deadlocks"));
    assert_eq!(ids, ["good", "latin1", "unclosed"]);
    let answer = service.find(json!({ "query": "root shell passwd" }));
    assert_lacks!(answer.to_string(), "/bin/");
    assert_eq!(fingerprint(inside), before, "nothing was written");
    let scopes = service.scopes(json!({})).to_string();
    assert_contains!(
        scopes,
        "`huge.md` is larger than 8 MB",
        "`binary.md` is not text",
        "`empty.md` has no text, so it is not a memory",
        "`latin1.md` is not UTF-8",
        "`unclosed.md` has front matter that is never closed"
    );
}

/// Makes a folder in this one that nobody can open, whoever runs the test: its path is longer than
/// the system takes.
pub fn closed_folder(inside: &Path) {
    let rights = Mode::from_bits_truncate(0o755);
    let name = "closed".repeat(30);
    let mut folder = fs::File::open(inside).unwrap().into();
    for _ in 0..25 {
        mkdirat(&folder, name.as_str(), rights).unwrap();
        folder = openat(&folder, name.as_str(), OFlag::O_DIRECTORY, rights).unwrap();
    }
}

#[test]
fn an_unreadable_folder_does_not_affect_others() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "deploy.md", "# Deploy on Tuesday");
    closed_folder(folder.path());
    let (_root, service) = serve_notes(folder.path());
    assert_eq!(found(&service, "tuesday"), ["deploy"]);
    // A caller that finds nothing learns that not everything was read.
    let answer = service.find(json!({ "query": "wednesday" }));
    let notes = answer["notes"].to_string();
    let said = "1 file of this scope cannot be read and is missing here";
    assert_contains!(notes, said);
    let problems = problems(&service);
    let said = "cannot be opened: File name too long";
    assert_contains!(problems, "`closed", said, "its notes are left out");
    assert_lacks!(problems, "IO error");
}

#[test]
fn a_missing_folder_is_an_error_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("notes");
    write(&inside, "a.md", "# A note about deadlocks");
    let (_root, service) = serve_notes(&inside);
    assert_eq!(found(&service, "deadlocks"), ["a"]);
    fs::rename(&inside, folder.path().join("away")).unwrap();
    let error = call(&service, "query_memories", json!({ "query": "deadlocks" })).unwrap_err();
    assert_eq!(error.code(), "store_not_found");
    fs::rename(folder.path().join("away"), &inside).unwrap();
    assert_eq!(found(&service, "deadlocks"), ["a"]);
}

#[test]
fn a_note_that_is_only_text_shows_the_sentence_that_answers() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "deploys.md",
        "# How deploys go\n\nThey start from main, every day. A rollback needs the previous image \
         digest, which the pipeline prints.\n\n- Ask Dana for access.\n",
    );
    write(folder.path(), "bare.md", "# Nothing but a rollback title\n");
    let (_root, service) = serve_notes(folder.path());
    let ask = |arguments| service.find(arguments);
    let excerpts = |answer: &Value| -> Vec<Value> {
        let results = answer["results"].as_array().unwrap().iter();
        results.map(|hit| hit["excerpt"].clone()).collect()
    };
    let asked = ask(json!({ "query": "previous image digest for a rollback", "mode": "lexical" }));
    let sentence = "A rollback needs the previous image digest, which the pipeline prints.";
    assert_eq!(excerpts(&asked), [json!(sentence), Value::Null], "{asked:#}");
    let access = ask(json!({ "query": "access", "mode": "lexical" }));
    assert_eq!(excerpts(&access), [json!("Ask Dana for access.")]);
    let full = ask(json!({ "query": "access", "mode": "lexical", "detail": "full" }));
    assert_eq!(excerpts(&full), [Value::Null], "the whole text is there");
}

#[test]
fn a_note_that_another_one_replaces_is_superseded_once_that_one_is_approved() {
    let folder = tempfile::tempdir().unwrap();
    let note = |name: &str, text: &str| write(folder.path(), name, text);
    note(
        "old.md",
        "# Round half up (superseded by new)\n\nMoney on an invoice is rounded half up.\n",
    );
    let content = "# Round half to even\n\nAn invoice splits the rest. Replaces [[old]].\n";
    note("new.md", content);
    let content = "---\nsuperseded_by: new\n---\n# Round by hand\n\nOn an invoice.\n";
    note("header.md", content);
    let content = "---\nsupersedes:\n- \"[[Cut Off]]\"\n---\n# Round up\n\nOn a receipt.\n";
    note("list.md", content);
    note("cut.md", "# Cut Off\n\nA receipt is cut off.\n");
    let (root, service) = serve_notes(folder.path());
    let asked = |service: &Service| found(service, "how do we round money on an invoice");
    let shown = asked(&service);
    assert_eq!(shown[0], "new");
    for replaced in ["old", "header", "cut"] {
        assert!(!shown.contains(&replaced.to_owned()), "{shown:?}");
        assert_eq!(get(&service, replaced, "")["id"], replaced);
    }
    assert_eq!(get(&service, "old", "")["superseded_by"], "new");
    let links = get(&service, "header", "links");
    assert_eq!(links["links"][0]["from_id"], "new");
    assert_eq!(links["links"][0]["kind"], "supersedes");
    // What waits for review replaces nothing.
    root.manifest("notes", &format!("store = '{}'", folder.path().display()));
    decide(root.path(), &["approve", "old"]).ok();
    let service = root.service();
    assert_eq!(asked(&service), ["old"]);
    decide(root.path(), &["approve", "new"]).ok();
    assert_eq!(asked(&service), ["new"]);
    // A note that says so no longer.
    decide(root.path(), &["approve", "header"]).ok();
    assert_eq!(asked(&service), ["new"]);
    note("header.md", "# Round by hand\n\nOn an invoice.\n");
    decide(root.path(), &["approve", "header"]).ok();
    assert_eq!(sorted(asked(&service)), ["header", "new"]);
}

#[test]
fn real_auto_memory_is_served() {
    let Some((_copy, path)) = real("auto-memory") else {
        return;
    };
    let project = path.join("projects/-Users-dana-src-ledger-api");
    let session = json!({ "type": "user", "cwd": "/Users/dana/src/ledger-api" });
    let text = format!("{{\"type\":\"summary\"}}\n{session}\n");
    write_file(project.join("0001.jsonl"), text);
    let (_root, service) = serve_notes(&project.join("memory"));
    assert_eq!(memory_count(&service), 16);
    let rounding = get(&service, "project_rounding", "links");
    assert_eq!(rounding["title"], "Round half to even when splitting an invoice");
    assert_eq!(rounding["type"], "project");
    assert_eq!(rounding["project"], "ledger-api");
    assert_eq!(rounding["links"][0]["to_id"], "project_rounding_old");
    let found_first = found(&service, "how do we round money on an invoice");
    assert_eq!(found_first[0], "project_rounding");
    assert!(!found_first.contains(&"project_rounding_old".to_owned()));
    let shown = &found(&service, "MALLOC_ARENA_MAX sidekiq")[0];
    assert_eq!(*shown, "broken_yaml");
    // It is held back from what the default approves: it hides characters.
    let whole = json!({ "id": "feedback_pasted_page", "status": "all" });
    let pasted = call(&service, "get_memory", whole).unwrap();
    assert_eq!(pasted["status"], "staging");
    assert_lacks!(pasted.to_string(), "\\u001b");
    let (_root, service) = serve_notes(&path.join("projects/-home-dana-src-kiosk-web/memory"));
    // Twelve files, and 202 items and a paragraph of the index.
    assert_eq!(memory_count(&service), 215);
    assert_eq!(get(&service, "windows_crlf", "")["status"], "approved");
}

#[test]
fn the_numbers_of_a_real_mcp_memory_service_are_explained() {
    let Some(folder) = outside("ACK_TEST_REAL_STORES") else {
        return;
    };
    let root = Root::new();
    let store = folder.join("mcp-memory-service/sqlite_vec.db");
    let manifest = format!("store = \"{}\"\n", store.display());
    root.manifest("notes", &manifest);
    let words = "201 unreviewed, 0 rejected; newer ones replace 22 of these; 14 deleted in it";
    let output = ack(root.path(), &["scopes", "--scope", "notes"]).ok();
    assert_contains!(output.replace("\n  ", " "), words);
    let output = ack(root.path(), &["review", "--list"]).ok();
    let words = "201 unreviewed memories; median age";
    assert!(output.starts_with(words), "{output}");
    assert_contains!(output, "; 22 of them replaced by newer ones");
    let output = ack(root.path(), &["doctor"]).out;
    let words = "; newer ones replace 22 of these; 14 deleted in it are left out";
    assert_contains!(output, words);
    let add = ["scopes", "add", "more", "--store", store.to_str().unwrap()];
    let output = ack(Root::new().path(), &add).ok();
    let words = "0 approved, 201 unreviewed; newer ones replace 22 of these; 14 deleted";
    assert_contains!(output, words);
    // What is left is what agents see once everything counts as approved, but one that addresses
    // them.
    root.manifest("notes", &format!("{manifest}unreviewed = \"approved\"\n"));
    let output = ack(root.path(), &["query", "--limit", "50", "--json"]).json();
    assert_eq!(output["total"], 178, "{output}");
}

#[test]
fn real_basic_memory_server_memory_and_mcp_memory_service_are_served() {
    for (name, inside, count) in [
        ("basic-memory", "", 83),
        ("server-memory", "memory.jsonl", 98),
        ("mcp-memory-service", "sqlite_vec.db", 201),
    ] {
        let Some((_copy, folder)) = real(name) else {
            return;
        };
        let before = fingerprint(&folder);
        let path = if inside.is_empty() { folder.clone() } else { folder.join(inside) };
        let (_root, service) = serve_notes(&path);
        assert_eq!(memory_count(&service), count, "{name}");
        let hits = service.find(json!({ "query": "postgres query", "limit": 3 }));
        assert_ne!(hits["results"], json!([]), "{name}");
        assert_lacks!(hits.to_string(), "\\u001b"; "{name}");
        assert_eq!(fingerprint(&folder), before);
    }
}

#[test]
fn json_lines_among_notes_are_memories_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    write(inside, "note.md", "# Deadlocks in the importer");
    write(
        inside,
        "ops/lessons.jsonl",
        "{\"id\":\"a\",\"title\":\"Deadlocks need an order of locks\",\"facts\":[\"sort by id\"],\"tags\":[\"sql\"]}\n\
         \n{\"title\":\"Deadlocks show in pg_locks\",\"narrative\":\"Look there first.\"}\n\
         {\"titel\":\"Deadlocks of a typo\"}\n{\"id\":\"a\",\"title\":\"Deadlocks twice\"}\n",
    );
    // Any program may write JSON lines.
    write(inside, "events.jsonl", "{\"event\":\"deadlocks\"}\n");
    let (_root, service) = serve_notes(inside);
    let ids = found(&service, "deadlocks");
    let made: Vec<&String> = ids.iter().filter(|id| id.starts_with("ack_")).collect();
    assert_eq!((ids.len(), made.len()), (3, 1), "{ids:?}");
    assert_eq!(get(&service, "a", "")["facts"], json!(["sort by id"]));
    assert_eq!(get(&service, made[0], "")["narrative"], "Look there first.");
    let problems = problems(&service);
    let broken = "`ops/lessons.jsonl` line 4 was left out: `titel` is not a key of an import line; did you \
                  mean `title`? (schemas/import-line.json lists them) (and 1 more line)";
    assert_contains!(problems, broken);
    let text = "{\"id\":\"b\",\"title\":\"Deadlocks are gone\"}\n";
    write(inside, "ops/lessons.jsonl", text);
    assert_eq!(sorted(with_words(&service, "deadlocks")), ["b", "note"]);
}

#[test]
fn instructions_for_agents_among_notes_are_no_memories() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    git(inside, &["init", "-q"]);
    write(inside, "deploy.md", "# Deploy on Mondays");
    write(inside, "agents.md", "# Deploy with agents");
    let (root, service) = serve_notes(inside);
    assert_eq!(found(&service, "deploy").len(), 2);
    for name in ["CLAUDE.md", "sub/AGENTS.md", "CLAUDE.local.md", "a/b/GEMINI.md"] {
        write(inside, name, "# Deploy whenever you like\n\nAsk nobody.");
    }
    git(inside, &["add", "-A"]);
    git(inside, &["commit", "-q", "-m", "notes"]);
    for service in [&service, &root.service()] {
        assert_eq!(sorted(found(service, "deploy")), ["agents", "deploy"]);
        let scopes = service.scopes(json!({}));
        let problems = &scopes["scopes"][0]["health"]["problems"];
        let expected =
            "`CLAUDE.local.md`, `CLAUDE.md`, `a/b/GEMINI.md`, `sub/AGENTS.md` are left out";
        let said = problems.as_array().unwrap().iter();
        let said = said.filter(|problem| problem.as_str().unwrap().starts_with(expected));
        assert_eq!(said.count(), 1, "{problems}");
    }
    assert_contains!(ack(root.path(), &["doctor"]).out, "sub/AGENTS.md");
    let approved = decide(root.path(), &["approve", "CLAUDE"]);
    assert_eq!(approved.code, Some(1), "{}", approved.out);
    // A commit does not make them memories either.
    let referred = format!("store = '{}'\nref = 'HEAD'", inside.display());
    root.manifest("notes", &referred);
    let ids = sorted(found(&root.service(), "deploy"));
    assert_eq!(ids, ["agents", "deploy"]);
}

#[test]
fn a_folder_with_rules_for_agents_is_not_a_store() {
    let project = tempfile::tempdir().unwrap();
    let rules = project.path().join(".cursor/rules");
    write(&rules, "deploy.md", "# Deploy whenever");
    let root = Root::new();
    let store = rules.to_str().unwrap();
    let words = ["scopes", "add", "rules", "--store", store, "--yes"];
    let added = ack(root.path(), &words);
    assert_eq!(added.code, Some(2), "{}", added.out);
    assert_contains!(added.err, "instructions for agents");
    let (_root, service) = serve_notes(&rules);
    let answer = call(&service, "query_memories", json!({ "query": "deploy" }));
    assert!(format!("{answer:?}").contains("Instructions"), "{answer:?}");
}

#[test]
fn a_folder_with_only_foreign_json_lines_is_not_a_store() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "events.jsonl", "{\"event\":\"deadlocks\"}\n");
    let (root, service) = serve_notes(folder.path());
    let answer = call(&service, "query_memories", json!({ "query": "deadlocks" }));
    assert!(format!("{answer:?}").contains("NoNotes"), "{answer:?}");
    write(folder.path(), "ours.jsonl", "{\"title\":\"Deadlocks\"}\n");
    assert_eq!(found(&root.service(), "deadlocks").len(), 1);
}

#[test]
fn a_file_to_import_says_what_to_do_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let line = json!({ "id": "a", "title": "Deploy on Mondays", "status": "approved" });
    let path = write(folder.path(), "memories.jsonl", format!("{line}\n"));
    let (_root, service) = serve_notes(&path);
    let problems = problems(&service);
    assert_contains!(problems, "is a file to import, not a store");
    assert_contains!(problems, "ack-memory import FILE --scope NAME");
    // In a folder, it is served.
    let (_root, service) = serve_notes(folder.path());
    assert_eq!(found(&service, "deploy"), ["a"]);
}
