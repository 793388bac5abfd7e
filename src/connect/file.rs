//! Changes to a client's configuration file: planned from the current content, shown as a diff,
//! written atomically.
//!
//! Before the first change, the original content is kept under another name ([`Backup`]). Removing
//! the parts restores that content byte for byte if nothing else has changed since, and undoes only
//! our change otherwise. A file that was created for the parts is deleted with them. An entry that
//! starts another program, or connects to a server over HTTP, is not ours: it is replaced only on
//! request, and never removed. Edits use `\n` as line ending; each line gets its
//! original line ending back. [`RealFile`] keeps a repository from leading a change elsewhere.

use ack_api::Hint;
use ack_api::text::line;
use std::fs::{Metadata, Permissions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use similar::TextDiff;

use super::ConnectError;
use super::backup::{Backup, backup_path};
use super::ours::EntryKind;
use super::real_file::{Draft, LinkProblem, RealFile};
use super::undo::{Restoration, restore};
use super::{ClientFile, EmptyContainer, FileFormat, Part, json, parts, toml, yaml};
use crate::config::SettingsError;
use crate::text_file::with_line_ends_of;
use ack_sys::files;

/// The maximum size of a client's file, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
/// The most characters that are shown of where a link leads.
const MAX_SHOWN_CHARS: usize = 300;

/// What to do about a file that cannot be changed safely.
const FIX_HINT: &str = "fix that file; the client's own documentation describes it";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    Put,
    /// Add them, also in place of somebody else's entry.
    Replace,
    Remove,
}

/// The content of a file after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NewContent {
    Unchanged,
    Text(String),
    Removed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    before: Option<String>,
    after: NewContent,
    /// The backup of the present state.
    backup: Backup,
    /// Whether it removes the parts.
    removes_parts: bool,
    /// Whether the file has other names (hard links).
    has_other_names: bool,
    /// The project that it must be in, if it must.
    project: Option<PathBuf>,
    /// Folders to keep, even if they end up empty.
    kept_folders: Vec<PathBuf>,
}

/// Plans a change. Writes nothing.
///
/// # Errors
/// [`ConnectError`] if the file cannot be read, may not be written, cannot be changed safely, or
/// has an entry of another program with our name.
pub fn plan(file: &ClientFile, action: FileAction) -> Result<FileChange, ConnectError> {
    let project = file.project.as_deref();
    let (before, metadata) = read(&file.path, project)?.unzip();
    let refuse = |reason: String| unusable(&file.path, reason, FIX_HINT);
    // Some editors begin a file with a byte order mark.
    let raw = before.as_deref().unwrap_or_default();
    let (mark, raw) = without_mark(raw);
    let text = raw.replace("\r\n", "\n");
    let new_text =
        |after: &str| NewContent::Text(format!("{mark}{}", with_line_ends_of(raw, after)));
    let bare = remove_parts(file, &text, EmptyContainer::Keep).map_err(refuse)?;
    let backup = Backup::of(&file.path, project)?;
    let (after, keep) = match action {
        FileAction::Put | FileAction::Replace => {
            let other = other_entry(file, &text);
            if let (Some(does), FileAction::Put) = (&other, action) {
                let path = file.path.clone();
                return Err(ConnectError::OtherEntry {
                    path,
                    does: does.clone(),
                });
            }
            let after = add_parts(file, &text).map_err(refuse)?;
            // The result must parse.
            if settings(file.format, &after).is_err() {
                return Err(refuse("the client could not read the result".to_owned()));
            }
            let after = if after == text {
                NewContent::Unchanged
            } else {
                new_text(&after)
            };
            let is_kept = other.is_some() || needs_backup(file, &text, &bare, &backup);
            (after, new_backup(file, before.as_ref(), &backup, is_kept))
        }
        FileAction::Remove if before.is_none() || bare == text => {
            (NewContent::Unchanged, Backup::Nothing)
        }
        FileAction::Remove => {
            let after = match restore(file, &text, &backup).map_err(refuse)? {
                Restoration::FromBackup => match backup {
                    Backup::Text(backup) => NewContent::Text(backup),
                    Backup::NoFile { .. } | Backup::Nothing => NewContent::Removed,
                },
                Restoration::Text(text) => new_text(&text),
            };
            (after, Backup::Nothing)
        }
    };
    if after != NewContent::Unchanged {
        // A link that leads nowhere was read as no file.
        RealFile::at(&file.path, project).map_err(refused(&file.path))?;
    }
    Ok(FileChange {
        path: file.path.clone(),
        before,
        after,
        backup: keep,
        removes_parts: action == FileAction::Remove,
        has_other_names: metadata.is_some_and(|metadata| metadata.nlink() > 1),
        project: file.project.clone(),
        kept_folders: file.kept_folders.clone(),
    })
}

