//! Estimates the number of tokens of a text.
//!
//! Byte-pair vocabularies first split a text: a word with the space or the punctuation mark before
//! it, up to three digits, a run of punctuation. A piece that is in the vocabulary is one token,
//! and [`vocabulary`] knows the common ones. The others (digests, base64, names in other languages)
//! are split into pieces of one to three bytes. Their letters show where: no token spans two
//! letters that rarely follow each other. `tests/it/tokens.rs` compares real vocabularies.

use std::sync::LazyLock;

use super::vocabulary;

/// One token in the units of this estimate.
const UNITS_PER_TOKEN: usize = 4;
const RARE_PAIR_COST: usize = 3;
const DIGIT_LETTER_COST: usize = 2;
/// Longer lower-case words are split into shorter tokens.
const MAX_SHORT_WORD: usize = 8;
/// The shortest known word that counts as a part of a longer one.
const MIN_PIECE: usize = 3;
const WHITESPACE_PER_TOKEN: usize = 16;
/// Longer runs of punctuation, in pieces, are split in ways that are hard to predict.
const MAX_SIMPLE_PUNCTUATION: usize = 4;
const SPLIT_PUNCTUATION_COST: usize = 1;
const DIGITS_PER_TOKEN: usize = 3;

/// For each letter, the letters that often follow it in English and in source code.
/// See `docs/benchmarks.md#tokens`.
const FOLLOWERS: &str = "\
    bcdfgiklmnprstuvy aeijloruy aehiklorstu adeilorsuy abcdefgilmnpqrstvwxy aefilnortu aehilnorsu \
    aeiortuy abcdefgklmnoprstvxz bes eis adefijlostuy abeilmopsu acdefgiklnopstuvwy \
    abcdefgijklmnoprstuvw aeiloprstuy lu acdegiklmnorstuvy acehiklopqstuy acdeghilmoprstuwy \
    abcdefgilmnprst aei aehinors acipt nopst ei";

static FOLLOWER_SETS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let set = |letters: &str| letters.bytes().fold(0, |set, letter| set | 1 << (letter - b'a'));
    FOLLOWERS.split(' ').map(set).collect()
});

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// ASCII letters: capitals, or lower case with at most one capital before them.
    Word,
    Digits,
    Punctuation,
    /// One whitespace character, repeated.
    Whitespace,
    /// One other character.
    Other,
}

/// Takes the first piece off a text that is not empty.
fn piece(text: &str) -> (Kind, &str, &str) {
    let bytes = text.as_bytes();
    let first = bytes.first().copied().unwrap_or_default();
    let run = |holds: &dyn Fn(&u8) -> bool| bytes.iter().take_while(|byte| holds(byte)).count();
    let (kind, length) = match first {
        b'a'..=b'z' => (Kind::Word, run(&u8::is_ascii_lowercase)),
        b'A'..=b'Z' => {
            let capitals = run(&u8::is_ascii_uppercase);
            let after_letters = bytes.get(capitals..).unwrap_or_default();
            let small = after_letters.iter().take_while(|byte| byte.is_ascii_lowercase());
            let length = match (capitals, small.count()) {
                (1, small) => 1 + small,
                (capitals, 0) => capitals,
                // The last capital belongs to the next word: `HTTPServer`.
                (capitals, _) => capitals - 1,
            };
            (Kind::Word, length)
        }
        b'0'..=b'9' => (Kind::Digits, run(&u8::is_ascii_digit)),
        _ if first.is_ascii_punctuation() => (Kind::Punctuation, run(&u8::is_ascii_punctuation)),
        _ if first.is_ascii() => (Kind::Whitespace, run(&|byte| *byte == first)),
        _ => (Kind::Other, text.chars().next().map_or(1, char::len_utf8)),
    };
    let (piece, rest) = text.split_at(length);
    (kind, piece, rest)
}

/// The cost of letters that are not one token as a whole.
fn letters_cost(word: &str) -> usize {
    let bytes = word.as_bytes();
    let pairs = bytes.iter().zip(bytes.iter().skip(1));
    let rare = pairs.filter(|(first, second)| !is_common_pair(**first, **second)).count();
    let is_lower = bytes.last().is_some_and(u8::is_ascii_lowercase);
    // A word with a rare pair is hardly one of a language.
    let min_tokens = if is_lower && rare == 0 && word.len() <= MAX_SHORT_WORD {
        word.len().div_ceil(4)
    } else {
        word.len().div_ceil(3)
    };
    min_tokens * UNITS_PER_TOKEN + rare * RARE_PAIR_COST
}

/// The cost of a word with what precedes it: a space, one punctuation mark or nothing.
fn word_cost(lead: &str, word: &str) -> usize {
    // Within names (`retry-webhooks`) the punctuation mark mostly joins the first letters.
    let is_in_name = matches!(lead, "-" | "/" | ".");
    let lead_cost = match lead.trim() {
        "" => 0,
        _ if is_in_name => UNITS_PER_TOKEN / 2,
        _ => UNITS_PER_TOKEN,
    };
    match word.len() {
        _ if vocabulary::holds_word(lead, word) => UNITS_PER_TOKEN,
        1 => UNITS_PER_TOKEN + lead_cost,
        _ if vocabulary::holds_word("", word) && !lead.is_empty() => 2 * UNITS_PER_TOKEN,
        // A common word, which is one token after a space.
        _ if is_in_name && vocabulary::holds_word(" ", word) => 2 * UNITS_PER_TOKEN,
        _ => {
            let letters = letters_cost(word).max(2 * UNITS_PER_TOKEN) + lead_cost;
            letters.min(compound_cost(lead, word).unwrap_or(letters))
        }
    }
}

