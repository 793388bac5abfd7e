//! Text without what only changes how it looks: full-width and mathematical letters, ligatures,
//! typographic hyphens, and characters that cannot be seen, as text copied from web pages has them.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// What stands for a character.
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

/// A text with plain characters.
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

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_only_changes_the_look_of_a_text_is_dropped() {
        for (text, expected) in [
            ("con\u{ad}fig\u{200b}uration", "configuration"),
            ("ＥＲＲ＿ＰＮＰＭ", "ERR_PNPM"),
            ("no\u{2011}cache", "no-cache"),
            ("ｺﾝﾃﾅ", "コンテナ"),
            (
                "e\u{fb03}cient \u{1d5ef}\u{1d5fc}\u{1d5f9}\u{1d5f1}",
                "efficient bold",
            ),
            ("x² — “Größe”…", "x² — “Größe”…"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
