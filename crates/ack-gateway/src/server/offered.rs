//! An upstream tool in the form in which it is offered: with a safe schema and description. The
//! arguments of calls are checked by name.
//!
//! Hosts refuse a whole tool list if they cannot compile one schema in it. So a tool whose schema
//! is not an object with properties is left out, combinators at the root are removed, and output
//! schemas are not passed on.

use std::fmt;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::settings::{NotOffered, Upstream, UpstreamTool};
use ack_api::ErrorBody;
use ack_api::memory::nearest;
use ack_api::text;

/// Longest description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// The longest schema of one tool.
const MAX_SCHEMA_BYTES: usize = 16 << 10;
/// The deepest nesting of a schema.
const MAX_SCHEMA_DEPTH: usize = 24;
/// Keywords that hosts refuse at the root of a schema.
const COMBINATORS: [&str; 7] = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else"];

/// A tool that is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// The server's own name for it.
    pub upstream_name: String,
    /// Its entry in the tool list.
    pub listed: Tool,
    /// The argument names that agents may use.
    names: Vec<String>,
    /// Whether its schema allows other arguments too.
    is_open: bool,
}

/// A configured tool that is not offered.
#[derive(Debug, Clone, PartialEq)]
pub struct WithheldTool {
    /// The server's own name for it.
    pub upstream_name: String,
    /// The name that agents would see.
    pub name: String,
    /// Why.
    pub why: NotOffered,
}

impl fmt::Display for WithheldTool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "`{}` is not offered: {}",
            text::line(&self.upstream_name, 80),
            self.why.reason
        )
    }
}

/// Why a tool is not offered, and what to do.
fn not_offered(reason: impl Into<String>, hint: &'static str) -> NotOffered {
    NotOffered {
        reason: reason.into(),
        hint,
    }
}

const READ_ONLY_HINT: &str =
    "only read-only tools are offered, whatever config.toml says; remove it from `tools` there";
const UNANNOTATED_HINT: &str = "to offer it anyway, set `trust_unannotated = true` in its \
    `[upstream]` table in config.toml";
const UNKNOWN_TOOL_HINT: &str = "correct its name under `tools` in config.toml";
const SCHEMA_HINT: &str =
    "hosts would refuse the whole list with it; remove it from `tools` in config.toml";

/// Which of the server's tools are offered, and which configured ones are not.
pub fn offer_tools(
    upstream: &Upstream,
    listed_tools: &[Value],
) -> (Vec<OfferedTool>, Vec<WithheldTool>) {
    let (mut tools, mut withheld) = (Vec::new(), Vec::new());
    for wanted in &upstream.tools {
        let upstream_name = &wanted.upstream_name;
        let found = listed_tools
            .iter()
            .find(|tool| tool.get("name").and_then(Value::as_str) == Some(upstream_name));
        let tool = match found {
            Some(tool) => offer_tool(upstream, wanted, tool),
            None => {
                let names = listed_tools
                    .iter()
                    .filter_map(|tool| tool.get("name")?.as_str());
                let near = nearest(upstream_name, names, 1);
                let near = near.first().map_or_else(String::new, |near| {
                    format!("; it has `{}`", text::line(near, 80))
                });
                Err(not_offered(
                    format!("it has no such tool{near}"),
                    UNKNOWN_TOOL_HINT,
                ))
            }
        };
        match tool {
            Ok(tool) => tools.push(tool),
            Err(why) => withheld.push(WithheldTool {
                upstream_name: upstream_name.clone(),
                name: wanted.name.clone(),
                why,
            }),
        }
    }
    (tools, withheld)
}

/// The description that agents read: the server's, with its origin.
fn description(upstream: &Upstream, listed_tool: &Value) -> String {
    let upstream_text = listed_tool
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let upstream_text = text::line(upstream_text, MAX_DESCRIPTION_CHARS);
    format!(
        "From the upstream server {}: {upstream_text}",
        upstream.name
    )
    .trim_end_matches([':', ' '])
    .to_owned()
}

fn offer_tool(
    upstream: &Upstream,
    tool: &UpstreamTool,
    listed_tool: &Value,
) -> Result<OfferedTool, NotOffered> {
    let annotations: ToolAnnotations = listed_tool
        .get("annotations")
        .and_then(|annotations| serde_json::from_value(annotations.clone()).ok())
        .unwrap_or_default();
    check_annotations(&annotations, upstream.trust_unannotated)?;
    let schema = SafeSchema::of(listed_tool.get("inputSchema"))?;
    let mut listed = Tool::new(
        tool.name.clone(),
        description(upstream, listed_tool),
        std::sync::Arc::new(schema.schema),
    );
    let mut shown_annotations = ToolAnnotations::new();
    shown_annotations.read_only_hint = annotations.read_only_hint;
    shown_annotations.destructive_hint = annotations.destructive_hint;
    shown_annotations.idempotent_hint = annotations.idempotent_hint;
    shown_annotations.open_world_hint = annotations.open_world_hint;
    listed.annotations = Some(shown_annotations);
    Ok(OfferedTool {
        upstream_name: tool.upstream_name.clone(),
        listed,
        names: schema.names,
        is_open: schema.is_open,
    })
}

