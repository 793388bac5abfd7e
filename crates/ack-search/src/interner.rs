//! Interned names of one index: projects, sessions, types, tags and files. Names can be compared by
//! their ids, both as written and folded.

use rustc_hash::FxHashMap as HashMap;

use super::dictionary::Dictionary;
use ack_api::memory::fold_name;

/// The id of an interned name; 0 is the empty name.
pub type NameId = u32;

/// The names of one index.
#[derive(Debug)]
pub struct Interner {
    names: Dictionary,
    /// The folded form of each name.
    folded: Vec<NameId>,
}

impl Default for Interner {
    fn default() -> Self {
        let mut names = Dictionary::default();
        let empty = names.intern("");
        Self { names, folded: vec![empty] }
    }
}

impl Interner {
    pub fn bytes(&self) -> usize {
        self.names.bytes() + self.folded.capacity() * size_of::<NameId>()
    }

    /// The id of a name. New names are added.
    pub fn intern(&mut self, text: &str) -> NameId {
        let count = self.names.len();
        let name = self.names.intern(text);
        if (name as usize) < count {
            return name;
        }
        if self.names.len() == count {
            // The dictionary is full.
            return 0;
        }
        // The name is its own folded form, unless folding changes it.
        self.folded.push(name);
        let folded = fold_name(text);
        if folded != text {
            let folded = self.intern(&folded);
            if let Some(slot) = self.folded.get_mut(name as usize) {
                *slot = folded;
            }
        }
        name
    }

    /// The id of a name, if it was interned.
    pub fn lookup(&self, text: &str) -> Option<NameId> {
        self.names.find(text)
    }

    /// The ids of a folded name and of those below it: `a` and `a/b`.
    pub fn with_below(&self, folded: &str) -> Vec<NameId> {
        let is_within = |name: &str| {
            let rest = name.strip_prefix(folded);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let names = (0..).zip(self.names.iter().zip(&self.folded));
        names
            .filter(|(id, (name, fold))| id == *fold && is_within(name))
            .map(|(id, _)| id)
            .collect()
    }

    pub fn name(&self, name: NameId) -> &str {
        self.names.get(name)
    }

    /// The folded form of a name, which comparisons use.
    pub fn fold(&self, name: NameId) -> NameId {
        self.folded.get(name as usize).copied().unwrap_or(name)
    }

    /// Every spelling of a folded name.
    pub fn spellings(&self, folded: NameId) -> Vec<&str> {
        let names = self.names.iter().zip(&self.folded);
        names.filter(|(_, fold)| **fold == folded).map(|(name, _)| name).collect()
    }

    /// Counts names, most frequent first. Names with the same folded form count together, under
    /// their most frequent spelling.
    pub fn count_spellings(&self, names: impl Iterator<Item = NameId>) -> Vec<(&str, u64)> {
        let mut spellings: HashMap<NameId, u64> = HashMap::default();
        for name in names {
            *spellings.entry(name).or_default() += 1;
        }
        let mut groups: HashMap<NameId, SpellingGroup<'_>> = HashMap::default();
        for (name, count) in spellings {
            groups.entry(self.fold(name)).or_default().add(self.name(name), count);
        }
        let groups = groups.into_values().map(|group| (group.spelling, group.total));
        let mut counted: Vec<(&str, u64)> = groups.collect();
        counted.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        counted
    }
}

/// The spellings of one folded name.
#[derive(Default)]
struct SpellingGroup<'a> {
    total: u64,
    /// The most frequent spelling (the alphabetically first of several), and its count.
    spelling: &'a str,
    spelling_count: u64,
}

impl<'a> SpellingGroup<'a> {
    fn add(&mut self, spelling: &'a str, count: u64) {
        use std::cmp::Reverse;
        self.total += count;
        let best = (self.spelling_count, Reverse(self.spelling));
        if (count, Reverse(spelling)) > best || self.spelling_count == 0 {
            (self.spelling_count, self.spelling) = (count, spelling);
        }
    }
}
