//! The schemas of the four tools for listing: the generated ones without parts that cost tokens and
//! add nothing (nulls, references, formats). The complete ones are in `schemas/`.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::Tool;
use ack_api::{
    ContextRequest, ContextResponse, GetRequest, GetResponse, ListScopesRequest,
    ListScopesResponse, QueryRequest, QueryResponse,
};

/// The result fields that a listed schema names: those of a concise result.
const RESULT_FIELDS: [&str; 8] =
    ["id", "title", "facts", "concepts", "project", "scope", "status", "type"];

/// The arguments of a tool. Built once, because every call reads them.
pub(super) fn properties(tool: Tool) -> &'static Map<String, Value> {
    static KNOWN: [OnceLock<Map<String, Value>>; 4] = [const { OnceLock::new() }; 4];
    let [context, get, scopes, query] = &KNOWN;
    match tool {
        Tool::GetContext => context.get_or_init(compact_properties::<ContextRequest>),
        Tool::GetMemory => get.get_or_init(compact_properties::<GetRequest>),
        Tool::ListScopes => scopes.get_or_init(compact_properties::<ListScopesRequest>),
        Tool::QueryMemories => query.get_or_init(compact_properties::<QueryRequest>),
    }
}

/// The schema of a tool's answer: the lists and numbers that are always present, and on request the
/// fields of a result, which only Codex shows its model.
pub fn output(tool: Tool, with_results: bool) -> Map<String, Value> {
    let schema = match tool {
        Tool::GetContext => inline_schema::<ContextResponse>(),
        Tool::GetMemory => inline_schema::<GetResponse>(),
        Tool::ListScopes => inline_schema::<ListScopesResponse>(),
        Tool::QueryMemories => inline_schema::<QueryResponse>(),
    };
    let mut properties = Map::new();
    for name in entries(&schema, "required").filter_map(Value::as_str) {
        let property = schema.pointer(&format!("/properties/{name}")).unwrap_or(&Value::Null);
        let Some(kind) = property.get("type").filter(|kind| **kind != json!("object")) else {
            continue;
        };
        let mut listed = Map::from_iter([("type".to_owned(), kind.clone())]);
        if with_results && name == "results" {
            let items = json!({ "type": "object", "properties": result_fields(property) });
            listed.insert("items".to_owned(), items);
        }
        properties.insert(name.to_owned(), listed.into());
    }
    let mut root = Map::from_iter([("type".to_owned(), json!("object"))]);
    if !properties.is_empty() {
        root.insert("properties".to_owned(), properties.into());
    }
    root
}

fn result_fields(results: &Value) -> Map<String, Value> {
    let field = |name: &str| {
        let property = results.pointer(&format!("/items/properties/{name}"));
        let compact = compact_property(property.unwrap_or(&Value::Null));
        (name.to_owned(), json!({ "type": compact.get("type") }))
    };
    RESULT_FIELDS.into_iter().map(field).collect()
}

fn compact_properties<Q: JsonSchema>() -> Map<String, Value> {
    let schema = inline_schema::<Q>();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, property)| (name.clone(), compact_property(property).into())).collect()
}

fn compact_property(property: &Value) -> Map<String, Value> {
    let mut small = Map::new();
    let options = entries(property, "anyOf");
    let options = options.filter(|option| option.get("type") != Some(&json!("null")));
    for schema in std::iter::once(property).chain(options) {
        let listed = entries(schema, "oneOf").filter_map(|option| option.get("const"));
        let plain = entries(schema, "enum").filter(|word| !word.is_null());
        let words: Vec<&Value> = listed.chain(plain).collect();
        if !words.is_empty() {
            small.insert("enum".to_owned(), json!(words));
        }
        for key in ["type", "items", "minimum", "maximum", "maxItems"] {
            let value = match schema.get(key) {
                None => continue,
                Some(Value::Array(types)) => {
                    let kind = types.iter().find(|kind| **kind != json!("null"));
                    kind.cloned().unwrap_or_default()
                }
                Some(item @ Value::Object(_)) => {
                    let mut item = compact_property(item);
                    item.remove("description");
                    item.into()
                }
                Some(other) => other.clone(),
            };
            small.insert(key.to_owned(), value);
        }
    }
    if small.contains_key("enum") {
        small.insert("type".to_owned(), json!("string"));
    }
    if let Some(description) = property.get("description") {
        small.insert("description".to_owned(), description.clone());
    }
    small
}

fn entries<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn inline_schema<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
