//! What is typed behind a command that decides: ids, numbers of results, addresses.

use std::sync::Arc;

use ack_api::memory::fold_name;
use ack_api::uri::Address;
use ack_api::{Also, text};
use jiff::Timestamp;

use crate::cli::args::DecideArgs;
use crate::cli::caller::Caller;
use crate::cli::error::CliError;
use crate::cli::get::numbered_result;
use crate::cli::last_query::LastQueryStore;
use ack_desk::curate::find::{by_id, by_whole_id};
use ack_desk::curate::{Candidate, CurateError};
use ack_service::same_id::{address, check_scope};
use ack_service::scope::Scope;

fn is_number_and_id(typed: &str, hit: &Also, own: &Candidate) -> CliError {
    let scope = text::line(&own.scope.name, 80);
    let result = text::id(&hit.id);
    let address = Address::Memory { scope: own.scope.name.clone(), id: typed.to_owned() };
    let message = format!(
        "`{typed}` is the id of a memory in scope `{scope}`, and the number of `{result}` in the \
         last query"
    );
    let hint = format!("write `{address}` for the first, or `{result}` for the second");
    CliError::typed(message).with_hint(hint)
}

/// The scopes in which a command looks for a memory.
pub struct Places<'a> {
    pub caller: Caller<'a>,
    pub args: &'a DecideArgs,
    pub scopes: Vec<Arc<Scope>>,
}

impl<'a> Places<'a> {
    pub fn of(caller: Caller<'a>, args: &'a DecideArgs) -> Result<Self, CliError> {
        Ok(Self { caller, args, scopes: caller.readable_scopes(args.scope.as_deref())? })
    }

    /// The memory that was typed: the number of a result of the last query at this terminal, an id,
    /// the beginning of one, or an address.
    pub fn find(&self, typed: &str) -> Result<Candidate, CliError> {
        let config = self.caller.config;
        let last = LastQueryStore::of(config).and_then(|memory| memory.last(Timestamp::now()));
        let hit = last.as_ref().and_then(|last| numbered_result(typed, last));
        let whole = by_whole_id(&self.scopes, typed);
        if let (Some(hit), Ok(own)) = (hit, &whole)
            && own.memory().id != hit.id
        {
            return Err(is_number_and_id(typed, hit, own));
        }
        let found = match hit {
            Some(hit) => by_whole_id(&self.named(&hit.scope), &hit.id),
            None => match (address(typed), whole) {
                // One whose id looks like an address comes first, as for `get`.
                (Some((scope, id)), Err(_)) => by_whole_id(&self.addressed(typed, &scope)?, &id),
                (Some(_), found) => found,
                (None, _) => by_id(&self.scopes, typed),
            },
        };
        let error = match found {
            Err(error @ CurateError::NotFound { .. }) => error,
            found => return Ok(found?),
        };
        let typed = hit.map_or(typed, |hit| hit.id.as_str());
        Err(self.elsewhere(typed).unwrap_or(error).into())
    }

    /// The scope that an address names.
    fn addressed(&self, typed: &str, scope: &str) -> Result<Vec<Arc<Scope>>, CliError> {
        check_scope(typed, self.args.scope.as_deref(), &self.scopes)?;
        let named = self.named(scope);
        if named.is_empty() && self.caller.config.pinned.is_none() {
            return self.caller.scopes(Some(scope));
        }
        Ok(named)
    }

    fn named(&self, name: &str) -> Vec<Arc<Scope>> {
        let name = fold_name(name);
        let scopes = self.scopes.iter();
        scopes.filter(|scope| fold_name(&scope.name) == name).cloned().collect()
    }

    /// The error for a memory that is in another scope than the command names.
    fn elsewhere(&self, typed: &str) -> Option<CurateError> {
        let only = self.args.scope.as_ref()?;
        let scopes = self.caller.scopes(None).ok()?;
        let mut found =
            scopes.iter().filter_map(|scope| by_id(std::slice::from_ref(scope), typed).ok());
        let candidate = found.next()?;
        Some(CurateError::OtherScope {
            id: candidate.memory().id.clone(),
            asked: only.clone(),
            scope: candidate.scope.name.clone(),
            status: candidate.status_in_words(),
        })
    }
}
