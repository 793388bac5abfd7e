//! The server as a client meets it: the real binary, spoken to over its standard input and output.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ack_api::ErrorBody;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::support::{Root, memory};

/// How long a test waits for an answer that should come at once.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server and what it has said so far.
pub struct Server {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    waiting: HashMap<String, Value>,
    next: i64,
    meta: Option<Value>,
}

/// The binary with nothing of this process's environment that it reads.
pub fn command(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ack-memory"));
    for (variable, _) in ack_memory::config::ENVIRONMENT {
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

    /// A server after the handshake of the protocol versions that have one.
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

    /// The name by which a client without a handshake goes from now on.
    pub fn name(&mut self, name: &str) {
        self.meta.as_mut().unwrap()["io.modelcontextprotocol/clientInfo"]["name"] = json!(name);
    }

    pub fn initialize(&mut self, version: &str) -> Value {
        let client = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "0" } });
        let answer = self.request("initialize", client);
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        answer["result"].clone()
    }

    /// Writes bytes as they are.
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
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = self.waiting.remove(&id.to_string()) {
                return answer;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.message(left) {
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

    /// Closes standard input; how long the process went on, how it ended, and what it still said.
    pub fn close(mut self) -> (Duration, ExitStatus, Vec<Value>) {
        let started = Instant::now();
        drop(self.input.take());
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "the server outlives its standard input"
            );
            std::thread::sleep(Duration::from_millis(1));
        };
        let took = started.elapsed();
        let mut said = Vec::new();
        while let Some(message) = self.message(Duration::from_secs(5)) {
            said.push(message);
        }
        (took, status, said)
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
        .execute_batch(ack_memory::import::write::SCHEMA)
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

/// The capabilities of the server.
fn offered() -> Value {
    json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {} })
}

fn filters() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_description("generated by tests/it/mcp.rs");
    settings.set_omit_expression(true);
    settings
}

// Handshakes.

#[test]
fn what_is_no_request_before_the_handshake_is_over_ends_nothing() {
    let root = Root::samples();
    for first in [
        ("ping", json!({})),
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        (
            "no/such",
            json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "1999-01-01", "io.modelcontextprotocol/clientCapabilities": {} } }),
        ),
    ] {
        let mut server = Server::start(root.path());
        server.request(first.0, first.1.clone());
        for stray in [
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
            json!({ "jsonrpc": "2.0", "method": "ping" }),
            json!({ "jsonrpc": "2.0", "id": 9, "result": {} }),
        ] {
            server.write(&stray.to_string());
        }
        server.initialize("2025-11-25");
        assert_eq!(
            server.call("list_scopes", json!({}))["isError"],
            false,
            "after {first:?}"
        );
    }
}

