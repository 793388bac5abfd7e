//! Parts in a JSON file. Only the parts change: order, comments, indentation and trailing commas
//! stay.

use std::path::PathBuf;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

use super::{EmptyContainer, Part, members, ours};

/// JSON as clients read it, with comments and trailing commas.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Adds parts to a text. Our existing entries are changed in place.
///
/// # Errors
/// Why the text cannot be changed: it is not valid JSON, or something else is where a part belongs.
pub fn add_parts(text: &str, parts: &[Part]) -> Result<String, String> {
    let root = parse(text)?;
    let top = top(&root)?;
    let roots = roots(&root);
    for part in parts {
        match part {
            Part::Member { path, name, value } => {
                let object = object(&top, path)?;
                reject_duplicate_key(&object, name)?;
                match object.get(name) {
                    Some(known) => {
                        let known = known.object_value().ok_or_else(|| {
                            format!("`{}.{name}` is not an object", path.join("."))
                        })?;
                        merge(&known, value)?;
                    }
                    None => {
                        object.append(name, input(value));
                    }
                }
            }
            Part::Entry { path, value } => put_hook(&array(&top, path)?, value)?,
            Part::Words { path, words } => {
                let array = array(&top, path)?;
                let broad = |known: &String| ours::is_server(known) && !words.contains(known);
                remove_words(&array, broad);
                add_words(&array, words);
            }
            Part::Rule { path, rule, former } => {
                let is_former =
                    |known: &String| former.contains(known) || ours::is_write_rule(known, &roots);
                if let Some(array) = find(&top, path)?.and_then(|node| node.as_array()) {
                    remove_words(&array, |known| {
                        is_former(known) && Some(known) != rule.as_ref()
                    });
                }
                if let Some(rule) = rule {
                    add_words(&array(&top, path)?, std::slice::from_ref(rule));
                }
            }
            Part::Required { name, value } => {
                reject_duplicate_key(&top, name)?;
                if top.get(name).is_none() {
                    top.append(name, input(value));
                }
            }
        }
    }
    Ok(root.to_string())
}

/// Sets the keys that start the server, removes those that reach a server over HTTP, and adds the
/// rest if missing.
fn merge(known: &CstObject, wanted: &Value) -> Result<(), String> {
    for key in ours::ADDRESS_KEYS {
        if let Some(other) = known.get(key) {
            other.remove();
        }
    }
    let wanted = members(wanted);
    // Old arguments, if the wanted command includes its own.
    if let Some(arguments) = known.get("args").filter(|_| !wanted.contains_key("args")) {
        arguments.remove();
    }
    let other_transport = |kind: &str| !["stdio", "local"].contains(&kind);
    if !wanted.contains_key("type")
        && let Some(kind) = known.get("type")
        && kind
            .to_serde_value()
            .as_ref()
            .and_then(Value::as_str)
            .is_some_and(other_transport)
    {
        kind.remove();
    }
    for (key, value) in &wanted {
        reject_duplicate_key(known, key)?;
        match known.get(key) {
            Some(existing)
                if !ours::START_KEYS.contains(&key.as_str())
                    || existing.to_serde_value().as_ref() == Some(value) => {}
            Some(existing) => existing.set_value(input(value)),
            None => {
                known.append(key, input(value));
            }
        }
    }
    Ok(())
}

/// The objects in a hook entry that run a command: the entry itself, or those in its own list.
fn handlers(entry: &CstNode) -> Vec<CstObject> {
    let Some(entry) = entry.as_object() else {
        return Vec::new();
    };
    match entry.array_value("hooks") {
        Some(inner) => inner
            .elements()
            .iter()
            .filter_map(CstNode::as_object)
            .collect(),
        None => vec![entry],
    }
}

fn is_hook(handler: &CstObject) -> bool {
    handler.to_serde_value().as_ref().is_some_and(ours::is_hook)
}

