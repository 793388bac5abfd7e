//! Near-duplicates: the same learning noted twice is shown once, with the other ids in `also`.
//!
//! Two memories are one learning where certain, by one of two rules. Neither holds where an identifier, a number, a version or
//! a negation differs.
//!
//! - **Nearly the same text** ([`Signature::is_near`]): four fifths of the words are common, and neither says `after` where
//!   the other says `before` (`CONTRASTS`). Vectors below [`NEAR`], where both have one, rule it out before a word is compared.
//! - **The same in other words** ([`is_reworded`]): vectors of cosine [`REWORDED`] or more, two thirds of the stems common,
//!   the same contrasts, and all that differs are words that hardly carry a subject (`need`, `must`, `found`), as the weight that
//!   the encoder learned for them says.
//!
//! A cosine alone decides nothing: `docs/retrieval.md` has the measurements.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet, FxHasher};

use super::analysis::{self, Kind, Side, Token, Words};
use crate::encoder::Encoder;
use ack_api::memory::Memory;

/// Share of common words from which two memories are the same learning.
const SAME: f64 = 0.8;
/// With fewer words than this, only equal texts are the same.
const FEW: usize = 8;
/// Cosine from which two memories may be nearly the same text. Below it their words are not compared,
/// which saves work. `tests/it/fold.rs` measures how near such texts are.
pub const NEAR: f32 = 0.6;
/// Cosine from which two memories may be the same in other words.
pub const REWORDED: f32 = 0.95;
/// Share of common stems that it takes besides.
const COMMON: f64 = 0.65;
/// A word of at least this weight in the encoder is part of what a text is about: `slow` has 1.3, `need` 0.35.
const HEAVY: f32 = 0.9;

/// Words that turn a statement round.
const NEGATIONS: [&str; 8] = ["not", "no", "nor", "never", "without", "cannot", "don", "doesn"];

/// Words that stand against another one in texts that are otherwise alike.
#[rustfmt::skip]
const CONTRASTS: &[&str] = &[
    "above", "accept", "accepted", "accepts", "add", "added", "adding", "adds", "after", "allow", "allowed", "allows",
    "always", "ascending", "async", "automatic", "before", "below", "best", "bottom", "child", "client", "close", "closed",
    "closes", "closing", "decode", "decrease", "decreased", "decreases", "decrypt", "denied", "denies", "deny", "descending",
    "disable", "disabled", "disables", "disabling", "down", "download", "dynamic", "earlier", "empty", "enable", "enabled",
    "enables", "enabling", "encode", "encrypt", "exclude", "excluded", "excludes", "export", "external", "fail", "failed",
    "failing", "fails", "false", "fast", "faster", "fastest", "fewer", "fifth", "first", "forbid", "forbidden", "former",
    "fourth", "full", "high", "higher", "highest", "horizontal", "import", "include", "included", "includes", "increase",
    "increased", "increases", "inner", "input", "inside", "internal", "invalid", "large", "larger", "last", "later", "latter",
    "least", "left", "less", "local", "lock", "locked", "low", "lower", "lowest", "manual", "manually", "max", "maximum",
    "min", "minimum", "mutable", "new", "newer", "next", "off", "often", "old", "older", "one", "open", "opened", "opening",
    "opens", "optional", "outer", "output", "outside", "parent", "pass", "passed", "passes", "passing", "previous", "private",
    "public", "pull", "push", "raise", "raised", "raises", "rarely", "read", "reading", "reads", "reject", "rejected",
    "rejects", "remote", "remove", "removed", "removes", "removing", "required", "right", "second", "server", "shared",
    "slow", "slower", "slowest", "small", "smaller", "sometimes", "start", "started", "starting", "starts", "static", "stop",
    "stopped", "stopping", "stops", "succeed", "succeeds", "sync", "third", "three", "top", "true", "two", "under", "unlock",
    "unlocked", "upload", "upper", "valid", "vertical", "worst", "write", "writes", "writing",
];

fn is_contrast(word: &str) -> bool {
    const SET: &Words = &Words::new(CONTRASTS);
    SET.contains(word)
}

/// Whether a token must be in both texts: a number, a version, an identifier, a negation.
fn is_telling(token: &Token<'_>) -> bool {
    let digits = token.text.bytes().any(|byte| byte.is_ascii_digit());
    digits || token.kind == Kind::Identifier || NEGATIONS.contains(&token.text.as_ref())
}

