//! Sketches of sets of words: sets that share many words have sketches that agree.
//!
//! A sketch is a MinHash (Broder 1997) in bands. Sets whose sketches agree in a band are candidates
//! (locality-sensitive hashing), so most pairs are never compared.

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rustc_hash::{FxHashMap, FxHashSet};

/// The number of bands of a sketch, and of hashes per band. Sets with a Jaccard index of 0.5 agree
/// in at least one band with a probability of 0.97, sets with an index of 0.2 with 0.18.
const BANDS: usize = 24;
const ROWS: usize = 3;
/// The number of bands that are enough for sets that share most of their words: sets with a Jaccard
/// index of 0.8 agree in at least one with a probability of 0.9998.
const FEW_BANDS: usize = 12;
/// How many sets of one band are examined. A template that many memories share can fill a band.
const MAX_BAND_MEMBERS: usize = 1_000;

/// A sketch of a set.
pub type Bands = [u64; BANDS];

/// The sketch of a set of hashes.
pub fn sketch(words: &FxHashSet<u64>) -> Bands {
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

/// A set of hashes that is compared only with sets of the same group.
#[derive(Debug, Clone, Copy)]
pub struct Grouped<'a> {
    /// The group.
    pub group: u64,
    /// Sets with the same label are always compared, even if a template that many share fills the
    /// bands.
    pub label: u64,
    /// The set.
    pub words: &'a FxHashSet<u64>,
}

/// For each set, finds the first of the earlier ones of its group that `is_near` accepts. Returns
/// both positions, the later one first. Only sets whose Jaccard index may be at least 0.8 are
/// tried. Empty sets are near no other.
pub fn find_earlier(
    sets: &[Grouped<'_>],
    is_near: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    let sketches: Vec<Bands> = sets.par_iter().map(|set| sketch(set.words)).collect();
    let mut buckets: FxHashMap<(usize, u64), Vec<usize>> = FxHashMap::default();
    // The last set that each one was compared with.
    let mut compared = vec![0; sets.len()];
    let mut found = Vec::new();
    for (position, (set, bands)) in sets.iter().zip(&sketches).enumerate() {
        if set.words.is_empty() {
            continue;
        }
        let keys = bands.iter().take(FEW_BANDS).chain([&set.label]);
        let keys = keys.enumerate();
        let keys = keys.map(|(band, value)| (band, mix(value ^ set.group)));
        let mut near: Option<usize> = None;
        for key in keys.clone() {
            for earlier in buckets.get(&key).into_iter().flatten().copied() {
                if near.is_some_and(|near| near <= earlier) {
                    break;
                }
                let is_new = compared
                    .get_mut(earlier)
                    .is_some_and(|last| std::mem::replace(last, position) != position);
                if is_new && is_near(position, earlier) {
                    near = Some(earlier);
                }
            }
        }
        found.extend(near.map(|earlier| (position, earlier)));
        // A set that is near this one is also near an equal one.
        let equal = near.and_then(|earlier| sets.get(earlier));
        if equal.is_some_and(|earlier| earlier.words == set.words) {
            continue;
        }
        for key in keys {
            let bucket = buckets.entry(key).or_default();
            if bucket.len() < MAX_BAND_MEMBERS {
                bucket.push(position);
            }
        }
    }
    found
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

    /// Sets of 20 words, each of which shares `shared` words with the previous one.
    fn chain(count: u64, shared: u64) -> Vec<FxHashSet<u64>> {
        let first = |set: u64| set * (20 - shared);
        (0..count)
            .map(|set| (first(set)..first(set) + 20).map(mix).collect())
            .collect()
    }

    #[test]
    fn sets_that_share_four_fifths_are_found_and_others_are_not() {
        // Neighbours share 18 of 22 words, sets three apart 12 of 28.
        let sets = chain(500, 18);
        let grouped: Vec<Grouped<'_>> = sets
            .iter()
            .map(|words| Grouped {
                group: 7,
                label: words
                    .iter()
                    .fold(0, |sum: u64, word| sum.wrapping_add(*word)),
                words,
            })
            .collect();
        let previous = find_earlier(&grouped, |later, earlier| later - earlier == 1);
        let all: Vec<(usize, usize)> = (1..sets.len()).map(|later| (later, later - 1)).collect();
        assert_eq!(previous, all);
        assert_eq!(
            find_earlier(&grouped, |later, earlier| later - earlier >= 10),
            []
        );
    }

    #[test]
    fn sets_of_different_groups_are_not_compared() {
        let words: FxHashSet<u64> = (0..20).map(mix).collect();
        let sets = [1, 2, 1].map(|group| Grouped {
            group,
            label: 0,
            words: &words,
        });
        assert_eq!(find_earlier(&sets, |_, _| true), [(2, 0)]);
        // Many equal sets are each compared with the first one.
        let equal = vec![sets[0]; 5_000];
        let tried = std::cell::Cell::new(0);
        let found = find_earlier(&equal, |_, earlier| {
            tried.set(tried.get() + 1);
            earlier == 0
        });
        assert_eq!((found.len(), tried.get()), (4_999, 4_999));
    }

    #[test]
    fn empty_sets_are_like_no_other() {
        let words = FxHashSet::default();
        let empty = Grouped {
            group: 0,
            label: 0,
            words: &words,
        };
        assert_eq!(find_earlier(&[empty, empty], |_, _| true), []);
    }
}
