//! Publishing: writes the approved memories of a scope as files into a folder, for a pull request.
//!
//! A person first sees the plan ([`plan`]), then the files are written ([`PublishPlan::write`]).
//! Only files that say they come from the same scope are changed or removed. Nothing outside the
//! folder is changed: files are replaced atomically and links are never followed.
//!
//! Only what agents may see is published. Excluded are memories that wait for review or were
//! rejected, private scopes, and unreviewed stores that count as approved only because their owner
//! configured it.

#[cfg(feature = "bucket")]
pub mod bucket;
mod files;
pub mod note;

pub use self::files::add_note;

use std::path::{Path, PathBuf};

use ack_api::memory::{Memory, Status, Unreviewed, Visibility, fold_name};
use ack_api::{Diagnostic, ErrorCode, Hint};
use ack_store::read::CuratedMemory;
use ack_store::{Access, READ_TIMEOUT, StoreError};
use jiff::civil::Date;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;

use crate::choice::first_ones;
use crate::curate::stale::superseded;
use ack_flags::sharing::{SharingProblem, sharing_problems};
use ack_service::scope::Scope;

const MAX_NAMED: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("scope `{scope}` is private, so it is not published")]
    Private { scope: String },
    #[error(
        "{count} memories of scope `{scope}` count as approved because of \
         `unreviewed = \"approved\"`; nobody reviewed them"
    )]
    Assumed { scope: String, count: usize },
    #[error(
        "`{}` and the store of scope `{scope}` are the same folder, or one contains the other",
        folder.display()
    )]
    IntoOwnStore { scope: String, folder: PathBuf },
    #[error("{} must not be published: {}", count_text(held.len()), named_list(held))]
    Held { held: Vec<HeldItem> },
    #[error("`{}` changed after the plan was shown", path.display())]
    Changed { path: PathBuf },
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("scope `{scope}` is read from {address}, where its memories are already published")]
    Published { scope: String, address: String },
    #[error("not all of scope `{scope}` can be read: {}", hidden.join("; "))]
    Hidden { scope: String, hidden: Vec<String> },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Diagnostic for PublishError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Io { .. } => ErrorCode::IoError,
            Self::Store(error) => error.code(),
            _ => ErrorCode::InvalidArgument,
        }
    }

    fn hints(&self) -> Vec<Hint> {
        let advice = match self {
            Self::Private { scope } => {
                let share = format!("scopes set {scope} visibility=shared");
                return vec![
                    Hint::advice("copy what others may read to a shared scope"),
                    Hint::command(share, "makes this one shared"),
                ];
            }
            Self::Assumed { scope, .. } => {
                let stage = format!("scopes set {scope} unreviewed=staging");
                return vec![
                    Hint::command(stage, "makes them wait for review"),
                    Hint::command(format!("review --scope {scope}"), "then reviews them"),
                ];
            }
            Self::IntoOwnStore { .. } => {
                "its files are already there: commit them with git, or name another folder"
            }
            Self::Published { .. } => "publish from the scope that people write to and review",
            Self::Held { .. } => {
                return vec![
                    Hint::command("review", "edits or rejects them"),
                    Hint::advice("`--skip-held` publishes the others"),
                ];
            }
            Self::Hidden { .. } => {
                "make it readable (with `ref`: correct the note and commit it, or fetch what is \
                 missing, or correct the reference's name), or move it away if it is not a note: \
                 memories that cannot be read would be removed where the scope is \
                 published"
            }
            Self::Changed { .. } => "the files before it were written; run the command again",
            Self::Io { .. } => "check the folder's permissions and the free space",
            Self::Store(error) => return error.hints(),
        };
        vec![Hint::advice(advice)]
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct PublishOptions {
    /// Leave out memories whose text must not be published, instead of failing.
    pub skip_held: bool,
    /// Also replace files that someone edited in the folder.
    pub overwrite: bool,
    /// Only memories with the status `promoted`.
    pub only_promoted: bool,
    /// Memories that are snoozed until a later day do not wait for review.
    pub today: Date,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PublishItem {
    /// The file, relative to the folder.
    pub path: PathBuf,
    pub id: String,
}

/// A memory or file to leave alone, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldItem {
    pub id: String,
    pub title: String,
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct PublishPlan {
    pub scope: String,
    /// The folder, with every link resolved.
    pub folder: PathBuf,
    pub added: Vec<PublishItem>,
    pub changed: Vec<PublishItem>,
    /// Files to remove: their memories are no longer approved.
    pub withdrawn: Vec<PublishItem>,
    pub unchanged: usize,
    /// Files that someone edited and whose memories changed too.
    pub kept: Vec<PublishItem>,
    #[serde(flatten)]
    pub approved: Approved,
    #[serde(skip)]
    steps: Vec<Step>,
}

/// What is approved in a scope, and what is not published of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Approved {
    /// The memories that may be published, by id.
    #[serde(skip)]
    memories: Vec<Memory>,
    /// Memories that are held back because of their text.
    pub held: Vec<HeldItem>,
    pub warnings: Vec<HeldItem>,
    /// If no memory of the scope is approved: how many wait for review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<usize>,
    /// If some are approved: how many others wait for review.
    #[serde(skip)]
    pub also_waiting: usize,
}

#[derive(Debug, Clone)]
struct Step {
    path: PathBuf,
    /// The present content; `None` if there is no file.
    before: Option<String>,
    /// The new content; `None` removes the file.
    after: Option<String>,
}

/// Plans how to publish a scope to a folder. Writes nothing.
pub fn plan(
    scope: &Scope,
    folder: &Path,
    options: PublishOptions,
) -> Result<PublishPlan, PublishError> {
    may_publish(scope)?;
    let folder = files::real_path(folder)?;
    let store = scope.store.path().canonicalize();
    let store = store.ok().filter(|store| store.is_dir());
    if store.is_some_and(|store| folder.starts_with(&store) || store.starts_with(&folder)) {
        return Err(PublishError::IntoOwnStore { scope: scope.name.clone(), folder });
    }
    let approved = Approved::of(scope, Superseded::LeftOut, options)?;
    let scope_name = scope.name.clone();
    let mut plan = PublishPlan { scope: scope_name, folder, approved, ..PublishPlan::default() };
    files::plan(&mut plan, scope, options)?;
    plan.approved.check_held(options)?;
    Ok(plan)
}

fn may_publish(scope: &Scope) -> Result<(), PublishError> {
    if scope.manifest.visibility == Visibility::Private {
        return Err(PublishError::Private { scope: scope.name.clone() });
    }
    match &scope.manifest.table {
        Some(address) => Err(PublishError::Published {
            scope: scope.name.clone(),
            address: ack_api::text::line(address, 200),
        }),
        None => Ok(()),
    }
}

/// What to do with approved memories that newer ones replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Superseded {
    LeftOut,
    /// Publish them, with their successor.
    Kept,
}

