//! An upstream tool in the form in which it is offered: with a safe schema and description. The
//! arguments of calls are checked by name.
//!
//! Hosts refuse a whole tool list if they cannot compile one schema in it. So a tool whose schema
//! is not an object with properties is left out, combinators at the root are removed, and output
//! schemas are not passed on.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::error::NotOffered;
use crate::settings::{Upstream, UpstreamTool};
use ack_api::memory::nearest;
use ack_api::text;

const MAX_DESCRIPTION_CHARS: usize = 1_000;
const MAX_SCHEMA_BYTES: usize = 16 << 10;
const MAX_SCHEMA_DEPTH: usize = 24;
/// Keywords that hosts refuse at the root of a schema, and those that name a document.
const REMOVED: [&str; 9] =
    ["anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$schema", "$id"];

/// A configured tool of a server, as it was listed last.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredTool {
    pub wanted: UpstreamTool,
    pub offered: Result<Tool, NotOffered>,
}

impl ConfiguredTool {
    /// Each of the configured tools, in the form in which it is offered, or why it is not.
    pub fn all_of(upstream: &Upstream, listed: &[Value]) -> Vec<Self> {
        let tools = upstream.tools.iter().map(|wanted| Self {
            wanted: wanted.clone(),
            offered: offer_tool(upstream, wanted, listed),
        });
        tools.collect()
    }

    /// Why it is not offered, for the owner.
    pub fn problem(&self) -> Option<String> {
        let why = self.offered.as_ref().err()?;
        let name = text::line(&self.wanted.upstream_name, 80);
        Some(format!("`{name}` is not offered: {}", why.reason))
    }
}

fn not_offered(reason: impl Into<String>, hint: &'static str) -> NotOffered {
    NotOffered { reason: reason.into(), hint }
}

const READ_ONLY_HINT: &str =
    "only read-only tools are offered, whatever config.toml says; remove it from `tools` there";
const UNANNOTATED_HINT: &str = "to offer it anyway, set `trust_unannotated = true` in its \
    `[upstream]` table in config.toml";
const UNKNOWN_TOOL_HINT: &str = "correct its name under `tools` in config.toml";
const SCHEMA_HINT: &str =
    "hosts would refuse the whole list with it; remove it from `tools` in config.toml";

fn offer_tool(
    upstream: &Upstream,
    wanted: &UpstreamTool,
    listed_tools: &[Value],
) -> Result<Tool, NotOffered> {
    let upstream_name = wanted.upstream_name.as_str();
    let mut tools = listed_tools.iter();
    let Some(tool) = tools.find(|tool| name_of(tool) == Some(upstream_name)) else {
        let near = nearest(upstream_name, listed_tools.iter().filter_map(name_of), 1);
        let near = near.first().map(|near| format!("; it has `{}`", text::line(near, 80)));
        let reason = format!("it has no such tool{}", near.unwrap_or_default());
        return Err(not_offered(reason, UNKNOWN_TOOL_HINT));
    };
    let annotations = tool.get("annotations").cloned().unwrap_or_default();
    let mut annotations: ToolAnnotations = serde_json::from_value(annotations).unwrap_or_default();
    check_read_only(&annotations, upstream.trust_unannotated)?;
    let schema = safe_schema(tool.get("inputSchema"))?;
    let theirs = tool.get("description").and_then(Value::as_str);
    let theirs = text::line(theirs.unwrap_or_default(), MAX_DESCRIPTION_CHARS);
    let description = format!("From the upstream server {}: {theirs}", upstream.name);
    let description = description.trim_end_matches([':', ' ']).to_owned();
    let mut listed = Tool::new(wanted.name.clone(), description, Arc::new(schema));
    // The title is text of the server's.
    annotations.title = None;
    listed.annotations = Some(annotations);
    Ok(listed)
}

fn name_of(tool: &Value) -> Option<&str> {
    tool.get("name")?.as_str()
}

fn check_read_only(
    annotations: &ToolAnnotations,
    trust_unannotated: bool,
) -> Result<(), NotOffered> {
    if annotations.destructive_hint == Some(true) {
        return Err(not_offered("it says that it is destructive", READ_ONLY_HINT));
    }
    let (reason, hint) = match annotations.read_only_hint {
        Some(true) => return Ok(()),
        None if trust_unannotated => return Ok(()),
        Some(false) => ("it says that it is not read-only", READ_ONLY_HINT),
        None => ("it does not say that it is read-only", UNANNOTATED_HINT),
    };
    Err(not_offered(reason, hint))
}

/// The schema of a tool's arguments in a form that hosts accept.
fn safe_schema(schema: Option<&Value>) -> Result<Map<String, Value>, NotOffered> {
    let refused = |reason: String| Err(not_offered(reason, SCHEMA_HINT));
    let Some(value @ Value::Object(schema)) = schema else {
        return refused("its schema is not an object".to_owned());
    };
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return refused("its schema does not describe an object".to_owned());
    }
    if depth(value, 0) > MAX_SCHEMA_DEPTH {
        return refused(format!("its schema is nested deeper than {MAX_SCHEMA_DEPTH}"));
    }
    if value.to_string().len() > MAX_SCHEMA_BYTES {
        return refused(format!("its schema is longer than {MAX_SCHEMA_BYTES} bytes"));
    }
    let is_schema = |property: &Value| property.is_object() || property.is_boolean();
    let are_schemas = |properties: &Value| {
        properties.as_object().is_some_and(|properties| properties.values().all(is_schema))
    };
    if !schema.get("properties").is_none_or(are_schemas) {
        return refused("the properties of its schema are not schemas".to_owned());
    }
    let are_names =
        |names: &Value| names.as_array().is_some_and(|names| names.iter().all(Value::is_string));
    if !schema.get("required").is_none_or(are_names) {
        return refused("`required` of its schema is not a list of names".to_owned());
    }
    let mut schema = schema.clone();
    for key in REMOVED {
        schema.shift_remove(key);
    }
    schema.entry("properties").or_insert_with(|| json!({}));
    if !is_open(&schema) {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    clean_texts(&mut schema);
    Ok(schema)
}

fn is_open(schema: &Map<String, Value>) -> bool {
    match schema.get("additionalProperties") {
        None | Some(Value::Bool(false)) => schema.contains_key("patternProperties"),
        Some(_) => true,
    }
}

/// How deeply a value is nested, at most [`MAX_SCHEMA_DEPTH`] + 1.
fn depth(value: &Value, at: usize) -> usize {
    if at > MAX_SCHEMA_DEPTH {
        return at;
    }
    let deepest = match value {
        Value::Array(entries) => entries.iter().map(|entry| depth(entry, at + 1)).max(),
        Value::Object(entries) => entries.values().map(|entry| depth(entry, at + 1)).max(),
        _ => None,
    };
    deepest.unwrap_or(at)
}

fn clean_texts(schema: &mut Map<String, Value>) {
    for (key, value) in schema {
        match value {
            Value::String(words) if ["description", "title", "$comment"].contains(&&**key) => {
                *words = text::line(words, MAX_DESCRIPTION_CHARS);
            }
            Value::Object(inner) => clean_texts(inner),
            Value::Array(entries) => {
                let objects = entries.iter_mut().filter_map(Value::as_object_mut);
                objects.for_each(clean_texts);
            }
            _ => {}
        }
    }
}
