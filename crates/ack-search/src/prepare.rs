//! From memories to what the index keeps of them: terms with their weights, and the vector. This is the expensive part of
//! reading a store, so a [`Team`] does it on several threads.

use std::thread;

use rustc_hash::FxHashMap as HashMap;

use super::analysis::{self, Kind, Side, Token};
use super::dictionary::Dictionary;
use super::semantic::Code;
use crate::encoder::Encoder;
use crate::encoder::wordpiece::TokenId;
use ack_api::memory::Memory;

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

/// Pieces of text that an analyst remembers at most, and how long they may be, in bytes.
const REMEMBERED: usize = 200_000;
const REMEMBERED_LENGTH: usize = 40;

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

/// How a term is written in the index: words as they are (stemmed), identifiers behind `=`.
pub fn term_key(kind: Kind, text: &str) -> std::borrow::Cow<'_, str> {
    match kind {
        Kind::Word => analysis::stem(text),
        Kind::Identifier => std::borrow::Cow::Owned(format!("={text}")),
    }
}

/// What a piece of text between blanks was cut into: where its terms and its tokens lie in an analyst's pools.
#[derive(Debug, Clone, Copy)]
struct Cut {
    terms: (u32, u32),
    tokens: (u32, u32),
}

/// Prepares one memory after the other; remembers what each piece of text was cut into, for most occur many times.
#[derive(Debug, Default)]
pub struct Analyst {
    /// By the piece, as [`short`] writes it; longer ones by themselves.
    cuts: HashMap<u128, Cut>,
    long_cuts: HashMap<Box<str>, Cut>,
    terms: Vec<u32>,
    tokens: Vec<TokenId>,
    /// Which term a word is, so that a word is stemmed once.
    words: HashMap<Box<str>, Option<u32>>,
    /// The weighted frequency of each term in the memory at hand, and the terms that have one.
    weights: Vec<u32>,
    weighted: Vec<u32>,
    /// The terms met so far, which [`Prepared::terms`] are numbered by.
    pub lexicon: Dictionary,
}

impl Analyst {
    /// Prepares a memory; with an encoder its vector too.
    pub fn prepare(&mut self, memory: &Memory, encoder: Option<&Encoder>) -> Prepared {
        let (mut title, mut rest, mut none) = (Vec::with_capacity(64), Vec::with_capacity(512), Vec::new());
        let mut length = self.field(&memory.title, TITLE, encoder, &mut title);
        if let Some(text) = &memory.subtitle {
            length += self.field(text, SUBTITLE, encoder, &mut rest);
        }
        for text in &memory.facts {
            length += self.field(text, FACTS, encoder, &mut rest);
        }
        if let Some(text) = &memory.narrative {
            length += self.field(text, BODY, encoder, &mut rest);
        }
        for text in &memory.concepts {
            length += self.field(text, FACTS, encoder, &mut rest);
        }
        for text in &memory.files {
            length += self.field(text, FILES, None, &mut none);
        }
        self.weighted.sort_unstable();
        let mut terms: Vec<Weighted> = Vec::with_capacity(self.weighted.len());
        for term in self.weighted.drain(..) {
            let weight = self.weights.get_mut(term as usize).map_or(0, std::mem::take);
            // 24 bits number 16 million terms; a store with more is beyond what is searched in memory.
            if term < 1 << 24 {
                terms.push(term << 8 | weight.min(255));
            }
        }
        let vector = encoder.and_then(|encoder| encoder.memory(&mut title, &mut rest));
        Prepared {
            terms,
            length,
            vector: vector.map(Vec::into_boxed_slice),
        }
    }

    /// Counts the terms of a field and appends its tokens; returns the number of terms.
    fn field(&mut self, text: &str, weight: u32, encoder: Option<&Encoder>, tokens: &mut Vec<TokenId>) -> u32 {
        let mut length = 0;
        // Both analyses cut at these blanks, whatever stands on either side.
        for piece in text.split([' ', '\t', '\n', '\r']).filter(|piece| !piece.is_empty()) {
            let key = short(piece);
            let known = match key {
                Some(key) => self.cuts.get(&key),
                None => self.long_cuts.get(piece),
            };
            let (known, cut) = match known {
                Some(cut) => (true, *cut),
                None => (false, self.cut(piece, encoder)),
            };
            let Cut { terms, tokens: own } = cut;
            for term in self.terms.get(terms.0 as usize..terms.1 as usize).unwrap_or_default() {
                if self.weights.len() <= *term as usize {
                    self.weights.resize(*term as usize + 1, 0);
                }
                if let Some(slot) = self.weights.get_mut(*term as usize) {
                    if *slot == 0 {
                        self.weighted.push(*term);
                    }
                    *slot += weight;
                }
                length += 1;
            }
            tokens.extend_from_slice(self.tokens.get(own.0 as usize..own.1 as usize).unwrap_or_default());
            if known {
                continue;
            }
            // A file's path is cut without tokens, and what is long or rare is not worth remembering.
            let room = encoder.is_some() && self.cuts.len() + self.long_cuts.len() < REMEMBERED;
            match key {
                Some(key) if room => {
                    self.cuts.insert(key, cut);
                }
                None if room && piece.len() <= REMEMBERED_LENGTH => {
                    self.long_cuts.insert(piece.into(), cut);
                }
                _ => {
                    self.terms.truncate(terms.0 as usize);
                    self.tokens.truncate(own.0 as usize);
                }
            }
        }
        length
    }

    /// Cuts a piece of text that is not known yet; the result lies at the end of the pools.
    fn cut(&mut self, piece: &str, encoder: Option<&Encoder>) -> Cut {
        let Self {
            terms,
            tokens,
            words,
            lexicon,
            ..
        } = self;
        let (first_term, first_token) = (terms.len(), tokens.len());
        analysis::tokenize(piece, Side::Document, &mut |token: Token<'_>| {
            if token.kind == Kind::Identifier {
                terms.push(lexicon.number(&term_key(token.kind, &token.text)));
                return;
            }
            let number = words.get(token.text.as_ref()).copied().unwrap_or_else(|| {
                let number = (!analysis::is_stop_word(&token.text)).then(|| lexicon.number(&term_key(token.kind, &token.text)));
                if words.len() < REMEMBERED {
                    words.insert(token.text.into_owned().into(), number);
                }
                number
            });
            terms.extend(number);
        });
        if let Some(encoder) = encoder {
            encoder.vocabulary().tokenize(piece, tokens);
        }
        let place = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        Cut {
            terms: (place(first_term), place(terms.len())),
            tokens: (place(first_token), place(tokens.len())),
        }
    }
}

/// A piece of at most 15 bytes as a number: its bytes and its length.
fn short(piece: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    let (length, rest) = bytes.split_last_mut()?;
    *length = u8::try_from(piece.len()).ok()?;
    rest.get_mut(..piece.len())?.copy_from_slice(piece.as_bytes());
    Some(u128::from_le_bytes(bytes))
}

/// How many threads prepare memories: as many as there are processors, up to a few.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
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
        Self::of(threads(), encoder)
    }

    /// A team of so many threads.
    pub fn of(threads: usize, encoder: Option<&'static Encoder>) -> Self {
        Self {
            analysts: std::iter::repeat_with(Analyst::default).take(threads.max(1)).collect(),
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
    pub fn terms(&self, analyst: usize) -> Option<&Dictionary> {
        self.analysts.get(analyst).map(|analyst| &analyst.lexicon)
    }
}
