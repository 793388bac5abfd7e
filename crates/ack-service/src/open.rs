//! The scopes of one request with their indexes. Reads records from their stores.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ack_api::memory::{Memory, StatusFilter};
use ack_api::number::{count, verb};
use ack_api::remote::WaitPolicy;
use ack_api::source::RowKey;
use ack_api::{Contradiction, Diagnostic, Hint, Note, NoteKind, cancel, text, time};
use ack_search::inverted::Index;
use ack_search::inverted::docs::Doc;
use ack_search::postings::DocId;
use ack_store::{Access, READ_TIMEOUT, StoreError};
use parking_lot::Mutex;

use super::engine::Service;
use super::error::Error;
use super::remote;
use super::stale::Staleness;
use crate::evidence::Bounds;
use crate::live::{IndexGuard, TableState};
use crate::scope::resolve::Selection;
use crate::scope::{Scope, ScopeError};

/// If at least this many indexes are missing, several threads build them.
const MIN_PARALLEL_SCOPES: usize = 8;
/// With at least this many scopes, several threads look whether their indexes are current.
const MANY_SCOPES: usize = 100;
const MAX_REFRESH_THREADS: usize = 8;

pub struct OpenScope {
    pub scope: Arc<Scope>,
    guard: IndexGuard,
}

impl OpenScope {
    fn index(&self) -> Option<&Index> {
        self.guard.get()
    }
}

pub struct OpenScopes {
    scopes: Vec<OpenScope>,
    pub staleness: Staleness,
    pub now: jiff::Timestamp,
}

/// A record to read: the position of its scope among the open ones, and its document.
#[derive(Debug, Clone, Copy)]
pub struct RecordKey {
    pub scope: usize,
    pub doc: DocId,
}

#[derive(Default)]
pub struct Records {
    /// By the position of their scope and their id, those that the filter allows now.
    pub found: HashMap<(usize, String), Record>,
    pub failed: Vec<(usize, Error)>,
}

pub struct Record {
    pub memory: Memory,
    pub contradictions: Vec<Contradiction>,
}

impl Records {
    /// Adds the records with these keys. The filter applies to the present status in the store.
    pub fn read(
        &mut self,
        (number, scope): (usize, &Scope),
        wanted: &[(RowKey, &str)],
        filter: StatusFilter,
        timeout: Duration,
    ) {
        if wanted.is_empty() {
            return;
        }
        let read = scope.store.read(Access::Rows, timeout, |snapshot| {
            let records = snapshot.memories(wanted, filter)?.into_iter().map(|(id, memory)| {
                let contradictions = snapshot.contradictions(&id, filter)?;
                Ok(((number, id), Record { memory, contradictions }))
            });
            records.collect::<Result<Vec<_>, _>>()
        });
        match read {
            Ok(found) => self.found.extend(found),
            Err(error) => self.failed.push((number, failure(scope, error))),
        }
    }
}

