//! The ids and titles of memories, for shell completion. Needs no index.

use std::sync::Arc;
use std::time::Duration;

use super::engine::Service;
use crate::scope::Scope;
use crate::scope::resolve::find;
use ack_store::labels::Label;

/// How long to wait for a locked store.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// Which scopes to read if none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The default scopes of a request.
    Searched,
    /// All of them, as the curation commands do.
    Every,
}

impl Service {
    /// The names of the usable scopes, including private ones, because the owner asks.
    pub(crate) fn scope_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .usable_scopes()
            .map(|scope| scope.name.clone())
            .collect();
        names.sort();
        names
    }

    /// The labels of all memories, whatever their status. A scope that cannot be read yields none.
    pub fn labels(&self, scope: Option<&str>, reach: Reach) -> Vec<Label> {
        let scopes: Vec<Arc<Scope>> = match reach {
            Reach::Searched => match self.select(scope, None) {
                Ok(selection) => selection.scopes,
                Err(_) => return Vec::new(),
            },
            Reach::Every => {
                let every: Vec<Arc<Scope>> = self.usable_scopes().collect();
                let pin = self.config.pinned.as_ref().map(|pin| pin.value.as_str());
                match scope.or(pin) {
                    Some(name) => find(&every, name).into_iter().collect(),
                    None => every,
                }
            }
        };
        let read = scopes.iter().filter_map(|scope| {
            let store = &scope.store;
            store
                .full_scan(LOCK_TIMEOUT, |snapshot| snapshot.labels())
                .ok()
        });
        read.flatten().collect()
    }

    fn usable_scopes(&self) -> impl Iterator<Item = Arc<Scope>> {
        let scopes = self.registry.discover().scopes.into_iter();
        scopes.filter(|scope| scope.problem.is_none())
    }
}
