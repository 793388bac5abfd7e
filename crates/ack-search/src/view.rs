//! One scope of a search as the legs see it: an index, the request's filters, and, where the terms and vectors of a large
//! scope lie in its vector table, those of the memories that the table's own indexes found.
//!
//! LanceDB's indexes only say which memories are worth a look (a hundred and more of them); what they are worth is
//! computed here as for any other memory, from the terms and the vector that the table holds, so that a memory scores
//! the same wherever it lies.

use super::filter::{Filters, Resolved};
use super::inverted::{DocId, Index, Mark, SUCCEEDED, allowed};
use super::lexical::Statistics;
use super::semantic::Code;
use crate::remote::{Ask, RemoteError, Row};
use ack_api::cancel;
use ack_api::memory::StatusFilter;

/// So many memories that may be shown are wanted of the table: more than the largest page.
const AT_LEAST: usize = 100;
/// Where its indexes find fewer, and no more memories than this pass the filters, each of these is looked at.
const EXACT: usize = 20_000;
/// Where the filters leave no more than this, the indexes are not asked at all.
const FEW: usize = 400;
/// The same of an estimate.
const FEW_EXPECTED: f32 = 200.0;
/// How many times more the indexes are asked for at each step, where they keep naming what the filters leave out, and at most.
const WIDER: usize = 16;
const WIDEST: usize = 4_096;
/// Documents that are looked at to learn what share of them passes the filters.
const SAMPLE: u32 = 8_192;

/// One scope of a search.
pub struct View<'a> {
    /// Its index.
    pub index: &'a Index,
    /// The request's filters, resolved for it.
    pub filter: Resolved<'a>,
    /// What was found outside of the index, by document.
    outside: Vec<Outside>,
    /// Memories that match may have been passed over.
    partial: bool,
}

/// A memory whose terms and vector lie in the vector table.
struct Outside {
    doc: DocId,
    /// The keys of the query that it holds, and their weighted frequencies.
    frequencies: Vec<(Box<str>, f32)>,
    code: Option<Code>,
}

/// A number for some documents of a view: those found outside, and every one in memory.
pub struct Values {
    outside: Vec<(DocId, f32)>,
    first: DocId,
    resident: Vec<f32>,
}

impl Values {
    /// The documents that have a number, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (DocId, f32)> {
        let resident = (self.first..).zip(self.resident.iter().copied());
        self.outside.iter().copied().chain(resident)
    }

    /// The number of a document; 0 where it has none.
    pub fn of(&self, doc: DocId) -> f32 {
        let found = match doc.checked_sub(self.first) {
            Some(place) => self.resident.get(place as usize).copied(),
            None => {
                let place = self.outside.binary_search_by_key(&doc, |(doc, _)| *doc).ok();
                place.and_then(|place| self.outside.get(place)).map(|(_, value)| *value)
            }
        };
        found.unwrap_or_default()
    }
}

impl<'a> View<'a> {
    /// A view in which nothing was looked for yet.
    pub const fn new(index: &'a Index, filter: Resolved<'a>) -> Self {
        Self {
            index,
            filter,
            outside: Vec::new(),
            partial: false,
        }
    }

    /// Whether some memories that match less well may have been passed over, because the table's indexes named only the best.
    pub const fn is_partial(&self) -> bool {
        self.partial
    }

