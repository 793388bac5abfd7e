//! Checks the argument schema that the owner declares for a tool. Agents see that schema whatever
//! the server does. Hosts refuse a whole tool list if they cannot compile one schema in it, so the
//! schema is checked when `serve` starts.

use serde_json::{Map, Value};

use super::UpstreamTool;
use ack_api::memory::nearest;
use ack_api::text;

/// The longest schema of one tool.
pub const MAX_SCHEMA_BYTES: usize = 16 << 10;
/// The deepest nesting of a schema.
pub const MAX_SCHEMA_DEPTH: usize = 24;
/// Keywords that hosts refuse at the root of a schema.
pub const COMBINATORS: [&str; 7] = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else"];
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Whether a schema allows arguments that it does not name.
pub fn is_open(schema: &Map<String, Value>) -> bool {
    match schema.get("additionalProperties") {
        None | Some(Value::Bool(false)) => schema.contains_key("patternProperties"),
        Some(_) => true,
    }
}

/// How deeply a value is nested, at most [`MAX_SCHEMA_DEPTH`] + 1.
pub fn depth(value: &Value, at: usize) -> usize {
    if at > MAX_SCHEMA_DEPTH {
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

/// Checks a declared schema against the other keys of its table.
///
/// # Errors
/// What is wrong.
pub fn check(schema: &Map<String, Value>, table: &UpstreamTool) -> Result<(), String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("the `type` of an argument schema must be `object`".to_owned());
    }
    if let Some(combinator) = COMBINATORS
        .into_iter()
        .find(|combinator| schema.contains_key(*combinator))
    {
        return Err(format!(
            "hosts refuse tool lists with `{combinator}` at the root of a schema"
        ));
    }
    let schema_value = Value::Object(schema.clone());
    if schema_value.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(format!("it is longer than {MAX_SCHEMA_BYTES} bytes"));
    }
    if depth(&schema_value, 0) > MAX_SCHEMA_DEPTH {
        return Err(format!("it is nested deeper than {MAX_SCHEMA_DEPTH}"));
    }
    is_schema(&schema_value)?;
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
            "`{what}` names `{}`, which is not one of its properties{near}",
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
    let upstream_name = |public: &str| {
        table
            .arguments
            .get(public)
            .map_or(public.to_owned(), Clone::clone)
    };
    match properties
        .keys()
        .find(|public| table.preset.contains_key(&upstream_name(public)))
    {
        Some(fixed) => Err(format!(
            "`{}` has a fixed value in `preset`",
            text::line(fixed, 80)
        )),
        None => Ok(()),
    }
}

/// Checks the most common keys of a schema.
fn is_schema(value: &Value) -> Result<(), String> {
    let Value::Object(schema) = value else {
        return match value {
            Value::Bool(_) => Ok(()),
            other => Err(format!(
                "`{}` is not a schema",
                text::line(&other.to_string(), 80)
            )),
        };
    };
    let wrong = |key: &str, what: &str| Err(format!("`{key}` of a schema must be {what}"));
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
