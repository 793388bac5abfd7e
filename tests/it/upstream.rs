//! Other MCP servers as sources: the real binary before real servers, a second one of its own and a script that misbehaves
//! (`upstream.sh`).

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::{Server, command};
use crate::support::{Root, memory};

const PATIENCE: Duration = Duration::from_secs(30);

/// A root whose `config.toml` names upstream servers, and the folder of the script's traces.
struct Site {
    root: Root,
    traces: TempDir,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/upstream.sh")
}

impl Site {
    /// One upstream server, the script, in this mode, with these further lines.
    fn new(mode: &str, tools: &str, more: &str) -> Self {
        let site = Self {
            root: Root::samples(),
            traces: tempfile::Builder::new().prefix("ack-traces-").tempdir().unwrap(),
        };
        site.configure(&format!(
            "[upstream.page]\ncommand = [\"sh\", \"{}\", \"{mode}\", \"{}\"]\ntools = {{ {tools} }}\n{more}\n",
            script().display(),
            site.traces.path().display()
        ));
        site
    }

    fn configure(&self, text: &str) {
        std::fs::write(self.root.path().join("config.toml"), text).unwrap();
    }

    fn serve(&self) -> Server {
        Server::initialized(self.root.path())
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.traces.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The processes of the script, and what they started.
    fn processes(&self) -> Vec<u32> {
        let started = self.lines("starts").into_iter().chain(self.lines("children"));
        started.map(|line| line.parse().unwrap()).collect()
    }
}

fn listed(server: &mut Server) -> Vec<Value> {
    let answer = server.request("tools/list", json!({}));
    answer["result"]["tools"].as_array().unwrap().clone()
}

fn names(server: &mut Server) -> Vec<String> {
    let tools = listed(server);
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn find<'a>(tools: &'a [Value], name: &str) -> &'a Value {
    tools
        .iter()
        .find(|tool| tool["name"] == name)
        .unwrap_or_else(|| panic!("{name} is not there: {tools:?}"))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn is_alive(process: u32) -> bool {
    // A process that has ended and was not waited for yet is no process.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    match stat {
        Ok(stat) => !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'),
        Err(_) if cfg!(target_os = "linux") => false,
        Err(_) => Command::new("kill")
            .args(["-0", &process.to_string()])
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success(),
    }
}

#[track_caller]
fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const OURS: [&str; 4] = ["get_context", "get_memory", "list_scopes", "query_memories"];

#[test]
fn tools_that_only_read_are_offered_under_the_names_of_the_owner() {
    let tools = r#"echo = "page_echo", writes = "page_writes", destroys = "page_destroys", silent = "page_silent", liar = "page_liar", shapeless = "page_shapeless", union = "page_union", gone = "page_gone""#;
    let site = Site::new("plain", tools, "");
    let mut server = site.serve();
    let all = listed(&mut server);
    let names: Vec<&str> = all.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, [&OURS[..], &["page_echo", "page_union"]].concat());
    let echo = find(&all, "page_echo");
    assert_eq!(echo["description"], "From the upstream server page: Says it again.");
    let schema = json!({
        "type": "object",
        "properties": { "word": { "type": "string", "description": "A word." }, "more": { "type": "integer" } },
        "required": ["word"],
        "additionalProperties": false,
    });
    assert_eq!(echo["inputSchema"], schema);
    assert_eq!(echo["annotations"], json!({ "readOnlyHint": true }));
    // Hosts refuse a whole list over a root that is a union.
    assert!(find(&all, "page_union")["inputSchema"].get("anyOf").is_none());
    // A tool that is not offered says why when it is called all the same.
    let hidden = server.fail("page_writes", json!({}));
    assert_eq!(hidden.code, "upstream_unavailable");
    assert!(hidden.message.contains("it says that it does not only read"), "{hidden:?}");
    assert!(hidden.message.contains("`gone` is not offered: it has no such tool"), "{hidden:?}");
}

