//! A server that a client starts in a way that cannot work: the client hides standard error, so the
//! server says what is wrong where the model reads it.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::json;

use super::Server;
use crate::cli::binary;
use crate::support::{Root, write_file};

/// Settings that no server starts with, each with what the error says.
const BROKEN: [(&str, &str); 4] = [
    ("[limits\n", "line 1"),
    ("[limits]\ntokens = \"many\"\n", "limits.tokens"),
    ("[tools]\nhide = [\"get_memry\"]\n", "get_memry"),
    ("[upstream.x]\nurl = 7\n", "upstream.x"),
];

#[test]
fn broken_settings_are_said_by_every_tool_until_they_are_mended() {
    for (broken, said) in BROKEN {
        for is_stateless in [false, true] {
            let root = Root::samples();
            let file = root.path().join("config.toml");
            write_file(&file, broken);
            let mut server = match is_stateless {
                true => Server::stateless(root.path()),
                false => Server::start(root.path()),
            };
            if !is_stateless {
                let hello = server.initialize("2025-06-18");
                let instructions = hello["instructions"].as_str().unwrap();
                assert!(
                    instructions.starts_with("ack-memory cannot answer: ")
                        && instructions.contains(said),
                    "{instructions}"
                );
            }
            let listed = server.request("tools/list", json!({}));
            assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 4);
            for (tool, arguments) in [
                ("query_memories", json!({ "query": "deadlock" })),
                ("get_memory", json!({ "id": "ack_a41f0c_2025-11-24_001" })),
                ("list_scopes", json!({})),
                ("get_context", json!({})),
            ] {
                let error = server.fail(tool, arguments);
                assert_eq!(error.code, "invalid_settings", "{error:?}");
                assert!(
                    error.message.contains(said) && error.message.contains("config.toml"),
                    "{tool}: {error:?}"
                );
                assert!(error.path.is_some_and(|path| path == file.display().to_string()));
            }
            for (method, params) in [
                ("resources/read", json!({ "uri": "memory://scopes" })),
                ("prompts/get", json!({ "name": "recall", "arguments": { "query": "deadlock" } })),
            ] {
                let answer = server.request(method, params);
                let message = answer["error"]["message"].as_str();
                assert!(message.is_some_and(|text| text.contains(said)), "{answer}");
            }
            // The same session works as soon as the file does.
            write_file(&file, "[tools]\nhide = [\"get_context\"]\n");
            let found = server.call("query_memories", json!({ "query": "deadlock" }));
            assert_eq!(found["isError"], false, "{found}");
            let listed = server.request("tools/list", json!({}));
            assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 3);
            let (_, status, _) = server.close();
            assert_eq!(status.code(), Some(0));
        }
    }
}

#[test]
fn a_client_configured_without_serve_gets_a_server() {
    let root = Root::samples();
    for arguments in [&[][..], &["-v"]] {
        let mut command = binary();
        command
            .arg("--root")
            .arg(root.path())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut server = Server::spawn(command);
        server.initialize("2025-06-18");
        let found = server.call("query_memories", json!({ "query": "deadlock" }));
        assert_eq!(found["isError"], false, "{found}");
        let (_, status, _) = server.close();
        assert_eq!(status.code(), Some(0));
    }
    // Whoever has nothing to say to a server gets the overview.
    let shown = |command: &mut Command| {
        let output = command.arg("--root").arg(root.path()).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_contains!(shown(&mut binary()), "memories");
    let mut child = binary()
        .arg("--root")
        .arg(root.path())
        .arg("--json")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let _ = input.write_all(b"\n");
    let output = child.wait_with_output().unwrap();
    assert_contains!(String::from_utf8(output.stdout).unwrap(), "\"version\"");
}

#[test]
fn a_guessed_command_gets_a_tip_that_works() {
    for (word, tip) in [
        ("mcp", "to serve MCP, use `ack-memory serve`"),
        ("server", "to serve MCP, use `ack-memory serve`"),
        ("remember", "`ack-memory add TITLE`"),
        ("remove", "`ack-memory reject ID`"),
    ] {
        let output = binary().arg(word).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_contains!(String::from_utf8(output.stderr).unwrap(), tip);
    }
    // No tip names an option that the command does not have.
    let output = binary().arg("docker").output().unwrap();
    assert_lacks!(String::from_utf8(output.stderr).unwrap(), "--scope docker");
}
