//! One sentence, and what it denies.

use rustc_hash::FxHashMap;

use crate::lexicon;
use crate::term::{Term, TermKind, terms};

/// How many words a negation covers.
const NEGATION_REACH: usize = 4;
/// Minimum share of a statement's content in another one that contains it.
const MIN_CONTAINED: f32 = 0.8;

/// A sentence, a fact or a title.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The text as written.
    pub text: String,
    /// Its terms in order.
    pub terms: Vec<Term>,
    /// The weight of each content term, once each.
    pub content: FxHashMap<u64, f32>,
    /// The sum of these weights.
    pub weight: f32,
}

/// The weight of what two contents share. It is summed in a fixed order, so that the result never
/// varies.
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
    /// Parses a sentence.
    pub fn read(text: &str) -> Self {
        let mut terms = terms(text);
        deny(&mut terms);
        let content: FxHashMap<u64, f32> = terms
            .iter()
            .filter(|term| term.is_content())
            .map(|term| (term.key, term.weight))
            .collect();
        let mut weights: Vec<f32> = content.values().copied().collect();
        // Summing in another order may change the last digit.
        weights.sort_by(f32::total_cmp);
        Self {
            text: text.to_owned(),
            terms,
            content,
            weight: weights.into_iter().sum(),
        }
    }

    /// Whether two statements have the same words in the same order.
    pub fn has_same_words(&self, other: &Self) -> bool {
        let words = |statement: &Self| -> Vec<String> {
            let terms = statement.terms.iter();
            terms.map(|term| term.word.clone()).collect()
        };
        words(self) == words(other)
    }

    /// Whether another statement contains all of it: its words, names and numbers, with the same
    /// negations.
    pub fn is_contained_in(&self, other: &Self) -> bool {
        let is_there = |term: &Term| {
            let mut others = other.terms.iter();
            others.any(|known| known.identity() == term.identity() && known.denied == term.denied)
        };
        let side = |term: &Term| {
            term.polarity
                .map(|(group, side)| (group, side != term.denied))
        };
        let has_side = |term: &Term| {
            let mut others = other.terms.iter();
            others.any(|known| side(known) == side(term))
        };
        self.weight > 0.0
            && self.covered_by(other) >= MIN_CONTAINED
            && self.terms.iter().all(|term| match term.kind {
                TermKind::Name(_) | TermKind::Number(_) => is_there(term),
                TermKind::Word if other.content.contains_key(&term.key) => is_there(term),
                _ => term.polarity.is_none() || has_side(term),
            })
    }

    /// Whether it is an instruction or a condition, and not an assertion: `To turn it off, …`.
    pub fn is_instruction(&self) -> bool {
        let first = self.terms.first().map_or("", |term| &term.word);
        ["to", "if", "when", "want", "um", "pour", "para", "wenn"].contains(&first)
    }

    /// Whether its subject is only a word like `it`.
    pub fn has_pronoun_subject(&self) -> bool {
        let first = self.terms.first().map_or("", |term| &*term.word);
        ["it", "this", "that", "these", "they", "those"].contains(&first)
    }

    /// Whether it is a heading: each word begins with a capital letter, or it has only one word.
    pub fn is_heading(&self) -> bool {
        let words = self.text.split_whitespace().filter(|word| word.len() > 3);
        let words: Vec<&str> = words.filter(|word| !word.starts_with('`')).collect();
        let is_upper = |word: &&str| !word.starts_with(char::is_lowercase);
        let content = self.terms.iter().filter(|term| term.is_content()).count();
        !self.is_sentence() && (content < 2 || words.len() > 1 && words.iter().all(is_upper))
    }

    /// Whether it asserts something, and is not only a name like a heading.
    pub fn is_sentence(&self) -> bool {
        let mut words = self.terms.iter();
        self.text.trim_end().ends_with(['.', '!', ';'])
            || words.any(|term| lexicon::is_verb(&term.word))
    }

    /// Whether it is about what was, or what could be.
    pub fn is_past(&self) -> bool {
        let mut words = self.terms.iter();
        words.any(|term| lexicon::is_past(&term.word))
    }

    /// Whether a clause that contains a term has a negation, or a word with that meaning, that the
    /// other statement lacks.
    pub fn is_negative_about(&self, key: u64, other: &Self) -> bool {
        let mentions = self.terms.iter().filter(|term| term.key == key);
        let clauses: Vec<u16> = mentions.map(|term| term.clause).collect();
        let is_known = |word: &str| other.terms.iter().any(|term| term.word == word);
        let mut nearby = self
            .terms
            .iter()
            .filter(|term| clauses.contains(&term.clause));
        nearby.any(|term| lexicon::is_negative(&term.word) && !is_known(&term.word))
    }

    /// Whether a number is the time or version since when, or until when, something holds.
    pub fn is_since(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| word(&self.terms, at));
        let is_border = |back: usize| match before(back) {
            "since" | "until" | "seit" | "depuis" | "desde" => true,
            // `after Node 20`, but `after 30 seconds` and `after 3 attempts`
            "before" | "after" => back == 2,
            "of" => before(back + 1) == "as",
            _ => false,
        };
        let skips_name = self
            .terms
            .get(at.wrapping_sub(1))
            .is_some_and(|term| term.is_content());
        is_border(1) || skips_name && (is_border(2) || before(2) == "in")
    }

    /// Whether it only refers to another source: `See man tac`.
    pub fn is_source_reference(&self) -> bool {
        let first = self.terms.first().map_or("", |term| &*term.word);
        let shows = ["similar", "given", "example", "e.g", "eg"].contains(&first)
            || self.text.trim_end().ends_with('?');
        if shows {
            return true;
        }
        let begins = ["see", "check", "take", "read", "source", "cf"].contains(&first);
        let is_pointer =
            ["see", "source", "cf"].contains(&first)
                || self.terms.iter().take(4).any(|term| {
                    ["out", "look", "more", "about", "docs"].contains(&term.word.as_str())
                });
        begins && is_pointer
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

    /// The share of its content that the other statement has.
    pub fn covered_by(&self, other: &Self) -> f32 {
        if self.weight > 0.0 {
            self.shared(other) / self.weight
        } else {
            0.0
        }
    }
}

