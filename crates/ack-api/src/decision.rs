//! The decision log: what people decided about the memories of a store, which does not change.
//!
//! `decisions.jsonl` holds one [`Decision`] per line and only grows. The last line about a memory
//! counts. It is bound to the memory's content by a digest: when the content changes, the decision
//! no longer applies.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memory::Status;
use crate::text;

pub const DECISION_LOG: &str = "decisions.jsonl";

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Agents see it.
    Approve,
    /// Agents see it, and it matters beyond its own project.
    Promote,
    /// It is hidden from everybody.
    Reject,
    /// It waits for review again.
    Stage,
    /// Another memory replaces it: `into`.
    Supersede,
    /// It says the same as another memory: `into`.
    Merge,
    /// Agents see it, with the fields of `edit` in place of the store's.
    Edit,
    /// Withdraws earlier decisions: the status in the store counts again.
    Withdraw,
}

impl Verdict {
    /// Whether the memory keeps the text that a curator saw, which may be an edited one.
    pub const fn keeps_text(self) -> bool {
        matches!(self, Self::Approve | Self::Promote | Self::Stage | Self::Edit)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Promote => "promote",
            Self::Reject => "reject",
            Self::Stage => "stage",
            Self::Supersede => "supersede",
            Self::Merge => "merge",
            Self::Edit => "edit",
            Self::Withdraw => "withdraw",
        }
    }
}

/// The fields of a memory that a curator rewrote. Fields that are left out keep the store's values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Edit {
    /// The learning in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// One line of context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<String>,
    /// Short statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Vec<String>>,
    /// Its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concepts: Option<Vec<String>>,
    /// The files it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// The long text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrative: Option<String>,
    /// The type of memory.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The project it was learned in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// One line of `decisions.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The id of the memory.
    pub id: String,
    /// The digest of the content that was decided on: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The digest without the title, if the title comes from the name of a note's file. It stays
    /// the same if the file is renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What was decided.
    pub verdict: Verdict,
    /// The memory's status before.
    pub was: Status,
    /// The fields that a curator wrote: with `edit` they are new, with `approve`, `promote` and
    /// `stage` they keep the values of an earlier decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<Edit>,
    /// `supersede` and `merge`: the id of the memory that takes its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// `stage`: it is out of the review queue until this day, `YYYY-MM-DD`. Its status is still
    /// that of an unreviewed memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// `approve` and `promote` of a memory that may be out of date: the reasons against it at that
    /// time. It is marked again only for other reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub despite: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who decided: `human:NAME` or `process:NAME`.
    pub actor: String,
    /// Decisions of one command or review session share it. `undo` reverts a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// When, in RFC 3339.
    pub time: String,
}

/// A line of `decisions.jsonl` that signs others, where the scope's manifest names `signers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignatureLine {
    /// An SSH signature (namespace `ack-memory`) over the text `ack-memory decisions`, a line with
    /// `scope` and the scope's name, and the digests, each on a line of its own.
    pub signature: String,
    /// The SHA-256 of each line that is signed, without the spaces around it, in hexadecimal.
    pub lines: Vec<String>,
}

impl SignatureLine {
    /// The line for the log, without the line break.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Why a line of the log is not a decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidDecision(String);

impl Decision {
    /// The status that it gives the memory, if that does not depend on anything else.
    pub const fn status(&self) -> Option<Status> {
        match self.verdict {
            Verdict::Edit if matches!(self.was, Status::Promoted) => Some(Status::Promoted),
            Verdict::Approve | Verdict::Edit => Some(Status::Approved),
            Verdict::Promote => Some(Status::Promoted),
            Verdict::Reject => Some(Status::Rejected),
            Verdict::Stage => Some(Status::Staging),
            Verdict::Supersede | Verdict::Merge | Verdict::Withdraw => None,
        }
    }

    pub fn parse(line: &str) -> Result<Self, InvalidDecision> {
        let decision: Self = serde_json::from_str(line)
            .map_err(|error| InvalidDecision(text::json_line_problem(&error)))?;
        decision.validate()?;
        Ok(decision)
    }

