//! A page of results, and where the next one begins.

use std::collections::BTreeSet;

use super::Certainty;
use crate::budget::ShownText;
use crate::shown::Overlap;
use ack_api::memory::{Memory, StatusFilter};
use ack_api::{Also, Hidden, MemoryHit, Message, QueryRequest};
use ack_search::bm25::Bm25Weights;
use ack_search::cursor::Cursor;
use ack_search::ranking::Ranked;
use ack_search::wording::Wording;

#[derive(Default)]
pub struct Hit {
    pub hit: MemoryHit,
    pub memory: Memory,
    /// `None` in a list, which shows everything.
    pub wording: Option<Wording>,
    /// What it shows of the memory's text, if that was cut.
    pub shown: Option<ShownText>,
    /// Its place in the ranking.
    pub found_at: usize,
    /// The same, or the place of the first result that it contains, which it takes.
    pub place: usize,
    pub also_places: Vec<usize>,
    /// The results before it whose texts it contains.
    pub contained: Vec<Self>,
}

pub struct Place {
    pub scope: String,
    pub id: String,
    pub ranked: Ranked,
    /// As in [`Cursor::tie`].
    pub tie: u64,
}

/// Its results, and the places of the ranking that they and what is folded into them take.
#[derive(Default)]
pub struct Page {
    pub hits: Vec<Hit>,
    pub places: Vec<Place>,
    pub more: bool,
    pub total: u64,
    pub hidden: Hidden,
    /// The positions of the scopes with matches that the status filter hides.
    pub hiding_scopes: BTreeSet<usize>,
    /// Matches that were gone, or had another status, when their record was read.
    pub gone: usize,
    pub failed: Vec<(String, Message)>,
    pub certainty: Certainty,
    pub only_stop_words: bool,
    /// The best lexical score of the first page.
    pub top: f32,
}

impl Hit {
    pub fn fold(&mut self, also: Also, place: usize) {
        self.hit.also.push(also);
        self.also_places.push(place);
    }

    /// Takes the first place of results that it contains, and what is folded into them.
    fn take_places_of(&mut self, hits: Vec<Self>) {
        let mut folded: Vec<(usize, Also)> = Vec::new();
        for Self { hit, place, also_places, .. } in &hits {
            self.place = self.place.min(*place);
            folded.push((*place, Also { id: hit.id.clone(), scope: hit.scope.clone() }));
            folded.extend(also_places.iter().copied().zip(hit.also.iter().cloned()));
        }
        folded.sort_by_key(|(place, _)| *place);
        for (place, also) in folded {
            self.fold(also, place);
        }
        self.contained = hits;
    }
}

impl Page {
    /// How a memory relates to the results. An approved memory is not hidden behind one that waits.
    pub fn overlap(&self, wording: &Wording, memory: &Memory) -> Overlap {
        let serves = |memory: &Memory| StatusFilter::Approved.allows(memory.status);
        let comparable = self.hits.iter().enumerate().filter_map(|(at, hit)| {
            let is_comparable = serves(&hit.memory) == serves(memory);
            hit.wording.as_ref().filter(|_| is_comparable).map(|known| (at, known))
        });
        Overlap::of(wording, comparable, 0)
    }

    /// Adds a result, in the place of those at these positions, which it contains.
    pub fn add(&mut self, mut hit: Hit, contained: &[usize]) {
        let at = contained.first().copied().unwrap_or(self.hits.len());
        let mut hits: Vec<Hit> = contained.iter().rev().map(|at| self.hits.remove(*at)).collect();
        hits.reverse();
        hit.take_places_of(hits);
        self.hits.insert(at, hit);
    }

    /// A memory after that place that was folded into an earlier result appears again on the next
    /// page, so that nothing is lost or shown twice.
    pub fn end_before(&mut self, number: usize) {
        if let Some(end) = self.hits.get(number).map(|hit| hit.place) {
            self.end_at(end);
        }
    }

    /// Keeps `max` of the memories folded into the first result; the others go to the next page.
    pub fn end_within_first(&mut self, max: usize) {
        let Some(first) = self.hits.first() else {
            return;
        };
        if let Some(end) = first.also_places.get(max) {
            self.end_at((*end).max(first.place + 1));
        }
    }

    pub fn clear(&mut self) {
        *self = Self {
            hidden: self.hidden,
            hiding_scopes: std::mem::take(&mut self.hiding_scopes),
            ..Self::default()
        };
    }

    fn end_at(&mut self, end: usize) {
        self.places.truncate(end);
        // What a result was found to contain after the end is shown by itself again.
        let mut hits = std::mem::take(&mut self.hits);
        while let Some(hit) = hits.pop() {
            if hit.found_at < end {
                self.hits.push(hit);
            } else {
                hits.extend(hit.contained);
            }
        }
        self.hits.sort_by_key(|hit| hit.place);
        for hit in &mut self.hits {
            let kept = hit.also_places.partition_point(|place| *place < end);
            hit.also_places.truncate(kept);
            hit.hit.also.truncate(kept);
        }
        self.more = true;
    }

    pub fn cursor(&self, request: &QueryRequest, bm25: Option<&Bm25Weights>) -> Option<Cursor> {
        let Place { scope, id, ranked, tie } = self.places.last().filter(|_| self.more)?;
        let weights = bm25.map(|bm25| bm25.freeze(self.top));
        Some(Cursor::after(request, (scope, id), (ranked.place, *tie), weights))
    }
}
