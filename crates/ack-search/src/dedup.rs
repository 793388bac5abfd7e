//! Near-duplicates: a learning that was recorded twice is shown once, with the other ids in `also`.
//!
//! Two memories are duplicates if one of two rules applies. Neither applies if an identifier, a
//! number, a version or a negation differs.
//!
//! - **Nearly the same text** ([`Signature::is_near`]): most words are shared, and neither memory
//!   says `after` where the other says `before` (`CONTRASTS`). A cosine below [`MIN_NEAR_COSINE`]
//!   rules this out without comparing words.
//! - **The same in other words** ([`is_reworded`]): the cosine is at least [`MIN_REWORDED_COSINE`],
//!   most stems and all contrasts are shared, and the words that differ hardly carry a subject
//!   (`need`, `must`, `found`), judged by their weight in the encoder.
//!
//! A cosine alone is not enough: titles that differ only in `Ukrainian` and `Turkish` have a high
//! one. See `docs/retrieval.md` for the measurements.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet, FxHasher};

use super::analysis::{self, TextRole, Token, TokenKind, WordSet};
use super::stems;
use crate::encoder::Encoder;
use ack_api::memory::Memory;

/// Minimum share of words in common of nearly equal texts (Jaccard index).
const MIN_WORD_OVERLAP: f64 = 0.8;
/// With fewer distinct words, only equal texts are duplicates.
const MIN_WORDS: usize = 8;
/// Minimum cosine of memories that may be nearly the same text. Below it, words are not compared.
pub const MIN_NEAR_COSINE: f32 = 0.6;
/// Minimum cosine of memories that may say the same thing in other words.
pub const MIN_REWORDED_COSINE: f32 = 0.9;
/// Minimum share of stems in common of reworded texts (Jaccard index).
const MIN_STEM_OVERLAP: f64 = 0.65;
/// From this weight in the encoder on, a word is part of a text's subject: `slow` has 1.3, `need`
/// 0.35.
const MIN_SUBJECT_WEIGHT: f32 = 0.9;
/// How many bytes of a narrative are compared.
const MAX_NARRATIVE_BYTES: usize = 4_000;

/// Words that reverse a statement.
const NEGATIONS: [&str; 8] = [
    "not", "no", "nor", "never", "without", "cannot", "don", "doesn",
];

/// Words that contrast with another one in otherwise identical texts.
#[rustfmt::skip]
const CONTRASTS: &[&str] = &[
    "above", "accept", "accepted", "accepts", "add", "added", "adding", "adds", "after", "allow",
    "allowed", "allows", "always", "ascending", "async", "automatic", "before", "below", "best",
    "bottom", "child", "client", "close", "closed", "closes", "closing", "decode", "decrease",
    "decreased", "decreases", "decrypt", "denied", "denies", "deny", "descending", "disable",
    "disabled", "disables", "disabling", "down", "download", "dynamic", "earlier", "empty",
    "enable", "enabled", "enables", "enabling", "encode", "encrypt", "exclude", "excluded",
    "excludes", "export", "external", "fail", "failed", "failing", "fails", "false", "fast",
    "faster", "fastest", "fewer", "fifth", "first", "forbid", "forbidden", "former", "fourth",
    "full", "high", "higher", "highest", "horizontal", "import", "include", "included", "includes",
    "increase", "increased", "increases", "inner", "input", "inside", "internal", "invalid",
    "large", "larger", "last", "later", "latter", "least", "left", "less", "local", "lock",
    "locked", "low", "lower", "lowest", "manual", "manually", "max", "maximum", "min", "minimum",
    "mutable", "new", "newer", "next", "off", "often", "old", "older", "one", "open", "opened",
    "opening", "opens", "optional", "outer", "output", "outside", "parent", "pass", "passed",
    "passes", "passing", "previous", "private", "public", "pull", "push", "raise", "raised",
    "raises", "rarely", "read", "reading", "reads", "reject", "rejected", "rejects", "remote",
    "remove", "removed", "removes", "removing", "required", "right", "second", "server", "shared",
    "slow", "slower", "slowest", "small", "smaller", "sometimes", "start", "started", "starting",
    "starts", "static", "stop", "stopped", "stopping", "stops", "succeed", "succeeds", "sync",
    "third", "three", "top", "true", "two", "under", "unlock", "unlocked", "upload", "upper",
    "valid", "vertical", "worst", "write", "writes", "writing",
];

fn is_contrast(word: &str) -> bool {
    const SET: &WordSet = &WordSet::new(CONTRASTS);
    SET.contains(word)
}

/// Whether a token must be in both texts: a number, a version, an identifier, a negation.
fn is_distinguishing(token: &Token<'_>) -> bool {
    let has_digit = token.text.bytes().any(|byte| byte.is_ascii_digit());
    has_digit || token.kind == TokenKind::Identifier || NEGATIONS.contains(&token.text.as_ref())
}

/// The texts of a memory that are compared. The title comes first.
fn compared_texts(memory: &Memory) -> impl Iterator<Item = Cow<'_, str>> {
    let narrative = memory.narrative.as_deref();
    let fields = [
        Some(memory.title.as_str().into()),
        memory.subtitle.as_deref().map(Cow::from),
        narrative.map(|text| ack_api::text::cut(text, MAX_NARRATIVE_BYTES).0),
    ];
    fields
        .into_iter()
        .flatten()
        .chain(memory.facts.iter().map(Cow::from))
}

#[expect(clippy::cast_precision_loss, reason = "counts of words")]
fn ratio(a: usize, b: usize) -> f64 {
    a as f64 / b as f64
}

