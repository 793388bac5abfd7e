//! A complete memory as one JSON object: the form in which a published version stores each memory.
//!
//! The keys are those of an import line. A missing key means that the memory lacks the value.
//! Unknown keys are ignored, so that an older program can read what a newer one published.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::memory::{Memory, Status};

/// A memory without the marks that reading adds to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concepts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrative: Option<String>,
    /// `approved` or `promoted`.
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewed_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
