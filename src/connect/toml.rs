//! Parts in a TOML file. The order, comments and spacing of everything else stay.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value as TomlValue};

use super::{EmptyContainer, Part, members, ours};

/// Adds parts to a text. Replaces our existing entries.
///
/// # Errors
/// Why the text cannot be changed: it is not valid TOML, or something else is where a part belongs.
pub fn add_parts(text: &str, parts: &[Part]) -> Result<String, String> {
    let mut document = parse(text)?;
    for part in parts {
        let Part::Member { path, name, value } = part else {
            return Err("lists are not written to TOML".to_owned());
        };
        let parent = table(document.as_table_mut(), path)?;
        let wanted = entry(value);
        match parent.get_mut(name) {
            Some(known) => {
                let Some(known) = known.as_table_like_mut() else {
                    return Err(format!("`{}.{name}` is not a table", path.join(".")));
                };
                merge(known, &wanted);
            }
            None => {
                parent.insert(name, Item::Table(wanted));
            }
        }
    }
    Ok(document.to_string())
}

/// Sets the keys that start the server, removes those that reach a server over HTTP, and adds the
/// rest if missing.
fn merge(known: &mut dyn TableLike, wanted: &Table) {
    for key in ours::ADDRESS_KEYS {
        known.remove(key);
    }
    for (key, item) in wanted {
        let text = |item: &Item| item.to_string().trim().to_owned();
        match known.get_mut(key) {
            Some(existing) if !ours::START_KEYS.contains(&key) || text(existing) == text(item) => {}
            Some(existing) => {
                // Keep a comment after the value.
                let decor = existing.as_value().map(|value| value.decor().clone());
                *existing = item.clone();
                if let (Some(decor), Some(value)) = (decor, existing.as_value_mut()) {
                    *value.decor_mut() = decor;
                }
            }
            None => {
                known.insert(key, item.clone());
            }
        }
    }
}

/// Removes parts from a text, and tables that end up empty as `emptied` says.
///
/// # Errors
/// As [`add_parts`].
pub fn remove_parts(
    text: &str,
    parts: &[Part],
    emptied: EmptyContainer<'_>,
) -> Result<String, String> {
    let mut document = parse(text)?;
    let mut was_removed = false;
    for part in parts {
        let Part::Member { path, name, .. } = part else {
            continue;
        };
        if !has_path(document.as_table(), path) {
            continue;
        }
        let parent = table(document.as_table_mut(), path)?;
        was_removed |= parent.remove(name).is_some();
        let empty = parent.is_empty();
        if let ([only], true) = (path.as_slice(), empty && emptied.removes(path)) {
            was_removed |= document.as_table_mut().remove(only).is_some();
        }
    }
    // Serializing an unchanged text may add a line end.
    Ok(if was_removed {
        document.to_string()
    } else {
        text.to_owned()
    })
}

/// The value of a text as JSON, or `None` if it has none.
pub fn value_of(text: &str) -> Option<Value> {
    ::toml::from_str(text).ok()
}

/// Why a text is not valid TOML, if it is not.
pub fn problem(text: &str) -> Option<String> {
    parse(text).err()
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        let what = error
            .message()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        format!("it is not valid TOML (line {line}: {what})")
    })
}

fn has_path(top: &Table, path: &[&str]) -> bool {
    let found = path.iter().try_fold(top as &dyn TableLike, |table, key| {
        table.get(key)?.as_table_like()
    });
    found.is_some()
}

/// The table at a path. Creates it if it is missing.
fn table<'a>(top: &'a mut Table, path: &[&str]) -> Result<&'a mut dyn TableLike, String> {
    let mut table: &mut dyn TableLike = top;
    for key in path {
        if table.get(key).is_none() {
            let mut new_table = Table::new();
            new_table.set_implicit(true);
            table.insert(key, Item::Table(new_table));
        }
        table = table
            .get_mut(key)
            .and_then(Item::as_table_like_mut)
            .ok_or_else(|| format!("`{}` is not a table", path.join(".")))?;
    }
    Ok(table)
}

fn entry(wanted: &Value) -> Table {
    let mut table = Table::new();
    for (key, member) in members(wanted) {
        table.insert(&key, Item::Value(item(&member)));
    }
    table
}

fn item(value: &Value) -> TomlValue {
    match value {
        Value::Array(entries) => entries.iter().map(item).collect::<Array>().into(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.as_str(), item(value)))
            .collect::<InlineTable>()
            .into(),
        Value::String(text) => text.as_str().into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => number.to_string().into(),
        },
        Value::Null => "".into(),
    }
}
