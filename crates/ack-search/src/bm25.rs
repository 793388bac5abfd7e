//! Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009): the weights
//! of a query's terms, and what a term contributes to the score of a document.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::query::WeightedTerm;

const K1: f32 = 1.2;
const B: f32 = 0.75;

/// Weights are multiples of this unit, so a cursor can carry them exactly.
pub(super) const WEIGHT_UNIT: f32 = 1.0 / 512.0;
/// The score norm is a multiple of this unit, for the same reason.
const NORM_UNIT: f32 = 1.0 / 64.0;

/// The weights of a query's terms over all scopes of a search, and what else BM25 needs.
#[derive(Debug, Default)]
pub struct Bm25Weights {
    /// The terms that are searched, in the order of the query.
    pub terms: Vec<WeightedTerm>,
    pub(super) mean_length: f32,
    /// The specific identifiers of a short query, or those that hardly any memory contains.
    pub required_identifiers: Vec<String>,
    /// The first page's [`Bm25Weights::score_norm`], on later pages.
    pub frozen_norm: Option<f32>,
    /// Terms that only look like a word of the query that no memory contains.
    pub lookalikes: BTreeSet<String>,
    /// Terms that are not words of the query of their own: two neighbouring words joined, and codes
    /// that only hidden memories contain.
    pub pairs: BTreeSet<String>,
    /// Words of the query that are misspelt, and how they are written.
    pub corrections: Vec<(String, String)>,
    /// Whether no memory contains a code of the query, see [`super::query::QueryTerm::is_code`].
    pub lacks_code: bool,
    /// What the replaced words would weigh if a memory contained them. It keeps a memory that
    /// matches nothing but expansions from scoring as a full match.
    pub unmatched_weight: f32,
    /// What all words of the query weigh, whether a memory contains them or not.
    pub total_weight: f32,
}

impl Bm25Weights {
    /// A text with the words corrected that are misspelt in the query.
    pub fn corrected<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.corrections.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut corrected = String::with_capacity(text.len());
        for piece in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
            let lower = word.to_lowercase();
            let correction = self.corrections.iter().find(|(misspelt, _)| *misspelt == lower);
            corrected.push_str(correction.map_or(word, |(_, correction)| correction));
            corrected.push_str(piece.get(word.len()..).unwrap_or_default());
        }
        Cow::Owned(corrected)
    }

    /// The mean length, the score norm and the weights for a cursor, as big-endian 16-bit numbers.
    pub fn freeze(&self, score_norm: f32) -> Vec<u8> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "weights are below 65536 units; a cast saturates"
        )]
        let units = |value: f32| value as u16;
        let weights = self.terms.iter().map(|term| units((term.weight / WEIGHT_UNIT).round()));
        let norm = units((score_norm / NORM_UNIT).round());
        let numbers = [units(self.mean_length), norm].into_iter().chain(weights);
        numbers.flat_map(u16::to_be_bytes).collect()
    }

    /// Restores the weights that [`Bm25Weights::freeze`] encoded, so that a later page ranks like
    /// the first one. Weights of another number of terms are ignored.
    pub fn restore(&mut self, frozen: &[u8]) {
        if frozen.len() != 4 + 2 * self.terms.len() {
            return;
        }
        let (pairs, _) = frozen.as_chunks::<2>();
        let mut numbers = pairs.iter().map(|pair| f32::from(u16::from_be_bytes(*pair)));
        self.mean_length = numbers.next().unwrap_or(1.0).max(1.0);
        self.frozen_norm = numbers.next().map(|norm| norm * NORM_UNIT).filter(|norm| *norm > 0.0);
        for (term, frozen) in self.terms.iter_mut().zip(numbers) {
            term.weight = frozen * WEIGHT_UNIT;
        }
    }

    /// What fusion divides lexical scores by: the best of them, or the weight of the query's
    /// unmatched words if that is more. Rounded up to the unit that a cursor carries.
    pub fn score_norm(&self, best: f32) -> f32 {
        (best.max(self.unmatched_weight) / NORM_UNIT).ceil() * NORM_UNIT
    }

    /// What a term contributes to the score of a document.
    pub(super) fn contribution(&self, weight: f32, frequency: f32, length: u32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
        let norm = K1 * (1.0 - B + B * length as f32 / self.mean_length);
        weight * frequency * (K1 + 1.0) / (frequency + norm)
    }
}
