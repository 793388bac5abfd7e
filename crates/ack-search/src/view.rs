//! One scope in one search: its index, the request's filters, and the remote documents it fetched.
//!
//! The vector table of a large scope only names candidates. Their scores are computed here, from
//! the same terms and vectors and in the same order of operations as for documents in memory, so a
//! memory scores the same wherever it is stored. See `docs/retrieval.md`.

use super::bm25::Bm25Weights;
use super::filter::ResolvedFilters;
use super::inverted::Index;
use super::inverted::docs::{DocFlags, HAS_SUCCESSOR, allowed_flags};
use super::postings::DocId;
use super::remote::{Eligibility, RemoteDoc, RemoteDocs, RemoteError, RemoteHits, RemoteQuery};
use super::semantic::{QuantizedVector, QueryVector};
use ack_api::cancel;
use ack_api::memory::StatusFilter;

/// How many eligible documents a search of the table should find: more than the largest page.
const MIN_ELIGIBLE: usize = 100;
/// If the table's indexes find fewer than [`MIN_ELIGIBLE`], and the filters leave at most this many
/// documents, all of these are scored.
const MAX_EXHAUSTIVE_DOCS: usize = 20_000;
/// If the filters leave at most this many documents, these are scored without the table's indexes.
const MAX_UNINDEXED_DOCS: usize = 400;
/// They are only counted if their estimated number is at most this.
const MAX_EXPECTED_UNINDEXED_DOCS: f32 = 200.0;
/// By which factor each further query is wider, if too few of the documents found are eligible.
const WIDENING_STEP: usize = 16;
const MAX_WIDENING: usize = 4_096;
const BLOCK: usize = 64;
/// How many documents are sampled to estimate the share of eligible ones.
const SAMPLE_DOCS: u32 = 8_192;

pub struct View<'a> {
    pub index: &'a Index,
    pub filter: ResolvedFilters<'a>,
    /// The flags of documents that the status filter allows, and whether it is the only filter.
    allowed: DocFlags,
    unrestricted: bool,
    /// The remote documents that were fetched, in ascending order.
    fetched: Vec<RemoteDoc>,
    /// The terms of the query that they were fetched for.
    fetched_terms: Vec<String>,
    /// Whether matches may be missing.
    partial: bool,
}

/// A score for every document of a view that is in memory or was fetched.
#[derive(Debug)]
pub struct DocScores {
    fetched: Vec<(DocId, f32)>,
    first_resident: DocId,
    resident: Vec<f32>,
}

impl DocScores {
    /// The documents that have a score, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (DocId, f32)> {
        let resident = (self.first_resident..).zip(self.resident.iter().copied());
        self.fetched.iter().copied().chain(resident)
    }

    /// Calls `visit` with each document whose score is at least `min_score`, with that score and the
    /// current minimum. `visit` returns the minimum for the documents after it. Returns the last
    /// minimum.
    pub fn visit_from(
        &self,
        mut min_score: f32,
        mut visit: impl FnMut(DocId, f32, f32) -> f32,
    ) -> f32 {
        for (doc, score) in &self.fetched {
            if *score >= min_score {
                min_score = visit(*doc, *score, min_score);
            }
        }
        let firsts = (self.first_resident..).step_by(BLOCK);
        for (first, block) in cancel::guarded(firsts.zip(self.resident.chunks(BLOCK))) {
            // Without branches, so that several scores are compared at once.
            let any = block.iter().fold(false, |any, score| any | (*score >= min_score));
            if any {
                for (doc, score) in (first..).zip(block) {
                    if *score >= min_score {
                        min_score = visit(doc, *score, min_score);
                    }
                }
            }
        }
        min_score
    }

    /// The score of a document, or 0 if it has none.
    pub fn get(&self, doc: DocId) -> f32 {
        let score = match doc.checked_sub(self.first_resident) {
            Some(position) => self.resident.get(position as usize).copied(),
            None => {
                let position = self.fetched.binary_search_by_key(&doc, |(doc, _)| *doc).ok();
                position.and_then(|position| self.fetched.get(position)).map(|(_, score)| *score)
            }
        };
        score.unwrap_or_default()
    }
}

