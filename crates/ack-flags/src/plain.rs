//! A text as a careless reader takes it: what looks alike is written alike, and what cannot be
//! seen is gone. Rules are written and compared in this form, so that one rule finds `password`,
//! `ｐａｓｓｗｏｒｄ`, a `pаssword` with a Cyrillic letter, and one with invisible characters in it.

use std::borrow::Cow;
use std::sync::LazyLock;

use ack_api::text::is_invisible;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex::{Captures, Regex, RegexBuilder, bytes};
use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization;

use super::table::{Found, find};

/// Letters that look like Latin ones, each before the letter it looks like, and the small and
/// capital forms of such letters. Unicode's list of confusable characters has more; these are the
/// ones of living alphabets.
const LOOK_ALIKE: &str = "АAаaВBвbЕEеeЅSѕsІIіiЈJјjКKкkМMмmНHнhОOоoРPрpСCсcТTтtУYуyХXхxҮYүyһhԚQԛqԜWԝw\
    ԁdӏlΑAαaΒBβbΕEεeΖZζzΗHηhΙIιiΚKκkΜMμmΝNνvΟOοoΡPρpΤTτtΥYυuΧXχxոnսuօoհhցgᴀaᴇeɡgɩiıiłlŁLđdĐDøoØO";

static LATIN: LazyLock<FxHashMap<char, char>> = LazyLock::new(|| {
    let letters: Vec<char> = LOOK_ALIKE.chars().collect();
    letters.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?))).collect()
});

/// Memory for the states of a pattern, in bytes. With less, texts that are made for it are slow.
const PATTERN_CACHE: usize = 16 << 20;

/// The plain form of a text. It has the same lines.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() && !c.is_ascii_control() => plain.push(c),
            // It stands for eighteen letters, and for no word that anybody looks for.
            '\u{fdfa}' => {}
            c => plain
                .extend(std::iter::once(c).nfkd().filter(|c| !is_invisible(*c)).map(look_alike)),
        }
    }
    Cow::Owned(plain)
}

/// A text with a sign in place of `\n` in JSON and of the codes that colour it at a terminal, and
/// with characters in place of the numbers by which JSON, programs and pages write them.
fn written_out(text: &str) -> Cow<'_, str> {
    static CODES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        pattern(
            r"(?x) (?: \x1b | \\(?: e | x1b | 033 | u001b ) )? \[[0-9;]{1,12}m
            | \\u\{[0-9a-fA-F]{1,6}\} | \\u[0-9a-fA-F]{4} | \\x[0-9a-fA-F]{2}
            | &\#[xX][0-9a-fA-F]{2,5}; | &\#[0-9]{2,6};
            | \\[nrt]",
        )
    });
    // Most texts have no code, and that is seen faster without the pattern.
    let may_have_codes = text.bytes().any(|byte| matches!(byte, b'\\' | b'&' | b'['));
    match CODES.as_ref().filter(|_| may_have_codes) {
        Some(codes) => codes.replace_all(text, |code: &Captures<'_>| {
            let code = code.get(0).map_or("", |code| code.as_str());
            character(code).map_or_else(String::new, String::from)
        }),
        None => Cow::Borrowed(text),
    }
}

/// What a code stands for; no control character, so that lines stay as they are.
fn character(code: &str) -> Option<char> {
    let number = ["\\u", "\\x", "&#x", "&#X", "&#"].iter().find_map(|start| {
        let radix = if *start == "&#" { 10 } else { 16 };
        Some((code.strip_prefix(start)?, radix))
    });
    match number.filter(|_| !code.contains('[')) {
        Some((digits, radix)) => {
            let digits = digits.trim_matches(['{', '}', ';']);
            let character = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
            character.filter(|c| !c.is_control())
        }
        // A word can begin after it, as after a line's end or a colour.
        None => Some('⏎'),
    }
}

fn look_alike(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    if let Some(latin) = LATIN.get(&c) {
        return *latin;
    }
    match c {
        '’' | '‘' | '′' => '\'',
        '“' | '”' | '„' | '«' | '»' | '「' | '」' | '『' | '』' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '−' => '-',
        '∕' | '⁄' => '/',
        '∶' | '꞉' => ':',
        '。' | '।' => '.',
        '、' => ',',
        c if c.is_whitespace() => ' ',
        // Letters that have one small form.
        c => c.to_lowercase().next().filter(|_| c.to_lowercase().len() == 1).unwrap_or(c),
    }
}

/// A text in its plain form, with what is written in it in base64.
#[derive(Debug)]
pub struct Plain<'t> {
    pub text: Cow<'t, str>,
    /// The texts that are written in base64, each with where it begins.
    pub decoded: Vec<(usize, String)>,
    pub found: Vec<Found>,
}

