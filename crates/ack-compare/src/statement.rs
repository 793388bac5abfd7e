//! One sentence, with what it says is not so.

use rustc_hash::FxHashMap;

use crate::lexicon;
use crate::term::{Term, TermKind, terms};

/// How many words a negation reaches.
const REACH: usize = 4;

/// A sentence, a fact or a title.
#[derive(Debug, Clone)]
pub struct Statement {
    /// As it is written.
    pub text: String,
    /// Its terms in order.
    pub terms: Vec<Term>,
    /// The weight of each content term, once each.
    pub content: FxHashMap<u64, f32>,
    /// Together.
    pub weight: f32,
}

/// The weight of what two contents share. It is added in order, so that it is the same each time.
pub fn shared_weight(one: &FxHashMap<u64, f32>, other: &FxHashMap<u64, f32>) -> f32 {
    let (small, large) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let shared = small.iter().filter(|(key, _)| large.contains_key(key));
    let mut weights: Vec<f32> = shared.map(|(_, weight)| *weight).collect();
    weights.sort_by(f32::total_cmp);
    weights.into_iter().sum()
}

impl Statement {
    /// Reads a sentence.
    pub fn read(text: &str) -> Self {
        let mut terms = terms(text);
        deny(&mut terms);
        let content: FxHashMap<u64, f32> = terms
            .iter()
            .filter(|term| term.is_content())
            .map(|term| (term.key, term.weight))
            .collect();
        let mut weights: Vec<f32> = content.values().copied().collect();
        // A sum in another order may differ in its last digit.
        weights.sort_by(f32::total_cmp);
        Self {
            text: text.to_owned(),
            terms,
            content,
            weight: weights.into_iter().sum(),
        }
    }

    /// Whether two statements have the same words in order.
    pub fn has_the_words_of(&self, other: &Self) -> bool {
        let words = |statement: &Self| -> Vec<String> {
            let terms = statement.terms.iter();
            terms.map(|term| term.word.clone()).collect()
        };
        words(self) == words(other)
    }

    /// Whether it tells how to reach something, and does not say that it is so: `To turn it off, …`.
    pub fn tells_how(&self) -> bool {
        let first = self.terms.first().map_or("", |term| &term.word);
        ["to", "if", "when", "want", "um", "pour", "para", "wenn"].contains(&first)
    }

    /// Whether it only says where to read on: `See man tac`.
    pub fn is_pointer(&self) -> bool {
        let first = self.terms.first().map_or("", |term| &term.word);
        let begins = ["see", "check", "take", "read", "source", "cf"].contains(&first);
        let points =
            ["see", "source", "cf"].contains(&first)
                || self.terms.iter().take(4).any(|term| {
                    ["out", "look", "more", "about", "docs"].contains(&term.word.as_str())
                });
        begins && points
    }

    /// The weight of the content that both have.
    pub fn shared(&self, other: &Self) -> f32 {
        shared_weight(&self.content, &other.content)
    }

    /// The share of common content, from 0 to 1 (Dice coefficient).
    pub fn dice(&self, other: &Self) -> f32 {
        let all = self.weight + other.weight;
        if all > 0.0 {
            2.0 * self.shared(other) / all
        } else {
            0.0
        }
    }

    /// The share of this one's content that the other has.
    pub fn covered_by(&self, other: &Self) -> f32 {
        if self.weight > 0.0 {
            self.shared(other) / self.weight
        } else {
            0.0
        }
    }
}

