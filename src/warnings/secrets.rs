//! Finds passwords, keys and tokens in a text.
//!
//! Two kinds are found: what is certain by its form (the tokens in `secrets.txt`, private keys),
//! and values that nobody would guess in the [places] where secrets are written, such as after
//! `api_token =`. A placeholder, a variable's name, a hash or an id is no secret.

mod places;
mod values;

use std::sync::LazyLock;

use regex::Regex;

use super::plain::{Plain, pattern};
use super::table::{Row, Table, columns};

/// The forms of tokens, each with its examples.
const FORMS: &str = include_str!("secrets.txt");
/// What is longer is judged by its characters.
const MIN_JUDGED: usize = 16;

/// Whether a text holds what looks like a password, a key or a token.
pub fn holds_secret(text: &str) -> bool {
    !secret_lines(&Plain::of(text)).is_empty()
}

/// The lines with what looks like a password, a key or a token, from 1.
pub fn secret_lines(text: &Plain<'_>) -> Vec<usize> {
    let mut found = private_keys(text);
    found.extend(tokens(&text.text));
    found.extend(places::secrets(&text.text));
    text.lines_of(found)
}

/// Where tokens of a known form are.
fn tokens(text: &str) -> Vec<usize> {
    static TABLE: LazyLock<Option<Table>> = LazyLock::new(|| {
        let ends = "(?:[^0-9A-Za-z]|$)";
        let row = |[words, rest]: [&str; 2]| Row::new(words, format!("(?-u:{rest}){ends}"));
        Table::new(columns(FORMS).map(row), false)
    });
    let found = TABLE.iter().flat_map(|table| table.find(text));
    let tokens = found.filter(|found| {
        let rest = text.get(found.rest..found.end).unwrap_or_default();
        let token = rest.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        token.len() < MIN_JUDGED || values::is_made_by_program(token)
    });
    tokens.map(|found| found.start).collect()
}

/// Where private keys begin, also such as are written in base64 once more.
fn private_keys(text: &Plain<'_>) -> Vec<usize> {
    static HEADS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        pattern(r"---- ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|PuTTY-User-Key-File-\d|Private-Lines: \d")
    });
    let Some(heads) = HEADS.as_ref() else {
        return Vec::new();
    };
    let written = heads.find_iter(&text.text).map(|found| found.start());
    let encoded = text.decoded.iter();
    let encoded = encoded.filter(|(_, decoded)| heads.is_match(decoded));
    written.chain(encoded.map(|(at, _)| *at)).collect()
}

#[cfg(test)]
mod tests;
