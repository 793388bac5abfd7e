//! Estimates the number of tokens of a text without a vocabulary.
//!
//! Byte-pair vocabularies have a token for most words of ordinary text and code. They split
//! anything unusual into pieces of one to three bytes: digests, base64, names in other languages.
//! The letters show which it is: no token spans two letters that rarely follow each other.
//! `tests/it/tokens.rs` compares the estimate with real vocabularies.

/// One token in the units of this estimate.
const UNITS_PER_TOKEN: usize = 4;
/// The cost of two letters that rarely follow each other.
const RARE_PAIR_COST: usize = 3;
/// The cost of a digit next to a letter.
const DIGIT_LETTER_COST: usize = 2;
/// Longer lower case words are split into shorter tokens.
const MAX_SHORT_WORD: usize = 8;
/// How many spaces make one token.
const BLANKS_PER_TOKEN: usize = 32;

/// For each letter, the letters that often follow it in English and in source code.
/// See `docs/benchmarks.md#tokens`.
const FOLLOWERS: [u32; 26] = [
    set(b"bcdfgiklmnprstuvy"),
    set(b"aeijloruy"),
    set(b"aehiklorstu"),
    set(b"adeilorsuy"),
    set(b"abcdefgilmnpqrstvwxy"),
    set(b"aefilnortu"),
    set(b"aehilnorsu"),
    set(b"aeiortuy"),
    set(b"abcdefgklmnoprstvxz"),
    set(b"bes"),
    set(b"eis"),
    set(b"adefijlostuy"),
    set(b"abeilmopsu"),
    set(b"acdefgiklnopstuvwy"),
    set(b"abcdefgijklmnoprstuvw"),
    set(b"aeiloprstuy"),
    set(b"lu"),
    set(b"acdegiklmnorstuvy"),
    set(b"acehiklopqstuy"),
    set(b"acdeghilmoprstuwy"),
    set(b"abcdefgilmnprst"),
    set(b"aei"),
    set(b"aehinors"),
    set(b"acipt"),
    set(b"nopst"),
    set(b"ei"),
];

const fn set(letters: &[u8]) -> u32 {
    let (mut set, mut remaining) = (0, letters);
    while let Some((letter, tail)) = remaining.split_first() {
        set |= 1 << (*letter - b'a');
        remaining = tail;
    }
    set
}

/// What a run of characters consists of. A capital and the lower case letters after it are lower
/// case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    Other,
}

/// The current run.
struct Run {
    kind: Kind,
    length: usize,
    /// How many of its letter pairs are rare.
    rare_pairs: usize,
    last: u8,
}

impl Run {
    const fn cost(&self) -> usize {
        let min_tokens = match self.kind {
            Kind::Other => 0,
            Kind::Lower if self.length <= MAX_SHORT_WORD => self.length.div_ceil(4),
            Kind::Lower | Kind::Upper | Kind::Digit => self.length.div_ceil(3),
        };
        min_tokens * UNITS_PER_TOKEN + self.rare_pairs * RARE_PAIR_COST
    }

    /// Adds a letter or digit and returns the cost of the runs that it ends.
    fn push(&mut self, byte: u8, kind: Kind) -> usize {
        let mut ended = 0;
        let begins_word = self.kind == Kind::Upper && kind == Kind::Lower;
        if self.kind == kind || begins_word {
            if begins_word && self.length > 1 {
                // The last capital belongs to the word: `HTTPServer`.
                self.length -= 1;
                ended = self.cost();
                (self.length, self.rare_pairs) = (1, 0);
            }
            self.kind = kind;
            self.length += 1;
            self.rare_pairs += usize::from(kind != Kind::Digit && !is_common_pair(self.last, byte));
        } else {
            let mixed =
                self.kind != Kind::Other && (self.kind == Kind::Digit || kind == Kind::Digit);
            ended = self.cost() + if mixed { DIGIT_LETTER_COST } else { 0 };
            (self.kind, self.length, self.rare_pairs) = (kind, 1, 0);
        }
        self.last = byte;
        ended
    }

    /// Ends the run and returns its cost.
    const fn end(&mut self) -> usize {
        let cost = self.cost();
        (self.kind, self.length, self.rare_pairs) = (Kind::Other, 0, 0);
        cost
    }
}

/// Whether two letters often follow each other, in any case.
fn is_common_pair(first: u8, second: u8) -> bool {
    let number = |byte: u8| byte.to_ascii_lowercase().wrapping_sub(b'a');
    FOLLOWERS
        .get(usize::from(number(first)))
        .is_some_and(|followers| followers >> number(second) & 1 == 1)
}

/// An upper estimate of the number of tokens of a text: somewhat above current vocabularies for
/// prose and code, and not below them for digests, base64 and other scripts. Only a text that
/// consists entirely of rare ideographs or syllables costs more.
pub fn tokens(text: &str) -> usize {
    let mut total = 0;
    let mut blanks = 0;
    let mut run = Run {
        kind: Kind::Other,
        length: 0,
        rare_pairs: 0,
        last: 0,
    };
    for c in text.chars() {
        if c == ' ' {
            total += run.end();
            blanks += 1;
            continue;
        }
        let kind = match c {
            'a'..='z' => Kind::Lower,
            'A'..='Z' => Kind::Upper,
            '0'..='9' => Kind::Digit,
            _ => Kind::Other,
        };
        // A single space belongs to the word or sign after it, but not to a number and rarely to a
        // word in another script.
        if blanks > 1 || (blanks == 1 && (kind == Kind::Digit || !c.is_ascii())) {
            total += (1 + blanks / BLANKS_PER_TOKEN) * UNITS_PER_TOKEN;
        }
        blanks = 0;
        total += match u8::try_from(c) {
            Ok(byte) if kind != Kind::Other => run.push(byte, kind),
            _ => run.end() + char_tokens(c) * UNITS_PER_TOKEN,
        };
    }
    total += run.end()
        + if blanks > 0 {
            (1 + blanks / BLANKS_PER_TOKEN) * UNITS_PER_TOKEN
        } else {
            0
        };
    total.div_ceil(UNITS_PER_TOKEN)
}

/// The tokens of a character that is not an ASCII letter or digit.
const fn char_tokens(c: char) -> usize {
    match c {
        // Scripts that vocabularies hardly cover.
        '\u{f00}'..='\u{18af}' => 3,
        _ if c.len_utf8() == 4 => 3,
        _ => c.len_utf8().div_ceil(2),
    }
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn ordinary_words_cost_little_and_what_no_vocabulary_knows_much() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens("the"), 1);
        assert_eq!(tokens("hello"), 2);
        assert_eq!(tokens("128 + 9"), 4);
        assert!(tokens("HTTPServer") <= 4);
        assert!(tokens("qxzvkjwq") >= 6);
        assert!(tokens("3f9a7c01") >= 6);
        assert!(tokens("データベース") >= 6);
        assert!(tokens("{\"id\":\"x\"}") >= 7);
        assert_eq!(tokens(&" ".repeat(40)), 2);
    }
}
