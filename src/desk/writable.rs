//! Whether decisions about a scope can be written, checked before the first one is made.

use std::collections::BTreeMap;
use std::path::Path;

use ack_api::Message;
use ack_api::decision::{DECISION_LOG, DecisionPlace};
use ack_store::layout::Profile;
use nix::unistd::{AccessFlags, access};

use super::Desk;
use crate::curate::CurateError;
use crate::scope::Scope;

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

/// Why decisions about a scope cannot be written, and what to do; `None` if they can, or if the
/// store itself cannot be read.
pub fn problem(scope: &Scope) -> Option<Message> {
    let error = check(scope).err()?;
    Some(Message::new(error.to_string()).with_all(error.remedies()))
}

fn check(scope: &Scope) -> Result<(), CurateError> {
    match scope.manifest.decisions {
        DecisionPlace::Log => check_log(scope),
        DecisionPlace::Store => check_store(scope),
    }
}

fn check_log(scope: &Scope) -> Result<(), CurateError> {
    let default_log = scope.folder.join(DECISION_LOG);
    let log = scope.store.decision_log().unwrap_or(&default_log);
    let fail = |source| CurateError::Write {
        path: log.to_owned(),
        source,
    };
    if log.exists() {
        ack_sys::files::check(log).map_err(fail)?;
        return may_write(log).map_err(fail);
    }
    may_write(log.parent().unwrap_or(log)).map_err(fail)
}

fn check_store(scope: &Scope) -> Result<(), CurateError> {
    let refuse = |profile| CurateError::NotNative {
        scope: scope.name.clone(),
        profile,
    };
    if scope.remote.is_some() {
        return Err(refuse("a copy of what a bucket holds"));
    }
    let read = |snapshot: &ack_store::Snapshot<'_>| {
        let layout = &snapshot.layout;
        Ok((layout.profile, layout.has_status()))
    };
    let path = scope.store.path();
    match scope.store.snapshot(read) {
        // Another message says that it cannot be read.
        Err(_) => Ok(()),
        Ok((profile, _)) if profile != Profile::Ack => Err(refuse(profile.as_str())),
        Ok((_, false)) => Err(CurateError::NoColumn {
            path: path.to_owned(),
            column: "status",
        }),
        Ok(_) => may_write(path).map_err(|source| CurateError::Write {
            path: path.to_owned(),
            source,
        }),
    }
}

fn may_write(path: &Path) -> std::io::Result<()> {
    access(path, AccessFlags::W_OK).map_err(std::io::Error::from)
}
