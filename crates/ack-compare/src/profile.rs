//! A memory, read once for any number of comparisons.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use ack_api::memory::{Memory, fold_name};
use ack_api::text;
use ack_search::analysis::stems::stem;
use ack_search::analysis::{self, TextRole};
use ack_search::encoder::Encoder;
use ack_search::wording::Wording;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::quantity::Quantity;
use crate::sentence::{Sentence, sentences};

const MAX_NARRATIVE_BYTES: usize = 16_000;
const MAX_SENTENCES: usize = 64;
/// Weight of a word that the encoder does not know: it is rare.
const RARE_WEIGHT: f32 = 1.2;

#[derive(Debug)]
pub struct Profile {
    /// The title and the sentences that claim something, each once.
    pub(crate) sentences: Vec<Sentence>,
    pub(crate) words: BTreeSet<String>,
    /// Names in the title: `src/main.rs`, `tokio::select`.
    pub(crate) title_names: BTreeSet<String>,
    pub(crate) project: Option<String>,
    pub(crate) wording: Wording,
    content: FxHashMap<String, f32>,
    weight: f32,
    text: String,
    vector: OnceLock<Option<Vec<f32>>>,
}

impl Profile {
    pub fn of(memory: &Memory) -> Self {
        let texts: Vec<&str> = memory.texts().collect();
        Self { project: memory.project.as_deref().map(fold_name), ..Self::of_texts(&texts) }
    }

    /// Reads texts; the first one is the title.
    pub fn of_texts(texts: &[&str]) -> Self {
        let wording = Wording::of_texts(texts);
        let title = texts.first().copied().unwrap_or_default();
        let cut: Vec<_> = texts.iter().map(|text| text::cut(text, MAX_NARRATIVE_BYTES).0).collect();
        let text = cut.join("\n");
        let mut known = FxHashSet::default();
        let mut all: Vec<Sentence> = Vec::new();
        for (position, text) in cut.iter().enumerate() {
            let text: &str = text;
            let text = if position == 0 { without_count(text) } else { text };
            let new = sentences(text)
                .into_iter()
                .filter(|sentence| known.insert(sentence.to_lowercase()));
            all.extend(new.take(MAX_SENTENCES - all.len().min(MAX_SENTENCES)).map(Sentence::read));
        }
        let content = content(&text);
        Self {
            words: all.iter().flat_map(|sentence| sentence.words.iter().cloned()).collect(),
            sentences: all,
            title_names: names(title),
            project: None,
            wording,
            weight: sum(content.values().copied()),
            content,
            text,
            vector: OnceLock::new(),
        }
    }

    pub(crate) fn says(&self, number: &Quantity) -> bool {
        let mut numbers = self.sentences.iter().flat_map(|sentence| &sentence.numbers);
        numbers.any(|known| known.unit == number.unit && known.equals(number))
    }

    pub fn contains(&self, other: &Self) -> bool {
        self.wording.contains(&other.wording)
    }

    /// Its text, without the end of a long one.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The share of common terms, by weight, from 0 to 1 (Dice coefficient).
    pub(crate) fn resemblance(&self, other: &Self) -> f32 {
        let all = self.weight + other.weight;
        let (small, large) =
            if self.content.len() <= other.content.len() { (self, other) } else { (other, self) };
        let shared = small.content.iter().filter(|(term, _)| large.content.contains_key(*term));
        let shared = sum(shared.map(|(_, weight)| *weight));
        if all > 0.0 { (2.0 * shared / all).min(1.0) } else { 0.0 }
    }

    /// How near two memories are in meaning: the cosine of their vectors; 0 if a vector is missing.
    pub(crate) fn cosine(&self, other: &Self) -> f32 {
        match (self.vector(), other.vector()) {
            (Some(one), Some(other)) => one.iter().zip(other).map(|(a, b)| a * b).sum(),
            _ => 0.0,
        }
    }

    fn vector(&self) -> Option<&[f32]> {
        let make = || Encoder::embedded()?.query(&self.text);
        self.vector.get_or_init(make).as_deref()
    }
}

/// Summing in another order may change the last digit.
fn sum(weights: impl Iterator<Item = f32>) -> f32 {
    let mut weights: Vec<f32> = weights.collect();
    weights.sort_by(f32::total_cmp);
    weights.into_iter().sum()
}

/// The terms of a text, as the search has them, each with its weight: about 1 for an ordinary noun.
fn content(text: &str) -> FxHashMap<String, f32> {
    let mut content = FxHashMap::default();
    analysis::tokenize(text, TextRole::Document, &mut |token| {
        if !analysis::is_stop_word(&token.text) {
            let weight = Encoder::embedded().and_then(|encoder| encoder.weight(&token.text));
            let weight = weight.unwrap_or(RARE_WEIGHT).clamp(0.2, 1.5);
            content.insert(stem(&token.text).into_owned(), weight);
        }
    });
    content
}

fn names(title: &str) -> BTreeSet<String> {
    let title = title.to_lowercase();
    let words = title.split(|c: char| c.is_whitespace() || "()`\"".contains(c));
    let is_name = |word: &&str| {
        let parts: Vec<&str> =
            word.split(['_', ':', '.', '/']).filter(|part| !part.is_empty()).collect();
        parts.iter().zip(parts.iter().skip(1)).any(|(one, next)| {
            one.ends_with(char::is_alphabetic) && next.starts_with(char::is_alphabetic)
        })
    };
    words.filter(is_name).map(str::to_owned).collect()
}

/// A title without a number that only counts something: `Network questions (23)`.
fn without_count(title: &str) -> &str {
    let inner = title.trim_end().strip_suffix(')');
    match inner.and_then(|inner| inner.rsplit_once('(')) {
        Some((before, count)) if count.parse::<u32>().is_ok() => before.trim_end(),
        _ => title,
    }
}