#[test]
fn every_version_with_a_handshake_is_spoken() {
    let root = Root::samples();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut server = Server::start(root.path());
        let hello = server.initialize(version);
        assert_eq!(hello["protocolVersion"], version);
        assert_eq!(hello["serverInfo"]["name"], "ack-memory");
        assert_eq!(hello["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(
            hello["capabilities"],
            offered(),
            "nothing is offered that is not there"
        );
        server.ping();
        let tools = server.request("tools/list", json!({}));
        assert_eq!(
            tools["result"]["tools"].as_array().unwrap().len(),
            4,
            "{version}"
        );
        let all = [
            ("query_memories", json!({ "query": "deadlock" }), "results"),
            (
                "get_memory",
                json!({ "id": "ack_a41f0c_2025-11-24_001" }),
                "title",
            ),
            ("list_scopes", json!({}), "scopes"),
            ("get_context", json!({}), "project"),
        ];
        for (tool, arguments, field) in all {
            let result = server.call(tool, arguments);
            assert_ne!(result["isError"], true, "{version} {tool}: {result}");
            assert!(
                result["structuredContent"].get(field).is_some(),
                "{version} {tool}: {result}"
            );
        }
        let (_, status, _) = server.close();
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn a_version_nobody_knows_is_answered_with_one_that_is() {
    let root = Root::samples();
    let mut server = Server::start(root.path());
    let hello = server.initialize("1999-01-01");
    let version = hello["protocolVersion"].as_str().unwrap();
    assert!(version >= "2025-06-18", "{version}");
    server.ping();
}

#[test]
fn the_stateless_version_needs_no_handshake() {
    let root = Root::samples();
    let mut server = Server::stateless(root.path());
    let discovered = server.request("server/discover", json!({}));
    let discovered = &discovered["result"];
    let versions = discovered["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{discovered}");
    assert_eq!(discovered["capabilities"], offered(), "{discovered}");
    assert!(
        discovered["instructions"]
            .as_str()
            .unwrap()
            .contains("query_memories")
    );
    let tools = server.request("tools/list", json!({}));
    assert_eq!(
        tools["result"]["tools"].as_array().unwrap().len(),
        4,
        "{tools}"
    );
    for (tool, arguments) in [
        ("query_memories", json!({ "query": "deadlock" })),
        ("get_memory", json!({ "id": "ack_a41f0c_2025-11-24_001" })),
        ("list_scopes", json!({})),
        ("get_context", json!({})),
    ] {
        let result = server.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        assert!(result["structuredContent"].is_object(), "{tool}: {result}");
    }
    assert_eq!(
        server.fail("get_memory", json!({ "id": "nothing" })).code,
        "memory_not_found"
    );
    let (_, status, _) = server.close();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn what_comes_before_the_handshake_does_not_end_the_server() {
    let root = Root::samples();
    let mut ended = Vec::new();
    for first in [
        "not json",
        "",
        "{\"jsonrpc\":\"2.0\"}",
        "[1,2]",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":5}}",
        "{\"jsonrpc\":\"2.0\",\"id\":900,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":901,\"method\":\"tools/list\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":902,\"method\":\"no/such/method\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":903,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":904,\"method\":\"initialize\",\"params\":{}}",
    ] {
        let mut server = Server::start(root.path());
        server.write(first);
        std::thread::sleep(Duration::from_millis(100));
        if let Some(status) = server.child.try_wait().unwrap() {
            ended.push(format!("{first} ended it ({status})"));
            continue;
        }
        server.initialize("2025-06-18");
        server.ping();
    }
    assert!(ended.is_empty(), "{}", ended.join("\n"));
}

// What is offered.

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
    assert_eq!(names, ack_memory::mcp::TOOLS);
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
        // Claude Code tells its model this schema at once; Codex shows the fields of a result.
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
    for tool in ack_memory::mcp::TOOLS {
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
}

// Answers and errors.

/// What an answer's structure says and its text must say too: ids, titles, names, numbers, notes and the cursor.
fn told_by(structured: &Value) -> Vec<String> {
    let mut told = Vec::new();
    match structured {
        Value::Array(entries) => told.extend(entries.iter().flat_map(told_by)),
        Value::Object(members) => {
            for (name, value) in members {
                let is_told = [
                    "id",
                    "title",
                    "name",
                    "message",
                    "next_cursor",
                    "total",
                    "current_scope",
                    "to_id",
                    "action",
                    "reason",
                    "narrative",
                ]
                .contains(&name.as_str());
                match value {
                    Value::String(text) if is_told => told.extend(text.lines().map(str::to_owned)),
                    Value::Number(number) if is_told && number.as_u64() != Some(0) => {
                        told.push(number.to_string());
                    }
                    _ => told.extend(told_by(value)),
                }
            }
        }
        _ => {}
    }
    told
}

#[test]
fn an_answer_is_structured_content_that_keeps_to_the_listed_schema_and_the_same_as_markdown() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let tools = server.request("tools/list", json!({}));
    let schemas: HashMap<String, jsonschema::Validator> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let validator = jsonschema::draft202012::new(&tool["outputSchema"]).unwrap();
            (tool["name"].as_str().unwrap().to_owned(), validator)
        })
        .collect();
    for (tool, arguments) in [
        (
            "query_memories",
            json!({ "query": "container killed exit code 137", "explain": true }),
        ),
        ("query_memories", json!({ "query": "zzzzqqqq" })),
        (
            "query_memories",
            json!({ "status": "all", "limit": 50, "detail": "full" }),
        ),
        (
            "get_memory",
            json!({ "id": "ack_a41f0c_2025-11-24_001", "include": ["timeline", "links", "history"] }),
        ),
        (
            "get_memory",
            json!({ "ids": ["ack_a41f0c_2025-11-24_001", "nothing"] }),
        ),
        ("list_scopes", json!({})),
        ("list_scopes", json!({ "scope": "platform" })),
        (
            "get_context",
            json!({ "project_path": "/nowhere/ledger-api" }),
        ),
    ] {
        let result = server.call(tool, arguments.clone());
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result}");
        let structured = &result["structuredContent"];
        let [content] = result["content"].as_array().unwrap().as_slice() else {
            panic!("{result}")
        };
        assert_eq!(content["type"], "text");
        let text = content["text"].as_str().unwrap();
        for told in told_by(structured) {
            assert!(text.contains(&told), "{tool} {arguments}: {told} in {text}");
        }
        assert!(text.len() < structured.to_string().len() + 200, "{text}");
        let errors: Vec<String> = schemas[tool]
            .iter_errors(structured)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{tool} {arguments}: {errors:?}");
    }
    // Clients that leave `arguments` out mean none.
    let answer = server.request("tools/call", json!({ "name": "list_scopes" }));
    assert!(
        answer["result"]["structuredContent"]["scopes"].is_array(),
        "{answer}"
    );
    let answer = server.request(
        "tools/call",
        json!({ "name": "list_scopes", "arguments": null }),
    );
    assert!(
        answer["result"]["structuredContent"]["scopes"].is_array(),
        "{answer}"
    );
}

