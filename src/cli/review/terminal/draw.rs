//! Draws a walk on a screen of any size.

use ack_desk::queue::QueueKind;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use textwrap::core::display_width;

use super::card::{CardLines, Fold};
use super::lines::{
    BAD, BOLD, CHOSEN, DIM, GOOD, KEY, NAME, PLAIN, WARN, both_ends, heading, shortened, wrapped,
};
use super::walk::{Asked, Place, Walk, keys, suggestion};
use ack_desk::choice::REASONS;

/// From here on, the list and the card stand side by side.
const MIN_SIDES: u16 = 90;
/// Below, there is no room for empty rows and for the neighbours.
const MIN_ROWS: u16 = 24;
const LIST: u16 = 33;
const WIDE_LIST: u16 = 48;
/// Longer lines are hard to read.
const MAX_TEXT: u16 = 100;
const BAR: usize = 16;

/// Draws the whole screen.
pub fn draw(walk: &mut Walk<'_>, screen: &mut Buffer) {
    let area = screen.area;
    let foot = area.height.saturating_sub(2);
    let top = if area.height < MIN_ROWS { 1 } else { 2 };
    let body = Rect::new(
        1,
        top,
        area.width.saturating_sub(2),
        foot.saturating_sub(top),
    );
    put(screen, 0, 0, area.width, &head(walk, area.width.into()));
    match walk.place {
        _ if walk.shows_keys => draw_keys(walk, screen, body),
        Place::Plan => draw_plan(walk, screen, body),
        Place::Cards => draw_cards(walk, screen, body),
    }
    if let Some(Asked::Reason(_)) = walk.field.as_ref().map(|field| &field.asked) {
        draw_reasons(screen, body);
    }
    put(screen, 0, foot, area.width, &said(walk, area.width.into()));
    put(
        screen,
        0,
        foot + 1,
        area.width,
        &bottom(walk, area.width.into()),
    );
}

/// Puts a line somewhere, as far as it fits.
fn put(screen: &mut Buffer, x: u16, y: u16, columns: u16, line: &Line<'_>) {
    if x < screen.area.width && y < screen.area.height {
        screen.set_line(x, y, line, columns);
    }
}

fn put_all(screen: &mut Buffer, area: Rect, lines: &[Line<'_>]) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        put(screen, area.x, y, area.width, line);
    }
}

