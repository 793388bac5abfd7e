//! Renders the answer of `query`, and a memory in any list.

use std::collections::HashMap;
use std::fmt::Write;

use super::age::{age, exact_time};
use super::layout::{QueryWords, block, breakable, marked_block, paint, unbroken};
use super::{BOLD, DIM, NAME, PLAIN, WARN, notes};
use super::{count, grouped};
use crate::cli::command::command;
use crate::cli::screen::Screen;
use ack_api::memory::StatusFilter;
use ack_api::number::verb;
use ack_api::{
    Contradiction, Expected, Explanation, Hidden, MemoryHit, Note, NoteKind, QueryResponse,
    Searched, Stage,
};
use ack_connect::quoted;

/// How memories are listed. Without more, a list has no numbers to refer to.
#[derive(Debug, Default)]
pub struct Listing {
    pub screen: Screen,
    pub marks: QueryWords,
    pub long: bool,
    /// The number of the first result.
    pub first: usize,
    pub short: HashMap<String, String>,
    /// The number of each result on the page, by id.
    pub numbers: HashMap<String, usize>,
    /// How many unreviewed memories match, and the command that opens them.
    pub unreviewed: Option<String>,
    /// Whether `get 1` and `query --next` can refer to this answer.
    pub is_recallable: bool,
    pub quiet: bool,
}

impl Listing {
    fn short_id<'a>(&'a self, id: &'a str) -> &'a str {
        self.short.get(id).map_or(id, String::as_str)
    }
}

pub fn query(answer: &QueryResponse, listing: &Listing) -> String {
    let screen = &listing.screen;
    // The note that nothing answers the question comes first.
    let is_first =
        |note: &Note| matches!(note.kind, NoteKind::NoWordMatches | NoteKind::NothingCertain);
    // Hidden memories are counted below the results.
    let is_counted = |note: &&Note| {
        let hidden = answer.hidden.is_some_and(|hidden| hidden.by_status > 0);
        !(hidden && note.kind == NoteKind::HiddenByStatus)
    };
    let notes_left = answer.notes.iter().filter(is_counted).cloned();
    let (first, rest): (Vec<Note>, Vec<Note>) = notes_left.partition(is_first);
    let warnings = first.iter().map(|note| block(screen, note.message.text(), ("", ""), WARN));
    let mut out = warnings.collect::<String>() + &head(answer, listing);
    for (place, result) in answer.results.iter().enumerate() {
        let _ = write!(out, "\n{}", hit(result, Some(listing.first + place), listing));
    }
    let is_empty = answer.results.is_empty();
    let mut hidden: String = listing.unreviewed.iter().map(|text| dim(text, screen)).collect();
    let mut counts = answer.hidden.unwrap_or_default();
    if listing.unreviewed.is_some() {
        // The line above says how many are unreviewed.
        counts.by_status = 0;
    }
    if counts != Hidden::default() {
        hidden += &dim(&hidden_text(counts, answer.searched.status, is_empty), screen);
    }
    if is_empty && !hidden.is_empty() && !listing.quiet {
        // What waits for review helps more than any suggestion.
        let _ = write!(out, "\n{hidden}");
    }
    if !answer.suggestions.is_empty() && !listing.quiet {
        out.push_str("\ntry:\n");
        for suggestion in &answer.suggestions {
            let text = match suggestion.text() {
                "Try broader search terms" => "Broader search terms",
                other => other,
            };
            out += &block(screen, text, ("  ", "  "), PLAIN);
        }
    }
    let expected = answer.expected.iter();
    out.extend(expected.map(|expected| format!("\n{}", expected_text(expected, listing))));
    let mut foot = next_steps(answer, listing);
    if !is_empty {
        foot += &hidden;
    }
    if !foot.is_empty() && !listing.quiet {
        let _ = write!(out, "\n{foot}");
    }
    out + &notes(&rest, screen)
}

