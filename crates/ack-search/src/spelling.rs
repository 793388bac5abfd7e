//! Finds what a query word that no memory contains may stand for: it may be misspelt, cut off, or a
//! part of a compound.

use std::cmp::Reverse;

use super::encoder::Encoder;
use super::encoder::wordpiece::Vocabulary;
use super::filter::Filters;
use super::stems::stem;
use super::view::View;
use ack_api::cancel;

/// How many words may replace an unknown one.
const MAX_SIMILAR: usize = 3;
/// The shortest word that is replaced.
const MIN_CHARS: usize = 4;
/// The shortest word that is checked for a wrong letter.
const MIN_MISSPELT_CHARS: usize = 5;
/// The shortest word that is searched at the end of compounds: `lock` does not mean `clock`.
const MIN_END_CHARS: usize = 5;
/// The fewest characters before it: the Arabic article has two.
const MIN_CHARS_BEFORE: usize = 2;

/// What a word may stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Similar {
    /// Known terms, the most similar first.
    pub keys: Vec<String>,
    /// Whether the first of them is the word with a letter corrected.
    pub is_misspelt: bool,
    /// The corrected spelling.
    pub spelling: Option<String>,
}

/// How similar a term is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// One letter differs.
    Letter,
    /// One is the beginning of the other, or the end of a compound.
    Part,
    /// One begins with the other, except for one letter.
    Beginning,
}

/// Finds terms that are similar to a word that no memory contains, in memories that the filter
/// allows. `key` is the stem of the word.
///
/// Terms in the index are stems, so a misspelt word is also compared with the encoder's words:
/// `advisroy` is nearer to `advisory` than to its stem.
pub fn similar_terms(views: &[View<'_>], word: &str, key: &str, filters: &Filters) -> Similar {
    if key.chars().count() < MIN_CHARS || word.bytes().any(|byte| byte.is_ascii_digit()) {
        return Similar::default();
    }
    let frequency = |term: &str| -> usize {
        let in_view = |view: &View<'_>| view.index.document_frequency(term, filters.status);
        views.iter().map(in_view).sum()
    };
    let vocabulary = Encoder::embedded().map(Encoder::vocabulary);
    let words = vocabulary.map_or_else(Vec::new, |vocabulary| corrections(word, vocabulary));
    // By likeness, then by how many memories contain it.
    let mut found: Vec<(Likeness, Reverse<usize>, String, Option<String>)> = Vec::new();
    for word in words {
        let key = stem(&word).into_owned();
        let count = frequency(&key);
        if count > 0 && !found.iter().any(|(.., known, _)| *known == key) {
            found.push((Likeness::Letter, Reverse(count), key, Some(word)));
        }
    }
    // The stems of inflected languages are short: what counts is what was typed.
    let typed = if word.is_ascii() { key } else { word };
    let is_long = typed.chars().count() >= MIN_MISSPELT_CHARS;
    let plain = without_umlauts(key);
    for key in [Some(key), plain.as_deref()].into_iter().flatten() {
        let key_bytes = byte_set(key);
        for view in views {
            for term in cancel::guarded(view.index.words()) {
                let Some(likeness) = likeness(key, key_bytes, term, is_long) else {
                    continue;
                };
                let count = frequency(term);
                if count > 0 && !found.iter().any(|(.., known, _)| known == term) {
                    found.push((likeness, Reverse(count), term.to_owned(), None));
                }
            }
        }
    }
    found.sort_unstable();
    found.truncate(MAX_SIMILAR);
    // `async` is not a misspelt `sync`.
    let first = found.first().filter(|(likeness, _, key, _)| {
        *likeness == Likeness::Letter && key.chars().next() == word.chars().next()
    });
    let is_word = vocabulary.is_some_and(|vocabulary| vocabulary.is_word(word));
    Similar {
        is_misspelt: first.is_some() && !is_word,
        // The index has only stems, so for a name that the encoder does not know, the stem is
        // encoded.
        spelling: first
            .filter(|_| !is_word)
            .map(|(_, _, key, word)| word.clone().unwrap_or_else(|| key.clone())),
        keys: found.into_iter().map(|(_, _, key, _)| key).collect(),
    }
}

/// How similar a term is to an unknown one, which `is_long` enough to be misspelt or not.
fn likeness(key: &str, key_bytes: u64, term: &str, is_long: bool) -> Option<Likeness> {
    // Most words have other letters, which is cheaper to detect than an edit distance.
    let foreign_bytes = (byte_set(term) & !key_bytes).count_ones();
    if foreign_bytes > 1 && !term.starts_with(key) && !term.ends_with(key) {
        return None;
    }
    let (length, other) = (key.chars().count(), term.chars().count());
    if other < MIN_CHARS {
        return None;
    }
    let is_near = other.abs_diff(length) <= 1;
    let is_part = term.starts_with(key)
        || (length >= MIN_END_CHARS && other >= length + MIN_CHARS_BEFORE && term.ends_with(key))
        || (other >= 5 && length <= 2 * other + 1 && key.starts_with(term));
    let is_beginning = other >= 5 && length + 1 >= other && length <= other + 5;
    if is_long && is_near && strsim::osa_distance(term, key) <= 1 {
        Some(Likeness::Letter)
    } else if is_part {
        Some(Likeness::Part)
    } else if is_beginning && has_similar_prefix(key, term, other) {
        Some(Likeness::Beginning)
    } else {
        None
    }
}

/// The encoder's words that differ from the given one by one letter left out, added, replaced, or
/// swapped with the next. The first letter stays; a word that the encoder knows is not misspelt.
fn corrections(word: &str, vocabulary: &Vocabulary) -> Vec<String> {
    let is_ascii = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if word.len() < MIN_MISSPELT_CHARS || !is_ascii || vocabulary.is_word(word) {
        return Vec::new();
    }
    let mut words = Vec::new();
    let mut consider = |parts: [&str; 3]| {
        let candidate = parts.concat();
        if vocabulary.is_word(&candidate) {
            words.push(candidate);
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

/// A German word written without umlauts: `groesse` for `größe`, which the index has as `grosse`.
fn without_umlauts(key: &str) -> Option<String> {
    let plain = key.replace("ae", "a").replace("oe", "o").replace("ue", "u");
    (plain != key && plain.chars().count() >= MIN_CHARS).then_some(plain)
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
        && [length - 1, length, length + 1]
            .into_iter()
            .filter_map(prefix)
            .any(is_similar)
}
