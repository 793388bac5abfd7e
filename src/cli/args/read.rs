//! The commands that read: `query`, `get`, `context`.

use ack_api::memory::StatusFilter;
use ack_api::{ContextRequest, Include, Mode, Within};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;

use super::day::day;

/// The statuses that `query` and `get` show.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ShownStatuses {
    /// Which statuses to show [default: approved]
    #[arg(long, value_parser = words::<StatusFilter>(&["approved", "staging", "all"]))]
    pub status: Option<StatusFilter>,
    /// Include memories that wait for review: `--status all`
    #[arg(long, short = 'a', conflicts_with = "status")]
    pub all: bool,
}

impl ShownStatuses {
    pub fn chosen(self) -> Option<StatusFilter> {
        self.status.or(self.all.then_some(StatusFilter::All))
    }
}

#[derive(Debug, Clone, Default, Args)]
pub struct QueryArgs {
    /// Words, an error message, an identifier or a question [default: the newest memories]
    pub query: Vec<String>,
    /// Only memories with this tag (repeatable)
    #[arg(long = "tag", short = 't', value_name = "TAG")]
    pub tags: Vec<String>,
    /// Match memories with any of the tags, instead of all
    #[arg(long)]
    pub any_tag: bool,
    /// Only memories learned in this project
    #[arg(long, short = 'p', value_name = "NAME")]
    pub project: Option<String>,
    /// Only this scope
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    #[command(flatten)]
    pub shown: ShownStatuses,
    /// Number of results, 1 to 50
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = number)]
    pub limit: Option<i64>,
    /// Only this type, or any of several separated by commas
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Only memories about this file (repeatable; globs allowed)
    #[arg(long = "file", value_name = "PATH")]
    pub files: Vec<String>,
    /// First day: 2026-02-28, today, yesterday, or an age: 7d, 2w, 3m, 1y
    #[arg(long, value_name = "DAY", value_parser = day, allow_hyphen_values = true)]
    pub since: Option<String>,
    /// Last day (inclusive), in the same formats
    #[arg(long, value_name = "DAY", value_parser = day, allow_hyphen_values = true)]
    pub until: Option<String>,
    /// Only memories of this session
    #[arg(long)]
    pub session: Option<String>,
    /// Without a query: list the oldest first
    #[arg(long)]
    pub oldest: bool,
    /// Show each memory in full: every fact, the text, files, the exact time
    #[arg(long, short = 'l')]
    pub long: bool,
    /// Show the next page of the last query at this terminal
    #[arg(long, conflicts_with_all = ["query", "cursor"])]
    pub next: bool,
    /// Exit with 1 if nothing was found
    #[arg(long)]
    pub exit_code: bool,
    /// Maximum tokens of the answer, 200 to 20000
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number)]
    pub max_tokens: Option<i64>,
    /// `next_cursor` of the previous page
    #[arg(long)]
    pub cursor: Option<String>,
    /// Show how each result was ranked
    #[arg(long)]
    pub explain: bool,
    /// Find memories similar to this one; can be combined with a query
    #[arg(long, value_name = "ID")]
    pub like: Option<String>,
    /// Search by words and by meaning (hybrid), or by one of them [default: hybrid]
    #[arg(long, value_parser = words::<Mode>(&["hybrid", "semantic", "lexical"]))]
    pub mode: Option<Mode>,
    /// Show where this memory, which should be in the results, was lost
    #[arg(long, value_name = "ID")]
    pub expect: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct GetArgs {
    /// An id, a prefix of an id, or the number of a result of the last query at this terminal; up
    /// to 20
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// The scope that contains them
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    #[command(flatten)]
    pub shown: ShownStatuses,
    /// Also show these (repeatable)
    #[arg(long, value_parser = words::<Include>(&["timeline", "related", "links", "history"]))]
    pub include: Vec<Include>,
    /// Neighbours before it in the timeline, 0 to 20 [default: 3]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number)]
    pub before: Option<i64>,
    /// Neighbours after it, 0 to 20 [default: 3]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number)]
    pub after: Option<i64>,
    /// Where to take these neighbours from [default: the first of these levels that has any]
    #[arg(
        long,
        value_name = "LEVEL",
        value_parser = words::<Within>(&["session", "project", "scope"])
    )]
    pub timeline_within: Option<Within>,
    /// How many steps to follow links, 1 to 8 [default: 4]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number)]
    pub depth: Option<i64>,
    /// Follow only links of this kind (repeatable)
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<String>,
}

#[derive(Debug, Clone, Default, Args)]
pub struct ContextArgs {
    /// What the session is about
    pub focus: Vec<String>,
    /// Show what a new session starts with, and its tokens
    #[arg(long, conflicts_with_all = ["focus", "own_only", "max_memories", "max_tokens"])]
    pub preview: bool,
    /// Leave out memories of other projects
    #[arg(long)]
    pub own_only: bool,
    /// Number of memories per list, 1 to 50
    #[arg(
        long = "limit",
        short = 'n',
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = number
    )]
    pub max_memories: Option<i64>,
    /// Maximum tokens of the answer, 200 to 20000
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number)]
    pub max_tokens: Option<i64>,
}

impl ContextArgs {
    /// What these arguments ask the service for.
    pub fn request(&self) -> ContextRequest {
        ContextRequest {
            project_path: None,
            include_cross_project: self.own_only.then_some(false),
            max_memories: self.max_memories,
            max_tokens: self.max_tokens,
            focus: (!self.focus.is_empty()).then(|| self.focus.join(" ")),
            by_agent: false,
        }
    }
}

/// Parses a whole number. The request itself checks its bounds.
fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "use a whole number".to_owned())
}

/// Parses the words of a request's field.
fn words<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    allowed: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(allowed).try_map(|word| serde_json::from_value(word.into()))
}
