//! One search over opened scopes: retrieval, ranking, and reading a page of records.

mod named;
mod page;
mod words;

use std::collections::HashSet;

use self::named::Named;
use self::page::Place;
pub(crate) use self::page::{Hit, Page};
pub(crate) use self::words::Certainty;
use self::words::{MAX_NEAREST, truncate_to_nearest};
use super::answer;
use super::budget::passage::Question;
use super::explain::rounded;
use super::open::{OpenScope, OpenScopes, RecordKey, Records};
use super::same_id::{self, Holder, Others};
use super::shown::Overlap;
use super::validate::QuerySpec;
use crate::error::Error;
use crate::scope::resolve::Selection;
use ack_api::memory::Memory;
use ack_api::{Also, Diagnostic, MemoryHit, Message, Mode, Note, cancel, time};
use ack_contextual::Contextual;
use ack_search::bm25::Bm25Weights;
use ack_search::cursor::Cursor;
use ack_search::encoder::Encoder;
use ack_search::filter::ResolvedFilters;
use ack_search::lexical;
use ack_search::postings::DocId;
use ack_search::query::QueryTerms;
use ack_search::ranking::{Ranked, order, resume, tie_number};
use ack_search::remote::RemoteError;
use ack_search::retrieve::{Candidate, CandidateSet, MIN_COSINE, Query, retrieve};
use ack_search::semantic::{QuantizedVector, QueryVector};
use ack_search::view::View;
use ack_search::wording::Wording;

/// How much the small transformer's vector counts beside the static one, among static vectors:
/// it reads the question in context, but it fits them less well.
const SHARE_FOR_STATIC: f32 = 0.15;
/// The same for contextual vectors, which are made in the same way.
const SHARE_FOR_CONTEXTUAL: f32 = 1.0;
/// A question of fewer words has no context; for static vectors, it is not read.
const MIN_WORDS: usize = 3;

pub struct Search<'a> {
    pub opened: &'a OpenScopes,
    pub views: Vec<View<'a>>,
    pub names: Vec<String>,
    pub project_names: HashSet<String>,
    own_scope: Option<String>,
    pub spec: &'a QuerySpec,
    /// Whether a scope was named, or the process is pinned to one.
    pub is_narrowed: bool,
    terms: Option<(QueryTerms, Bm25Weights)>,
    query_vector: Option<QueryVector>,
    named: Named,
    /// The memory whose neighbours are requested. It is not its own neighbour.
    pub like: Option<(usize, DocId)>,
}

impl<'a> Search<'a> {
    /// Resolves the filters of each scope, weighs the words over all, asks tables for candidates.
    pub fn new(
        opened: &'a OpenScopes,
        selection: &Selection,
        spec: &'a QuerySpec,
        cursor: Option<&Cursor>,
    ) -> Result<Self, Error> {
        cancel::check()?;
        let mut search = Self {
            opened,
            views: Vec::new(),
            names: Vec::new(),
            project_names: HashSet::new(),
            own_scope: selection.current.scope.as_ref().map(|scope| scope.name.clone()),
            spec,
            is_narrowed: selection.is_narrowed,
            terms: None,
            query_vector: None,
            named: Named::find(spec, opened, selection).unwrap_or_default(),
            like: None,
        };
        for (scope, index) in opened.indexed() {
            let project = spec.filters.project.as_deref();
            let requested = project.map(|project| selection.rows_of(project, scope));
            let names = requested.iter().flat_map(|rows| rows.names.iter().cloned());
            search.project_names.extend(names);
            let own_rows = selection.current.rows_in(scope);
            let named = search.named.project.as_ref().map(|name| selection.rows_of(name, scope));
            let filters = ResolvedFilters::new(index, &spec.filters, requested.as_ref(), &own_rows)
                .preferring(named.as_ref(), search.named.period.as_ref());
            search.names.push(scope.name.clone());
            search.views.push(View::new(index, filters));
        }
        search.find_like()?;
        search.terms = search.text().map(|text| search.weigh(text, cursor));
        search.query_vector = search.encode();
        if spec.mode == Mode::Semantic && search.query_vector.is_some() {
            search.terms = None;
        }
        search.fetch_candidates()?;
        Ok(search)
    }

    fn text(&self) -> Option<&str> {
        self.named.text.as_deref().or(self.spec.text.as_deref())
    }

    fn find_like(&mut self) -> Result<(), Error> {
        let like = self.spec.like.as_ref();
        self.like = like.and_then(|like| self.first_holder(&like.id, like.scope.as_deref()));
        if let Some((scope, doc)) = self.like
            && let Some(view) = self.views.get_mut(scope)
        {
            view.fetch_remote_doc(doc).map_err(|source| table_error(&self.names, scope, source))?;
        }
        Ok(())
    }

