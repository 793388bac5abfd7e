//! `serve --http`: the real binary over loopback, with its own home folder, on a port that the
//! system chooses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::Server;
use crate::support::{Root, fingerprint, memory};

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
        let home = tempfile::Builder::new()
            .prefix("ack-home-")
            .tempdir()
            .unwrap();
        let mut command = command(root, home.path(), arguments);
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        let url = url.trim().to_owned();
        let Some(address) = url
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
        else {
            let mut errors = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut errors)
                .unwrap();
            panic!("no address but {url:?}: {errors}");
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

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a message; the status and the body of the answer.
    pub fn post(&self, message: &Value, headers: &[(&str, &str)]) -> (u16, String) {
        post(
            &self.agent,
            &self.url,
            self.token.as_deref(),
            message.to_string().as_bytes(),
            headers,
        )
    }

    #[track_caller]
    pub fn request(&self, method: &str, params: Value) -> Value {
        let (status, body) = self.post(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }),
            &[],
        );
        assert_eq!(status, 200, "{method}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{method}: {error}: {body}"))
    }

    /// A request in the version without a handshake.
    #[track_caller]
    fn stateless(&self, method: &str, mut params: Value) -> Value {
        let named = params
            .get("name")
            .or_else(|| params.get("uri"))
            .and_then(Value::as_str)
            .map(str::to_owned);
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut headers = vec![
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        headers.extend(named.as_deref().map(|name| ("Mcp-Name", name)));
        let (status, body) = self.post(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }),
            &headers,
        );
        assert_eq!(status, 200, "{method}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{method}: {error}: {body}"))
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
        let mut errors = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut errors)
            .unwrap();
        (started.elapsed(), status, errors)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
    let status = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
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

/// Runs a server that is expected to end by itself.
pub fn refused(root: &Path, arguments: &[&str], token: Option<&str>) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = command(root, home.path(), arguments);
    if let Some(token) = token {
        command.env("ACK_MEM_TOKEN", token);
    }
    let mut child = command.spawn().unwrap();
    wait(&mut child);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
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
    let (status, body) = http.post(
        &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        &[],
    );
    assert_eq!((status, body.as_str()), (202, ""));
    let discovered = http.stateless("server/discover", json!({}));
    assert!(
        discovered["result"]["supportedVersions"]
            .to_string()
            .contains("2026-07-28"),
        "{discovered}"
    );
    for (method, params) in [
        ("tools/list", json!({})),
        (
            "tools/call",
            json!({ "name": "query_memories", "arguments": { "query": "deadlock" } }),
        ),
        (
            "tools/call",
            json!({ "name": "get_memory", "arguments": { "id": "nothing" } }),
        ),
        (
            "tools/call",
            json!({ "name": "list_scopes", "arguments": {} }),
        ),
        (
            "tools/call",
            json!({ "name": "get_context", "arguments": { "project_path": "/nowhere/ledger-api" } }),
        ),
        ("resources/list", json!({})),
        (
            "resources/read",
            json!({ "uri": "memory://scope/ledger-api" }),
        ),
        (
            "prompts/get",
            json!({ "name": "curate_pending", "arguments": {} }),
        ),
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
        assert_eq!(
            http.request(method, params.clone())["result"],
            wanted,
            "{method} {params}"
        );
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
    for wrong in [
        None,
        Some("a-secret-of-these-test"),
        Some("a-secret-of-these-testss"),
        Some("A-secret-of-these-tests"),
    ] {
        http.token = wrong.map(str::to_owned);
        let (status, body) = http.post(&call, &[]);
        assert_eq!(status, 401, "{wrong:?}: {body}");
        assert!(!body.contains(SECRET) && !body.contains("tools"), "{body}");
    }
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n",
        http.address
    );
    let response = http.raw(&head);
    assert!(
        response.to_lowercase().contains("www-authenticate: bearer"),
        "{response}"
    );
    http.token = Some(SECRET.to_owned());
    assert_eq!(http.post(&call, &[]).0, 200);
    let mut health = http
        .agent
        .get(http.url.replace("/mcp", "/health"))
        .call()
        .unwrap();
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
    let mut http = Http::with(root.path(), &["--http", "127.0.0.1:0"], |_| {});
    let file = kept(http.home.path());
    let token = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(token.len(), 43, "32 random bytes");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        std::fs::metadata(file.parent().unwrap())
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    let alone: Vec<_> = std::fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert_eq!(alone.len(), 1, "{alone:?}");
    http.token = Some(token.clone());
    http.request("tools/list", json!({}));
    // A second server of the same owner uses the same one.
    let home = http.home.path().to_owned();
    let second = Http::with(root.path(), &["--http", "127.0.0.1:0"], |command| {
        command.env("HOME", &home);
    });
    assert_eq!(
        post(
            &agent(),
            &second.url,
            Some(&token),
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
            &[]
        )
        .0,
        200
    );
    let (_, _, stderr) = second.signal("INT");
    assert!(!stderr.contains("created just now"), "{stderr}");
    let url = http.url.clone();
    let kept_home = std::mem::replace(&mut http.home, tempfile::tempdir().unwrap());
    let (_, status, stderr) = http.signal("INT");
    assert_eq!(status.code(), Some(0));
    assert!(
        stderr.contains("created just now") && !stderr.contains(&token),
        "{stderr}"
    );
    let shown = format!(
        "claude mcp add --transport http ack-memory {url} --header \"Authorization: Bearer $(cat '{}')\"",
        file.display()
    );
    assert!(stderr.contains(&shown), "{stderr}");
    drop(kept_home);
    assert_eq!(
        before,
        fingerprint(root.path()),
        "the server wrote under its root"
    );
}

