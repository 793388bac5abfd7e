//! How well the encoder knows the language of a text in Latin script. It was trained on English, and
//! splits the words of other languages into pieces that mean something else.

use whichlang::{Lang, detect_language};

use super::wordpiece::Vocabulary;
use crate::symbols::camel_case;
use ack_api::text::is_common_word;

/// The language that the encoder knows.
pub const LANGUAGE: &str = "English";

/// Shorter words say little: many languages share them.
const MIN_LETTERS: usize = 4;
/// A text of which the encoder knows more is English, or code.
const MAX_FOREIGN_SHARE: f32 = 0.6;
/// The last letter of the Latin blocks.
const LAST_LATIN: char = '\u{24f}';
/// How much of a text is read to recognize its language.
const MAX_BYTES: usize = 2_000;

/// The share of words that the encoder knows, of a text that is not in English; `None` for a text in
/// English, in code, or too short to tell.
///
/// Names and code are often taken for another language, so a text also needs few known words.
pub(super) fn foreign_share(vocabulary: &Vocabulary, text: &str) -> Option<f32> {
    let text = beginning(text);
    let (share, count) = known_share(text, |word| vocabulary.is_word(word));
    let is_foreign = count > 0 && share <= MAX_FOREIGN_SHARE && detect_language(text) != Lang::Eng;
    is_foreign.then_some(share)
}

/// Whether a text is certainly in another language. Common words of source code count as known too,
/// and one word is not enough: it may be a name.
pub(super) fn is_certainly_foreign(vocabulary: &Vocabulary, text: &str) -> bool {
    let is_known = |word: &str| vocabulary.is_word(word) || is_common_word(word);
    let (share, count) = known_share(beginning(text), is_known);
    count > 1 && share <= MAX_FOREIGN_SHARE && foreign_share(vocabulary, text).is_some()
}

/// Whether a character is a letter of another script than Latin.
pub(super) fn is_other_script(c: char) -> bool {
    c > LAST_LATIN && c.is_alphabetic()
}

/// As much of a text as is read to recognize its language.
fn beginning(text: &str) -> &str {
    let end = text.floor_char_boundary(MAX_BYTES);
    text.get(..end).unwrap_or_default()
}

/// The share of known words, in lower case, among the words that are long enough, and their number.
#[expect(clippy::cast_precision_loss, reason = "counts of words")]
fn known_share(text: &str, is_known: impl Fn(&str) -> bool) -> (f32, usize) {
    let runs = text.split(|c: char| !c.is_alphabetic());
    let is_word = |word: &&str| word.chars().nth(MIN_LETTERS - 1).is_some();
    let (mut known, mut count) = (0usize, 0usize);
    for word in runs.flat_map(camel_case).filter(is_word) {
        count += 1;
        known += usize::from(word.is_ascii() && is_known(&word.to_ascii_lowercase()));
    }
    (known as f32 / count.max(1) as f32, count)
}

#[cfg(test)]
mod tests {
    use super::super::Encoder;
    use super::*;

    fn share(text: &str) -> Option<f32> {
        foreign_share(Encoder::embedded().unwrap().vocabulary(), text)
    }

    #[test]
    fn a_text_in_another_language_has_few_known_words() {
        for text in [
            "Datenbankverbindungen brechen nachts ab",
            "Speicherverbrauch",
            "les connexions inactives sont coupées",
            "limite du cache",
            "permisos perdidos tras mover el servidor",
            "anslutningen till databasen bryts på natten",
            "de verbinding met de database valt 's nachts weg",
            "le connessioni al database scadono di notte",
        ] {
            assert!(share(text).is_some_and(|share| share <= 0.6), "{text}");
        }
    }

    #[test]
    fn keywords_and_single_names_are_not_certainly_foreign() {
        let vocabulary = Encoder::embedded().unwrap().vocabulary();
        let is_foreign = |text: &str| is_certainly_foreign(vocabulary, text);
        for text in [
            "python elementtree delete namespace",
            "mongod",
            "fastify?",
            "",
        ] {
            assert!(!is_foreign(text), "{text}");
        }
        for text in [
            "limite du cache",
            "Zertifikat abgelaufen",
            "contraseña olvidada",
        ] {
            assert!(is_foreign(text), "{text}");
        }
    }

    #[test]
    fn english_names_and_code_are_no_other_language() {
        for text in [
            "database connections drop at night",
            "error[E0382]: borrow of moved value",
            "let mut map = HashMap::new(); map.insert(key, value);",
            "kubectl rollout restart deployment",
            "SELECT count(*) FROM users WHERE deleted_at IS NULL",
            "use",
            "",
        ] {
            assert_eq!(share(text), None, "{text}");
        }
    }
}
