//! Brings vector tables up to date after the commands with which a person changes scopes, so that
//! nobody has to run `index`. `serve` never does: it writes nothing.

use super::error::CliError;
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
/// if that fails, the command has not failed.
#[cfg(feature = "table")]
pub fn with_tables(
    config: &Config,
    tables: Tables,
    command: impl FnOnce() -> Result<(), CliError>,
) -> Result<(), CliError> {
    let before = match tables {
        Tables::None => return command(),
        Tables::All => Default::default(),
        Tables::Changed => with_table::states(config),
    };
    let outcome = command();
    with_table::refresh(config, &before);
    outcome
}

/// A build without vector tables.
#[cfg(not(feature = "table"))]
pub fn with_tables(
    _config: &Config,
    _tables: Tables,
    command: impl FnOnce() -> Result<(), CliError>,
) -> Result<(), CliError> {
    command()
}

#[cfg(feature = "table")]
mod with_table {
    use std::collections::HashMap;
    use std::sync::Arc;

    use ack_lance::build::{EncoderChoice, Options};
    use ack_store::open::FileState;

    use crate::cli::command::command;
    use crate::cli::index::index_scope;
    use crate::cli::output::write_err;
    use crate::cli::signals;
    use ack_connect::quoted;
    use ack_service::config::Config;
    use ack_service::scope::{Registry, Scope};

    /// A scope with fewer memories gets no table by itself: looking at all of them takes no time,
    /// and a machine may have thousands of such scopes, one for each project.
    const MIN_MEMORIES: u64 = 10;

    pub fn states(config: &Config) -> HashMap<String, FileState> {
        let scopes = Registry::new(config).discover().scopes;
        let state = |scope: &Arc<Scope>| Some((scope.name.clone(), scope.store.file_state().ok()?));
        scopes.iter().filter_map(state).collect()
    }

    /// Makes or updates the table of each scope whose store is not in the state that is known.
    pub fn refresh(config: &Config, known: &HashMap<String, FileState>) {
        let registry = Registry::new(config);
        let options = Options { dry_run: false, rebuild: false, encoder: EncoderChoice::Usual };
        for scope in registry.discover().scopes {
            let Ok(state) = scope.store.file_state() else {
                continue;
            };
            if known.get(&scope.name) == Some(&state) || !is_worth_a_table(&scope) {
                continue;
            }
            say_what_an_interrupt_ends();
            let resident = config.resident.value as usize;
            if let Err(error) = index_scope(&scope, resident, options) {
                write_err(&format!(
                    "note: {error}; searches find everything without a vector table, and `{}` \
                     tries again\n",
                    command(&format!("index --scope {}", quoted(&scope.name))),
                ));
            }
        }
        registry.close();
    }

    /// Whether a scope has a table, which has to follow its store, or enough memories for one. The
    /// table of a scope in a bucket comes from the bucket.
    fn is_worth_a_table(scope: &Scope) -> bool {
        if scope.remote.is_some() || scope.problem.is_some() {
            return false;
        }
        let count = || scope.store.snapshot(|snapshot| snapshot.counts_by_id());
        scope.lance_folder().exists()
            || count().is_ok_and(|counts| {
                counts.approved + counts.promoted + counts.staging >= MIN_MEMORIES
            })
    }

    /// Makes Ctrl-C say that only the table is not finished.
    fn say_what_an_interrupt_ends() {
        let note = format!(
            "\nInterrupted while making a vector table. Searches find everything without it, and \
             `{}` goes on with it.\n",
            command("index --all")
        );
        signals::on_interrupt(move || {
            write_err(&note);
            signals::end_by_interrupt();
        });
    }
}
