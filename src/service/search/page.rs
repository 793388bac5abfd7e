//! A page of results, and where the next one begins.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use ack_api::memory::Memory;
use ack_api::{Hidden, MemoryHit, Message, QueryRequest};
use ack_search::bm25::Bm25Weights;
use ack_search::cursor::{Cursor, LastResult};
use ack_search::dedup::{self, Signature};
use ack_search::ranking::Ranked;
use ack_search::semantic::QuantizedVector;

/// A result with its place in the ranking.
pub(crate) struct Hit {
    /// What the answer shows.
    pub hit: MemoryHit,
    /// The record behind it.
    pub memory: Memory,
    /// The position of its place on the page.
    pub(super) place: usize,
    /// The positions of the places folded into it.
    pub(super) also_places: Vec<usize>,
}

/// A place of the ranking that a page has used.
pub(super) struct Place {
    pub(super) scope: String,
    pub(super) id: String,
    pub(super) ranked: Ranked,
    /// As in [`Cursor::tie`].
    pub(super) tie: u64,
}

/// A page: its results, and the places of the ranking that they and the memories folded into them
/// take.
#[derive(Default)]
pub(crate) struct Page {
    /// The results, in order.
    pub hits: Vec<Hit>,
    pub(super) places: Vec<Place>,
    /// Whether there are places after this page.
    pub more: bool,
    /// Matches over all pages.
    pub total: u64,
    /// Hidden matches.
    pub hidden: Hidden,
    /// The positions of the scopes with matches that the status filter hides.
    pub hiding_scopes: BTreeSet<usize>,
    /// Matches that were gone, or had another status, when their record was read.
    pub gone: usize,
    /// Scopes whose records could not be read, with the reason.
    pub failed: Vec<(String, Message)>,
    /// Whether no memory contains a word of the query.
    pub lacks_words: bool,
    /// Whether no memory certainly answers the query.
    pub is_uncertain: bool,
    /// Whether the query has only stop words.
    pub only_stop_words: bool,
    /// The best lexical score of the first page.
    pub(super) top: f32,
}

impl Page {
    /// Ends the page before the result at this position. A memory after that place that was folded
    /// into an earlier result appears again on the next page, so that nothing is lost or shown
    /// twice.
    pub fn end_before(&mut self, number: usize) {
        if let Some(end) = self.hits.get(number).map(|hit| hit.place) {
            self.end_at(end);
        }
    }

    /// Ends the page within the memories folded into the first result: keeps `max` of them, and the
    /// others appear on the next page.
    pub fn end_within_first(&mut self, max: usize) {
        let first = self
            .hits
            .first()
            .and_then(|hit| hit.also_places.get(max).copied());
        if let Some(end) = first {
            self.end_at(end);
        }
    }

    /// Removes everything except the hidden counts.
    pub fn clear(&mut self) {
        *self = Self {
            hidden: self.hidden,
            hiding_scopes: std::mem::take(&mut self.hiding_scopes),
            ..Self::default()
        };
    }

    fn end_at(&mut self, end: usize) {
        self.hits.retain(|hit| hit.place < end);
        self.places.truncate(end);
        for hit in &mut self.hits {
            let kept_count = hit
                .also_places
                .iter()
                .filter(|position| **position < end)
                .count();
            hit.also_places.truncate(kept_count);
            hit.hit.also.truncate(kept_count);
        }
        self.more = true;
    }

    /// Where the next page begins, if there is one.
    pub fn cursor(&self, request: &QueryRequest, bm25: Option<&Bm25Weights>) -> Option<Cursor> {
        let last = self.places.last().filter(|_| self.more)?;
        let weights = bm25.map(|bm25| bm25.freeze(self.top));
        let last = LastResult {
            ranked: &last.ranked,
            scope: &last.scope,
            id: &last.id,
            tie: last.tie,
        };
        Some(Cursor::after(request, last, weights))
    }
}

/// What is needed to compare a memory with others.
pub(super) struct ComparableHit {
    pub query_vector: Option<QuantizedVector>,
    /// Computed on first use, because most memories of a page are far apart.
    pub signature: OnceCell<Signature>,
}

impl ComparableHit {
    fn signature(&self, memory: &Memory) -> &Signature {
        self.signature.get_or_init(|| Signature::of(memory))
    }

    /// The position of the first hit that says the same as a memory, in nearly the same words or in
    /// other words.
    pub fn find_duplicate(&self, memory: &Memory, known: &[Self], hits: &[Hit]) -> Option<usize> {
        let cosines: Vec<Option<f32>> = known
            .iter()
            .map(|other| {
                Some(
                    self.query_vector
                        .as_ref()?
                        .cosine(other.query_vector.as_ref()?),
                )
            })
            .collect();
        let others = || known.iter().zip(hits).zip(&cosines);
        let duplicate = others().position(|((other, hit), cosine)| {
            cosine.is_none_or(|cosine| cosine >= dedup::MIN_NEAR_COSINE)
                && other.signature(&hit.memory).is_near(self.signature(memory))
        });
        duplicate.or_else(|| {
            others().position(|((_, hit), cosine)| {
                cosine.is_some_and(|cosine| cosine >= dedup::MIN_REWORDED_COSINE)
                    && dedup::is_reworded(&hit.memory, memory)
            })
        })
    }
}
