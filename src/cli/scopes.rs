//! `scopes` lists the scopes; the commands under it write manifests, never a store.

pub mod add;
pub mod found_store;
pub mod remove;
pub mod set;
pub mod team;

use ack_api::{ListScopesRequest, ListScopesResponse, Resolve as _};

use super::CloseOnDrop;
use super::args::{Global, ScopesArgs, ScopesCommand};
use super::command::SHELL;
use super::error::CliError;
use super::output::print;
use super::settings::config;
use super::tables::{Tables, with_tables};
use super::{progress, render};
use ack_service::scope::ScopeError;
use ack_service::{Error, Service};

pub fn run(global: &Global, args: ScopesArgs) -> Result<(), CliError> {
    let json = global.json;
    let config = config(global)?;
    match &args.command {
        None => {
            let service = CloseOnDrop(Service::new(config).leak());
            list(service.0, global, args.scope)
        }
        Some(ScopesCommand::Add(args)) => {
            let tables = Tables::Changed.unless(args.no_index || !args.yes);
            with_tables(&config, tables, || add::run(&config, args, json))
        }
        Some(ScopesCommand::Set(args)) => set::set(&config, args, json),
        Some(ScopesCommand::Remove(args)) => remove::run(&config, args, json),
    }
}

/// Lists the scopes, or shows one of them in detail.
fn list(service: &Service, global: &Global, scope: Option<String>) -> Result<(), CliError> {
    let all = progress::while_reading(|| all_scopes(service, scope));
    let mut all = all.map_err(|error| match error {
        Error::Scope(ScopeError::NotFound { name, known, .. }) => CliError::NoScope { name, known },
        error => error.into(),
    })?;
    all.resolve(&SHELL);
    print(&all, global, render::scopes)?;
    // Nothing works if the single database of `--db` cannot be read.
    if service.config.db.is_some() {
        for scope in service.registry.discover().scopes {
            scope.store.snapshot(|_| Ok(()))?;
        }
    }
    Ok(())
}

fn all_scopes(service: &Service, scope: Option<String>) -> Result<ListScopesResponse, Error> {
    let mut request = ListScopesRequest { scope, ..ListScopesRequest::default() };
    let mut all = service.list_scopes(&request)?;
    while let Some(cursor) = all.next_cursor.take() {
        request.cursor = Some(cursor);
        let page = service.list_scopes(&request)?;
        all.scopes.extend(page.scopes);
        all.next_cursor = page.next_cursor;
    }
    Ok(all)
}
