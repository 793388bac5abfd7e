//! Finds which of a few words occur in a text, in one pass over its bytes.

use std::collections::HashSet;

use aho_corasick::packed::{Config as SearcherConfig, Searcher};
use aho_corasick::{AhoCorasick, MatchKind};

use ack_api::memory::{decomposed, lower_case};

use super::files::{Naming, ProjectFile};
use ack_search::analysis::is_stop_word;
use ack_search::analysis::stems::stem;
use ack_store::outline::FindWords;

const MAX_WORDS: usize = u128::BITS as usize;

/// The origin of a word, which decides how to search for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// An ordinary word, which also matches its other forms.
    Prose,
    /// A name, which matches as written, except that `-` and `_` are equal.
    Name,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    word: String,
    kind: WordKind,
    stem: String,
}

impl Entry {
    /// Whether a word of a text is a form of this one.
    fn is_form(&self, found: &[u8]) -> bool {
        let lower = || str::from_utf8(found).unwrap_or_default().to_lowercase();
        // Stemming takes much longer than the rest of the search.
        found.eq_ignore_ascii_case(self.word.as_bytes()) || stem(&lower()) == self.stem
    }
}

/// Words to search for, numbered in the order they were added.
#[derive(Debug, Default)]
pub struct Words {
    entries: Vec<Entry>,
    pattern_words: Vec<usize>,
    automaton: Option<AhoCorasick>,
    /// Tells much faster whether a text in lower case has any of the words, if there are few.
    any: Option<Searcher>,
    /// Files that a memory may name by their folder or a glob, each with the bits of its names.
    files: Vec<(ProjectFile, u128)>,
    /// Names of their folders.
    folders: Option<AhoCorasick>,
}

impl Words {
    /// Prepares words. Skips those that are too short or too common, and any beyond the maximum.
    /// Ignores case.
    pub fn new<W: AsRef<str>>(words: impl IntoIterator<Item = (W, WordKind)>) -> Self {
        let mut list: Vec<Entry> = Vec::new();
        let (mut patterns, mut owners) = (Vec::new(), Vec::new());
        for (word, kind) in words {
            let word = lower_case(word.as_ref());
            let known = list.iter().any(|known| known.word == word);
            if known || word.len() < 2 || list.len() == MAX_WORDS || is_stop_word(&word) {
                continue;
            }
            let stem = stem(&word).into_owned();
            let mut forms = match kind {
                // A final `i` may stand for a `y`: `retry`, `retries`.
                WordKind::Prose => vec![stem.trim_end_matches('i').to_owned()],
                // A list of files is JSON, which escapes a backslash as two.
                WordKind::Name => vec![
                    word.clone(),
                    word.replace('-', "_"),
                    word.replace('_', "-"),
                    word.replace('/', "\\"),
                    word.replace('/', "\\\\"),
                    decomposed(&word),
                ],
            };
            forms.sort();
            forms.dedup();
            owners.resize(owners.len() + forms.len(), list.len());
            patterns.extend(forms);
            list.push(Entry { word, kind, stem });
        }
        // Overlapping matches need the standard kind.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(&patterns)
            .ok()
            .filter(|_| !patterns.is_empty());
        Self {
            entries: list,
            pattern_words: owners,
            any: SearcherConfig::new().builder().extend(&patterns).build(),
            automaton,
            ..Self::default()
        }
    }