/// The hashed words by which memories are compared.
#[derive(Debug)]
pub struct Signature {
    words: HashSet<u64>,
    /// Identifiers, words with digits, negations. If these differ, so do the learnings.
    distinguishing: HashSet<u64>,
    /// Words of the title.
    title: HashSet<u64>,
    /// A bit for each word of the title: a title contains another one only if its bits do.
    title_bits: u64,
    /// Words in [`CONTRASTS`].
    contrasts: HashSet<u64>,
}

impl Signature {
    /// The signature of a memory's title, subtitle, facts and the beginning of its narrative.
    pub fn of(memory: &Memory) -> Self {
        let mut signature = Self {
            words: HashSet::default(),
            distinguishing: HashSet::default(),
            title: HashSet::default(),
            title_bits: 0,
            contrasts: HashSet::default(),
        };
        for (position, text) in compared_texts(memory).enumerate() {
            let is_title = position == 0;
            analysis::tokenize(&text, TextRole::Document, &mut |token| {
                signature.add(&token, is_title);
            });
        }
        signature
    }

    fn add(&mut self, token: &Token<'_>, is_title: bool) {
        let distinguishing = is_distinguishing(token);
        let mut hash = FxHasher::default();
        token.text.hash(&mut hash);
        let hash = hash.finish();
        if is_contrast(&token.text) {
            self.contrasts.insert(hash);
        }
        if analysis::is_stop_word(&token.text) && !distinguishing {
            return;
        }
        if is_title {
            self.title.insert(hash);
            self.title_bits |= 1 << (hash >> 58);
        }
        if distinguishing {
            self.distinguishing.insert(hash);
        } else {
            self.words.insert(hash);
        }
    }

    /// Hashes of its words, without the distinguishing ones. Memories with nearly the same text
    /// share at least four fifths of them.
    pub const fn words(&self) -> &HashSet<u64> {
        &self.words
    }

    /// A number that is the same for memories with the same numbers, versions, identifiers and
    /// negations. Others are not nearly the same text.
    pub fn group(&self) -> u64 {
        sum(&self.distinguishing)
    }

    /// A number that is the same for memories whose titles have the same words.
    pub fn label(&self) -> u64 {
        sum(&self.title)
    }

    /// Whether two memories are nearly the same text.
    pub fn is_near(&self, other: &Self) -> bool {
        let common = self.title_bits & other.title_bits;
        if common != self.title_bits && common != other.title_bits {
            return false;
        }
        if self.distinguishing != other.distinguishing
            || self.words.is_empty()
            || other.words.is_empty()
        {
            return false;
        }
        // One title may contain the other, but neither may replace a word of the other.
        if !is_subset_either_way(&self.title, &other.title)
            || !is_subset_either_way(&self.contrasts, &other.contrasts)
        {
            return false;
        }
        let (small, large) = if self.words.len() <= other.words.len() {
            (self, other)
        } else {
            (other, self)
        };
        if ratio(small.words.len(), large.words.len()) < MIN_WORD_OVERLAP {
            return false;
        }
        let common = small.words.intersection(&large.words).count();
        let union = small.words.len() + large.words.len() - common;
        if union < MIN_WORDS {
            common == union
        } else {
            ratio(common, union) >= MIN_WORD_OVERLAP
        }
    }
}

/// The same number for equal sets.
fn sum(words: &HashSet<u64>) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

fn is_subset_either_way(a: &HashSet<u64>, b: &HashSet<u64>) -> bool {
    a.is_subset(b) || b.is_subset(a)
}

/// A memory as a set of stems.
#[derive(Default)]
struct StemSet {
    /// Each stem with the first word that has it.
    words: HashMap<String, String>,
    /// Identifiers, words with digits, negations, contrasts. If these differ, so do the learnings.
    distinguishing: HashSet<String>,
}

impl StemSet {
    fn of(memory: &Memory) -> Self {
        let mut stems = Self::default();
        for text in compared_texts(memory) {
            analysis::tokenize(&text, TextRole::Document, &mut |token| {
                if is_distinguishing(&token) {
                    stems.distinguishing.insert(token.text.into_owned());
                } else if is_contrast(&token.text) {
                    stems
                        .distinguishing
                        .insert(stems::stem(&token.text).into_owned());
                } else if !analysis::is_stop_word(&token.text) {
                    let stem = stems::stem(&token.text).into_owned();
                    stems
                        .words
                        .entry(stem)
                        .or_insert_with(|| token.text.into_owned());
                }
            });
        }
        stems
    }

    /// The words whose stems the other set lacks.
    fn difference<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        let words = self
            .words
            .iter()
            .filter(|(stem, _)| !other.words.contains_key(*stem));
        words.map(|(_, word)| word.as_str())
    }
}

/// Whether two memories, whose vectors have a cosine of at least [`MIN_REWORDED_COSINE`], say the
/// same thing in other words.
pub fn is_reworded(one: &Memory, other: &Memory) -> bool {
    let (one, other) = (StemSet::of(one), StemSet::of(other));
    if one.distinguishing != other.distinguishing {
        return false;
    }
    let different: Vec<&str> = one
        .difference(&other)
        .chain(other.difference(&one))
        .collect();
    let common = (one.words.len() + other.words.len() - different.len()) / 2;
    let union = common + different.len();
    // A word without its own token is a name, or as distinctive as one.
    let is_light = |word: &str| {
        Encoder::embedded()
            .and_then(|encoder| encoder.weight(word))
            .is_some_and(|weight| weight < MIN_SUBJECT_WEIGHT)
    };
    union >= MIN_WORDS
        && ratio(common, union) >= MIN_STEM_OVERLAP
        && different.into_iter().all(is_light)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrasts_are_sorted() {
        assert!(CONTRASTS.is_sorted());
        assert!(is_contrast("before") && !is_contrast("lockfile"));
    }
}
