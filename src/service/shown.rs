//! What an answer already shows, so that what another memory contains is not shown again.

use ack_search::wording::Wording;

/// The memories of an answer, in their order.
#[derive(Debug, Default)]
pub(super) struct Shown(Vec<Wording>);

/// How a memory relates to those that are shown. Only the text counts, never likeness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    /// The one at this position says all of it.
    Contained(usize),
    /// It says all of the one at this position, the first of such, and more.
    Contains(usize),
    /// It says something that no other one does.
    None,
}

impl Shown {
    /// How a memory relates to those that are shown and that `is_comparable` accepts by their
    /// positions. It can take the place of those from `first` on only.
    pub fn overlap(
        &self,
        wording: &Wording,
        first: usize,
        is_comparable: impl Fn(usize) -> bool,
    ) -> Overlap {
        let find = |from: usize, is_one: &dyn Fn(&Wording) -> bool| {
            let mut shown = self.0.iter().enumerate().skip(from);
            let found = shown.find(|(at, known)| is_comparable(*at) && is_one(known));
            found.map(|(at, _)| at)
        };
        if let Some(at) = find(0, &|known| known.contains(wording)) {
            return Overlap::Contained(at);
        }
        find(first, &|known| wording.contains(known)).map_or(Overlap::None, Overlap::Contains)
    }

    /// Adds a memory: at the place of the one that it contains, if there is one, else at the end.
    pub fn add(&mut self, wording: Wording, instead_of: Option<usize>) {
        match instead_of.and_then(|at| self.0.get_mut(at)) {
            Some(known) => *known = wording,
            None => self.0.push(wording),
        }
    }

    /// The number of memories.
    pub const fn len(&self) -> usize {
        self.0.len()
    }
}
