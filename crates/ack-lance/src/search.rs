//! Searches a large scope in its vector table. LanceDB's full-text and vector indexes find
//! candidates, and the data for their scores is read row by row.
//!
//! Kept in memory are the row of each document of the index, and the lexicon: the terms, how many
//! memories have each, and the numbers that each batch of the table uses for them (see
//! [`super::terms`]).

use arrow::array::{Array, BinaryArray, Float32Array, RecordBatch, UInt64Array};
use futures::future::try_join_all;
use lance::Dataset;
use lancedb::index::scalar::{FtsQuery, FullTextSearchQuery, MatchQuery};
use lancedb::query::{ExecutableQuery, QueryBase, Select};
use lancedb::{DistanceType, Table};
use rustc_hash::FxHashMap;

use super::rows;
use super::terms::{self, read_lexicons};
use super::{TableError, next_batch, wait};
use ack_api::MatchTags;
use ack_api::memory::{Status, StatusFilter};
use ack_search::dictionary::Dictionary;
use ack_search::postings::DocId;
use ack_search::query::WeightedTerm;
use ack_search::remote::{
    Eligibility, PushdownFilter, RemoteDoc, RemoteDocs, RemoteError, RemoteHits, RemoteQuery,
};
use ack_search::shapes::ShapePattern;

/// How many memories to ask the full-text index for.
const MAX_TEXT_HITS: usize = 150;
/// How many memories to ask the vector index for. It stores one bit per component; twice as many as
/// the semantic leg admits include nearly all of the nearest.
const MAX_VECTOR_HITS: usize = 400;
/// How many memories with a rare identifier of the query to ask for.
const MAX_IDENTIFIER_HITS: usize = 50;
/// How many memories that the status filter excludes to ask for.
const MAX_EXCLUDED_HITS: usize = 20;
/// If more than this share of the memories is eligible, the indexes are asked for more candidates,
/// and ineligible ones are dropped here. LanceDB takes longer to find out which memories meet a
/// condition than to return a few thousand more.
const DENSE_FILTER_SHARE: f32 = 0.01;

/// The published version of a large scope's table.
#[derive(Debug)]
pub struct Searcher {
    dataset: Dataset,
    table: Table,
    /// The row number of each document, ascending.
    rows: Vec<u64>,
    lexicon: Lexicon,
    /// Whether there is an index on the vectors; without one they are all scanned.
    has_vector_index: bool,
}

#[derive(Debug)]
struct Lexicon {
    terms: Dictionary,
    /// How many memories have each term: approved and promoted ones, and those in staging.
    document_frequencies: Vec<[u32; 2]>,
    /// The terms of each batch, by their positions in its lexicon.
    batches: FxHashMap<u32, Box<[u32]>>,
}

impl RemoteDocs for Searcher {
    fn terms_like(&self, pattern: ShapePattern) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.lexicon.terms.matching(pattern))
    }

    fn document_frequency(&self, key: &str, filter: StatusFilter) -> usize {
        let number = self.lexicon.terms.find(key);
        let document_frequencies =
            number.and_then(|number| self.lexicon.document_frequencies.get(number as usize));
        let [served, staging] = document_frequencies.copied().unwrap_or_default();
        let served = if filter.allows(Status::Approved) { served } else { 0 };
        let staging = if filter.allows(Status::Staging) { staging } else { 0 };
        (served + staging) as usize
    }

    fn bytes(&self) -> usize {
        let batches: usize = self.lexicon.batches.values().map(|it| size_of_val(&**it)).sum();
        size_of_val(self.rows.as_slice())
            + self.lexicon.terms.bytes()
            + size_of_val(self.lexicon.document_frequencies.as_slice())
            + batches
    }

    fn search(&self, query: &RemoteQuery<'_>) -> Result<RemoteHits, RemoteError> {
        self.candidates(query).map_err(|error| RemoteError(Box::new(error)))
    }

    fn fetch(&self, docs: &[DocId], terms: &[WeightedTerm]) -> Result<Vec<RemoteDoc>, RemoteError> {
        self.details(docs, terms).map_err(|error| RemoteError(Box::new(error)))
    }
}

