//! Our own binary as an upstream server, over standard input and output and over HTTP.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{OURS, Site, TIMEOUT, is_alive, names, text, until};
use crate::mcp::{Server, command};
use crate::support::{Root, memory};

/// Our own binary over HTTP, with a token.
struct Http {
    child: Child,
    url: String,
}

impl Http {
    fn start(root: &Path, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = command(root);
        command
            .args(["--http", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        assert!(url.starts_with("http://"), "{url:?}");
        Self {
            child,
            url: url.trim().to_owned(),
        }
    }

    fn request(&self, token: &str, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .build()
            .into();
        let mut answer = agent
            .post(&self.url)
            .header("Accept", "application/json, text/event-stream")
            .header("Content-Type", "application/json")
            .header("Authorization", format!("Bearer {token}"))
            .send(message.to_string())
            .unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SECRET: &str = "a-secret-of-these-tests";

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
    let found = server.call(
        "team_search",
        json!({ "query": "which header does the proxy strip" }),
    );
    assert_eq!(found["structuredContent"]["results"][0]["id"], "team-1");
    assert_eq!(found["_meta"]["ack-memory/upstream"], "team");
    let wrong = server.call("team_get", json!({ "id": "team-2" }));
    assert_eq!(wrong["isError"], true);
    assert!(text(&wrong).contains("memory_not_found"));
}

#[test]
fn another_ack_memory_is_a_source_over_http() {
    let other = other_root();
    let http = Http::start(other.path(), |command| {
        command.env("ACK_MEM_TOKEN", SECRET);
    });
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
    assert!(
        refused.message.contains("authorization required")
            && !refused.message.contains("wrong-wrong"),
        "{refused:?}"
    );
}

#[test]
fn an_http_server_is_reconnected() {
    let other = other_root();
    let first = Http::start(other.path(), |command| {
        command.args(["--no-token"]);
    });
    let address = first
        .url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap()
        .to_owned();
    let site = Site::new("plain", "", "");
    site.configure(&format!(
        "[upstream.team]\nurl = \"{}\"\ntools = {{ query_memories = \"team_search\" }}\n",
        first.url
    ));
    let mut server = site.serve();
    assert_eq!(
        server.call("team_search", json!({ "query": "proxy" }))["isError"],
        false
    );
    drop(first);
    let gone = server.fail("team_search", json!({ "query": "proxy" }));
    assert!(gone.code.starts_with("upstream_"), "{gone:?}");
    assert!(
        !gone.message.contains("http://"),
        "an address may hold a secret: {gone:?}"
    );
    assert_eq!(
        server.call("query_memories", json!({ "query": "deadlock" }))["isError"],
        false
    );
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
    let site = Site::new(
        "plain",
        r#"echo = "page_echo", garbage = "page_garbage""#,
        "",
    );
    let http = Http::start(site.root.path(), |command| {
        command.env("ACK_MEM_TOKEN", SECRET);
    });
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let url = http.url.clone();
            std::thread::spawn(move || {
                let client = std::mem::ManuallyDrop::new(Http {
                    child: Command::new("true").spawn().unwrap(),
                    url,
                });
                let tools = client.request(SECRET, "tools/list", json!({}));
                let called = client.request(
                    SECRET,
                    "tools/call",
                    json!({ "name": "page_garbage", "arguments": {} }),
                );
                (
                    tools["result"]["tools"].as_array().unwrap().len(),
                    called["result"]["content"][0]["text"].clone(),
                )
            })
        })
        .collect();
    for call in calls {
        assert_eq!(call.join().unwrap(), (6, json!("after garbage")));
    }
    assert_eq!(site.lines("starts").len(), 1);
    let raw = http.request(
        SECRET,
        "tools/call",
        json!({ "name": "page_echo", "arguments": { "word": "x" } }),
    );
    assert_eq!(raw["result"]["content"][1]["type"], "hologram");
    assert_eq!(raw["result"]["_meta"]["ack-memory/upstream"], "page");
    let processes = site.processes();
    let status = Command::new("kill")
        .args(["-TERM", &http.child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
    until("the process is left", || !is_alive(processes[0]));
}
