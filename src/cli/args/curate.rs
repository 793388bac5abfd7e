//! The commands that decide about memories: `add`, `edit`, `approve`, `reject`, `stage`, `replace`,
//! `undo`, `review`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

/// The arguments that all commands that decide share.
#[derive(Debug, Clone, Args)]
pub struct DecideArgs {
    /// Only in this scope
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    /// The reason, for the log
    #[arg(long, value_name = "TEXT")]
    pub because: Option<String>,
    /// Show what would be decided, without writing it
    #[arg(long)]
    pub dry_run: bool,
}

/// Which memories to decide about.
#[derive(Debug, Clone, Args)]
pub struct ChosenArgs {
    /// Ids, or unique prefixes of ids; without any, select with the options below
    #[arg(conflicts_with_all = ["kind", "project", "tag", "session", "waiting"])]
    pub ids: Vec<String>,
    /// Unreviewed memories of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Unreviewed memories of this project
    #[arg(long, short = 'p', value_name = "NAME")]
    pub project: Option<String>,
    /// Unreviewed memories with this tag
    #[arg(long, short = 't', value_name = "TAG")]
    pub tag: Option<String>,
    /// Unreviewed memories of this session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// All unreviewed memories
    #[arg(long)]
    pub waiting: bool,
    /// Also those that are held back: what looks like a secret, addresses an agent, had hidden
    /// characters or contradicts an approved memory
    #[arg(long)]
    pub include_flagged: bool,
    /// Do not ask for confirmation when memories are selected by options
    #[arg(long, short = 'y')]
    pub yes: bool,
    #[command(flatten)]
    pub decide: DecideArgs,
}

#[derive(Debug, Clone, Args)]
pub struct StageArgs {
    /// Defer until this day: a date, tomorrow, or a time from now (7d, 2w, 3m)
    #[arg(long, value_name = "DAY", value_parser = super::day::parse_later_day)]
    pub until: Option<String>,
    #[command(flatten)]
    pub chosen: ChosenArgs,
}

#[derive(Debug, Clone, Args)]
#[command(override_usage = "ack-memory replace [OPTIONS] --by <ID> <ID>")]
pub struct ReplaceArgs {
    /// The memory that goes; one at a time
    pub id: String,
    /// The memory that stays
    #[arg(long, value_name = "ID", required_unless_present = "into")]
    pub by: Option<String>,
    /// The one that stays gets the facts, tags and files that only the other one has
    #[arg(long)]
    pub merge: bool,
    /// `--by` and `--merge` in one, as in `merge ID --into ID`
    #[arg(long, value_name = "ID", hide = true, conflicts_with = "by")]
    pub into: Option<String>,
    #[command(flatten)]
    pub decide: DecideArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub struct AddMemoryArgs {
    /// What was learned, in one line; `-` reads the text from standard input, and without a title
    /// $VISUAL or $EDITOR opens
    pub title: Vec<String>,
    /// A short statement (repeatable)
    #[arg(long = "fact", value_name = "TEXT", allow_hyphen_values = true)]
    pub facts: Vec<String>,
    /// A tag (repeatable)
    #[arg(long = "tag", short = 't', value_name = "TAG", value_parser = NonEmptyStringValueParser::new())]
    pub tags: Vec<String>,
    /// Its type, such as decision or gotcha
    #[arg(long = "type", value_name = "TYPE", value_parser = NonEmptyStringValueParser::new())]
    pub kind: Option<String>,
    /// The project it was learned in [default: the current one]
    #[arg(long, short = 'p', value_name = "NAME")]
    pub project: Option<String>,
    /// The scope to add it to, new or existing [default: the current project's]
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    /// Do not ask about a text that is flagged or says what an approved memory says
    #[arg(long, short = 'y')]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct EditArgs {
    /// An id, or a unique prefix of one
    pub id: String,
    #[command(flatten)]
    pub decide: DecideArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ApproveArgs {
    /// They matter beyond their project
    #[arg(long)]
    pub promote: bool,
    #[command(flatten)]
    pub chosen: ChosenArgs,
}

#[derive(Debug, Clone, Args)]
pub struct UndoArgs {
    /// The batch, as printed by the command that made it [default: the newest]
    pub batch: Option<String>,
    /// Only in this scope
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    /// Show what would be undone, without writing it
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Args)]
pub struct ReviewArgs {
    /// Only in this scope
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    /// Only this type
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Only this project
    #[arg(long, short = 'p', value_name = "NAME")]
    pub project: Option<String>,
    /// Only this tag
    #[arg(long, short = 't', value_name = "TAG")]
    pub tag: Option<String>,
    /// Only what is held back when many are approved at once
    #[arg(long)]
    pub flagged: bool,
    /// Only what matches this question, the best match first; an id also counts
    #[arg(long = "for", value_name = "QUESTION")]
    pub question: Option<String>,
    /// Review in the terminal, even if a browser could be opened
    #[arg(long, conflicts_with_all = ["browser", "list", "apply"])]
    pub tty: bool,
    /// Review in the terminal line by line, for screen readers and scripts
    #[arg(long, conflicts_with_all = ["browser", "list", "apply"])]
    pub plain: bool,
    /// Review in a browser, even if none opens by itself; prints the address
    #[arg(long, conflicts_with_all = ["list", "apply"])]
    pub browser: bool,
    /// Only list the unreviewed memories
    #[arg(long, conflicts_with = "apply")]
    pub list: bool,
    /// Review approved memories that may be out of date; with --list, only list them
    #[arg(long, conflicts_with = "apply")]
    pub stale: bool,
    /// Apply decisions from a file (`-`: standard input): lines of `review --list --json` with a
    /// verdict
    #[arg(long, value_name = "FILE")]
    pub apply: Option<PathBuf>,
    /// Accept decision logs as they are now, after lines of them were lost or other programs wrote
    /// to them
    #[arg(long, conflicts_with_all = [
        "kind", "project", "tag", "flagged", "question", "tty", "plain", "browser", "list", "stale", "apply"
    ])]
    pub accept_log: bool,
    /// Do not make or update the vector tables
    #[arg(long)]
    pub no_index: bool,
}
