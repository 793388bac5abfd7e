//! Many scopes under one root: answers stay within their bounds, lists have pages, and changes are
//! seen by the next question although unchanged files are not opened.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use ack_api::{ListScopesRequest, text};
use ack_memory::Service;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{Ask, Root, insert, result_ids, titled, write_file};

/// Longer than a file must be unchanged before its metadata is relied on.
const SETTLED: Duration = Duration::from_millis(4_200);

/// A root with so many scopes of two memories.
fn many(scopes: usize) -> Root {
    let root = Root::new();
    let first = root.store("s0000", &two(0));
    for number in 1..scopes {
        let name = format!("s{number:04}");
        let folder = root.scope_folder(&name);
        fs::create_dir_all(&folder).unwrap();
        fs::copy(&first, folder.join("memory.db")).unwrap();
    }
    root
}

fn two(number: usize) -> [Value; 2] {
    let payout = "The payout job retries a locked database";
    let invoices = "Invoices are rounded half to even";
    [titled(&format!("a{number}"), payout), titled(&format!("b{number}"), invoices)]
}

fn insert_into(path: &Path, id: &str, title: &str) {
    insert(&Connection::open(path).unwrap(), &[titled(id, title)]);
}

/// By the estimate that limits answers; for a short answer, which is mostly cursor, at three bytes
/// per token, which is still more than tokenizers count.
fn tokens(answer: &Value) -> usize {
    let json = answer.to_string();
    if json.len() < 600 { json.len() / 3 } else { text::tokens(&json) }
}

fn ids(service: &Service, query: &str) -> Vec<String> {
    result_ids(&service.find(json!({ "query": query })))
}

/// A page of the list of scopes. Agents cannot name its size.
fn page_of_scopes(service: &Service, max_tokens: usize, cursor: Option<String>) -> Value {
    let request = ListScopesRequest {
        max_tokens: i64::try_from(max_tokens).ok(),
        cursor,
        ..ListScopesRequest::default()
    };
    json!(service.list_scopes(&request).unwrap())
}

#[test]
fn answers_stay_within_their_limit_with_many_scopes() {
    let root = many(300);
    for broken in 0..40 {
        let folder = root.scope_folder(&format!("broken{broken:02}"));
        fs::create_dir_all(&folder).unwrap();
        write_file(folder.join("memory.db"), "no database at all");
    }
    let service = root.service();
    for bound in [200, 800, 4_000] {
        let answer = service.find(json!({ "query": "payout database", "max_tokens": bound }));
        assert!(!result_ids(&answer).is_empty());
        let cost = tokens(&answer);
        assert!(cost <= bound, "query_memories: {cost} of {bound} tokens");
        let searched = &answer["searched"];
        let counted = |list: &str, more: &str| {
            let listed = searched[list].as_array().map_or(0, Vec::len) as u64;
            listed + searched[more].as_u64().unwrap_or(0)
        };
        let found = counted("scopes", "more_scopes");
        assert_eq!(found, 300, "every scope that was searched");
        let found = counted("skipped", "more_skipped");
        assert_eq!(found, 40, "and every one that was not");
        let cost = tokens(&service.brief(json!({ "max_tokens": bound })));
        assert!(cost <= bound, "get_context: {cost} of {bound} tokens");
        let answer = page_of_scopes(&service, bound, None);
        assert_eq!(answer["total"], 340);
        // The first scope of a page is there whatever its size.
        let cost = tokens(&answer);
        let is_alone = answer["scopes"].as_array().unwrap().len() == 1;
        assert!(cost <= bound || is_alone, "list_scopes: {cost} of {bound} tokens");
    }
    let error = service.refused("get_memory", json!({ "id": "nothing" }));
    assert!(json!(error).to_string().len() < 2_000, "{error:?}");
}

#[test]
fn the_list_of_scopes_has_pages_that_lose_nothing() {
    let root = many(120);
    let service = root.service();
    let mut names = Vec::new();
    let mut pages = 0;
    let mut cursor = None;
    loop {
        let page = page_of_scopes(&service, 1_000, cursor);
        pages += 1;
        for scope in page["scopes"].as_array().unwrap() {
            assert_eq!(scope["memory_count"], 2);
            names.push(scope["name"].as_str().unwrap().to_owned());
        }
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (0..120).map(|number| format!("s{number:04}")).collect();
    assert_eq!(names, expected);
    assert!(pages > 3, "{pages} pages");
    let error = service.refused("list_scopes", json!({ "cursor": "no cursor" }));
    assert_eq!(error.code, "invalid_cursor");
}

/// The metadata of a store that was unchanged for a while is relied on; every kind of change must
/// be seen anyway.
#[test]
fn a_changed_store_is_noticed_by_the_next_query() {
    let root = Root::new();
    let plain = root.store("plain", &[titled("p1", "Payout jobs retry twice")]);
    let log = root.store("log", &[titled("w1", "Payout logs rotate at midnight")]);
    let writer = Connection::open(&log).unwrap();
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    insert(&writer, &[titled("w2", "A second payout")]);
    let replaced = root.store("replaced", &[titled("r1", "Payout tables were replaced")]);
    let elsewhere = [
        root.store("z-first", &[titled("l1", "Payout links are signed")]),
        root.store("z-second", &[titled("l2", "Invoices link to a payout")]),
    ];
    let link = root.scope_folder("linked").join("memory.db");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&elsewhere[0], &link).unwrap();
    let empty = root.scope_folder("empty");
    fs::create_dir_all(&empty).unwrap();
    let service = root.service();
    sleep(SETTLED);
    // The first look after that is remembered, the second one relies on it.
    for _ in 0..3 {
        let found: BTreeSet<String> = ids(&service, "payout").into_iter().collect();
        for id in ["p1", "w2", "r1"] {
            assert!(found.contains(id), "{found:?}");
        }
    }
    let write = |path: &Path, id: &str| {
        insert_into(path, id, &format!("A payout that came later in {id}"));
    };
    let finds = |query: &str, id: &str| ids(&service, query).contains(&id.to_owned());
    write(&plain, "p2");
    assert!(finds("payout came later", "p2"), "a commit");
    let later = titled("w3", "A payout that came later into a log");
    insert(&writer, &[later]);
    assert!(finds("payout came later", "w3"), "a commit into a log");
    let copy = replaced.with_extension("new");
    fs::copy(&plain, &copy).unwrap();
    write(&copy, "r2");
    fs::rename(&copy, &replaced).unwrap();
    assert!(finds("payout came later", "r2") && !finds("payout", "r1"), "a replaced file");
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&elsewhere[1], &link).unwrap();
    let linked = service.find(json!({ "scope": "linked" }));
    assert_eq!(result_ids(&linked)[0], "l2", "a link with another target");
    fs::copy(&plain, empty.join("memory.db")).unwrap();
    let listed = service.scopes(json!({ "scope": "empty" }));
    // A database in a folder that had none.
    assert_eq!(listed["scopes"][0]["memory_count"], 2);
}

