//! Untrusted text in output: escapes and overrides in manifests, names and arguments are removed at
//! every entry point.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::{Outcome, ack, binary, run};
use crate::mcp::{Server, command};
use crate::support::{Root, titled, write_file};

/// A title that a terminal would interpret, a colour, an override and a control sequence of one
/// byte.
pub const EVIL: &str = "e\u{1b}]0;owned\u{7}\u{1b}[31mvil\u{202e}\u{9b}1m";

/// What no output may contain.
#[track_caller]
pub fn assert_safe(entry_point: &str, text: &str) {
    let odd: Vec<char> = text
        .chars()
        .filter(|c| {
            c.is_control() && !['\n', '\t', '\r'].contains(c)
                || ('\u{202a}'..='\u{202e}').contains(c)
        })
        .collect();
    assert!(odd.is_empty(), "{entry_point} lets {odd:?} pass: {text:?}");
}

/// The same for every string of an answer.
#[track_caller]
pub fn assert_all_safe(entry_point: &str, answer: &Value) {
    match answer {
        Value::String(text) => {
            assert_safe(entry_point, text);
            // The text block of an answer is JSON, whose strings are written with escapes.
            if let Ok(inner @ (Value::Object(_) | Value::Array(_))) =
                serde_json::from_str::<Value>(text)
            {
                assert_all_safe(entry_point, &inner);
            }
        }
        Value::Array(values) => {
            for value in values {
                assert_all_safe(entry_point, value);
            }
        }
        Value::Object(members) => {
            for value in members.values() {
                assert_all_safe(entry_point, value);
            }
        }
        _ => {}
    }
}

/// TOML escapes of [`EVIL`].
fn in_toml() -> String {
    EVIL.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect()
}

/// A root whose manifests, names and settings are hostile, and the folder of a project that one of
/// them claims.
pub fn hostile() -> (Root, std::path::PathBuf) {
    let evil = in_toml();
    let root = Root::with("good", &[titled("a", "Deploy rule")]);
    root.manifest(
        "good",
        &format!("description = \"{evil}\"\nprojects = [\"{evil}\"]\nremotes = [\"{evil}\"]\npaths = [\"~/{evil}\"]\n"),
    );
    root.store("key", &[]);
    root.manifest("key", &format!("\"{evil}\" = 1\n"));
    root.store("value", &[]);
    root.manifest("value", &format!("visibility = \"{evil}\"\n"));
    root.manifest("elsewhere", &format!("store = \"{evil}.db\"\n"));
    std::fs::create_dir(root.path().join("scopes").join(EVIL.replace('/', "-"))).unwrap();
    let folder = root.path().join(EVIL);
    std::fs::create_dir(&folder).unwrap();
    (root, folder)
}

/// Requests that quote what they were sent, with hostile text in every position.
pub fn requests() -> Vec<(&'static str, Value)> {
    let call = |tool: &str, arguments: Value| {
        ("tools/call", json!({ "name": tool, "arguments": arguments }))
    };
    let recall =
        |arguments: Value| ("prompts/get", json!({ "name": "recall", "arguments": arguments }));
    let read = |uri: &str| ("resources/read", json!({ "uri": uri }));
    let uri = format!("memory://scope/{}", EVIL.replace('\u{1b}', "%1b"));
    let many =
        json!({ "query": EVIL, "project": EVIL, "tags": [EVIL], "session": EVIL, "type": EVIL });
    vec![
        ("no/such/method", json!({ EVIL: EVIL })),
        call(EVIL, json!({})),
        call("query_memories", many),
        call("query_memories", json!({ EVIL: 1 })),
        call("query_memories", json!({ "scope": EVIL })),
        call("query_memories", json!({ "scope": "key" })),
        call("query_memories", json!({ "like": EVIL })),
        call("query_memories", json!({ "query": "deploy", "expect": EVIL })),
        call("query_memories", json!({ "status": EVIL })),
        call("query_memories", json!({ "since": EVIL })),
        call("query_memories", json!({ "cursor": EVIL })),
        call("get_memory", json!({ "id": EVIL })),
        call("get_memory", json!({ "ids": [EVIL, "a"] })),
        call("get_memory", json!({ "id": uri })),
        call("list_scopes", json!({})),
        call("list_scopes", json!({ "scope": EVIL })),
        call("list_scopes", json!({ "scope": "elsewhere" })),
        call("get_context", json!({})),
        call("get_context", json!({ "project_path": EVIL, "focus": EVIL })),
        ("resources/list", json!({})),
        read("memory://scopes"),
        read("memory://scope/good"),
        read(&uri),
        read(EVIL),
        ("prompts/get", json!({ "name": EVIL })),
        recall(json!({ "query": EVIL })),
        recall(json!({ "query": "x", EVIL: EVIL })),
    ]
}

