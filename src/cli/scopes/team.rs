//! A clone joins its team: the folder of notes in the current repository becomes a scope that
//! belongs to the repository, and what is merged into the default branch counts as approved.
//!
//! Anybody can put a folder of notes into a repository. So nothing of it is served before the
//! person has joined, and joining is never the default.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::output::write_err;
use crate::cli::prompt;
use ack_connect::recogniser::{FoundStore, knowledge_folders};
use ack_service::config::Config;
use ack_service::scope::resolve::current;
use ack_service::scope::{KnownScopes, Scope};
use ack_worktree::references::default_branch;
use ack_worktree::repository::Repository;

/// The notes of the team whose repository this is.
#[derive(Debug, Clone)]
pub struct Team {
    /// The repository's folder, which the scope belongs to.
    pub repository: PathBuf,
    pub name: String,
    /// What counts as approved: the default branch of `origin`.
    pub reference: String,
    folders: Vec<PathBuf>,
}

impl Team {
    /// The team of the current project. `None` without a clone that has a folder of notes.
    pub fn of(config: &Config) -> Option<Self> {
        let home = config.home.as_deref();
        let repository = Repository::discover(&config.project.value, home)?;
        // A home folder in git is not a project, and is never walked.
        if home.is_some_and(|home| home.starts_with(&repository.work_tree)) {
            return None;
        }
        Some(Self {
            reference: default_branch(&repository)?,
            folders: knowledge_folders(&repository.work_tree),
            name: repository.name()?,
            repository: repository.main,
        })
        .filter(|team| !team.folders.is_empty())
    }

    pub fn has(&self, found: &FoundStore) -> bool {
        self.folders.contains(&found.path)
    }

    /// Asks whether to join. Enter is no.
    pub fn ask(&self) -> bool {
        let about = format!(
            "notes of this repository; joined, agents here get what is merged into `{}`",
            self.reference
        );
        write_err(&prompt::wrapped("    ", &about));
        prompt::choose("    (j)oin, (s)kip", &[('s', "skip"), ('j', "join")]) == Some('j')
    }
}

/// A line for the person whose session starts in a clone that has not joined: that no scope belongs
/// to it, and which command asks.
pub fn invitation(config: &Config, scopes: &[Arc<Scope>]) -> Option<String> {
    if config.db.is_some() || current(config, scopes, None, false).ok()?.scope.is_some() {
        return None;
    }
    let team = Team::of(config)?;
    let mut folders = team.folders.iter();
    let known = KnownScopes::new(scopes);
    let folder = folders.find(|folder| known.with_store(folder).is_none())?;
    let below = folder.strip_prefix(&team.repository).unwrap_or(folder);
    let setup = (config.command)("setup");
    Some(format!(
        "ack-memory: this repository has notes of its team in `{}`, and agents get none of them \
         before you join: `{setup}`, run here, asks you.",
        below.display()
    ))
}
