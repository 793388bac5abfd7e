//! Curation: finds memories, turns a person's choices into decisions, and writes them
//! ([`log`]) to the log of their scope.
//!
//! Only commands that a person runs use this module; nothing that answers an agent does. A decision
//! applies to the content that was read. It is written only if, under the lock of the log, the
//! memory is still the same.

pub mod find;
pub mod log;
mod log_file;
pub mod side_effects;
mod sign;
pub mod stale;
pub mod undo;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ack_api::decision::{Decision, Edit, InvalidDecision, Verdict};
use ack_api::memory::{MAX_SUCCESSORS, Memory, Status};
use ack_api::{Diagnostic, ErrorCode, Hint, text};
use ack_store::StoreError;
use ack_store::read::CuratedMemory;

use ack_service::scope::Scope;
use ack_service::stale::withdrawn_mark;

#[derive(Debug, thiserror::Error)]
pub enum CurateError {
    #[error("no memory has the id `{id}`, or one that begins with it")]
    NotFound { id: String, nearest: Vec<String> },
    #[error("scope `{asked}` has no memory `{id}`; it is in scope `{scope}` and {status}")]
    OtherScope {
        id: String,
        asked: String,
        scope: String,
        /// Its status, as the end of a sentence: `is approved`.
        status: String,
    },
    #[error("`{id}` begins the ids of several memories: {}{}", text::list(found), and_more(*more))]
    Ambiguous {
        id: String,
        /// Some of them, with their scopes.
        found: Vec<String>,
        more: usize,
    },
    #[error("`{into}` cannot take the place of `{id}`: {reason}")]
    Successor { id: String, into: String, reason: String },
    #[error("there is nothing to undo{}", batch.as_ref().map_or_else(String::new, |batch| format!(": no decision of the batch `{batch}` counts")))]
    NothingToUndo { batch: Option<String> },
    #[error("you made none of the decisions that can be undone; the newest batch is {actor}'s")]
    OthersOnly { batch: String, actor: String },
    #[error("cannot write the decisions to `{}`: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("the decisions are in `{}`, but lines that another program added meanwhile were lost: {source}", path.display())]
    LateLines { path: PathBuf, source: std::io::Error },
    #[error("several memories in `{}` have the id `{id}`", path.display())]
    DuplicateId { id: String, path: PathBuf },
    #[error("another program replaced `{}` meanwhile", path.display())]
    Replaced { path: PathBuf },
    #[error("cannot sign decisions about scope `{scope}`: {reason}")]
    Unsigned { scope: String, reason: String },
    #[error("another process is writing `{}`", path.display())]
    Locked { path: PathBuf },
    #[error("{source}; the decisions in {} were written", text::list(written))]
    PartlyWritten { written: Vec<String>, batch: String, source: Box<CurateError> },
    /// A key of the desk that makes no sense now.
    #[error("{0}")]
    Refused(&'static str),
    #[error("this cannot be decided: {0}")]
    Invalid(#[from] InvalidDecision),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

impl Diagnostic for CurateError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } | Self::OtherScope { .. } => ErrorCode::MemoryNotFound,
            Self::DuplicateId { .. } | Self::Unsigned { .. } => ErrorCode::DecisionRefused,
            Self::Write { .. }
            | Self::LateLines { .. }
            | Self::Replaced { .. }
            | Self::Locked { .. } => ErrorCode::IoError,
            Self::PartlyWritten { source, .. } => source.code(),
            Self::Store(error) => error.code(),
            _ => ErrorCode::InvalidArgument,
        }
    }

    fn hints(&self) -> Vec<Hint> {
        let mut hints = self.remedies();
        if self.decided_nothing() {
            hints.insert(0, Hint::advice("nothing was decided"));
        }
        hints
    }
}

impl CurateError {
    /// Whether an attempt to write decisions failed before the first one.
    const fn decided_nothing(&self) -> bool {
        matches!(
            self,
            Self::Write { .. }
                | Self::DuplicateId { .. }
                | Self::Unsigned { .. }
                | Self::Replaced { .. }
                | Self::Locked { .. }
        )
    }

