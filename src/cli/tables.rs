//! Brings vector tables up to date after the commands with which a person changes scopes, so that
//! nobody has to run `index`. `serve` never does: it writes nothing.

use super::error::CliError;
#[cfg(feature = "table")]
use super::index;
use ack_service::config::Config;

/// Whose vector tables are brought up to date after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tables {
    All,
    /// Those of scopes that the command adds or changes.
    Changed,
    None,
}

impl Tables {
    /// These tables, unless a person wants none or the command only shows what it would do.
    pub fn unless(self, is_unwanted: bool) -> Self {
        if is_unwanted { Self::None } else { self }
    }
}

/// Runs a command, and then brings vector tables up to date. Every memory is found without one, so
/// if that fails, the command has not failed. A light build has no tables.
#[cfg_attr(not(feature = "table"), expect(unused_variables, reason = "it has no tables"))]
pub fn with_tables(
    config: &Config,
    tables: Tables,
    command: impl FnOnce() -> Result<(), CliError>,
) -> Result<(), CliError> {
    #[cfg(feature = "table")]
    let before = match tables {
        Tables::None => return command(),
        Tables::All => Default::default(),
        Tables::Changed => index::states(config),
    };
    let outcome = command();
    #[cfg(feature = "table")]
    index::refresh(config, &before);
    outcome
}
