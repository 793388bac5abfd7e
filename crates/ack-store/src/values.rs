//! Decodes stored values: text that should be UTF-8, lists that should be JSON, numbers that should
//! be dates. A broken value is read as far as possible and reported as repaired, never as an error.

use std::borrow::Cow;

use jiff::Timestamp;
use rusqlite::types::ValueRef;
use serde_json::Value;

use ack_api::memory::Status;
use ack_api::{text, time};

const MAX_LIST_ENTRIES: usize = 200;

/// A value as text. Numbers are formatted; NULL and binary data that is not UTF-8 are `None`. The
/// flag tells whether bytes were lost.
pub fn text_value(value: ValueRef<'_>) -> (Option<String>, bool) {
    match value {
        ValueRef::Null => (None, false),
        ValueRef::Integer(number) => (Some(number.to_string()), false),
        ValueRef::Real(number) => (Some(number.to_string()), false),
        ValueRef::Text(bytes) => {
            let decoded = decoded(bytes);
            let is_lossy = matches!(decoded, Cow::Owned(_));
            (Some(decoded.into_owned()), is_lossy)
        }
        ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(decoded) => (Some(decoded.to_owned()), false),
            Err(_) => (None, true),
        },
    }
}

/// Valid text is checked much faster as a whole than in chunks.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Empty if it has none.
pub fn text_of(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Text(bytes) => decoded(bytes),
        other => Cow::Owned(text_value(other).0.unwrap_or_default()),
    }
}

/// A value as one line; `None` if it has no text.
pub fn line(value: ValueRef<'_>, max_chars: usize) -> Option<String> {
    Some(text::line(&text_of(value), max_chars)).filter(|line| !line.is_empty())
}

/// A value as a status. An empty value was never approved, so it is `staging`. Anything but the
/// text of a known word is an error: a number, binary data, or a word with more than ASCII white
/// space around it.
pub fn parse_status(value: ValueRef<'_>) -> Result<Status, String> {
    let word = match value {
        ValueRef::Null => return Ok(Status::Staging),
        ValueRef::Text(bytes) if bytes.trim_ascii().is_empty() => return Ok(Status::Staging),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes).ok().and_then(Status::parse) {
            Some(status) => return Ok(status),
            None => text::line(&String::from_utf8_lossy(bytes), 60),
        },
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Blob(_) => "(binary data)".to_owned(),
    };
    // Hidden characters must not make an unknown word look like a known status.
    let looks_known = word.is_empty() || Status::parse(&word).is_some();
    Err(if looks_known { format!("{word} (with hidden characters)") } else { word }
        .trim_start()
        .to_owned())
}

