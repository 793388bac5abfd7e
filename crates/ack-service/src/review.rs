//! The memories that wait for a curator, each with similar approved ones. Only reads; decisions are
//! made elsewhere.

use super::budget::{self, frame};
use super::engine::Service;
use super::instructions::Instructions;
use super::open::{OpenScope, OpenScopes};
use super::validate::check_length;
use super::{answer, nearest};
use crate::error::Error;
use crate::scope::resolve::Selection;
use ack_api::memory::{Memory, Status, StatusFilter};
use ack_api::{
    ConflictingStatements, Detail, Given, Hint, NearEntry, Note, NoteKind, RelationKind, Review,
    ReviewItem, Tool, Warning, cancel, text,
};
use ack_compare::Profile;
use ack_flags::{without_secret, without_secrets};

const MAX_MEMORIES: usize = 10;
const MIN_REPEATED_RESEMBLANCE: f64 = 0.8;
const STATEMENT_CAP: usize = 300;
const MAX_TOKENS: usize = 8_000;

/// Reads the waiting memories: in one scope, or in every shared one and the current one. Skips the
/// first `offset`.
pub fn run(service: &Service, scope: Option<&str>, offset: u64) -> Result<Review, Error> {
    check_length("scope", scope.unwrap_or_default())?;
    let mut selection = service.select(scope, None)?;
    let mut notes = Vec::new();
    let opened = OpenScopes::open(service, &mut selection, &mut notes)?;
    let mut waiting = opened.ordered(|index, doc, row| {
        (row.status == Status::Staging).then(|| (row.created, index.id(doc)))
    });
    cancel::check()?;
    let total = waiting.len() as u64;
    let first = usize::try_from(offset).map_or(waiting.len(), |offset| offset.min(waiting.len()));
    waiting.drain(..first);
    let next = offset.saturating_add(MAX_MEMORIES as u64);
    let mut review = Review {
        total,
        offset: first as u64,
        next_offset: (next < total).then_some(next),
        searched: selection.searched(StatusFilter::Staging),
        ..Review::default()
    };
    waiting.truncate(MAX_MEMORIES);
    // The store decides: a memory that was decided about meanwhile is gone.
    let mut records = opened.read(
        waiting.iter().map(|(_, wanted)| *wanted),
        StatusFilter::Staging,
    );
    if let Some((_, error)) = records.failed.into_iter().next() {
        return Err(error);
    }
    let memories: Vec<(String, Memory)> = waiting
        .iter()
        .filter_map(|((_, id), wanted)| {
            let record = records.found.remove(&(wanted.scope, (*id).to_owned()))?;
            Some((opened.get(wanted.scope)?.name().to_owned(), record.memory))
        })
        .collect();
    let share = MAX_TOKENS / memories.len().max(1);
    let mut is_cut = false;
    let desk = Desk {
        service,
        opened: &opened,
        selection: &selection,
        instructions: Instructions::of(&selection.current),
    };
    for (scope, memory) in &memories {
        let mut item = desk.item(scope, memory)?;
        if budget::token_cost(&item.memory) > share {
            budget::cut_hit(&mut item.memory, share);
            is_cut = true;
        }
        review.pending.push(item);
    }
    if is_cut {
        let waiting = [Given::value("status", "staging")];
        let whole = Hint::call_with(Tool::GetMemory, waiting, "shows one in full");
        notes.push(Note::new(NoteKind::Cut, "long memories are cut").with(whole));
    }
    answer::note_repairs(memories.iter().map(|(_, memory)| memory), &mut notes);
    let is_shown = |scope: &str| memories.iter().any(|(of, _)| of == scope);
    opened.note_missing_status(is_shown, &mut notes);
    frame::limit_searched(&mut review.searched, |name| {
        review.pending.iter().any(|item| item.memory.scope == name)
    });
    frame::limit_notes(&mut notes);
    review.notes = notes;
    Ok(review)
}

struct Desk<'a> {
    service: &'a Service,
    opened: &'a OpenScopes,
    selection: &'a Selection,
    instructions: Instructions,
}

impl Desk<'_> {
    fn item(&self, scope: &str, memory: &Memory) -> Result<ReviewItem, Error> {
        let open = self.opened.named(scope);
        let mut hit = answer::hit(&without_secrets(memory), scope, Detail::Full);
        if let Some(index) = open.and_then(OpenScope::index) {
            answer::hide_successor(&mut hit, index, StatusFilter::All);
        }
        let profile = Profile::of(memory);
        let neighbours = |status| {
            let memory = (scope, memory);
            nearest::of(self.opened, self.selection, memory, &profile, status)
        };
        let waiting = neighbours(StatusFilter::Staging)?.into_iter();
        let group = waiting.filter(|other| other.scope == scope && is_repeated(other));
        let mut instructions = open.map_or_else(Vec::new, |open| {
            let current = &self.selection.current;
            self.instructions.about(memory, &open.scope, current)
        });
        let conflicts = instructions
            .iter_mut()
            .filter_map(|entry| entry.conflict.as_mut());
        conflicts.for_each(|conflict| conflict.waiting = without_secret(&conflict.waiting));
        let approved = neighbours(StatusFilter::Approved)?.into_iter();
        Ok(ReviewItem {
            memory: hit,
            warnings: warnings_about(open, memory)?,
            age_days: age_days(self.service, memory),
            group: group.map(|other| other.memory.id).collect(),
            resembles: approved.map(entry).collect(),
            instructions,
        })
    }
}

fn warnings_about(open: Option<&OpenScope>, memory: &Memory) -> Result<Vec<Warning>, Error> {
    let Some(open) = open else {
        return Ok(Vec::new());
    };
    let store = &open.scope.store;
    let curated = store.snapshot(|snapshot| snapshot.curated(&memory.id))?;
    Ok(curated.map_or_else(Vec::new, |curated| curated.warnings()))
}

fn age_days(service: &Service, memory: &Memory) -> Option<i64> {
    let now = (service.config.clock)();
    let seconds = now.as_second() - memory.created_at?.as_second();
    Some((seconds / 86_400).max(0))
}

fn is_repeated(neighbour: &nearest::NearMemory) -> bool {
    let relation = &neighbour.relation;
    relation.kind == RelationKind::Same
        || relation.kind != RelationKind::Contradicts
            && relation.resemblance >= MIN_REPEATED_RESEMBLANCE
}

fn entry(neighbour: nearest::NearMemory) -> NearEntry {
    let statement = |text: &str| text::line(text, STATEMENT_CAP);
    NearEntry {
        id: neighbour.memory.id,
        scope: neighbour.scope,
        title: text::line(&neighbour.memory.title, STATEMENT_CAP),
        status: neighbour.memory.status,
        relation: neighbour.relation.kind,
        resemblance: (neighbour.relation.resemblance * 1_000.0).round() / 1_000.0,
        conflict: neighbour
            .relation
            .conflict
            .map(|conflict| ConflictingStatements {
                waiting: without_secret(&statement(&conflict.newer)),
                approved: statement(&conflict.older),
            }),
    }
}
