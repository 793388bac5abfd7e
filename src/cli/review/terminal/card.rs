//! The card of a memory, as lines.

use ack_desk::card::CardText;
use ack_desk::evidence::NextSession;
use ack_desk::nearest::{Conflict, DiffPart, DiffSide, Near};
use ack_service::context::preview::PreviewChange;
use ratatui_core::text::{Line, Span};

use super::lines::{
    BAD, BOLD, DIM, GOOD, KEY, NAME, PLAIN, WARN, block_lines, both_ends, heading, text_lines,
    wrapped,
};
use super::walk::{ShownCard, ShownNear};

/// How many lines of a narrative, or of a comparison, a card shows until it is unfolded.
const FOLDED_LINES: usize = 12;
const ALL_LINES: usize = 100_000;

#[derive(Debug, Clone, Copy, Default)]
pub struct Fold {
    pub is_whole: bool,
    /// Whether the text of the marked neighbour is shown, above the memory's own.
    pub is_near_open: bool,
    /// Whether the screen is low: then the neighbours are one line.
    pub is_low: bool,
}

/// The lines of a card: what should be seen first, what it says, and what is known about it.
#[derive(Debug, Default)]
pub struct CardLines {
    head: Vec<Line<'static>>,
    body: Vec<Line<'static>>,
    foot: Vec<Line<'static>>,
}

impl CardLines {
    pub fn of(shown: &ShownCard, columns: usize, fold: Fold) -> Self {
        let most = if fold.is_whole { ALL_LINES } else { FOLDED_LINES };
        let text = CardText::of(&shown.candidate.curated, most, columns.max(1));
        let mut lines = Self { head: head(shown, &text, columns), ..Self::default() };
        lines.add_text(&text, columns);
        lines.add_details(shown, columns);
        lines.add_known(shown, columns);
        match &shown.found {
            None => lines.foot.push(Line::styled("looking for approved ones …", DIM)),
            Some(found) => lines.add_near(shown, &found.near, columns, fold),
        }
        if let Some(next) = shown.found.as_ref().and_then(|found| found.next.as_ref()) {
            lines.add_next(next, columns, fold);
        }
        lines
    }

