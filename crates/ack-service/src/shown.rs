//! What an answer already shows, so that what another memory contains is not shown again.

use ack_api::memory::Memory;
use ack_search::wording::Wording;

#[derive(Debug, Default)]
pub struct Shown(Vec<Wording>);

/// How a memory relates to those that are shown. Only the text counts, never likeness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlap {
    /// The one at this position says all of it.
    Contained(usize),
    /// It says all of those at these positions, in order, and more. If there are none, it says
    /// something that no other one does.
    Contains(Vec<usize>),
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
        let comparable = || self.0.iter().enumerate().filter(|(at, _)| is_comparable(*at));
        if let Some((at, _)) = comparable().find(|(_, known)| known.contains(wording)) {
            return Overlap::Contained(at);
        }
        let contained = comparable().filter(|(at, known)| *at >= first && wording.contains(known));
        Overlap::Contains(contained.map(|(at, _)| at).collect())
    }

    /// Adds a memory in the place of those that it contains, else at the end.
    pub fn add(&mut self, wording: Wording, contained: &[usize]) {
        put(&mut self.0, 0, wording, contained);
    }

    /// Adds a memory to a list too, which begins with the shown one at `first`, unless another one
    /// says all of it. Other lists keep what they have.
    pub fn add_to<T>(
        &mut self,
        list: &mut Vec<T>,
        first: usize,
        memory: &Memory,
        entry: impl FnOnce() -> T,
    ) {
        let wording = Wording::of(memory);
        if let Overlap::Contains(contained) = self.overlap(&wording, first, |_| true) {
            self.add(wording, &contained);
            put(list, first, entry(), &contained);
        }
    }

    pub const fn len(&self) -> usize {
        self.0.len()
    }
}

fn put<T>(list: &mut Vec<T>, first: usize, entry: T, contained: &[usize]) {
    for at in contained.iter().rev() {
        list.remove(at - first);
    }
    list.insert(contained.first().map_or(list.len(), |at| at - first), entry);
}
