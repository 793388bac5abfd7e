//! How agents and people at a shell read the same hints.

use std::sync::Arc;

use super::call::Call;
use super::{AgentReader, Place, Toolset};
use ack_api::hint::render;
use ack_api::shell::{Shell, flag};
use ack_api::{Given, Hint, Reader, Tool};

const WITH_ROOT: Shell = Shell {
    command: |command| format!("ack-memory --root /r {command}"),
};

/// An agent with a toolset, in a call of one of its tools.
fn agent(toolset: Toolset, tool: &str) -> AgentReader {
    let place = Place::call(toolset.find(tool).unwrap(), &Call::default());
    AgentReader {
        toolset: Arc::new(toolset),
        place,
        command: WITH_ROOT.command,
    }
}

/// Each kind of hint about a tool, and its texts: for an agent with the four tools, for one whose tools are
/// renamed and partly hidden, and for a person. Empty if it is left out.
fn tool_hints() -> Vec<(Hint, [&'static str; 3])> {
    let all = || [Given::value("status", "all")];
    vec![
        (
            Hint::call(Tool::QueryMemories, "finds ids"),
            [
                "query_memories finds ids",
                "recall finds ids",
                "`ack-memory --root /r query` finds ids",
            ],
        ),
        (
            Hint::call(Tool::GetMemory, "shows it in full"),
            [
                "get_memory shows it in full",
                "",
                "`ack-memory --root /r get` shows it in full",
            ],
        ),
        (
            Hint::call_with(Tool::QueryMemories, all(), "shows them"),
            [
                "query_memories with `status: \"all\"` shows them",
                "recall with `state: \"any\"` shows them",
                "`ack-memory --root /r query --status all` shows them",
            ],
        ),
        (
            // The renamed tool has no word for this value.
            Hint::call_with(
                Tool::QueryMemories,
                [Given::value("status", "staging")],
                "shows them",
            ),
            [
                "query_memories with `status: \"staging\"` shows them",
                "",
                "`ack-memory --root /r query --status staging` shows them",
            ],
        ),
        (
            Hint::Try {
                tool: Tool::ListScopes,
                purpose: "to check available scopes".into(),
            },
            [
                "use list_scopes to check available scopes",
                "use list_scopes to check available scopes",
                "use `ack-memory --root /r scopes` to check available scopes",
            ],
        ),
    ]
}

/// The same for hints about arguments.
fn argument_hints() -> Vec<(Hint, [&'static str; 3])> {
    vec![
        (
            Hint::pass(
                [Given::value("status", "all"), Given::any("limit")],
                "to see it",
            ),
            [
                "pass `status: \"all\"` or `limit` to see it",
                "pass `state: \"any\"` to see it",
                "pass `--status all` or `--limit` to see it",
            ],
        ),
        (
            Hint::pass([Given::value("limit", 5)], "to see more"),
            [
                "pass `limit: 5` to see more",
                "",
                "pass `--limit 5` to see more",
            ],
        ),
        (
            Hint::omit("scope", "to search every shared one"),
            [
                "leave `scope` out to search every shared one",
                "leave `where` out to search every shared one",
                "leave `--scope` out to search every shared one",
            ],
        ),
        (
            Hint::omit("order", "when you search"),
            [
                "leave `order` out when you search",
                "",
                "leave `--oldest` out when you search",
            ],
        ),
    ]
}

/// The same for hints that name no tool.
fn other_hints() -> Vec<(Hint, [&'static str; 3])> {
    vec![
        (
            Hint::advice("try again"),
            ["try again", "try again", "try again"],
        ),
        (
            Hint::NextPage,
            [
                "`next_cursor` continues",
                "",
                "`ack-memory --root /r query --next` continues",
            ],
        ),
        (
            Hint::command("doctor", "shows every scope"),
            [
                "for the user: `ack-memory --root /r doctor` shows every scope",
                "for the user: `ack-memory --root /r doctor` shows every scope",
                "`ack-memory --root /r doctor` shows every scope",
            ],
        ),
        (
            Hint::setting("`[limits] seconds` in config.toml", "allows more time"),
            [
                "for the user: `[limits] seconds` in config.toml allows more time",
                "for the user: `[limits] seconds` in config.toml allows more time",
                "`[limits] seconds` in config.toml allows more time",
            ],
        ),
    ]
}

#[test]
fn every_hint_has_the_words_of_its_reader() {
    let plain = agent(Toolset::default(), "query_memories");
    let renamed = agent(Toolset::renamed(), "recall");
    let readers: [&dyn Reader; 3] = [&plain, &renamed, &WITH_ROOT];
    for (hint, texts) in [tool_hints(), argument_hints(), other_hints()].concat() {
        for (reader, text) in readers.into_iter().zip(texts) {
            let rendered = render(std::slice::from_ref(&hint), reader).unwrap_or_default();
            assert_eq!(rendered, text, "{hint:?}");
        }
    }
}

#[test]
fn a_resource_takes_no_arguments_and_a_prompt_takes_its_own() {
    let mut agent = agent(Toolset::default(), "query_memories");
    let hints = [
        Hint::pass([Given::value("status", "all")], "to see it"),
        Hint::omit("scope", ""),
    ];
    agent.place = Place::Resource;
    assert_eq!(render(&hints, &agent), None);
    agent.place = Place::Prompt(&["query", "scope"]);
    assert_eq!(render(&hints, &agent).as_deref(), Some("leave `scope` out"));
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
            assert!(flag(argument).is_some(), "{argument}");
        }
    }
}