impl Searcher {
    /// Prepares the published version of a table for searching; `None` if the index on its words is
    /// missing. The rows of its documents still have to be added.
    pub async fn open(
        dataset: Dataset,
        table: Table,
        lexicons: &RecordBatch,
    ) -> Result<Option<Self>, TableError> {
        let indexes =
            table.list_indices().await.map_err(TableError::lance_error("list the indexes"))?;
        let has = |column: &str| indexes.iter().any(|index| index.columns == [column]);
        if !has("words") {
            return Ok(None);
        }
        let (lexicon, has_vector_index) = (Lexicon::read(lexicons)?, has("vector"));
        Ok(Some(Self { dataset, table, rows: Vec::new(), lexicon, has_vector_index }))
    }

    pub fn add_row(&mut self, number: u64) {
        self.rows.push(number);
    }

    fn candidates(&self, query: &RemoteQuery<'_>) -> Result<RemoteHits, TableError> {
        let dense = query.eligible_share >= DENSE_FILTER_SHARE;
        let share = if dense { query.eligible_share.min(1.0) } else { 1.0 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "at most a hundred times a small number"
        )]
        let enough = |limit: usize| (limit as f32 * query.widening as f32 / share).ceil() as usize;
        let only =
            |allowed: bool| (!dense).then(|| condition(&query.filter, (query.status, allowed)));
        let (allowed, others) = (only(true), only(false));
        let words: Vec<&str> = query.terms.iter().map(|term| term.key.as_str()).collect();
        let mut searches = vec![(words.join(" "), enough(MAX_TEXT_HITS), allowed.clone())];
        // Among many words, the full-text index may rank a memory with a rare identifier low.
        if query.required_identifiers.len() < words.len() {
            searches.push((
                query.required_identifiers.join(" "),
                enough(MAX_IDENTIFIER_HITS),
                allowed.clone(),
            ));
        }
        if others.is_some() {
            searches.push((words.join(" "), MAX_EXCLUDED_HITS, others));
        }
        let meaning =
            query.vector.map(|vector| (vector.to_f32(), enough(MAX_VECTOR_HITS), allowed));
        let (lists, nearest) = wait(async {
            // Each search is a separate task: planning a query takes about as long as running it.
            let searches: Vec<_> = searches
                .into_iter()
                .map(|search| tokio::spawn(search_text(self.table.clone(), search)))
                .collect();
            let nearest = match meaning {
                Some(meaning) => {
                    search_vectors(self.table.clone(), meaning, self.has_vector_index).await?
                }
                None => Vec::new(),
            };
            let lists = try_join_all(searches).await.map_err(|_| TableError::Damaged)?;
            Ok((lists.into_iter().collect::<Result<Vec<_>, _>>()?, nearest))
        })?;
        let every_word = lists.first().is_some_and(|found| found.len() < enough(MAX_TEXT_HITS));
        let complete = query.vector.is_none() && every_word;
        let exhausted = every_word && nearest.len() < enough(MAX_VECTOR_HITS);
        let limits = [MAX_TEXT_HITS, MAX_IDENTIFIER_HITS, MAX_EXCLUDED_HITS];
        let lists = lists.into_iter().zip(limits);
        let mut docs: Vec<DocId> = Vec::new();
        for (list, limit) in lists.chain([(nearest, MAX_VECTOR_HITS)]) {
            let limits = if complete { [usize::MAX; 2] } else { [limit, MAX_EXCLUDED_HITS] };
            self.admit(list, query, limits, &mut docs);
        }
        docs.sort_unstable();
        docs.dedup();
        Ok(RemoteHits { docs, complete, exhausted })
    }

    /// Adds the first documents of a list: as many eligible ones and ones that the status hides as
    /// the limits allow.
    fn admit(
        &self,
        list: ScoredRows,
        query: &RemoteQuery<'_>,
        [max_eligible, max_hidden]: [usize; 2],
        docs: &mut Vec<DocId>,
    ) {
        let (mut eligible, mut hidden) = (0, 0);
        for doc in list.into_iter().filter_map(|(_, row)| self.doc(row)) {
            let (count, limit) = match (query.eligibility)(doc) {
                Eligibility::Eligible => (&mut eligible, max_eligible),
                Eligibility::HiddenByStatus | Eligibility::Superseded => (&mut hidden, max_hidden),
                Eligibility::Excluded => continue,
            };
            *count += 1;
            if *count <= limit {
                docs.push(doc);
            }
        }
    }

    fn details(
        &self,
        wanted: &[DocId],
        terms: &[WeightedTerm],
    ) -> Result<Vec<RemoteDoc>, TableError> {
        let rows = wanted.iter().map(|doc| self.rows.get(*doc as usize).copied());
        let rows: Vec<u64> = rows.collect::<Option<_>>().ok_or(TableError::Damaged)?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let failed = TableError::lance_error("read memories");
        let columns = self.dataset.schema().project(&["detail"]).map_err(&failed)?;
        let batch = wait(async { self.dataset.take_rows(&rows, columns).await.map_err(&failed) })?;
        let details = rows::column::<BinaryArray>(&batch, "detail")?;
        if details.len() != wanted.len() {
            return Err(TableError::Damaged);
        }
        let query_terms: QueryTerms = terms
            .iter()
            .enumerate()
            .filter_map(|(position, term)| Some((self.lexicon.terms.find(&term.key)?, position)))
            .collect();
        let docs = wanted.iter().zip(details).map(|(doc, detail)| {
            self.lexicon.row(*doc, detail.ok_or(TableError::Damaged)?, &query_terms)
        });
        docs.collect()
    }

    /// The document of a row. `None` for a row that the index did not accept.
    fn doc(&self, row: u64) -> Option<DocId> {
        self.rows.binary_search(&row).ok().and_then(|position| DocId::try_from(position).ok())
    }
}

