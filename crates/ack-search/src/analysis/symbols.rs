//! Symbols that people write in several ways: `parse_config`, `parseConfig`, `parse-config`,
//! `config::parse_config` or, in a question, `parse config`.
//!
//! Each two neighbouring parts of a symbol also become one word, without what joins them:
//! `HttpClient::send` gives `clientsend`. (`httpclient` is already a word.) In a query, neighbouring
//! words are parts too, so any way of writing a symbol finds the others.

use unicode_normalization::char::is_combining_mark;

use super::letters::strip_diacritics;
use super::numbers::is_unit;
use super::{TextRole, camel_parts, is_stop_word, is_unspaced};

/// What may join the parts of a symbol.
const JOINERS: &[char] = &['_', '-', '.', ':', '/', '\\', '@', '#', '+', '~', '$', '&'];
const MIN_BYTES: usize = 3;
const MAX_BYTES: usize = 60;
/// A word in camel case with more parts is no symbol, but encoded data.
const MAX_PARTS: usize = 8;

/// Two neighbouring parts of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair<'a> {
    /// Both parts in lower case, without diacritics and without what joins them.
    pub joined: String,
    pub written: &'a str,
    /// Whether only white space is between the parts.
    pub is_spaced: bool,
    /// Whether one part is no term by itself: a stop word, a letter, or one or two digits.
    pub has_light_part: bool,
}

#[derive(Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    /// Whether this is the first of exactly two parts of a word in camel case: together they are
    /// the word, which is a term anyway.
    begins_word_of_two: bool,
}

/// Calls `emit` for every pair in a text, in order. In a memory, parts are joined by punctuation or
/// camel case; in a query, also by white space.
pub fn pairs<'a>(text: &'a str, role: TextRole, emit: &mut impl FnMut(Pair<'a>)) {
    // The fast path for most words of a memory.
    let text = text.trim_end_matches(['.', ':']);
    let is_word = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    let joins = |byte: u8| JOINERS.contains(&char::from(byte));
    let mut rest = text.bytes().skip(1);
    if role == TextRole::Document && rest.all(|byte| is_word(byte) && !joins(byte)) {
        return;
    }
    let is_part = |c: char| {
        c.is_ascii_alphanumeric()
            || (!c.is_ascii() && (c.is_alphanumeric() || is_combining_mark(c)) && !is_unspaced(c))
    };
    let mut previous: Option<Part> = None;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let pieces = camel_case(word);
        let mut start = at;
        for (number, piece) in pieces.iter().enumerate() {
            let part = Part {
                start,
                end: start + piece.len(),
                begins_word_of_two: number == 0 && pieces.len() == 2,
            };
            start = part.end;
            let pair = previous.and_then(|previous| join(text, previous, part, role));
            pair.into_iter().for_each(&mut *emit);
            previous = Some(part);
        }
        at += length + after.find(is_part).unwrap_or(after.len());
    }
}

/// The parts of a word in camel case; any other word is one part.
pub fn camel_case(word: &str) -> Vec<&str> {
    let has_hump = word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
    if word.is_ascii() && has_hump {
        let parts = camel_parts(word);
        if parts.len() <= MAX_PARTS {
            return parts;
        }
    }
    Vec::from_iter((!word.is_empty()).then_some(word))
}

fn join<'a>(text: &'a str, first: Part, second: Part, role: TextRole) -> Option<Pair<'a>> {
    let gap = text.get(first.end..second.start)?;
    let is_spaced = !gap.is_empty() && gap.chars().all(char::is_whitespace);
    let is_joined = gap.chars().all(|c| JOINERS.contains(&c));
    let (one, other) = (text.get(first.start..first.end)?, text.get(second.start..second.end)?);
    let is_symbol = if gap.is_empty() {
        !first.begins_word_of_two
    } else {
        is_joined || (is_spaced && role == TextRole::Query)
    };
    let length = one.len() + other.len();
    if !is_symbol || !(MIN_BYTES..=MAX_BYTES).contains(&length) {
        return None;
    }
    let is_quantity = || gap == "-" && is_number(one) && is_unit(&lower(other));
    if !one.starts_with(char::is_alphabetic) && !is_quantity() {
        return None;
    }
    let (one, other) = (lower(one), lower(other));
    let (is_light, is_other_light) = (is_light(&one), is_light(&other));
    // `how to` does not ask for `howto`.
    if is_spaced && is_light && is_other_light {
        return None;
    }
    Some(Pair {
        joined: one + &other,
        written: text.get(first.start..second.end)?,
        is_spaced,
        has_light_part: is_light || is_other_light,
    })
}

fn is_number(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_light(part: &str) -> bool {
    is_stop_word(part) || part.len() < if is_number(part) { 3 } else { 2 }
}

fn lower(part: &str) -> String {
    let lower = part.to_lowercase();
    if lower.is_ascii() { lower } else { strip_diacritics(&lower) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_symbol_are_joined_in_pairs() {
        for (text, expected) in [
            ("parse_config", &["parseconfig"][..]),
            ("parseConfig", &[]),
            ("parseConfigFile", &["parseconfig", "configfile"]),
            ("HttpClient::send", &["clientsend"]),
            ("--no-cache", &["nocache"]),
            ("utf-8", &["utf8"]),
            ("32-MB", &["32mb"]),
            ("3-way", &[]),
            ("src/store/ack.rs", &["srcstore", "storeack", "ackrs"]),
            ("1.2.3", &[]),
            ("word", &[]),
            ("user's", &[]),
            ("f(x,y)", &[]),
            ("Größen-Grenze", &["grossengrenze"]),
            ("データ-x", &[]),
            ("aBcDeFgHiJkLmNoP", &[]),
        ] {
            let mut found = Vec::new();
            pairs(text, TextRole::Document, &mut |pair| found.push(pair.joined));
            assert_eq!(found, expected, "{text}");
        }
    }
}
