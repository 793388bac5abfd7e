//! The commands for teams: `publish`, `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::publish::Format;

/// Arguments of `publish`.
#[derive(Debug, Clone, Args)]
pub struct PublishArgs {
    /// The scope
    pub scope: String,
    /// Folder to write to, for instance in a git repository; made if it is missing
    #[arg(long, value_name = "DIR")]
    pub to_folder: PathBuf,
    /// One Markdown file a memory, or one file of JSON lines
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
    /// Leave out memories whose text must not be published, instead of refusing
    #[arg(long)]
    pub skip_held: bool,
    /// Also replace files that were edited in the folder
    #[arg(long)]
    pub overwrite: bool,
    /// Say what would be done and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write without asking
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Arguments of `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Folder of notes, or one file [default: working directory]
    pub path: Option<PathBuf>,
    /// How to print what was found
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: CheckFormat,
    /// Warnings fail too
    #[arg(long)]
    pub strict: bool,
}

/// How `check` prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people
    #[default]
    Text,
    /// As annotations of GitHub Actions
    Github,
}
