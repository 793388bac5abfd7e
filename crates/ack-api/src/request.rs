//! The arguments of the four tools. Flat objects; unknown arguments are refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memory::StatusFilter;

pub const MAX_LIMIT: u32 = 50;
pub const MAX_IDS: usize = 20;
/// The largest number of neighbours on each side of a timeline.
pub const MAX_NEIGHBOURS: i64 = 20;
/// The largest number of steps along links.
pub const MAX_DEPTH: i64 = 8;

/// Aliases of arguments, named after the fields of answers with the same content: the alias, and
/// the argument that it stands for.
pub const ALIASES: [(&str, &str); 2] = [("concepts", "tags"), ("session_id", "session")];
/// Arguments that take a day. JSON Schema has a format for it, which some hosts refuse.
pub const DAYS: [&str; 2] = ["since", "until"];
/// Arguments that take words to search for, which may be any text.
pub const FREE_TEXTS: [&str; 2] = ["query", "focus"];
/// Arguments that take several names, separated by commas.
pub const COMMA_SEPARATED: [&str; 1] = ["type"];
/// Arguments for measuring the search. They are accepted but not listed for agents, which would pay
/// for their schemas in every session.
pub const UNLISTED: [&str; 3] = ["mode", "explain", "expect"];

/// Arguments of `query_memories`. Without `query`, the newest memories that match the filters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueryRequest {
    /// Words, error or question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// With these tags (`concepts`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_tags: Option<MatchTags>,
    /// Learned in this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Default: current and all shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Default approved, promoted too. staging: unreviewed. all: both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusFilter>,
    /// Default 10.
    #[schemars(range(min = 1, max = 50))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// One or more: decision,bugfix.
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
    /// From this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Find memories near this id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// Default hybrid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Without query. Default newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// full adds narrative, files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    /// Size limit of answer.
    #[schemars(range(min = 200, max = 20000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<i64>,
    /// next_cursor of last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Explain the ranking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<bool>,
    /// Id you miss: shows why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// Asked by an agent, set by the adapter: the owner's `max_status` binds it, and the answer is
    /// made short.
    #[serde(skip)]
    pub by_agent: bool,
}

/// How to combine several tags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatchTags {
    /// All tags must match.
    #[default]
    All,
    /// One match is enough.
    Any,
}

/// Which retrieval legs to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Words and meaning together.
    #[default]
    Hybrid,
    /// Meaning only.
    Semantic,
    /// Words only.
    Lexical,
}

/// The order of a list without a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Newest first (the default).
    Newest,
    /// Oldest first, like a queue.
    Oldest,
}

/// How much of each memory to return.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Title, subtitle, facts and tags (the default).
    #[default]
    Concise,
    /// Also narrative, files and review data.
    Full,
}

/// Arguments of `get_memory`: `id` or `ids`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GetRequest {
    /// The memory's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Several ids.
    #[schemars(length(max = 20))]
    #[serde(skip_serializing_if = "Option::is_none")]
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
    #[schemars(range(min = 0, max = 20))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    /// And after.
    #[schemars(range(min = 0, max = 20))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// Default: first with neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline_within: Option<Within>,
    /// Link steps, default 4.
    #[schemars(range(min = 1, max = 8))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<i64>,
    /// Only these kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Vec<String>>,
    #[serde(skip)]
    pub by_agent: bool,
}

/// Where the neighbours of a timeline come from.
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
    /// Memories with a similar meaning.
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
    /// This scope in detail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The size limit of a page in tokens, for callers in this program. Agents cannot set it: it
    /// would add to the schemas that every session reads.
    #[serde(skip)]
    pub max_tokens: Option<i64>,
    #[serde(skip)]
    pub by_agent: bool,
}

/// Arguments of `get_context`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextRequest {
    /// Default: the server's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_path: Option<String>,
    /// Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_cross_project: Option<bool>,
    /// Per list, default 5.
    #[schemars(range(min = 1, max = 50))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memories: Option<i64>,
    /// Size limit of answer.
    #[schemars(range(min = 200, max = 20000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<i64>,
    /// What the session is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    #[serde(skip)]
    pub by_agent: bool,
}
