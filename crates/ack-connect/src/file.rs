//! Changes to a client's configuration file: planned from the current content, shown as a diff,
//! written atomically.
//!
//! Before the first change, the original content is kept under another name ([`Backup`]). Our parts
//! are removed by their keys. If what is left says the same as the original, that is restored byte
//! for byte. A file that was created for the parts is deleted with them. An entry that starts
//! another program, or connects to a server over HTTP, is not ours: it is replaced only on request,
//! and never removed. What is switched off is recorded next to the file ([`Switch`]) and comes back
//! with the removal. Edits use `\n` as line ending; each line gets its original line ending back.

use ack_api::Hint;
use std::fs::{self, Metadata, Permissions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use similar::TextDiff;
use tempfile::NamedTempFile;

use super::backup::{Backup, backup_path};
use super::switch::{self, Switch};
use super::{ClientFile, ConnectError, FileFormat, Part, json, ours, parts, toml, yaml};
use ack_service::config::SettingsError;
use ack_sys::files;
use ack_sys::text_file::with_line_ends_of;

pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// What to do about a file that cannot be changed safely.
const FIX_HINT: &str = "fix that file; the client's own documentation describes it";

/// What to do about one that is right, in a form that is not edited here.
const STYLE_HINT: &str = "the file is right, but ack-memory edits only block style: put each entry \
                          on a line of its own, and run the same command again";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    Put,
    /// Add them, also in place of somebody else's entry.
    Replace,
    Remove,
    /// Switch off what is not ours: the parts that are a [`Switch`], and no others.
    SwitchOff,
}

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
    backup: Backup,
    removes_parts: bool,
    kept_folders: Vec<PathBuf>,
    /// What is switched off, or on again.
    switched_off: Vec<Switch>,
}

pub fn plan(file: &ClientFile, action: FileAction) -> Result<FileChange, ConnectError> {
    let mut switched_off = switch::recorded(&file.path)?;
    let (switches, ours): (Vec<Part>, Vec<Part>) =
        file.parts.iter().cloned().partition(|part| part.switch().is_some());
    if action == FileAction::SwitchOff {
        switched_off.extend(switches.iter().filter_map(Part::switch).cloned());
    }
    let recorded = switched_off.iter().cloned().map(Part::Switch);
    // From here on, with the parts that a removal takes out.
    let file =
        &ClientFile { parts: ours.iter().cloned().chain(recorded).collect(), ..file.clone() };
    let added = if action == FileAction::SwitchOff { &switches } else { &ours };
    let before = match real_path(&file.path) {
        Some(real) => text_of(&file.path, &real)?.map(|(text, _)| text),
        // A link that leads nowhere is read as no file.
        None => None,
    };
    let raw = before.as_deref().unwrap_or_default();
    // Some editors begin a file with a byte order mark.
    let (mark, raw) = without_mark(raw);
    let text = raw.replace("\r\n", "\n");
    let refuse = |reason: String| {
        // Whatever YAML allows is right, and only the usual style is edited.
        let is_right = file.format == FileFormat::Yaml && settings(file.format, &text).is_ok();
        unusable(&file.path, reason, if is_right { STYLE_HINT } else { FIX_HINT })
    };
    let new_text =
        |after: &str| NewContent::Text(format!("{mark}{}", with_line_ends_of(raw, after)));
    let has_ours = remove_parts(file, &text, None).map_err(refuse)? != text;
    let backup = Backup::of(&file.path)?;
    let (after, keep) = match action {
        FileAction::Put | FileAction::Replace | FileAction::SwitchOff => {
            let other = other_entry(file, &text);
            if let (Some(does), FileAction::Put) = (&other, action) {
                let path = file.path.clone();
                let does = does.clone();
                return Err(ConnectError::OtherEntry { path, does, client: "CLIENT" });
            }
            let after = add_parts(file.format, added, &text).map_err(refuse)?;
            // The result must parse.
            if settings(file.format, &after).is_err() {
                return Err(refuse("the client could not read the result".to_owned()));
            }
            let after = if after == text { NewContent::Unchanged } else { new_text(&after) };
            let is_kept = other.is_some() || !has_ours || needs_backup(file, &text, &backup);
            let keep = match (&before, backup) {
                (Some(text), _) if is_kept => Backup::Text(text.clone()),
                (None, Backup::Nothing | Backup::NoFile { .. }) => Backup::no_file(&file.path),
                _ => Backup::Nothing,
            };
            (after, keep)
        }
        FileAction::Remove if !has_ours => (NewContent::Unchanged, Backup::Nothing),
        FileAction::Remove => {
            (undo(file, &text, backup, new_text).map_err(refuse)?, Backup::Nothing)
        }
    };
    if after != NewContent::Unchanged {
        real_path(&file.path).ok_or_else(|| dangling(&file.path))?;
    }
    Ok(FileChange {
        path: file.path.clone(),
        before,
        after,
        backup: keep,
        removes_parts: action == FileAction::Remove,
        kept_folders: file.kept_folders.clone(),
        switched_off: match action {
            FileAction::SwitchOff | FileAction::Remove => switched_off,
            FileAction::Put | FileAction::Replace => Vec::new(),
        },
    })
}

