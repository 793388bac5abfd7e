//! What a person should look at before others rely on a text: what looks like a secret, and what
//! addresses the agent that reads it.
//!
//! The rules know the usual forms: a text without a warning is not necessarily safe.

pub mod agent_text;
mod plain;
pub mod secrets;
pub mod sharing;
mod table;

use ack_api::Warning;
use ack_api::memory::Memory;

use self::agent_text::agent_lines;
use self::plain::{Plain, plain};
use self::secrets::{holds_secret, secret_lines};

/// What stands in place of a line that may hold a secret.
const SECRET_LEFT_OUT: &str = "(left out: it looks like a password, a key or a token)";

/// A shorter line is no part of a key.
const MIN_KEY_LINE: usize = 16;

/// The warnings about a memory. `hides_text` says whether its stored text has characters that are
/// not shown.
pub fn of(memory: &Memory, hides_text: bool) -> Vec<Warning> {
    let optional = [
        &memory.subtitle,
        &memory.narrative,
        &memory.kind,
        &memory.project,
    ];
    let lists = [&memory.facts, &memory.concepts, &memory.files];
    let texts = optional
        .into_iter()
        .flatten()
        .chain(lists.into_iter().flatten());
    let texts: Vec<Plain<'_>> = texts
        .chain([&memory.title])
        .map(|text| Plain::of(text))
        .collect();
    let mut warnings = Vec::new();
    if texts.iter().any(|text| !secret_lines(text).is_empty()) {
        warnings.push(Warning::Secret);
    }
    if texts.iter().any(|text| !agent_lines(text).is_empty()) {
        warnings.push(Warning::AddressesAgent);
    }
    if hides_text {
        warnings.push(Warning::Hidden);
    }
    if !memory.repaired.is_empty() {
        warnings.push(Warning::Repaired);
    }
    warnings
}

/// Whether a text looks like a secret or addresses an agent.
pub fn is_flagged(text: &str) -> bool {
    let text = Plain::of(text);
    !secret_lines(&text).is_empty() || !agent_lines(&text).is_empty()
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
    let secrets = secret_lines(&Plain::of(text));
    if secrets.is_empty() {
        return text.to_owned();
    }
    let mut shown: Vec<&str> = Vec::new();
    let (mut in_key, mut in_base64) = (false, false);
    for (number, line) in (1..).zip(text.lines()) {
        let seen = plain(line);
        // Some programs write four dashes and a space.
        let has = |word: &str| {
            seen.contains(&format!("----{word} ")) || seen.contains(&format!("---- {word} "))
        };
        in_key |= has("BEGIN");
        in_base64 &= is_base64(line);
        in_base64 |= secrets.binary_search(&number).is_ok();
        if !in_key && !in_base64 {
            shown.push(line);
        } else if shown.last() != Some(&SECRET_LEFT_OUT) {
            shown.push(SECRET_LEFT_OUT);
        }
        in_key &= !has("END");
    }
    let shown = shown.join("\n");
    match holds_secret(&shown) {
        true => SECRET_LEFT_OUT.to_owned(),
        false => shown,
    }
}

/// Whether a line can go on with a key that began before it.
fn is_base64(line: &str) -> bool {
    let line = line.trim();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
    line.len() >= MIN_KEY_LINE && line.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of a kind.
    pub fn examples(kind: &str) -> impl Iterator<Item = String> {
        let rows = table::columns(include_str!("examples.txt"));
        let of_kind = rows.filter(move |[known, _]| *known == kind);
        of_kind.map(|[_, text]| serde_json::from_str(text).unwrap())
    }

    #[test]
    fn orders_to_whoever_reads_the_text_are_found_and_what_a_project_says_of_its_work_is_not() {
        for (kind, addresses_agent) in [("order", true), ("no order", false)] {
            for text in examples(kind) {
                let lines = agent_lines(&Plain::of(&text));
                assert_eq!(!lines.is_empty(), addresses_agent, "{text}");
            }
        }
    }

    #[test]
    fn no_line_of_a_private_key_is_shown() {
        let key = "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"k\"\n\
                   P2/56wAAAi4AAAA3aWYtbW9kbntzaWdue3JzYS1w\n\
                   ---- END SSH2 ENCRYPTED PRIVATE KEY ----\nafter";
        let shown = without_secret(key);
        assert!(
            !shown.contains("P2/56") && shown.ends_with("after"),
            "{shown}"
        );
    }
}