impl Approved {
    fn of(
        scope: &Scope,
        replaced: Superseded,
        options: PublishOptions,
    ) -> Result<Self, PublishError> {
        let (has_status, all) = scope.store.read(Access::FullScan, READ_TIMEOUT, |snapshot| {
            let mut all = Vec::new();
            snapshot.visit_curated(&|_| true, &mut |curated| all.push(curated))?;
            Ok((snapshot.layout.has_status(), all))
        })?;
        let unserved = scope.store.notes_report().unserved.clone();
        let hidden = first_ones(unserved.into_iter(), MAX_NAMED);
        if !hidden.is_empty() {
            return Err(PublishError::Hidden { scope: scope.name.clone(), hidden });
        }
        let is_shown = |curated: &&CuratedMemory| curated.memory.status.is_served();
        if !has_status && scope.store.unreviewed() == Unreviewed::Approved {
            let count = all.iter().filter(is_shown).filter(|it| !it.is_decided).count();
            if count > 0 {
                return Err(PublishError::Assumed { scope: scope.name.clone(), count });
            }
        }
        let staged = all.iter().filter(|curated| curated.memory.status == Status::Staging);
        let waiting = staged.filter(|curated| !curated.is_put_off(options.today)).count();
        let hidden = superseded(&all);
        let mut visible: Vec<Memory> = Vec::new();
        for CuratedMemory { memory, .. } in all.iter().filter(is_shown) {
            if !hidden.contains(&memory.id) {
                // The successor may not be visible, so do not mention it.
                visible.push(Memory { superseded_by: None, ..memory.clone() });
            } else if replaced == Superseded::Kept {
                visible.push(memory.clone());
            }
        }
        visible.sort_by(|a, b| a.id.cmp(&b.id));
        let (waiting, also_waiting) =
            if visible.is_empty() { (Some(waiting), 0) } else { (None, waiting) };
        visible.retain(|memory| !options.only_promoted || memory.status == Status::Promoted);
        let mut approved = Self { waiting, also_waiting, ..Self::default() };
        approved.check_texts(visible);
        Ok(approved)
    }

