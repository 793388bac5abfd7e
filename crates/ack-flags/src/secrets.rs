//! Finds passwords, keys and tokens in a text.
//!
//! Two kinds are found: what is certain by its form (the tokens in `secrets.txt`, private keys),
//! and values that nobody would guess in the [places] where secrets are written, such as after
//! `api_token =`. A placeholder, a variable's name, a hash or an id is no secret.

pub mod places;
mod values;

use std::sync::LazyLock;

use regex::Regex;

use super::plain::{Plain, pattern};
use super::table::{Found, Kind, Row, columns};

const FORMS: &str = include_str!("secrets.txt");
/// What is longer is judged by its characters.
const MIN_JUDGED: usize = 16;

/// The lines with what looks like a password, a key or a token, from 1.
pub fn secret_lines(text: &Plain<'_>) -> Vec<usize> {
    let mut found = private_keys(text);
    let secrets = text.found.iter().filter_map(|found| match found.kind {
        Kind::Token => is_token(&text.text, *found).then_some(found.start),
        Kind::Place(test) => places::secret(&text.text, *found, test),
        Kind::Order => None,
    });
    found.extend(secrets);
    text.lines_of(found)
}

pub fn tokens() -> impl Iterator<Item = Row> {
    let ends = "(?:[^0-9A-Za-z]|$)";
    columns(FORMS)
        .map(move |[words, rest]| Row::new(Kind::Token, words, format!("(?-u:{rest}){ends}")))
}

fn is_token(text: &str, found: Found) -> bool {
    let rest = text.get(found.rest..found.end).unwrap_or_default();
    let token = rest.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    token.len() < MIN_JUDGED || values::is_made_by_program(token)
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
    let encoded = text.decoded.iter().filter(|(_, decoded)| heads.is_match(decoded));
    written.chain(encoded.map(|(at, _)| *at)).collect()
}

#[cfg(test)]
mod tests;
