//! Words with diacritics. Each is a term without them, so `Größe` matches `grosse` and `naïve`
//! matches `naive`. It is a second term in its exact spelling, in which German umlauts are written
//! with `e`: so `Größe` also matches `Groesse`, and a question with `año` prefers `año` to `ano`.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

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

/// How people write a letter whose diacritic they cannot type.
const fn spelt_out(c: char) -> Option<&'static str> {
    Some(match c {
        'ä' | 'æ' => "ae",
        'ö' | 'œ' | 'ø' => "oe",
        'ü' => "ue",
        'å' => "aa",
        'ß' => "ss",
        _ => return None,
    })
}

/// Strips the diacritics of a lower-case word.
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

/// The exact spelling of a lower-case word in Latin letters, if it differs from the word without
/// diacritics.
pub fn exact_spelling(word: &str) -> Option<String> {
    let is_accented = |c: char| matches!(c, 'à'..='ɏ' | 'ḁ'..='ỿ');
    if !word.contains(is_accented) {
        return None;
    }
    let mut exact = String::with_capacity(word.len() + 2);
    for c in word.chars() {
        match spelt_out(c) {
            Some(letters) => exact.push_str(letters),
            None => exact.push(c),
        }
    }
    (exact != strip_diacritics(word)).then_some(exact)
}

/// The words of a text that have an exact spelling, in lower case, with that spelling.
pub fn exact_spellings(text: &str) -> impl Iterator<Item = (String, String)> {
    let words = text.split(|c: char| !c.is_alphanumeric() && !is_combining_mark(c));
    words.filter(|word| !word.is_ascii()).filter_map(|word| {
        let word: String = word.nfkc().flat_map(char::to_lowercase).collect();
        let exact = exact_spelling(&word)?;
        Some((word, exact))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diacritics_are_stripped_and_letters_are_kept() {
        for (word, plain) in [
            ("größe", "grosse"),
            ("naïve", "naive"),
            ("smørrebrød", "smorrebrod"),
            ("łódź", "lodz"),
            ("ångström", "angstrom"),
            ("новый", "новый"),
            ("ёлка", "елка"),
        ] {
            assert_eq!(strip_diacritics(word), plain);
        }
    }

    #[test]
    fn the_exact_spelling_keeps_words_apart_and_writes_umlauts_with_e() {
        for (word, exact) in [
            ("größe", Some("groesse")),
            ("grösse", Some("groesse")),
            ("große", None),
            ("straße", None),
            ("año", Some("año")),
            ("naïve", Some("naïve")),
            ("smørrebrød", Some("smoerrebroed")),
            ("ano", None),
            ("новый", None),
            ("שלום", None),
        ] {
            assert_eq!(exact_spelling(word).as_deref(), exact, "{word}");
        }
        let found: Vec<(String, String)> = exact_spellings("El AÑO, die „Größe“ (x)").collect();
        let expected = [("año", "año"), ("größe", "groesse")];
        assert!(
            found
                .iter()
                .map(|(a, b)| (a.as_str(), b.as_str()))
                .eq(expected)
        );
    }
}