/// The content of a file after our parts are removed: that of the backup if it says the same.
fn undo(
    file: &ClientFile,
    text: &str,
    backup: Backup,
    new_text: impl Fn(&str) -> NewContent,
) -> Result<NewContent, String> {
    match backup {
        Backup::Nothing => Ok(new_text(&remove_parts(file, text, None)?)),
        Backup::NoFile { .. } => {
            let left = remove_parts(file, text, Some(&Value::Null))?;
            Ok(if is_empty(file.format, &left) { NewContent::Removed } else { new_text(&left) })
        }
        Backup::Text(original) => {
            let before = plain(&original);
            let mut left = remove_parts(file, text, Some(&read_or_nothing(file, &before)))?;
            // Our parts stood below a last line that had no end.
            if !before.ends_with('\n') && left.lines().last() == before.lines().last() {
                left.truncate(left.trim_end_matches('\n').len());
            }
            let is_same = has_no_entry(file, &before) && say_the_same(file, &left, &before);
            Ok(if is_same { NewContent::Text(original) } else { new_text(&left) })
        }
    }
}

/// Whether a file that already contains parts of ours needs a new backup: if there is none yet, or if
/// no part starts this program and the rest of the file has changed.
fn needs_backup(file: &ClientFile, text: &str, backup: &Backup) -> bool {
    match backup {
        Backup::Nothing => true,
        Backup::NoFile { .. } => false,
        Backup::Text(original) => {
            let original = plain(original);
            let left = remove_parts(file, text, Some(&read_or_nothing(file, &original)));
            let is_original = left.is_ok_and(|left| say_the_same(file, &left, &original));
            has_no_entry(file, text) && !is_original
        }
    }
}

/// Whether two texts hold the same settings and comments, however they are laid out.
fn say_the_same(file: &ClientFile, one: &str, other: &str) -> bool {
    let letters = |text: &str| {
        let is_layout = |c: &char| c.is_whitespace() || ",{}[]'\"".contains(*c);
        let mut letters: Vec<char> = text.chars().filter(|c| !is_layout(c)).collect();
        letters.sort_unstable();
        letters
    };
    let values = |text: &str| {
        let mut values = super::members(&read_or_nothing(file, text));
        values.retain(|_, value| !parts::is_empty_container(value));
        values
    };
    letters(one) == letters(other) && values(one) == values(other)
}

/// What somebody else's entry with our name does, if the file has one.
pub fn foreign_entry(file: &ClientFile) -> Result<Option<String>, ConnectError> {
    let text = read(&file.path)?.map(|(text, _)| text).unwrap_or_default();
    Ok(other_entry(file, without_mark(&text).1))
}

fn other_entry(file: &ClientFile, text: &str) -> Option<String> {
    let settings = settings(file.format, text).ok()?;
    file.parts.iter().find_map(|part| ours::other_use(entry(&settings, part)?))
}

pub fn entry<'a>(settings: &'a Value, part: &Part) -> Option<&'a Value> {
    let Part::Member { path, name, .. } = part else {
        return None;
    };
    parts::inside(settings, path)?.get(*name)
}

/// Whether a text contains neither our server nor our hooks. A permission may be the user's own.
fn has_no_entry(file: &ClientFile, text: &str) -> bool {
    let mut entries = file.clone();
    entries.parts.retain(|part| !matches!(part, Part::Words { .. } | Part::Rule { .. }));
    remove_parts(&entries, text, None).is_ok_and(|bare| bare == text)
}

