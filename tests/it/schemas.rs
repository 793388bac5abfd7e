//! The JSON Schemas in `schemas/` are those of the types, and what the program reads and answers
//! conforms to them. `UPDATE_SCHEMAS=1` regenerates them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ack_api::decision::{Decision, SignatureLine};
use ack_api::import_line::{self, ImportLine};
use ack_api::memory::StatusFilter;
use ack_api::{
    ContextRequest, ContextResponse, Detail, ErrorBody, GetRequest, GetResponse, Include,
    ListScopesRequest, ListScopesResponse, QueryRequest, QueryResponse, Review, ScopeResource,
};
use ack_memory::Error;
use ack_memory::internal::{ConfigFile, Manifest, Setting};
use ack_store::layout::tables;
use ack_store::profiles::ack;
use jsonschema::Validator;
use rusqlite::Connection;
use schemars::schema_for;
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::Root;

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
        ("curate_pending.output", schema_for!(Review).to_value()),
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
            std::fs::write(&path, &text).unwrap();
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
    let known: BTreeSet<String> = schemas()
        .iter()
        .map(|(name, _)| format!("{name}.json"))
        .collect();
    let there: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".json"))
        .collect();
    assert_eq!(there, known);
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
    let queries = [
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
    ];
    let output = validator("query_memories.output");
    let input = validator("query_memories.input");
    let mut ids: BTreeSet<(String, String)> = BTreeSet::new();
    for query in &queries {
        check(&input, query, "arguments");
        let request: QueryRequest = serde_json::from_value(query.clone()).unwrap();
        let answer = service.query_memories(&request).unwrap();
        check(&output, &answer, &query.to_string());
        ids.extend(answer.results.into_iter().map(|hit| (hit.scope, hit.id)));
    }
    assert!(
        ids.len() > 20,
        "the queries found only {} memories",
        ids.len()
    );
    let everything = Some(vec![Include::Timeline, Include::Links, Include::History]);
    let output = validator("get_memory.output");
    let input = validator("get_memory.input");
    for (scope, id) in &ids {
        let request = GetRequest {
            id: Some(id.clone()),
            scope: Some(scope.clone()),
            status: Some(StatusFilter::All),
            include: everything.clone(),
            ..GetRequest::default()
        };
        check(&input, &request, "arguments");
        check(&output, &service.get_memory(&request).unwrap(), id);
    }
    let several = GetRequest {
        ids: Some(vec![
            "ack_a41f0c_2025-11-24_001".to_owned(),
            "ack_a41f0c_2025-11-24_01".to_owned(),
        ]),
        include: everything,
        ..GetRequest::default()
    };
    let answer = service.get_memory(&several).unwrap();
    assert_eq!((answer.memories.len(), answer.missing.len()), (1, 1));
    check(&output, &answer, "several ids");
    let output = validator("list_scopes.output");
    for scope in [None, Some("platform"), Some("dana-private")] {
        let request = ListScopesRequest {
            scope: scope.map(str::to_owned),
            ..ListScopesRequest::default()
        };
        check(
            &output,
            &service.list_scopes(&request).unwrap(),
            "list_scopes",
        );
    }
    let output = validator("get_context.output");
    for request in [
        ContextRequest::default(),
        ContextRequest {
            focus: Some("deadlock between transfers".to_owned()),
            max_memories: Some(50),
            max_tokens: Some(20_000),
            ..ContextRequest::default()
        },
        ContextRequest {
            project_path: Some("/nowhere/at/all".to_owned()),
            include_cross_project: Some(false),
            ..ContextRequest::default()
        },
    ] {
        check(
            &output,
            &service.get_context(&request).unwrap(),
            "get_context",
        );
    }
}

