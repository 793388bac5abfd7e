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
/// In how many bands sets agree that share most of their words. Sets with a Jaccard index of 0.8
/// almost never agree in fewer.
const MANY_BANDS: u8 = 3;
/// How many sets of one band are examined. A template that many memories share can fill a band.
const MAX_ALIKE: usize = 2_000;

/// A sketch of a set.
pub type Bands = [u64; BANDS];

/// The sketch of a set of hashes.
pub fn sketch(words: &FxHashSet<u64>) -> Bands {
    let mut bands = [0; BANDS];
    for (band, value) in bands.iter_mut().enumerate() {
        for row in 0..ROWS {
            let seed = mix((band * ROWS + row) as u64 + 1);
            let least = words.iter().map(|word| mix(word ^ seed)).min();
            *value = mix(*value ^ least.unwrap_or_default());
        }
    }
    bands
}

/// For each set of hashes, the positions of the earlier sets whose Jaccard index with it may be at
/// least 0.8, in ascending order. Empty sets have none.
pub fn earlier_alike(sets: &[&FxHashSet<u64>]) -> Vec<Vec<usize>> {
    let sketches: Vec<Bands> = sets.par_iter().map(|set| sketch(set)).collect();
    let mut buckets: FxHashMap<(usize, u64), Vec<usize>> = FxHashMap::default();
    let mut agreeing: FxHashMap<usize, u8> = FxHashMap::default();
    let mut alike = Vec::with_capacity(sets.len());
    for (position, (set, bands)) in sets.iter().zip(&sketches).enumerate() {
        agreeing.clear();
        if !set.is_empty() {
            for band in bands.iter().copied().enumerate() {
                let bucket = buckets.entry(band).or_default();
                for earlier in bucket.iter() {
                    *agreeing.entry(*earlier).or_default() += 1;
                }
                if bucket.len() < MAX_ALIKE {
                    bucket.push(position);
                }
            }
        }
        let many = agreeing.iter().filter(|(_, bands)| **bands >= MANY_BANDS);
        let mut found: Vec<usize> = many.map(|(earlier, _)| *earlier).collect();
        found.sort_unstable();
        alike.push(found);
    }
    alike
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

    /// Sets of 20 words, each of which shares `kept` words with the previous one.
    fn chain(count: u64, kept: u64) -> Vec<FxHashSet<u64>> {
        let first = |set: u64| set * (20 - kept);
        (0..count)
            .map(|set| (first(set)..first(set) + 20).map(mix).collect())
            .collect()
    }

    #[test]
    fn sets_that_share_four_fifths_are_found_and_strangers_are_not() {
        // Neighbours share 18 of 22 words, sets three apart 12 of 28.
        let sets = chain(500, 18);
        let alike = earlier_alike(&sets.iter().collect::<Vec<_>>());
        for (position, found) in alike.iter().enumerate().skip(1) {
            assert!(found.contains(&(position - 1)), "{position}: {found:?}");
            assert!(found.iter().all(|earlier| position - earlier < 10));
        }
    }

    #[test]
    fn empty_sets_are_like_no_other() {
        let empty = FxHashSet::default();
        assert_eq!(
            earlier_alike(&[&empty, &empty]),
            [vec![], vec![]] as [Vec<usize>; 2]
        );
    }
}
