//! Shared by the parsers of settings files: a problem and the keys that lead to it, bounded
//! numbers, and the limits that clients set for tool names and descriptions.

pub mod upstream;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::memory::nearest;
use crate::text;

const MAX_NAME_CHARS: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub path: Vec<String>,
    pub message: String,
    /// The known names that are nearest to the one found.
    pub nearest: Vec<String>,
    /// The names that are allowed.
    pub known: Vec<String>,
}

impl Problem {
    pub fn at<const N: usize>(path: [&str; N], message: impl Into<String>) -> Self {
        Self {
            path: path.map(str::to_owned).into(),
            message: message.into(),
            nearest: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Adds the names that are allowed instead of `word`.
    #[must_use]
    pub fn with_candidates<'a>(
        mut self,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        self.known = known.into_iter().map(str::to_owned).collect();
        self.nearest = nearest(word, self.known.iter().map(String::as_str), 1);
        if let Some(near) = self.nearest.first() {
            self.message = format!("{}; did you mean `{near}`?", self.message);
        } else if !self.known.is_empty() {
            self.message = format!("{}; there are {}", self.message, self.known.join(", "));
        }
        self
    }

    #[must_use]
    pub fn below_path(mut self, path: &[&str]) -> Self {
        self.path.splice(0..0, path.iter().map(|key| (*key).to_owned()));
        self
    }
}

/// Whether clients accept a tool name: letters, digits, `_` and `-`, at most 64 of them.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(allowed)
}

pub fn invalid_name_message(name: &str) -> String {
    format!(
        "`{}` is not a valid name of a tool: 1 to {MAX_NAME_CHARS} letters, digits, `_` and `-`",
        text::line(name, 80)
    )
}

/// A description, safe to print.
pub fn checked_description(raw: &str) -> Result<String, String> {
    let length = raw.chars().count();
    if length > MAX_DESCRIPTION_CHARS {
        return Err(format!("{length} characters; at most {MAX_DESCRIPTION_CHARS} are shown"));
    }
    let safe = text::line(raw, MAX_DESCRIPTION_CHARS);
    if safe.is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(safe)
}

pub fn keys<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T).to_value();
    let tables = schema.get("$defs").and_then(Value::as_object);
    let all = std::iter::once(&schema).chain(tables.into_iter().flat_map(Map::values));
    let properties = all.filter_map(|table| table.get("properties")?.as_object());
    properties.flat_map(Map::keys).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

pub fn bounded<'de, D: Deserializer<'de>, const MIN: u32, const MAX: u32>(
    input: D,
) -> Result<Option<u32>, D::Error> {
    let number = i64::deserialize(input)?;
    u32::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number)).map(Some).ok_or_else(
        || serde::de::Error::custom(format!("{number} is not allowed; allowed are {MIN} to {MAX}")),
    )
}