fn dim(text: &str, screen: &Screen) -> String {
    block(screen, text, ("", ""), DIM)
}

/// `10 of 13 in kiosk-web, ledger-api`.
fn head(answer: &QueryResponse, listing: &Listing) -> String {
    let (result_count, folded) = (answer.results.len(), answer.folded());
    let more = if answer.total_is_lower_bound { " or more" } else { "" };
    let total = grouped(answer.total) + more;
    let counted = if result_count == 0 {
        "nothing found".to_owned()
    } else if listing.first > 1 && result_count == 1 {
        format!("result {} of {total}", listing.first)
    } else if answer.is_complete() && listing.first == 1 && folded > 0 {
        format!("{}, {folded} contained in others,", count(answer.total, "memory"))
    } else if listing.first > 1 {
        format!("{} to {} of {total}", listing.first, listing.first + result_count - 1)
    } else if answer.total > result_count as u64 || answer.total_is_lower_bound {
        format!("{result_count} of {total}")
    } else {
        count(answer.total, "memory")
    };
    let text = format!("{counted} {}", searched(&answer.searched, listing.long));
    let out = dim(&text, &listing.screen);
    out.replacen(&format!("{DIM}{counted}"), &format!("{}{DIM}", paint(BOLD, &counted)), 1)
}

/// Which scopes were searched; with `long`, or if none was, also which were not.
fn searched(searched: &Searched, long: bool) -> String {
    let names =
        if searched.scopes.is_empty() { "no scope".to_owned() } else { searched.scopes.join(", ") };
    let mut text = format!("in {names}");
    if searched.more_scopes > 0 {
        let _ = write!(text, " and {} more", searched.more_scopes);
    }
    match searched.status {
        StatusFilter::Approved => {}
        StatusFilter::Staging => text.push_str(" (unreviewed)"),
        StatusFilter::All => text.push_str(" (unreviewed included)"),
    }
    if !long && !searched.scopes.is_empty() {
        return text;
    }
    if let (Some(scope), Some(rule)) = (&searched.current_scope, &searched.detected_by) {
        let _ = write!(text, "; current scope {scope} ({rule})");
    }
    for skipped in &searched.skipped {
        let _ = write!(text, "; not {}: {}", skipped.scope, skipped.reason);
    }
    if searched.more_skipped > 0 {
        let _ = write!(text, "; nor {}", count(searched.more_skipped, "other"));
    }
    text
}

fn next_steps(answer: &QueryResponse, listing: &Listing) -> String {
    let mut steps = Vec::new();
    match &answer.next_cursor {
        Some(_) if listing.is_recallable => {
            steps.push(format!("next: {}", command("query --next")))
        }
        Some(cursor) => steps.push(format!("next page: --cursor {cursor}")),
        None => {}
    }
    if let Some(result) = answer.results.first().filter(|_| listing.is_recallable) {
        let (number, id) = (listing.first, listing.short_id(&result.id));
        let get = command(&format!("get {number}"));
        steps.push(format!("open: {get} (or {})", quoted(id)));
    }
    if steps.is_empty() {
        return String::new();
    }
    dim(&steps.join("  ·  "), &listing.screen)
}

/// What is hidden; if there is nothing else to see, also who decides about it.
fn hidden_text(hidden: Hidden, status: StatusFilter, is_empty: bool) -> String {
    let mut parts = Vec::new();
    if hidden.by_status > 0 {
        let what = if status == StatusFilter::Staging { "approved" } else { "unreviewed" };
        let decide = match status {
            StatusFilter::Approved if is_empty => format!(", `{}` decides", command("review")),
            _ => String::new(),
        };
        parts.push(format!(
            "{} {what} (--all shows {}{decide})",
            grouped(hidden.by_status),
            verb(hidden.by_status, "it", "them")
        ));
    }
    if hidden.superseded > 0 {
        parts.push(format!("{} superseded", grouped(hidden.superseded)));
    }
    format!("hidden: {}", parts.join(", "))
}

