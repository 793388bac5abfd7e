//! Which pieces of text are one token in both byte-pair vocabularies in wide use (`o200k_base` and
//! `cl100k_base`), as two Bloom filters: common words, with a false-positive rate of 0.02 %, and runs
//! of punctuation, with 0.1 %. A table beside them says what each character costs that is not ASCII.
//! `tests/it/tokens.rs` writes all three (`UPDATE_VOCABULARY=1`) and checks them.

use std::ops::Range;

/// The filters (bits, eight to a byte), and the table of characters (two bits for each).
static PIECES: &[u8] = include_bytes!("vocabulary.bin");

pub const WORDS: Range<usize> = 0..88 << 10;
pub const PUNCTUATION: Range<usize> = 88 << 10..92 << 10;
pub const CHARACTERS: Range<usize> = 92 << 10..108 << 10;
/// The longest word that a filter knows, with what precedes it, in bytes.
pub const MAX_WORD_BYTES: usize = 16;
/// The longest run of punctuation that a filter knows, with the space before it, in bytes.
pub const MAX_PUNCTUATION_BYTES: usize = 8;
const HASH_COUNT: u64 = 8;

/// Whether a word with what precedes it is one token.
pub(super) fn holds_word(lead: &str, word: &str) -> bool {
    lead.len() + word.len() <= MAX_WORD_BYTES && holds(WORDS, lead, word)
}

/// Whether a run of punctuation with the space before it is one token.
pub(super) fn holds_punctuation(lead: &str, run: &str) -> bool {
    lead.len() + run.len() <= MAX_PUNCTUATION_BYTES && holds(PUNCTUATION, lead, run)
}

/// The tokens of a character that is not ASCII: as many as the more expensive vocabulary counts.
pub(super) fn char_tokens(c: char) -> usize {
    match c {
        '\u{1f000}'..='\u{1ffff}' => 3,
        '\u{10000}'.. => 4,
        _ => {
            let number = c as usize;
            let byte = PIECES.get(CHARACTERS.start + number / 4).copied().unwrap_or(u8::MAX);
            usize::from(byte >> (number % 4 * 2) & 3)
        }
    }
}

/// The table of [`char_tokens`], for the characters of up to three bytes.
pub fn characters(tokens: impl Fn(char) -> u8) -> Vec<u8> {
    let cost = |number| char::from_u32(number).map_or(0, &tokens);
    let byte = |first| (0..4).fold(0, |byte, place| byte | cost(first + place) << (place * 2));
    (0..=u32::from(u16::MAX)).step_by(4).map(byte).collect()
}

fn holds(section: Range<usize>, lead: &str, piece: &str) -> bool {
    let filter = PIECES.get(section).unwrap_or_default();
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
