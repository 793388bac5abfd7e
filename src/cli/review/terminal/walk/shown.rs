//! The card that is shown, with what is known about other memories.

use std::sync::Arc;

use ack_desk::Desk;
use ack_desk::background::answered;
use ack_desk::card::{Card, days};
use ack_desk::choice::{Action, Choice};
use ack_desk::curate::Candidate;
use ack_desk::evidence::{NextSession, evidence};
use ack_desk::nearest::{Near, neighbours};
use ack_desk::need::{Answered, Missed};
use ack_desk::web::decided;
use parking_lot::Mutex;

use crate::hook::session_text;

/// What takes a while to find out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// What there is about the memory with this number.
    Card(usize),
    /// How many past prompts find an approved memory now.
    Answered,
}

#[derive(Debug)]
pub enum Found {
    Card(CardFound),
    Answered(Option<Answered>),
}

impl Found {
    /// Looks for it. The desk is not locked meanwhile.
    pub fn search(desk: &Mutex<Desk>, wanted: Wanted) -> Option<Self> {
        match wanted {
            Wanted::Card(number) => CardFound::search(desk, number).map(Self::Card),
            Wanted::Answered => Some(Self::Answered(answered(desk))),
        }
    }
}

#[derive(Debug)]
pub struct CardFound {
    number: usize,
    pub near: Vec<ShownNear>,
    pub evidence: Vec<String>,
    pub next: Option<NextSession>,
}

impl CardFound {
    fn search(desk: &Mutex<Desk>, number: usize) -> Option<Self> {
        let (candidate, held, service, now) = {
            let desk = desk.lock();
            let candidate = Arc::clone(&desk.items().get(number)?.candidate);
            (Arc::clone(&candidate), desk.held(&candidate), desk.service, desk.now)
        };
        let near = neighbours(service, &candidate, &held, now).into_iter();
        let evidence = evidence(service, &candidate).unwrap_or_default();
        let next = NextSession::of(service, &candidate, &held, session_text);
        let desk = desk.lock();
        let near = near
            .map(|near| ShownNear { short_id: desk.short_ids.shortest(&near.id), near })
            .collect();
        Some(Self { number, near, evidence, next })
    }
}

#[derive(Debug)]
pub struct ShownCard {
    pub number: usize,
    pub candidate: Arc<Candidate>,
    pub card: Card,
    pub short_id: String,
    pub is_flagged: bool,
    pub is_approved: bool,
    /// What was decided about it, as a participle.
    pub decision: Option<&'static str>,
    /// What approving and rejecting it would do.
    pub approve: String,
    pub reject: String,
    /// Waiting ones that are much alike.
    pub alike: Option<String>,
    /// What else was decided, what rejecting it would do, and the prompts that would have found it.
    pub known: Vec<String>,
    /// `None` while it is looked for.
    pub found: Option<CardFound>,
    /// Which neighbour `m`, `d` and `=` are about.
    pub marked: usize,
    /// What these keys would do, or why they cannot.
    pub near_keys: Vec<Action>,
}

#[derive(Debug)]
pub struct ShownNear {
    pub short_id: String,
    pub near: Near,
}

impl ShownCard {
    pub fn of(desk: &Desk, number: usize) -> Option<Self> {
        let item = desk.items().get(number)?;
        let card = desk.card(number)?;
        // If the store cannot be read, nothing can be decided either.
        let preview = |choice| desk.preview(&[number], &choice).unwrap_or_default();
        let (approved, rejected) = (preview(Choice::Approve), preview(Choice::Reject));
        let back = rejected.side_effects.iter();
        let back = back.map(|line| format!("if you reject it, {line}"));
        let known = decided_alike(desk, number).into_iter().chain(back);
        Some(Self {
            number,
            short_id: desk.short_ids.shortest(&card.id),
            card,
            candidate: Arc::clone(&item.candidate),
            is_flagged: item.is_held_back(),
            is_approved: item.is_approved,
            decision: desk.done(number),
            approve: approved.label.to_lowercase(),
            reject: rejected.label.to_lowercase(),
            alike: alike(desk, number),
            known: known.chain(missed(desk, number)).collect(),
            found: None,
            marked: 0,
            near_keys: Vec::new(),
        })
    }

