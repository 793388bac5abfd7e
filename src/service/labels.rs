//! The names by which memories are found, for a shell that completes a word. Needs no index.

use std::sync::Arc;
use std::time::Duration;

use super::engine::Service;
use crate::scope::Scope;
use crate::scope::resolve::find;
use ack_store::labels::Label;

/// How long a locked store is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// Which scopes are looked at, where none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Those that a request without a scope searches.
    Searched,
    /// Every one, as the commands that decide look at them.
    Every,
}

impl Service {
    /// The names of the scopes that may be used, private ones too: the owner asks.
    pub fn scope_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.usable().map(|scope| scope.name.clone()).collect();
        names.sort();
        names
    }

    /// The labels of all memories, whatever their status. A scope that cannot be read has none.
    pub fn labels(&self, scope: Option<&str>, reach: Reach) -> Vec<Label> {
        let scopes: Vec<Arc<Scope>> = match reach {
            Reach::Searched => match self.select(scope, None) {
                Ok(selection) => selection.scopes,
                Err(_) => return Vec::new(),
            },
            Reach::Every => {
                let every: Vec<Arc<Scope>> = self.usable().collect();
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

    fn usable(&self) -> impl Iterator<Item = Arc<Scope>> {
        let scopes = self.registry.discover().scopes.into_iter();
        scopes.filter(|scope| scope.problem.is_none())
    }
}
