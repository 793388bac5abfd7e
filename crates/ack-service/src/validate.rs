//! Arguments: decoded strictly and checked once. Errors say what is allowed and give a corrected
//! example.

mod arguments;

use std::collections::HashSet;

use serde_json::json;

pub use self::arguments::{arguments, check_length};
use crate::budget::page::RESULT_TOKENS;
use crate::config::Config;
use crate::error::Error;
use ack_api::memory::{StatusFilter, fold_name};
use ack_api::{Detail, MAX_LIMIT, Mode, Order, QueryRequest, time};
use ack_search::file_pattern::FilePattern;
use ack_search::filter::Filters;

const FULL_PAGE: u32 = 20;
const DEFAULT_LIMIT: u32 = 10;

/// Texts from the command line and from prompts have not been checked against a schema.
fn check_lengths(request: &QueryRequest) -> Result<(), Error> {
    let texts = [
        ("query", &request.query),
        ("project", &request.project),
        ("scope", &request.scope),
        ("type", &request.kind),
        ("session", &request.session),
        ("like", &request.like),
        ("expect", &request.expect),
        ("cursor", &request.cursor),
    ];
    for (name, text) in texts {
        check_length(name, text.as_deref().unwrap_or_default())?;
    }
    for (name, list) in [("tags", &request.tags), ("files", &request.files)] {
        list.iter().flatten().try_for_each(|entry| check_length(name, entry))?;
    }
    Ok(())
}

#[derive(Default)]
pub struct QuerySpec {
    pub text: Option<String>,
    /// The text for the semantic search, if it differs from the text for the words.
    pub meaning: Option<String>,
    pub filters: Filters,
    pub limit: usize,
    /// Whether as many as fit are wanted: an agent gave a token limit, but no number of results.
    pub fills_budget: bool,
    pub tokens: usize,
    pub detail: Detail,
    pub explain: bool,
    pub mode: Mode,
    pub like: Option<Like>,
    pub expect: Option<String>,
    pub oldest: bool,
    /// Whether it only proposes memories for further checks. Then no reasons are needed, and in a
    /// large scope common words alone find nothing.
    pub is_proposal: bool,
    /// Whether an agent asks. An agent gets only what it can use, in few tokens.
    pub by_agent: bool,
    /// Whether the caller may not ask for memories that wait for review.
    pub withholds: bool,
    /// The requested status, if the owner does not show such memories to agents.
    pub withheld: Option<StatusFilter>,
}

pub struct Like {
    pub id: String,
    /// The scope that contains it. If missing, see [`super::same_id`].
    pub scope: Option<String>,
}

impl QuerySpec {
    pub fn near(id: &str, scope: &str, status: StatusFilter, limit: usize) -> Self {
        Self {
            like: Some(Like { id: id.to_owned(), scope: Some(scope.to_owned()) }),
            mode: Mode::Semantic,
            ..Self::all(status, limit)
        }
    }

    /// A query without words that lists every memory, for a caller that sees all of them.
    pub fn all(status: StatusFilter, limit: usize) -> Self {
        Self {
            filters: Filters { status, ..Filters::default() },
            limit,
            tokens: usize::MAX,
            ..Self::default()
        }
    }

