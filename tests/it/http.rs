//! `serve --http`: the real binary over loopback, with its own home folder, on a port that the
//! system chooses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::Server;
use crate::support::{Root, fingerprint, read_text, titled, write_file};

/// The token of [`Http::start`].
pub const SECRET: &str = "a-secret-of-these-tests";
const TIMEOUT: Duration = Duration::from_secs(30);

/// The binary with a home folder of its own and none of the variables that it reads from this
/// process's environment.
fn command(root: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ack-memory"));
    for (variable, _) in ack_memory::internal::ENVIRONMENT {
        command.env_remove(variable);
    }
    command
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", home)
        .args(["--root".as_ref(), root.as_os_str(), "serve".as_ref()])
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A running server.
pub struct Http {
    child: Child,
    pub url: String,
    pub address: SocketAddr,
    pub agent: ureq::Agent,
    pub token: Option<String>,
    home: TempDir,
}

impl Http {
    /// A server that takes [`SECRET`] as its token.
    pub fn start(root: &Path) -> Self {
        Self::with(root, &["--http", "127.0.0.1:0"], |command| {
            command.env("ACK_MEM_TOKEN", SECRET);
        })
    }

    pub fn with(root: &Path, arguments: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let home = tempfile::Builder::new().prefix("ack-home-").tempdir().unwrap();
        let mut command = command(root, home.path(), arguments);
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let url = first_line(&mut child);
        let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let Some(address) = address else {
            panic!("no address but {url:?}: {}", errors(&mut child));
        };
        Self {
            address: address.parse().unwrap(),
            child,
            url,
            agent: agent(),
            token: Some(SECRET.to_owned()),
            home,
        }
    }

    /// A server with these flags, on a port that the system chooses.
    fn local(root: &Path, flags: &[&str]) -> Self {
        Self::with(root, &[&["--http", "127.0.0.1:0"], flags].concat(), |_| {})
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a message; the status and the body of the answer.
    pub fn post(&self, message: &Value, headers: &[(&str, &str)]) -> (u16, String) {
        post(&self.agent, &self.url, self.token.as_deref(), message.to_string().as_bytes(), headers)
    }

    #[track_caller]
    pub fn request(&self, method: &str, params: Value) -> Value {
        self.request_with(method, params, &[])
    }

    #[track_caller]
    fn request_with(&self, method: &str, params: Value, headers: &[(&str, &str)]) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (status, body) = self.post(&message, headers);
        assert_eq!(status, 200, "{method}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{method}: {error}: {body}"))
    }

    /// A request in the version without a handshake.
    #[track_caller]
    fn stateless(&self, method: &str, mut params: Value) -> Value {
        let named = params.get("name").or_else(|| params.get("uri"));
        let named = named.and_then(Value::as_str).map(str::to_owned);
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(named.as_deref().map(|name| ("Mcp-Name", name)));
        self.request_with(method, params, &headers)
    }

    /// Writes a request unchanged. Returns everything that the server sends until it closes.
    pub fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Sends a signal. Returns how long the process ran on, how it ended, and its standard error.
    pub fn signal(mut self, name: &str) -> (Duration, ExitStatus, String) {
        let started = Instant::now();
        kill(&self.child, name);
        let status = wait(&mut self.child);
        let errors = errors(&mut self.child);
        (started.elapsed(), status, errors)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first line of a process's output.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

/// The standard error of a process until it ends.
fn errors(child: &mut Child) -> String {
    let mut text = String::new();
    let mut errors = child.stderr.take().unwrap();
    errors.read_to_string(&mut text).unwrap();
    text
}

/// The bits of a file's mode that say who may do what.
fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT))
        .build()
        .into()
}

pub fn post(
    agent: &ureq::Agent,
    url: &str,
    token: Option<&str>,
    body: &[u8],
    headers: &[(&str, &str)],
) -> (u16, String) {
    let mut request = agent
        .post(url)
        .header("Accept", "application/json, text/event-stream")
        .header("Content-Type", "application/json");
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = request.send(body).unwrap();
    let body = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), body)
}

