//! Words and pieces of words in eleven languages besides English, with vectors in the English
//! table's space. `encoder/MULTILINGUAL.md` describes the table.
//!
//! A word is looked up as a whole; if there is none, it is split into the longest pieces. Of text
//! in ideographs and hiragana, each character and each pair is looked up. The vocabulary is stored
//! as hashes only, in the order of the rows, and rows as four bits for each component. Everything
//! is read where it lies in the binary: nothing is unpacked when the program starts.

use std::borrow::Cow;

use safetensors::SafeTensors;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The artifact that `encoder/multilingual.py` wrote.
static ARTIFACT: &[u8] = include_bytes!("../../../../encoder/multilingual.safetensors");

const MAX_PIECE_CHARS: usize = 24;
/// A word with more characters is no word.
const MAX_WORD_CHARS: usize = 100;
/// A piece of at least this many characters is the same at the beginning of a word and inside it.
const MIN_FREE_CHARS: usize = 4;
/// The same in katakana, whose letters are syllables. Compounds are written without a space.
const MIN_FREE_SYLLABLES: usize = 2;
/// Marks the shorter pieces inside a word.
const INSIDE: &[u8] = b"##";

#[derive(Debug)]
pub(super) struct Multilingual {
    /// Where the rows begin whose hashes have the same first 16 bits.
    starts: &'static [[u8; 4]],
    /// The next 32 bits of each row's hash, ascending after the first 16.
    hashes: &'static [[u8; 4]],
    /// Two components in each byte: one of the first half, and one of the second half.
    rows: &'static [u8],
    scales: &'static [[u8; 4]],
    /// How much more often each piece occurs in these languages than in English: the logarithm of
    /// the ratio, in sixteenths.
    odds: &'static [u8],
    dimension: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Latin,
    /// Another alphabet, by its number, in words that spaces or a change of script separate.
    Words(u8),
    Ideographs,
    /// Anything else: punctuation, and scripts that the table does not know.
    Other,
}

impl Script {
    fn of(c: char) -> Self {
        match c {
            '0'..='9' | 'A'..='Z' | 'a'..='z' | 'ª' | 'º' | 'À'..='Ö' | 'Ø'..='ö' => {
                Self::Latin
            }
            'ø'..='\u{24f}' | '\u{300}'..='\u{36f}' | '\u{1e00}'..='\u{1eff}' => Self::Latin,
            '\u{400}'..='\u{4ff}' => Self::Words(1),
            '\u{ac00}'..='\u{d7a3}' => Self::Words(2),
            _ if is_katakana(c) => Self::Words(3),
            '々' | '〇' | '\u{3041}'..='\u{309f}' | '\u{3400}'..='\u{4dbf}' => Self::Ideographs,
            '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => Self::Ideographs,
            _ => Self::Other,
        }
    }
}

/// Whether the table has rows for words in the script of a letter.
pub(super) fn has_rows(c: char) -> bool {
    Script::of(c) != Script::Other
}

/// Whether a letter means something by itself.
pub(super) fn is_ideograph(c: char) -> bool {
    Script::of(c) == Script::Ideographs
}

pub(super) const fn is_katakana(c: char) -> bool {
    matches!(c, '\u{30a1}'..='\u{30ff}')
}

/// The runs of letters of one script, and what is between them.
pub(super) fn runs(text: &str) -> impl Iterator<Item = (Script, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let kind = Script::of(rest.chars().next()?);
        let end = rest.find(|c| Script::of(c) != kind).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        Some((kind, run))
    })
}

/// A text with its accents on its letters.
pub(super) fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) {
        text.into()
    } else {
        text.nfc().collect::<String>().into()
    }
}

impl Multilingual {
    /// Reads the table inside the binary; `None` if its parts do not fit.
    pub(super) fn embedded(dimension: usize) -> Option<Self> {
        let tensors = SafeTensors::deserialize(ARTIFACT).ok()?;
        let bytes = |name: &str| tensors.tensor(name).ok().map(|tensor| tensor.data());
        let fours = |name: &str| bytes(name).map(|bytes| bytes.as_chunks::<4>().0);
        let table = Self {
            starts: fours("starts")?,
            hashes: fours("hashes")?,
            rows: bytes("rows")?,
            scales: fours("scales")?,
            odds: bytes("odds")?,
            dimension,
        };
        let count = table.hashes.len();
        let are_alike = table.scales.len() == count
            && table.odds.len() == count
            && table.rows.len() == count * dimension / 2
            && table.starts.len() == (1 << 16) + 1;
        are_alike.then_some(table)
    }

