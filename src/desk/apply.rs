//! Applies decisions from a list: the entries of `review --list --json`, each with a verdict.

use std::sync::Arc;

use ack_api::decision::{Edit, Verdict};
use ack_api::memory::Status;
use ack_api::text;
use serde::Deserialize;

use super::choice::Choice;
use crate::curate::Candidate;
use crate::curate::find::by_whole_id;
use crate::scope::Scope;
use crate::service::short_id::ShortIds;

/// A line. Other keys of a list entry are ignored.
#[derive(Debug, Deserialize)]
pub struct ListedDecision {
    /// The memory.
    pub id: String,
    /// Its scope.
    #[serde(default)]
    pub scope: Option<String>,
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    status: Option<Status>,
    verdict: Verdict,
    #[serde(default)]
    into: Option<String>,
    /// With `merge`: the other memory gets only the tags and files.
    #[serde(default)]
    duplicate: bool,
    #[serde(default)]
    until: Option<String>,
    #[serde(default)]
    edit: Option<Edit>,
    /// The reason.
    #[serde(default)]
    pub reason: Option<String>,
}

impl ListedDecision {
    /// Parses a line.
    ///
    /// # Errors
    /// It is not JSON of this shape.
    pub fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| {
            let problem = text::json_line_problem(&error)
                .replacen("unknown variant", "unknown verdict", 1)
                .replacen("unknown field", "unknown key", 1);
            format!("{problem}; expected an entry of `review --list --json` with a `verdict`")
        })
    }

    /// The memory of these scopes that the line names.
    ///
    /// # Errors
    /// No memory matches, or it has changed or been decided about since it was listed, or the line
    /// does not say what was listed.
    pub fn candidate(&self, scopes: &[Arc<Scope>]) -> Result<Candidate, String> {
        let candidate = by_whole_id(scopes, &self.id).map_err(|error| error.to_string())?;
        let id = &self.id;
        let Some(digest) = &self.digest else {
            return Err(format!(
                "`digest` is missing, so it is not known which text of {id} was read; take the \
                 entries from `review --list --json`"
            ));
        };
        if *digest != candidate.curated.digest {
            return Err(format!("{id} changed since it was listed"));
        }
        if (self.title.as_ref()).is_some_and(|title| *title != candidate.memory().title) {
            return Err(format!(
                "`title` is not the one of {id}; to change it, use the verdict `edit` with \
                 `edit: {{\"title\": …}}`"
            ));
        }
        let status = candidate.memory().status;
        match self.status {
            Some(listed) if listed != status => Err(format!(
                "{id} was decided about since it was listed: it was {listed} and is {status}"
            )),
            _ => Ok(candidate),
        }
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
        let fields = match serde_json::to_value(&self.edit) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let fields = fields.into_iter().map(|(field, new)| {
            let new = match new {
                serde_json::Value::String(new) => new,
                new => new.to_string(),
            };
            (field, text::line(&new, usize::MAX))
        });
        fields.collect()
    }

    /// The choice that the line states.
    ///
    /// # Errors
    /// A key is missing, or does not belong to the verdict.
    pub fn choice(self) -> Result<Choice, String> {
        let needs_into = matches!(self.verdict, Verdict::Merge | Verdict::Supersede);
        if needs_into != self.into.is_some() {
            return Err("`into` is for `supersede` and `merge`, and required there".to_owned());
        }
        if (self.verdict == Verdict::Edit) != self.edit.is_some() {
            return Err("`edit` is for the verdict `edit`, and required there".to_owned());
        }
        let is_day = |until: &String| until.parse::<jiff::civil::Date>().is_ok();
        let is_put_off = self.verdict == Verdict::Stage;
        if !self.until.iter().all(|until| is_put_off && is_day(until)) {
            return Err("`until` is a day, YYYY-MM-DD, and for `stage` only".to_owned());
        }
        let into = self.into.unwrap_or_default();
        Ok(match self.verdict {
            Verdict::Approve => Choice::Approve,
            Verdict::Promote => Choice::Promote,
            Verdict::Reject => Choice::Reject,
            Verdict::Stage => match self.until {
                Some(until) => Choice::PutOff { until },
                None => Choice::Stage,
            },
            Verdict::Withdraw => Choice::Withdraw,
            Verdict::Supersede => Choice::Replace { by: into },
            Verdict::Merge if self.duplicate => Choice::Duplicate { of: into },
            Verdict::Merge => Choice::Merge { into },
            Verdict::Edit => Choice::Edit {
                edit: Box::new(self.edit.unwrap_or_default()),
            },
        })
    }
}