#[test]
fn a_client_that_shows_text_and_structure_gets_a_line_of_text() {
    let root = Root::samples();
    let as_client = |name: &str| {
        let mut server = Server::start(root.path());
        let client = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": name, "version": "0" } });
        server.request("initialize", client);
        server
            .write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        server
    };
    let calls = [
        ("query_memories", json!({ "query": "deadlock" })),
        ("get_memory", json!({ "id": "ack_a41f0c_2025-11-24_001" })),
        ("list_scopes", json!({})),
        (
            "get_context",
            json!({ "project_path": "/nowhere/ledger-api" }),
        ),
    ];
    for (name, short) in [
        ("codex-mcp-client", true),
        ("Cline", true),
        ("claude-code", false),
        ("gemini-cli-mcp-client", false),
    ] {
        let mut server = as_client(name);
        let mut stateless = Server::stateless(root.path());
        stateless.name(name);
        for (tool, arguments) in &calls {
            for server in [&mut server, &mut stateless] {
                let result = server.call(tool, arguments.clone());
                let text = result["content"][0]["text"].as_str().unwrap();
                let whole = result["structuredContent"].to_string();
                if short {
                    assert!(
                        text.ends_with("see the structured content") && text.len() < 120,
                        "{name} {tool}: {text}"
                    );
                    assert!(whole.len() > 500, "{name} {tool}: {whole}");
                } else {
                    for told in told_by(&result["structuredContent"]) {
                        assert!(text.contains(&told), "{name} {tool}: {told} in {text}");
                    }
                }
            }
        }
        // What is wrong is said in text, which is all that an error has.
        assert_eq!(
            server.fail("get_memory", json!({ "id": "nothing" })).code,
            "memory_not_found"
        );
    }
}