    /// Sorts out what must not be published because of its text.
    fn check_texts(&mut self, memories: Vec<Memory>) {
        let problems: Vec<Vec<SharingProblem>> = memories.par_iter().map(text_problems).collect();
        for (memory, problems) in memories.into_iter().zip(problems) {
            if is_sensitive(&memory) {
                let reason = "is of the type `sensitive`, so it is never published".to_owned();
                self.warnings.extend(HeldItem::of(&memory, vec![reason]));
                continue;
            }
            let (errors, warnings): (Vec<SharingProblem>, Vec<SharingProblem>) =
                problems.into_iter().partition(|problem| problem.is_error());
            let said =
                |found: Vec<SharingProblem>| found.iter().map(SharingProblem::describe).collect();
            match HeldItem::of(&memory, said(errors)) {
                Some(item) => self.held.push(item),
                None => {
                    self.warnings.extend(HeldItem::of(&memory, said(warnings)));
                    self.memories.push(memory);
                }
            }
        }
    }

    /// Refuses what is held back, unless it is to be left out.
    fn check_held(&self, options: PublishOptions) -> Result<(), PublishError> {
        match self.held.is_empty() || options.skip_held {
            true => Ok(()),
            false => Err(PublishError::Held { held: self.held.clone() }),
        }
    }
}

fn is_sensitive(memory: &Memory) -> bool {
    memory.kind.as_deref().is_some_and(|kind| fold_name(kind) == "sensitive")
}

impl HeldItem {
    /// A memory with what there is against it, if there is anything.
    fn of(memory: &Memory, reasons: Vec<String>) -> Option<Self> {
        let (id, title) = (memory.id.clone(), memory.title.clone());
        (!reasons.is_empty()).then_some(Self { id, title, reasons })
    }
}

impl PublishPlan {
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Holds a memory back if the text of its file must not be published. The file may come from a
    /// note with more keys than a memory, and people may have edited it.
    fn hold_back(&mut self, memory: &Memory, text: &str) -> bool {
        let problems = sharing_problems(text);
        let errors = problems.iter().filter(|problem| problem.is_error());
        let reasons = errors.map(|problem| format!("{} (in its file)", problem.describe()));
        self.approved.held.extend(HeldItem::of(memory, reasons.collect()));
        problems.iter().any(SharingProblem::is_error)
    }

    /// Carries out the plan, file by file, each atomically.
    pub fn write(&self) -> Result<(), PublishError> {
        self.steps.iter().try_for_each(|step| files::write(&self.folder, step))
    }
}

fn text_problems(memory: &Memory) -> Vec<SharingProblem> {
    let mut problems = Vec::new();
    for problem in memory.written().flat_map(sharing_problems) {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    problems
}

fn count_text(count: usize) -> String {
    match count {
        1 => "a memory".to_owned(),
        count => format!("{count} memories"),
    }
}

fn named_list(held: &[HeldItem]) -> String {
    let named = held.iter().map(|one| format!("`{}` {}", one.id, one.reasons.join(", ")));
    first_ones(named, MAX_NAMED).join("; ")
}
