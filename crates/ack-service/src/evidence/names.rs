//! The names in a memory's text (text in backticks, and words that look like code), and whether
//! they occur in the working tree.

use std::time::Instant;

use ack_api::memory::Memory;
use ack_sys::files;
use aho_corasick::AhoCorasick;
use serde::Serialize;

use super::tree::WorkTree;

const MAX_NAMES: usize = 40;
const NAME_CHARS: std::ops::RangeInclusive<usize> = 3..=80;
/// The largest file that is read. Larger ones are data or generated.
const MAX_FILE_BYTES: u64 = 512 << 10;
const MAX_TEXT_BYTES: usize = 32 << 10;
/// What a session wrote is often committed after its memories.
const COMMIT_DELAY_SECONDS: i64 = 24 * 60 * 60;
const SURROUNDING_PUNCTUATION: [char; 17] = [
    '.', ',', ';', ':', '!', '?', '(', ')', '[', ']', '{', '}', '"', '\'', '<', '>', '`',
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CitedName {
    pub name: String,
    /// Whether it occurs in the files of the tree, or as one of their paths; `None` if it was not
    /// found but not every file was read.
    pub occurs: Option<bool>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NameSearch {
    pub names: Vec<CitedName>,
    /// Whether every file of the tree was read, except large ones and generated folders.
    pub is_complete: bool,
}

impl WorkTree {
    /// Searches the tree for the names of a memory, within the tree's limits.
    pub fn names(&self, memory: &Memory) -> NameSearch {
        self.names_of_all(&[memory]).pop().unwrap_or_default()
    }

    /// The same for several memories, in one search.
    pub fn names_of_all(&self, memories: &[&Memory]) -> Vec<NameSearch> {
        let of_each: Vec<Vec<String>> = memories.iter().map(|memory| of(memory)).collect();
        let counts: Vec<usize> = of_each.iter().map(Vec::len).collect();
        let mut all = self.search_names(of_each.into_iter().flatten().collect());
        let looks = counts.into_iter().map(|count| {
            let rest = all.names.split_off(count.min(all.names.len()));
            NameSearch {
                names: std::mem::replace(&mut all.names, rest),
                is_complete: all.is_complete || count == 0,
            }
        });
        looks.collect()
    }

    /// The missing names that were in the project when the memory was written: they are no longer
    /// there. Only git's history can tell; a name that never was there belongs to something else.
    pub fn lost_names(&self, search: &NameSearch, memory: &Memory) -> Vec<String> {
        let missing = search.names.iter();
        let missing = missing.filter(|name| name.occurs == Some(false));
        let missing: Vec<&str> = missing.map(|name| name.name.as_str()).collect();
        let finder = AhoCorasick::new(missing.iter().map(|name| needle(name)));
        let written_at = memory.updated_at.or(memory.created_at);
        let (Some(written_at), Ok(finder), false) = (written_at, finder, missing.is_empty()) else {
            return Vec::new();
        };
        let mut was_there = vec![false; missing.len()];
        let written_at = written_at.as_second();
        for at in [written_at, written_at + COMMIT_DELAY_SECONDS] {
            if was_there.iter().all(|was_there| *was_there) {
                break;
            }
            self.visit_replaced(at, &mut |path, content| {
                for text in [path.as_bytes(), content] {
                    mark(&finder, text, &mut was_there);
                }
            });
        }
        let lost = missing.iter().zip(was_there);
        lost.filter(|(_, was_there)| *was_there)
            .map(|(name, _)| (*name).to_owned())
            .collect()
    }

    fn search_names(&self, names: Vec<String>) -> NameSearch {
        if names.is_empty() {
            return NameSearch {
                names: Vec::new(),
                is_complete: true,
            };
        }
        let Ok(finder) = AhoCorasick::new(names.iter().map(|name| needle(name))) else {
            return NameSearch::default();
        };
        let mut found = vec![false; names.len()];
        let bounds = self.bounds();
        let end = Instant::now() + bounds.time;
        let listing = self.listing();
        let mut is_complete = listing.is_complete;
        let mut bytes_left = bounds.bytes;
        for entry in &listing.entries {
            mark(&finder, entry.path.as_bytes(), &mut found);
        }
        for entry in &listing.entries {
            if found.iter().all(|found| *found) {
                break;
            }
            if entry.path.ends_with('/') || entry.length == 0 || entry.length > MAX_FILE_BYTES {
                continue;
            }
            if entry.length > bytes_left || Instant::now() >= end {
                is_complete = false;
                break;
            }
            bytes_left -= entry.length;
            let path = self.absolute(&entry.path);
            // It may have become a link since the listing.
            let is_file = std::fs::symlink_metadata(&path).is_ok_and(|now| now.is_file());
            match files::read(&path, MAX_FILE_BYTES) {
                Ok(text) if is_file && !text.contains(&0) => mark(&finder, &text, &mut found),
                Ok(_) => {}
                Err(_) => is_complete = false,
            }
        }
        let names = names.into_iter().zip(found).map(|(name, found)| CitedName {
            name,
            occurs: match found {
                true => Some(true),
                false => is_complete.then_some(false),
            },
        });
        NameSearch {
            names: names.collect(),
            is_complete,
        }
    }
}

/// Marks the names that a text contains, by their numbers.
fn mark(finder: &AhoCorasick, text: &[u8], found: &mut [bool]) {
    for hit in finder.find_overlapping_iter(text) {
        if let Some(slot) = found.get_mut(hit.pattern().as_usize()) {
            *slot = true;
        }
    }
}

/// The text to search for. For a qualified name (`pay::Job::run`) it is the last part, because each
/// file writes the rest differently.
fn needle(name: &str) -> &str {
    let call = name.split('(').next().unwrap_or(name);
    let last = call.rsplit("::").next().unwrap_or(call);
    if last.chars().count() >= *NAME_CHARS.start() {
        last
    } else {
        call
    }
}

fn of(memory: &Memory) -> Vec<String> {
    let narrative = memory.narrative.as_deref().unwrap_or_default();
    let narrative = narrative
        .get(..narrative.floor_char_boundary(MAX_TEXT_BYTES))
        .unwrap_or_default();
    let texts = [Some(memory.title.as_str()), memory.subtitle.as_deref()]
        .into_iter()
        .flatten()
        .chain(memory.facts.iter().map(String::as_str))
        .chain([narrative]);
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let fits = NAME_CHARS.contains(&name.chars().count());
        if fits && names.len() < MAX_NAMES && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    for text in texts {
        // Every second part is inside backticks.
        for (number, part) in text.split('`').enumerate() {
            let is_quoted = number % 2 == 1;
            if is_quoted && !part.contains(char::is_whitespace) {
                add(part.trim_matches(SURROUNDING_PUNCTUATION));
                continue;
            }
            for word in part.split_whitespace() {
                let word = word.trim_matches(SURROUNDING_PUNCTUATION);
                if is_name(word) {
                    add(word);
                }
            }
        }
    }
    names
}

/// Whether a word looks like code: `snake_case`, `CamelCase`, `a/path.rs`, `--flag`, `pay::Job`.
fn is_name(word: &str) -> bool {
    if word.contains("://") || !word.chars().any(char::is_alphabetic) {
        return false;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:\\$@#".contains(c);
    if !word.chars().all(is_plain) {
        return false;
    }
    let is_flag = word
        .strip_prefix("--")
        .is_some_and(|rest| rest.len() > 1 && !rest.starts_with('-'));
    let has_inner = |mark: &str| {
        word.split_once(mark)
            .is_some_and(|(before, after)| !before.is_empty() && !after.is_empty())
    };
    let is_path = word.contains('/') && word.contains('.') && has_inner("/");
    let is_camel = word
        .chars()
        .zip(word.chars().skip(1))
        .any(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    is_flag || is_path || is_camel || has_inner("_") || has_inner("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_look_like_an_ordinary_word() {
        for name in [
            "retry_policy",
            "PayoutJob",
            "useState",
            "--no-verify",
            "src/pay/job.rs",
            "pay::Job::run",
            "MAX_RETRIES",
        ] {
            assert!(is_name(name), "{name}");
        }
        for word in [
            "Payout",
            "HTTP",
            "and/or",
            "e.g.",
            "2026-01-01",
            "--",
            "---",
            "well-known",
            "_",
            "https://example.com/a_b",
            "10/20",
            "it's",
        ] {
            assert!(!is_name(word), "{word}");
        }
        assert_eq!(needle("pay::Job::run_all()"), "run_all");
        assert_eq!(needle("a::io"), "a::io");
    }
}
