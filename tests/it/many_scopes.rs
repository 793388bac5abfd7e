//! Many scopes under one root: answers stay within their bounds, lists have pages, and changes are
//! seen by the next question although unchanged files are not opened.

use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use ack_api::text;
use ack_api::{ContextRequest, GetRequest, ListScopesRequest, QueryRequest};
use ack_memory::Service;
use rusqlite::Connection;
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::{Root, insert, memory};

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
    [
        memory(
            &format!("a{number}"),
            "The payout job retries a locked database",
            json!({}),
        ),
        memory(
            &format!("b{number}"),
            "Invoices are rounded half to even",
            json!({}),
        ),
    ]
}

/// By the estimate that limits answers; for a short answer, which is mostly cursor, at three bytes
/// per token, which is still more than tokenizers count.
fn tokens(answer: &impl Serialize) -> usize {
    let json = serde_json::to_string(answer).unwrap();
    if json.len() < 600 {
        json.len() / 3
    } else {
        text::tokens(&json)
    }
}

fn ids(service: &Service, query: &str) -> Vec<String> {
    let answer = service
        .query_memories(&QueryRequest {
            query: Some(query.to_owned()),
            ..QueryRequest::default()
        })
        .unwrap();
    answer.results.into_iter().map(|hit| hit.id).collect()
}

