//! The server as a client meets it: the real binary, spoken to over its standard input and output.

mod answers;
mod end;
mod handshake;
mod reading;
mod requests;
mod roots;
mod trouble;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ack_api::ErrorBody;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::support::{Root, memory};

/// How long a test waits for an answer that should come immediately.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A running server and its messages so far.
pub struct Server {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    waiting: HashMap<String, Value>,
    next: i64,
    meta: Option<Value>,
}

/// The binary without the variables that it reads from this process's environment.
pub fn command(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ack-memory"));
    for (variable, _) in ack_memory::internal::ENVIRONMENT {
        command.env_remove(variable);
    }
    command
        .args(["--root".as_ref(), root.as_os_str(), "serve".as_ref()])
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Server {
    pub fn start(root: &Path) -> Self {
        Self::spawn(command(root))
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            input,
            lines,
            waiting: HashMap::new(),
            next: 0,
            meta: None,
        }
    }

    /// A server after the handshake (for protocol versions that have one).
    pub fn initialized(root: &Path) -> Self {
        let mut server = Self::start(root);
        server.initialize("2025-06-18");
        server
    }

    /// A server that is spoken to in the version without a handshake.
    pub fn stateless(root: &Path) -> Self {
        let mut server = Self::start(root);
        server.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        }));
        server
    }

    /// Sets the name that a client without a handshake gives from now on.
    pub fn name(&mut self, name: &str) {
        self.meta.as_mut().unwrap()["io.modelcontextprotocol/clientInfo"]["name"] = json!(name);
    }

    pub fn initialize(&mut self, version: &str) -> Value {
        self.initialize_as(version, "test")
    }

    /// The handshake of a client with this name.
    pub fn initialize_as(&mut self, version: &str, name: &str) -> Value {
        let client = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": name, "version": "0" } });
        let answer = self.request("initialize", client);
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        answer["result"].clone()
    }

    /// Writes bytes unchanged.
    fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    pub fn write(&mut self, line: &str) {
        self.raw(format!("{line}\n").as_bytes());
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        let mut params = params;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.write(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        id
    }

    /// One message, if one comes in time. Everything on standard output must be one.
    pub fn message(&mut self, patience: Duration) -> Option<Value> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => {
                let message: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("{error} in {line:?}"));
                assert_eq!(message["jsonrpc"], "2.0", "{line}");
                Some(message)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// The answer to a request.
    #[track_caller]
    pub fn answer(&mut self, id: i64) -> Value {
        let until = Instant::now() + TIMEOUT;
        loop {
            if let Some(answer) = self.waiting.remove(&id.to_string()) {
                return answer;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.message(left) {
                // A question of the server has an id of its own.
                Some(message) if message.get("method").is_some() => {}
                Some(message) if message.get("id").is_some_and(|id| !id.is_null()) => {
                    let before = self.waiting.insert(message["id"].to_string(), message);
                    assert!(before.is_none(), "answered twice: {before:?}");
                }
                Some(_) => {}
                None => panic!(
                    "no answer to request {id}; exit status {:?}",
                    self.child.try_wait()
                ),
            }
        }
    }

    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// A call that fails, as its error body.
    #[track_caller]
    pub fn fail(&mut self, tool: &str, arguments: Value) -> ErrorBody {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        let [content] = result["content"].as_array().unwrap().as_slice() else {
            panic!("{result}")
        };
        serde_json::from_str(content["text"].as_str().unwrap()).unwrap()
    }

    #[track_caller]
    pub fn ping(&mut self) {
        let answer = self.request("ping", json!({}));
        assert!(answer.get("result").is_some(), "{answer}");
    }

    /// The process.
    pub const fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes standard input. Returns how long the process kept running, how it ended, and what it
    /// still sent.
    pub fn close(mut self) -> (Duration, ExitStatus, Vec<Value>) {
        let started = Instant::now();
        drop(self.input.take());
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                started.elapsed() < TIMEOUT,
                "the server outlives its standard input"
            );
            std::thread::sleep(Duration::from_millis(1));
        };
        let took = started.elapsed();
        let mut messages = Vec::new();
        while let Some(message) = self.message(Duration::from_secs(5)) {
            messages.push(message);
        }
        (took, status, messages)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A store of many memories, made fast.
fn large(root: &Root, scope: &str, rows: usize) {
    let path = root.scope_folder(scope).join("memory.db");
    let mut connection = Connection::open(path).unwrap();
    connection
        .execute_batch(ack_memory::internal::import::SCHEMA)
        .unwrap();
    let transaction = connection.transaction().unwrap();
    {
        let mut insert = transaction
            .prepare("INSERT INTO memories (id, title, narrative, concepts, status, created_at) VALUES (?1, ?2, ?3, '[\"load\"]', 'approved', '2026-01-01T00:00:00Z')")
            .unwrap();
        for row in 0..rows {
            let words: Vec<String> = (0..60)
                .map(|word| format!("word{}", (row * 7 + word * 13) % 5_000))
                .collect();
            insert
                .execute(params![
                    format!("load-{row}"),
                    format!("Memory {row} about lock{}", row % 97),
                    words.join(" ")
                ])
                .unwrap();
        }
    }
    transaction.commit().unwrap();
}

fn filters() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_description("generated by tests/it/mcp.rs");
    settings.set_omit_expression(true);
    settings
}

