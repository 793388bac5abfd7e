//! Finds what a query word that no memory contains may stand for: it may be misspelt, inflected, cut
//! off, or a part of a compound.

use std::cmp::Reverse;

use super::analysis::stems::stem;
use super::encoder::Encoder;
use super::encoder::wordpiece::Vocabulary;
use super::shapes::ShapePattern;
use super::view::{View, document_frequency};
use ack_api::cancel;
use ack_api::memory::StatusFilter;

const MAX_SIMILAR: usize = 3;
const MIN_CHARS: usize = 4;
const MIN_MISSPELT_CHARS: usize = 5;
/// The shortest word that is searched at the end of compounds: `lock` does not mean `clock`.
const MIN_END_CHARS: usize = 5;
/// The fewest characters before it: the Arabic article has two.
const MIN_CHARS_BEFORE: usize = 2;
/// The shortest beginning of a word that means the word: `datenschutz`, but not `inter`.
const MIN_BEGINNING_CHARS: usize = 6;
/// How much longer a word may be than a similar beginning of it.
const MAX_CUT_OFF: usize = 5;
/// Weight of a similar word, relative to a term of the query.
const SIMILAR_WEIGHT: f32 = 0.5;
/// The same if the word is misspelt or inflected.
const CORRECTION_WEIGHT: f32 = 0.8;

#[derive(Debug, Clone, PartialEq)]
pub struct SimilarTerm {
    pub key: String,
    /// Its weight, relative to a term of the query.
    pub weight: f32,
    /// Whether it is the word with another ending. Otherwise it only looks like the word.
    pub is_same_word: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Similar {
    /// Known terms, the most similar first.
    pub terms: Vec<SimilarTerm>,
    /// The word, and the first of them, if that is the word with a letter corrected.
    pub correction: Option<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    Letter,
    Ending,
    /// One is the beginning of the other, or the end of a compound.
    Part,
    /// One begins with the other, except for one letter.
    Beginning,
}

/// Of two terms, the more similar one is less, then the one that more memories contain.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    likeness: Likeness,
    frequency: Reverse<u32>,
    key: String,
    /// The word with this stem that the encoder knows.
    word: Option<String>,
}

/// The most similar terms so far, the best first.
struct Best<'a> {
    views: &'a [View<'a>],
    status: StatusFilter,
    found: Vec<Found>,
}

impl Best<'_> {
    fn consider(&mut self, likeness: Likeness, key: &str, word: Option<String>) {
        let is_full = self.found.len() == MAX_SIMILAR;
        let worst = self.found.last().filter(|_| is_full);
        if worst.is_some_and(|worst| worst.likeness < likeness)
            || self.found.iter().any(|known| known.key == key)
        {
            return;
        }
        let frequency = Reverse(document_frequency(self.views, key, self.status));
        if frequency.0 > 0 {
            self.found.push(Found { likeness, frequency, key: key.to_owned(), word });
            self.found.sort_unstable();
            self.found.truncate(MAX_SIMILAR);
        }
    }
}

