//! What goes into the settings of a client and out of them again, whatever format the file has.

use std::borrow::Borrow;
use std::path::PathBuf;

use serde_json::Value;

use super::{Members, Part, members, ours};

/// Adds parts to settings. Our existing entries are changed in place.
pub fn add(settings: &mut Value, parts: &[Part]) -> Result<(), String> {
    let roots = ours::roots(settings);
    for part in parts {
        match part {
            Part::Member { path, name, value } => {
                let object = object(settings, path)?;
                match object.get_mut(*name) {
                    Some(Value::Object(known)) => merge(known, members(value)),
                    Some(_) => return Err(format!("`{}.{name}` is not an object", path.join("."))),
                    None => drop(object.insert((*name).to_owned(), value.clone())),
                }
            }
            Part::Entry { path, value } => put_hook(list(settings, path)?, value),
            Part::Words { path, words } => {
                let list = list(settings, path)?;
                let is_broader =
                    |known: &str| ours::is_server(known) && !words.iter().any(|word| word == known);
                list.retain(|known| !known.as_str().is_some_and(is_broader));
                add_words(list, words);
            }
            Part::Rule { path, rule, former } => {
                if let Some(Value::Array(list)) = at(settings, path) {
                    list.retain(|known| {
                        known.as_str() == rule.as_deref()
                            || !is_our_rule(known, former.iter(), &roots)
                    });
                }
                if let Some(rule) = rule {
                    add_words(list(settings, path)?, std::slice::from_ref(rule));
                }
            }
            Part::Required { name, value } => {
                let top = object(settings, &[] as &[&str])?;
                top.entry(*name).or_insert_with(|| value.clone());
            }
            Part::Switch(switch) => switch.turn_off(settings),
        }
    }
    Ok(())
}

/// Removes parts from settings, whatever their values. What was at their places `before` comes back.
pub fn remove(settings: &mut Value, parts: &[Part], before: Option<&Value>) {
    let roots = ours::roots(settings);
    // The last first: each knows the settings before it.
    for part in parts.iter().rev() {
        if let Some(switch) = part.switch() {
            switch.turn_on(settings);
        }
    }
    for part in parts {
        let Some(path) = part.path() else {
            continue;
        };
        let earlier = before.and_then(|before| inside(before, path));
        let was_there = |word: &Value| {
            earlier.and_then(Value::as_array).is_some_and(|list| list.contains(word))
        };
        match (part, at(settings, path)) {
            (Part::Member { name, .. }, Some(Value::Object(object))) => {
                let earlier = earlier.and_then(|earlier| earlier.get(*name));
                match (object.get_mut(*name), earlier.filter(|entry| !ours::is_entry(entry))) {
                    (Some(entry), Some(earlier)) => *entry = earlier.clone(),
                    _ => drop(object.shift_remove(*name)),
                }
            }
            (Part::Entry { .. }, Some(Value::Array(list))) => {
                retain_hooks(list, |handler| !ours::is_hook(handler));
            }
            (Part::Words { .. }, Some(Value::Array(list))) => {
                list.retain(|word| was_there(word) || !word.as_str().is_some_and(ours::is_word));
            }
            (Part::Rule { rule, former, .. }, Some(Value::Array(list))) => {
                let rules = rule.iter().chain(former);
                list.retain(|word| was_there(word) || !is_our_rule(word, rules.clone(), &roots));
            }
            _ => {}
        }
    }
}

fn is_our_rule<'a>(
    word: &Value,
    mut rules: impl Iterator<Item = &'a String>,
    roots: &[PathBuf],
) -> bool {
    let Some(word) = word.as_str() else {
        return false;
    };
    rules.any(|rule| rule == word) || ours::is_write_rule(word, roots)
}

/// Removes objects and lists around parts that are empty, and were not there `before`.
pub fn prune(settings: &mut Value, parts: &[Part], before: &Value) {
    for path in parts.iter().filter_map(Part::path) {
        prune_path(settings, path, before);
    }
    for part in parts {
        // Others may need it as long as the file contains anything else.
        if let (Part::Required { name, value }, Value::Object(top)) = (part, &mut *settings)
            && before.get(*name).is_none()
            && top.len() == 1
            && top.get(*name) == Some(value)
        {
            top.clear();
        }
    }
}

