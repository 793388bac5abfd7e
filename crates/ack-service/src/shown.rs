//! What an answer already shows, so that what another memory contains is not shown again.

use ack_api::memory::Memory;
use ack_search::wording::Wording;

/// How a memory relates to those that are shown. Only the text counts, never likeness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlap {
    /// The one at this position says all of it.
    Contained(usize),
    /// It says all of those at these positions, in order, and more. If there are none, it says
    /// something that no other one does.
    Contains(Vec<usize>),
}

impl Overlap {
    /// How a memory relates to shown ones, each with its position. It can take the place of those
    /// from `first` on only.
    pub fn of<'a>(
        wording: &Wording,
        shown: impl Iterator<Item = (usize, &'a Wording)> + Clone,
        first: usize,
    ) -> Self {
        if let Some((at, _)) = shown.clone().find(|(_, known)| known.contains(wording)) {
            return Self::Contained(at);
        }
        let contained = shown.filter(|(at, known)| *at >= first && wording.contains(known));
        Self::Contains(contained.map(|(at, _)| at).collect())
    }
}

#[derive(Debug, Default)]
pub struct Shown(Vec<Wording>);

impl Shown {
    /// Adds a memory to a list, which begins with the shown one at `first`, in the place of those
    /// that it contains, unless another one says all of it. Other lists keep what they have.
    pub fn add_to<T>(
        &mut self,
        list: &mut Vec<T>,
        first: usize,
        memory: &Memory,
        entry: impl FnOnce() -> T,
    ) {
        let wording = Wording::of(memory);
        let shown = self.0.iter().enumerate();
        if let Overlap::Contains(contained) = Overlap::of(&wording, shown, first) {
            put(&mut self.0, 0, wording, &contained);
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
