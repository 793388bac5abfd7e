//! Draws a walk on a screen of any size.

use ack_desk::choice::{DUPLICATE, REASONS, count_text};
use ack_desk::decide::Selection;
use ack_desk::heaps::{Heap, Sample};
use ack_desk::need::Answered;
use ack_desk::progress::Closing;
use ack_desk::queue::QueueKind;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Constraint::{Fill, Length};
use ratatui_core::layout::{Layout, Rect};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use textwrap::core::display_width;

use super::card::{CardLines, Fold};
use super::lines::{
    BAD, BOLD, CHOSEN, DIM, GOOD, KEY, NAME, PLAIN, WARN, both_ends, heading, shortened, wrapped,
};
use crate::cli::command::command;

use super::walk::{Asked, HEAP, KEYS, Place, Walk};

/// From here on, the list and the card stand side by side.
const MIN_SIDES: u16 = 90;
/// Below, there is no room for empty rows and for the neighbours.
const MIN_ROWS: u16 = 24;
const LIST: u16 = 33;
/// Longer lines are hard to read.
const MAX_TEXT: u16 = 100;
const BAR: usize = 16;
const NAME_WIDTH: usize = " ack-memory ".len();

pub fn draw(walk: &mut Walk<'_>, screen: &mut Buffer) {
    let area = screen.area;
    let (columns, foot) = (usize::from(area.width), area.height.saturating_sub(2));
    let top = if area.height < MIN_ROWS { 1 } else { 2 };
    let (width, height) = (area.width.saturating_sub(2), foot.saturating_sub(top));
    let body = Rect::new(1, top, width, height);
    put(screen, Rect { height: 1, ..area }, &[head(walk, columns)]);
    draw_body(walk, screen, body);
    put(screen, Rect { y: foot, ..area }, &[said(walk, columns), bottom(walk, columns)]);
}

/// Draws the plan, or the list and the card.
pub fn draw_body(walk: &mut Walk<'_>, screen: &mut Buffer, body: Rect) {
    match walk.place {
        _ if walk.shows_keys => {
            draw_from(walk, screen, body, &key_lines(KEYS.lines(), body.width));
        }
        Place::Plan => draw_plan(walk, screen, body),
        Place::Cards => draw_cards(walk, screen, body),
        Place::Closing => {
            let closing = walk.desk.lock().closing();
            let columns = body.width.min(MAX_TEXT).into();
            let answered = walk.answered.as_ref().and_then(Option::as_ref);
            put(screen, body, &closing_lines(&closing, answered, columns));
        }
    }
    if matches!(&walk.field, Some(field) if matches!(field.asked, Asked::Reason(_))) {
        let reasons = (1_u8..).zip(REASONS).map(|(digit, why)| format!("{digit:<10}{why}"));
        let reasons: Vec<String> = reasons.collect();
        let mut lines = vec![heading("Reject: why?", "", body.width.into())];
        lines.extend(key_lines(reasons.iter().map(String::as_str), body.width));
        let y = body.bottom().saturating_sub(10).max(body.y);
        let area = Rect { y, height: body.bottom() - y, ..body };
        // Lines keep what they do not set of the cells that they are put on.
        screen.set_style(area, Style::reset());
        put(screen, area, &lines);
    }
}

/// Puts lines into an area, as far as they fit.
fn put(screen: &mut Buffer, area: Rect, lines: &[Line<'_>]) {
    let area = area.intersection(screen.area);
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        screen.set_line(area.x, y, line, area.width);
    }
}

/// The lines from where one has scrolled to. The last ones stay on the screen.
fn draw_from(walk: &mut Walk<'_>, screen: &mut Buffer, area: Rect, lines: &[Line<'_>]) {
    walk.scroll = walk.scroll.min(lines.len().saturating_sub(area.height.into()));
    put(screen, area, lines.get(walk.scroll..).unwrap_or_default());
}