/// Removes the container at a path if it is empty, and then those above it, as long as they are
/// empty.
fn prune_path(settings: &mut Value, path: &[&str], before: &Value) {
    let Some((last, above)) = path.split_last() else {
        return;
    };
    let is_empty = inside(settings, path).is_some_and(is_empty_container);
    match inside(before, path) {
        _ if !is_empty => return,
        Some(Value::Null) => {
            at(settings, path).into_iter().for_each(|value| *value = Value::Null);
            return;
        }
        Some(_) => return,
        None => {}
    }
    if let Some(Value::Object(object)) = at(settings, above) {
        object.shift_remove(*last);
    }
    prune_path(settings, above, before);
}

pub fn is_empty_container(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        _ => false,
    }
}

pub fn inside<'a>(settings: &'a Value, path: &[impl AsRef<str>]) -> Option<&'a Value> {
    path.iter().try_fold(settings, |value, key| value.get(key.as_ref()))
}

pub fn at<'a>(settings: &'a mut Value, path: &[impl AsRef<str>]) -> Option<&'a mut Value> {
    path.iter().try_fold(settings, |value, key| value.get_mut(key.as_ref()))
}

pub fn object<'a>(
    settings: &'a mut Value,
    path: &[impl Borrow<str>],
) -> Result<&'a mut Members, String> {
    let other = || format!("`{}` is not an object", path.join("."));
    let mut value = settings;
    for key in path {
        value = value.as_object_mut().ok_or_else(other)?.entry(key.borrow()).or_insert(Value::Null);
        // A section without entries.
        if value.is_null() {
            *value = Value::Object(Members::new());
        }
    }
    value.as_object_mut().ok_or_else(other)
}

fn list<'a>(settings: &'a mut Value, path: &[&str]) -> Result<&'a mut Vec<Value>, String> {
    let (last, above) = path.split_last().ok_or("it has no name")?;
    let list = object(settings, above)?.entry(*last).or_insert(Value::Null);
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }
    list.as_array_mut().ok_or_else(|| format!("`{}` is not a list", path.join(".")))
}

/// Sets the keys that start the server, removes those that reach a server over HTTP, and adds the
/// rest if missing.
fn merge(known: &mut Members, wanted: Members) {
    let other_transport = |kind: &Value| !["stdio", "local"].contains(&kind.as_str().unwrap_or(""));
    known.retain(|key, value| match key.as_str() {
        // Old arguments, if the wanted command includes its own.
        "args" => wanted.contains_key("args"),
        "type" => wanted.contains_key("type") || !other_transport(value),
        key => !ours::HTTP_KEYS.split(' ').any(|known| known == key),
    });
    for (key, value) in wanted {
        if ours::START_KEYS.contains(&key.as_str()) || !known.contains_key(&key) {
            known.insert(key, value);
        }
    }
}

/// Adds a hook to a list: replaces our first one, or appends. Removes any further ones of ours. Of
/// an existing one, only what it starts changes: Codex asks for trust again after any change.
fn put_hook(list: &mut Vec<Value>, value: &Value) {
    let inner = value.get("hooks").and_then(|inner| inner.get(0));
    let mut start = members(inner.unwrap_or(value));
    start.retain(|key, _| ours::START_KEYS.contains(&key.as_str()));
    let mut is_placed = false;
    retain_hooks(list, |handler| {
        if !ours::is_hook(handler) {
            return true;
        }
        let is_first = !std::mem::replace(&mut is_placed, true);
        if let Some(handler) = handler.as_object_mut().filter(|_| is_first) {
            merge(handler, start.clone());
        }
        is_first
    });
    if !is_placed {
        list.push(value.clone());
    }
}

/// Removes hooks from a list, and the entries that call nothing else.
pub fn retain_hooks(list: &mut Vec<Value>, mut stays: impl FnMut(&mut Value) -> bool) {
    list.retain_mut(|entry| match entry.get_mut("hooks").and_then(Value::as_array_mut) {
        Some(handlers) => {
            let before = handlers.len();
            handlers.retain_mut(&mut stays);
            before == 0 || !handlers.is_empty()
        }
        None => stays(entry),
    });
}

fn add_words(list: &mut Vec<Value>, words: &[String]) {
    for word in words {
        if !list.iter().any(|known| known == word) {
            list.push(word.as_str().into());
        }
    }
}
