//! What a person's agents missed: how often the person's own past prompts, asked again, would have
//! found each memory that waits for review.
//!
//! The prompts are read through `ack-store`, asked here, and shown to nobody but the person who
//! typed them. Where a store keeps none, what has to do with the present work comes first.

use std::collections::HashMap;
use std::sync::Arc;

use ack_api::memory::{Memory, StatusFilter};
use ack_api::{NoteKind, QueryRequest, QueryResponse, text, time};
use ack_service::scope::Scope;
use ack_store::prompts::Prompt;
use serde::Serialize;

use super::Desk;
use super::background::Search;
use super::choice::count_text;
use super::effective::{Key, key};
use super::heaps::SUMMARY;
use crate::curate::Candidate;

/// How many prompts are asked again, the newest.
const MAX_PROMPTS: u32 = 120;
/// A prompt would have found the memories among this many results.
const TOP: usize = 5;
/// How many results are read, because some of them do not count.
const MAX_RESULTS: i64 = 15;
const MAX_ANSWER_TOKENS: i64 = 20_000;
const SHOWN_PROMPTS: usize = 2;

/// What past prompts would have found.
#[derive(Debug, Default)]
pub struct Need {
    prompts: Vec<Prompt>,
    /// The prompts that would have found each memory, by its number.
    found_by: HashMap<usize, Vec<usize>>,
    /// Without prompts, how much each memory has to do with the present work.
    work: Vec<u32>,
    /// How many of the prompts found an approved memory when the desk was opened, once it is known.
    answered: Option<usize>,
}

/// How often a memory was missed, as its card says.
#[derive(Debug, Serialize)]
pub struct Missed {
    pub said: String,
    /// Some of the prompts that would have found it, each with its day, the newest first.
    pub examples: Vec<PastPrompt>,
}

#[derive(Debug, Serialize)]
pub struct PastPrompt {
    pub text: String,
    pub day: Option<String>,
}

/// How many past prompts find an approved memory.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Answered {
    pub prompts: usize,
    pub before: Option<usize>,
    pub after: usize,
}

impl Search {
    /// Asks the newest prompts again. Stores that cannot be read have none. `waiting` are the
    /// memories that wait, by number.
    pub fn need(&self, waiting: &[Arc<Candidate>]) -> Need {
        let prompts = self.prompts();
        if prompts.is_empty() {
            let memories: Vec<(&Memory, &Scope)> =
                waiting.iter().map(|it| (it.memory(), &*it.scope)).collect();
            return Need { work: self.service.nearness_to_work(&memories), ..Need::default() };
        }
        let numbers: HashMap<Key<'_>, usize> = waiting.iter().map(|it| key(it)).zip(0..).collect();
        let mut found_by = HashMap::<usize, Vec<usize>>::new();
        for (position, prompt) in prompts.iter().enumerate() {
            for (scope, memory) in self.memories(prompt, StatusFilter::Staging) {
                if let Some(number) = numbers.get(&(scope.as_str(), memory.id.as_str())) {
                    found_by.entry(*number).or_default().push(position);
                }
            }
        }
        Need { prompts, found_by, ..Need::default() }
    }

    fn prompts(&self) -> Vec<Prompt> {
        let read = self.scopes.iter().filter_map(|scope| {
            scope.store.snapshot(|snapshot| snapshot.prompts(MAX_PROMPTS)).ok().flatten()
        });
        let mut prompts: Vec<Prompt> = read.flatten().collect();
        prompts.sort_by_key(|prompt| std::cmp::Reverse(prompt.asked));
        prompts.truncate(MAX_PROMPTS as usize);
        prompts
    }

    /// How many prompts find an approved memory now.
    pub fn answered(&self, prompts: &[Prompt]) -> usize {
        let found = prompts.iter().map(|prompt| self.memories(prompt, StatusFilter::Approved));
        found.filter(|found| !found.is_empty()).count()
    }

