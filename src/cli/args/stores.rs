//! The commands for stores: `setup`, `import`, `index`, `eval`, `demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
