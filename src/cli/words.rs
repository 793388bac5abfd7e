//! The words of a terminal: hints, suggestions and notes are written for an agent, which knows tools and arguments; a person
//! needs subcommands and flags. This is the one place that knows both names, and only text for people goes through it.

/// The tools, and the commands that do the same.
const TOOLS: [(&str, &str); 4] = [
    ("query_memories", "`ack-memory query`"),
    ("get_memory", "`ack-memory get`"),
    ("list_scopes", "`ack-memory scopes`"),
    ("get_context", "`ack-memory context`"),
];

/// The arguments, and the flags that give them. What is not named here has a flag of its own name.
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

/// Phrases that say how to pass an argument in other ways than by its name in backticks.
const PHRASES: [(&str, &str); 4] = [
    ("pass status \"all\"", "pass `--status all`"),
    ("(or \"all\")", "(or `all`)"),
    ("or \"all\"", "or `all`"),
    ("next_cursor goes on", "`--cursor` goes on"),
];

/// Text for an agent as text for somebody at a terminal.
pub fn at_a_terminal(text: &str) -> String {
    let mut text = text.to_owned();
    for (phrase, other) in PHRASES {
        text = text.replace(phrase, other);
    }
    for (tool, command) in TOOLS {
        text = text
            .replace(&format!("`{tool}`"), command)
            .replace(tool, command);
    }
    for (argument, flag) in ARGUMENTS {
        text = text.replace(&format!("`{argument}`"), &format!("`{flag}`"));
        text = assignments(&text, argument, flag);
    }
    text
}

/// The flag of an argument, where it has one.
pub fn flag(argument: &str) -> Option<&'static str> {
    ARGUMENTS
        .iter()
        .find(|(known, _)| *known == argument)
        .map(|(_, flag)| *flag)
}

/// Writes `` `argument: "value"` `` as `` `--flag value` ``.
fn assignments(text: &str, argument: &str, flag: &str) -> String {
    let start = format!("`{argument}: \"");
    let mut parts = text.split(start.as_str());
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("\"`") {
            Some((value, behind)) => out.extend(["`", flag, " ", value, "`", behind]),
            None => out.extend([start.as_str(), part]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(agents: &str, peoples: &str) {
        assert_eq!(at_a_terminal(agents), peoples);
    }

    #[test]
    fn tools_and_arguments_are_told_as_commands_and_flags() {
        check(
            "Use list_scopes to check available scopes",
            "Use `ack-memory scopes` to check available scopes",
        );
        check(
            "list_scopes shows the scopes; leave `scope` out to search every shared one",
            "`ack-memory scopes` shows the scopes; leave `--scope` out to search every shared one",
        );
        check(
            "nobody has approved it yet; pass `status: \"staging\"` (or \"all\") to see it all the same",
            "nobody has approved it yet; pass `--status staging` (or `all`) to see it all the same",
        );
        check(
            "pass status \"all\" to see it",
            "pass `--status all` to see it",
        );
        check(
            "cut to 200 tokens: 1 of 4 results; next_cursor goes on",
            "cut to 200 tokens: 1 of 4 results; `--cursor` goes on",
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
