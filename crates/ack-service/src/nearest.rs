//! The approved memories nearest to one that waits for review, and its relation to them.
//!
//! A search proposes candidates, by the words of the title and the meaning of the whole text. These
//! are compared with the memory, and the nearest are kept.
//!
//! Building the index of a large store takes seconds, and a reviewer wants to see the first card now.
//! So while that index is built, one pass over the store proposes the rows with the memory's rarest
//! words.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use ack_api::RelationKind;
use ack_api::memory::{Memory, StatusFilter};
use ack_compare::{Profile, Relation, relate};
use ack_search::analysis::{self, TextRole};
use ack_store::{Access, READ_TIMEOUT, StoreError};
use rayon::iter::{
    IntoParallelIterator, IntoParallelRefIterator, ParallelExtend, ParallelIterator,
};

use super::context::evidence::Weights;
use super::context::words::{WordKind, Words};
use super::engine::Service;
use super::error::Error;
use super::open::OpenScopes;
use super::scope::Scope;
use super::scope::resolve::Selection;
use super::search::Search;
use super::validate::QuerySpec;

const MAX_NEAREST: usize = 3;
const MAX_PROPOSED: usize = 10;
const MAX_TITLE: usize = 200;
/// The index of a store up to this size is built without a noticeable delay.
const MAX_FAST_BYTES: u64 = 4 << 20;
/// Maximum bytes of a text whose words are searched for in a large store.
const MAX_TEXT_BYTES: usize = 4_000;
/// How much content a memory that is held back shares with the one that it contradicts. See
/// `tests/relations` for how this was chosen.
const MIN_RESEMBLANCE: f64 = 0.4;
/// The memories that are proposed for so many are kept until all are compared.
const MAX_TOGETHER: usize = 500;

#[derive(Debug)]
pub struct NearMemory {
    pub memory: Memory,
    pub relation: Relation,
}

fn propose(
    opened: &OpenScopes,
    selection: &Selection,
    memory: &Memory,
    profile: &Profile,
) -> Result<Vec<Memory>, Error> {
    let spec = QuerySpec {
        text: Some(ack_api::text::line(&memory.title, MAX_TITLE)),
        meaning: Some(profile.text().to_owned()),
        is_proposal: true,
        ..QuerySpec::all(StatusFilter::Approved, MAX_PROPOSED)
    };
    let search = Search::new(opened, selection, &spec, None)?;
    let hits = search.page(None, MAX_PROPOSED)?.hits.into_iter();
    Ok(hits.map(|hit| hit.memory).filter(|other| other.id != memory.id).collect())
}

/// The id of an approved memory that each contradicts, if there is one. Waits for the index.
pub fn contradicted(
    service: &Service,
    memories: &[&Memory],
    scope: &str,
) -> Result<Vec<Option<String>>, Error> {
    let mut selection = service.select(Some(scope), None)?;
    let opened = OpenScopes::open(service, &mut selection, &mut Vec::new())?;
    let mut found = Vec::new();
    for memories in memories.chunks(MAX_TOGETHER) {
        let profiles: Vec<Profile> = memories.par_iter().map(|it| Profile::of(it)).collect();
        // Each search uses all cores. In a parallel loop, a thread that waits for its search would
        // begin the next one on the same stack.
        let proposed = memories.iter().zip(profiles).map(|(memory, profile)| {
            let proposed = propose(&opened, &selection, memory, &profile)?;
            Ok((profile, proposed))
        });
        let proposed: Vec<(Profile, Vec<Memory>)> = proposed.collect::<Result<_, Error>>()?;
        // Many are proposed several times.
        let others = proposed.iter().flat_map(|(_, proposed)| proposed);
        let others: HashMap<&str, &Memory> =
            others.map(|other| (other.id.as_str(), other)).collect();
        let others: HashMap<&str, Profile> =
            others.into_par_iter().map(|(id, other)| (id, Profile::of(other))).collect();
        let contradicted = |(profile, proposed): &(Profile, Vec<Memory>)| {
            let others = proposed.iter().filter_map(|it| others.get_key_value(it.id.as_str()));
            let mut others = others.filter(|(_, other)| contradicts(profile, other));
            let (id, first) = others.next()?;
            // Approved memories that differ in the same way, as `Screen 1` and `Screen 2` do, are
            // about different things, and so is this one.
            let is_series = others.any(|(_, other)| contradicts(first, other));
            (!is_series).then(|| (*id).to_owned())
        };
        found.par_extend(proposed.par_iter().map(contradicted));
    }
    Ok(found)
}

