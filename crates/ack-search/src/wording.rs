//! What a memory says, word for word: whether one memory contains another one whole.
//!
//! A memory is hidden behind another one only if that one contains it. Likeness does not count,
//! because the most similar texts are often opposites: `from staging to production` and `from
//! production to staging` have the same words. So whole statements (a title, a sentence, an item of
//! a list) are compared, in their order: `do not raise the limit` does not contain `raise the
//! limit`. The title has to be the same: `Rejected ideas` says something about all that follows.
//! White space, punctuation, the first letter's case and the form of a Unicode character do not
//! count. Case elsewhere does: `10 Mb` is not `10 MB`, nor `git branch -d` `git branch -D`.

use std::borrow::Cow;
use std::sync::OnceLock;

use ack_api::memory::Memory;
use ack_api::text::ends_sentence;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::analysis::letters::plain;

/// A memory with a longer text neither contains another one nor is contained in one.
const MAX_BYTES: usize = 64 << 10;
const SEPARATOR: &str = "\0";
const PUNCTUATION: [char; 6] = ['.', ',', ';', ':', '!', '\''];

/// The statements of a memory, and the files that it is about.
#[derive(Debug)]
pub struct Wording {
    /// The texts, the title first, with a separator between them.
    texts: String,
    /// One statement a line. Most texts are compared without them.
    statements: OnceLock<String>,
    files: Vec<String>,
}

impl Wording {
    pub fn of(memory: &Memory) -> Self {
        let mut texts: Vec<&str> = memory.texts().collect();
        if texts.iter().map(|text| text.len()).sum::<usize>() > MAX_BYTES {
            texts.clear();
        }
        Self { files: memory.files.clone(), ..Self::of_texts(&texts) }
    }

    /// The wording of texts; the first one is the title.
    pub fn of_texts(texts: &[&str]) -> Self {
        Self {
            texts: plain(&texts.join(SEPARATOR)).into_owned(),
            statements: OnceLock::new(),
            files: Vec::new(),
        }
    }

    /// Whether it has the title of the other memory and then every statement of it, in the same
    /// order, and all of its files. Equal memories contain each other.
    pub fn contains(&self, other: &Self) -> bool {
        if !other.title_words().all(|word| self.texts.contains(word)) {
            return false;
        }
        let (own, others) = (self.statements(), other.statements());
        let mut own = own.lines();
        let title = own.next();
        let mut others = others.lines();
        title.is_some()
            && others.next() == title
            && others.all(|statement| own.any(|known| known == statement))
            && other.files.iter().all(|file| self.files.contains(file))
    }

    /// The words of the title that normalization leaves as they are, each without its first letter:
    /// at the beginning of a statement, its case does not count.
    fn title_words(&self) -> impl Iterator<Item = &str> {
        let title = self.texts.split(SEPARATOR).next().unwrap_or_default();
        title
            .split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric())
            .filter(|word| word.is_ascii())
            .filter_map(|word| word.get(1..))
    }

    fn statements(&self) -> &str {
        self.statements.get_or_init(|| {
            let mut writer = Writer::default();
            self.texts.split(SEPARATOR).for_each(|text| writer.text(text));
            writer.statements
        })
    }
}

/// Writes statements without what does not count.
#[derive(Default)]
struct Writer {
    statements: String,
    start: usize,
    /// What introduces the list that is being read.
    lead: String,
}

impl Writer {
    fn text(&mut self, text: &str) {
        let text = normalized(text);
        for line in text.lines().map(str::trim_start) {
            // A line without a mark continues the sentence of the line before.
            let unmarked = without_mark(line);
            let is_marked = unmarked.len() < line.len() || is_item(line);
            if is_marked || line.is_empty() {
                self.end();
            }
            // `Never do this:` is said of each item.
            if is_marked && !line.starts_with('#') {
                let lead = std::mem::take(&mut self.lead);
                self.push(&lead);
                self.lead = lead;
            } else if !line.is_empty() {
                self.lead.clear();
            }
            for chunk in unmarked.split_whitespace() {
                // Most words need no second look.
                if chunk.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                    self.push(chunk);
                    continue;
                }
                chunk.split(is_bracket).for_each(|piece| self.word(piece));
                if ends_sentence(chunk.trim_end_matches(is_closing)) {
                    self.end();
                }
            }
            if unmarked.trim_end_matches(is_closing).ends_with([':', '：']) && !is_marked {
                let lead = self.statements.get(self.start..).unwrap_or_default();
                lead.clone_into(&mut self.lead);
            }
            if line.starts_with('#') {
                self.end();
            }
        }
        self.end();
        self.lead.clear();
    }

    fn word(&mut self, piece: &str) {
        if ["-", "–", "—", "**"].contains(&piece) {
            return;
        }
        let word = without_emphasis(piece.trim_start_matches('\'')).trim_end_matches(PUNCTUATION);
        let is_question = word.ends_with('?');
        let word = word.trim_end_matches('?');
        // `cd ..`
        let is_dots = word.is_empty() && piece.starts_with('.');
        self.push(if is_dots { piece } else { word });
        if is_question {
            self.push("?");
        }
    }

    fn push(&mut self, word: &str) {
        let mut letters = word.chars();
        if self.statements.len() > self.start && !word.is_empty() {
            self.statements.push(' ');
        } else if let Some(first) = letters.next() {
            self.statements.extend(first.to_lowercase());
        }
        self.statements.push_str(letters.as_str());
    }

    /// Ends a statement. One that repeats the title adds nothing.
    fn end(&mut self) {
        let statement = self.statements.get(self.start..).unwrap_or_default();
        let is_title = self.start > 0 && self.statements.lines().next() == Some(statement);
        if is_title {
            self.statements.truncate(self.start);
        } else if !statement.is_empty() {
            self.statements.push('\n');
            self.start = self.statements.len();
        }
    }
}

