//! Choices as lines: the entries of `review --list --json`, each with a verdict. `review --apply`
//! reads them, and a session that ends early leaves its choices in this form.

use std::sync::Arc;

use ack_api::decision::{Edit, Verdict};
use ack_api::memory::{Memory, Status};
use ack_api::text;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::Desk;
use super::choice::{Choice, edited_fields};
use crate::curate::Candidate;
use crate::curate::find::by_whole_id;
use ack_service::scope::Scope;
use ack_service::short_id::ShortIds;

/// A line. Other keys of a list entry are ignored.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListedDecision {
    pub id: String,
    pub scope: Option<String>,
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    status: Option<Status>,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    into: Option<String>,
    /// With `merge`: the other memory gets only the tags and files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    duplicate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edit: Option<Edit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ListedDecision {
    /// The lines that state a choice for a memory. A choice about two memories may need two.
    fn of(choice: &Choice, candidate: &Candidate, other: Option<&Candidate>) -> Vec<Self> {
        let mut line = Self::about(candidate, choice.verdict());
        line.edit = Some(&candidate.edit).filter(|edit| **edit != Edit::default()).cloned();
        let mut older = None;
        match choice {
            Choice::PutOff { until } => line.until = Some(until.clone()),
            Choice::Supersede { .. } => {
                older = other.map(|older| Self::about(older, Verdict::Supersede));
                older.iter_mut().for_each(|older| older.into = Some(line.id.clone()));
            }
            // Part of the id may have been typed, and means one memory only as long as no other
            // begins so.
            _ => line.into = other.map(|other| other.memory().id.clone()),
        }
        line.duplicate = matches!(choice, Choice::Duplicate { .. });
        std::iter::once(line).chain(older).collect()
    }

    fn about(candidate: &Candidate, verdict: Verdict) -> Self {
        let memory = candidate.memory();
        Self {
            id: memory.id.clone(),
            scope: Some(candidate.scope.name.clone()),
            digest: Some(candidate.curated.digest.clone()),
            title: None,
            status: Some(memory.status),
            verdict,
            into: None,
            duplicate: false,
            until: None,
            edit: None,
            reason: None,
        }
    }

    pub fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| {
            let problem = text::json_line_problem(&error)
                .replacen("unknown variant", "unknown verdict", 1)
                .replacen("unknown field", "unknown key", 1);
            format!("{problem}; expected an entry of `review --list --json` with a `verdict`")
        })
    }

    /// The memory of these scopes that the line names, if it still is what was listed.
    pub fn candidate(&self, scopes: &[Arc<Scope>]) -> Result<Candidate, String> {
        let id = &self.id;
        let candidate = by_whole_id(scopes, id).map_err(|error| error.to_string())?;
        let Memory { title, status, .. } = candidate.memory();
        Err(match (&self.digest, self.status) {
            (None, _) => format!(
                "`digest` is missing, so it is not known which text of {id} was read; take the \
                 entries from `review --list --json`"
            ),
            (Some(digest), _) if *digest != candidate.curated.digest => {
                format!("{id} changed since it was listed")
            }
            _ if self.title.as_ref().is_some_and(|listed| listed != title) => format!(
                "`title` is not the one of {id}; to change it, use the verdict `edit` with \
                 `edit: {{\"title\": …}}`"
            ),
            (_, Some(listed)) if listed != *status => format!(
                "{id} was decided about since it was listed: it was {listed} and is {status}"
            ),
            _ => return Ok(candidate),
        })
    }

    /// What the line decides: `approve`, `merge into obs-7`, with the reason.
    pub fn in_words(&self, short: &ShortIds) -> String {
        let mut words = self.verdict.as_str().to_owned();
        if let Some(into) = &self.into {
            words += &format!(" into {}", short.shortest(into));
        }
        if let Some(until) = &self.until {
            words += &format!(" until {}", text::line(until, 20));
        }
        if let Some(reason) = &self.reason {
            words += &format!(": {}", text::line(reason, 200));
        }
        words
    }

    /// The fields that the line rewrites, with their new text on one line.
    pub fn edited(&self) -> Vec<(String, String)> {
        let fields = self.edit.iter().flat_map(edited_fields).map(|(field, new)| {
            let new = new.as_str().map_or_else(|| new.to_string(), str::to_owned);
            (field, text::line(&new, usize::MAX))
        });
        fields.collect()
    }

    /// What it chooses, in order, or why that makes no sense. `today` is the present day.
    pub fn choices(self, today: Date) -> Result<Vec<Choice>, String> {
        let needs_into = matches!(self.verdict, Verdict::Merge | Verdict::Supersede);
        if needs_into != self.into.is_some() {
            return Err("`into` is for `supersede` and `merge`, and required there".to_owned());
        }
        if matches!(
            (self.verdict, &self.edit),
            (Verdict::Edit, None) | (Verdict::Reject | Verdict::Withdraw, Some(_))
        ) {
            return Err("the verdict `edit` needs `edit`; `reject` and `withdraw` cannot have it"
                .to_owned());
        }
        if self.until.is_some() && self.verdict != Verdict::Stage {
            return Err("`until` is for `stage` only".to_owned());
        }
        let into = self.into.unwrap_or_default();
        let edit = self.edit.map(|edit| Choice::Edit { edit: Box::new(edit) });
        let choice = match self.verdict {
            Verdict::Edit => None,
            Verdict::Approve => Some(Choice::Approve),
            Verdict::Promote => Some(Choice::Promote),
            Verdict::Reject => Some(Choice::Reject),
            Verdict::Stage => Some(match self.until {
                Some(until) => Choice::PutOff { until },
                None => Choice::Stage,
            }),
            Verdict::Withdraw => Some(Choice::Withdraw),
            Verdict::Supersede => Some(Choice::Replace { by: into }),
            Verdict::Merge if self.duplicate => Some(Choice::Duplicate { of: into }),
            Verdict::Merge => Some(Choice::Merge { into }),
        };
        let choices: Vec<Choice> = edit.into_iter().chain(choice).collect();
        let problem = choices.iter().find_map(|choice| choice.problem(today));
        problem.map_or(Ok(choices), Err)
    }
}

