//! Cursors of result pages. A cursor names the last result of a page, so the next page continues
//! after it even if the store changed in between.

use std::hash::{Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::ranking::Place;
use ack_api::QueryRequest;

/// A cursor that does not belong to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor does not belong to this request: {reason}")]
pub struct InvalidCursor {
    pub reason: &'static str,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    request: u32,
    /// Hash of the last result's scope and id.
    identity: u32,
    pub place: Place,
    /// Its number, from 1, among the results that differ from it only by scope or id.
    pub tie: u64,
    /// The first page's weights, see [`Bm25Weights::freeze`](crate::bm25::Bm25Weights::freeze).
    pub weights: Option<Vec<u8>>,
}

const BELONGS_TO_PROJECT: u8 = 1;
const HAS_WEIGHTS: u8 = 2;

impl Cursor {
    /// The cursor after a page that ends with a result of this scope and id. `weights` are those of
    /// the first page.
    pub fn after(
        request: &QueryRequest,
        (scope, id): (&str, &str),
        (place, tie): (Place, u64),
        weights: Option<Vec<u8>>,
    ) -> Self {
        let request = fingerprint(request);
        Self { request, identity: identity(scope, id), place, tie, weights }
    }

    /// Whether this is the result that the page ended with.
    pub fn names(&self, scope: &str, id: &str) -> bool {
        self.identity == identity(scope, id)
    }

    /// Encodes the cursor as URL-safe base64: flags, numbers, hashes, weights, and a checksum. It
    /// is short because a model reads and repeats it.
    pub fn encode(&self) -> String {
        let place = self.place;
        let flags = if place.current_project { BELONGS_TO_PROJECT } else { 0 }
            | if self.weights.is_some() { HAS_WEIGHTS } else { 0 };
        let mut bytes = vec![flags];
        for number in [zigzag(place.rank), zigzag(place.created), self.tie] {
            write_number(&mut bytes, number);
        }
        bytes.extend(self.identity.to_be_bytes());
        bytes.extend(self.request.to_be_bytes());
        bytes.extend(self.weights.iter().flatten());
        let sum = check_sum(&bytes);
        bytes.extend(sum);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes the cursor of a request, if it has one.
    pub fn decode(request: &QueryRequest) -> Result<Option<Self>, InvalidCursor> {
        let damaged = InvalidCursor { reason: "it is damaged" };
        let Some(text) = request.cursor.as_deref().filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| damaged)?;
        let cursor = Self::read(&bytes).ok_or(damaged)?;
        if cursor.request != fingerprint(request) {
            let reason = "it was made for other arguments";
            return Err(InvalidCursor { reason });
        }
        Ok(Some(cursor))
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<2>()?;
        if *sum != check_sum(body) {
            return None;
        }
        let (flags, mut rest) = body.split_first()?;
        let rank = unzigzag(read_number(&mut rest)?);
        let created = unzigzag(read_number(&mut rest)?);
        let tie = read_number(&mut rest)?;
        let (identity, rest) = rest.split_first_chunk::<4>()?;
        let (request, weights) = rest.split_first_chunk::<4>()?;
        Some(Self {
            request: u32::from_be_bytes(*request),
            identity: u32::from_be_bytes(*identity),
            place: Place { rank, current_project: flags & BELONGS_TO_PROJECT != 0, created },
            tie,
            weights: (flags & HAS_WEIGHTS != 0).then(|| weights.to_vec()),
        })
    }
}

/// Maps a signed number to an unsigned one, so that small magnitudes stay small.
const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Writes a number, seven bits to a byte, the lowest first (LEB128).
fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[expect(clippy::cast_possible_truncation, reason = "a part of a hash")]
fn check_sum(bytes: &[u8]) -> [u8; 2] {
    (xxh3_64(bytes) as u16).to_be_bytes()
}

#[expect(clippy::cast_possible_truncation, reason = "a part of a hash")]
fn identity(scope: &str, id: &str) -> u32 {
    let mut hash = Xxh3::new();
    (scope, id).hash(&mut hash);
    hash.finish() as u32
}

/// Hash of the arguments that determine order and filters. The others (`cursor`, `limit`, `detail`,
/// `max_tokens` and `explain`) may change from page to page.
#[expect(clippy::cast_possible_truncation, reason = "a part of a hash")]
fn fingerprint(request: &QueryRequest) -> u32 {
    let mut request = request.clone();
    request.cursor = None;
    request.limit = None;
    request.detail = None;
    request.max_tokens = None;
    request.explain = None;
    let mut hash = Xxh3::new();
    serde_json::to_string(&request).unwrap_or_default().hash(&mut hash);
    hash.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_or_missing_byte_is_detected() {
        let request = QueryRequest::default();
        let place = Place { rank: -3, current_project: true, created: i64::MIN };
        let weights = Some(vec![1, 2, 3, 4]);
        let cursor = Cursor::after(&request, ("scope", "id"), (place, 300), weights);
        let decode = |bytes: &[u8]| {
            let text = Some(URL_SAFE_NO_PAD.encode(bytes));
            Cursor::decode(&QueryRequest { cursor: text, ..request.clone() })
        };
        let bytes = URL_SAFE_NO_PAD.decode(cursor.encode()).unwrap();
        assert_eq!(decode(&bytes), Ok(Some(cursor)));
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 0x10;
            assert!(decode(&changed).is_err(), "{position}");
            // An empty text is no cursor.
            assert!(position == 0 || decode(&bytes[..position]).is_err(), "{position}");
        }
    }
}
