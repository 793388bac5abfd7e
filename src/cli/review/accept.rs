//! `review --accept-log`: after a loss that is known or wanted, the log counts as it is.

use std::io::ErrorKind;
use std::sync::Arc;

use ack_api::text;
use ack_store::StoreError;
use ack_store::decisions::Decisions;

use crate::cli::caller::Caller;
use crate::cli::curate::print_json;
use crate::cli::error::CliError;
use crate::cli::output::{write_err, write_plain};
use crate::cli::prompt;
use crate::curate::log;
use crate::scope::Scope;

/// Shows what is to be accepted in each scope, and asks.
pub fn run(caller: Caller<'_>, scope: Option<&str>) -> Result<(), CliError> {
    let session = caller.session(None)?;
    let mut accepted = Vec::new();
    let mut is_any = false;
    for scope in caller.scopes(scope)? {
        let Some(found) = to_accept(&scope) else {
            continue;
        };
        is_any = true;
        write_err(&found);
        let question = format!("Accept the decision log of {} as it is?", scope.name);
        if session.is_human() && !prompt::confirm(&question) {
            continue;
        }
        log::accept(&scope)?;
        accepted.push(scope.name.clone());
    }
    if caller.json {
        return print_json(&serde_json::json!({ "accepted": accepted }));
    }
    write_plain(&match (accepted.as_slice(), is_any) {
        ([], false) => "nothing to accept: no decision log lost a line\n".to_owned(),
        ([], true) => "nothing was accepted\n".to_owned(),
        (accepted, _) => format!("accepted the decision log of {}\n", text::list(accepted)),
    })
}

/// What there is to accept in a scope, with the lines that other programs wrote.
fn to_accept(scope: &Arc<Scope>) -> Option<String> {
    let decisions = match scope.store.decisions() {
        Err(error) => {
            let is_content = match &error {
                StoreError::LostDecisions { .. } => true,
                StoreError::Decisions { source, .. } => source.kind() == ErrorKind::InvalidData,
                _ => false,
            };
            return is_content.then(|| format!("scope {}: {error}\n", scope.name));
        }
        Ok(decisions) if decisions.foreign() == 0 => return None,
        Ok(decisions) => decisions,
    };
    let mut found = format!(
        "scope {}: these decisions were not written by ack-memory on this machine:\n",
        scope.name
    );
    found.extend(foreign_lines(&decisions));
    Some(found)
}

fn foreign_lines(decisions: &Decisions) -> impl Iterator<Item = String> {
    let about = decisions.ids().into_iter().flat_map(move |id| {
        let lines = decisions.about(id).iter().enumerate();
        lines.filter(move |(position, _)| decisions.is_foreign(id, *position))
    });
    about.map(|(_, line)| {
        let [id, actor, time] =
            [&line.id, &line.actor, &line.time].map(|field| text::line(field, 80));
        format!("  {id}  {}  {actor}  {time}\n", line.verdict.as_str())
    })
}
