//! The service of one command: closed at its end, with the pages of a list put together.

use crate::cli::command::SHELL;
use ack_api::Resolve as _;
use ack_api::{ListScopesRequest, ListScopesResponse};

use super::error::CliError;
use ack_service::Service;

/// Closes the service at the end of a command.
pub(super) struct CloseOnDrop(pub(super) &'static Service);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

pub(super) fn all_scopes(
    service: &Service,
    scope: Option<String>,
) -> Result<ListScopesResponse, CliError> {
    let mut request = ListScopesRequest { scope, ..ListScopesRequest::default() };
    let mut all = service.list_scopes(&request)?;
    while let Some(cursor) = all.next_cursor.take() {
        request.cursor = Some(cursor);
        let page = service.list_scopes(&request)?;
        all.scopes.extend(page.scopes);
        all.next_cursor = page.next_cursor;
    }
    all.resolve(&SHELL);
    Ok(all)
}
