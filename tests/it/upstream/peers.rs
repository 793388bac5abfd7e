//! Our own binary as an upstream server, over standard input and output and over HTTP.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{OURS, Site, is_alive, names, text, until};
use crate::http::{Http, SECRET};
use crate::mcp::{Server, command};
use crate::support::{Root, memory};

fn other_root() -> Root {
    let root = Root::new();
    root.store(
        "team",
        &[memory(
            "team-1",
            "The proxy strips the header X-Trace",
            json!({ "concepts": ["proxy"] }),
        )],
    );
    root
}

#[test]
fn another_ack_memory_is_a_source_over_standard_input_and_output() {
    let other = other_root();
    let site = Site::new("plain", "", "");
    site.configure(&format!(
        "[upstream.team]\ncommand = [\"{}\", \"--root\", \"{}\", \"serve\"]\ntools = {{ query_memories = \"team_search\", get_memory = \"team_get\" }}\n",
        env!("CARGO_BIN_EXE_ack-memory"),
        other.path().display()
    ));
    let mut server = site.serve();
    assert_eq!(names(&mut server)[4..], ["team_get", "team_search"]);
    let arguments = json!({ "query": "which header does the proxy strip" });
    let found = server.call("team_search", arguments);
    assert_eq!(found["structuredContent"]["results"][0]["id"], "team-1");
    assert_eq!(found["_meta"]["ack-memory/upstream"], "team");
    let wrong = server.call("team_get", json!({ "id": "team-2" }));
    assert_eq!(wrong["isError"], true);
    assert_contains!(text(&wrong), "memory_not_found");
}

#[test]
fn another_ack_memory_is_a_source_over_http() {
    let other = other_root();
    let http = Http::start(other.path());
    let site = Site::new("plain", "", "");
    site.configure(&format!(
        "[upstream.team]\nurl = \"{}\"\ntoken_env = \"TEAM_TOKEN\"\ntools = {{ query_memories = \"team_search\" }}\n",
        http.url
    ));
    let serve = |token: &str| {
        let mut command = command(site.root.path());
        command.env("TEAM_TOKEN", token);
        let mut server = Server::spawn(command);
        server.initialize("2025-06-18");
        server
    };
    let mut server = serve(SECRET);
    assert_eq!(names(&mut server)[4..], ["team_search"]);
    let found = server.call("team_search", json!({ "query": "proxy header" }));
    assert_eq!(found["structuredContent"]["results"][0]["id"], "team-1");
    assert_eq!(found["_meta"]["ack-memory/upstream"], "team");
    let unknown = server.fail("team_search", json!({ "querry": "x" }));
    assert_eq!(unknown.nearest, ["query"]);
    // Without the right one.
    let mut server = serve("wrong-wrong-wrong-wrong");
    assert_eq!(names(&mut server), OURS);
    let refused = server.fail("team_search", json!({ "query": "x" }));
    assert_eq!(refused.code, "upstream_unavailable");
    assert_contains!(refused.message, "authorization required");
    assert_lacks!(refused.message, "wrong-wrong");
}

#[test]
fn an_http_server_is_reconnected() {
    let other = other_root();
    let arguments = ["--http", "127.0.0.1:0", "--no-token"];
    let first = Http::with(other.path(), &arguments, |_| {});
    let address = first.address.to_string();
    let site = Site::new("plain", "", "");
    site.configure(&format!(
        "[upstream.team]\nurl = \"{}\"\ntools = {{ query_memories = \"team_search\" }}\n",
        first.url
    ));
    let mut server = site.serve();
    let shown = &server.call("team_search", json!({ "query": "proxy" }))["isError"];
    assert_eq!(*shown, false);
    drop(first);
    let gone = server.fail("team_search", json!({ "query": "proxy" }));
    assert!(gone.code.starts_with("upstream_"), "{gone:?}");
    assert_lacks!(gone.message, "http://"; "an address may hold a secret");
    let shown = &server.call("query_memories", json!({ "query": "deadlock" }))["isError"];
    assert_eq!(*shown, false);
    let mut command = command(other.path());
    command
        .args(["--http", &address, "--no-token"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut second = command.spawn().unwrap();
    until("it is not found again", || {
        server.call("team_search", json!({ "query": "proxy" }))["isError"] == false
    });
    let _ = second.kill();
    let _ = second.wait();
}

#[test]
fn all_clients_over_http_share_one_connection() {
    let said = r#"echo = "page_echo", garbage = "page_garbage""#;
    let site = Site::new("plain", said, "");
    let http = Http::start(site.root.path());
    let call = |name: &str, arguments: Value| {
        http.request("tools/call", json!({ "name": name, "arguments": arguments }))
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let tools = http.request("tools/list", json!({}));
                assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 6);
                let called = call("page_garbage", json!({}));
                assert_eq!(called["result"]["content"][0]["text"], "after garbage");
            });
        }
    });
    assert_eq!(site.lines("starts").len(), 1);
    let raw = call("page_echo", json!({ "word": "x" }));
    assert_eq!(raw["result"]["content"][1]["type"], "resource_link");
    assert_eq!(raw["result"]["_meta"]["ack-memory/upstream"], "page");
    let processes = site.processes();
    let status = Command::new("kill").args(["-TERM", &http.id().to_string()]).status().unwrap();
    assert!(status.success());
    until("the process is left", || !is_alive(processes[0]));
}