/// Marks the terms that a sentence denies, or says are no longer so.
fn deny(terms: &mut [Term]) {
    for at in 0..terms.len() {
        let word = word(terms, at).to_owned();
        let next = word_at(terms, at + 1);
        let after = word_at(terms, at + 2);
        if is_restriction(terms, at) {
            continue;
        }
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
                    // `packages no longer needed` only describes some packages.
                    let is_stated = (1..=2)
                        .filter_map(|back| at.checked_sub(back))
                        .any(|before| {
                            lexicon::is_auxiliary(word_at(terms, before))
                                || lexicon::denies_next(word_at(terms, before))
                        });
                    let is_verb =
                        ["exists", "applies", "works", "needs", "requires"].contains(&after);
                    if !is_stated && !is_verb {
                        continue;
                    }
                    deny_before(terms, at, true);
                }
                deny_after(terms, at + 1, true);
                if word == "any" {
                    deny_assertion(terms, at);
                }
            }
            "off" if at > 1 && is_switch_verb(word_at(terms, at - 1)) => {
                deny_before(terms, at, true);
            }
            "renamed" if next == "to" => deny_name_before(terms, at),
            "no" if next == "effect" => deny_before(terms, at, true),
            "ignored" | "nothing" if at > 1 => deny_before(terms, at, true),
            // `X, not Y`
            "not" | "nicht" | "no" | "pas" | "не" if is_short_contrast(terms, at) => {
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

/// Words that end the reach of a negation.
const PREPOSITIONS: [&str; 18] = [
    "at", "by", "during", "for", "from", "in", "on", "to", "when", "auf", "bei", "für", "im", "à",
    "dans", "en", "в", "на",
];

/// Whether a word is a preposition.
pub fn is_preposition(word: &str) -> bool {
    PREPOSITIONS.contains(&word)
}

/// Further words that end the reach of a negation.
const NEGATION_ENDS: [&str; 9] = ["and", "und", "et", "y", "и", "then", "so", "than", "that"];

/// Whether a negation only selects things and asserts nothing: `tags that are not annotated`.
fn is_restriction(terms: &[Term], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map_or("", |at| word(terms, at));
    (1..=2).any(|back| ["that", "who", "whose"].contains(&before(back)))
        && (before(1) == "that" || lexicon::is_verb(before(1)))
        && at > 2
}

/// Whether a negation begins a clause that ends after one or two words: `X, not Y`.
fn is_short_contrast(terms: &[Term], at: usize) -> bool {
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

fn mark_denied(term: &mut Term, replaced: bool) {
    // A double negation asserts.
    term.denied = !term.denied;
    term.replaced |= replaced;
}

/// Denies the words after a negation, up to the end of its clause.
fn deny_after(terms: &mut [Term], at: usize, replaced: bool) {
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return;
    };
    let reached = terms
        .iter_mut()
        .skip(at + 1)
        .take_while(|term| term.clause == clause && !NEGATION_ENDS.contains(&&*term.word));
    // A preposition ends it once something is denied: `not allowed in tests`.
    let mut count = 0;
    let mut is_verb_reached = false;
    for term in reached {
        let is_reached = count > 0 || is_verb_reached;
        if is_reached && PREPOSITIONS.contains(&&*term.word) || count == NEGATION_REACH {
            return;
        }
        // `not to be used for it`
        is_verb_reached |= term.word == "used";
        if term.kind != TermKind::Stop || term.polarity.is_some() {
            mark_denied(term, replaced);
            count += 1;
        }
    }
}

/// Denies the words before a negation, back to the start of its clause.
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
            mark_denied(term, replaced);
        }
    }
}

