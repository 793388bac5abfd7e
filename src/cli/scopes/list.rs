//! `ack-memory scopes`.

use crate::cli::answer::print;
use crate::cli::args::Global;
use crate::cli::error::CliError;
use crate::cli::service::{CloseOnDrop, all_scopes};
use crate::cli::settings::config;
use crate::cli::{progress, render};
use ack_service::scope::ScopeError;
use ack_service::{Error, Service};

/// Lists the scopes, or shows one of them in detail.
pub fn run(global: &Global, scope: Option<String>) -> Result<(), CliError> {
    let service = CloseOnDrop(Service::new(config(global)?).leak());
    let all = progress::while_reading(|| all_scopes(service.0, scope));
    let all = all.map_err(|error| match error {
        CliError::Request(Error::Scope(ScopeError::NotFound { name, known, .. })) => {
            CliError::NoScope { name, known }
        }
        error => error,
    })?;
    print(&all, global, render::scopes)?;
    check_database(service.0)
}

/// Fails if the single database of `--db` cannot be read, because nothing works without it.
fn check_database(service: &Service) -> Result<(), CliError> {
    if service.config.db.is_some() {
        for scope in service.registry.discover().scopes {
            scope.store.snapshot(|_| Ok(()))?;
        }
    }
    Ok(())
}