impl Desk {
    /// The choices that are not written yet, as `review --apply` accepts them: one line about each
    /// memory, the last one that was chosen.
    pub fn unwritten_lines(&self) -> String {
        let mut lines: Vec<ListedDecision> = Vec::new();
        for made in &self.choices {
            for pick in &made.picks {
                let Some(item) = self.items.get(pick.number) else {
                    continue;
                };
                for line in ListedDecision::of(&made.choice, &item.candidate, pick.other.as_ref()) {
                    lines.retain(|known| (&known.scope, &known.id) != (&line.scope, &line.id));
                    lines.push(ListedDecision { reason: made.reason.clone(), ..line });
                }
            }
        }
        let lines = targets_last(lines).into_iter();
        lines.map(|line| serde_json::to_string(&line).unwrap_or_default() + "\n").collect()
    }
}

/// The lines in an order in which they can be applied: a memory is merged into another one before
/// that one is removed. Otherwise as they were chosen.
fn targets_last(mut lines: Vec<ListedDecision>) -> Vec<ListedDecision> {
    let removing = [Verdict::Reject, Verdict::Merge, Verdict::Supersede];
    let mut ordered = Vec::with_capacity(lines.len());
    while !lines.is_empty() {
        let is_target = |line: &ListedDecision| {
            let mut others = lines.iter();
            others.any(|other| other.scope == line.scope && other.into.as_ref() == Some(&line.id))
        };
        let free =
            lines.iter().position(|line| !removing.contains(&line.verdict) || !is_target(line));
        // In a circle, any of them is as good.
        ordered.push(lines.remove(free.unwrap_or_default()));
    }
    ordered
}
