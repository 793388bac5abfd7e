//! Finds the memories that a decision is about: by id, by the beginning of an id, or by a filter.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ack_api::Hint;
use ack_api::memory::{Status, fold_name, nearest};
use ack_api::number::verb;
use ack_api::queue::{QueueCount, QueueNumbers};
use ack_api::time::utc_day;
use ack_store::read::CuratedMemory;
use ack_store::{Access, READ_TIMEOUT};
use jiff::Timestamp;

use super::{Candidate, CurateError};
use crate::effective::{Key, key};
use crate::matching::Matched;
use ack_service::scope::Scope;
use ack_service::short_id::{ShortIds, has_prefix};

const MAX_LISTED: usize = 8;

/// Selects memories if a command names no ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub kind: Option<String>,
    pub project: Option<String>,
    pub tag: Option<String>,
    pub session: Option<String>,
    /// Only these, in this order.
    pub only: Option<Vec<Matched>>,
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn allows(&self, curated: &CuratedMemory) -> bool {
        let memory = &curated.memory;
        let same = |wanted: &Option<String>, values: &[Option<&String>]| {
            wanted.as_ref().is_none_or(|wanted| {
                let wanted = fold_name(wanted);
                values.iter().flatten().any(|value| fold_name(value) == wanted)
            })
        };
        let tags: Vec<Option<&String>> = memory.concepts.iter().map(Some).collect();
        same(&self.kind, &[memory.kind.as_ref()])
            && same(&self.project, &[memory.project.as_ref(), memory.project_alias.as_ref()])
            && same(&self.tag, &tags)
            && same(&self.session, &[memory.session.as_ref(), memory.session_id.as_ref()])
    }
}

/// The memory with an id, or the only one whose id, or short id (`7be2-2`), begins with it.
pub fn by_id(scopes: &[Arc<Scope>], id: &str) -> Result<Candidate, CurateError> {
    let found = with_id(scopes, id)?;
    if found.is_empty() {
        return by_prefix(scopes, id);
    }
    single_match(id, found, &[])
}

pub fn by_whole_id(scopes: &[Arc<Scope>], id: &str) -> Result<Candidate, CurateError> {
    single_match(id, with_id(scopes, id)?, &[])
}

fn with_id(scopes: &[Arc<Scope>], id: &str) -> Result<Vec<Candidate>, CurateError> {
    let mut found = Vec::new();
    for scope in scopes {
        if let Some(curated) = scope.store.snapshot(|snapshot| snapshot.curated(id))? {
            found.push(Candidate::new(scope, curated));
        }
    }
    Ok(found)
}

fn by_prefix(scopes: &[Arc<Scope>], id: &str) -> Result<Candidate, CurateError> {
    let (mut found, mut known) = (Vec::new(), Vec::new());
    let typed = id.trim().to_lowercase();
    visit_memories(scopes, |scope, curated| {
        if !typed.is_empty() && has_prefix(&curated.memory.id, &typed) {
            found.push(Candidate::new(scope, curated));
        } else {
            known.push(curated.memory.id);
        }
    })?;
    single_match(id, found, &known)
}

/// The only one of the memories that were found for an id. `known` are other ids.
fn single_match(
    id: &str,
    mut found: Vec<Candidate>,
    known: &[String],
) -> Result<Candidate, CurateError> {
    if found.len() > 1 {
        let more = found.len().saturating_sub(MAX_LISTED);
        found.truncate(MAX_LISTED);
        let found = found.iter().map(|it| format!("{} in {}", it.memory().id, it.scope.name));
        return Err(CurateError::Ambiguous { id: id.to_owned(), found: found.collect(), more });
    }
    found.pop().ok_or_else(|| CurateError::NotFound {
        id: id.to_owned(),
        nearest: nearest(id, known.iter().map(String::as_str), 3),
    })
}

/// The short forms of the ids of some scopes. The ids of a store that cannot be read stay whole.
pub fn short_ids(scopes: &[Arc<Scope>]) -> ShortIds {
    let read = scopes.iter().map(|scope| scope.store.snapshot(|snapshot| snapshot.ids()));
    ShortIds::of(read.flatten().flatten())
}

#[derive(Debug, Default)]
pub struct Queue {
    /// The memories that match the filter, oldest first.
    pub waiting: Vec<Candidate>,
    /// The statistics of the whole queue of these scopes, without the filter.
    pub numbers: QueueNumbers,
}

