//! Text to terms: the same analysis for memories and for queries, so that what is typed meets what was written.
//!
//! A text is cut at white space, brackets, quotes and the like into *chunks*. A chunk with inner punctuation is an
//! *identifier*: it is kept whole (`err_pnpm_outdated_lockfile`, `tokio::select`, `src/store/ack.rs`) and also split into
//! its words. A word in camel case is kept whole and split too. Words are lower-cased, freed of diacritics, dropped if they are stop
//! words and stemmed (Snowball's English stemmer). Scripts without spaces between words (Chinese, Japanese, Thai and
//! others; also Korean) become pairs of neighbouring characters.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Words that say nothing about a text's subject.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before", "being", "but",
    "by", "can", "could", "did", "do", "does", "doing", "dont", "each", "for", "from", "had", "has", "have", "having", "he", "her", "here",
    "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "more", "most", "my", "no", "nor", "not", "of", "on", "only",
    "or", "other", "our", "out", "over", "own", "same", "she", "should", "so", "some", "such", "than", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "those", "through", "to", "too", "under", "until", "up", "us", "use", "used", "using",
    "very", "was", "we", "were", "what", "when", "where", "which", "while", "who", "why", "will", "with", "would", "you", "your",
];

/// Longest word or identifier that is indexed, in bytes; longer ones are noise (encoded data, minified code).
const LONGEST: usize = 120;

/// What a term is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A word, stemmed.
    Word,
    /// An identifier, whole.
    Identifier,
}

/// A piece of text before stemming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    /// Word or identifier.
    pub kind: Kind,
    /// Lower case, normalised.
    pub text: Cow<'a, str>,
}

/// Whether the text is written down or asked for: a question about one ideograph should find it inside words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Text of a memory.
    Document,
    /// Text of a query.
    Query,
}

/// A fixed set of lower-case words.
#[derive(Debug)]
pub struct Words {
    words: &'static [&'static str],
    /// For each first letter, a bit for every length that a word with it has: most strangers are told by that alone.
    lengths: [u32; 26],
}

impl Words {
    /// A set of words, which must be sorted, of `a` to `z` in their first place and shorter than 32 bytes.
    #[expect(clippy::indexing_slicing, reason = "for constants: what does not fit does not compile")]
    pub const fn new(words: &'static [&'static str]) -> Self {
        let mut lengths = [0; 26];
        let mut place = 0;
        while place < words.len() {
            let word = words[place].as_bytes();
            lengths[(word[0] - b'a') as usize] |= 1 << word.len();
            place += 1;
        }
        Self { words, lengths }
    }

    /// Whether a word is in the set.
    pub fn contains(&self, word: &str) -> bool {
        let first = word.bytes().next().map_or(u8::MAX, |byte| byte.wrapping_sub(b'a'));
        let lengths = self.lengths.get(usize::from(first)).copied().unwrap_or_default();
        word.len() < 32 && lengths >> word.len() & 1 == 1 && self.words.binary_search(&word).is_ok()
    }
}

/// Whether a word is a stop word.
pub fn is_stop_word(word: &str) -> bool {
    const STOPS: &Words = &Words::new(STOP_WORDS);
    STOPS.contains(word)
}

/// The stem of a normalised word.
pub fn stem(word: &str) -> Cow<'_, str> {
    thread_local! {
        static STEMMER: Stemmer = Stemmer::create(Algorithm::English);
    }
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    STEMMER.with(|stemmer| Cow::Owned(stemmer.stem(word).into_owned()))
}

/// Whether an identifier is so specific that a memory which holds it is what was asked for: an error code, a path, a
/// qualified name, a flag, a version; not a hyphenated word.
pub fn is_specific(identifier: &str) -> bool {
    let digit = identifier.bytes().any(|byte| byte.is_ascii_digit());
    let letter = identifier.chars().any(char::is_alphabetic);
    let joined = identifier.contains(['_', '/', '\\', ':', '@', '.', '$', '#', '+']);
    (digit && letter) || joined || identifier.starts_with('-') || (identifier.contains('-') && identifier.matches('-').count() > 1)
}

