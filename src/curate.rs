//! Curation: finds memories, turns what a person decided into decisions, and writes them ([`mod@write`]):
//! to the log of their scope, or into its native store where the owner says `decisions = "store"`.
//!
//! Only commands that a person runs come here; nothing that answers an agent does. A decision is
//! made about the content that was read, and is written only if the memory is still the same under
//! the lock of the log or of the store.

pub mod find;
pub mod groups;
mod in_store;
mod log;
pub mod nearest;
pub mod stale;
pub mod undo;
pub mod warnings;
pub mod write;

use std::path::PathBuf;
use std::sync::Arc;

use ack_api::decision::{Decision, Edit, InvalidDecision, Verdict};
use ack_api::memory::Memory;
use ack_api::{Diagnostic, ErrorCode, text};
use ack_store::StoreError;
use ack_store::read::Curated;
use std::borrow::Cow;

use crate::scope::Scope;

/// Why a decision cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CurateError {
    /// No memory has this id or prefix.
    #[error("no memory has the id `{id}`, or one that begins with it")]
    NotFound {
        /// What was asked for.
        id: String,
        /// Ids like it.
        nearest: Vec<String>,
    },
    /// Several memories do.
    #[error("`{id}` begins the ids of several memories: {}", text::list(found))]
    Ambiguous {
        /// What was asked for.
        id: String,
        /// Some of them, with their scopes.
        found: Vec<String>,
    },
    /// It cannot take the place of the other memory.
    #[error("`{into}` cannot take the place of `{id}`: {reason}")]
    Successor {
        /// The memory that goes.
        id: String,
        /// The memory that stays.
        into: String,
        /// Why not.
        reason: &'static str,
    },
    /// There is nothing to take back.
    #[error("there is nothing to undo{}", batch.as_ref().map_or_else(String::new, |batch| format!(": no decision of the batch `{batch}` counts")))]
    NothingToUndo {
        /// The batch that was asked for.
        batch: Option<String>,
    },
    /// The log cannot be written.
    #[error("cannot write the decisions to `{}`: {source}", path.display())]
    Write {
        /// The log.
        path: PathBuf,
        /// The error from the system.
        source: std::io::Error,
    },
    /// Decisions go into the store, and it is another program's.
    #[error(
        "scope `{scope}` says `decisions = \"store\"`, and its store is not a native one ({profile})"
    )]
    NotNative {
        /// The scope.
        scope: String,
        /// Whose store it is.
        profile: &'static str,
    },
    /// Decisions go into the store, and it has no place for one.
    #[error("`{}` has no column `{column}` in `memories`", path.display())]
    NoColumn {
        /// The database.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// Several rows have the id.
    #[error("several memories in `{}` have the id `{id}`", path.display())]
    Twice {
        /// The id.
        id: String,
        /// The store.
        path: PathBuf,
    },
    /// It would not be a decision.
    #[error("this cannot be decided: {0}")]
    Invalid(#[from] InvalidDecision),
    /// A store or its log cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Diagnostic for CurateError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } => ErrorCode::MemoryNotFound,
            Self::Ambiguous { .. }
            | Self::Successor { .. }
            | Self::NothingToUndo { .. }
            | Self::Invalid(_) => ErrorCode::InvalidArgument,
            Self::NotNative { .. } | Self::NoColumn { .. } | Self::Twice { .. } => {
                ErrorCode::DecisionRefused
            }
            Self::Write { .. } => ErrorCode::IoError,
            Self::Store(error) => error.code(),
        }
    }

    fn hint(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::NotFound { nearest, .. } if !nearest.is_empty() => {
                format!("did you mean {}?", text::list(nearest)).into()
            }
            Self::NotFound { .. } => {
                "`ack-memory review --list` shows what waits, with its ids".into()
            }
            Self::Ambiguous { .. } => "give more of the id, or name the scope with --scope".into(),
            Self::Successor { .. } => "name another memory of the same scope".into(),
            Self::Invalid(_) => "schemas/decision.json says what a decision is".into(),
            Self::NothingToUndo { .. } => {
                "`ack-memory get ID --include history` shows every decision about a memory".into()
            }
            Self::Write { .. } => {
                "nothing was decided; check the folder's permissions and the free space".into()
            }
            Self::NotNative { scope, .. } => format!(
                "nothing was decided; `ack-memory scopes set {scope} decisions=log` keeps decisions \
                 in a log beside the store"
            )
            .into(),
            Self::NoColumn { .. } => "nothing was decided; add the columns of schemas/scope.sql, or \
                                      set `decisions = \"log\"` in scope.toml"
                .into(),
            Self::Twice { .. } => {
                "nothing was decided; give each of them an id of its own in the store".into()
            }
            Self::Store(error) => error.hint().into(),
        })
    }
}

/// A memory that is decided about.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its scope.
    pub scope: Arc<Scope>,
    /// The memory as it was read.
    pub curated: Curated,
}

impl Candidate {
    /// The memory.
    pub const fn memory(&self) -> &Memory {
        &self.curated.memory
    }

    /// Refuses an id that several rows of the store have: nobody could say which was meant.
    ///
    /// # Errors
    /// [`CurateError::Twice`].
    pub fn check_single(&self) -> Result<(), CurateError> {
        if self.curated.has_twin {
            return Err(CurateError::Twice {
                id: self.memory().id.clone(),
                path: self.scope.store.path().to_owned(),
            });
        }
        Ok(())
    }
}

/// Who decides, in one command or sitting.
#[derive(Debug, Clone)]
pub struct Sitting {
    /// `human:NAME` or `process:NAME`.
    pub actor: String,
    /// Why, if that was said.
    pub reason: Option<String>,
    /// The name of the batch, for `undo`.
    pub batch: String,
    /// When.
    pub now: jiff::Timestamp,
}

