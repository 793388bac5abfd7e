//! `add`: a memory that somebody writes, and where it goes: into a native store of ours, or as a
//! note into a team's folder. Nothing is written into the store of another program; there is a
//! native one beside it.
//!
//! Only the command line uses this; no agent request reaches it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ack_api::decision::Edit;
use ack_api::import_line::{self, ImportLine, Row};
use ack_api::memory::{Memory, Unreviewed};
use ack_api::time;
use ack_service::scope::resolve::find;
use ack_service::scope::{DATABASE_NAMES, Scope};
use ack_store::folder::dialect::Dialect;
use ack_store::layout::Profile;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::import::{ImportError, check_name, name_like};

/// Where a memory of a person goes who is in no project.
const NO_PROJECT: &str = "mine";

#[derive(Debug)]
pub enum Destination {
    Store {
        scope: String,
        path: PathBuf,
    },
    /// A folder of notes in the Open Knowledge Format.
    Notes(Arc<Scope>),
}

impl Destination {
    /// The scope that is wanted, if it is ours; else the native one with a name, or one beside it.
    /// `is_approved`: a person vouches for the memory.
    pub fn find(
        root: &Path,
        scopes: &[Arc<Scope>],
        wanted: Option<&Arc<Scope>>,
        name: Option<&str>,
        is_approved: bool,
    ) -> Result<Self, ImportError> {
        if let Some(own) = wanted.and_then(|scope| Self::of(scope, is_approved)) {
            return Ok(own);
        }
        let name = match name {
            Some(name) if check_name(name).is_ok() => name.to_owned(),
            name => name_like(name.unwrap_or_default()).unwrap_or_else(|| NO_PROJECT.to_owned()),
        };
        let beside = format!("{name}-added");
        let native = |name: &String| match find(scopes, name) {
            Some(scope) => Self::of(&scope, is_approved),
            None => {
                let folder = root.join("scopes").join(name);
                Some(Self::Store { scope: name.clone(), path: folder.join(DATABASE_NAMES[0]) })
            }
        };
        native(&name).or_else(|| native(&beside)).ok_or(ImportError::BadName { name })
    }

    /// A scope that may be written to: a native store in its own folder, or a folder of shared notes,
    /// unless its notes count as approved and this one is not.
    fn of(scope: &Arc<Scope>, is_approved: bool) -> Option<Self> {
        let path = scope.store.path();
        if scope.problem.is_some() || scope.remote.is_some() {
            return None;
        }
        if path.is_dir() {
            let waits = scope.manifest.reference.is_some()
                || scope.store.unreviewed() == Unreviewed::Staging;
            let is_fit = Dialect::of(path) == Dialect::Knowledge && (waits || is_approved);
            return is_fit.then(|| Self::Notes(Arc::clone(scope)));
        }
        let profile = scope.store.snapshot(|it| Ok(it.layout.profile));
        let is_native = profile.is_ok_and(|profile| profile == Profile::Ack);
        (is_native && path.starts_with(&scope.folder))
            .then(|| Self::Store { scope: scope.name.clone(), path: path.to_owned() })
    }

    pub fn scope(&self) -> &str {
        match self {
            Self::Store { scope, .. } => scope,
            Self::Notes(scope) => &scope.name,
        }
    }

    /// Whether git, and nobody else, approves what is in it.
    pub fn is_approved_by_git(&self) -> bool {
        matches!(self, Self::Notes(scope) if scope.manifest.reference.is_some())
    }
}

/// What somebody wrote, as a line of an import, with its id: the same for the same text all day.
pub fn row(written: Edit, now: Timestamp) -> Result<Row, String> {
    let text = |field: Option<String>| field.filter(|text| !text.trim().is_empty());
    let line = ImportLine {
        title: written.title.unwrap_or_default(),
        subtitle: text(written.subtitle),
        facts: written.facts.unwrap_or_default(),
        concepts: written.concepts.unwrap_or_default(),
        files: written.files.unwrap_or_default(),
        narrative: text(written.narrative),
        kind: text(written.kind),
        project: text(written.project),
        created_at: Some(now.to_zoned(TimeZone::UTC).date().to_string()),
        ..ImportLine::default()
    };
    let mut row = import_line::parse(&serde_json::to_string(&line).unwrap_or_default(), now)?;
    row.line.id = Some(row.id.clone());
    row.line.created_at = Some(time::to_rfc3339(now));
    Ok(row)
}

pub fn memory(row: &Row, now: Timestamp) -> Memory {
    Memory { created_at: Some(now), ..Memory::from(row.line.clone()) }
}