pub(super) fn hit(hit: &MemoryHit, number: Option<usize>, listing: &Listing) -> String {
    let number = number.map_or_else(String::new, |number| format!("{number:>2}  "));
    let indent = " ".repeat(number.len().max(2));
    let style = if hit.superseded_by.is_some() { DIM } else { BOLD };
    let Listing { screen, marks, .. } = listing;
    let mut out = marked_block(screen, &hit.title, (&number, &indent), style, marks);
    out += &meta(hit, &indent, listing);
    let text = if listing.long { full_text } else { best_fact };
    out += &text(hit, &indent, listing);
    let explained = hit.explanation.iter();
    out.extend(explained.map(|it| explanation_text(it, hit.why.as_deref(), &indent, screen)));
    out
}

/// Id, place, type and age, and below them the reasons to doubt it.
fn meta(hit: &MemoryHit, indent: &str, listing: &Listing) -> String {
    let (long, screen) = (listing.long, &listing.screen);
    let id = if long { &hit.id } else { listing.short_id(&hit.id) };
    let place = match &hit.project {
        Some(project) if long || *project != hit.scope => format!("{}/{project}", hit.scope),
        _ => hit.scope.clone(),
    };
    let mut parts = vec![id.to_owned(), place];
    parts.extend(hit.kind.clone());
    let time = if long { exact_time } else { age };
    parts.extend(hit.created_at.as_ref().map(|at| time(at, screen)));
    if long || !StatusFilter::Approved.allows(hit.status) {
        parts.push(hit.status.to_string());
    }
    let also = hit.also.len() as u64 + hit.more_also;
    if also > 0 && !long {
        parts.push(format!("+{also} contained"));
    }
    let parts: Vec<String> = parts.iter().map(|part| unbroken(screen, indent, part)).collect();
    let out = breakable(&block(screen, &parts.join("  "), (indent, indent), DIM));
    let out = out.replacen(&format!("{DIM}{id}"), &format!("{}{DIM}", paint(NAME, id)), 1);
    let newer = hit.superseded_by.as_ref();
    let newer = newer.map(|newer| format!("superseded by {}", listing.short_id(newer)));
    let others = hit.contradicts.iter().map(|other| contradiction(other, listing));
    let stale = hit.stale.as_ref().map(|why| format!("stale: {why}"));
    let doubts = newer.into_iter().chain(others).chain(stale);
    let doubts: Vec<String> = doubts.map(|doubt| unbroken(screen, indent, &doubt)).collect();
    out + &breakable(&block(screen, &doubts.join("  "), (indent, indent), WARN))
}

/// `contradicts 3 (older)` if the other one is on the page too, else its id.
fn contradiction(other: &Contradiction, listing: &Listing) -> String {
    let name = match listing.numbers.get(&other.id) {
        Some(number) => other.describe(number),
        None => other.describe(listing.short_id(&other.id)),
    };
    if other.is_newer() { format!("contradicted by {name}") } else { format!("contradicts {name}") }
}

/// The fact that matches the query best, and how many more there are.
fn best_fact(hit: &MemoryHit, indent: &str, listing: &Listing) -> String {
    let Listing { screen, marks, .. } = listing;
    // The first of several equals.
    let best = hit.facts.iter().rev().max_by_key(|fact| marks.count(fact));
    let Some(text) = best.or(hit.subtitle.as_ref()).or(hit.excerpt.as_ref()) else {
        return String::new();
    };
    let more = hit.facts.len().saturating_sub(1) as u64 + hit.more_facts;
    let indents = (indent, indent);
    if more == 0 {
        return marked_block(screen, text, indents, PLAIN, marks);
    }
    let more = unbroken(screen, indent, &format!("+{}", count(more, "fact")));
    let out = marked_block(screen, &format!("{text}  {more}"), indents, PLAIN, marks);
    breakable(&out.replacen(&more, &paint(DIM, &more), 1))
}