impl<'a> View<'a> {
    pub fn new(index: &'a Index, filter: ResolvedFilters<'a>) -> Self {
        Self {
            index,
            allowed: allowed_flags(filter.filters.status),
            unrestricted: filter.is_unrestricted(),
            filter,
            fetched: Vec::new(),
            fetched_terms: Vec::new(),
            partial: false,
        }
    }

    /// Whether a document may be returned.
    pub fn check(&self, doc: DocId) -> Eligibility {
        let flags = self.index.docs.flags(doc);
        let dead = flags & !HAS_SUCCESSOR == 0;
        let is_superseded = || self.index.is_superseded(doc, self.filter.filters.status);
        if dead || (!self.unrestricted && self.filter.failed_filter(doc).is_some()) {
            Eligibility::Excluded
        } else if flags & self.allowed == 0 {
            Eligibility::HiddenByStatus
        } else if flags & HAS_SUCCESSOR != 0 && is_superseded() {
            Eligibility::Superseded
        } else {
            Eligibility::Eligible
        }
    }

    /// The remote documents for which `counts` holds, or `None` if there are more than `limit`.
    fn remote_docs_if_few(
        &self,
        limit: usize,
        counts: impl Fn(DocId) -> bool,
    ) -> Option<Vec<DocId>> {
        let docs = cancel::guarded(0..self.index.first_resident());
        let docs: Vec<DocId> = docs.filter(|doc| counts(*doc)).take(limit + 1).collect();
        (docs.len() <= limit).then_some(docs)
    }

    fn is_eligible(&self, doc: DocId) -> bool {
        self.check(doc) == Eligibility::Eligible
    }

    /// The estimated share of the remote documents that are eligible, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "counts of a sample")]
    fn eligible_share(&self) -> f32 {
        let documents = self.index.first_resident();
        let eligible = sample(documents).filter(|doc| self.is_eligible(*doc)).count();
        eligible as f32 / documents.clamp(1, SAMPLE_DOCS) as f32
    }

    /// Whether weaker matches may be missing, because the table's indexes returned only the best.
    pub const fn is_partial(&self) -> bool {
        self.partial
    }

    /// Fetches the remote documents that may be among the best; not all, if the request is cancelled.
    pub fn fetch_remote_candidates(
        &mut self,
        bm25: Option<&Bm25Weights>,
        vector: Option<&QueryVector>,
    ) -> Result<(), RemoteError> {
        let index = self.index;
        let Some(remote) = index.remote().filter(|_| bm25.is_some() || vector.is_some()) else {
            return Ok(());
        };
        let terms = bm25.map_or(&[][..], |bm25| &bm25.terms);
        let share = self.eligible_share();
        #[expect(clippy::cast_precision_loss, reason = "a count of documents")]
        let expected = share * index.first_resident() as f32;
        // Documents that the status filter hides count here too: the answer reports their number.
        let relevant = |doc| self.check(doc) != Eligibility::Excluded;
        let unindexed = (expected <= MAX_EXPECTED_UNINDEXED_DOCS)
            .then(|| self.remote_docs_if_few(MAX_UNINDEXED_DOCS, relevant));
        let (docs, partial) = match unindexed.flatten() {
            Some(docs) => (docs, false),
            None => {
                let query = RemoteQuery {
                    terms,
                    required_identifiers: bm25.map_or(&[][..], |bm25| &bm25.required_identifiers),
                    vector: vector.map(|vector| vector.to_compare(index.is_contextual)),
                    eligible_share: share,
                    filter: self.filter.pushdown(),
                    status: self.filter.filters.status,
                    widening: 1,
                    eligibility: &|doc| self.check(doc),
                };
                self.search_widening(remote, query)?
            }
        };
        self.partial = partial;
        if cancel::check().is_err() {
            // The caller checks for cancellation too.
            return Ok(());
        }
        self.fetched_terms = terms.iter().map(|term| term.key.clone()).collect();
        self.add_fetched(remote.fetch(&docs, terms)?);
        Ok(())
    }

