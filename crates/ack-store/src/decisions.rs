//! The decision log of a store, joined with its rows when they are read.
//!
//! The newest decision about a memory applies as long as the memory's content is what was decided
//! on (`digest`). If it changed, or if an unreadable line names the memory, it waits for review
//! again. Rejected content does not come back under another id (`contents`), and a log that may
//! have lost a rejection is not served at all ([`seal`]).

mod contents;
mod log_file;
pub mod seal;
pub mod signers;

use std::collections::{HashMap, HashSet};

use ack_api::decision::{Decision, InvalidDecision, Verdict, ids_of_damaged_line};
use ack_api::memory::{Status, Unreviewed};
use ack_api::number::{count, verb};
use ack_api::text;
use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use rustc_hash::FxHashSet;
use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use self::contents::Contents;
pub use self::contents::Exclusion;
pub use self::log_file::{DecisionLog, MAX_LOG_BYTES, SignersFile};
use self::seal::Seal;
use self::signers::{Signers, signature_line};
use crate::flags::Flags;
use crate::layout::{Field, MemorySource};

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedLine {
    /// Its number, from 1.
    pub line: usize,
    pub reason: String,
    /// The memories that it names, as far as it can be read.
    pub ids: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Decisions {
    by_id: HashMap<String, LoggedDecisions>,
    /// The memories that a newer one replaces, by the newer one.
    replaced: HashMap<String, Vec<String>>,
    contents: Contents,
    /// Lines that are not decisions. At most a hundred are kept.
    pub damaged: Vec<DamagedLine>,
    foreign: HashSet<usize>,
    /// How many lack the signature of a listed signer; `None` if none is required.
    unsigned: Option<usize>,
    pub signer_problems: Vec<String>,
    /// A hash of the log; 0 without one.
    pub(crate) version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogProblem {
    #[error("{}", lines_are_gone(*.0))]
    Lost(usize),
    /// The file is missing, and there is a seal.
    #[error("it is gone")]
    Gone,
    #[error("line {0} cannot be read and does not say which memory it is about")]
    Nameless(usize),
    /// It cannot be told whether it lost lines.
    #[error("its seal `decisions.seal` is damaged")]
    Seal,
}

fn lines_are_gone(lines: usize) -> String {
    let lines = lines as u64;
    let is = verb(lines, "is", "are");
    format!("{} that it had when it was last written {is} gone", count(lines, "line"))
}

#[derive(Debug, Clone, Default)]
struct LoggedDecisions {
    /// Every valid line, oldest first.
    lines: Vec<Decision>,
    /// The position of each in the log.
    numbers: Vec<usize>,
    /// Whether a damaged line about it follows the last valid one.
    is_unreadable: bool,
    /// Whether nobody signed it, although signatures are required.
    is_unsigned: bool,
}

impl Decisions {
    /// `seal` is what the log had when it was last written. Only what `signers` signed counts.
    pub fn read(
        content: &[u8],
        seal: Option<&Seal>,
        signers: Option<&Signers>,
    ) -> Result<Self, LogProblem> {
        let signed = signers.map(|signers| (signers, signers.signed_lines(content)));
        let mut decisions = Self {
            version: version_of(content, signers),
            unsigned: signers.map(|_| 0),
            signer_problems: signers.map_or_else(Vec::new, |it| it.problems.clone()),
            ..Self::default()
        };
        let mut unsigned = HashMap::new();
        let mut walk = seal.map(Seal::walk);
        let mut nameless = None;
        for (number, line) in lines_of(content) {
            let is_own = walk.as_mut().map(|walk| walk.is_own(line));
            if is_own == Some(false) {
                decisions.foreign.insert(number);
            }
            if signature_line(line).is_some() {
                continue;
            }
            let is_named = match Decision::parse(&String::from_utf8_lossy(line)) {
                Ok(decision) => {
                    let is_signed = signed
                        .as_ref()
                        .is_none_or(|(signers, lines)| signers.cover(lines, line, &decision));
                    if is_signed {
                        decisions.add(number, decision);
                    } else {
                        unsigned.insert(text::id(&decision.id), (number, decision));
                    }
                    decisions.unsigned = decisions.unsigned.map(|it| it + usize::from(!is_signed));
                    true
                }
                Err(error) => decisions.add_damaged(number, line, &error),
            };
            // A person accepted it if it is in the seal.
            if !is_named && is_own != Some(true) {
                nameless = nameless.or(Some(number));
            }
        }
        match (walk.map_or(0, |walk| walk.lost()), nameless) {
            (0, None) => {}
            (0, Some(number)) => return Err(LogProblem::Nameless(number)),
            (lost, _) => return Err(LogProblem::Lost(lost)),
        }
        if signed.is_some() {
            decisions.order_by_time();
            decisions.keep_rejected(unsigned);
        }
        decisions.sort_by_target();
        Ok(decisions)
    }

    fn add(&mut self, number: usize, decision: Decision) {
        let decided = self.by_id.entry(text::id(&decision.id)).or_default();
        decided.lines.push(decision);
        decided.numbers.push(number);
        decided.is_unreadable = false;
    }

    /// Puts signed decisions in the order in which they were made, whatever their order in the
    /// file, which nobody signed. Batches of one second are ordered by their names.
    fn order_by_time(&mut self) {
        for decided in self.by_id.values_mut() {
            let lines = std::mem::take(&mut decided.lines).into_iter();
            let mut lines: Vec<_> = lines.zip(std::mem::take(&mut decided.numbers)).collect();
            lines.sort_by_cached_key(|(line, _)| {
                (line.time.parse::<Timestamp>().ok(), line.batch.clone())
            });
            (decided.lines, decided.numbers) = lines.into_iter().unzip();
        }
    }

    /// Keeps unsigned rejections out of the review queue. Agents see none of these memories anyway.
    fn keep_rejected(&mut self, unsigned: HashMap<String, (usize, Decision)>) {
        for (id, (number, decision)) in unsigned {
            if !self.by_id.contains_key(&id) && decision.verdict == Verdict::Reject {
                self.add(number, decision);
                self.by_id.entry(id).or_default().is_unsigned = true;
            }
        }
    }

    /// Adds a line that is not a decision. Returns whether it is known which memories it was about.
    fn add_damaged(&mut self, number: usize, line: &[u8], error: &InvalidDecision) -> bool {
        let line = String::from_utf8_lossy(line);
        let ids = ids_of_damaged_line(&line);
        let ids: Vec<String> = ids.iter().map(|id| text::id(id)).collect();
        for id in &ids {
            self.by_id.entry(id.clone()).or_default().is_unreadable = true;
        }
        // A block of zeros may have swallowed whole lines.
        let is_named = !ids.is_empty() && !line.contains('\0');
        if self.damaged.len() < MAX_DAMAGED {
            self.damaged.push(DamagedLine {
                line: number,
                reason: text::line(&error.to_string(), 200),
                ids,
            });
        }
        is_named
    }

    #[must_use]
    pub fn followed_by(&self, more: &[Decision]) -> Self {
        let mut decisions = self.clone();
        let numbers = self.by_id.values().flat_map(|decided| &decided.numbers);
        let next = numbers.max().map_or(1, |last| last + 1);
        for (number, decision) in (next..).zip(more) {
            decisions.add(number, decision.clone());
        }
        decisions.sort_by_target();
        decisions
    }

    /// The time of the newest decision about a memory, unless it lacks a required signature: an
    /// unsigned line may say any time.
    pub fn newest_signed_time(&self, id: &str) -> Option<Timestamp> {
        let decided = self.by_id.get(id).filter(|decided| !decided.is_unsigned)?;
        decided.lines.last()?.time.parse().ok()
    }

    fn sort_by_target(&mut self) {
        self.replaced.clear();
        for (id, decided) in &self.by_id {
            if let Some(into) = decided.last().and_then(|last| last.into.as_deref()) {
                self.replaced.entry(text::id(into)).or_default().push(id.clone());
            }
        }
        for replaced in self.replaced.values_mut() {
            replaced.sort();
        }
        self.contents = Contents::of(&self.by_id);
    }

    /// Whether the store's statuses count: nothing was decided, and nothing has to be.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty() && self.unsigned.is_none()
    }

    /// How many decisions do not count, because nobody who may decide signed them.
    pub fn unsigned(&self) -> usize {
        self.unsigned.unwrap_or_default()
    }

    /// The ids of all memories in the log, in order, including those with unreadable lines.
    pub fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.by_id.keys().map(String::as_str).collect();
        ids.sort_unstable();
        ids
    }

    pub fn about(&self, id: &str) -> &[Decision] {
        self.by_id.get(id).map_or(&[], |decided| &decided.lines)
    }

    /// The memories that wait for review because of a damaged line: no valid one follows it.
    pub fn held_by<'a>(&self, damaged: &'a DamagedLine) -> Vec<&'a str> {
        let is_held = |id: &&str| self.by_id.get(*id).is_some_and(|it| it.is_unreadable);
        damaged.ids.iter().map(String::as_str).filter(is_held).collect()
    }

    /// In no particular order. A decision that a damaged line follows is left out.
    pub fn newest(&self) -> impl Iterator<Item = &Decision> {
        self.by_id.values().filter_map(LoggedDecisions::last)
    }

    pub fn approves(&self, id: &str) -> bool {
        let last = self.by_id.get(id).and_then(LoggedDecisions::last);
        last.and_then(Decision::status).is_some_and(Status::is_served)
    }

    pub fn replaced_by(&self, id: &str) -> &[String] {
        self.replaced.get(id).map_or(&[], Vec::as_slice)
    }

    /// How many lines another program wrote, as far as the seal tells.
    pub fn foreign(&self) -> usize {
        self.foreign.len()
    }

    /// `position` is that of the line in [`Decisions::about`].
    pub fn is_foreign(&self, id: &str, position: usize) -> bool {
        let number = self.by_id.get(id).and_then(|decided| decided.numbers.get(position));
        number.is_some_and(|number| self.foreign.contains(number))
    }
}

