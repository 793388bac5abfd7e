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
use serde_json::{Value, json};

use crate::support::{Root, memory, titled, unreviewed, write_file};

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
        Self { child, input, lines, waiting: HashMap::new(), next: 0, meta: None }
    }

    /// A server after the handshake (for protocol versions that have one).
    pub fn initialized(root: &Path) -> Self {
        Self::with(root, &[])
    }

    /// As [`Server::initialized`], with more flags.
    pub fn with(root: &Path, flags: &[&str]) -> Self {
        let mut command = command(root);
        command.args(flags);
        let mut server = Self::spawn(command);
        server.initialize("2025-06-18");
        server
    }

    /// As [`Server::initialized`], in the folder of a project.
    pub fn within(root: &Path, project: impl AsRef<Path>) -> Self {
        Self::with(root, &["-C", project.as_ref().to_str().unwrap()])
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
                None => {
                    panic!("no answer to request {id}; exit status {:?}", self.child.try_wait())
                }
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
        let asked = json!({ "name": tool, "arguments": arguments });
        let answer = self.request("tools/call", asked);
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
            assert!(started.elapsed() < TIMEOUT, "the server outlives its standard input");
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
    let memories: Vec<Value> = (0..rows)
        .map(|row| {
            let words = (0..60).map(|word| format!("word{}", (row * 7 + word * 13) % 5_000));
            let rest =
                json!({ "narrative": words.collect::<Vec<_>>().join(" "), "concepts": ["load"] });
            let title = format!("Memory {row} about lock{}", row % 97);
            memory(&format!("load-{row}"), &title, rest)
        })
        .collect();
    crate::query::bulk(root, scope, &memories);
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
    let answer = server.request("tools/list", json!({}));
    let bytes = answer.to_string().len();
    let tools = answer["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ack_memory::internal::TOOLS);
    for tool in &tools {
        let name = &tool["name"];
        let input = tool["inputSchema"].as_object().unwrap();
        assert_eq!(input["type"], "object", "{name}");
        assert_eq!(input["additionalProperties"], false, "{name}");
        let combined = ["anyOf", "oneOf", "allOf", "$ref", "$defs"];
        assert!(!combined.iter().any(|key| input.contains_key(*key)), "{name}: {input:?}");
        for (argument, schema) in input["properties"].as_object().unwrap() {
            assert!(schema["type"].is_string(), "{name}.{argument}: {schema}");
            assert!(schema["description"].is_string(), "{name}.{argument}: {schema}");
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
        let meta = search.then(|| json!({ "anthropic/alwaysLoad": true }));
        assert_eq!(tool.get("_meta"), meta.as_ref(), "{name}");
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
    assert!(hello(&root).starts_with("No memories are set up"));
    root.store("diary", &[unreviewed("a", "Any"), unreviewed("b", "Else")]);
    let text = hello(&root);
    let said = "No memory is approved yet: 2 wait";
    assert!(text.starts_with(said), "{text}");
    root.manifest("diary", "unreviewed = \"approved\"");
    root.store("two", &[titled("c", "Approved")]);
    let text = hello(&root);
    assert_contains!(text, "learned, not individually reviewed.");
    let settings = "visibility = \"private\"\nunreviewed = \"approved\"";
    root.manifest("diary", settings);
    let text = hello(&root);
    assert_contains!(text, "learned, reviewed by people.");
    assert_lacks!(text, "diary"; "a private scope that is not current is not named");
    // A store that cannot be read delays no handshake.
    write_file(root.scope_folder("broken").join("memory.db"), vec![0xA5; 4096]);
    assert!(hello(&root).starts_with("Search with query_memories"));
    // A server that is pinned to a scope that does not exist searches nothing.
    let said = ["the scope gone, which does not exist", "Only the scope two"];
    for (pin, said) in ["gone", "two"].into_iter().zip(said) {
        let mut pinned = command(root.path());
        pinned.args(["--pin", pin]);
        let hello = Server::spawn(pinned).initialize("2025-11-25");
        let text = hello["instructions"].as_str().unwrap();
        assert_contains!(text, said);
        assert_lacks!(text, "Every shared", "in all projects");
    }
}

#[test]
fn invalid_arguments_get_our_codes_and_no_structured_content() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let mut transcript = String::new();
    let query = |arguments: Value, code: &'static str| ("query_memories", arguments, code);
    let get = |arguments: Value, code: &'static str| ("get_memory", arguments, code);
    let (invalid, no_scope) = ("invalid_argument", "scope_not_found");
    for (tool, arguments, code) in [
        query(json!({ "querry": "deadlock" }), "unknown_argument"),
        query(json!({ "query": true }), invalid),
        query(json!({ "query": "x", "limit": 51 }), invalid),
        query(json!({ "query": "x", "limit": "many" }), invalid),
        query(json!({ "query": "x", "status": "aproved" }), invalid),
        query(json!({ "query": "x", "status": "rejected" }), invalid),
        query(json!({ "since": "2026-02-30" }), invalid),
        query(json!({ "query": "x", "scope": ["platform", "ledger-api"] }), invalid),
        query(json!({ "concepts": ["a"], "tags": ["b"] }), invalid),
        query(json!({ "query": "x", "scope": "ledgr-api" }), no_scope),
        query(json!({ "query": "x", "cursor": "nonsense" }), "invalid_cursor"),
        get(json!({}), invalid),
        get(json!({ "id": "ack_a41f0c_2025-11-24_01" }), "memory_not_found"),
        get(json!({ "id": "x", "include": ["everything"] }), invalid),
        ("list_scopes", json!({ "scope": "../platform" }), no_scope),
        ("get_context", json!({ "max_memories": 51 }), invalid),
    ] {
        let body = server.fail(tool, arguments.clone());
        assert_eq!(body.code, code, "{tool} {arguments}: {body:?}");
        let body = serde_json::to_string_pretty(&body).unwrap();
        transcript += &format!("{tool} {arguments}\n{body}\n\n");
    }
    filters().bind(|| insta::assert_snapshot!("errors", transcript));
}

#[test]
fn an_unknown_tool_or_method_is_a_protocol_error() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let mut error = |method: &str, params: Value| {
        let answer = server.request(method, params);
        assert!(answer.get("error").is_some(), "{answer}");
        answer["error"].clone()
    };
    let asked = json!({ "name": "query_memory", "arguments": {} });
    let misspelt = error("tools/call", asked);
    assert_eq!(misspelt["code"], -32602, "{misspelt}");
    assert_contains!(misspelt["message"], "did you mean `query_memories`");
    assert_eq!(error("no/such/method", json!({}))["code"], -32601);
    // A long name is quoted in part, like that of a tool.
    let long = error(&"m".repeat(3_000), json!({}));
    assert!(long["message"].as_str().unwrap().chars().count() <= 80, "{long}");
    error("tools/call", json!({ "arguments": {} }));
    let asked = json!({ "name": "list_scopes", "arguments": ["scope"] });
    error("tools/call", asked);
    server.ping();
}

#[test]
fn a_root_without_scopes_says_how_to_start() {
    let root = Root::new();
    let mut server = Server::initialized(&root.path().join("nothing"));
    let body = server.fail("query_memories", json!({ "query": "x" }));
    assert_eq!(body.code, "no_scopes");
    assert_contains!(body.message, "nothing` (flag --root) does not exist");
    // The model is not given a command that writes.
    let hint = body.hint.unwrap();
    assert!(hint.starts_with("correct the path") && !hint.contains("import"), "{hint}");
    let answer = server.call("list_scopes", json!({}));
    assert_lacks!(answer.to_string(), "ack-memory import");
    assert!(!root.path().join("nothing").exists(), "the server made its root");
}
