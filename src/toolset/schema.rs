//! Compact versions of the generated tool schemas, for listing.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// The schema of a tool's arguments for listing: the generated one without parts that cost tokens
/// and add nothing (nulls, references, formats). It never has a root-level `anyOf`, which hosts
/// reject.
pub fn input_schema<Q: JsonSchema>() -> Map<String, Value> {
    let schema = inline_schema::<Q>();
    let mut properties = Map::new();
    for (name, property) in
        schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        properties.insert(name.clone(), compact_property(property));
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), json!("object"));
    root.insert("properties".to_owned(), Value::Object(properties));
    root.insert("additionalProperties".to_owned(), json!(false));
    root
}

fn compact_property(property: &Value) -> Value {
    let mut small = Map::new();
    let options: Vec<&Value> = property
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|option| option.get("type") != Some(&json!("null")))
        .collect();
    let words = |schema: &Value| -> Vec<Value> {
        let listed = schema
            .get("oneOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|option| option.get("const").cloned());
        let plain = schema
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|word| !word.is_null())
            .cloned();
        listed.chain(plain).collect()
    };
    for schema in std::iter::once(property).chain(options) {
        let found = words(schema);
        if !found.is_empty() {
            small.insert("enum".to_owned(), Value::Array(found));
        }
        for key in ["type", "items", "minimum", "maximum", "maxItems"] {
            let Some(value) = schema.get(key) else {
                continue;
            };
            let value = match value {
                Value::Array(types) => types
                    .iter()
                    .find(|kind| **kind != json!("null"))
                    .cloned()
                    .unwrap_or(Value::Null),
                Value::Object(_) => {
                    let mut item = compact_property(value);
                    if let Some(item) = item.as_object_mut() {
                        item.remove("description");
                    }
                    item
                }
                other => other.clone(),
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
    Value::Object(small)
}

/// The schema of a tool's answer for listing: the lists and numbers that are always present. The
/// complete schemas are in `schemas/`.
pub fn output_schema<A: JsonSchema>() -> Map<String, Value> {
    let schema = inline_schema::<A>();
    let required = schema.get("required").and_then(Value::as_array);
    let mut properties = Map::new();
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let kind = schema.pointer(&format!("/properties/{name}/type"));
        if let Some(kind) = kind.filter(|kind| **kind != json!("object")) {
            properties.insert(name.to_owned(), json!({ "type": kind }));
        }
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), json!("object"));
    if !properties.is_empty() {
        root.insert("properties".to_owned(), Value::Object(properties));
    }
    root
}

/// A listed schema in which the list `name` also has fields of its entries, with their types, which
/// is what a model needs. Only Codex shows them to its model.
pub fn with_fields<A: JsonSchema>(
    mut schema: Map<String, Value>,
    name: &str,
    fields: &[&str],
) -> Map<String, Value> {
    let whole = inline_schema::<A>();
    let entries = whole.pointer(&format!("/properties/{name}/items/properties"));
    let fields = fields.iter().map(|field| {
        let property = entries.and_then(|entries| entries.get(field));
        let mut kind = property.map(compact_property).unwrap_or_default();
        if let Some(kind) = kind.as_object_mut() {
            kind.retain(|key, _| key == "type");
        }
        ((*field).to_owned(), kind)
    });
    let fields: Map<String, Value> = fields.collect();
    let list = schema
        .get_mut("properties")
        .and_then(|properties| properties.get_mut(name)?.as_object_mut());
    if let Some(list) = list {
        list.insert("items".to_owned(), json!({ "type": "object", "properties": fields }));
    }
    schema
}

fn inline_schema<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
