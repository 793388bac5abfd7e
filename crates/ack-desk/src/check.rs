//! Checks a folder of notes, or one file, before it is merged: format, ids, links, evidence, text.
//!
//! It serves nothing and writes nothing. It looks at the same notes that would be served from the
//! folder. A definite mistake is an error; something a person should look at is a warning.

mod notes;
mod yaml;

use std::path::{Path, PathBuf};

use ack_store::folder::instructions::is_instructions;
use ack_store::folder::note::is_json_lines;
use ack_store::folder::{Dialect, is_markdown, is_skipped};
use ack_sys::files;
use jiff::civil::Date;
use serde::Serialize;
use walkdir::WalkDir;

use self::notes::FolderCheck;
pub use self::notes::dead_link;

/// The deepest folder level that is read.
const MAX_DEPTH: usize = 32;
const MAX_FILES: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    pub rule: &'static str,
    /// The path from the top of the repository, or from the folder if there is no repository.
    pub path: PathBuf,
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct CheckReport {
    pub files: usize,
    pub memories: usize,
    pub errors: usize,
    pub warnings: usize,
    /// All findings, by file and line.
    pub findings: Vec<Finding>,
}

/// Checks a folder or a file, as of a date.
pub fn check(path: &Path, today: Date) -> std::io::Result<CheckReport> {
    let path = path.canonicalize()?;
    if path.is_dir() {
        let mut check = FolderCheck::new(path.clone(), today);
        walk(&path, &mut check)?;
        return Ok(check.report());
    }
    files::check(&path)?;
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    let mut check = FolderCheck::new(folder, today);
    let name = Path::new(path.file_name().unwrap_or_default());
    if is_instructions(&path) {
        check.report_instructions(name)
    } else {
        check.read(name)
    }
    Ok(check.report())
}

/// Whether a file is one of the Open Knowledge Format itself: at the top, or in a folder of that
/// format, wherever the check starts.
fn is_of_format(folder: &Path, file: &Path) -> bool {
    let is_named = file.ends_with("index.md") || file.ends_with("log.md");
    let mut above = file.ancestors().skip(1);
    let is_knowledge = |above: &Path| Dialect::of(&folder.join(above)) == Dialect::Knowledge;
    is_named && (file.components().count() == 1 || above.any(is_knowledge))
}

/// Checks what is in a folder. Does not follow links.
fn walk(folder: &Path, check: &mut FolderCheck) -> std::io::Result<()> {
    let walk = WalkDir::new(folder)
        .max_depth(MAX_DEPTH)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !is_skipped(entry.file_name()));
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.depth() == 0 => return Err(error.into()),
            Err(error) => {
                let path = error.path().unwrap_or(folder);
                let relative = path.strip_prefix(folder).unwrap_or(path);
                let reason = error.io_error().map(std::io::Error::to_string);
                check.report_unreadable(relative, &reason.unwrap_or_default());
                continue;
            }
        };
        let Ok(relative) = entry.path().strip_prefix(folder) else {
            continue;
        };
        if entry.file_type().is_file() && is_instructions(relative) {
            check.report_instructions(relative);
            continue;
        }
        let is_notes = is_markdown(relative) && !is_of_format(folder, relative);
        // A named pipe with the name of a note is reported when it is to be read.
        let is_read = !entry.file_type().is_dir() && !entry.file_type().is_symlink();
        if is_read && (is_notes || is_json_lines(relative)) && check.files < MAX_FILES {
            check.read(relative);
        }
    }
    Ok(())
}
