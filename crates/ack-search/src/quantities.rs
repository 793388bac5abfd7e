//! Numbers with units: `32 MB` is the same word as `32MB`.
//!
//! In a memory, a number and the unit after it are also one word. In a query they are only that
//! word.

use std::borrow::Cow;

/// Units that are written with and without a space after the number, in lower case. Sorted.
const UNITS: &[&str] = &[
    "b", "bps", "cm", "d", "db", "dpi", "em", "fps", "g", "gb", "gbit", "gbps", "ghz", "gib", "h",
    "hr", "hrs", "hz", "k", "kb", "kbit", "kbps", "kg", "khz", "kib", "km", "kw", "m", "ma", "mah",
    "mb", "mbit", "mbps", "mhz", "mib", "min", "mins", "mm", "ms", "mv", "ns", "pb", "pib", "pt",
    "px", "qps", "rem", "rpm", "rps", "s", "sec", "secs", "tb", "tib", "tps", "us", "v", "w", "x",
    "µs", "μs",
];
const MAX_UNIT_CHARS: usize = 4;
/// What may be between the digits of a number.
const SEPARATORS: [char; 3] = ['.', ',', '_'];

/// Whether a word in lower case is a unit.
pub(super) fn is_unit(word: &str) -> bool {
    UNITS.binary_search(&word).is_ok()
}

/// The number at the end of a text without white space.
fn number_at_end(text: &str) -> Option<&str> {
    if !text.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit() || SEPARATORS.contains(&c));
    let number = text.get(before.len()..)?;
    let is_in_name = before.ends_with(|c: char| c.is_alphanumeric() || "/:#@\\$".contains(c));
    (!is_in_name && number.starts_with(|c: char| c.is_ascii_digit())).then_some(number)
}

/// The unit at the beginning of a text without white space.
fn unit_at_start(text: &str) -> Option<&str> {
    let length = text
        .find(|c: char| !c.is_alphabetic())
        .unwrap_or(text.len());
    let (unit, after) = text.split_at(length);
    let is_in_name = after.starts_with(|c: char| c.is_alphanumeric() || "_/:(".contains(c));
    let is_unit = unit.chars().count() <= MAX_UNIT_CHARS && is_unit(&unit.to_lowercase());
    (!is_in_name && is_unit).then_some(unit)
}

/// A number without the separators of its thousands.
fn without_separators(number: &str) -> Cow<'_, str> {
    for separator in [',', '_'] {
        let mut groups = number.split(separator);
        let first = groups.next().unwrap_or_default();
        let is_group = |group: &str| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
        if first.len() < number.len() && first.len() <= 3 && groups.all(is_group) {
            return Cow::Owned(number.replace(separator, ""));
        }
    }
    Cow::Borrowed(number)
}

/// The quantity that two neighbouring words of a text are.
pub fn quantity(word: &str, next: &str) -> Option<String> {
    let number = number_at_end(word)?;
    let unit = unit_at_start(next)?;
    Some(without_separators(number).into_owned() + unit)
}

/// Calls `emit` for each quantity of a text that is written as two words.
pub fn quantities(text: &str, emit: &mut impl FnMut(&str)) {
    if !has_number_before_space(text) {
        return;
    }
    let mut previous = "";
    for word in text.split_whitespace() {
        if let Some(joined) = quantity(previous, word) {
            emit(&joined);
        }
        previous = word;
    }
}

/// The fast path for most texts.
fn has_number_before_space(text: &str) -> bool {
    let mut pairs = text.as_bytes().array_windows();
    pairs.any(|[one, next]| one.is_ascii_digit() && (next.is_ascii_whitespace() || *next > 127))
}

/// A text in which each quantity is one word.
pub fn join_quantities(text: &str) -> Cow<'_, str> {
    if !has_number_before_space(text) {
        return Cow::Borrowed(text);
    }
    let mut joined = String::new();
    // Up to where `joined` contains the text.
    let mut done = 0;
    let mut previous = "";
    for word in text.split_whitespace() {
        if let Some(quantity) = quantity(previous, word) {
            let offset = |part: &str| part.as_ptr().addr() - text.as_ptr().addr();
            let number = number_at_end(previous).unwrap_or_default();
            let unit = unit_at_start(word).unwrap_or_default();
            let start = offset(previous) + previous.len() - number.len();
            joined.push_str(text.get(done..start).unwrap_or_default());
            joined.push_str(&quantity);
            done = offset(word) + unit.len();
        }
        previous = word;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    joined.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_unit_become_one_word() {
        assert!(UNITS.is_sorted());
        for (text, expected) in [
            (
                "a limit of 32 MB (or 180 ms), then",
                "a limit of 32MB (or 180ms), then",
            ),
            (
                "1.5 GB and 1,024\u{a0}KB and 10 k",
                "1.5GB and 1024KB and 10k",
            ),
            ("5 s 3 ms", "5s 3ms"),
            ("180 µs", "180µs"),
            ("32MB", "32MB"),
            ("2 memories, 3 retries", "2 memories, 3 retries"),
            ("v2 b3, h2 s, utf8 b", "v2 b3, h2 s, utf8 b"),
            ("python 3 is", "python 3 is"),
            ("main.rs:42 s_x", "main.rs:42 s_x"),
            ("7 s(x)", "7 s(x)"),
        ] {
            assert_eq!(join_quantities(text), expected);
        }
        let mut found = Vec::new();
        quantities("from (1,024 MB) to 2\nGB.", &mut |joined| {
            found.push(joined.to_owned())
        });
        assert_eq!(found, ["1024MB", "2GB"]);
    }
}
