//! Interned names of one index: projects, sessions, types, tags and files. Names can be compared by
//! their ids, both as written and folded.

use std::cmp::Reverse;

use rustc_hash::FxHashMap as HashMap;

use super::dictionary::Dictionary;
use ack_api::memory::fold_name;

/// The id of an interned name; 0 is the empty name.
pub type NameId = u32;

#[derive(Debug)]
pub struct Interner {
    names: Dictionary,
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
    pub const fn bytes(&self) -> usize {
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

    pub fn spellings(&self, folded: NameId) -> Vec<&str> {
        let names = self.names.iter().zip(&self.folded);
        names.filter(|(_, fold)| **fold == folded).map(|(name, _)| name).collect()
    }

    /// The names with their counts, most frequent first. Spellings of one name count together.
    pub fn count_spellings(&self, names: impl Iterator<Item = NameId>) -> Vec<(&str, u64)> {
        let mut counts: HashMap<NameId, u64> = HashMap::default();
        for name in names {
            *counts.entry(name).or_default() += 1;
        }
        // The total, and the most frequent spelling (the alphabetically first of several).
        let mut groups: HashMap<NameId, (u64, (u64, Reverse<&str>))> = HashMap::default();
        for (name, count) in counts {
            let (total, best) = groups.entry(self.fold(name)).or_default();
            *total += count;
            *best = (*best).max((count, Reverse(self.name(name))));
        }
        let groups = groups.into_values().map(|(total, (_, Reverse(spelling)))| (spelling, total));
        let mut counted: Vec<(&str, u64)> = groups.collect();
        counted.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        counted
    }
}