/// Lines of a key and what it does, as wide as the screen.
fn key_lines<'a>(lines: impl Iterator<Item = &'a str>, columns: u16) -> Vec<Line<'static>> {
    let lines = lines.flat_map(|line| {
        let end = line.char_indices().nth(10).map_or(line.len(), |(at, _)| at);
        let (key, what) = line.split_at_checked(end).unwrap_or((line, ""));
        let mut lines = wrapped(what, columns.into(), key, PLAIN);
        for line in &mut lines {
            line.push_span(" ".repeat(usize::from(columns).saturating_sub(line.width())));
        }
        if let Some(key) = lines.first_mut().and_then(|line| line.spans.first_mut()) {
            key.style = KEY;
        }
        lines
    });
    lines.collect()
}

fn head(walk: &Walk<'_>, columns: usize) -> Line<'static> {
    let desk = walk.desk.lock();
    let (progress, approved) = (desk.progress(), desk.approved());
    drop(desk);
    let is_shown = |queue| walk.place == Place::Cards && walk.view.queue == queue;
    let tabs = [
        (" Plan ".to_owned(), walk.place == Place::Plan),
        (format!(" Cards {} ", progress.left()), is_shown(QueueKind::Waiting)),
        (format!(" Approved {approved} "), is_shown(QueueKind::Approved)),
    ];
    let tabs = tabs.map(|(name, is_open)| Span::styled(name, if is_open { CHOSEN } else { DIM }));
    let mut line = Line::from(vec![Span::styled(" ack-memory ", BOLD)]);
    line.spans.extend(tabs);
    let mut decided = format!("{} ", progress.text);
    if line.width() + display_width(&decided) > columns {
        // Without the minutes; where that is not enough, without the name.
        decided = format!("{} of {} decided ", progress.decided, progress.total);
        let width = line.width() + display_width(&decided);
        if width > columns && width <= columns + NAME_WIDTH {
            line.spans.remove(0);
        }
    }
    let room = columns.saturating_sub(line.width() + display_width(&decided));
    let bar = if room > BAR + 2 { BAR } else { 0 };
    let filled = (progress.decided * bar).div_ceil(progress.total.max(1));
    if line.width() + display_width(&decided) <= columns {
        line.push_span(" ".repeat(room - bar));
        line.push_span(Span::styled(decided, BOLD));
        line.push_span(Span::styled("▄".repeat(filled), GOOD));
        line.push_span(Span::styled("▄".repeat(bar - filled), DIM));
    }
    line
}

/// The rule above the keys, with what happened.
fn said(walk: &Walk<'_>, columns: usize) -> Line<'static> {
    let style = if walk.said.is_problem { WARN } else { BOLD };
    let text = shortened(&walk.said.text, columns.saturating_sub(6));
    let (before, gap) = if text.is_empty() { ("", "") } else { ("── ", " ") };
    let mut line = Line::from(vec![Span::styled(before, DIM), Span::styled(text, style)]);
    let rest = "─".repeat(columns.saturating_sub(line.width() + gap.len()));
    line.push_span(Span::styled(format!("{gap}{rest}"), DIM));
    line
}

/// The open question, or the keys.
fn bottom(walk: &Walk<'_>, columns: usize) -> Line<'static> {
    if let Some(field) = &walk.field {
        let question = format!(" {}", field.question(walk.desk.lock().unwritten()));
        let room = columns.saturating_sub(display_width(&question) + 2);
        // Its end is where one types.
        let hidden = display_width(&field.text).saturating_sub(room);
        let typed: String = field.text.chars().skip(hidden).collect();
        let cursor = Span::styled(" ", CHOSEN);
        return Line::from(vec![Span::styled(question, KEY), Span::raw(typed), cursor]);
    }
    let mut line = Line::default();
    for hint in hints(walk) {
        let (key, what) = hint.split_once(' ').unwrap_or((&hint, ""));
        if line.width() + display_width(&hint) + 5 > columns {
            continue;
        }
        line.push_span(Span::styled(format!(" {key}"), KEY));
        line.push_span(format!(" {what} "));
    }
    line.push_span(Span::styled(" ?", KEY));
    line
}

/// What keys do here: a key, a space, and what it does.
pub fn hints(walk: &Walk<'_>) -> Vec<String> {
    let mut hints = match (walk.plan.current(), &walk.shown) {
        _ if walk.shows_keys => return vec!["↑↓ scroll".to_owned(), "Esc close".to_owned()],
        (Some(heap), _) if walk.place == Place::Plan => heap_hints(heap),
        (_, Some(_)) if !walk.selected.is_empty() => return walk.selection_hints(),
        (_, Some(shown)) => shown.hints(),
        _ if walk.place == Place::Closing => ["↵ go on", "l approved"].map(str::to_owned).to_vec(),
        _ => Vec::new(),
    };
    // A narrow screen shows the first ones.
    let unsaved = walk.desk.lock().unwritten();
    let mut always = vec!["q leave".to_owned(), "/ filter".to_owned()];
    if unsaved > 0 {
        if !hints.iter().any(|hint| hint == "u undo") {
            always.insert(0, "u undo".to_owned());
        }
        always.insert(0, format!("c save {unsaved}"));
    }
    let at = hints.len().min(2);
    hints.splice(at..at, always);
    hints
}

/// The suggestion first.
fn heap_hints(heap: &Heap) -> Vec<String> {
    let mut hints = Vec::new();
    if heap.name != "flagged" && heap.done.is_none() {
        let why = heap.reason.map_or_else(String::new, |why| format!(": {why}"));
        let count = heap.waiting;
        hints.push(format!("A approve {count}"));
        hints.push(format!("R reject {count}{why}"));
        hints.push("h snooze a week".to_owned());
    }
    hints.extend(heap.split.map(|what| format!("→ {what}")));
    hints.extend(["Enter one by one", "n others"].map(str::to_owned));
    if !hints.iter().any(|hint| hint.starts_with(heap.key)) {
        hints.push(format!("{} {}", heap.key, heap.does));
    }
    hints.sort_by_key(|hint| !hint.starts_with(heap.key));
    hints
}

fn draw_cards(walk: &mut Walk<'_>, screen: &mut Buffer, body: Rect) {
    if screen.area.width < MIN_SIDES {
        if walk.shows_list {
            return draw_list(walk, screen, body);
        }
        let filter = u16::from(!walk.view.filter.is_empty());
        let [place, card] = Layout::vertical([Length(filter), Fill(1)]).areas(body);
        put(screen, place, &[list_head(walk, place.width.into())]);
        return draw_card(walk, screen, card);
    }
    let list = LIST.max(screen.area.width / 4);
    let width = list - 1;
    draw_list(walk, screen, Rect { width, ..body });
    let rule = vec![Line::styled("│", DIM); body.bottom().into()];
    put(screen, Rect::new(list + 1, 1, 1, body.bottom() - 1), &rule);
    let (x, width) = (list + 3, screen.area.width.saturating_sub(list + 4));
    let width = width.min(MAX_TEXT);
    draw_card(walk, screen, Rect { x, width, ..body });
}

/// The filter, and how many fit.
fn list_head(walk: &Walk<'_>, columns: usize) -> Line<'static> {
    let mut heaps = walk.plan.shown.heaps.iter();
    let heap = heaps.find(|heap| walk.view.filter == format!("{HEAP}{}", heap.name));
    let name = match walk.view.filter.as_str() {
        "" => "All",
        filter => heap.map_or(filter, |heap| &heap.title),
    };
    both_ends(name, BOLD, &walk.position(), columns)
}

/// What was decided, where one is, and what comes.
fn draw_list(walk: &Walk<'_>, screen: &mut Buffer, area: Rect) {
    let columns = usize::from(area.width);
    let mut lines = vec![list_head(walk, columns)];
    let number = walk.number();
    let mut list = walk.list.clone();
    list.retain(|listed| !walk.folded.contains(listed) || Some(*listed) == number);
    let at = list.iter().position(|listed| Some(*listed) == number);
    let rows = usize::from(area.height.saturating_sub(1));
    let start = at.unwrap_or_default().saturating_sub(rows / 2);
    let start = start.min(list.len().saturating_sub(rows));
    let desk = walk.desk.lock();
    for listed in list.into_iter().skip(start).take(rows) {
        let Some(item) = desk.items().get(listed) else {
            continue;
        };
        let missed = desk.missed_of(&[listed]).filter(|missed| *missed > 0);
        let need = missed.map_or_else(|| "·".to_owned(), |missed| format!("{missed}×"));
        let (mark, style) = match desk.done(listed) {
            _ if walk.selected.contains(&listed) => ("*", NAME),
            Some(done) => mark(done),
            None if item.is_held_back() => ("⚑", WARN),
            None => (need.as_str(), PLAIN),
        };
        let title = format!("{mark:<2} {}", item.memory().title);
        let alike = desk.alike(listed).map_or_else(String::new, |count| format!("{count} alike"));
        let line = both_ends(&title, PLAIN, &alike, columns);
        lines.push(line.patch_style(if Some(listed) == number { CHOSEN } else { style }));
    }
    put(screen, area, &lines);
}

/// The mark of a decision, which is given as a participle.
fn mark(done: &str) -> (&'static str, Style) {
    match done {
        "rejected" => ("✕", BAD),
        "snoozed" => ("z", NAME),
        "merged" | DUPLICATE | "replaced" => ("=", NAME),
        _ => ("✓", GOOD),
    }
}

fn draw_card(walk: &mut Walk<'_>, screen: &mut Buffer, area: Rect) {
    let columns = usize::from(area.width);
    if let Some(selection) = &walk.selection {
        let Selection { said, sampled, sample, .. } = selection;
        let mut lines = wrapped(said, columns, "", BOLD);
        lines.extend(sample_lines(sampled, sample, columns));
        return put(screen, area, &lines);
    }
    let Some(shown) = &walk.shown else {
        let what = match walk.view.queue {
            _ if !walk.list.is_empty() => "All of it is decided. Esc goes back.",
            _ if !walk.view.filter.is_empty() => "No matches. Esc takes the filter away.",
            QueueKind::Waiting => "Nothing unreviewed.",
            QueueKind::Approved if walk.desk.lock().has_approved => "Nothing is approved.",
            QueueKind::Approved => "The approved memories are being read …",
        };
        return put(screen, area, &wrapped(what, columns, "", BOLD));
    };
    let fold = Fold { is_low: screen.area.height < MIN_ROWS, ..walk.fold };
    let lines = CardLines::of(shown, columns, fold);
    if fold.is_whole || fold.is_near_open || walk.scroll > 0 {
        draw_from(walk, screen, area, &lines.all(fold));
    } else {
        put(screen, area, &lines.within(area.height.into()));
    }
}

fn draw_plan(walk: &Walk<'_>, screen: &mut Buffer, body: Rect) {
    let plan = &walk.plan.shown;
    put(screen, body, &[both_ends(&plan.title, BOLD, &plan.left, body.width.into())]);
    let [_, below] = Layout::vertical([Length(2), Fill(1)]).areas(body);
    let [list, beside] = if screen.area.width >= MIN_SIDES {
        Layout::horizontal([Length(below.width * 3 / 5), Fill(1)]).spacing(3).areas(below)
    } else {
        let wanted = u16::try_from(plan.heaps.len()).unwrap_or(u16::MAX);
        let height = wanted.min((below.height / 2).max(4));
        Layout::vertical([Length(height), Fill(1)]).spacing(1).areas(below)
    };
    draw_heaps(walk, screen, list);
    if let Some(heap) = walk.plan.current() {
        let columns = beside.width.min(MAX_TEXT).into();
        let Heap { title, sampled, sample, .. } = heap;
        let mut lines = vec![heading(title, "", columns)];
        lines.extend(sample_lines(sampled, sample, columns));
        put(screen, beside, &lines);
    }
}

/// The heaps, with two lines each if there is room.
fn draw_heaps(walk: &Walk<'_>, screen: &mut Buffer, area: Rect) {
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    let each = 1 + usize::from(walk.plan.shown.heaps.len() * 2 <= rows);
    let start = (walk.plan.at + 1).saturating_sub(rows / each);
    let mut lines = Vec::new();
    for (at, heap) in walk.plan.shown.heaps.iter().enumerate().skip(start) {
        let (mark, count, style) = match heap.done {
            Some(done) => (mark(done).0, heap.total, DIM),
            None => (" ", heap.waiting, BOLD),
        };
        let decided = heap.total - heap.waiting;
        let title = match heap.done {
            Some(done) if each == 1 => format!("{} · {done}", heap.title),
            None if decided > 0 => format!("{} · {decided} decided", heap.title),
            _ => heap.title.clone(),
        };
        let style = if at == walk.plan.at { CHOSEN } else { style };
        let title = shortened(&title, columns.saturating_sub(28));
        let mut line = Line::styled(format!("{mark}{count:>5}  {title}"), style);
        let end = format!("{} {}", heap.does, heap.key);
        let gap = columns.saturating_sub(line.width() + display_width(&end));
        line.push_span(format!("{}{end}", " ".repeat(gap)));
        lines.push(line);
        if each == 2 {
            let missed = match heap.missed {
                None => String::new(),
                Some(0) => "not missed once · ".to_owned(),
                Some(count) => format!("missed {} · ", count_text(count, "time", "times")),
            };
            let about = format!("{missed}{}", heap.about);
            let about = shortened(&about, columns.saturating_sub(8));
            lines.extend(wrapped(&about, columns, "        ", DIM));
        }
    }
    put(screen, area, &lines);
}

/// Some memories of a heap, or of what is selected.
fn sample_lines(sampled: &str, sample: &[Sample], columns: usize) -> Vec<Line<'static>> {
    let mut lines = wrapped(sampled, columns, "", DIM);
    for one in sample {
        for (text, style) in [(&one.title, BOLD), (&one.text, PLAIN), (&one.about, DIM)] {
            lines.extend(wrapped(&shortened(text, columns), columns, "", style));
        }
    }
    lines
}

/// What agents know since the review began, and how to go on.
fn closing_lines(
    closing: &Closing,
    answered: Option<&Answered>,
    columns: usize,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled("What your agents know since today", BOLD)];
    lines.extend(wrapped(&closing.text, columns, "", PLAIN));
    if let Some(answered) = answered {
        let Answered { prompts, before, after } = answered;
        let prompts = count_text(*prompts, "prompt", "prompts");
        let before = before.map(|before| format!("; before this review: {before}"));
        let before = before.unwrap_or_default();
        let text =
            format!("Your last {prompts}, asked again: {after} find an approved memory{before}.");
        lines.extend(wrapped(&text, columns, "", PLAIN));
    }
    for project in &closing.projects {
        lines.push(Line::default());
        lines.push(heading(&project.project, &format!("+{}", project.count), columns));
        for lesson in &project.lessons {
            let lesson = shortened(lesson, columns.saturating_sub(2));
            lines.extend(wrapped(&lesson, columns, "+ ", GOOD));
        }
    }
    lines.push(Line::default());
    let saved = closing.saved.iter();
    let saved: Vec<String> = saved.map(|saved| format!("{} {}", saved.count, saved.done)).collect();
    for line in [
        saved.join(" · "),
        format!("{} shows what a session gets", command("context --preview")),
        format!("{} takes back what was saved last", command("undo")),
        closing.unchanged.to_owned(),
    ] {
        lines.extend(wrapped(&line, columns, "", DIM));
    }
    lines
}
