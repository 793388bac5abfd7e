//! Which pieces of text are one token in both byte-pair vocabularies in wide use (`o200k_base` and
//! `cl100k_base`), as two Bloom filters: common words, with a false-positive rate of 1 %, and runs
//! of punctuation, with 0.1 %. `tests/it/tokens.rs` writes them (`UPDATE_VOCABULARY=1`) and checks
//! them.

use std::ops::Range;

/// Both filters: bits, eight to a byte.
static FILTERS: &[u8] = include_bytes!("vocabulary.bin");

/// The bytes of the filter of words.
pub const WORDS: Range<usize> = 0..44 << 10;
/// The bytes of the filter of punctuation.
pub const PUNCTUATION: Range<usize> = 44 << 10..48 << 10;
/// The longest word that a filter knows, with what precedes it, in bytes.
pub const MAX_WORD_BYTES: usize = 16;
/// The longest run of punctuation that a filter knows, with the space before it, in bytes.
pub const MAX_PUNCTUATION_BYTES: usize = 8;
/// How many bits are set for each piece.
const HASH_COUNT: u64 = 6;

/// Whether a word with what precedes it is one token.
pub(super) fn holds_word(lead: &str, word: &str) -> bool {
    lead.len() + word.len() <= MAX_WORD_BYTES && holds(WORDS, lead, word)
}

/// Whether a run of punctuation with the space before it is one token.
pub(super) fn holds_punctuation(lead: &str, run: &str) -> bool {
    lead.len() + run.len() <= MAX_PUNCTUATION_BYTES && holds(PUNCTUATION, lead, run)
}

fn holds(section: Range<usize>, lead: &str, piece: &str) -> bool {
    let filter = FILTERS.get(section).unwrap_or_default();
    bits(lead.bytes().chain(piece.bytes()), filter.len())
        .all(|bit| filter.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1))
}

/// A filter of the given pieces, `length` bytes long.
pub fn filter<'a>(pieces: impl Iterator<Item = &'a [u8]>, length: usize) -> Vec<u8> {
    let mut filter = vec![0u8; length];
    for piece in pieces {
        for bit in bits(piece.iter().copied(), length) {
            if let Some(byte) = filter.get_mut(bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
    }
    filter
}

/// The bits of a piece in a filter of `length` bytes (Kirsch and Mitzenmacher, "Less Hashing, Same
/// Performance", 2006; the hash is 64-bit FNV-1a).
fn bits(piece: impl Iterator<Item = u8>, length: usize) -> impl Iterator<Item = usize> {
    let hash = super::fnv(piece);
    let (first, second) = (hash >> 32, hash & 0xffff_ffff | 1);
    let count = length as u64 * 8;
    (0..HASH_COUNT).map(move |number| {
        usize::try_from(first.wrapping_add(number.wrapping_mul(second)) % count.max(1)).unwrap_or(0)
    })
}
