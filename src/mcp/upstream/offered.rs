//! A tool of an upstream server as it is offered: its schema and description made safe for the clients that list it beside
//! ours, and the arguments of a call checked by name.
//!
//! What one server declares must not spoil the list for all: hosts refuse a whole list over one schema that they cannot
//! compile, so a schema that is no object with properties keeps its tool out, combinators at its root are left off, and schemas
//! of answers are not passed on.

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::api::ErrorBody;
use crate::memory::nearest;
use crate::text;
use crate::upstream::{Upstream, UpstreamTool};

/// Longest schema of one tool, in bytes.
const LONGEST_SCHEMA: usize = 16 << 10;
/// Longest description, in characters.
const LONGEST_DESCRIPTION: usize = 1_000;
/// Deepest nesting of a schema.
const DEEPEST: usize = 24;

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

/// The tools that are offered of those that a server told, and why others of those that the owner names are not.
pub fn offered(upstream: &Upstream, told: &[Value]) -> (Vec<Offered>, Vec<String>) {
    let (mut tools, mut problems) = (Vec::new(), Vec::new());
    for (theirs, table) in &upstream.tools {
        let found = told.iter().find(|tool| tool.get("name").and_then(Value::as_str) == Some(theirs));
        let tool = match found {
            Some(tool) => one(upstream, theirs, table, tool),
            None => {
                let names = told.iter().filter_map(|tool| tool.get("name")?.as_str());
                let near = nearest(theirs, names, 1);
                let near = near
                    .first()
                    .map_or_else(String::new, |near| format!("; it has `{}`", text::line(near, 80)));
                Err(format!("it has no such tool{near}"))
            }
        };
        match tool {
            Ok(tool) => tools.push(tool),
            Err(reason) => problems.push(format!("`{}` is not offered: {reason}", text::line(theirs, 80))),
        }
    }
    (tools, problems)
}

fn one(upstream: &Upstream, theirs: &str, table: &UpstreamTool, told: &Value) -> Result<Offered, String> {
    let annotations: ToolAnnotations = told
        .get("annotations")
        .and_then(|annotations| serde_json::from_value(annotations.clone()).ok())
        .unwrap_or_default();
    match annotations.read_only_hint {
        _ if annotations.destructive_hint == Some(true) => return Err("it says that it is destructive".to_owned()),
        Some(true) => {}
        Some(false) => return Err("it says that it does not only read".to_owned()),
        None if upstream.trust_unannotated => {}
        None => return Err("it does not say that it only reads; `trust_unannotated = true` offers it all the same".to_owned()),
    }
    let schema = told
        .get("inputSchema")
        .and_then(Value::as_object)
        .ok_or("its schema is no object")?;
    if schema.get("type").and_then(Value::as_str) != Some("object") || depth(told.get("inputSchema").unwrap_or(&Value::Null), 0) > DEEPEST {
        return Err("its schema is not that of an object".to_owned());
    }
    let mut schema = schema.clone();
    if Value::Object(schema.clone()).to_string().len() > LONGEST_SCHEMA {
        return Err(format!("its schema is longer than {LONGEST_SCHEMA} bytes"));
    }
    for combinator in ["anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$schema", "$id"] {
        schema.remove(combinator);
    }
    let open = match schema.get("additionalProperties") {
        None | Some(Value::Bool(false)) => schema.contains_key("patternProperties"),
        Some(_) => true,
    };
    let mut properties = match schema.remove("properties") {
        None => Map::new(),
        Some(Value::Object(properties)) if properties.values().all(|property| property.is_object() || property.is_boolean()) => properties,
        Some(_) => return Err("the properties of its schema are no schemas".to_owned()),
    };
    let mut required: Vec<String> = match schema.remove("required") {
        None => Vec::new(),
        Some(required) => serde_json::from_value(required).map_err(|_| "`required` of its schema is no list of names")?,
    };
    for (name, what) in table
        .preset
        .keys()
        .map(|name| (name, "preset"))
        .chain(table.arguments.values().map(|name| (name, "arguments")))
    {
        if !open && !properties.contains_key(name) {
            let near = nearest(name, properties.keys().map(String::as_str), 1);
            let near = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(format!(
                "`{what}` names `{}`, which is none of its arguments{near}",
                text::line(name, 80)
            ));
        }
    }
    for name in table.preset.keys() {
        properties.remove(name);
        required.retain(|known| known != name);
    }
    let public = |theirs: &str| {
        let renamed = table.arguments.iter().find(|(_, known)| *known == theirs);
        renamed.map_or(theirs, |(public, _)| public.as_str()).to_owned()
    };
    let count = properties.len();
    let mut properties: Map<String, Value> = properties.into_iter().map(|(name, property)| (public(&name), property)).collect();
    if properties.len() != count {
        return Err("`arguments` gives one of its arguments the name of another".to_owned());
    }
    properties.values_mut().for_each(make_safe);
    schema.values_mut().for_each(make_safe);
    let names = properties.keys().cloned().collect();
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.iter().map(|name| public(name)).collect());
    }
    if !open {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    let description = table.description.as_deref().or_else(|| told.get("description")?.as_str());
    let description = text::line(description.unwrap_or_default(), LONGEST_DESCRIPTION);
    let description = format!("From the upstream server {}: {description}", upstream.name);
    let mut listed = Tool::new(table.name.clone(), description, std::sync::Arc::new(schema));
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

fn depth(value: &Value, at: usize) -> usize {
    if at > DEEPEST {
        return at;
    }
    let deepest = |values: &mut dyn Iterator<Item = &Value>| values.map(|value| depth(value, at + 1)).max().unwrap_or(at);
    match value {
        Value::Array(entries) => deepest(&mut entries.iter()),
        Value::Object(entries) => deepest(&mut entries.values()),
        _ => at,
    }
}

/// Cleans the texts of a schema that are for readers.
fn make_safe(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(told) if ["description", "title", "$comment"].contains(&key.as_str()) => {
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
    pub fn arguments(&self, values: Map<String, Value>) -> Result<Map<String, Value>, Box<ErrorBody>> {
        let mut arguments = Map::new();
        for (name, value) in values {
            let theirs = match self.table.arguments.get(&name) {
                Some(theirs) => theirs.clone(),
                None => name.clone(),
            };
            // The server's own name of an argument that has another one here, or a fixed value, is no argument.
            let hidden = self.table.preset.contains_key(&theirs)
                || !self.table.arguments.contains_key(&name) && self.table.arguments.values().any(|renamed| *renamed == name);
            if hidden || !self.open && !self.names.contains(&name) {
                let argument = text::line(&name, 100);
                return Err(Box::new(ErrorBody {
                    code: "unknown_argument".to_owned(),
                    message: format!("`{argument}` is no argument of {}", self.table.name),
                    hint: None,
                    nearest: nearest(&argument, self.names.iter().map(String::as_str), 2),
                    argument: Some(argument),
                    value: None,
                    allowed: self.names.clone(),
                    example: None,
                }));
            }
            arguments.insert(theirs, value);
        }
        for (name, value) in &self.table.preset {
            arguments.insert(name.clone(), value.clone());
        }
        Ok(arguments)
    }
}
