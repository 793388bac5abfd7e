//! The command `setup`.

use clap::Args;

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
