//! What the readers of settings files share: a problem with the keys that lead to it, numbers within bounds, values of TOML
//! as JSON, and which names and descriptions of tools clients take.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::memory::nearest;
use crate::text;

/// Longest name of a tool.
const LONGEST_NAME: usize = 64;
/// Longest description of a tool or an argument, in characters.
const LONGEST_DESCRIPTION: usize = 1_000;

/// What is wrong in a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The keys that lead to it.
    pub path: Vec<String>,
    /// What is wrong.
    pub message: String,
    /// The nearest names to the one that stands there.
    pub nearest: Vec<String>,
    /// The names that are allowed.
    pub known: Vec<String>,
}

impl Problem {
    /// One at these keys.
    pub fn at<const N: usize>(path: [&str; N], message: impl Into<String>) -> Self {
        Self {
            path: path.map(str::to_owned).into(),
            message: message.into(),
            nearest: Vec::new(),
            known: Vec::new(),
        }
    }

    /// With the names that are allowed where `word` stands.
    #[must_use]
    pub fn among<'a>(mut self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        self.known = known.into_iter().map(str::to_owned).collect();
        self.nearest = nearest(word, self.known.iter().map(String::as_str), 1);
        if let Some(near) = self.nearest.first() {
            self.message = format!("{}; did you mean `{near}`?", self.message);
        } else if !self.known.is_empty() {
            self.message = format!("{}; there are {}", self.message, self.known.join(", "));
        }
        self
    }

    /// With keys before those that lead to it.
    #[must_use]
    pub fn under(mut self, path: &[&str]) -> Self {
        self.path.splice(0..0, path.iter().map(|key| (*key).to_owned()));
        self
    }
}

/// Whether clients take this as the name of a tool: letters, digits, `_` and `-`, at most 64 of them.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(allowed)
}

/// Why a name is no name of a tool.
pub fn no_name(name: &str) -> String {
    format!(
        "`{}` is no name of a tool: 1 to {LONGEST_NAME} letters, digits, `_` and `-`",
        text::line(name, 80)
    )
}

/// A description, safe to show.
///
/// # Errors
/// What is wrong with it.
pub fn described(raw: &str) -> Result<String, String> {
    let length = raw.chars().count();
    if length > LONGEST_DESCRIPTION {
        return Err(format!("{length} characters; at most {LONGEST_DESCRIPTION} are shown"));
    }
    let safe = text::line(raw, LONGEST_DESCRIPTION);
    if safe.is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(safe)
}

/// The keys of a settings file, with those of the tables in it.
pub fn keys<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T).to_value();
    let tables = schema.get("$defs").and_then(Value::as_object);
    let all = std::iter::once(&schema).chain(tables.into_iter().flat_map(Map::values));
    let properties = all.filter_map(|table| table.get("properties")?.as_object());
    properties
        .flat_map(Map::keys)
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// A number within bounds; the error names them.
///
/// # Errors
/// One of the reader's own, for a number out of bounds.
pub fn bounded<'de, D: Deserializer<'de>, const LEAST: u32, const MOST: u32>(input: D) -> Result<Option<u32>, D::Error> {
    let number = i64::deserialize(input)?;
    u32::try_from(number)
        .ok()
        .filter(|number| (LEAST..=MOST).contains(number))
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom(format!("{number} is not allowed; allowed are {LEAST} to {MOST}")))
}

/// Values of a table; a date without quotes is read as its text.
///
/// # Errors
/// What is no TOML.
pub fn values<'de, D: Deserializer<'de>>(input: D) -> Result<Map<String, Value>, D::Error> {
    let table = toml::Table::deserialize(input)?;
    Ok(table.into_iter().map(|(key, value)| (key, json(value))).collect())
}

fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(yes) => Value::from(yes),
        toml::Value::Datetime(date) => Value::from(date.to_string()),
        toml::Value::Array(entries) => entries.into_iter().map(json).collect(),
        toml::Value::Table(table) => Value::Object(table.into_iter().map(|(key, value)| (key, json(value))).collect()),
    }
}
