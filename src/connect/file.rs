//! Changes to a client's configuration file: planned from the current content, shown as a diff,
//! written atomically.
//!
//! Before the first change, the original content is saved under another name. Removing the parts
//! restores that content byte for byte, unless someone has changed something else since. A file
//! that was created for the parts is deleted with them. Edits work on `\n` line ends; each line
//! gets its original line end back.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use tempfile::NamedTempFile;

use super::ConnectError;
use super::{ConfigFile, Format, Part, json, toml, yaml};
use crate::config::SettingsError;
use ack_sys::files;

/// The maximum size of a client's file, in bytes.
pub const LARGEST: u64 = 64 << 20;

/// What to do about a file that cannot be changed safely.
const FIX: &str = "fix that file; the client's own documentation describes it";

/// What to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Add the parts.
    Put,
    /// Remove them.
    Take,
}

/// The content of a file after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum After {
    /// Unchanged.
    Same,
    /// This text.
    Text(String),
    /// The file is removed.
    Gone,
}

/// A planned change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    before: Option<String>,
    after: After,
    /// Whether to save the present content first.
    keep: bool,
    /// Folders to keep, even if they end up empty.
    stays: Vec<PathBuf>,
}

/// Plans a change. Writes nothing.
///
/// # Errors
/// [`SettingsError`] if the file cannot be read, may not be written, or cannot be changed safely.
pub fn plan(file: &ConfigFile, action: Action) -> Result<Change, ConnectError> {
    let before = read(&file.path)?;
    let refuse = |reason: String| unusable(&file.path, reason, FIX);
    // Some editors begin a file with a byte order mark.
    let raw = before.as_deref().unwrap_or_default();
    let (mark, raw) = raw
        .strip_prefix('\u{feff}')
        .map_or(("", raw), |rest| ("\u{feff}", rest));
    let text = raw.replace("\r\n", "\n");
    let written = |after: &str| After::Text(format!("{mark}{}", with_line_ends_of(raw, after)));
    let bare = take(file, &text, false).map_err(refuse)?;
    let (after, keep) = match action {
        Action::Put => {
            let after = put(file, &text).map_err(refuse)?;
            // The result must parse.
            if value(file.format, &after).is_none() {
                return Err(refuse("the client could not read the result".to_owned()));
            }
            let after = if after == text {
                After::Same
            } else {
                written(&after)
            };
            (
                after,
                before.is_some() && is_to_be_kept(file, &text, &bare)?,
            )
        }
        Action::Take if before.is_none() || bare == text => (After::Same, false),
        Action::Take => {
            let kept = read(&kept_path(&file.path))?;
            let pruned = take(file, &text, true).map_err(refuse)?;
            let after = match kept.filter(|kept| leads_to(file, kept, &bare)) {
                Some(kept) => After::Text(kept),
                None if !kept_path(&file.path).exists() && is_empty(file.format, &pruned) => {
                    After::Gone
                }
                None => written(&pruned),
            };
            (after, false)
        }
    };
    if after != After::Same {
        writable(&file.path)?;
    }
    Ok(Change {
        path: file.path.clone(),
        before,
        after,
        keep,
        stays: file.stays.clone(),
    })
}

/// Whether to save the present text: it contains none of our entries, and it is not just the saved
/// text plus our entries.
fn is_to_be_kept(file: &ConfigFile, text: &str, bare: &str) -> Result<bool, ConnectError> {
    if bare == text {
        return Ok(true);
    }
    // A permission may be the user's own, so it does not make a text ours, unless the text is
    // exactly what we write.
    let permissions = with_parts(file, |part| matches!(part, Part::Words { .. }));
    let only_ours = put(&permissions, "").is_ok_and(|alone| alone == text);
    let derived = read(&kept_path(&file.path))?.is_some_and(|kept| leads_to(file, &kept, bare));
    Ok(has_no_entry(file, text) && !only_ours && !derived)
}