    /// As many lines as fit: of the text its beginning, then what is known.
    pub fn within(mut self, rows: usize) -> Vec<Line<'static>> {
        self.head.append(&mut self.body);
        if self.head.len() + self.foot.len() > rows {
            self.foot.truncate(rows / 2);
            let room = rows - self.foot.len();
            if self.head.len() > room {
                self.head.truncate(room.saturating_sub(1));
                self.head.push(Line::styled("… more: n", DIM));
            }
        }
        self.head.append(&mut self.foot);
        self.head
    }

    pub fn all(mut self, fold: Fold) -> Vec<Line<'static>> {
        let (first, second) = if fold.is_near_open {
            (&mut self.foot, &mut self.body)
        } else {
            (&mut self.body, &mut self.foot)
        };
        self.head.append(first);
        self.head.append(second);
        self.head
    }

    fn add_text(&mut self, text: &CardText, columns: usize) {
        for blocks in [&text.facts, &text.narrative] {
            if !blocks.is_empty() {
                self.body.push(Line::default());
                self.body.extend(block_lines(blocks, columns));
            }
        }
        if text.more_lines > 0 {
            let more = format!("… {} more lines ", text.more_lines);
            self.body.push(Line::from(vec![Span::styled(more, DIM), Span::styled("n", KEY)]));
        }
    }

    fn add_details(&mut self, shown: &ShownCard, columns: usize) {
        let card = &shown.card;
        self.body.push(Line::default());
        let session = card.session_title.as_ref().or(card.session.as_ref());
        let details = [
            ("tags", card.concepts.join(", ")),
            ("files", card.files.join(", ")),
            ("session", session.cloned().unwrap_or_default()),
        ];
        let details = details.iter().filter(|(_, value)| !value.is_empty());
        let details = details.map(|(name, value)| format!("{name}: {value}"));
        for line in details.chain(card.served.iter().cloned()) {
            self.body.extend(wrapped(&line, columns, "", DIM));
        }
    }

    /// What the desk knows about other memories and past prompts, and what the working tree says.
    fn add_known(&mut self, shown: &ShownCard, columns: usize) {
        self.foot.push(Line::default());
        if let Some(alike) = &shown.alike {
            self.foot.extend(wrapped(alike, columns, "= ", NAME));
        }
        let evidence = shown.found.iter().flat_map(|found| &found.evidence);
        for line in shown.known.iter().chain(evidence) {
            self.foot.extend(wrapped(line, columns, "  ", PLAIN));
        }
        if self.foot.len() > 1 {
            self.foot.push(Line::default());
        }
    }

    fn add_near(&mut self, shown: &ShownCard, near: &[ShownNear], columns: usize, fold: Fold) {
        let Some(marked) = near.get(shown.marked) else {
            return;
        };
        if fold.is_low && !fold.is_near_open {
            let (label, title) = (marked.near.label, &marked.near.title);
            let line = format!("nearest approved: {label} {title}");
            self.foot.push(both_ends(&line, PLAIN, "> unfolds", columns));
            return;
        }
        let hint = if fold.is_near_open { "> folds" } else { "> unfolds" };
        self.foot.push(heading("Nearest approved", hint, columns));
        for (position, ShownNear { short_id, near }) in near.iter().enumerate() {
            let is_marked = position == shown.marked;
            let (lead, style) = if is_marked { ("▸ ", BOLD) } else { ("  ", PLAIN) };
            let held = if near.held { " (not saved yet)" } else { "" };
            let title = format!("{}  {short_id}  {}{held}", near.label, near.title);
            self.foot.extend(wrapped(&title, columns, lead, style));
            if let Some(conflict) = &near.conflict {
                let Conflict { newer, older } = conflict;
                self.foot.extend(wrapped(newer, columns, "    here:  ", WARN));
                self.foot.extend(wrapped(older, columns, "    there: ", WARN));
            }
            if is_marked {
                for action in &shown.near_keys {
                    let line = format!("{}  {}", action.key, action.preview.label);
                    self.foot.extend(wrapped(&line, columns, "    ", KEY));
                }
                if fold.is_near_open {
                    self.foot.extend(comparison(near, columns));
                }
            }
        }
    }

    /// What a session starts with, without and with the memory.
    fn add_next(&mut self, next: &NextSession, columns: usize, fold: Fold) {
        if !fold.is_low {
            let title = format!("Next session in {}", next.project);
            self.foot.push(heading(&title, "", columns));
            for line in &next.lines {
                let (mark, style) = match line.change {
                    PreviewChange::Enters => ("+ ", GOOD),
                    PreviewChange::Stays if !fold.is_whole => continue,
                    PreviewChange::Stays => ("  ", DIM),
                    PreviewChange::Leaves | PreviewChange::Replaced => ("− ", BAD),
                };
                let title = super::lines::shortened(&line.title, columns.saturating_sub(2));
                self.foot.extend(wrapped(&title, columns, mark, style));
            }
        }
        self.foot.extend(wrapped(&next.says, columns, "", DIM));
    }
}

/// What should be seen first: what it is, why to look twice, its title, and the decision.
fn head(shown: &ShownCard, text: &CardText, columns: usize) -> Vec<Line<'static>> {
    let mut lines = vec![both_ends(&shown.about(), DIM, &shown.short_id, columns)];
    for mark in &shown.card.marks {
        lines.extend(wrapped(mark, columns, "! ", WARN));
    }
    if shown.is_flagged {
        lines.extend(wrapped("flagged: never decided with others", columns, "⚑ ", WARN));
    }
    lines.extend(text_lines(&text.title, columns, BOLD));
    if let Some(decision) = shown.decision {
        lines.extend(wrapped(&format!("{decision}; not saved yet"), columns, "✓ ", GOOD));
    }
    if shown.card.subtitle.is_some() {
        lines.extend(text_lines(&text.subtitle, columns, DIM));
    }
    lines
}

/// The marked neighbour's text: word by word where the two have much in common.
fn comparison(near: &Near, columns: usize) -> Vec<Line<'static>> {
    let diff = near.diff.as_ref();
    let diff = diff.map(|diff| format!("[-only there-] {{+only here+}}\n{}", diff_text(diff)));
    let text = diff.as_ref().or(near.text.as_ref());
    text.map_or_else(Vec::new, |text| wrapped(text, columns, "    ", PLAIN))
}

fn diff_text(diff: &[DiffPart]) -> String {
    let marked = diff.iter().map(|DiffPart { side, text }| {
        let words = text.trim();
        let (before, after) = text.split_once(words).unwrap_or_default();
        match side {
            DiffSide::Older if !words.is_empty() => format!("{before}[-{words}-]{after}"),
            DiffSide::Newer if !words.is_empty() => format!("{before}{{+{words}+}}{after}"),
            _ => text.clone(),
        }
    });
    marked.collect()
}