    fn weigh(&self, text: &str, cursor: Option<&Cursor>) -> (QueryTerms, Bm25Weights) {
        let filters = &self.spec.filters;
        let terms = QueryTerms::parse(text);
        let mut bm25 = lexical::bm25_weights(&self.views, &terms, filters);
        if self.spec.is_proposal {
            bm25.keep_rare_terms(&self.views, filters);
        }
        // A later page uses the weights of the first one, so that new memories do not change the
        // order.
        if let Some(frozen) = cursor.and_then(|cursor| cursor.weights.as_deref()) {
            bm25.restore(frozen);
        }
        (terms, bm25)
    }

    fn encode(&self) -> Option<QueryVector> {
        if self.spec.mode == Mode::Lexical {
            return None;
        }
        if let Some((scope, doc)) = self.like {
            let vector = self.views.get(scope)?.vector(doc)?;
            return Some(QueryVector { plain: vector.into_unit(), contextual: None });
        }
        let text = self.spec.meaning.as_deref().or(self.text())?;
        let is_contextual = self.views.iter().any(|view| view.index.is_contextual);
        if self.spec.is_proposal && !is_contextual {
            // Reading a whole memory in context takes long, and adds little to static vectors.
            let plain = QuantizedVector::quantize(&Encoder::embedded()?.query(text)?)?;
            return Some(QueryVector { contextual: None, plain });
        }
        match self.bm25() {
            Some(bm25) => vector_of(&bm25.corrected(text), is_contextual),
            None => vector_of(text, is_contextual),
        }
    }

    fn fetch_candidates(&mut self) -> Result<(), Error> {
        let bm25 = self.terms.as_ref().map(|(_, bm25)| bm25);
        let vector = self.query_vector.as_ref();
        for (number, view) in self.views.iter_mut().enumerate() {
            cancel::check()?;
            let fetched = view.fetch_remote_candidates(bm25, vector);
            fetched.map_err(|source| table_error(&self.names, number, source))?;
        }
        Ok(cancel::check()?)
    }

    /// Whether this is a search, rather than a list.
    pub fn is_search(&self) -> bool {
        self.terms.is_some() || self.query_vector.is_some() || self.spec.like.is_some()
    }