    /// Searches the remote documents, and widens the search while too few of those found are eligible.
    /// Returns what was found, and whether matches may be missing.
    fn search_widening(
        &self,
        remote: &dyn RemoteDocs,
        mut query: RemoteQuery<'_>,
    ) -> Result<(Vec<DocId>, bool), RemoteError> {
        let is_eligible = |doc: DocId| self.is_eligible(doc);
        let RemoteHits { mut docs, complete, mut exhausted } = remote.search(&query)?;
        if complete {
            return Ok((docs, false));
        }
        while docs.iter().filter(|doc| is_eligible(**doc)).count() < MIN_ELIGIBLE
            && cancel::check().is_ok()
        {
            if query.eligible_share > 0.0 && query.eligible_share < 1.0 {
                // The best matches do not pass the filters, so the table applies the filters.
                query.eligible_share = 0.0;
            } else if query.widening == 1
                && let Some(eligible) = self.remote_docs_if_few(MAX_EXHAUSTIVE_DOCS, is_eligible)
            {
                // The filters leave too few for the table's indexes to find: score all of them.
                merge(&mut docs, eligible);
                return Ok((docs, false));
            } else if exhausted || query.widening >= MAX_WIDENING {
                break;
            } else {
                // The table cannot evaluate the filter that excludes the rest.
                query.widening *= WIDENING_STEP;
            }
            let hits = remote.search(&query)?;
            exhausted = hits.exhausted;
            merge(&mut docs, hits.docs);
        }
        Ok((docs, true))
    }

    /// Fetches a remote document, whether or not a search would find it.
    pub fn fetch_remote_doc(&mut self, doc: DocId) -> Result<(), RemoteError> {
        if let Some(remote) = self.index.remote()
            && doc < self.index.first_resident()
            && self.fetched(doc).is_none()
        {
            self.add_fetched(remote.fetch(&[doc], &[])?);
        }
        Ok(())
    }

    fn add_fetched(&mut self, docs: Vec<RemoteDoc>) {
        self.fetched.extend(docs);
        self.fetched.sort_by_key(|fetched| fetched.doc);
        self.fetched.dedup_by_key(|fetched| fetched.doc);
    }

    fn fetched(&self, doc: DocId) -> Option<&RemoteDoc> {
        let position = self.fetched.binary_search_by_key(&doc, |fetched| fetched.doc).ok()?;
        self.fetched.get(position)
    }

    pub fn frequency(&self, key: &str, doc: DocId) -> Option<f32> {
        if doc >= self.index.first_resident() {
            return self.index.frequency(key, doc);
        }
        self.fetched(doc)?.frequency(self.fetched_term(key)?)
    }

    fn fetched_term(&self, key: &str) -> Option<usize> {
        self.fetched_terms.iter().position(|term| term == key)
    }

    /// The vector of a document that is in memory or was fetched.
    pub fn vector(&self, doc: DocId) -> Option<QuantizedVector> {
        if doc >= self.index.first_resident() {
            return self.index.vector(doc);
        }
        self.fetched(doc)?.vector.clone()
    }

    pub fn has_vector(&self, doc: DocId) -> bool {
        if doc >= self.index.first_resident() {
            return self.index.has_vector(doc);
        }
        self.fetched(doc).is_some_and(|fetched| fetched.vector.is_some())
    }