#[test]
fn errors_match_their_schema() {
    let root = Root::samples();
    let service = root.service();
    let query = |change: fn(&mut QueryRequest)| {
        let mut request = QueryRequest::default();
        change(&mut request);
        service.query_memories(&request).unwrap_err()
    };
    let get = |id: &str| {
        let request = GetRequest {
            id: Some(id.to_owned()),
            ..GetRequest::default()
        };
        service.get_memory(&request).unwrap_err()
    };
    let errors: Vec<Error> = vec![
        query(|request| request.limit = Some(0)),
        query(|request| request.since = Some("2026-02-30".to_owned())),
        query(|request| request.scope = Some("ledgr-api".to_owned())),
        query(|request| request.cursor = Some("nonsense".to_owned())),
        get("ack_nothing"),
        ack_api::cancel::Stopped::Cancelled.into(),
        Root::new()
            .service()
            .query_memories(&QueryRequest::default())
            .unwrap_err(),
    ];
    let validator = validator("error");
    let mut codes = BTreeSet::new();
    for error in errors {
        check(&validator, &error.body(), &error.to_string());
        codes.insert(error.code());
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
    let full = QueryRequest {
        detail: Some(Detail::Full),
        ..QueryRequest::default()
    };
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
        for line in std::fs::read_to_string(&path).unwrap().lines() {
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
    let wrong: Vec<String> = [
        json!({ "title": "x" }),
        json!({ "title": "x", "tags": ["a"], "body": "text" }),
        json!({ "title": "x", "facts": null, "subtitle": null, "confidence": null }),
        json!({ "title": "x", "confidence": 0.5, "files": ["a.rs"] }),
        json!({}),
        json!({ "id": "a", "narrative": "no title" }),
        json!({ "title": null }),
        json!({ "title": "" }),
        json!({ "title": "x", "titel": "y" }),
        json!({ "title": "x", "confidence": 2 }),
        json!({ "title": "x", "facts": "one" }),
        json!({ "title": "x", "status": "active" }),
        json!(["title"]),
    ]
    .iter()
    .filter_map(|line| {
        let read = import_line::parse(&line.to_string(), now);
        let valid = validator.is_valid(line);
        (read.is_ok() != valid).then(|| {
            format!(
                "{line}: the reader says {:?}, the schema {valid}",
                read.map(|row| row.id)
            )
        })
    })
    .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
        let value: Value = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
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
    connection
        .execute_batch(ack_memory::internal::import::SCHEMA)
        .unwrap();
    let found = tables(&connection).unwrap();
    let layout = ack::recognise(&found).unwrap();
    let mut read: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |table: &str, columns: Vec<Option<String>>| {
        let columns = columns
            .into_iter()
            .flatten()
            .map(|column| column.trim_matches('"').to_owned());
        read.entry(table.trim_matches('"').to_owned())
            .or_default()
            .extend(columns);
    };
    for source in &layout.sources {
        add(&source.table, source.columns.to_vec());
        add(
            &source.table,
            source
                .narrative
                .iter()
                .map(|(_, column)| Some(column.clone()))
                .collect(),
        );
        // Rows are found by their id.
        add(&source.table, vec![Some("id".to_owned())]);
    }
    for sessions in &layout.sessions {
        add(
            &sessions.table,
            sessions.keys.iter().cloned().map(Some).collect(),
        );
        add(
            &sessions.table,
            vec![
                sessions.title.clone(),
                sessions.project.clone(),
                sessions.started.clone(),
            ],
        );
        // When a session ended is kept for those who read the store otherwise.
        add(&sessions.table, vec![Some("ended_at".to_owned())]);
    }
    for overviews in &layout.overviews {
        add(
            &overviews.table,
            vec![
                Some(overviews.session.clone()),
                overviews.project.clone(),
                Some(overviews.order.clone()),
            ],
        );
        add(
            &overviews.table,
            overviews
                .content
                .iter()
                .map(|(_, column)| Some(column.clone()))
                .collect(),
        );
    }
    let links = layout.links.as_ref().unwrap();
    add(
        &links.table,
        links.columns.iter().cloned().map(Some).collect(),
    );
    let log = layout.log.as_ref().unwrap();
    add(
        &log.table,
        log.columns
            .iter()
            .cloned()
            .chain([log.memory.clone()])
            .map(Some)
            .collect(),
    );
    let there: BTreeMap<String, BTreeSet<String>> = found
        .iter()
        .map(|table| (table.name.clone(), table.columns.iter().cloned().collect()))
        .collect();
    assert_eq!(there, read);
}
