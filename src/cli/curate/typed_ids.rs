//! What is typed behind a command that decides: ids, numbers of results, addresses, filters.

use ack_api::Hint;
use std::sync::Arc;

use ack_api::memory::fold_name;
use jiff::Timestamp;

use crate::cli::args::{ChosenArgs, ReplaceArgs};
use crate::cli::caller::Caller;
use crate::cli::error::CliError;
use crate::cli::get::numbered_result;
use crate::cli::last_query::LastQueryStore;
use ack_desk::curate::find::{by_id, by_whole_id};
use ack_desk::curate::{Candidate, CurateError};
use ack_service::same_id::{address, check_scope};
use ack_service::scope::Scope;

/// The scopes in which a command looks for a memory.
pub struct Places<'a> {
    pub caller: Caller<'a>,
    /// The scope that the command names.
    pub only: Option<&'a str>,
    pub scopes: &'a [Arc<Scope>],
}

impl Places<'_> {
    /// The memory that was typed: the number of a result of the last query at this terminal, an id,
    /// the beginning of one, or an address.
    pub fn find(&self, typed: &str) -> Result<Candidate, CliError> {
        let config = self.caller.config;
        let last = LastQueryStore::of(config).and_then(|memory| memory.last(Timestamp::now()));
        let hit = last.as_ref().and_then(|last| numbered_result(typed, last));
        let found = match hit {
            Some(hit) => by_whole_id(&self.named(&hit.scope), &hit.id),
            None => match address(typed) {
                Some((scope, id)) => self.at_address(typed, &scope, &id)?,
                None => by_id(self.scopes, typed),
            },
        };
        let error = match found {
            Err(error @ CurateError::NotFound { .. }) => error,
            found => return Ok(found?),
        };
        let typed = hit.map_or(typed, |hit| hit.id.as_str());
        Err(self.elsewhere(typed).unwrap_or(error).into())
    }

    /// The memory at an address. One whose id looks like an address comes first, as for `get`.
    fn at_address(
        &self,
        typed: &str,
        scope: &str,
        id: &str,
    ) -> Result<Result<Candidate, CurateError>, CliError> {
        if let Ok(found) = by_whole_id(self.scopes, typed) {
            return Ok(Ok(found));
        }
        check_scope(typed, self.only, self.scopes)?;
        let mut named = self.named(scope);
        if named.is_empty() && self.caller.config.pinned.is_none() {
            named = self.caller.scopes(Some(scope))?;
        }
        Ok(by_whole_id(&named, id))
    }

    fn named(&self, name: &str) -> Vec<Arc<Scope>> {
        let name = fold_name(name);
        let scopes = self.scopes.iter();
        let scopes = scopes.filter(|scope| fold_name(&scope.name) == name);
        scopes.cloned().collect()
    }

    /// The error for a memory that is in another scope than the command names.
    fn elsewhere(&self, typed: &str) -> Option<CurateError> {
        let only = self.only?;
        let scopes = self.caller.scopes(None).ok()?;
        let mut found = scopes
            .iter()
            .filter_map(|scope| by_id(std::slice::from_ref(scope), typed).ok());
        let candidate = found.next()?;
        Some(CurateError::OtherScope {
            id: candidate.memory().id.clone(),
            asked: only.to_owned(),
            scope: candidate.scope.name.clone(),
            status: candidate.status_in_words(),
        })
    }
}

/// Rejects ids together with filters: an id names a memory, a filter chooses among those that wait.
pub fn check_chosen(command: &str, args: &ChosenArgs) -> Result<(), CliError> {
    let filters = [
        ("--type", args.kind.is_some()),
        ("--project", args.project.is_some()),
        ("--tag", args.tag.is_some()),
        ("--session", args.session.is_some()),
        ("--waiting", args.waiting),
    ];
    let given = filters.into_iter().find(|(_, is_given)| *is_given);
    let (Some((filter, _)), [first, ..]) = (given, args.ids.as_slice()) else {
        return Ok(());
    };
    let message = format!(
        "`{filter}` chooses among the memories that wait for review, and `{first}` names a memory; \
         `{command}` takes ids or filters, not both"
    );
    let hint =
        format!("leave out `{filter}` to {command} only what the ids name, or leave out the ids");
    let example = format!("{command} {}", args.ids.join(" "));
    Err(CliError::usage(filter, message)
        .with_hint(hint)
        .with_example(example))
}

/// The memory that goes and the one that stays.
pub fn both(args: &ReplaceArgs) -> Result<(&str, &str), CliError> {
    let stays = args.by.as_deref().or(args.into.as_deref());
    let (message, hint, example) = match (args.ids.as_slice(), stays) {
        ([goes], Some(stays)) => return Ok((goes, stays)),
        ([], _) => (
            "`replace` needs two memories: the one that goes, and with `--by` the one that stays"
                .to_owned(),
            Hint::command("review --list", "shows what waits for review, with the ids"),
            "replace 7be2 --by 19f7".to_owned(),
        ),
        ([goes], None) => (
            format!(
                "`replace` needs two memories: `{goes}` goes, and `--by` is missing, which names \
                 the one that stays"
            ),
            Hint::command("query WORDS", "finds the id for `--by ID`"),
            format!("replace {goes} --by 19f7"),
        ),
        ([goes, stays], None) => (
            format!(
                "`replace` does not know which of `{goes}` and `{stays}` stays: name that one with \
                 `--by`"
            ),
            "the other one goes".into(),
            format!("replace {goes} --by {stays}"),
        ),
        ([goes, ..], stays) => (
            format!(
                "`replace` takes away one memory at a time, and {} were named",
                args.ids.len()
            ),
            "run it once for each of them".into(),
            format!("replace {goes} --by {}", stays.unwrap_or("ID")),
        ),
    };
    Err(CliError::usage("--by", message)
        .with_hint(hint)
        .with_example(example))
}