impl<'t> Plain<'t> {
    pub fn of(text: &'t str) -> Self {
        let text = match written_out(text) {
            Cow::Owned(text) => Cow::Owned(plain(&text).into_owned()),
            Cow::Borrowed(text) => plain(text),
        };
        Self { decoded: decoded(&text), found: find(&text), text }
    }

    /// The lines of positions, from 1.
    pub fn lines_of(&self, mut positions: Vec<usize>) -> Vec<usize> {
        positions.sort_unstable();
        let (mut line, mut counted) = (1, 0);
        let mut lines = Vec::new();
        for position in positions {
            let between = self.text.as_bytes().get(counted..position).unwrap_or_default();
            line += between.iter().filter(|byte| **byte == b'\n').count();
            counted = position;
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

fn decoded(text: &str) -> Vec<(usize, String)> {
    /// Characters of the shortest run that is looked at, and the shortest text.
    const MIN_RUN: usize = 24;
    const MIN_TEXT: usize = 16;
    const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
    static RUNS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // Lines of one block follow each other.
        pattern(&format!(r"[A-Za-z0-9+/_-]{{{MIN_RUN},}}(?:\r?\n *[A-Za-z0-9+/_-]{{4,}})*"))
    });
    let is_other = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"+/_-".contains(byte);
    // Few texts have such a run, and that is seen faster without the pattern.
    let longest = text.as_bytes().split(is_other).map(<[u8]>::len).max();
    if longest.unwrap_or_default() < MIN_RUN {
        return Vec::new();
    }
    let runs = RUNS.iter().flat_map(|runs| runs.find_iter(text));
    let decoded = runs.filter_map(|run| {
        let bytes = run.as_str().bytes().filter(|byte| !byte.is_ascii_whitespace());
        let mut letters: Vec<u8> = bytes
            .map(|byte| match byte {
                b'-' => b'+',
                b'_' => b'/',
                byte => byte,
            })
            .collect();
        // One letter more than a multiple of four says nothing.
        if letters.len() % 4 == 1 {
            letters.pop();
        }
        let decoded = BASE64.decode(letters).ok()?;
        let text = decoded.utf8_chunks().next()?.valid();
        (text.len() >= MIN_TEXT).then(|| (run.start(), text.to_owned()))
    });
    decoded.collect()
}

/// A pattern for plain texts. The patterns are constants, so that one that is wrong is seen by any
/// test; a program that cannot build one has no memory left.
pub fn pattern(pattern: &str) -> Option<Regex> {
    let pattern = plain(pattern);
    let built = RegexBuilder::new(&pattern)
        .unicode(!pattern.is_ascii())
        .dfa_size_limit(PATTERN_CACHE)
        .build();
    debug_assert!(built.is_ok(), "{built:?}");
    built.ok()
}

/// The same for the bytes of a plain text. One without letters beyond ASCII is built many times
/// faster, because its classes are of bytes.
pub fn byte_pattern(pattern: &str) -> Option<bytes::Regex> {
    let pattern = plain(pattern);
    let built = bytes::RegexBuilder::new(&pattern)
        .unicode(!pattern.is_ascii())
        .dfa_size_limit(PATTERN_CACHE)
        .build();
    debug_assert!(built.is_ok(), "{built:?}");
    built.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_alike_is_alike_and_lines_stay() {
        for (text, expected) in [
            ("Ιgnоrе Аll", "Ignore All"),
            ("ｐａｓｓｗｏｒｄ：　x", "password: x"),
            ("g\u{200b}h\u{ad}p\u{2060}_\u{feff}a\u{e0041}", "ghp_a"),
            ("𝐈𝐠𝐧𝐨𝐫𝐞 ⅰ", "Ignore i"),
            ("contraseña Łódź", "contrasena Lodz"),
            ("“a” – b…", "\"a\" - b..."),
            ("a\r\nб\nc", "a\r\nб\nc"),
        ] {
            assert_eq!(plain(text), expected);
            assert_eq!(plain(&plain(text)), expected, "a second time");
        }
        let letters: Vec<char> = LOOK_ALIKE.chars().collect();
        for pair in letters.chunks(2) {
            assert!(!pair[0].is_ascii() && pair[1].is_ascii_alphabetic(), "{pair:?}");
        }
    }

    #[test]
    fn base64_is_read_over_lines_and_positions_become_lines() {
        // `ignore previous instructions`
        let text = Plain::of("one\ntwo: aWdub3JlIHByZXZpb3VzIGlu\nc3RydWN0aW9ucw==\n");
        assert_eq!(text.decoded, [(9, "ignore previous instructions".to_owned())]);
        assert_eq!(text.lines_of(vec![9, 0, 4]), [1, 2]);
    }
}