/// The places, and how far one is.
fn head(walk: &Walk<'_>, columns: usize) -> Line<'static> {
    let progress = walk.progress();
    let is_stale = walk.view.queue == QueueKind::Stale;
    let cards = format!(" Cards {} ", if is_stale { 0 } else { progress.left() });
    let mut spans = vec![Span::styled(" ack-memory ", BOLD)];
    let is_cards = walk.place == Place::Cards;
    let mut tabs = vec![
        (" Plan ".to_owned(), !is_cards),
        (cards, is_cards && !is_stale),
    ];
    if is_stale {
        tabs.retain(|(_, is_open)| *is_open);
        tabs.push((format!(" Out of date? {} ", progress.left()), true));
    }
    let tabs = tabs.into_iter();
    spans
        .extend(tabs.map(|(name, is_open)| Span::styled(name, if is_open { CHOSEN } else { DIM })));
    let taken: usize = spans.iter().map(|span| display_width(&span.content)).sum();
    let decided = format!("{} of {} decided ", progress.decided, progress.total);
    let filled = (progress.decided * BAR).div_ceil(progress.total.max(1));
    let room = columns.saturating_sub(taken + display_width(&decided));
    if room == 0 {
        return Line::from(spans);
    }
    let bar = if room > BAR + 2 { BAR } else { 0 };
    spans.push(Span::raw(" ".repeat(room - bar - usize::from(bar > 0))));
    spans.push(Span::styled(decided, BOLD));
    if bar > 0 {
        spans.push(Span::styled("▄".repeat(filled), GOOD));
        spans.push(Span::styled("▄".repeat(BAR - filled), DIM));
    }
    Line::from(spans)
}

/// The rule above the keys, with what happened.
fn said(walk: &Walk<'_>, columns: usize) -> Line<'static> {
    let style = if walk.said.is_problem { WARN } else { BOLD };
    let text = shortened(&walk.said.text, columns.saturating_sub(6));
    if text.is_empty() {
        return Line::styled("─".repeat(columns), DIM);
    }
    let rest = columns.saturating_sub(display_width(&text) + 5);
    Line::from(vec![
        Span::styled("── ", DIM),
        Span::styled(text, style),
        Span::styled(format!(" {}", "─".repeat(rest + 1)), DIM),
    ])
}

/// The open question, or the keys.
fn bottom(walk: &Walk<'_>, columns: usize) -> Line<'static> {
    if let Some(field) = &walk.field {
        let question = field.question(walk.desk.lock().unwritten());
        let room = columns.saturating_sub(display_width(&question) + 3);
        // Its end is where one types.
        let hidden = display_width(&field.text).saturating_sub(room);
        let typed: String = field.text.chars().skip(hidden).collect();
        return Line::from(vec![
            Span::styled(format!(" {question}"), KEY),
            Span::raw(typed),
            Span::styled(" ", CHOSEN),
        ]);
    }
    let hints = if walk.shows_keys {
        vec![("↑ ↓", "scroll".to_owned()), ("Esc", "close".to_owned())]
    } else {
        match walk.place {
            Place::Plan => plan_hints(walk),
            Place::Cards => card_hints(walk),
        }
    };
    let mut spans = Vec::new();
    let mut room = columns.saturating_sub(4);
    for (key, what) in hints {
        let taken = display_width(key) + display_width(&what) + 3;
        let Some(left) = room.checked_sub(taken) else {
            break;
        };
        room = left;
        spans.push(Span::styled(format!(" {key}"), KEY));
        spans.push(Span::styled(format!(" {what} "), PLAIN));
    }
    spans.push(Span::styled(" ?", KEY));
    Line::from(spans)
}

fn plan_hints(walk: &Walk<'_>) -> Vec<(&'static str, String)> {
    let mut hints = Vec::new();
    if let Some(heap) = walk.plan.current() {
        let (key, what) = suggestion(heap);
        let why = heap.reason.filter(|_| key == "R");
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let count = heap.waiting;
        let what = if matches!(key, "A" | "R") {
            format!("{what} {count}{why}")
        } else {
            what.to_owned()
        };
        hints.push((key, what));
        if heap.name != "flagged" && heap.done.is_none() {
            let bulk = [
                ("A", format!("approve {count}")),
                ("R", format!("reject {count}")),
            ];
            hints.extend(bulk.into_iter().filter(|(other, _)| *other != key));
            hints.push(("h", "snooze a week".to_owned()));
        }
    }
    hints.extend([("↵", "one by one"), ("n", "others")].map(|(key, what)| (key, what.to_owned())));
    hints.dedup_by_key(|(key, _)| *key);
    hints.extend(ends(walk));
    hints
}

fn card_hints(walk: &Walk<'_>) -> Vec<(&'static str, String)> {
    if let Some((count, held_back)) = walk.selection() {
        let held_back = Some(held_back).filter(|held| !held.is_empty());
        let held_back = held_back
            .map(|held| format!(" · {held}"))
            .unwrap_or_default();
        return vec![
            ("A", format!("approve {count}{held_back}")),
            ("R", format!("reject {}", walk.selected.len())),
            ("x", "select".to_owned()),
            ("Esc", "clear".to_owned()),
        ];
    }
    let Some(shown) = &walk.shown else {
        return ends(walk);
    };
    let label = |label: &str| {
        label.chars().next().map_or_else(String::new, |first| {
            first.to_lowercase().chain(label.chars().skip(1)).collect()
        })
    };
    let mut hints = vec![
        ("a", label(&shown.approve)),
        ("r 1-9", label(&shown.reject)),
        ("e", "edit".to_owned()),
    ];
    if shown.alike.is_some() {
        hints.push(("g", "keep this one".to_owned()));
    }
    hints.extend(
        [("h", "snooze"), ("s", "skip"), ("X", "all")].map(|(key, what)| (key, what.to_owned())),
    );
    hints.extend(ends(walk));
    hints
}

/// How to take back, to save and to leave.
fn ends(walk: &Walk<'_>) -> Vec<(&'static str, String)> {
    let save = match walk.desk.lock().unwritten() {
        0 => None,
        count => Some(("c", format!("save {count}"))),
    };
    let undo = save.as_ref().map(|_| ("u", "undo".to_owned()));
    let others = [("/", "filter"), ("q", "leave")].map(|(key, what)| (key, what.to_owned()));
    undo.into_iter().chain(save).chain(others).collect()
}

fn draw_cards(walk: &mut Walk<'_>, screen: &mut Buffer, body: Rect) {
    if screen.area.width < MIN_SIDES {
        if walk.shows_list {
            draw_list(walk, screen, body);
        } else {
            draw_card(walk, screen, body);
        }
        return;
    }
    let list = if screen.area.width < 130 {
        LIST
    } else {
        WIDE_LIST
    };
    draw_list(
        walk,
        screen,
        Rect::new(body.x, body.y, list - 1, body.height),
    );
    for y in 1..body.bottom() {
        put(screen, list + 1, y, 1, &Line::styled("│", DIM));
    }
    let left = list + 3;
    let columns = screen.area.width.saturating_sub(left + 1).min(MAX_TEXT);
    draw_card(walk, screen, Rect::new(left, body.y, columns, body.height));
}

/// What was decided, where one is, and what comes.
fn draw_list(walk: &Walk<'_>, screen: &mut Buffer, area: Rect) {
    let columns = usize::from(area.width);
    let number = walk.shown.as_ref().map(|shown| shown.number);
    let at = walk.list.iter().position(|listed| Some(*listed) == number);
    let name = match walk.view.filter.as_str() {
        "" => "All",
        filter => filter,
    };
    let place = at.map_or_else(String::new, |at| {
        format!("{} of {}", at + 1, walk.list.len())
    });
    put(
        screen,
        area.x,
        area.y,
        area.width,
        &both_ends(name, BOLD, &place, DIM, columns),
    );
    let rows = usize::from(area.height.saturating_sub(1));
    let last_start = walk.list.len().saturating_sub(rows);
    let start = at
        .unwrap_or_default()
        .saturating_sub(rows / 2)
        .min(last_start);
    let desk = walk.desk.lock();
    for (y, listed) in (area.y + 1..area.bottom()).zip(walk.list.iter().skip(start)) {
        let Some(item) = desk.items().get(*listed) else {
            continue;
        };
        let done = desk.done(*listed);
        let (mark, style) = match done {
            _ if walk.selected.contains(listed) => ("*", NAME),
            Some(done) => mark(done),
            None if item.is_flagged() => ("⚑", WARN),
            None => ("·", DIM),
        };
        let title = shortened(&item.candidate.memory().title, columns.saturating_sub(2));
        let is_here = Some(*listed) == number;
        let text = if is_here {
            CHOSEN
        } else if done.is_some() {
            DIM
        } else {
            PLAIN
        };
        let pad = columns.saturating_sub(2 + display_width(&title));
        let line = Line::from(vec![
            Span::styled(format!("{mark} "), if is_here { CHOSEN } else { style }),
            Span::styled(title, text),
            Span::styled(" ".repeat(if is_here { pad } else { 0 }), text),
        ]);
        put(screen, area.x, y, area.width, &line);
    }
}

/// The mark of a decision, which is given as a participle.
fn mark(done: &str) -> (&'static str, Style) {
    match done {
        "rejected" => ("✕", BAD),
        "put off" => ("z", NAME),
        "merged" | "marked as a duplicate" | "replaced" => ("=", NAME),
        _ => ("✓", GOOD),
    }
}

fn draw_card(walk: &mut Walk<'_>, screen: &mut Buffer, area: Rect) {
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    let Some(shown) = &walk.shown else {
        put_all(screen, area, &nothing(walk, columns));
        return;
    };
    let fold = Fold {
        is_whole: walk.is_whole,
        is_near_open: walk.is_near_open,
        is_low: screen.area.height < MIN_ROWS,
    };
    let lines = CardLines::of(shown, columns, fold);
    if !walk.is_whole && !walk.is_near_open && walk.scroll == 0 {
        put_all(screen, area, &lines.within(rows));
        return;
    }
    let lines = lines.all();
    // The last lines stay on the screen.
    walk.scroll = walk.scroll.min(lines.len().saturating_sub(rows));
    put_all(screen, area, lines.get(walk.scroll..).unwrap_or_default());
}

/// What stands in place of a card.
fn nothing(walk: &Walk<'_>, columns: usize) -> Vec<Line<'static>> {
    let unwritten = walk.desk.lock().unwritten();
    let what = match walk.view.queue {
        _ if !walk.view.filter.is_empty() => "No matches. Esc takes the filter away.",
        QueueKind::Waiting => "Nothing unreviewed.",
        QueueKind::Stale => "No approved memory is known to be out of date.",
    };
    let mut lines = wrapped(what, columns, "", BOLD);
    if unwritten > 0 {
        let decisions = ack_desk::choice::count_text(unwritten, "decision", "decisions");
        lines.extend(wrapped(
            &format!("c saves {decisions}, u takes the last one back"),
            columns,
            "",
            PLAIN,
        ));
    }
    lines
}

fn draw_plan(walk: &Walk<'_>, screen: &mut Buffer, body: Rect) {
    let is_wide = screen.area.width >= MIN_SIDES;
    let total: usize = walk.plan.heaps.iter().map(|heap| heap.total).sum();
    let title = format!(
        "{total} unreviewed memories, in {} heaps",
        walk.plan.heaps.len()
    );
    put(
        screen,
        body.x,
        body.y,
        body.width,
        &Line::styled(title, BOLD),
    );
    let below = Rect::new(
        body.x,
        body.y + 2,
        body.width,
        body.height.saturating_sub(2),
    );
    if is_wide {
        let left = below.width * 3 / 5;
        draw_heaps(
            walk,
            screen,
            Rect {
                width: left,
                ..below
            },
        );
        let right = Rect::new(
            below.x + left + 3,
            below.y,
            below.width - left - 3,
            below.height,
        );
        put_all(
            screen,
            right,
            &sample(walk, right.width.min(MAX_TEXT).into()),
        );
        return;
    }
    let heaps = u16::try_from(walk.plan.heaps.len()).unwrap_or(u16::MAX);
    let height = heaps.min((below.height / 2).max(4)).min(below.height);
    draw_heaps(walk, screen, Rect { height, ..below });
    let rest = Rect::new(
        below.x,
        below.y + height + 1,
        below.width,
        below.height.saturating_sub(height + 1),
    );
    put_all(screen, rest, &sample(walk, rest.width.into()));
}

/// The heaps, with two lines each if there is room.
fn draw_heaps(walk: &Walk<'_>, screen: &mut Buffer, area: Rect) {
    let columns = usize::from(area.width);
    let rows = usize::from(area.height);
    let each = if walk.plan.heaps.len() * 2 <= rows {
        2
    } else {
        1
    };
    let fitting = rows / each;
    let start = (walk.plan.at + 1).saturating_sub(fitting);
    let mut lines = Vec::new();
    for (at, heap) in walk.plan.heaps.iter().enumerate().skip(start).take(fitting) {
        let (key, what) = suggestion(heap);
        let is_here = at == walk.plan.at;
        let style = match (is_here, heap.done) {
            (true, _) => CHOSEN,
            (false, Some(_)) => DIM,
            (false, None) => BOLD,
        };
        let mark = if heap.done.is_some() { "✓" } else { " " };
        let count = if heap.done.is_some() {
            heap.total
        } else {
            heap.waiting
        };
        let left = format!("{mark}{count:>5}  {}", heap.title);
        // Its first characters are spaces, which a cut text has not.
        let pad = left.len() - left.trim_start().len();
        let mut line = both_ends(
            left.trim_start(),
            style,
            &format!("{what} {key}"),
            style,
            columns - pad.min(columns),
        );
        line.spans.insert(0, Span::styled(" ".repeat(pad), style));
        if is_here {
            line = line.patch_style(CHOSEN);
        }
        lines.push(line);
        if each == 2 {
            let held_back = match heap.held_back {
                0 => String::new(),
                1 => " · 1 flagged one held back".to_owned(),
                many => format!(" · {many} flagged ones held back"),
            };
            let about = heap.done.unwrap_or(&heap.about);
            let about = shortened(&format!("{about}{held_back}"), columns.saturating_sub(8));
            lines.push(Line::from(vec![
                Span::raw("        "),
                Span::styled(about, DIM),
            ]));
        }
    }
    put_all(screen, area, &lines);
}

/// Some memories of the heap.
fn sample(walk: &Walk<'_>, columns: usize) -> Vec<Line<'static>> {
    let Some(heap) = walk.plan.current() else {
        return Vec::new();
    };
    let count = if heap.done.is_some() {
        heap.total
    } else {
        heap.waiting
    };
    let hint = format!("{} of {count}", heap.sample.len());
    let mut lines = vec![heading(
        &shortened(&heap.title, columns / 2),
        &hint,
        columns,
    )];
    for one in &heap.sample {
        lines.extend(wrapped(&shortened(&one.title, columns), columns, "", BOLD));
        let text = shortened(&one.text, columns);
        lines.extend(
            Some(text)
                .filter(|text| !text.is_empty())
                .map(|text| Line::styled(text, PLAIN)),
        );
        lines.push(Line::styled(shortened(&one.about, columns), DIM));
    }
    lines
}

/// The common reasons, above the question.
fn draw_reasons(screen: &mut Buffer, body: Rect) {
    let count = u16::try_from(REASONS.len()).unwrap_or_default();
    let top = body.bottom().saturating_sub(count + 1).max(body.y);
    let columns = usize::from(body.width);
    let reasons = (1..).zip(REASONS);
    let reasons = reasons.map(|(digit, reason): (u8, _)| {
        let pad = " ".repeat(columns.saturating_sub(reason.len() + 3));
        Line::from(vec![
            Span::styled(format!(" {digit} "), KEY),
            Span::raw(format!("{reason}{pad}")),
        ])
    });
    let lines: Vec<_> = std::iter::once(heading("Reject: why?", "", columns))
        .chain(reasons)
        .collect();
    put_all(
        screen,
        Rect::new(body.x, top, body.width, body.bottom() - top),
        &lines,
    );
}

fn draw_keys(walk: &mut Walk<'_>, screen: &mut Buffer, area: Rect) {
    let columns = usize::from(area.width);
    let lines: Vec<Line<'static>> = keys()
        .into_iter()
        .flat_map(|(key, what)| {
            let mut lines = wrapped(&what, columns, &format!("{key:10}"), PLAIN);
            if let Some(first) = lines.first_mut().and_then(|line| line.spans.first_mut()) {
                first.style = KEY;
            }
            lines
        })
        .collect();
    walk.scroll = walk
        .scroll
        .min(lines.len().saturating_sub(area.height.into()));
    put_all(screen, area, lines.get(walk.scroll..).unwrap_or_default());
}