    /// The nearness of each document to a query; 0 for a document without a vector.
    pub fn cosines(&self, query: &QueryVector) -> DocScores {
        let query = query.to_compare(self.index.is_contextual);
        let cosine = |fetched: &RemoteDoc| {
            let vector = fetched.vector.as_ref();
            (fetched.doc, vector.map_or(0.0, |vector| vector.nearness(query)))
        };
        DocScores {
            fetched: self.fetched.iter().map(cosine).collect(),
            first_resident: self.index.first_resident(),
            resident: self.index.contents.vectors.cosines(query),
        }
    }

    /// The BM25 score of each document, dead ones too; 0 for those without any term.
    pub fn lexical_scores(&self, bm25: &Bm25Weights) -> DocScores {
        let (first_resident, lengths) = (self.index.first_resident(), self.index.docs.lengths());
        let resident_lengths = lengths.get(first_resident as usize..).unwrap_or_default();
        let mut resident = vec![0f32; resident_lengths.len()];
        for term in &bm25.terms {
            for (doc, frequency) in cancel::guarded(self.index.postings(&term.key)) {
                let position = doc.saturating_sub(first_resident) as usize;
                if let (Some(score), Some(length)) =
                    (resident.get_mut(position), resident_lengths.get(position))
                {
                    *score += bm25.contribution(term.weight, frequency, *length);
                }
            }
        }
        let terms: Vec<_> =
            bm25.terms.iter().map(|term| (term, self.fetched_term(&term.key))).collect();
        let fetched = self.fetched.iter().map(|fetched| {
            let length = lengths.get(fetched.doc as usize).copied().unwrap_or_default();
            // Summed in the order of the query's terms, as above: floating-point addition is not
            // associative, and the scores have to be equal to the last bit.
            let contributions = terms.iter().filter_map(|(term, number)| {
                let frequency = fetched.frequency((*number)?)?;
                Some(bm25.contribution(term.weight, frequency, length))
            });
            (fetched.doc, contributions.fold(0.0, |sum, part| sum + part))
        });
        DocScores { fetched: fetched.collect(), first_resident, resident }
    }
}

/// How many memories that a filter allows contain a term.
pub fn document_frequency(views: &[View<'_>], key: &str, status: StatusFilter) -> u32 {
    let in_view = |view: &View<'_>| view.index.document_frequency(key, status);
    u32::try_from(views.iter().map(in_view).sum::<usize>()).unwrap_or(u32::MAX)
}

/// Merges documents into others, in ascending order and without duplicates.
fn merge(docs: &mut Vec<DocId>, more: Vec<DocId>) {
    docs.extend(more);
    docs.sort_unstable();
    docs.dedup();
}

/// A sample of the first `documents` documents; all of them if there are few. It is even but not
/// periodic, so that it does not align with stores that are written in turn, such as every eighth
/// memory in one project.
fn sample(documents: DocId) -> impl Iterator<Item = DocId> {
    /// 2^32 divided by the golden ratio. Its multiples fill the range evenly (Fibonacci hashing).
    const GOLDEN: u32 = 0x9E37_79B9;
    (0..documents.min(SAMPLE_DOCS)).map(move |n| {
        if documents <= SAMPLE_DOCS {
            return n;
        }
        let doc = (u64::from(n.wrapping_mul(GOLDEN)) * u64::from(documents)) >> 32;
        DocId::try_from(doc).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::sample;

    #[test]
    fn a_sample_estimates_the_share_of_alternating_documents() {
        for documents in [8_192, 10_400, 200_000, 1_000_000u32] {
            for period in [2, 3, 4, 8, 12, 24, 40, 61, 122] {
                for remainder in [0, period - 1] {
                    let (met, all) = sample(documents).fold((0, 0), |(met, all), doc| {
                        (met + u32::from(doc % period == remainder), all + 1)
                    });
                    let share = f64::from(met) * f64::from(period) / f64::from(all);
                    assert!(
                        (0.6..1.5).contains(&share),
                        "{documents} documents, every {period}th: {share}"
                    );
                }
            }
        }
    }
}
