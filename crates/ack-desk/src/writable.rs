//! Whether decisions about a scope can be written, checked before the first one is made.

use std::collections::BTreeMap;

use ack_api::Message;

use super::Desk;
use crate::curate::log;
use ack_service::scope::Scope;

impl Desk {
    /// The scopes whose decisions cannot be written, each with the reason and what to do.
    pub fn unwritable(&self) -> Vec<(String, Message)> {
        let scopes = self.items.iter().map(|item| &item.candidate.scope);
        let scopes: BTreeMap<&str, _> = scopes.map(|scope| (scope.name.as_str(), scope)).collect();
        let found = scopes.into_iter();
        let found = found.filter_map(|(name, scope)| Some((name.to_owned(), problem(scope)?)));
        found.collect()
    }
}

/// Why decisions about a scope cannot be written, and what to do; `None` if they can.
pub fn problem(scope: &Scope) -> Option<Message> {
    let error = log::check(scope).err()?;
    Some(Message::new(error.to_string()).with_all(error.remedies()))
}