/// Refuses a tool that writes, or may write.
fn check_annotations(annotations: &ToolAnnotations, trusted: bool) -> Result<(), NotOffered> {
    if annotations.destructive_hint == Some(true) {
        return Err(not_offered(
            "it says that it is destructive",
            READ_ONLY_HINT,
        ));
    }
    match annotations.read_only_hint {
        Some(true) => Ok(()),
        Some(false) => Err(not_offered(
            "it says that it is not read-only",
            READ_ONLY_HINT,
        )),
        None if trusted => Ok(()),
        None => Err(not_offered(
            "it does not say that it is read-only",
            UNANNOTATED_HINT,
        )),
    }
}

/// The schema of a tool's arguments, in a form that every host accepts.
struct SafeSchema {
    schema: Map<String, Value>,
    /// The arguments that it names.
    names: Vec<String>,
    /// Whether it allows others too.
    is_open: bool,
}

impl SafeSchema {
    fn of(listed_schema: Option<&Value>) -> Result<Self, NotOffered> {
        let Some(Value::Object(schema)) = listed_schema else {
            return Err(not_offered("its schema is not an object", SCHEMA_HINT));
        };
        let mut schema = schema.clone();
        if schema.get("type").and_then(Value::as_str) != Some("object")
            || depth(listed_schema.unwrap_or(&Value::Null), 0) > MAX_SCHEMA_DEPTH
        {
            return Err(not_offered(
                "its schema does not describe an object",
                SCHEMA_HINT,
            ));
        }
        if listed_schema.is_some_and(|schema| schema.to_string().len() > MAX_SCHEMA_BYTES) {
            return Err(not_offered(
                format!("its schema is longer than {MAX_SCHEMA_BYTES} bytes"),
                SCHEMA_HINT,
            ));
        }
        for key in COMBINATORS.into_iter().chain(["$schema", "$id"]) {
            schema.remove(key);
        }
        let is_names = |required: &Value| {
            let names = required.as_array();
            names.is_some_and(|names| names.iter().all(Value::is_string))
        };
        if !schema.get("required").is_none_or(is_names) {
            return Err(not_offered(
                "`required` of its schema is not a list of names",
                SCHEMA_HINT,
            ));
        }
        let is_schema = |property: &Value| property.is_object() || property.is_boolean();
        let names = match schema.get("properties") {
            None => Vec::new(),
            Some(Value::Object(properties)) if properties.values().all(is_schema) => {
                properties.keys().cloned().collect()
            }
            Some(_) => {
                return Err(not_offered(
                    "the properties of its schema are not schemas",
                    SCHEMA_HINT,
                ));
            }
        };
        schema.entry("properties").or_insert_with(|| json!({}));
        schema.values_mut().for_each(make_safe);
        let is_open = is_open(&schema);
        if !is_open {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
        Ok(Self {
            schema,
            names,
            is_open,
        })
    }
}

/// Whether a schema allows arguments that it does not name.
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
    let deepest = |values: &mut dyn Iterator<Item = &Value>| {
        values.map(|value| depth(value, at + 1)).max().unwrap_or(at)
    };
    match value {
        Value::Array(entries) => deepest(&mut entries.iter()),
        Value::Object(entries) => deepest(&mut entries.values()),
        _ => at,
    }
}

/// Cleans the texts in a schema.
fn make_safe(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(words)
                        if ["description", "title", "$comment"].contains(&key.as_str()) =>
                    {
                        *words = text::line(words, MAX_DESCRIPTION_CHARS);
                    }
                    _ => make_safe(value),
                }
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(make_safe),
        _ => {}
    }
}

impl OfferedTool {
    /// Refuses an argument that the tool does not have.
    ///
    /// # Errors
    /// An argument is unknown.
    pub fn check(&self, arguments: &Map<String, Value>) -> Result<(), Box<ErrorBody>> {
        let is_unknown = |name: &&String| !self.is_open && !self.names.contains(*name);
        let Some(unknown) = arguments.keys().find(is_unknown) else {
            return Ok(());
        };
        let argument = text::line(unknown, 100);
        Err(Box::new(ErrorBody {
            code: "unknown_argument".to_owned(),
            message: format!("`{argument}` is not an argument of {}", self.listed.name),
            hint: None,
            path: None,
            nearest: nearest(&argument, self.names.iter().map(String::as_str), 2),
            argument: Some(argument),
            value: None,
            allowed: self.names.clone(),
            example: None,
        }))
    }
}