fn full_text(hit: &MemoryHit, indent: &str, listing: &Listing) -> String {
    let Listing { screen, marks, .. } = listing;
    let mut out = String::new();
    for text in hit.subtitle.iter().chain(&hit.excerpt) {
        out += &marked_block(screen, text, (indent, indent), PLAIN, marks);
    }
    for fact in &hit.facts {
        let (first, rest) = (format!("{indent}- "), format!("{indent}  "));
        out += &marked_block(screen, fact, (&first, &rest), PLAIN, marks);
    }
    if hit.more_facts > 0 {
        let more = format!("+{}", count(hit.more_facts, "fact"));
        let _ = writeln!(out, "{indent}{}", paint(DIM, more));
    }
    if let Some(narrative) = &hit.narrative {
        let narrative = marked_block(screen, narrative, (indent, indent), PLAIN, marks);
        out += &format!("\n{narrative}\n");
    }
    let mut line = |name, value| out += &field(name, value, indent, screen);
    let list = |values: &[String]| (!values.is_empty()).then(|| values.join(", "));
    line("tags", list(&hit.concepts));
    line("files", list(&hit.files));
    line("session", hit.session.clone());
    line("confidence", hit.confidence.map(|share| format!("{share:.2}")));
    let also = hit.also.iter().map(|also| match also.scope == hit.scope {
        true => also.id.clone(),
        false => format!("{} ({})", also.id, also.scope),
    });
    let mut also: Vec<String> = also.collect();
    if hit.more_also > 0 {
        also.push(format!("{} more", hit.more_also));
    }
    line("also noted as", list(&also));
    out
}

/// A line about a memory, if there is something to say.
pub(super) fn field(name: &str, value: Option<String>, indent: &str, screen: &Screen) -> String {
    let text = value.map(|value| format!("{name}: {value}")).unwrap_or_default();
    block(screen, &text, (indent, &format!("{indent}  ")), DIM)
}

/// How a result was ranked: the sum of each leg's score.
fn explanation_text(
    explanation: &Explanation,
    why: Option<&str>,
    indent: &str,
    screen: &Screen,
) -> String {
    let mut out = String::new();
    let rest = format!("{indent}  ");
    let mut line = |text: &str| out += &block(screen, text, (indent, &rest), DIM);
    let rank = explanation.rank;
    line(&format!("rank {rank}: {}", explanation.fusion));
    for leg in &explanation.legs {
        let rank = leg.rank.map_or_else(|| "not found".to_owned(), |rank| format!("rank {rank}"));
        let sum = match leg.terms.as_slice() {
            [] => String::new(),
            terms => format!(" = {}", terms.join(" + ")),
        };
        let coverage = leg
            .coverage
            .map_or_else(String::new, |share| format!("; {:.0} % of the words", share * 100.0));
        line(&format!("{}: {rank}, {}{sum}{coverage}", leg.leg, leg.score));
    }
    if let Some(why) = why {
        line(&format!("found by {why}"));
    }
    out
}

fn expected_text(expected: &Expected, listing: &Listing) -> String {
    let screen = &listing.screen;
    let stage = match expected.stage {
        Stage::NotFound => "not found",
        Stage::HiddenByStatus => "hidden by its status",
        Stage::Filtered => "filtered out",
        Stage::Superseded => "superseded",
        Stage::NotRetrieved => "not retrieved",
        Stage::BehindPage => "behind this page",
        Stage::Folded => "folded",
        Stage::Returned => "returned",
    };
    let scope = expected.scope.as_ref().map_or_else(String::new, |scope| format!(" in {scope}"));
    let message = expected.message.text();
    let text = format!("expected {}{scope}: {stage}; {message}", expected.id);
    let style = if expected.stage == Stage::Returned { PLAIN } else { WARN };
    let mut out = block(screen, &text, ("", "  "), style);
    let explained = expected.explanation.iter();
    out.extend(explained.map(|it| explanation_text(it, None, "  ", screen)));
    out
}