/// Adds a hook to a list: replaces our first one, or appends. Removes any further ones of ours. Of
/// an existing one, only what it starts changes: Codex asks for trust again after any change.
fn put_hook(array: &CstArray, value: &Value) -> Result<(), String> {
    let inner = value.get("hooks").and_then(|inner| inner.get(0));
    let mut start = members(inner.unwrap_or(value));
    start.retain(|key, _| ours::START_KEYS.contains(&key.as_str()));
    let start = Value::Object(start);
    let mut placed = false;
    for entry in array.elements() {
        for handler in handlers(&entry).iter().filter(|handler| is_hook(handler)) {
            if placed {
                remove_hook(&entry, handler.clone());
            } else {
                merge(handler, &start)?;
                placed = true;
            }
        }
    }
    if !placed {
        array.ensure_multiline();
        array.append(input(value));
    }
    Ok(())
}

/// Removes a hook from its entry, and the entry too if it calls nothing else.
fn remove_hook(entry: &CstNode, handler: CstObject) {
    if handlers(entry).len() > 1 {
        handler.remove();
    } else {
        entry.clone().remove();
    }
}

fn add_words(array: &CstArray, words: &[String]) {
    let known: Vec<Value> = array
        .elements()
        .iter()
        .filter_map(CstNode::to_serde_value)
        .collect();
    for word in words
        .iter()
        .filter(|word| !known.iter().any(|known| known == *word))
    {
        array.append(CstInputValue::String(word.clone()));
    }
}

/// The roots that our hooks name before anything is changed.
fn roots(root: &CstRootNode) -> Vec<PathBuf> {
    ours::roots(&root.to_serde_value().unwrap_or_default())
}

fn remove_words(array: &CstArray, which: impl Fn(&String) -> bool) {
    for element in array.elements() {
        if matches!(element.to_serde_value(), Some(Value::String(word)) if which(&word)) {
            element.remove();
        }
    }
}

/// Removes parts from a text, whatever their values, and objects and arrays that end up empty as
/// `emptied` says.
///
/// # Errors
/// As [`add_parts`].
pub fn remove_parts(
    text: &str,
    parts: &[Part],
    emptied: EmptyContainer<'_>,
) -> Result<String, String> {
    let root = parse(text)?;
    let top = top(&root)?;
    let roots = roots(&root);
    for part in parts {
        let path = match part {
            Part::Member { path, name, .. } => {
                let Some(object) = find(&top, path)?.and_then(|node| node.as_object()) else {
                    continue;
                };
                reject_duplicate_key(&object, name)?;
                if let Some(known) = object.get(name) {
                    known.remove();
                }
                path
            }
            Part::Entry { path, .. } => {
                let Some(array) = find(&top, path)?.and_then(|node| node.as_array()) else {
                    continue;
                };
                for entry in array.elements() {
                    for handler in handlers(&entry).into_iter().filter(is_hook) {
                        remove_hook(&entry, handler);
                    }
                }
                path
            }
            Part::Words { path, .. } => {
                let Some(array) = find(&top, path)?.and_then(|node| node.as_array()) else {
                    continue;
                };
                remove_words(&array, |word| ours::is_word(word));
                path
            }
            Part::Rule { path, rule, former } => {
                let Some(array) = find(&top, path)?.and_then(|node| node.as_array()) else {
                    continue;
                };
                remove_words(&array, |word| {
                    rule.iter().chain(former).any(|rule| rule == word)
                        || ours::is_write_rule(word, &roots)
                });
                path
            }
            Part::Required { .. } => continue,
        };
        clear(&top, path, emptied);
    }
    for part in parts {
        // Others may need it as long as the file contains anything else.
        if let Part::Required { name, value } = part
            && emptied.removes(&[*name])
            && top.properties().len() == 1
            && let Some(known) = top.get(name)
            && known.to_serde_value().as_ref() == Some(value)
        {
            known.remove();
        }
    }
    Ok(root.to_string())
}

