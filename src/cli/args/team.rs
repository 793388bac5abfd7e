//! The commands for teams: `publish`, `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Args)]
pub struct PublishArgs {
    /// The scope
    pub scope: String,
    /// Folder to write to, such as one in a git repository; created if missing
    #[arg(long, value_name = "DIR", required_unless_present = "to", conflicts_with = "to")]
    pub to_folder: Option<PathBuf>,
    /// Bucket to publish to, such as s3://acme-memory/platform; needs the full build
    #[arg(long, value_name = "ADDRESS")]
    pub to: Option<String>,
    /// Publish only memories with the status `promoted`
    #[arg(long)]
    pub only_promoted: bool,
    /// Leave out memories whose text must not be published, instead of failing
    #[arg(long)]
    pub skip_held: bool,
    /// Also replace files that were edited in the folder
    #[arg(long, conflicts_with = "to")]
    pub overwrite: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub dry_run: bool,
    /// Write without asking
    #[arg(long, short = 'y')]
    pub yes: bool,
    #[command(flatten)]
    pub bucket: BucketArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "With --to")]
pub struct BucketArgs {
    /// Withdraw this memory now and keep it withdrawn; nothing else changes
    #[arg(long, value_name = "ID", requires = "to", conflicts_with = "to_folder")]
    pub withdraw: Vec<String>,
    /// Restore a memory that was withdrawn with --withdraw
    #[arg(long, value_name = "ID", requires = "to", conflicts_with_all = ["to_folder", "withdraw"])]
    pub restore: Vec<String>,
    /// Roll readers back to this version
    #[arg(long, value_name = "VERSION", requires = "to", conflicts_with_all = ["to_folder", "withdraw", "list", "prune"])]
    pub rollback: Option<String>,
    /// List the versions
    #[arg(long, requires = "to", conflicts_with_all = ["to_folder", "withdraw", "prune"])]
    pub list: bool,
    /// Remove versions older than this, such as 30d
    #[arg(long, value_name = "AGE", requires = "to", conflicts_with_all = ["to_folder", "withdraw"])]
    pub prune: Option<String>,
    /// Replace the memories that another scope published there: its name
    #[arg(long, value_name = "NAME", requires = "to", conflicts_with_all = ["to_folder", "withdraw", "rollback", "list", "prune"])]
    pub replace: Option<String>,
    /// Rebuild the table and its indexes
    #[arg(long, requires = "to", conflicts_with = "to_folder")]
    pub reindex: bool,
    /// The server, if it is not the cloud's own: https://, or http:// on this machine
    #[arg(long, value_name = "URL", requires = "to", conflicts_with = "to_folder")]
    pub endpoint: Option<String>,
    /// The bucket's region
    #[arg(long, value_name = "REGION", requires = "to", conflicts_with = "to_folder")]
    pub region: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Folder of notes, or one file [default: working directory]
    pub path: Option<PathBuf>,
    /// The output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: CheckFormat,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people
    #[default]
    Text,
    /// As annotations of GitHub Actions
    Github,
}
