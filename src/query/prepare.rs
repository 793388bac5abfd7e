//! From memories to what the index keeps of them: terms with their weights, and the vector. This is the expensive part of
//! reading a store, so a [`Team`] does it on several threads.

use std::thread;

use rustc_hash::FxHashMap as HashMap;

use super::analysis::{self, Kind, Side, Token};
use super::semantic::Code;
use crate::encoder::Encoder;
use crate::encoder::wordpiece::Memo;
use crate::memory::Memory;

/// Weights of the fields, in half units: title, facts and concepts, subtitle, body, files.
const TITLE: u32 = 8;
const FACTS: u32 = 4;
const SUBTITLE: u32 = 3;
const BODY: u32 = 2;
const FILES: u32 = 2;

/// Threads of a team at most; more would only wait for the one that reads.
const MOST_THREADS: usize = 4;
/// Fewer memories than this are not worth another thread.
const FEW: usize = 64;

/// A term of a memory: its number in the upper 24 bits, its weighted frequency in half units (at most 255) in the lower 8.
pub type Weighted = u32;

/// The number of a term and its weight.
pub const fn unpack(weighted: Weighted) -> (u32, u32) {
    (weighted >> 8, weighted & 0xff)
}

/// What is searched of a memory.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Prepared {
    /// Its terms, numbered by whoever prepared it, in the order of their numbers.
    pub terms: Vec<Weighted>,
    /// Number of tokens.
    pub length: u32,
    /// Its vector; `None` where no token of it is known, or it was not asked for.
    pub vector: Option<Box<[f32]>>,
}

impl Prepared {
    /// The vector as it is searched.
    pub fn code(&self) -> Option<Code> {
        self.vector.as_deref().and_then(Code::quantize)
    }
}

/// Numbers terms in the order in which it meets them.
#[derive(Debug, Default)]
pub struct Lexicon {
    numbers: HashMap<Box<str>, u32>,
    terms: Vec<Box<str>>,
}

impl Lexicon {
    /// The number of a term, a new one if need be.
    pub fn number(&mut self, term: &str) -> u32 {
        if let Some(number) = self.numbers.get(term) {
            return *number;
        }
        let number = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
        self.terms.push(term.into());
        self.numbers.insert(term.into(), number);
        number
    }

    /// Every term, in the order of the numbers.
    pub fn terms(&self) -> &[Box<str>] {
        &self.terms
    }
}

/// How a term is written in the index: words as they are (stemmed), identifiers behind `=`.
pub fn term_key(kind: Kind, text: &str) -> std::borrow::Cow<'_, str> {
    match kind {
        Kind::Word => analysis::stem(text),
        Kind::Identifier => std::borrow::Cow::Owned(format!("={text}")),
    }
}

/// Prepares one memory after the other; remembers which term a word is, so that a word is stemmed once.
#[derive(Debug, Default)]
pub struct Analyst {
    words: HashMap<Box<str>, Option<u32>>,
    identifiers: HashMap<Box<str>, Option<u32>>,
    weights: HashMap<u32, u32>,
    memo: Memo,
    /// The terms met so far, which [`Prepared::terms`] are numbered by.
    pub lexicon: Lexicon,
}

impl Analyst {
    /// Prepares a memory; with an encoder its vector too.
    pub fn prepare(&mut self, memory: &Memory, encoder: Option<&Encoder>) -> Prepared {
        let length = self.count(memory);
        let mut terms: Vec<Weighted> = self
            .weights
            .drain()
            // 24 bits number 16 million terms; a store with more is beyond what is searched in memory.
            .filter(|(term, _)| *term < 1 << 24)
            .map(|(term, weight)| term << 8 | weight.min(255))
            .collect();
        terms.sort_unstable();
        Prepared {
            terms,
            length,
            vector: encoder
                .and_then(|encoder| encoder.memory(memory, &mut self.memo))
                .map(Vec::into_boxed_slice),
        }
    }

    /// Fills `weights` with the weighted frequency of every term; returns the number of tokens.
    fn count(&mut self, memory: &Memory) -> u32 {
        let Self {
            words,
            identifiers,
            weights,
            lexicon,
            ..
        } = self;
        weights.clear();
        let mut length = 0;
        let mut field = |text: &str, weight: u32| {
            analysis::tokenize(text, Side::Document, &mut |token: Token<'_>| {
                let seen = if token.kind == Kind::Word { &mut *words } else { &mut *identifiers };
                let number = seen.get(token.text.as_ref()).copied().unwrap_or_else(|| {
                    let stop = token.kind == Kind::Word && analysis::is_stop_word(&token.text);
                    let number = (!stop).then(|| lexicon.number(&term_key(token.kind, &token.text)));
                    seen.insert(token.text.into_owned().into(), number);
                    number
                });
                if let Some(number) = number {
                    *weights.entry(number).or_default() += weight;
                    length += 1;
                }
            });
        };
        field(&memory.title, TITLE);
        memory.subtitle.iter().for_each(|text| field(text, SUBTITLE));
        memory.facts.iter().chain(&memory.concepts).for_each(|text| field(text, FACTS));
        memory.narrative.iter().for_each(|text| field(text, BODY));
        memory.files.iter().for_each(|text| field(text, FILES));
        length
    }
}

/// Analysts that share the work.
#[derive(Debug)]
pub struct Team {
    analysts: Vec<Analyst>,
    encoder: Option<&'static Encoder>,
}

impl Team {
    /// A team of as many threads as there are processors, up to a few.
    pub fn new(encoder: Option<&'static Encoder>) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        Self {
            analysts: std::iter::repeat_with(Analyst::default).take(threads).collect(),
            encoder,
        }
    }

    /// Prepares memories. The terms of the memory at `n` are numbered by the lexicon of the analyst whose number comes with it.
    pub fn prepare(&mut self, memories: &[&Memory]) -> Vec<(usize, Prepared)> {
        let encoder = self.encoder;
        let share = memories.len().div_ceil(self.analysts.len().max(1)).max(FEW);
        let work = |number: usize, analyst: &mut Analyst, part: &[&Memory]| -> Vec<(usize, Prepared)> {
            part.iter().map(|memory| (number, analyst.prepare(memory, encoder))).collect()
        };
        let mut parts = memories.chunks(share).zip(self.analysts.iter_mut()).enumerate();
        let own = parts.next();
        thread::scope(|scope| {
            let others: Vec<_> = parts
                .map(|(number, (part, analyst))| scope.spawn(move || work(number, analyst, part)))
                .collect();
            let mut prepared = own.map_or_else(Vec::new, |(number, (part, analyst))| work(number, analyst, part));
            for other in others {
                match other.join() {
                    Ok(more) => prepared.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            prepared
        })
    }

    /// The terms an analyst has met, in the order of their numbers.
    pub fn terms(&self, analyst: usize) -> &[Box<str>] {
        self.analysts.get(analyst).map_or(&[], |analyst| analyst.lexicon.terms())
    }
}