    /// Makes a folder or glob in a memory's files count as the names of the first of these files
    /// that it covers. Each file comes with its names.
    pub fn with_files(mut self, files: Vec<(ProjectFile, Vec<String>)>) -> Self {
        let folders = files.iter().flat_map(|(file, _)| file.folders());
        let mut folders: Vec<String> =
            folders.flat_map(|folder| [folder.to_owned(), decomposed(folder)]).collect();
        folders.sort_unstable();
        folders.dedup();
        self.folders = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(&folders)
            .ok()
            .filter(|_| !folders.is_empty());
        self.files = files
            .into_iter()
            .map(|(file, names)| (file, self.set(names.iter().map(String::as_str))))
            .collect();
        self
    }

    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.files.is_empty()
    }

    /// The names of the first file that a folder or glob in a list covers.
    fn names_of_covered_file(&self, list: &[u8], entries: &dyn Fn() -> Vec<String>) -> u128 {
        let may_cover = list.contains(&b'*')
            || self.folders.as_ref().is_some_and(|folders| folders.is_match(list));
        if self.files.is_empty() || !may_cover {
            return 0;
        }
        let entries = entries();
        let covers = |file: &ProjectFile| {
            let is_covering = |entry: &String| {
                matches!(file.named_by(entry), Some(Naming::Folder | Naming::Glob))
            };
            entries.iter().any(is_covering)
        };
        let found = self.files.iter().find(|(file, _)| covers(file));
        found.map_or(0, |(_, names)| *names)
    }

    pub fn set<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> u128 {
        let words: HashSet<String> = words.into_iter().map(lower_case).collect();
        let numbered = (0u32..).zip(&self.entries).filter(|(_, entry)| words.contains(&entry.word));
        numbered.fold(0, |set, (number, _)| set | 1 << number)
    }

    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.word.as_str())
    }

    pub fn number(&self, word: &str) -> Option<u32> {
        let at = self.words().position(|known| known == word)?;
        u32::try_from(at).ok()
    }

    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// The words of a set, as they were given, except those that are part of another word of the
    /// set.
    pub fn list(&self, set: u128) -> Vec<&str> {
        let words = (0u32..).zip(&self.entries).filter(|(number, _)| set >> number & 1 == 1);
        let words: Vec<&str> = words.map(|(_, entry)| entry.word.as_str()).collect();
        let within =
            |word: &str| words.iter().any(|other| other.len() > word.len() && other.contains(word));
        words.iter().filter(|word| !within(word)).copied().collect()
    }

    /// A set without the words that are part of another word of it.
    pub fn without_parts(&self, set: u128) -> u128 {
        self.set(self.list(set))
    }

    /// The words that occur in a text.
    fn find(&self, text: &[u8]) -> u128 {
        let Some(automaton) = &self.automaton else {
            return 0;
        };
        let has_any = |any: &Searcher| any.find(text.to_ascii_lowercase()).is_some();
        if !self.any.as_ref().is_none_or(has_any) {
            return 0;
        }
        let mut found = 0;
        for hit in automaton.find_overlapping_iter(text) {
            let Some((number, entry)) = self
                .pattern_words
                .get(hit.pattern().as_usize())
                .and_then(|number| Some((*number, self.entries.get(*number)?)))
                .filter(|(number, _)| found >> number & 1 == 0)
            else {
                continue;
            };
            let before = text.get(..hit.start()).and_then(|before| before.last());
            // A file name does not match the end of another file name.
            let is_file = entry.word.contains('.');
            let goes_on = |byte: &u8| is_part(*byte) || (is_file && matches!(byte, b'_' | b'-'));
            if before.is_some_and(goes_on) {
                continue;
            }
            let after = text.get(hit.end()..).unwrap_or_default();
            let ending = after.iter().take_while(|byte| is_part(**byte)).count();
            let whole_word = text.get(hit.start()..hit.end() + ending);
            let ends = match entry.kind {
                WordKind::Prose => entry.is_form(whole_word.unwrap_or_default()),
                WordKind::Name => ending == 0,
            };
            if ends {
                found |= 1 << number;
            }
        }
        found
    }
}

/// Two lists of equal words and files find the same.
impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        (&self.entries, &self.files) == (&other.entries, &other.files)
    }
}

impl Eq for Words {}

const fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

impl FindWords for Words {
    fn in_text(&self, text: &[u8]) -> u128 {
        self.find(text)
    }

    fn in_files(&self, list: &[u8], entries: &dyn Fn() -> Vec<String>) -> u128 {
        self.find(list) | self.names_of_covered_file(list, entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, origin: WordKind, text: &str, expected: bool) {
        let words = Words::new([(word, origin)]);
        assert_eq!(words.find(text.as_bytes()) != 0, expected, "{word} in {text}");
    }

    #[test]
    fn prose_is_found_in_its_forms_and_names_as_they_are_written() {
        check("locking", WordKind::Prose, "The Locks of the payout job", true);
        check("lock", WordKind::Prose, "a blockade", false);
        check("lock", WordKind::Prose, "a locket", false);
        check("retry", WordKind::Prose, "it retries, running on", true);
        check("retries", WordKind::Prose, "a retry", true);
        check("run", WordKind::Prose, "Running twice", true);
        check("lock", WordKind::Prose, "lockfiles drift", false);
        check("serde_json", WordKind::Name, "use serde-json here", true);
        check("sqlx", WordKind::Name, "SQLX needs offline data", true);
        check("sqlx", WordKind::Name, "sqlxmq is another crate", false);
        check("go", WordKind::Name, "it goes on", false);
        check("payout.rs", WordKind::Name, "src/pay/payout.rs:12", true);
        check("payout.rs", WordKind::Name, "src/old_payout.rs", false);
        check("the", WordKind::Prose, "the end", false);
    }

    #[test]
    fn every_word_of_a_text_is_found() {
        let words = Words::new(["tokio", "sqlx", "axum"].map(|word| (word, WordKind::Name)));
        let found = words.find(b"axum handlers over tokio");
        assert_eq!(words.list(found), ["tokio", "axum"]);
        assert_eq!(words.list(words.set(["Axum", "sqlx", "hyper"])), ["sqlx", "axum"]);
        let files = Words::new(["payout.rs", "payout"].map(|word| (word, WordKind::Name)));
        assert_eq!(files.list(files.find(b"src/payout.rs")), ["payout.rs"]);
        assert_eq!(Words::default().find(b"anything"), 0);
    }
}
