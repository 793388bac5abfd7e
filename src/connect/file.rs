//! Changes to a client's configuration file: planned from what is there, shown as a difference, written in one step.
//!
//! Beside a file that is changed for the first time its content is kept under another name. Taking parts out again leads
//! back to that content, byte by byte, unless somebody changed something else meanwhile; a file that was made for the parts
//! goes with them.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use similar::TextDiff;

use super::{ConfigFile, Format, json, toml};
use crate::error::{Error, SettingsError};

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Its parts are put in.
    Put,
    /// They are taken out.
    Take,
}

/// What a file will hold.
#[derive(Debug, Clone, PartialEq, Eq)]
enum After {
    /// What it holds now.
    Same,
    /// This text.
    Text(String),
    /// It will be gone.
    Gone,
}

/// A planned change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    before: Option<String>,
    after: After,
    /// The present content is kept before it is changed.
    keep: bool,
}

/// Plans a change. Nothing is written.
///
/// # Errors
/// [`SettingsError`] when the file cannot be read, or holds what cannot be changed with certainty.
pub fn plan(file: &ConfigFile, action: Action) -> Result<Change, Error> {
    let before = read(&file.path)?;
    let refuse = |message: String| {
        Error::Settings(SettingsError::Invalid {
            path: file.path.clone(),
            message: format!("it is left as it is, for it cannot be changed with certainty: {message}"),
            nearest: Vec::new(),
            known: Vec::new(),
        })
    };
    // Editors on some systems begin a file with a mark that is no part of the text.
    let text = before.as_deref().unwrap_or_default();
    let (mark, text) = text.strip_prefix('\u{feff}').map_or(("", text), |rest| ("\u{feff}", rest));
    let bare = take(file, text, false).map_err(refuse)?;
    let (after, keep) = match action {
        Action::Put => {
            let after = put(file, text).map_err(refuse)?;
            // What is written must be read as it was meant.
            if value(file.format, &after).is_none() {
                return Err(refuse("the result would not be readable".to_owned()));
            }
            (if after == text { After::Same } else { After::Text(after) }, bare == text)
        }
        Action::Take if before.is_none() || bare == text => (After::Same, false),
        Action::Take => {
            let pruned = take(file, text, true).map_err(refuse)?;
            let kept = read(&kept_path(&file.path))?;
            let same = |kept: &&String| {
                let kept = value(file.format, kept.trim_start_matches('\u{feff}'));
                kept.is_some() && (kept == value(file.format, &bare) || kept == value(file.format, &pruned))
            };
            let after = match kept.as_ref().filter(same) {
                Some(kept) => After::Text(kept.trim_start_matches('\u{feff}').to_owned()),
                None if kept.is_none() && is_empty(file.format, &pruned) => After::Gone,
                None => After::Text(pruned),
            };
            (after, false)
        }
    };
    let after = match after {
        After::Text(text) => After::Text(format!("{mark}{text}")),
        other => other,
    };
    Ok(Change {
        path: file.path.clone(),
        keep: keep && before.is_some(),
        before,
        after,
    })
}

/// What a file holds that has nothing but its parts.
pub fn alone(file: &ConfigFile) -> String {
    put(file, "").unwrap_or_default()
}

impl Change {
    /// Whether anything would change.
    pub fn is_needed(&self) -> bool {
        self.after != After::Same
    }

    /// The difference, as lines to take out and to put in.
    pub fn shown(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let after = match &self.after {
            After::Same => before,
            After::Text(text) => text,
            After::Gone => "",
        };
        let path = self.path.display().to_string();
        let from = if self.before.is_some() { path.as_str() } else { "(no file)" };
        let to = if self.after == After::Gone { "(no file)" } else { path.as_str() };
        let shown = TextDiff::from_lines(before, after)
            .unified_diff()
            .context_radius(2)
            .header(from, to)
            .to_string();
        shown.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
    }

    /// Where the present content is kept, if it is.
    pub fn kept(&self) -> Option<PathBuf> {
        (self.keep && self.is_needed()).then(|| kept_path(&self.path))
    }

    /// Carries the change out: the content that was planned from is kept, and the new one stands there at once or not at
    /// all.
    ///
    /// # Errors
    /// [`Error::Io`], or [`SettingsError`] when the file changed since it was planned.
    pub fn write(&self) -> Result<(), Error> {
        if read(&self.path)? != self.before {
            return Err(Error::Settings(SettingsError::Invalid {
                path: self.path.clone(),
                message: "another program changed it meanwhile; nothing was written to it".to_owned(),
                nearest: Vec::new(),
                known: Vec::new(),
            }));
        }
        // A link stays a link.
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        if let Some(kept) = self.kept() {
            std::fs::copy(&real, &kept).map_err(io("keep a copy as", &kept))?;
        }
        let kept = kept_path(&self.path);
        match &self.after {
            After::Same => {}
            After::Gone => std::fs::remove_file(&real).map_err(io("remove", &real))?,
            After::Text(text) => {
                replace(&real, text).map_err(io("write", &real))?;
                if !self.keep && read(&kept)?.as_ref() == Some(text) {
                    std::fs::remove_file(&kept).map_err(io("remove", &kept))?;
                }
            }
        }
        Ok(())
    }
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}

/// The name under which a file's earlier content is kept.
fn kept_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-ack-memory");
    path.with_file_name(name)
}

/// A file's text; `None` where there is no file.
fn read(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
            Error::Settings(SettingsError::Invalid {
                path: path.to_owned(),
                message: "it is no UTF-8 text and is left as it is".to_owned(),
                nearest: Vec::new(),
                known: Vec::new(),
            })
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Settings(SettingsError::Unreadable {
            path: path.to_owned(),
            source,
        })),
    }
}

/// Puts a text in a file's place in one step, with the permissions that the file had.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".ack-memory-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = std::fs::metadata(path) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

fn put(file: &ConfigFile, text: &str) -> Result<String, String> {
    match file.format {
        Format::Json => json::put(text, &file.parts),
        Format::Toml => toml::put(text, &file.parts),
    }
}

fn take(file: &ConfigFile, text: &str, prune: bool) -> Result<String, String> {
    match file.format {
        Format::Json if text.trim().is_empty() => Ok(text.to_owned()),
        Format::Json => json::take(text, &file.parts, prune),
        Format::Toml => toml::take(text, &file.parts, prune),
    }
}

fn value(format: Format, text: &str) -> Option<Value> {
    match format {
        Format::Json => json::value(text),
        Format::Toml => toml::value_of(text),
    }
}

fn is_empty(format: Format, text: &str) -> bool {
    match format {
        Format::Json => json::is_empty(text),
        Format::Toml => text.trim().is_empty(),
    }
}
