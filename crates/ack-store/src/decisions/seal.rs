//! The seal of a decision log: a hash of each line that was in the log when it was last written.
//!
//! A log that lost a line may have lost a rejection, and nothing in the log tells. So
//! `decisions.seal` lies beside it, and a log in which a sealed line is missing serves nothing. The
//! order does not matter, and a log may have more lines, so that two logs can be merged line by
//! line; so can two seals. The hash finds accidents, not forgeries: whoever can write one file can
//! write both.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ack_sys::files;
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_64;

use super::lines_of;

const MAX_SEAL_BYTES: u64 = 64 << 20;
/// The length of a hash in hexadecimal.
const HASH_DIGITS: usize = 16;
/// The first line of the file.
const HEAD: &str = "# the lines of decisions.jsonl that must not be lost; written by ack-memory";
/// What marks a line that another program wrote.
const FOREIGN: &str = " ?";
/// What marks a line that may not be in the log yet.
const PENDING: &str = " +";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seal {
    lines: Vec<SealedLine>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SealedLine {
    hash: u64,
    origin: LineOrigin,
}

/// How a line came into the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineOrigin {
    /// This program wrote it.
    Own,
    /// Another program wrote it.
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
    /// Reads a seal; `None` if there is none.
    pub fn load(path: &Path) -> std::io::Result<Option<Self>> {
        let text = Self::text(path)?;
        let seal = text.map(|text| Self::parse(&text)).transpose();
        seal.map_err(|DamagedSeal| ErrorKind::InvalidData.into())
    }

    /// The text of a seal; `None` if there is none.
    pub(super) fn text(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
        match files::read(path, MAX_SEAL_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            text => text.map(Some),
        }
    }

    /// Parses a seal.
    pub fn parse(text: &[u8]) -> Result<Self, DamagedSeal> {
        let text = str::from_utf8(text).map_err(|_| DamagedSeal)?;
        let mut lines = text.lines().map(str::trim_end);
        if lines.next() != Some(HEAD) {
            return Err(DamagedSeal);
        }
        // Two seals that were merged have two heads.
        let lines = lines.filter(|line| !line.is_empty() && *line != HEAD);
        let lines = lines.map(|line| {
            let (hash, mark) = line.split_at_checked(HASH_DIGITS).ok_or(DamagedSeal)?;
            let is_hex = hash.bytes().all(|digit| digit.is_ascii_hexdigit());
            let hash = u64::from_str_radix(hash, 16).ok().filter(|_| is_hex);
            Ok(SealedLine {
                hash: hash.ok_or(DamagedSeal)?,
                origin: match mark {
                    "" => LineOrigin::Own,
                    FOREIGN => LineOrigin::Foreign,
                    PENDING => LineOrigin::Pending,
                    _ => return Err(DamagedSeal),
                },
            })
        });
        Ok(Self {
            lines: lines.collect::<Result<_, _>>()?,
        })
    }

    /// The seal of a log that gets more lines of this program at its end. Lines that an earlier
    /// seal does not know are another program's; without an earlier seal, nobody knows.
    #[must_use]
    pub fn of(log: &[u8], before: Option<&Self>, more: &[u8], origin: LineOrigin) -> Self {
        let mut walk = before.map(Self::walk);
        let there = lines_of(log).map(|(_, line)| {
            let hash = line_hash(line);
            let is_foreign = walk.as_mut().is_some_and(|walk| !walk.is_own(hash));
            let origin = if is_foreign {
                LineOrigin::Foreign
            } else {
                LineOrigin::Own
            };
            SealedLine { hash, origin }
        });
        let new = lines_of(more).map(|(_, line)| SealedLine {
            hash: line_hash(line),
            origin,
        });
        Self {
            lines: there.chain(new).collect(),
        }
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for line in &self.lines {
            let mark = match line.origin {
                LineOrigin::Own => "",
                LineOrigin::Foreign => FOREIGN,
                LineOrigin::Pending => PENDING,
            };
            text.push_str(&format!("{:016x}{mark}\n", line.hash));
        }
        text
    }

    /// Whether it fits a log without lines.
    pub(super) fn fits_nothing(&self) -> bool {
        let mut lines = self.lines.iter();
        lines.all(|line| line.origin == LineOrigin::Pending)
    }

    /// Compares the seal with the lines of a log.
    pub(super) fn walk(&self) -> SealWalk {
        let lines = self.lines.iter();
        let own = lines
            .clone()
            .filter(|line| line.origin != LineOrigin::Foreign);
        let expected = lines.filter(|line| line.origin != LineOrigin::Pending);
        SealWalk {
            own: own.map(|line| line.hash).collect(),
            missing: expected.map(|line| line.hash).collect(),
        }
    }
}

