//! What is shown next to an unreviewed memory: the nearest approved ones, how it relates to them, and
//! those that are much like it.

use std::time::{Duration, Instant};

use ack_compare::Relation;
use ack_memory::api::RelationKind;
use ack_memory::api::memory::Memory;
use serde_json::{Value, json};

use crate::support::{Root, memory, rows};

fn staged(id: &str, title: &str, rest: Value) -> Value {
    let mut memory = memory(id, title, rest);
    memory["status"] = json!("staging");
    memory
}

fn read(root: &Root, id: &str) -> Memory {
    let path = root.path().join("scopes/alpha/memory.db");
    let connection = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT title, facts, narrative FROM memories WHERE id = ?1";
    let memory = connection.query_row(sql, [id], |row| {
        let facts: Option<String> = row.get(1)?;
        Ok(Memory {
            id: id.to_owned(),
            title: row.get(0)?,
            facts: facts.map_or_else(Vec::new, |facts| serde_json::from_str(&facts).unwrap()),
            narrative: row.get(2)?,
            ..Memory::default()
        })
    });
    memory.unwrap()
}

/// Memories with one fact each.
fn noted(lines: &str) -> Vec<Value> {
    let mut memories = rows("id | status | title | facts", lines);
    for memory in &mut memories {
        memory["facts"] = json!([memory["facts"]]);
    }
    memories
}

/// The approved memories near a waiting one: their ids, and how it relates to them.
fn nearest(root: &Root, id: &str) -> Vec<(String, Relation)> {
    let service = root.service().leak();
    let near = service.nearest_approved(&read(root, id), "alpha", &[]).unwrap();
    let near = near.into_iter().map(|near| (near.memory.id, near.relation));
    near.collect()
}

fn lessons() -> Vec<Value> {
    let timeout = "The webhook sender waits 30 seconds for an answer before it retries.";
    let mut lessons = noted(
        "
        timeout | approved | Webhook timeout | The webhook sender waits 30 seconds for an answer before it retries.
        lockfile | approved | pnpm install fails on a frozen lockfile | Run pnpm install without the frozen lockfile flag after a merge.
        colours | approved | Colours of the kiosk | It has a dark theme at night.
        again | staging | Webhook timeout | The webhook sender waits 30 seconds for an answer before it retries.
        other-value | staging | Webhook timeout | The webhook sender waits 60 seconds for an answer before it retries.
        ",
    );
    let more = json!({ "facts": [timeout, "It is set in config/webhooks.toml."] });
    lessons.push(staged("unapproved", "Webhook timeout", more));
    lessons
}

#[test]
fn a_large_scope_is_scanned_until_its_index_exists() {
    let root = Root::new();
    let mut memories = lessons();
    let long = "The parser allocates once for each token. ".repeat(60);
    memories.extend((0..2_500).map(|number| {
        let title = format!("Note {number} about the parser");
        memory(&format!("other-{number:04}"), &title, json!({ "narrative": long }))
    }));
    let path = root.store("alpha", &memories);
    assert!(std::fs::metadata(path).unwrap().len() > 4 << 20);
    let service = root.service().leak();
    let scopes = service.registry.discover().scopes;
    let scope = scopes.iter().find(|scope| scope.name == "alpha").unwrap();
    let nearest = || {
        let near = service.nearest_approved(&read(&root, "other-value"), "alpha", &[]);
        near.unwrap().into_iter().next().map(|near| near.memory.id)
    };
    assert_eq!(scope.live.bytes(), 0);
    assert_eq!(nearest().as_deref(), Some("timeout"));
    let began = Instant::now();
    while scope.live.bytes() == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no index");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(nearest().as_deref(), Some("timeout"));
}

