//! Decodes JSON arguments and checks them against the schema of an operation.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::same_id::address;
use ack_api::MAX_LIMIT;
use ack_api::memory::nearest;
use ack_api::text::line;

const MAX_QUERY_BYTES: usize = 8_000;
/// Maximum id, in bytes. At most 200 characters of an id are shown.
const MAX_ID_BYTES: usize = 803;
const MAX_ADDRESS_BYTES: usize = 4_000;
const MAX_PATH_BYTES: usize = 4_096;
/// Maximum cursor, in bytes. A cursor has a number for each term of a query.
const MAX_CURSOR_BYTES: usize = 64 << 10;
const MAX_TEXT_BYTES: usize = 1_000;
const MAX_ENTRIES: usize = 50;

/// The schema of an operation's arguments. Built once, because every call is checked against it.
fn schema<T: JsonSchema>(name: &'static str) -> Arc<Value> {
    static KNOWN: Mutex<BTreeMap<&'static str, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock();
    Arc::clone(known.entry(name).or_insert_with(|| Arc::new(schemars::schema_for!(T).to_value())))
}

/// Rejects unknown arguments and wrong types by name. Other forms are read before, in `toolset`.
pub fn arguments<T: DeserializeOwned + JsonSchema>(
    name: &'static str,
    values: Map<String, Value>,
) -> Result<T, Error> {
    let schema = schema::<T>(name);
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    for argument in values.keys() {
        if !properties.contains_key(argument) {
            return Err(Error::UnknownArgument {
                operation: name.to_owned(),
                argument: argument.clone(),
                known: properties.keys().cloned().collect(),
            });
        }
    }
    for (name, value) in &values {
        if let Some(property) = properties.get(name) {
            let words = words(property, &schema);
            Argument { name, value, schema: property, words }.check()?;
        }
    }
    serde_json::from_value(Value::Object(values))
        .map_err(|error| Error::invalid("arguments", "an object", error.to_string()))
}

/// Names are compared with every existing name, so a text has a limit.
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
        "like" => Some(json!({ "query": line(text, 60) })),
        "since" | "until" => Some(json!({ argument: "2026-01-31" })),
        "type" | "session" | "expect" | "focus" => Some(json!({ argument: line(text, 60) })),
        _ => None,
    };
    let (value, allowed) = (format!("{length} bytes long"), format!("at most {max} bytes{advice}"));
    Err(Error::invalid(argument, value, allowed).corrected(Vec::new(), example))
}

struct Argument<'a> {
    name: &'a str,
    value: &'a Value,
    schema: &'a Value,
    /// The allowed words, if it has a fixed set.
    words: Vec<String>,
}