#[test]
fn bad_arguments_are_answered_with_our_codes_and_no_structured_content() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let mut transcript = String::new();
    for (tool, arguments, code) in [
        (
            "query_memories",
            json!({ "querry": "deadlock" }),
            "unknown_argument",
        ),
        ("query_memories", json!({ "query": 5 }), "invalid_argument"),
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
            json!({ "max_memories": 0 }),
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
fn an_example_in_an_error_can_be_sent_as_it_stands() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    for (tool, arguments) in [
        ("query_memories", json!({ "limit": 51 })),
        ("query_memories", json!({ "max_tokens": 1 })),
        ("query_memories", json!({ "since": "2026-02-30" })),
        ("query_memories", json!({ "status": "aproved" })),
        ("get_context", json!({ "max_memories": 0 })),
    ] {
        let body = server.fail(tool, arguments.clone());
        let Some(example) = body.example else {
            continue;
        };
        let example: Value = serde_json::from_str(&example)
            .unwrap_or_else(|error| panic!("{arguments}: {error}: {example}"));
        let result = server.call(tool, example.clone());
        assert_ne!(
            result["isError"], true,
            "{arguments}: the example {example} fails: {result}"
        );
    }
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
        body.message.contains("Memory database not found"),
        "{}",
        body.message
    );
    assert!(body.hint.unwrap().contains("ack-memory demo"));
    assert!(
        !root.path().join("nothing").exists(),
        "the server made its root"
    );
}

// Start.

#[test]
fn tools_are_listed_before_any_store_is_touched() {
    let root = Root::new();
    let fifo = |folder: &str, name: &str| {
        nix::unistd::mkfifo(
            &root.scope_folder(folder).join(name),
            nix::sys::stat::Mode::from_bits_truncate(0o600),
        )
        .unwrap();
    };
    fifo("pipe", "memory.db");
    fifo("linked", "elsewhere.db");
    root.manifest("linked", "store = \"elsewhere.db\"\n");
    std::fs::write(
        root.scope_folder("garbage").join("memory.db"),
        vec![0xA5; 65_536],
    )
    .unwrap();
    std::fs::write(root.scope_folder("empty").join("memory.db"), b"").unwrap();
    root.manifest("broken", "visibility = \"everyone\"\n");
    root.store(
        "good",
        &[memory("good-1", "A memory about deadlocks", json!({}))],
    );
    let started = Instant::now();
    let mut server = Server::initialized(root.path());
    let tools = server.request("tools/list", json!({}));
    println!("to tools/list: {:?}", started.elapsed());
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 4);
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
    // And the scopes that are fine still answer, with the others named.
    let result = server.call("query_memories", json!({ "query": "deadlocks" }));
    let answer = &result["structuredContent"];
    assert_eq!(answer["results"][0]["id"], "good-1", "{result}");
    let skipped: Vec<&str> = answer["searched"]["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skipped| skipped["scope"].as_str().unwrap())
        .collect();
    for scope in ["pipe", "linked", "garbage", "empty", "broken"] {
        assert!(skipped.contains(&scope), "{scope} is not among {skipped:?}");
    }
}

#[test]
fn a_manifest_that_is_a_pipe_does_not_hold_up_the_others() {
    let root = Root::new();
    root.store(
        "good",
        &[memory("good-1", "A memory about deadlocks", json!({}))],
    );
    let pipe = root.scope_folder("pipe").join("scope.toml");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let mut server = Server::initialized(root.path());
    let id = server.send(
        "tools/call",
        json!({ "name": "query_memories", "arguments": { "query": "deadlocks" } }),
    );
    let answer = server.message(Duration::from_secs(5));
    assert!(
        answer.is_some_and(|answer| answer["id"] == id),
        "a call waits for a manifest that is a pipe"
    );
}

