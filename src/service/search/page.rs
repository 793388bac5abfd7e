//! A page of results, and where the next one begins.

use std::collections::BTreeSet;

use ack_api::memory::Memory;
use ack_api::{Also, Hidden, MemoryHit, Message, QueryRequest};
use ack_search::bm25::Bm25Weights;
use ack_search::cursor::{Cursor, LastResult};
use ack_search::ranking::Ranked;

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
    /// The result that was at its place before, whose text it contains.
    pub(super) contained: Option<Contained>,
}

/// A result that gave its place to one that contains it.
pub(super) struct Contained {
    hit: Box<Hit>,
    /// The position of the place where the other one was found.
    until: usize,
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

impl Hit {
    /// Folds a memory into this result, found at this place.
    pub(super) fn fold(&mut self, also: Also, place: usize) {
        self.hit.also.push(also);
        self.also_places.push(place);
    }

    /// Gives the place of this result, and what is folded into it, to one that contains it, found
    /// at a later place.
    pub(super) fn give_place_to(&mut self, mut other: Self) {
        let until = std::mem::replace(&mut other.place, self.place);
        let also = Also {
            id: self.hit.id.clone(),
            scope: self.hit.scope.clone(),
        };
        other.fold(also, self.place);
        other.hit.also.extend_from_slice(&self.hit.also);
        other.also_places.extend_from_slice(&self.also_places);
        let hit = Box::new(std::mem::replace(self, other));
        self.contained = Some(Contained { hit, until });
    }
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
        let Some(first) = self.hits.first() else {
            return;
        };
        if let Some(end) = first.also_places.get(max) {
            self.end_at((*end).max(first.place + 1));
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
            while let Some(contained) = hit.contained.take_if(|contained| contained.until >= end) {
                *hit = *contained.hit;
            }
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