/// Folders are not listed again while nothing was added to them.
#[test]
fn added_and_removed_scopes_and_manifests_are_noticed() {
    let root = Root::with("one", &[titled("a", "The payout job")]);
    let service = root.service();
    let names = || {
        let listed = service.scopes(json!({}))["scopes"].clone();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let named = |scope: &Value| (text(&scope["name"]).unwrap(), text(&scope["description"]));
        listed.as_array().unwrap().iter().map(named).collect::<Vec<_>>()
    };
    let one = |description: Option<&str>| ("one".to_owned(), description.map(str::to_owned));
    sleep(SETTLED);
    for _ in 0..3 {
        assert_eq!(names(), [one(None)]);
    }
    root.manifest("one", "description = \"first\"");
    assert_eq!(names(), [one(Some("first"))]);
    sleep(SETTLED);
    for _ in 0..3 {
        assert_eq!(names(), [one(Some("first"))]);
    }
    root.manifest("one", "description = \"another\"");
    assert_eq!(names(), [one(Some("another"))]);
    root.store("two", &[titled("b", "The invoice job")]);
    assert_eq!(names().len(), 2);
    fs::remove_dir_all(root.scope_folder("one")).unwrap();
    assert_eq!(names(), [("two".to_owned(), None)]);
    assert_eq!(ids(&service, "invoice"), ["b"]);
}

/// Scopes' folders are watched, so most questions look at none of their files. A watch does not
/// report every change; each of these must be seen anyway.
#[test]
fn changes_without_a_watch_event_are_noticed() {
    let root = Root::new();
    let one = |id: &str| titled(id, &format!("The payout of {id}"));
    let shared = root.store("shared", &[one("s1")]);
    let twice = root.store("twice", &[one("h1")]);
    let other_name = root.path().join("twice-elsewhere.db");
    fs::hard_link(&twice, &other_name).unwrap();
    let outside = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let folder = root.path().join("kept").join(name);
        fs::create_dir_all(&folder).unwrap();
        let path = root.store(&format!("made-{name}"), &[one(&format!("l-{name}"))]);
        fs::rename(path, folder.join("memory.db")).unwrap();
        fs::remove_dir_all(root.scope_folder(&format!("made-{name}"))).unwrap();
    }
    let link = root.path().join("scopes/link");
    std::os::unix::fs::symlink(root.path().join("kept/a"), &link).unwrap();
    let manifest = outside.path().join("scope.toml");
    write_file(&manifest, "description = \"one\"");
    std::os::unix::fs::symlink(&manifest, root.scope_folder("shared").join("scope.toml")).unwrap();
    let service = root.service();
    let all = || ids(&service, "payout").into_iter().collect::<BTreeSet<_>>();
    let seen = |expected: &[&str]| {
        let expected: BTreeSet<String> = expected.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(all(), expected);
        assert_eq!(all(), expected, "asked again");
    };
    seen(&["s1", "h1", "l-a"]);
    let write = |path: &Path, id: &str| insert_into(path, id, &format!("The payout of {id}"));
    write(&other_name, "h2");
    seen(&["s1", "h1", "h2", "l-a"]);
    write(&shared, "s2");
    seen(&["s1", "s2", "h1", "h2", "l-a"]);
    write(&root.path().join("kept/a/memory.db"), "l-a2");
    seen(&["s1", "s2", "h1", "h2", "l-a", "l-a2"]);
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(root.path().join("kept/b"), &link).unwrap();
    seen(&["s1", "s2", "h1", "h2", "l-b"]);
    let described = || {
        let listed = service.scopes(json!({ "scope": "shared" }));
        listed["scopes"][0]["description"].clone()
    };
    assert_eq!(described(), "one");
    write_file(&manifest, "description = \"another one\"");
    assert_eq!(described(), "another one");
    // Another folder replaces all of them.
    let scopes = root.path().join("scopes");
    fs::rename(&scopes, root.path().join("old")).unwrap();
    root.store("shared", &[one("n1")]);
    seen(&["n1"]);
    // A decision, and a rejection in the store itself.
    write(&root.scope_folder("shared").join("memory.db"), "n2");
    seen(&["n1", "n2"]);
    let scope = root.scope_folder("shared");
    crate::decisions::decide(&scope, "memory.db", "n1", "reject", json!({}));
    seen(&["n2"]);
}
