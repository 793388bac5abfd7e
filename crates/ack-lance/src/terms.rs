//! How a table stores the terms and the vectors of its memories: the column `detail`.
//!
//! The rows of one batch share a lexicon, which is a separate row: its `source` is
//! [`LEXICON_SOURCE`], its `row` the number of the batch. Its `detail` is the number of the batch
//! (4 bytes), the length of the text that follows (4 bytes), the distinct terms of the batch as
//! this program's analysis writes them (UTF-8, separated by spaces), and how many memories of the
//! batch had each term when it was written: for each term, in that order, the approved and promoted
//! ones and then those in staging (LEB128).
//!
//! The `detail` of a memory is the number of its batch (4 bytes), the length of the vector that
//! follows (2 bytes; 0 if there is none), the quantized vector (a single-precision factor, then a
//! signed byte per component, to be multiplied by the factor), and the terms: pairs in the order of
//! the lexicon, without separators. A pair is the distance from the position after the previous
//! term to the term's position in the lexicon (LEB128), and one byte of weighted frequency in half
//! units. So a reader looks up each term once per batch and not once per memory, and all data for a
//! score is in one place. Numbers are little endian.
//!
//! Both begin with the lower half of the XXH3 hash of the rest (4 bytes).
//!
//! If no memory of the batch has a term any more, its place in the lexicon is empty.
//!
//! The `words` of a memory are its terms again, for LanceDB's full-text index: separated by spaces,
//! and repeated one to four times depending on the weighted frequency (`repetitions`).

use arrow::array::{BinaryArray, RecordBatch};

use super::TableError;
use super::columns::NewRow;
use super::rows::column;
use ack_api::memory::Status;
use ack_search::analyzer::unpack_term;
use ack_search::semantic::QuantizedVector;
use rustc_hash::FxHashMap;

/// The `source` of a row that holds a lexicon.
pub const LEXICON_SOURCE: u8 = u8::MAX;

/// The number of a term that the index does not have, because no row needs it.
const NO_TERM: u32 = u32::MAX;

/// The terms of a batch as they are written.
#[derive(Default)]
pub struct EncodedTerms {
    pub lexicon: Vec<u8>,
    pub rows: Vec<Vec<u8>>,
    pub words: Vec<String>,
}

pub fn encode_terms(batch: u32, rows: &[NewRow<'_>]) -> EncodedTerms {
    let mut lexicon = NewLexicon::default();
    let mut details = Vec::with_capacity(rows.len());
    let mut words = Vec::with_capacity(rows.len());
    let mut pairs: Vec<(u32, u8)> = Vec::new();
    for row in rows {
        pairs.clear();
        let mut line = String::with_capacity(row.analyzed.terms.len() * 10);
        for weighted in &row.analyzed.terms {
            let (term, weight) = unpack_term(*weighted);
            let Some((number, text)) = lexicon.number(row, term) else {
                continue;
            };
            for _ in 0..repetitions(weight) {
                line.push_str(text);
                line.push(' ');
            }
            pairs.push((number, u8::try_from(weight).unwrap_or(u8::MAX)));
        }
        pairs.sort_unstable();
        details.push(encode_memory(batch, row, &pairs));
        line.pop();
        words.push(line);
    }
    EncodedTerms { lexicon: lexicon.encode(batch), rows: details, words }
}

/// The lexicon of a batch that is being written.
#[derive(Default)]
struct NewLexicon {
    terms: String,
    /// How many memories have each term: approved and promoted ones, and those in staging.
    holders: Vec<[u32; 2]>,
    /// The number of each term here, by its number in the analyzer.
    numbers: Vec<Option<u32>>,
}

impl NewLexicon {
    /// The number and the text of a term that a memory has. `None` for one that cannot be written.
    fn number<'r>(&mut self, row: &NewRow<'r>, term: u32) -> Option<(u32, &'r str)> {
        // A term never contains a space: analysis splits there.
        let text = row.lexicon.get(term);
        if text.is_empty() || text.contains(' ') {
            return None;
        }
        if self.numbers.len() <= term as usize {
            self.numbers.resize(term as usize + 1, None);
        }
        let slot = self.numbers.get_mut(term as usize)?;
        let number = match *slot {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.holders.len()).ok()?;
                if number > 0 {
                    self.terms.push(' ');
                }
                self.terms.push_str(text);
                self.holders.push([0, 0]);
                *slot = Some(number);
                number
            }
        };
        let [served, staging] = self.holders.get_mut(number as usize)?;
        if row.stored.memory.status == Status::Staging {
            *staging += 1;
        } else {
            *served += 1;
        }
        Some((number, text))
    }

    fn encode(&self, batch: u32) -> Vec<u8> {
        let length = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(8 + self.terms.len() + self.holders.len() * 2);
        bytes.extend_from_slice(&batch.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(self.terms.as_bytes());
        for count in self.holders.iter().flatten() {
            write_number(*count, &mut bytes);
        }
        with_checksum(&bytes)
    }
}

