//! Identifiers that contain one another: `10.0.0.12` and `10.0.0.12:8443`, `18.2.0` and
//! `18.2.0-beta.1`, `store/ack.rs` and `src/store/ack.rs`, a commit and its short form.
//!
//! The index has each identifier as a whole. A query for one is also a query for the indexed ones
//! that contain it and for those that it contains, from the beginning of a part to the end of one.
//! The longer ones are found in the list of all terms by their shapes, the shorter ones are looked
//! up, so the index has no further terms.

use std::collections::BTreeSet;

use super::analysis::{is_specific, without_version_mark};
use super::shapes::{self, ShapePattern};
use super::view::{View, document_frequency};
use ack_api::cancel;
use ack_api::memory::StatusFilter;

/// How many identifiers may stand for one of the query, of each kind.
const MAX_RELATED: usize = 16;
/// The parts of an identifier of the query from which shorter ones are formed.
const MAX_PARTS: usize = 12;
/// A part of an identifier says enough if it is this share of it, or has this many bytes.
const MIN_SHARE: f32 = 0.4;
const MIN_BYTES: usize = 7;
/// The fewest digits of a hexadecimal number that may be cut off.
const MIN_HEX_DIGITS: usize = 7;

/// An indexed identifier that contains one of the query, or is contained in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Related {
    pub key: String,
    /// Which share of the query's identifier it contains.
    pub share: f32,
    pub frequency: u32,
}

/// Whether a term is a specific identifier or a hexadecimal number, of which others may be parts.
pub fn has_relatives(key: &str) -> bool {
    match key.strip_prefix('=') {
        Some(identifier) => is_specific(identifier),
        None => is_hexadecimal(key),
    }
}

