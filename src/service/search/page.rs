//! A page of results, and where the next one begins.

use std::cell::OnceCell;

use ack_api::memory::Memory;
use ack_api::{Hidden, MemoryHit, QueryRequest};
use ack_search::bm25::Bm25Weights;
use ack_search::cursor::{Cursor, LastResult};
use ack_search::dedup::{self, Signature};
use ack_search::ranking::Ranked;
use ack_search::semantic::QuantizedVector;

/// A result with its place in the order.
pub(crate) struct Hit {
    /// What the answer shows.
    pub hit: MemoryHit,
    /// The record behind it.
    pub memory: Memory,
    /// Its number among the page's places.
    pub(super) place: usize,
    /// The numbers of the places folded into it.
    pub(super) also_places: Vec<usize>,
}

/// A place of the order that a page has used up.
pub(super) struct Place {
    pub(super) scope: String,
    pub(super) id: String,
    pub(super) ranked: Ranked,
    /// As in [`Cursor::tie`].
    pub(super) tie: u64,
}

/// A page: results, and the places of the order that they and what is folded into them take.
#[derive(Default)]
pub(crate) struct Page {
    /// The results, in order.
    pub hits: Vec<Hit>,
    pub(super) places: Vec<Place>,
    /// Whether there are places behind this page.
    pub more: bool,
    /// Matches over all pages.
    pub total: u64,
    /// Matches left out.
    pub hidden: Hidden,
    /// Matches that were gone, or had another status, when their record was read.
    pub gone: usize,
    /// Scopes whose records could not be read, with the reason.
    pub failed: Vec<(String, String)>,
    /// No memory holds a word of the query.
    pub lacks_words: bool,
    /// No memory is certain to answer the query.
    pub is_uncertain: bool,
    /// The query was nothing but stop words.
    pub only_stop_words: bool,
    /// The best lexical score of the first page.
    pub(super) top: f32,
}

impl Page {
    /// Ends the page before the result with this number. What was folded into earlier results from
    /// after that place comes again on the next page, so that nothing is lost or shown twice.
    pub fn end_before(&mut self, number: usize) {
        if let Some(end) = self.hits.get(number).map(|hit| hit.place) {
            self.end_at(end);
        }
    }

    /// Ends the page within what is folded into the first result: this many of these memories stay,
    /// and the others come again on the next page.
    pub fn end_within_first(&mut self, max: usize) {
        let first = self
            .hits
            .first()
            .and_then(|hit| hit.also_places.get(max).copied());
        if let Some(end) = first {
            self.end_at(end);
        }
    }

    /// Takes everything out but what is counted as hidden.
    pub fn clear(&mut self) {
        *self = Self {
            hidden: self.hidden,
            ..Self::default()
        };
    }

    fn end_at(&mut self, end: usize) {
        self.hits.retain(|hit| hit.place < end);
        self.places.truncate(end);
        for hit in &mut self.hits {
            let kept = hit.also_places.iter().filter(|place| **place < end).count();
            hit.also_places.truncate(kept);
            hit.hit.also.truncate(kept);
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

/// What a memory is compared with others by.
pub(super) struct Known {
    pub code: Option<QuantizedVector>,
    /// Made when it is asked for: most memories of a page are far from each other.
    pub signature: OnceCell<Signature>,
}

impl Known {
    fn signature(&self, memory: &Memory) -> &Signature {
        self.signature.get_or_init(|| Signature::of(memory))
    }

    /// The number of the first hit that says the same as a memory, in nearly the same words or in others.
    pub fn same(&self, memory: &Memory, known: &[Self], hits: &[Hit]) -> Option<usize> {
        let cosines: Vec<Option<f32>> = known
            .iter()
            .map(|other| Some(self.code.as_ref()?.cosine(other.code.as_ref()?)))
            .collect();
        let others = || known.iter().zip(hits).zip(&cosines);
        let near = others().position(|((other, hit), cosine)| {
            cosine.is_none_or(|cosine| cosine >= dedup::MIN_NEAR_COSINE)
                && other.signature(&hit.memory).is_near(self.signature(memory))
        });
        near.or_else(|| {
            others().position(|((_, hit), cosine)| {
                cosine.is_some_and(|cosine| cosine >= dedup::MIN_REWORDED_COSINE)
                    && dedup::is_reworded(&hit.memory, memory)
            })
        })
    }
}