/// Marks what a sentence says is not so, or is not so any more.
fn deny(terms: &mut [Term]) {
    for at in 0..terms.len() {
        let word = word(terms, at).to_owned();
        let next = word_at(terms, at + 1);
        let after = word_at(terms, at + 2);
        match word.as_str() {
            // `not only`, `no matter`, `whether or not`, `not yet`: these deny nothing.
            "not" | "no" if ["only", "just", "matter", "least", "doubt", "one"].contains(&next) => {
            }
            "not" if at > 0 && word_at(terms, at - 1) == "or" => {}
            // `it is not used`, `it is not to be used`
            "not"
                if at > 0
                    && lexicon::is_auxiliary(word_at(terms, at - 1))
                    && is_participle(terms, at) =>
            {
                deny_before(terms, at, false);
                deny_after(terms, at, false);
            }
            "out" if next == "of" => deny_between_keep_and(terms, at),
            "no" | "not" | "any" if next == "longer" || next == "more" => {
                let passive = [
                    "needed",
                    "used",
                    "supported",
                    "necessary",
                    "required",
                    "valid",
                    "exists",
                    "available",
                    "applies",
                    "works",
                    "true",
                    "needs",
                    "requires",
                ];
                if passive.contains(&after) {
                    deny_before(terms, at, true);
                }
                deny_after(terms, at + 1, true);
                if word == "any" {
                    deny_whole(terms, at);
                }
            }
            "off" if at > 1 && is_switched(word_at(terms, at - 1)) => {
                deny_before(terms, at, true);
            }
            "renamed" if next == "to" => deny_name_before(terms, at),
            "no" if next == "effect" => deny_before(terms, at, true),
            "ignored" | "nothing" if at > 1 => deny_before(terms, at, true),
            // `X, not Y`
            "not" | "nicht" | "no" | "pas" | "не" if is_aside(terms, at) => {
                deny_names_after(terms, at);
            }
            "no" if next == "need" => deny_after(terms, at, false),
            "instead" | "rather" | "place" if ["of", "than"].contains(&next) => {
                deny_names_after(terms, at + 1);
            }
            "statt" | "anstelle" | "вместо" => deny_names_after(terms, at),
            "lieu" | "vez" if ["de", "du", "d"].contains(&next) => deny_names_after(terms, at + 1),
            "used"
                if next == "to" && ["be", "live", "run", "sit", "take", "use"].contains(&after) =>
            {
                deny_after(terms, at + 2, true);
            }
            "formerly" | "previously" | "früher" | "avant" => deny_next_name(terms, at),
            "was" | "were"
                if at > 0
                    && terms.get(at - 1).is_some_and(|before| {
                        terms
                            .get(at)
                            .is_some_and(|this| before.clause != this.clause)
                    }) =>
            {
                deny_next_name(terms, at)
            }
            "replaced" | "replaces" | "replacing" | "replace" | "ersetzt" | "remplace" => {
                replacement(terms, at);
            }
            "from" | "von" | "desde" | "с" => changed_from(terms, at),
            "over"
                if at > 1
                    && terms
                        .iter()
                        .take(at)
                        .any(|term| term.word.starts_with("prefer")) =>
            {
                deny_next_name(terms, at);
            }
            other if lexicon::denies_previous(other) => {
                let is_said_of = (1..=2)
                    .filter_map(|back| at.checked_sub(back))
                    .any(|before| lexicon::is_auxiliary(word_at(terms, before)));
                if at > 0 && word_at(terms, at - 1) == "we" {
                    deny_after(terms, at, true);
                } else if is_said_of || at + 1 == terms.len() {
                    deny_before(terms, at, true);
                }
            }
            other if lexicon::denies_next(other) => deny_after(terms, at, false),
            _ => {}
        }
    }
}

/// Words that begin what a negation does not reach.
const PREPOSITIONS: [&str; 18] = [
    "at", "by", "during", "for", "from", "in", "on", "to", "when", "auf", "bei", "für", "im", "à",
    "dans", "en", "в", "на",
];

/// Words behind which a negation does not reach.
const ENDS: [&str; 9] = ["and", "und", "et", "y", "и", "then", "so", "than", "that"];

/// Whether a negation begins a part of the sentence that ends after one or two words: `X, not Y`.
fn is_aside(terms: &[Term], at: usize) -> bool {
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return false;
    };
    let begins = at > 0
        && terms
            .get(at - 1)
            .is_some_and(|before| before.clause != clause);
    let rest = terms
        .iter()
        .skip(at + 1)
        .take_while(|term| term.clause == clause);
    begins && (1..=3).contains(&rest.count())
}

fn word(terms: &[Term], at: usize) -> &str {
    terms.get(at).map_or("", |term| &term.word)
}

fn word_at(terms: &[Term], at: usize) -> &str {
    word(terms, at)
}

fn mark(term: &mut Term, replaced: bool) {
    // Twice denied is said.
    term.denied = !term.denied;
    term.replaced |= replaced;
}

/// Denies the words behind a negation, to the end of its part of the sentence.
fn deny_after(terms: &mut [Term], at: usize, replaced: bool) {
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return;
    };
    let reached = terms
        .iter_mut()
        .skip(at + 1)
        .take_while(|term| term.clause == clause && !ENDS.contains(&&*term.word));
    // A preposition ends it, where something was reached: `not allowed in tests`.
    let mut count = 0;
    for term in reached {
        if count > 0 && PREPOSITIONS.contains(&&*term.word) || count == REACH {
            return;
        }
        if term.kind != TermKind::Stop || term.pole.is_some() {
            mark(term, replaced);
            count += 1;
        }
    }
}