pub fn without_mark(text: &str) -> (&str, &str) {
    text.strip_prefix('\u{feff}').map_or(("", text), |rest| ("\u{feff}", rest))
}

/// A text as it is edited: without a byte order mark, and with plain line ends.
fn plain(text: &str) -> String {
    without_mark(text).1.replace("\r\n", "\n")
}

impl FileChange {
    pub fn is_needed(&self) -> bool {
        self.after != NewContent::Unchanged
    }

    /// Whether it switches on again what was switched off.
    pub fn switches_on(&self) -> bool {
        self.removes_parts && !self.switched_off.is_empty()
    }

    /// The diff, as removed and added lines, or the whole text of a new file.
    pub fn shown(&self) -> String {
        let without_controls = |text: &str| -> String {
            text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
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
        let to = if self.after == NewContent::Removed { "(no file)" } else { path.as_str() };
        let diff = TextDiff::from_lines(before, after);
        without_controls(&diff.unified_diff().context_radius(2).header(&path, to).to_string())
    }

    fn remove_empty_folders(&self, created: usize) {
        for folder in self.path.ancestors().skip(1).take(created) {
            // The system refuses to remove a folder that is not empty.
            let is_kept = self.kept_folders.iter().any(|kept| kept == folder);
            if is_kept || fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }

    pub fn backup_path(&self) -> Option<PathBuf> {
        let is_kept = matches!(self.backup, Backup::Text(_)) && self.is_needed();
        is_kept.then(|| backup_path(&self.path))
    }

    /// The copy of the earlier content, if it is still there after the change.
    pub fn left_copy(&self) -> Option<PathBuf> {
        Some(backup_path(&self.path)).filter(|copy| copy.exists())
    }

    /// Prepares the change: writes the new content next to the file and changes nothing else.
    pub fn prepare(&self) -> Result<Prepared<'_>, ConnectError> {
        // A symbolic link stays as it is.
        let real = real_path(&self.path).ok_or_else(|| dangling(&self.path))?;
        let (before, metadata) = text_of(&self.path, &real)?.unzip();
        if before != self.before {
            let reason = "another program changed it meanwhile".to_owned();
            return Err(unusable(&self.path, reason, "run the same command again"));
        }
        let permissions = metadata.map(|metadata| metadata.permissions());
        if self.is_needed() && permissions.as_ref().is_some_and(Permissions::readonly) {
            let hint =
                "make it writable, or change it by hand as the same command with `--dry-run` shows";
            return Err(unusable(&self.path, "it is read-only".to_owned(), hint));
        }
        let next = match &self.after {
            NewContent::Text(text) => Some(draft(&real, text, permissions.clone())),
            NewContent::Unchanged | NewContent::Removed => None,
        };
        let next = next.transpose().map_err(io("write", &self.path))?;
        Ok(Prepared { change: self, real, permissions, next })
    }

    fn discard_backup(&self) -> Result<(), ConnectError> {
        match (Backup::of(&self.path)?, &self.after) {
            (Backup::NoFile { folders }, after) => {
                Backup::remove(&self.path)?;
                if *after == NewContent::Removed {
                    self.remove_empty_folders(folders);
                }
                Ok(())
            }
            (Backup::Text(backup), NewContent::Text(text)) if backup == *text => {
                Backup::remove(&self.path)
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
pub struct Prepared<'a> {
    change: &'a FileChange,
    real: PathBuf,
    permissions: Option<Permissions>,
    next: Option<NamedTempFile>,
}

impl Prepared<'_> {
    /// Carries out the change: keeps the old content, then replaces the file atomically.
    pub fn carry_out(self) -> Result<(), ConnectError> {
        let change = self.change;
        if !change.is_needed() {
            return Ok(());
        }
        change.backup.write(&change.path, self.permissions)?;
        if !change.removes_parts && !change.switched_off.is_empty() {
            switch::record(&change.path, &change.switched_off)?;
        }
        match self.next {
            None => fs::remove_file(&self.real).map_err(io("remove", &change.path))?,
            Some(next) => {
                let placed = next.persist(&self.real);
                placed.map_err(|error| io("write", &change.path)(error.error))?;
            }
        }
        if change.removes_parts {
            change.discard_backup()?;
            switch::forget(&change.path)?;
        }
        Ok(())
    }
}

/// A new content of a file under a temporary name next to it. Missing folders are created. Without
/// permissions, only the owner can read it.
fn draft(
    real: &Path,
    text: &str,
    permissions: Option<Permissions>,
) -> std::io::Result<NamedTempFile> {
    let folder = real.parent().unwrap_or(real);
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".ack-memory-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

pub fn keep(path: &Path, text: &str, permissions: Option<Permissions>) -> std::io::Result<()> {
    draft(path, text, permissions)?.persist(path)?;
    Ok(())
}

/// The path of one of our own files beside a client's file: the same name with a suffix.
pub fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(end);
    file.with_file_name(name)
}

pub fn unusable(path: &Path, reason: String, hint: impl Into<Hint>) -> ConnectError {
    ConnectError::Unusable { path: path.to_owned(), reason, hint: hint.into() }
}

pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ConnectError {
    let path = path.to_owned();
    move |source| ConnectError::Io { action, path, source }
}

fn dangling(path: &Path) -> ConnectError {
    let reason = "it is, or is behind, a link to something that does not exist or cannot be read";
    unusable(path, reason.to_owned(), "create what the link leads to, or remove the link")
}

pub fn read(path: &Path) -> Result<Option<(String, Metadata)>, ConnectError> {
    let real = real_path(path).ok_or_else(|| dangling(path))?;
    text_of(path, &real)
}

/// The path of the file that a path leads to: people keep settings elsewhere and link to them. The
/// file may be missing. `None` if a link on the path leads to something that does not exist.
fn real_path(path: &Path) -> Option<PathBuf> {
    // A client's variable may name a relative path.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = files::real_path(&path);
    // A link that leads nowhere is left as it is.
    (!real.ancestors().any(Path::is_symlink)).then_some(real)
}

/// The text and metadata of a file, which a path leads to; `None` if there is no file.
fn text_of(path: &Path, real: &Path) -> Result<Option<(String, Metadata)>, ConnectError> {
    let unreadable = |source| {
        ConnectError::Settings(SettingsError::Unreadable { path: path.to_owned(), source })
    };
    let file = match files::open(real) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(unreadable)?,
    };
    let metadata = file.metadata().map_err(unreadable)?;
    let bytes = files::read_opened(&file, MAX_FILE_BYTES).map_err(unreadable)?;
    String::from_utf8(bytes)
        .map(|text| Some((text, metadata)))
        .map_err(|_| unusable(path, "it is not UTF-8 text".to_owned(), FIX_HINT))
}

fn add_parts(format: FileFormat, added: &[Part], text: &str) -> Result<String, String> {
    let mut settings = settings(format, text)?;
    parts::add(&mut settings, added)?;
    rewrite(format, text, &settings)
}

/// The text of a file without our parts. An entry that has our name but belongs to something else
/// stays. With `before`, its values come back where our parts were, and objects and lists that end up
/// empty are removed unless they were in it.
fn remove_parts(file: &ClientFile, text: &str, before: Option<&Value>) -> Result<String, String> {
    let mut left = settings(file.format, text)?;
    let mut own = file.parts.clone();
    own.retain(|part| entry(&left, part).is_none_or(ours::is_entry));
    parts::remove(&mut left, &own, before);
    // In two steps, because comments may be all that is left in an object.
    let text = rewrite(file.format, text, &left)?;
    let Some(before) = before else {
        return Ok(text);
    };
    parts::prune(&mut left, &own, before);
    rewrite(file.format, &text, &left)
}

pub fn settings(format: FileFormat, text: &str) -> Result<Value, String> {
    match format {
        FileFormat::Json => json::read(text),
        FileFormat::Toml => toml::read(text),
        FileFormat::Yaml => yaml::read(text),
    }
}

fn read_or_nothing(file: &ClientFile, text: &str) -> Value {
    settings(file.format, text).unwrap_or_default()
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

fn is_empty(format: FileFormat, text: &str) -> bool {
    match format {
        FileFormat::Json => json::is_empty(text),
        FileFormat::Toml => text.trim().is_empty(),
        FileFormat::Yaml => yaml::is_empty(text),
    }
}
