//! The decision log of a store, joined with its rows when they are read.
//!
//! The newest decision about a memory applies as long as the memory's content is the content that
//! was decided on (`digest`). If the content changed, the memory waits for review again. An
//! unreadable line that names a memory has the same effect: an unreadable decision never makes a
//! memory visible. Rejected content does not come back under another id (`contents`).

mod contents;

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use ack_api::decision::{Decision, Verdict, ids_of_damaged_line};
use ack_api::memory::{Status, Unreviewed};
use ack_api::text;
use ack_sys::files;
use jiff::civil::Date;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use self::contents::Contents;
pub use self::contents::Exclusion;
use crate::error::StoreError;
use crate::layout::{Field, MemorySource};
use crate::mutex::lock;
use crate::quick_state::{self, QuickState};

/// The largest log that is read.
const MAX_LOG_BYTES: u64 = 256 << 20;
/// How many damaged lines are reported.
const MAX_DAMAGED: usize = 100;

/// The fields that make up a memory's content, in the order in which they are hashed.
const CONTENT: [(Field, &str); 8] = [
    (Field::Project, "project"),
    (Field::Kind, "type"),
    (Field::Title, "title"),
    (Field::Subtitle, "subtitle"),
    (Field::Facts, "facts"),
    (Field::Concepts, "concepts"),
    (Field::Files, "files"),
    (Field::FilesMore, "files_more"),
];

/// Whether a column of a native store is part of the content that a decision is about.
pub fn is_content(column: &str) -> bool {
    column == "narrative" || CONTENT.iter().any(|(_, name)| *name == column)
}

/// A line of the log that is not a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedLine {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
    /// The memories that it names, as far as it can be read. They wait for review again.
    pub ids: Vec<String>,
}

/// The decisions of a log, by memory.
#[derive(Debug, Clone, Default)]
pub struct Decisions {
    by_id: HashMap<String, LoggedDecisions>,
    /// The memories that a newer one replaces, by the newer one.
    replaced: HashMap<String, Vec<String>>,
    /// The decisions about each content, for memories with another id.
    contents: Contents,
    damaged: Vec<DamagedLine>,
    /// A hash of the log; 0 without one.
    version: u64,
}

/// The log's entries for one memory.
#[derive(Debug, Clone, Default)]
struct LoggedDecisions {
    /// Every valid line, oldest first.
    lines: Vec<Decision>,
    /// The position of each in the log.
    numbers: Vec<usize>,
    /// Whether a damaged line about it follows the last valid one.
    is_unreadable: bool,
}

impl Decisions {
    /// Parses a whole log.
    pub fn parse(content: &[u8]) -> Self {
        let mut decisions = Self {
            version: xxh3_64(content).max(1),
            ..Self::default()
        };
        let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
        for (number, line) in (1..).zip(content.split(|byte| *byte == b'\n')) {
            let line = String::from_utf8_lossy(line);
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            match Decision::parse(line) {
                Ok(decision) => {
                    let decided = decisions.by_id.entry(text::id(&decision.id)).or_default();
                    decided.lines.push(decision);
                    decided.numbers.push(number);
                    decided.is_unreadable = false;
                }
                Err(error) => {
                    let ids = ids_of_damaged_line(line).into_iter();
                    let ids: Vec<String> = ids.map(|id| text::id(&id)).collect();
                    for id in &ids {
                        let decided = decisions.by_id.entry(id.clone()).or_default();
                        decided.is_unreadable = true;
                    }
                    if decisions.damaged.len() < MAX_DAMAGED {
                        decisions.damaged.push(DamagedLine {
                            line: number,
                            reason: text::line(&error.to_string(), 200),
                            ids,
                        });
                    }
                }
            }
        }
        decisions.sort_by_target();
        decisions
    }