impl OpenScopes {
    /// One that cannot be read is moved to `skipped`, with a note; if all fail, the first is the
    /// error. Every request locks scopes in name order, so that two requests never deadlock.
    pub fn open(
        service: &Service,
        selection: &mut Selection,
        notes: &mut Vec<Note>,
    ) -> Result<Self, Error> {
        let policy = service.wait_policy;
        let scopes = readable_scopes(selection, policy, notes)?;
        // A locked scope gets less time if other scopes can answer.
        let timeout = if scopes.len() > 1 { READ_TIMEOUT / 4 } else { READ_TIMEOUT };
        let mut refreshed = refresh(&scopes, timeout)?;
        let open = read_each(&scopes, selection, policy, notes, |scope, _| {
            let live = &scope.live;
            let guard = match refreshed.remove(&scope.name) {
                Some(done) => done.and_then(|()| live.refreshed(scope, timeout)),
                None => live.current(scope, timeout),
            };
            guard.map(|guard| OpenScope { scope: Arc::clone(scope), guard })
        })?;
        notes.extend(open.iter().filter_map(unusable_table));
        let now = (service.config.clock)();
        let staleness = Staleness::new(now, &selection.current, Bounds::ANSWER);
        Ok(Self { scopes: open, staleness, now })
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &OpenScope> {
        self.scopes.iter()
    }

    /// The scopes with their indexes, as of the last commit before the request.
    pub fn indexed(&self) -> impl Iterator<Item = (&Arc<Scope>, &Index)> {
        self.scopes.iter().filter_map(|open| Some((&open.scope, open.index()?)))
    }

    pub fn len(&self) -> usize {
        self.scopes.len()
    }

    pub fn get(&self, number: usize) -> Option<&OpenScope> {
        self.scopes.get(number)
    }

    /// The memories that get a place, in the order of their places.
    pub fn ordered<'a, K: Ord>(
        &'a self,
        place: impl Fn(&'a Index, DocId, &'a Doc) -> Option<K>,
    ) -> Vec<(K, RecordKey)> {
        let mut found = Vec::new();
        for (scope, open) in self.scopes.iter().enumerate() {
            let Some(index) = open.index() else { continue };
            found.extend(cancel::guarded(index.live()).filter_map(|(doc, row)| {
                Some((place(index, doc, row)?, RecordKey { scope, doc }))
            }));
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found
    }

    /// Reads records from their stores. The filter applies to the present status in each store.
    pub fn read(
        &self,
        wanted: impl IntoIterator<Item = RecordKey>,
        filter: StatusFilter,
    ) -> Records {
        let mut keys: Vec<Vec<(RowKey, &str)>> = vec![Vec::new(); self.scopes.len()];
        for RecordKey { scope, doc } in wanted {
            let index = self.get(scope).and_then(OpenScope::index);
            let key = index.and_then(|index| Some((index.doc(doc)?.key, index.id(doc))));
            if let (Some(keys), Some(key)) = (keys.get_mut(scope), key) {
                keys.push(key);
            }
        }
        let mut records = Records::default();
        for (number, (open, keys)) in self.scopes.iter().zip(&keys).enumerate() {
            records.read((number, &open.scope), keys, filter, READ_TIMEOUT);
        }
        records
    }

    pub fn note_incomplete_reads(&self, notes: &mut Vec<Note>) {
        note_incomplete_reads(self.iter().map(|open| &*open.scope), notes);
    }

    pub fn note_missing_status(&self, relevant: impl Fn(&str) -> bool, notes: &mut Vec<Note>) {
        let scopes = self.indexed().filter(|(scope, _)| relevant(&scope.name));
        let without = scopes.filter(|(_, index)| !index.has_status);
        notes.extend(without.map(|(scope, _)| missing_status(scope)));
    }
}

/// Adds notes about those that were meant and those with a broken manifest. Scopes in buckets are
/// updated; those without a local copy are removed from the selection.
pub fn readable_scopes(
    selection: &mut Selection,
    wait_policy: WaitPolicy,
    notes: &mut Vec<Note>,
) -> Result<Vec<Arc<Scope>>, Error> {
    notes.extend(selection.named_note.clone());
    for broken in &selection.broken {
        notes.push(Note::about(NoteKind::ScopeUnavailable, &broken.scope, broken.reason.clone()));
    }
    if let (Some(broken), true) = (selection.broken.first(), selection.scopes.is_empty()) {
        let (name, reason) = (broken.scope.clone(), broken.reason.text().to_owned());
        return Err(ScopeError::Unusable { name, reason }.into());
    }
    match remote::prepare(selection, wait_policy, notes) {
        Some(cold) if selection.scopes.is_empty() => Err(cold.into()),
        _ => Ok(selection.scopes.clone()),
    }
}

/// Runs `read` for each of some scopes. One that cannot be read is moved from the selection to
/// `skipped`, with a note. If every scope fails, the first failure is the error.
pub fn read_each<T>(
    scopes: &[Arc<Scope>],
    selection: &mut Selection,
    wait_policy: WaitPolicy,
    notes: &mut Vec<Note>,
    mut read: impl FnMut(&Arc<Scope>, &Selection) -> Result<T, StoreError>,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::with_capacity(scopes.len());
    let mut first: Option<Error> = None;
    for scope in scopes {
        cancel::check()?;
        let found = match read(scope, selection) {
            Err(error) if remote::repair(scope, &error, wait_policy) => read(scope, selection),
            found => found,
        };
        match found {
            Ok(found) => all.push(found),
            Err(error) => {
                let error = failure(scope, error);
                selection.skip(&scope.name, text::line(&error.to_string(), 300));
                notes.push(unavailable(&scope.name, &error));
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if all.is_empty() => Err(error),
        _ => Ok(all),
    }
}

fn unusable_table(OpenScope { scope, guard }: &OpenScope) -> Option<Note> {
    let Some(TableState::Unusable { reason, may_be_damaged }) = guard.table() else {
        return None;
    };
    let message = remote::unusable_table(scope, reason, *may_be_damaged);
    Some(Note::about(NoteKind::IndexUnusable, &scope.name, message))
}

pub fn failure(scope: &Scope, error: StoreError) -> Error {
    match remote::damaged(scope, &error) {
        Some(damaged) => damaged.into(),
        None => error.into(),
    }
}

pub fn unavailable(scope: &str, error: &Error) -> Note {
    Note::about(NoteKind::ScopeUnavailable, scope, error.as_message())
}

pub fn missing_status(scope: &Scope) -> Note {
    let counts_as = scope.store.unreviewed().status();
    Note::about(
        NoteKind::NoStatusColumn,
        &scope.name,
        format!("this store keeps no review status; its memories count as `{counts_as}`"),
    )
}

pub fn overviews_withheld(scope: &str) -> Note {
    let message =
        "overviews of its sessions are not shown while some of its memories are not approved";
    let show = Hint::setting("`overviews = \"show\"` in its scope.toml", "shows them");
    Note::about(NoteKind::NotAvailable, scope, message).with(show)
}

/// Adds notes about files that cannot be read, and about stores that a writer keeps locked.
pub fn note_incomplete_reads<'a>(scopes: impl Iterator<Item = &'a Scope>, notes: &mut Vec<Note>) {
    for scope in scopes {
        let report = scope.store.notes_report();
        let mut note = |message: String, outcome| {
            let note = Note::about(NoteKind::NotAvailable, &scope.name, message);
            notes.push(note.with(Hint::command("doctor", outcome)));
        };
        let mut unread = report.hidden.len() as u64;
        if let Some(why) = report.unknown_reference {
            // No file is missing: it is not known which are approved.
            unread = unread.saturating_sub(1);
            note(format!("this scope's approved notes cannot be read: {why}"), "shows the details");
        }
        if unread > 0 {
            let (files, are) = (count(unread, "file"), verb(unread, "is", "are"));
            let message = format!("{files} of this scope cannot be read and {are} missing here");
            note(message, "shows which");
        }
        if let Some(read) = scope.store.read_while_locked() {
            let message = format!(
                "another program keeps this store locked: this is its state as of {}, without \
                 uncommitted changes",
                time::to_rfc3339(read)
            );
            notes.push(Note::about(NoteKind::StoreLocked, &scope.name, message));
        }
    }
}

/// On several threads, by the names of the scopes; nothing if there is too little to do.
fn refresh(
    scopes: &[Arc<Scope>],
    timeout: Duration,
) -> Result<HashMap<String, Result<(), StoreError>>, Error> {
    let missing = scopes.iter().filter(|scope| !scope.live.is_ready()).count();
    if missing < MIN_PARALLEL_SCOPES && scopes.len() < MANY_SCOPES {
        return Ok(HashMap::new());
    }
    let flag = cancel::current();
    let next = Mutex::new(scopes.iter());
    let work = || {
        let taken = std::iter::from_fn(|| next.lock().next().filter(|_| flag.check().is_ok()));
        let done = taken.map(|it| (it.name.clone(), it.live.current(it, timeout).map(drop)));
        done.collect::<Vec<_>>()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_REFRESH_THREADS);
    let results = thread::scope(|threads_scope| {
        let others: Vec<_> = (1..threads).map(|_| threads_scope.spawn(work)).collect();
        let mut results = work();
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    cancel::check()?;
    Ok(results.into_iter().collect())
}