fn kill(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

#[track_caller]
fn wait(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(started.elapsed() < TIMEOUT, "the server does not end");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a server that is expected to end by itself. Its exit code and what it says.
pub fn refused(root: &Path, arguments: &[&str], token: Option<&str>) -> (Option<i32>, String) {
    let home = tempfile::tempdir().unwrap();
    let mut command = command(root, home.path(), arguments);
    if let Some(token) = token {
        command.env("ACK_MEM_TOKEN", token);
    }
    let mut child = command.spawn().unwrap();
    let status = wait(&mut child);
    (status.code(), errors(&mut child))
}

/// The file of a token that was made at first use.
fn kept(home: &Path) -> PathBuf {
    if cfg!(target_os = "macos") {
        home.join("Library/Application Support/ack-memory/http-token")
    } else {
        home.join(".config/ack-memory/http-token")
    }
}

#[test]
fn both_protocol_versions_are_answered_as_over_standard_input() {
    let root = Root::samples().let_agents_review();
    let http = Http::start(root.path());
    let mut stdio = Server::initialized(root.path());
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" } });
    let hello = http.request("initialize", client);
    assert_eq!(hello["result"]["serverInfo"]["name"], "ack-memory");
    assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
    let asked = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let (status, body) = http.post(&asked, &[]);
    assert_eq!((status, body.as_str()), (202, ""));
    let discovered = http.stateless("server/discover", json!({}));
    assert_contains!(discovered["result"]["supportedVersions"].to_string(), "2026-07-28");
    let call = |tool: &str, arguments: Value| {
        ("tools/call", json!({ "name": tool, "arguments": arguments }))
    };
    for (method, params) in [
        ("tools/list", json!({})),
        call("query_memories", json!({ "query": "deadlock" })),
        call("get_memory", json!({ "id": "nothing" })),
        call("list_scopes", json!({})),
        call("get_context", json!({ "project_path": "/nowhere/ledger-api" })),
        ("resources/list", json!({})),
        ("resources/read", json!({ "uri": "memory://scope/ledger-api" })),
    ] {
        let wanted = stdio.request(method, params.clone());
        // Over HTTP, the paths of the server's machine are left out.
        let here = std::env::temp_dir();
        let name = here.file_name().unwrap().to_string_lossy();
        let wanted = wanted["result"]
            .to_string()
            .replace(&format!(" --root {}", root.path().display()), "")
            .replace(&format!("{}/scopes/", root.path().display()), "")
            .replace(&format!("`{}`", here.display()), &format!("`{name}`"));
        let wanted: Value = serde_json::from_str(&wanted).unwrap();
        let answer = http.request(method, params.clone());
        assert_eq!(answer["result"], wanted, "{method} {params}");
        let mut result = http.stateless(method, params.clone())["result"].clone();
        let result = result.as_object_mut().unwrap();
        result.retain(|key, _| {
            !["resultType", "ttlMs", "cacheScope", "_meta"].contains(&key.as_str())
        });
        assert_eq!(&Value::Object(result.clone()), &wanted, "{method} {params}");
    }
    let (took, status, _) = http.signal("TERM");
    assert_eq!(status.code(), Some(0));
    println!("from SIGTERM to the end: {took:?}");
}

#[test]
fn only_the_full_token_is_accepted_and_health_reveals_nothing() {
    let root = Root::samples();
    let mut http = Http::start(root.path());
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let [short, long, large] = [&SECRET[1..], &SECRET.repeat(2), &SECRET.to_uppercase()];
    for wrong in [None, Some(short), Some(long), Some(large)] {
        http.token = wrong.map(str::to_owned);
        let (status, body) = http.post(&call, &[]);
        assert_eq!(status, 401, "{wrong:?}: {body}");
        assert_lacks!(body, SECRET, "tools");
    }
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", http.address);
    assert_contains!(http.raw(&head).to_lowercase(), "www-authenticate: bearer");
    http.token = Some(SECRET.to_owned());
    assert_eq!(http.post(&call, &[]).0, 200);
    let health = http.url.replace("/mcp", "/health");
    let mut health = http.agent.get(health).call().unwrap();
    assert_eq!(health.headers()["cache-control"], "no-store");
    let health: Value = serde_json::from_str(&health.body_mut().read_to_string().unwrap()).unwrap();
    assert_eq!(
        health,
        json!({ "status": "ok", "name": "ack-memory", "version": env!("CARGO_PKG_VERSION") })
    );
}

#[test]
fn a_token_is_created_at_first_use_private_and_never_shown() {
    let root = Root::samples();
    let before = fingerprint(root.path());
    let mut http = Http::local(root.path(), &[]);
    let file = kept(http.home.path());
    let token = read_text(&file).trim().to_owned();
    assert_eq!(token.len(), 43, "32 random bytes");
    let folder = file.parent().unwrap();
    assert_eq!((mode(&file), mode(folder)), (0o600, 0o700));
    let alone: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
    assert_eq!(alone.len(), 1, "{alone:?}");
    http.token = Some(token.clone());
    http.request("tools/list", json!({}));
    // A second server of the same owner uses the same one.
    let home = http.home.path().to_owned();
    let mut second = Http::with(root.path(), &["--http", "127.0.0.1:0"], |command| {
        command.env("HOME", &home);
    });
    second.token = Some(token.clone());
    second.request("tools/list", json!({}));
    let (_, _, stderr) = second.signal("INT");
    assert_lacks!(stderr, "created just now");
    let shown = format!(
        "claude mcp add --transport http ack-memory {} --header \"Authorization: Bearer $(cat '{}')\"",
        http.url,
        file.display()
    );
    let _kept_home = std::mem::replace(&mut http.home, tempfile::tempdir().unwrap());
    let (_, status, stderr) = http.signal("INT");
    assert_eq!(status.code(), Some(0));
    assert_contains!(stderr, "created just now", shown);
    assert_lacks!(stderr, token);
    assert_eq!(before, fingerprint(root.path()), "the server wrote under its root");
}

#[test]
fn the_token_comes_from_a_file_or_the_environment_and_bad_ones_are_refused() {
    let root = Root::samples();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    write_file(&file, format!("{SECRET}\n"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let path = file.to_str().unwrap();
    // The flag takes precedence over the environment.
    let http =
        Http::with(root.path(), &["--http", "127.0.0.1:0", "--token-file", path], |command| {
            command.env("ACK_MEM_TOKEN", "another-secret-than-that");
        });
    http.request("tools/list", json!({}));
    assert!(!kept(http.home.path()).exists());
    let (_, _, stderr) = http.signal("TERM");
    assert_contains!(stderr, "others may read the token", "chmod 600");
    for (content, reason) in
        [("", "is empty"), ("short", "at least 16"), ("a secret with blanks", "visible ASCII")]
    {
        write_file(&file, content);
        for in_the_file in [true, false] {
            let flags = ["--http", "127.0.0.1:0", "--token-file", path];
            if !in_the_file && content.is_empty() {
                continue;
            }
            let flags = if in_the_file { &flags[..] } else { &flags[..2] };
            let token = (!in_the_file).then_some(content);
            let (code, stderr) = refused(root.path(), flags, token);
            assert_eq!(code, Some(1), "{stderr}");
            assert_contains!(stderr, reason, "at least 16 visible");
            assert!(content.is_empty() || !stderr.contains(content), "{stderr}");
        }
    }
    let nowhere = ["--http", "127.0.0.1:0", "--token-file", "/nowhere/token"];
    let (_, stderr) = refused(root.path(), &nowhere, None);
    assert_contains!(stderr, "/nowhere/token");
}

#[test]
fn a_foreign_host_or_origin_is_refused_first() {
    let root = Root::samples();
    let words = ["--no-token", "--allow-host", "memory.example"];
    let http = Http::local(root.path(), &words);
    let own = http.address.to_string();
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}";
    let ask = |path: &str, host: &str, origin: &str| {
        let origin = match origin {
            "" => String::new(),
            origin => format!("Origin: {origin}\r\n"),
        };
        let response = http.raw(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{origin}Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ));
        let status: u16 = response.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(response.contains("query_memories"), status == 200);
        status
    };
    for (path, host, origin, status) in [
        ("/mcp", own.as_str(), "", 200),
        ("/mcp", "localhost:1", "", 200),
        ("/mcp", "memory.example", "", 200),
        ("/mcp", &own, &format!("http://{own}"), 200),
        ("/mcp", "evil.example", "", 403),
        ("/health", "evil.example", "", 403),
        ("/mcp", &own, "http://evil.example", 403),
        ("/mcp", &own, "http://localhost:3000", 403),
        ("/mcp", &own, "null", 403),
        ("http://evil.example/mcp", &own, "", 403),
    ] {
        assert_eq!(ask(path, host, origin), status, "{path} {host} {origin}");
    }
    let without_a_host = http.raw("POST /mcp HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(without_a_host.starts_with("HTTP/1.1 400"));
    // No answer allows pages of other origins.
    let response = http.raw(&format!(
        "OPTIONS /mcp HTTP/1.1\r\nHost: {own}\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"
    ));
    assert!(response.starts_with("HTTP/1.1 403"), "{response}");
    assert_lacks!(response.to_lowercase(), "access-control");
}

#[test]
fn invalid_messages_and_methods_get_an_explanation() {
    let root = Root::samples();
    let http = Http::start(root.path());
    let send = |body: &[u8]| post(&http.agent, &http.url, Some(SECRET), body, &[]);
    let cut = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query_memories","arguments":{"query":"cut \ud83d"}}}"#;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    let without_a_tool = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}"#;
    for (body, status, code) in [
        ("{nope", 400, Some(-32700)),
        (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, 400, Some(-32600)),
        (batch, 400, Some(-32600)),
        (without_a_tool, 400, Some(-32602)),
        (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, 202, None),
        (r#"{"jsonrpc":"2.0","method":7}"#, 202, None),
        ("", 202, None),
        (cut, 200, None),
    ] {
        let (answered, answer) = send(body.as_bytes());
        assert_eq!(answered, status, "{body}: {answer}");
        if let Some(code) = code {
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
        }
    }
    let (status, body) = send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such/method\"}");
    assert!(status == 200 || status == 404, "{status}");
    assert_contains!(body, "-32601");
    let authorization = format!("Bearer {SECRET}");
    for (url, status, allowed) in
        [(http.url.clone(), 405, Some("POST")), (http.url.replace("/mcp", "/"), 404, None)]
    {
        let get = http.agent.get(&url).header("Authorization", &authorization);
        let mut answer = get.call().unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        assert_eq!(answer.status().as_u16(), status, "{body}");
        let allow = answer.headers().get("allow");
        assert_eq!(allow.map(|allow| allow.to_str().unwrap()), allowed);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert!(body["error"]["message"].is_string(), "{body}");
    }
    let delete = http.agent.delete(&http.url).header("Authorization", &authorization);
    assert_eq!(delete.call().unwrap().status().as_u16(), 405);
    // A body that is too long is refused before it is sent.
    let response = http.raw(&format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {authorization}\r\nContent-Length: 5000000\r\n\r\n",
        http.address
    ));
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    http.request("tools/list", json!({}));
}

#[test]
fn a_signal_lets_running_requests_finish_and_closes_idle_connections() {
    let root = Root::new();
    let row = |row| titled(&format!("m-{row}"), &format!("Memory {row} about lock{}", row % 97));
    crate::query::bulk(&root, "load", &(0..4_000).map(row).collect::<Vec<_>>());
    for signal in ["TERM", "INT", "HUP"] {
        let http = Http::start(root.path());
        // Used once and kept open, and never used.
        http.request("tools/list", json!({}));
        let _idle = TcpStream::connect(http.address).unwrap();
        let url = http.url.clone();
        let under_way = std::thread::spawn(move || {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "query_memories", "arguments": { "query": "lock5" } } });
            post(&agent(), &url, Some(SECRET), body.to_string().as_bytes(), &[])
        });
        std::thread::sleep(Duration::from_millis(60));
        let address = http.address;
        let (took, status, stderr) = http.signal(signal);
        assert_eq!(status.code(), Some(0), "{stderr}");
        let (answered, body) = under_way.join().unwrap();
        assert_eq!(answered, 200, "{body}");
        println!("SIG{signal}: ended after {took:?}");
        assert!(took < Duration::from_secs(8), "{took:?}");
        let later = TcpStream::connect(address);
        assert!(later.is_err(), "somebody still listens");
    }
}