    /// What identifies the table: the artifact's header, which has a hash of the rest. So the rest
    /// need not be read when the program starts.
    pub(super) fn identity() -> &'static [u8] {
        let length = ARTIFACT.first_chunk::<8>().copied().map(u64::from_le_bytes);
        let length = length.and_then(|length| usize::try_from(length).ok());
        length.and_then(|length| ARTIFACT.get(8..length.saturating_add(8))).unwrap_or_default()
    }

    /// The row of a word in lower case, if it has one of its own.
    pub(super) fn row_of(&self, word: &str) -> Option<u32> {
        self.find(hash(START, word.as_bytes()))
    }

    /// Appends the rows of a word: its own, or those of its pieces, each as long as possible.
    /// Nothing, if a part of it has none. Whether it has its own.
    pub(super) fn word(&self, word: &str, rows: &mut Vec<u32>) -> bool {
        let word = lower(word);
        if let Some(row) = self.row_of(&word) {
            rows.push(row);
            return true;
        }
        let first = rows.len();
        let mut rest = &*word;
        if word.chars().nth(MAX_WORD_CHARS).is_some() {
            return false;
        }
        while !rest.is_empty() {
            let is_first = rest.len() == word.len();
            let Some((row, end)) = self.longest_piece(rest, is_first) else {
                rows.truncate(first);
                return false;
            };
            rows.push(row);
            rest = rest.get(end..).unwrap_or_default();
        }
        false
    }

    /// The longest piece that a text begins with, and its length in bytes.
    fn longest_piece(&self, text: &str, is_first: bool) -> Option<(u32, usize)> {
        let min_free =
            if text.starts_with(is_katakana) { MIN_FREE_SYLLABLES } else { MIN_FREE_CHARS };
        let (mut free, mut inside) = (START, hash(START, INSIDE));
        let mut found = None;
        let mut start = 0;
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        for (count, end) in (1..=MAX_PIECE_CHARS).zip(ends) {
            let letter = text.get(start..end)?.as_bytes();
            (free, inside) = (hash(free, letter), hash(inside, letter));
            let inside = if is_first { None } else { self.find(inside) };
            let may_be_free = is_first || count >= min_free;
            let row = inside.or_else(|| may_be_free.then(|| self.find(free)).flatten());
            found = row.map(|row| (row, end)).or(found);
            start = end;
        }
        found
    }

    /// Appends the rows of each character of a text, then those of each pair.
    pub(super) fn characters(&self, text: &str, rows: &mut Vec<u32>) {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        for size in [1, 2] {
            for part in ends.windows(size + 1) {
                let (Some(start), Some(end)) = (part.first(), part.last()) else {
                    continue;
                };
                let part = text.get(*start..*end).unwrap_or_default();
                rows.extend(self.row_of(part));
            }
        }
    }

    /// How much more often a row's piece occurs in these languages than in English.
    pub(super) fn odds(&self, row: u32) -> f32 {
        let odds = self.odds.get(row as usize).copied().unwrap_or_default();
        f32::from(odds.cast_signed()) / 16.0
    }

    /// Appends the components of a row, as signed bytes, and returns the factor of each.
    pub(super) fn unpack(&self, row: u32, components: &mut Vec<u8>) -> Option<f32> {
        let size = self.dimension / 2;
        let packed = self.rows.chunks_exact(size).nth(row as usize)?;
        let scale = self.scales.get(row as usize)?;
        let component = |nibble: u8| nibble.wrapping_sub(8);
        components.extend(packed.iter().map(|pair| component(pair & 15)));
        components.extend(packed.iter().map(|pair| component(pair >> 4)));
        Some(f32::from_le_bytes(*scale))
    }

    fn find(&self, state: u64) -> Option<u32> {
        // The high bits of a short text's hash are too regular.
        let mixed = (state ^ state >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let [first, second, middle @ .., _, _] = mixed.to_be_bytes();
        let bucket = usize::from(u16::from_be_bytes([first, second]));
        let wanted = u32::from_be_bytes(middle);
        let start = u32::from_le_bytes(*self.starts.get(bucket)?);
        let end = u32::from_le_bytes(*self.starts.get(bucket + 1)?);
        let hashes = self.hashes.get(start as usize..end as usize)?;
        let place = hashes.iter().position(|hash| u32::from_le_bytes(*hash) == wanted)?;
        u32::try_from(place).ok().map(|place| start + place)
    }
}

/// The state of [`hash`] before the first byte.
const START: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues a hash (FNV-1a, 64 bits): the hashes of a word's beginnings come one after the other.
fn hash(state: u64, bytes: &[u8]) -> u64 {
    let step = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(state, step)
}

fn lower(word: &str) -> Cow<'_, str> {
    let is_lower = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_lower { word.into() } else { word.to_lowercase().into() }
}