#[test]
fn the_nearest_is_an_approved_memory_and_no_other() {
    let root = Root::new();
    let memories = noted(
        "
        backup | approved | Backup of the ledger | The nightly backup of the ledger database starts at 03:00.
        keys | approved | Rotation of keys | They rotate each month.
        port | promoted | Port of the ledger | The ledger listens on port 8080.
        same | rejected | Backup of the ledger | The nightly backup of the ledger database starts at 03:00.
        waits | staging | Backup of the ledger | The nightly backup of the ledger database starts at 03:00.
        w-backup | staging | Backup of the ledger | The nightly backup of the ledger database starts at 01:00.
        w-port | staging | Port of the ledger | The ledger listens on port 8080.
        ",
    );
    root.store("alpha", &memories);
    let wanted = |id: &str, kind| vec![(id.to_owned(), kind)];
    let contradicts = wanted("backup", RelationKind::Contradicts);
    assert_eq!(near(&root, "w-backup"), contradicts);
    assert_eq!(near(&root, "waits"), wanted("backup", RelationKind::Same));
    assert_eq!(near(&root, "w-port"), wanted("port", RelationKind::Same));
}

#[test]
fn a_contradiction_is_found_after_more_similar_memories() {
    let root = Root::new();
    let mut memories: Vec<Value> = ["blue", "green", "brown", "white", "black", "amber"]
        .into_iter()
        .map(|colour| {
            let title = format!("Kiosk sender note, {colour}");
            let fact = format!("The {colour} kiosk has a note of its sender on the door.");
            memory(colour, &title, json!({ "facts": [fact] }))
        })
        .collect();
    let waits = |seconds: u32| format!("Webhook deliveries wait {seconds} seconds for an answer.");
    memories.push(memory("other", "Deliveries", json!({ "facts": [waits(30)] })));
    // Most words of its title are in no memory: a search would find nothing certain.
    let title = "Kiosk sender note: quokka, grommet, flange, zeppelin, marzipan, thimble";
    let kiosks = "Every kiosk has a note of its sender on the door, whatever its colour.";
    memories.push(staged("new", title, json!({ "facts": [kiosks, waits(60)] })));
    root.store("alpha", &memories);
    let near = nearest(&root, "new");
    let (first, relation) = near.first().unwrap();
    assert_eq!(first, "other", "{near:?}");
    assert_eq!(relation.kind, RelationKind::Contradicts);
}

/// As [`nearest`], with the kind of each relation.
fn near(root: &Root, id: &str) -> Vec<(String, RelationKind)> {
    let near = nearest(root, id).into_iter();
    near.map(|(id, relation)| (id, relation.kind)).collect()
}

#[test]
fn texts_without_spaces_have_neighbours_and_strangers_have_none() {
    let root = Root::new();
    let memories = noted(
        "
        zh | approved | 部署之前先运行数据库迁移 | 失败时不要重试，先查看日志。
        ja | approved | リリースの前にキャッシュを温める | 失敗したら担当者に通知する。
        fonts | approved | Fonts of the printer | It has two fonts.
        after-zh | staging | 部署之后先运行数据库迁移 | 失败时不要重试，先查看日志。
        same-zh | staging | 部署之前先运行数据库迁移。 | 失败时不要重试，先查看日志。
        after-ja | staging | リリースの後にキャッシュを温める | 失敗したら担当者に通知する。
        roof | staging | Grant of the museum | It restores its roof.
        museum | staging | 博物馆申请修复屋顶的资助 | 四月截止。
        ",
    );
    root.store("alpha", &memories);
    let one = |id: &str, kind| vec![(id.to_owned(), kind)];
    assert_eq!(near(&root, "after-zh"), one("zh", RelationKind::Differs));
    assert_eq!(near(&root, "same-zh"), one("zh", RelationKind::Same));
    assert_eq!(near(&root, "after-ja"), one("ja", RelationKind::Differs));
    assert_eq!(near(&root, "roof"), []);
    assert_eq!(near(&root, "museum"), []);
}

#[test]
fn a_huge_memory_that_contains_much_of_a_card_is_not_the_same() {
    let root = Root::new();
    let facts = "relay ledger gateway importer kiosk scheduler".split(' ').flat_map(|part| {
        [
            format!("The {part} retries a failed call three times with jitter."),
            format!("The {part} reads its secrets from the vault at start."),
            format!("The {part} exports metrics on a port of its own."),
        ]
    });
    let facts: Vec<String> = facts.collect();
    let waiting = json!({ "facts": [facts[0]], "status": "staging" });
    let card = memory("card", "Retries of the relay", waiting);
    let huge = memory("huge", "Runbook of the platform", json!({ "facts": facts }));
    root.store("alpha", &[huge, card]);
    assert_eq!(near(&root, "card"), [("huge".to_owned(), RelationKind::Differs)]);
}