/// The detail of a lexicon with the terms whose positions are `used`, without the others. `None` as
/// in [`read_terms`].
pub fn shrink_lexicon(detail: &[u8], used: &[bool]) -> Option<Vec<u8>> {
    let (batch, terms, holders) = decode_lexicon(detail)?;
    let mut shrunk = NewLexicon::default();
    let terms = terms.split(' ').zip(read_holders(holders)).enumerate();
    for (position, (term, holders)) in terms {
        if position > 0 {
            shrunk.terms.push(' ');
        }
        if used.get(position).copied().unwrap_or(false) {
            shrunk.terms.push_str(term);
            shrunk.holders.push(holders?);
        } else {
            shrunk.holders.push([0, 0]);
        }
    }
    Some(shrunk.encode(batch))
}

/// The detail of a memory, from the numbers and weights of its terms in ascending order.
fn encode_memory(batch: u32, row: &NewRow<'_>, pairs: &[(u32, u8)]) -> Vec<u8> {
    let code = row.analyzed.quantized_vector().map(|code| code.to_bytes()).unwrap_or_default();
    let length = u16::try_from(code.len()).unwrap_or_default();
    let mut bytes = Vec::with_capacity(6 + code.len() + pairs.len() * 3);
    bytes.extend_from_slice(&batch.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(code.get(..usize::from(length)).unwrap_or_default());
    let mut next = 0;
    for (number, weight) in pairs {
        write_number(number - next, &mut bytes);
        bytes.push(*weight);
        next = number + 1;
    }
    with_checksum(&bytes)
}

/// How often a term of this weighted frequency is repeated in `words`. The index only finds
/// candidates, whose score is then computed from the frequency itself, and building it takes time
/// in proportion to the words. A term of the body or of one fact is written once, one of the title
/// twice.
const fn repetitions(weight: u32) -> u32 {
    match weight {
        0..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        _ => 4,
    }
}

/// Writes a number as LEB128.
fn write_number(mut number: u32, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "the lower seven bits")]
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "less than 128")]
    bytes.push(number as u8);
}

/// Bytes after their checksum. Without it, a flipped bit would be another term or vector.
fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    [&checksum(bytes), bytes].concat()
}

/// The bytes after a checksum; `None` if it is not theirs.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (sum, rest) = bytes.split_first_chunk::<4>()?;
    (*sum == checksum(rest)).then_some(rest)
}

/// The lower half of the XXH3 hash.
fn checksum(bytes: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = xxhash_rust::xxh3::xxh3_64(bytes).to_le_bytes();
    [a, b, c, d]
}

/// Decodes the detail of a lexicon: the number of the batch, the terms and their holders. `None` as
/// in [`read_terms`].
pub fn decode_lexicon(detail: &[u8]) -> Option<(u32, &str, &[u8])> {
    let (batch, rest) = checked(detail)?.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (text, holders) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((u32::from_le_bytes(*batch), std::str::from_utf8(text).ok()?, holders))
}