#[test]
fn changed_settings_take_effect_and_invalid_ones_are_ignored() {
    let root = Root::new();
    let memories: Vec<Value> = (0..12)
        .map(|number| {
            let status = if number < 8 { "approved" } else { "staging" };
            memory(
                &format!("m-{number}"),
                &format!("Pool {number}"),
                json!({ "status": status }),
            )
        })
        .collect();
    root.store("mine", &memories);
    let http = Http::start(root.path());
    let found = |status: &str| {
        let arguments = json!({ "query": "pool", "status": status });
        let call = json!({ "name": "query_memories", "arguments": arguments });
        let answer = http.request("tools/call", call);
        let results = &answer["result"]["structuredContent"]["results"];
        results.as_array().unwrap().len()
    };
    let write = |text: &str| {
        std::fs::write(root.path().join("config.toml"), text).unwrap();
        std::thread::sleep(Duration::from_millis(1_100));
    };
    assert_eq!((found("approved"), found("all")), (8, 8));
    write("max_status = \"all\"\n");
    assert_eq!((found("approved"), found("all")), (8, 10));
    write("[limits]\ntokens = \"many\"\n");
    assert_eq!((found("approved"), found("all")), (8, 10));
    std::fs::remove_file(root.path().join("config.toml")).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!((found("approved"), found("all")), (8, 8));
    let (_, _, stderr) = http.signal("TERM");
    assert!(stderr.contains("was read again"), "{stderr}");
    assert!(
        stderr.contains("the previous settings still apply"),
        "{stderr}"
    );
}

