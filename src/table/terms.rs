//! How a table keeps the terms of its memories.
//!
//! The rows of one batch share a lexicon, which is a row of its own: `source` is [`LEXICON`], `row` the number of the batch,
//! and its `terms` are the distinct terms of the batch as this program's analysis writes them, UTF-8, with a blank between.
//! The `terms` of a memory are pairs in the order of the lexicon, without separators: how many places the term lies behind
//! the one before (LEB128; the first one behind place −1, less one), and one byte of weighted frequency in half units.
//! So a reader looks each term up once a batch, and not once a memory.

use rustc_hash::FxHashMap;

use super::columns::Written;
use crate::query::prepare::unpack;

/// The `source` of a row that holds a lexicon.
pub const LEXICON: u8 = u8::MAX;

/// The terms of a batch as they are written.
pub struct Spelled {
    /// The lexicon.
    pub lexicon: String,
    /// The terms of each row.
    pub rows: Vec<Vec<u8>>,
}

/// Spells the terms of rows.
pub fn spell(rows: &[Written<'_>]) -> Spelled {
    let mut lexicon = String::new();
    let mut count = 0u32;
    // What this lexicon calls the terms of each analyst.
    let mut numbers: FxHashMap<(usize, u32), u32> = FxHashMap::default();
    let mut spelled = Vec::with_capacity(rows.len());
    let mut pairs: Vec<(u32, u8)> = Vec::new();
    for row in rows {
        pairs.clear();
        for weighted in &row.prepared.terms {
            let (term, weight) = unpack(*weighted);
            // A term never holds a blank: analysis cuts there.
            let Some(text) = row.lexicon.get(term as usize).filter(|text| !text.contains(' ')) else {
                continue;
            };
            let number = *numbers.entry((row.analyst, term)).or_insert_with(|| {
                if count > 0 {
                    lexicon.push(' ');
                }
                lexicon.push_str(text);
                count += 1;
                count - 1
            });
            pairs.push((number, u8::try_from(weight).unwrap_or(u8::MAX)));
        }
        pairs.sort_unstable();
        let mut bytes = Vec::with_capacity(pairs.len() * 3);
        let mut next = 0;
        for (number, weight) in &pairs {
            let mut gap = number - next;
            while gap >= 0x80 {
                #[expect(clippy::cast_possible_truncation, reason = "the lower seven bits")]
                bytes.push(gap as u8 | 0x80);
                gap >>= 7;
            }
            #[expect(clippy::cast_possible_truncation, reason = "less than 128")]
            bytes.push(gap as u8);
            bytes.push(*weight);
            next = number + 1;
        }
        spelled.push(bytes);
    }
    Spelled { lexicon, rows: spelled }
}

/// The terms of a row: places in the lexicon and weights. `None` stands for bytes that no row was written with.
pub fn read(bytes: &[u8]) -> impl Iterator<Item = Option<(u32, u32)>> {
    let mut rest = bytes.iter();
    let mut next = 0u32;
    std::iter::from_fn(move || {
        let mut byte = *rest.next()?;
        let mut gap = u32::from(byte & 0x7f);
        let mut shift = 7;
        while byte & 0x80 != 0 {
            let Some(more) = rest.next().filter(|_| shift < 32) else {
                return Some(None);
            };
            byte = *more;
            gap |= u32::from(byte & 0x7f) << shift;
            shift += 7;
        }
        let pair = next.checked_add(gap).zip(rest.next());
        next = pair.map_or(next, |(number, _)| number.saturating_add(1));
        Some(pair.map(|(number, weight)| (number, u32::from(*weight))))
    })
}
