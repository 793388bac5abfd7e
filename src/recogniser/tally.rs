//! Counts with limits on entries, depth and time.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use ack_store::folder::instructions::is_instructions;
use ack_store::folder::is_markdown;
use ack_sys::files;
use walkdir::WalkDir;

/// The time limit for looking at a machine. A user waits for the result.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum entries to read under one folder.
const MAX_ENTRIES: usize = 20_000;
/// Maximum folder depth.
const MAX_DEPTH: usize = 8;
/// How many bytes at the start of a file are read to recognise it.
const HEAD_BYTES: u64 = 8 << 10;

/// The remaining time.
#[derive(Debug)]
pub struct Budget {
    until: Instant,
}

impl Budget {
    /// A new budget that starts now.
    pub fn start() -> Self {
        Self {
            until: Instant::now() + SURVEY_TIMEOUT,
        }
    }

    /// Whether it is used up.
    pub fn is_exhausted(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Counts the Markdown files under a folder that `is_memory` accepts.
    ///
    /// # Errors
    /// Why they were not counted.
    pub fn markdown(
        &self,
        folder: &Path,
        is_memory: impl Fn(&Path) -> bool,
    ) -> Result<u64, String> {
        let mut memories = 0;
        let entries = WalkDir::new(folder)
            .max_depth(MAX_DEPTH)
            .into_iter()
            .filter_entry(|entry| entry.depth() == 0 || !is_skipped(entry.file_name()));
        for (seen, entry) in entries.enumerate() {
            if seen >= MAX_ENTRIES {
                return Err(format!("more than {MAX_ENTRIES} entries"));
            }
            if self.is_exhausted() {
                return Err("it took too long".to_owned());
            }
            let entry = entry.map_err(|error| match error.io_error() {
                Some(error) => error.to_string(),
                None => "a folder contains itself through a link".to_owned(),
            })?;
            let path = entry.path();
            let is_note = is_markdown(path) && !is_instructions(path);
            memories += u64::from(entry.file_type().is_file() && is_note && is_memory(path));
        }
        Ok(memories)
    }
}

/// Whether a folder holds no notes: tool folders and hidden ones.
fn is_skipped(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with('.') || name == "node_modules" || name == "target"
}

/// Whether a file has this name, ignoring case.
pub fn is_named(path: &Path, name: &str) -> bool {
    path.file_name()
        .is_some_and(|found| found.eq_ignore_ascii_case(name))
}

/// The beginning of a text file; empty if it cannot be read.
pub fn head(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = |file: File| file.take(HEAD_BYTES).read_to_end(&mut bytes);
    let _ = files::open(path).and_then(read);
    String::from_utf8_lossy(&bytes)
        .trim_start_matches('\u{feff}')
        .replace("\r\n", "\n")
}

/// Whether a text begins with front matter that has one of these keys at the top level.
pub fn has_key(head: &str, keys: &[&str]) -> bool {
    let Some(rest) = head.strip_prefix("---\n") else {
        return false;
    };
    rest.lines()
        .take_while(|line| line.trim_end() != "---")
        .filter_map(|line| line.split_once(':'))
        .any(|(key, _)| keys.contains(&key.trim_matches(['"', '\''])))
}