    /// The same log with more decisions at its end.
    #[must_use]
    pub fn followed_by(&self, more: &[Decision]) -> Self {
        let mut decisions = self.clone();
        let numbers = self.by_id.values().flat_map(|decided| &decided.numbers);
        let next = numbers.max().map_or(1, |last| last + 1);
        for (number, decision) in (next..).zip(more) {
            let decided = decisions.by_id.entry(text::id(&decision.id)).or_default();
            decided.lines.push(decision.clone());
            decided.numbers.push(number);
            decided.is_unreadable = false;
        }
        decisions.sort_by_target();
        decisions
    }

    /// Sorts the decisions by the memories and by the contents that they are about.
    fn sort_by_target(&mut self) {
        self.replaced.clear();
        for (id, decided) in &self.by_id {
            if let Some(into) = decided.last().and_then(|last| last.into.as_deref()) {
                let replaced = self.replaced.entry(text::id(into)).or_default();
                replaced.push(id.clone());
            }
        }
        for replaced in self.replaced.values_mut() {
            replaced.sort();
        }
        self.contents = Contents::of(&self.by_id);
    }

    /// Whether nothing was decided.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The ids of all memories in the log, in order, including those with unreadable lines.
    pub fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.by_id.keys().map(String::as_str).collect();
        ids.sort_unstable();
        ids
    }

    /// Lines that are not decisions. At most a hundred are kept.
    pub fn damaged(&self) -> &[DamagedLine] {
        &self.damaged
    }

    /// Every decision about a memory, oldest first.
    pub fn about(&self, id: &str) -> &[Decision] {
        self.by_id.get(id).map_or(&[], |decided| &decided.lines)
    }

    /// The newest decision about each memory, in no particular order. A decision that a damaged
    /// line follows is left out.
    pub fn newest(&self) -> impl Iterator<Item = &Decision> {
        self.by_id.values().filter_map(LoggedDecisions::last)
    }

    /// The memories that this one replaces, by their newest decisions.
    pub fn replaced_by(&self, id: &str) -> &[String] {
        self.replaced.get(id).map_or(&[], Vec::as_slice)
    }

    /// The memory that this one was merged into, if that is the newest decision about it.
    pub fn merged_into(&self, id: &str) -> Option<String> {
        let last = self.by_id.get(id)?.last()?;
        let into = last.into.as_deref()?;
        (last.verdict == Verdict::Merge).then(|| text::id(into))
    }

    /// What keeps content from being served under an id: a decision about another memory that had
    /// this content.
    fn exclusion(&self, id: &str, digests: &Digests) -> Option<Exclusion<'_>> {
        let exclusion = |digest: &str| self.contents.exclusion(id, digest, &self.by_id);
        exclusion(&digests.whole).or_else(|| exclusion(digests.text.as_deref()?))
    }

    /// A number that changes whenever the log does.
    pub const fn version(&self) -> u64 {
        self.version
    }
}

impl LoggedDecisions {
    fn last(&self) -> Option<&Decision> {
        self.lines.last().filter(|_| !self.is_unreadable)
    }
}

/// What determines the status of a store's rows.
#[derive(Debug, Clone, Copy)]
pub struct StatusRule<'a> {
    /// The status of rows without one.
    pub unreviewed: Unreviewed,
    /// What people decided.
    pub decisions: &'a Decisions,
    /// Whether the rows are notes. A note's id comes from its file, so a decision that hides a note
    /// also applies to the same content under any other id.
    pub are_notes: bool,
}

/// A row's status with the decision about it.
#[derive(Debug, Clone, Copy)]
pub struct JoinedStatus<'a> {
    /// The effective status.
    pub status: Status,
    /// The newest decision about this content. Its other effects apply too.
    pub decision: Option<&'a Decision>,
    /// Whether there is a decision that does not apply: it is about other content, or cannot be
    /// read.
    pub is_outdated: bool,
    /// The decision about another memory with this content, if it determines the status.
    pub exclusion: Option<Exclusion<'a>>,
}

