//! What is shown next to a waiting memory: the nearest approved ones, how it relates to them, and
//! those that are much like it.

use std::time::{Duration, Instant};

use ack_compare::Relation;
use ack_memory::api::RelationKind;
use ack_memory::api::memory::Memory;
use serde_json::{Value, json};

use crate::support::{Root, memory};

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

/// A memory with one fact.
fn noted(id: &str, title: &str, fact: &str, status: &str) -> Value {
    memory(id, title, json!({ "facts": [fact], "status": status }))
}

/// The approved memories near a waiting one: their ids, and how it relates to them.
fn nearest(root: &Root, id: &str) -> Vec<(String, Relation)> {
    let service = root.service().leak();
    let near = service
        .nearest_approved(&read(root, id), "alpha", &[])
        .unwrap();
    let near = near.into_iter().map(|near| (near.memory.id, near.relation));
    near.collect()
}

fn lessons() -> Vec<Value> {
    let timeout = "The webhook sender waits 30 seconds for an answer before it retries.";
    let other = timeout.replace("30", "60");
    let frozen = "Run pnpm install without the frozen lockfile flag after a merge.";
    let install = "pnpm install fails on a frozen lockfile";
    let more = json!({ "facts": [timeout, "It is set in config/webhooks.toml."] });
    vec![
        noted("timeout", "Webhook timeout", timeout, "approved"),
        noted("lockfile", install, frozen, "approved"),
        noted(
            "colours",
            "Colours of the kiosk",
            "It has a dark theme at night.",
            "approved",
        ),
        noted("again", "Webhook timeout", timeout, "staging"),
        noted("other-value", "Webhook timeout", &other, "staging"),
        staged("unapproved", "Webhook timeout", more),
    ]
}

#[test]
fn a_large_scope_is_scanned_until_its_index_exists() {
    let root = Root::new();
    let mut memories = lessons();
    let long = "The parser allocates once for each token. ".repeat(60);
    memories.extend((0..2_500).map(|number| {
        let title = format!("Note {number} about the parser");
        memory(
            &format!("other-{number:04}"),
            &title,
            json!({ "narrative": long }),
        )
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
    assert_eq!(service.index_bytes(scope), 0);
    assert_eq!(nearest().as_deref(), Some("timeout"));
    let began = Instant::now();
    while service.index_bytes(scope) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no index");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(nearest().as_deref(), Some("timeout"));
}

#[test]
fn the_nearest_is_an_approved_memory_and_no_other() {
    let root = Root::new();
    let port = "The ledger listens on port 8080.";
    let lives = "The nightly backup of the ledger database starts at 03:00.";
    let memories = [
        noted("backup", "Backup of the ledger", lives, "approved"),
        noted(
            "keys",
            "Rotation of keys",
            "They rotate each month.",
            "approved",
        ),
        noted("port", "Port of the ledger", port, "promoted"),
        noted("same", "Backup of the ledger", lives, "rejected"),
        noted("waits", "Backup of the ledger", lives, "staging"),
        noted(
            "w-backup",
            "Backup of the ledger",
            &lives.replace("03", "01"),
            "staging",
        ),
        noted("w-port", "Port of the ledger", port, "staging"),
    ];
    root.store("alpha", &memories);
    let kinds = |id: &str| -> Vec<(String, RelationKind)> {
        let found = nearest(&root, id).into_iter();
        found.map(|(id, relation)| (id, relation.kind)).collect()
    };
    let wanted = |id: &str, kind| vec![(id.to_owned(), kind)];
    assert_eq!(
        kinds("w-backup"),
        wanted("backup", RelationKind::Contradicts)
    );
    assert_eq!(kinds("waits"), wanted("backup", RelationKind::Same));
    assert_eq!(kinds("w-port"), wanted("port", RelationKind::Same));
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
    memories.push(memory(
        "other",
        "Deliveries",
        json!({ "facts": [waits(30)] }),
    ));
    // Most words of its title are in no memory: a search would find nothing certain.
    let title = "Kiosk sender note: quokka, grommet, flange, zeppelin, marzipan, thimble";
    let kiosks = "Every kiosk has a note of its sender on the door, whatever its colour.";
    memories.push(staged(
        "new",
        title,
        json!({ "facts": [kiosks, waits(60)] }),
    ));
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
    let failed = "失败时不要重试，先查看日志。";
    let notify = "失敗したら担当者に通知する。";
    let memories = [
        noted("zh", "部署之前先运行数据库迁移", failed, "approved"),
        noted("ja", "リリースの前にキャッシュを温める", notify, "approved"),
        noted(
            "fonts",
            "Fonts of the printer",
            "It has two fonts.",
            "approved",
        ),
        noted("after-zh", "部署之后先运行数据库迁移", failed, "staging"),
        noted("same-zh", "部署之前先运行数据库迁移。", failed, "staging"),
        noted(
            "after-ja",
            "リリースの後にキャッシュを温める",
            notify,
            "staging",
        ),
        noted(
            "roof",
            "Grant of the museum",
            "It restores its roof.",
            "staging",
        ),
        noted(
            "museum",
            "博物馆申请修复屋顶的资助",
            "四月截止。",
            "staging",
        ),
    ];
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
    let facts = "relay ledger gateway importer kiosk scheduler"
        .split(' ')
        .flat_map(|part| {
            [
                format!("The {part} retries a failed call three times with jitter."),
                format!("The {part} reads its secrets from the vault at start."),
                format!("The {part} exports metrics on a port of its own."),
            ]
        });
    let facts: Vec<String> = facts.collect();
    let card = noted("card", "Retries of the relay", &facts[0], "staging");
    let huge = memory("huge", "Runbook of the platform", json!({ "facts": facts }));
    root.store("alpha", &[huge, card]);
    assert_eq!(
        near(&root, "card"),
        [("huge".to_owned(), RelationKind::Differs)]
    );
}
