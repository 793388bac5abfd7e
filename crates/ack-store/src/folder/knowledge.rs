//! The Open Knowledge Format: a folder follows it if its `index.md` says so.

use std::ffi::OsString;
use std::path::Path;

use ack_sys::files;
use rustc_hash::FxHashMap;

use super::files::{MAX_FILE_BYTES, ReadFile};
use super::front_matter::split;
use super::rows::display_path;

/// Whether the index of a folder names a version of the format.
pub fn is_declared(folder: &Path) -> bool {
    let index = files::read(&folder.join("index.md"), MAX_FILE_BYTES);
    index.is_ok_and(|index| {
        let text = String::from_utf8_lossy(&index);
        split(&text).0.text(&["okf_version"]).is_some()
    })
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