/// Rows that a query found, each after the value that orders them, ascending.
type ScoredRows = Vec<(f32, u64)>;

/// The memories that the full-text index ranks first.
async fn search_text(
    table: Table,
    (words, limit, condition): (String, usize, Option<String>),
) -> Result<ScoredRows, TableError> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let words = MatchQuery::new(words).with_column(Some("words".to_owned()));
    let words = FullTextSearchQuery::new_query(FtsQuery::Match(words));
    let query = table.query().full_text_search(words);
    run(query, limit, condition, ("_score", -1.0), "search the words").await
}

/// The memories that the vector index finds nearest.
async fn search_vectors(
    table: Table,
    (vector, limit, condition): (Vec<f32>, usize, Option<String>),
    indexed: bool,
) -> Result<ScoredRows, TableError> {
    const ACTION: &str = "search the vectors";
    let query = table
        .query()
        .nearest_to(vector)
        .and_then(|query| query.maximum_nprobes(None))
        .map_err(TableError::lance_error(ACTION))?
        .column("vector")
        .distance_type(DistanceType::Cosine);
    let query = if indexed { query } else { query.bypass_vector_index() };
    run(query, limit, condition, ("_distance", 1.0), ACTION).await
}

/// The rows that a query finds, ordered by a column times a sign.
async fn run(
    query: impl QueryBase + ExecutableQuery,
    limit: usize,
    condition: Option<String>,
    (column, sign): (&'static str, f32),
    action: &'static str,
) -> Result<ScoredRows, TableError> {
    let mut query = query.select(Select::columns(&[column])).with_row_id().limit(limit);
    if let Some(condition) = condition {
        query = query.only_if(condition);
    }
    let mut batches = query.execute().await.map_err(TableError::lance_error(action))?;
    let mut found = Vec::new();
    while let Some(batch) = next_batch(&mut batches).await? {
        let numbers = rows::column::<UInt64Array>(&batch, "_rowid")?.values().iter();
        let values = rows::column::<Float32Array>(&batch, column)?.values().iter();
        found.extend(values.map(|value| sign * value).zip(numbers.copied()));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(found)
}

/// The terms of a query: from the lexicon's number to the position in the query.
type QueryTerms = FxHashMap<u32, usize>;

impl Lexicon {
    /// What scoring a memory needs, decoded from its detail.
    fn row(
        &self,
        doc: DocId,
        detail: &[u8],
        query_terms: &QueryTerms,
    ) -> Result<RemoteDoc, TableError> {
        let (batch, vector, terms) = terms::decode_memory(detail).ok_or(TableError::Damaged)?;
        let lexicon = self.batches.get(&batch).ok_or(TableError::Damaged)?;
        let mut frequencies = Vec::new();
        for term in terms::read_terms(terms) {
            let (term, weight) = term.ok_or(TableError::Damaged)?;
            let term = lexicon.get(term as usize).ok_or(TableError::Damaged)?;
            if let Some(position) = query_terms.get(term) {
                #[expect(clippy::cast_precision_loss, reason = "at most 255")]
                frequencies.push((*position, weight as f32 / 2.0));
            }
        }
        Ok(RemoteDoc { doc, frequencies, vector })
    }

    fn read(lexicons: &RecordBatch) -> Result<Self, TableError> {
        let (mut terms, mut document_frequencies) = (Dictionary::default(), Vec::new());
        let batches = read_lexicons(lexicons, |term, [served, staging]| {
            let number = terms.intern(term);
            document_frequencies.resize(terms.len(), [0_u32, 0]);
            if let Some([all_served, all_staging]) = document_frequencies.get_mut(number as usize) {
                *all_served = all_served.saturating_add(served);
                *all_staging = all_staging.saturating_add(staging);
            }
            number
        })?;
        terms.shrink();
        Ok(Self { terms, document_frequencies, batches })
    }
}

/// An SQL condition: memories with the statuses that a filter allows, or with the others. Strings
/// are quoted; everything else is a number. Lexicons have neither words nor a vector, so they are
/// never found.
fn condition(filters: &PushdownFilter<'_>, (filter, allowed): (StatusFilter, bool)) -> String {
    let served = [Status::Approved, Status::Promoted, Status::Staging];
    let statuses = served.into_iter().filter(|status| filter.allows(*status) == allowed);
    let mut parts =
        vec![in_list("status", &statuses.map(|status| status.as_str()).collect::<Vec<_>>())];
    if let Some(project) = &filters.project {
        let mut either = vec![in_list("project", &project.names), in_list("alias", &project.names)];
        if project.unnamed {
            either.push("project IS NULL OR project = ''".to_owned());
        }
        parts.push(either.join(" OR "));
    }
    if let Some(kinds) = &filters.kinds {
        parts.push(in_list("type", kinds));
    }
    let tags: Vec<String> = filters
        .tags
        .iter()
        .map(|spellings| {
            if spellings.is_empty() {
                return "false".to_owned();
            }
            format!("array_has_any(tags, [{}])", quoted(spellings))
        })
        .collect();
    let PushdownFilter { filters, .. } = filters;
    match filters.match_tags {
        MatchTags::All => parts.extend(tags),
        MatchTags::Any if tags.is_empty() => {}
        MatchTags::Any => parts.push(tags.join(" OR ")),
    }
    if let Some(session) = &filters.session {
        parts.push(format!("session = {0} OR session_id = {0}", quote(session)));
    }
    if let Some(since) = filters.since {
        parts.push(format!("created >= {since}"));
    }
    if let Some(until) = filters.until {
        parts.push(format!("created < {until}"));
    }
    parts.iter().map(|part| format!("({part})")).collect::<Vec<_>>().join(" AND ")
}

fn in_list(column: &str, values: &[&str]) -> String {
    if values.is_empty() {
        return "false".to_owned();
    }
    format!("{column} IN ({})", quoted(values))
}

fn quoted(texts: &[&str]) -> String {
    texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(", ")
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
