//! Rewrites a JSON file. Only what differs changes: order, comments, indentation and trailing commas
//! stay.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;
use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::Members;

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

pub fn read(text: &str) -> Result<Value, String> {
    let root = parse(text)?;
    top(&root)?;
    Ok(root.to_serde_value().unwrap_or_default())
}

/// Changes the settings of a text from `old` to `new`.
///
/// # Errors
/// A key that would change occurs twice, and programs differ in which one they use.
pub fn rewrite(text: &str, old: &Members, new: &Members) -> Result<String, String> {
    let root = parse(text)?;
    update(&top(&root)?, old, new)?;
    Ok(root.to_string())
}

/// Whether a text holds an empty object and nothing else, not even a comment.
pub fn is_empty(text: &str) -> bool {
    text.chars().filter(|c| !c.is_whitespace()).eq("{}".chars())
}

fn parse(text: &str) -> Result<CstRootNode, String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    CstRootNode::parse(text, &OPTIONS)
        .map_err(|error| format!("it is not valid JSON ({})", plain_message(&error.to_string())))
}

/// The library's message in lower case: `unterminated object on line 1 column 2`.
fn plain_message(message: &str) -> String {
    let mut letters = message.trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

fn top(root: &CstRootNode) -> Result<CstObject, String> {
    root.object_value().ok_or_else(|| "its content is not a JSON object".to_owned())
}

fn update(object: &CstObject, old: &Members, new: &Members) -> Result<(), String> {
    for (key, value) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
        let Some(property) = property(object, key)? else {
            continue;
        };
        // What is left of an empty container may be a comment, which a person wrote.
        let text = property.to_string();
        if !(is_hollow(value) && (text.contains("//") || text.contains("/*"))) {
            property.remove();
        }
    }
    for (key, value) in new.iter().filter(|(key, value)| old.get(*key) != Some(*value)) {
        let Some(property) = property(object, key)? else {
            object.append(key, input(value));
            continue;
        };
        let (object, array) = (property.object_value(), property.array_value());
        match (old.get(key), value, object, array) {
            (Some(Value::Object(old)), Value::Object(new), Some(object), _) => {
                update(&object, old, new)?;
            }
            (Some(Value::Array(old)), Value::Array(new), _, Some(array)) => {
                update_array(&array, old, new)?;
            }
            _ => property.set_value(input(value)),
        }
    }
    Ok(())
}

fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(is_hollow),
        Value::Array(entries) => entries.iter().all(is_hollow),
        _ => false,
    }
}

/// Changes the elements that differ, from the last one on, so that earlier positions stay valid.
fn update_array(array: &CstArray, old: &[Value], new: &[Value]) -> Result<(), String> {
    let texts = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>();
    let elements = array.elements();
    let changes = capture_diff_slices(Algorithm::Myers, &texts(old), &texts(new));
    for change in changes.iter().rev() {
        if change.tag() == DiffTag::Equal {
            continue;
        }
        let range = change.old_range();
        let known = elements.get(range.clone()).unwrap_or_default();
        let before = old.get(range.clone()).unwrap_or_default();
        let after = new.get(change.new_range()).unwrap_or_default();
        for (at, value) in after.iter().enumerate().skip(known.len()) {
            if value.is_object() {
                array.ensure_multiline();
            }
            // Ours are added at the end; what was switched off comes back where it was.
            if range.end == elements.len() {
                array.append(input(value));
            } else {
                array.insert(range.start + at, input(value));
            }
        }
        for (at, element) in known.iter().enumerate().rev() {
            match (before.get(at), after.get(at), element.as_object()) {
                (Some(Value::Object(old)), Some(Value::Object(new)), Some(object)) => {
                    update(&object, old, new)?;
                }
                (_, value, _) => {
                    if let Some(value) = value {
                        array.insert(range.start + at + 1, input(value));
                    }
                    element.clone().remove();
                }
            }
        }
    }
    Ok(())
}

fn property(object: &CstObject, key: &str) -> Result<Option<CstObjectProp>, String> {
    let is_same = |property: &CstObjectProp| property.decoded_name().as_deref() == Some(key);
    if object.properties().into_iter().filter(is_same).count() > 1 {
        return Err(format!("the key `{key}` occurs twice"));
    }
    Ok(object.get(key))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(entries) => CstInputValue::Array(entries.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}