#[test]
fn over_standard_input_and_output() {
    let (root, folder) = hostile();
    let mut server = Server::within(root.path(), &folder);
    for (method, params) in requests() {
        let answer = server.request(method, params.clone());
        // What was asked for comes back as its address, because clients know it by that.
        if method != "resources/read" || answer.get("error").is_some() {
            assert_all_safe(&format!("{method} {params}"), &answer);
        }
    }
    let answer = server.request(&format!("no/{EVIL}"), json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    assert_all_safe("an unknown method", &answer);
    let long = server.request(&"x".repeat(100_000), json!({}));
    assert!(long.to_string().len() < 4_000, "a method is echoed in part");
    let arguments = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": EVIL } });
    let answer = server.request("tools/list", arguments);
    assert_all_safe("an unknown version", &answer);
    server.ping();
}

#[test]
fn on_the_command_line() {
    let (root, folder) = hostile();
    let folder = folder.to_str().unwrap();
    let check = |arguments: &[&str], outcome: &Outcome| {
        let entry_point = arguments.join(" ");
        assert_safe(&entry_point, &outcome.out);
        assert_safe(&entry_point, &outcome.err);
        if let Ok(answer) = serde_json::from_str::<Value>(&outcome.out) {
            assert_all_safe(&entry_point, &answer);
        }
    };
    let try_all = || {
        for arguments in [
            &["query", "deploy"][..],
            &["query", EVIL],
            &["query", "--scope", EVIL],
            &["query", "--scope", "key"],
            &["query", "--status", EVIL],
            &["query", "--since", EVIL],
            &["get", EVIL],
            &["get", "a", EVIL],
            &["scopes"],
            &["scopes", "--scope", "good"],
            &["scopes", "add", EVIL, "--store", EVIL],
            &["context"],
            &["doctor"],
            &["-v", "query", "deploy"],
            &["import", EVIL, "--pin", EVIL],
            &["import", EVIL, "--pin", "good"],
            &["index", "--pin", EVIL],
            &[EVIL],
            &["query", &format!("--{EVIL}")],
        ] {
            for more in [&["-C", folder][..], &["-C", folder, "--json"]] {
                let arguments = [arguments, more].concat();
                check(&arguments, &ack(root.path(), &arguments));
            }
        }
        let with_root = || {
            let mut command = binary();
            command.arg("--root").arg(root.path());
            command
        };
        let pinned = run(with_root().env("ACK_MEM_SCOPE", EVIL).args(["query", "x"]));
        check(&["ACK_MEM_SCOPE"], &pinned);
        let served = run(with_root().args(["-C", folder, "-v", "serve"]));
        check(&["serve", "-v"], &served);
        let event =
            json!({ "hook_event_name": "SessionStart", "cwd": folder, "source": "startup" });
        check(&["hook"], &crate::hook::start(root.path(), &event));
    };
    try_all();
    let text = format!("\"{}\" = 1\n", in_toml());
    write_file(root.path().join("config.toml"), text);
    try_all();
}

#[test]
fn a_panic_says_one_clean_line() {
    const CHILD: &str = "ACK_TEST_PANIC";
    if std::env::var_os(CHILD).is_some() {
        ack_memory::internal::install_panic_hook();
        let caught = std::panic::catch_unwind(|| panic!("of {EVIL} {}", "long ".repeat(1_000)));
        assert!(caught.is_err());
        return;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "untrusted::a_panic_says_one_clean_line", "--nocapture"]);
    let outcome = run(child.env(CHILD, "1").env_remove("RUST_BACKTRACE"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let stderr = outcome.err;
    assert_safe("a panic", &stderr);
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{stderr}");
    assert!(
        lines[0].starts_with("ack-memory: internal error (untrusted.rs:") && lines[0].len() < 300,
        "{stderr}"
    );
}

#[test]
fn resolved_start_settings_are_logged_only_on_request() {
    let root = Root::samples();
    let serve = |arguments: &[&str], log: Option<&str>| {
        let mut command = binary();
        command.arg("--root").arg(root.path()).args(arguments).args(["-C", "/"]);
        command.stdin(Stdio::null());
        if let Some(log) = log {
            command.env("ACK_MEM_LOG", log);
        }
        let outcome = run(&mut command);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(outcome.out.as_str(), "", "{outcome:?}");
        outcome.err
    };
    for log in [None, Some("0"), Some("off"), Some("")] {
        assert_eq!(serve(&["serve"], log), "", "{log:?}");
    }
    let table = root.path().display().to_string();
    for (arguments, log) in [
        (&["serve", "-v"][..], None),
        (&["--verbose", "serve"], None),
        (&["serve"], Some("1")),
        (&["serve"], Some("info")),
    ] {
        let output = serve(arguments, log);
        let of_root = format!("root {table} (flag --root)");
        assert_contains!(output, of_root, "project "; "{arguments:?} {log:?}");
        assert_lacks!(output, "dana-private", "pin ");
        assert!(output.lines().all(|line| line.starts_with("ack-memory: ")), "{output}");
    }
    let output = serve(&["--pin", "platform", "serve", "-v"], None);
    assert_contains!(output, "pin platform (flag --pin)");
    assert_lacks!(output, "scope `ledger-api`");
    let output = ack(root.path(), &["query", "-v", "deadlock", "--json"]);
    assert!(
        output.err.contains("(flag --root)") && serde_json::from_str::<Value>(&output.out).is_ok(),
        "{output:?}"
    );
}

#[test]
fn offline_opens_no_connection() {
    let root = Root::samples();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let config =
        format!("[upstream.far]\nurl = \"{url}\"\ntools = {{ search = \"far_search\" }}\n");
    write_file(root.path().join("config.toml"), config);
    let list = |offline: bool| {
        let mut command = command(root.path());
        if offline {
            command.arg("--offline");
        }
        let mut server = Server::spawn(command);
        server.initialize("2025-11-25");
        let tools = server.request("tools/list", json!({}));
        assert_contains!(tools.to_string(), "query_memories");
        server.close();
        std::thread::sleep(Duration::from_millis(50));
        listener.accept().is_ok()
    };
    assert!(!list(true), "a server over HTTP was contacted");
    assert!(list(false), "without the flag it is contacted, or this test shows nothing");
    while listener.accept().is_ok() {}
    let served = ack(root.path(), &["--offline", "serve"]);
    assert_contains!(served.err, "`far`", "left out");
    let doctor = ack(root.path(), &["doctor", "--upstreams", "--offline"]).ok();
    assert!(doctor.contains("- far ") && listener.accept().is_err(), "{doctor}");
    ack(root.path(), &["--offline", "query", "deadlock"]).ok();
}