/// Whether the saved text and the present one are equal apart from our entries.
fn leads_to(file: &ConfigFile, kept: &str, bare: &str) -> bool {
    let kept = kept.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let rest = |text: &str, prune| value(file.format, &take(file, text, prune).ok()?);
    let same = |prune| rest(&kept, prune).is_some_and(|kept| Some(kept) == rest(bare, prune));
    has_no_entry(file, &kept) && (same(false) || same(true))
}

/// Whether a text contains neither our server nor our hooks.
fn has_no_entry(file: &ConfigFile, text: &str) -> bool {
    let entries = with_parts(file, |part| !matches!(part, Part::Words { .. }));
    take(&entries, text, false).is_ok_and(|bare| bare == text)
}

/// The same file with only some of its parts.
fn with_parts(file: &ConfigFile, which: impl Fn(&Part) -> bool) -> ConfigFile {
    ConfigFile {
        parts: file
            .parts
            .iter()
            .filter(|part| which(part))
            .cloned()
            .collect(),
        ..file.clone()
    }
}

/// Gives a changed text the line ends of the original: each old line keeps its own, new lines get
/// the most common one.
pub fn with_line_ends_of(before: &str, after: &str) -> String {
    let ends = before.matches("\r\n").count();
    if ends == 0 {
        return after.to_owned();
    }
    let usual = if ends * 2 > before.matches('\n').count() {
        "\r\n"
    } else {
        "\n"
    };
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let plain: Vec<String> = before
        .iter()
        .map(|line| line.replace("\r\n", "\n"))
        .collect();
    let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let difference = TextDiff::from_slices(&plain, &after);
    let lines = difference
        .iter_all_changes()
        .filter(|change| change.tag() != ChangeTag::Delete);
    lines
        .map(
            |change| match change.old_index().and_then(|at| before.get(at)) {
                Some(line) => (*line).to_owned(),
                None => change.value().replace('\n', usual),
            },
        )
        .collect()
}

/// Rejects a read-only file and a broken link.
fn writable(path: &Path) -> Result<(), ConnectError> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.permissions().readonly() => Err(unusable(
            path,
            "it is read-only".to_owned(),
            "make it writable, or add what `ack-memory print-config` shows by hand",
        )),
        Err(_) if path.is_symlink() => Err(unusable(
            path,
            "it is a link to a file that does not exist".to_owned(),
            "create that file, or remove the link",
        )),
        _ => Ok(()),
    }
}

/// The content of a file that has only our parts.
pub fn alone(file: &ConfigFile) -> String {
    put(file, "").unwrap_or_default()
}

impl Change {
    /// Whether anything would change.
    pub fn is_needed(&self) -> bool {
        self.after != After::Same
    }

    /// The diff, as removed and added lines.
    pub fn shown(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let after = match &self.after {
            After::Same => before,
            After::Text(text) => text,
            After::Gone => "",
        };
        let path = self.path.display().to_string();
        let from = if self.before.is_some() {
            path.as_str()
        } else {
            "(no file)"
        };
        let to = if self.after == After::Gone {
            "(no file)"
        } else {
            path.as_str()
        };
        let shown = TextDiff::from_lines(before, after)
            .unified_diff()
            .context_radius(2)
            .header(from, to)
            .to_string();
        shown
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .collect()
    }

