//! `list_scopes`: which scopes there are, what they contain, and their state.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::support::{Root, memory};
use ack_memory::internal::Setting;

fn scope<'a>(answer: &'a Value, name: &str) -> &'a Value {
    answer["scopes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|scope| scope["name"] == name)
        .unwrap_or_else(|| panic!("no `{name}` in {answer:#}"))
}

/// Hides the temporary folder.
fn neutral(root: &Root, answer: &Value) -> Value {
    serde_json::from_str(
        &answer
            .to_string()
            .replace(
                root.path().canonicalize().unwrap().to_str().unwrap(),
                "ROOT",
            )
            .replace(root.path().to_str().unwrap(), "ROOT"),
    )
    .unwrap()
}

#[test]
fn a_scope_is_described_by_its_contents() {
    let root = Root::new();
    root.manifest(
        "ledger",
        "description = \"Payments\"\nprojects = [\"ledger-api\"]",
    );
    root.store(
        "ledger",
        &[
            memory(
                "a",
                "One",
                json!({ "concepts": ["Postgres", "locks"], "project": "ledger-api", "updated_at": "2026-03-01T00:00:00Z" }),
            ),
            memory(
                "b",
                "Two",
                json!({ "concepts": ["postgres"], "project": "Ledger_API", "status": "promoted" }),
            ),
            memory(
                "c",
                "Three",
                json!({ "concepts": ["unreviewed"], "status": "staging", "created_at": "2025-12-01T00:00:00Z" }),
            ),
            memory("d", "Four", json!({ "status": null, "created_at": "2025-11-01T00:00:00Z" })),
            memory(
                "e",
                "Five",
                json!({ "concepts": ["bad"], "status": "rejected", "updated_at": "2026-09-01T00:00:00Z" }),
            ),
            memory("f", "Six", json!({ "status": "draft" })),
        ],
    );
    let answer = call(
        &root.service_with(|inputs| {
            inputs.project = Some(Setting::flag("-C", root.path().join("ledger-api")))
        }),
        "list_scopes",
        json!({}),
    )
    .unwrap();
    insta::assert_json_snapshot!(neutral(&root, &answer), @r#"
    {
      "scopes": [
        {
          "name": "ledger",
          "path": "ROOT/scopes/ledger",
          "store": "ROOT/scopes/ledger/memory.db",
          "memory_count": 4,
          "last_updated": "2026-03-01T00:00:00Z",
          "description": "Payments",
          "visibility": "shared",
          "counts": {
            "approved": 1,
            "promoted": 1,
            "staging": 2,
            "rejected": 1,
            "unknown": 1
          },
          "projects": [
            "Ledger_API"
          ],
          "tags": [
            {
              "tag": "Postgres",
              "count": 2
            },
            {
              "tag": "locks",
              "count": 1
            }
          ],
          "pending": {
            "count": 2,
            "oldest": "2025-11-01T00:00:00Z",
            "ids": [
              "d",
              "c"
            ]
          },
          "profile": "ack",
          "health": {
            "state": "degraded",
            "opened": "at rest, without locks (immutable=1, verified unchanged)",
            "problems": [
              "1 row has an unknown status and is never served; allowed are staging, approved, promoted, rejected"
            ]
          }
        }
      ],
      "current_scope": "ledger",
      "detected_by": "projects `ledger-api`"
    }
"#);
}

#[test]
fn one_scope_in_detail_lists_more_of_it() {
    let root = Root::new();
    let memories: Vec<Value> = (0..30).map(|n| memory(&format!("m{n:02}"), "One", json!({ "status": if n < 15 { "staging" } else { "approved" }, "concepts": [format!("tag-{n:02}")], "project": format!("project-{n:02}") }))).collect();
    crate::query::bulk(&root, "big", &memories);
    root.store("small", &[]);
    let service = root.service();
    let count = |scope: &Value| {
        (
            scope["tags"].as_array().unwrap().len(),
            scope["projects"].as_array().unwrap().len(),
            scope["pending"]["ids"].as_array().unwrap().len(),
        )
    };
    let list = call(&service, "list_scopes", json!({})).unwrap();
    assert_eq!(count(scope(&list, "big")), (8, 8, 8));
    let detail = call(&service, "list_scopes", json!({ "scope": "BIG" })).unwrap();
    assert_eq!(detail["scopes"].as_array().unwrap().len(), 1);
    assert_eq!(count(scope(&detail, "big")), (15, 30, 15));
    assert_eq!(scope(&list, "small")["memory_count"], 0);
}

#[test]
fn broken_scopes_are_reported_and_the_others_answer() {
    let root = Root::new();
    root.store("good", &[memory("a", "Deploy rule", json!({}))]);
    root.manifest("absent", "description = \"no database yet\"");
    std::fs::write(
        root.scope_folder("text").join("memory.db"),
        "this is no database, only a text that is long enough to be read as one",
    )
    .unwrap();
    std::fs::write(root.scope_folder("empty").join("memory.db"), "").unwrap();
    Connection::open(root.scope_folder("foreign").join("memory.db"))
        .unwrap()
        .execute_batch("CREATE TABLE recipes (id INTEGER, name TEXT)")
        .unwrap();
    root.store("typo", &[memory("t", "Deploy typo", json!({}))]);
    root.manifest("typo", "description = \"x\"\n\nvisibilty = \"private\"\n");
    let service = root.service();
    let answer = call(&service, "list_scopes", json!({})).unwrap();
    let health: Vec<Value> = answer["scopes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|scope| json!({ scope["name"].as_str().unwrap(): scope["health"] }))
        .collect();
    insta::assert_json_snapshot!(neutral(&root, &json!(health)), @r#"
    [
      {
        "absent": {
          "state": "unavailable",
          "problems": [
            "Memory database not found: `ROOT/scopes/absent/memory.db`; for the user: `ack-memory import FILE --scope absent` imports memories; `ack-memory scopes set absent store=PATH` names an existing store instead"
          ]
        }
      },
      {
        "empty": {
          "state": "unavailable",
          "problems": [
            "`ROOT/scopes/empty/memory.db` is empty: no database was ever written there; for the user: `ack-memory import FILE --scope empty` imports memories, once the empty file is removed"
          ]
        }
      },
      {
        "foreign": {
          "state": "unavailable",
          "problems": [
            "`ROOT/scopes/foreign/memory.db` holds no memories: none of its tables (`recipes`) has an id and a title; `schemas/scope.sql` describes the tables that this program reads"
          ]
        }
      },
      {
        "good": {
          "state": "ok",
          "opened": "at rest, without locks (immutable=1, verified unchanged)"
        }
      },
      {
        "text": {
          "state": "unavailable",
          "problems": [
            "`ROOT/scopes/text/memory.db` is not an SQLite database; restore the file from a backup"
          ]
        }
      },
      {
        "typo": {
          "state": "unavailable",
          "problems": [
            "`scopes/typo/scope.toml` cannot be used: line 3: unknown key `visibilty`; did you mean `visibility`?"
          ]
        }
      }
    ]
"#);
    let found = call(&service, "query_memories", json!({ "query": "deploy" })).unwrap();
    assert_eq!(
        (&found["total"], &found["searched"]["scopes"]),
        (&json!(1), &json!(["good"]))
    );
    let skipped: Vec<&str> = found["searched"]["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skipped| skipped["scope"].as_str().unwrap())
        .collect();
    assert_eq!(skipped.len(), 5, "{skipped:?}");
    let missing = call(&service, "query_memories", json!({ "scope": "absent" })).unwrap_err();
    insta::assert_json_snapshot!(neutral(&root, &json!(missing.body())), @r#"
{
  "code": "store_not_found",
  "message": "Memory database not found: `ROOT/scopes/absent/memory.db`",
  "hint": "for the user: `ack-memory import FILE --scope absent` imports memories; `ack-memory scopes set absent store=PATH` names an existing store instead",
  "path": "ROOT/scopes/absent/memory.db"
}
"#);
}

#[test]
fn a_folder_without_a_database_is_named_and_other_entries_are_no_scopes() {
    let root = Root::new();
    root.store("good", &[memory("a", "Deploy rule", json!({}))]);
    std::fs::create_dir_all(root.path().join("scopes/.git/objects")).unwrap();
    std::fs::write(root.path().join("scopes/notes.txt"), "").unwrap();
    std::fs::create_dir_all(root.path().join("scopes/backup")).unwrap();
    let answer = call(&root.service(), "list_scopes", json!({})).unwrap();
    let names: Vec<&str> = answer["scopes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|scope| scope["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["backup", "good"]);
    assert_eq!(
        answer["scopes"][0]["health"]["state"], "unavailable",
        "an empty folder is named with what is missing"
    );
}

#[test]
fn without_any_scope_every_answer_says_how_to_start() {
    let root = Root::new();
    let service = root.service();
    let list = call(&service, "list_scopes", json!({})).unwrap();
    insta::assert_json_snapshot!(neutral(&root, &list), @r#"
{
  "scopes": [],
  "notes": [
    {
      "kind": "no_scopes",
      "message": "no memories yet: there is no scope under `ROOT/scopes`; for the user: `ack-memory setup` finds the stores on this machine; `ack-memory demo` shows sample memories; `ack-memory import FILE --scope NAME` imports memories"
    }
  ]
}
"#);
    for (tool, arguments) in [
        ("query_memories", json!({})),
        ("get_memory", json!({ "id": "a" })),
        ("get_context", json!({})),
    ] {
        let body = call(&service, tool, arguments).unwrap_err().body();
        assert_eq!(body.code, "no_scopes", "{tool}");
        assert!(
            body.message.contains("there is no scope")
                && body.hint.unwrap().contains("ack-memory demo"),
            "{tool}"
        );
    }
    assert!(
        !root.path().join("scopes").exists(),
        "nothing is made by looking"
    );
}

#[test]
fn a_store_elsewhere_is_opened_in_place() {
    let root = Root::new();
    let elsewhere = Root::new();
    let path = elsewhere.store("x", &[memory("a", "Deploy rule", json!({}))]);
    root.manifest("linked", &format!("store = '{}'", path.display()));
    root.manifest("relative", "store = '../../data/kept.db'");
    std::fs::create_dir_all(root.path().join("data")).unwrap();
    std::fs::copy(&path, root.path().join("data/kept.db")).unwrap();
    root.manifest("at-home", "store = '~/kept.db'");
    let home = root.path().join("data");
    let service = root.service_with(|inputs| inputs.home = Some(home));
    let answer = call(&service, "list_scopes", json!({})).unwrap();
    for name in ["linked", "relative", "at-home"] {
        assert_eq!(
            scope(&answer, name)["memory_count"],
            1,
            "{name}: {answer:#}"
        );
    }
    assert_eq!(scope(&answer, "linked")["store"], path.to_str().unwrap());
}

#[test]
fn only_the_name_of_a_private_scope_is_shown_elsewhere() {
    let root = Root::new();
    root.store("open", &[memory("a", "Deploy rule", json!({}))]);
    root.store(
        "secret",
        &[memory(
            "b",
            "Deploy secret",
            json!({ "concepts": ["hush"], "project": "veiled" }),
        )],
    );
    root.manifest(
        "secret",
        "visibility = \"private\"\ndescription = \"the merger\"\n",
    );
    root.manifest(
        "broken",
        "visibility = \"private\"\ndescripton = \"the sale\"\n",
    );
    let folder = root.path().to_str().unwrap();
    let service = root.service();
    for (entry_point, answer) in [
        (
            "list_scopes",
            call(&service, "list_scopes", json!({})).unwrap()["scopes"].clone(),
        ),
        (
            "query_memories",
            call(&service, "query_memories", json!({ "query": "deploy" })).unwrap(),
        ),
        (
            "get_context",
            call(&service, "get_context", json!({})).unwrap()["searched"].clone(),
        ),
        (
            "memory://scopes",
            json!(service.scopes_resource().unwrap().scopes),
        ),
    ] {
        for scope in answer
            .as_array()
            .into_iter()
            .flatten()
            .filter(|scope| scope["name"] != "open")
        {
            let keys: Vec<&String> = scope.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["name", "visibility", "health"], "{entry_point}");
        }
        let text = answer.to_string();
        for hidden in [
            "the merger",
            "hush",
            "veiled",
            "Deploy secret",
            &format!("{folder}/scopes/secret"),
            &format!("{folder}/scopes/broken"),
        ] {
            assert!(
                !text.contains(hidden),
                "{entry_point} tells {hidden}: {text}"
            );
        }
    }
    let listed = call(&service, "list_scopes", json!({})).unwrap();
    assert_eq!(
        scope(&listed, "secret")["health"],
        json!({ "state": "not_read", "problems": ["private: searched only when it is current or named"] })
    );
    let broken = scope(&listed, "broken")["health"]["problems"][0]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        broken.starts_with("`scopes/broken/scope.toml`") && broken.contains("line 2"),
        "{broken}"
    );
    // Named or current, everything is shown.
    let named = call(&service, "list_scopes", json!({ "scope": "secret" })).unwrap();
    let current = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", root.scope_folder("secret")))
    });
    for answer in [named, call(&current, "list_scopes", json!({})).unwrap()] {
        let text = scope(&answer, "secret");
        assert_eq!(text["path"], json!(root.scope_folder("secret")));
        assert_eq!(
            text["store"],
            json!(root.scope_folder("secret").join("memory.db"))
        );
        assert_eq!(
            (&text["description"], &text["memory_count"]),
            (&json!("the merger"), &json!(1))
        );
    }
}