/// What somebody else's entry with our name does, if the file has one.
pub fn foreign_entry(file: &ClientFile) -> Result<Option<String>, ConnectError> {
    let read = read(&file.path, file.project.as_deref())?;
    let text = read.map_or_else(String::new, |(text, _)| text);
    Ok(other_entry(file, without_mark(&text).1))
}

fn other_entry(file: &ClientFile, text: &str) -> Option<String> {
    let settings = settings(file.format, text).ok()?;
    file.parts
        .iter()
        .find_map(|part| match EntryKind::of(entry(&settings, part)?) {
            EntryKind::Other(does) => Some(does),
            EntryKind::ThisProgram | EntryKind::Unknown => None,
        })
}

/// The value where our server's entry belongs.
pub(super) fn entry<'a>(settings: &'a Value, part: &Part) -> Option<&'a Value> {
    let Part::Member { path, name, .. } = part else {
        return None;
    };
    let mut levels = path.iter().chain([name]);
    levels.try_fold(settings, |value, key| value.get(key))
}

/// Whether to keep the present text of a file: nothing is kept yet, or the text contains none of
/// our entries and is not just the kept text plus our parts.
fn needs_backup(file: &ClientFile, text: &str, bare: &str, backup: &Backup) -> bool {
    match backup {
        _ if bare == text => true,
        Backup::Nothing => true,
        Backup::NoFile { .. } => false,
        Backup::Text(backup) => {
            has_no_entry(file, text) && !differs_only_in_ours(file, backup, bare)
        }
    }
}

fn new_backup(
    file: &ClientFile,
    before: Option<&String>,
    backup: &Backup,
    needs_backup: bool,
) -> Backup {
    match (before, backup) {
        (Some(text), _) if needs_backup => Backup::Text(text.clone()),
        (None, Backup::Nothing | Backup::NoFile { .. }) => Backup::no_file(&file.path),
        _ => Backup::Nothing,
    }
}

/// Whether the kept text and the present one are equal apart from our entries.
fn differs_only_in_ours(file: &ClientFile, backup_text: &str, bare: &str) -> bool {
    let backup_text = without_mark(backup_text).1.replace("\r\n", "\n");
    let nothing = Value::Null;
    let rest = |text: &str, emptied| {
        let bare = remove_parts(file, text, emptied).ok()?;
        settings(file.format, &bare).ok()
    };
    let same = |emptied| {
        rest(&backup_text, emptied)
            .is_some_and(|backup_text| Some(backup_text) == rest(bare, emptied))
    };
    has_no_entry(file, &backup_text)
        && (same(EmptyContainer::Keep) || same(EmptyContainer::RemoveUnless(&nothing)))
}

/// Whether a text contains neither our server nor our hooks.
pub(super) fn has_no_entry(file: &ClientFile, text: &str) -> bool {
    let entries = with_parts(file, |part| !part.is_permission());
    remove_parts(&entries, text, EmptyContainer::Keep).is_ok_and(|bare| bare == text)
}

/// The same file with only some of its parts.
pub(super) fn with_parts(file: &ClientFile, which: impl Fn(&Part) -> bool) -> ClientFile {
    ClientFile {
        parts: file
            .parts
            .iter()
            .filter(|part| which(part))
            .cloned()
            .collect(),
        ..file.clone()
    }
}

/// A byte order mark and the text after it.
pub(super) fn without_mark(text: &str) -> (&str, &str) {
    text.strip_prefix('\u{feff}')
        .map_or(("", text), |rest| ("\u{feff}", rest))
}

impl FileChange {
    /// Whether anything would change.
    pub fn is_needed(&self) -> bool {
        self.after != NewContent::Unchanged
    }