impl Argument<'_> {
    fn check(&self) -> Result<(), Error> {
        let value = self.value;
        if value.is_null() {
            return Ok(());
        }
        if self.accepts("array") {
            let example = || json!([self.words.first().map_or("…", String::as_str)]);
            return match value.as_array() {
                None => Err(self.wrong_type("a list of strings", Some(example()))),
                Some(entries) if entries.len() > MAX_ENTRIES => {
                    let allowed = format!("at most {MAX_ENTRIES} entries");
                    Err(self.wrong(allowed, Vec::new(), &example()))
                }
                Some(entries) => entries.iter().try_for_each(|entry| self.check_text(entry, true)),
            };
        }
        if self.accepts("integer") {
            return value.as_i64().map(drop).ok_or_else(|| self.not_an_integer());
        }
        if self.accepts("boolean") {
            let example = json!(value.as_str() == Some("true"));
            let wrong = || self.wrong_type("true or false", Some(example));
            return value.as_bool().map(drop).ok_or_else(wrong);
        }
        self.check_text(value, false)
    }

    /// Checks a string, or the entry of a list (`listed`), against the allowed words.
    fn check_text(&self, value: &Value, listed: bool) -> Result<(), Error> {
        let as_given = |word: &str| if listed { json!([word]) } else { json!(word) };
        let shown = || line(&value.to_string(), 60);
        if self.words.is_empty() {
            return match value.as_str() {
                Some(text) => check_length(self.name, text),
                None if listed => {
                    Err(self.wrong("a list of strings".to_owned(), Vec::new(), &as_given(&shown())))
                }
                None if self.name == "scope" => {
                    Err(self.wrong_type("the name of one scope or project", self.text_example()))
                }
                None => Err(self.wrong_type("a string", self.text_example())),
            };
        }
        let text = value.as_str().map_or_else(shown, str::to_owned);
        if value.is_string() && self.words.contains(&text) {
            return Ok(());
        }
        let words = self.words.iter().map(String::as_str);
        let near = nearest(ack_api::text::cut(&text, 100).0.as_ref(), words, 2);
        let example = as_given(near.first().or(self.words.first()).map_or("", String::as_str));
        Err(self.wrong(format!("one of {}", self.words.join(", ")), near, &example))
    }

    fn accepts(&self, kind: &str) -> bool {
        match self.schema.get("type") {
            Some(Value::String(one)) => one == kind,
            Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
            _ => false,
        }
    }

    fn wrong(&self, allowed: String, nearest: Vec<String>, example: &Value) -> Error {
        let error = Error::invalid(self.name, line(&self.value.to_string(), 120), allowed);
        error.corrected(nearest, Some(json!({ self.name: example })))
    }

    fn wrong_type(&self, wanted: &str, example: Option<Value>) -> Error {
        let kind = match self.value {
            Value::String(_) => "the string ",
            Value::Array(_) => "the list ",
            Value::Object(_) => "the object ",
            Value::Null | Value::Bool(_) | Value::Number(_) => "",
        };
        let value = line(&self.value.to_string(), 120);
        Error::InvalidArgument {
            message: format!("`{}` must be {wanted}, not {kind}{value}", self.name),
            argument: self.name.into(),
            value: value.into(),
            allowed: wanted.into(),
            nearest: Vec::new(),
            example: example.map(|example| json!({ self.name: example }).to_string()),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "an example for a message; a cast saturates"
    )]
    fn not_an_integer(&self) -> Error {
        let bound = |key: &str| self.schema.get(key).and_then(Value::as_i64);
        let text = self.value.as_str();
        let meant = text.and_then(|text| text.trim().parse::<f64>().ok());
        let meant = meant.or_else(|| self.value.as_f64()).unwrap_or(10.0) as i64;
        let nearest = meant
            .clamp(bound("minimum").unwrap_or(1), bound("maximum").unwrap_or(i64::from(MAX_LIMIT)));
        if self.value.is_u64() {
            let allowed = "a smaller number".to_owned();
            return self.wrong(allowed, vec![nearest.to_string()], &json!(nearest));
        }
        self.wrong_type("an integer", Some(json!(nearest)))
    }

    /// The text that was probably meant: types separated by commas, other list entries by spaces.
    fn text_example(&self) -> Option<Value> {
        match self.name {
            "since" | "until" => return Some(json!("2026-01-31")),
            // An arbitrary text would name an unknown scope, or no page.
            "scope" => return self.value.get(0).filter(|first| first.is_string()).cloned(),
            "cursor" => return None,
            _ => {}
        }
        let between = if self.name == "type" { "," } else { " " };
        let entries = self.value.as_array().into_iter().flatten();
        let words: Vec<&str> = entries.filter_map(Value::as_str).collect();
        let text = if words.is_empty() { self.value.to_string() } else { words.join(between) };
        Some(json!(line(&text, 60)))
    }
}

fn words(schema: &Value, root: &Value) -> Vec<String> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let own = list("enum").into_iter().flatten();
    let own = own.chain(schema.get("const")).filter_map(Value::as_str);
    let mut found: Vec<String> = own.map(str::to_owned).collect();
    let target = schema.get("$ref").and_then(Value::as_str);
    let target = target.and_then(|path| root.pointer(path.trim_start_matches('#')));
    let alternatives = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(list);
    for part in alternatives.flatten().chain(schema.get("items")).chain(target) {
        found.extend(words(part, root));
    }
    found
}
