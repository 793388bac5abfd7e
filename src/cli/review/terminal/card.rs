//! The card of a memory, as text for a terminal.

use std::fmt::Write as _;

use ack_api::memory::Memory;
use parking_lot::Mutex;

use crate::cli::screen::Screen;
use crate::hook::session_text;
use ack_desk::Desk;
use ack_desk::card::Card;
use ack_desk::choice::Choice;
use ack_desk::evidence::{NextSession, evidence};
use ack_desk::nearest::{Near, ShownPart, neighbours};

/// How many lines of a narrative, or of a comparison, a card shows.
const FOLDED_LINES: usize = 12;
/// The fewest lines of a card, however low the terminal is.
const MIN_ROWS: usize = 6;

pub struct CardFormat {
    /// Its place in the queue: `2/7`.
    pub position: String,
    /// Whether it shows the whole text. Otherwise it fits the terminal.
    pub show_all: bool,
    /// How many lines above it should stay on the screen.
    pub lines_above: usize,
}

/// The card of a memory, with what the desk knows about similar memories, and the nearest approved
/// ones.
pub fn card_text(desk: &Mutex<Desk>, number: usize, format: &CardFormat) -> String {
    let (candidate, card, lines, service, now, decision, meta) = {
        let desk = desk.lock();
        let Some(item) = desk.items().get(number) else {
            return String::new();
        };
        let Some(card) = desk.card(number) else {
            return String::new();
        };
        let mut lines = similar_text(&desk, number);
        // If the store cannot be read, nothing can be rejected either.
        let rejected = desk.preview(&[number], &Choice::Reject).unwrap_or_default();
        let back = rejected.side_effects.iter();
        lines.extend(back.map(|line| format!("if you reject it, {line}")));
        let decision = desk.done(number);
        let candidate = item.candidate.clone();
        let meta = card.meta(desk.short_ids());
        (
            candidate,
            card,
            lines,
            desk.service(),
            desk.now(),
            decision,
            meta,
        )
    };
    // The searches may take a while, and the desk is not locked meanwhile.
    let (held, held_like) = {
        let desk = desk.lock();
        let held: Vec<Memory> = desk.held(&candidate).cloned().collect();
        (held, desk.held_like(&candidate))
    };
    let next = NextSession::of(service, &candidate, &held, session_text);
    let next = next.map(|next| next.in_words());
    let next = next.filter(|next| !next.is_empty());
    let evidence = evidence(service, &candidate).into_iter().flatten();
    let evidence: Vec<String> = evidence.chain(next).collect();
    let neighbours = neighbours(service, &candidate, &held_like, now);
    let neighbours: Vec<(String, Near)> = neighbours
        .into_iter()
        .map(|near| (desk.lock().short_ids().shortest(&near.id), near))
        .collect();
    let mut head = format!(
        "\n{}\n",
        wrapped(&format!("{}  {meta}", format.position), "")
    );
    head += &head_text(&card, decision);
    let foot = |fold: usize| {
        let lines = lines.iter().chain(&evidence);
        let mut text: String = lines.map(|line| wrapped(line, "  ") + "\n").collect();
        for (position, (id, near)) in neighbours.iter().enumerate() {
            let fold = if position == 0 { fold } else { 0 };
            text.push_str(&approved_text(near, id, fold));
        }
        text
    };
    let parts = CardParts {
        head: &head,
        body: &|fold| body_text(&card, fold),
        foot: &foot,
    };
    let rows = Screen::of_errors().height.filter(|_| !format.show_all);
    match rows {
        _ if format.show_all => parts.folded(usize::MAX),
        None => parts.folded(FOLDED_LINES),
        // The last line of the screen is for the keys.
        Some(rows) => parts.within(rows.saturating_sub(1 + format.lines_above).max(MIN_ROWS)),
    }
}

/// The parts of a card. Long texts are folded to a number of lines.
struct CardParts<'a> {
    head: &'a str,
    body: &'a dyn Fn(usize) -> String,
    /// What is known about other memories.
    foot: &'a dyn Fn(usize) -> String,
}