    /// The query for the legs; `None` if nothing can be found.
    pub fn leg_query(&self) -> Option<Query<'_>> {
        let query = Query { bm25: self.bm25(), vector: self.query_vector.as_ref() };
        let has_leg = query.bm25.is_some() || query.vector.is_some();
        (has_leg || self.spec.like.is_none()).then_some(query)
    }

    pub const fn has_meaning(&self) -> bool {
        self.query_vector.is_some()
    }

    pub fn cosine_of(&self, (scope, doc): (usize, DocId)) -> f32 {
        let (Some(view), Some(query)) = (self.views.get(scope), &self.query_vector) else {
            return 0.0;
        };
        let query = query.to_compare(view.index.is_contextual);
        view.vector(doc).map_or(0.0, |vector| vector.nearness(query))
    }

    pub fn note_same_id(&self) -> Option<Note> {
        let like = self.spec.like.iter().map(|like| (&like.id, like.scope.as_deref()));
        let expected = self.spec.expect.iter().map(|id| (id, None));
        let shared = like.chain(expected).filter_map(|(id, scope)| {
            let holders = self.holders(id, scope);
            Some((id.as_str(), same_id::others(&holders, holders.first()?.scope)))
        });
        let mut shared: Vec<(&str, Others)> = shared.collect();
        shared.dedup();
        same_id::note(shared.iter().map(|(id, others)| (*id, &**others)))
    }

    /// The holders of an id or an address, the one that is meant first.
    fn holders(&self, text: &str, scope: Option<&str>) -> Vec<Holder<'_>> {
        let of = |id: &str, scope: Option<&str>| {
            let indexes = self.names.iter().map(String::as_str);
            let indexes = indexes.zip(self.views.iter().map(|view| view.index));
            let own = self.own_scope.as_deref();
            let mut holders = same_id::holders(indexes, own, id, self.spec.filters.status);
            holders.retain(|holder| scope.is_none_or(|scope| scope == holder.scope));
            holders
        };
        let holders = of(text, scope);
        match same_id::address(text).filter(|_| holders.is_empty()) {
            Some((scope, id)) => of(&id, Some(&scope)),
            None => holders,
        }
    }

    /// The scope and number of the memory that an id argument means, unless it is rejected.
    pub fn first_holder(&self, text: &str, scope: Option<&str>) -> Option<(usize, DocId)> {
        self.holders(text, scope).iter().find_map(|holder| Some((holder.number, holder.doc?)))
    }

    pub fn name(&self, scope: usize) -> Option<&str> {
        self.names.get(scope).map(String::as_str)
    }

    pub fn retrieve(&self) -> CandidateSet {
        let Some(question) = self.leg_query() else {
            return CandidateSet::default();
        };
        let top = self.bm25().and_then(|bm25| bm25.frozen_norm);
        let mut found = retrieve(&self.views, question, top);
        if self.like.is_some() {
            found.candidates.retain(|candidate| {
                let is_near = candidate.lexical > 0.0 || candidate.cosine >= MIN_COSINE;
                is_near && self.like != Some((candidate.scope, candidate.doc))
            });
        }
        if self.certainty(&found) == Certainty::NoWords {
            if self.is_gibberish(&found) {
                found.candidates.clear();
            }
            truncate_to_nearest(&mut found.candidates);
        } else {
            // Words that only look like those of the query are no evidence.
            found.candidates.retain(|it| it.cosine >= found.min_cosine || self.contains_words(it));
        }
        found
    }

    pub fn page(&self, cursor: Option<&Cursor>, limit: usize) -> Result<Page, Error> {
        let found = self.retrieve();
        cancel::check()?;
        let total = found.candidates.len();
        let is_first = cursor.is_none() && !self.spec.is_proposal;
        let (certainty, limit) = match self.certainty(&found) {
            Certainty::Uncertain if is_first => (Certainty::Uncertain, limit.min(MAX_NEAREST)),
            Certainty::Uncertain => (Certainty::Certain, limit),
            other => (other, limit),
        };
        // A first page needs only the best candidates in order. If folding uses them up, all are
        // sorted.
        let enough = (cursor.is_none() && total > 200).then_some(limit * 4 + 40);
        let mut ranked = self.ordered(&found.candidates, enough);
        let mut page = self.read(&ranked, &found.candidates, cursor, limit)?;
        if page.hits.len() < limit && ranked.len() < total {
            ranked = self.ordered(&found.candidates, None);
            page = self.read(&ranked, &found.candidates, cursor, limit)?;
        }
        page.more |= ranked.len() < total;
        page.total = total as u64;
        page.top = found.score_norm;
        page.hidden = found.hidden;
        page.hiding_scopes = found.hiding_scopes;
        page.certainty = certainty;
        page.only_stop_words = self.terms().is_some_and(|terms| terms.only_stop_words);
        Ok(page)
    }

    /// The best candidates in order, or all. Oldest first applies only to lists.
    pub fn ordered(&self, candidates: &[Candidate], limit: Option<usize>) -> Vec<Ranked> {
        let oldest_first = self.spec.oldest && !self.is_search();
        order(candidates, &self.views, &self.names, limit, oldest_first)
    }

    /// Reads records in order, folds what another one contains, and stops when the page is full.
    fn read(
        &self,
        ranked: &[Ranked],
        candidates: &[Candidate],
        cursor: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page, Error> {
        let start = cursor.map_or(0, |cursor| resume(ranked, cursor, |place| self.identity(place)));
        let mut page = Page::default();
        let mut question = self.question();
        let mut rest = ranked.get(start..).unwrap_or_default();
        let mut rank = start;
        'page: while !rest.is_empty() {
            cancel::check()?;
            let (batch, following) = rest.split_at(rest.len().min(limit + 2));
            rest = following;
            let mut records = self.records(batch, &mut page.failed)?.found;
            for place in batch {
                let (scope, id) = self.identity(place);
                rank += 1;
                let key = (place.candidate.scope, id);
                let Some(record) = records.remove(&key) else {
                    page.gone += usize::from(!page.failed.iter().any(|(name, _)| *name == scope));
                    continue;
                };
                let memory = &record.memory;
                // A list shows everything.
                let wording = self.is_search().then(|| Wording::of(memory));
                let overlap = match &wording {
                    Some(wording) => page.overlap(wording, memory),
                    None => Overlap::Contains(Vec::new()),
                };
                if overlap == Overlap::Contains(Vec::new()) && page.hits.len() >= limit {
                    page.more = true;
                    break 'page;
                }
                let number = page.places.len();
                let (id, tie) = (memory.id.clone(), tie_number(ranked, rank - 1));
                page.places.push(Place { scope: scope.clone(), id, ranked: *place, tie });
                let contained = match overlap {
                    Overlap::Contains(contained) => contained,
                    Overlap::Contained(at) => {
                        if let Some(hit) = page.hits.get_mut(at) {
                            hit.fold(Also { id: record.memory.id, scope }, number);
                        }
                        continue;
                    }
                };
                let mut hit = self.hit(memory, place, &scope, (rank, candidates), &mut question);
                if let Some(OpenScope { scope, .. }) = self.opened.get(place.candidate.scope) {
                    self.opened.staleness.mark(&mut hit, &record, scope);
                }
                let text = self.select_text(&mut hit, memory, &mut question);
                let memory = record.memory;
                let hit = Hit { hit, memory, wording, shown: text, ..Hit::default() };
                page.add(Hit { found_at: number, place: number, ..hit }, &contained);
            }
        }
        Ok(page)
    }

    fn identity(&self, ranked: &Ranked) -> (String, String) {
        let Candidate { scope, doc, .. } = ranked.candidate;
        let id = self.views.get(scope).map_or("", |view| view.index.id(doc));
        (self.names.get(scope).cloned().unwrap_or_default(), id.to_owned())
    }

    fn terms(&self) -> Option<&QueryTerms> {
        self.terms.as_ref().map(|(terms, _)| terms)
    }

    pub fn bm25(&self) -> Option<&Bm25Weights> {
        self.terms.as_ref().map(|(_, bm25)| bm25)
    }

    /// A scope that cannot be read goes to `failed`, and its places are skipped. If it is the only
    /// one, this is an error.
    fn records(
        &self,
        ranked: &[Ranked],
        failed: &mut Vec<(String, Message)>,
    ) -> Result<Records, Error> {
        let name = |number: usize| self.name(number).unwrap_or_default();
        let readable =
            |entry: &&Ranked| !failed.iter().any(|(other, _)| other == name(entry.candidate.scope));
        let wanted = ranked.iter().filter(readable).map(|entry| {
            let Candidate { scope, doc, .. } = entry.candidate;
            RecordKey { scope, doc }
        });
        let mut records = self.opened.read(wanted, self.spec.filters.status);
        for (number, error) in std::mem::take(&mut records.failed) {
            if self.opened.len() == 1 {
                return Err(error);
            }
            failed.push((name(number).to_owned(), error.as_message()));
        }
        Ok(records)
    }

    fn hit(
        &self,
        memory: &Memory,
        ranked: &Ranked,
        scope: &str,
        (rank, candidates): (usize, &[Candidate]),
        question: &mut Question<'_>,
    ) -> MemoryHit {
        let mut hit = answer::hit(memory, scope, self.spec.detail);
        let Some(view) = self.views.get(ranked.candidate.scope) else {
            return hit;
        };
        if self.spec.is_proposal {
            return hit;
        }
        let status = self.spec.filters.status;
        hit.superseded_by.take_if(|newer| !answer::is_served(newer, view.index, status));
        if self.spec.by_agent {
            hit.created_at = memory.created_at.map(time::to_date);
        }
        if self.is_search() && (self.spec.explain || !self.spec.by_agent) {
            hit.score = Some(rounded(ranked.candidate.score));
            let words = question.matcher.as_mut().and_then(|matcher| answer::why(memory, matcher));
            let cosine = ranked.candidate.cosine;
            let is_near = self.has_meaning();
            hit.why = words.or_else(|| is_near.then(|| format!("near in meaning ({cosine:.2})")));
        }
        if self.spec.explain && self.is_search() {
            hit.explanation = Some(self.explanation(&ranked.candidate, rank, candidates));
        }
        hit
    }
}

fn table_error(names: &[String], scope: usize, source: RemoteError) -> Error {
    Error::Table { scope: names.get(scope).cloned().unwrap_or_default(), source }
}

/// The vector of a question, for memories that have contextual vectors if `is_contextual`.
fn vector_of(text: &str, is_contextual: bool) -> Option<QueryVector> {
    let encoder = Encoder::embedded()?;
    let plain = encoder.query(text)?;
    // The transformer knows only English.
    let is_english = encoder.is_english(text);
    let has_context = is_english && text.split_whitespace().nth(MIN_WORDS - 1).is_some();
    let network = || Contextual::embedded()?.question(text);
    let network = (is_english && is_contextual || has_context).then(network).flatten();
    let with = |share: f32| {
        let vector = encoder.with_network(&plain, network.as_deref()?, share)?;
        QuantizedVector::quantize(&vector)
    };
    let read = has_context.then(|| with(SHARE_FOR_STATIC)).flatten();
    Some(QueryVector {
        contextual: is_contextual.then(|| with(SHARE_FOR_CONTEXTUAL)).flatten(),
        plain: read.or_else(|| QuantizedVector::quantize(&plain))?,
    })
}
