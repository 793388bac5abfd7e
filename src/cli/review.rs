//! `review`: shows the unreviewed memories and takes decisions about them. The [`desk`](ack_desk)
//! holds and writes the choices. This module has its user interfaces: a [browser], a [terminal],
//! and output for scripts.

mod accept;
mod apply;
mod browser;
pub mod editor;
mod terminal;
mod unwritten;

use crate::cli::command::SHELL;
use std::collections::BTreeMap;
use std::io::IsTerminal;

use ack_api::{ErrorCode, Hint, QueryRequest, text};
use serde_json::{Value, json};

use self::terminal::TerminalView;
use super::args::ReviewArgs;
use super::caller::Caller;
use super::output::{json_with, write_err, write_json, write_plain};
use super::progress;
use super::render::{self, DIM, paint};
use super::screen::{Screen, folded};
use crate::cli::error::CliError;
use ack_desk::Desk;
use ack_desk::card::{Card, days};
use ack_desk::curate::find::{Filter, short_ids};
use ack_desk::curate::log;
use ack_desk::curate::stale::{ApprovedMemory, stale};
use ack_desk::matching::{Matched, waiting_for};
use ack_desk::nearest::{Near, neighbours};
use ack_service::Service;
use ack_service::scope::Registry;
use ack_service::short_id::ShortIds;

/// For how many memories it shows the nearest approved ones.
const MAX_WITH_NEAREST: usize = 200;
/// In a narrower list, a memory has no scope and age.
const MIN_WIDTH_WITH_PLACE: usize = 60;
const NOTHING_STALE: &str = "no approved memory is known to be out of date\n";

pub fn run(caller: Caller<'_>, args: ReviewArgs) -> Result<(), CliError> {
    if args.accept_log {
        return accept::run(caller, args.scope.as_deref());
    }
    if args.apply.is_some() && [&args.kind, &args.project, &args.tag].iter().any(|it| it.is_some())
    {
        return Err(CliError::invalid(
            "--apply",
            "with --type, --project or --tag",
            "--apply alone or with --scope: the file names the memories",
        ));
    }
    let service = Service::new(caller.config.clone()).leak();
    let outcome = match &args.apply {
        Some(file) => apply::run(caller, service, file, args.scope.as_deref()),
        None => decide(caller, service, args),
    };
    service.close();
    outcome
}

fn decide(caller: Caller<'_>, service: &'static Service, args: ReviewArgs) -> Result<(), CliError> {
    let tty = args.tty || args.plain;
    if args.plain {
        progress::silence();
    }
    let scopes = caller.readable_scopes(args.scope.as_deref())?;
    if scopes.is_empty() && is_any_unreadable(caller)? {
        let message = "no scope can be read, so it is not known what waits for review";
        return Err(CliError::new(ErrorCode::StoreUnreadable, message)
            .with_hint(Hint::command("doctor", "says what is wrong")));
    }
    let mut filter =
        Filter { kind: args.kind, project: args.project, tag: args.tag, ..Filter::default() };
    if let Some(question) = args.question {
        filter.only = Some(matching(service, question, args.scope.clone(), &filter)?);
    }
    let is_filtered = args.flagged || !filter.is_empty() || args.scope.is_some();
    let in_browser = args.browser || !tty && browser::is_wanted();
    // A caller without a terminal can still look.
    let may_ask = tty || args.browser || std::io::stdin().is_terminal();
    let find_stale = || stale(&scopes, &filter, &service.staleness(caller.now));
    if args.stale && (args.list || caller.json || !may_ask) {
        return list_stale(caller, &find_stale()?);
    }
    let mut desk = progress::while_reading(|| Desk::open(&scopes, &filter, service, caller.now))?;
    if args.flagged {
        progress::while_reading(|| desk.keep_flagged());
    }
    if args.list || caller.json {
        return list(caller, &mut desk, is_filtered);
    }
    if args.stale {
        let found = progress::while_reading(find_stale)?;
        if found.is_empty() {
            return write_plain(NOTHING_STALE);
        }
        desk.open_approved(found);
    } else if desk.items().is_empty() {
        let match_it = if is_filtered { " that match" } else { "" };
        let put_off = put_off_text(&desk, is_filtered);
        let nothing = format!("no unreviewed memories{match_it}{put_off}\n");
        // A person can still look through the approved ones.
        let is_interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if is_filtered || !is_interactive {
            return write_plain(&nothing);
        }
        let found = progress::while_reading(|| desk.search().approved())?;
        if found.is_empty() {
            return write_plain(&nothing);
        }
        write_err(&nothing);
        desk.open_approved(found);
    }
    let session = caller.session(None)?;
    let has_unwritten = unwritten::report_earlier(caller.config);
    report_unwritable(&desk);
    if in_browser {
        browser::show(caller, desk, &session)
    } else {
        let view = TerminalView { is_plain: args.plain, has_unwritten };
        terminal::run_terminal_desk(caller, desk, &session, view)
    }
}

/// The memories that match a question and a filter, the best first.
fn matching(
    service: &Service,
    question: String,
    scope: Option<String>,
    filter: &Filter,
) -> Result<Vec<Matched>, CliError> {
    let request = QueryRequest {
        query: Some(question),
        scope,
        project: filter.project.clone(),
        tags: filter.tag.clone().map(|tag| vec![tag]),
        kind: filter.kind.clone(),
        ..QueryRequest::default()
    };
    Ok(progress::while_reading(|| waiting_for(service, &request))?)
}

