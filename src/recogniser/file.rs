//! Recognises files: a database by its tables, JSON lines by their members, instructions by their
//! name.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use ack_api::memory::Unreviewed;
use ack_store::folder::instructions::INSTRUCTIONS;
use ack_store::layout::Profile;
use ack_store::{Store, StoreError, StoreProblem};
use ack_sys::files;
use serde_json::Value;

use super::tally::{head, is_named};
use super::{FoundStore, StoreKind};

/// How long to wait for a database that changes all the time.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// Larger databases are not opened, because a private copy could fill the disk.
const MAX_DATABASE_BYTES: u64 = 4 << 30;
/// Larger files of JSON lines are not counted.
const MAX_LINES_BYTES: u64 = 64 << 20;
/// What a file is.
pub fn recognise(path: &Path) -> Option<FoundStore> {
    files::check(path).ok()?;
    let start = head(path);
    if start.starts_with("SQLite format 3\0") {
        return database(path);
    }
    if INSTRUCTIONS.iter().any(|name| is_named(path, name)) {
        return Some(FoundStore::uncounted(StoreKind::Instructions, path));
    }
    json_lines(path, &start)
}

/// Recognises a database; `None` if its tables belong to another program.
pub fn database(path: &Path) -> Option<FoundStore> {
    open_store(path).ok()
}

/// A database in a program's usual place. If it cannot be read, it is listed with the reason.
pub fn usual_database(kind: StoreKind, path: &Path) -> Option<FoundStore> {
    // If it is missing or not a file, there is no store.
    files::check(path).ok()?;
    let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if length > MAX_DATABASE_BYTES {
        let problem = format!("larger than {} GB", MAX_DATABASE_BYTES >> 30);
        return Some(FoundStore::with_count(kind, path, Err(problem)));
    }
    match open_store(path) {
        Ok(found) => Some(found),
        Err(error) if matches!(error.problem, StoreProblem::Foreign(_)) => None,
        Err(error) => Some(FoundStore::with_count(kind, path, Err(reason(&error)))),
    }
}

/// The reason without the path, which is shown next to it.
fn reason(error: &StoreError) -> String {
    let path = format!("`{}`", error.path.display());
    let text = error.to_string();
    match text.strip_prefix(&format!("{path} ")) {
        Some(rest) => format!("it {rest}"),
        None => text.replace(&path, "it"),
    }
}

fn open_store(path: &Path) -> Result<FoundStore, StoreError> {
    let store = Store::new(path.to_owned(), Unreviewed::Staging);
    let read = store.snapshot_with_timeout(READ_TIMEOUT, |snapshot| {
        let layout = &snapshot.layout;
        Ok((layout.profile, layout.has_status(), snapshot.counts()?))
    });
    store.close();
    let (profile, has_status, counts) = read?;
    let approved = counts.approved + counts.promoted;
    let memories = approved + counts.staging + counts.rejected + counts.unknown;
    let kind = match profile {
        Profile::Ack => StoreKind::AckMemory,
        Profile::ClaudeMem | Profile::ClaudeMemV3 => StoreKind::ClaudeMem,
        Profile::McpMemoryService => StoreKind::McpMemoryService,
        Profile::AutoMemory => StoreKind::AutoMemory,
        Profile::Codex => StoreKind::Codex,
        Profile::Markdown => StoreKind::KnowledgeFormat,
        Profile::ServerMemory => StoreKind::ServerMemory,
    };
    Ok(FoundStore {
        approved: has_status.then_some(approved),
        ..FoundStore::with_count(kind, path, Ok(memories))
    })
}

/// Recognises JSON lines by the members of the first line.
fn json_lines(path: &Path, start: &str) -> Option<FoundStore> {
    let first = start.lines().find(|line| !line.trim().is_empty())?;
    // A long first line is cut off, so only look at its beginning.
    let is = |member: &str| first.contains(&format!("\"{member}\""));
    if !first.trim_start().starts_with('{') {
        return None;
    }
    let graph = is("type") && (is("entityType") || is("relationType"));
    if graph {
        return Some(FoundStore::with_count(
            StoreKind::ServerMemory,
            path,
            entities(path),
        ));
    }
    is("title").then(|| FoundStore::with_count(StoreKind::ImportLines, path, lines(path, |_| true)))
}

/// Counts the entities of a graph. Lines with the same name are one memory.
fn entities(path: &Path) -> Result<u64, String> {
    let mut names = HashSet::new();
    lines(path, |line| {
        let value = serde_json::from_str::<Value>(line).unwrap_or_default();
        let member = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = member("name");
        member("type") == "entity" && !name.trim().is_empty() && names.insert(name.to_owned())
    })
}

/// Counts the non-empty lines that `counts` accepts.
fn lines(path: &Path, mut counts: impl FnMut(&str) -> bool) -> Result<u64, String> {
    let file = files::open(path).map_err(|error| error.to_string())?;
    if file
        .metadata()
        .is_ok_and(|file| file.len() > MAX_LINES_BYTES)
    {
        return Err(format!("larger than {} MB", MAX_LINES_BYTES >> 20));
    }
    let mut input = BufReader::new(file.take(MAX_LINES_BYTES));
    let (mut counted, mut line) = (0, Vec::new());
    loop {
        line.clear();
        match input.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(counted),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
        let text = String::from_utf8_lossy(&line);
        counted += u64::from(!text.trim().is_empty() && counts(text.trim()));
    }
}
