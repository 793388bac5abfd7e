//! Finds the memories that a decision is about: by id, by the beginning of an id, or by a filter.

use std::collections::HashMap;
use std::sync::Arc;

use ack_api::Hint;
use ack_api::memory::{Status, fold_name, nearest};
use ack_api::queue::{QueueCount, QueueNumbers};
use ack_store::READ_TIMEOUT;
use ack_store::read::{CuratedMemory, QueueRows};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Candidate, CurateError};
use crate::matching::Matched;
use ack_service::scope::Scope;
use ack_service::short_id::{ShortIds, has_prefix};

/// How many memories to list for an ambiguous prefix.
const MAX_LISTED: usize = 8;

/// Selects memories if a command names no ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only of this type.
    pub kind: Option<String>,
    pub project: Option<String>,
    pub tag: Option<String>,
    pub session: Option<String>,
    /// Only these, in this order.
    pub only: Option<Vec<Matched>>,
}

impl Filter {
    /// Whether it matches everything.
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

/// The memory with an id, or the only one whose id begins with it. Short ids (`7be2-2`) work as
/// they do for `get`.
pub fn by_id(scopes: &[Arc<Scope>], id: &str) -> Result<Candidate, CurateError> {
    let found = with_id(scopes, id)?;
    if found.is_empty() {
        return by_prefix(scopes, id);
    }
    single_match(id, found, &[])
}

/// The memory with exactly this id.
pub fn by_whole_id(scopes: &[Arc<Scope>], id: &str) -> Result<Candidate, CurateError> {
    single_match(id, with_id(scopes, id)?, &[])
}

/// The memories with exactly this id.
fn with_id(scopes: &[Arc<Scope>], id: &str) -> Result<Vec<Candidate>, CurateError> {
    let mut found = Vec::new();
    for scope in scopes {
        if let Some(curated) = scope.store.snapshot(|snapshot| snapshot.curated(id))? {
            found.push(Candidate { scope: Arc::clone(scope), curated });
        }
    }
    Ok(found)
}

/// The only memory whose id begins so.
fn by_prefix(scopes: &[Arc<Scope>], id: &str) -> Result<Candidate, CurateError> {
    let (mut found, mut known) = (Vec::new(), Vec::new());
    let typed = id.trim().to_lowercase();
    visit_memories(scopes, &|_| true, &mut |scope, curated| {
        if !typed.is_empty() && has_prefix(&curated.memory.id, &typed) {
            found.push(Candidate { scope: Arc::clone(scope), curated });
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
    match found.len() {
        0 => Err(CurateError::NotFound {
            id: id.to_owned(),
            nearest: nearest(id, known.iter().map(String::as_str), 3),
        }),
        1 => Ok(found.remove(0)),
        _ => Err(CurateError::Ambiguous {
            id: id.to_owned(),
            found: found
                .iter()
                .take(MAX_LISTED)
                .map(|candidate| format!("{} in {}", candidate.memory().id, candidate.scope.name))
                .collect(),
            more: found.len().saturating_sub(MAX_LISTED),
        }),
    }
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
    /// Served memories that a newer waiting one would replace, by the newer one's scope and id.
    pub replaced: HashMap<(String, String), Vec<String>>,
}

/// Reads the memories that wait for review, except those deferred until after `now`.
pub fn queue(scopes: &[Arc<Scope>], filter: &Filter, now: Timestamp) -> Result<Queue, CurateError> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let mut numbers = QueueCount::new(now);
    let mut replaced = HashMap::<(String, String), Vec<String>>::new();
    let mut found = Vec::new();
    for scope in scopes {
        // A disturbed snapshot is read again, so count only after it is complete.
        let QueueRows {
            dates,
            mut waiting,
            duplicate_ids: twins,
            replaced: older,
            waiting_replaced,
        } = scope.store.full_scan(READ_TIMEOUT, |snapshot| snapshot.queue(today))?;
        numbers.count_replaced(waiting_replaced);
        for (newer, older) in older {
            let key = (scope.name.clone(), newer);
            replaced.entry(key).or_default().push(older);
        }
        for curated in &mut waiting {
            curated.has_duplicate_id = twins.contains(&curated.memory.id);
        }
        for (dated, until) in dates {
            let is_put_off = until.is_some_and(|until| today < until);
            numbers.count(dated.status, dated.created, dated.reviewed, is_put_off);
        }
        let waits = |curated: &CuratedMemory| !curated.is_put_off(today) && filter.allows(curated);
        found.extend(
            waiting
                .into_iter()
                .filter(waits)
                .map(|curated| Candidate { scope: Arc::clone(scope), curated }),
        );
    }
    // Memories without a date come last; ties keep the stored order.
    found.sort_by_key(|candidate| {
        let created = candidate.memory().created_at;
        (created.is_none(), created)
    });
    if let Some(only) = &filter.only {
        let places = only.iter().zip(0usize..);
        let places: HashMap<(&str, &str), usize> =
            places.map(|((scope, id), place)| ((scope.as_str(), id.as_str()), place)).collect();
        let place = |candidate: &Candidate| {
            let id = candidate.memory().id.as_str();
            places.get(&(candidate.scope.name.as_str(), id)).copied()
        };
        found.retain(|candidate| place(candidate).is_some());
        found.sort_by_key(place);
    }
    Ok(Queue { waiting: found, numbers: numbers.numbers(), replaced })
}

/// Why no memory that waits matches a filter: what else matches it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// How many match and do not wait, and what is decided about them.
    decided: Vec<(usize, &'static str)>,
    /// How many match and wait in other scopes.
    elsewhere: Vec<(String, usize)>,
}

impl Unmatched {
    /// The reason, as the end of a sentence.
    pub fn in_words(&self) -> String {
        let decided = self.decided.iter().map(|(count, what)| match count {
            1 => format!("1 is {what}"),
            count => format!("{count} are {what}"),
        });
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

    /// What to do next.
    pub fn hints(&self) -> Vec<Hint> {
        let list = Hint::command("review --list", "shows what waits for review");
        if !self.elsewhere.is_empty() {
            vec![Hint::advice("leave out --scope, or name the other one")]
        } else if !self.decided.is_empty() {
            vec![Hint::advice("to decide again about a memory, name its id"), list]
        } else {
            vec![list]
        }
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
    let (mut approved, mut promoted, mut rejected) = (0, 0, 0);
    let (mut replaced, mut put_off) = (0, 0);
    visit_memories(scopes, &|_| true, &mut |_, curated| {
        if !filter.allows(&curated) {
            return;
        }
        let count = match curated.memory.status {
            Status::Staging if curated.put_off_until.is_some() => &mut put_off,
            // It has the id of another row, which is counted on its own.
            Status::Staging => return,
            _ if curated.memory.superseded_by.is_some() => &mut replaced,
            Status::Approved => &mut approved,
            Status::Promoted => &mut promoted,
            Status::Rejected => &mut rejected,
        };
        *count += 1;
    })?;
    let is_left_out = |scope: &&Arc<Scope>| !scopes.iter().any(|known| known.name == scope.name);
    let elsewhere = others.iter().filter(is_left_out).filter_map(|scope| {
        // A scope that cannot be read has nothing to say here.
        let queue = queue(std::slice::from_ref(scope), filter, now).ok()?;
        let waiting = queue.waiting.len();
        (waiting > 0).then(|| (scope.name.clone(), waiting))
    });
    let mut decided = vec![
        (approved, "approved"),
        (promoted, "promoted"),
        (rejected, "rejected"),
        (replaced, "replaced"),
        (put_off, "snoozed"),
    ];
    decided.retain(|(count, _)| *count > 0);
    Ok(Unmatched { decided, elsewhere: elsewhere.collect() })
}

fn visit_memories(
    scopes: &[Arc<Scope>],
    wanted: &dyn Fn(Status) -> bool,
    visit: &mut dyn FnMut(&Arc<Scope>, CuratedMemory),
) -> Result<(), CurateError> {
    for scope in scopes {
        // A disturbed snapshot is read again, so pass results on only after it is complete.
        let read = scope.store.full_scan(READ_TIMEOUT, |snapshot| {
            let mut read = Vec::new();
            snapshot.visit_curated(wanted, &mut |curated| read.push(curated))?;
            Ok(read)
        })?;
        for curated in read {
            visit(scope, curated);
        }
    }
    Ok(())
}
