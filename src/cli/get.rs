//! `get`: memories by id, by the beginning of an id, or by their number in the last query at this
//! terminal.

use std::process::ExitCode;

use jiff::Timestamp;

use super::CloseOnDrop;
use super::args::{GetArgs, Global};
use super::caller::Caller;
use super::command::SHELL;
use super::error::CliError;
use super::last_query::{LastQuery, LastQueryStore};
use super::output::{make_printable, write_err, write_json, write_out, write_plain};
use super::query::unreviewed_text;
use super::screen::Screen;
use super::settings::config;
use super::{progress, render};
use ack_api::memory::StatusFilter;
use ack_api::uri::Address;
use ack_api::{Also, ErrorCode, GetRequest, Include, Resolve as _};
use ack_desk::curate::find::by_whole_id;
use ack_desk::matching::waiting_named;
use ack_service::{Error, Service};

pub fn run(global: &Global, args: &GetArgs) -> Result<ExitCode, CliError> {
    let config = config(global)?;
    let last = LastQueryStore::of(&config).and_then(|memory| memory.last(Timestamp::now()));
    let caller = Caller { config: &config, json: global.json, now: Timestamp::now() };
    let service = CloseOnDrop(Service::new(config.clone()).leak());
    let mut request = request(args);
    let answer = progress::while_reading(|| {
        let resolve = |typed: &String| resolve_typed(typed, &mut request, last.as_ref(), service.0);
        let ids = args.ids.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
        match <[String; 1]>::try_from(ids) {
            Ok([one]) => request.id = Some(one),
            Err(ids) => request.ids = Some(ids),
        }
        let answer = service.0.get_memory(&request);
        answer.map_err(|error| explain_number(error, &args.ids, last.is_some()))
    });
    let screen = Screen::of_output();
    let at_terminal = screen.width.is_some() && !global.json && !global.quiet;
    let unreviewed = at_terminal.then(|| unreviewed(service.0, args)).flatten();
    if let (Some(unreviewed), true) = (&unreviewed, answer.is_err()) {
        write_err(&format!("note: {unreviewed}\n"));
    }
    let mut answer = match answer {
        Err(CliError::Request(Error::MemoryNotServed { id, scope, .. }))
            if args.include.contains(&Include::History) && caller.actor().is_ok() =>
        {
            return show_history(caller, &scope, &id);
        }
        answer => answer?,
    };
    answer.resolve(&SHELL);
    if global.json {
        write_json(&answer)?;
    } else {
        let mut text = render::get(&make_printable(&answer, global)?, &screen);
        let unreviewed = unreviewed.map(|it| render::block(&screen, &it, ("", ""), render::DIM));
        text.extend(unreviewed.map(|line| format!("\n{line}")));
        write_out(&text)?;
    }
    Ok(ExitCode::from(u8::from(answer.memory.is_none() && answer.memories.is_empty())))
}

/// How many unreviewed memories the one id names that was typed, besides the one that is shown.
fn unreviewed(service: &Service, args: &GetArgs) -> Option<String> {
    let [typed] = args.ids.as_slice() else {
        return None;
    };
    if is_number(typed) || args.shown.chosen().is_some() {
        return None;
    }
    unreviewed_text(waiting_named(service, typed, args.scope.as_deref()).ok()?.len(), typed, "")
}

/// Shows the history of a memory that no answer contains, but only to a curator.
fn show_history(caller: Caller<'_>, scope: &str, id: &str) -> Result<ExitCode, CliError> {
    let candidate = by_whole_id(&caller.scopes(Some(scope))?, id)?;
    let history = candidate.scope.store.snapshot(|snapshot| snapshot.history(id))?;
    let memory = candidate.memory();
    if caller.json {
        write_json(&serde_json::json!({
            "id": memory.id, "scope": scope, "title": memory.title, "status": memory.status,
            "history": history,
        }))?;
    } else {
        let head = format!("{}  {scope}  {}  {}\n", memory.id, memory.status, memory.title);
        write_plain(&(head + &render::history(&history, &Screen::of_output())))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Resolves the typed text: the number of a result, an id or address, or the beginning of an id.
fn resolve_typed(
    typed: &str,
    request: &mut GetRequest,
    last: Option<&LastQuery>,
    service: &Service,
) -> Result<String, CliError> {
    let address = |scope: &str, id: &str| {
        Address::Memory { scope: scope.to_owned(), id: id.to_owned() }.to_string()
    };
    if let Some(last) = last
        && let Some(hit) = numbered_result(typed, last)
    {
        // A result that the query showed can be opened.
        request.status = request.status.or(last.request.status);
        return Ok(address(&hit.scope, &hit.id));
    }
    // A small number that is not a result can only be an id. As a prefix it would match too many.
    if is_number(typed) {
        return Ok(typed.to_owned());
    }
    let filter = request.status.unwrap_or(StatusFilter::Approved);
    let scope = request.scope.as_deref();
    // The request itself reports problems with the scopes.
    let ids = |filter| service.ids_with_prefix(typed, scope, filter).unwrap_or_default();
    let found = ids(filter);
    match found.matches.as_slice() {
        // `review --list` prints short ids of unreviewed memories: the answer says what they are.
        [] => Ok(match ids(StatusFilter::All).matches.as_slice() {
            [one] => address(&one.scope, &one.id),
            _ => typed.to_owned(),
        }),
        [one] if found.total == 1 => Ok(address(&one.scope, &one.id)),
        _ => Err(CliError::AmbiguousId { typed: typed.to_owned(), found }),
    }
}

pub fn numbered_result<'a>(typed: &str, last: &'a LastQuery) -> Option<&'a Also> {
    let number: usize = typed.parse().ok().filter(|_| is_number(typed))?;
    last.hits.get(number.checked_sub(1)?)
}

fn is_number(typed: &str) -> bool {
    typed.len() <= 4 && typed.bytes().all(|byte| byte.is_ascii_digit())
}

fn explain_number(error: Error, ids: &[String], known: bool) -> CliError {
    match error {
        Error::MemoryNotFound { id, .. } if ids.iter().find(|id| is_number(id)) == Some(&id) => {
            let message = format!("there is no memory `{id}` and no result with that number");
            CliError::new(ErrorCode::MemoryNotFound, message).with_hint(match known {
                true => "numbers refer to the last query at this terminal, which had fewer results",
                false => "numbers refer to the last query at this terminal; there was none in the last day",
            })
        }
        error => error.into(),
    }
}

fn request(args: &GetArgs) -> GetRequest {
    GetRequest {
        scope: args.scope.clone(),
        status: args.shown.chosen(),
        include: Some(args.include.clone()),
        before: args.before,
        after: args.after,
        timeline_within: args.timeline_within,
        depth: args.depth,
        kind: (!args.kind.is_empty()).then(|| args.kind.clone()),
        ..GetRequest::default()
    }
}
