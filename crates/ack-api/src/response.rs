//! The answers of the four tools. Empty fields are left out.

mod scopes;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::scopes::{
    Counts, Health, HealthState, IndexInfo, ListScopesResponse, Pending, ScopeInfo, TagCount,
};
use super::{Message, Note, Within};
use crate::memory::{Status, StatusFilter};

/// Which scopes were searched, and with which filter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Searched {
    /// Names of the searched scopes. Absent in an answer to an agent: every shared scope, and the
    /// current one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// How many more scopes were searched.
    #[serde(default, skip_serializing_if = "is_default")]
    pub more_scopes: u64,
    /// Scopes that were not searched, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// How many more scopes were not searched.
    #[serde(default, skip_serializing_if = "is_default")]
    pub more_skipped: u64,
    /// The status filter that applied; absent if it is `approved`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub status: StatusFilter,
    /// The scope of the current project, if one was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_scope: Option<String>,
    /// The rule that found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detected_by: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A scope that was not searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Its name.
    pub scope: String,
    /// Why.
    pub reason: Message,
}

/// Matches that are not shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hidden {
    /// Matches that the status filter hides. Rejected ones are never counted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_status: u64,
    /// Matches that a newer memory supersedes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub superseded: u64,
}

/// A memory whose text a result contains, and which is shown as part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Also {
    /// Its id.
    pub id: String,
    /// Its scope.
    pub scope: String,
}

/// A result of `query_memories` or a memory of `get_context`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryHit {
    /// Id to pass to `get_memory`.
    pub id: String,
    /// The learning in one line.
    pub title: String,
    /// One line of context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<String>,
    /// Short statements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// If it has neither subtitle nor facts: the sentence of its long text that is nearest to the
    /// query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// How many more facts it has; `get_memory` shows all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub more_facts: u64,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concepts: Vec<String>,
    /// The project it was learned in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// When it was written, UTC; for an agent, the day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The scope that holds it.
    pub scope: String,
    /// Its curation status.
    pub status: Status,
    /// Its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Relevance; comparable only within one answer. Absent without a query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Memories whose whole text this one contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Also>,
    /// How many more it contains.
    #[serde(default, skip_serializing_if = "is_default")]
    pub more_also: u64,
    /// Why it was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The long text (`detail: full`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrative: Option<String>,
    /// Files it is about (`detail: full`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The session it was learned in (`detail: full`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The writer's confidence, 0 to 1 (`detail: full`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The id of the memory that replaces this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// Memories that are known to contradict this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradicts: Vec<Contradiction>,
    /// Another reason why it may be out of date although it was approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// How it was ranked (`explain`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

impl MemoryHit {
    /// The reasons to doubt it, each in a few words: memories that contradict it, newer ones first,
    /// and why else it may be out of date.
    pub fn doubts(&self) -> Vec<String> {
        let name_others = |others: &[&Contradiction], verb: &str| {
            let names: Vec<String> = others.iter().map(|other| other.describe(&other.id)).collect();
            (!names.is_empty()).then(|| format!("{verb} {}", names.join(", ")))
        };
        let (newer, others): (Vec<_>, Vec<_>) =
            self.contradicts.iter().partition(|other| other.is_newer());
        let stale = self.stale.as_ref().map(|why| format!("stale: {why}"));
        let reasons =
            [name_others(&newer, "contradicted by"), name_others(&others, "contradicts"), stale];
        reasons.into_iter().flatten().collect()
    }
}

/// A memory that is known to contradict another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contradiction {
    /// Its id.
    pub id: String,
    /// Whether it was written before or after the other one. Absent if that is not known, or if it
    /// is newer and was not approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<RelativeAge>,
}

/// Which of two memories is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RelativeAge {
    /// It is older than the other one.
    Older,
    /// It is newer than the other one.
    Newer,
}

impl Contradiction {
    /// Whether it was approved, and written after the other one.
    pub fn is_newer(&self) -> bool {
        self.age == Some(RelativeAge::Newer)
    }

    /// A name for it, with its age: `3 (older)`.
    pub fn describe(&self, name: impl std::fmt::Display) -> String {
        match self.age {
            Some(RelativeAge::Older) => format!("{name} (older)"),
            Some(RelativeAge::Newer) => format!("{name} (newer)"),
            None => name.to_string(),
        }
    }
}

/// How a result was ranked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Position in the ranking, from 1.
    pub rank: u64,
    /// The retrieval legs that ran.
    pub legs: Vec<LegExplanation>,
    /// How the scores were combined.
    pub fusion: String,
}

/// How one retrieval leg ranked a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegExplanation {
    /// `lexical` or `semantic`.
    pub leg: String,
    /// Rank in this leg, from 1; absent if the leg did not find it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// Score in this leg: BM25 for `lexical`, the cosine for `semantic`.
    pub score: f64,
    /// For `lexical`, the share of the weight of the query's words that it contains, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// Query terms that matched, each with its share of the score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<String>,
}

/// What happened to an expected memory (`expect`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expected {
    /// Its id.
    pub id: String,
    /// The scope that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The stage at which it was lost, or `returned`.
    pub stage: Stage,
    /// An explanation in one sentence.
    pub message: Message,
    /// How the legs ranked it, if it got that far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// The stages of retrieval at which a memory can be lost, in order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// No searched scope contains it.
    NotFound,
    /// The status filter hides it.
    HiddenByStatus,
    /// Another filter excludes it.
    Filtered,
    /// A newer memory supersedes it.
    Superseded,
    /// No leg found it.
    NotRetrieved,
    /// It ranks below the page.
    BehindPage,
    /// It repeats another result and is in that result's `also`.
    Folded,
    /// It is in the answer.
    Returned,
}

