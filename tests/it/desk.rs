//! The desk in a browser, without one: who has access, what it answers, and when it ends. The page
//! itself is tested in a real browser (tests/clients/desk.mjs).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::binary;
use crate::support::{Root, fingerprint, memory, read_text, unreviewed, write_file};

const OWNER: &str = "a-token-of-the-owner";
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A desk over a root, and the address that it printed.
pub struct Desk {
    child: Option<Child>,
    /// `127.0.0.1:PORT`.
    host: String,
    word: String,
}

impl Desk {
    pub fn open(root: &Root) -> Self {
        Self::open_with(root, &[])
    }

    /// A desk with more arguments.
    pub fn open_with(root: &Root, more: &[&str]) -> Self {
        Self::open_by(binary(), root, more)
    }

    /// A desk by a program with its own environment.
    fn open_by(mut program: Command, root: &Root, more: &[&str]) -> Self {
        write_file(root.path().join("curator-token"), OWNER);
        let mut child = program
            .env("ACK_MEM_CURATOR_TOKEN", OWNER)
            .env("GIT_AUTHOR_NAME", "ana")
            .arg("--root")
            .arg(root.path())
            .args(["review", "--browser"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .map_while(Result::ok)
            .find_map(|line| Some(line.trim().strip_prefix("http://")?.to_owned()))
            .expect("an address");
        let mut desk = Self::at(&address);
        desk.child = Some(child);
        desk
    }

    /// A desk that somebody else started.
    pub fn at(address: &str) -> Self {
        let address = address.trim().trim_start_matches("http://");
        let (host, word) = address.split_once("/#").unwrap();
        Self { child: None, host: host.to_owned(), word: word.to_owned() }
    }

    fn raw(&self, request: &str) -> String {
        raw(&self.host, request)
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        send(&self.host, method, path, headers, body)
    }

    /// Exchanges the word for the session's token.
    pub fn enter(&self) -> Session {
        let body = json!({ "word": self.word }).to_string();
        let answer = self.send("POST", "/enter", &[], &body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let token = answer.json()["session"].as_str().unwrap().to_owned();
        let host = self.host.clone();
        Session { host, token }
    }

    /// Sends a signal that ends it, and waits for the end.
    pub fn signal(&mut self, signal: nix::sys::signal::Signal) -> Option<i32> {
        let id = self.child.as_ref().unwrap().id();
        let process = nix::unistd::Pid::from_raw(id.try_into().unwrap());
        nix::sys::signal::kill(process, signal).unwrap();
        self.ended()
    }

    /// Waits until it has ended.
    fn ended(&mut self) -> Option<i32> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                return status.code();
            }
            assert!(since.elapsed() < TIMEOUT, "the desk does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What a page asks once it has the token.
pub struct Session {
    host: String,
    token: String,
}

impl Session {
    pub fn ask(&self, path: &str, body: Value) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("Authorization", bearer.as_str())];
        send(&self.host, "POST", path, &headers, &body.to_string())
    }

    /// What is answered to a request that succeeds.
    #[track_caller]
    pub fn tell(&self, path: &str, body: Value) -> Value {
        let answer = self.ask(path, body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.tell(path, json!({}))
    }

    #[track_caller]
    pub fn card(&self, number: usize) -> Value {
        self.tell("/card", json!({ "number": number }))
    }

    /// Records a choice about one memory.
    #[track_caller]
    pub fn choose(&self, number: usize, choice: Value) -> Value {
        self.tell("/choose", json!({ "numbers": [number], "choice": choice }))
    }
}

/// Sends bytes and reads the answer to its end.
fn raw(host: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request with these headers in addition to `Host`, unless they include one.
fn send(host: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head += &format!("Host: {host}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let length = body.len();
    let answer = raw(host, &format!("{head}Content-Length: {length}\r\n\r\n{body}"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default().split(' ').nth(1);
    Answer {
        status: status.and_then(|status| status.parse().ok()).unwrap_or(0),
        headers: lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect(),
        body: body.to_owned(),
    }
}

pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// A root with memories that wait, and a secret word in each.
pub fn waiting(count: usize) -> Root {
    let memories: Vec<Value> = (0..count)
        .map(|n| {
            let title = format!("Lesson {n} of the quokka");
            unreviewed(&format!("w{n}"), &title)
        })
        .collect();
    Root::with("alpha", &memories)
}

#[test]
fn the_one_time_address_works_once_and_is_required() {
    let root = waiting(2);
    let desk = Desk::open(&root);
    let word = desk.word.clone();
    assert_eq!(word.len(), 64);
    let ask = json!({ "number": 0 }).to_string();
    let refused = |headers: &[(&str, &str)]| {
        for path in ["/card", "/queue", "/summary", "/choose", "/write", "/finish"] {
            let answer = desk.send("POST", path, headers, &ask);
            assert_eq!(answer.status, 401, "{path} {headers:?}: {}", answer.body);
            assert!(!answer.body.contains("quokka"), "{path}: {}", answer.body);
        }
    };
    let as_bearer = format!("Bearer {word}");
    let cookie = format!("session={word}");
    refused(&[]);
    refused(&[("Authorization", "Bearer 0123456789abcdef0123456789abcdef")]);
    // The word does not work as the session's token, in any place.
    refused(&[("Authorization", &as_bearer)]);
    refused(&[("Cookie", &cookie)]);
    for wrong in ["", "0", &word[..63], &word.replace(['a', '0'], "1")] {
        let body = json!({ "word": wrong }).to_string();
        let answer = desk.send("POST", "/enter", &[], &body);
        assert_eq!(answer.status, 403, "{wrong}: {}", answer.body);
    }
    let session = desk.enter();
    assert_ne!(session.token, word);
    let answer = session.ask("/card", json!({ "number": 0 }));
    assert_contains!(answer.body, "quokka");
    // It works once: anyone who sees the address later is too late.
    let body = json!({ "word": word }).to_string();
    let again = desk.send("POST", "/enter", &[], &body);
    assert_eq!(again.status, 403, "{}", again.body);
    assert_contains!(again.body, "already used");
    assert_lacks!(again.body, &session.token);
    refused(&[]);
}

#[test]
fn titles_are_shown_without_characters_that_nobody_sees() {
    let root = Root::new();
    let hidden = "Re\u{200b}set \u{202e}the\u{2060} \u{1b}[31mk\u{ad}ey\u{e0041}\u{feff}";
    let rest = json!({ "status": "staging", "project": hidden, "type": hidden, "session": hidden });
    root.store("alpha", &[memory("w0", hidden, rest)]);
    let desk = Desk::open(&root);
    let session = desk.enter();
    let listed = |more| crate::cli::ack(root.path(), &["review", "--list", more]).out;
    let queue = json!({ "count": 9 });
    for shown in [
        session.ask("/queue", queue).body,
        session.ask("/card", json!({ "number": 0 })).body,
        listed("--scope=alpha"),
        listed("--json"),
    ] {
        let hides =
            |c: char| c != '\n' && (c.is_control() || ack_memory::api::text::is_invisible(c));
        assert!(!shown.contains(hides), "{shown:?}");
        // JSON can escape them.
        assert_lacks!(shown, "\\u");
        assert_contains!(shown, "Reset the key");
    }
}

#[test]
fn requests_of_other_hosts_and_pages_are_refused() {
    let root = waiting(1);
    let desk = Desk::open(&root);
    let session = desk.enter();
    let bearer = format!("Bearer {}", session.token);
    let own = format!("http://{}", desk.host);
    let port = desk.host.rsplit(':').next().unwrap();
    let with = |name: &str, value: &str| {
        let headers = [("Authorization", bearer.as_str()), (name, value)];
        desk.send("POST", "/summary", &headers, "{}")
    };
    assert_eq!(with("Origin", &own).status, 200);
    assert_eq!(with("Sec-Fetch-Site", "same-origin").status, 200);
    let localhost = format!("localhost:{port}");
    for host in ["evil.example", "127.0.0.1:1", &localhost] {
        let answer = with("Host", host);
        assert_eq!(answer.status, 403, "{host}: {}", answer.body);
        for (method, path) in [("GET", "/"), ("POST", "/enter")] {
            let answer = desk.send(method, path, &[("Host", host)], r#"{"word":"0"}"#);
            assert_eq!(answer.status, 403, "{host}: {}", answer.body);
        }
    }
    let secure = own.replace("http:", "https:");
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", &secure] {
        let answer = with("Origin", origin);
        assert_eq!(answer.status, 403, "{origin}: {}", answer.body);
    }
    for site in ["cross-site", "same-site"] {
        assert_eq!(with("Sec-Fetch-Site", site).status, 403, "{site}");
    }
    let no_host = desk.raw("POST /summary HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(no_host.starts_with("HTTP/1.1 4"), "{no_host}");
}

#[test]
fn every_answer_has_a_strict_content_policy() {
    let root = waiting(1);
    let desk = Desk::open(&root);
    let session = desk.enter();
    let answers = [
        desk.send("GET", "/", &[], ""),
        session.ask("/card", json!({ "number": 0 })),
        desk.send("GET", "/nothing", &[], ""),
        desk.send("POST", "/card", &[], "{}"),
        desk.send("GET", "/", &[("Host", "evil.example")], ""),
    ];
    assert_eq!(answers[0].status, 200);
    let found = answers[0].header("content-type");
    assert_eq!(found, "text/html; charset=utf-8");
    assert_lacks!(answers[0].body, "quokka"; "the page holds no memory");
    for answer in &answers {
        let policy = answer.header("content-security-policy");
        assert_contains!(
            policy,
            "default-src 'none'",
            "script-src 'sha256-",
            "style-src 'sha256-",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'"
        );
        assert_lacks!(policy, "unsafe");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("x-frame-options"), "DENY");
    }
    // Nothing is loaded from elsewhere.
    let page = &answers[0].body;
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(desk.send("GET", "/card", &[], "").status, 405);
    assert_eq!(desk.send("POST", "/", &[], "").status, 405);
}

#[test]
fn large_and_invalid_bodies_are_refused() {
    let root = waiting(1);
    let desk = Desk::open(&root);
    let session = desk.enter();
    let bearer = format!("Bearer {}", session.token);
    let headers = [("Authorization", bearer.as_str())];
    let long = "x".repeat((1 << 20) + 1);
    assert_eq!(desk.send("POST", "/card", &headers, &long).status, 413);
    let chunk = format!(
        "POST /card HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nConnection: close\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
        desk.host,
        long.len()
    );
    let answer = desk.raw(&chunk);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{}", &answer[..80]);
    for nonsense in ["", "[]", "{", "{\"number\":-1}", "{\"number\":\"0\"}", "\u{0}"] {
        let answer = desk.send("POST", "/card", &headers, nonsense);
        assert_eq!(answer.status, 400, "{nonsense}: {}", answer.body);
    }
    let far = session.ask("/card", json!({ "number": 7 }));
    assert_eq!(far.status, 404, "{}", far.body);
    let unknown_choice = json!({ "numbers": [0], "choice": { "do": "bless" } });
    assert_eq!(session.ask("/choose", unknown_choice).status, 400);
    session.tell("/card", json!({ "number": 0 }));
}

#[test]
fn a_choice_must_name_existing_memories_once_and_be_possible() {
    let root = waiting(3);
    let desk = Desk::open(&root);
    let session = desk.enter();
    let ask = |numbers: Value, choice: Value| {
        let request = json!({ "numbers": numbers, "choice": choice });
        let preview = session.ask("/preview", request.clone());
        let chosen = session.ask("/choose", request);
        assert_eq!(preview.status, chosen.status, "{}", chosen.body);
        chosen
    };
    let approve = json!({ "do": "approve" });
    assert_eq!(ask(json!([]), approve.clone()).status, 400);
    assert_eq!(ask(json!([0, 77]), approve.clone()).status, 404);
    let past = json!({ "do": "put_off", "until": "2020-01-01" });
    let refused = ask(json!([0]), past);
    assert_eq!(refused.status, 409);
    assert_contains!(refused.body, "2020-01-01 is in the past");
    let soon = json!({ "do": "put_off", "until": "soon" });
    assert_eq!(ask(json!([0]), soon).status, 409);
    for title in ["", " ", "\u{1b}[31m\u{7}"] {
        let edit = json!({ "do": "edit", "edit": { "title": title } });
        assert_eq!(ask(json!([0]), edit).status, 409, "{title:?}");
    }
    let summary = session.get("/summary");
    assert_eq!(summary["head"]["chosen"], 0, "{summary}");
    let twice = ask(json!([0, 1, 0, 0]), approve).json();
    assert_eq!(twice["said"], "Approved: 2 memories · 1 left · u undo");
}

#[test]
fn nothing_is_decided_before_it_is_written() {
    let root = waiting(3);
    let store = root.scope_folder("alpha").join("memory.db");
    let before = fingerprint(&store);
    let log = root.scope_folder("alpha").join("decisions.jsonl");
    let mut desk = Desk::open(&root);
    let session = desk.enter();
    for (number, verdict) in [(0, "approve"), (1, "reject"), (2, "promote")] {
        let choice = json!({ "numbers": [number], "choice": { "do": verdict }, "reason": "why" });
        session.tell("/choose", choice);
    }
    let found = &session.get("/back")["numbers"];
    assert_eq!(*found, json!([2]));
    assert!(!log.exists());
    let busy = session.ask("/finish", json!({ "discard": false }));
    assert_eq!(busy.status, 409, "{}", busy.body);
    let written = session.get("/write");
    assert_eq!(written["written"], 2);
    let lines = read_text(&log);
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    let answer: Vec<Value> = lines.collect();
    assert_eq!(answer.len(), 2);
    assert_eq!(answer[0]["verdict"], "approve");
    assert_eq!(answer[1]["verdict"], "reject");
    assert_eq!(answer[1]["reason"], "why");
    assert_eq!(answer[0]["actor"], "process:ana");
    assert_eq!(fingerprint(&store), before);
    let done = session.ask("/finish", json!({ "discard": false }));
    assert_eq!(done.status, 200);
    assert_eq!(desk.ended(), Some(0));
    let stdout = desk.child.as_mut().unwrap().stdout.take().unwrap();
    let stdout = std::io::read_to_string(stdout).unwrap();
    assert_eq!(stdout, "2 memories were decided\n");
}

#[test]
fn an_interrupt_ends_the_desk_and_writes_nothing() {
    let root = waiting(1);
    let mut desk = Desk::open(&root);
    let session = desk.enter();
    session.choose(0, json!({ "do": "approve" }));
    assert_eq!(desk.signal(nix::sys::signal::Signal::SIGINT), Some(0));
    assert!(!root.scope_folder("alpha").join("decisions.jsonl").exists());
}

#[test]
fn the_desk_needs_a_terminal_or_the_owners_token() {
    let root = waiting(1);
    let outcome = crate::cli::ack(root.path(), &["review", "--browser"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    assert_lacks!(outcome.err, "http://");
}

#[test]
fn the_page_says_that_agents_see_more_than_what_is_approved() {
    let root = Root::new();
    crate::curate::staged(&root, "p", 1);
    let home = crate::connect::Home::new();
    home.write(".claude.json", "{}");
    let notice = || {
        let desk = Desk::open_by(home.prepared(binary()), &root, &[]);
        let session = desk.enter();
        session.get("/summary")["notice"].clone()
    };
    assert_eq!(notice(), Value::Null);
    home.write(".claude/projects/-p/memory/MEMORY.md", "- a");
    let said = notice();
    let said = said.as_str().unwrap();
    let expected = "1 other source puts memories that nobody reviewed";
    assert_contains!(said, expected, "doctor`");
}
