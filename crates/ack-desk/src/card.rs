//! A memory as a curator sees it. Every user interface shows this card.

use ack_api::decision::{Decision, Verdict};
use ack_api::memory::{Memory, Status};
use ack_api::text;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::curate::Candidate;
use crate::markdown::{self, Block, Span, beginning};
use ack_api::Warning;
use ack_service::short_id::ShortIds;
use ack_store::read::CuratedMemory;

/// A waiting memory, with what a curator should know.
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
    /// The learning in one line.
    pub title: String,
    /// One line of context.
    pub subtitle: Option<String>,
    /// Short statements.
    pub facts: Vec<String>,
    pub concepts: Vec<String>,
    pub files: Vec<String>,
    pub narrative: Option<String>,
    /// The warnings, as codes.
    pub warnings: Vec<Warning>,
    pub marks: Vec<String>,
    /// Where agents would see it.
    pub served: Vec<String>,
}

impl Card {
    pub fn of(candidate: &Candidate, now: jiff::Timestamp) -> Self {
        let memory = candidate.memory();
        let warnings = candidate.curated.warnings();
        let changed = candidate.curated.is_outdated;
        let change = changed.then(|| outdated_reason(candidate));
        let duplicate_id = candidate.curated.has_duplicate_id;
        let duplicate_id = duplicate_id
            .then(|| "another memory has the same id: nothing can be decided".to_owned());
        let change = change
            .into_iter()
            .chain(duplicate_id)
            .chain(replaced(memory))
            .chain(author_objections(candidate, now));
        let labels = warnings.iter().map(|warning| warning.as_str().to_owned());
        let other = candidate.curated.contradicts.as_ref();
        let contradicts = other.map(|other| format!("contradicts the approved `{other}`"));
        Self {
            scope: candidate.scope.name.clone(),
            id: memory.id.clone(),
            digest: candidate.curated.digest.clone(),
            status: memory.status,
            changed,
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
            marks: change.chain(labels).chain(contradicts).collect(),
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

fn replaced(memory: &Memory) -> Option<String> {
    let newer = memory.superseded_by.as_ref();
    let newer = newer.filter(|_| memory.status == Status::Staging);
    newer.map(|newer| format!("according to its store, it is replaced by {newer}"))
}

/// Why an earlier decision no longer counts.
fn outdated_reason(candidate: &Candidate) -> String {
    let id = &candidate.memory().id;
    let decisions = candidate.scope.store.decisions().unwrap_or_default();
    if let Some(other) = &candidate.curated.decided_as {
        let verdict = decisions.about(other).last().map(|last| last.verdict);
        let what = match verdict {
            Some(Verdict::Stage) => "put back",
            Some(Verdict::Supersede) => "replaced",
            Some(Verdict::Merge) => "merged into another one",
            _ => "decided on",
        };
        return format!("`{other}` has the same text and was {what}");
    }
    let why = match decisions.about(id).last() {
        None => "its decision cannot be read",
        Some(last) if last.digest == candidate.curated.digest => "its decision cannot be read",
        Some(Decision { verdict: Verdict::Approve | Verdict::Promote | Verdict::Edit, .. }) => {
            "its text changed after it was approved"
        }
        Some(_) => "its text changed after it was decided",
    };
    why.to_owned()
}

/// What its author says against a memory: that it is no longer valid, or that its day has passed.
fn author_objections(candidate: &Candidate, now: jiff::Timestamp) -> impl Iterator<Item = String> {
    let word = candidate.memory().withdrawn.as_ref();
    let word = word.map(|word| format!("its header says `{}`", text::line(word, 40)));
    let today = now.to_zoned(TimeZone::UTC).date();
    let day = candidate.memory().stale_after.filter(|day| *day < today);
    let waits = candidate.memory().status == Status::Staging;
    let day = day.filter(|_| waits).map(|day| format!("past {day}, the day its author set"));
    word.into_iter().chain(day)
}

/// Days since a memory was written.
pub fn age_in_days(memory: &Memory, now: jiff::Timestamp) -> Option<i64> {
    let seconds = now.as_second() - memory.created_at?.as_second();
    Some((seconds / 86_400).max(0))
}

pub fn days(days: i64) -> String {
    ack_api::number::count(days.unsigned_abs(), "day")
}
