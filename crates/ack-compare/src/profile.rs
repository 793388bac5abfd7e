//! A memory, parsed once for any number of comparisons.

use std::sync::OnceLock;

use ack_api::memory::{Memory, fold_name};
use ack_api::text;
use ack_search::encoder::Encoder;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::statement::{Statement, shared_weight};
use crate::term::{NameKind, Term, TermKind, hash};

/// How many bytes of a narrative are read.
const MAX_NARRATIVE_BYTES: usize = 16_000;
/// How many statements are compared one by one.
const MAX_STATEMENTS: usize = 64;
/// Minimum share of common content for statements about the same subject.
pub(crate) const MIN_SUBJECT_SHARE: f32 = 0.5;
/// Minimum weight of a statement that can add something.
const MIN_STATEMENT: f32 = 1.5;
/// A statement is new if less than this share of it is known to the other memory.
const MIN_KNOWN: f32 = 0.5;
/// Weight of a number in the resemblance.
const NUMBER_WEIGHT: f32 = 1.0;

/// A memory as its statements.
#[derive(Debug)]
pub struct Profile {
    /// The title, the subtitle, the facts and the sentences of the narrative, each once.
    pub(crate) statements: Vec<Statement>,
    /// How many sentences it has, including headings but not code.
    pub(crate) length: usize,
    /// The weight of all its content terms, including code.
    pub(crate) content: FxHashMap<u64, f32>,
    /// The sum of these weights.
    pub(crate) weight: f32,
    /// Its names and numbers.
    pub(crate) details: FxHashSet<u64>,
    /// Whether another text begins with the title, which may then be cut off.
    pub(crate) is_title_repeated: bool,
    pub(crate) project: Option<String>,
    /// Hash of its words in order.
    pub(crate) wording: u64,
    text: String,
    vector: OnceLock<Option<Vec<f32>>>,
}

impl Profile {
    /// Parses a memory.
    pub fn of(memory: &Memory) -> Self {
        let narrative = memory
            .narrative
            .as_deref()
            .map(|narrative| text::cut(narrative, MAX_NARRATIVE_BYTES).0);
        let mut texts: Vec<&str> = vec![&memory.title];
        texts.extend(memory.subtitle.as_deref());
        texts.extend(memory.facts.iter().map(String::as_str));
        texts.extend(narrative.as_deref());
        let mut profile = Self::of_texts(&texts);
        profile.project = memory.project.as_deref().map(fold_name);
        profile
    }

    /// Parses texts; the first one is the title.
    pub fn of_texts(texts: &[&str]) -> Self {
        let mut profile = Self {
            statements: Vec::new(),
            length: 0,
            content: FxHashMap::default(),
            weight: 0.0,
            details: FxHashSet::default(),
            is_title_repeated: is_title_repeated(texts),
            project: None,
            wording: 0,
            text: texts.join("\n"),
            vector: OnceLock::new(),
        };
        let mut seen = FxHashSet::default();
        let mut wording = String::new();
        for (position, text) in texts.iter().enumerate() {
            let text = if position == 0 {
                without_count(text)
            } else {
                text
            };
            for (sentence, is_code) in sentences(text) {
                let statement = Statement::read(&sentence);
                for term in &statement.terms {
                    profile.add(term);
                    wording.push_str(&term.word);
                    wording.push(' ');
                }
                let words: String = statement.terms.iter().map(|term| &*term.word).collect();
                let is_new = !words.is_empty() && seen.insert(words);
                if !is_new && position > 0 {
                    // The title is not cut if it is a whole sentence of the text.
                    let title = profile.statements.first();
                    if title.is_some_and(|title| title.has_same_words(&statement)) {
                        profile.is_title_repeated = false;
                    }
                }
                let is_claim = !is_code && !statement.is_source_reference();
                profile.length +=
                    usize::from(is_new && (!is_code || is_structural_line(&sentence)));
                if is_new && is_claim && profile.statements.len() < MAX_STATEMENTS {
                    profile.statements.push(statement);
                }
            }
            if position == 0 && profile.statements.is_empty() {
                profile.statements.push(Statement::read(""));
            }
        }
        profile.wording = hash(&wording);
        let mut weights: Vec<f32> = profile.content.values().copied().collect();
        weights.sort_by(f32::total_cmp);
        profile.weight = weights.into_iter().sum();
        profile
    }

    fn add(&mut self, term: &Term) {
        let weight = match &term.kind {
            TermKind::Stop => return,
            TermKind::Word => term.weight,
            TermKind::Name(kind) => {
                if kind != &NameKind::Proper {
                    self.details.insert(term.identity());
                }
                term.weight
            }
            TermKind::Number(_) | TermKind::Date => {
                self.details.insert(term.identity());
                NUMBER_WEIGHT
            }
        };
        self.content.insert(term.identity(), weight);
    }

    /// The statements that may contradict others.
    pub(crate) fn claims(&self) -> &[Statement] {
        let first = usize::from(self.is_title_repeated);
        self.statements.get(first..).unwrap_or_default()
    }

    /// Whether it has a statement that is mostly new to the other memory.
    pub(crate) fn adds_statement_to(&self, other: &Self) -> bool {
        self.claims().iter().any(|statement| {
            let known = statement
                .content
                .iter()
                .filter(|(key, _)| other.content.contains_key(key));
            let known: f32 = known.map(|(_, weight)| *weight).sum();
            statement.weight >= MIN_STATEMENT && known < MIN_KNOWN * statement.weight
        })
    }

