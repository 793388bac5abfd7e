//! The schema of a tool's arguments as the owner declares it, so that agents see the same whatever the server does. It is
//! checked when `serve` starts, because hosts refuse a whole list of tools over one schema that they cannot compile.

use serde_json::{Map, Value};

use super::UpstreamTool;
use ack_api::memory::nearest;
use ack_api::text;

/// Longest schema of one tool, in bytes.
pub const LONGEST: usize = 16 << 10;
/// Deepest nesting of a schema.
pub const DEEPEST: usize = 24;
/// Combinators that hosts refuse at the root of a schema.
pub const COMBINATORS: [&str; 7] = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else"];
/// The types of JSON Schema.
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Whether a schema takes arguments that it does not name.
pub fn is_open(schema: &Map<String, Value>) -> bool {
    match schema.get("additionalProperties") {
        None | Some(Value::Bool(false)) => schema.contains_key("patternProperties"),
        Some(_) => true,
    }
}

/// How deep a value is nested; no more than [`DEEPEST`] and one are counted.
pub fn depth(value: &Value, at: usize) -> usize {
    if at > DEEPEST {
        return at;
    }
    let deepest = |values: &mut dyn Iterator<Item = &Value>| {
        values.map(|value| depth(value, at + 1)).max().unwrap_or(at)
    };
    match value {
        Value::Array(entries) => deepest(&mut entries.iter()),
        Value::Object(entries) => deepest(&mut entries.values()),
        _ => at,
    }
}

/// Checks a declared schema and what the table says of its arguments.
///
/// # Errors
/// What is wrong, in words.
pub fn check(schema: &Map<String, Value>, table: &UpstreamTool) -> Result<(), String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("`type` of a schema of arguments is `object`".to_owned());
    }
    if let Some(combinator) = COMBINATORS
        .into_iter()
        .find(|combinator| schema.contains_key(*combinator))
    {
        return Err(format!(
            "hosts refuse a list of tools over `{combinator}` at the root of a schema"
        ));
    }
    let whole = Value::Object(schema.clone());
    if whole.to_string().len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    if depth(&whole, 0) > DEEPEST {
        return Err(format!("it is nested deeper than {DEEPEST}"));
    }
    is_schema(&whole)?;
    let none = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let known = |name: &str| properties.contains_key(name) || is_open(schema);
    let absent = |what: &str, name: &str| {
        let near = nearest(name, properties.keys().map(String::as_str), 1);
        let near = near
            .first()
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        Err(format!(
            "`{what}` names `{}`, which is none of its properties{near}",
            text::line(name, 80)
        ))
    };
    for name in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let name = name.as_str().unwrap_or_default();
        if !properties.contains_key(name) {
            return absent("required", name);
        }
    }
    if let Some(name) = table.arguments.keys().find(|name| !known(name)) {
        return absent("arguments", name);
    }
    let theirs = |public: &str| {
        table
            .arguments
            .get(public)
            .map_or(public.to_owned(), Clone::clone)
    };
    match properties
        .keys()
        .find(|public| table.preset.contains_key(&theirs(public)))
    {
        Some(fixed) => Err(format!(
            "`{}` has a fixed value in `preset`",
            text::line(fixed, 80)
        )),
        None => Ok(()),
    }
}

/// Whether a value is a schema, as far as its most common keys tell.
fn is_schema(value: &Value) -> Result<(), String> {
    let Value::Object(schema) = value else {
        return match value {
            Value::Bool(_) => Ok(()),
            other => Err(format!(
                "`{}` is no schema",
                text::line(&other.to_string(), 80)
            )),
        };
    };
    let wrong = |key: &str, what: &str| Err(format!("`{key}` of a schema is {what}"));
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("type", Value::String(kind)) if TYPES.contains(&kind.as_str()) => {}
            ("type", Value::Array(kinds))
                if kinds
                    .iter()
                    .all(|kind| kind.as_str().is_some_and(|kind| TYPES.contains(&kind))) => {}
            ("type", _) => return wrong(key, &format!("one of {}", TYPES.join(", "))),
            ("enum", Value::Array(_)) => {}
            ("enum", _) => return wrong(key, "a list"),
            ("required", Value::Array(names)) if names.iter().all(Value::is_string) => {}
            ("required", _) => return wrong(key, "a list of names"),
            ("description" | "title", Value::String(_)) => {}
            ("description" | "title", _) => return wrong(key, "a text"),
            (
                "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems",
                Value::Number(_),
            ) => {}
            ("minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems", _) => {
                return wrong(key, "a number");
            }
            ("properties", Value::Object(properties)) => {
                properties.values().try_for_each(is_schema)?
            }
            ("properties", _) => return wrong(key, "a table of schemas"),
            ("items" | "additionalProperties", schema) => is_schema(schema)?,
            _ => {}
        }
    }
    Ok(())
}