#[test]
fn before_the_first_call_only_manifests_and_stores_are_read() {
    let root = Root::samples();
    let log = tempfile::NamedTempFile::new().unwrap();
    let works = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status();
    if !works.is_ok_and(|status| status.success()) {
        eprintln!("strace does not work here: this test did nothing");
        return;
    }
    let mut traced = Command::new("strace");
    traced
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=open,openat,openat2,connect,socket",
            "-o",
        ])
        .arg(log.path())
        .arg(env!("CARGO_BIN_EXE_ack-memory"))
        .arg("--root")
        .arg(root.path())
        .arg("serve")
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (variable, _) in ack_memory::config::ENVIRONMENT {
        traced.env_remove(variable);
    }
    let mut server = Server::spawn(traced);
    server.initialize("2025-06-18");
    server.request("tools/list", json!({}));
    server.ping();
    let root_text = root.path().to_str().unwrap();
    let read = || std::fs::read_to_string(log.path()).unwrap();
    let before = read();
    // The instructions say whether people reviewed the memories, and whether any is approved.
    let allowed = |line: &&str| {
        let is_read = line.contains("O_RDONLY");
        let ends = ["/scopes", "/scope.toml", "/memory.db", "/config.toml"];
        let names_scope = ["dana-private", "kiosk-web", "ledger-api", "platform"];
        let path = line.split('"').nth(1).unwrap_or_default();
        is_read
            && ends
                .iter()
                .chain(&names_scope)
                .any(|end| path.ends_with(end))
    };
    let touched: Vec<&str> = before
        .lines()
        .filter(|line| line.contains(root_text) && !allowed(line))
        .collect();
    assert!(touched.is_empty(), "{touched:#?}");
    server.call("query_memories", json!({ "query": "deadlock" }));
    server.call("get_context", json!({}));
    server.close();
    let after = read();
    assert!(after.contains(root_text), "strace saw nothing: {after}");
    // And no operation of the server opens for writing, or opens a connection.
    let wrote: Vec<&str> = after
        .lines()
        .filter(|line| {
            line.contains(root_text)
                && ["O_RDWR", "O_WRONLY", "O_CREAT"]
                    .iter()
                    .any(|flag| line.contains(flag))
        })
        .collect();
    assert!(wrote.is_empty(), "{wrote:#?}");
    let network: Vec<&str> = after
        .lines()
        .filter(|line| line.contains("AF_INET"))
        .collect();
    assert!(network.is_empty(), "{network:#?}");
}

// Messages that are wrong.

