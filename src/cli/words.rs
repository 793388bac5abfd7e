//! Translates messages for the terminal. Hints, suggestions and notes are written for an agent,
//! which knows tools and arguments; a person needs commands and flags. Only this module knows both,
//! and only text for people goes through it.

use super::command;
use ack_api::wording::{Name, Vocabulary, reword};

/// The tools, and the equivalent commands.
const TOOLS: [(&str, &str); 4] = [
    ("query_memories", "`ack-memory query`"),
    ("get_memory", "`ack-memory get`"),
    ("list_scopes", "`ack-memory scopes`"),
    ("get_context", "`ack-memory context`"),
];

/// The arguments, and the equivalent flags. An argument that is not listed has a flag with the same
/// name.
const ARGUMENTS: [(&str, &str); 32] = [
    ("query", "QUERY"),
    ("tags", "--tag"),
    ("match_tags", "--any-tag"),
    ("project", "--project"),
    ("scope", "--scope"),
    ("status", "--status"),
    ("limit", "--limit"),
    ("type", "--type"),
    ("files", "--file"),
    ("since", "--since"),
    ("until", "--until"),
    ("session", "--session"),
    ("like", "--like"),
    ("mode", "--mode"),
    ("order", "--oldest"),
    ("detail", "--long"),
    ("max_tokens", "--max-tokens"),
    ("cursor", "--cursor"),
    ("next_cursor", "--cursor"),
    ("explain", "--explain"),
    ("expect", "--expect"),
    ("id", "ID"),
    ("ids", "ID"),
    ("include", "--include"),
    ("before", "--before"),
    ("after", "--after"),
    ("timeline_within", "--timeline-within"),
    ("depth", "--depth"),
    ("kind", "--kind"),
    ("include_cross_project", "--own-only"),
    ("max_memories", "--limit"),
    ("project_path", "-C"),
];

/// Translates text for an agent into text for a person at a terminal.
pub fn for_terminal(text: &str) -> String {
    command::in_text(&reword(text, &mut Shell))
}

/// The vocabulary of commands and flags.
struct Shell;

impl Vocabulary for Shell {
    fn translate(&mut self, name: Name<'_>) -> Option<String> {
        let (Name::Tool(word) | Name::Argument(word, _)) = name;
        let tool = TOOLS.iter().find(|(tool, _)| *tool == word);
        if let Some((_, command)) = tool {
            return Some((*command).to_owned());
        }
        let Name::Argument(argument, value) = name else {
            return None;
        };
        let flag = flag(argument)?;
        Some(match value {
            Some(value) => format!("`{flag} {}`", value.trim_matches('"')),
            None => format!("`{flag}`"),
        })
    }
}

/// The flag for an argument, if it has one.
pub fn flag(argument: &str) -> Option<&'static str> {
    ARGUMENTS
        .iter()
        .find(|(known, _)| *known == argument)
        .map(|(_, flag)| *flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(for_agents: &str, for_people: &str) {
        assert_eq!(for_terminal(for_agents), for_people);
    }

    #[test]
    fn tools_and_arguments_become_commands_and_flags() {
        check(
            "Use list_scopes to check available scopes",
            "Use `ack-memory scopes` to check available scopes",
        );
        check(
            "list_scopes shows the scopes; leave `scope` out to search every shared one",
            "`ack-memory scopes` shows the scopes; leave `--scope` out to search every shared one",
        );
        check(
            "nobody has approved it yet; pass `status: \"staging\"` or `status: \"all\"` to see it anyway",
            "nobody has approved it yet; pass `--status staging` or `--status all` to see it anyway",
        );
        check(
            "cut to 200 tokens: 1 of 4 results; `next_cursor` continues",
            "cut to 200 tokens: 1 of 4 results; `--cursor` continues",
        );
        check("`status: \"never closed", "`status: \"never closed");
        check(
            "correct the file; `ack-memory doctor` shows every scope",
            "correct the file; `ack-memory doctor` shows every scope",
        );
    }

    #[test]
    fn every_argument_of_the_tools_has_a_flag() {
        for schema in [
            schemars::schema_for!(ack_api::QueryRequest),
            schemars::schema_for!(ack_api::GetRequest),
            schemars::schema_for!(ack_api::ListScopesRequest),
            schemars::schema_for!(ack_api::ContextRequest),
        ] {
            let schema = schema.to_value();
            for argument in schema["properties"].as_object().unwrap().keys() {
                assert!(
                    flag(argument).is_some() || argument == "focus",
                    "{argument}"
                );
            }
        }
    }
}
