//! `query`: a page of memories, and the next one.

use std::collections::HashMap;
use std::iter::once;
use std::process::ExitCode;

use jiff::Timestamp;

use super::CloseOnDrop;
use super::args::{Global, QueryArgs};
use super::command::{SHELL, command};
use super::error::CliError;
use super::last_query::{LastQuery, LastQueryStore};
use super::output::{make_printable, write_err, write_json, write_out};
use super::render::{Listing, QueryWords, grouped};
use super::screen::Screen;
use super::settings::config;
use super::{progress, render};
use ack_api::memory::StatusFilter;
use ack_api::{
    Also, Detail, ErrorCode, Hint, MatchTags, Note, NoteKind, Order, QueryRequest, QueryResponse,
    Resolve as _,
};
use ack_connect::quoted;
use ack_desk::matching::{waiting_for, waiting_named};
use ack_service::Service;

/// The token limit for people, for whom tokens do not matter.
const MAX_TOKENS: i64 = 20_000;

pub fn run(global: &Global, args: QueryArgs) -> Result<ExitCode, CliError> {
    let config = config(global)?;
    let memory = LastQueryStore::of(&config);
    let (next, exit_code) = (args.next, args.exit_code);
    let asked = LastQuery { long: args.long, request: request(args), ..LastQuery::default() };
    let now = Timestamp::now();
    let last = memory.as_ref().and_then(|memory| memory.last(now));
    let mut recall = if next { next_page_of(last, &asked)? } else { asked };
    let mut request = recall.request.clone();
    request.cursor = recall.next.take().or(request.cursor);
    if !global.json {
        request.max_tokens = request.max_tokens.or(Some(MAX_TOKENS));
        request.detail = recall.long.then_some(Detail::Full);
    }
    let service = CloseOnDrop(Service::new(config).leak());
    let mut answer = progress::while_reading(|| {
        for id in [&mut request.like, &mut request.expect].into_iter().flatten() {
            *id = full_id(id, service.0);
        }
        service.0.query_memories(&request)
    })?;
    answer.resolve(&SHELL);
    let first = recall.hits.len() + 1;
    recall.at = now.as_second();
    recall.next.clone_from(&answer.next_cursor);
    recall.hits.extend(
        answer.results.iter().map(|hit| Also { id: hit.id.clone(), scope: hit.scope.clone() }),
    );
    // A near match does not count as found.
    let lacks_words = |note: &Note| note.kind == NoteKind::NoWordMatches;
    let is_found = !answer.results.is_empty() && !answer.notes.iter().any(lacks_words);
    let code = ExitCode::from(u8::from(exit_code && !is_found));
    let is_terminal = memory.is_some();
    let remembered = memory.is_some_and(|memory| memory.keep(&recall));
    if global.json {
        write_json(&answer)?;
        return Ok(code);
    }
    let screen = Screen::of_output();
    let at_terminal = screen.width.is_some() && !global.quiet;
    let unreviewed = at_terminal.then(|| unreviewed(service.0, &request, &answer));
    let listing = Listing {
        unreviewed: unreviewed.flatten(),
        screen,
        marks: QueryWords::of(request.query.as_deref().unwrap_or_default()),
        long: recall.long,
        first,
        short: short_ids(service.0, &answer, request.scope.as_deref()),
        numbers: answer.results.iter().map(|hit| hit.id.clone()).zip(first..).collect(),
        is_recallable: remembered,
        quiet: global.quiet,
    };
    write_out(&render::query(&make_printable(&answer, global)?, &listing))?;
    if is_terminal && !remembered && !answer.results.is_empty() && !global.quiet {
        write_err(
            "note: your cache folder cannot be written, so `get 1` and `query --next` do not know \
             this query\n",
        );
    }
    Ok(code)
}

