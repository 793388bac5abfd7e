//! The review desk: the memories that wait for review, and the person's choice for each.
//!
//! A choice can be changed and taken back until it is written ([`Desk::choose`],
//! [`Desk::take_back`]). [`Desk::write`] writes scope by scope. A choice about a memory that has
//! changed since it was read is put back instead. The terminal, the list and the browser page
//! ([`web`]) are user interfaces of the desk: they show the same [`card`] and the same [`Preview`].

pub mod apply;
pub mod background;
pub mod card;
pub mod check;
pub mod choice;
pub mod curate;
pub mod decide;
pub mod document;
mod effective;
pub mod evidence;
pub mod heaps;
pub mod held_back;
pub mod markdown;
pub mod matching;
pub mod nearest;
pub mod need;
pub mod progress;
pub mod publish;
pub mod queue;
mod relations;
pub mod web;
mod write;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ack_api::decision::{Decision, Edit, Verdict};
use ack_api::queue::QueueNumbers;
use ack_api::text;
use serde::Serialize;

use self::card::Card;
use self::choice::{Action, Choice, ChoiceOnMemory, Preview, count_text};
use self::effective::key;
use self::heaps::HeapKind;
use self::held_back::HeldBack;
use self::need::Need;
use self::progress::Pace;
use self::queue::{ItemState, Known, QueueItem, QueueKind, by_queue};
pub use self::write::{ChangedMemory, ReviewOutcome};
use crate::curate::find::{Filter, Queue, by_id, queue, short_ids};
use crate::curate::side_effects::SideEffects;
use crate::curate::stale::ApprovedMemory;
use crate::curate::{Candidate, CurateError, ReviewSession, by_scope, log, merge_edits};
use ack_service::Service;
use ack_service::scope::Scope;
use ack_service::short_id::ShortIds;

const MAX_RECENT: usize = 10;
/// How many memories of one choice to show.
const MEMBERS: usize = 50;

#[derive(Debug)]
pub struct Desk {
    pub service: &'static Service,
    /// Those that wait, then the approved ones. A memory is known by its number here.
    items: Vec<QueueItem>,
    /// What was counted or looked for in them since they changed.
    known: RefCell<Known>,
    /// Whether the unreviewed memories were reordered and the first of them has not been shown since.
    has_new_order: Cell<bool>,
    /// The choices that are not written yet, in order. No memory is picked twice.
    choices: Vec<MadeChoice>,
    /// Groups of memories that are much alike, by number. Empty until they are compared.
    groups: Vec<Vec<usize>>,
    next_key: u64,
    pub now: jiff::Timestamp,
    /// The statistics of the whole queue when the desk was opened.
    numbers: QueueNumbers,
    /// What the desk begins with.
    pub queue: QueueKind,
    /// The scopes that the unreviewed memories come from.
    scopes: Vec<Arc<Scope>>,
    filter: Filter,
    /// How memories are named. Empty: by whole ids.
    pub short_ids: ShortIds,
    /// Whether a choice for many memories is also for flagged ones.
    includes_flagged: bool,
    /// The heaps that are split by type.
    split: HashSet<HeapKind>,
    need: Need,
    pace: Pace,
    /// Whether the approved memories were read.
    pub has_approved: bool,
    /// Whether it is known which memories contradict an approved one.
    are_compared: bool,
}

#[derive(Debug, Clone)]
struct MadeChoice {
    key: u64,
    choice: Choice,
    reason: Option<String>,
    picks: Vec<Pick>,
}

#[derive(Debug, Clone)]
struct Pick {
    number: usize,
    /// The other memory that the choice names, as it was at that time.
    other: Option<Candidate>,
    /// What undoing it brings back.
    before: Option<Box<Before>>,
}

/// An earlier choice for a memory, and what the curator had written by then.
#[derive(Debug, Clone)]
struct Before {
    made: MadeChoice,
    edit: Edit,
}

