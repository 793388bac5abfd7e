//! The Open Knowledge Format: a folder follows it if its `index.md` says so.

use std::path::Path;

use ack_sys::files;

use super::front_matter::split;

/// How much of an index is read, in bytes.
const HEAD_BYTES: u64 = 8 << 10;

/// Whether the index of a folder names a version of the format.
pub fn is_declared(folder: &Path) -> bool {
    let Ok(head) = files::read_head(&folder.join("index.md"), HEAD_BYTES) else {
        return false;
    };
    let text = String::from_utf8_lossy(&head);
    let text = text.trim_start_matches('\u{feff}');
    split(text).0.text(&["okf_version"]).is_some()
}