#[test]
fn the_server_lives_on_after_every_kind_of_wrong_message() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let deep = "[".repeat(20_000);
    let long_id = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"ping\"}}",
        "x".repeat(100_000)
    );
    let many = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1000000,\"method\":\"tools/call\",\"params\":{{\"name\":\"query_memories\",\"arguments\":{{\"query\":\"{}\"}}}}}}",
        "word ".repeat(200_000)
    );
    let messages: Vec<&str> = vec![
        "not json",
        "",
        "   ",
        "{",
        "{\"jsonrpc\":\"2.0\",\"id\":5000,\"method\":",
        "null",
        "42",
        "\"text\"",
        "[]",
        "[{\"jsonrpc\":\"2.0\",\"id\":5001,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"id\":5002,\"method\":\"ping\"}]",
        "{}",
        "{\"jsonrpc\":\"1.0\",\"id\":5003,\"method\":\"ping\"}",
        "{\"id\":5004,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":5005}",
        "{\"jsonrpc\":\"2.0\",\"id\":5006,\"method\":7}",
        "{\"jsonrpc\":\"2.0\",\"id\":5007,\"method\":\"ping\",\"params\":\"x\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":5008,\"method\":\"tools/call\",\"params\":[1]}",
        "{\"jsonrpc\":\"2.0\",\"id\":5009,\"method\":\"tools/call\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":5010,\"method\":\"tools/call\",\"params\":{\"name\":5}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5011,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5012,\"error\":{\"code\":1,\"message\":\"x\"}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nobody/knows\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999999999,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":5013,\"method\":\"initialize\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5014,\"method\":\"ping\"}\r",
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":5015,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":5016,\"method\":\"tools/call\",\"params\":{\"name\":\"query_memories\",\"arguments\":{\"query\":\"\\ud800\"}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5017,\"method\":\"tools/call\",\"params\":{\"name\":\"query_memories\",\"arguments\":{\"query\":\"\\u0000\\u001b[31m\"}}}",
        &deep,
        &long_id,
        &many,
    ];
    for message in messages {
        server.write(message);
        let shown: String = message.chars().take(80).collect();
        let id = server.send("ping", json!({}));
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.answer(id)));
        assert!(
            answer.is_ok(),
            "after {shown:?} the server does not answer any more"
        );
    }
    server.raw(b"{\"jsonrpc\":\"2.0\",\"id\":6000,\"method\":\"p\xff\xfeing\"}\n\x00\x01\x02\n");
    server.ping();
    let (_, status, _) = server.close();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_line_of_seventeen_megabytes_is_passed_over() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let start = "{\"jsonrpc\":\"2.0\",\"id\":7000,\"method\":\"tools/call\",\
                 \"params\":{\"name\":\"query_memories\",\"arguments\":{\"query\":\"";
    server.raw(start.as_bytes());
    for _ in 0..17 {
        server.raw(&vec![b'a'; 1 << 20]);
    }
    server.raw(b"\"}}}\n");
    server.ping();
    let result = server.call("query_memories", json!({ "query": "deadlock" }));
    assert!(
        !result["structuredContent"]["results"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

// Many requests, cancelled requests, the end.

#[test]
fn two_hundred_calls_at_once_are_each_answered_once() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let ids: Vec<i64> = (0..200)
        .map(|number| {
            let (tool, arguments) = match number % 4 {
                0 => ("query_memories", json!({ "query": "deadlock", "limit": 3 })),
                1 => ("get_memory", json!({ "id": "ack_a41f0c_2025-11-24_001" })),
                2 => ("list_scopes", json!({})),
                _ => (
                    "get_context",
                    json!({ "project_path": "/nowhere/ledger-api" }),
                ),
            };
            server.send(
                "tools/call",
                json!({ "name": tool, "arguments": arguments }),
            )
        })
        .collect();
    let mut first: HashMap<i64, String> = HashMap::new();
    for id in ids {
        let answer = server.answer(id);
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["structuredContent"].to_string();
        let known = first.entry((id - 2) % 4).or_insert_with(|| text.clone());
        assert_eq!(*known, text, "equal calls, different answers");
    }
    server.ping();
    let (_, _, said) = server.close();
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn cancelled_calls_do_not_break_the_others() {
    let root = Root::new();
    large(&root, "load", 5_000);
    let mut server = Server::initialized(root.path());
    let call = json!({ "name": "query_memories", "arguments": { "query": "lock5 word77" } });
    let cancelled: Vec<i64> = (0..20)
        .map(|_| {
            let id = server.send("tools/call", call.clone());
            server.write(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "no longer needed" } }).to_string());
            id
        })
        .collect();
    let kept = server.send("tools/call", call.clone());
    // Taken back before it was sent, and after it was answered.
    server.write(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 424_242 } }).to_string());
    let answer = server.answer(kept);
    assert!(
        !answer["result"]["structuredContent"]["results"]
            .as_array()
            .unwrap()
            .is_empty(),
        "{answer}"
    );
    server.write(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": kept } }).to_string());
    let again = server.send("tools/call", call);
    assert_ne!(server.answer(again)["result"]["isError"], true);
    server.ping();
    let answered = cancelled
        .iter()
        .filter(|id| server.waiting.contains_key(&id.to_string()))
        .count();
    println!(
        "{answered} of {} cancelled calls were answered all the same",
        cancelled.len()
    );
}

#[test]
fn the_process_ends_when_standard_input_does() {
    let root = Root::samples();
    let mut worst = Duration::ZERO;
    for asked in [false, true, true] {
        let mut server = Server::initialized(root.path());
        if asked {
            server.call("query_memories", json!({ "query": "deadlock" }));
        }
        let (took, status, said) = server.close();
        assert_eq!(status.code(), Some(0));
        assert!(said.is_empty(), "{said:?}");
        worst = worst.max(took);
    }
    let (took, status, _) = Server::start(root.path()).close();
    assert_eq!(status.code(), Some(0), "closed before the handshake");
    println!("exit after standard input is closed: {worst:?}, before the handshake {took:?}");
    assert!(
        worst.max(took) < Duration::from_secs(1),
        "{worst:?} {took:?}"
    );
}

