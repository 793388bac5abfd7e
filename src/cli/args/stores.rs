//! The commands for stores: `import`, `index`, `eval`, `demo`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `eval`.
#[derive(Debug, Clone, Args)]
pub struct EvalArgs {
    /// The questions, one JSON object a line: text, relevant (ids), and where they matter project, filter, category
    pub queries: PathBuf,
}

/// Arguments of `import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// The file, or `-` for standard input; one JSON object a line (schemas/import-line.json)
    pub file: PathBuf,
    /// The scope to import into, new or existing
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    /// Import the good lines where others are refused
    #[arg(long)]
    pub skip_refused: bool,
    /// Replace memories that are there with other content
    #[arg(long)]
    pub update: bool,
    /// Say what would be done and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `index`.
#[derive(Debug, Clone, Args)]
pub struct IndexArgs {
    /// Only this scope
    #[arg(long, short = 's', value_name = "NAME")]
    pub scope: Option<String>,
    /// Every scope
    #[arg(long, short = 'a')]
    pub all: bool,
    /// Say what would be done and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Make the table anew, whatever is there
    #[arg(long)]
    pub rebuild: bool,
    /// Folder with the transformer's model.safetensors, for better vectors
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
}

/// Arguments of `model`.
#[derive(Debug, Clone, Args)]
pub struct ModelArgs {
    /// What to do
    #[command(subcommand)]
    pub command: ModelCommand,
}

/// The commands under `model`.
#[derive(Debug, Clone, Subcommand)]
pub enum ModelCommand {
    /// Download the transformer (91 MB) for `index --model`; nothing else is ever downloaded
    Fetch {
        /// Folder to put it in
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
}

/// Arguments of `demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Folder to build in and keep, empty or absent; none: a temporary one
    pub folder: Option<PathBuf>,
}