/// The identifiers that contain a term of the query or are contained in it, in memories that the
/// filter allows. The nearest in length come first.
pub fn related(views: &[View<'_>], key: &str, status: StatusFilter) -> Vec<Related> {
    let text = key.strip_prefix('=').unwrap_or(key);
    // The last part of a hexadecimal number may be cut off.
    let parts = shapes::parts(text).count();
    let whole = parts - usize::from(is_hexadecimal_part(text));
    let pattern = if key.starts_with('=') {
        ShapePattern::containing(key, whole)
    } else {
        ShapePattern::same_beginning(key)
    };
    let terms = views.iter().flat_map(|view| view.index.terms_like(pattern));
    let longer: BTreeSet<(usize, &str)> = cancel::guarded(terms)
        .filter(|term| term.len() > key.len())
        .filter(|term| contains(term.strip_prefix('=').unwrap_or(term), text))
        .map(|term| (term.len(), term))
        .collect();
    let longer = longer.into_iter().map(|(_, term)| (term.to_owned(), 1.0));
    let shorter = parts_of(text).into_iter();
    let known = |(key, share): (String, f32)| {
        let frequency = document_frequency(views, &key, status);
        (frequency > 0).then_some(Related { key, share, frequency })
    };
    let longer = longer.filter_map(known).take(MAX_RELATED);
    longer.chain(shorter.filter_map(known).take(MAX_RELATED)).collect()
}

/// Whether an identifier contains another one between its parts, or begins with it if both are
/// hexadecimal numbers.
fn contains(long: &str, short: &str) -> bool {
    let is_inner = |(start, _): (usize, &str)| {
        let (before, rest) = long.split_at_checked(start)?;
        let after = rest.get(short.len()..)?;
        let is_whole = !after.starts_with(char::is_alphanumeric);
        let is_cut_off = || start == 0 && is_hexadecimal(long) && is_hexadecimal_part(short);
        Some(begins_part(before, short) && (is_whole || is_cut_off()))
    };
    long.match_indices(short).any(|found| is_inner(found).unwrap_or(false))
}

/// Whether what follows `before` in an identifier begins a part of it. A dotted number has only one
/// beginning: `3.5` is not in `2.3.5`. The `v` before a version belongs to no name.
fn begins_part(before: &str, rest: &str) -> bool {
    let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
    let number_before = before.strip_suffix('.').filter(|_| is_number);
    let mark = before.strip_suffix('v').filter(|_| is_number);
    !mark.unwrap_or(before).ends_with(char::is_alphanumeric)
        && !number_before.is_some_and(|it| it.ends_with(|c: char| c.is_ascii_digit()))
}

/// The terms that an identifier contains, with the share that each is of it: runs of its parts, and
/// the beginnings of a hexadecimal number. The longest come first.
fn parts_of(text: &str) -> Vec<(String, f32)> {
    let is_part = |c: char| c.is_alphanumeric();
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let (head, rest) = text.split_at(at);
        if is_part(c) && !is_part(before) && begins_part(head, rest) {
            starts.push(at);
        } else if is_part(before) && !is_part(c) {
            ends.push(at);
        }
        before = c;
    }
    if is_part(before) {
        ends.push(text.len());
    }
    starts.truncate(MAX_PARTS);
    ends.truncate(MAX_PARTS);
    #[expect(clippy::cast_precision_loss, reason = "the length of an identifier")]
    let share_of = |part: &str| part.len() as f32 / text.len() as f32;
    let runs = starts.iter().flat_map(|start| {
        // A single part is a word of its own.
        ends.iter().filter(|end| *end > start).skip(1).filter_map(|end| text.get(*start..*end))
    });
    let runs = runs.filter(|run| share_of(run) >= MIN_SHARE || run.len() >= MIN_BYTES);
    let mut parts: Vec<(String, f32)> =
        runs.map(|run| (format!("={}", without_version_mark(run)), share_of(run))).collect();
    if is_hexadecimal(text) {
        let beginnings = (MIN_HEX_DIGITS..text.len()).filter_map(|end| text.get(..end));
        let beginnings = beginnings.filter(|part| part.ends_with(is_part));
        let key =
            |part: &str| if part.contains('-') { format!("={part}") } else { part.to_owned() };
        parts.extend(beginnings.map(|part| (key(part), 1.0)));
    }
    parts.retain(|(key, _)| key.trim_start_matches('=') != text);
    parts.sort_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then(one.cmp(other)));
    parts.dedup_by(|(one, _), (other, _)| one == other);
    parts
}

/// Whether a text is a hexadecimal number such as a commit, a digest or a UUID.
fn is_hexadecimal(text: &str) -> bool {
    let has = |is_wanted: fn(&u8) -> bool| text.as_bytes().iter().any(is_wanted);
    is_hexadecimal_part(text) && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

/// Whether a text may be the beginning of such a number.
fn is_hexadecimal_part(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
    digits >= MIN_HEX_DIGITS && text.bytes().all(|c| c.is_ascii_hexdigit() || c == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_looked_up_by_its_longer_parts_too() {
        for (text, part) in [
            ("10.0.0.12:8443", "=10.0.0.12"),
            ("18.2.0-beta.1", "=18.2.0"),
            ("react@v18.2.0", "=18.2.0"),
            ("https://git.example.org/src/store/ack.rs", "=src/store/ack.rs"),
            ("9fceb02d0ae598e95dc970b74767f19372d61af8", "9fceb02d"),
            ("550e8400-e29b-41d4-a716-446655440000", "550e8400"),
            ("550e8400-e29b-41d4-a716-446655440000", "=550e8400-e29b-41"),
        ] {
            let parts = parts_of(text);
            assert!(parts.iter().any(|(key, _)| key == part), "{text}: {parts:?}");
            assert!(!parts.iter().any(|(key, _)| key.trim_start_matches('=') == text));
        }
        assert_eq!(parts_of("10.0.0.12:8443").iter().find(|(key, _)| key == "=0.0"), None);
        assert_eq!(parts_of("defaced"), []);
        assert!(parts_of(&"a.".repeat(200)).len() < 100);
    }
}