/// Reads the memories that wait for review, except those deferred until after `now`.
pub fn queue(scopes: &[Arc<Scope>], filter: &Filter, now: Timestamp) -> Result<Queue, CurateError> {
    let today = utc_day(now);
    let mut numbers = QueueCount::new(now);
    let mut found = Vec::new();
    for scope in scopes {
        // A disturbed snapshot is read again, so count only after it is complete.
        let rows =
            scope.store.read(Access::FullScan, READ_TIMEOUT, |snapshot| snapshot.queue(today))?;
        numbers.count_replaced(rows.waiting_replaced);
        for (dated, until) in rows.dates {
            let is_put_off = until.is_some_and(|until| today < until);
            numbers.count(dated.status, dated.created, dated.reviewed, is_put_off);
        }
        for mut curated in rows.waiting {
            if !curated.is_put_off(today) && filter.allows(&curated) {
                curated.has_duplicate_id = rows.duplicate_ids.contains(&curated.memory.id);
                found.push(Candidate::new(scope, curated));
            }
        }
    }
    // Memories without a date come last; ties keep the stored order.
    found.sort_by_key(|candidate| {
        let created = candidate.memory().created_at;
        (created.is_none(), created)
    });
    if let Some(only) = &filter.only {
        let only = only.iter().map(|(scope, id)| (scope.as_str(), id.as_str()));
        let places: HashMap<Key<'_>, usize> = only.zip(0..).collect();
        found.retain(|candidate| places.contains_key(&key(candidate)));
        found.sort_by_key(|candidate| places.get(&key(candidate)).copied());
    }
    Ok(Queue { waiting: found, numbers: numbers.numbers() })
}

/// Why no memory that waits matches a filter: what else matches it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// How many match and do not wait, by what is decided about them.
    decided: BTreeMap<&'static str, usize>,
    /// How many match and wait in other scopes.
    elsewhere: Vec<(String, usize)>,
}

impl Unmatched {
    /// The reason, as the end of a sentence.
    pub fn in_words(&self) -> String {
        let is = |count: usize| verb(count as u64, "is", "are");
        let decided =
            self.decided.iter().map(|(what, count)| format!("{count} {} {what}", is(*count)));
        let decided: Vec<String> = decided.collect();
        let mut words = match decided.is_empty() {
            true => ", nor does any other".to_owned(),
            false => format!("; of the others that do, {}", decided.join(", ")),
        };
        for (scope, count) in self.elsewhere.iter().take(MAX_LISTED) {
            words += &match count {
                1 => format!("; in scope `{scope}`, 1 matches and waits"),
                count => format!("; in scope `{scope}`, {count} match and wait"),
            };
        }
        words
    }

    pub fn hints(&self) -> Vec<Hint> {
        if !self.elsewhere.is_empty() {
            return vec![Hint::advice("leave out --scope, or name the other one")];
        }
        let list = Hint::command("review --list", "shows what waits for review");
        let again = Hint::advice("to decide again about a memory, name its id");
        let again = (!self.decided.is_empty()).then_some(again);
        again.into_iter().chain([list]).collect()
    }
}

/// What matches a filter that no waiting memory of `scopes` matches. `others` are scopes that the
/// command leaves out.
pub fn unmatched(
    scopes: &[Arc<Scope>],
    others: &[Arc<Scope>],
    filter: &Filter,
    now: Timestamp,
) -> Result<Unmatched, CurateError> {
    let mut decided = BTreeMap::<&'static str, usize>::new();
    visit_memories(scopes, |_, curated| {
        let what = match curated.memory.status {
            _ if !filter.allows(&curated) => return,
            Status::Staging if curated.put_off_until.is_some() => "snoozed",
            // It has the id of another row, which is counted on its own.
            Status::Staging => return,
            _ if curated.memory.superseded_by.is_some() => "replaced",
            status => status.as_str(),
        };
        *decided.entry(what).or_default() += 1;
    })?;
    let is_left_out = |scope: &&Arc<Scope>| !scopes.iter().any(|known| known.name == scope.name);
    let elsewhere = others.iter().filter(is_left_out).filter_map(|scope| {
        // A scope that cannot be read has nothing to say here.
        let waiting = queue(std::slice::from_ref(scope), filter, now).ok()?.waiting.len();
        (waiting > 0).then(|| (scope.name.clone(), waiting))
    });
    Ok(Unmatched { decided, elsewhere: elsewhere.collect() })
}

fn visit_memories(
    scopes: &[Arc<Scope>],
    mut visit: impl FnMut(&Arc<Scope>, CuratedMemory),
) -> Result<(), CurateError> {
    for scope in scopes {
        // A disturbed snapshot is read again, so pass results on only after it is complete.
        let read = scope.store.read(Access::FullScan, READ_TIMEOUT, |snapshot| {
            let mut read = Vec::new();
            snapshot.visit_curated(&|_| true, &mut |curated| read.push(curated))?;
            Ok(read)
        })?;
        read.into_iter().for_each(|curated| visit(scope, curated));
    }
    Ok(())
}