impl CardParts<'_> {
    fn folded(&self, fold: usize) -> String {
        [self.head, &(self.body)(fold), &(self.foot)(fold)].concat()
    }

    /// A card of at most this many lines: the head first, then as much of the rest as fits.
    fn within(&self, rows: usize) -> String {
        for fold in [FOLDED_LINES, FOLDED_LINES / 2, FOLDED_LINES / 4] {
            let text = self.folded(fold);
            if text.lines().count() <= rows {
                return text;
            }
        }
        let all = self.folded(usize::MAX).lines().count();
        let (body, foot) = ((self.body)(usize::MAX), (self.foot)(0));
        let (body, foot): (Vec<&str>, Vec<&str>) = (body.lines().collect(), foot.lines().collect());
        let room = rows.saturating_sub(1);
        let head: Vec<&str> = self.head.lines().take(room).collect();
        let room = room - head.len();
        let body_lines = body.len().min(room - foot.len().min(room / 2));
        let foot_lines = foot.len().min(room - body_lines);
        let shown = head.len() + body_lines + foot_lines;
        let more = format!("  … {} more lines: n", all - shown);
        let lines = head.into_iter();
        let lines = lines.chain(body.into_iter().take(body_lines));
        let lines = lines.chain([more.as_str()]);
        let lines = lines.chain(foot.into_iter().take(foot_lines));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

/// What should be seen first: the title, the marks, and the decision of this session.
fn head_text(card: &Card, decision: Option<&str>) -> String {
    let mut text = wrapped(&card.title, "") + "\n";
    for mark in &card.marks {
        let _ = writeln!(text, "{}", wrapped(mark, "  ! "));
    }
    if let Some(decision) = decision {
        let _ = writeln!(text, "  {decision}");
    }
    text
}

fn body_text(card: &Card, fold: usize) -> String {
    let mut text = String::new();
    if let Some(subtitle) = &card.subtitle {
        let _ = writeln!(text, "{}", wrapped(subtitle, "  "));
    }
    for fact in &card.facts {
        let _ = writeln!(text, "{}", wrapped(fact, "  - "));
    }
    if let Some(narrative) = &card.narrative {
        let _ = writeln!(text, "\n{}", fold_lines(narrative, "  ", fold));
    }
    for (name, values) in [("tags", &card.concepts), ("files", &card.files)] {
        if !values.is_empty() {
            let line = format!("{name}: {}", values.join(", "));
            let _ = writeln!(text, "{}", wrapped(&line, "  "));
        }
    }
    if let Some(session) = card.session_title.as_ref().or(card.session.as_ref()) {
        let _ = writeln!(text, "{}", wrapped(&format!("session: {session}"), "  "));
    }
    for served in &card.served {
        let _ = writeln!(text, "{}", wrapped(served, "  "));
    }
    text
}

/// What the desk knows about the memories that are much alike: those that wait, and those that were
/// decided in this session.
fn similar_text(desk: &Desk, number: usize) -> Vec<String> {
    let short = desk.short_ids();
    let ids = desk.ids_of_group(number).into_iter();
    let ids: Vec<String> = ids.map(|id| short.shortest(&id)).collect();
    let waits = (!ids.is_empty()).then(|| {
        let keys = "g keeps this one alone, A approves all, R rejects all";
        match ids.len() {
            1 => format!("waiting too, much alike: {} ({keys})", ids.join(" ")),
            many => format!("{many} waiting too, much alike: {} ({keys})", ids.join(" ")),
        }
    });
    let decided = desk.decided_in_group(number).into_iter();
    let decided: Vec<String> = decided
        .map(|(id, decision)| format!("{} {decision}", short.shortest(&id)))
        .collect();
    let decided = (!decided.is_empty())
        .then(|| format!("already decided, much alike: {}", decided.join(", ")));
    waits.into_iter().chain(decided).collect()
}

/// An approved memory. The nearest one is compared word by word, in `fold` lines.
fn approved_text(near: &Near, id: &str, fold: usize) -> String {
    let relation = near.relation.as_str();
    let line = format!("approved: {id}  {}  ({relation})", near.title);
    let mut lines = wrapped(&line, "  ") + "\n";
    if let Some(conflict) = &near.conflict {
        let _ = writeln!(lines, "{}", wrapped(&conflict.newer, "    here:  "));
        let _ = writeln!(lines, "{}", wrapped(&conflict.older, "    there: "));
    }
    if fold == 0 {
        return lines;
    }
    if let Some(diff) = &near.diff {
        lines.push_str("    [-only there-] {+only here+}\n");
        lines.push_str(&fold_lines(&diff_text(diff), "    ", fold));
    } else if let Some(text) = &near.text {
        lines.push_str(&fold_lines(text, "    ", fold));
    }
    lines
}

fn diff_text(diff: &[ShownPart]) -> String {
    let marked = diff.iter().map(|part| {
        let words = part.text.trim();
        let (before, after) = part.text.split_once(words).unwrap_or_default();
        match part.side {
            _ if words.is_empty() => part.text.clone(),
            "older" => format!("{before}[-{words}-]{after}"),
            "newer" => format!("{before}{{+{words}+}}{after}"),
            _ => part.text.clone(),
        }
    });
    marked.collect()
}

fn fold_lines(text: &str, indent: &str, fold: usize) -> String {
    let text = wrapped(text, indent);
    let lines: Vec<&str> = text.lines().collect();
    let line_count = fold.min(lines.len());
    let mut folded_text = String::new();
    for line in lines.iter().take(line_count) {
        let _ = writeln!(folded_text, "{line}");
    }
    if line_count < lines.len() {
        let _ = writeln!(
            folded_text,
            "{indent}… {} more lines: n",
            lines.len() - line_count
        );
    }
    folded_text
}

/// Text wrapped to the width of the terminal, with an indent for every line.
fn wrapped(text: &str, indent: &str) -> String {
    let rest = " ".repeat(indent.len());
    let width = Screen::of_errors().width.unwrap_or(80);
    let lines = text.lines().enumerate().map(|(number, line)| {
        let first = if number == 0 { indent } else { &rest };
        let options = textwrap::Options::new(width)
            .initial_indent(first)
            .subsequent_indent(&rest);
        textwrap::fill(line, options)
    });
    lines.collect::<Vec<_>>().join("\n")
}