    /// Asks the vector table for the memories that are worth a look, where the scope's index leaves them there. Of a request
    /// that is to stop, they are incomplete.
    ///
    /// # Errors
    /// Why the table cannot be searched any more.
    pub fn look_outside(&mut self, statistics: Option<&Statistics>, code: Option<&Code>, filters: &Filters) -> Result<(), RemoteError> {
        let index = self.index;
        let Some(searcher) = index.searcher().filter(|_| statistics.is_some() || code.is_some()) else {
            return Ok(());
        };
        let keys = statistics.map_or(&[][..], |statistics| &statistics.terms);
        let judge = Judge::new(self, filters);
        let passes = |doc: DocId| matches!(judge.judge(doc), Verdict::Candidate);
        let share = judge.share();
        #[expect(clippy::cast_precision_loss, reason = "a count of documents")]
        let expected = share * index.first_resident() as f32;
        let every = |most: usize, counts: &dyn Fn(DocId) -> bool| -> Option<Vec<DocId>> {
            let docs = cancel::guarded(0..index.first_resident());
            let left: Vec<DocId> = docs.filter(|doc| counts(*doc)).take(most + 1).collect();
            (left.len() <= most).then_some(left)
        };
        // What is left, with what the status filter keeps out, may hardly be more than the indexes would name.
        let few = if expected <= FEW_EXPECTED {
            every(FEW, &|doc| !matches!(judge.judge(doc), Verdict::Filtered))
        } else {
            None
        };
        let (wanted, partial) = match few {
            Some(left) => (left, false),
            None => {
                let mut ask = Ask {
                    keys,
                    anchors: statistics.map_or(&[][..], |statistics| &statistics.anchors),
                    code,
                    share,
                    condition: self.filter.condition(),
                    status: filters.status,
                    widened: 1,
                    verdict: &|doc| judge.judge(doc),
                };
                let answer = searcher.search(&ask)?;
                let mut wanted = answer.docs;
                let mut partial = !answer.complete;
                let mut exhausted = answer.exhausted;
                let too_few = |wanted: &[DocId]| wanted.iter().filter(|doc| passes(**doc)).count() < AT_LEAST;
                if partial && share < 1.0 && too_few(&wanted) && cancel::check().is_ok() {
                    // What matches best lies where the filters do not lead: they are given to the table after all.
                    ask.share = 0.0;
                    let answer = searcher.search(&ask)?;
                    exhausted = answer.exhausted;
                    add(&mut wanted, answer.docs);
                }
                if partial && too_few(&wanted) {
                    // The filters leave so little that the table's indexes pass it over: every memory that is left is looked at.
                    if let Some(left) = every(EXACT, &passes) {
                        add(&mut wanted, left);
                        partial = false;
                    }
                    // More than that are left, and the table cannot decide what leaves them: more and more are asked for.
                    while partial && too_few(&wanted) && !exhausted && ask.widened < WIDEST && cancel::check().is_ok() {
                        ask.widened *= WIDER;
                        let answer = searcher.search(&ask)?;
                        exhausted = answer.exhausted;
                        add(&mut wanted, answer.docs);
                    }
                }
                (wanted, partial)
            }
        };
        self.partial = partial;
        if cancel::check().is_err() {
            // Whoever asked finds that out too.
            return Ok(());
        }
        let rows = searcher.fetch(&wanted, keys)?;
        self.take(rows, keys);
        Ok(())
    }

    /// Reads single memories from the vector table, whatever its indexes say of them.
    ///
    /// # Errors
    /// Why the table cannot be read any more.
    pub fn fetch(&mut self, docs: &[DocId], statistics: Option<&Statistics>) -> Result<(), RemoteError> {
        let missing = docs
            .iter()
            .filter(|doc| **doc < self.index.first_resident() && self.row(**doc).is_none());
        let missing: Vec<DocId> = missing.copied().collect();
        let (Some(searcher), false) = (self.index.searcher(), missing.is_empty()) else {
            return Ok(());
        };
        let keys = statistics.map_or(&[][..], |statistics| &statistics.terms);
        let rows = searcher.fetch(&missing, keys)?;
        self.take(rows, keys);
        Ok(())
    }

    fn take(&mut self, rows: Vec<Row>, keys: &[(String, f32)]) {
        let named = |(place, frequency): (usize, f32)| Some((keys.get(place)?.0.as_str().into(), frequency));
        self.outside.extend(rows.into_iter().map(|row| Outside {
            doc: row.doc,
            frequencies: row.frequencies.into_iter().filter_map(named).collect(),
            code: row.code,
        }));
        self.outside.sort_by_key(|row| row.doc);
        self.outside.dedup_by_key(|row| row.doc);
    }

    fn row(&self, doc: DocId) -> Option<&Outside> {
        let place = self.outside.binary_search_by_key(&doc, |row| row.doc).ok()?;
        self.outside.get(place)
    }

    /// The weighted frequency of one of the query's terms in a document.
    pub fn frequency(&self, key: &str, doc: DocId) -> Option<f32> {
        if doc >= self.index.first_resident() {
            return self.index.frequency(key, doc);
        }
        let row = self.row(doc)?;
        row.frequencies
            .iter()
            .find(|(own, _)| &**own == key)
            .map(|(_, frequency)| *frequency)
    }

    /// The vector of a document that is in memory or was found.
    pub fn code(&self, doc: DocId) -> Option<Code> {
        if doc >= self.index.first_resident() {
            return self.index.code(doc);
        }
        self.row(doc)?.code.clone()
    }

    /// Whether [`View::code`] knows its vector.
    pub fn has_code(&self, doc: DocId) -> bool {
        if doc >= self.index.first_resident() {
            return self.index.has_code(doc);
        }
        self.row(doc).is_some_and(|row| row.code.is_some())
    }

    /// The cosine of each document with a query; 0 for one without a vector.
    pub fn cosines(&self, query: &Code) -> Values {
        let cosine = |row: &Outside| (row.doc, row.code.as_ref().map_or(0.0, |code| code.cosine(query)));
        Values {
            outside: self.outside.iter().map(cosine).collect(),
            first: self.index.first_resident(),
            resident: self.index.vectors().cosines(query),
        }
    }