/// Calls `emit` for every token of `text`, in order.
pub fn tokenize<'a>(text: &'a str, side: Side, emit: &mut impl FnMut(Token<'a>)) {
    if text.is_ascii() {
        let separates = |byte: &u8| ASCII_SEPARATORS.get(usize::from(*byte)).copied().unwrap_or(false);
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.as_bytes().iter().position(separates).unwrap_or(rest.len());
            let (raw, behind) = rest.split_at(end);
            ascii_chunk(raw, emit);
            rest = behind.get(1..).unwrap_or_default();
        }
        return;
    }
    for raw in text.split(is_separator) {
        if raw.is_ascii() {
            ascii_chunk(raw, emit)
        } else {
            unicode_chunk(raw, side, emit)
        }
    }
}

/// [`is_separator`] of the first 128 characters.
const ASCII_SEPARATORS: [bool; 128] = {
    let mut table = [false; 128];
    // White space, as Unicode has it, and the rest.
    let mut separators: &[u8] = b"\t\n\x0b\x0c\r ()[]{}<>=\"`,;|";
    while let Some((first, rest)) = separators.split_first() {
        if let Some((_, [place, ..])) = table.split_at_mut_checked(*first as usize) {
            *place = true;
        }
        separators = rest;
    }
    table
};

fn is_separator(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '(' | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '<'
                | '>'
                | '='
                | '"'
                | '`'
                | ','
                | ';'
                | '|'
                | '“'
                | '”'
                | '„'
                | '«'
                | '»'
                | '…'
                | '。'
                | '、'
                | '「'
                | '」'
                | '（'
                | '）'
                | '，'
        )
}

/// A chunk without the punctuation around it.
fn trim(chunk: &str) -> &str {
    let chunk = chunk
        .trim_matches(['\'', '*', '!', '?', ':', '~', '^', '&', '’', '‘'])
        .trim_end_matches(['.', '/', '\\', '-']);
    let chunk = chunk.strip_prefix("./").unwrap_or(chunk);
    chunk.trim_matches(['\'', '*', '!', '?', ':'])
}

fn ascii_chunk<'a>(raw: &'a str, emit: &mut impl FnMut(Token<'a>)) {
    // Most of a text: nothing to trim, to split or to write in lower case.
    if !raw.is_empty() && raw.len() <= LONGEST && raw.bytes().all(|byte| byte.is_ascii_lowercase()) {
        emit(Token {
            kind: Kind::Word,
            text: Cow::Borrowed(raw),
        });
        return;
    }
    let chunk = trim(raw);
    if chunk.is_empty() || chunk.len() > LONGEST * 4 {
        return;
    }
    let bytes = chunk.as_bytes();
    let plain = bytes.iter().all(u8::is_ascii_alphabetic);
    if plain {
        camel_word(chunk, emit);
        return;
    }
    let parts = chunk.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let single = chunk.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let numeric = chunk.bytes().all(|byte| byte.is_ascii_digit());
    let possessive = chunk.contains('\'');
    if !possessive && !numeric && !single {
        emit_identifier(chunk, emit);
        // `src/a.rs:42:7` is about `src/a.rs`.
        let place = chunk.trim_end_matches(|c: char| c == ':' || c.is_ascii_digit());
        let bare = if place.len() < chunk.len() && chunk.as_bytes().get(place.len()) == Some(&b':') {
            place
        } else {
            chunk
        };
        // The last part of a path, of a qualified name, of a package with its version.
        let tail = bare.rsplit(['/', '@']).next().unwrap_or(bare);
        let tail = tail.rsplit("::").next().unwrap_or(tail);
        for name in [bare, tail] {
            let whole = name.bytes().any(|byte| !byte.is_ascii_alphanumeric());
            if name.len() > 2 && name.len() < chunk.len() && whole {
                emit_identifier(name, emit);
            }
            if name == tail {
                break;
            }
        }
    }
    let mut first = true;
    for part in parts {
        let digits = part.trim_start_matches(['v', 'V']).bytes().all(|byte| byte.is_ascii_digit());
        // What follows an apostrophe (`s`, `t`, `re`) and lone digits of a version say nothing on their own.
        let useful = single || (part.len() > 1 && !(digits && part.len() < 3)) && (first || !possessive || part.len() > 2);
        if useful {
            camel_word(part, emit);
        }
        first = false;
    }
}

