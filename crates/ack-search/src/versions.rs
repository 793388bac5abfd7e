//! Names with a version: `Java 17` is also the word `java17`.
//!
//! In a memory, a name and the first number of the version after it are one more word, as
//! quantities are (see [`super::quantities`]); in a query, too.

use super::analysis::{TokenKind, is_stop_word};

const MIN_NAME_CHARS: usize = 2;
const MAX_NAME_CHARS: usize = 20;
/// A longer number is no version.
pub const MAX_VERSION_DIGITS: usize = 4;

/// The name with its version that two neighbouring words of a text are, in lower case. Only the
/// first number of the version counts: `Ubuntu 22.04` is `ubuntu22`.
pub fn name_with_version(word: &str, next: &str) -> Option<String> {
    let next = next.trim_start_matches(['v', 'V']);
    // The fast path for most words.
    if !next.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let length = next.find(|c: char| !c.is_ascii_digit());
    let (number, after) = next.split_at(length.unwrap_or(next.len()));
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let ends = |c: char| c.is_alphanumeric() || "%/-_:+*°$€".contains(c);
    // The thousands of a number.
    let goes_on = |after: &str| after.starts_with(|c: char| c.is_ascii_digit());
    let is_group = rest.strip_prefix(',').is_some_and(goes_on);
    if number.len() > MAX_VERSION_DIGITS || is_group || rest.starts_with(ends) {
        return None;
    }
    let word = word.trim_start_matches(['(', '[', '"', '\'', '`', '*']);
    // `C++ 20` is `c++20`.
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '#';
    if !word.starts_with(|c: char| c.is_ascii_alphabetic())
        || !word.ends_with(is_letter)
        || !word.chars().all(|c| is_letter(c) || c == '.' || c == '-')
    {
        return None;
    }
    let mut name = word.to_ascii_lowercase();
    name.retain(is_letter);
    let is_name = (MIN_NAME_CHARS..=MAX_NAME_CHARS).contains(&name.len()) && !is_stop_word(&name);
    is_name.then(|| name + number)
}

/// Whether two neighbouring words of a text are in one line: a number that begins the next line
/// counts something.
pub fn are_in_one_line(text: &str, word: &str, next: &str) -> bool {
    let start = text.as_ptr().addr();
    let gap = word.as_ptr().addr() + word.len() - start..next.as_ptr().addr() - start;
    text.get(gap).is_some_and(|gap| !gap.contains(['\n', '\r']))
}

/// Whether a name with a version is an identifier, and not only a word.
pub fn kind(joined: &str) -> TokenKind {
    match joined.chars().all(char::is_alphanumeric) {
        true => TokenKind::Word,
        false => TokenKind::Identifier,
    }
}

/// Calls `emit` for each name with a version that a text writes as two words: the word that both
/// are, and how the text writes them.
pub fn names_with_versions<'t>(text: &'t str, emit: &mut impl FnMut(String, &'t str)) {
    let mut previous = "";
    for word in text.split_whitespace() {
        if let Some(joined) = name_with_version(previous, word)
            && are_in_one_line(text, previous, word)
        {
            let offset = |part: &str| part.as_ptr().addr() - text.as_ptr().addr();
            let written = text.get(offset(previous)..offset(word) + word.len());
            emit(joined, written.unwrap_or_default());
        }
        previous = word;
    }
}

/// The keys under which a memory may have the version at the end of a name, the likeliest first:
/// `22.04` for `2204`, but `17` for `17`.
pub fn version_keys(digits: &str) -> Vec<String> {
    let dotted = (1..digits.len()).filter_map(|at| {
        let (major, minor) = digits.split_at_checked(at)?;
        Some(format!("={major}.{minor}"))
    });
    let mut keys: Vec<String> = dotted.collect();
    let at = if digits.len() > 2 { keys.len() } else { 0 };
    keys.insert(at, digits.to_owned());
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_version_become_one_word() {
        for (text, expected) in [
            ("Java 17 records", &["java17"][..]),
            ("on Ubuntu 22.04, with (Go 1.22)", &["ubuntu22", "go1"]),
            ("Node.js 18 and Node v20.", &["nodejs18", "node20"]),
            ("Log4j 2 or `OAuth 2`", &["log4j2", "oauth2"]),
            ("C++ 20, C# 12", &["c++20", "c#12"]),
            ("in 2024, of 3 and to 5", &[]),
            ("a 17", &[]),
            ("retry: 3 times, retry, 4", &[]),
            ("install java\n2. run, limit 10,000", &[]),
            ("limit 30s, share 50%, day 2026-11-27, port 8080:80", &[]),
            ("id 12345", &[]),
        ] {
            let mut found = Vec::new();
            names_with_versions(text, &mut |joined, _| found.push(joined));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_version_may_be_written_with_a_dot() {
        assert_eq!(version_keys("2204"), ["=2.204", "=22.04", "=220.4", "2204"]);
        assert_eq!(version_keys("17"), ["17", "=1.7"]);
    }
}
