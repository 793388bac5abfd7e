//! A query after analysis: its distinct terms, and the identifiers by which it may ask for one
//! memory.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::analysis::letters::plain;
use super::analysis::numbers::{join_quantities, joined_words};
use super::analysis::{self, TextRole, TokenKind, is_unspaced, symbols};
use super::analyzer::term_key;

/// Weight of a specific identifier in a short query, relative to a word of the same rarity.
const IDENTIFIER_BOOST: f32 = 4.0;
/// The same in a longer query: not each identifier of an error message is its point.
const IDENTIFIER_BOOST_IN_TEXT: f32 = 1.5;
/// The same of two words that a memory writes as one symbol. The words themselves count too.
const SPACED_PAIR_WEIGHT: f32 = 0.1;
/// The same if one of the words is hardly a term by itself: `no cache`, `e 0308`.
const LIGHT_PAIR_WEIGHT: f32 = 0.25;
/// A query of at most this many words is short: an identifier in it is the whole question.
const MAX_SHORT_QUERY_WORDS: usize = 2;

/// A word in a script without spaces has at most as many characters.
const MAX_UNSPACED_CHARS: usize = 6;

/// A query of at most this many words asks about every number and code in it.
const MAX_CODE_QUERY_WORDS: usize = 8;
/// Fewer digits are a count, or part of a version.
const MIN_CODE_DIGITS: usize = 3;

#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerm {
    pub key: String,
    /// A word as the query writes it, in lower case.
    pub word: String,
    /// Multiplies its inverse document frequency.
    pub weight: f32,
    /// Whether it is an identifier by which a query may ask for one memory: a specific one in a
    /// short query ([`analysis::is_specific`]), a distinctive one in a longer query
    /// ([`analysis::is_distinctive`]).
    pub specific: bool,
    /// Whether it is a number or a code that an answer has to contain: `139` in `exit code 139`,
    /// `e0382`. Never in a long query, and never a year.
    pub is_code: bool,
}

/// Whether a word is a number or a code: `9200`, `e0382`, `k8s`, but not `17`, `v2`, `2026`.
fn is_code(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_year = word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
    digits > 0
        && word.len() >= MIN_CODE_DIGITS
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !(is_year && digits == word.len())
}

/// How the index writes a word of [`joined_words`]: `c++20` is an identifier.
pub(super) fn joined_key(joined: &str) -> Cow<'_, str> {
    let is_word = joined.chars().all(char::is_alphanumeric);
    let kind = if is_word { TokenKind::Word } else { TokenKind::Identifier };
    term_key(kind, joined)
}

/// Two neighbouring words of a query that may be one word.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPair {
    /// Multiplies its inverse document frequency.
    pub weight: f32,
    /// As the query writes it, in lower case.
    pub written: String,
}

/// Whether the query writes an identifier as a command-line flag, with a dash in front.
fn is_flag(query: &str, identifier: &str) -> bool {
    let lower = query.to_lowercase();
    lower
        .match_indices(identifier)
        .any(|(start, _)| lower.get(..start).is_some_and(|before| before.ends_with('-')))
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryTerms {
    pub terms: Vec<QueryTerm>,
    /// Pairs of neighbouring words that may be a symbol, see [`symbols`], or a name with a version,
    /// by their keys. None of them is one of the terms.
    pub pairs: BTreeMap<String, QueryPair>,
    /// Whether all words are stop words. These are then searched after all.
    pub only_stop_words: bool,
    pub is_short: bool,
    /// Whether it is one word and no identifier: the memories that have it come first.
    pub is_one_word: bool,
}

impl QueryTerms {
    pub fn parse(query: &str) -> Self {
        let mut found: BTreeMap<String, QueryTerm> = BTreeMap::new();
        let mut stop_words: BTreeMap<String, QueryTerm> = BTreeMap::new();
        let query = &join_quantities(&plain(query));
        let words = query.split_whitespace().count();
        let is_short = words <= MAX_SHORT_QUERY_WORDS;
        let unspaced = query.chars().filter(|c| is_unspaced(*c)).count();
        analysis::tokenize(query, TextRole::Query, &mut |token| {
            let key = term_key(token.kind, &token.text).into_owned();
            let is_word = token.kind == TokenKind::Word;
            let is_stop_word = is_word && analysis::is_stop_word(&token.text);
            let has_shape = if is_short { analysis::is_specific } else { analysis::is_distinctive };
            let specific = !is_stop_word
                && (has_shape(&token.text) || (!is_word && is_flag(query, &token.text)));
            let weight = match (specific, is_short) {
                (true, true) => IDENTIFIER_BOOST,
                (true, false) => IDENTIFIER_BOOST_IN_TEXT,
                (false, _) => 1.0,
            };
            let is_code =
                words <= MAX_CODE_QUERY_WORDS && !key.starts_with('=') && is_code(&token.text);
            let word = token.text.into_owned();
            let term = QueryTerm { key: key.clone(), word, weight, specific, is_code };
            if is_stop_word { &mut stop_words } else { &mut found }.insert(key, term);
        });
        let mut pairs = BTreeMap::new();
        symbols::pairs(query, TextRole::Query, &mut |pair| {
            let key = term_key(TokenKind::Word, &pair.joined);
            if !found.contains_key(key.as_ref()) && !stop_words.contains_key(key.as_ref()) {
                let weight = match (pair.is_spaced, pair.has_light_part) {
                    (false, _) => 1.0,
                    (true, true) => LIGHT_PAIR_WEIGHT,
                    (true, false) => SPACED_PAIR_WEIGHT,
                };
                let written = pair.written.to_lowercase();
                pairs.insert(key.into_owned(), QueryPair { weight, written });
            }
        });
        joined_words(query, &mut |joined, written| {
            let key = joined_key(&joined);
            if !found.contains_key(key.as_ref()) {
                let (weight, written) = (1.0, written.to_lowercase());
                pairs.insert(key.into_owned(), QueryPair { weight, written });
            }
        });
        let is_identifier = found.values().any(|term| term.specific);
        let is_one_word = words == 1 && unspaced <= MAX_UNSPACED_CHARS && !is_identifier;
        let only_stop_words = found.is_empty() && !stop_words.is_empty();
        let terms = if only_stop_words { stop_words } else { found };
        let terms = terms.into_values().collect();
        Self { terms, pairs, only_stop_words, is_short, is_one_word }
    }
}

/// A term with its weight in BM25: inverse document frequency times [`QueryTerm::weight`].
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedTerm {
    pub key: String,
    pub weight: f32,
}