#[test]
fn serve_errors_state_the_next_step() {
    let root = Root::samples();
    let refused = |arguments: &[&str], token| refused(root.path(), arguments, token);
    let (code, stderr) = refused(&["--http", "0.0.0.0:0", "--no-token"], None);
    assert_eq!(code, Some(1), "{stderr}");
    assert_contains!(stderr, "without a token is refused", "127.0.0.1");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, stderr) = refused(&["--http", &address, "--no-token"], None);
    assert_eq!(code, Some(1), "{stderr}");
    assert_contains!(stderr, &format!("`{address}` is in use"), "--http 127.0.0.1:PORT");
    let (_, stderr) = refused(&["--json", "--http", &address, "--no-token"], None);
    let body: Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(body["code"], "cannot_serve");
    // An address that this machine does not have (RFC 5737 keeps it for examples).
    let (_, stderr) = refused(&["--http", "192.0.2.1:7767"], Some(SECRET));
    assert_contains!(stderr, "cannot listen on `192.0.2.1:7767`");
    for wrong in [
        ["--http", "memory.example:80"].as_slice(),
        &["--http", "70000"],
        &["--no-token"],
        &["--token-file", "x"],
        &["--http", "0", "--no-token", "--token-file", "x"],
    ] {
        let (code, stderr) = refused(wrong, None);
        assert_eq!(code, Some(2), "{wrong:?}: {stderr}");
    }
}

#[test]
fn with_json_a_program_learns_where_the_server_is() {
    let root = Root::samples();
    let home = tempfile::tempdir().unwrap();
    for (arguments, token_file) in [
        (["--json", "--http", "0"].as_slice(), json!(kept(home.path()))),
        (&["--json", "--http", "localhost:0", "--no-token"], Value::Null),
    ] {
        let mut child = command(root.path(), home.path(), arguments).spawn().unwrap();
        let line = first_line(&mut child);
        let ready: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(ready["token_file"], token_file, "{ready}");
        let health = agent().get(ready["health"].as_str().unwrap()).call().unwrap();
        assert_eq!(health.status().as_u16(), 200);
        assert!(ready["url"].as_str().unwrap().ends_with("/mcp"), "{ready}");
        kill(&child, "TERM");
        assert_eq!(wait(&mut child).code(), Some(0));
    }
}