/// The value of a text, or `None` if it has none.
pub fn value(text: &str) -> Option<Value> {
    parse(text).ok()?.to_serde_value()
}

/// Why a text is not a JSON object, if it is not.
pub fn problem(text: &str) -> Option<String> {
    parse(text).and_then(|root| top(&root)).err()
}

/// Whether a text holds an empty object and nothing else, not even a comment.
pub fn is_empty(text: &str) -> bool {
    text.chars().filter(|c| !c.is_whitespace()).eq("{}".chars())
}

fn parse(text: &str) -> Result<CstRootNode, String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    CstRootNode::parse(text, &OPTIONS).map_err(|error| {
        format!(
            "it is not valid JSON ({})",
            plain_message(&error.to_string())
        )
    })
}

/// The library's message in lower case: `unterminated object on line 1 column 2`.
fn plain_message(message: &str) -> String {
    let mut letters = message.trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

fn top(root: &CstRootNode) -> Result<CstObject, String> {
    root.object_value()
        .ok_or_else(|| "its content is not a JSON object".to_owned())
}

/// The object at a path. Creates it if it is missing.
fn object(top: &CstObject, path: &[&str]) -> Result<CstObject, String> {
    let mut object = top.clone();
    for key in path {
        reject_duplicate_key(&object, key)?;
        object = object
            .object_value_or_create(key)
            .ok_or_else(|| format!("`{}` is not an object", path.join(".")))?;
    }
    Ok(object)
}

/// The array at a path. Creates it if it is missing.
fn array(top: &CstObject, path: &[&str]) -> Result<CstArray, String> {
    let Some((last, before)) = path.split_last() else {
        return Err("it has no name".to_owned());
    };
    let object = object(top, before)?;
    reject_duplicate_key(&object, last)?;
    object
        .array_value_or_create(last)
        .ok_or_else(|| format!("`{}` is not a list", path.join(".")))
}

/// The node at a path, if any.
fn find(top: &CstObject, path: &[&str]) -> Result<Option<CstNode>, String> {
    let Some((last, before)) = path.split_last() else {
        return Ok(None);
    };
    let mut object = top.clone();
    for key in before {
        reject_duplicate_key(&object, key)?;
        let Some(inner) = object.object_value(key) else {
            return Ok(None);
        };
        object = inner;
    }
    reject_duplicate_key(&object, last)?;
    Ok(object.get(last).and_then(|property| property.value()))
}

/// Removes the container at a path if it is empty, and then those above it, as long as they are
/// empty.
fn clear(top: &CstObject, path: &[&str], emptied: EmptyContainer<'_>) {
    for length in (1..=path.len()).rev() {
        let path = path.get(..length).unwrap_or_default();
        let Ok(Some(node)) = find(top, path) else {
            continue;
        };
        let empty = node.to_serde_value().is_some_and(|value| match value {
            Value::Object(members) => members.is_empty(),
            Value::Array(entries) => entries.is_empty(),
            _ => false,
        });
        // Keep it if it contains a comment, which a person wrote.
        if !emptied.removes(path)
            || !empty
            || node.to_string().contains("//")
            || node.to_string().contains("/*")
        {
            return;
        }
        if let Some((last, before)) = path.split_last() {
            let object = before
                .iter()
                .try_fold(top.clone(), |object, key| object.object_value(key));
            if let Some(property) = object.and_then(|object| object.get(last)) {
                property.remove();
            }
        }
    }
}

/// Rejects a key that occurs twice in an object, because programs differ in which one they use.
fn reject_duplicate_key(object: &CstObject, name: &str) -> Result<(), String> {
    let same = object
        .properties()
        .into_iter()
        .filter(|property| property.decoded_name().as_deref() == Some(name));
    if same.count() > 1 {
        return Err(format!("the key `{name}` occurs twice"));
    }
    Ok(())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(entries) => CstInputValue::Array(entries.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members
                .iter()
                .map(|(key, value)| (key.clone(), input(value)))
                .collect(),
        ),
    }
}
