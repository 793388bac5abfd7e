//! The postings of one term: which documents contain it, and how often.

/// Number of a document within one index.
pub type DocId = u32;

/// The document in the upper 24 bits, and the weighted frequency in half units, at most 255.
pub type Posting = u32;

pub fn pack_posting(doc: DocId, half_units: u32) -> Posting {
    doc << 8 | half_units.min(255)
}

#[expect(clippy::cast_precision_loss, reason = "at most 255")]
pub const fn unpack_posting(posting: Posting) -> (DocId, f32) {
    (posting >> 8, (posting & 0xff) as f32 / 2.0)
}

/// Postings in the order of the documents. Most terms (identifiers, numbers, names) occur in a
/// single document, which needs no heap memory.
#[derive(Debug)]
pub enum Postings {
    One(Posting),
    Many(Vec<Posting>),
}

impl Default for Postings {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Postings {
    /// Reserves room for `additional` more postings. A single one needs no heap memory.
    pub fn reserve(&mut self, additional: usize) {
        match self {
            Self::Many(list) if !list.is_empty() || additional > 1 => {
                list.reserve_exact(additional)
            }
            Self::One(first) if additional > 0 => {
                let mut list = Vec::with_capacity(1 + additional);
                list.push(*first);
                *self = Self::Many(list);
            }
            Self::Many(_) | Self::One(_) => {}
        }
    }

    pub fn push(&mut self, posting: Posting) {
        match self {
            Self::Many(list) if list.capacity() == 0 => *self = Self::One(posting),
            Self::Many(list) => list.push(posting),
            Self::One(first) => *self = Self::Many(vec![*first, posting]),
        }
    }

    pub fn as_slice(&self) -> &[Posting] {
        match self {
            Self::One(posting) => std::slice::from_ref(posting),
            Self::Many(list) => list,
        }
    }

    pub fn shrink(&mut self) {
        if let Self::Many(list) = self {
            list.shrink_to_fit();
        }
    }
}
