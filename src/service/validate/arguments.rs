//! Decodes JSON arguments and checks them against the schema of an operation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::service::error::Error;
use crate::service::same_id::address;
use ack_api::MAX_LIMIT;
use ack_api::memory::nearest;

/// Maximum query text, in bytes.
const MAX_QUERY_BYTES: usize = 8_000;
/// Maximum id, in bytes. At most 200 characters of an id are shown.
const MAX_ID_BYTES: usize = 803;
/// Maximum address of a memory, in bytes.
const MAX_ADDRESS_BYTES: usize = 4_000;
/// Maximum path, in bytes.
const MAX_PATH_BYTES: usize = 4_096;
/// Maximum cursor, in bytes. A cursor has a number for each term of a query.
const MAX_CURSOR_BYTES: usize = 64 << 10;
/// Maximum text of any other argument, in bytes.
const MAX_TEXT_BYTES: usize = 1_000;
/// Maximum entries of a list argument.
const MAX_ENTRIES: usize = 50;

/// The schema of an operation's arguments. Built once, because every call is checked against it.
fn schema<T: JsonSchema>(name: &'static str) -> Arc<Value> {
    static KNOWN: Mutex<BTreeMap<&'static str, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(
        known
            .entry(name)
            .or_insert_with(|| Arc::new(schemars::schema_for!(T).to_value())),
    )
}

/// Decodes the arguments of an operation. Rejects unknown arguments and wrong types by name. Other
/// forms of a value are read before this, in `toolset`.
///
/// # Errors
/// [`Error::UnknownArgument`] or [`Error::InvalidArgument`].
pub fn arguments<T: DeserializeOwned + JsonSchema>(
    name: &'static str,
    values: Map<String, Value>,
) -> Result<T, Error> {
    let schema = schema::<T>(name);
    let empty = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    for argument in values.keys() {
        if !properties.contains_key(argument) {
            return Err(Error::UnknownArgument {
                operation: name.to_owned(),
                argument: argument.clone(),
                known: properties.keys().cloned().collect(),
            });
        }
    }
    for (argument, value) in &values {
        if let Some(property) = properties.get(argument) {
            check(argument, value, property, &schema)?;
        }
    }
    serde_json::from_value(Value::Object(values))
        .map_err(|error| Error::invalid("arguments", "an object", error.to_string()))
}

/// Rejects a text that is too long for an argument, because names are compared with every existing
/// name.
///
/// # Errors
/// [`Error::InvalidArgument`], with the limit.
pub fn check_length(argument: &str, text: &str) -> Result<(), Error> {
    let (max, advice) = match argument {
        "query" | "focus" => (MAX_QUERY_BYTES, "; give the words that matter"),
        "id" | "ids" | "like" | "expect" if address(text.trim()).is_some() => {
            (MAX_ADDRESS_BYTES, ", an id or an address of a memory")
        }
        "id" | "ids" | "like" | "expect" => (MAX_ID_BYTES, ", an id as a search returns it"),
        "project_path" => (MAX_PATH_BYTES, ""),
        "cursor" => (MAX_CURSOR_BYTES, ", as an answer returned it"),
        _ => (MAX_TEXT_BYTES, ""),
    };
    let length = text.trim().len();
    if length <= max {
        return Ok(());
    }
    let example = match argument {
        "like" => Some(json!({ "query": ack_api::text::line(text, 60) })),
        "since" | "until" => Some(json!({ argument: "2026-01-31" })),
        "type" | "session" | "expect" | "focus" => {
            Some(json!({ argument: ack_api::text::line(text, 60) }))
        }
        _ => None,
    };
    Err(Error::InvalidArgument {
        argument: argument.to_owned(),
        value: format!("{length} bytes long"),
        allowed: format!("at most {max} bytes{advice}"),
        nearest: Vec::new(),
        example: example.map(|example| example.to_string()),
    })
}

