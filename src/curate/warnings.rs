//! What a curator should know about a text before approving it.
//!
//! These are hints for a person. They block nothing, and a text without a warning is not
//! necessarily safe.

use ack_api::memory::Memory;
use ack_store::read::CuratedMemory;

use crate::check::agent_text::addresses_agent;
use crate::check::secrets::holds_secret;

/// Something to look at before a memory is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// It holds what looks like a password, a key or a token.
    Secret,
    /// It gives an agent instructions instead of stating facts.
    AddressesAgent,
    /// It contains invisible characters: control characters, or characters that hide text.
    Hidden,
    /// A value was damaged.
    Repaired,
}

impl Warning {
    /// The warning in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "looks like it contains a password, a key or a token",
            Self::AddressesAgent => "addresses an agent",
            Self::Hidden => "control or hidden characters were removed from what is shown",
            Self::Repaired => "values were damaged",
        }
    }
}

/// The warnings about a waiting memory.
pub fn about(curated: &CuratedMemory) -> Vec<Warning> {
    let mut warnings = of(&curated.memory);
    if curated.hides_text {
        warnings.push(Warning::Hidden);
    }
    warnings
}

fn of(memory: &Memory) -> Vec<Warning> {
    let mut texts: Vec<&str> = vec![&memory.title];
    texts.extend(memory.subtitle.as_deref());
    texts.extend(memory.facts.iter().map(String::as_str));
    texts.extend(memory.narrative.as_deref());
    let mut warnings = Vec::new();
    if texts.iter().any(|text| holds_secret(text)) {
        warnings.push(Warning::Secret);
    }
    if texts.iter().any(|text| addresses_agent(text)) {
        warnings.push(Warning::AddressesAgent);
    }
    if !memory.repaired.is_empty() {
        warnings.push(Warning::Repaired);
    }
    warnings
}