/// A plain text in the composed form of Unicode.
fn normalized(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    // No space follows this full stop.
    let spaced = text.replace('。', ". ").replace(['‘', '’'], "'");
    match is_nfc_quick(spaced.chars()) {
        IsNormalized::Yes => spaced.into(),
        _ => spaced.nfc().collect::<String>().into(),
    }
}

fn without_mark(line: &str) -> &str {
    let heading = line.trim_start_matches('#');
    let marks = ["- ", "* ", "+ ", "• ", "> "];
    match marks.iter().find_map(|mark| line.strip_prefix(mark)) {
        Some(item) => item,
        None if heading.starts_with(' ') => heading,
        None => line,
    }
}

/// Whether a line begins with the number of an item, or is a row of a table.
fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with('|') || rest.len() < line.len() && rest.starts_with(['.', ')'])
}

/// A word without the marks of bold text: `**word**`, but not `src/**`.
fn without_emphasis(word: &str) -> &str {
    let word = word
        .strip_prefix("**")
        .filter(|rest| rest.starts_with(char::is_alphanumeric))
        .unwrap_or(word)
        .trim_end_matches(PUNCTUATION);
    word.strip_suffix("**")
        .filter(|rest| rest.ends_with(|c: char| c.is_alphanumeric() || PUNCTUATION.contains(&c)))
        .unwrap_or(word)
}

const fn is_bracket(c: char) -> bool {
    matches!(c, '(' | ')' | '[' | ']' | '{' | '}' | '"' | '`' | '“' | '”' | '„')
        || matches!(c, '«' | '»' | '‹' | '›' | '「' | '」' | '『' | '』' | '【' | '】')
}

/// Whether a character may follow the end of a sentence.
const fn is_closing(c: char) -> bool {
    is_bracket(c) || matches!(c, '*' | '_' | '\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(one: &[&str], other: &[&str]) -> bool {
        Wording::of_texts(one).contains(&Wording::of_texts(other))
    }

    fn are_equal(one: &str, other: &str) -> bool {
        contains(&[one], &[other]) && contains(&[other], &[one])
    }

    #[test]
    fn white_space_punctuation_the_first_case_and_unicode_forms_do_not_count() {
        for (one, other) in [
            ("Use pnpm, not npm", "use  pnpm not npm."),
            ("The limit is `30` (seconds)", "The limit is 30 seconds!"),
            ("Don\u{2019}t retry – wait", "don't retry\nwait"),
            ("**Café** is closed", "Cafe\u{301} is closed"),
            ("Ａｐｐｌｙ\u{3000}the patch", "apply the patch"),
            ("## Deploys\n\n- On **Friday**: never.", "Deploys\n\n* on Friday never"),
            ("部署前に確認する。", "部署前に確認する"),
        ] {
            assert!(are_equal(one, other), "{one} / {other}");
        }
    }

    #[test]
    fn a_symbol_that_means_something_counts() {
        for (one, other) in [
            ("C is used", "C++ is used"),
            ("the offset is 5", "the offset is -5"),
            ("a != b", "a == b"),
            ("check `enabled`", "check `!enabled`"),
            ("deploy on Friday?", "deploy on Friday"),
            ("build .", "build .."),
            ("run with --force", "run with force"),
            ("ignore src/*", "ignore src/**"),
            ("version 1.2", "version 12"),
            ("at most 10 Mb", "at most 10 MB"),
            ("git branch -d", "git branch -D"),
            ("10⁶ rows", "106 rows"),
            ("x² is bounded", "x2 is bounded"),
        ] {
            assert!(!are_equal(one, other), "{one} / {other}");
        }
    }

    #[test]
    fn whole_statements_are_contained_and_parts_of_them_are_not() {
        let whole = ["Limit", "Raise the limit first. Then deploy."];
        assert!(contains(&whole, &["Limit", "Then deploy"]));
        assert!(!contains(&whole, &["raise the limit first"]));
        assert!(contains(&["Retry once. Then wait"], &["Retry once"]));
        assert!(!contains(&["Rejected", "Raise the limit"], &["Raise the limit"]));
        assert!(!contains(&["Limit", "Then deploy"], &whole));
        let other_order = ["Limit", "Then deploy.", "Raise the limit first."];
        assert!(!contains(&whole, &other_order));
        assert!(!contains(&["Do not raise the limit"], &["Raise the limit"]));
        assert!(!contains(&["Wrong: raise the limit"], &["Raise the limit"]));
        assert!(!contains(&["提高限制之前不要部署。"], &["部署。"]));
        let list = "Never do this:\n- raise the limit\n- wait";
        assert!(!contains(&["Limit", list], &["Limit", "Raise the limit"]));
        let both = ["Limit", list, "Raise the limit"];
        assert!(contains(&both, &["Limit", "Raise the limit"]));
        let example = "Never do risky things, e.g. raise the limit.";
        assert!(!contains(&[example], &["Raise the limit"]));
    }

    #[test]
    fn a_text_that_repeats_its_title_says_it_once() {
        assert!(contains(&["Retry once"], &["Retry once", "Retry once."]));
    }

    #[test]
    fn nothing_contains_a_memory_about_another_file_or_an_empty_one() {
        let about = |file: &str| Memory {
            title: "Generated, do not edit".to_owned(),
            files: vec![file.to_owned()],
            ..Memory::default()
        };
        let (one, other) = (Wording::of(&about("a.rs")), Wording::of(&about("b.rs")));
        assert!(one.contains(&one) && !one.contains(&other));
        assert!(!contains(&["Retry once"], &["—"]) && !contains(&["—"], &["—"]));
    }
}
