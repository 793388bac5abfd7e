//! Appends decisions to the log of a scope.
//!
//! Writers lock the log, so their lines never mix. An unfinished line from another process is
//! terminated first and then counts as damaged. If writing fails, the log is truncated to its
//! previous length.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ack_api::decision::Decision;
use ack_store::read::Curated;
use ack_sys::files;

use super::CurateError;
use super::write::check_single;
use crate::scope::Scope;

/// Appends earlier decisions again. They apply to whatever the memories hold now.
///
/// # Errors
/// The log cannot be written. Then nothing is decided.
pub fn write_again(scope: &Scope, decisions: &[Decision]) -> Result<(), CurateError> {
    write_with(scope, &[], |_| Ok(decisions.to_vec()))?;
    Ok(())
}

/// Decides about memories as they are now: `decide` gets those of `ids` that exist, and no other
/// process can write to the log until its decisions are written.
///
/// # Errors
/// The store or the log cannot be read, the log cannot be written, or `decide` fails. Then nothing
/// is decided.
pub fn write_with(
    scope: &Scope,
    ids: &[&str],
    decide: impl FnOnce(&HashMap<String, Curated>) -> Result<Vec<Decision>, CurateError>,
) -> Result<Vec<Decision>, CurateError> {
    let fallback = scope.folder.join(ack_api::decision::DECISION_LOG);
    let path = scope.store.decision_log().unwrap_or(&fallback);
    let fail = |source| CurateError::Write {
        path: path.to_owned(),
        source,
    };
    let mut log = open(path).map_err(fail)?;
    log.lock().map_err(fail)?;
    let now = scope.store.snapshot(|snapshot| {
        let mut now = HashMap::new();
        for id in ids {
            if let Some(curated) = snapshot.curated(id)? {
                now.insert((*id).to_owned(), curated);
            }
        }
        Ok(now)
    })?;
    let decisions = decide(&now)?;
    check_single(scope, &decisions, &now)?;
    let mut lines = String::new();
    for decision in &decisions {
        lines.push_str(&decision.to_line());
        lines.push('\n');
    }
    if !lines.is_empty() {
        append(&mut log, &lines).map_err(fail)?;
    }
    Ok(decisions)
}

/// Opens the log. A new one is readable only by its owner.
fn open(path: &Path) -> io::Result<File> {
    if path.exists() {
        files::check(path)?;
    }
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

fn append(log: &mut File, lines: &str) -> io::Result<()> {
    let before = log.seek(SeekFrom::End(0))?;
    let mut text = String::new();
    if before > 0 {
        log.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        log.read_exact(&mut last)?;
        if last != *b"\n" {
            text.push('\n');
        }
    }
    text.push_str(lines);
    let result = log
        .write_all(text.as_bytes())
        .and_then(|()| log.sync_data());
    if result.is_err() {
        // Part of a line would count as damaged.
        let _ = log.set_len(before);
    }
    result
}
