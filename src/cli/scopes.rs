//! The commands under `scopes`. They write manifests, never a store.

pub mod add;
pub mod found_store;
pub mod list;
pub mod remove;
pub mod set;
pub mod team;

use crate::cli::args::{Global, ScopesCommand};
use crate::cli::error::CliError;
use crate::cli::settings::config;
use crate::cli::tables::{Tables, with_tables};

pub fn run(global: &Global, command: &ScopesCommand) -> Result<(), CliError> {
    let json = global.json;
    let config = &config(global)?;
    match command {
        ScopesCommand::Add(args) => {
            let tables = Tables::Changed.unless(args.no_index || !args.yes);
            with_tables(config, tables, || add::run(config, args))
        }
        ScopesCommand::Set(args) => set::set(config, args, json),
        ScopesCommand::Remove(args) => remove::run(config, args, json),
    }
}
