//! Memories that are much alike, among many, in about linear time.
//!
//! Each memory is a set of word hashes and a sketch of this set: a MinHash (Broder 1997) in bands.
//! Memories whose sketches agree in a band are candidates (locality-sensitive hashing), so most
//! pairs are never compared. A memory joins the first earlier group whose leader it resembles. Only
//! leaders are candidates, so that a chain of small changes does not become one group.

use std::cell::OnceCell;
use std::hash::BuildHasher;

use ack_api::memory::Memory;
use ack_search::analysis::stems::stem;
use ack_search::analysis::{self, TextRole};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::profile::Profile;
use crate::{RelationKind, relate};

/// Share of common words (Jaccard index) of memories to look at together.
pub const ALIKE: f64 = 0.5;
/// The same, of memories with nearly the same words.
pub const NEARLY_EQUAL: f64 = 0.8;
/// The number of bands of a sketch, and of hashes per band. Sets with a Jaccard index of 0.5 agree
/// in at least one band with a probability of 0.97, sets with an index of 0.2 with 0.18.
const BANDS: usize = 24;
const ROWS: usize = 3;

/// The most words of a memory that are sketched.
const MAX_WORDS: usize = 2_000;
/// How many leaders of one band are examined. A template that many memories share can fill a band.
const MAX_CANDIDATES: usize = 32;

type Bands = [u64; BANDS];

struct Sketch<'a> {
    memory: &'a Memory,
    words: FxHashSet<u64>,
    bands: Bands,
    /// Read if it is compared with another one.
    profile: OnceCell<Profile>,
}

impl<'a> Sketch<'a> {
    fn of(memory: &'a Memory) -> Self {
        let mut words = FxHashSet::default();
        for text in memory.texts() {
            analysis::tokenize(text, TextRole::Document, &mut |token| {
                if words.len() < MAX_WORDS && !analysis::is_stop_word(&token.text) {
                    words.insert(FxBuildHasher.hash_one(stem(&token.text)));
                }
            });
        }
        Self { memory, bands: bands_of(&words), words, profile: OnceCell::new() }
    }

    fn profile(&self) -> &Profile {
        self.profile.get_or_init(|| Profile::of(self.memory))
    }
}

/// Groups memories by their positions: those that share at least this part of their words. Every
/// memory is in exactly one group. Groups are in the order of their first members, and members in
/// ascending order. Memories that contradict the first member of a group are not in it, but others
/// may say the opposite: only a person can tell whether memories that are much alike say the same.
pub fn alike(memories: &[&Memory], min_overlap: f64) -> Vec<Vec<usize>> {
    let sketches: Vec<Sketch<'_>> = memories.par_iter().map(|memory| Sketch::of(memory)).collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut leaders: Vec<&Sketch<'_>> = Vec::new();
    let mut buckets: FxHashMap<(usize, u64), Vec<usize>> = FxHashMap::default();
    for (position, sketch) in sketches.iter().enumerate() {
        let bands = || sketch.bands.iter().copied().enumerate();
        let mut candidates: Vec<usize> =
            bands().filter_map(|band| buckets.get(&band)).flatten().copied().collect();
        candidates.sort_unstable();
        candidates.dedup();
        let joined = candidates.into_iter().find(|group| {
            leaders.get(*group).is_some_and(|leader| {
                overlap(&sketch.words, &leader.words) >= min_overlap
                    && relate(sketch.profile(), leader.profile()).kind != RelationKind::Contradicts
            })
        });
        if let Some(group) = joined.and_then(|group| groups.get_mut(group)) {
            group.push(position);
            continue;
        }
        for band in bands() {
            let bucket = buckets.entry(band).or_default();
            if bucket.len() < MAX_CANDIDATES {
                bucket.push(groups.len());
            }
        }
        groups.push(vec![position]);
        leaders.push(sketch);
    }
    groups
}

#[expect(clippy::cast_precision_loss, reason = "counts of words")]
fn overlap(one: &FxHashSet<u64>, other: &FxHashSet<u64>) -> f64 {
    let common = one.intersection(other).count();
    let union = one.len() + other.len() - common;
    common as f64 / union.max(1) as f64
}

fn bands_of(words: &FxHashSet<u64>) -> Bands {
    let mut bands = [0; BANDS];
    for (band, value) in bands.iter_mut().enumerate() {
        for row in 0..ROWS {
            let seed = mix((band * ROWS + row) as u64 + 1);
            let min = words.iter().map(|word| mix(word ^ seed)).min();
            *value = mix(*value ^ min.unwrap_or_default());
        }
    }
    bands
}

/// A permutation of numbers (the finalizer of SplitMix64).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(texts: &[&str]) -> Vec<Vec<usize>> {
        let memory = |text: &&str| Memory { title: (*text).to_owned(), ..Memory::default() };
        let memories: Vec<Memory> = texts.iter().map(memory).collect();
        alike(&memories.iter().collect::<Vec<_>>(), ALIKE)
    }

    #[test]
    fn memories_that_are_much_alike_are_in_one_group_and_others_alone() {
        let groups = grouped(&[
            "The webhook sender waits 30 seconds for an answer before it retries",
            "The kiosk has a dark theme at night",
            "Webhook sender waits 30 seconds for the answer, then it retries",
            "The webhook sender waits 30 seconds for an answer before it retries.",
        ]);
        assert_eq!(groups, [vec![0, 2, 3], vec![1]]);
    }

    #[test]
    fn a_memory_that_contradicts_the_first_of_a_group_is_not_in_it() {
        let groups = grouped(&[
            "The webhook sender waits 30 seconds for an answer before it retries",
            "The webhook sender waits 60 seconds for an answer before it retries",
        ]);
        assert_eq!(groups, [vec![0], vec![1]]);
    }
}
