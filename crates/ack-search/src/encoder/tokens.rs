//! The tokens of a text: rows of the English table, and of the multilingual one.
//!
//! A word that both tables may mean (`die`, `table`, `wechseln`) has the tokens of both, the
//! English ones first. Which of them count is decided when the whole text is known, by how much more
//! often the words around occur in the other languages than in English. So a German heading of two
//! words is German, and the code in it is not.

use super::Encoder;
use super::multilingual::{Multilingual, Script, composed, runs};
use super::wordpiece::{TokenId, WHITE_SPACE};

/// Set in the tokens of a word that both tables may mean.
const EITHER: u32 = 1 << 31;
/// Set in the rows of the multilingual table.
const MULTILINGUAL: u32 = 1 << 30;
/// Set in the first token of such a word.
const BEGINS_WORD: u32 = 1 << 29;
/// Set in the first token of such a word, if it has letters besides those of English.
const HAS_MARKS: u32 = 1 << 28;
const FLAGS: u32 = EITHER | MULTILINGUAL | BEGINS_WORD | HAS_MARKS;

/// How much the word before or after one counts, relative to it.
const DECAY: f32 = 0.9;
/// The odds of a word that only the English table has.
const ENGLISH_ODDS: f32 = -1.5;
/// What letters besides those of English add to the odds of a word.
const MARKS_ODDS: f32 = 2.0;
/// A word is read in another language than English from these odds on, its neighbours' included.
const MIN_ODDS: f32 = 1.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    English(TokenId),
    Multilingual(u32),
}

impl From<TokenId> for Token {
    fn from(token: TokenId) -> Self {
        Self(u32::from(token))
    }
}

impl Token {
    pub(super) fn row(self) -> Row {
        let number = self.0 & !FLAGS;
        match TokenId::try_from(number) {
            Ok(token) if self.0 & MULTILINGUAL == 0 => Row::English(token),
            _ => Row::Multilingual(number),
        }
    }

    const fn is_either(self) -> bool {
        self.0 & EITHER != 0
    }

    const fn is_multilingual(self) -> bool {
        self.0 & MULTILINGUAL != 0
    }
}

pub(super) struct Tokenizer<'a> {
    encoder: &'a Encoder,
    tokens: &'a mut Vec<Token>,
    /// Used for each word again, as are the next two.
    word: String,
    english: Vec<TokenId>,
    rows: Vec<u32>,
}

impl<'a> Tokenizer<'a> {
    pub(super) const fn new(encoder: &'a Encoder, tokens: &'a mut Vec<Token>) -> Self {
        Self { encoder, tokens, word: String::new(), english: Vec::new(), rows: Vec::new() }
    }

    pub(super) fn read(&mut self, text: &str) {
        for chunk in text.split(WHITE_SPACE) {
            for (script, run) in runs(&composed(chunk)) {
                self.rows.clear();
                match script {
                    Script::Latin => self.latin(run),
                    Script::Words(_) => {
                        self.encoder.multilingual.word(run, &mut self.rows);
                        self.other(run);
                    }
                    Script::Ideographs => {
                        self.encoder.multilingual.characters(run, &mut self.rows);
                        self.other(run);
                    }
                    Script::Other => self.other(run),
                }
            }
        }
    }

    /// Puts the English tokens of a run into the buffer.
    fn read_english(&mut self, run: &str) {
        self.english.clear();
        self.encoder.vocabulary.tokenize_chunk(run, &mut self.word, &mut self.english);
    }

    fn push_english(&mut self, flags: u32) {
        self.tokens.extend(self.english.iter().map(|token| Token(u32::from(*token) | flags)));
    }

    fn push_rows(&mut self, flags: u32) {
        self.tokens.extend(self.rows.iter().map(|row| Token(row | MULTILINGUAL | flags)));
    }

    /// Appends the rows of a run in another script, or else its English tokens.
    fn other(&mut self, run: &str) {
        if self.rows.is_empty() {
            self.read_english(run);
            self.push_english(0);
        } else {
            self.push_rows(0);
        }
    }

    fn latin(&mut self, word: &str) {
        self.read_english(word);
        if word.len() == 1 || word.bytes().any(|byte| byte.is_ascii_digit()) {
            self.push_english(0);
            return;
        }
        let has_own_row = self.encoder.multilingual.word(word, &mut self.rows);
        if self.rows.is_empty() || self.english.is_empty() {
            self.push_english(0);
            return;
        }
        let is_english = match *self.english {
            [token] => word.is_ascii() && self.encoder.has_vector(token),
            _ => false,
        };
        let first = self.tokens.len();
        self.push_english(EITHER);
        if let Some(first) = self.tokens.get_mut(first) {
            first.0 |= BEGINS_WORD | if word.is_ascii() { 0 } else { HAS_MARKS };
        }
        if has_own_row || !is_english {
            self.push_rows(EITHER);
        }
    }
}

