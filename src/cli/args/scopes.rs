//! The commands under `scopes`.

use std::path::PathBuf;

use ack_api::memory::Unreviewed;
use clap::{Args, Subcommand};

/// Arguments of `scopes`.
#[derive(Debug, Clone, Args)]
pub struct ScopesArgs {
    /// What to do; none: list
    #[command(subcommand)]
    pub command: Option<ScopesCommand>,
    /// One scope in detail
    #[arg(long, short = 's', alias = "in-scope", value_name = "NAME")]
    pub scope: Option<String>,
}

/// The commands under `scopes`.
#[derive(Debug, Clone, Subcommand)]
pub enum ScopesCommand {
    /// Write a manifest for a store that lies elsewhere; shows it first, writes it with --yes
    Add(AddArgs),
    /// List the stores that lie on this machine, of this program and of others
    Discover,
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
    #[arg(long, short = 'y')]
    pub yes: bool,
}

fn unreviewed(word: &str) -> Result<Unreviewed, String> {
    match word {
        "staging" => Ok(Unreviewed::Staging),
        "approved" => Ok(Unreviewed::Approved),
        other => Err(format!("`{other}` is not allowed; use staging or approved")),
    }
}