#[test]
fn the_four_tools_are_listed_small_flat_and_read_only() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let id = server.send("tools/list", json!({}));
    let answer = server.answer(id);
    let bytes = answer.to_string().len();
    let tools = answer["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["get_context", "get_memory", "list_scopes", "query_memories"]
    );
    assert_eq!(names, ack_memory::internal::TOOLS);
    for tool in &tools {
        let name = &tool["name"];
        let input = tool["inputSchema"].as_object().unwrap();
        assert_eq!(input["type"], "object", "{name}");
        assert_eq!(input["additionalProperties"], false, "{name}");
        for combined in ["anyOf", "oneOf", "allOf", "$ref", "$defs"] {
            assert!(
                !input.contains_key(combined),
                "{name} has {combined} at the root"
            );
        }
        for (argument, schema) in input["properties"].as_object().unwrap() {
            assert!(schema["type"].is_string(), "{name}.{argument}: {schema}");
            assert!(
                schema["description"].is_string(),
                "{name}.{argument}: {schema}"
            );
            assert_ne!(schema["type"], "object", "{name}.{argument} is not flat");
        }
        assert_eq!(
            tool["annotations"],
            json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false }),
            "{name}"
        );
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        let search = name == "query_memories";
        // Claude Code shows its model this schema from the start; Codex shows the fields of a
        // result.
        assert_eq!(
            tool.get("_meta"),
            search
                .then(|| json!({ "anthropic/alwaysLoad": true }))
                .as_ref(),
            "{name}"
        );
        let fields = &tool["outputSchema"]["properties"]["results"]["items"]["properties"];
        assert_eq!(fields.get("title").is_some(), search, "{name}");
        assert!(tool["description"].as_str().unwrap().len() < 2_000);
    }
    println!("tools/list: {bytes} bytes");
    filters().bind(|| {
        insta::assert_snapshot!("tools_list", serde_json::to_string_pretty(&tools).unwrap())
    });
    assert!(bytes < 5_000, "tools/list is {bytes} bytes");
}

#[test]
fn the_instructions_say_when_to_search_and_fit_where_clients_cut() {
    let root = Root::samples();
    let mut server = Server::start(root.path());
    let hello = server.initialize("2025-11-25");
    let instructions = hello["instructions"].as_str().unwrap();
    assert!(instructions.len() < 2_000, "{} bytes", instructions.len());
    for tool in ack_memory::internal::TOOLS {
        assert!(instructions.contains(tool), "{tool}");
    }
    filters().bind(|| insta::assert_snapshot!("instructions", instructions));
}

#[test]
fn the_instructions_are_those_of_the_configuration() {
    let hello = |root: &Root| {
        let hello = Server::start(root.path()).initialize("2025-11-25");
        hello["instructions"].as_str().unwrap().to_owned()
    };
    let root = Root::new();
    let staged = json!({ "status": "staging" });
    root.store(
        "diary",
        &[
            memory("a", "Anything", staged.clone()),
            memory("b", "Else", staged),
        ],
    );
    let text = hello(&root);
    assert!(
        text.starts_with("No memory is approved yet: 2 wait"),
        "{text}"
    );
    root.manifest("diary", "unreviewed = \"approved\"");
    root.store("two", &[memory("c", "Approved", json!({}))]);
    let text = hello(&root);
    assert!(
        text.contains("learned, not individually reviewed."),
        "{text}"
    );
    root.manifest(
        "diary",
        "visibility = \"private\"\nunreviewed = \"approved\"",
    );
    let text = hello(&root);
    assert!(text.contains("learned, reviewed by people."), "{text}");
    assert!(
        !text.contains("diary"),
        "a private scope that is not current is not named: {text}"
    );
    // A store that cannot be read delays no handshake.
    std::fs::write(
        root.scope_folder("broken").join("memory.db"),
        vec![0xA5; 4096],
    )
    .unwrap();
    assert!(hello(&root).starts_with("Search with query_memories"));
    // A server that is pinned to a scope that does not exist searches nothing.
    let mut pinned = command(root.path());
    pinned.args(["--pin", "gone"]);
    let hello = Server::spawn(pinned).initialize("2025-11-25");
    let text = hello["instructions"].as_str().unwrap();
    assert!(
        text.contains("the scope gone, which does not exist") && !text.contains("Every shared"),
        "{text}"
    );
}

