//! The Open Knowledge Format: a folder follows it if its `index.md` says so.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use ack_sys::files;
use rustc_hash::FxHashMap;

use super::files::ReadFile;
use super::front_matter::split;
use super::rows::display_path;

/// How much of an index is read, in bytes.
const HEAD_BYTES: u64 = 8 << 10;

/// Whether the index of a folder names a version of the format.
pub fn is_declared(folder: &Path) -> bool {
    let mut head = Vec::new();
    let Ok(index) = files::open(&folder.join("index.md")) else {
        return false;
    };
    if index.take(HEAD_BYTES).read_to_end(&mut head).is_err() {
        return false;
    }
    let text = String::from_utf8_lossy(&head);
    let text = text.trim_start_matches('\u{feff}');
    split(text).0.text(&["okf_version"]).is_some()
}

/// Names the notes without the `type` that the format requires; `None` if every note has one.
pub fn untyped_notes(files: &FxHashMap<OsString, ReadFile>) -> Option<String> {
    let mut names: Vec<String> = files
        .iter()
        .filter(|(_, file)| file.is_untyped)
        .map(|(relative, _)| display_path(relative))
        .collect();
    names.sort();
    let first = names.first()?;
    let (subject, have) = match names.len() {
        1 => (format!("`{first}`"), "has"),
        2 => (format!("`{first}` and 1 more note"), "have"),
        count => (format!("`{first}` and {} more notes", count - 1), "have"),
    };
    Some(format!(
        "{subject} {have} no `type` in the header, which the Open Knowledge Format requires"
    ))
}
