//! What the four tools take. Flat objects; unknown arguments are refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memory::StatusFilter;

/// Most results one page may hold.
pub const MAX_LIMIT: u32 = 50;
/// Most ids one `get_memory` may name.
pub const MAX_IDS: usize = 20;
/// Most neighbours on one side of a timeline.
pub const MAX_NEIGHBOURS: i64 = 20;
/// Most steps that links are followed.
pub const MAX_DEPTH: i64 = 8;

/// Arguments of `query_memories`. Without `query`, the newest memories that pass the filters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueryRequest {
    /// Words, error or question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// With these tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_tags: Option<MatchTags>,
    /// Learned in this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Default: all shared and the current.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// staging: unreviewed. Default approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusFilter>,
    /// Default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub limit: Option<i64>,
    /// Type, or several: decision,bugfix.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Part of a path, or a glob.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// First day, YYYY-MM-DD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Last day, included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Memory id: what is near it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// Default hybrid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Of lists; default newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// full adds narrative, files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    /// Bound on the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 200, max = 20000))]
    pub max_tokens: Option<i64>,
    /// next_cursor of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// How each was ranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<bool>,
    /// Id you miss: where it was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
}

/// How several tags combine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatchTags {
    /// Every tag must be there.
    #[default]
    All,
    /// One of them is enough.
    Any,
}

/// Which retrieval legs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Words and meaning together.
    Hybrid,
    /// Meaning only.
    Semantic,
    /// Words only.
    Lexical,
}

/// How memories are listed where nothing is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The newest first (the default).
    Newest,
    /// The oldest first, as a queue is worked off.
    Oldest,
}

/// How much of each memory an answer holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Title, subtitle, facts and tags (the default).
    #[default]
    Concise,
    /// With narrative, files and review data.
    Full,
}

/// Arguments of `get_memory`: `id` or `ids`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GetRequest {
    /// The memory's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Several at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20))]
    pub ids: Option<Vec<String>>,
    /// Its scope, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Default approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusFilter>,
    /// Neighbours in time, near in meaning, provenance, curation log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<Include>>,
    /// Neighbours before it, default 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 20))]
    pub before: Option<i64>,
    /// And after.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 20))]
    pub after: Option<i64>,
    /// Default: the first with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline_within: Option<Within>,
    /// Links: steps, default 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8))]
    pub depth: Option<i64>,
    /// Only such links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Vec<String>>,
}

/// What holds the neighbours of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Within {
    /// The memory's session.
    Session,
    /// Its project.
    Project,
    /// Its scope.
    Scope,
}

/// What `get_memory` can add to a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Include {
    /// Neighbours in time.
    Timeline,
    /// Memories near in meaning.
    Related,
    /// What it derives from, supersedes or contradicts.
    Links,
    /// Its curation log.
    History,
}

/// Arguments of `list_scopes`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListScopesRequest {
    /// One scope in detail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Tokens of a page, where a caller in this program wants another bound than that of the settings. Agents cannot set it: every
    /// word of the listed schemas is read in each session.
    #[serde(skip)]
    pub max_tokens: Option<i64>,
}

/// Arguments of `get_context`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextRequest {
    /// Its folder. Default: the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_path: Option<String>,
    /// Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_cross_project: Option<bool>,
    /// Of each list, default 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub max_memories: Option<i64>,
    /// Bound on the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 200, max = 20000))]
    pub max_tokens: Option<i64>,
    /// What the session is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}