/// A value as a time: a number since 1970 or a written date.
pub fn time_value(value: ValueRef<'_>) -> Option<Timestamp> {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 stay far below 2^53")]
    match value {
        ValueRef::Integer(number) => time::from_epoch(number as f64),
        ValueRef::Real(number) => time::from_epoch(number),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().and_then(time::parse),
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}

pub fn share_value(value: ValueRef<'_>) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a fraction between 0 and 1")]
    let number = match value {
        ValueRef::Integer(number) => number as f64,
        ValueRef::Real(number) => number,
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok()?.trim().parse().ok()?,
        ValueRef::Null | ValueRef::Blob(_) => return None,
    };
    (number.is_finite() && (0.0..=1.0).contains(&number)).then_some(number)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// Sentences: separated by lines or ` | `, never by commas.
    Facts,
    /// Tags: separated by lines, `|`, `,` or `;`.
    Concepts,
    /// Paths: separated by lines, `|`, or by commas if every part looks like a path.
    Files,
}

/// Parses a list: a JSON array (of strings, numbers or objects; nulls are dropped), a JSON string
/// or object, a truncated JSON array, separated text, or a single value. The flag tells whether
/// something had to be guessed.
pub fn parse_list(raw: &str, kind: ListKind) -> (Vec<String>, bool) {
    let trimmed = raw.trim();
    if trimmed.is_empty() {
        return (Vec::new(), false);
    }
    let (entries, repaired) = match serde_json::from_str::<Value>(trimmed) {
        Ok(Value::Array(values)) => {
            let odd = values.iter().any(|value| !value.is_string());
            (values.iter().filter_map(list_entry).collect(), odd)
        }
        Ok(Value::Null) => (Vec::new(), false),
        Ok(object @ Value::Object(_)) => (members(&object), true),
        Ok(Value::String(text)) => (split_list(&text, kind), false),
        Ok(other) => (list_entry(&other).into_iter().collect(), true),
        Err(_) if trimmed.starts_with('[') => (parse_truncated_array(trimmed), true),
        Err(_) => (split_list(trimmed, kind), false),
    };
    let cleaned = entries
        .iter()
        .take(MAX_LIST_ENTRIES)
        .map(|entry| text::line(entry, text::LINE_CAP))
        .filter(|entry| !entry.is_empty())
        .collect();
    (cleaned, repaired)
}

fn list_entry(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(values) => {
            Some(values.iter().filter_map(list_entry).collect::<Vec<_>>().join(", "))
        }
        Value::Object(_) => Some(members(value).join(", ")),
    }
}

fn members(value: &Value) -> Vec<String> {
    let members = value.as_object().into_iter().flatten();
    members.filter_map(|(key, value)| Some(format!("{key}: {}", list_entry(value)?))).collect()
}

/// The entries of a truncated JSON array: every complete string, and the start of the last one.
fn parse_truncated_array(raw: &str) -> Vec<String> {
    let mut entries = Vec::new();
    let mut rest = raw;
    while let Some(start) = rest.find('"') {
        let Some(tail) = rest.get(start..) else { break };
        let mut strings = serde_json::Deserializer::from_str(tail).into_iter::<String>();
        if let Some(Ok(text)) = strings.next() {
            rest = tail.get(strings.byte_offset()..).unwrap_or_default();
            entries.push(text);
        } else {
            entries.push(tail.trim_start_matches('"').to_owned());
            break;
        }
    }
    entries
}

fn split_list(raw: &str, kind: ListKind) -> Vec<String> {
    let separators: &[char] = match kind {
        ListKind::Facts if !raw.contains('\n') && raw.contains(" | ") => {
            return raw.split(" | ").map(|part| part.trim().to_owned()).collect();
        }
        ListKind::Facts => &['\n'],
        ListKind::Concepts => &['\n', '|', ',', ';'],
        ListKind::Files if raw.contains(['\n', '|']) => &['\n', '|'],
        ListKind::Files if are_paths(raw) => &[','],
        ListKind::Files => &[],
    };
    let parts = raw.split(separators).map(str::trim);
    match kind {
        ListKind::Facts => {
            parts.map(|line| line.trim_start_matches(['-', '*', '•']).trim().to_owned()).collect()
        }
        _ => parts.map(|part| part.trim_start_matches("- ").to_owned()).collect(),
    }
}

fn are_paths(raw: &str) -> bool {
    let mut parts = raw.split(',').map(str::trim);
    parts.all(|part| part.contains(['/', '.', '\\']) && !part.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_is_not_shown_as_a_known_one() {
        for odd in ["approved\0", "approved\u{200b}", "\0", "\u{a0}"] {
            let word = parse_status(ValueRef::Text(odd.as_bytes())).unwrap_err();
            assert!(!word.trim().is_empty() && Status::parse(&word).is_none(), "{odd:?}");
        }
    }

    #[test]
    fn a_share_outside_its_range_is_none() {
        assert_eq!(share_value(ValueRef::Real(0.8)), Some(0.8));
        assert_eq!(share_value(ValueRef::Integer(7)), None);
        assert_eq!(share_value(ValueRef::Real(f64::NAN)), None);
    }
}
