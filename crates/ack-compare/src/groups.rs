//! Near-duplicates among many memories, in about linear time.
//!
//! Each memory is a set of word hashes and a [`sketch`] of this set. Memories whose sketches agree
//! in a band are candidates. A memory joins the first earlier group whose leader it resembles. Only
//! leaders are candidates, so that a chain of small changes does not become one group.

use ack_api::memory::Memory;
use ack_search::analysis::{self, TextRole};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::profile::Profile;
use crate::sketch::{self, Bands};
use crate::term::hash;
use crate::{RelationKind, relate};

/// Minimum share of common words of near-duplicates (Jaccard index).
const MIN_OVERLAP: f64 = 0.5;
/// Minimum share of a memory's words in another that contains all of it.
const MIN_COVERED: f64 = 0.9;
/// The most words of a memory that are sketched.
const MAX_WORDS: usize = 2_000;
/// How many leaders of one band are examined. A template that many memories share can fill a band.
const MAX_CANDIDATES: usize = 32;

/// A memory as the set of its words.
struct Sketch {
    words: FxHashSet<u64>,
    bands: Bands,
}

/// Groups near-duplicates by their positions. Every memory is in exactly one group. Groups are in
/// the order of their first members, and members in ascending order. Memories that contradict the
/// first member of a group are not in it.
pub fn near_duplicates(memories: &[&Memory]) -> Vec<Vec<usize>> {
    let sketches: Vec<Sketch> = memories
        .par_iter()
        .map(|memory| sketch_of(memory))
        .collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut profiles: FxHashMap<usize, Profile> = FxHashMap::default();
    let mut buckets: FxHashMap<(usize, u64), Vec<usize>> = FxHashMap::default();
    for (position, sketch) in sketches.iter().enumerate() {
        let mut candidates: Vec<usize> = sketch
            .bands
            .iter()
            .enumerate()
            .filter_map(|band| buckets.get(&(band.0, *band.1)))
            .flatten()
            .copied()
            .collect();
        candidates.sort_unstable();
        candidates.dedup();
        let joined = candidates.into_iter().find(|group| {
            let leader = groups.get(*group).and_then(|group| group.first()).copied();
            leader.is_some_and(|leader| {
                let pair = sketches.get(leader).zip(memories.get(leader));
                let current = memories.get(position);
                pair.zip(current).is_some_and(|((other, leading), memory)| {
                    is_near(&sketch.words, &other.words) && {
                        let leading = profiles
                            .entry(leader)
                            .or_insert_with(|| Profile::of(leading));
                        relate(&Profile::of(memory), leading).kind != RelationKind::Contradicts
                    }
                })
            })
        });
        match joined.and_then(|group| groups.get_mut(group)) {
            Some(group) => group.push(position),
            None => {
                for (band, value) in sketch.bands.iter().enumerate() {
                    let bucket = buckets.entry((band, *value)).or_default();
                    if bucket.len() < MAX_CANDIDATES {
                        bucket.push(groups.len());
                    }
                }
                groups.push(vec![position]);
            }
        }
    }
    groups
}

#[expect(clippy::cast_precision_loss, reason = "counts of words")]
fn is_near(one: &FxHashSet<u64>, other: &FxHashSet<u64>) -> bool {
    let (small, large) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let common = small.iter().filter(|word| large.contains(word)).count();
    let union = small.len() + large.len() - common;
    if small.is_empty() {
        return large.is_empty();
    }
    common as f64 / union as f64 >= MIN_OVERLAP
        || (small.len() >= 6 && common as f64 / small.len() as f64 >= MIN_COVERED)
}

fn sketch_of(memory: &Memory) -> Sketch {
    let mut words = FxHashSet::default();
    let facts = memory.facts.iter().map(String::as_str);
    let texts = [Some(&*memory.title), memory.subtitle.as_deref()];
    let texts = texts.into_iter().flatten().chain(facts);
    for text in texts.chain(memory.narrative.as_deref()) {
        analysis::tokenize(text, TextRole::Document, &mut |token| {
            if words.len() < MAX_WORDS && !analysis::is_stop_word(&token.text) {
                words.insert(hash(&ack_search::stems::stem(&token.text)));
            }
        });
    }
    Sketch {
        bands: sketch::sketch(&words),
        words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(texts: &[&str]) -> Vec<Vec<usize>> {
        let memories: Vec<Memory> = texts
            .iter()
            .map(|text| crate::tests::memory(text))
            .collect();
        near_duplicates(&memories.iter().collect::<Vec<_>>())
    }

    #[test]
    fn near_duplicates_are_in_one_group_and_others_alone() {
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