impl JoinedStatus<'_> {
    /// The day until which the row is out of the review queue.
    pub fn put_off_until(&self) -> Option<Date> {
        self.decision.and_then(Decision::put_off_until)
    }

    /// A row without a decision.
    pub const fn undecided(stored: Status) -> Self {
        Self {
            status: stored,
            decision: None,
            is_outdated: false,
            exclusion: None,
        }
    }
}

impl<'a> StatusRule<'a> {
    /// The select list of a source with the columns that determine a row's status, and `fields`.
    /// With decisions, this takes the whole content.
    pub fn select_list(&self, source: &MemorySource, fields: &[Field]) -> String {
        if self.decisions.is_empty() {
            source.select_only(fields)
        } else {
            source.select_list()
        }
    }

    /// Joins a row's own status with the newest decision about it, or else about its content.
    /// `digests` is called only if there may be one.
    ///
    /// # Errors
    /// The error of `digests`.
    pub fn join(
        &self,
        id: &str,
        stored: Status,
        digests: impl FnOnce() -> rusqlite::Result<Digests>,
    ) -> rusqlite::Result<JoinedStatus<'a>> {
        let decided = self.decisions.by_id.get(id);
        let follows_contents = self.are_notes && !self.decisions.contents.is_empty();
        if decided.is_none() && !follows_contents {
            return Ok(JoinedStatus::undecided(stored));
        }
        let digests = digests()?;
        let own = decided.map(|decided| Self::join_own(decided, stored, &digests));
        let own = own.unwrap_or_else(|| JoinedStatus::undecided(stored));
        if own.decision.is_some() || own.status == Status::Rejected || !follows_contents {
            return Ok(own);
        }
        let Some(exclusion) = self.decisions.exclusion(id, &digests) else {
            return Ok(own);
        };
        Ok(JoinedStatus {
            status: match exclusion.is_rejection() {
                true => Status::Rejected,
                false => Status::Staging,
            },
            is_outdated: true,
            exclusion: Some(exclusion),
            ..own
        })
    }

    fn join_own(
        decided: &'a LoggedDecisions,
        stored: Status,
        digests: &Digests,
    ) -> JoinedStatus<'a> {
        let outdated = JoinedStatus {
            status: match stored {
                Status::Rejected => Status::Rejected,
                _ => Status::Staging,
            },
            is_outdated: true,
            ..JoinedStatus::undecided(stored)
        };
        let Some(last) = decided.last() else {
            return outdated;
        };
        if last.verdict == Verdict::Withdraw {
            return JoinedStatus::undecided(stored);
        }
        if last.digest != digests.whole {
            return outdated;
        }
        let status = match last.verdict {
            // The store rejected it after the decision.
            _ if stored == Status::Rejected && last.was != Status::Rejected => Status::Rejected,
            Verdict::Edit if last.was == Status::Promoted => Status::Promoted,
            Verdict::Approve | Verdict::Edit => Status::Approved,
            Verdict::Promote => Status::Promoted,
            Verdict::Reject => Status::Rejected,
            Verdict::Stage => Status::Staging,
            // It stays visible as long as its successor is missing. A memory that was never
            // approved does not become visible by being replaced.
            Verdict::Supersede | Verdict::Merge => match last.was {
                Status::Approved | Status::Promoted => last.was,
                Status::Staging | Status::Rejected => Status::Rejected,
            },
            Verdict::Withdraw => stored,
        };
        JoinedStatus {
            status,
            decision: Some(last),
            ..JoinedStatus::undecided(stored)
        }
    }
}

/// What identifies content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digests {
    /// The digest of all of it.
    pub whole: String,
    /// The digest without the title, if that comes from the name of a file.
    pub text: Option<String>,
}

/// The digests of a row's content: SHA-256 over each field with a value (name, type, length and
/// bytes as stored), with the columns of the narrative last. The status, its history and the times
/// are not part of the content. The row must come from [`MemorySource::select_list`].
///
/// # Errors
/// The error from SQLite.
pub fn digests(row: &Row<'_>, source: &MemorySource) -> rusqlite::Result<Digests> {
    let title_from_file = row.get_ref(Field::TitleFromFile.position())?;
    Ok(Digests {
        whole: digest(row, source, true)?,
        text: match title_from_file {
            ValueRef::Integer(1) => Some(digest(row, source, false)?),
            _ => None,
        },
    })
}

