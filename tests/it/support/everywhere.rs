//! Every entry point at once.

use serde_json::json;

use crate::cli::{ack, ack_with_input};
use crate::context::project;
use crate::mcp::Server;
use crate::support::Root;

/// What every entry point that shows approved memories says, each with its name: tools over
/// standard input and output, another program's names for them, resources, prompts, hooks, the
/// command line. `words` are asked for, and the memories `ids` of a scope named as its project.
pub fn ask_everywhere(
    root: &Root,
    scope: &str,
    words: &str,
    ids: &[&str],
) -> Vec<(String, String)> {
    let folder = project(root, scope, "main");
    let mut answers: Vec<(String, String)> = Vec::new();
    let mut keep = |entry_point: String, answer: String| answers.push((entry_point, answer));
    let mut server = Server::initialized(root.path());
    let everything = ["timeline", "related", "links", "history"];
    let most = json!({ "project_path": folder, "max_memories": 50, "max_tokens": 20_000 });
    let full = json!({ "query": words, "detail": "full", "explain": true });
    for (tool, arguments) in [
        ("get_context", most),
        ("get_context", json!({ "project_path": folder, "focus": words })),
        ("query_memories", json!({ "limit": 50 })),
        ("query_memories", json!({ "query": words, "status": "all" })),
        ("query_memories", full),
        ("list_scopes", json!({ "scope": scope })),
        ("get_memory", json!({ "ids": ids, "include": everything })),
    ] {
        let text = format!("{tool} {arguments}");
        keep(text, server.call(tool, arguments).to_string());
    }
    let of_scope = format!("memory://scope/{scope}");
    let memories = ids.iter().map(|id| format!("{of_scope}/memory/{id}"));
    for uri in ["memory://scopes".to_owned(), of_scope.clone()].into_iter().chain(memories) {
        let answer = server.request("resources/read", json!({ "uri": uri }));
        keep(uri, answer["result"].to_string());
    }
    let listed = server.request("resources/list", json!({}));
    keep("resources".to_owned(), listed["result"].to_string());
    let recall = json!({ "name": "recall", "arguments": { "query": words } });
    let recall = server.request("prompts/get", recall);
    keep("recall".to_owned(), recall.to_string());
    let mut renamed = Server::with(root.path(), &["--surface", "siftcoder"]);
    let answer = renamed.call("mem_get", json!({ "ids": ids }));
    keep("mem_get".to_owned(), answer.to_string());
    for id in ids {
        let answer = renamed.call("mem_timeline", json!({ "id": id }));
        keep(format!("mem_timeline {id}"), answer.to_string());
    }
    let start = |source: &str| json!({ "hook_event_name": "SessionStart", "cwd": folder, "source": source });
    let prompt = json!({ "hook_event_name": "UserPromptSubmit", "cwd": folder, "prompt": words });
    for (hook, event) in [
        ("session-start", start("startup")),
        ("session-start", start("resume")),
        ("user-prompt", prompt),
    ] {
        let told = ack_with_input(root.path(), &["hook", hook], event.to_string().as_bytes());
        keep(format!("hook {event}"), told.ok());
    }
    let folder = folder.to_str().unwrap();
    for arguments in [&["context"][..], &["context", "--json"]] {
        let outcome = ack(root.path(), &[&["-C", folder], arguments].concat());
        keep(format!("{arguments:?}"), outcome.ok());
    }
    for id in ids {
        let outcome = ack(root.path(), &["get", id]);
        keep(format!("get {id}"), outcome.out + &outcome.err);
    }
    answers
}
