//! How well the encoder knows the language of a text in Latin script. It was trained on English, and
//! splits the words of other languages into pieces that mean something else.

use whichlang::{Lang, detect_language};

use super::wordpiece::Vocabulary;
use crate::symbols::camel_case;

/// Shorter words say little: many languages share them.
const MIN_LETTERS: usize = 4;
/// A text of which the encoder knows more is English, or code.
const MAX_FOREIGN_SHARE: f32 = 0.6;
/// How much of a text is read to recognize its language.
const MAX_BYTES: usize = 2_000;

/// The share of words that the encoder knows, of a text that is not in English; `None` for a text in
/// English, in code, or too short to tell.
///
/// Names and code are often taken for another language, so a text also needs few known words.
#[expect(clippy::cast_precision_loss, reason = "counts of words")]
pub(super) fn foreign_share(vocabulary: &Vocabulary, text: &str) -> Option<f32> {
    let text = text
        .get(..text.floor_char_boundary(MAX_BYTES))
        .unwrap_or_default();
    let runs = text.split(|c: char| !c.is_alphabetic());
    let is_word = |word: &&str| word.chars().nth(MIN_LETTERS - 1).is_some();
    let is_known = |word: &str| word.is_ascii() && vocabulary.is_word(&word.to_ascii_lowercase());
    let (mut known, mut count) = (0usize, 0usize);
    for word in runs.flat_map(camel_case).filter(is_word) {
        count += 1;
        known += usize::from(is_known(word));
    }
    let share = known as f32 / count.max(1) as f32;
    let is_foreign = count > 0 && share <= MAX_FOREIGN_SHARE && detect_language(text) != Lang::Eng;
    is_foreign.then_some(share)
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
