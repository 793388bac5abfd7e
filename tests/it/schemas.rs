//! The JSON Schemas in `schemas/` are those of the types, and what the program reads and answers
//! conforms to them. `UPDATE_SCHEMAS=1` regenerates them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ack_api::decision::{Decision, SignatureLine};
use ack_api::import_line::{self, ImportLine};
use ack_api::{
    ContextRequest, ContextResponse, ErrorBody, GetRequest, GetResponse, ListScopesRequest,
    ListScopesResponse, QueryRequest, QueryResponse, ScopeResource,
};
use ack_memory::Error;
use ack_memory::internal::{ConfigFile, Manifest, Setting};
use jsonschema::Validator;
use schemars::schema_for;
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::{Ask, Root, read_text, write_file};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scopes-example")
}

/// The schema of every type of the contract, by the name of its file.
fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("query_memories.input", schema_for!(QueryRequest).to_value()),
        ("query_memories.output", schema_for!(QueryResponse).to_value()),
        ("get_memory.input", schema_for!(GetRequest).to_value()),
        ("get_memory.output", schema_for!(GetResponse).to_value()),
        ("list_scopes.input", schema_for!(ListScopesRequest).to_value()),
        ("list_scopes.output", schema_for!(ListScopesResponse).to_value()),
        ("get_context.input", schema_for!(ContextRequest).to_value()),
        ("get_context.output", schema_for!(ContextResponse).to_value()),
        ("scope.resource", schema_for!(ScopeResource).to_value()),
        ("error", schema_for!(ErrorBody).to_value()),
        ("decision", schema_for!(Decision).to_value()),
        ("signature", schema_for!(SignatureLine).to_value()),
        ("manifest", schema_for!(Manifest).to_value()),
        ("config", schema_for!(ConfigFile).to_value()),
        ("import-line", schema_for!(ImportLine).to_value()),
    ]
}

fn schema(name: &str) -> Value {
    schemas().into_iter().find(|(known, _)| *known == name).unwrap().1
}

fn validator(name: &str) -> Validator {
    jsonschema::draft202012::new(&schema(name)).unwrap()
}

#[track_caller]
fn check(validator: &Validator, value: &impl Serialize, what: &str) {
    let value = serde_json::to_value(value).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {}\n{value:#}", errors.join("; "));
}

#[test]
fn the_schema_files_are_those_of_the_types() {
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some_and(|value| value == "1");
    let mut stale = Vec::new();
    for (name, schema) in schemas() {
        let path = folder().join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if update {
            write_file(&path, &text);
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != text {
            stale.push(format!("{name}.json"));
        }
    }
    assert!(stale.is_empty(), "run with UPDATE_SCHEMAS=1, these differ: {}", stale.join(", "));
}

#[test]
fn there_is_no_stale_schema_file() {
    let known = schemas().into_iter().map(|(name, _)| format!("{name}.json"));
    let there = std::fs::read_dir(folder()).unwrap().map(Result::unwrap);
    let there = there.map(|entry| entry.file_name().into_string().unwrap());
    let there: BTreeSet<String> = there.filter(|name| name.ends_with(".json")).collect();
    assert_eq!(there, known.collect());
}

#[test]
fn every_schema_is_a_valid_schema_and_says_what_each_property_is() {
    for (name, schema) in schemas() {
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        for (property, described) in schema["properties"].as_object().unwrap() {
            assert!(described["description"].is_string(), "{name}: {property} has no description");
        }
        if name.ends_with(".input") || ["manifest", "config", "import-line"].contains(&name) {
            assert_eq!(schema["additionalProperties"], json!(false), "{name}");
            for combined in ["anyOf", "oneOf", "allOf"] {
                assert!(schema.get(combined).is_none(), "{name} has a root-level {combined}");
            }
        }
    }
}

#[test]
fn answers_match_their_schemas() {
    let root = Root::samples();
    let service = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", root.path().join("ledger-api")))
    });
    // Asks, checks the arguments and the answer, and returns the answer.
    let ask = |tool: &'static str, arguments: Value| {
        check(&validator(&format!("{tool}.input")), &arguments, "arguments");
        let answer = service.ask(tool, arguments.clone());
        check(&validator(&format!("{tool}.output")), &answer, &arguments.to_string());
        answer
    };
    let mut ids = BTreeSet::new();
    for query in [
        json!({}),
        json!({ "query": "container killed exit code 137" }),
        json!({ "query": "ERR_PNPM_OUTDATED_LOCKFILE", "detail": "full", "explain": true }),
        json!({ "query": "deadlock", "status": "all", "limit": 50 }),
        json!({ "query": "deadlock", "status": "staging" }),
        json!({ "query": "zzzzqqqq" }),
        json!({ "query": "" }),
        json!({ "query": "the of and" }),
        json!({ "query": "lock", "mode": "hybrid" }),
        json!({ "tags": ["postgresql"], "limit": 2 }),
        json!({ "scope": "dana-private" }),
        json!({ "query": "docker", "max_tokens": 200 }),
    ] {
        for hit in ask("query_memories", query)["results"].as_array().unwrap() {
            ids.insert(["scope", "id"].map(|key| hit[key].as_str().unwrap().to_owned()));
        }
    }
    assert!(ids.len() > 20, "the queries found only {} memories", ids.len());
    let include = ["timeline", "links", "history"];
    for [scope, id] in ids {
        let one = json!({ "id": id, "scope": scope, "status": "all", "include": include });
        ask("get_memory", one);
    }
    let several = ["ack_a41f0c_2025-11-24_001", "ack_a41f0c_2025-11-24_01"];
    let answer = ask("get_memory", json!({ "ids": several, "include": include }));
    assert_eq!(answer["memories"].as_array().unwrap().len(), 1);
    assert_eq!(answer["missing"].as_array().unwrap().len(), 1);
    for scope in [json!({}), json!({ "scope": "platform" }), json!({ "scope": "dana-private" })] {
        ask("list_scopes", scope);
    }
    let focus = "deadlock between transfers";
    for asked in [
        json!({}),
        json!({ "focus": focus, "max_memories": 50, "max_tokens": 20_000 }),
        json!({ "project_path": "/nowhere/at/all", "include_cross_project": false }),
    ] {
        ask("get_context", asked);
    }
}

