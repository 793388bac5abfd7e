//! The commands for stores and scopes: `setup`, `scopes`, `import`, `index`, `publish`, `check`,
//! `eval`, `demo`.

use std::path::PathBuf;

use ack_api::memory::Unreviewed;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Clone, Args)]
pub struct SetupArgs {
    /// Do not ask: add stores for review and connect installed clients
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub dry_run: bool,
    /// Do not make or update the vector tables
    #[arg(long)]
    pub no_index: bool,
}

#[derive(Debug, Clone, Args)]
pub struct EvalArgs {
    /// The queries, one JSON object per line: text, relevant (ids), and optionally project, filter,
    /// category
    pub queries: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// The file, or `-` for standard input; one JSON object per line (schemas/import-line.json)
    pub file: PathBuf,
    /// The scope to import into, new or existing
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    /// Import the valid lines even if others are refused
    #[arg(long)]
    pub skip_refused: bool,
    /// Replace existing memories whose content differs
    #[arg(long)]
    pub update: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub dry_run: bool,
    /// Do not make or update the vector table
    #[arg(long)]
    pub no_index: bool,
}

#[derive(Debug, Clone, Args)]
pub struct IndexArgs {
    /// Only this scope
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    /// Every scope
    #[arg(long, short = 'a')]
    pub all: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub dry_run: bool,
    /// Rebuild the table from scratch
    #[arg(long)]
    pub rebuild: bool,
    /// The encoder of the vectors [default: the table's; for a new table, contextual up to 5,000
    /// memories]
    #[arg(long, value_enum)]
    pub encoder: Option<EncoderName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EncoderName {
    /// Adds up the words of a text: microseconds for each memory
    Static,
    /// Also reads memories and questions in context: 1 to 5 ms for each memory. Better for
    /// questions in other words than the memory's, slightly worse for long write-ups
    Contextual,
}

#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Folder to build in, empty or missing [default: a temporary folder]
    pub folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct ScopesArgs {
    /// What to do [default: list]
    #[command(subcommand)]
    pub command: Option<ScopesCommand>,
    /// One scope in detail
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
}

#[derive(Debug, Clone, Subcommand)]
pub enum ScopesCommand {
    /// Write a manifest for an existing store; shows it first, writes it with --yes
    Add(AddArgs),
    /// Set keys of a scope's manifest; prints how to undo it
    Set(SetArgs),
    /// Remove a scope; its store is never touched
    Remove(RemoveArgs),
}

#[derive(Debug, Clone, Args)]
pub struct SetArgs {
    /// The scope
    pub name: String,
    /// `unreviewed=approved`, `visibility=private`, `paths=~/src/api,~/src/web`, `paths+=.` (this
    /// project), `projects+=web`, `description=` (removes it)
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub assignments: Vec<String>,
    /// Show the change without writing it
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Args)]
pub struct RemoveArgs {
    /// The scope
    pub name: String,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
}

#[derive(Debug, Clone, Default, Args)]
pub struct AddArgs {
    /// Name of the new scope
    pub name: String,
    /// The database or folder of notes, opened in place
    #[arg(long, value_name = "PATH")]
    pub store: PathBuf,
    /// What the scope is about
    #[arg(long)]
    pub description: Option<String>,
    /// A project that belongs here (repeatable)
    #[arg(long = "belongs", value_name = "PROJECT")]
    pub projects: Vec<String>,
    /// A project folder that belongs here (repeatable)
    #[arg(long = "path", value_name = "DIR")]
    pub paths: Vec<String>,
    /// A git remote that belongs here (repeatable)
    #[arg(long = "remote", value_name = "URL")]
    pub remotes: Vec<String>,
    /// Search it only if it is current or named
    #[arg(long)]
    pub private: bool,
    /// Status of rows in a store without a review status
    #[arg(long, value_parser = unreviewed, value_name = "staging|approved")]
    pub unreviewed: Option<Unreviewed>,
    /// For a folder in a git repository: the branch or tag whose notes count as approved
    #[arg(long = "ref", value_name = "NAME")]
    pub reference: Option<String>,
    /// Do not make or update the vector table
    #[arg(long)]
    pub no_index: bool,
    /// Write it
    #[arg(long, short = 'y')]
    pub yes: bool,
}

pub(super) fn unreviewed(word: &str) -> Result<Unreviewed, String> {
    match word {
        "staging" => Ok(Unreviewed::Staging),
        "approved" => Ok(Unreviewed::Approved),
        other => Err(format!("`{other}` is not allowed; use staging or approved")),
    }
}

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
