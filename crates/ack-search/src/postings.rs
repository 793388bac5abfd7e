//! The postings of one term: which documents contain it, and how often.

use smallvec::SmallVec;

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
pub type Postings = SmallVec<[Posting; 4]>;