/// Drops the tokens of the language that each word is not in. `texts` follow each other.
pub(super) fn choose(table: &Multilingual, texts: &mut [&mut Vec<Token>]) {
    let words = texts.iter().flat_map(|tokens| words(tokens));
    let odds: Vec<f32> = words.map(|word| odds(table, word)).collect();
    // Each word's odds, and those of the words before it and after it.
    let mut sums = odds.clone();
    let mut before = 0.0;
    for (sum, own) in sums.iter_mut().zip(&odds) {
        *sum += before;
        before = DECAY * (before + own);
    }
    let mut after = 0.0;
    for (sum, own) in sums.iter_mut().zip(&odds).rev() {
        *sum += after;
        after = DECAY * (after + own);
    }
    let mut sums = sums.into_iter();
    for tokens in texts {
        let mut chosen = Vec::with_capacity(tokens.len());
        for group in groups(tokens) {
            let is_either = group.first().is_some_and(|token| token.is_either());
            let is_other = is_either && sums.next().is_some_and(|sum| sum > MIN_ODDS);
            let has_other = is_other && group.iter().any(|token| token.is_multilingual());
            let kept =
                group.iter().filter(|token| !is_either || token.is_multilingual() == has_other);
            chosen.extend(kept.map(|token| Token(token.0 & !(FLAGS ^ MULTILINGUAL))));
        }
        **tokens = chosen;
    }
}

/// The tokens of each word that both tables may mean, and those between them.
fn groups(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    tokens.chunk_by(|one, next| one.is_either() == next.is_either() && next.0 & BEGINS_WORD == 0)
}

fn words(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    groups(tokens).filter(|group| group.first().is_some_and(|token| token.is_either()))
}

/// The odds that a word is not English, by itself.
#[expect(clippy::cast_precision_loss, reason = "a count of pieces")]
fn odds(table: &Multilingual, word: &[Token]) -> f32 {
    let rows = word.iter().filter_map(|token| match token.row() {
        Row::Multilingual(row) => Some(table.odds(row)),
        Row::English(_) => None,
    });
    let (sum, count) = rows.fold((0.0, 0), |(sum, count), odds| (sum + odds, count + 1));
    let odds = if count == 0 { ENGLISH_ODDS } else { sum / count as f32 };
    let has_marks = word.first().is_some_and(|token| token.0 & HAS_MARKS != 0);
    if has_marks { odds + MARKS_ODDS } else { odds }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::Encoder;
    use super::{Row, choose};

    const REFERENCE: &str = include_str!("../../../../encoder/reference/multilingual.json");

    #[test]
    fn texts_have_the_tokens_and_vectors_of_the_pipeline_that_made_the_table() {
        let encoder = Encoder::embedded().unwrap();
        let cases: Vec<Value> = serde_json::from_str(REFERENCE).unwrap();
        assert!(cases.len() > 30);
        for case in cases {
            let text = case["text"].as_str().unwrap();
            let mut tokens = Vec::new();
            encoder.tokenize(text, &mut tokens);
            choose(&encoder.multilingual, &mut [&mut tokens]);
            let (mut english, mut rows) = (Vec::new(), Vec::new());
            for token in &tokens {
                match token.row() {
                    Row::English(token) => english.push(token),
                    Row::Multilingual(row) => rows.push(row),
                }
            }
            assert_eq!(serde_json::json!(english), case["english"], "{text}");
            assert_eq!(serde_json::json!(rows), case["rows"], "{text}");
            let expected: Vec<f32> = serde_json::from_value(case["vector"].clone()).unwrap();
            let vector = encoder.encode_tokens(&mut tokens);
            let vector = vector.unwrap_or_else(|| vec![0.0; encoder.dimension]);
            let far = vector.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(far < 5e-5, "{far} for {text}");
        }
    }

    #[test]
    fn a_word_that_two_languages_have_is_read_in_that_of_the_words_around() {
        let encoder = Encoder::embedded().unwrap();
        let is_english = |text: &str| encoder.is_english(text);
        assert!(is_english("the die is cast") && !is_english("die Tabelle fehlt"));
        assert!(is_english("wechseln") != is_english("switch"));
        let mixed = "der Fehler tritt auf, wenn `let table = open_table()` aufgerufen wird";
        assert!(!is_english(mixed));
    }
}
