//! Reads a settings file. Errors name the line, the key, and the nearest known key.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use ack_api::memory::nearest;
use ack_api::text;
use ack_sys::files;

use super::error::{Part, SettingsError};

/// Keys that no longer exist, by file, and what to do instead.
const REMOVED_KEYS: &str = include_str!("removed_keys.toml");
/// The file of tokens, in the table of removed keys.
pub const TOKENS: &str = "tokens";

pub const MAX_SETTINGS_BYTES: u64 = 1 << 20;

pub fn load_toml<T: serde::de::DeserializeOwned>(
    path: &Path,
    keys: fn() -> Vec<String>,
) -> Result<T, SettingsError> {
    let text = files::read_text(path, MAX_SETTINGS_BYTES)
        .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
    parse_toml(&text, path, keys)
}

pub fn parse_toml<T: serde::de::DeserializeOwned>(
    text: &str,
    path: &Path,
    keys: fn() -> Vec<String>,
) -> Result<T, SettingsError> {
    let read = toml::Deserializer::parse(text).map_err(|error| (None, error)).and_then(|input| {
        serde_path_to_error::deserialize(input)
            .map_err(|error| (Some(error.path().to_string()), error.into_inner()))
    });
    read.map_err(|(key, error)| explain(text, path, key, &error, keys()))
}

fn explain(
    source: &str,
    path: &Path,
    key: Option<String>,
    error: &toml::de::Error,
    known: Vec<String>,
) -> SettingsError {
    let problem = error.message().lines().next().unwrap_or_default();
    let span = error.span().unwrap_or_default();
    let line = source.get(..span.start).unwrap_or_default().matches('\n').count() + 1;
    let quoted = source.get(span).unwrap_or_default();
    // Text that is not valid TOML has no keys, but its line may begin with one.
    let assigned = || Some(source.lines().nth(line - 1)?.split_once('=')?.0.trim().to_owned());
    let key = key.or_else(assigned).unwrap_or_default();
    let last = key.rsplit('.').next().unwrap_or_default();
    let is_config = known.iter().any(|known| known == "default_scope");
    let file = if is_config { "config.toml" } else { "scope.toml" };
    if problem.starts_with("unknown field")
        && let Some(instead) = instead_of(file, &key)
    {
        let key = text::line(&key, 80);
        let message = format!("line {line}: the key `{key}` no longer exists: {instead}");
        let (path, part) = (path.to_owned(), Part::Line(line));
        return SettingsError::Invalid { path, message, part, nearest: Vec::new(), known };
    }
    let is_unknown_value = problem.starts_with("unknown variant");
    let is_unknown = !last.is_empty() && quoted == last && !known.iter().any(|known| known == last);
    let quoted = text::line(quoted, 40);
    let bare = quoted.trim_matches(['"', '\'']);
    let nearest = if is_unknown_value {
        // `unknown variant `x`, expected `a` or `b``
        nearest(bare, problem.split('`').skip(3).step_by(2), 1)
    } else {
        nearest(last, known.iter().map(String::as_str).filter(|_| is_unknown), 1)
    };
    // Some of the library's messages name the key or the value already.
    let mut message = format!("line {line}: ");
    if !last.is_empty() && !problem.contains(&format!("`{last}`")) {
        let _ = write!(message, "`{}`: ", text::line(&key, 80));
    }
    // With a likely match, the full list of keys is noise.
    let short =
        problem.split_once(", expected").filter(|_| !nearest.is_empty() && !is_unknown_value);
    let problem = short.map_or(problem, |(unknown, _)| unknown);
    message.push_str(&in_toml_terms(problem));
    if !message.contains(bare) {
        let _ = write!(message, " (`{quoted}`)");
    }
    if let Some(suggestion) = nearest.first() {
        let _ = write!(message, "; did you mean `{suggestion}`?");
    }
    SettingsError::Invalid {
        path: path.to_owned(),
        message,
        part: Part::Line(line),
        nearest,
        known,
    }
}

pub fn instead_of(file: &str, key: &str) -> Option<String> {
    let removed: BTreeMap<String, BTreeMap<String, String>> = toml::from_str(REMOVED_KEYS).ok()?;
    let words: Vec<&str> = key.split('.').collect();
    let is_key = |pattern: &str| {
        let pattern = pattern.split('.');
        pattern.clone().count() == words.len()
            && pattern.zip(&words).all(|(word, key)| word == "*" || word == *key)
    };
    let mut keys = removed.get(file)?.iter();
    keys.find(|(pattern, _)| is_key(pattern)).map(|(_, instead)| instead.clone())
}

fn in_toml_terms(problem: &str) -> String {
    let mut plain = problem.to_owned();
    for (theirs, ours) in [
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown value"),
        ("invalid type", "wrong type"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected a table"),
        ("expected f64", "expected a number"),
    ] {
        plain = plain.replacen(theirs, ours, 1);
    }
    for number in ["i64", "u64", "u32", "u16", "usize"] {
        plain = plain.replacen(&format!("expected {number}"), "expected a whole number", 1);
    }
    plain
}

/// The line of the key at `path`, or of its nearest ancestor that exists.
pub fn line_of(text: &str, path: &[String]) -> usize {
    let Ok(document) = toml_edit::Document::parse(text) else {
        return 1;
    };
    let mut table: Option<&dyn toml_edit::TableLike> = Some(document.as_table());
    let mut at = 0;
    for key in path {
        let Some((found, item)) = table.and_then(|table| Some((table.key(key)?, table.get(key)?)))
        else {
            break;
        };
        if let Some(span) = found.span() {
            at = span.start;
        }
        table = item.as_table_like();
    }
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}
