//! Numbers that belong to the word beside them: `32 MB` is also the word `32mb`, and `Java 17` the
//! word `java17`.

use super::is_stop_word;

/// Units that are written with and without a space after the number, in lower case. Sorted.
const UNITS: &[&str] = &[
    "b", "bps", "cm", "d", "db", "dpi", "em", "fps", "g", "gb", "gbit", "gbps", "ghz", "gib", "h",
    "hr", "hrs", "hz", "k", "kb", "kbit", "kbps", "kg", "khz", "kib", "km", "kw", "m", "ma", "mah",
    "mb", "mbit", "mbps", "mhz", "mib", "min", "mins", "mm", "ms", "mv", "ns", "pb", "pib", "pt",
    "px", "qps", "rem", "rpm", "rps", "s", "sec", "secs", "tb", "tib", "tps", "us", "v", "w", "x",
    "µs", "μs",
];
/// What may surround a number and its unit.
const MARKS: [char; 11] = ['`', '(', ')', '[', ']', ',', ';', ':', '!', '?', '"'];
/// A longer number is no version.
const MAX_VERSION_DIGITS: usize = 4;
const NAME_CHARS: std::ops::RangeInclusive<usize> = 2..=20;

pub(super) fn is_unit(word: &str) -> bool {
    UNITS.binary_search(&word).is_ok()
}

/// The word that two neighbouring words of a text are together, in lower case: a number with its
/// unit, or a name with its version.
pub fn joined(word: &str, next: &str) -> Option<String> {
    quantity(word, next).or_else(|| name_with_version(word, next))
}

/// Calls `emit` for each two words that are [`joined`], with both as the text writes them.
pub fn joined_words(text: &str, emit: &mut impl FnMut(String, String)) {
    for line in text.lines() {
        let mut previous = "";
        for word in line.split_whitespace() {
            if let Some(joined) = joined(previous, word) {
                emit(joined, format!("{previous} {word}"));
            }
            previous = word;
        }
    }
}

/// A query in which each number and its unit are one word.
pub fn join_quantities(query: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in query.split_whitespace() {
        let joined = words.last().and_then(|last| quantity(last, word));
        match (joined, words.last_mut()) {
            (Some(joined), Some(last)) => *last = joined,
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

fn quantity(word: &str, next: &str) -> Option<String> {
    // The fast path for most words.
    if !word.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number = word.trim_start_matches(MARKS);
    let unit = next.trim_end_matches(MARKS).trim_end_matches('.');
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|byte| byte.is_ascii_digit() || b".,_".contains(&byte));
    let unit = unit.to_lowercase();
    (is_number && is_unit(&unit)).then(|| without_separators(number) + &unit)
}

fn without_separators(number: &str) -> String {
    for separator in [',', '_'] {
        let mut groups = number.split(separator);
        let first = groups.next().unwrap_or_default();
        if first.len() <= 3 && groups.all(|group| group.len() == 3 && !group.contains('.')) {
            return number.replace(separator, "");
        }
    }
    number.to_owned()
}

/// Only the first number of a version counts: `Ubuntu 22.04` is `ubuntu22`.
fn name_with_version(word: &str, next: &str) -> Option<String> {
    let version = next.trim_start_matches(['v', 'V']);
    // The fast path for most words.
    if !version.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let version = version.trim_end_matches(MARKS).trim_end_matches(['.', '`']);
    let is_version = version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = version.split('.').next().unwrap_or_default();
    let word = word.trim_start_matches(['(', '[', '"', '\'', '`', '*']);
    // `C++ 20` is `c++20`.
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '#';
    let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.ends_with(is_letter)
        && word.chars().all(|c| is_letter(c) || c == '.' || c == '-');
    if !is_version || number.len() > MAX_VERSION_DIGITS || !is_name {
        return None;
    }
    let mut name = word.to_ascii_lowercase();
    name.retain(is_letter);
    (NAME_CHARS.contains(&name.len()) && !is_stop_word(&name)).then(|| name + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_are_sorted() {
        assert!(UNITS.is_sorted());
    }
}
