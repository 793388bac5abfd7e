//! A tool of an upstream server as it is offered: its schema and description made safe for the clients that list it beside
//! ours, and the arguments of a call checked by name.
//!
//! What one server declares must not spoil the list for all: hosts refuse a whole list over one schema that they cannot
//! compile, so a schema that is no object with properties keeps its tool out, combinators at its root are left off, and schemas
//! of answers are not passed on. A schema that the owner declares takes the place of the server's.

use std::fmt;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::settings::declared::{COMBINATORS, DEEPEST, LONGEST, depth, is_open};
use crate::settings::{NotOffered, Upstream, UpstreamTool};
use ack_api::ErrorBody;
use ack_api::memory::nearest;
use ack_api::text;

/// Longest description, in characters.
const LONGEST_DESCRIPTION: usize = 1_000;

/// A tool that is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// The server's own name of it.
    pub theirs: String,
    /// What the owner says of it.
    table: UpstreamTool,
    /// As it is listed.
    pub listed: Tool,
    /// Names of the arguments that a call may give, as agents give them.
    names: Vec<String>,
    /// Whether the server takes arguments that it does not name.
    open: bool,
}

/// A tool that the owner names and that is not offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    /// The server's own name of it.
    pub theirs: String,
    /// The name that agents would see.
    pub name: String,
    /// Why.
    pub why: NotOffered,
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "`{}` is not offered: {}",
            text::line(&self.theirs, 80),
            self.why.reason
        )
    }
}

/// Why a tool is not offered, with the next step.
fn because(reason: impl Into<String>, hint: &'static str) -> NotOffered {
    NotOffered {
        reason: reason.into(),
        hint,
    }
}

const ONLY_READING: &str =
    "only tools that read are offered, whatever config.toml says; take it out of `tools` there";
const UNANNOTATED: &str = "with `trust_unannotated = true` under the server's `[upstream]` table in config.toml it is offered all the same";
const NO_SUCH_TOOL: &str = "correct its name under `tools` in config.toml";
const BAD_SCHEMA: &str =
    "`input_schema` in its table in config.toml declares one that is listed instead";
const BAD_TABLE: &str = "correct its table under `tools` in config.toml";

/// The tools that are offered of those that a server told, and those that the owner names and that are not.
pub fn offered(upstream: &Upstream, told: &[Value]) -> (Vec<Offered>, Vec<Missing>) {
    let (mut tools, mut missing) = (Vec::new(), Vec::new());
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
            Err(why) => missing.push(Missing {
                theirs: theirs.clone(),
                name: table.name.clone(),
                why,
            }),
        }
    }
    (tools, missing)
}

/// The tools that are listed while the server is away: those whose schema the owner declares, but for those that were not
/// offered when it was last there.
pub fn declared(upstream: &Upstream, missing: &[Missing]) -> Vec<Offered> {
    let there = upstream
        .tools
        .iter()
        .filter(|(theirs, _)| !missing.iter().any(|missing| missing.theirs == *theirs));
    there
        .filter_map(|(theirs, table)| {
            let schema = table.input_schema.clone()?;
            Some(with_schema(upstream, theirs, table, schema, &Value::Null))
        })
        .collect()
}

/// A tool whose schema the owner declares: listed as it is, and the same whatever the server says.
fn with_schema(
    upstream: &Upstream,
    theirs: &str,
    table: &UpstreamTool,
    schema: Map<String, Value>,
    told: &Value,
) -> Offered {
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = properties
        .into_iter()
        .flat_map(Map::keys)
        .cloned()
        .collect();
    let open = is_open(&schema);
    let mut shown = ToolAnnotations::new();
    // No other is called; where the owner trusts those that say nothing, nothing is known.
    shown.read_only_hint = (!upstream.trust_unannotated).then_some(true);
    let mut listed = Tool::new(
        table.name.clone(),
        description(upstream, table, told),
        std::sync::Arc::new(schema),
    );
    listed.annotations = Some(shown);
    Offered {
        theirs: theirs.to_owned(),
        table: table.clone(),
        listed,
        names,
        open,
    }
}

/// What agents read about a tool: the owner's words, or the server's with their origin.
fn description(upstream: &Upstream, table: &UpstreamTool, told: &Value) -> String {
    if let Some(own) = &table.description {
        return own.clone();
    }
    let theirs = told
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let theirs = text::line(theirs, LONGEST_DESCRIPTION);
    format!("From the upstream server {}: {theirs}", upstream.name)
        .trim_end_matches([':', ' '])
        .to_owned()
}

fn one(
    upstream: &Upstream,
    theirs: &str,
    table: &UpstreamTool,
    told: &Value,
) -> Result<Offered, NotOffered> {
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
        return Err(because("its schema is no object", BAD_SCHEMA));
    };
    let mut schema = schema.clone();
    let is_long = Value::Object(schema.clone()).to_string().len() > LONGEST;
    if schema.get("type").and_then(Value::as_str) != Some("object")
        || depth(told.get("inputSchema").unwrap_or(&Value::Null), 0) > DEEPEST
    {
        return Err(because("its schema is not that of an object", BAD_SCHEMA));
    }
    if is_long {
        return Err(because(
            format!("its schema is longer than {LONGEST} bytes"),
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
                "the properties of its schema are no schemas",
                BAD_SCHEMA,
            ));
        }
    };
    let mut required: Vec<String> = match schema.remove("required") {
        None => Vec::new(),
        Some(required) => serde_json::from_value(required)
            .map_err(|_| because("`required` of its schema is no list of names", BAD_SCHEMA))?,
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
                "`{what}` names `{}`, which is none of its arguments{near}",
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
    Ok(Offered {
        theirs: theirs.to_owned(),
        table: table.clone(),
        listed,
        names,
        open,
    })
}

/// Cleans the texts of a schema that are for readers.
fn make_safe(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(told)
                        if ["description", "title", "$comment"].contains(&key.as_str()) =>
                    {
                        *told = text::line(told, LONGEST_DESCRIPTION);
                    }
                    _ => make_safe(value),
                }
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(make_safe),
        _ => {}
    }
}

impl Offered {
    /// The arguments as the server takes them.
    ///
    /// # Errors
    /// The body of the error where one is none of its arguments.
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
            // The server's own name of an argument that has another one here, or a fixed value, is no argument.
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
                    message: format!("`{argument}` is no argument of {}", self.table.name),
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
