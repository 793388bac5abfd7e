//! Scopes in buckets: updates the local copies before a question is answered, and reports how far
//! that succeeded.

use std::sync::Arc;

use ack_api::remote::{Freshness, WaitPolicy};
use ack_api::{ErrorCode, Hint, Message, Note, NoteKind, text, time};
use ack_store::{StoreError, StoreProblem};

use crate::bucket::Remote;
use crate::scope::resolve::Selection;
use crate::scope::{Scope, ScopeError};

/// Adds notes about scopes in buckets that may be out of date. Those without a local copy are
/// removed from the selection; the error is about the first of them.
pub fn prepare(
    selection: &mut Selection,
    wait_policy: WaitPolicy,
    notes: &mut Vec<Note>,
) -> Option<ScopeError> {
    let remote: Vec<(String, Arc<Remote>)> = selection
        .scopes
        .iter()
        .filter_map(|scope| Some((scope.name.clone(), scope.remote.clone()?)))
        .collect();
    // Each may wait for its server, so wait for all of them in parallel.
    let ask = |(_, remote): &(String, Arc<Remote>)| remote.prepare(wait_policy);
    let all_freshness: Vec<Freshness> = match remote.as_slice() {
        several @ [_, _, ..] => std::thread::scope(|threads| {
            let asked: Vec<_> = several.iter().map(|one| threads.spawn(move || ask(one))).collect();
            let answers = asked
                .into_iter()
                .map(|asked| asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            answers.collect()
        }),
        few => few.iter().map(ask).collect(),
    };
    let mut first = None;
    for ((name, _), freshness) in remote.into_iter().zip(all_freshness) {
        let Some((kind, message)) = freshness_note(&freshness) else {
            continue;
        };
        let mut message = Message::new(message);
        if let Freshness::Cold { is_lasting, .. } = freshness {
            let reason = message.to_string();
            selection.skip(&name, reason.clone());
            let look = Hint::command("doctor", "shows every scope");
            let fetch = Hint::setting("a query without `--offline`", "fetches it");
            let hints = match wait_policy {
                WaitPolicy::None => vec![fetch.clone()],
                WaitPolicy::Brief if is_lasting => vec![look],
                WaitPolicy::Brief => vec![Hint::advice("ask again in a moment"), look],
            };
            if wait_policy == WaitPolicy::None {
                message = message.with(fetch);
            }
            first.get_or_insert(ScopeError::Cold { name: name.clone(), reason, hints });
        }
        notes.push(Note::about(kind, name, message));
    }
    first
}

/// Whether an error says that a bucket's copy is damaged. Other failures are temporary.
fn is_damage(error: &StoreError) -> bool {
    matches!(error.problem, StoreProblem::Sqlite(_))
        || matches!(
            error.code(),
            ErrorCode::StoreCorrupt
                | ErrorCode::StoreEmpty
                | ErrorCode::StoreForeign
                | ErrorCode::StoreNotFound
                | ErrorCode::StoreNotSqlite
        )
}

/// Rebuilds a bucket's copy if it is damaged. Returns whether it is worth reading again.
pub fn repair(scope: &Scope, error: &StoreError, wait_policy: WaitPolicy) -> bool {
    let remote = scope.remote.as_ref().filter(|_| is_damage(error));
    remote.is_some_and(|remote| remote.repair_records(wait_policy))
}

/// Why a bucket's scope cannot be read if its copy is damaged. The next request rebuilds it.
pub fn damaged(scope: &Scope, error: &StoreError) -> Option<ScopeError> {
    let remote = scope.remote.as_ref().filter(|_| is_damage(error))?;
    remote.repair_records(WaitPolicy::None);
    let reason = format!(
        "its copy on this machine is damaged ({error}), and is fetched again from {} once that \
         answers",
        remote.address()
    );
    Some(ScopeError::Cold {
        name: scope.name.clone(),
        reason: text::line(&reason, 400),
        hints: vec![
            Hint::advice("ask again once the bucket answers"),
            Hint::command("doctor", "shows every scope"),
        ],
    })
}

/// If it may be damaged, the copy of a bucket's version is checked, and fetched again.
pub fn unusable_table(scope: &Scope, reason: &str, may_be_damaged: bool) -> Message {
    let message =
        format!("its vector table is not used ({reason}); nothing is missing from answers");
    match &scope.remote {
        Some(remote) if may_be_damaged && remote.check_table() => Message::new(format!(
            "{message}; its copy is damaged, and is fetched again from {} once that answers",
            remote.address()
        )),
        _ => Message::new(message).with(table_command(scope, "repairs it")),
    }
}

pub fn table_command(scope: &Scope, outcome: &str) -> Hint {
    match &scope.remote {
        None => Hint::command(format!("index --scope {}", scope.name), outcome.to_owned()),
        Some(remote) => Hint::command(
            format!("publish SCOPE --to {} --reindex", remote.address()),
            format!("{outcome}, run by whoever publishes it"),
        ),
    }
}

pub fn freshness_note(freshness: &Freshness) -> Option<(NoteKind, String)> {
    let (kind, message) = match freshness {
        Freshness::Current => return None,
        Freshness::Stale { asked_at, reason } => {
            let asked_at = asked_at.map(time::to_rfc3339);
            let time = asked_at.as_deref().unwrap_or("an unknown time");
            (NoteKind::RemoteStale, format!("as of {time}: {reason}"))
        }
        Freshness::Cold { reason, .. } => (NoteKind::RemoteCold, reason.clone()),
    };
    Some((kind, text::line(&message, 400)))
}