#[test]
fn errors_match_their_schema() {
    let root = Root::samples();
    let service = root.service();
    let query = |arguments: Value| service.refused("query_memories", arguments);
    let cancelled: Error = ack_api::cancel::Stopped::Cancelled.into();
    let errors = [
        query(json!({ "limit": -1 })),
        query(json!({ "since": "2026-02-30" })),
        query(json!({ "scope": "ledgr-api" })),
        query(json!({ "cursor": "nonsense" })),
        service.refused("get_memory", json!({ "id": "ack_nothing" })),
        cancelled.body(),
        Root::new().service().refused("query_memories", json!({})),
    ];
    let validator = validator("error");
    let mut codes = BTreeSet::new();
    for error in errors {
        check(&validator, &error, &error.message);
        codes.insert(error.code);
    }
    assert_eq!(codes.len(), 6, "{codes:?}");
}

#[test]
fn every_sample_line_matches_the_import_schema() {
    let validator = validator("import-line");
    let mut lines = 0;
    for scope in std::fs::read_dir(samples()).unwrap() {
        let path = scope.unwrap().path().join("memories.jsonl");
        if !path.exists() {
            continue;
        }
        for line in read_text(&path).lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            check(&validator, &value, line);
            lines += 1;
        }
    }
    assert!(lines > 50);
}

#[test]
fn the_import_schema_and_the_reader_of_import_lines_agree() {
    let validator = validator("import-line");
    let now = "2026-11-21T00:00:00Z".parse().unwrap();
    for (line, is_good) in [
        (json!({ "title": "x" }), true),
        (json!({ "title": "x", "tags": ["a"], "body": "text" }), true),
        (json!({ "title": "x", "facts": null, "subtitle": null, "confidence": null }), true),
        (json!({ "title": "x", "confidence": 0.5, "files": ["a.rs"] }), true),
        (json!({}), false),
        (json!({ "id": "a", "narrative": "no title" }), false),
        (json!({ "title": null }), false),
        (json!({ "title": "" }), false),
        (json!({ "title": "x", "titel": "y" }), false),
        (json!({ "title": "x", "confidence": 2 }), false),
        (json!({ "title": "x", "facts": "one" }), false),
        (json!({ "title": "x", "status": "active" }), false),
        (json!(["title"]), false),
    ] {
        let read = import_line::parse(&line.to_string(), now);
        assert_eq!([read.is_ok(), validator.is_valid(&line)], [is_good; 2], "{line}");
    }
}

#[test]
fn every_sample_manifest_matches_its_schema() {
    let validator = validator("manifest");
    let mut manifests = 0;
    for scope in std::fs::read_dir(samples()).unwrap() {
        let path = scope.unwrap().path().join("scope.toml");
        if !path.exists() {
            continue;
        }
        let value: Value = toml::from_str(&read_text(&path)).unwrap();
        check(&validator, &value, &path.display().to_string());
        check(&validator, &Manifest::load(&path).unwrap(), "as it was read");
        manifests += 1;
    }
    assert_eq!(manifests, 4);
}
