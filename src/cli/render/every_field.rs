//! Tests that the text output shows every field of an answer, or lists here why not.

use std::collections::HashSet;

use ack_api::{ContextResponse, GetResponse, ListScopesResponse, QueryResponse};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

/// What the text leaves out: the command (empty means every one), the end of the path, and why.
const UNSHOWN_FIELDS: [(&str, &str, &str); 22] = [
    ("", "score", "the sum of `--explain` ends in it"),
    ("", "notes/0/kind", "the message says it"),
    ("scopes", "memory_count", "the counts by status are shown"),
    ("scopes", "total", "the command reads every page"),
    ("scopes", "next_cursor", "the command reads every page"),
    ("context", "subtitle", "`get` shows all of a memory"),
    ("context", "excerpt", "only a result of `query` has one, and it shows it"),
    ("context", "concepts/0", "`get` shows all of a memory"),
    ("context", "narrative", "`get` shows all of a memory"),
    ("context", "files/0", "`get` shows all of a memory"),
    ("context", "0/session", "`get` shows all of a memory"),
    ("context", "confidence", "`get` shows all of a memory"),
    ("context", "also/0/id", "their number is shown"),
    ("context", "also/0/scope", "their number is shown"),
    ("context", "sessions/0/date", "the time it began has the day"),
    ("context", "sessions/0/id", "its title tells it apart; programs make up the id"),
    ("context", "pending/ids/0", "`query --status staging --oldest` lists them"),
    ("context", "pending/pace", "`scopes` shows it"),
    ("context", "searched/scopes/0", "each memory names its scope"),
    ("context", "searched/more_scopes", "each memory names its scope"),
    ("context", "searched/status", "always approved ones"),
    ("context", "searched", "notes say what could not be searched"),
];

/// A value that a schema allows, with every field. Each text and number is different.
fn sample(schema: &Value, root: &Value, next: &mut u32) -> Value {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.trim_start_matches('#');
        return sample(root.pointer(name).unwrap(), root, next);
    }
    if let Some(first) = choices(schema, root).first() {
        return first.clone();
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(one) = schema.get(key).and_then(|all| all.get(0)) {
            return sample(one, root, next);
        }
    }
    *next += 1;
    let kind = schema.get("type").unwrap();
    let kind = kind.as_array().map_or(kind, |kinds| &kinds[0]);
    match kind.as_str().unwrap() {
        "object" => {
            let properties = schema["properties"].as_object().unwrap();
            let fields =
                properties.iter().map(|(name, schema)| (name.clone(), sample(schema, root, next)));
            Value::Object(fields.collect())
        }
        "array" => json!([sample(&schema["items"], root, next)]),
        "string" => json!(format!("text{next}")),
        "integer" => json!(7_000 + *next),
        "number" => json!(0.25),
        "boolean" => json!(false),
        other => panic!("{other}"),
    }
}

fn choices(schema: &Value, root: &Value) -> Vec<Value> {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return choices(root.pointer(name.trim_start_matches('#')).unwrap(), root);
    }
    let words = |key: &str| schema.get(key).and_then(Value::as_array).cloned();
    match (schema.get("const"), words("enum"), words("oneOf")) {
        (Some(word), ..) => vec![word.clone()],
        (_, Some(words), _) => words,
        (.., Some(words)) => words.iter().flat_map(|word| choices(word, root)).collect(),
        _ => Vec::new(),
    }
}

fn leaf_paths(value: &Value, path: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaf_paths(value, &format!("{path}/{name}"), all);
            }
        }
        Value::Array(one) => leaf_paths(&one[0], &format!("{path}/0"), all),
        _ => all.push(path.to_owned()),
    }
}

fn check<A: JsonSchema + DeserializeOwned>(render: impl Fn(&A) -> String) -> Vec<String> {
    let schema = schemars::schema_for!(A).to_value();
    let base = sample(&schema, &schema, &mut 0);
    // Those that do not fit a field's type are passed over.
    let mut others = vec![json!("other"), json!(true), json!(0.75), json!(8_111)];
    let definitions = schema.get("$defs").and_then(Value::as_object).into_iter();
    others.extend(definitions.flat_map(|all| all.values()).flat_map(|it| choices(it, &schema)));
    let text = |value: &Value| {
        let answer: A = serde_json::from_value(value.clone()).ok()?;
        Some(render(&answer))
    };
    let base_text = text(&base).unwrap();
    let mut paths = Vec::new();
    leaf_paths(&base, "", &mut paths);
    assert!(paths.len() > 20, "{paths:?}");
    let silent = |path: &&String| {
        !others.iter().any(|other| {
            let mut changed = base.clone();
            other.clone_into(changed.pointer_mut(path).unwrap());
            text(&changed).is_some_and(|text| text != base_text)
        })
    };
    paths.iter().filter(silent).cloned().collect()
}

#[test]
fn every_field_of_every_answer_is_shown_or_excused() {
    let screen = Screen::default();
    let listings = [false, true].map(|long| Listing { long, first: 1, ..Listing::default() });
    let unshown = [
        (
            "query",
            check(|answer: &QueryResponse| {
                listings.each_ref().map(|listing| query(answer, listing)).concat()
            }),
        ),
        ("get", check(|answer: &GetResponse| get(answer, &screen))),
        ("scopes", check(|answer: &ListScopesResponse| scopes(answer, &screen))),
        ("context", check(|answer: &ContextResponse| context(answer, &listings[0]))),
    ];
    let mut silent = Vec::new();
    let mut used = HashSet::new();
    for (command, paths) in unshown {
        for path in paths {
            let reason = UNSHOWN_FIELDS.iter().position(|(of, end, _)| {
                let inside = *end == "searched" && path.starts_with("/searched/");
                (of.is_empty() || *of == command) && (inside || path.ends_with(end))
            });
            match reason {
                Some(reason) => drop(used.insert(reason)),
                None => silent.push(format!("{command} {path}")),
            }
        }
    }
    assert!(silent.is_empty(), "not shown, without a reason: {silent:#?}");
    assert_eq!(used.len(), UNSHOWN_FIELDS.len(), "a reason for what is shown: {used:?}");
}