/// A comparison of a seal with a log, whose lines come one by one.
pub(super) struct SealWalk {
    /// The hashes of the lines that this program wrote.
    own: FxHashSet<u64>,
    /// The hashes of the lines that the log must have and that did not come yet.
    missing: FxHashSet<u64>,
}

impl SealWalk {
    /// Takes the next line of the log. Returns whether this program wrote it.
    pub(super) fn is_own(&mut self, hash: u64) -> bool {
        self.missing.remove(&hash);
        self.own.contains(&hash)
    }

    /// How many lines of the seal the log does not have.
    pub(super) fn lost(&self) -> usize {
        self.missing.len()
    }
}

/// The hash of a line, without the spaces around it.
pub(super) fn line_hash(line: &[u8]) -> u64 {
    xxh3_64(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(seal: &Seal, log: &str) -> usize {
        let mut walk = seal.walk();
        for (_, line) in lines_of(log.as_bytes()) {
            walk.is_own(line_hash(line));
        }
        walk.lost()
    }

    #[test]
    fn a_seal_is_broken_by_every_lost_line_and_by_no_other_change() {
        let log = "{a}\n{b}\n{c}\n";
        let seal = Seal::of(log.as_bytes(), None, b"", LineOrigin::Own);
        assert_eq!(Seal::parse(seal.to_text().as_bytes()), Ok(seal.clone()));
        for fine in [
            log,
            "{a}\r\n{b}\r\n{c}",
            "\u{feff}{a}\n\n{b}\n{c}\n{d}\n",
            "{c}\n{x}\n{a}\n{b}\n",
            "{a}\n{a}\n{b}\n{c}\n",
        ] {
            assert_eq!(lost(&seal, fine), 0, "{fine}");
        }
        for (broken, count) in [
            ("{a}\n{b}\n", 1),
            ("{b}\n{c}\n", 1),
            ("{a}\n{b }\n{c}\n", 1),
            ("{c}\n", 2),
            ("", 3),
            ("\0\0\0\0\n{c}\n", 2),
        ] {
            assert_eq!(lost(&seal, broken), count, "{broken}");
        }
    }

    #[test]
    fn lines_of_other_programs_are_known_by_an_earlier_seal() {
        let first = Seal::of(b"", None, b"{a}\n", LineOrigin::Own);
        let second = Seal::of(b"{a}\n{b}\n", Some(&first), b"{c}\n", LineOrigin::Own);
        let mut walk = second.walk();
        let own = ["{a}", "{b}", "{c}", "{d}"].map(|line| walk.is_own(line_hash(line.as_bytes())));
        assert_eq!(own, [true, false, true, false]);
        // Merged with the seal of another machine.
        let both = format!("{}{}", second.to_text(), first.to_text());
        assert!(Seal::parse(both.as_bytes()).is_ok());
    }

    #[test]
    fn lines_of_a_killed_writer_may_be_missing_and_are_its_own() {
        let pending = Seal::of(b"", None, b"{a}\n{b}\n", LineOrigin::Pending);
        assert!(pending.fits_nothing());
        let seal = Seal::of(b"{x}\n", None, b"{a}\n{b}\n", LineOrigin::Pending);
        assert_eq!(Seal::parse(seal.to_text().as_bytes()), Ok(seal.clone()));
        assert!(!seal.fits_nothing());
        assert_eq!((lost(&seal, "{x}\n"), lost(&seal, "{a}\n{b}\n")), (0, 1));
        let next = Seal::of(b"{x}\n{a}\n{b}\n", Some(&seal), b"", LineOrigin::Own);
        assert!(!next.to_text().contains(FOREIGN));
        assert_eq!(lost(&next, "{x}\n"), 2);
    }

    #[test]
    fn what_is_no_seal_is_refused() {
        let line = format!("{HEAD}\n0123\n");
        for damaged in ["", "\0\0\0", "0123456789abcdef\n", &line] {
            assert_eq!(Seal::parse(damaged.as_bytes()), Err(DamagedSeal));
        }
    }
}
