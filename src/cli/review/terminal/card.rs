//! The card of a memory, as lines.

use ack_desk::nearest::{Near, ShownPart};
use ratatui_core::text::{Line, Span};

use super::lines::{BOLD, DIM, GOOD, KEY, NAME, PLAIN, WARN, both_ends, heading, wrapped};
use super::walk::{ShownCard, ShownNear};

/// How many lines of a narrative, or of a comparison, a card shows until it is unfolded.
const FOLDED_LINES: usize = 12;

/// How much of a card is shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fold {
    pub is_whole: bool,
    /// Whether the text of the marked neighbour is shown.
    pub is_near_open: bool,
    /// Whether the screen is low: then the neighbours are one line.
    pub is_low: bool,
}

/// The lines of a card: what it says, and what is known about it.
#[derive(Debug, Default)]
pub struct CardLines {
    pub body: Vec<Line<'static>>,
    pub foot: Vec<Line<'static>>,
}

impl CardLines {
    pub fn of(shown: &ShownCard, columns: usize, fold: Fold) -> Self {
        let mut lines = Self {
            body: head(shown, columns),
            foot: Vec::new(),
        };
        lines.add_text(shown, columns, fold);
        lines.add_details(shown, columns);
        lines.add_known(shown, columns);
        match &shown.near {
            None => lines
                .foot
                .push(Line::styled("looking for approved ones …", DIM)),
            Some(near) if near.is_empty() => {}
            Some(near) => lines.add_near(shown, near, columns, fold),
        }
        lines
    }

    /// As many lines as fit: of the body its beginning, then what is known.
    pub fn within(mut self, rows: usize) -> Vec<Line<'static>> {
        if self.body.len() + self.foot.len() > rows {
            let foot = self.foot.len().min(rows / 2);
            let room = rows.saturating_sub(foot);
            self.foot.truncate(foot);
            if self.body.len() > room {
                self.body.truncate(room.saturating_sub(1));
                self.body.push(Line::styled("… more of it: n", DIM));
            }
        }
        self.body.append(&mut self.foot);
        self.body
    }

    pub fn all(mut self) -> Vec<Line<'static>> {
        self.body.append(&mut self.foot);
        self.body
    }

    fn add_text(&mut self, shown: &ShownCard, columns: usize, fold: Fold) {
        let card = &shown.card;
        if let Some(subtitle) = &card.subtitle {
            self.body.extend(wrapped(subtitle, columns, "", DIM));
        }
        if !card.facts.is_empty() {
            self.body.push(Line::default());
        }
        for fact in &card.facts {
            self.body.extend(wrapped(fact, columns, "• ", PLAIN));
        }
        let Some(narrative) = &card.narrative else {
            return;
        };
        self.body.push(Line::default());
        let narrative = wrapped(narrative, columns, "", PLAIN);
        self.body.extend(folded(narrative, fold.is_whole, "n"));
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
        for (name, value) in details.iter().filter(|(_, value)| !value.is_empty()) {
            let line = format!("{name}: {value}");
            self.body.extend(wrapped(&line, columns, "", DIM));
        }
        for place in &card.served {
            self.body.extend(wrapped(place, columns, "", DIM));
        }
    }

    /// What the desk knows about other memories, and what the working tree says.
    fn add_known(&mut self, shown: &ShownCard, columns: usize) {
        let mut lines = Vec::new();
        if let Some(alike) = &shown.alike {
            lines.extend(wrapped(alike, columns, "= ", NAME));
        }
        for line in &shown.known {
            lines.extend(wrapped(line, columns, "  ", PLAIN));
        }
        for line in &shown.evidence {
            lines.extend(wrapped(line, columns, "  ", DIM));
        }
        if !lines.is_empty() {
            self.foot.push(Line::default());
            self.foot.append(&mut lines);
        }
    }

    fn add_near(&mut self, shown: &ShownCard, near: &[ShownNear], columns: usize, fold: Fold) {
        self.foot.push(Line::default());
        if fold.is_low && !fold.is_near_open {
            let marked = near.get(shown.marked).into_iter();
            self.foot.extend(marked.map(|near| {
                let relation = near.near.relation.as_str();
                let line = format!("nearest approved: {relation} {}", near.near.title);
                both_ends(&line, PLAIN, "> unfolds", DIM, columns)
            }));
            return;
        }
        let hint = if fold.is_near_open {
            "> folds"
        } else {
            "> unfolds"
        };
        self.foot.push(heading("Nearest approved", hint, columns));
        for (position, ShownNear { short_id, near }) in near.iter().enumerate() {
            let is_marked = position == shown.marked;
            let lead = if is_marked { "▸ " } else { "  " };
            let title = format!("{}  {short_id}  {}", near.relation.as_str(), near.title);
            self.foot.extend(wrapped(
                &title,
                columns,
                lead,
                if is_marked { BOLD } else { PLAIN },
            ));
            if let Some(conflict) = &near.conflict {
                self.foot
                    .extend(wrapped(&conflict.newer, columns, "    here:  ", WARN));
                self.foot
                    .extend(wrapped(&conflict.older, columns, "    there: ", WARN));
            }
            if is_marked {
                self.foot.extend(near_keys(shown, columns));
                if fold.is_near_open {
                    self.foot.extend(comparison(near, columns, fold.is_whole));
                }
            }
        }
    }
}

/// What should be seen first: what it is, why to look twice, its title, and the decision.
fn head(shown: &ShownCard, columns: usize) -> Vec<Line<'static>> {
    let card = &shown.card;
    let mut lines = vec![both_ends(
        &shown.about(),
        DIM,
        &shown.short_id,
        NAME,
        columns,
    )];
    for mark in &card.marks {
        lines.extend(wrapped(mark, columns, "! ", WARN));
    }
    if shown.is_flagged {
        lines.extend(wrapped(
            "flagged: never decided with others",
            columns,
            "⚑ ",
            WARN,
        ));
    }
    lines.extend(wrapped(&card.title, columns, "", BOLD));
    if let Some(decision) = shown.decision {
        let line = format!("{decision}; not saved yet");
        lines.extend(wrapped(&line, columns, "✓ ", GOOD));
    }
    lines
}

/// What the keys for the marked neighbour do.
fn near_keys(shown: &ShownCard, columns: usize) -> Vec<Line<'static>> {
    let keys = shown.near_keys.iter();
    let keys =
        keys.flat_map(|(key, label)| wrapped(&format!("{key}  {label}"), columns, "    ", KEY));
    keys.collect()
}

/// The marked neighbour's text: word by word where the two have much in common.
fn comparison(near: &Near, columns: usize, is_whole: bool) -> Vec<Line<'static>> {
    let lines = match (&near.diff, &near.text) {
        (Some(diff), _) => {
            let text = format!("[-only there-] {{+only here+}}\n{}", diff_text(diff));
            wrapped(&text, columns, "    ", PLAIN)
        }
        (None, Some(text)) => wrapped(text, columns, "    ", PLAIN),
        (None, None) => Vec::new(),
    };
    folded(lines, is_whole, "n")
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

/// The first of some lines, and how many more there are.
fn folded(mut lines: Vec<Line<'static>>, is_whole: bool, key: &'static str) -> Vec<Line<'static>> {
    if is_whole || lines.len() <= FOLDED_LINES + 1 {
        return lines;
    }
    let more = lines.len() - FOLDED_LINES;
    lines.truncate(FOLDED_LINES);
    lines.push(Line::from(vec![
        Span::styled(format!("… {more} more lines "), DIM),
        Span::styled(key, KEY),
    ]));
    lines
}