/// For each batch, the numbers that `intern` gives the terms of its lexicon, in their order.
/// `intern` also gets their holders.
pub fn read_lexicons(
    lexicons: &RecordBatch,
    mut intern: impl FnMut(&str, [u32; 2]) -> u32,
) -> Result<FxHashMap<u32, Box<[u32]>>, TableError> {
    let mut batches = FxHashMap::default();
    for detail in column::<BinaryArray>(lexicons, "detail")?.iter().flatten() {
        let (batch, terms, holders) = decode_lexicon(detail).ok_or(TableError::Damaged)?;
        let numbers = terms.split(' ').zip(read_holders(holders)).map(|(term, holders)| {
            Some(if term.is_empty() { NO_TERM } else { intern(term, holders?) })
        });
        batches.insert(batch, numbers.collect::<Option<_>>().ok_or(TableError::Damaged)?);
    }
    Ok(batches)
}

/// Decodes the detail of a memory: the number of the batch, the vector and the terms. `None` as in
/// [`read_terms`].
pub fn decode_memory(detail: &[u8]) -> Option<(u32, Option<QuantizedVector>, &[u8])> {
    let (batch, rest) = checked(detail)?.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (code, terms) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let code = if code.is_empty() { None } else { Some(QuantizedVector::from_bytes(code)?) };
    Some((u32::from_le_bytes(*batch), code, terms))
}

/// Reads a LEB128 number. The outer `None` is the end; the inner one means that the bytes are
/// damaged.
fn read_number(bytes: &mut std::slice::Iter<'_, u8>) -> Option<Option<u32>> {
    let mut byte = *bytes.next()?;
    let mut number = u32::from(byte & 0x7f);
    let mut shift = 7;
    while byte & 0x80 != 0 {
        let Some(more) = bytes.next().filter(|_| shift < 32) else {
            return Some(None);
        };
        byte = *more;
        number |= u32::from(byte & 0x7f) << shift;
        shift += 7;
    }
    Some(Some(number))
}

/// How many memories have each term of a lexicon: approved and promoted ones, and those in staging.
/// `None` as in [`read_terms`].
pub fn read_holders(bytes: &[u8]) -> impl Iterator<Item = Option<[u32; 2]>> {
    let mut rest = bytes.iter();
    std::iter::from_fn(move || {
        let served = read_number(&mut rest)?;
        Some(
            served.zip(read_number(&mut rest).flatten()).map(|(served, staging)| [served, staging]),
        )
    })
}

/// The terms of a row: positions in the lexicon and weights. `None` means that the bytes are
/// damaged.
pub fn read_terms(bytes: &[u8]) -> impl Iterator<Item = Option<(u32, u32)>> {
    let mut rest = bytes.iter();
    let mut next = 0u32;
    std::iter::from_fn(move || {
        let Some(gap) = read_number(&mut rest)? else {
            return Some(None);
        };
        let pair = next.checked_add(gap).zip(rest.next());
        next = pair.map_or(next, |(number, _)| number.saturating_add(1));
        Some(pair.map(|(number, weight)| (number, u32::from(*weight))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shrunk_lexicon_forgets_terms_and_keeps_the_places_of_the_others() {
        let lexicon = NewLexicon {
            terms: "zeppelin pool anchor".to_owned(),
            holders: vec![[1, 0], [300, 2], [0, 5]],
            numbers: Vec::new(),
        };
        let decoded = |detail: &[u8]| {
            let (batch, terms, holders) = decode_lexicon(detail).unwrap();
            let holders: Vec<_> = read_holders(holders).map(Option::unwrap).collect();
            (batch, terms.to_owned(), holders)
        };
        let whole = lexicon.encode(7);
        let shrunk = shrink_lexicon(&whole, &[false, true, true]).unwrap();
        let expected = vec![[0, 0], [300, 2], [0, 5]];
        assert_eq!(decoded(&shrunk), (7, " pool anchor".to_owned(), expected));
        assert_eq!(shrink_lexicon(&shrunk, &[false, true, true]), Some(shrunk));
        let empty = shrink_lexicon(&whole, &[]).unwrap();
        assert_eq!(decoded(&empty).1, "  ");
        assert_eq!(shrink_lexicon(&whole, &[true; 3]), Some(whole));
    }
}