    /// Checks what the types cannot express.
    pub fn validate(&self) -> Result<(), InvalidDecision> {
        let needs_target = matches!(self.verdict, Verdict::Supersede | Verdict::Merge);
        let problem = if self.id.is_empty() {
            "`id` is empty"
        } else if !is_digest(&self.digest) {
            "`digest` must be `sha256:` and 64 hexadecimal digits"
        } else if !self.text.as_deref().is_none_or(is_digest) {
            "`text` must be `sha256:` and 64 hexadecimal digits"
        } else if needs_target && self.into.as_deref().unwrap_or_default().is_empty() {
            "`into` must name the memory that takes its place"
        } else if self.into.as_ref() == Some(&self.id) {
            "`into` must name another memory"
        } else if !needs_target && self.into.is_some() {
            "`into` is for `supersede` and `merge` only"
        } else if self.until.is_some() && self.verdict != Verdict::Stage {
            "`until` is for `stage` only"
        } else if self.until.is_some() && self.put_off_until().is_none() {
            "`until` must be a day, YYYY-MM-DD"
        } else if self.despite.is_some()
            && !matches!(self.verdict, Verdict::Approve | Verdict::Promote)
        {
            "`despite` is for `approve` and `promote` only"
        } else if self.verdict == Verdict::Edit && self.edit.is_none() {
            "`edit` must say the new fields"
        } else if self.edit.is_some() && !self.verdict.keeps_text() {
            "`edit` is for `edit`, `approve`, `promote` and `stage` only"
        } else {
            return Ok(());
        };
        Err(InvalidDecision(problem.to_owned()))
    }

    /// The reason, with the day until which the memory is snoozed; `None` if there is neither.
    pub fn reason_with_day(&self) -> Option<String> {
        let until = self.until.as_ref().map(|until| format!("until {until}"));
        let parts: Vec<String> = [until, self.reason.clone()].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    pub fn put_off_until(&self) -> Option<Date> {
        self.until.as_deref()?.parse().ok()
    }

    /// The line for the log, without the line break.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

pub fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|digits| {
        digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// The ids in a damaged line that can still be read. Lines begin with the id, so that even a
/// truncated line shows which memory it was about. A line may hold several decisions whose line
/// breaks were lost. One with more ids than that names none.
pub fn ids_of_damaged_line(line: &str) -> Vec<String> {
    const KEY: &str = "\"id\"";
    let id = |(start, _): (usize, &str)| {
        let rest = line.get(start + KEY.len()..)?.trim_start().strip_prefix(':')?.trim_start();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        values.next()?.ok()
    };
    let found = line.match_indices(KEY).filter_map(id);
    let ids: Vec<String> = found.take(MAX_IDS_OF_LINE + 1).collect();
    if ids.len() > MAX_IDS_OF_LINE { Vec::new() } else { ids }
}

/// How many memories a damaged line may be about.
const MAX_IDS_OF_LINE: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_line_still_names_its_memory() {
        let line = r#"{"id":"obs-1 \"x\"","digest":"sha256:00"#;
        assert_eq!(ids_of_damaged_line(line), ["obs-1 \"x\""]);
        assert_eq!(ids_of_damaged_line(r#"{ "verdict": 1, "id" : "a" "#), ["a"]);
        let joined = r#"{"id":"a","reason":"\"id\":\"no\"","dig{"id":"b","verdict":"reject"}"#;
        assert_eq!(ids_of_damaged_line(joined), ["a", "b"]);
        for damaged in ["", "{", r#"{"id":"ob"#, r#"{"id":7}"#, "<<<<<<< HEAD"] {
            assert!(ids_of_damaged_line(damaged).is_empty(), "{damaged}");
        }
        let many = r#"{"id":"a"}"#.repeat(MAX_IDS_OF_LINE);
        assert_eq!(ids_of_damaged_line(&many).len(), MAX_IDS_OF_LINE);
        assert!(ids_of_damaged_line(&many.repeat(500)).is_empty());
    }

    #[test]
    fn fields_must_match_the_verdict() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let line = |extra: &str| {
            format!(
                r#"{{"id":"a","digest":"{digest}","was":"staging","actor":"human:x","time":"t",{extra}}}"#
            )
        };
        for good in [
            r#""verdict":"approve""#,
            r#""verdict":"merge","into":"b""#,
            r#""verdict":"edit","edit":{"title":"x"}"#,
            r#""verdict":"stage","until":"2026-12-01""#,
            r#""verdict":"stage","edit":{"title":"x"}"#,
            r#""verdict":"approve","despite":"not in the working tree: a.rs""#,
        ] {
            assert_eq!(Decision::parse(&line(good)).map(|_| ()), Ok(()), "{good}");
        }
        for bad in [
            r#""verdict":"bless""#,
            r#""verdict":"merge""#,
            r#""verdict":"merge","into":"a""#,
            r#""verdict":"approve","into":"b""#,
            r#""verdict":"edit""#,
            r#""verdict":"reject","edit":{"title":"x"}"#,
            r#""verdict":"edit","edit":{"titel":"x"}"#,
            r#""verdict":"approve","more":1"#,
            r#""verdict":"approve","until":"2026-12-01""#,
            r#""verdict":"stage","until":"soon""#,
            r#""verdict":"reject","despite":"x""#,
        ] {
            assert!(Decision::parse(&line(bad)).is_err(), "{bad}");
        }
    }
}
