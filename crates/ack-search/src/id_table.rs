//! Hash tables from names to numbers that do not store the names. The names are already stored
//! with what they name, so the table holds only the numbers.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

pub fn hash<T: Hash + ?Sized>(name: &T) -> u64 {
    FxBuildHasher.hash_one(name)
}

/// A set of numbers, each found by the hash of its name.
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

    /// Four bytes per slot and one control byte, at a load factor of 7/8.
    pub fn bytes(&self) -> usize {
        self.0.capacity() * 8 / 7 * 5
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}
