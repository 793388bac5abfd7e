//! Rewrites a TOML file. The order, comments and spacing of everything that does not differ stay.

use serde::Serialize as _;
use serde_json::Value;
use toml_edit::ser::ValueSerializer;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value as TomlValue};

use super::Members;

pub fn read(text: &str) -> Result<Value, String> {
    parse(text)?;
    ::toml::from_str(text).map_err(|error| error.to_string())
}

pub fn rewrite(text: &str, old: &Members, new: &Members) -> Result<String, String> {
    let mut document = parse(text)?;
    update(document.as_table_mut(), old, new);
    let mut after = document.to_string();
    // A comment above a table goes with it. A person wrote it.
    for line in text.lines().filter(|line| line.trim_start().starts_with('#')) {
        if !after.contains(line) {
            after += &format!("{line}\n");
        }
    }
    Ok(after)
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        let what = error.message().lines().next().unwrap_or_default();
        format!("it is not valid TOML (line {line}: {what})")
    })
}

fn update(table: &mut dyn TableLike, old: &Members, new: &Members) {
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        table.remove(key);
    }
    for (key, value) in new.iter().filter(|(key, value)| old.get(*key) != Some(*value)) {
        let Some(existing) = table.get_mut(key) else {
            table.insert(key, item(value));
            continue;
        };
        match (old.get(key), value, existing.as_table_like_mut()) {
            (Some(Value::Object(old)), Value::Object(new), Some(inner)) => update(inner, old, new),
            _ => {
                // Keep a comment after the value.
                let decor = existing.as_value().map(|value| value.decor().clone());
                *existing = item(value);
                if let (Some(decor), Some(value)) = (decor, existing.as_value_mut()) {
                    *value.decor_mut() = decor;
                }
            }
        }
    }
}

/// A new value. An object is a table with a heading of its own, unless it only holds tables.
fn item(value: &Value) -> Item {
    let Value::Object(members) = value else {
        return Item::Value(inline(value));
    };
    let mut table = Table::new();
    table.set_implicit(members.values().all(Value::is_object));
    for (key, member) in members {
        // What is inside of an entry is short.
        let is_section = table.is_implicit();
        let member = if is_section { item(member) } else { Item::Value(inline(member)) };
        table.insert(key, member);
    }
    Item::Table(table)
}

fn inline(value: &Value) -> TomlValue {
    // TOML has nothing for null.
    value.serialize(ValueSerializer::new()).unwrap_or_else(|_| "".into())
}
