//! The first sentence of a text, as a title for it.

use super::has_word;

/// Words that a full stop belongs to.
const ABBREVIATIONS: &str = "e.g. i.e. etc. vs. cf. approx. incl. no. resp. z.b. d.h. bzw.";

/// The first sentence of a text in one line, and whether it is the whole text. It ends at a full
/// stop or the like that white space follows, or at an empty line. One of more than `cap`
/// characters is cut at a word and ends in `…`.
pub fn first_sentence(text: &str, cap: usize) -> (String, bool) {
    let mut sentence = String::new();
    let mut length = 0;
    let lines = text.trim().lines().map(str::trim);
    for word in lines.take_while(|line| !line.is_empty()).flat_map(str::split_whitespace) {
        // Chinese and Japanese have no space after a sentence.
        let end = word.find(['。', '！', '？']).map(|at| at + '。'.len_utf8());
        let (word, is_cut) = match end.filter(|end| *end < word.len()) {
            Some(end) => (word.get(..end).unwrap_or(word), true),
            None => (word, false),
        };
        let lead = usize::from(!sentence.is_empty());
        let chars = word.chars().count();
        if length + lead + chars > cap {
            let room = cap.saturating_sub(length + lead + 1);
            // A word that fills a line alone is cut within.
            if sentence.is_empty() {
                sentence.extend(word.chars().take(room));
            }
            sentence.push('…');
            return (sentence, false);
        }
        if lead == 1 {
            sentence.push(' ');
        }
        sentence.push_str(word);
        length += lead + chars;
        if is_cut || ends_sentence(word) {
            break;
        }
    }
    let is_whole = text.split_whitespace().eq(sentence.split_whitespace());
    (sentence, is_whole)
}

pub fn ends_sentence(word: &str) -> bool {
    let bare = word.trim_end_matches(['"', '\'', ')', '”', '’', '`', '*', '_']);
    if bare.ends_with(['!', '?', '。', '！', '？']) {
        return true;
    }
    // `J. Doe`, `1. First`.
    let letters = bare.chars().filter(|c| c.is_alphanumeric()).count();
    bare.ends_with('.')
        && letters > 1
        && !has_word(ABBREVIATIONS, &bare.trim_start_matches(['(', '"', '*', '_']).to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_where_a_reader_would_stop() {
        for (text, expected, is_whole) in [
            ("Use pnpm. Never npm.", "Use pnpm.", false),
            ("Use pnpm, e.g. here\nin CI", "Use pnpm, e.g. here in CI", true),
            ("Needs v1.2 (not 1.3.) to run!\nYes", "Needs v1.2 (not 1.3.)", false),
            ("No end\n\nNext paragraph", "No end", false),
            ("火曜日は休み。水曜日も。", "火曜日は休み。", false),
            ("By J. Doe", "By J. Doe", true),
            ("  ", "", true),
        ] {
            let found = first_sentence(text, 100);
            assert_eq!((found.0.as_str(), found.1), (expected, is_whole), "{text}");
        }
        assert_eq!(first_sentence("one two three", 9), ("one two…".to_owned(), false));
        assert_eq!(first_sentence("abcdefghij", 5), ("abcd…".to_owned(), false));
    }
}
