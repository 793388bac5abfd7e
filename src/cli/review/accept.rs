//! `review --accept-log`: after a loss that is known or wanted, the log counts as it is.

use std::io::ErrorKind;

use ack_api::decision::Decision;
use ack_api::text;
use ack_store::StoreProblem;

use crate::cli::caller::Caller;
use crate::cli::error::CliError;
use crate::cli::output::{write_err, write_json, write_plain};
use crate::cli::prompt;
use ack_desk::curate::log;
use ack_service::scope::Scope;

/// Shows what is to be accepted in each scope, and asks.
pub fn run(caller: Caller<'_>, scope: Option<&str>) -> Result<(), CliError> {
    let session = caller.session(None)?;
    let (mut accepted, mut is_any) = (Vec::new(), false);
    for scope in caller.scopes(scope)? {
        let (content, foreign) = log::shown(&scope);
        let Some(mut found) = to_accept(&scope) else {
            continue;
        };
        if !foreign.is_empty() {
            found.push_str("these lines were not written by ack-memory on this machine:\n");
            found.extend(foreign.iter().map(|line| foreign_line(line)));
        }
        is_any = true;
        write_err(&found);
        let question = format!("Accept the decision log of {} as it is?", scope.name);
        if session.is_human() && !prompt::confirm(&question) {
            continue;
        }
        if let Err(error) = log::accept(&scope, &content) {
            if !accepted.is_empty() {
                write_err(&accepted_text(&accepted));
            }
            return Err(error.into());
        }
        accepted.push(scope.name.clone());
    }
    if caller.json {
        return write_json(&serde_json::json!({ "accepted": accepted }));
    }
    write_plain(&match (accepted.as_slice(), is_any) {
        ([], false) => "nothing to accept: ack-memory wrote all of the decision logs\n".to_owned(),
        ([], true) => "nothing was accepted\n".to_owned(),
        (accepted, _) => accepted_text(accepted),
    })
}

fn accepted_text(scopes: &[String]) -> String {
    format!("accepted the decision log of {}\n", text::list(scopes))
}

/// What there is to accept in a scope, besides the lines of other programs.
fn to_accept(scope: &Scope) -> Option<String> {
    let what = match scope.store.decisions() {
        Ok(decisions) if decisions.foreign() == 0 => return None,
        Ok(_) => String::new(),
        Err(error) => match &error.problem {
            StoreProblem::Decisions(source) if source.kind() != ErrorKind::InvalidData => {
                return None;
            }
            StoreProblem::Decisions(_) | StoreProblem::LostDecisions(_) => format!("{error}\n"),
            _ => return None,
        },
    };
    Some(format!("scope {}: {what}", scope.name))
}

/// A decision of another program, or a line that is not a decision.
fn foreign_line(line: &str) -> String {
    match Decision::parse(line) {
        Ok(line) => {
            let [id, actor, time] =
                [&line.id, &line.actor, &line.time].map(|field| text::line(field, 80));
            format!("  {id}  {}  {actor}  {time}\n", line.verdict.as_str())
        }
        Err(_) => format!("  {}\n", text::line(line, 160)),
    }
}
