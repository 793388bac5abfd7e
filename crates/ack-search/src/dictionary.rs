//! Numbered strings, concatenated in memory. Each takes about a dozen bytes more than its text.

use std::hash::{BuildHasher, Hash};
use std::sync::OnceLock;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::shapes::{SHAPE_BYTES, ShapePattern, Shapes};

/// A slot of an [`IdTable`] is four bytes and one control byte, and seven of eight slots are used.
pub const SLOT_BYTES: usize = 6;

/// Strings, numbered from 0 in the order in which they were added.
#[derive(Debug, Default)]
pub struct Dictionary {
    text: String,
    ends: Vec<u32>,
    ids: IdTable,
    /// The shape of each string, from the first search by shape on.
    shapes: OnceLock<Shapes>,
}

impl Dictionary {
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string with a number, or the empty string if there is none.
    pub fn get(&self, id: u32) -> &str {
        get(&self.text, &self.ends, id)
    }

    pub fn find(&self, text: &str) -> Option<u32> {
        self.ids.find(hash(text), |id| self.get(id) == text)
    }

    /// The number of a string, which is added if it is new. After 4 GiB of text, every new string gets
    /// [`Dictionary::len`], which is the number of no string.
    pub fn intern(&mut self, text: &str) -> u32 {
        let text_hash = hash(text);
        if let Some(id) = self.ids.find(text_hash, |id| self.get(id) == text) {
            return id;
        }
        let id = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let Ok(end) = u32::try_from(self.text.len() + text.len()) else {
            return id;
        };
        self.text.push_str(text);
        self.ends.push(end);
        if let Some(shapes) = self.shapes.get_mut() {
            shapes.push(text);
        }
        let Self { text, ends, ids, .. } = self;
        ids.insert(text_hash, id, |other| hash(get(text, ends, other)));
        id
    }

    pub fn iter_from(&self, first: usize) -> impl Iterator<Item = &str> {
        (first..self.len()).map(|id| self.get(u32::try_from(id).unwrap_or(u32::MAX)))
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.iter_from(0)
    }

    pub fn matching(&self, pattern: ShapePattern) -> impl Iterator<Item = &str> {
        let shapes = self.shapes.get_or_init(|| self.iter().collect());
        shapes.matching(pattern).filter_map(|id| u32::try_from(id).ok()).map(|id| self.get(id))
    }

    /// The estimated bytes of memory: the text, and for each string its end, its slot and its shape.
    pub const fn bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * (size_of::<u32>() + SLOT_BYTES + SHAPE_BYTES)
    }

    pub fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

fn get<'a>(text: &'a str, ends: &[u32], id: u32) -> &'a str {
    let id = id as usize;
    let previous = id.checked_sub(1).and_then(|previous| ends.get(previous));
    let start = previous.copied().unwrap_or_default();
    let end = ends.get(id).copied().unwrap_or(start);
    text.get(start as usize..end as usize).unwrap_or_default()
}

pub fn hash<T: Hash + ?Sized>(name: &T) -> u64 {
    FxBuildHasher.hash_one(name)
}

/// A set of numbers, each found by the hash of its name, which is stored with what it names.
#[derive(Debug, Default)]
pub struct IdTable(HashTable<u32>);

impl IdTable {
    /// The number with this hash for which `matches` holds.
    pub fn find(&self, hash: u64, matches: impl Fn(u32) -> bool) -> Option<u32> {
        self.0.find(hash, |id| matches(*id)).copied()
    }

    /// Adds a new number. `hash_of` returns the hash of a known one, for when the table grows.
    pub fn insert(&mut self, hash: u64, id: u32, hash_of: impl Fn(u32) -> u64) {
        self.0.insert_unique(hash, id, |other| hash_of(*other));
    }

    pub fn remove(&mut self, hash: u64, id: u32) {
        if let Ok(entry) = self.0.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dictionary, ShapePattern};

    #[test]
    fn strings_keep_their_numbers_as_the_dictionary_grows() {
        let mut dictionary = Dictionary::default();
        let words: Vec<String> = (0..5_000).map(|number| format!("w{}é", number * 7)).collect();
        for _ in 0..2 {
            for (number, word) in (0u32..).zip(&words) {
                assert_eq!(dictionary.intern(word), number);
                assert_eq!(dictionary.find(word), Some(number));
            }
        }
        assert_eq!(dictionary.find("w"), None);
        assert_eq!(dictionary.find(""), None);
        assert_eq!(dictionary.intern(""), 5_000);
        assert_eq!(dictionary.find(""), Some(5_000));
        assert!(dictionary.iter().take(5_000).eq(words.iter().map(String::as_str)));
        assert_eq!(dictionary.get(9_999), "");
    }

    #[test]
    fn strings_that_are_added_after_a_search_by_shape_are_found_too() {
        let mut dictionary = Dictionary::default();
        dictionary.intern("cache");
        let pattern = ShapePattern::similar("cache", 1, false);
        assert!(dictionary.matching(pattern).eq(["cache"]));
        for word in ["caches", "lock", "cached"] {
            dictionary.intern(word);
        }
        assert!(dictionary.matching(pattern).eq(["cache", "caches", "cached"]));
    }
}
