//! The JSON Schemas in `schemas/` are those of the types, and what the program reads and answers
//! conforms to them. `UPDATE_SCHEMAS=1` regenerates them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ack_api::decision::{Decision, SignatureLine};
use ack_api::import_line::{self, ImportLine};
use ack_api::{
    ContextRequest, ContextResponse, ErrorBody, GetRequest, GetResponse, ListScopesRequest,
    ListScopesResponse, QueryRequest, QueryResponse, ScopeResource,
};
use ack_memory::Error;
use ack_memory::internal::{ConfigFile, Manifest, Setting};
use ack_store::layout::{Table, tables};
use ack_store::profiles::ack;
use jsonschema::Validator;
use rusqlite::Connection;
use schemars::schema_for;
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::{Ask, Root, Sql, read_text, write_file};

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
        (
            "query_memories.output",
            schema_for!(QueryResponse).to_value(),
        ),
        ("get_memory.input", schema_for!(GetRequest).to_value()),
        ("get_memory.output", schema_for!(GetResponse).to_value()),
        (
            "list_scopes.input",
            schema_for!(ListScopesRequest).to_value(),
        ),
        (
            "list_scopes.output",
            schema_for!(ListScopesResponse).to_value(),
        ),
        ("get_context.input", schema_for!(ContextRequest).to_value()),
        (
            "get_context.output",
            schema_for!(ContextResponse).to_value(),
        ),
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
    schemas()
        .into_iter()
        .find(|(known, _)| *known == name)
        .unwrap()
        .1
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
    assert!(
        errors.is_empty(),
        "{what}: {}\n{value:#}",
        errors.join("; ")
    );
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
    assert!(
        stale.is_empty(),
        "run with UPDATE_SCHEMAS=1, these differ: {}",
        stale.join(", ")
    );
}

#[test]
fn there_is_no_stale_schema_file() {
    let known = schemas()
        .into_iter()
        .map(|(name, _)| format!("{name}.json"));
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
            assert!(
                described["description"].is_string(),
                "{name}: {property} has no description"
            );
        }
        if name.ends_with(".input") || ["manifest", "config", "import-line"].contains(&name) {
            assert_eq!(schema["additionalProperties"], json!(false), "{name}");
            for combined in ["anyOf", "oneOf", "allOf"] {
                assert!(
                    schema.get(combined).is_none(),
                    "{name} has a root-level {combined}"
                );
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
        check(
            &validator(&format!("{tool}.input")),
            &arguments,
            "arguments",
        );
        let answer = service.ask(tool, arguments.clone());
        check(
            &validator(&format!("{tool}.output")),
            &answer,
            &arguments.to_string(),
        );
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
    assert!(
        ids.len() > 20,
        "the queries found only {} memories",
        ids.len()
    );
    let include = ["timeline", "links", "history"];
    for [scope, id] in ids {
        let one = json!({ "id": id, "scope": scope, "status": "all", "include": include });
        ask("get_memory", one);
    }
    let several = ["ack_a41f0c_2025-11-24_001", "ack_a41f0c_2025-11-24_01"];
    let answer = ask("get_memory", json!({ "ids": several, "include": include }));
    assert_eq!(answer["memories"].as_array().unwrap().len(), 1);
    assert_eq!(answer["missing"].as_array().unwrap().len(), 1);
    for scope in [
        json!({}),
        json!({ "scope": "platform" }),
        json!({ "scope": "dana-private" }),
    ] {
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
fn the_input_schemas_refuse_what_the_service_refuses() {
    for (name, arguments) in [
        ("query_memories.input", json!({ "querry": "x" })),
        ("query_memories.input", json!({ "limit": 51 })),
        ("query_memories.input", json!({ "limit": -1 })),
        ("query_memories.input", json!({ "limit": "ten" })),
        ("query_memories.input", json!({ "status": "rejected" })),
        ("query_memories.input", json!({ "tags": true })),
        ("get_memory.input", json!({ "include": ["everything"] })),
        (
            "get_memory.input",
            json!({ "ids": (0..21).map(|n| n.to_string()).collect::<Vec<_>>() }),
        ),
        ("list_scopes.input", json!({ "name": "x" })),
        ("get_context.input", json!({ "max_memories": -1 })),
    ] {
        assert!(
            !validator(name).is_valid(&arguments),
            "{name} lets {arguments} through"
        );
    }
    let full = json!({ "detail": "full" });
    check(&validator("query_memories.input"), &full, "a request");
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
        (
            json!({ "title": "x", "facts": null, "subtitle": null, "confidence": null }),
            true,
        ),
        (
            json!({ "title": "x", "confidence": 0.5, "files": ["a.rs"] }),
            true,
        ),
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
        assert_eq!(
            [read.is_ok(), validator.is_valid(&line)],
            [is_good; 2],
            "{line}"
        );
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
        check(
            &validator,
            &Manifest::load(&path).unwrap(),
            "as it was read",
        );
        manifests += 1;
    }
    assert_eq!(manifests, 4);
}

#[test]
fn the_native_schema_has_exactly_the_tables_and_columns_that_the_reader_knows() {
    let connection = Connection::open_in_memory().unwrap();
    connection.sql(ack_memory::internal::import::SCHEMA);
    let found = tables(&connection).unwrap();
    let layout = ack::recognise(&found).unwrap();
    let mut read: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |table: &str, columns: Vec<Option<&String>>| {
        let names = columns.into_iter().flatten();
        let names = names.map(|column| column.trim_matches('"').to_owned());
        read.entry(table.trim_matches('"').to_owned())
            .or_default()
            .extend(names);
    };
    let (id, ended) = ("id".to_owned(), "ended_at".to_owned());
    for source in &layout.sources {
        add(
            &source.table,
            source.columns.iter().map(Option::as_ref).collect(),
        );
        add(
            &source.table,
            source
                .narrative
                .iter()
                .map(|(_, column)| Some(column))
                .collect(),
        );
        // Rows are found by their id.
        add(&source.table, vec![Some(&id)]);
    }
    for sessions in &layout.sessions {
        add(&sessions.table, sessions.keys.iter().map(Some).collect());
        let about = [&sessions.title, &sessions.project, &sessions.started];
        add(&sessions.table, about.map(Option::as_ref).to_vec());
        // When a session ended is kept for those who read the store otherwise.
        add(&sessions.table, vec![Some(&ended)]);
    }
    for overviews in &layout.overviews {
        let about = vec![
            Some(&overviews.session),
            overviews.project.as_ref(),
            Some(&overviews.order),
        ];
        add(&overviews.table, about);
        add(
            &overviews.table,
            overviews
                .content
                .iter()
                .map(|(_, column)| Some(column))
                .collect(),
        );
    }
    let links = layout.links.as_ref().unwrap();
    add(&links.table, links.columns.iter().map(Some).collect());
    let log = layout.log.as_ref().unwrap();
    add(&log.table, log.columns.iter().map(Some).collect());
    add(&log.table, vec![Some(&log.memory)]);
    let columns = |table: &Table| table.columns.iter().cloned().collect::<BTreeSet<_>>();
    let there = found
        .iter()
        .map(|table| (table.name.clone(), columns(table)));
    assert_eq!(there.collect::<BTreeMap<_, _>>(), read);
}
