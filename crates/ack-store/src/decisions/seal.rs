//! The seal of a decision log: a hash of each line that was in the log when it was last written.
//!
//! Nothing in a log tells whether it lost a line, which may be a rejection. So a log in which a
//! line of `decisions.seal` is missing serves nothing. Order does not matter, and more lines may
//! follow, so that two logs, and two seals, can be merged line by line. The hash finds accidents,
//! not forgeries: whoever can write one file can write both.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ack_sys::files;
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_64;

use super::lines_of;

const MAX_SEAL_BYTES: u64 = 64 << 20;
const HASH_DIGITS: usize = 16;
const HEAD: &str = "# the lines of decisions.jsonl that must not be lost; written by ack-memory";
/// What follows a hash.
const MARKS: [(LineOrigin, &str); 3] =
    [(LineOrigin::Own, ""), (LineOrigin::Foreign, " ?"), (LineOrigin::Pending, " +")];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seal {
    lines: Vec<SealedLine>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SealedLine {
    hash: u64,
    origin: LineOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineOrigin {
    Own,
    Foreign,
    /// This program is about to write it. If it is killed, the line may be missing.
    Pending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedSeal;

pub fn seal_path(log: &Path) -> PathBuf {
    log.with_extension("seal")
}

impl Seal {
    pub fn load(path: &Path) -> std::io::Result<Option<Self>> {
        let text = Self::text(path)?;
        let seal = text.map(|text| Self::parse(&text)).transpose();
        seal.map_err(|DamagedSeal| ErrorKind::InvalidData.into())
    }

    pub(super) fn text(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
        match files::read(path, MAX_SEAL_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            text => text.map(Some),
        }
    }

    pub fn parse(text: &[u8]) -> Result<Self, DamagedSeal> {
        let mut lines = str::from_utf8(text).map_err(|_| DamagedSeal)?.lines().map(str::trim_end);
        if lines.next() != Some(HEAD) {
            return Err(DamagedSeal);
        }
        // Two seals that were merged have two heads.
        let lines = lines.filter(|line| !line.is_empty() && *line != HEAD);
        let lines = lines.map(|line| {
            let (hash, mark) = line.split_at_checked(HASH_DIGITS).ok_or(DamagedSeal)?;
            // `from_str_radix` takes a sign too.
            let is_hex = hash.bytes().all(|digit| digit.is_ascii_hexdigit());
            let hash = u64::from_str_radix(hash, 16).ok().filter(|_| is_hex);
            let (origin, _) = *MARKS.iter().find(|(_, it)| *it == mark).ok_or(DamagedSeal)?;
            Ok(SealedLine { hash: hash.ok_or(DamagedSeal)?, origin })
        });
        Ok(Self { lines: lines.collect::<Result<_, _>>()? })
    }

    /// The seal of a log with more lines at its end. Lines that an earlier seal does not know are
    /// another program's; without one, nobody knows.
    #[must_use]
    pub fn of(log: &[u8], before: Option<&Self>, more: &[u8], origin: LineOrigin) -> Self {
        let mut walk = before.map(Self::walk);
        let there = lines_of(log).map(|(_, line)| {
            let is_foreign = walk.as_mut().is_some_and(|walk| !walk.is_own(line));
            let origin = if is_foreign { LineOrigin::Foreign } else { LineOrigin::Own };
            SealedLine { hash: xxh3_64(line), origin }
        });
        let new = lines_of(more).map(|(_, line)| SealedLine { hash: xxh3_64(line), origin });
        Self { lines: there.chain(new).collect() }
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for line in &self.lines {
            let mark = MARKS.iter().find(|(origin, _)| *origin == line.origin);
            let mark = mark.map_or("", |(_, mark)| mark);
            text.push_str(&format!("{:016x}{mark}\n", line.hash));
        }
        text
    }

    /// Whether it fits a log without lines.
    pub(super) fn fits_nothing(&self) -> bool {
        self.lines.iter().all(|line| line.origin == LineOrigin::Pending)
    }

    pub(super) fn walk(&self) -> SealWalk {
        let lines = self.lines.iter();
        let own = lines.clone().filter(|line| line.origin != LineOrigin::Foreign);
        let expected = lines.filter(|line| line.origin != LineOrigin::Pending);
        SealWalk {
            own: own.map(|line| line.hash).collect(),
            missing: expected.map(|line| line.hash).collect(),
        }
    }
}

/// A comparison of a seal with a log, whose lines come one by one.
pub(super) struct SealWalk {
    own: FxHashSet<u64>,
    /// The hashes of the lines that the log must have and that did not come yet.
    missing: FxHashSet<u64>,
}

impl SealWalk {
    /// Takes the next line of the log. Returns whether this program wrote it.
    pub(super) fn is_own(&mut self, line: &[u8]) -> bool {
        let hash = xxh3_64(line);
        self.missing.remove(&hash);
        self.own.contains(&hash)
    }

    pub(super) fn lost(&self) -> usize {
        self.missing.len()
    }
}