#[test]
fn the_token_comes_from_a_file_or_the_environment_and_bad_ones_are_refused() {
    let root = Root::samples();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let path = file.to_str().unwrap();
    // The flag takes precedence over the environment.
    let http = Http::with(
        root.path(),
        &["--http", "127.0.0.1:0", "--token-file", path],
        |command| {
            command.env("ACK_MEM_TOKEN", "another-secret-than-that");
        },
    );
    http.request("tools/list", json!({}));
    assert!(!kept(http.home.path()).exists());
    let (_, _, stderr) = http.signal("TERM");
    assert!(
        stderr.contains("others may read the token") && stderr.contains("chmod 600"),
        "{stderr}"
    );
    for (content, reason) in [
        ("", "is empty"),
        ("short", "at least 16"),
        ("a secret with blanks", "visible ASCII"),
    ] {
        std::fs::write(&file, content).unwrap();
        for token in [None, Some(content).filter(|content| !content.is_empty())] {
            let from_file: &[&str] = &["--http", "127.0.0.1:0", "--token-file", path];
            let arguments = if token.is_some() {
                &from_file[..2]
            } else {
                from_file
            };
            let output = refused(root.path(), arguments, token);
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert!(
                stderr.contains(reason) && stderr.contains("at least 16 visible"),
                "{stderr}"
            );
            assert!(content.is_empty() || !stderr.contains(content), "{stderr}");
        }
    }
    let output = refused(
        root.path(),
        &["--http", "127.0.0.1:0", "--token-file", "/nowhere/token"],
        None,
    );
    assert!(
        text(&output.stderr).contains("/nowhere/token"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_foreign_host_or_origin_is_refused_first() {
    let root = Root::samples();
    let http = Http::with(
        root.path(),
        &[
            "--http",
            "127.0.0.1:0",
            "--no-token",
            "--allow-host",
            "memory.example",
        ],
        |_| {},
    );
    let own = http.address.to_string();
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}";
    let ask = |path: &str, host: &str, origin: &str| {
        let origin = if origin.is_empty() {
            String::new()
        } else {
            format!("Origin: {origin}\r\n")
        };
        let response = http.raw(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{origin}Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ));
        let status: u16 = response.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(
            status == 200 || !response.contains("query_memories"),
            "{response}"
        );
        status
    };
    assert_eq!(ask("/mcp", &own, ""), 200);
    assert_eq!(ask("/mcp", "localhost:1", ""), 200);
    assert_eq!(ask("/mcp", "memory.example", ""), 200);
    assert_eq!(ask("/mcp", &own, &format!("http://{own}")), 200);
    assert_eq!(ask("/mcp", "evil.example", ""), 403);
    assert_eq!(ask("/health", "evil.example", ""), 403);
    assert_eq!(ask("/mcp", &own, "http://evil.example"), 403);
    assert_eq!(ask("/mcp", &own, "http://localhost:3000"), 403);
    assert_eq!(ask("/mcp", &own, "null"), 403);
    assert_eq!(ask("http://evil.example/mcp", &own, ""), 403);
    assert!(
        http.raw("POST /mcp HTTP/1.1\r\nConnection: close\r\n\r\n")
            .starts_with("HTTP/1.1 400")
    );
    // No answer allows pages of other origins.
    let response = http.raw(&format!(
        "OPTIONS /mcp HTTP/1.1\r\nHost: {own}\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"
    ));
    assert!(
        response.starts_with("HTTP/1.1 403") && !response.to_lowercase().contains("access-control"),
        "{response}"
    );
}

#[test]
fn invalid_messages_and_methods_get_an_explanation() {
    let root = Root::samples();
    let http = Http::start(root.path());
    let send = |body: &[u8]| post(&http.agent, &http.url, Some(SECRET), body, &[]);
    for (body, status, code) in [
        ("{nope", 400, Some(-32700)),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            400,
            Some(-32600),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}",
            400,
            Some(-32600),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{}}",
            400,
            Some(-32602),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nobody/knows\"}",
            202,
            None,
        ),
        ("{\"jsonrpc\":\"2.0\",\"method\":7}", 202, None),
        ("", 202, None),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"query_memories\",\"arguments\":{\"query\":\"cut \\ud83d\"}}}",
            200,
            None,
        ),
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
    assert!(body.contains("-32601"), "{body}");
    let authorization = format!("Bearer {SECRET}");
    for (url, status, allowed) in [
        (http.url.clone(), 405, Some("POST")),
        (http.url.replace("/mcp", "/"), 404, None),
    ] {
        let mut answer = http
            .agent
            .get(&url)
            .header("Authorization", &authorization)
            .call()
            .unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        assert_eq!(answer.status().as_u16(), status, "{body}");
        assert_eq!(
            answer
                .headers()
                .get("allow")
                .map(|allow| allow.to_str().unwrap()),
            allowed
        );
        assert!(
            serde_json::from_str::<Value>(&body).unwrap()["error"]["message"].is_string(),
            "{body}"
        );
    }
    let mut answer = http
        .agent
        .delete(&http.url)
        .header("Authorization", &authorization)
        .call()
        .unwrap();
    assert_eq!(
        answer.status().as_u16(),
        405,
        "{}",
        answer.body_mut().read_to_string().unwrap()
    );
    // A body that is too long is refused before it is sent.
    let response = http.raw(&format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {authorization}\r\nContent-Length: 5000000\r\n\r\n",
        http.address
    ));
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    http.request("tools/list", json!({}));
}

#[test]
fn several_clients_at_once_are_each_answered_and_see_new_rows() {
    let root = Root::samples();
    let http = Http::start(root.path());
    let call = |query: &str| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "query_memories", "arguments": { "query": query } } })
            .to_string()
    };
    let started = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..12 {
            let (url, body) = (
                &http.url,
                call(["deadlock", "docker", "pnpm lockfile"][client % 3]),
            );
            scope.spawn(move || {
                let agent = agent();
                let first = post(&agent, url, Some(SECRET), body.as_bytes(), &[]);
                assert_eq!(first.0, 200, "{}", first.1);
                assert!(first.1.contains("\"results\":[{"), "{}", first.1);
                for _ in 0..20 {
                    assert_eq!(post(&agent, url, Some(SECRET), body.as_bytes(), &[]), first);
                }
            });
        }
    });
    println!("252 calls of 12 clients: {:?}", started.elapsed());
    root.store("music", &[memory("m-1", "Tune the xylophone", json!({}))]);
    let (_, found) = post(
        &http.agent,
        &http.url,
        Some(SECRET),
        call("xylophone").as_bytes(),
        &[],
    );
    assert!(found.contains("m-1"), "{found}");
}