/// Denies what follows `instead of`: a name, or the next two words.
fn deny_names_after(terms: &mut [Term], at: usize) {
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return;
    };
    let reached = terms
        .iter_mut()
        .skip(at + 1)
        .take_while(|term| term.clause == clause);
    for term in reached.filter(|term| term.kind != TermKind::Stop).take(2) {
        mark_denied(term, true);
        term.has_replacement = true;
    }
}

/// Denies the assertion in `X is not read any more`, before and after the negation.
fn deny_assertion(terms: &mut [Term], at: usize) {
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

/// Whether a participle follows a negation, and nothing else does.
fn is_participle(terms: &[Term], at: usize) -> bool {
    let Some(clause) = terms.get(at).map(|term| term.clause) else {
        return false;
    };
    let following = terms
        .iter()
        .skip(at + 1)
        .take_while(|term| term.clause == clause);
    let mut participle = following
        .filter(|term| term.kind != TermKind::Stop && !["to", "be"].contains(&&*term.word));
    let first = participle.next();
    first.is_some_and(|term| term.word.ends_with("ed") || term.word == "read")
        && participle.count() <= 3
}

/// `Keep summaries out of answers`: summaries are denied.
fn deny_between_keep_and(terms: &mut [Term], at: usize) {
    let keep = terms.iter().take(at).rposition(|term| term.word == "keep");
    if let Some(keep) = keep {
        for term in terms.iter_mut().take(at).skip(keep + 1) {
            if term.kind != TermKind::Stop {
                mark_denied(term, false);
            }
        }
    }
}

/// Denies the last name or word before `was renamed to`.
fn deny_name_before(terms: &mut [Term], at: usize) {
    let before = terms.iter_mut().take(at).rev();
    if let Some(term) = before.into_iter().find(|term| term.kind != TermKind::Stop) {
        mark_denied(term, true);
    }
}

/// Whether the word before `off` means that something is off.
fn is_switch_verb(word: &str) -> bool {
    lexicon::is_auxiliary(word) || ["switched", "turned"].contains(&word)
}

fn deny_next_name(terms: &mut [Term], at: usize) {
    let next = terms
        .iter_mut()
        .skip(at + 1)
        .find(|term| term.kind != TermKind::Stop);
    if let Some(term) = next {
        mark_denied(term, true);
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
        mark_denied(term, true);
        term.has_replacement = true;
    }
}

/// `moved from Y to X`: Y is denied.
fn changed_from(terms: &mut [Term], at: usize) {
    let before = terms.iter().take(at).rev().enumerate();
    let has_change = before.into_iter().any(|(back, term)| {
        // `up` and `down` have other meanings, and a migration may be run from somewhere.
        let means_more = [
            "up",
            "down",
            "cut",
            "went",
            "migration",
            "move",
            "switch",
            "upgrade",
            "changes",
        ];
        let is_near = back == 0 || !means_more.contains(&term.word.as_str());
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
            mark_denied(term, true);
            term.has_replacement = true;
        }
    }
}
