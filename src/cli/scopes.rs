//! The commands under `scopes`. They write manifests, never a store.

pub mod add;
pub mod discover;
pub mod offer;
pub mod remove;
pub mod set;

use crate::cli::args::ScopesCommand;
use crate::cli::error::CliError;
use crate::config::Config;

/// Runs one of them.
pub fn run(config: &Config, command: &ScopesCommand, json: bool) -> Result<(), CliError> {
    match command {
        ScopesCommand::Add(args) => add::run(config, args),
        ScopesCommand::Discover => discover::run(config, json),
        ScopesCommand::Set(args) => set::set(config, args, json),
        ScopesCommand::Claim(args) => set::claim(config, args, json),
        ScopesCommand::Remove(args) => remove::run(config, args, json),
    }
}
