//! Who runs a command that decides about memories, with which settings, and what they may decide
//! about.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use ack_api::{ErrorCode, text};

use super::command::SHELL;
use super::error::CliError;
use super::output::write_err;
use super::prompt;
use super::scopes::set::find_scope;
use super::user::user_name;
use ack_connect::quoted_path;
use ack_desk::curate::ReviewSession;
use ack_service::config::Config;
use ack_service::remote;
use ack_service::scope::resolve::{check_usable, unusable_manifest};
use ack_service::scope::{Registry, Scope, ScopeError};

/// The variable with the owner's token, for scripts.
pub const ENV_TOKEN: &str = "ACK_MEM_CURATOR_TOKEN";
/// The file under the root that contains the same token.
pub const TOKEN_FILE: &str = "curator-token";
const MIN_TOKEN_BYTES: usize = 16;

/// The context of a command: the settings, the output format, the time.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub config: &'a Config,
    pub json: bool,
    pub now: jiff::Timestamp,
}

impl Caller<'_> {
    /// The scopes whose memories can be decided about: those with a readable store and manifest.
    pub fn scopes(&self, only: Option<&str>) -> Result<Vec<Arc<Scope>>, CliError> {
        let only = only.or(self.config.pinned.as_ref().map(|pinned| pinned.value.as_str()));
        let found = Registry::new(self.config).discover().scopes;
        let is_usable = |scope: &Arc<Scope>| scope.problem.is_none() && scope.store.path().exists();
        let Some(name) = only else {
            return Ok(found.into_iter().filter(is_usable).collect());
        };
        let scope = find_scope(&found, name)?;
        check_usable(&scope)?;
        Ok(vec![scope])
    }

    /// The same, but if no scope is named, reports unreadable ones and leaves them out.
    pub fn readable_scopes(&self, only: Option<&str>) -> Result<Vec<Arc<Scope>>, CliError> {
        let mut scopes = self.scopes(only)?;
        if only.is_some() || self.config.pinned.is_some() {
            return Ok(scopes);
        }
        let report_skipped = |scope: &Scope, reason: &str| {
            write_err(&format!("note: scope `{}` is left out: {reason}\n", scope.name));
        };
        for scope in Registry::new(self.config).discover().scopes {
            if let Some(problem) = &scope.problem {
                report_skipped(&scope, &unusable_manifest(&scope, problem));
            }
        }
        scopes.retain(|scope| match scope.store.snapshot(|_| Ok(())) {
            Ok(()) => true,
            Err(error) => {
                let reason = match remote::damaged(scope, &error) {
                    Some(ScopeError::Cold { reason, .. }) => reason,
                    _ => error.as_message().render(&SHELL),
                };
                report_skipped(scope, &reason);
                false
            }
        });
        Ok(scopes)
    }

    /// Begins a session, if the caller may decide.
    pub fn session(&self, because: Option<&str>) -> Result<ReviewSession, CliError> {
        Ok(ReviewSession::begin(self.actor()?, reason(because), self.now))
    }

    /// The same; `None` for a process that has no token.
    pub fn session_of_person(&self) -> Result<Option<ReviewSession>, CliError> {
        let actor = self.known_actor()?;
        Ok(actor.map(|actor| ReviewSession::begin(actor, None, self.now)))
    }

    pub fn actor(&self) -> Result<String, CliError> {
        let problem = "a person decides about memories, and there is no terminal";
        self.known_actor()?.ok_or_else(|| refused(problem))
    }

    /// Who decides; `None` for a process that has no token.
    fn known_actor(&self) -> Result<Option<String>, CliError> {
        let name = user_name(self.config);
        if let Some(given) = std::env::var_os(ENV_TOKEN).filter(|given| !given.is_empty()) {
            check_token(&self.config.root.value.join(TOKEN_FILE), &given)?;
            return Ok(Some(format!("process:{name}")));
        }
        Ok(prompt::is_possible().then(|| format!("human:{name}")))
    }
}

/// Compares a token with the one in the owner's file, and warns if others may read the file.
fn check_token(path: &Path, given: &OsStr) -> Result<(), CliError> {
    let content = ack_sys::files::read(path, 4_096).unwrap_or_default();
    let text = String::from_utf8_lossy(&content);
    let token = text.trim();
    let problem = if token.is_empty() {
        "the root has no `curator-token`, or it cannot be read"
    } else if token.len() < MIN_TOKEN_BYTES {
        "the token in the root's `curator-token` is shorter than 16 characters"
    } else if given.to_string_lossy().trim() != token {
        "the token in ACK_MEM_CURATOR_TOKEN is not the one in the root's curator-token"
    } else {
        let mode = fs::metadata(path).map_or(0, |file| file.permissions().mode());
        if mode & 0o077 != 0 {
            let path = quoted_path(path);
            write_err(&format!(
                "warning: others may read the token in {path} (mode {:o}), and decide with it; \
                 `chmod 600 {path}` changes that\n",
                mode & 0o777
            ));
        }
        return Ok(());
    };
    Err(refused(problem))
}

fn refused(problem: &str) -> CliError {
    let message = format!("nothing was decided: {problem}");
    CliError::new(ErrorCode::DecisionRefused, message).with_hint(
        "run it in a terminal; for scripts, put a token of your own (16 characters or more) into \
         `curator-token` in the root folder and into ACK_MEM_CURATOR_TOKEN",
    )
}

/// The reason for a decision. A blank one is none, as at the review desk.
pub fn reason(because: Option<&str>) -> Option<String> {
    let reason = text::line(because?, 500);
    (!reason.is_empty()).then_some(reason)
}
