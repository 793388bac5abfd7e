//! The postings of one term: which documents hold it, and how often.

/// A posting: the document in the upper 24 bits, the weighted frequency in half units (at most 255) in the lower 8.
pub type Posting = u32;

/// Postings in the order of the documents. Most terms (identifiers, numbers, names) stand in one document only, and cost no
/// memory of their own then.
#[derive(Debug)]
pub enum Postings {
    /// One document holds the term.
    One(Posting),
    /// Any number of documents.
    Many(Vec<Posting>),
}

impl Default for Postings {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Postings {
    /// Makes room for so many more. One by itself needs none.
    pub fn reserve(&mut self, more: usize) {
        match self {
            Self::Many(list) if !list.is_empty() || more > 1 => list.reserve_exact(more),
            Self::One(first) if more > 0 => {
                let mut list = Vec::with_capacity(1 + more);
                list.push(*first);
                *self = Self::Many(list);
            }
            Self::Many(_) | Self::One(_) => {}
        }
    }

    /// Appends the posting of a later document.
    pub fn push(&mut self, posting: Posting) {
        match self {
            Self::Many(list) if list.capacity() == 0 => *self = Self::One(posting),
            Self::Many(list) => list.push(posting),
            Self::One(first) => *self = Self::Many(vec![*first, posting]),
        }
    }

    /// All of them.
    pub fn as_slice(&self) -> &[Posting] {
        match self {
            Self::One(posting) => std::slice::from_ref(posting),
            Self::Many(list) => list,
        }
    }

    /// Gives back memory that growth left over.
    pub fn shrink(&mut self) {
        if let Self::Many(list) = self {
            list.shrink_to_fit();
        }
    }
}
