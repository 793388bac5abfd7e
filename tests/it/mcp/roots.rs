//! The folders of a client's workspace: asked for where nothing else says which project is open.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Server, TIMEOUT, command};
use crate::support::Root;

/// A server that a client starts in `/`, and the client's handshake.
fn started(root: &Root, flags: &[&str], capabilities: Value) -> Server {
    let mut command = command(root.path());
    command.args(flags).current_dir("/");
    let mut server = Server::spawn(command);
    let client = json!({ "name": "test", "version": "0" });
    let client = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client });
    server.request("initialize", client);
    server.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
    server
}

/// The id of the server's question for the folders.
fn question(server: &mut Server) -> Value {
    let until = Instant::now() + TIMEOUT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let message = server.message(left).expect("the server asks");
        if message["method"] == "roots/list" {
            return message["id"].clone();
        }
    }
}

fn answer(server: &mut Server, id: &Value, folders: &[&Path]) {
    let roots: Vec<Value> = folders
        .iter()
        .map(|folder| json!({ "uri": format!("file://{}", folder.display()), "name": "x" }))
        .collect();
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": roots } });
    server.write(&answer.to_string());
}

fn current_scope(server: &mut Server) -> Value {
    let context = server.call("list_scopes", json!({}));
    context["structuredContent"]["current_scope"].clone()
}

/// Waits until the server has read the folders.
fn expect_current(server: &mut Server, scope: &str) {
    let until = Instant::now() + TIMEOUT;
    while current_scope(server) != scope {
        assert!(Instant::now() < until, "{scope} does not become current");
    }
}

#[test]
fn the_clients_folders_say_which_project_is_open() {
    let root = Root::samples();
    let folder = |name: &str| {
        let folder = root.path().join("work").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    };
    let (ledger, kiosk, other) = (folder("ledger-api"), folder("kiosk-web"), folder("other"));
    let offers = json!({ "roots": { "listChanged": true } });
    let mut server = started(&root, &[], offers.clone());
    let id = question(&mut server);
    answer(&mut server, &id, &[&ledger]);
    expect_current(&mut server, "ledger-api");
    let context = server.call("get_context", json!({}));
    let found = &context["structuredContent"]["project"]["name"];
    assert_eq!(*found, "ledger-api");
    // Of several folders, the first that belongs to a scope.
    server.write(
        &json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }).to_string(),
    );
    let id = question(&mut server);
    answer(&mut server, &id, &[&other, &kiosk, &ledger]);
    expect_current(&mut server, "kiosk-web");
    // What the owner says comes first, and a client that offers no folders is not asked.
    let given = ledger.to_str().unwrap();
    for (flags, capabilities, current) in
        [(&["-C", given][..], offers, json!("ledger-api")), (&[], json!({}), Value::Null)]
    {
        let mut server = started(&root, flags, capabilities);
        assert_eq!(current_scope(&mut server), current);
        assert_eq!(server.message(Duration::from_millis(200)), None);
    }
}

#[test]
fn a_client_that_does_not_name_its_folders_is_answered_all_the_same() {
    let root = Root::samples();
    let mut server = started(&root, &[], json!({ "roots": {} }));
    // The question comes before, between or after these, which wait for nothing.
    let id = server.send("tools/list", json!({}));
    server.answer(id);
    let call = json!({ "name": "query_memories", "arguments": { "query": "deadlock" } });
    let first = server.send("tools/call", call.clone());
    assert_eq!(server.answer(first)["result"]["isError"], false);
    let second = server.send("tools/call", call);
    assert_eq!(server.answer(second)["result"]["isError"], false);
    let (_, status, _) = server.close();
    assert_eq!(status.code(), Some(0));
}
