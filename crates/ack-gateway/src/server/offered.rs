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
    pub theirs: String,
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
    pub theirs: String,
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
            text::line(&self.theirs, 80),
            self.why.reason
        )
    }
}

/// Why a tool is not offered, and what to do.
fn because(reason: impl Into<String>, hint: &'static str) -> NotOffered {
    NotOffered {
        reason: reason.into(),
        hint,
    }
}

const ONLY_READING: &str =
    "only tools that read are offered, whatever config.toml says; remove it from `tools` there";
const UNANNOTATED: &str = "to offer it anyway, set `trust_unannotated = true` in its \
    `[upstream]` table in config.toml";
const NO_SUCH_TOOL: &str = "correct its name under `tools` in config.toml";
const BAD_SCHEMA: &str = "declare another one as `input_schema` in its table in config.toml";
const BAD_TABLE: &str = "correct its table under `tools` in config.toml";

/// Which of the server's tools are offered, and which configured ones are not.
pub fn offered(upstream: &Upstream, told: &[Value]) -> (Vec<OfferedTool>, Vec<WithheldTool>) {
    let (mut tools, mut withheld) = (Vec::new(), Vec::new());
    for (theirs, table) in &upstream.tools {
        let found = told
            .iter()
            .find(|tool| tool.get("name").and_then(Value::as_str) == Some(theirs));
        let tool = match found {
            Some(tool) => one(upstream, theirs, table, tool),
            None => {
                let names = told.iter().filter_map(|tool| tool.get("name")?.as_str());
                let near = nearest(theirs, names, 1);
                let near = near.first().map_or_else(String::new, |near| {
                    format!("; it has `{}`", text::line(near, 80))
                });
                Err(because(format!("it has no such tool{near}"), NO_SUCH_TOOL))
            }
        };
        match tool {
            Ok(tool) => tools.push(tool),
            Err(why) => withheld.push(WithheldTool {
                theirs: theirs.clone(),
                name: table.name.clone(),
                why,
            }),
        }
    }
    (tools, withheld)
}

/// The tools that are listed while the server is down: those whose schema the owner declares,
/// except those that were withheld when it was last connected.
pub fn declared(upstream: &Upstream, withheld: &[WithheldTool]) -> Vec<OfferedTool> {
    let there = upstream
        .tools
        .iter()
        .filter(|(theirs, _)| !withheld.iter().any(|withheld| withheld.theirs == *theirs));
    there
        .filter_map(|(theirs, table)| {
            let schema = table.input_schema.clone()?;
            Some(with_schema(upstream, theirs, table, schema, &Value::Null))
        })
        .collect()
}

/// A tool whose schema the owner declares. It is listed as declared, whatever the server sends.
fn with_schema(
    upstream: &Upstream,
    theirs: &str,
    table: &UpstreamTool,
    schema: Map<String, Value>,
    told: &Value,
) -> OfferedTool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = properties
        .into_iter()
        .flat_map(Map::keys)
        .cloned()
        .collect();
    let open = is_open(&schema);
    let mut shown = ToolAnnotations::new();
    // Only read-only tools are called. If the owner trusts tools without annotations, this is not
    // known.
    shown.read_only_hint = (!upstream.trust_unannotated).then_some(true);
    let mut listed = Tool::new(
        table.name.clone(),
        description(upstream, table, told),
        std::sync::Arc::new(schema),
    );
    listed.annotations = Some(shown);
    OfferedTool {
        theirs: theirs.to_owned(),
        table: table.clone(),
        listed,
        names,
        open,
    }
}

/// The description that agents read: the owner's, or the server's with its origin.
fn description(upstream: &Upstream, table: &UpstreamTool, told: &Value) -> String {
    if let Some(own) = &table.description {
        return own.clone();
    }
    let theirs = told
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let theirs = text::line(theirs, MAX_DESCRIPTION_CHARS);
    format!("From the upstream server {}: {theirs}", upstream.name)
        .trim_end_matches([':', ' '])
        .to_owned()
}

fn one(
    upstream: &Upstream,
    theirs: &str,
    table: &UpstreamTool,
    told: &Value,
) -> Result<OfferedTool, NotOffered> {
    let annotations: ToolAnnotations = told
        .get("annotations")
        .and_then(|annotations| serde_json::from_value(annotations.clone()).ok())
        .unwrap_or_default();
    match annotations.read_only_hint {
        _ if annotations.destructive_hint == Some(true) => {
            return Err(because("it says that it is destructive", ONLY_READING));
        }
        Some(true) => {}
        Some(false) => return Err(because("it says that it does not only read", ONLY_READING)),
        None if upstream.trust_unannotated => {}
        None => return Err(because("it does not say that it only reads", UNANNOTATED)),
    }
    if let Some(schema) = &table.input_schema {
        return Ok(with_schema(upstream, theirs, table, schema.clone(), told));
    }
    let Some(Value::Object(schema)) = told.get("inputSchema") else {
        return Err(because("its schema is not an object", BAD_SCHEMA));
    };
    let mut schema = schema.clone();
    let is_long = Value::Object(schema.clone()).to_string().len() > MAX_SCHEMA_BYTES;
    if schema.get("type").and_then(Value::as_str) != Some("object")
        || depth(told.get("inputSchema").unwrap_or(&Value::Null), 0) > MAX_SCHEMA_DEPTH
    {
        return Err(because(
            "its schema does not describe an object",
            BAD_SCHEMA,
        ));
    }
    if is_long {
        return Err(because(
            format!("its schema is longer than {MAX_SCHEMA_BYTES} bytes"),
            BAD_SCHEMA,
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
            return Err(because(
                "the properties of its schema are not schemas",
                BAD_SCHEMA,
            ));
        }
    };
    let mut required: Vec<String> = match schema.remove("required") {
        None => Vec::new(),
        Some(required) => serde_json::from_value(required).map_err(|_| {
            because(
                "`required` of its schema is not a list of names",
                BAD_SCHEMA,
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
            return Err(because(reason, BAD_TABLE));
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
    let public = |theirs: &str| {
        let renamed = table.arguments.iter().find(|(_, known)| *known == theirs);
        renamed
            .map_or(theirs, |(public, _)| public.as_str())
            .to_owned()
    };
    let count = properties.len();
    let mut properties: Map<String, Value> = properties
        .into_iter()
        .map(|(name, property)| (public(&name), property))
        .collect();
    if properties.len() != count {
        return Err(because(
            "`arguments` gives one of its arguments the name of another",
            BAD_TABLE,
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
        description(upstream, table, told),
        std::sync::Arc::new(schema),
    );
    let mut shown = ToolAnnotations::new();
    shown.read_only_hint = annotations.read_only_hint;
    shown.destructive_hint = annotations.destructive_hint;
    shown.idempotent_hint = annotations.idempotent_hint;
    shown.open_world_hint = annotations.open_world_hint;
    listed.annotations = Some(shown);
    Ok(OfferedTool {
        theirs: theirs.to_owned(),
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
                    Value::String(told)
                        if ["description", "title", "$comment"].contains(&key.as_str()) =>
                    {
                        *told = text::line(told, MAX_DESCRIPTION_CHARS);
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
            let theirs = match self.table.arguments.get(&name) {
                Some(theirs) => theirs.clone(),
                None => name.clone(),
            };
            // Arguments that are renamed or have a fixed value cannot be given under the server's
            // name.
            let hidden = self.table.preset.contains_key(&theirs)
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
            arguments.insert(theirs, value);
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