    /// The diff, as removed and added lines, or the whole text of a new file.
    pub fn shown(&self) -> String {
        let without_controls = |text: &str| -> String {
            text.chars()
                .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
                .collect()
        };
        if let (None, NewContent::Text(text)) = (&self.before, &self.after) {
            return without_controls(&format!("{} (new)\n\n{text}", self.path.display()));
        }
        let before = self.before.as_deref().unwrap_or_default();
        let after = match &self.after {
            NewContent::Unchanged => before,
            NewContent::Text(text) => text,
            NewContent::Removed => "",
        };
        let path = self.path.display().to_string();
        let to = if self.after == NewContent::Removed {
            "(no file)"
        } else {
            path.as_str()
        };
        let diff = TextDiff::from_lines(before, after)
            .unified_diff()
            .context_radius(2)
            .header(&path, to)
            .to_string();
        without_controls(&diff)
    }

    /// Removes the folders that were created for the file, if they are empty.
    fn remove_empty_folders(&self, created: usize) {
        let above = self.path.ancestors().skip(1).take(created);
        for folder in
            above.take_while(|folder| !self.kept_folders.iter().any(|stays| stays == folder))
        {
            let found = RealFile::itself(folder, self.project.as_deref());
            // The system refuses to remove a folder that is not empty.
            if !found.is_ok_and(|folder| folder.remove_folder().is_ok()) {
                return;
            }
        }
    }

    /// A sentence for the user if the file has other names, which the change does not reach.
    pub fn other_names(&self) -> Option<String> {
        let is_affected = self.has_other_names && self.is_needed();
        is_affected.then(|| {
            format!(
                "{} is a hard link: the same file has other names, and what they show does not \
                 change.",
                self.path.display()
            )
        })
    }

    /// Where the present content is backed up, if it is.
    pub fn backup_path(&self) -> Option<PathBuf> {
        let is_kept = matches!(self.backup, Backup::Text(_)) && self.is_needed();
        is_kept.then(|| backup_path(&self.path))
    }

    /// Prepares the change: writes the new content next to the file and changes nothing else.
    ///
    /// # Errors
    /// [`ConnectError::Io`], or [`SettingsError`] if the file has changed since it was planned.
    pub fn prepare(&self) -> Result<Prepared<'_>, ConnectError> {
        // A symbolic link stays as it is.
        let real = RealFile::at(&self.path, self.project.as_deref());
        let real = real.map_err(refused(&self.path))?;
        let (before, metadata) = text_of(&self.path, &real)?.unzip();
        if before != self.before {
            return Err(unusable(
                &self.path,
                "another program changed it meanwhile".to_owned(),
                "run the same command again",
            ));
        }
        let permissions = metadata.map(|metadata| metadata.permissions());
        if self.is_needed() && permissions.as_ref().is_some_and(Permissions::readonly) {
            return Err(unusable(
                &self.path,
                "it is read-only".to_owned(),
                "make it writable, or change it by hand as the same command with `--dry-run` shows",
            ));
        }
        let next = match &self.after {
            NewContent::Text(text) => {
                let draft = real.draft(text, permissions.clone());
                Some(draft.map_err(io("write", &self.path))?)
            }
            NewContent::Unchanged | NewContent::Removed => None,
        };
        Ok(Prepared {
            change: self,
            real,
            permissions,
            next,
        })
    }
}

/// A change that is ready to be carried out.
#[derive(Debug)]
pub struct Prepared<'a> {
    change: &'a FileChange,
    real: RealFile,
    permissions: Option<Permissions>,
    next: Option<Draft>,
}

impl Prepared<'_> {
    /// Carries out the change: keeps the old content, then replaces the file atomically.
    pub fn carry_out(self) -> Result<(), ConnectError> {
        let change = self.change;
        if !change.is_needed() {
            return Ok(());
        }
        let project = change.project.as_deref();
        change
            .backup
            .write(&change.path, project, self.permissions)?;
        match self.next {
            None => self.real.remove().map_err(io("remove", &change.path))?,
            Some(next) => next.put_in_place().map_err(io("write", &change.path))?,
        }
        if change.removes_parts {
            change.discard_backup()?;
        }
        Ok(())
    }
}

impl FileChange {
    /// Removes the backup if it is not needed any more.
    fn discard_backup(&self) -> Result<(), ConnectError> {
        let project = self.project.as_deref();
        match (Backup::of(&self.path, project)?, &self.after) {
            (Backup::NoFile { folders }, NewContent::Removed) => {
                Backup::remove(&self.path, project)?;
                self.remove_empty_folders(folders);
            }
            (Backup::NoFile { .. }, _) => Backup::remove(&self.path, project)?,
            (Backup::Text(backup), NewContent::Text(text)) if backup == *text => {
                Backup::remove(&self.path, project)?
            }
            _ => {}
        }
        Ok(())
    }
}