/// The cost of a lower-case word that consists of known words: the longest ones, plus one token,
/// because vocabularies do not always take the longest.
fn compound_cost(lead: &str, word: &str) -> Option<usize> {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    let lead_pieces = usize::from(!lead.trim().is_empty());
    let (mut pieces, mut rest) = (lead_pieces, word);
    let mut lead = if lead_pieces == 1 { "" } else { lead };
    while !rest.is_empty() {
        let lengths = (MIN_PIECE..=rest.len().min(vocabulary::MAX_WORD_BYTES)).rev();
        let mut known = lengths.filter_map(|length| rest.get(..length));
        let piece = known.find(|piece| vocabulary::holds_word(lead, piece))?;
        rest = rest.get(piece.len()..).unwrap_or_default();
        lead = "";
        pieces += 1;
    }
    Some((pieces + 1) * UNITS_PER_TOKEN)
}

/// From this length on, a run of punctuation that is two known pieces may be three tokens.
const MIN_LONG_PUNCTUATION: usize = 5;

/// The cost of a run of punctuation, with or without a space before it: the longest known pieces.
/// Vocabularies do not always take the longest, which matters in long runs.
fn punctuation_cost(lead: &str, run: &str) -> usize {
    let mut pieces: usize = 0;
    let mut start = 0;
    let mut lead = lead;
    while start < run.len() {
        let rest = run.get(start..).unwrap_or_default();
        let lengths = (2..=rest.len().min(vocabulary::MAX_PUNCTUATION_BYTES)).rev();
        let mut known = lengths.filter_map(|length| rest.get(..length));
        let longest = known.find(|piece| vocabulary::holds_punctuation(lead, piece));
        start += longest.map_or(1, str::len);
        lead = "";
        pieces += 1;
    }
    // Of `(())\`, the vocabularies join `())` first.
    if pieces == 2 && run.len() >= MIN_LONG_PUNCTUATION {
        pieces += 1;
    }
    pieces * UNITS_PER_TOKEN
        + pieces.saturating_sub(MAX_SIMPLE_PUNCTUATION) * SPLIT_PUNCTUATION_COST
}

fn is_common_pair(first: u8, second: u8) -> bool {
    let number = |byte: u8| byte.to_ascii_lowercase().wrapping_sub(b'a');
    FOLLOWER_SETS
        .get(usize::from(number(first)))
        .is_some_and(|followers| followers >> number(second) & 1 == 1)
}

/// Whether a text is a common English word or a common word of source code, in lower case.
pub fn is_common_word(word: &str) -> bool {
    let is_lower = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    is_lower && (vocabulary::holds_word(" ", word) || vocabulary::holds_word("", word))
}

/// An upper estimate of the number of tokens of a text: about a tenth above current vocabularies
/// for answers, prose and code, and not below them for digests, base64, made-up words and other
/// scripts. Only the same made-up syllable many times (`tctctc`) may cost more.
pub fn tokens(text: &str) -> usize {
    let mut units = 0;
    let mut rest = text;
    // A space or a punctuation mark that may form one token with what follows it.
    let mut lead = "";
    let mut before = Kind::Other;
    while !rest.is_empty() {
        let (kind, piece, after_piece) = piece(rest);
        let mixed =
            matches!((before, kind), (Kind::Digits, Kind::Word) | (Kind::Word, Kind::Digits));
        units += if mixed { DIGIT_LETTER_COST } else { 0 };
        let alone = if lead.is_empty() { 0 } else { UNITS_PER_TOKEN };
        let joins = if lead == " " { 0 } else { alone };
        let mut next = "";
        units += match kind {
            Kind::Word => word_cost(lead, piece),
            Kind::Digits => alone + piece.len().div_ceil(DIGITS_PER_TOKEN) * UNITS_PER_TOKEN,
            Kind::Punctuation if piece.len() == 1 && lead != " " => {
                next = piece;
                alone
            }
            Kind::Punctuation => {
                joins + punctuation_cost(if lead == " " { lead } else { "" }, piece)
            }
            Kind::Whitespace => {
                let (run, last) = match piece.strip_suffix(' ') {
                    Some(run) => (run, " "),
                    None => (piece, ""),
                };
                next = last;
                let joined = if run.is_empty() { 0 } else { 1 + run.len() / WHITESPACE_PER_TOKEN };
                alone + joined * UNITS_PER_TOKEN
            }
            Kind::Other => {
                alone + piece.chars().map(vocabulary::char_tokens).sum::<usize>() * UNITS_PER_TOKEN
            }
        };
        (lead, before, rest) = (next, kind, after_piece);
    }
    units += if lead.is_empty() { 0 } else { UNITS_PER_TOKEN };
    units.div_ceil(UNITS_PER_TOKEN)
}
