//! The letters of a text without what only changes how they look.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A text with plain characters: no full-width or mathematical letters, ligatures, typographic
/// hyphens, nor characters that cannot be seen, as text copied from web pages has them.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.contains(|c| !matches!(plain_char(c), Plain::Same)) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match plain_char(c) {
            Plain::Same => plain.push(c),
            Plain::Nothing => {}
            Plain::Hyphen => plain.push('-'),
            Plain::Decomposed => plain.extend(std::iter::once(c).nfkc()),
        }
    }
    Cow::Owned(plain)
}

enum Plain {
    Same,
    Nothing,
    Hyphen,
    /// Its compatibility decomposition (Unicode Standard Annex 15, NFKC).
    Decomposed,
}

const fn plain_char(c: char) -> Plain {
    match c {
        '\0'..='\u{ac}' => Plain::Same,
        // Soft hyphen, zero-width space, word joiner and byte order mark. Joiners stay: several
        // scripts need them.
        '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' => Plain::Nothing,
        '\u{2010}' | '\u{2011}' | '\u{2212}' | '\u{fe63}' | '\u{ff0d}' => Plain::Hyphen,
        '\u{fb00}'..='\u{fb06}' | '\u{ff01}'..='\u{ffef}' | '\u{1d400}'..='\u{1d7ff}' => {
            Plain::Decomposed
        }
        _ => Plain::Same,
    }
}

/// A lower-case word without diacritics: `größe` is `grosse`.
pub fn strip_diacritics(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    for c in word.chars() {
        match folded(c) {
            Some(letters) => plain.push_str(letters),
            None => plain.extend(std::iter::once(c).nfd().filter(|c| !is_combining_mark(*c))),
        }
    }
    plain.nfc().collect()
}

/// Letters that Unicode does not decompose, or that are letters of their own.
const fn folded(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'ı' => "i",
        // Not a diacritic: `й` and `и` are different letters.
        'й' => "й",
        _ => return None,
    })
}
