//! What the keys of a card decide, and the sentence that says so: the same on the page and in the
//! terminal.

use serde::Serialize;

use super::choice::{Choice, count_text};
use super::heaps::Sample;
use super::queue::QueueView;
use super::{Desk, preview_session};
use crate::curate::CurateError;

#[derive(Debug, Serialize)]
pub struct Decided {
    /// In a sentence, with how much is left: `Approved: Use pnpm · 541 left · u undo`.
    pub said: String,
    /// The number of the memory that comes next in the view.
    pub next: Option<usize>,
}

/// What a decision about all that is selected would be for.
#[derive(Debug, Serialize)]
pub struct Selection {
    /// How many memories, without those that are held back.
    pub count: usize,
    /// How many are selected, how many of them are held back, and why, in one line.
    pub said: String,
    /// Five of those that are not held back, and which they are.
    pub sample: Vec<Sample>,
    pub sampled: String,
}

impl Desk {
    /// Decides about a memory, or about several without the flagged ones: all or, if the choice is
    /// not possible for one, none.
    pub fn decide(
        &mut self,
        numbers: &[usize],
        choice: Choice,
        reason: Option<String>,
        view: &QueueView,
    ) -> Result<Decided, CurateError> {
        let last = numbers.last().copied().unwrap_or_default();
        if let [number] = numbers
            && self.is_approved(*number)
            && self.waits(*number)
            && self.repeats(*number, &choice, &preview_session(self.now))
        {
            return Err(CurateError::Refused("it is approved already"));
        }
        let side_effects = self.preview(numbers, &choice)?.side_effects;
        let done = choice.done(self.is_approved(last));
        let is_edit = matches!(choice, Choice::Edit { .. });
        self.choose(numbers, choice, reason)?;
        let about = match numbers {
            [number] => self.title(*number),
            _ => {
                let (picked, held_back) = self.without_flagged(numbers);
                held_back.after(&count_text(picked.len(), "memory", "memories"))
            }
        };
        let mut said = vec![format!("{done}: {about}")];
        // Its card, which would say so, has gone by.
        said.extend(self.flags(last).filter(|_| is_edit));
        said.extend(side_effects);
        Ok(Decided { said: self.sentence(&said.join("; ")), next: self.next(view, last) })
    }

    /// What to look at in the text of a memory, with what was written in its place, as sentences.
    pub fn flags(&self, number: usize) -> impl Iterator<Item = String> {
        let warnings = self.items.get(number).into_iter().flat_map(|item| &item.warnings);
        let flags = warnings.filter(|warning| warning.is_flag());
        flags.map(|warning| format!("its text {}", warning.as_str()))
    }

    /// Approves a memory, and marks the others of its group that are not flagged as its
    /// duplicates, all or nothing. All of it is undone together.
    pub fn keep_one(&mut self, number: usize, view: &QueueView) -> Result<Decided, CurateError> {
        let group = self.group(number);
        let Some(item) = self.items.get(number).filter(|_| !group.is_empty()) else {
            return Err(CurateError::Refused(NO_SIMILAR));
        };
        let of = item.memory().id.clone();
        let (others, held_back) = self.without_flagged(&group);
        let duplicates = count_text(others.len(), "duplicate", "duplicates");
        self.choose_together(vec![
            (vec![number], Choice::Approve, None),
            (others, Choice::Duplicate { of }, None),
        ])?;
        self.note_decision(false);
        let said = format!("approved, with {duplicates}: {}", self.title(number));
        let said = match held_back.count() {
            0 => said,
            _ => format!("{said}; {}", held_back.in_words()),
        };
        Ok(Decided { said: self.sentence(&said), next: self.next(view, number) })
    }

    /// What a decision about all of these would be for.
    pub fn selection(&self, numbers: &[usize]) -> Selection {
        let (mut picked, held_back) = self.without_flagged(numbers);
        picked.sort_unstable();
        let said = held_back.after(&format!("{} selected", numbers.len()));
        let (sample, sampled) = self.sample(&picked, 0);
        Selection { count: picked.len(), said, sample, sampled }
    }

    /// Refuses a decision about several memories that would leave out all of them.
    pub fn check_selection(&self, numbers: &[usize]) -> Result<(), CurateError> {
        match numbers {
            [] => Err(CurateError::Refused(NO_SIMILAR)),
            _ if self.without_flagged(numbers).0.is_empty() => Err(CurateError::Refused(
                "what is flagged is decided one by one: a approves, r rejects it",
            )),
            _ => Ok(()),
        }
    }

    /// What was decided, as a sentence with how much is left.
    pub(crate) fn sentence(&self, done: &str) -> String {
        format!("{} · {} left · u undo", capitalised(done), self.progress().left())
    }
}

const NO_SIMILAR: &str = "no other unreviewed memory is much like it";

/// A participle at the beginning of a line.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(char::to_uppercase).into_iter().flatten().chain(letters).collect()
}