impl LoggedDecisions {
    fn last(&self) -> Option<&Decision> {
        self.lines.last().filter(|_| !self.is_unreadable)
    }
}

/// The lines of a log that another program wrote, as far as the seal tells.
pub fn foreign_lines(content: &[u8], seal: Option<&Seal>) -> Vec<String> {
    let Some(mut walk) = seal.map(Seal::walk) else { return Vec::new() };
    let foreign = lines_of(content).filter(|(_, line)| !walk.is_own(line));
    foreign.map(|(_, line)| String::from_utf8_lossy(line).into_owned()).collect()
}

#[derive(Debug, Clone, Copy)]
pub struct StatusRule<'a> {
    pub unreviewed: Unreviewed,
    pub decisions: &'a Decisions,
    /// Whether the rows are notes. A note's id comes from its file, so a decision that hides a note
    /// also applies to the same content under any other id.
    pub are_notes: bool,
    /// What holds rows back from approval by default. `None` if they are read again before they are
    /// shown.
    pub flags: Option<&'a Flags>,
    pub against_approved: &'a FxHashSet<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct JoinedStatus<'a> {
    pub status: Status,
    /// The newest decision about this content. Its other effects apply too.
    pub decision: Option<&'a Decision>,
    /// Whether a decision does not apply: it is about other content, or cannot be read.
    pub is_outdated: bool,
    /// The decision about another memory with this content, if it determines the status.
    pub exclusion: Option<Exclusion<'a>>,
}

