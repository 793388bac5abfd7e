//! A complete memory as one JSON object: the form in which a published version stores each memory.
//!
//! The keys are those of an import line. A missing key means that the memory lacks the value.
//! Unknown keys are ignored, so that an older program can read what a newer one published.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;

use crate::memory::{Memory, Status};

/// A memory without the marks that reading adds to it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub id: String,
    pub project: Option<String>,
    pub session: Option<String>,
    pub session_id: Option<String>,
    pub date: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub title: String,
    pub subtitle: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concepts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    pub narrative: Option<String>,
    /// `approved` or `promoted`.
    pub status: Status,
    pub confidence: Option<f64>,
    pub reviewed_at: Option<String>,
    pub reviewed_by: Option<String>,
    pub superseded_by: Option<String>,
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
    pub stale_after: Option<String>,
}

impl From<&Memory> for Record {
    fn from(memory: &Memory) -> Self {
        let as_text = |instant: Option<Timestamp>| instant.map(|instant| instant.to_string());
        Self {
            id: memory.id.clone(),
            project: memory.project.clone(),
            session: memory.session.clone(),
            session_id: memory.session_id.clone(),
            date: memory.date.clone(),
            kind: memory.kind.clone(),
            title: memory.title.clone(),
            subtitle: memory.subtitle.clone(),
            facts: memory.facts.clone(),
            concepts: memory.concepts.clone(),
            files: memory.files.clone(),
            narrative: memory.narrative.clone(),
            status: memory.status,
            confidence: memory.confidence,
            reviewed_at: as_text(memory.reviewed_at),
            reviewed_by: memory.reviewed_by.clone(),
            superseded_by: memory.superseded_by.clone(),
            created_at: as_text(memory.created_at),
            updated_at: as_text(memory.updated_at),
            stale_after: memory.stale_after.map(|day| day.to_string()),
        }
    }
}

impl Record {
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a record; `None` if it is invalid, or if its memory may not be served.
    pub fn parse(json: &str) -> Option<Self> {
        let record: Self = serde_json::from_str(json).ok()?;
        let is_whole = !record.id.trim().is_empty() && !record.title.trim().is_empty();
        let is_served = matches!(record.status, Status::Approved | Status::Promoted);
        (is_whole && is_served).then_some(record)
    }
}
