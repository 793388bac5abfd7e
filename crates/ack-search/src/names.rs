//! Interned names of one index (projects, sessions, types, tags, files): numbers that compare as the strings do, as written
//! and folded.

use rustc_hash::FxHashMap as HashMap;

use super::dictionary::Dictionary;
use ack_api::memory::fold_name;

/// An interned string; 0 is the empty one.
pub type Name = u32;

/// The strings of one index.
#[derive(Debug)]
pub struct Names {
    list: Dictionary,
    /// The folded name of each name.
    folded: Vec<Name>,
}

impl Default for Names {
    fn default() -> Self {
        let mut list = Dictionary::default();
        let empty = list.number("");
        Self { list, folded: vec![empty] }
    }
}

impl Names {
    /// How many bytes of memory they take.
    pub fn bytes(&self) -> usize {
        self.list.bytes() + self.folded.capacity() * size_of::<Name>()
    }

    /// The number of a string, a new one if need be.
    pub fn intern(&mut self, text: &str) -> Name {
        let known = self.list.len();
        let name = self.list.number(text);
        if (name as usize) < known {
            return name;
        }
        if self.list.len() == known {
            return 0;
        }
        // Its own folded name until said otherwise.
        self.folded.push(name);
        let folded = fold_name(text);
        if folded != text {
            let fold = self.intern(&folded);
            if let Some(slot) = self.folded.get_mut(name as usize) {
                *slot = fold;
            }
        }
        name
    }

    /// The number of an interned string, if any document has it.
    pub fn lookup(&self, text: &str) -> Option<Name> {
        self.list.find(text)
    }

    /// The string behind a number.
    pub fn name(&self, name: Name) -> &str {
        self.list.get(name)
    }

    /// The folded name of a name: what comparisons go by.
    pub fn fold(&self, name: Name) -> Name {
        self.folded.get(name as usize).copied().unwrap_or(name)
    }

    /// Every spelling of a folded name.
    pub fn spellings(&self, folded: Name) -> Vec<&str> {
        let same = self.list.iter().zip(&self.folded).filter(|(_, own)| **own == folded);
        same.map(|(name, _)| name).collect()
    }

    /// How often each name occurs, those that fold alike together under their most frequent spelling; the most frequent
    /// first.
    pub fn counted(&self, names: impl Iterator<Item = Name>) -> Vec<(&str, u64)> {
        let mut spellings: HashMap<Name, u64> = HashMap::default();
        for name in names {
            *spellings.entry(name).or_default() += 1;
        }
        let mut groups: HashMap<Name, (u64, u64, &str)> = HashMap::default();
        for (name, count) in spellings {
            let group = groups.entry(self.fold(name)).or_insert((0, 0, ""));
            group.0 += count;
            let spelling = self.name(name);
            if (count, std::cmp::Reverse(spelling)) > (group.1, std::cmp::Reverse(group.2)) || group.1 == 0 {
                (group.1, group.2) = (count, spelling);
            }
        }
        let mut counted: Vec<(&str, u64)> = groups.into_values().map(|(count, _, spelling)| (spelling, count)).collect();
        counted.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        counted
    }
}
