//! Finds words of a question that no memory contains, but the session of a memory does.
//!
//! A session's title (and its overview, if it may be shown) often names the topic that its memories
//! only solve: "Review of the April outage" over a memory about probes. If no visible memory
//! contains a word, this looks for it in sessions. Memories from a matching session become
//! candidates like any other: they pass the same filters and their status is read from the store,
//! so a hidden session finds nothing. Titles change independently of their memories, so they are
//! read from the store each time and are not indexed. That costs one read of the sessions table,
//! and only if a word is unknown.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::open::OpenScopes;
use crate::scope::Scope;
use ack_search::analysis::{self, TextRole, TokenKind};
use ack_search::analyzer::term_key;
use ack_search::filter::Filters;
use ack_search::interner::NameId;
use ack_search::inverted::Index;
use ack_search::lexical::max_idf;
use ack_search::postings::DocId;
use ack_search::query::QueryTerms;
use ack_search::remote::Eligibility;
use ack_search::view::{EligibilityRules, View};

/// The weight of a word in the session, relative to the same word in the memory itself.
const SESSION_WEIGHT: f32 = 0.3;
const MAX_SHOWN_WORDS: usize = 5;

/// Evidence for a memory outside its own text.
#[derive(Debug)]
pub struct SessionEvidence {
    pub scope: usize,
    pub doc: DocId,
    /// Its contribution to the lexical score.
    pub weight: f32,
    pub words: String,
}

/// The terms of a question with the words that match them.
type MatchedTerms = BTreeMap<String, String>;

/// Finds the memories whose sessions contain a word of the question that no memory within the
/// filters contains.
pub fn find(
    opened: &OpenScopes,
    views: &[View<'_>],
    terms: &QueryTerms,
    filters: &Filters,
) -> Vec<SessionEvidence> {
    let rules: Vec<EligibilityRules<'_>> = views
        .iter()
        .map(|view| EligibilityRules::new(view, filters))
        .collect();
    let is_candidate = |rules: &EligibilityRules<'_>, doc: DocId| {
        matches!(rules.check(doc), Eligibility::Eligible)
    };
    let is_met = |key: &str| {
        views.iter().zip(&rules).any(|(View { index, .. }, rules)| {
            let in_remote = index
                .remote()
                .is_some_and(|remote| remote.document_frequency(key, filters.status) > 0);
            in_remote || index.postings(key).any(|(doc, _)| is_candidate(rules, doc))
        })
    };
    let mut wanted = BTreeMap::new();
    if !terms.only_stop_words {
        let unmet = terms.terms.iter().filter(|term| !is_met(&term.key));
        wanted.extend(unmet.map(|term| (term.key.as_str(), term.weight)));
    }
    if wanted.is_empty() {
        return Vec::new();
    }
    let each = SESSION_WEIGHT * max_idf(views, filters.status);
    let mut evidence = Vec::new();
    for (number, (open, (view, rules))) in opened.iter().zip(views.iter().zip(&rules)).enumerate() {
        let index = view.index;
        if !index
            .live()
            .any(|(_, doc)| doc.session != 0 || doc.session_id != 0)
        {
            continue;
        }
        let matches_by_session = matching_sessions(&open.scope, index, &wanted);
        if matches_by_session.is_empty() {
            continue;
        }
        for (doc, row) in index.live() {
            let sessions = [
                matches_by_session.get(&row.session),
                matches_by_session.get(&row.session_id),
            ];
            let matched: BTreeMap<&String, &String> =
                sessions.into_iter().flatten().flatten().collect();
            if matched.is_empty() || !is_candidate(rules, doc) {
                continue;
            }
            let weights = matched.keys().filter_map(|key| wanted.get(key.as_str()));
            let mut words: Vec<&str> = matched.values().map(|word| word.as_str()).collect();
            words.dedup();
            words.truncate(MAX_SHOWN_WORDS);
            evidence.push(SessionEvidence {
                scope: number,
                doc,
                weight: each * weights.sum::<f32>(),
                words: words.join(", "),
            });
        }
    }
    evidence
}

/// The sessions with memories that contain a wanted term. A store that cannot be read now is reported
/// when its memories are read.
fn matching_sessions(
    scope: &Scope,
    index: &Index,
    wanted: &BTreeMap<&str, f32>,
) -> FxHashMap<NameId, MatchedTerms> {
    let read = scope.store.snapshot(|snapshot| {
        let mut sessions: FxHashMap<NameId, MatchedTerms> = FxHashMap::default();
        snapshot.session_texts(|names, text| {
            let matched = match_terms(text, wanted);
            if matched.is_empty() {
                return;
            }
            for name in names.iter().filter_map(|name| known_session(index, name)) {
                sessions.entry(name).or_default().extend(matched.clone());
            }
        })?;
        Ok(sessions)
    });
    read.unwrap_or_default()
}

/// The session of this name, if a memory was learned in it.
fn known_session(index: &Index, name: &str) -> Option<NameId> {
    index.lookup(name).filter(|name| *name != 0)
}

/// The wanted terms that a text contains.
fn match_terms(text: &str, wanted: &BTreeMap<&str, f32>) -> MatchedTerms {
    let mut matched = MatchedTerms::new();
    // A stem may end differently from its word. Texts without the beginning of any stem are not
    // tokenized.
    let lower = text.to_lowercase();
    let beginning = |key: &&str| {
        let key = key.trim_start_matches('=');
        let end = key.char_indices().last().map_or(0, |(at, _)| at);
        key.get(..end.max(1))
            .is_none_or(|beginning| lower.contains(beginning))
            || !key.is_ascii()
    };
    if !wanted.keys().any(beginning) {
        return matched;
    }
    analysis::tokenize(text, TextRole::Document, &mut |token| {
        if token.kind == TokenKind::Word && analysis::is_stop_word(&token.text) {
            return;
        }
        let key = term_key(token.kind, &token.text);
        if wanted.contains_key(key.as_ref()) {
            matched
                .entry(key.into_owned())
                .or_insert_with(|| token.text.into_owned());
        }
    });
    matched
}