    /// Whether one of its statements contains a value, assigned to `key` if one is given.
    pub(crate) fn says(&self, key: Option<u64>, value: &Term) -> bool {
        let mut terms = self
            .statements
            .iter()
            .flat_map(|statement| &statement.terms);
        terms.any(|term| {
            term.identity() == value.identity()
                && !term.denied
                && (key.is_none() || term.assigned_to == key)
        })
    }

    /// Whether a similar statement denies a term.
    pub(crate) fn denies(&self, key: u64, like: &Statement) -> bool {
        self.statements
            .iter()
            .filter(|statement| {
                statement
                    .terms
                    .iter()
                    .any(|term| term.key == key && term.denied)
            })
            .any(|statement| statement.dice(like) >= MIN_SUBJECT_SHARE)
    }

    /// Whether any of its statements denies a term.
    pub(crate) fn denies_anywhere(&self, key: u64) -> bool {
        let mut terms = self
            .statements
            .iter()
            .flat_map(|statement| &statement.terms);
        terms.any(|term| term.key == key && term.denied)
    }

    /// Its whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The title.
    pub(crate) fn title(&self) -> Option<&Statement> {
        self.statements.first()
    }

    /// The share of its content that the other memory has, from 0 to 1.
    pub(crate) fn covered_by(&self, other: &Self) -> f32 {
        if self.weight > 0.0 {
            self.shared(other) / self.weight
        } else {
            1.0
        }
    }

    /// The weight of the content that both have.
    pub(crate) fn shared(&self, other: &Self) -> f32 {
        shared_weight(&self.content, &other.content)
    }

    /// The share of the shorter one's content that both have, from 0 to 1.
    pub fn common(&self, other: &Self) -> f32 {
        let smaller_weight = self.weight.min(other.weight);
        if smaller_weight > 0.0 {
            self.shared(other) / smaller_weight
        } else {
            0.0
        }
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

/// Whether another text begins with the title, because the title was cut from it.
fn is_title_repeated(texts: &[&str]) -> bool {
    let Some((title, rest)) = texts.split_first() else {
        return false;
    };
    let title = title.trim_end_matches(['.', '…', ' ']);
    rest.iter()
        .any(|text| text.len() > title.len() && text.starts_with(title))
}

/// The sentences of a text, and whether each is code.
fn sentences(text: &str) -> Vec<(String, bool)> {
    let mut sentences = Vec::new();
    let mut in_code = false;
    let mut paragraph = String::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            split(&mut paragraph, &mut sentences);
            in_code = !in_code;
        } else if in_code {
            sentences.push((trimmed.to_owned(), true));
        } else {
            if is_command(trimmed) {
                split(&mut paragraph, &mut sentences);
                sentences.push((trimmed.to_owned(), true));
                continue;
            }
            if is_structural_line(trimmed) {
                split(&mut paragraph, &mut sentences);
                sentences.push((trimmed.to_owned(), true));
                continue;
            }
            let item = trimmed.trim_start_matches(['-', '*', '#', '>', '•']);
            if trimmed.is_empty() || item.len() < trimmed.len() && item.starts_with(' ') {
                split(&mut paragraph, &mut sentences);
            }
            paragraph.push_str(item.trim());
            paragraph.push(' ');
        }
    }
    split(&mut paragraph, &mut sentences);
    sentences
}

/// Whether a line is structure and not a statement: a heading, a table row, markup, an image, or a
/// link definition.
fn is_structural_line(line: &str) -> bool {
    let is_link = line.starts_with('[') && line.contains("]:");
    line.starts_with(['#', '|', '<'])
        || line.starts_with("![")
        || line.starts_with("[![")
        || is_link
}

/// A title without a number that only counts something: `Network questions (23)`.
fn without_count(title: &str) -> &str {
    let inner = title.trim_end().strip_suffix(')');
    let parts = inner.and_then(|inner| inner.rsplit_once('('));
    match parts {
        Some((before, count)) if count.parse::<u32>().is_ok() => before.trim_end(),
        _ => title,
    }
}

/// Whether a line is a command after a prompt: `$ git stash`, `(main)$ git stash`.
fn is_command(line: &str) -> bool {
    let start = line.split_whitespace().next().unwrap_or_default();
    start == "$" || start.starts_with('(') && start.ends_with(")$")
}

/// Splits a paragraph into sentences.
fn split(paragraph: &mut String, sentences: &mut Vec<(String, bool)>) {
    let mut start = 0;
    let ends = paragraph.char_indices().filter(|(at, c)| {
        let rest = paragraph.get(at + c.len_utf8()..).unwrap_or_default();
        match c {
            '.' | '!' | '?' => {
                rest.starts_with(char::is_whitespace)
                    && rest.trim_start().starts_with(|c: char| !c.is_lowercase())
                    && !ends_with_short_form(paragraph.get(..*at).unwrap_or_default())
            }
            '。' | ';' => true,
            _ => false,
        }
    });
    for (at, c) in ends {
        let end = at + c.len_utf8();
        sentences.extend(sentence(paragraph.get(start..end)));
        start = end;
    }
    sentences.extend(sentence(paragraph.get(start..)));
    paragraph.clear();
}

fn sentence(text: Option<&str>) -> Option<(String, bool)> {
    let text = text?.trim();
    (!text.is_empty()).then(|| (text.to_owned(), false))
}

fn ends_with_short_form(text: &str) -> bool {
    let last = text.rsplit(|c: char| c.is_whitespace() || c == '(').next();
    let last = last.unwrap_or_default().to_lowercase();
    ["e.g", "i.e", "vs", "approx", "no", "z.b", "etc", "cf"].contains(&last.as_str())
}
