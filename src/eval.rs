//! `eval`: measures how well queries find the memories that their author marked as relevant.
//!
//! The input has one JSON object per line: `text`, `relevant` (ids), and optionally `qid`,
//! `category`, `project` or `projects` (the scopes to search), `filter` (`tags_all`, `tags_any`,
//! `since`, `until`) and `forbidden` (ids that must not appear). Each query is sent as an agent
//! would send it, once in each mode.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use ack_api::memory::{StatusFilter, fold_name};
use ack_api::{MatchTags, Mode, QueryRequest, Stage, text};
use ack_service::{Error, Service};

const DEPTH: i64 = 10;

#[derive(Debug, Clone, Default, Deserialize)]
pub struct Query {
    /// Its name, or the line number if it has none.
    #[serde(default)]
    pub qid: String,
    /// The query text. An empty text asks for the newest memories.
    pub text: String,
    pub relevant: Vec<String>,
    #[serde(default)]
    pub project: Option<String>,
    #[serde(default)]
    pub projects: Option<Vec<String>>,
    #[serde(default)]
    pub filter: Option<QueryFilter>,
    #[serde(default)]
    pub forbidden: Option<Vec<String>>,
    #[serde(default)]
    pub category: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueryFilter {
    pub tags_all: Option<Vec<String>>,
    pub tags_any: Option<Vec<String>>,
    /// First day, or a time on that day.
    pub since: Option<String>,
    /// First excluded day, or a time on that day.
    pub until: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct EvalReport {
    /// Relevant ids that no searched scope contains. They count as not found.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown_ids: BTreeSet<String>,
    pub modes: Vec<ModeReport>,
}

#[derive(Debug, Serialize)]
pub struct ModeReport {
    pub mode: Mode,
    pub all: Scores,
    /// By category, if the file has categories.
    pub categories: BTreeMap<String, Scores>,
    /// Of the relevant memories that are not in the first ten: at which stage they were lost.
    pub lost: BTreeMap<Stage, u64>,
    pub leaks: u64,
    /// Milliseconds per query: median and 99th percentile.
    pub milliseconds: [f64; 2],
    /// The ranked answers, for external tools.
    #[serde(skip)]
    pub runs: Vec<Run>,
}

#[derive(Debug, Clone)]
pub struct Run {
    pub qid: String,
    pub ranked: Vec<String>,
    pub measures: Option<Measures>,
}

#[derive(Debug, Default, Serialize)]
pub struct Scores {
    pub queries: u64,
    /// Share of the relevant memories among the first five.
    pub recall_5: Estimate,
    /// Among the first ten.
    pub recall_10: Estimate,
    /// Mean reciprocal rank of the first relevant one, cut at ten.
    pub mrr_10: Estimate,
    /// Normalised discounted cumulative gain, cut at ten.
    pub ndcg_10: Estimate,
    pub unanswerable: u64,
    /// Mean number of results for those.
    pub noise: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum QueriesError {
    #[error("line {line}: {reason}")]
    Line { line: usize, reason: String },
    #[error("query `{qid}`: {total} ids begin with `{id}`")]
    Ambiguous {
        qid: String,
        /// The id, as it is in the file.
        id: String,
        total: usize,
    },
    #[error("the file has no queries")]
    Empty,
}

pub fn parse(input: impl BufRead) -> Result<Vec<Query>, QueriesError> {
    let mut queries = Vec::new();
    for (number, line) in (1..).zip(input.lines()) {
        let refuse = |reason: String| QueriesError::Line { line: number, reason };
        let line = line.map_err(|error| refuse(error.to_string()))?;
        let line = line.trim_start_matches('\u{feff}');
        if line.trim().is_empty() {
            continue;
        }
        let mut json = serde_json::Deserializer::from_str(line);
        let mut query: Query =
            serde_path_to_error::deserialize(&mut json).map_err(|error| refuse(reason(&error)))?;
        let filter = query.filter.iter();
        let dates = filter.flat_map(|filter| [("since", &filter.since), ("until", &filter.until)]);
        for (name, date) in dates.filter_map(|(name, date)| Some((name, date.as_deref()?))) {
            let is_day = date.parse::<jiff::civil::Date>().is_ok();
            if !is_day && date.parse::<jiff::Timestamp>().is_err() {
                let date = text::line(date, 60);
                let message =
                    format!("`filter.{name}`: {date} is not a day (YYYY-MM-DD) or a time");
                return Err(refuse(message));
            }
        }
        if query.qid.is_empty() {
            query.qid = number.to_string();
        }
        queries.push(query);
    }
    if queries.is_empty() {
        return Err(QueriesError::Empty);
    }
    Ok(queries)
}

/// What is wrong with a line, without the position that says nothing about one line.
fn reason(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let inner = error.inner();
    if !inner.is_data() {
        return format!("not a JSON object: see column {}", inner.column());
    }
    let message = inner.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    match error.path().to_string().as_str() {
        "." => text::line(message, 200),
        path => text::line(&format!("`{path}`: {message}"), 200),
    }
}

/// Completes abbreviated ids in the queries, such as those that `query` prints. An id that no
/// memory has is left unchanged.
pub fn complete_ids(service: &Service, queries: &mut [Query]) -> Result<(), QueriesError> {
    for query in queries {
        let ids = query.forbidden.iter_mut().flatten();
        for id in query.relevant.iter_mut().chain(ids) {
            // The query itself reports problems with the scopes.
            let found = service.ids_with_prefix(id, None, StatusFilter::Approved);
            let mut found = found.unwrap_or_default();
            if found.total > 1 {
                return Err(QueriesError::Ambiguous {
                    qid: query.qid.clone(),
                    id: text::line(id, 100),
                    total: found.total,
                });
            }
            if let Some(one) = found.matches.pop() {
                *id = one.id;
            }
        }
    }
    Ok(())
}

pub fn run(
    service: &Service,
    queries: &[Query],
    modes: &[Mode],
    progress: &mut dyn FnMut(),
) -> Result<EvalReport, Error> {
    let scopes: Vec<String> =
        service.registry.discover().scopes.iter().map(|scope| scope.name.clone()).collect();
    let mut report = EvalReport { unknown_ids: BTreeSet::new(), modes: Vec::new() };
    for mode in modes {
        let mut lost: BTreeMap<Stage, u64> = BTreeMap::new();
        let (mut leaks, mut times, mut runs) = (0, Vec::new(), Vec::new());
        for query in queries {
            let requests = requests(query, *mode, &scopes);
            let started = Instant::now();
            let ranked = ask(service, &requests)?;
            times.push(started.elapsed().as_secs_f64() * 1000.0);
            let is_forbidden =
                |id: &&String| query.forbidden.iter().flatten().any(|bad| bad == *id);
            leaks += ranked.iter().filter(is_forbidden).count() as u64;
            let relevant: BTreeSet<&str> = query.relevant.iter().map(String::as_str).collect();
            for id in relevant.iter().filter(|id| !ranked.iter().any(|found| found == *id)) {
                let stage = stage(service, &requests, id)?;
                if stage == Stage::NotFound {
                    report.unknown_ids.insert((*id).to_owned());
                }
                *lost.entry(stage).or_default() += 1;
            }
            let measures = Measures::of(&ranked, &relevant);
            runs.push(Run { qid: query.qid.clone(), ranked, measures });
            progress();
        }
        let mut categories: BTreeMap<&String, Vec<&Run>> = BTreeMap::new();
        for (query, run) in queries.iter().zip(&runs) {
            if let Some(category) = &query.category {
                categories.entry(category).or_default().push(run);
            }
        }
        let categories = categories.into_iter();
        report.modes.push(ModeReport {
            mode: *mode,
            all: Scores::of_runs(&runs.iter().collect::<Vec<_>>()),
            categories: categories.map(|(it, runs)| (it.clone(), Scores::of_runs(&runs))).collect(),
            lost,
            leaks,
            milliseconds: [0.5, 0.99].map(|share| percentile(&mut times, share)),
            runs,
        });
    }
    Ok(report)
}

impl Scores {
    fn of_runs(runs: &[&Run]) -> Self {
        let measured: Vec<&Measures> =
            runs.iter().filter_map(|run| run.measures.as_ref()).collect();
        let estimate = |value: fn(&Measures) -> f64| {
            Estimate::of(&measured.iter().map(|measures| value(measures)).collect::<Vec<_>>())
        };
        let unanswered = runs.iter().filter(|run| run.measures.is_none());
        let unanswered: Vec<f64> = unanswered.map(|run| count(run.ranked.len())).collect();
        Self {
            queries: measured.len() as u64,
            recall_5: estimate(|measures| measures.recall_5),
            recall_10: estimate(|measures| measures.recall_10),
            mrr_10: estimate(|measures| measures.reciprocal_rank),
            ndcg_10: estimate(|measures| measures.ndcg_10),
            unanswerable: unanswered.len() as u64,
            noise: Estimate::of(&unanswered).mean,
        }
    }
}

/// What an agent would send: one request for each scope that the query names, or one without a
/// scope.
fn requests(query: &Query, mode: Mode, scopes: &[String]) -> Vec<QueryRequest> {
    let filter = query.filter.clone().unwrap_or_default();
    let (tags, match_tags) = match (filter.tags_all, filter.tags_any) {
        (Some(all), _) => (Some(all), Some(MatchTags::All)),
        (None, Some(any)) => (Some(any), Some(MatchTags::Any)),
        (None, None) => (None, None),
    };
    let request = QueryRequest {
        query: Some(query.text.clone()),
        tags,
        match_tags,
        since: filter.since.as_deref().map(day),
        until: filter.until.as_deref().map(day_before),
        limit: Some(DEPTH),
        mode: Some(mode),
        ..QueryRequest::default()
    };
    let project_names: Vec<&String> =
        query.projects.iter().flatten().chain(&query.project).collect();
    if project_names.is_empty() {
        return vec![request];
    }
    let one = |name: &String| {
        let folded = fold_name(name);
        match scopes.iter().find(|scope| fold_name(scope) == folded) {
            Some(scope) => QueryRequest { scope: Some(scope.clone()), ..request.clone() },
            None => QueryRequest { project: Some(name.clone()), ..request.clone() },
        }
    };
    project_names.into_iter().map(one).collect()
}

/// The ids that the requests find. Results of several requests are interleaved, because scores of
/// different answers are not comparable.
fn ask(service: &Service, requests: &[QueryRequest]) -> Result<Vec<String>, Error> {
    let mut pages: Vec<Vec<String>> = Vec::new();
    for request in requests {
        let answer = service.query_memories(request)?;
        pages.push(answer.results.into_iter().map(|hit| hit.id).collect());
    }
    let max_length = pages.iter().map(Vec::len).max().unwrap_or_default();
    let mut ranked: Vec<String> = Vec::new();
    for rank in 0..max_length {
        for id in pages.iter().filter_map(|page| page.get(rank)) {
            if !ranked.contains(id) {
                ranked.push(id.clone());
            }
        }
    }
    ranked.truncate(usize::try_from(DEPTH).unwrap_or(10));
    Ok(ranked)
}

/// The stage at which a relevant memory was lost: the furthest it came in any of the requests.
fn stage(service: &Service, requests: &[QueryRequest], id: &str) -> Result<Stage, Error> {
    let mut farthest = Stage::NotFound;
    for request in requests {
        let request = QueryRequest { expect: Some(id.to_owned()), ..request.clone() };
        if let Some(expected) = service.query_memories(&request)?.expected {
            farthest = farthest.max(expected.stage);
        }
    }
    // It is on one page, but interleaving pushed it past the tenth place.
    Ok(if farthest == Stage::Returned { Stage::BehindPage } else { farthest })
}

fn day(text: &str) -> String {
    text.get(..10).unwrap_or(text).to_owned()
}

/// The last included day, given the first excluded one.
fn day_before(text: &str) -> String {
    let day = day(text);
    let before = day.parse::<jiff::civil::Date>().ok().and_then(|day| day.yesterday().ok());
    before.map_or(day, |before| before.to_string())
}

/// Standard retrieval measures (binary relevance; Järvelin and Kekäläinen 2002 for nDCG).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measures {
    pub recall_5: f64,
    pub recall_10: f64,
    /// 1 / rank of the first relevant id among the first ten, or 0.
    pub reciprocal_rank: f64,
    pub ndcg_10: f64,
}

impl Measures {
    /// Measures a ranking; `None` if nothing is relevant.
    pub fn of(ranked: &[String], relevant: &BTreeSet<&str>) -> Option<Self> {
        if relevant.is_empty() {
            return None;
        }
        let hits = ranked.iter().enumerate().filter(|(_, id)| relevant.contains(id.as_str()));
        let hits: Vec<usize> = hits.map(|(place, _)| place).collect();
        let gain = |place: usize| 1.0 / (count(place) + 2.0).log2();
        let within = |depth: usize| hits.iter().copied().filter(move |place| *place < depth);
        let ideal: f64 = (0..relevant.len().min(10)).map(gain).sum();
        let all = count(relevant.len());
        Some(Self {
            recall_5: count(within(5).count()) / all,
            recall_10: count(within(10).count()) / all,
            reciprocal_rank: within(10).next().map_or(0.0, |place| 1.0 / (count(place) + 1.0)),
            ndcg_10: within(10).map(gain).fold(0.0, |sum, gain| sum + gain) / ideal,
        })
    }
}

/// A mean with its 95 % interval (normal approximation: mean ± 1.96 standard errors).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Estimate {
    pub mean: f64,
    pub margin: f64,
}

impl Estimate {
    pub fn of(values: &[f64]) -> Self {
        let n = count(values.len());
        if values.is_empty() {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / n;
        if values.len() == 1 {
            return Self { mean, margin: 0.0 };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Self { mean, margin: 1.96 * (variance / n).sqrt() }
    }
}

/// The percentile by the nearest-rank method.
pub fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the list"
    )]
    let place = ((count(values.len()) * share).ceil() as usize).max(1) - 1;
    values.get(place).copied().unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "counts of results and questions")]
const fn count(number: usize) -> f64 {
    number as f64
}
