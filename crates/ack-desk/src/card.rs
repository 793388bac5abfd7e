//! A memory as a curator sees it. Every user interface shows this card.

use ack_api::decision::Verdict;
use ack_api::memory::{Memory, Status};
use ack_api::text;
use ack_api::time::utc_day;
use serde::Serialize;

use crate::curate::Candidate;
use crate::markdown::{self, Block, Span, beginning};
use ack_api::Warning;
use ack_service::short_id::ShortIds;
use ack_store::read::CuratedMemory;

#[derive(Debug, Clone, Serialize)]
pub struct Card {
    pub scope: String,
    pub id: String,
    pub digest: String,
    /// Its status. A list that is applied later is rejected if the status has changed by then.
    pub status: Status,
    /// Whether it has changed since it was decided about.
    pub changed: bool,
    pub age_days: Option<i64>,
    pub project: Option<String>,
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_title: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The writer's confidence, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    pub title: String,
    pub subtitle: Option<String>,
    pub facts: Vec<String>,
    pub concepts: Vec<String>,
    pub files: Vec<String>,
    pub narrative: Option<String>,
    pub warnings: Vec<Warning>,
    pub marks: Vec<String>,
    pub served: Vec<String>,
}

impl Card {
    pub fn of(candidate: &Candidate, now: jiff::Timestamp) -> Self {
        let Candidate { scope, curated, .. } = candidate;
        let memory = &curated.memory;
        let warnings = curated.warnings();
        let mut marks = Vec::new();
        marks.extend(curated.is_outdated.then(|| outdated_reason(candidate)));
        if curated.has_duplicate_id {
            marks.push("another memory has the same id: nothing can be decided".to_owned());
        }
        let newer = memory.superseded_by.iter().filter(|_| memory.status == Status::Staging);
        marks.extend(
            newer.map(|newer| format!("according to its store, it is replaced by {newer}")),
        );
        marks.extend(author_objections(memory, now));
        marks.extend(warnings.iter().map(|warning| warning.as_str().to_owned()));
        let other = curated.contradicts.iter();
        marks.extend(other.map(|other| format!("contradicts the approved `{other}`")));
        Self {
            scope: scope.name.clone(),
            id: memory.id.clone(),
            digest: curated.digest.clone(),
            status: memory.status,
            changed: curated.is_outdated,
            age_days: age_in_days(memory, now),
            project: memory.project.clone(),
            session: memory.session.clone().or_else(|| memory.session_id.clone()),
            session_title: None,
            kind: memory.kind.clone(),
            confidence: memory.confidence,
            title: memory.title.clone(),
            subtitle: memory.subtitle.clone(),
            facts: memory.facts.clone(),
            concepts: memory.concepts.clone(),
            files: memory.files.clone(),
            narrative: memory.narrative.clone(),
            marks,
            served: super::choice::serving_places(candidate),
            warnings,
        }
    }

    /// One line of metadata: id, scope, project, type and age.
    pub fn meta(&self, short: &ShortIds) -> String {
        let mut parts = vec![short.shortest(&self.id), self.scope.clone()];
        parts.extend(self.project.clone().filter(|project| *project != self.scope));
        parts.extend(self.kind.clone());
        parts.extend(self.age_days.map(|age| format!("{} old", days(age))));
        parts.join("  ")
    }
}

/// The text of a memory as blocks.
#[derive(Debug, Clone, Serialize)]
pub struct CardText {
    pub title: Vec<Span>,
    pub subtitle: Vec<Span>,
    /// The facts, as a list.
    pub facts: Vec<Block>,
    pub narrative: Vec<Block>,
    /// How many more lines the facts and the narrative have.
    pub more_lines: usize,
}

impl CardText {
    /// At most so many lines of the facts and of the narrative, each of a width.
    pub fn of(curated: &CuratedMemory, lines: usize, width: usize) -> Self {
        let memory = &curated.memory;
        let optional = |text: &Option<String>| curated.named(text.as_deref().unwrap_or_default());
        let narrative = optional(&memory.narrative);
        let (start, all) = beginning(&narrative, lines, width);
        let mut more_lines = all.saturating_sub(lines);
        let (mut left, mut items) = (lines, Vec::new());
        for fact in &memory.facts {
            let fact = curated.named(fact);
            let (start, all) = beginning(&fact, left, width);
            more_lines += all.saturating_sub(left);
            left = left.saturating_sub(all);
            let spans = markdown::line(start);
            items.extend((!spans.is_empty()).then(|| vec![Block::Paragraph { spans }]));
        }
        let first = None;
        let facts = (!items.is_empty()).then_some(Block::List { first, items });
        Self {
            title: markdown::plain(&curated.named(&memory.title)),
            subtitle: markdown::line(&optional(&memory.subtitle)),
            facts: facts.into_iter().collect(),
            narrative: markdown::blocks(start),
            more_lines,
        }
    }
}

/// Why an earlier decision no longer counts.
fn outdated_reason(candidate: &Candidate) -> String {
    let decisions = candidate.scope.store.decisions().unwrap_or_default();
    if let Some(other) = &candidate.curated.decided_as {
        let what = match decisions.about(other).last().map(|last| last.verdict) {
            Some(Verdict::Stage) => "put back",
            Some(Verdict::Supersede) => "replaced",
            Some(Verdict::Merge) => "merged into another one",
            _ => "decided on",
        };
        return format!("`{other}` has the same text and was {what}");
    }
    let last = decisions.about(&candidate.memory().id).last();
    let last = last.filter(|last| last.digest != candidate.curated.digest);
    let why = match last.map(|last| last.verdict) {
        None => "its decision cannot be read",
        Some(Verdict::Approve | Verdict::Promote | Verdict::Edit) => {
            "its text changed after it was approved"
        }
        Some(_) => "its text changed after it was decided",
    };
    why.to_owned()
}

/// What its author says against a memory: that it is no longer valid, or that its day has passed.
fn author_objections(memory: &Memory, now: jiff::Timestamp) -> impl Iterator<Item = String> {
    let word = memory.withdrawn.as_ref();
    let word = word.map(|word| format!("its header says `{}`", text::line(word, 40)));
    let day = memory.stale_after.filter(|day| *day < utc_day(now));
    let day = day.filter(|_| memory.status == Status::Staging);
    word.into_iter().chain(day.map(|day| format!("past {day}, the day its author set")))
}

pub fn age_in_days(memory: &Memory, now: jiff::Timestamp) -> Option<i64> {
    let seconds = now.as_second() - memory.created_at?.as_second();
    Some((seconds / 86_400).max(0))
}

pub fn days(days: i64) -> String {
    ack_api::number::count(days.unsigned_abs(), "day")
}
