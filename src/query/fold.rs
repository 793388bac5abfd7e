//! Near-duplicates: the same learning noted twice is shown once, with the other ids in `also`.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashSet as HashSet, FxHasher};

use super::analysis::{self, Kind, Side};
use crate::memory::Memory;

/// Share of common words from which two memories are the same learning.
const SAME: f64 = 0.8;
/// With fewer words than this, only equal texts are the same.
const FEW: usize = 8;

/// Words that turn a statement round.
const NEGATIONS: [&str; 8] = ["not", "no", "nor", "never", "without", "cannot", "don", "doesn"];

/// What two memories are compared by.
#[derive(Debug)]
pub struct Signature {
    words: HashSet<u64>,
    /// Identifiers, words with digits or in capitals, negations: where these differ, the learnings do.
    telling: HashSet<u64>,
    /// Words of the title.
    title: HashSet<u64>,
}

impl Signature {
    /// The signature of a memory's title, subtitle, facts and the beginning of its narrative.
    pub fn of(memory: &Memory) -> Self {
        let mut signature = Self {
            words: HashSet::default(),
            telling: HashSet::default(),
            title: HashSet::default(),
        };
        let narrative = memory.narrative.as_deref().map(|text| crate::text::cut(text, 4_000).0);
        let fields = [Some(memory.title.as_str()), memory.subtitle.as_deref(), narrative.as_deref()];
        for (position, text) in fields
            .into_iter()
            .flatten()
            .chain(memory.facts.iter().map(String::as_str))
            .enumerate()
        {
            analysis::tokenize(text, Side::Document, &mut |token| {
                let negation = NEGATIONS.contains(&token.text.as_ref());
                let digits = token.text.bytes().any(|byte| byte.is_ascii_digit());
                let telling = digits || negation || token.kind == Kind::Identifier;
                if analysis::is_stop_word(&token.text) && !telling {
                    return;
                }
                let mut hash = FxHasher::default();
                token.text.hash(&mut hash);
                let hash = hash.finish();
                if position == 0 {
                    signature.title.insert(hash);
                }
                if telling {
                    signature.telling.insert(hash)
                } else {
                    signature.words.insert(hash)
                };
            });
        }
        signature
    }

    /// Whether two memories say the same.
    pub fn is_near(&self, other: &Self) -> bool {
        if self.telling != other.telling || self.words.is_empty() || other.words.is_empty() {
            return false;
        }
        // A title may say more than the other one, but no word of one may stand where the other has another word.
        if !self.title.is_subset(&other.title) && !other.title.is_subset(&self.title) {
            return false;
        }
        let (small, large) = if self.words.len() <= other.words.len() {
            (self, other)
        } else {
            (other, self)
        };
        #[expect(clippy::cast_precision_loss, reason = "counts of words")]
        let share = |a: usize, b: usize| a as f64 / b as f64;
        if share(small.words.len(), large.words.len()) < SAME {
            return false;
        }
        let common = small.words.intersection(&large.words).count();
        let union = small.words.len() + large.words.len() - common;
        if union < FEW {
            common == union
        } else {
            share(common, union) >= SAME
        }
    }
}
