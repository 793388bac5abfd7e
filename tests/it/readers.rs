//! What an error or a note tells its reader to do: in commands for a person, in the names of its
//! own tools for an agent.

use std::process::Output;

use serde_json::{Value, json};

use crate::mcp::{Server, command};
use crate::support::{Root, memory, write_file};

/// The tools' own names.
const TOOLS: [&str; 4] = ["query_memories", "get_memory", "list_scopes", "get_context"];

/// Scopes with something to say about each: memories that wait, a store that is missing, one that
/// is empty, and enough memories for several pages.
fn root() -> Root {
    let root = Root::new();
    let mut memories: Vec<Value> = (0..40)
        .map(|n| {
            let facts =
                json!({ "facts": [format!("Redis fact {n} that takes some tokens to say")] });
            memory(&format!("m{n}"), &format!("Redis evicts keys {n}"), facts)
        })
        .collect();
    let staging = json!({ "status": "staging" });
    memories.push(memory("waits", "Kafka rebalances", staging));
    root.store("notes", &memories);
    std::fs::create_dir_all(root.scope_folder("absent")).unwrap();
    std::fs::create_dir_all(root.scope_folder("empty")).unwrap();
    write_file(root.scope_folder("empty").join("memory.db"), "");
    root
}

fn text_of(output: &Output) -> String {
    let texts = [&output.stdout, &output.stderr];
    texts.map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

#[test]
fn a_person_reads_no_name_of_a_tool() {
    let root = root();
    let lines: [&[&str]; 9] = [
        &["query", "kafka"],
        &["query", "zzz", "--scope", "notes"],
        &["query", "redis", "--max-tokens", "200"],
        &["query", "redis", "--scope", "nots"],
        &["query", "--cursor", "broken"],
        &["query", "redis", "--expect", "waits"],
        &["get", "no-such-id"],
        &["get", "waits"],
        &["scopes"],
    ];
    let mut texts = String::new();
    for line in lines {
        for more in [&[][..], &["--json"]] {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ack-memory"));
            command.arg("--root").arg(root.path()).args(line).args(more);
            let text = text_of(&command.output().unwrap());
            for tool in TOOLS {
                assert!(!text.contains(tool), "{line:?} {more:?}: {text}");
            }
            texts += &text;
        }
    }
    // There were hints: each command has the flags of this process.
    let flags = format!("`ack-memory --root {} ", root.path().display());
    for end in ["scopes`", "query`", "import FILE --scope absent`"] {
        assert_contains!(texts, &format!("{flags}{end}"); "{end}");
    }
}

#[test]
fn an_agent_reads_the_names_of_its_own_tools() {
    let root = root();
    write_file(
        root.path().join("config.toml"),
        "max_status = \"all\"\n[tools]\nhide = [\"list_scopes\", \"get_context\"]\n\
         [tools.query_memories]\nname = \"recall\"\n[tools.get_memory]\nname = \"open\"\n",
    );
    let mut server = Server::spawn(command(root.path()));
    server.initialize("2025-06-18");
    let mut texts = String::new();
    for (tool, arguments) in [
        ("recall", json!({ "query": "kafka" })),
        ("recall", json!({ "query": "zzz", "scope": "notes" })),
        ("recall", json!({ "query": "redis", "max_tokens": 200 })),
        ("recall", json!({ "query": "redis", "scope": "nots" })),
        ("recall", json!({ "query": "redis", "max_tokens": 1 })),
        ("open", json!({ "id": "no-such-id" })),
        ("open", json!({ "id": "waits" })),
        ("open", json!({ "ids": ["waits", "no-such-id"] })),
        ("open", json!({ "unknown": 1 })),
        ("open", json!({})),
    ] {
        let call = json!({ "name": tool, "arguments": arguments });
        let text = server.request("tools/call", call).to_string();
        for own in TOOLS {
            assert_lacks!(text, own; "{tool} {arguments}");
        }
        // A command is for the user, and marked as such.
        for (before, _) in text.match_indices("`ack-memory ") {
            assert!(text[..before].contains("for the user: "), "{text}");
        }
        texts += &text;
    }
    for words in [
        "`status: \\\"all\\\"`",
        "leave `scope` out",
        "recall finds ids",
        "`max_tokens` is 1",
        "open has no argument `unknown`",
    ] {
        assert!(
            texts.contains(words) || texts.contains(&words.replace("\\\"", "\\\\\\\"")),
            "{words}: {texts}"
        );
    }
}
