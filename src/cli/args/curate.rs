//! The commands that decide about memories: `approve`, `reject`, `promote`, `stage`, `merge`,
//! `supersede`, `undo`, `review`.

use std::path::PathBuf;

use clap::Args;

/// What the commands that decide have in common.
#[derive(Debug, Clone, Args)]
pub struct DecideArgs {
    /// Only in this scope
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    /// Why, for the log
    #[arg(long, value_name = "TEXT")]
    pub because: Option<String>,
    /// Say what would be decided and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Which memories to decide about.
#[derive(Debug, Clone, Args)]
pub struct ChosenArgs {
    /// Ids, or their beginnings where no other id begins so; none: choose by the options below
    pub ids: Vec<String>,
    /// Those that wait and have this type
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "ids")]
    pub kind: Option<String>,
    /// Those that wait and are of this project
    #[arg(long, short = 'p', value_name = "NAME", conflicts_with = "ids")]
    pub project: Option<String>,
    /// Those that wait and have this tag
    #[arg(long, short = 't', value_name = "TAG", conflicts_with = "ids")]
    pub tag: Option<String>,
    /// Those that wait and were learned in this session
    #[arg(long, value_name = "ID", conflicts_with = "ids")]
    pub session: Option<String>,
    /// All that wait
    #[arg(long, conflicts_with = "ids")]
    pub waiting: bool,
    /// Do not ask before deciding about memories that were not named one by one
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// What every such command takes.
    #[command(flatten)]
    pub decide: DecideArgs,
}

/// Arguments of `stage`.
#[derive(Debug, Clone, Args)]
pub struct StageArgs {
    /// Out of the review queue until this day: a date, tomorrow, or in how long (7d, 2w, 3m)
    #[arg(long, value_name = "DAY", value_parser = super::day::later)]
    pub until: Option<String>,
    /// Which memories.
    #[command(flatten)]
    pub chosen: ChosenArgs,
}

/// Arguments of `merge`.
#[derive(Debug, Clone, Args)]
pub struct MergeArgs {
    /// The memory that goes
    pub id: String,
    /// The memory that stays, and gets the facts, tags and files that only the other one has
    #[arg(long, value_name = "ID")]
    pub into: String,
    /// What every such command takes.
    #[command(flatten)]
    pub decide: DecideArgs,
}

/// Arguments of `supersede`.
#[derive(Debug, Clone, Args)]
pub struct SupersedeArgs {
    /// The memory that is out of date
    pub id: String,
    /// The memory that takes its place
    #[arg(long, value_name = "ID")]
    pub by: String,
    /// What every such command takes.
    #[command(flatten)]
    pub decide: DecideArgs,
}

/// Arguments of `undo`.
#[derive(Debug, Clone, Args)]
pub struct UndoArgs {
    /// The batch, as the command that decided printed it; none: the newest one
    pub batch: Option<String>,
    /// Only in this scope
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    /// Say what would be taken back and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `review`.
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
    /// In the terminal, where a browser could be opened too
    #[arg(long, conflicts_with_all = ["browser", "list", "apply"])]
    pub tty: bool,
    /// In a browser, where none is opened by itself: the address is printed
    #[arg(long, conflicts_with_all = ["list", "apply"])]
    pub browser: bool,
    /// List what waits, and decide nothing
    #[arg(long, conflicts_with = "apply")]
    pub list: bool,
    /// Approved memories that may be out of date, and why; with --list, decide nothing
    #[arg(long, conflicts_with = "apply")]
    pub stale: bool,
    /// Write decisions from a file (`-`: standard input), as `review --list --json` prints them with a verdict
    #[arg(long, value_name = "FILE")]
    pub apply: Option<PathBuf>,
}