impl JoinedStatus<'_> {
    pub fn put_off_until(&self) -> Option<Date> {
        self.decision.and_then(Decision::put_off_until)
    }

    pub const fn undecided(stored: Status) -> Self {
        Self { status: stored, decision: None, is_outdated: false, exclusion: None }
    }
}

impl<'a> StatusRule<'a> {
    /// Joins a row's own status with the newest decision about it, or else about its content.
    /// `digests` is called only if there may be one.
    pub fn join(
        &self,
        id: &str,
        stored: Status,
        digests: impl FnOnce() -> rusqlite::Result<Digests>,
    ) -> rusqlite::Result<JoinedStatus<'a>> {
        let stored = match self.decisions.unsigned {
            // If decisions are to be signed, only they approve.
            Some(_) if stored.is_served() => Status::Staging,
            _ => stored,
        };
        let decided = self.decisions.by_id.get(id);
        let contents = &self.decisions.contents;
        let follows_contents = self.are_notes && !contents.is_empty();
        if decided.is_none() && !follows_contents {
            return Ok(JoinedStatus::undecided(stored));
        }
        let digests = digests()?;
        let own = decided.map(|decided| Self::join_own(decided, stored, &digests));
        let own = own.unwrap_or_else(|| JoinedStatus::undecided(stored));
        if own.decision.is_some() || own.status == Status::Rejected || !follows_contents {
            return Ok(own);
        }
        let exclusion = contents.exclusion(id, &digests.whole);
        let of_text = || contents.exclusion(id, digests.text.as_deref()?);
        let Some(exclusion) = exclusion.or_else(of_text) else { return Ok(own) };
        Ok(JoinedStatus {
            status: if exclusion.is_rejection { Status::Rejected } else { Status::Staging },
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
        let Some(last) = decided.last() else { return outdated };
        if last.verdict == Verdict::Withdraw {
            return JoinedStatus::undecided(stored);
        }
        if last.digest != digests.whole {
            return outdated;
        }
        let status = match (last.status(), last.was) {
            // The store rejected it after the decision.
            (_, was) if stored == Status::Rejected && was != Status::Rejected => Status::Rejected,
            (Some(status), _) => status,
            // Another memory took its place. It stays visible as long as that one is missing. A
            // memory that was never approved does not become visible by being replaced.
            (None, Status::Approved | Status::Promoted) => last.was,
            (None, Status::Staging | Status::Rejected) => Status::Rejected,
        };
        JoinedStatus { status, decision: Some(last), ..JoinedStatus::undecided(stored) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digests {
    pub whole: String,
    /// The digest without the title, if that comes from the name of a file.
    pub text: Option<String>,
}

/// The digests of a row's content: SHA-256 over each field with a value (name, type, length and
/// bytes as stored), with the columns of the narrative last. The status, its history and the times
/// are not part of the content. The row must come from `MemoryTable::query`.
pub fn digests(row: &Row<'_>, source: &MemorySource) -> rusqlite::Result<Digests> {
    let is_from_file = row.get_ref(Field::TitleFromFile.position())? == ValueRef::Integer(1);
    Ok(Digests {
        whole: digest(row, source, true)?,
        text: is_from_file.then(|| digest(row, source, false)).transpose()?,
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
        add(column.trim_matches('"'), row.get_ref(2 + Field::ALL.len() + offset)?);
    }
    Ok(format!("sha256:{}", signers::hex(&hash.finalize())))
}

/// The lines that are not blank, trimmed, with their numbers from 1.
fn lines_of(content: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
    let lines = (1..).zip(content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii));
    lines.filter(|(_, line)| !line.is_empty())
}

fn version_of(content: &[u8], signers: Option<&Signers>) -> u64 {
    let signers = signers.map_or(0, |signers| signers.version);
    (xxh3_64(content) ^ signers.rotate_left(1)).max(1)
}
