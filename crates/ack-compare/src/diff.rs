//! What changed between two texts, word by word.

use serde::Serialize;
use similar::{Algorithm, ChangeTag, TextDiff};
use unicode_segmentation::UnicodeSegmentation;

/// How many words of each text are compared. The rest is left out.
const MAX_WORDS: usize = 4_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffPart {
    pub side: DiffSide,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffSide {
    Both,
    Older,
    Newer,
}

/// The difference of two texts, in reading order. Where words differ, those of the older text come
/// first. Only the first 4,000 words of a long text are compared.
pub fn words(older: &str, newer: &str) -> Vec<DiffPart> {
    let (older, newer) = (split(older), split(newer));
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).diff_slices(&older, &newer);
    let mut parts: Vec<DiffPart> = Vec::new();
    for change in diff.iter_all_changes() {
        let side = match change.tag() {
            ChangeTag::Equal => DiffSide::Both,
            ChangeTag::Delete => DiffSide::Older,
            ChangeTag::Insert => DiffSide::Newer,
        };
        match parts.last_mut().filter(|last| last.side == side) {
            Some(last) => last.text.push_str(change.value()),
            None => parts.push(DiffPart { side, text: change.value().to_owned() }),
        }
    }
    parts
}

fn split(text: &str) -> Vec<&str> {
    text.split_word_bounds().take(2 * MAX_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(older: &str, newer: &str) -> String {
        let parts = words(older, newer).into_iter().map(|part| match part.side {
            DiffSide::Both => part.text,
            DiffSide::Older => format!("[-{}-]", part.text),
            DiffSide::Newer => format!("{{+{}+}}", part.text),
        });
        parts.collect()
    }

    #[test]
    fn a_changed_word_is_shown_with_the_older_one_first() {
        assert_eq!(
            marked("retry after 30 seconds", "retry after 60 seconds"),
            "retry after [-30-]{+60+} seconds"
        );
        assert_eq!(marked("a b", "a b c"), "a b{+ c+}");
        assert_eq!(marked("", ""), "");
    }

    #[test]
    fn both_texts_can_be_rebuilt_from_their_difference() {
        let (older, newer) = ("Порт 8080, nicht 80.\n", "Порт 9090.\n\nNeu: 東京");
        let side = |excluded| -> String {
            let texts = words(older, newer).into_iter().filter(|part| part.side != excluded);
            texts.map(|part| part.text).collect()
        };
        assert_eq!(side(DiffSide::Newer), older);
        assert_eq!(side(DiffSide::Older), newer);
    }
}