    /// Removes the folders that were created for the file, if they are empty.
    fn remove_empty_folders(&self) {
        let above = self.path.ancestors().skip(1);
        for folder in above.take_while(|folder| !self.stays.iter().any(|stays| stays == folder)) {
            // The system refuses to remove a folder that is not empty.
            if std::fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }

    /// Where the present content is saved, if it is.
    pub fn kept(&self) -> Option<PathBuf> {
        (self.keep && self.is_needed()).then(|| kept_path(&self.path))
    }

    /// Prepares the change: writes the new content next to the file and changes nothing else.
    ///
    /// # Errors
    /// [`ConnectError::Io`], or [`SettingsError`] if the file has changed since it was planned.
    pub fn prepare(&self) -> Result<Prepared<'_>, ConnectError> {
        if read(&self.path)? != self.before {
            return Err(unusable(
                &self.path,
                "another program changed it meanwhile".to_owned(),
                "run the same command again",
            ));
        }
        // Keep a symbolic link as it is.
        let real = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        let next = match &self.after {
            After::Text(text) => Some(beside(&real, text).map_err(io("write", &real))?),
            After::Same | After::Gone => None,
        };
        Ok(Prepared {
            change: self,
            real,
            next,
        })
    }
}

/// A change that is ready to be carried out.
#[derive(Debug)]
pub struct Prepared<'a> {
    change: &'a Change,
    real: PathBuf,
    next: Option<NamedTempFile>,
}

impl Prepared<'_> {
    /// Carries out the change: saves the old content, then replaces the file atomically.
    ///
    /// # Errors
    /// [`ConnectError::Io`].
    pub fn carry_out(self) -> Result<(), ConnectError> {
        let kept = kept_path(&self.change.path);
        if self.change.kept().is_some() {
            std::fs::copy(&self.real, &kept).map_err(io("keep a copy as", &kept))?;
        }
        match (&self.change.after, self.next) {
            (After::Gone, _) => {
                std::fs::remove_file(&self.real).map_err(io("remove", &self.real))?;
                self.change.remove_empty_folders();
            }
            (After::Text(text), Some(next)) => {
                next.persist(&self.real)
                    .map_err(|error| io("write", &self.real)(error.error))?;
                if !self.change.keep && read(&kept)?.as_ref() == Some(text) {
                    std::fs::remove_file(&kept).map_err(io("remove", &kept))?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn unusable(path: &Path, reason: String, hint: &'static str) -> ConnectError {
    ConnectError::Unusable {
        path: path.to_owned(),
        reason,
        hint,
    }
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ConnectError {
    let path = path.to_owned();
    move |source| ConnectError::Io {
        action,
        path,
        source,
    }
}

/// The path of the saved original content.
fn kept_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-ack-memory");
    path.with_file_name(name)
}

/// A file's text, or `None` if there is no file.
fn read(path: &Path) -> Result<Option<String>, ConnectError> {
    match files::read(path, LARGEST) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| unusable(path, "it is not UTF-8 text".to_owned(), FIX)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConnectError::Settings(SettingsError::Unreadable {
            path: path.to_owned(),
            source,
        })),
    }
}

/// Writes a text to a temporary file next to another, with the same permissions.
fn beside(path: &Path, text: &str) -> std::io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new()
        .prefix(".ack-memory-")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = std::fs::metadata(path) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

fn put(file: &ConfigFile, text: &str) -> Result<String, String> {
    match file.format {
        Format::Json => json::put(text, &file.parts),
        Format::Toml => toml::put(text, &file.parts),
        Format::Yaml => yaml::put(text, &file.parts),
    }
}

fn take(file: &ConfigFile, text: &str, prune: bool) -> Result<String, String> {
    match file.format {
        Format::Json if text.trim().is_empty() => Ok(text.to_owned()),
        Format::Json => json::take(text, &file.parts, prune),
        Format::Toml => toml::take(text, &file.parts, prune),
        Format::Yaml => yaml::take(text, &file.parts, prune),
    }
}

fn value(format: Format, text: &str) -> Option<Value> {
    match format {
        Format::Json => json::value(text),
        Format::Toml => toml::value_of(text),
        Format::Yaml => yaml::value_of(text),
    }
}

fn is_empty(format: Format, text: &str) -> bool {
    match format {
        Format::Json => json::is_empty(text),
        Format::Toml => text.trim().is_empty(),
        Format::Yaml => yaml::is_empty(text),
    }
}
