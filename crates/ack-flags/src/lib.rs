//! What a person should look at before others rely on a text: what looks like a secret, and what
//! addresses the agent that reads it.
//!
//! The rules know the usual forms: a text without a warning is not necessarily safe.

pub mod agent_text;
pub mod passages;
mod plain;
pub mod secrets;
pub mod sharing;
mod table;

use ack_api::Warning;
use ack_api::memory::Memory;

use self::agent_text::agent_lines;
use self::plain::Plain;
use self::secrets::secret_lines;

/// `hides_text` says whether its stored text has characters that are not shown.
pub fn of(memory: &Memory, hides_text: bool) -> Vec<Warning> {
    let texts: Vec<Plain<'_>> = memory.written().map(Plain::of).collect();
    let found = [
        (texts.iter().any(|text| !secret_lines(text).is_empty()), Warning::Secret),
        (texts.iter().any(|text| !agent_lines(text).is_empty()), Warning::AddressesAgent),
        (hides_text, Warning::Hidden),
        (!memory.repaired.is_empty(), Warning::Repaired),
    ];
    found.into_iter().filter(|(holds, _)| *holds).map(|(_, warning)| warning).collect()
}

pub fn is_flagged(text: &str) -> bool {
    let text = Plain::of(text);
    !secret_lines(&text).is_empty() || !agent_lines(&text).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
