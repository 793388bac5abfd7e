//! An upstream tool in the form in which it is offered: with a safe schema and description. The
//! arguments of calls are checked by name.
//!
//! Hosts refuse a whole tool list if they cannot compile one schema in it. So a tool whose schema
//! is not an object with properties is left out, combinators at the root are removed, and output
//! schemas are not passed on. A schema that the owner declares replaces the server's.

use std::fmt;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::settings::declared::{COMBINATORS, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, depth, is_open};
use crate::settings::{NotOffered, Upstream, UpstreamTool};
use ack_api::ErrorBody;
use ack_api::memory::nearest;
use ack_api::text;

/// Longest description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1_000;

/// A tool that is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// The server's own name for it.
    pub upstream_name: String,
    /// Its configuration.
    table: UpstreamTool,
    /// Its entry in the tool list.
    pub listed: Tool,
    /// The argument names that agents may use.
    names: Vec<String>,
    /// Whether its schema allows other arguments too.
    open: bool,
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
const SCHEMA_HINT: &str = "declare another one as `input_schema` in its table in config.toml";
const TABLE_HINT: &str = "correct its table under `tools` in config.toml";

/// Which of the server's tools are offered, and which configured ones are not.
pub fn offer_tools(
    upstream: &Upstream,
    listed_tools: &[Value],
) -> (Vec<OfferedTool>, Vec<WithheldTool>) {
    let (mut tools, mut withheld) = (Vec::new(), Vec::new());
    for (upstream_name, table) in &upstream.tools {
        let found = listed_tools
            .iter()
            .find(|tool| tool.get("name").and_then(Value::as_str) == Some(upstream_name));
        let tool = match found {
            Some(tool) => offer_tool(upstream, upstream_name, table, tool),
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
                name: table.name.clone(),
                why,
            }),
        }
    }
    (tools, withheld)
}

/// The tools that are listed while the server is down: those whose schema the owner declares,
/// except those that were withheld when it was last connected.
pub fn declared_tools(upstream: &Upstream, withheld: &[WithheldTool]) -> Vec<OfferedTool> {
    let is_listed = upstream.tools.iter().filter(|(upstream_name, _)| {
        !withheld
            .iter()
            .any(|withheld| withheld.upstream_name == *upstream_name)
    });
    is_listed
        .filter_map(|(upstream_name, table)| {
            let schema = table.input_schema.clone()?;
            Some(with_schema(
                upstream,
                upstream_name,
                table,
                schema,
                &Value::Null,
            ))
        })
        .collect()
}

/// A tool whose schema the owner declares. It is listed as declared, whatever the server sends.
fn with_schema(
    upstream: &Upstream,
    upstream_name: &str,
    table: &UpstreamTool,
    schema: Map<String, Value>,
    listed_tool: &Value,
) -> OfferedTool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = properties
        .into_iter()
        .flat_map(Map::keys)
        .cloned()
        .collect();
    let open = is_open(&schema);
    let mut annotations_shown = ToolAnnotations::new();
    // Only read-only tools are called. If the owner trusts tools without annotations, this is not
    // known.
    annotations_shown.read_only_hint = (!upstream.trust_unannotated).then_some(true);
    let mut listed = Tool::new(
        table.name.clone(),
        description(upstream, table, listed_tool),
        std::sync::Arc::new(schema),
    );
    listed.annotations = Some(annotations_shown);
    OfferedTool {
        upstream_name: upstream_name.to_owned(),
        table: table.clone(),
        listed,
        names,
        open,
    }
}