    /// The memories that a prompt finds, each with the name of its scope: no session summaries,
    /// which quote their prompt, and none of its own session. Approved ones only if they answer it
    /// for certain.
    fn memories(&self, prompt: &Prompt, status: StatusFilter) -> Vec<(String, Memory)> {
        let Ok(QueryResponse { results, notes, .. }) = self.ask(prompt, status) else {
            return Vec::new();
        };
        let is_uncertain = notes.iter().any(|note| note.kind == NoteKind::NothingCertain);
        if is_uncertain && status == StatusFilter::Approved {
            return Vec::new();
        }
        let read = results.into_iter().filter_map(|hit| {
            let scope = self.scopes.iter().find(|scope| scope.name == hit.scope)?;
            let memory = scope.store.snapshot(|snapshot| snapshot.by_id(&hit.id));
            Some((hit.scope, memory.ok().flatten()?))
        });
        let counts = |(_, memory): &(String, Memory)| {
            let sessions = [&memory.session, &memory.session_id];
            let is_own = prompt.session.is_some() && sessions.contains(&&prompt.session);
            !is_own && memory.kind.as_deref() != Some(SUMMARY)
        };
        read.filter(counts).take(TOP).collect()
    }

    fn ask(
        &self,
        prompt: &Prompt,
        status: StatusFilter,
    ) -> Result<QueryResponse, ack_service::Error> {
        let scope = match self.scopes.as_slice() {
            [scope] => Some(scope.name.clone()),
            _ => None,
        };
        self.service.query_memories(&QueryRequest {
            query: Some(prompt.text.clone()),
            scope,
            status: Some(status),
            limit: Some(MAX_RESULTS),
            max_tokens: Some(MAX_ANSWER_TOKENS),
            ..QueryRequest::default()
        })
    }
}

impl Desk {
    /// Orders what waits by need from now on, unless a question orders it.
    pub fn set_need(&mut self, need: Need) {
        let is_ordered = self.is_for_a_question();
        for (number, item) in self.items.iter_mut().enumerate() {
            let found = need.found_by.get(&number).map_or(0, Vec::len);
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            let need = need.work.get(number).copied().unwrap_or(found);
            item.need = if is_ordered { 0 } else { need };
        }
        self.need = need;
        self.has_new_order.set(self.items.iter().any(|item| item.need > 0));
        self.forget_known();
    }

    /// The prompts that were asked again; none before they were.
    pub fn past_prompts(&self) -> &[Prompt] {
        &self.need.prompts
    }

    /// Notes how many of them found an approved memory before anything was saved.
    pub const fn set_answered(&mut self, answered: usize) {
        self.need.answered = Some(answered);
    }

    /// How many past prompts are answered now, and how many were before.
    pub fn answered(&self, after: usize) -> Option<Answered> {
        let prompts = self.need.prompts.len();
        (prompts > 0).then_some(Answered { prompts, before: self.need.answered, after })
    }

    /// How often past prompts would have found some memories; `None` if there are no prompts.
    pub fn missed_of(&self, numbers: &[usize]) -> Option<usize> {
        let found = numbers.iter().filter_map(|number| self.need.found_by.get(number));
        (!self.need.prompts.is_empty()).then(|| found.map(Vec::len).sum())
    }

    /// How often past prompts would have found a memory that waits; `None` if there are no prompts.
    pub fn missed(&self, number: usize) -> Option<Missed> {
        self.items.get(number).filter(|item| !item.is_approved)?;
        let count = self.missed_of(&[number])?;
        let prompts = count_text(self.need.prompts.len(), "prompt", "prompts");
        let asked = format!("Your last {prompts}");
        let said = match count {
            0 => format!("{asked} would not have found this one: it may wait."),
            1 => format!("{asked} would have found this one once."),
            times => format!("{asked} would have found this one {times} times."),
        };
        let found = self.need.found_by.get(&number).into_iter().flatten();
        let prompts = found.filter_map(|position| self.need.prompts.get(*position));
        let examples = prompts.take(SHOWN_PROMPTS).map(|prompt| PastPrompt {
            text: text::line(&prompt.text, 120),
            day: prompt.asked.map(time::to_date),
        });
        Some(Missed { said, examples: examples.collect() })
    }
}