/// What is compared of a memory: title, subtitle, the beginning of the narrative, facts. The title comes first.
fn texts(memory: &Memory) -> impl Iterator<Item = Cow<'_, str>> {
    let narrative = memory.narrative.as_deref().map(|text| ack_api::text::cut(text, 4_000).0);
    let fields = [
        Some(memory.title.as_str().into()),
        memory.subtitle.as_deref().map(Cow::from),
        narrative,
    ];
    fields.into_iter().flatten().chain(memory.facts.iter().map(Cow::from))
}

#[expect(clippy::cast_precision_loss, reason = "counts of words")]
fn share(a: usize, b: usize) -> f64 {
    a as f64 / b as f64
}

/// What two memories are compared by.
#[derive(Debug)]
pub struct Signature {
    words: HashSet<u64>,
    /// Identifiers, words with digits or in capitals, negations: where these differ, the learnings do.
    telling: HashSet<u64>,
    /// Words of the title.
    title: HashSet<u64>,
    /// Words that stand against others.
    contrasts: HashSet<u64>,
}

impl Signature {
    /// The signature of a memory's title, subtitle, facts and the beginning of its narrative.
    pub fn of(memory: &Memory) -> Self {
        let mut signature = Self {
            words: HashSet::default(),
            telling: HashSet::default(),
            title: HashSet::default(),
            contrasts: HashSet::default(),
        };
        for (position, text) in texts(memory).enumerate() {
            analysis::tokenize(&text, Side::Document, &mut |token| {
                let telling = is_telling(&token);
                let mut hash = FxHasher::default();
                token.text.hash(&mut hash);
                let hash = hash.finish();
                if is_contrast(&token.text) {
                    signature.contrasts.insert(hash);
                }
                if analysis::is_stop_word(&token.text) && !telling {
                    return;
                }
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
        if !self.contrasts.is_subset(&other.contrasts) && !other.contrasts.is_subset(&self.contrasts) {
            return false;
        }
        let (small, large) = if self.words.len() <= other.words.len() {
            (self, other)
        } else {
            (other, self)
        };
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

/// A memory as its stems, each with a word that has it.
#[derive(Default)]
struct Statement {
    words: HashMap<String, String>,
    /// Where these differ, the learnings do.
    telling: HashSet<String>,
}

impl Statement {
    fn of(memory: &Memory) -> Self {
        let mut statement = Self::default();
        for text in texts(memory) {
            analysis::tokenize(&text, Side::Document, &mut |token| {
                if is_telling(&token) {
                    statement.telling.insert(token.text.into_owned());
                } else if is_contrast(&token.text) {
                    statement.telling.insert(analysis::stem(&token.text).into_owned());
                } else if !analysis::is_stop_word(&token.text) {
                    let stem = analysis::stem(&token.text).into_owned();
                    statement.words.entry(stem).or_insert_with(|| token.text.into_owned());
                }
            });
        }
        statement
    }

    /// The words whose stems the other one lacks.
    fn beyond<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        let beyond = self.words.iter().filter(|(stem, _)| !other.words.contains_key(*stem));
        beyond.map(|(_, word)| word.as_str())
    }
}

/// Whether two memories whose vectors have a cosine of [`REWORDED`] say the same in other words.
pub fn is_reworded(one: &Memory, other: &Memory) -> bool {
    let (one, other) = (Statement::of(one), Statement::of(other));
    if one.telling != other.telling {
        return false;
    }
    let beyond: Vec<&str> = one.beyond(&other).chain(other.beyond(&one)).collect();
    let common = (one.words.len() + other.words.len() - beyond.len()) / 2;
    let union = common + beyond.len();
    // A word that the encoder has no token for is a name, or as telling as one.
    let light = |word: &str| {
        Encoder::embedded()
            .and_then(|encoder| encoder.weight(word))
            .is_some_and(|weight| weight < HEAVY)
    };
    union >= FEW && share(common, union) >= COMMON && beyond.into_iter().all(light)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrasts_are_sorted_for_the_search_in_them() {
        assert!(CONTRASTS.is_sorted());
        assert!(is_contrast("before") && !is_contrast("lockfile"));
    }
}
