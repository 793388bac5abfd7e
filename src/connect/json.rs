//! Parts in a JSON file. The text is changed where a part stands and nowhere else: order, comments, indentation and trailing
//! commas stay.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

use super::{Part, is_ours};

/// JSON as clients read it, comments and trailing commas allowed.
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

/// Puts parts into a text. What stands there of ours already is replaced.
///
/// # Errors
/// Why the text cannot be changed: it is no JSON, or something else stands where a part belongs.
pub fn put(text: &str, parts: &[Part]) -> Result<String, String> {
    let root = parse(text)?;
    let top = top(&root)?;
    for part in parts {
        match part {
            Part::Member { path, name, value } => {
                let object = object(&top, path)?;
                once(&object, name)?;
                match object.get(name) {
                    Some(known) if known.to_serde_value().as_ref() == Some(value) => {}
                    Some(known) => known.set_value(input(value)),
                    None => {
                        object.append(name, input(value));
                    }
                }
            }
            Part::Entry { path, value } => {
                let array = array(&top, path)?;
                let mut kept = false;
                for entry in array.elements() {
                    let known = entry.to_serde_value().unwrap_or_default();
                    if known == *value && !kept {
                        kept = true;
                    } else if is_ours(&known) {
                        entry.remove();
                    }
                }
                if !kept {
                    array.ensure_multiline();
                    array.append(input(value));
                }
            }
            Part::Needed { name, value } => {
                once(&top, name)?;
                if top.get(name).is_none() {
                    top.append(name, input(value));
                }
            }
        }
    }
    Ok(root.to_string())
}

/// Takes parts out of a text, whatever their values. With `prune`, objects and arrays that are empty afterwards go too.
///
/// # Errors
/// As [`put`].
pub fn take(text: &str, parts: &[Part], prune: bool) -> Result<String, String> {
    let root = parse(text)?;
    let top = top(&root)?;
    for part in parts {
        match part {
            Part::Member { path, name, .. } => {
                let Some(object) = find(&top, path)?.and_then(|node| node.as_object()) else {
                    continue;
                };
                once(&object, name)?;
                if let Some(known) = object.get(name) {
                    known.remove();
                }
                if prune {
                    clear(&top, path);
                }
            }
            Part::Entry { path, .. } => {
                let Some(array) = find(&top, path)?.and_then(|node| node.as_array()) else {
                    continue;
                };
                for entry in array.elements() {
                    if entry.to_serde_value().as_ref().is_some_and(is_ours) {
                        entry.remove();
                    }
                }
                if prune {
                    clear(&top, path);
                }
            }
            Part::Needed { .. } => {}
        }
    }
    for part in parts {
        // Others may need it as long as anything else is there.
        if let Part::Needed { name, value } = part
            && prune
            && top.properties().len() == 1
            && let Some(known) = top.get(name)
            && known.to_serde_value().as_ref() == Some(value)
        {
            known.remove();
        }
    }
    Ok(root.to_string())
}

/// The value of a text; `None` where it is none.
pub fn value(text: &str) -> Option<Value> {
    parse(text).ok()?.to_serde_value()
}

/// Whether a text holds an empty object and nothing a person wrote.
pub fn is_empty(text: &str) -> bool {
    text.chars().filter(|c| !c.is_whitespace()).eq("{}".chars())
}

fn parse(text: &str) -> Result<CstRootNode, String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    CstRootNode::parse(text, &OPTIONS).map_err(|error| error.to_string())
}

fn top(root: &CstRootNode) -> Result<CstObject, String> {
    root.object_value().ok_or_else(|| "it holds no object".to_owned())
}

/// The object at a path, made where it is not there.
fn object(top: &CstObject, path: &[&str]) -> Result<CstObject, String> {
    let mut object = top.clone();
    for key in path {
        once(&object, key)?;
        object = object
            .object_value_or_create(key)
            .ok_or_else(|| format!("`{}` is no object", path.join(".")))?;
    }
    Ok(object)
}

/// The array at a path, made where it is not there.
fn array(top: &CstObject, path: &[&str]) -> Result<CstArray, String> {
    let Some((last, before)) = path.split_last() else {
        return Err("it has no name".to_owned());
    };
    let object = object(top, before)?;
    once(&object, last)?;
    object
        .array_value_or_create(last)
        .ok_or_else(|| format!("`{}` is no list", path.join(".")))
}

/// What stands at a path, if anything does.
fn find(top: &CstObject, path: &[&str]) -> Result<Option<jsonc_parser::cst::CstNode>, String> {
    let Some((last, before)) = path.split_last() else {
        return Ok(None);
    };
    let mut object = top.clone();
    for key in before {
        once(&object, key)?;
        let Some(inner) = object.object_value(key) else { return Ok(None) };
        object = inner;
    }
    once(&object, last)?;
    Ok(object.get(last).and_then(|property| property.value()))
}

/// Removes what is empty at a path and above it, innermost first.
fn clear(top: &CstObject, path: &[&str]) {
    for length in (1..=path.len()).rev() {
        let path = path.get(..length).unwrap_or_default();
        let Ok(Some(node)) = find(top, path) else { continue };
        let empty = node.to_serde_value().is_some_and(|value| match value {
            Value::Object(members) => members.is_empty(),
            Value::Array(entries) => entries.is_empty(),
            _ => false,
        });
        // A comment inside was written by somebody.
        if !empty || node.to_string().contains("//") || node.to_string().contains("/*") {
            return;
        }
        if let Some((last, before)) = path.split_last() {
            let object = before.iter().try_fold(top.clone(), |object, key| object.object_value(key));
            if let Some(property) = object.and_then(|object| object.get(last)) {
                property.remove();
            }
        }
    }
}

/// Refuses a key that stands twice in an object: programs differ in which one they take.
fn once(object: &CstObject, name: &str) -> Result<(), String> {
    let same = object
        .properties()
        .into_iter()
        .filter(|property| property.decoded_name().as_deref() == Some(name));
    if same.count() > 1 {
        return Err(format!("the key `{name}` stands there twice"));
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
        Value::Object(members) => CstInputValue::Object(members.iter().map(|(key, value)| (key.clone(), input(value))).collect()),
    }
}