/// Finds terms that are similar to a word that no memory contains, in memories that the filter
/// allows. `key` is the stem of the word.
pub fn similar_terms(views: &[View<'_>], word: &str, key: &str, status: StatusFilter) -> Similar {
    if key.chars().count() < MIN_CHARS || word.bytes().any(|byte| byte.is_ascii_digit()) {
        return Similar::default();
    }
    let encoder = Encoder::embedded();
    let is_word = encoder.is_some_and(|encoder| encoder.vocabulary.is_word(word));
    let found = best_terms(views, word, key, status);
    // `async` is not a misspelt `sync`, and `cortan` is no misspelt `cortar`.
    let is_correct = encoder.is_some_and(|encoder| encoder.is_word(word));
    let right = found.first().filter(|first| {
        let begins_alike = first.key.chars().next() == word.chars().next();
        !is_correct && first.likeness == Likeness::Letter && begins_alike
    });
    // The index has only stems, so for a name that the encoder does not know, the stem is encoded.
    let correction = right.map(|right| {
        let spelling = right.word.as_ref().unwrap_or(&right.key);
        (word.to_owned(), spelling.clone())
    });
    let is_beginning = !is_word && key.chars().count() >= MIN_BEGINNING_CHARS;
    let terms = found.into_iter().map(|Found { likeness, key: term, .. }| {
        let has_other_ending = likeness == Likeness::Ending;
        let is_right = has_other_ending || correction.is_some();
        SimilarTerm {
            weight: if is_right { CORRECTION_WEIGHT } else { SIMILAR_WEIGHT },
            is_same_word: has_other_ending || is_beginning && term.starts_with(key),
            key: term,
        }
    });
    Similar { terms: terms.collect(), correction }
}

/// Terms in the index are stems, so a misspelt word is also compared with the encoder's words:
/// `advisroy` is nearer to `advisory` than to its stem.
fn best_terms(views: &[View<'_>], word: &str, key: &str, status: StatusFilter) -> Vec<Found> {
    let mut best = Best { views, status, found: Vec::new() };
    let vocabulary = Encoder::embedded().map(|encoder| &encoder.vocabulary);
    for word in vocabulary.map_or_else(Vec::new, |vocabulary| corrections(word, vocabulary)) {
        best.consider(Likeness::Letter, &stem(&word), Some(word.clone()));
    }
    // The stems of inflected languages are short: what counts is what was typed.
    let typed = if word.is_ascii() { key } else { word };
    // German without umlauts: `groesse` for `größe`, which the index has as `grosse`.
    let plain = key.replace("ae", "a").replace("oe", "o").replace("ue", "u");
    let has_plain = plain != key && plain.chars().count() >= MIN_CHARS;
    for key in [key].into_iter().chain(has_plain.then_some(&*plain)) {
        let unknown = Unknown {
            key,
            bytes: byte_set(key),
            is_long: typed.chars().count() >= MIN_MISSPELT_CHARS,
            is_foreign: !vocabulary.is_some_and(|vocabulary| vocabulary.is_word(word)),
        };
        let pattern = unknown.pattern();
        let like = views.iter().flat_map(|view| view.index.terms_like(pattern));
        for term in cancel::guarded(like).chain(beginnings(key)) {
            if let Some(likeness) = unknown.likeness(term) {
                best.consider(likeness, term, None);
            }
        }
    }
    best.found
}

struct Unknown<'k> {
    key: &'k str,
    /// The bytes of its stem, see [`byte_set`].
    bytes: u64,
    is_long: bool,
    /// Whether the encoder does not know it. The index has the stem of an English word, so only
    /// another one may have another ending: `station` is not `static`.
    is_foreign: bool,
}

impl Unknown<'_> {
    /// The shapes of similar terms, except for beginnings of the word.
    fn pattern(&self) -> ShapePattern {
        ShapePattern::similar(self.key, MAX_CUT_OFF, self.is_foreign)
    }

    fn likeness(&self, term: &str) -> Option<Likeness> {
        let key = self.key;
        let has_other_ending = self.is_foreign && has_other_ending(key, term);
        // Most words have other letters, which is cheaper to detect than an edit distance.
        let foreign_bytes = (byte_set(term) & !self.bytes).count_ones();
        if foreign_bytes > 1 && !has_other_ending && !term.starts_with(key) && !term.ends_with(key)
        {
            return None;
        }
        let (length, other) = (key.chars().count(), term.chars().count());
        if other < MIN_CHARS {
            return None;
        }
        let is_near = other.abs_diff(length) <= 1;
        let is_part = term.starts_with(key)
            || (length >= MIN_END_CHARS
                && other >= length + MIN_CHARS_BEFORE
                && term.ends_with(key))
            || (other >= 5 && length <= 2 * other + 1 && key.starts_with(term));
        let is_beginning = other >= 5 && length + 1 >= other && length <= other + MAX_CUT_OFF;
        if !key.is_ascii() && has_other_ending {
            // The encoder does not know the correct spelling either.
            Some(Likeness::Ending)
        } else if self.is_long && is_near && strsim::osa_distance(term, key) <= 1 {
            Some(Likeness::Letter)
        } else if has_other_ending {
            Some(Likeness::Ending)
        } else if is_part {
            Some(Likeness::Part)
        } else if is_beginning && has_similar_prefix(key, term, other) {
            Some(Likeness::Beginning)
        } else {
            None
        }
    }
}

/// Whether two words differ only in an ending of up to two letters, or three of a long word.
fn has_other_ending(one: &str, other: &str) -> bool {
    // Cheap, and true of few words.
    if !one.bytes().take(MIN_CHARS).eq(other.bytes().take(MIN_CHARS)) {
        return false;
    }
    let (length, other_length) = (one.chars().count(), other.chars().count());
    let common = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let (rest, other_rest) = (length - common, other_length - common);
    let max = if common >= 8 { 3 } else { 2 };
    common >= MIN_CHARS && rest.max(other_rest) <= max && rest + other_rest <= max + 1
}