    /// The sum of what each term of a query gives to a document: `part(key, frequency, length)`.
    pub fn sum(&self, keys: &[(String, f32)], part: impl Fn(f32, f32, u32) -> f32) -> Values {
        let (first, lengths) = (self.index.first_resident(), self.index.lengths());
        let resident = lengths.get(first as usize..).unwrap_or_default();
        let mut scores = vec![0f32; resident.len()];
        for (key, weight) in keys {
            for (number, frequency) in cancel::guarded(self.index.postings(key)) {
                let place = number.saturating_sub(first) as usize;
                if let (Some(score), Some(length)) = (scores.get_mut(place), resident.get(place)) {
                    *score += part(*weight, frequency, *length);
                }
            }
        }
        let outside = self.outside.iter().map(|row| {
            let length = lengths.get(row.doc as usize).copied().unwrap_or_default();
            // In the order of the query's terms, so that the sum is the same to the last bit as for a memory in memory.
            let held = keys.iter().filter_map(|(key, weight)| {
                let frequency = row.frequencies.iter().find(|(own, _)| **own == **key)?.1;
                Some(part(*weight, frequency, length))
            });
            (row.doc, held.fold(0.0, |sum, part| sum + part))
        });
        Values {
            outside: outside.collect(),
            first,
            resident: scores,
        }
    }
}

/// Adds documents to others, in the order of their numbers.
fn add(wanted: &mut Vec<DocId>, more: Vec<DocId>) {
    wanted.extend(more);
    wanted.sort_unstable();
    wanted.dedup();
}

/// Some of so many documents, the same ones every time, spread evenly and without a period: what is written in turn (every
/// eighth memory of one project) must not be met by a step of its own length. Each of them where there are few.
fn sample(documents: DocId) -> impl Iterator<Item = DocId> {
    /// 2^32 divided by the golden ratio: multiples of it fill the range evenly.
    const GOLDEN: u32 = 0x9E37_79B9;
    (0..documents.min(SAMPLE)).map(move |number| {
        if documents <= SAMPLE {
            return number;
        }
        let place = (u64::from(number.wrapping_mul(GOLDEN)) * u64::from(documents)) >> 32;
        DocId::try_from(place).unwrap_or_default()
    })
}

/// Whether a document that matches is a candidate, and if not, why.
pub enum Verdict {
    /// It may be shown.
    Candidate,
    /// The status filter keeps it out.
    ByStatus,
    /// A newer memory stands in for it.
    Superseded,
    /// It does not exist for this request: dead, or another filter keeps it out.
    Filtered,
}

/// Decides about the documents of one view.
pub struct Judge<'a> {
    pub(super) view: &'a View<'a>,
    status: StatusFilter,
    allowed: Mark,
    /// No filter but the one on status restricts anything.
    open: bool,
}

impl<'a> Judge<'a> {
    /// A judge for the filters of a request.
    pub fn new(view: &'a View<'a>, filters: &Filters) -> Self {
        Self {
            view,
            status: filters.status,
            allowed: allowed(filters.status),
            open: view.filter.is_open(),
        }
    }

    /// The share of the documents outside of memory that may be shown, 0 to 1, about.
    fn share(&self) -> f32 {
        let documents = self.view.index.first_resident();
        let (mut looked_at, mut passing) = (0u32, 0u32);
        for doc in sample(documents) {
            looked_at += 1;
            passing += u32::from(matches!(self.judge(doc), Verdict::Candidate));
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of a sample")]
        let share = passing as f32 / looked_at.max(1) as f32;
        share
    }

    /// What becomes of a document that matches.
    pub fn judge(&self, number: DocId) -> Verdict {
        let index = self.view.index;
        let mark = index.mark(number);
        let dead = mark & !SUCCEEDED == 0;
        if dead || (!self.open && !self.view.filter.passes(number)) {
            Verdict::Filtered
        } else if mark & self.allowed == 0 {
            Verdict::ByStatus
        } else if mark & SUCCEEDED != 0 && index.is_superseded(number, self.status) {
            Verdict::Superseded
        } else {
            Verdict::Candidate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sample;

    #[test]
    fn a_sample_tells_the_share_of_what_is_written_in_turn() {
        for documents in [8_192, 10_400, 200_000, 1_000_000u32] {
            for period in [2, 3, 4, 8, 12, 24, 40, 61, 122] {
                for rest in [0, period - 1] {
                    let (met, all) = sample(documents).fold((0, 0), |(met, all), doc| (met + u32::from(doc % period == rest), all + 1));
                    let share = f64::from(met) * f64::from(period) / f64::from(all);
                    assert!((0.6..1.5).contains(&share), "{documents} documents, every {period}th: {share}");
                }
            }
        }
    }
}
