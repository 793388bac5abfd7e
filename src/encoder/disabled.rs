//! The twin of the transformer in a build without the `table` feature, which has nothing to embed memories for.

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// This program was built without one.
    #[error("this build of ack-memory has no transformer")]
    Disabled,
}

impl ModelError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        "searches need none; a build with the default features uses one for `index --model`"
    }
}
