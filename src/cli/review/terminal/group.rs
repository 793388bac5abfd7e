//! Keys that decide about several memories at once: the one that is shown, and those that are much
//! like it.

use super::{QueueWalk, Step, Typed, report_invalid};
use crate::cli::error::CliError;
use crate::cli::output::write_err;
use ack_desk::choice::{Choice, count_text};

const NO_SIMILAR: &str = "no other waiting memory is much like it";

impl QueueWalk<'_> {
    /// Makes one choice for the memory that is shown and those that are much like it.
    pub(super) fn decide_group(
        &self,
        choice: Choice,
        why: Option<String>,
    ) -> Result<Step, CliError> {
        let others = self.desk.lock().group(self.position);
        if others.is_empty() {
            return Ok(report_invalid(NO_SIMILAR));
        }
        let numbers: Vec<usize> = std::iter::once(self.position).chain(others).collect();
        let preview = self.desk.lock().preview(&numbers, &choice)?;
        match self.confirm(&preview.label, &preview.effects) {
            Some(true) => {}
            Some(false) => return Ok(Step::Show),
            None => return Ok(Step::Finish),
        }
        self.desk.lock().choose(&numbers, choice, why)?;
        Ok(Step::To(self.next()))
    }

    /// Approves the memory that is shown, and marks those that are much like it as its duplicates.
    pub(super) fn keep_one(&self) -> Result<Step, CliError> {
        let (others, id, shown, effects) = {
            let desk = self.desk.lock();
            let others = desk.group(self.position);
            let item = desk.items().get(self.position);
            let id = item.map(|item| item.candidate.memory().id.clone());
            let shown = desk.short_ids().shortest(id.as_deref().unwrap_or_default());
            let preview = desk.preview(&others, &Choice::Reject)?;
            (others, id.unwrap_or_default(), shown, preview.effects)
        };
        if others.is_empty() {
            return Ok(report_invalid(NO_SIMILAR));
        }
        let duplicates = count_text(others.len(), "duplicate", "duplicates");
        let label = format!("Approve {shown}, with {duplicates}");
        match self.confirm(&label, &effects) {
            Some(true) => {}
            Some(false) => return Ok(Step::Show),
            None => return Ok(Step::Finish),
        }
        let mut desk = self.desk.lock();
        desk.choose(&[self.position], Choice::Approve, None)?;
        let chosen = desk.choose(&others, Choice::Duplicate { of: id }, None);
        if chosen.is_err() {
            desk.take_back(None);
        }
        chosen?;
        drop(desk);
        Ok(Step::To(self.next()))
    }

    /// Shows what a choice would do, and asks. `None` if the person wants to leave.
    fn confirm(&self, label: &str, effects: &[String]) -> Option<bool> {
        for effect in effects {
            write_err(&format!("  {effect}\n"));
        }
        match self.input.ask(&format!("{label}? [y/n] ")) {
            Typed::Line(line) => Some(matches!(line.as_str(), "y" | "yes")),
            Typed::Interrupt | Typed::End => None,
        }
    }
}
