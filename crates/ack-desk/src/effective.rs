//! Which unwritten choices count. The last one about a memory does, and a choice to approve another
//! memory in its place is one about it, too.

use super::choice::Choice;
use super::queue::ItemState;
use super::{Desk, MadeChoice};
use crate::curate::Candidate;

pub type Key<'a> = (&'a str, &'a str);

pub fn key(candidate: &Candidate) -> Key<'_> {
    (&candidate.scope.name, &candidate.memory().id)
}

/// The memory that is replaced if `candidate` is approved in its place.
pub fn replaced_by<'a>(choice: &Choice, other: Option<&'a Candidate>) -> Option<Key<'a>> {
    other.filter(|_| matches!(choice, Choice::Supersede { .. })).map(key)
}

impl Desk {
    fn last_choice(&self, memory: Key<'_>, is_own: impl Fn(usize) -> bool) -> LastChoice<'_> {
        for made in self.choices.iter().rev() {
            for pick in made.picks.iter().rev() {
                if is_own(pick.number) {
                    return LastChoice::Own(&made.choice);
                }
                if replaced_by(&made.choice, pick.other.as_ref()) == Some(memory) {
                    return LastChoice::Replaced;
                }
            }
        }
        LastChoice::None
    }

    /// Why nothing can be merged into a memory, or be replaced by it: the choices remove it.
    pub fn removal(&self, candidate: &Candidate) -> Option<&'static str> {
        let memory = key(candidate);
        let is_own = |number: usize| {
            let item = self.items.get(number);
            item.is_some_and(|item| key(&item.candidate) == memory)
        };
        match self.last_choice(memory, is_own) {
            LastChoice::Own(choice) if choice.removes() => {
                Some("you decided to remove that memory too")
            }
            LastChoice::Replaced => Some(
                "you approved another memory in its place; name that one, or undo that choice first",
            ),
            LastChoice::None | LastChoice::Own(_) => None,
        }
    }

    /// What was chosen for a memory, saved or not, as a participle.
    pub fn done(&self, number: usize) -> Option<&'static str> {
        let item = self.items.get(number)?;
        if let Some(saved) = &item.saved {
            return Some(saved.done(item.is_approved));
        }
        // Most have no choice, and a screen of rows asks for each.
        let is_replacing = |made: &MadeChoice| matches!(made.choice, Choice::Supersede { .. });
        if item.state == ItemState::Waiting && !self.choices.iter().any(is_replacing) {
            return None;
        }
        match self.last_choice(key(&item.candidate), |own| own == number) {
            LastChoice::None => None,
            LastChoice::Own(choice) => Some(choice.done(item.is_approved)),
            LastChoice::Replaced => Some("replaced"),
        }
    }
}

enum LastChoice<'a> {
    None,
    /// It was made on the memory's own card.
    Own(&'a Choice),
    /// Another memory was approved in its place.
    Replaced,
}
