//! What the first screen of a desk does not wait for. `changed` is called when the desk has it.

use std::sync::Arc;

use ack_service::Service;
use ack_service::scope::Scope;
use parking_lot::Mutex;

use super::Desk;
use super::need::Answered;
use super::queue::{QueueItem, QueueKind};
use super::relations::Relations;
use crate::curate::CurateError;
use crate::curate::find::Filter;
use crate::curate::stale::{ApprovedMemory, approved};

/// The first screen waits until this many memories are compared.
pub const MAX_COMPARED_FIRST: usize = 2_000;

/// What a background search needs from the desk. It is a copy, so that the desk stays unlocked.
#[derive(Debug)]
pub struct Search {
    pub(crate) service: &'static Service,
    pub(crate) scopes: Vec<Arc<Scope>>,
    filter: Filter,
    now: jiff::Timestamp,
}

impl Desk {
    pub fn search(&self) -> Search {
        let (scopes, filter) = (self.scopes.clone(), self.filter.clone());
        Search { service: self.service, scopes, filter, now: self.now }
    }
}

impl Search {
    /// Reads all approved memories, those that may be out of date first.
    pub fn approved(&self) -> Result<Vec<ApprovedMemory>, CurateError> {
        approved(&self.scopes, &self.filter, &self.service.staleness(self.now))
    }
}

/// Compares the memories with each other and with the approved ones, while the desk is unlocked.
pub fn find_relations(desk: &Mutex<Desk>) {
    let (service, waiting) = {
        let desk = desk.lock();
        (desk.service, desk.waiting())
    };
    let find = || Relations::find(service, &waiting);
    // The first screen does not wait for this many, and keys are answered by the shared pool.
    let pool = (waiting.len() > MAX_COMPARED_FIRST)
        .then(|| rayon::ThreadPoolBuilder::new().num_threads(1).build());
    let relations = match pool.and_then(Result::ok) {
        Some(pool) => pool.install(find),
        None => find(),
    };
    desk.lock().set_relations(relations);
}

pub fn find_need(desk: &Mutex<Desk>, changed: impl Fn()) {
    let (search, waiting) = {
        let desk = desk.lock();
        (desk.search(), desk.waiting())
    };
    let need = search.need(&waiting);
    let prompts = {
        let mut desk = desk.lock();
        desk.set_need(need);
        desk.past_prompts().to_vec()
    };
    changed();
    let answered = search.answered(&prompts);
    let mut desk = desk.lock();
    // Once something is saved, this is no longer how it was before.
    if desk.progress().saved == 0 {
        desk.set_answered(answered);
    }
}

/// How many past prompts find an approved memory now. It takes a while; keys do not wait.
pub fn answered(desk: &Mutex<Desk>) -> Option<Answered> {
    let (search, prompts) = {
        let desk = desk.lock();
        (desk.search(), desk.past_prompts().to_vec())
    };
    let after = search.answered(&prompts);
    desk.lock().answered(after)
}

pub fn find_approved(desk: &Mutex<Desk>, changed: impl Fn()) {
    if desk.lock().queue == QueueKind::Approved {
        // Those that the person asked for are on the desk already.
        return;
    }
    let search = desk.lock().search();
    // If a store cannot be read, its memories cannot be decided about anyway.
    let found = search.approved().unwrap_or_default().into_iter();
    // Splitting many texts into words takes a while, so the desk is not locked yet.
    let items = found.map(QueueItem::approved).collect();
    let mut desk = desk.lock();
    desk.add_items(items);
    desk.has_approved = true;
    drop(desk);
    changed();
}
