//! Differences between clients. A client is recognised by its name in the handshake or in each
//! request. An unknown or unnamed client gets complete answers.

use rmcp::model::Implementation;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks {
    /// It shows its model the structure of a result and the text too, which then only points to it.
    pub prints_both: bool,
    /// It shows its model the text of a result, and the structure too, which is left out for it.
    pub text_only: bool,
    /// It splits typed text into words, gives each prompt argument one word, and drops the rest.
    pub splits_words: bool,
}

impl Quirks {
    pub fn of(client: Option<&Implementation>) -> Self {
        let name = client.map(|client| client.name.to_lowercase()).unwrap_or_default();
        let words: Vec<&str> =
            name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let begins = |start: &[&str]| words.starts_with(start);
        Self {
            prints_both: matches!(words.first(), Some(&("codex" | "cline"))),
            text_only: begins(&["copilot", "cli"])
                || begins(&["qwen", "cli", "mcp", "client"])
                || begins(&["kimi", "code"]),
            splits_words: begins(&["claude", "code"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_recognised_by_the_start_of_their_names() {
        let of = |name: &str| {
            let quirks = Quirks::of(Some(&Implementation::new(name, "1")));
            (quirks.prints_both, quirks.text_only, quirks.splits_words)
        };
        for (names, expected) in [
            ("codex-mcp-client | Codex | Cline | @cline/core", (true, false, false)),
            ("copilot-cli | copilot-cli/1.0.102 | kimi-code | Kimi Code CLI", (false, true, false)),
            ("qwen-cli-mcp-client-ack-memory", (false, true, false)),
            ("claude-code", (false, false, true)),
            (
                " | claude-ai | gemini-cli-mcp-client | roo-cline | codexplorer",
                (false, false, false),
            ),
            ("copilot | qwen-agent | kimi-codex | test", (false, false, false)),
        ] {
            for name in names.split(" | ") {
                assert_eq!(of(name), expected, "{name}");
            }
        }
        assert_eq!(Quirks::of(None), Quirks::default());
    }
}