    /// What to do, without what an attempt did.
    pub fn remedies(&self) -> Vec<Hint> {
        let next = match self {
            Self::NotFound { nearest, .. } if !nearest.is_empty() => {
                Hint::advice(format!("did you mean {}?", text::list(nearest)))
            }
            Self::NotFound { .. } => {
                Hint::command("review --list", "shows what waits for review, with the ids")
            }
            Self::OtherScope { scope, .. } => {
                Hint::advice(format!("leave out --scope, or name that one: `--scope {scope}`"))
            }
            Self::Ambiguous { .. } => "give more of the id, or name the scope with --scope".into(),
            Self::Successor { .. } => "name another memory of the same scope".into(),
            Self::Invalid(_) => "schemas/decision.json describes a decision".into(),
            Self::NothingToUndo { .. } => {
                let history = "shows every decision about a memory";
                Hint::command("get ID --include history", history)
            }
            Self::OthersOnly { batch, .. } => {
                Hint::command(format!("undo {batch}"), "undoes it anyway")
            }
            Self::Write { .. } => "check the folder's permissions and the free space".into(),
            Self::LateLines { .. } => {
                "restore the other program's lines from a copy or from git".into()
            }
            Self::DuplicateId { .. } => "give each of them an id of its own in the store".into(),
            Self::Replaced { .. } => {
                "decide again: what was decided is not in the file that is there now".into()
            }
            Self::Unsigned { .. } => Hint::advice(
                "list your public key in the file that `signers` in scope.toml names, as `NAME \
                 ssh-ed25519 KEY`, and have the key in `~/.ssh` or in ssh-agent",
            ),
            Self::Locked { .. } => "try again when it has finished".into(),
            Self::PartlyWritten { batch, source, .. } => {
                let undo = Hint::command(format!("undo {batch}"), "undoes what was written");
                return std::iter::once(undo).chain(source.remedies()).collect();
            }
            Self::Refused(_) => return Vec::new(),
            Self::Store(error) => return error.hints(),
        };
        vec![next]
    }
}

/// A status as the end of a sentence about a memory.
const fn status_in_words(status: Status) -> &'static str {
    match status {
        Status::Staging => "waits for review",
        Status::Approved => "is approved",
        Status::Promoted => "is promoted",
        Status::Rejected => "is rejected",
    }
}

#[derive(Debug, Clone)]
pub struct Candidate {
    pub scope: Arc<Scope>,
    /// As the curator sees it: with `edit`.
    pub curated: CuratedMemory,
    /// What the curator wrote in place of its fields and did not save.
    pub edit: Edit,
}

impl Candidate {
    pub fn new(scope: &Arc<Scope>, curated: CuratedMemory) -> Self {
        Self { scope: Arc::clone(scope), curated, edit: Edit::default() }
    }

    /// The same with what the curator wrote.
    pub fn edited(&self, edit: Edit) -> Self {
        let (scope, curated) = (Arc::clone(&self.scope), self.curated.edited(&edit));
        Self { scope, curated, edit }
    }

    pub const fn memory(&self) -> &Memory {
        &self.curated.memory
    }

    /// Its status, as the end of a sentence: `is approved`, or the memory that replaces it.
    pub fn status_in_words(&self) -> String {
        let memory = self.memory();
        match &memory.superseded_by {
            Some(newer) => format!("is replaced by `{newer}`"),
            None => status_in_words(memory.status).to_owned(),
        }
    }

    pub fn check_single(&self) -> Result<(), CurateError> {
        check_single(&self.scope, &self.curated)
    }
}

/// Rejects an id that several rows of the store share, because it is not clear which one is meant.
fn check_single(scope: &Scope, curated: &CuratedMemory) -> Result<(), CurateError> {
    match curated.has_duplicate_id {
        true => Err(CurateError::DuplicateId {
            id: curated.memory.id.clone(),
            path: scope.store.path().to_owned(),
        }),
        false => Ok(()),
    }
}

/// Puts what belongs to a scope together, in the order of the scopes' names.
pub fn by_scope<'a, T>(
    all: impl IntoIterator<Item = (&'a Arc<Scope>, T)>,
) -> impl Iterator<Item = (&'a Arc<Scope>, Vec<T>)> {
    let mut by_name: BTreeMap<&str, (&Arc<Scope>, Vec<T>)> = BTreeMap::new();
    for (scope, one) in all {
        by_name.entry(&scope.name).or_insert_with(|| (scope, Vec::new())).1.push(one);
    }
    by_name.into_values()
}

/// Who decides, in one command or one review session.
#[derive(Debug, Clone)]
pub struct ReviewSession {
    /// `human:NAME` or `process:NAME`.
    pub actor: String,
    pub reason: Option<String>,
    /// The name of the batch, for `undo`.
    pub batch: String,
    pub now: jiff::Timestamp,
}

impl ReviewSession {
    /// Begins a session. The batch name starts with the time, so that later batches sort last.
    pub fn begin(actor: String, reason: Option<String>, now: jiff::Timestamp) -> Self {
        // Two processes may begin in the same millisecond.
        let process = std::process::id() & 0xffff;
        let batch = format!("{}-{process:04x}", now.strftime("%Y%m%d-%H%M%S-%3f"));
        Self { actor, reason, batch, now }
    }

    pub fn is_human(&self) -> bool {
        self.actor.starts_with("human:")
    }

    /// A decision about a memory. It keeps the text that the curator sees.
    pub fn decision(&self, candidate: &Candidate, verdict: Verdict) -> Decision {
        let memory = candidate.memory();
        let edit = verdict.keeps_text().then(|| candidate.previous_edit());
        // The card says what the author thinks of it.
        let serves = matches!(verdict, Verdict::Approve | Verdict::Promote | Verdict::Edit);
        let mark = withdrawn_mark(memory).filter(|_| serves);
        Decision {
            id: memory.id.clone(),
            digest: candidate.curated.digest.clone(),
            text: candidate.curated.text_digest.clone(),
            verdict,
            was: memory.status,
            edit: edit.filter(|edit| *edit != Edit::default()),
            into: None,
            until: None,
            despite: mark.map(|mark| stale::marks_kept_despite(memory, &mark)),
            reason: self.reason.clone(),
            actor: self.actor.clone(),
            batch: Some(self.batch.clone()),
            time: ack_api::time::to_rfc3339(self.now),
        }
    }

