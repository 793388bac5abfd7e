//! The commands that are about stores: `scopes`, `import`, `index`, `eval`, `demo`.

use std::path::PathBuf;

use ack_api::memory::Unreviewed;
use clap::{Args, Subcommand};

/// Arguments of `eval`.
#[derive(Debug, Clone, Args)]
pub struct EvalArgs {
    /// The questions, one JSON object a line: text, relevant (ids), and where they matter project, filter, category
    pub queries: PathBuf,
}

/// Arguments of `scopes`.
#[derive(Debug, Clone, Args)]
pub struct ScopesArgs {
    /// What to do; none: list
    #[command(subcommand)]
    pub command: Option<ScopesCommand>,
    /// One scope in detail
    #[arg(long = "in-scope", value_name = "NAME")]
    pub in_scope: Option<String>,
}

/// The commands under `scopes`.
#[derive(Debug, Clone, Subcommand)]
pub enum ScopesCommand {
    /// Write a manifest for a store that lies elsewhere; shows it first, writes it with --yes
    Add(AddArgs),
}

/// Arguments of `scopes add`.
#[derive(Debug, Clone, Args)]
pub struct AddArgs {
    /// Name of the new scope
    pub name: String,
    /// The database, opened in place
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
    /// Only searched when it is current or named
    #[arg(long)]
    pub private: bool,
    /// What rows count as in a store that keeps no review status
    #[arg(long, value_parser = unreviewed, value_name = "staging|approved")]
    pub unreviewed: Option<Unreviewed>,
    /// Write it
    #[arg(long)]
    pub yes: bool,
}

fn unreviewed(word: &str) -> Result<Unreviewed, String> {
    match word {
        "staging" => Ok(Unreviewed::Staging),
        "approved" => Ok(Unreviewed::Approved),
        other => Err(format!("`{other}` is not allowed; use staging or approved")),
    }
}

/// Arguments of `import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// The file, or `-` for standard input; one JSON object a line (schemas/import-line.json)
    pub file: PathBuf,
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
    /// Every scope
    #[arg(long)]
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