    pub fn new(request: &QueryRequest, config: &Config) -> Result<Self, Error> {
        check_lengths(request)?;
        let like = given(&request.like);
        if like.is_some() && request.mode == Some(Mode::Lexical) {
            let allowed =
                "semantic or hybrid, because memories near another one are found by meaning";
            let example = json!({ "like": like, "mode": "semantic" });
            let error = Error::invalid("mode", "lexical", allowed);
            return Err(error.corrected(vec!["semantic".to_owned()], Some(example)));
        }
        let since = day("since", &request.since, false)?;
        let until = day("until", &request.until, true)?;
        if since.zip(until).is_some_and(|(since, until)| since >= until) {
            let day = |day: &Option<String>| given(day).unwrap_or_default().to_owned();
            return Err(Error::EmptyRange {
                since: day(&request.since),
                until: day(&request.until),
            });
        }
        let file = |pattern: &String| {
            FilePattern::parse(pattern).map_err(|reason| {
                Error::invalid("files", pattern, format!("a path or a glob: {reason}"))
            })
        };
        let files = strings(request.files.as_deref()).iter().map(file).collect::<Result<_, _>>()?;
        let requested_status = request.status.unwrap_or_default();
        let allowed = config.max_status.value.allowed(request.by_agent, requested_status);
        let mut unique_tags = HashSet::new();
        let tags = strings(request.tags.as_deref())
            .iter()
            .map(|tag| fold_name(tag))
            .filter(|tag| unique_tags.insert(tag.clone()))
            .collect();
        let project = given(&request.project).map(fold_name);
        Ok(Self {
            text: given(&request.query).map(str::to_owned),
            filters: Filters {
                tags,
                match_tags: request.match_tags.unwrap_or_default(),
                project: project.filter(|project| !project.is_empty()),
                kinds: request.kind.as_deref().map(kinds).unwrap_or_default(),
                files,
                session: given(&request.session).map(str::to_owned),
                since,
                until,
                status: allowed.unwrap_or_default(),
                ..Filters::default()
            },
            detail: request.detail.unwrap_or_default(),
            explain: request.explain.unwrap_or_default(),
            mode: request.mode.unwrap_or_default(),
            like: like.map(|id| Like { id: id.to_owned(), scope: None }),
            expect: given(&request.expect).map(str::to_owned),
            oldest: request.order == Some(Order::Oldest),
            by_agent: request.by_agent,
            withholds: config.max_status.value.withholds(request.by_agent),
            withheld: (allowed != Some(requested_status)).then_some(requested_status),
            ..page_size(request, config)?
        })
    }
}

/// How many results, and how much of them.
fn page_size(request: &QueryRequest, config: &Config) -> Result<QuerySpec, Error> {
    let fills_budget = request.by_agent && request.limit.is_none() && request.max_tokens.is_some();
    let default = if fills_budget { FULL_PAGE } else { DEFAULT_LIMIT };
    let limit = number("limit", request.limit, 1, i64::from(MAX_LIMIT), default)?;
    let mut tokens = max_tokens(request.max_tokens, config)?;
    // An agent that asks for many results gets as many, and shorter ones.
    let is_short = request.detail.unwrap_or_default() == Detail::Concise
        && !request.explain.unwrap_or_default();
    let asks_for_many = request.by_agent && limit > DEFAULT_LIMIT as usize;
    if asks_for_many && request.max_tokens.is_none() && is_short {
        tokens = tokens.max(limit * RESULT_TOKENS);
    }
    Ok(QuerySpec { limit, tokens, fills_budget, ..QuerySpec::default() })
}

/// A text without the white space around it, unless nothing is left.
fn given(text: &Option<String>) -> Option<&str> {
    let text = text.as_deref().map(str::trim);
    text.filter(|text| !text.is_empty())
}

pub fn max_tokens(value: Option<i64>, config: &Config) -> Result<usize, Error> {
    number("max_tokens", value, 200, 20_000, config.tokens.value)
}

pub fn number(
    argument: &str,
    value: Option<i64>,
    min: i64,
    max: i64,
    default: u32,
) -> Result<usize, Error> {
    let Some(value) = value else {
        return Ok(default as usize);
    };
    let allowed = value.clamp(min, max);
    if allowed != value {
        let error = Error::invalid(argument, value.to_string(), format!("{min} to {max}"));
        return Err(error.corrected(vec![allowed.to_string()], Some(json!({ argument: allowed }))));
    }
    Ok(usize::try_from(allowed).unwrap_or(default as usize))
}

/// The requested types: the whole text as one, and the parts between commas.
fn kinds(text: &str) -> Vec<String> {
    let parts = text.split(',').filter(|_| text.contains(','));
    let mut kinds: Vec<String> = std::iter::once(text).chain(parts).map(fold_name).collect();
    kinds.retain(|kind| !kind.is_empty());
    kinds
}

fn strings(values: Option<&[String]>) -> Vec<String> {
    let values = values.unwrap_or_default().iter();
    values.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()).collect()
}

/// The first instant of a day, or the first one after it, in milliseconds since 1970.
fn day(argument: &str, value: &Option<String>, until: bool) -> Result<Option<i64>, Error> {
    let Some(value) = given(value) else {
        return Ok(None);
    };
    if let Some(instant) = time::day_bound(value, until) {
        return Ok(Some(instant.as_millisecond()));
    }
    let nearest = time::nearest_day(value);
    let example = json!({ argument: nearest.as_deref().unwrap_or("2026-01-31") });
    let value = ack_api::text::line(value, 60);
    let error = Error::invalid(argument, value, "a real calendar day, YYYY-MM-DD");
    Err(error.corrected(nearest.into_iter().collect(), Some(example)))
}
