//! The commands under `scopes`.

use std::path::PathBuf;

use ack_api::memory::Unreviewed;
use clap::{Args, Subcommand};

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