#[test]
fn a_signal_lets_running_requests_finish_and_closes_idle_connections() {
    let root = Root::new();
    let rows: Vec<Value> = (0..4_000)
        .map(|row| {
            memory(
                &format!("m-{row}"),
                &format!("Memory {row} about lock{}", row % 97),
                json!({}),
            )
        })
        .collect();
    {
        let path = root.scope_folder("load").join("memory.db");
        let mut connection = rusqlite::Connection::open(path).unwrap();
        connection
            .execute_batch(ack_memory::internal::import::SCHEMA)
            .unwrap();
        let transaction = connection.transaction().unwrap();
        crate::support::insert(&transaction, &rows);
        transaction.commit().unwrap();
    }
    for signal in ["TERM", "INT", "HUP"] {
        let http = Http::start(root.path());
        // Used once and kept open, and never used.
        http.request("tools/list", json!({}));
        let _idle = TcpStream::connect(http.address).unwrap();
        let url = http.url.clone();
        let under_way = std::thread::spawn(move || {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "query_memories", "arguments": { "query": "lock5" } } });
            post(
                &agent(),
                &url,
                Some(SECRET),
                body.to_string().as_bytes(),
                &[],
            )
        });
        std::thread::sleep(Duration::from_millis(60));
        let address = http.address;
        let (took, status, stderr) = http.signal(signal);
        assert_eq!(status.code(), Some(0), "{stderr}");
        let (answered, body) = under_way.join().unwrap();
        assert_eq!(answered, 200, "{body}");
        println!("SIG{signal}: ended after {took:?}");
        assert!(took < Duration::from_secs(8), "{took:?}");
        assert!(
            TcpStream::connect(address).is_err(),
            "somebody still listens"
        );
    }
}

#[test]
fn serve_errors_state_the_next_step() {
    let root = Root::samples();
    let output = refused(root.path(), &["--http", "0.0.0.0:0", "--no-token"], None);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("without a token is refused") && stderr.contains("127.0.0.1"),
        "{stderr}"
    );
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = refused(root.path(), &["--http", &address, "--no-token"], None);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains(&format!("`{address}` is in use"))
            && stderr.contains("--http 127.0.0.1:PORT"),
        "{stderr}"
    );
    let output = refused(
        root.path(),
        &["--json", "--http", &address, "--no-token"],
        None,
    );
    let body: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(body["code"], "cannot_serve");
    // An address that this machine does not have (RFC 5737 keeps it for examples).
    let output = refused(root.path(), &["--http", "192.0.2.1:7767"], Some(SECRET));
    assert!(
        text(&output.stderr).contains("cannot listen on `192.0.2.1:7767`"),
        "{}",
        text(&output.stderr)
    );
    for wrong in [
        ["--http", "memory.example:80"].as_slice(),
        &["--http", "70000"],
        &["--no-token"],
        &["--token-file", "x"],
        &["--http", "0", "--no-token", "--token-file", "x"],
    ] {
        let output = refused(root.path(), wrong, None);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{wrong:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn with_json_a_program_learns_where_the_server_is() {
    let root = Root::samples();
    let home = tempfile::tempdir().unwrap();
    for (arguments, token_file) in [
        (
            ["--json", "--http", "0"].as_slice(),
            json!(kept(home.path()).to_str().unwrap()),
        ),
        (
            &["--json", "--http", "localhost:0", "--no-token"],
            Value::Null,
        ),
    ] {
        let mut child = command(root.path(), home.path(), arguments)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(ready["token_file"], token_file, "{ready}");
        let health = agent()
            .get(ready["health"].as_str().unwrap())
            .call()
            .unwrap();
        assert_eq!(health.status().as_u16(), 200);
        assert!(ready["url"].as_str().unwrap().ends_with("/mcp"), "{ready}");
        kill(&child, "TERM");
        assert_eq!(wait(&mut child).code(), Some(0));
    }
}
