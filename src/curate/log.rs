//! Appends decisions to the log of a scope.
//!
//! Writers take a lock on the log, so that two of them never mix their lines. A line that another
//! process left unfinished is ended first; it then counts as damaged. If writing fails, the log is
//! cut back to what it was.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ack_api::decision::Decision;
use ack_store::read::Curated;
use ack_sys::files;

use super::CurateError;
use crate::scope::Scope;

/// What became of some decisions.
#[derive(Debug, Default)]
pub struct Written {
    /// How many were written.
    pub count: usize,
    /// The ids of memories that changed after they were read. Nothing was decided about them.
    pub changed: Vec<String>,
}

/// Writes decisions about memories of one scope, all at once. Those about memories that changed
/// since they were read are left out.
///
/// # Errors
/// The store or the log cannot be read, or the log cannot be written. Then nothing was decided.
pub fn write(scope: &Scope, decisions: &[Decision]) -> Result<Written, CurateError> {
    write_if(scope, decisions, |decision, curated| {
        curated.is_some_and(|curated| curated.digest == decision.digest)
    })
}

/// Like [`write()`], for decisions that were made before and are said again: about whatever the
/// memory holds now.
///
/// # Errors
/// As [`write()`].
pub fn write_again(scope: &Scope, decisions: &[Decision]) -> Result<Written, CurateError> {
    write_if(scope, decisions, |_, _| true)
}

fn write_if(
    scope: &Scope,
    decisions: &[Decision],
    fits: impl Fn(&Decision, Option<&Curated>) -> bool,
) -> Result<Written, CurateError> {
    let ids: Vec<&str> = decisions
        .iter()
        .map(|decision| decision.id.as_str())
        .collect();
    let mut written = Written::default();
    write_with(scope, &ids, |now| {
        let (fitting, changed): (Vec<&Decision>, Vec<&Decision>) = decisions
            .iter()
            .partition(|decision| fits(decision, now.get(&decision.id)));
        written.count = fitting.len();
        written.changed = changed.iter().map(|decision| decision.id.clone()).collect();
        Ok(fitting.into_iter().cloned().collect())
    })?;
    Ok(written)
}

/// Writes what is decided about memories as they are at that moment: `decide` gets those of `ids`
/// that are there, and nobody else writes to the log until its decisions stand there.
///
/// # Errors
/// As [`write()`], and what `decide` says. Then nothing was decided.
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

/// Opens the log, which only its owner may read where it is new.
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
        // Part of a line would be a damaged one.
        let _ = log.set_len(before);
    }
    result
}
