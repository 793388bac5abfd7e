//! `list_scopes`: which scopes there are, what they contain, and their state.

use serde_json::{Value, json};

use crate::support::{Ask, Root, memory, run_sql, titled, write_file};
use ack_memory::internal::Setting;

fn scope<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let mut scopes = answer["scopes"].as_array().unwrap().iter();
    let scope = scopes.find(|scope| scope["name"] == name);
    scope.unwrap_or_else(|| panic!("no `{name}` in {answer:#}"))
}

/// Hides the temporary folder.
fn neutral(root: &Root, answer: &Value) -> Value {
    let real = root.path().canonicalize().unwrap();
    let text = answer.to_string().replace(real.to_str().unwrap(), "ROOT");
    let text = text.replace(root.path().to_str().unwrap(), "ROOT");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_scope_is_described_by_its_contents() {
    let root = Root::new();
    let settings = "description = \"Payments\"\nprojects = [\"ledger-api\"]";
    root.manifest("ledger", settings);
    let a = json!({ "concepts": ["Postgres", "locks"], "project": "ledger-api", "updated_at": "2026-03-01T00:00:00Z" });
    let b = json!({ "concepts": ["postgres"], "project": "Ledger_API", "status": "promoted" });
    let c = json!({ "concepts": ["unreviewed"], "status": "staging", "created_at": "2025-12-01T00:00:00Z" });
    let d = json!({ "status": null, "created_at": "2025-11-01T00:00:00Z" });
    let e =
        json!({ "concepts": ["bad"], "status": "rejected", "updated_at": "2026-09-01T00:00:00Z" });
    let memories = [
        memory("a", "One", a),
        memory("b", "Two", b),
        memory("c", "Three", c),
        memory("d", "Four", d),
        memory("e", "Five", e),
        memory("f", "Six", json!({ "status": "draft" })),
    ];
    root.store("ledger", &memories);
    let service = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", root.path().join("ledger-api")))
    });
    let answer = service.scopes(json!({}));
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
    let memories: Vec<Value> = (0..30)
        .map(|n| {
            let status = if n < 15 { "staging" } else { "approved" };
            let rest = json!({ "status": status, "concepts": [format!("tag-{n:02}")], "project": format!("project-{n:02}") });
            memory(&format!("m{n:02}"), "One", rest)
        })
        .collect();
    crate::query::bulk(&root, "big", &memories);
    root.store("small", &[]);
    let service = root.service();
    let count = |scope: &Value| {
        let lists = [&scope["tags"], &scope["projects"], &scope["pending"]["ids"]];
        lists.map(|list| list.as_array().unwrap().len())
    };
    let list = service.scopes(json!({}));
    assert_eq!(count(scope(&list, "big")), [8, 8, 8]);
    let detail = service.scopes(json!({ "scope": "BIG" }));
    assert_eq!(detail["scopes"].as_array().unwrap().len(), 1);
    assert_eq!(count(scope(&detail, "big")), [15, 30, 15]);
    assert_eq!(scope(&list, "small")["memory_count"], 0);
}

#[test]
fn broken_scopes_are_reported_and_the_others_answer() {
    let root = Root::with("good", &[titled("a", "Deploy rule")]);
    root.manifest("absent", "description = \"no database yet\"");
    let content = "this is no database, only a text that is long enough to be read as one";
    write_file(root.scope_folder("text").join("memory.db"), content);
    write_file(root.scope_folder("empty").join("memory.db"), "");
    let said = "CREATE TABLE recipes (id INTEGER, name TEXT)";
    run_sql(root.scope_folder("foreign").join("memory.db"), said);
    root.store("typo", &[titled("t", "Deploy typo")]);
    root.manifest("typo", "description = \"x\"\n\nvisibilty = \"private\"\n");
    let service = root.service();
    let answer = service.scopes(json!({}));
    for scope in answer["scopes"].as_array().unwrap() {
        let health = &scope["health"];
        if scope["name"] == "good" {
            assert_eq!(health["state"], "ok", "{scope}");
        } else {
            assert_eq!(health["state"], "unavailable", "{scope}");
            assert_eq!(health["problems"].as_array().unwrap().len(), 1, "{scope}");
        }
    }
    let found = service.find(json!({ "query": "deploy" }));
    assert_eq!(found["total"], 1);
    assert_eq!(found["searched"]["scopes"], json!(["good"]));
    let shown = found["searched"]["skipped"].as_array().unwrap().len();
    assert_eq!(shown, 5, "{found}");
    let fetched = service.fetch(json!({ "id": "a" }));
    let notes = fetched["notes"].as_array().unwrap().iter();
    let closed = notes.filter(|note| note["kind"] == "scope_unavailable");
    assert_eq!(closed.count(), 5, "{fetched}");
    let brief = service.brief(json!({}));
    let shown = brief["searched"]["skipped"].as_array().unwrap().len();
    assert_eq!(shown, 5, "{brief}");
    let missing = service.refused("query_memories", json!({ "scope": "absent" }));
    assert_eq!(missing.code, "store_not_found");
}

