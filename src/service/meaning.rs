//! The vector of a question.

use ack_search::encoder::Encoder;
use ack_search::semantic::{QuantizedVector, QueryVector};

/// The vector of a question, if the encoder knows any of its words. It is contextual, too, if it is
/// compared with memories that are.
pub fn of(text: &str, is_contextual: bool) -> Option<QueryVector> {
    let plain = Encoder::embedded()?.query(text)?;
    Some(QueryVector {
        contextual: is_contextual
            .then(|| in_context(text, &plain))
            .flatten()
            .as_deref()
            .and_then(QuantizedVector::quantize),
        plain: QuantizedVector::quantize(&plain)?,
    })
}

#[cfg(feature = "table")]
fn in_context(text: &str, plain: &[f32]) -> Option<Vec<f32>> {
    use ack_contextual::Contextual;
    use ack_search::encoder::Space;

    let vector = Contextual::embedded()?.question(text)?;
    Encoder::embedded()?.with_network(plain, &vector, Space::Encoder)
}

/// Only vector tables have contextual vectors.
#[cfg(not(feature = "table"))]
const fn in_context(_text: &str, _plain: &[f32]) -> Option<Vec<f32>> {
    None
}