/// The encoder's words that differ from the given one by one letter left out, added, replaced, or
/// swapped with the next. The first letter stays; a word that the encoder knows is not misspelt.
fn corrections(word: &str, vocabulary: &Vocabulary) -> Vec<String> {
    let is_ascii = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if word.len() < MIN_MISSPELT_CHARS || !is_ascii || vocabulary.is_word(word) {
        return Vec::new();
    }
    let mut words = Vec::new();
    let mut candidate = String::new();
    let mut consider = |parts: [&str; 3]| {
        candidate.clear();
        candidate.extend(parts);
        if vocabulary.is_word(&candidate) {
            words.push(candidate.clone());
        }
    };
    let mut letter = [0u8; 4];
    for at in 1..=word.len() {
        let (before, rest) = word.split_at(at);
        let mut letters = rest.chars();
        let first = letters.next();
        let after = letters.as_str();
        if first.is_some() {
            consider([before, "", after]);
        }
        if let (Some(first), Some(second)) = (first, letters.next()) {
            consider([before, &format!("{second}{first}"), letters.as_str()]);
        }
        for other in 'a'..='z' {
            let other = &*other.encode_utf8(&mut letter);
            consider([before, other, rest]);
            if first.is_some() {
                consider([before, other, after]);
            }
        }
    }
    words.sort_unstable();
    words.dedup();
    words
}

/// The beginnings of a word with at least [`MIN_CHARS`] characters, the shortest first.
fn beginnings(word: &str) -> impl Iterator<Item = &str> {
    word.char_indices().skip(MIN_CHARS).filter_map(|(end, _)| word.get(..end))
}

/// The set of a word's bytes, folded into 64 bits.
fn byte_set(word: &str) -> u64 {
    word.bytes().fold(0, |set, byte| set | 1 << (byte & 63))
}

/// Whether a word begins with the `length` characters of another one, except for one letter.
fn has_similar_prefix(word: &str, other: &str, length: usize) -> bool {
    let prefix = |count: usize| {
        let end = word.char_indices().nth(count).map(|(end, _)| end);
        end.and_then(|end| word.get(..end))
    };
    let is_similar = |prefix: &str| strsim::osa_distance(prefix, other) <= 1;
    word.chars().next() == other.chars().next()
        && [length - 1, length, length + 1].into_iter().filter_map(prefix).any(is_similar)
}

#[cfg(test)]
mod tests {
    use super::super::shapes::Shapes;
    use super::*;

    /// A word, and words that resemble it.
    fn variants(word: &str) -> Vec<String> {
        let letters: Vec<char> = word.chars().collect();
        let text = |letters: &[char]| letters.iter().collect::<String>();
        let mut words = vec![word.to_owned()];
        for at in 0..letters.len() {
            let (before, rest) = (text(&letters[..at]), text(&letters[at + 1..]));
            words.push(format!("{before}{rest}"));
            words.push(format!("{before}q{rest}"));
            words.push(format!("{before}щ{}", text(&letters[at..])));
            words.push(text(&letters[..at]));
            let mut swapped = letters.clone();
            swapped.swap(at, at.saturating_sub(1));
            words.push(text(&swapped));
            words.push(format!("xy{}", text(&swapped)));
        }
        for ending in ["e", "en", "ung", "ий", "verwaltung"] {
            words.push(format!("{word}{ending}"));
            words.push(format!("vor{word}{ending}"));
        }
        words
    }

    #[test]
    fn every_similar_word_has_a_shape_that_is_looked_for() {
        let words = "lock cache async grosse verbindung соединение datenbankverbindungsfehler";
        let words: Vec<String> = words.split(' ').flat_map(variants).collect();
        let mut similar = 0;
        for (key, is_foreign) in words.iter().zip([true, false].into_iter().cycle()) {
            let unknown = Unknown {
                key,
                bytes: byte_set(key),
                is_long: key.chars().count() >= MIN_MISSPELT_CHARS,
                is_foreign,
            };
            for term in &words {
                if term == key || unknown.likeness(term).is_none() {
                    continue;
                }
                similar += 1;
                let shapes: Shapes = [term.as_str()].into_iter().collect();
                let is_looked_for = shapes.matching(unknown.pattern()).next().is_some()
                    || beginnings(key).any(|beginning| beginning == term);
                assert!(is_looked_for, "{key}, {term}");
            }
        }
        assert!(similar > 1_000, "{similar}");
    }
}