#[test]
fn a_folder_without_a_database_is_named_and_other_entries_are_no_scopes() {
    let root = Root::with("good", &[titled("a", "Deploy rule")]);
    std::fs::create_dir_all(root.path().join("scopes/.git/objects")).unwrap();
    write_file(root.path().join("scopes/notes.txt"), "");
    std::fs::create_dir_all(root.path().join("scopes/backup")).unwrap();
    let answer = root.service().scopes(json!({}));
    let names = answer["scopes"].as_array().unwrap().iter().map(|scope| &scope["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["backup", "good"]);
    // An empty folder is named with what is missing.
    assert_eq!(answer["scopes"][0]["health"]["state"], "unavailable");
}

#[test]
fn a_folder_that_is_not_read_is_named_by_every_request() {
    let (root, elsewhere) = (Root::new(), Root::new());
    let path = elsewhere.store("x", &[titled("a", "Deploy rule")]);
    let folder = root.scope_folder("linked");
    std::os::unix::fs::symlink(path, folder.join("memory.db")).unwrap();
    let service = root.service();
    for asked in [json!({ "query": "deploy" }), json!({ "scope": "linked" })] {
        let refused = service.refused("query_memories", asked);
        assert_eq!(refused.code, "scope_unusable");
        assert_contains!(refused.message, "symbolic link that leaves the scope root");
    }
    root.store("good", &[titled("b", "Deploy rule")]);
    // A pinned server says nothing about other scopes.
    let pinned =
        root.service_with(|inputs| inputs.pinned = Some(Setting::flag("--pin", "good".to_owned())));
    let refused = pinned.refused("query_memories", json!({ "scope": "linked" }));
    assert_eq!(refused.code, "scope_refused");
    let found = service.find(json!({ "query": "deploy" }));
    assert_eq!(found["searched"]["skipped"][0]["scope"], "linked", "{found}");
}

#[test]
fn a_store_elsewhere_is_opened_in_place() {
    let root = Root::new();
    let elsewhere = Root::new();
    let path = elsewhere.store("x", &[titled("a", "Deploy rule")]);
    root.manifest("linked", &format!("store = '{}'", path.display()));
    root.manifest("relative", "store = '../../data/kept.db'");
    std::fs::create_dir_all(root.path().join("data")).unwrap();
    std::fs::copy(&path, root.path().join("data/kept.db")).unwrap();
    root.manifest("at-home", "store = '~/kept.db'");
    let home = root.path().join("data");
    let service = root.service_with(|inputs| inputs.home = Some(home));
    let answer = service.scopes(json!({}));
    for name in ["linked", "relative", "at-home"] {
        let found = &scope(&answer, name)["memory_count"];
        assert_eq!(*found, 1, "{name}: {answer:#}");
    }
    assert_eq!(scope(&answer, "linked")["store"], path.to_str().unwrap());
}

#[test]
fn only_the_name_of_a_private_scope_is_shown_elsewhere() {
    let root = Root::with("open", &[titled("a", "Deploy rule")]);
    root.store(
        "secret",
        &[memory("b", "Deploy secret", json!({ "concepts": ["hush"], "project": "veiled" }))],
    );
    let settings = "visibility = \"private\"\ndescription = \"the merger\"\n";
    root.manifest("secret", settings);
    let settings = "visibility = \"private\"\ndescripton = \"the sale\"\n";
    root.manifest("broken", settings);
    let folder = root.path().to_str().unwrap();
    let service = root.service();
    for (entry_point, answer) in [
        ("list_scopes", service.scopes(json!({}))["scopes"].clone()),
        ("query_memories", service.find(json!({ "query": "deploy" }))),
        ("get_context", service.brief(json!({}))["searched"].clone()),
        ("memory://scopes", json!(service.scopes_resource().unwrap().scopes)),
    ] {
        let scopes = answer.as_array().into_iter().flatten();
        for scope in scopes.filter(|scope| scope["name"] != "open") {
            let keys: Vec<&String> = scope.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["name", "visibility", "health"], "{entry_point}");
        }
        assert_lacks!(answer, "the merger", "hush", "veiled", "Deploy secret"; "{entry_point}");
        for private in ["secret", "broken"] {
            assert_lacks!(answer, format!("{folder}/scopes/{private}"); "{entry_point}");
        }
    }
    let listed = service.scopes(json!({}));
    assert_eq!(
        scope(&listed, "secret")["health"],
        json!({ "state": "not_read", "problems": ["private: searched only when it is current or named"] })
    );
    let broken = &scope(&listed, "broken")["health"]["problems"][0];
    assert_contains!(broken, "`scopes/broken/scope.toml`", "line 2");
    // Named or current, everything is shown.
    let named = service.scopes(json!({ "scope": "secret" }));
    let current = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", root.scope_folder("secret")))
    });
    for answer in [named, current.scopes(json!({}))] {
        let text = scope(&answer, "secret");
        assert_eq!(text["path"], json!(root.scope_folder("secret")));
        assert_eq!(text["store"], json!(root.scope_folder("secret").join("memory.db")));
        assert_eq!(text["description"], "the merger");
        assert_eq!(text["memory_count"], 1);
    }
}
