//! Finds which of a few words occur in a text, in one pass over its bytes.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use aho_corasick::AhoCorasick;

use ack_api::memory::{decomposed, lower_case};

use super::files::{Naming, ProjectFile};
use ack_search::analysis::is_stop_word;
use ack_search::analysis::stems::stem;
use ack_store::outline::FindWords;

const MAX_WORDS: usize = u128::BITS as usize;

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
    fn is_form(&self, found: &[u8]) -> bool {
        let lower = || str::from_utf8(found).unwrap_or_default().to_lowercase();
        // Stemming takes much longer than the rest of the search.
        found.eq_ignore_ascii_case(self.word.as_bytes()) || stem(&lower()) == self.stem
    }

    /// Whether a text begins with this word, which itself begins so.
    fn is_at(&self, text: &[u8], beginning: &str) -> bool {
        let Some((head, rest)) = text.split_at_checked(beginning.len()) else {
            return false;
        };
        if !head.eq_ignore_ascii_case(beginning.as_bytes()) {
            return false;
        }
        let ending = rest.iter().take_while(|byte| is_part(**byte)).count();
        match self.kind {
            WordKind::Prose => self.is_form(text.get(..head.len() + ending).unwrap_or_default()),
            WordKind::Name => ending == 0,
        }
    }
}

/// Words to search for, numbered in the order they were added.
#[derive(Debug, Default)]
pub struct Words {
    entries: Vec<Entry>,
    /// How the words may begin in a text, with the number of each, by their first two bytes. A word
    /// is looked for only where one may begin, which is several times faster than an automaton.
    beginnings: Vec<Vec<(String, usize)>>,
    /// For each two bytes in any case, one more than the position of their list among these, or 0.
    /// It is asked for every word of a text, so a map would be too slow.
    positions: Vec<u16>,
    /// Files that a memory may name by their folder or a glob, each with the bits of its names.
    files: Vec<(ProjectFile, u128)>,
    folders: Option<AhoCorasick>,
}

impl Words {
    /// Skips words that are too short or too common, and any beyond the maximum. Ignores case.
    pub fn new<W: AsRef<str>>(words: impl IntoIterator<Item = (W, WordKind)>) -> Self {
        let mut list: Vec<Entry> = Vec::new();
        let mut beginnings: BTreeMap<[u8; 2], Vec<(String, usize)>> = BTreeMap::new();
        for (word, kind) in words {
            let word = lower_case(word.as_ref());
            let is_known = || list.iter().any(|known| known.word == word);
            if list.len() == MAX_WORDS || word.len() < 2 || is_known() || is_stop_word(&word) {
                continue;
            }
            let stem = stem(&word).into_owned();
            let forms: BTreeSet<String> = match kind {
                // A final `i` may stand for a `y`: `retry`, `retries`.
                WordKind::Prose => [match stem.strip_suffix('i').unwrap_or(&stem) {
                    short if short.len() < 2 => word.clone(),
                    beginning => beginning.to_owned(),
                }]
                .into(),
                // A list of files is JSON, which escapes a backslash as two.
                WordKind::Name => [
                    word.clone(),
                    word.replace('-', "_"),
                    word.replace('_', "-"),
                    word.replace('/', "\\"),
                    word.replace('/', "\\\\"),
                    decomposed(&word),
                ]
                .into(),
            };
            for form in forms {
                if let Some(pair) = form.as_bytes().first_chunk() {
                    beginnings.entry(*pair).or_default().push((form, list.len()));
                }
            }
            list.push(Entry { word, kind, stem });
        }
        let mut positions = vec![0; 1 << 16];
        for (pair, position) in beginnings.keys().zip(1..) {
            let [first, second] = pair.map(|byte| [byte, byte.to_ascii_uppercase()]);
            for pair in first.into_iter().flat_map(|first| second.map(|second| [first, second])) {
                if let Some(known) = positions.get_mut(usize::from(u16::from_be_bytes(pair))) {
                    *known = position;
                }
            }
        }
        let beginnings = beginnings.into_values().collect();
        Self { entries: list, beginnings, positions, ..Self::default() }
    }

    /// A folder or glob counts as the names of the first of these files that it covers.
    pub fn with_files(mut self, files: Vec<(ProjectFile, Vec<String>)>) -> Self {
        let folders = files.iter().flat_map(|(file, _)| file.folders());
        let folders: BTreeSet<String> =
            folders.flat_map(|folder| [folder.to_owned(), decomposed(folder)]).collect();
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
        let covers = |file: &ProjectFile, entry: &String| {
            matches!(file.named_by(entry), Some(Naming::Folder | Naming::Glob))
        };
        let mut files = self.files.iter();
        let found = files.find(|(file, _)| entries.iter().any(|entry| covers(file, entry)));
        found.map_or(0, |(_, names)| *names)
    }

    pub fn set<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> u128 {
        let words: HashSet<String> = words.into_iter().map(lower_case).collect();
        let numbered = (0u32..).zip(&self.entries).filter(|(_, entry)| words.contains(&entry.word));
        numbered.fold(0, |set, (number, _)| set | 1 << number)
    }

    pub fn number(&self, word: &str) -> Option<u32> {
        (0u32..).zip(&self.entries).find(|(_, entry)| entry.word == word).map(|(at, _)| at)
    }

    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// The words of a set as they were given, except those that are part of another one.
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

    fn find(&self, text: &[u8]) -> u128 {
        let mut found = 0;
        let mut is_inside = false;
        for (start, pair) in text.array_windows().enumerate() {
            let place = || usize::from(u16::from_be_bytes(*pair));
            if !is_inside && let Some(list @ 1..) = self.positions.get(place()).copied() {
                let (before, rest) = text.split_at(start);
                let is_after_hyphen = matches!(before.last(), Some(b'_' | b'-'));
                let beginnings = self.beginnings.get(usize::from(list) - 1);
                for (beginning, number) in beginnings.into_iter().flatten() {
                    let known = found >> number & 1 == 1;
                    let entry = self.entries.get(*number).filter(|_| !known);
                    // A file name does not match the end of another file name.
                    let entry = entry.filter(|it| !is_after_hyphen || !it.word.contains('.'));
                    if entry.is_some_and(|entry| entry.is_at(rest, beginning)) {
                        found |= 1 << number;
                    }
                }
            }
            is_inside = is_part(pair[0]);
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

/// The bytes of words, a bit for each: ASCII letters and digits, and whatever is not ASCII. It is
/// asked for every byte; a table takes half as many instructions as comparisons.
const PARTS: [u64; 4] = [0x03ff_0000_0000_0000, 0x07ff_fffe_07ff_fffe, u64::MAX, u64::MAX];

fn is_part(byte: u8) -> bool {
    PARTS.get(usize::from(byte / 64)).is_some_and(|bits| bits >> (byte % 64) & 1 == 1)
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
