//! The prompts that a person typed, which some programs keep beside their memories. Only the review
//! desk reads them, to see which memories that person's agents missed.

use jiff::Timestamp;

use crate::{Snapshot, StoreError, values};

/// How much of a prompt is read. What follows is usually pasted.
pub(crate) const MAX_CHARS: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub text: String,
    /// Its session, as memories name it.
    pub session: Option<String>,
    pub asked: Option<Timestamp>,
}

impl Snapshot<'_> {
    /// The newest prompts; `None` if the store keeps none. Commands of the client, and what a
    /// program put among them in markup, are left out.
    pub fn prompts(&self, max: u32) -> Result<Option<Vec<Prompt>>, StoreError> {
        let Some(newest) = &self.layout.prompts else { return Ok(None) };
        let mut prompts = self.read_rows(newest, [max], |row| {
            Ok(Prompt {
                text: values::line(row.get_ref(0)?, MAX_CHARS).unwrap_or_default(),
                session: values::line(row.get_ref(1)?, 200),
                asked: values::time_value(row.get_ref(2)?),
            })
        })?;
        let is_command = |text: &str| text.starts_with('/') && !text.contains(' ');
        prompts.retain(|Prompt { text, .. }| {
            !text.is_empty() && !text.starts_with('<') && !is_command(text)
        });
        Ok(Some(prompts))
    }
}
