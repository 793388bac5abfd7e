//! The approved memories that are nearest to one that waits for review, and how it relates to them.
//!
//! A search proposes some: by the words of the title and the meaning of the whole text. These are
//! compared with the memory, and the nearest are kept. Where a search would have to wait for its
//! index, a scan of the store proposes them.

mod scan;

use std::cmp::Ordering;
use std::sync::Arc;

use ack_api::RelationKind;
use ack_api::memory::{Memory, StatusFilter};
use ack_compare::{Profile, Relation, relate};
use ack_store::READ_TIMEOUT;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::engine::Service;
use super::error::Error;
use super::open::OpenScopes;
use super::search::Search;
use super::validate::QuerySpec;
use crate::scope::resolve::Selection;

/// Approved memories that are shown beside one.
pub const NEAREST: usize = 3;
/// Memories that a search proposes.
const PROPOSED: usize = 10;
/// The most characters of a title whose words are searched for.
const MAX_TITLE: usize = 200;

/// An approved memory near another one.
#[derive(Debug)]
pub struct Near {
    /// Its scope.
    pub scope: String,
    /// The memory.
    pub memory: Memory,
    /// How the one that waits relates to it.
    pub relation: Relation,
}

/// The approved memories of one scope that are nearest to a memory, at most [`NEAREST`].
///
/// # Errors
/// An unknown scope, or a store that cannot be read.
pub fn run(service: &Service, memory: &Memory, scope: &str) -> Result<Vec<Near>, Error> {
    let mut selection = service.select(Some(scope), None)?;
    let scopes = selection.scopes.clone();
    let opened = OpenScopes::open(service, &mut selection, &scopes, &mut Vec::new())?;
    let own = (scope, memory);
    let profile = Profile::of(memory);
    of(&opened, &selection, own, &profile, StatusFilter::Approved)
}

/// The same without waiting for an index: as long as that of a large store is not there, its rows
/// are looked through, and the index is made on another thread.
///
/// # Errors
/// An unknown scope, or a store that cannot be read.
pub fn soon(service: &'static Service, memory: &Memory, scope: &str) -> Result<Vec<Near>, Error> {
    let selection = service.select(Some(scope), None)?;
    let found = selection.scopes.iter().find(|found| found.name == scope);
    let Some(found) = found.filter(|found| scan::is_large(found)) else {
        return run(service, memory, scope);
    };
    let live = service.indexes.of(found);
    if live.is_there() {
        return run(service, memory, scope);
    }
    let near = scan::run(
        found,
        memory,
        &Profile::of(memory),
        (service.config.clock)(),
    )?;
    if live.is_wanted() {
        let found = Arc::clone(found);
        // What cannot be read is told where it is asked for.
        std::thread::spawn(move || drop(live.current(&found, READ_TIMEOUT)));
    }
    Ok(near)
}

/// The memories of opened scopes, of a status, that are nearest to a memory of one of them.
pub(super) fn of(
    opened: &OpenScopes,
    selection: &Selection,
    (scope, memory): (&str, &Memory),
    profile: &Profile,
    status: StatusFilter,
) -> Result<Vec<Near>, Error> {
    let title = ack_api::text::line(&memory.title, MAX_TITLE);
    let spec = QuerySpec {
        meaning: Some(profile.text().to_owned()),
        proposes: true,
        ..QuerySpec::words(&title, status, PROPOSED)
    };
    let search = Search::new(opened, selection, &spec, None)?;
    let page = search.page(None, PROPOSED)?;
    let hits = page.hits.into_iter();
    let proposed = hits.map(|hit| (hit.hit.scope, hit.memory));
    Ok(compared((scope, memory), profile, proposed))
}

/// The nearest of some memories that were proposed, each with the name of its scope.
fn compared(
    (scope, memory): (&str, &Memory),
    profile: &Profile,
    proposed: impl Iterator<Item = (String, Memory)>,
) -> Vec<Near> {
    let others = proposed.filter(|(of, other)| other.id != memory.id || of != scope);
    let others: Vec<(String, Memory)> = others.collect();
    let mut near: Vec<Near> = others
        .into_par_iter()
        .map(|(scope, memory)| Near {
            relation: relate(profile, &Profile::of(&memory)),
            scope,
            memory,
        })
        .filter(|near| near.relation.kind != RelationKind::Unrelated)
        .collect();
    near.sort_by(order);
    near.truncate(NEAREST);
    near
}

/// What repeats or contradicts comes first, then what resembles more.
fn order(one: &Near, other: &Near) -> Ordering {
    let comes_first = |near: &Near| {
        matches!(
            near.relation.kind,
            RelationKind::Same | RelationKind::Contradicts
        )
    };
    comes_first(other)
        .cmp(&comes_first(one))
        .then_with(|| {
            other
                .relation
                .resemblance
                .total_cmp(&one.relation.resemblance)
        })
        .then_with(|| (&one.scope, &one.memory.id).cmp(&(&other.scope, &other.memory.id)))
}
