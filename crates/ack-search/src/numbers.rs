//! Finding the number of something by what it is called, where the name itself lies with the thing: a table of numbers alone,
//! a few bytes each.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// The hash that [`Numbers`] go by.
pub fn hash<T: Hash + ?Sized>(name: &T) -> u64 {
    FxBuildHasher.hash_one(name)
}

/// A set of numbers, each found by the hash of its name.
#[derive(Debug, Default)]
pub struct Numbers(HashTable<u32>);

impl Numbers {
    /// The number with this hash that `is` recognises.
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.0.find(hash, |number| is(*number)).copied()
    }

    /// Adds a number that is not there. `name` tells the hash of those that are, when the table grows.
    pub fn insert(&mut self, hash: u64, number: u32, name: impl Fn(u32) -> Option<u64>) {
        self.0.insert_unique(hash, number, |other| name(*other).unwrap_or_default());
    }

    /// Takes a number out.
    pub fn remove(&mut self, hash: u64, number: u32) {
        if let Ok(entry) = self.0.find_entry(hash, |other| *other == number) {
            entry.remove();
        }
    }

    /// How many bytes of memory they take: four a place, and one of the table's own.
    pub fn bytes(&self) -> usize {
        self.0.capacity() * 8 / 7 * 5
    }

    /// Every number, in no order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}