    /// The decisions that replace a memory with `into`. A merge also adds the tags and files that
    /// only the replaced memory has, and its facts unless it `is_duplicate`.
    pub fn replacement(
        &self,
        candidate: &Candidate,
        into: &Candidate,
        verdict: Verdict,
        is_duplicate: bool,
    ) -> Result<Vec<Decision>, CurateError> {
        check_successor(candidate, into)?;
        let replaced_by = Some(into.memory().id.clone());
        let mut decisions =
            vec![Decision { into: replaced_by, ..self.decision(candidate, verdict) }];
        let merges = verdict == Verdict::Merge;
        let edit = merges.then(|| merged_lists(into, candidate.memory(), !is_duplicate)).flatten();
        if edit.is_some() {
            // Only a person who looks at it approves a memory that waits.
            let verdict = match into.memory().status {
                Status::Approved | Status::Promoted => Verdict::Edit,
                Status::Staging | Status::Rejected => Verdict::Stage,
            };
            decisions.push(Decision { edit, ..self.decision(into, verdict) });
        }
        Ok(decisions)
    }
}

pub fn check_successor(candidate: &Candidate, into: &Candidate) -> Result<(), CurateError> {
    let (id, memory) = (&candidate.memory().id, into.memory());
    let newer = memory.superseded_by.as_ref();
    let already = format!("`{id}` already replaces `{}`", memory.id);
    let reason = match newer {
        _ if candidate.scope.name != into.scope.name => "it is in another scope".to_owned(),
        _ if *id == memory.id => "it is the same memory".to_owned(),
        Some(newer) if newer == id => already,
        _ if has_replaced(into, candidate) => format!("{already}, through others"),
        _ if memory.status != Status::Rejected => return Ok(()),
        Some(newer) => format!("`{newer}` replaced it"),
        None => "it was rejected".to_owned(),
    };
    Err(CurateError::Successor { id: id.clone(), into: memory.id.clone(), reason })
}

/// Whether `other` already replaced `memory`, directly or through others of the same scope: then
/// they would replace each other in a circle, and none of them would count as replaced.
fn has_replaced(memory: &Candidate, other: &Candidate) -> bool {
    let mut next = memory.memory().superseded_by.clone();
    for _ in 0..MAX_SUCCESSORS {
        let Some(id) = next else { return false };
        if id == other.memory().id {
            return true;
        }
        let read = memory.scope.store.snapshot(|snapshot| snapshot.curated(&id));
        // If it cannot be read, nothing can be written either.
        next = read.ok().flatten().and_then(|curated| curated.memory.superseded_by);
    }
    false
}

/// The lists of `into` with what another memory adds, if it adds anything. Keeps earlier edits.
fn merged_lists(into: &Candidate, other: &Memory, with_facts: bool) -> Option<Edit> {
    let memory = into.memory();
    let with = |current: &[String], added: &[String]| {
        let folded: Vec<String> = current.iter().map(|entry| fold(entry)).collect();
        let new = added.iter().filter(|entry| !folded.contains(&fold(entry)));
        let all: Vec<String> = current.iter().chain(new).cloned().collect();
        (all.len() > current.len()).then_some(all)
    };
    let edit = Edit {
        facts: with(&memory.facts, &other.facts).filter(|_| with_facts),
        concepts: with(&memory.concepts, &other.concepts),
        files: with(&memory.files, &other.files),
        ..Edit::default()
    };
    (edit != Edit::default()).then(|| into.with_previous_edit(edit))
}

/// Normalises a text: case, spacing, and a full stop at the end.
fn fold(text: &str) -> String {
    let text = text.trim().trim_end_matches('.').to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Candidate {
    /// A new edit of the present text, merged with the earlier edits that it does not replace.
    pub fn with_previous_edit(&self, edit: Edit) -> Edit {
        merge_edits(edit, self.previous_edit())
    }

    /// The earlier edits of a memory, those that are not saved included.
    fn previous_edit(&self) -> Edit {
        merge_edits(self.edit.clone(), self.saved_edit())
    }

    /// The earlier edits, if they count.
    fn saved_edit(&self) -> Edit {
        if !self.curated.is_decided {
            return Edit::default();
        }
        let decisions = self.scope.store.decisions().unwrap_or_default();
        let last = decisions.about(&self.memory().id).last();
        last.and_then(|last| last.edit.clone()).unwrap_or_default()
    }
}

/// Merges an edit with an earlier one; the new values win.
pub fn merge_edits(edit: Edit, before: Edit) -> Edit {
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
