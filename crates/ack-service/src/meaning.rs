//! The vector of a question.

use ack_contextual::Contextual;
use ack_search::encoder::Encoder;
use ack_search::semantic::{QuantizedVector, QueryVector};

/// How much the small transformer's vector of a question counts, relative to the static one, if the
/// question is compared with static vectors. It reads the question in context, but it fits them
/// less well.
const SHARE_FOR_STATIC: f32 = 0.15;
/// The same for contextual vectors, which are made in the same way.
const SHARE_FOR_CONTEXTUAL: f32 = 1.0;
/// A question of fewer words has no context; for static vectors, it is not read.
const MIN_WORDS: usize = 3;

/// The vector of a question, if the encoder knows any of its words. `is_contextual` is whether it
/// is compared with memories that have contextual vectors.
pub fn of(text: &str, is_contextual: bool) -> Option<QueryVector> {
    let encoder = Encoder::embedded()?;
    let plain = encoder.query(text)?;
    // The transformer knows only English.
    let is_english = encoder.is_english(text);
    let has_context = is_english && text.split_whitespace().nth(MIN_WORDS - 1).is_some();
    let network = || Contextual::embedded()?.question(text);
    let network = (is_english && is_contextual || has_context).then(network);
    let network = network.flatten();
    let with = |share: f32| {
        let vector = encoder.with_network(&plain, network.as_deref()?, share)?;
        QuantizedVector::quantize(&vector)
    };
    let read = has_context.then(|| with(SHARE_FOR_STATIC)).flatten();
    Some(QueryVector {
        contextual: is_contextual.then(|| with(SHARE_FOR_CONTEXTUAL)).flatten(),
        plain: read.or_else(|| QuantizedVector::quantize(&plain))?,
    })
}

/// The same without reading the text in context, which takes long for a whole memory and adds
/// little where it is compared with static vectors.
pub fn without_context(text: &str) -> Option<QueryVector> {
    let plain = Encoder::embedded()?.query(text)?;
    Some(QueryVector { contextual: None, plain: QuantizedVector::quantize(&plain)? })
}