#[test]
fn a_tool_without_annotations_is_offered_where_the_owner_trusts_it() {
    let site = Site::new(
        "plain",
        r#"silent = "page_silent", writes = "page_writes""#,
        "trust_unannotated = true",
    );
    let mut server = site.serve();
    assert_eq!(names(&mut server)[4..], ["page_silent"]);
    assert_eq!(text(&server.call("page_silent", json!({}))), "fine");
}

#[test]
fn a_result_is_passed_through_as_it_is_and_labelled() {
    let site = Site::new("plain", r#"echo = "page_echo""#, "");
    let expected = json!({
        "content": [{ "type": "text", "text": "again", "odd": { "kept": [1, 2.5, null] } }, { "type": "hologram", "data": "x" }],
        "structuredContent": { "said": "again" },
        "isError": false,
        "own": "kept",
        "_meta": { "theirs": 1, "ack-memory/upstream": "page" },
    });
    let mut server = site.serve();
    assert_eq!(server.call("page_echo", json!({ "word": "x", "more": 1 })), expected);
    let mut stateless = Server::stateless(site.root.path());
    let mut typed = expected;
    typed["resultType"] = json!("complete");
    assert_eq!(stateless.call("page_echo", json!({ "word": "x" })), typed);
}

#[test]
fn an_argument_that_is_none_of_the_tool_is_an_error() {
    let site = Site::new("plain", r#"echo = "page_echo", open = "page_open""#, "");
    let mut server = site.serve();
    listed(&mut server);
    let unknown = server.fail("page_echo", json!({ "wrd": "x" }));
    assert_eq!(unknown.code, "unknown_argument");
    assert_eq!(
        (unknown.allowed, unknown.nearest),
        (vec!["word".to_owned(), "more".to_owned()], vec!["word".to_owned()])
    );
    assert!(site.lines("calls").is_empty(), "the server was not asked");
    server.call("page_open", json!({ "whatever": 1 }));
    assert_eq!(site.lines("calls").len(), 1);
}

#[test]
fn arguments_are_mapped_and_preset() {
    let tools = r#"echo = { name = "page_echo", description = "Ours.", arguments = { q = "word" }, preset = { more = 5 } }"#;
    let site = Site::new("plain", tools, "");
    let mut server = site.serve();
    let all = listed(&mut server);
    let echo = find(&all, "page_echo");
    assert_eq!(echo["description"], "From the upstream server page: Ours.");
    assert_eq!(echo["inputSchema"]["required"], json!(["q"]));
    assert_eq!(echo["inputSchema"]["properties"].as_object().unwrap().len(), 1);
    for hidden in ["word", "more"] {
        assert_eq!(server.fail("page_echo", json!({ hidden: 1 })).code, "unknown_argument");
    }
    server.call("page_echo", json!({ "q": "x" }));
    let asked: Value = serde_json::from_str(&site.lines("calls")[0]).unwrap();
    assert_eq!(asked["params"]["arguments"], json!({ "word": "x", "more": 5 }));
    let site = Site::new("plain", r#"echo = { name = "page_echo", preset = { mor = 5 } }"#, "");
    let mut server = site.serve();
    assert_eq!(names(&mut server), OURS);
    let wrong = server.fail("page_echo", json!({}));
    assert!(wrong.message.contains("did you mean `more`?"), "{wrong:?}");
}

#[test]
fn an_error_of_the_server_is_passed_on() {
    let site = Site::new("plain", r#"error = "page_error", odd = "page_odd""#, "");
    let mut server = site.serve();
    let answer = server.request("tools/call", json!({ "name": "page_error", "arguments": {} }));
    assert_eq!(
        answer["error"],
        json!({ "code": -32050, "message": "not today", "data": { "until": "tomorrow" } })
    );
    let odd = server.fail("page_odd", json!({}));
    assert_eq!(odd.code, "upstream_failed");
    assert!(odd.message.contains("no result"), "{odd:?}");
}

#[test]
fn requests_of_the_server_are_refused() {
    let site = Site::new("plain", r#"ask = "page_ask""#, "");
    let mut server = site.serve();
    assert_eq!(text(&server.call("page_ask", json!({}))), "refused");
}

#[test]
fn only_what_is_named_of_the_environment_is_passed_on() {
    let site = Site::new(
        "plain",
        r#"env = "page_env""#,
        "env = { GIVEN = \"a value\" }\nenv_from = [\"NAMED\"]\ncwd = \"/\"",
    );
    let mut command = command(site.root.path());
    command.env("NAMED", "1").env("SECRET", "2").env("HOME", "/nowhere");
    let mut server = Server::spawn(command);
    server.initialize("2025-06-18");
    let told = server.call("page_env", json!({}));
    let told = text(&told);
    let (variables, rest) = told.split_once(" in ").unwrap();
    assert_eq!(rest, "/: a value");
    let variables: Vec<&str> = variables.split_whitespace().collect();
    for there in ["GIVEN", "NAMED", "HOME", "PATH"] {
        assert!(variables.contains(&there), "{there}: {variables:?}");
    }
    let allowed =
        |name: &&&str| ack_memory::upstream::PASSED.contains(*name) || ["GIVEN", "NAMED", "PWD", "OLDPWD", "SHLVL", "_"].contains(*name);
    let others: Vec<&&str> = variables.iter().filter(|name| !allowed(name)).collect();
    assert!(others.is_empty(), "{others:?}");
    // Without it, the server is not there, and ours are.
    let mut server = site.serve();
    assert_eq!(names(&mut server), OURS);
    let absent = server.fail("page_env", json!({}));
    assert!(absent.message.contains("`NAMED` of `env_from` is not set"), "{absent:?}");
}

#[test]
fn garbage_is_passed_over_and_a_flood_ends_the_connection() {
    let site = Site::new("plain", r#"garbage = "page_garbage", flood = "page_flood""#, "");
    let mut server = site.serve();
    assert_eq!(text(&server.call("page_garbage", json!({}))), "after garbage");
    let flooded = server.fail("page_flood", json!({}));
    assert_eq!(flooded.code, "upstream_failed");
    let after = server.fail("page_garbage", json!({}));
    assert!(after.message.contains("bytes that nobody asked for"), "{after:?}");
    until("it is not started again", || {
        server.call("page_garbage", json!({}))["isError"] != true
    });
    assert_eq!(site.lines("starts").len(), 2);
}

#[test]
fn an_answer_that_is_too_long_is_an_error_that_names_the_limit() {
    let site = Site::new("plain", r#"big = "page_big", garbage = "page_garbage""#, "");
    let mut server = site.serve();
    let long = server.fail("page_big", json!({}));
    assert_eq!(long.code, "upstream_failed");
    assert!(long.message.contains("longer than 8388608 bytes"), "{long:?}");
    assert_eq!(text(&server.call("page_garbage", json!({}))), "after garbage");
    assert_eq!(site.lines("starts").len(), 1, "the connection held");
}

#[test]
fn a_call_that_takes_too_long_ends_and_is_taken_back() {
    let site = Site::new("plain", r#"hang = "page_hang", garbage = "page_garbage""#, "timeout_ms = 400");
    let mut server = site.serve();
    listed(&mut server);
    let started = Instant::now();
    let late = server.fail("page_hang", json!({}));
    assert_eq!(late.code, "upstream_timeout");
    assert!(late.message.ends_with("did not answer within 400 ms"), "{late:?}");
    assert!((Duration::from_millis(350)..Duration::from_secs(3)).contains(&started.elapsed()));
    until("the call is not taken back", || site.lines("cancelled").len() == 1);
    // It answers other calls, so it is left alone.
    assert_eq!(text(&server.call("page_garbage", json!({}))), "after garbage");
    assert_eq!(site.lines("starts").len(), 1);
}

#[test]
fn a_server_that_stands_still_is_killed_and_started_again() {
    let site = Site::new(
        "plain",
        r#"stuck = "page_stuck", garbage = "page_garbage""#,
        "timeout_ms = 300\nstart_timeout_ms = 1000",
    );
    let mut server = site.serve();
    assert_eq!(server.fail("page_stuck", json!({})).code, "upstream_timeout");
    until("it is not started again", || site.lines("starts").len() == 2);
    assert!(!is_alive(site.processes()[0]));
    until("it does not answer", || server.call("page_garbage", json!({}))["isError"] != true);
}

#[test]
fn a_client_that_takes_its_call_back_has_it_taken_back_there() {
    let site = Site::new("plain", r#"hang = "page_hang""#, "");
    let mut server = site.serve();
    listed(&mut server);
    let id = server.send("tools/call", json!({ "name": "page_hang", "arguments": {} }));
    std::thread::sleep(Duration::from_millis(300));
    server.write(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }).to_string());
    until("the call is not taken back", || site.lines("cancelled").len() == 1);
    server.ping();
}

#[test]
fn our_tools_answer_as_ever_whatever_an_upstream_server_does() {
    for mode in ["mute", "babbling", "broken"] {
        let site = Site::new(mode, r#"echo = "page_echo""#, "list_wait_ms = 300");
        let mut server = site.serve();
        let started = Instant::now();
        assert_eq!(names(&mut server), OURS, "{mode}");
        assert!(started.elapsed() < Duration::from_secs(8), "{mode}: {:?}", started.elapsed());
        let waiting: Vec<i64> = (0..4)
            .map(|_| server.send("tools/call", json!({ "name": "page_echo", "arguments": {} })))
            .collect();
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let asked = Instant::now();
            let found = server.call("query_memories", json!({ "query": "deadlock" }));
            assert_eq!(found["isError"], false);
            slowest = slowest.max(asked.elapsed());
        }
        assert!(slowest < Duration::from_secs(6), "{mode}: {slowest:?}");
        drop(waiting);
    }
}

#[test]
fn a_server_that_hangs_is_waited_for_no_longer_than_it_may_take() {
    let site = Site::new("mute", r#"echo = "page_echo""#, "list_wait_ms = 100\nstart_timeout_ms = 500");
    let mut server = site.serve();
    let absent = server.fail("page_echo", json!({}));
    assert_eq!(absent.code, "upstream_unavailable");
    assert!(absent.message.contains("it did not come up within 500 ms"), "{absent:?}");
    until("it is not tried again", || site.lines("starts").len() >= 2);
    let processes = site.processes();
    until("the first process is still there", || !is_alive(processes[0]));
}

#[test]
fn a_server_that_comes_late_is_announced() {
    for era in ["2025-06-18", "2026-07-28"] {
        let site = Site::new("late", r#"garbage = "page_garbage""#, "list_wait_ms = 0");
        let mut server = if era == "2026-07-28" {
            Server::stateless(site.root.path())
        } else {
            Server::start(site.root.path())
        };
        if era == "2025-06-18" {
            let hello = server.initialize(era);
            assert_eq!(hello["capabilities"]["tools"], json!({ "listChanged": true }));
            assert!(hello["instructions"].as_str().unwrap().contains("page_garbage"));
        } else {
            server.send("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
            let acknowledged = server.message(PATIENCE).unwrap();
            assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
        }
        assert_eq!(names(&mut server), OURS, "{era}");
        let told = server.message(PATIENCE).unwrap();
        assert_eq!(told["method"], "notifications/tools/list_changed", "{era}: {told}");
        assert_eq!(names(&mut server)[4..], ["page_garbage"], "{era}");
    }
}

#[test]
fn tools_that_come_later_are_offered() {
    let site = Site::new("growing", r#"union = "page_union", later = "page_later""#, "");
    let mut server = site.serve();
    assert_eq!(names(&mut server)[4..], ["page_union"]);
    server.call("page_union", json!({ "a": "x" }));
    let told = server.message(PATIENCE).unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    assert_eq!(names(&mut server)[4..], ["page_later", "page_union"]);
    assert_eq!(text(&server.call("page_later", json!({}))), "later");
}

#[test]
fn a_server_that_dies_is_started_again_with_growing_pauses() {
    let site = Site::new("plain", r#"die = "page_die", garbage = "page_garbage""#, "");
    let mut server = site.serve();
    let mut pauses = Vec::new();
    for round in 1..=2 {
        until("it is not there", || server.call("page_garbage", json!({}))["isError"] != true);
        let died = server.fail("page_die", json!({}));
        assert_eq!(died.code, "upstream_failed", "{died:?}");
        let since = Instant::now();
        // On a busy machine it may be back before anybody has looked.
        until("it is still there", || {
            let away = server.call("page_garbage", json!({}));
            (away["isError"] == true && text(&away).contains("giving up")) || site.lines("starts").len() > round
        });
        // Its tools stay listed while it is away for a while.
        assert!(names(&mut server).contains(&"page_garbage".to_owned()));
        until("it is not started again", || site.lines("starts").len() == round + 1);
        pauses.push(since.elapsed());
    }
    assert!(pauses[0] >= Duration::from_millis(900), "{pauses:?}");
    assert!(pauses[1] >= Duration::from_millis(1_900), "{pauses:?}");
    // Never more than one at a time.
    let processes = site.processes();
    assert!(processes[..2].iter().all(|process| !is_alive(*process)));
}

#[test]
fn a_server_that_stays_away_is_listed_no_more() {
    let site = Site::new("broken", r#"echo = "page_echo""#, "");
    let mut server = site.serve();
    assert_eq!(names(&mut server), OURS);
    let away = server.fail("page_echo", json!({ "word": "x" }));
    assert_eq!(away.code, "upstream_unavailable");
    assert!(
        away.message.contains("no database at /nowhere") && away.message.contains("tried again in"),
        "{away:?}"
    );
    assert!(away.hint.unwrap().contains("ack-memory doctor --upstreams"));
}

#[test]
fn a_server_of_the_later_era_alone_is_understood() {
    let site = Site::new("modern", r#"garbage = "page_garbage""#, "list_wait_ms = 10000");
    let mut server = site.serve();
    assert_eq!(names(&mut server)[4..], ["page_garbage"]);
    assert_eq!(text(&server.call("page_garbage", json!({}))), "after garbage");
}

#[test]
fn nothing_is_left_when_the_server_ends() {
    for how in ["input", "TERM"] {
        let site = Site::new("stubborn", r#"garbage = "page_garbage""#, "");
        let mut server = site.serve();
        assert_eq!(names(&mut server)[4..], ["page_garbage"]);
        let processes = site.processes();
        assert_eq!(processes.len(), 2, "the script and what it started");
        assert!(processes.iter().all(|process| is_alive(*process)));
        if how == "TERM" {
            let status = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
            assert!(status.success());
        }
        let (took, status, _) = server.close();
        assert!(took < Duration::from_secs(4), "{how}: {took:?}");
        assert!(status.success(), "{how}: {status}");
        until("a process is left", || processes.iter().all(|process| !is_alive(*process)));
    }
}

#[test]
fn nothing_is_started_before_it_is_needed() {
    let site = Site::new("plain", r#"echo = "page_echo""#, "");
    let mut server = site.serve();
    server.call("query_memories", json!({ "query": "deadlock" }));
    assert!(site.lines("starts").is_empty());
    let started = Instant::now();
    let (took, ..) = server.close();
    assert!(took < Duration::from_secs(1), "{:?}", started.elapsed());
}

/// Our own binary over HTTP, with a token.
struct Http {
    child: Child,
    url: String,
}

impl Http {
    fn start(root: &Path, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = command(root);
        command.args(["--http", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::null());
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "{url:?}");
        Self {
            child,
            url: url.trim().to_owned(),
        }
    }

    fn request(&self, token: &str, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
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
    let found = server.call("team_search", json!({ "query": "which header does the proxy strip" }));
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
    let entry = |token: &str| {
        format!(
            "[upstream.team]\nurl = \"{}\"\n{token}\ntools = {{ query_memories = \"team_search\" }}\n",
            http.url
        )
    };
    let token = site.root.path().join("token");
    std::fs::write(&token, format!("{SECRET}\n")).unwrap();
    site.configure(&entry(&format!("token_file = \"{}\"", token.display())));
    let mut server = site.serve();
    assert_eq!(names(&mut server)[4..], ["team_search"]);
    let found = server.call("team_search", json!({ "query": "proxy header" }));
    assert_eq!(found["structuredContent"]["results"][0]["id"], "team-1");
    assert_eq!(found["_meta"]["ack-memory/upstream"], "team");
    let unknown = server.fail("team_search", json!({ "querry": "x" }));
    assert_eq!(unknown.nearest, ["query"]);
    // From a variable.
    site.configure(&entry("token_env = \"TEAM_TOKEN\""));
    let mut command = command(site.root.path());
    command.env("TEAM_TOKEN", SECRET);
    let mut server = Server::spawn(command);
    server.initialize("2025-06-18");
    assert_eq!(names(&mut server)[4..], ["team_search"]);
    // Without the right one.
    site.configure(&entry("headers = { Authorization = \"Bearer wrong-wrong-wrong-wrong\" }"));
    let mut server = site.serve();
    assert_eq!(names(&mut server), OURS);
    let refused = server.fail("team_search", json!({ "query": "x" }));
    assert_eq!(refused.code, "upstream_unavailable");
    assert!(
        refused.message.contains("authorization required") && !refused.message.contains("wrong-wrong"),
        "{refused:?}"
    );
}

#[test]
fn a_server_over_http_that_goes_and_comes_back_is_found_again() {
    let other = other_root();
    let first = Http::start(other.path(), |command| {
        command.args(["--no-token"]);
    });
    let address = first.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let site = Site::new("plain", "", "");
    site.configure(&format!(
        "[upstream.team]\nurl = \"{}\"\ntools = {{ query_memories = \"team_search\" }}\n",
        first.url
    ));
    let mut server = site.serve();
    assert_eq!(server.call("team_search", json!({ "query": "proxy" }))["isError"], false);
    drop(first);
    let gone = server.fail("team_search", json!({ "query": "proxy" }));
    assert!(gone.code.starts_with("upstream_"), "{gone:?}");
    assert!(!gone.message.contains("http://"), "an address may hold a secret: {gone:?}");
    assert_eq!(server.call("query_memories", json!({ "query": "deadlock" }))["isError"], false);
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
    let site = Site::new("plain", r#"echo = "page_echo", garbage = "page_garbage""#, "");
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
                let called = client.request(SECRET, "tools/call", json!({ "name": "page_garbage", "arguments": {} }));
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
    let raw = http.request(SECRET, "tools/call", json!({ "name": "page_echo", "arguments": { "word": "x" } }));
    assert_eq!(raw["result"]["content"][1]["type"], "hologram");
    assert_eq!(raw["result"]["_meta"]["ack-memory/upstream"], "page");
    let processes = site.processes();
    let status = Command::new("kill").args(["-TERM", &http.child.id().to_string()]).status().unwrap();
    assert!(status.success());
    until("the process is left", || !is_alive(processes[0]));
}

#[test]
fn mistakes_in_upstream_are_named_with_line_and_key() {
    let tools = "tools = { a = \"b\" }\n";
    let cases = [
        ("nothing to reach", format!("[upstream.x]\n{tools}")),
        (
            "both",
            format!("[upstream.x]\n{tools}command = [\"sh\"]\nurl = \"http://localhost/mcp\"\n"),
        ),
        ("relative program", format!("[upstream.x]\ncommand = [\"bin/server\"]\n{tools}")),
        ("a command as one text", format!("[upstream.x]\ncommand = \"sh server\"\n{tools}")),
        (
            "relative folder",
            format!("[upstream.x]\ncommand = [\"sh\"]\ncwd = \"here\"\n{tools}"),
        ),
        ("no address", format!("[upstream.x]\nurl = \"localhost:80\"\n{tools}")),
        (
            "a user in the address",
            format!("[upstream.x]\nurl = \"http://me:secret@localhost/mcp\"\n{tools}"),
        ),
        (
            "key of the other kind",
            format!("[upstream.x]\nurl = \"http://localhost/mcp\"\nenv = {{ A = \"1\" }}\n{tools}"),
        ),
        (
            "header that is ours",
            format!("[upstream.x]\nurl = \"http://localhost/mcp\"\nheaders = {{ Host = \"x\" }}\n{tools}"),
        ),
        (
            "two tokens",
            format!("[upstream.x]\nurl = \"http://localhost/mcp\"\ntoken_env = \"A\"\ntoken_file = \"/a\"\n{tools}"),
        ),
        ("no tools", "[upstream.x]\ncommand = [\"sh\"]\n".to_owned()),
        (
            "name of ours",
            "[upstream.x]\ncommand = [\"sh\"]\n[upstream.x.tools]\nsearch = \"query_memories\"\n".to_owned(),
        ),
        (
            "one name twice",
            "[upstream.x]\ncommand = [\"sh\"]\ntools = { a = \"b\" }\n[upstream.y]\ncommand = [\"sh\"]\ntools = { c = \"b\" }\n".to_owned(),
        ),
        (
            "name that clients refuse",
            "[upstream.x]\ncommand = [\"sh\"]\n[upstream.x.tools]\na = { name = \"a b\" }\n".to_owned(),
        ),
        (
            "one argument twice",
            "[upstream.x]\ncommand = [\"sh\"]\ntools = { a = { name = \"b\", arguments = { c = \"d\", e = \"d\" } } }\n".to_owned(),
        ),
        (
            "time out of bounds",
            format!("[upstream.x]\ncommand = [\"sh\"]\ntimeout_ms = 5\n{tools}"),
        ),
        ("unknown key", format!("[upstream.x]\ncomand = [\"sh\"]\n{tools}")),
        (
            "name of the server",
            format!("[upstream.\"my server\"]\ncommand = [\"sh\"]\n{tools}"),
        ),
    ];
    let mut told = String::new();
    for (what, text) in cases {
        let root = Root::new();
        std::fs::write(root.path().join("config.toml"), text).unwrap();
        let mut command = command(root.path());
        let output = command.stdin(Stdio::null()).env("NO_COLOR", "1").output().unwrap();
        let said = String::from_utf8(output.stderr)
            .unwrap()
            .replace(&root.path().display().to_string(), "ROOT");
        assert_eq!(output.status.code(), Some(2), "{what}: {said}");
        assert!(said.contains("line "), "{what}: {said}");
        assert!(!said.contains("secret@"), "{said}");
        told += &format!("# {what}\n{said}\n");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_description("generated by tests/it/upstream.rs");
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("mistakes_in_upstream", told));
}

#[test]
fn doctor_says_what_is_configured_and_how_it_fares() {
    let site = Site::new("plain", r#"echo = "page_echo", writes = "page_writes""#, "");
    let doctor = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ack-memory"));
        for (variable, _) in ack_memory::config::ENVIRONMENT {
            command.env_remove(variable);
        }
        let output = command.arg("--root").arg(site.root.path()).args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let told = doctor(&["doctor"]);
    assert!(
        told.contains("upstream servers: 1") && told.contains("page: sh with 3 arguments"),
        "{told}"
    );
    assert!(site.lines("starts").is_empty(), "nothing is started without being asked for");
    let told: Value = serde_json::from_str(&doctor(&["--json", "doctor", "--upstreams"])).unwrap();
    let page = &told["offer"]["upstreams"][0];
    assert_eq!((&page["available"], &page["tools"]), (&json!(true), &json!(["page_echo"])));
    assert!(page["problems"][0].as_str().unwrap().contains("`writes` is not offered"), "{page}");
    let processes = site.processes();
    until("the process is left", || processes.iter().all(|process| !is_alive(*process)));
}