fn word<'a>(part: &'a str, emit: &mut impl FnMut(Token<'a>)) {
    if part.len() <= LONGEST {
        emit(Token {
            kind: Kind::Word,
            text: lower(part),
        });
    }
}

/// A word, and where it is in camel case its parts too.
fn camel_word<'a>(part: &'a str, emit: &mut impl FnMut(Token<'a>)) {
    word(part, emit);
    // Nearly every word is written in one case.
    if !part.bytes().skip(1).any(|byte| byte.is_ascii_uppercase()) {
        return;
    }
    let camel = camel_parts(part);
    if camel.len() > 1 {
        camel
            .into_iter()
            .filter(|piece| piece.len() > 1)
            .for_each(|piece| word(piece, emit));
    }
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

fn emit_identifier<'a>(chunk: &'a str, emit: &mut impl FnMut(Token<'a>)) {
    let bare = chunk.trim_start_matches('-');
    // `-i` keeps its dash, `--frozen-lockfile` meets `frozen-lockfile`, `v1.2.3` meets `1.2.3`.
    let kept = if bare.len() > 1 { bare } else { chunk };
    let kept = match kept.strip_prefix(['v', 'V']) {
        Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.') => version,
        _ => kept,
    };
    if (2..=LONGEST).contains(&kept.len()) {
        emit(Token {
            kind: Kind::Identifier,
            text: lower(kept),
        });
    }
}

/// `useEffect` is `use`, `Effect`; `XMLHttpRequest` is `XML`, `Http`, `Request`; a plain word is itself.
fn camel_parts(word: &str) -> Vec<&str> {
    let bytes = word.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let mut parts = Vec::new();
    let mut start = 0;
    for index in 1..bytes.len() {
        let boundary = at(index).is_ascii_uppercase()
            && (at(index - 1).is_ascii_lowercase() || (at(index - 1).is_ascii_uppercase() && at(index + 1).is_ascii_lowercase()));
        if boundary {
            parts.extend(word.get(start..index));
            start = index;
        }
    }
    parts.extend(word.get(start..));
    // A plural such as `IDs` or `URLs` is no compound.
    if parts.len() == 2 && parts.last().is_some_and(|last| last.len() <= 2) {
        vec![word]
    } else {
        parts
    }
}

/// A chunk with characters beyond ASCII: what lies between those that join no words (ideographs, kana, typographic marks) is
/// looked at on its own, so that an identifier is found within Japanese text and in any quotation marks.
fn unicode_chunk<'a>(raw: &'a str, side: Side, emit: &mut impl FnMut(Token<'a>)) {
    let parts =
        |c: char| !c.is_ascii() && (is_unspaced(c) || !(c.is_alphanumeric() || is_combining_mark(c) || c == '\u{200d}' || c == '\u{200c}'));
    let mut rest = raw;
    while !rest.is_empty() {
        let parting = rest.starts_with(parts);
        let end = rest.find(|c: char| parts(c) != parting).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        if piece.is_ascii() {
            ascii_chunk(piece, emit)
        } else {
            script(piece, side, emit)
        }
    }
}

/// Words and pairs of characters of any script.
fn script<'a>(raw: &str, side: Side, emit: &mut impl FnMut(Token<'a>)) {
    let normal: String = trim(raw).nfkc().flat_map(char::to_lowercase).collect();
    if normal.len() > LONGEST * 200 {
        return;
    }
    let mut run = String::new();
    let mut pairs: Vec<char> = Vec::new();
    let flush_word = |run: &mut String, emit: &mut dyn FnMut(Token<'a>)| {
        if !run.is_empty() {
            // Nothing is left of a word that is nothing but marks.
            let word = if run.len() <= LONGEST { fold(run) } else { String::new() };
            if !word.is_empty() {
                emit(Token {
                    kind: Kind::Word,
                    text: Cow::Owned(word),
                });
            }
            run.clear();
        }
    };
    let flush_pairs = |pairs: &mut Vec<char>, emit: &mut dyn FnMut(Token<'a>)| {
        for pair in pairs.windows(2) {
            emit(Token {
                kind: Kind::Word,
                text: Cow::Owned(pair.iter().collect()),
            });
        }
        if pairs.len() == 1 || side == Side::Document {
            for single in pairs.iter() {
                emit(Token {
                    kind: Kind::Word,
                    text: Cow::Owned(single.to_string()),
                });
            }
        }
        pairs.clear();
    };
    for c in normal.chars() {
        if is_unspaced(c) {
            flush_word(&mut run, emit);
            pairs.push(c);
        } else if c.is_alphanumeric() || (is_combining_mark(c) && !run.is_empty()) {
            flush_pairs(&mut pairs, emit);
            run.push(c);
        } else if c == 'ー' && !pairs.is_empty() {
            pairs.push(c);
        } else if c != '\u{200d}' && c != '\u{200c}' {
            flush_word(&mut run, emit);
            flush_pairs(&mut pairs, emit);
        }
    }
    flush_word(&mut run, emit);
    flush_pairs(&mut pairs, emit);
}