/// The description that agents read: the owner's, or the server's with its origin.
fn description(upstream: &Upstream, table: &UpstreamTool, listed_tool: &Value) -> String {
    if let Some(configured) = &table.description {
        return configured.clone();
    }
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
    upstream_name: &str,
    table: &UpstreamTool,
    listed_tool: &Value,
) -> Result<OfferedTool, NotOffered> {
    let annotations: ToolAnnotations = listed_tool
        .get("annotations")
        .and_then(|annotations| serde_json::from_value(annotations.clone()).ok())
        .unwrap_or_default();
    match annotations.read_only_hint {
        _ if annotations.destructive_hint == Some(true) => {
            return Err(not_offered(
                "it says that it is destructive",
                READ_ONLY_HINT,
            ));
        }
        Some(true) => {}
        Some(false) => {
            return Err(not_offered(
                "it says that it is not read-only",
                READ_ONLY_HINT,
            ));
        }
        None if upstream.trust_unannotated => {}
        None => {
            return Err(not_offered(
                "it does not say that it is read-only",
                UNANNOTATED_HINT,
            ));
        }
    }
    if let Some(schema) = &table.input_schema {
        return Ok(with_schema(
            upstream,
            upstream_name,
            table,
            schema.clone(),
            listed_tool,
        ));
    }
    let Some(Value::Object(schema)) = listed_tool.get("inputSchema") else {
        return Err(not_offered("its schema is not an object", SCHEMA_HINT));
    };
    let mut schema = schema.clone();
    let is_long = Value::Object(schema.clone()).to_string().len() > MAX_SCHEMA_BYTES;
    if schema.get("type").and_then(Value::as_str) != Some("object")
        || depth(listed_tool.get("inputSchema").unwrap_or(&Value::Null), 0) > MAX_SCHEMA_DEPTH
    {
        return Err(not_offered(
            "its schema does not describe an object",
            SCHEMA_HINT,
        ));
    }
    if is_long {
        return Err(not_offered(
            format!("its schema is longer than {MAX_SCHEMA_BYTES} bytes"),
            SCHEMA_HINT,
        ));
    }
    for key in COMBINATORS.into_iter().chain(["$schema", "$id"]) {
        schema.remove(key);
    }
    let open = is_open(&schema);
    let mut properties = match schema.remove("properties") {
        None => Map::new(),
        Some(Value::Object(properties))
            if properties
                .values()
                .all(|property| property.is_object() || property.is_boolean()) =>
        {
            properties
        }
        Some(_) => {
            return Err(not_offered(
                "the properties of its schema are not schemas",
                SCHEMA_HINT,
            ));
        }
    };
    let mut required: Vec<String> = match schema.remove("required") {
        None => Vec::new(),
        Some(required) => serde_json::from_value(required).map_err(|_| {
            not_offered(
                "`required` of its schema is not a list of names",
                SCHEMA_HINT,
            )
        })?,
    };
    let named = [("preset", &table.preset), ("defaults", &table.defaults)];
    let named = named
        .into_iter()
        .flat_map(|(what, values)| values.keys().map(move |name| (name, what)));
    for (name, what) in named.chain(table.arguments.values().map(|name| (name, "arguments"))) {
        if !open && !properties.contains_key(name) {
            let near = nearest(name, properties.keys().map(String::as_str), 1);
            let near = near
                .first()
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let reason = format!(
                "`{what}` names `{}`, which is not one of its arguments{near}",
                text::line(name, 80)
            );
            return Err(not_offered(reason, TABLE_HINT));
        }
    }
    for (name, value) in &table.defaults {
        required.retain(|known| known != name);
        if let Some(property) = properties.get_mut(name).and_then(Value::as_object_mut) {
            property.insert("default".to_owned(), value.clone());
        }
    }
    for name in table.preset.keys() {
        properties.remove(name);
        required.retain(|known| known != name);
    }
    let public = |upstream_name: &str| {
        let renamed = table
            .arguments
            .iter()
            .find(|(_, known)| *known == upstream_name);
        renamed
            .map_or(upstream_name, |(public, _)| public.as_str())
            .to_owned()
    };
    let count = properties.len();
    let mut properties: Map<String, Value> = properties
        .into_iter()
        .map(|(name, property)| (public(&name), property))
        .collect();
    if properties.len() != count {
        return Err(not_offered(
            "`arguments` gives one of its arguments the name of another",
            TABLE_HINT,
        ));
    }
    properties.values_mut().for_each(make_safe);
    schema.values_mut().for_each(make_safe);
    let names = properties.keys().cloned().collect();
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert(
            "required".to_owned(),
            required.iter().map(|name| public(name)).collect(),
        );
    }
    if !open {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    let mut listed = Tool::new(
        table.name.clone(),
        description(upstream, table, listed_tool),
        std::sync::Arc::new(schema),
    );
    let mut shown_annotations = ToolAnnotations::new();
    shown_annotations.read_only_hint = annotations.read_only_hint;
    shown_annotations.destructive_hint = annotations.destructive_hint;
    shown_annotations.idempotent_hint = annotations.idempotent_hint;
    shown_annotations.open_world_hint = annotations.open_world_hint;
    listed.annotations = Some(shown_annotations);
    Ok(OfferedTool {
        upstream_name: upstream_name.to_owned(),
        table: table.clone(),
        listed,
        names,
        open,
    })
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
    /// The arguments under the server's own names.
    ///
    /// # Errors
    /// An argument is unknown.
    pub fn arguments(
        &self,
        values: Map<String, Value>,
    ) -> Result<Map<String, Value>, Box<ErrorBody>> {
        let mut arguments = Map::new();
        for (name, value) in values {
            let upstream_name = match self.table.arguments.get(&name) {
                Some(upstream_name) => upstream_name.clone(),
                None => name.clone(),
            };
            // Arguments that are renamed or have a fixed value cannot be given under the server's
            // name.
            let hidden = self.table.preset.contains_key(&upstream_name)
                || !self.table.arguments.contains_key(&name)
                    && self
                        .table
                        .arguments
                        .values()
                        .any(|renamed| *renamed == name);
            if hidden || !self.open && !self.names.contains(&name) {
                let argument = text::line(&name, 100);
                return Err(Box::new(ErrorBody {
                    code: "unknown_argument".to_owned(),
                    message: format!("`{argument}` is not an argument of {}", self.table.name),
                    hint: None,
                    path: None,
                    nearest: nearest(&argument, self.names.iter().map(String::as_str), 2),
                    argument: Some(argument),
                    value: None,
                    allowed: self.names.clone(),
                    example: None,
                }));
            }
            arguments.insert(upstream_name, value);
        }
        for (name, value) in &self.table.defaults {
            if !arguments.contains_key(name) {
                arguments.insert(name.clone(), value.clone());
            }
        }
        for (name, value) in &self.table.preset {
            arguments.insert(name.clone(), value.clone());
        }
        Ok(arguments)
    }
}