impl Sitting {
    /// Begins a sitting. The batch is named by the time, so that later ones sort behind it.
    pub fn begin(actor: String, reason: Option<String>, now: jiff::Timestamp) -> Self {
        // Two processes may begin in the same millisecond.
        let process = std::process::id() & 0xffff;
        let batch = format!("{}-{process:04x}", now.strftime("%Y%m%d-%H%M%S-%3f"));
        Self {
            actor,
            reason,
            batch,
            now,
        }
    }

    /// A decision about a memory.
    pub fn decision(&self, candidate: &Candidate, verdict: Verdict) -> Decision {
        Decision {
            id: candidate.memory().id.clone(),
            digest: candidate.curated.digest.clone(),
            verdict,
            was: candidate.memory().status,
            edit: None,
            into: None,
            until: None,
            despite: None,
            reason: self.reason.clone(),
            actor: self.actor.clone(),
            batch: Some(self.batch.clone()),
            time: ack_api::time::show(self.now),
        }
    }

    /// The decisions that put `into` in the place of another memory. A merge also adds the facts,
    /// tags and files that only the other one has.
    ///
    /// # Errors
    /// `into` is in another scope, is the memory itself, or was rejected.
    pub fn replacement(
        &self,
        candidate: &Candidate,
        into: &Candidate,
        verdict: Verdict,
    ) -> Result<Vec<Decision>, CurateError> {
        Self::check_successor(candidate, into)?;
        let united = (verdict == Verdict::Merge).then(|| union(into, candidate.memory(), true));
        Ok(self.gone(candidate, into, verdict, united.flatten()))
    }

    /// The decisions that a memory says nothing that `into` does not say: `into` gets its tags and
    /// files.
    ///
    /// # Errors
    /// As [`Sitting::replacement`].
    pub fn duplicate(
        &self,
        candidate: &Candidate,
        into: &Candidate,
    ) -> Result<Vec<Decision>, CurateError> {
        Self::check_successor(candidate, into)?;
        let united = union(into, candidate.memory(), false);
        Ok(self.gone(candidate, into, Verdict::Merge, united))
    }

    fn gone(
        &self,
        candidate: &Candidate,
        into: &Candidate,
        verdict: Verdict,
        united: Option<Edit>,
    ) -> Vec<Decision> {
        let mut gone = self.decision(candidate, verdict);
        gone.into = Some(into.memory().id.clone());
        let mut decisions = vec![gone];
        if let Some(edit) = united {
            let mut united = self.decision(into, Verdict::Edit);
            united.edit = Some(edit);
            decisions.push(united);
        }
        decisions
    }

    fn check_successor(candidate: &Candidate, into: &Candidate) -> Result<(), CurateError> {
        let refuse = |reason| CurateError::Successor {
            id: candidate.memory().id.clone(),
            into: into.memory().id.clone(),
            reason,
        };
        if candidate.scope.name != into.scope.name {
            return Err(refuse("it is in another scope"));
        }
        if candidate.memory().id == into.memory().id {
            return Err(refuse("it is the same memory"));
        }
        if into.memory().status == ack_api::memory::Status::Rejected {
            return Err(refuse("it was rejected"));
        }
        if into.memory().superseded_by.as_ref() == Some(&candidate.memory().id) {
            return Err(refuse("it is itself replaced by that memory"));
        }
        Ok(())
    }
}

/// The lists of a memory with what another one adds; `None` if it adds nothing. What was edited
/// before stays edited.
fn union(into: &Candidate, other: &Memory, with_facts: bool) -> Option<Edit> {
    let memory = into.memory();
    let with = |own: &[String], added: &[String]| {
        let folded: Vec<String> = own.iter().map(|entry| fold(entry)).collect();
        let new = added.iter().filter(|entry| !folded.contains(&fold(entry)));
        let all: Vec<String> = own.iter().chain(new).cloned().collect();
        (all.len() > own.len()).then_some(all)
    };
    let facts = if with_facts {
        with(&memory.facts, &other.facts)
    } else {
        None
    };
    let concepts = with(&memory.concepts, &other.concepts);
    let files = with(&memory.files, &other.files);
    if facts.is_none() && concepts.is_none() && files.is_none() {
        return None;
    }
    Some(into.with_previous_edit(Edit {
        facts,
        concepts,
        files,
        ..Edit::default()
    }))
}

/// A text without differences that do not matter.
fn fold(text: &str) -> String {
    let text = text.trim().trim_end_matches('.').to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Candidate {
    /// An edit of its present text, together with what was edited before and stays.
    pub fn with_previous_edit(&self, edit: Edit) -> Edit {
        edit_over(edit, self.previous_edit())
    }

    /// What was edited in it before, if that counts.
    fn previous_edit(&self) -> Edit {
        if !self.curated.is_decided {
            return Edit::default();
        }
        let decisions = self.scope.store.decisions().unwrap_or_default();
        let last = decisions.about(&self.memory().id).last().cloned();
        last.and_then(|last| last.edit).unwrap_or_default()
    }
}

/// An edit, with what an earlier one changed besides.
pub fn edit_over(edit: Edit, before: Edit) -> Edit {
    Edit {
        title: edit.title.or(before.title),
        subtitle: edit.subtitle.or(before.subtitle),
        facts: edit.facts.or(before.facts),
        concepts: edit.concepts.or(before.concepts),
        files: edit.files.or(before.files),
        narrative: edit.narrative.or(before.narrative),
        kind: edit.kind.or(before.kind),
        project: edit.project.or(before.project),
    }
}