#[test]
fn invalid_arguments_get_our_codes_and_no_structured_content() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let mut transcript = String::new();
    for (tool, arguments, code) in [
        (
            "query_memories",
            json!({ "querry": "deadlock" }),
            "unknown_argument",
        ),
        (
            "query_memories",
            json!({ "query": true }),
            "invalid_argument",
        ),
        (
            "query_memories",
            json!({ "query": "x", "limit": 51 }),
            "invalid_argument",
        ),
        (
            "query_memories",
            json!({ "query": "x", "limit": "many" }),
            "invalid_argument",
        ),
        (
            "query_memories",
            json!({ "query": "x", "status": "aproved" }),
            "invalid_argument",
        ),
        (
            "query_memories",
            json!({ "query": "x", "status": "rejected" }),
            "invalid_argument",
        ),
        (
            "query_memories",
            json!({ "since": "2026-02-30" }),
            "invalid_argument",
        ),
        (
            "query_memories",
            json!({ "query": "x", "scope": "ledgr-api" }),
            "scope_not_found",
        ),
        (
            "query_memories",
            json!({ "query": "x", "cursor": "nonsense" }),
            "invalid_cursor",
        ),
        ("get_memory", json!({}), "invalid_argument"),
        (
            "get_memory",
            json!({ "id": "ack_a41f0c_2025-11-24_01" }),
            "memory_not_found",
        ),
        (
            "get_memory",
            json!({ "id": "x", "include": ["everything"] }),
            "invalid_argument",
        ),
        (
            "list_scopes",
            json!({ "scope": "../platform" }),
            "scope_not_found",
        ),
        (
            "get_context",
            json!({ "max_memories": 51 }),
            "invalid_argument",
        ),
    ] {
        let body = server.fail(tool, arguments.clone());
        assert_eq!(body.code, code, "{tool} {arguments}: {body:?}");
        transcript += &format!(
            "{tool} {arguments}\n{}\n\n",
            serde_json::to_string_pretty(&body).unwrap()
        );
    }
    filters().bind(|| insta::assert_snapshot!("errors", transcript));
}

#[test]
fn an_unknown_tool_or_method_is_a_protocol_error() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let answer = server.request(
        "tools/call",
        json!({ "name": "query_memory", "arguments": {} }),
    );
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("did you mean `query_memories`"),
        "{message}"
    );
    let answer = server.request("no/such/method", json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    // A long name is quoted in part, like that of a tool.
    let answer = server.request(&"m".repeat(3_000), json!({}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.chars().count() <= 80, "{message}");
    let answer = server.request("tools/call", json!({ "arguments": {} }));
    assert!(answer.get("error").is_some(), "{answer}");
    let answer = server.request(
        "tools/call",
        json!({ "name": "list_scopes", "arguments": ["scope"] }),
    );
    assert!(answer.get("error").is_some(), "{answer}");
    server.ping();
}

#[test]
fn a_root_without_scopes_says_how_to_start() {
    let root = Root::new();
    let mut server = Server::initialized(&root.path().join("nothing"));
    let body = server.fail("query_memories", json!({ "query": "x" }));
    assert_eq!(body.code, "no_scopes");
    assert!(
        body.message
            .contains("nothing` (flag --root) does not exist"),
        "{}",
        body.message
    );
    // The model is not given a command that writes.
    let hint = body.hint.unwrap();
    assert!(
        hint.starts_with("correct the path") && !hint.contains("import"),
        "{hint}"
    );
    let answer = server.call("list_scopes", json!({}));
    assert!(
        !answer.to_string().contains("ack-memory import"),
        "{answer}"
    );
    assert!(
        !root.path().join("nothing").exists(),
        "the server made its root"
    );
}