/// How many unreviewed memories match a question, and the command that opens those alone. `None` if
/// `review` lacks a filter of the request.
fn unreviewed(service: &Service, request: &QueryRequest, answer: &QueryResponse) -> Option<String> {
    let question = request.query.as_deref()?;
    let tags = request.tags.as_deref().unwrap_or_default();
    let texts = [&request.since, &request.until, &request.session, &request.like];
    let is_narrower = texts.into_iter().any(Option::is_some)
        || request.files.is_some()
        || request.status.is_some()
        || request.kind.as_ref().is_some_and(|kind| kind.contains(','))
        || tags.len() > 1;
    if is_narrower {
        return None;
    }
    // The answer knows whether any matches; an id may name one that it does not match.
    let found = match answer.hidden {
        Some(hidden) if hidden.by_status > 0 => waiting_for(service, request),
        _ => waiting_named(service, question, request.scope.as_deref()),
    };
    let filters = [
        ("scope", request.scope.as_deref()),
        ("project", request.project.as_deref()),
        ("type", request.kind.as_deref()),
        ("tag", tags.first().map(String::as_str)),
    ];
    let filters = filters.into_iter();
    let filters = filters.filter_map(|(flag, value)| Some(format!(" --{flag} {}", quoted(value?))));
    unreviewed_text(found.ok()?.len(), question, &filters.collect::<String>())
}

/// `58 unreviewed match: `ack-memory review --for QUESTION``.
pub fn unreviewed_text(found: usize, question: &str, filters: &str) -> Option<String> {
    let review = command(&format!("review --for {}{filters}", quoted(question)));
    match found {
        0 => None,
        1 => Some(format!("1 unreviewed memory matches: `{review}`")),
        found => Some(format!("{} unreviewed match: `{review}`", grouped(found as u64))),
    }
}

fn next_page_of(last: Option<LastQuery>, request: &LastQuery) -> Result<LastQuery, CliError> {
    let refuse =
        |message: &str, hint| CliError::new(ErrorCode::InvalidCursor, message).with_hint(hint);
    let Some(mut last) = last else {
        let message = "there was no query at this terminal in the last day";
        return Err(refuse(message, Hint::command("query WORDS", "searches")));
    };
    if last.next.is_none() {
        let hint = Hint::command("query WORDS", "searches again");
        return Err(refuse("that was the last page", hint));
    }
    last.long |= request.long;
    last.request.limit = request.request.limit.or(last.request.limit);
    last.request.explain = request.request.explain.or(last.request.explain);
    Ok(last)
}

fn full_id(typed: &str, service: &Service) -> String {
    let found = service.ids_with_prefix(typed, None, StatusFilter::All);
    match found.unwrap_or_default().matches.as_slice() {
        [one] => one.id.clone(),
        _ => typed.to_owned(),
    }
}

fn short_ids(
    service: &Service,
    answer: &QueryResponse,
    scope: Option<&str>,
) -> HashMap<String, String> {
    let ids = answer.results.iter().flat_map(|hit| {
        let contradicting = hit.contradicts.iter().map(|other| &other.id);
        once(&hit.id).chain(&hit.superseded_by).chain(contradicting)
    });
    let ids: Vec<&str> = ids.map(String::as_str).collect();
    if ids.is_empty() {
        return HashMap::new();
    }
    service.short_ids(&ids, scope).unwrap_or_default()
}

fn request(args: QueryArgs) -> QueryRequest {
    let list = |values: Vec<String>| (!values.is_empty()).then_some(values);
    QueryRequest {
        query: (!args.query.is_empty()).then(|| args.query.join(" ")),
        tags: list(args.tags),
        match_tags: args.any_tag.then_some(MatchTags::Any),
        project: args.project,
        scope: args.scope,
        status: args.shown.chosen(),
        limit: args.limit,
        kind: args.kind,
        files: list(args.files),
        since: args.since,
        until: args.until,
        session: args.session,
        like: args.like,
        mode: args.mode,
        order: args.oldest.then_some(Order::Oldest),
        detail: args.long.then_some(Detail::Full),
        max_tokens: args.max_tokens,
        cursor: args.cursor,
        explain: args.explain.then_some(true),
        expect: args.expect,
        by_agent: false,
    }
}
