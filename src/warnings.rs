//! What a curator should know about a text before approving it.
//!
//! These are hints for a person. They block nothing, and a text without a warning is not
//! necessarily safe.

pub mod agent_text;
pub mod secrets;
pub mod sharing;

use ack_api::Warning;
use ack_api::memory::Memory;
use ack_store::read::CuratedMemory;

use self::agent_text::addresses_agent;
use self::secrets::holds_secret;

/// What stands in place of a line that may hold a secret.
const SECRET_LEFT_OUT: &str = "(left out: it looks like a password, a key or a token)";

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

/// A memory whose texts hold no secret: lines that look like one are left out.
pub fn without_secrets(memory: &Memory) -> Memory {
    let list = |texts: &[String]| texts.iter().map(|text| without_secret(text)).collect();
    Memory {
        title: without_secret(&memory.title),
        subtitle: memory.subtitle.as_deref().map(without_secret),
        facts: list(&memory.facts),
        concepts: list(&memory.concepts),
        files: list(&memory.files),
        narrative: memory.narrative.as_deref().map(without_secret),
        ..memory.clone()
    }
}

/// A text without the lines that look like a secret.
pub fn without_secret(text: &str) -> String {
    if !holds_secret(text) {
        return text.to_owned();
    }
    let mut shown: Vec<&str> = Vec::new();
    let mut in_key = false;
    for line in text.lines() {
        in_key |= line.contains("-----BEGIN ");
        if !in_key && !holds_secret(line) {
            shown.push(line);
        } else if shown.last() != Some(&SECRET_LEFT_OUT) {
            shown.push(SECRET_LEFT_OUT);
        }
        in_key &= !line.contains("-----END ");
    }
    let shown = shown.join("\n");
    match holds_secret(&shown) {
        true => SECRET_LEFT_OUT.to_owned(),
        false => shown,
    }
}