pub(super) fn unusable(path: &Path, reason: String, hint: impl Into<Hint>) -> ConnectError {
    ConnectError::Unusable {
        path: path.to_owned(),
        reason,
        hint: hint.into(),
    }
}

pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ConnectError {
    let path = path.to_owned();
    move |source| ConnectError::Io {
        action,
        path,
        source,
    }
}

/// Why a path is not written to.
pub(super) fn refused(path: &Path) -> impl FnOnce(LinkProblem) -> ConnectError {
    let path = path.to_owned();
    move |problem| match problem {
        LinkProblem::Dangling => unusable(
            &path,
            "it is, or is behind, a link to something that does not exist or cannot be read"
                .to_owned(),
            "create what the link leads to, or remove the link",
        ),
        LinkProblem::LeadsOut(to) => unusable(
            &path,
            format!(
                "a link leads from there to `{}`, which is not one of the project's files",
                line(&to.display().to_string(), MAX_SHOWN_CHARS)
            ),
            "find out who made the link; remove it, or edit that file by hand",
        ),
    }
}

/// The text and metadata of the file that a path leads to; `None` if there is none.
fn read(path: &Path, project: Option<&Path>) -> Result<Option<(String, Metadata)>, ConnectError> {
    match RealFile::at(path, project) {
        Ok(real) => text_of(path, &real),
        Err(LinkProblem::Dangling) => Ok(None),
        Err(problem) => Err(refused(path)(problem)),
    }
}

/// The text and metadata of a file, which a path leads to; `None` if there is no file.
pub(super) fn text_of(
    path: &Path,
    real: &RealFile,
) -> Result<Option<(String, Metadata)>, ConnectError> {
    let unreadable = |source| {
        ConnectError::Settings(SettingsError::Unreadable {
            path: path.to_owned(),
            source,
        })
    };
    let Some(file) = real.open().map_err(unreadable)? else {
        return Ok(None);
    };
    let metadata = file.metadata().map_err(unreadable)?;
    let bytes = files::read_opened(&file, MAX_FILE_BYTES).map_err(unreadable)?;
    String::from_utf8(bytes)
        .map(|text| Some((text, metadata)))
        .map_err(|_| unusable(path, "it is not UTF-8 text".to_owned(), FIX_HINT))
}

/// A text with our parts.
pub(super) fn add_parts(file: &ClientFile, text: &str) -> Result<String, String> {
    let mut settings = settings(file.format, text)?;
    parts::add(&mut settings, &file.parts)?;
    rewrite(file.format, text, &settings)
}

/// A text without our parts. Somebody else's entry with our name stays.
pub(super) fn remove_parts(
    file: &ClientFile,
    text: &str,
    emptied: EmptyContainer<'_>,
) -> Result<String, String> {
    let settings = settings(file.format, text)?;
    let ours = ours_in(file, &settings);
    let without = |emptied| {
        let mut bare = settings.clone();
        parts::remove(&mut bare, &ours.parts, emptied);
        bare
    };
    let text = rewrite(file.format, text, &without(EmptyContainer::Keep))?;
    rewrite(file.format, &text, &without(emptied))
}

/// The file with the parts that are not somebody else's entry.
pub(super) fn ours_in(file: &ClientFile, settings: &Value) -> ClientFile {
    with_parts(file, |part| {
        entry(settings, part).is_none_or(|entry| EntryKind::of(entry) == EntryKind::ThisProgram)
    })
}

pub(super) fn settings(format: FileFormat, text: &str) -> Result<Value, String> {
    match format {
        FileFormat::Json => json::read(text),
        FileFormat::Toml => toml::read(text),
        FileFormat::Yaml => yaml::read(text),
    }
}

/// A text with other settings. Only what differs changes.
fn rewrite(format: FileFormat, text: &str, new: &Value) -> Result<String, String> {
    let old = settings(format, text)?;
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return Ok(text.to_owned());
    };
    if old == *new {
        return Ok(text.to_owned());
    }
    match format {
        FileFormat::Json => json::rewrite(text, &old, new),
        FileFormat::Toml => toml::rewrite(text, &old, new),
        FileFormat::Yaml => yaml::rewrite(text, &old, new),
    }
}

pub(super) fn is_empty(format: FileFormat, text: &str) -> bool {
    match format {
        FileFormat::Json => json::is_empty(text),
        FileFormat::Toml => text.trim().is_empty(),
        FileFormat::Yaml => yaml::is_empty(text),
    }
}
