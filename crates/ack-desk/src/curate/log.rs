//! Decides about memories under the lock of a scope's log, from the memories as they are at that
//! moment, and appends the decisions to it ([`super::log_file`]).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ack_api::decision::{DECISION_LOG, Decision, Verdict};
use ack_api::memory::Status;
use ack_api::{Message, text};
use ack_store::decisions::seal::{Seal, seal_path};
use ack_store::decisions::{Decisions, MAX_LOG_BYTES, foreign_lines};
use ack_store::read::CuratedMemory;
use ack_sys::files;
use jiff::{SignedDuration, Timestamp};

use super::log_file::{self, LockedLog};
use super::side_effects::{SideEffects, of_decisions};
use super::sign;
use super::{CurateError, check_single};
use ack_service::scope::Scope;

#[derive(Debug, Default)]
pub struct WrittenDecisions {
    /// All of them, with those that follow from a rejection.
    pub decisions: Vec<Decision>,
    pub side_effects: SideEffects,
}

/// Writes the decisions of several scopes. None is written unless each of them can be written.
pub fn write_scopes<S>(
    steps: &[(Arc<Scope>, S)],
    batch: &str,
    mut write: impl FnMut(&Scope, &S) -> Result<(), CurateError>,
) -> Result<(), CurateError> {
    for (scope, _) in steps {
        check(scope)?;
    }
    let mut written = Vec::new();
    for (scope, step) in steps {
        match write(scope, step) {
            Ok(()) => written.push(scope.name.clone()),
            Err(source) if written.is_empty() => return Err(source),
            Err(source) => {
                let (batch, source) = (batch.to_owned(), Box::new(source));
                return Err(CurateError::PartlyWritten { written, batch, source });
            }
        }
    }
    Ok(())
}

/// The decisions that follow from others, and what else changes with all of them.
pub fn consequences(
    scope: &Scope,
    decisions: &[Decision],
    is_undo: bool,
) -> Result<(Vec<Decision>, SideEffects), CurateError> {
    let released = waiting_again(scope, decisions)?;
    let side_effects = scope
        .store
        .snapshot(|snapshot| of_decisions(scope, snapshot, decisions, &released, is_undo))?;
    Ok((released, side_effects))
}

/// Decides about memories as they are now: `decide` gets those of `ids` that exist, and no other
/// process can write to the log until its decisions are written. `is_undo`: they are earlier ones
/// again, for whatever the memories hold now.
///
/// # Errors
/// The store or the log cannot be read, the log cannot be written, or `decide` fails. Then nothing
/// is decided.
pub fn append(
    scope: &Scope,
    ids: &[&str],
    is_undo: bool,
    decide: impl FnOnce(&HashMap<String, CuratedMemory>) -> Result<Vec<Decision>, CurateError>,
) -> Result<WrittenDecisions, CurateError> {
    let log = LockedLog::open(&log_path(scope))?;
    let now = scope.store.snapshot(|snapshot| {
        let mut now = HashMap::new();
        for id in ids {
            if let Some(curated) = snapshot.curated(id)? {
                now.insert((*id).to_owned(), curated);
            }
        }
        Ok(now)
    })?;
    let mut decisions = decide(&now)?;
    for decided in decisions.iter().filter_map(|decision| now.get(&decision.id)) {
        check_single(scope, decided)?;
    }
    let (released, side_effects) = consequences(scope, &decisions, is_undo)?;
    decisions.extend(released);
    if scope.manifest.signers.is_some() {
        date_after_earlier(&*scope.store.decisions()?, &mut decisions);
    }
    let mut lines: String = decisions.iter().map(|decision| decision.to_line() + "\n").collect();
    if !lines.is_empty() {
        lines += &sign::signature(scope, &lines)?;
        log.append(&lines)?;
    }
    Ok(WrittenDecisions { decisions, side_effects })
}

/// Gives new decisions later times than those they overrule, in the log and in their own batch.
/// Where decisions are signed, their times order them, and a colleague's clock may be ahead.
fn date_after_earlier(log: &Decisions, decisions: &mut [Decision]) {
    let step = SignedDuration::from_millis(1);
    let mut in_batch: HashMap<String, Timestamp> = HashMap::new();
    for decision in decisions {
        let id = text::id(&decision.id);
        let Ok(mut time) = decision.time.parse::<Timestamp>() else {
            continue;
        };
        let earlier = in_batch.get(&id).copied();
        if let Some(earlier) = earlier.or_else(|| log.newest_signed_time(&id))
            && time <= earlier
            && let Ok(later) = earlier.checked_add(step)
        {
            time = later;
            decision.time = time.to_string();
        }
        in_batch.insert(id, time);
    }
}

/// The memories that wait again because the one that replaced them is rejected now: they were
/// replaced while they waited, so nothing else would bring them back.
fn waiting_again(scope: &Scope, decisions: &[Decision]) -> Result<Vec<Decision>, CurateError> {
    let log = scope.store.decisions()?;
    let mut released = Vec::new();
    for rejection in decisions.iter().filter(|decision| decision.verdict == Verdict::Reject) {
        for id in log.replaced_by(&text::id(&rejection.id)) {
            let waited = log.about(id).last().is_some_and(|last| last.was == Status::Staging);
            if !waited || decisions.iter().any(|decision| decision.id == *id) {
                continue;
            }
            let curated = scope.store.snapshot(|snapshot| snapshot.curated(id))?;
            let curated = curated.filter(|curated| curated.is_decided && !curated.has_duplicate_id);
            released.extend(curated.map(|curated| Decision {
                id: curated.memory.id,
                digest: curated.digest,
                text: curated.text_digest,
                verdict: Verdict::Stage,
                was: curated.memory.status,
                edit: None,
                reason: Some(format!("{}, which replaced it, was rejected", rejection.id)),
                ..rejection.clone()
            }));
        }
    }
    Ok(released)
}

/// Checks that the log can be written, without writing to it.
pub fn check(scope: &Scope) -> Result<(), CurateError> {
    sign::check(scope)?;
    log_file::check(&log_path(scope))
}

/// Why decisions about a scope cannot be written, and what to do; `None` if they can.
pub fn problem(scope: &Scope) -> Option<Message> {
    let error = check(scope).err()?;
    Some(Message::new(error.to_string()).with_all(error.remedies()))
}

fn log_path(scope: &Scope) -> PathBuf {
    scope.store.decision_log().map_or_else(|| scope.folder.join(DECISION_LOG), Path::to_owned)
}

/// Makes the log count as it was `shown` to a person, whatever it lost.
pub fn accept(scope: &Scope, shown: &[u8]) -> Result<(), CurateError> {
    LockedLog::open(&log_path(scope))?.accept(shown)
}

/// A log as it is shown to a person who may accept it, and the lines of other programs in it.
pub fn shown(scope: &Scope) -> (Vec<u8>, Vec<String>) {
    let path = log_path(scope);
    let content = files::read(&path, MAX_LOG_BYTES).unwrap_or_default();
    // With a damaged seal, nobody knows who wrote what.
    let seal = Seal::load(&seal_path(&path)).unwrap_or(Some(Seal::default()));
    let foreign = foreign_lines(&content, seal.as_ref());
    (content, foreign)
}