/// Whether two memories contradict each other, and are alike enough that this is no accident: long
/// texts about different things often have two sentences of the same form.
fn contradicts(one: &Profile, other: &Profile) -> bool {
    let relation = relate(one, other);
    relation.kind == RelationKind::Contradicts && relation.resemblance >= MIN_RESEMBLANCE
}

/// The nearest without waiting for the index of a large store.
pub fn run(
    service: &'static Service,
    memory: &Memory,
    scope: &str,
    more: &[Memory],
) -> Result<Vec<NearMemory>, Error> {
    let mut selection = service.select(Some(scope), None)?;
    let profile = Profile::of(memory);
    let found = selection.scopes.iter().find(|it| it.name == scope && is_large(it));
    let proposed = match found.filter(|found| !found.live.is_ready()) {
        Some(found) => {
            let scanned = scan(found, memory)?;
            if found.live.is_missing() {
                let found = Arc::clone(found);
                // An error is reported when the index is needed.
                std::thread::spawn(move || drop(found.live.current(&found, READ_TIMEOUT)));
            }
            scanned
        }
        None => {
            let opened = OpenScopes::open(service, &mut selection, &mut Vec::new())?;
            propose(&opened, &selection, memory, &profile)?
        }
    };
    let others = proposed.into_par_iter().chain(more.par_iter().cloned());
    let others = others
        .filter(|other| other.id != memory.id)
        .map(|memory| NearMemory { relation: relate(&profile, &Profile::of(&memory)), memory });
    let related = others.filter(|near| near.relation.kind != RelationKind::Unrelated);
    let mut nearest: Vec<NearMemory> = related.collect();
    nearest.sort_by(order);
    nearest.truncate(MAX_NEAREST);
    Ok(nearest)
}

fn is_large(scope: &Scope) -> bool {
    let metadata = std::fs::metadata(scope.store.path());
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() > MAX_FAST_BYTES)
}

/// Proposes without an index: the rows with the rarest words are read in full.
fn scan(scope: &Scope, memory: &Memory) -> Result<Vec<Memory>, StoreError> {
    let words = words(memory);
    let found = scope.store.read(Access::QuickScan, READ_TIMEOUT, |snapshot| {
        let rows = snapshot.word_matches(StatusFilter::Approved, &words)?;
        let weights = Weights::new(rows.iter().map(|row| row.words), &words);
        let best = weights.best(rows.iter(), |row| row.words, MAX_PROPOSED).into_iter();
        let found = best.map(|row| snapshot.memory_in_force(row.key, StatusFilter::Approved));
        found.collect::<Result<Vec<_>, _>>()
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// The words of a memory, title first.
fn words(memory: &Memory) -> Words {
    let mut list = Vec::new();
    for text in memory.texts() {
        let text = ack_api::text::cut(text, MAX_TEXT_BYTES).0;
        analysis::tokenize(&text, TextRole::Document, &mut |token| {
            list.push((token.text.into_owned(), WordKind::Prose));
        });
    }
    Words::new(list)
}

/// Duplicates and contradictions come first, then by similarity.
fn order(one: &NearMemory, other: &NearMemory) -> Ordering {
    let comes_first = |near: &NearMemory| {
        matches!(near.relation.kind, RelationKind::Same | RelationKind::Contradicts)
    };
    let by_kind = comes_first(other).cmp(&comes_first(one));
    by_kind
        .then_with(|| other.relation.resemblance.total_cmp(&one.relation.resemblance))
        .then_with(|| one.memory.id.cmp(&other.memory.id))
}