fn digest(row: &Row<'_>, source: &MemorySource, with_title: bool) -> rusqlite::Result<String> {
    let mut hash = Sha256::new();
    let mut add = |name: &str, value: ValueRef<'_>| {
        let (tag, bytes): (u8, &[u8]) = match &value {
            ValueRef::Null => return,
            ValueRef::Integer(number) => (1, &number.to_be_bytes()),
            ValueRef::Real(number) => (2, &number.to_be_bytes()),
            ValueRef::Text(text) => (3, text),
            ValueRef::Blob(blob) => (4, blob),
        };
        hash.update(name.as_bytes());
        hash.update([0, tag]);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    for (field, name) in CONTENT {
        let is_content = with_title || field != Field::Title;
        if is_content && source.column(field).is_some() {
            add(name, row.get_ref(field.position())?);
        }
    }
    for (offset, (_, column)) in source.narrative.iter().enumerate() {
        let value = row.get_ref(2 + Field::ALL.len() + offset)?;
        add(column.trim_matches('"'), value);
    }
    let mut digest = String::from("sha256:");
    for byte in hash.finalize() {
        digest.push_str(&format!("{byte:02x}"));
    }
    Ok(digest)
}

/// Whether a file holds something other than a log: no line of it begins like one, so every
/// rejection in it is lost.
fn is_not_a_log(content: &[u8]) -> bool {
    let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
    let mut lines = content
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
        .peekable();
    let begins_an_object = |line: &[u8]| {
        let rest = line.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'"' | b'}')))
    };
    lines.peek().is_some() && !lines.any(begins_an_object)
}

/// A log on disk. It is read again whenever it may have changed.
#[derive(Debug)]
pub struct DecisionLog {
    path: PathBuf,
    loaded: Mutex<Option<LoadedLog>>,
}

/// A log that was read, and the metadata that shows that it has not changed.
#[derive(Debug)]
struct LoadedLog {
    state: Option<QuickState>,
    decisions: Arc<Decisions>,
}

impl DecisionLog {
    /// A log at `path`, which may be missing.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            loaded: Mutex::default(),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The current decisions; none if there is no file.
    ///
    /// # Errors
    /// The file exists but cannot be read. Then no status of the store is certain.
    pub fn read(&self) -> Result<Arc<Decisions>, StoreError> {
        let mut known = lock(&self.loaded);
        let before = match fs::metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                *known = None;
                return Ok(Arc::default());
            }
            metadata => metadata.ok().as_ref().and_then(QuickState::of),
        };
        if let Some(known) = known.as_ref()
            && known.state.is_some()
            && known.state == before
        {
            return Ok(Arc::clone(&known.decisions));
        }
        let settled = before.filter(|state| {
            state.is_settled(SystemTime::now()) && quick_state::is_local(&self.path)
        });
        let content =
            files::read(&self.path, MAX_LOG_BYTES).map_err(|source| self.error(source))?;
        // Equal content need not be parsed again.
        let version = xxh3_64(&content).max(1);
        let decisions = match known
            .take()
            .filter(|known| known.decisions.version == version)
        {
            Some(known) => known.decisions,
            None if is_not_a_log(&content) => {
                let reason = "it holds no line of a decision log, for instance because Git LFS or \
                              another encoding replaced its content";
                return Err(self.error(io::Error::new(ErrorKind::InvalidData, reason)));
            }
            None => Arc::new(Decisions::parse(&content)),
        };
        *known = Some(LoadedLog {
            state: settled,
            decisions: Arc::clone(&decisions),
        });
        Ok(decisions)
    }

    fn error(&self, source: io::Error) -> StoreError {
        StoreError::Decisions {
            path: self.path.clone(),
            source,
        }
    }
}