impl MadeChoice {
    fn numbers(&self) -> impl Iterator<Item = usize> {
        self.picks.iter().map(|pick| pick.number)
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Recent {
    /// Its key, for taking it back.
    pub key: u64,
    /// The choice as a participle: `approved`.
    pub done: &'static str,
    pub reason: Option<String>,
    /// The title of the memory, or the number of memories.
    pub about: String,
    /// How many memories it is about, and the first of them.
    pub count: usize,
    pub members: Vec<Member>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Member {
    pub number: usize,
    pub title: String,
}

impl Desk {
    /// Reads the unreviewed memories, oldest first.
    pub fn open(
        scopes: &[Arc<Scope>],
        filter: &Filter,
        service: &'static Service,
        now: jiff::Timestamp,
    ) -> Result<Self, CurateError> {
        let Queue { waiting, numbers } = queue(scopes, filter, now)?;
        Ok(Self {
            numbers,
            filter: filter.clone(),
            are_compared: false,
            ..Self::with(waiting, scopes, service, now)
        })
    }

    pub fn with(
        memories: Vec<Candidate>,
        scopes: &[Arc<Scope>],
        service: &'static Service,
        now: jiff::Timestamp,
    ) -> Self {
        let mut desk = Self {
            items: memories.into_iter().map(QueueItem::new).collect(),
            known: RefCell::default(),
            has_new_order: Cell::new(false),
            service,
            choices: Vec::new(),
            groups: Vec::new(),
            next_key: 1,
            now,
            numbers: QueueNumbers::default(),
            queue: QueueKind::Waiting,
            scopes: scopes.to_vec(),
            filter: Filter::default(),
            short_ids: ShortIds::default(),
            includes_flagged: false,
            split: HashSet::new(),
            need: Need::default(),
            pace: Pace::default(),
            has_approved: false,
            are_compared: true,
        };
        desk.sort_into_heaps();
        desk
    }

    /// From now on, a choice for many memories is also for those that are flagged.
    pub const fn include_flagged(&mut self) {
        self.includes_flagged = true;
    }

    /// The memories that a choice is for, and what it holds back: a person decides about a flagged
    /// memory alone.
    fn of_choice(&self, numbers: &[usize]) -> (Vec<usize>, HeldBack) {
        match numbers {
            [_] => (numbers.to_vec(), HeldBack::default()),
            _ => self.without_flagged(numbers),
        }
    }

    /// The same of a choice for many.
    pub fn without_flagged(&self, numbers: &[usize]) -> (Vec<usize>, HeldBack) {
        let mut held_back = HeldBack::default();
        let mut numbers = numbers.to_vec();
        numbers.retain(|number| {
            let item = self.items.get(*number).filter(|item| item.is_held_back());
            self.includes_flagged
                || !item.is_some_and(|item| held_back.add(&item.candidate.curated, &item.warnings))
        });
        (numbers, held_back)
    }

    /// Names memories by the shortest forms of their ids from now on.
    pub fn shorten_ids(&mut self) {
        self.short_ids = short_ids(&self.scopes);
    }

    /// Adds approved memories after the others, without those that are there already.
    pub(crate) fn add_items(&mut self, mut items: Vec<QueueItem>) {
        let approved = by_queue(&self.items).1.iter();
        let unsaved = approved.filter(|item| item.state != ItemState::Written);
        let there: HashSet<_> = unsaved.map(|item| key(&item.candidate)).collect();
        items.retain(|item| !there.contains(&key(&item.candidate)));
        drop(there);
        self.items.extend(items);
        self.forget_known();
    }

    pub fn mark_stale(&mut self, number: usize, reason: Option<String>) {
        if let Some(item) = self.items.get_mut(number) {
            item.is_approved = reason.is_some();
            item.stale = reason;
        }
        self.forget_known();
    }

    pub fn open_approved(&mut self, found: Vec<ApprovedMemory>) {
        self.queue = QueueKind::Approved;
        self.add_items(found.into_iter().map(QueueItem::approved).collect());
        self.has_approved = true;
    }

    pub fn waiting(&self) -> Vec<Arc<Candidate>> {
        by_queue(&self.items).0.iter().map(|item| Arc::clone(&item.candidate)).collect()
    }

    pub fn items(&self) -> &[QueueItem] {
        &self.items
    }

    /// How many memories have a choice that is not written yet.
    pub fn unwritten(&self) -> usize {
        self.choices.iter().map(|made| made.picks.len()).sum()
    }

    /// How many memories were decided about and written.
    pub fn written(&self) -> usize {
        self.items.iter().filter(|item| item.saved.is_some()).count()
    }

    /// Whether it has what matches a question, the best match first.
    pub const fn is_for_a_question(&self) -> bool {
        self.filter.only.is_some()
    }

    pub const fn put_off(&self) -> u64 {
        self.numbers.put_off
    }

    pub fn card(&self, number: usize) -> Option<Card> {
        let item = self.items.get(number)?;
        let mut card = Card::of(&item.candidate, self.now);
        if item.was_put_back {
            let note = "nothing was written about it: it or the other memory changed meanwhile";
            card.marks.insert(0, note.to_owned());
        }
        if let Some(reason) = &item.stale {
            card.marks.insert(0, reason.clone());
        }
        if card.session.is_some() {
            let Candidate { scope, curated, .. } = &*item.candidate;
            let read = scope.store.snapshot(|snapshot| snapshot.title_of_session(&curated.memory));
            // If it cannot be read, the card shows the session's name.
            card.session_title = read.ok().flatten();
        }
        Some(card)
    }

    pub fn preview(&self, numbers: &[usize], choice: &Choice) -> Result<Preview, CurateError> {
        let session = preview_session(self.now);
        if let [number] = numbers {
            let Some(item) = self.items.get(*number) else {
                return Ok(Preview::default());
            };
            let other = self.other(&item.candidate, choice)?;
            let chosen = item.with_choice(choice, other.as_ref());
            let hidden_count = Self::hidden_count(&[item], choice);
            let mut preview = chosen.preview(&session, hidden_count, &self.short_ids)?;
            preview.add_side_effects(&side_effects(&[chosen], &session), &self.short_ids);
            return Ok(preview);
        }
        let (numbers, held_back) = self.of_choice(numbers);
        let items: Vec<&QueueItem> = self.items_of(&numbers).collect();
        let hides = Self::hidden_count(&items, choice);
        let mut preview = Preview::of_many(choice, &items, hides, &self.short_ids);
        // Choices that name another memory never bring back what several memories replaced.
        if choice.other().is_none() {
            let chosen: Vec<ChoiceOnMemory<'_>> =
                items.iter().map(|item| item.with_choice(choice, None)).collect();
            preview.add_side_effects(&side_effects(&chosen, &session), &self.short_ids);
        }
        preview.label = held_back.after(&preview.label);
        Ok(preview)
    }

    /// What a memory's own keys do to it: approve, reject and, if it waits, promote.
    pub fn actions(&self, number: usize) -> Result<Vec<Action>, CurateError> {
        let mut keys = vec![('a', Choice::Approve), ('r', Choice::Reject)];
        if !self.is_approved(number) {
            keys.push(('p', Choice::Promote));
        }
        let actions = keys.into_iter().map(|(key, choice)| {
            let preview = self.preview(&[number], &choice)?;
            Ok(Action { key, choice, preview })
        });
        actions.collect()
    }

    /// What keys do to a memory and an approved one near it, and why the first of the others cannot
    /// do anything.
    pub fn actions_with(&self, number: usize, other: &str) -> (Vec<Action>, Option<CurateError>) {
        let is_approved = self.is_approved(number);
        let mut refusal = None;
        let actions = ['m', 'd', '='].into_iter().filter_map(|key| {
            let choice = Choice::with_other(key, other.to_owned(), is_approved);
            match self.preview(&[number], &choice) {
                Ok(mut preview) => {
                    // Its id stands beside the keys.
                    let id = format!(" {}", self.short_ids.shortest(other));
                    preview.label = preview.label.replacen(&id, " it", 1);
                    Some(Action { key, choice, preview })
                }
                Err(error) => {
                    refusal.get_or_insert(error);
                    None
                }
            }
        });
        (actions.collect(), refusal)
    }

    /// Records a choice for all of some memories or, if it is not possible for one, for none. It
    /// replaces their earlier choices. What the curator wrote stays, unless it is rejected.
    pub fn choose(
        &mut self,
        numbers: &[usize],
        choice: Choice,
        reason: Option<String>,
    ) -> Result<(), CurateError> {
        self.choose_together(vec![(numbers.to_vec(), choice, reason)])?;
        self.note_decision(numbers.len() > 1);
        Ok(())
    }

    /// Makes several choices, which are undone together.
    fn choose_together(
        &mut self,
        choices: Vec<(Vec<usize>, Choice, Option<String>)>,
    ) -> Result<(), CurateError> {
        let key = self.next_key;
        for (numbers, choice, reason) in choices {
            if let Err(error) = self.choose_as(key, &numbers, choice, reason) {
                self.take_back(Some(key));
                return Err(error);
            }
        }
        self.next_key += 1;
        Ok(())
    }

    fn choose_as(
        &mut self,
        key: u64,
        numbers: &[usize],
        choice: Choice,
        reason: Option<String>,
    ) -> Result<(), CurateError> {
        let session = preview_session(self.now);
        let (numbers, _) = self.of_choice(numbers);
        let mut picks = Vec::new();
        for number in numbers {
            let Some(item) = self.items.get(number).filter(|_| self.is_unsaved(number)) else {
                continue;
            };
            let other = self.other(&item.candidate, &choice)?;
            for candidate in std::iter::once(&*item.candidate).chain(&other) {
                candidate.check_single()?;
            }
            for decision in item.with_choice(&choice, other.as_ref()).decisions(&session)? {
                decision.validate()?;
            }
            picks.push(Pick { number, other, before: None });
        }
        if picks.is_empty() {
            return Ok(());
        }
        let mut made = MadeChoice { key, choice, reason, picks };
        let mut earlier = self.forget(&made.numbers().collect());
        for pick in &mut made.picks {
            let Some(item) = self.items.get_mut(pick.number) else { continue };
            let edit = item.candidate.edit.clone();
            let earlier = earlier.remove(&pick.number);
            pick.before = earlier.map(|made| Box::new(Before { made, edit: edit.clone() }));
            item.state = ItemState::Chosen;
            item.show_edited(match &made.choice {
                Choice::Edit { edit: new } => merge_edits(new.as_ref().clone(), edit),
                Choice::Reject => Edit::default(),
                _ => edit,
            });
        }
        self.choices.push(made);
        Ok(())
    }

    /// Whether a choice for a memory repeats what was decided about it last.
    pub fn repeats(&self, number: usize, choice: &Choice, session: &ReviewSession) -> bool {
        let Some(item) = self.items.get(number) else {
            return false;
        };
        let Ok(other) = self.other(&item.candidate, choice) else {
            return false;
        };
        let (curated, memory) = (&item.candidate.curated, item.memory());
        let is_same = |decision: &Decision| {
            let says_more = decision.reason.is_some()
                || decision.despite.is_some() && decision.despite != memory.kept_despite
                || decision.until.is_some()
                || curated.put_off_until.is_some()
                || decision.verdict == Verdict::Edit
                || decision.into != memory.superseded_by;
            let is_replaced = decision.into.is_some();
            let has_status = is_replaced || decision.status() == Some(memory.status);
            curated.is_decided && !says_more && has_status
        };
        let decisions = item.with_choice(choice, other.as_ref()).decisions(session);
        decisions.is_ok_and(|decisions| decisions.iter().all(is_same))
    }

    /// Takes back the choice with this key, or the last one, and brings back the one before it about
    /// the same memory. Returns the numbers of its memories.
    pub fn take_back(&mut self, key: Option<u64>) -> Vec<usize> {
        let Some(key) = key.or(self.choices.last().map(|made| made.key)) else {
            return Vec::new();
        };
        let taken = self.choices.extract_if(.., |made| made.key == key);
        let picks: Vec<Pick> = taken.flat_map(|made| made.picks).collect();
        let numbers = picks.iter().map(|pick| pick.number).collect();
        for Pick { number, before, .. } in picks {
            let Some(item) = self.items.get_mut(number) else { continue };
            item.state = ItemState::Waiting;
            item.show_edited(before.as_ref().map(|it| it.edit.clone()).unwrap_or_default());
            if let Some(before) = before {
                item.state = ItemState::Chosen;
                self.bring_back(before.made);
            }
        }
        numbers
    }

    /// Puts an earlier choice back in its place.
    fn bring_back(&mut self, earlier: MadeChoice) {
        let is_same =
            |made: &&mut MadeChoice| (made.key, &made.choice) == (earlier.key, &earlier.choice);
        if let Some(made) = self.choices.iter_mut().find(is_same) {
            made.picks.extend(earlier.picks);
        } else {
            let at = self.choices.partition_point(|made| made.key <= earlier.key);
            self.choices.insert(at, earlier);
        }
    }

    /// The last choices, newest first.
    pub fn recent(&self) -> Vec<Recent> {
        let together = self.choices.chunk_by(|one, next| one.key == next.key).rev();
        together.take(MAX_RECENT).filter_map(|made| self.recent_one(made)).collect()
    }

    fn recent_one(&self, made: &[MadeChoice]) -> Option<Recent> {
        let first = made.first()?;
        let numbers: Vec<usize> = made.iter().flat_map(MadeChoice::numbers).collect();
        let member = |number: &usize| Member { number: *number, title: self.title(*number) };
        let members: Vec<Member> = numbers.iter().take(MEMBERS).map(member).collect();
        let are_approved = self.items_of(&numbers).all(|item| item.is_approved);
        let count = numbers.len();
        Some(Recent {
            key: first.key,
            done: match made.len() {
                1 => first.choice.done(are_approved),
                _ => "kept one of each group",
            },
            reason: first.reason.clone(),
            about: match members.as_slice() {
                [member] => member.title.clone(),
                _ => count_text(count, "memory", "memories"),
            },
            count,
            members,
        })
    }

    pub fn title(&self, number: usize) -> String {
        let title = self.items.get(number).map(|item| text::line(&item.memory().title, 120));
        title.unwrap_or_default()
    }

    fn is_approved(&self, number: usize) -> bool {
        self.items.get(number).is_some_and(|item| item.is_approved)
    }

    /// How many other memories agents stop seeing once they see these.
    fn hidden_count(items: &[&QueueItem], choice: &Choice) -> usize {
        let served = items.iter().filter(|item| choice.serves() && !item.is_approved);
        let served = served.map(|item| (&item.candidate.scope, item.memory().id.as_str()));
        let counts = by_scope(served).map(|(scope, ids)| {
            let ids = ids.into_iter().collect();
            let older = scope.store.snapshot(|snapshot| snapshot.replaced_by(&ids));
            older.unwrap_or_default().iter().filter(|older| older.status.is_served()).count()
        });
        counts.sum()
    }

    fn set(&mut self, number: usize, state: ItemState) {
        if let Some(item) = self.items.get_mut(number) {
            item.state = state;
        }
    }

    /// Takes out what was chosen for some memories. Returns it for each.
    fn forget(&mut self, numbers: &HashSet<usize>) -> HashMap<usize, MadeChoice> {
        let mut forgotten = HashMap::new();
        for made in &mut self.choices {
            for pick in made.picks.extract_if(.., |pick| numbers.contains(&pick.number)) {
                let (choice, reason) = (made.choice.clone(), made.reason.clone());
                let number = pick.number;
                let alone = MadeChoice { key: made.key, choice, reason, picks: vec![pick] };
                forgotten.insert(number, alone);
            }
        }
        self.choices.retain(|made| !made.picks.is_empty());
        forgotten
    }

    /// The other memory that a choice names, in the same scope.
    fn other(
        &self,
        candidate: &Candidate,
        choice: &Choice,
    ) -> Result<Option<Candidate>, CurateError> {
        let Some(id) = choice.other() else {
            return Ok(None);
        };
        let other = by_id(&[Arc::clone(&candidate.scope)], id)?;
        let is_replaced_anyway = matches!(choice, Choice::Supersede { .. });
        match self.removal(&other).filter(|_| !is_replaced_anyway) {
            None => Ok(Some(other)),
            Some(reason) => Err(CurateError::Successor {
                id: candidate.memory().id.clone(),
                into: other.memory().id.clone(),
                reason: reason.to_owned(),
            }),
        }
    }
}

/// What else changes with these choices. Nothing, if a store cannot be read: then writing fails.
fn side_effects(chosen: &[ChoiceOnMemory<'_>], session: &ReviewSession) -> SideEffects {
    let decisions = chosen.iter().map(|chosen| {
        (&chosen.item.candidate.scope, chosen.decisions(session).unwrap_or_default())
    });
    let mut side_effects = SideEffects::default();
    for (scope, decisions) in by_scope(decisions) {
        let decisions = decisions.concat();
        side_effects.add(log::consequences(scope, &decisions, false).unwrap_or_default().1);
    }
    side_effects
}

/// A session that writes nothing.
fn preview_session(now: jiff::Timestamp) -> ReviewSession {
    ReviewSession::begin("process:preview".to_owned(), None, now)
}