#[test]
fn answers_stay_within_their_limit_with_many_scopes() {
    let root = many(300);
    for broken in 0..40 {
        let folder = root.scope_folder(&format!("broken{broken:02}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("memory.db"), "no database at all").unwrap();
    }
    let service = root.service();
    for bound in [200, 800, 4_000] {
        let bound_of = |answer: usize, what: &str| {
            assert!(answer <= bound, "{what}: {answer} of {bound} tokens")
        };
        let max_tokens = i64::try_from(bound).ok();
        let query = QueryRequest {
            query: Some("payout database".to_owned()),
            max_tokens,
            ..QueryRequest::default()
        };
        let answer = service.query_memories(&query).unwrap();
        assert!(!answer.results.is_empty());
        bound_of(
            tokens(&answer),
            &format!("query_memories {}", json!(answer)),
        );
        let listed = answer.searched.scopes.len() as u64 + answer.searched.more_scopes;
        assert_eq!(listed, 300, "every scope that was searched is counted");
        let skipped = answer.searched.skipped.len() as u64 + answer.searched.more_skipped;
        assert_eq!(skipped, 40, "and every one that was not");
        let context = ContextRequest {
            max_tokens,
            ..ContextRequest::default()
        };
        bound_of(
            tokens(&service.get_context(&context).unwrap()),
            "get_context",
        );
        let scopes = ListScopesRequest {
            max_tokens,
            ..ListScopesRequest::default()
        };
        let answer = service.list_scopes(&scopes).unwrap();
        assert_eq!(answer.total, Some(340));
        // The first scope of a page is there whatever its size.
        bound_of(
            tokens(&answer).min(if answer.scopes.len() == 1 {
                bound
            } else {
                usize::MAX
            }),
            "list_scopes",
        );
    }
    let missing = GetRequest {
        id: Some("nothing".to_owned()),
        ..GetRequest::default()
    };
    let error = service.get_memory(&missing).unwrap_err();
    assert!(
        serde_json::to_string(&error.body()).unwrap().len() < 2_000,
        "{error}"
    );
}

#[test]
fn the_list_of_scopes_has_pages_that_lose_nothing() {
    let root = many(120);
    let service = root.service();
    let mut request = ListScopesRequest {
        max_tokens: Some(1_000),
        ..ListScopesRequest::default()
    };
    let mut names = Vec::new();
    let mut pages = 0;
    loop {
        let page = service.list_scopes(&request).unwrap();
        pages += 1;
        names.extend(page.scopes.iter().map(|scope| scope.name.clone()));
        assert!(
            page.scopes
                .iter()
                .all(|scope| scope.memory_count == Some(2))
        );
        let Some(cursor) = page.next_cursor else {
            break;
        };
        request.cursor = Some(cursor);
    }
    let expected: Vec<String> = (0..120).map(|number| format!("s{number:04}")).collect();
    assert_eq!(names, expected);
    assert!(pages > 3, "{pages} pages");
    request.cursor = Some("no cursor".to_owned());
    assert_eq!(
        service.list_scopes(&request).unwrap_err().code(),
        "invalid_cursor"
    );
}

/// The metadata of a store that was unchanged for a while is relied on; every kind of change must
/// be seen anyway.
#[test]
fn a_changed_store_is_noticed_by_the_next_query() {
    let root = Root::new();
    let plain = root.store(
        "plain",
        &[memory("p1", "Payout jobs retry twice", json!({}))],
    );
    let log = root.store(
        "log",
        &[memory("w1", "Payout logs rotate at midnight", json!({}))],
    );
    let writer = Connection::open(&log).unwrap();
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    insert(&writer, &[memory("w2", "A second payout", json!({}))]);
    let replaced = root.store(
        "replaced",
        &[memory("r1", "Payout tables were replaced", json!({}))],
    );
    let elsewhere = [
        root.store(
            "z-first",
            &[memory("l1", "Payout links are signed", json!({}))],
        ),
        root.store(
            "z-second",
            &[memory("l2", "Invoices link to a payout", json!({}))],
        ),
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
        assert!(
            found.contains("p1") && found.contains("w2") && found.contains("r1"),
            "{found:?}"
        );
    }
    let write = |path: &std::path::Path, id: &str| {
        let connection = Connection::open(path).unwrap();
        insert(
            &connection,
            &[memory(
                id,
                &format!("A payout that came later in {id}"),
                json!({}),
            )],
        );
    };
    write(&plain, "p2");
    assert!(
        ids(&service, "payout came later").contains(&"p2".to_owned()),
        "a commit"
    );
    insert(
        &writer,
        &[memory(
            "w3",
            "A payout that came later into a log",
            json!({}),
        )],
    );
    assert!(
        ids(&service, "payout came later").contains(&"w3".to_owned()),
        "a commit into a log"
    );
    let copy = replaced.with_extension("new");
    fs::copy(&plain, &copy).unwrap();
    write(&copy, "r2");
    fs::rename(&copy, &replaced).unwrap();
    let found = ids(&service, "payout came later");
    assert!(
        found.contains(&"r2".to_owned()) && !ids(&service, "payout").contains(&"r1".to_owned()),
        "a replaced file"
    );
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&elsewhere[1], &link).unwrap();
    let linked = QueryRequest {
        scope: Some("linked".to_owned()),
        ..QueryRequest::default()
    };
    assert_eq!(
        service.query_memories(&linked).unwrap().results[0].id,
        "l2",
        "a link with another target"
    );
    fs::copy(&plain, empty.join("memory.db")).unwrap();
    let listed = service.list_scopes(&ListScopesRequest::default()).unwrap();
    let count = |name: &str| {
        listed
            .scopes
            .iter()
            .find(|scope| scope.name == name)
            .and_then(|scope| scope.memory_count)
    };
    assert_eq!(
        count("empty"),
        Some(2),
        "a database in a folder that had none"
    );
}

/// Folders are not listed again while nothing was added to them.
#[test]
fn added_and_removed_scopes_and_manifests_are_noticed() {
    let root = Root::new();
    root.store("one", &[memory("a", "The payout job", json!({}))]);
    let service = root.service();
    let names = || {
        let listed = service.list_scopes(&ListScopesRequest::default()).unwrap();
        let described = |scope: ack_api::ScopeInfo| (scope.name, scope.description);
        listed.scopes.into_iter().map(described).collect::<Vec<_>>()
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
    root.store("two", &[memory("b", "The invoice job", json!({}))]);
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
    let one = |id: &str| memory(id, &format!("The payout of {id}"), json!({}));
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
    fs::write(&manifest, "description = \"one\"").unwrap();
    std::os::unix::fs::symlink(&manifest, root.scope_folder("shared").join("scope.toml")).unwrap();
    let service = root.service();
    let all = || ids(&service, "payout").into_iter().collect::<BTreeSet<_>>();
    let seen = |expected: &[&str]| {
        let expected: BTreeSet<String> = expected.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(all(), expected);
        assert_eq!(all(), expected, "asked again");
    };
    seen(&["s1", "h1", "l-a"]);
    let write = |path: &std::path::Path, id: &str| {
        insert(&Connection::open(path).unwrap(), &[one(id)]);
    };
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
        let listed = service.list_scopes(&ListScopesRequest::default()).unwrap();
        let scope = listed
            .scopes
            .into_iter()
            .find(|scope| scope.name == "shared");
        scope.unwrap().description
    };
    assert_eq!(described().as_deref(), Some("one"));
    fs::write(&manifest, "description = \"another one\"").unwrap();
    assert_eq!(described().as_deref(), Some("another one"));
    // Another folder replaces all of them.
    let scopes = root.path().join("scopes");
    fs::rename(&scopes, root.path().join("old")).unwrap();
    root.store("shared", &[one("n1")]);
    seen(&["n1"]);
    // A decision, and a rejection in the store itself.
    write(&root.scope_folder("shared").join("memory.db"), "n2");
    seen(&["n1", "n2"]);
    crate::decisions::decide(
        &root.scope_folder("shared"),
        "memory.db",
        "n1",
        "reject",
        json!({}),
    );
    seen(&["n2"]);
}