/// Denies the words before a negation, to the beginning of its part of the sentence.
fn deny_before(terms: &mut [Term], at: usize, replaced: bool) {
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return;
    };
    for term in terms
        .iter_mut()
        .take(at)
        .rev()
        .take_while(|term| term.clause == clause)
    {
        if term.kind != TermKind::Stop {
            mark(term, replaced);
        }
    }
}

/// Denies what stands behind `instead of`: a name, or the next two words.
fn deny_names_after(terms: &mut [Term], at: usize) {
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return;
    };
    let reached = terms
        .iter_mut()
        .skip(at + 1)
        .take_while(|term| term.clause == clause);
    for term in reached.filter(|term| term.kind != TermKind::Stop).take(2) {
        mark(term, true);
    }
}

/// Denies what `X is not read any more` says, before and behind the negation.
fn deny_whole(terms: &mut [Term], at: usize) {
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return;
    };
    let is_denied = |term: &Term| lexicon::denies_next(&term.word) && term.clause == clause;
    if !terms.iter().take(at).any(is_denied) {
        return;
    }
    let before = terms.iter_mut().take(at);
    for term in before.filter(|term| term.clause == clause && term.kind != TermKind::Stop) {
        term.denied = true;
        term.replaced = true;
    }
}

/// Whether a participle stands behind a negation, and nothing else does.
fn is_participle(terms: &[Term], at: usize) -> bool {
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return false;
    };
    let behind = terms
        .iter()
        .skip(at + 1)
        .take_while(|term| term.clause == clause);
    let mut said =
        behind.filter(|term| term.kind != TermKind::Stop && !["to", "be"].contains(&&*term.word));
    let first = said.next();
    first.is_some_and(|term| term.word.ends_with("ed") || term.word == "read") && said.count() <= 3
}

/// `Keep summaries out of answers`: summaries are denied.
fn deny_between_keep_and(terms: &mut [Term], at: usize) {
    let keep = terms.iter().take(at).rposition(|term| term.word == "keep");
    if let Some(keep) = keep {
        for term in terms.iter_mut().take(at).skip(keep + 1) {
            if term.kind != TermKind::Stop {
                mark(term, false);
            }
        }
    }
}

/// Denies the last name or word before `was renamed to`.
fn deny_name_before(terms: &mut [Term], at: usize) {
    let before = terms.iter_mut().take(at).rev();
    if let Some(term) = before.into_iter().find(|term| term.kind != TermKind::Stop) {
        mark(term, true);
    }
}

/// Whether what stands before `off` says that something is off.
fn is_switched(word: &str) -> bool {
    lexicon::is_auxiliary(word) || ["switched", "turned"].contains(&word)
}

fn deny_next_name(terms: &mut [Term], at: usize) {
    let next = terms
        .iter_mut()
        .skip(at + 1)
        .find(|term| term.kind != TermKind::Stop);
    if let Some(term) = next {
        mark(term, true);
    }
}

/// `Y was replaced by X`, `X replaces Y`, `replaced Y with X`: Y is denied.
fn replacement(terms: &mut [Term], at: usize) {
    let next = word_at(terms, at + 1);
    let passive = ["by", "with", "durch", "par", "por"].contains(&next);
    if passive {
        deny_before(terms, at, true);
        return;
    }
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return;
    };
    let reached = terms.iter_mut().skip(at + 1).take_while(|term| {
        term.clause == clause && !["with", "by", "durch"].contains(&&*term.word)
    });
    for term in reached.filter(|term| term.kind != TermKind::Stop).take(3) {
        mark(term, true);
    }
}

/// `moved from Y to X`: Y is denied.
fn changed_from(terms: &mut [Term], at: usize) {
    let before = terms.iter().take(at).rev().enumerate();
    let has_change = before.into_iter().any(|(back, term)| {
        // `up` and `down` mean much else.
        let is_near = back == 0 || !["up", "down", "cut", "went"].contains(&term.word.as_str());
        is_near && lexicon::is_change(&term.word)
    });
    let to = terms.iter().skip(at).take(8).position(|term| {
        [
            "to", "into", "auf", "zu", "nach", "à", "a", "vers", "на", "в",
        ]
        .contains(&&*term.word)
    });
    if !has_change {
        return;
    }
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return;
    };
    let end = to.map_or(at + 3, |to| at + to);
    for term in terms.iter_mut().take(end).skip(at + 1) {
        if term.kind != TermKind::Stop && term.clause == clause {
            mark(term, true);
        }
    }
}