/// A word without diacritics, so that `Größe` meets `grosse` and `naïve` meets `naive`.
fn fold(word: &str) -> String {
    word.replace('ß', "ss").nfd().filter(|c| !is_combining_mark(*c)).nfc().collect()
}

/// Characters of scripts that are written without spaces, or with particles glued on.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str, side: Side) -> Vec<String> {
        let mut out = Vec::new();
        tokenize(text, side, &mut |token| {
            out.push(match token.kind {
                Kind::Word => token.text.into_owned(),
                Kind::Identifier => format!("={}", token.text),
            });
        });
        out
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(tokens(text, Side::Query), expected, "{text}");
    }

    #[test]
    fn identifiers_are_kept_whole_and_split() {
        check(
            "ERR_PNPM_OUTDATED_LOCKFILE",
            &["=err_pnpm_outdated_lockfile", "err", "pnpm", "outdated", "lockfile"],
        );
        check("`tokio::select!`", &["=tokio::select", "tokio", "select"]);
        check("--frozen-lockfile", &["=frozen-lockfile", "frozen", "lockfile"]);
        check("-i", &["=-i"]);
        check("v1.2.3", &["=1.2.3"]);
        check("useEffect(", &["useeffect", "use", "effect"]);
        check("E0382.", &["e0382"]);
        check("./src/store/ack.rs", &["=src/store/ack.rs", "=ack.rs", "src", "store", "ack", "rs"]);
        check("key=value", &["key", "value"]);
        check("error[E0382]:", &["error", "e0382"]);
        check("C", &["c"]);
    }

    #[test]
    fn the_table_of_separators_says_what_the_function_says() {
        for (byte, separates) in (0u8..).zip(ASCII_SEPARATORS) {
            assert_eq!(separates, is_separator(char::from(byte)), "{byte}");
        }
        check("a,b;;c|d\u{b}e (f)", &["a", "b", "c", "d", "e", "f"]);
        check("a,b;;c|d\u{b}e (ß)", &["a", "b", "c", "d", "e", "ss"]);
    }

    #[test]
    fn words_lose_what_is_around_them() {
        check("don't panic!", &["don", "panic"]);
        check("the user's file...", &["the", "user", "file"]);
        check("IDs and URLs", &["ids", "and", "urls"]);
    }

    #[test]
    fn other_scripts_are_found() {
        check("Größe naïve", &["grosse", "naive"]);
        check("データ", &["デー", "ータ"]);
        assert_eq!(tokens("鍵", Side::Query), ["鍵"]);
        assert!(tokens("鍵盤", Side::Document).contains(&"鍵".to_owned()));
        check("שלום", &["שלום"]);
        check("WALファイル", &["wal", "ファ", "ァイ", "イル"]);
    }

    #[test]
    fn a_mark_without_a_letter_is_no_word() {
        check("\u{659} x\u{659}y \u{64b}\u{659}", &["xy"]);
    }

    #[test]
    fn stop_words_are_sorted_for_the_search_in_them() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("the") && !is_stop_word("lock"));
    }

    #[test]
    fn specific_identifiers_are_told_from_hyphenated_words() {
        for specific in ["e0382", "tokio::select", "src/a.rs", "1.2.3", "err_x", "-i"] {
            assert!(is_specific(specific), "{specific}");
        }
        for ordinary in ["re-run", "built-in", "useeffect"] {
            assert!(!is_specific(ordinary), "{ordinary}");
        }
    }
}