/// How many memories are snoozed, if nothing else waits. With a filter, it is not known which of
/// them match.
fn put_off_text(desk: &Desk, is_filtered: bool) -> String {
    match desk.put_off() {
        0 => String::new(),
        _ if is_filtered => String::new(),
        1 => "; 1 is snoozed".to_owned(),
        many => format!("; {many} are snoozed"),
    }
}

/// Whether a scope that exists cannot be read, so it is unknown what waits there.
fn is_any_unreadable(caller: Caller<'_>) -> Result<bool, CliError> {
    let found = Registry::new(caller.config).discover().scopes;
    Ok(found.iter().any(|scope| scope.problem.is_some()) || !caller.scopes(None)?.is_empty())
}

fn report_unwritable(desk: &Desk) {
    let scopes = desk.items().iter().map(|item| &item.candidate.scope);
    let scopes: BTreeMap<&str, _> = scopes.map(|scope| (scope.name.as_str(), scope)).collect();
    for (name, scope) in scopes {
        if let Some(problem) = log::problem(scope) {
            write_err(&format!("note: scope `{name}`: {}\n", problem.render(&SHELL)));
        }
    }
}

/// The approved memories nearest to one of the first entries of a list.
fn nearest(desk: &Desk, number: usize) -> Vec<Near> {
    let item = desk.items().get(number).filter(|_| number < MAX_WITH_NEAREST);
    let near = item.map(|item| neighbours(desk.service, &item.candidate, &[], desk.now));
    near.unwrap_or_default()
}

/// An entry of a list as JSON, with the ids of other unreviewed memories that are much alike.
fn entry(desk: &Desk, number: usize) -> Option<Value> {
    let nearest = nearest(desk, number).into_iter();
    let nearest: Vec<Value> = nearest
        .map(|it| json!({ "id": it.id, "title": it.title, "relation": it.relation }))
        .collect();
    let mut more = json!({ "alike": desk.ids_of_group(number) });
    if let Some(more) = more.as_object_mut().filter(|_| !nearest.is_empty()) {
        more.insert("nearest".to_owned(), json!(nearest));
    }
    Some(json_with(&desk.card(number)?, more))
}

fn list_stale(caller: Caller<'_>, found: &[ApprovedMemory]) -> Result<(), CliError> {
    let cards = found.iter().map(|stale| {
        let mut card = Card::of(&stale.candidate, caller.now);
        card.marks.splice(0..0, stale.stale.clone());
        card
    });
    if caller.json {
        let cards: Vec<Card> = cards.collect();
        return write_json(&json!({ "total": cards.len(), "stale": cards }));
    }
    let short = short_ids(&caller.scopes(None).unwrap_or_default());
    let mut out = match found.len() {
        0 => return write_plain(NOTHING_STALE),
        1 => "1 approved memory may be out of date\n".to_owned(),
        many => format!("{many} approved memories may be out of date\n"),
    };
    let screen = Screen::of_output();
    let shown = screen.listed(found.len());
    for card in cards.take(shown) {
        out += &listed(&card, &short, &screen);
    }
    out += &folded(found.len() - shown, "review --stale --list | less");
    out.push_str("\n`approve ID` keeps one; `replace`, `stage` and `reject` do not; ");
    out.push_str("`review --stale --tty` goes through them\n");
    write_plain(&out)
}

/// A memory of a list: its place, its title and its marks. At a terminal, a line and the marks.
fn listed(card: &Card, short: &ShortIds, screen: &Screen) -> String {
    let mut out = match screen.width {
        Some(width) => {
            let id = short.shortest(&card.id);
            let age = card.age_days.map(|age| format!("  {} old", days(age)));
            let place = format!("  {}{}", card.scope, age.unwrap_or_default());
            let place = if width < MIN_WIDTH_WITH_PLACE { String::new() } else { place };
            let room = width.saturating_sub(id.len() + 2 + place.chars().count());
            format!("{id}  {}{}\n", text::line(&card.title, room), paint(DIM, place))
        }
        None => format!("\n{}\n  {}\n", card.meta(short), card.title),
    };
    for mark in &card.marks {
        out += &wrapped(&format!("! {mark}"), "  ", screen);
    }
    out
}

/// A line of a list, wrapped at a terminal.
fn wrapped(text: &str, indent: &str, screen: &Screen) -> String {
    render::block(screen, text, (indent, &format!("{indent}  ")), render::PLAIN)
}

fn list(caller: Caller<'_>, desk: &mut Desk, is_filtered: bool) -> Result<(), CliError> {
    let count = desk.items().len();
    if caller.json {
        desk.find_relations();
        let entries: Vec<Value> = (0..count).filter_map(|number| entry(desk, number)).collect();
        return write_json(&json!({ "total": entries.len(), "waiting": entries }));
    }
    if count == 0 {
        let what = if is_filtered { "nothing unreviewed matches" } else { "nothing is unreviewed" };
        return write_plain(&format!("{what}{}\n", put_off_text(desk, is_filtered)));
    }
    desk.shorten_ids();
    let short = &desk.short_ids;
    let screen = Screen::of_output();
    let mut out: String = desk.head().text.lines().map(|line| wrapped(line, "", &screen)).collect();
    let shown = screen.listed(count);
    for (number, card) in (0..shown).filter_map(|number| Some((number, desk.card(number)?))) {
        out += &listed(&card, short, &screen);
        for Near { id, title, relation, .. } in nearest(desk, number) {
            let (id, title) = (short.shortest(&id), text::line(&title, 80));
            let neighbour = format!("approved: {id}  {title}  ({})", relation.as_str());
            out += &wrapped(&neighbour, "  ", &screen);
        }
    }
    let options = if is_filtered { " OPTIONS" } else { "" };
    out += &folded(count - shown, &format!("review --list{options} | less"));
    write_plain(&out)
}
