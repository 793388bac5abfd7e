//! The command `setup`.

use clap::Args;

/// Arguments of `setup`.
#[derive(Debug, Clone, Args)]
pub struct SetupArgs {
    /// Without asking: stores are added to be reviewed first, installed clients are connected
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Show what it would do and write nothing
    #[arg(long)]
    pub dry_run: bool,
}