/// Answer of `query_memories`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryResponse {
    /// The page of results, best (or newest) first.
    pub results: Vec<MemoryHit>,
    /// How many memories match on all pages.
    pub total: u64,
    /// True if `total` is a lower bound.
    #[serde(default, skip_serializing_if = "is_default")]
    pub total_is_lower_bound: bool,
    /// What to try next, if nothing was found or nothing is certain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<Message>,
    /// Pass as `cursor`, with the same arguments, for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Which scopes were searched, if not every shared one and the current one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub searched: Searched,
    /// Matches that are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Hidden>,
    /// What happened to the memory that `expect` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Box<Expected>>,
    /// Anything else to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

impl QueryResponse {
    /// How many memories are folded into the results of the page. `total` counts them.
    pub fn folded(&self) -> u64 {
        self.results.iter().map(|hit| hit.also.len() as u64 + hit.more_also).sum()
    }

    /// Whether the page contains every memory that matches.
    pub fn is_complete(&self) -> bool {
        let returned = self.results.len() as u64 + self.folded();
        !self.total_is_lower_bound && returned == self.total
    }
}

/// One memory with everything the store records about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryDetail {
    /// All fields of a result.
    #[serde(flatten)]
    pub memory: MemoryHit,
    /// Calendar date of the session, as stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The session's id in the program that recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What the session was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_context: Option<SessionContext>,
    /// When it was reviewed, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed_at: Option<String>,
    /// Who reviewed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed_by: Option<String>,
    /// When it was last changed, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Neighbours in time (`include: timeline`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Memories with a similar meaning, in any searched scope, nearest first (`include: related`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedEntry>,
    /// Provenance, nearest first (`include: links`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkEntry>,
    /// Curation log, oldest first (`include: history`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
}

/// One entry of the curation log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// What was done.
    pub action: String,
    /// Status before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_status: Option<String>,
    /// Status after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_status: Option<String>,
    /// The memory that took its place, if that one is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// When, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

/// A memory with a similar meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelatedEntry {
    /// Its id.
    pub id: String,
    /// Its scope.
    pub scope: String,
    /// Its title.
    pub title: String,
    /// Its status.
    pub status: Status,
    /// Cosine similarity: 1 is identical (0.93 in a contextual table), 0 is unrelated.
    pub similarity: f64,
}

/// How a memory relates to an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RelationKind {
    /// Each contains the other, word for word.
    Same,
    /// It contains the older one word for word, and says more.
    SaysMore,
    /// It is about the same subject, and the texts differ.
    Differs,
    /// They cannot both be true: another number, version, path or name, or a negation.
    Contradicts,
    /// It is about another subject.
    Unrelated,
}

impl RelationKind {
    /// The relation in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "duplicate",
            Self::SaysMore => "adds to it",
            Self::Differs => "differs",
            Self::Contradicts => "contradicts",
            Self::Unrelated => "unrelated",
        }
    }
}

/// What a session was about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionContext {
    /// The session's title, as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its overview, if the owner or the store vouches for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overview: Option<String>,
    /// The title or the overview was not reviewed; both are quoted as recorded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unreviewed: bool,
}

/// Neighbours of a memory in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Where the neighbours come from.
    pub within: Within,
    /// Earlier memories, oldest first.
    pub before: Vec<TimelineEntry>,
    /// Later memories, oldest first.
    pub after: Vec<TimelineEntry>,
}

/// A memory in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEntry {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// When it was written, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Its curation status.
    pub status: Status,
}

/// One link between two memories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEntry {
    /// Where the link starts.
    pub from_id: String,
    /// Where it ends.
    pub to_id: String,
    /// For instance `derived_from`, `supersedes`, `contradicts`.
    pub kind: String,
    /// Steps from the requested memory, from 1.
    pub depth: u32,
    /// Title of the memory at the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Who made the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The writer's confidence, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// An id of `ids` that was not returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingMemory {
    /// The id.
    pub id: String,
    /// Why it is missing, and what to do.
    pub reason: Message,
    /// Similar ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
}

/// Answer of `get_memory`: the memory itself for `id`, `memories` for `ids`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetResponse {
    /// The memory with the requested `id`.
    #[serde(flatten)]
    pub memory: Option<Box<MemoryDetail>>,
    /// The memories with the requested `ids`, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memories: Vec<MemoryDetail>,
    /// The requested `ids` that are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingMemory>,
    /// Anything else to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// The project of a `get_context`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectInfo {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub path: String,
    /// Its scope, if one was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The rule that found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detected_by: Option<String>,
}

/// A recent session of a project with at least one approved memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEntry {
    /// The session's id. Pass it as `session` to query_memories to find its memories.
    pub id: String,
    /// The day it began, `YYYY-MM-DD`, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Its title as recorded, or the title of one of its memories that is not shown elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its overview, if the owner or the store vouches for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overview: Option<String>,
    /// The id of its summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// When it began, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// The title or the overview was not reviewed; both are quoted as recorded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unreviewed: bool,
}

impl SessionEntry {
    /// Whether it says more than which session it is. The memories in the same answer may already
    /// say everything about a session without a title.
    pub const fn has_content(&self) -> bool {
        self.title.is_some() || self.overview.is_some()
    }
}

/// Answer of `get_context`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextResponse {
    /// The detected project.
    pub project: ProjectInfo,
    /// The project's own memories, most useful first.
    pub recent_memories: Vec<MemoryHit>,
    /// Its recent sessions, newest first.
    pub recent_sessions: Vec<SessionEntry>,
    /// Memories of other shared scopes.
    pub cross_project_learnings: Vec<MemoryHit>,
    /// Memories that wait for review in the project's scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// Which scopes were searched.
    pub searched: Searched,
    /// Anything else to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}
