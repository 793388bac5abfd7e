//! The commands under `scopes`. They write manifests, never a store.

mod add;
mod discover;

use crate::cli::args::ScopesCommand;
use crate::cli::error::CliError;
use crate::config::Config;

/// Runs one of them.
pub fn run(config: &Config, command: &ScopesCommand, json: bool) -> Result<(), CliError> {
    match command {
        ScopesCommand::Add(args) => add::run(config, args),
        ScopesCommand::Discover => discover::run(config, json),
    }
}