#[test]
fn the_process_ends_in_the_middle_of_a_request() {
    let root = Root::new();
    large(&root, "load", 30_000);
    let mut server = Server::initialized(root.path());
    for _ in 0..12 {
        server.send(
            "tools/call",
            json!({ "name": "query_memories", "arguments": { "query": "lock5 word77" } }),
        );
    }
    std::thread::sleep(Duration::from_millis(50));
    let (took, status, said) = server.close();
    println!(
        "exit in the middle of building an index: {took:?}, {} answers",
        said.len()
    );
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn requests_that_are_piped_in_are_answered_though_input_ends_at_once() {
    let root = Root::samples();
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "printf", "version": "0" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "query_memories", "arguments": { "query": "deadlock" } } }),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" }),
    ];
    let text = lines.map(|line| line.to_string()).join("\n");
    assert!(!text.ends_with('\n'), "the last line has no line end");
    // Answers have some tens of milliseconds from the end of input: on a busy machine that may not be enough every time.
    let mut seen = Vec::new();
    for _ in 0..15 {
        let mut server = Server::start(root.path());
        server.raw(text.as_bytes());
        let (_, status, said) = server.close();
        assert_eq!(status.code(), Some(0));
        let mut ids: Vec<i64> = said
            .iter()
            .filter_map(|message| message["id"].as_i64())
            .collect();
        ids.sort_unstable();
        seen.push(ids);
    }
    println!("piped requests answered: {seen:?}");
    assert!(
        seen.contains(&vec![1, 2, 3, 4]),
        "piped requests were never all answered: {seen:?}"
    );
}

#[test]
fn a_stateless_request_that_is_piped_in_is_answered() {
    let root = Root::samples();
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let mut server = Server::start(root.path());
    server.raw(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } })
            .to_string()
            .as_bytes(),
    );
    let (_, status, said) = server.close();
    assert_eq!(status.code(), Some(0));
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["result"]["tools"].as_array().unwrap().len(), 4);
}

#[test]
fn a_terminate_signal_ends_the_process() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let started = Instant::now();
    let status = Command::new("kill")
        .args(["-TERM", &server.child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
    server.child.wait().unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_client_that_stops_reading_does_not_keep_the_process() {
    let root = Root::samples();
    let mut child = command(root.path()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "deaf", "version": "0" } } });
    let _ = writeln!(input, "{hello}");
    let _ = writeln!(
        input,
        "{}",
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })
    );
    drop(input);
    let started = Instant::now();
    let status = child.wait().unwrap();
    assert!(started.elapsed() < Duration::from_secs(1));
    println!("without a reader: {status:?}");
    let mut errors = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert!(
        !errors.contains("panicked") && !errors.contains("internal error ("),
        "{errors}"
    );
}

// A store that changes under a running server.

#[test]
fn a_running_server_sees_a_new_scope_and_new_rows_at_once() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let total = |server: &mut Server| {
        server.call("query_memories", json!({ "query": "xylophone" }))["structuredContent"]["total"]
            .clone()
    };
    assert_eq!(total(&mut server), 0);
    let path = root.store("music", &[memory("m-1", "Tune the xylophone", json!({}))]);
    assert_eq!(total(&mut server), 1);
    let connection = Connection::open(path).unwrap();
    crate::support::insert(
        &connection,
        &[memory("m-2", "Another xylophone", json!({}))],
    );
    assert_eq!(total(&mut server), 2);
    connection
        .execute(
            "UPDATE memories SET status = 'rejected' WHERE id = 'm-1'",
            [],
        )
        .unwrap();
    assert_eq!(total(&mut server), 1);
    let body = server.fail("get_memory", json!({ "id": "m-1", "status": "all" }));
    assert_eq!(body.code, "memory_not_served");
}

#[test]
fn a_pinned_server_refuses_other_scopes_by_name() {
    let root = Root::samples();
    let mut pinned = command(root.path());
    pinned.args(["--pin", "platform"]);
    let mut server = Server::spawn(pinned);
    server.initialize("2025-06-18");
    let body = server.fail(
        "query_memories",
        json!({ "query": "x", "scope": "ledger-api" }),
    );
    assert_eq!(body.code, "scope_refused");
    let result = server.call("query_memories", json!({ "query": "docker" }));
    assert_eq!(
        result["structuredContent"]["searched"]["scopes"],
        json!(["platform"])
    );
}
