//! The memory for indexes is bounded: those that were not used for the longest time are dropped, and
//! no answer changes.

use ack_memory::{Config, Service};
use rusqlite::{Connection, params};
use serde_json::json;

use crate::query::bulk;
use crate::support::{Ask, Root, Sql, sorted_ids, titled};

/// The bound of these tests.
const BOUND: usize = 16 << 20;
const SCOPES: [&str; 3] = ["first", "second", "third"];

/// Scopes whose memories share no word, so that their indexes are large: two fit, three do not.
fn large() -> Root {
    let root = Root::new();
    for scope in SCOPES {
        let mut connection = Connection::open(root.store(scope, &[])).unwrap();
        let transaction = connection.transaction().unwrap();
        for row in 0..850 {
            let words: Vec<String> = (0..150).map(|word| format!("w{row:03}x{word:03}")).collect();
            let (id, title) = (format!("{scope}-{row}"), format!("Memory {row} of {scope}"));
            transaction.sql_with("INSERT INTO memories (id, title, narrative, status, created_at) VALUES (?1, ?2, ?3, 'approved', '2026-01-01T00:00:00Z')", params![id, title, words.join(" ")]);
        }
        transaction.commit().unwrap();
    }
    root
}

fn bounded(root: &Root) -> Service {
    let config = Config::at(root.path()).unwrap();
    Service::new(Config { index_bytes: BOUND, ..config })
}

/// Bytes of each scope's index, in the order of [`SCOPES`].
fn index_sizes(service: &Service) -> [usize; 3] {
    let found = service.registry.discover().scopes;
    SCOPES.map(|name| {
        found.iter().find(|scope| scope.name == name).map_or(0, |scope| scope.live.bytes())
    })
}

#[track_caller]
fn ask(service: &Service, scope: Option<&str>, row: usize) {
    let answer = service
        .find(json!({ "query": format!("w{row:03}x007"), "scope": scope, "mode": "lexical" }));
    let found = sorted_ids(&answer["results"]);
    let expected: Vec<String> = SCOPES
        .iter()
        .filter(|name| scope.is_none_or(|scope| scope == **name))
        .map(|name| format!("{name}-{row}"))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn least_recently_used_indexes_are_evicted_and_answers_stay_correct() {
    let root = large();
    let service = bounded(&root);
    for (row, scope) in SCOPES.iter().enumerate() {
        ask(&service, Some(scope), row);
    }
    let [first, second, third] = index_sizes(&service);
    assert!(first + second <= BOUND && second + third <= BOUND, "two fit: {first} {second}");
    assert!(second + third + second > BOUND, "three do not: {second} {third}");

    // The next request finds three, and only the most recently used index stays in addition to what
    // it needs.
    ask(&service, Some("third"), 11);
    let [first, second, third] = index_sizes(&service);
    assert_eq!(first, 0, "used before the others");
    assert!(second > 0 && third > 0);
    // Using the second one makes the third the least recently used.
    ask(&service, Some("second"), 12);
    ask(&service, Some("first"), 13);
    ask(&service, Some("first"), 14);
    let [first, second, third] = index_sizes(&service);
    assert!(first > 0 && second > 0 && third == 0, "{first} {second} {third}");

    // A request that needs all of them has all of them.
    ask(&service, None, 15);
    assert!(index_sizes(&service).iter().all(|bytes| *bytes > 0));
    ask(&service, Some("second"), 16);
    let whole: usize = index_sizes(&service).iter().sum();
    assert!(whole <= BOUND && index_sizes(&service)[1] > 0, "{whole}");
}

#[test]
fn requests_at_the_same_time_keep_the_indexes_that_they_read() {
    let root = large();
    let service = bounded(&root);
    std::thread::scope(|threads| {
        for (number, scope) in SCOPES.iter().enumerate() {
            let service = &service;
            threads.spawn(move || {
                (0..6).for_each(|turn| {
                    ask(service, (turn % 2 == 0).then_some(*scope), number * 6 + turn)
                })
            });
        }
    });
    ask(&service, Some("first"), 20);
    ask(&service, Some("first"), 21);
    assert!(index_sizes(&service).iter().sum::<usize>() <= BOUND);
}

#[test]
fn an_index_does_not_grow_with_repeated_changes() {
    let root = Root::new();
    let memories: Vec<_> =
        (0..100).map(|n| titled(&format!("m{n}"), &format!("The first title of {n}"))).collect();
    let writer = bulk(&root, "busy", &memories);
    let service = bounded(&root);
    let mut sizes = Vec::new();
    for turn in 0..1_500 {
        let title = format!("Title number{turn} with words word{turn}a and word{turn}b");
        let sql = "UPDATE memories SET title = ?1 WHERE id = ?2";
        let changed = writer.execute(sql, params![title, format!("m{}", turn % 100)]);
        assert_eq!(changed.unwrap(), 1);
        let answer = service.find(json!({ "query": format!("number{turn}"), "mode": "lexical" }));
        let shown = &answer["results"][0]["title"];
        assert_eq!(*shown, title.as_str(), "one row at a time, each found at once");
        if turn % 100 == 99 {
            sizes.push(service.registry.discover().scopes[0].live.bytes());
        }
    }
    let (early, late) = (sizes[2], sizes[sizes.len() - 3..].iter().min().unwrap());
    assert!(*late <= early * 2, "{sizes:?}");
}