fn check(argument: &str, value: &Value, schema: &Value, root: &Value) -> Result<(), Error> {
    if value.is_null() {
        return Ok(());
    }
    let wrong = |allowed: String, nearest: Vec<String>, example: Value| Error::InvalidArgument {
        argument: argument.to_owned(),
        value: ack_api::text::line(&value.to_string(), 120),
        allowed,
        nearest,
        example: Some(json!({ argument: example }).to_string()),
    };
    let wrong_type = |wanted: &str, example: Option<Value>| Error::WrongType {
        argument: argument.to_owned(),
        wanted: wanted.to_owned(),
        kind: kind(value),
        value: ack_api::text::line(&value.to_string(), 120),
        example: example.map(|example| json!({ argument: example }).to_string()),
    };
    let words = choices(schema, root);
    if let Some(text) = value.as_str().filter(|_| words.is_empty()) {
        check_length(argument, text)?;
    }
    if accepts(schema, "array") {
        let Some(entries) = value.as_array() else {
            let example = json!([words.first().map_or("…", String::as_str)]);
            return Err(wrong_type("a list of strings", Some(example)));
        };
        if entries.len() > MAX_ENTRIES {
            return Err(wrong(
                format!("at most {MAX_ENTRIES} entries"),
                Vec::new(),
                json!([words.first().map_or("…", String::as_str)]),
            ));
        }
        for entry in entries {
            if let Some(text) = entry.as_str().filter(|_| words.is_empty()) {
                check_length(argument, text)?;
            }
            check_word(entry, &words, &wrong, true)?;
        }
        return Ok(());
    }
    if accepts(schema, "integer") {
        let bound =
            |key: &str, default: i64| schema.get(key).and_then(Value::as_i64).unwrap_or(default);
        let nearest = whole_number(value)
            .unwrap_or(10)
            .clamp(bound("minimum", 1), bound("maximum", i64::from(MAX_LIMIT)));
        return match value.as_i64() {
            Some(_) => Ok(()),
            None if value.is_u64() => Err(wrong(
                "a smaller number".to_owned(),
                vec![nearest.to_string()],
                json!(nearest),
            )),
            None => Err(wrong_type("an integer", Some(json!(nearest)))),
        };
    }
    if accepts(schema, "boolean") {
        return if value.is_boolean() {
            Ok(())
        } else {
            let example = json!(value.as_str() == Some("true"));
            Err(wrong_type("true or false", Some(example)))
        };
    }
    check_word(value, &words, &wrong, false)?;
    if words.is_empty() && !value.is_string() {
        let example = match argument {
            "since" | "until" => Some(json!("2026-01-31")),
            // An arbitrary text would name an unknown scope, or no page.
            "scope" | "cursor" => None,
            _ => Some(json!(as_text(argument, value))),
        };
        return Err(wrong_type("a string", example));
    }
    Ok(())
}

/// The kind of a value, if the value itself does not show it.
const fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "the string ",
        Value::Array(_) => "the list ",
        Value::Object(_) => "the object ",
        Value::Null | Value::Bool(_) | Value::Number(_) => "",
    }
}

/// A value as the text that was probably meant: types separated by commas, other list entries by
/// spaces.
fn as_text(argument: &str, value: &Value) -> String {
    let between = if argument == "type" { "," } else { " " };
    let words = value.as_array().map(|list| {
        let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        words.join(between)
    });
    let text = words.filter(|text| !text.is_empty());
    ack_api::text::line(&text.unwrap_or_else(|| value.to_string()), 60)
}

/// Checks a string against the allowed words. An empty list allows any string.
fn check_word(
    value: &Value,
    words: &[String],
    wrong: &dyn Fn(String, Vec<String>, Value) -> Error,
    listed: bool,
) -> Result<(), Error> {
    let as_listed = |word: &str| if listed { json!([word]) } else { json!(word) };
    if words.is_empty() {
        return if listed && !value.is_string() {
            Err(wrong(
                "a list of strings".to_owned(),
                Vec::new(),
                as_listed(&ack_api::text::line(&value.to_string(), 60)),
            ))
        } else {
            Ok(())
        };
    }
    if value
        .as_str()
        .is_some_and(|word| words.iter().any(|known| known == word))
    {
        return Ok(());
    }
    let text = value.as_str().map_or_else(
        || ack_api::text::line(&value.to_string(), 60),
        str::to_owned,
    );
    let near = nearest(
        ack_api::text::cut(&text, 100).0.as_ref(),
        words.iter().map(String::as_str),
        2,
    );
    let first = near
        .first()
        .or_else(|| words.first())
        .cloned()
        .unwrap_or_default();
    Err(wrong(
        format!("one of {}", words.join(", ")),
        near,
        as_listed(&first),
    ))
}

/// The whole number that a value looks like.
fn whole_number(value: &Value) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an example for a message; a cast saturates"
    )]
    let rounded = |number: f64| number as i64;
    value
        .as_str()
        .and_then(|text| text.trim().parse::<f64>().ok())
        .or_else(|| value.as_f64())
        .map(rounded)
}

fn accepts(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    }
}

/// The allowed words of an argument, if it has a fixed set.
fn choices(schema: &Value, root: &Value) -> Vec<String> {
    let mut words = Vec::new();
    collect(schema, root, &mut words, 0);
    words
}

fn collect(schema: &Value, root: &Value, words: &mut Vec<String>, depth: u32) {
    if depth > 4 {
        return;
    }
    if let Some(word) = schema.get("const").and_then(Value::as_str) {
        words.push(word.to_owned());
    }
    for word in schema
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        words.extend(word.as_str().map(str::to_owned));
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for part in schema
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            collect(part, root, words, depth + 1);
        }
    }
    if let Some(items) = schema.get("items") {
        collect(items, root, words, depth + 1);
    }
    if let Some(target) = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|path| root.pointer(path.trim_start_matches('#')))
    {
        collect(target, root, words, depth + 1);
    }
}