    /// Takes over what was found, if it is about this memory.
    pub fn learn(&mut self, desk: &Desk, found: CardFound) {
        if found.number == self.number {
            self.found = Some(found);
            self.read_near_keys(desk);
        }
    }

    fn near(&self) -> &[ShownNear] {
        self.found.as_ref().map_or(&[], |found| &found.near)
    }

    /// The same card, as the desk knows it now.
    pub fn again(self, desk: &Desk) -> Option<Self> {
        Some(Self {
            found: self.found,
            marked: self.marked,
            near_keys: self.near_keys,
            ..Self::of(desk, self.number)?
        })
    }

    pub fn mark_next(&mut self, desk: &Desk) {
        self.marked = (self.marked + 1) % self.near().len().max(1);
        self.read_near_keys(desk);
    }

    fn read_near_keys(&mut self, desk: &Desk) {
        let near = self.near().get(self.marked);
        let actions = near.map(|near| desk.actions_with(self.number, &near.near.id).0);
        self.near_keys = actions.unwrap_or_default();
    }

    pub fn marked_id(&self) -> Result<String, String> {
        let marked = self.near().get(self.marked).map(|marked| marked.near.id.clone());
        marked.ok_or_else(|| match self.found {
            None => "the approved memories are still looked for".to_owned(),
            Some(_) => "no approved memory is near it".to_owned(),
        })
    }

    pub fn hints(&self) -> Vec<String> {
        let split = self.reject.split_once(", ").map(|(reject, rest)| format!("{reject} ({rest})"));
        let reject = format!("r 1-9 {}", split.as_ref().unwrap_or(&self.reject));
        let mut hints = vec![format!("a {}", self.approve), reject, "e edit".to_owned()];
        hints.extend(self.alike.as_ref().map(|_| "g keep this one".to_owned()));
        hints.extend(["h snooze", "s skip", "X all"].map(str::to_owned));
        hints
    }

    /// One line: where it belongs, its type, its age and its writer's confidence.
    pub fn about(&self) -> String {
        let card = &self.card;
        let place = card.project.as_ref().unwrap_or(&card.scope).clone();
        let age = card.age_days.map(|age| format!("{} old", days(age)));
        let confidence = card.confidence.map(|share| format!("confidence {share:.2}"));
        let decided = self.is_approved.then(|| decided(self.candidate.memory()));
        let parts = [Some(place), card.kind.clone(), age, confidence, decided];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

/// The waiting memories that are much alike, and the keys for them.
fn alike(desk: &Desk, number: usize) -> Option<String> {
    let ids = desk.ids_of_group(number);
    let ids: Vec<String> = ids.iter().map(|id| desk.short_ids.shortest(id)).collect();
    let (count, ids) = (ids.len() + 1, ids.join(" "));
    (count > 1).then(|| {
        format!("{count} alike · g keep this one, A approve all, R reject all; the others: {ids}")
    })
}

/// How often past prompts would have found it, and some of them.
fn missed(desk: &Desk, number: usize) -> Vec<String> {
    let Some(Missed { said, examples }) = desk.missed(number) else {
        return Vec::new();
    };
    let examples = examples.into_iter().map(|prompt| {
        let day = prompt.day.unwrap_or_default();
        format!("{day}  {}", prompt.text).trim().to_owned()
    });
    std::iter::once(said).chain(examples).collect()
}

fn decided_alike(desk: &Desk, number: usize) -> Option<String> {
    let decided = desk.decided_in_group(number).into_iter();
    let decided: Vec<String> = decided
        .map(|(id, decision)| format!("{} {decision}", desk.short_ids.shortest(&id)))
        .collect();
    (!decided.is_empty()).then(|| format!("already decided, much alike: {}", decided.join(", ")))
}
