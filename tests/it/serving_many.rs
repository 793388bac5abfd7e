//! `serve --http` for several people: a token for each, limits, metrics, the access log, readiness.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Http, post, refused};
use crate::support::{Root, memory};

/// Two scopes, each with an approved memory and one that waits.
fn root() -> Root {
    let root = Root::new();
    for scope in ["platform", "secretlab"] {
        root.store(
            scope,
            &[
                memory(
                    &format!("{scope}-1"),
                    &format!("Deploy of {scope} on Tuesday"),
                    json!({ "project": scope }),
                ),
                memory(
                    &format!("{scope}-2"),
                    &format!("Deploy of {scope} waits"),
                    json!({ "project": scope, "status": "staging" }),
                ),
            ],
        );
    }
    root
}

/// Adds a client to the file of tokens; its token.
fn add(file: &Path, name: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ack-memory"))
        .args(["token", name, "--file"])
        .arg(file)
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let token = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    assert!(!fs::read_to_string(file).unwrap().contains(&token));
    assert!(!errors.contains(&token), "standard error is often a log");
    token
}

fn serve(root: &Root, tokens: &Path, more: &[&str]) -> Http {
    let mut arguments = vec![
        "--http",
        "127.0.0.1:0",
        "--tokens",
        tokens.to_str().unwrap(),
    ];
    arguments.extend(more);
    Http::with(root.path(), &arguments, |_| {})
}

/// Sends a request as a client; the status and the body of the answer.
fn ask(server: &Http, token: &str, method: &str, params: Value) -> (u16, String) {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let body = message.to_string();
    post(
        &server.agent,
        &server.url,
        Some(token),
        body.as_bytes(),
        &[],
    )
}

fn query(server: &Http, token: &str, arguments: Value) -> (u16, String) {
    let params = json!({ "name": "query_memories", "arguments": arguments });
    ask(server, token, "tools/call", params)
}

/// A page that is not part of the protocol; its status and body.
fn get(server: &Http, path: &str, token: Option<&str>) -> (u16, String) {
    let url = server.url.replace("/mcp", path);
    let mut request = server.agent.get(url);
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let mut answer = request.call().unwrap();
    let body = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), body)
}

/// Waits until something holds.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_client_sees_only_its_scopes_at_every_entry_point() {
    let root = root();
    let tokens = root.path().join("tokens.toml");
    let mei = add(&tokens, "mei", &["--scopes", "platform"]);
    let all = add(&tokens, "ops", &[]);
    let server = serve(&root, &tokens, &[]);
    let call = |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        ("tools/call", params)
    };
    let recall = json!({ "name": "recall", "arguments": { "question": "deploy" } });
    let complete = json!({
        "ref": { "type": "ref/resource", "uri": "memory://{scope}" },
        "argument": { "name": "scope", "value": "" },
    });
    let requests = [
        (
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "0" },
            }),
        ),
        ("tools/list", json!({})),
        call("query_memories", json!({ "query": "deploy" })),
        call(
            "query_memories",
            json!({ "query": "deploy", "status": "all" }),
        ),
        call("query_memories", json!({})),
        call(
            "get_memory",
            json!({ "ids": ["secretlab-1", "platform-1"] }),
        ),
        call(
            "get_memory",
            json!({ "ids": ["memory://secretlab/secretlab-1", "platform-1"] }),
        ),
        call("list_scopes", json!({})),
        call(
            "get_context",
            json!({ "project_path": "/home/me/secretlab" }),
        ),
        call(
            "get_context",
            json!({ "project_path": "/home/me/platform", "focus": "deploy" }),
        ),
        ("resources/list", json!({})),
        ("resources/read", json!({ "uri": "memory://scopes" })),
        ("prompts/get", recall),
        ("completion/complete", complete),
    ];
    let mut seen_by_ops = 0;
    for (method, params) in requests {
        let (status, body) = ask(&server, &mei, method, params.clone());
        assert_eq!(status, 200, "{method}: {body}");
        // The client's own words may be repeated.
        let asked = params.to_string();
        let leaks = |text: &str| body.contains(text) && !asked.contains(text);
        assert!(!leaks("secretlab"), "{method} {asked}: {body}");
        assert!(
            !body.contains("Deploy of secretlab"),
            "{method} {asked}: {body}"
        );
        let (_, body) = ask(&server, &all, method, params);
        seen_by_ops += usize::from(body.contains("Deploy of secretlab") || leaks("secretlab"));
    }
    assert!(seen_by_ops >= 3, "the requests find nothing");
    for uri in ["memory://secretlab", "memory://secretlab/secretlab-1"] {
        let (_, body) = ask(&server, &mei, "resources/read", json!({ "uri": uri }));
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert!(answer["error"].is_object(), "{uri}: {body}");
        let (_, body) = ask(&server, &all, "resources/read", json!({ "uri": uri }));
        assert!(body.contains("secretlab"), "{uri}: {body}");
    }
    let (_, body) = query(
        &server,
        &mei,
        json!({ "query": "deploy", "scope": "secretlab" }),
    );
    assert!(
        body.contains("isError\":true") && !body.contains("Deploy of"),
        "{body}"
    );
    let (_, body) = query(&server, &mei, json!({ "query": "deploy" }));
    assert!(body.contains("Deploy of platform on Tuesday"), "{body}");
}

#[test]
fn a_client_gets_no_path_of_the_servers_machine() {
    let root = root();
    let notes = root.path().join("far/notes");
    fs::create_dir_all(&notes).unwrap();
    let text = "# Deploy of notes\n\nThe file is `/srv/shop/deploy.toml`.\n";
    fs::write(notes.join("a.md"), text).unwrap();
    let manifest = format!("store = '{}'\nunreviewed = 'approved'\n", notes.display());
    root.manifest("notes", &manifest);
    root.manifest("gone", "store = '/nowhere/at/all.db'\n");
    root.manifest("odd", "store = 3\n");
    fs::write(root.scope_folder("bad").join("memory.db"), "no database").unwrap();
    let log = root.scope_folder("secretlab").join("decisions.jsonl");
    fs::write(log, "not a log\n").unwrap();
    let tokens = root.path().join("tokens.toml");
    let ops = add(&tokens, "ops", &[]);
    let server = serve(&root, &tokens, &[]);
    let call = |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        ask(&server, &ops, "tools/call", params).1
    };
    let scope = |name: &str| json!({ "query": "deploy", "scope": name });
    let read = |uri: &str| ask(&server, &ops, "resources/read", json!({ "uri": uri })).1;
    let mut bodies = vec![
        call("list_scopes", json!({})),
        call("query_memories", json!({ "query": "deploy" })),
        call("get_context", json!({})),
        read("memory://scopes"),
    ];
    for name in ["gone", "odd", "bad", "secretlab", "notes"] {
        bodies.push(call("query_memories", scope(name)));
        bodies.push(call("list_scopes", json!({ "scope": name })));
        bodies.push(read(&format!("memory://scope/{name}")));
    }
    let here = std::env::current_dir().unwrap();
    for place in [root.path(), Path::new("/nowhere"), here.as_path()] {
        let place = place.to_str().unwrap();
        for body in &bodies {
            assert!(!body.contains(place), "{place}: {body}");
        }
    }
    let all = bodies.concat();
    for part in ["`secretlab/decisions.jsonl`", "`bad/memory.db`", "`gone`"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    // The text of a memory is unchanged.
    let shown = call("get_memory", json!({ "id": "a" }));
    assert!(shown.contains("/srv/shop/deploy.toml"), "{shown}");
}

#[test]
fn tokens_are_valid_as_soon_as_they_are_in_the_file() {
    let root = root();
    let tokens = root.path().join("tokens.toml");
    let mei = add(&tokens, "mei", &["--scopes", "platform"]);
    let server = serve(&root, &tokens, &[]);
    let status = |token: &str| query(&server, token, json!({ "query": "deploy" })).0;
    assert_eq!(status(&mei), 200);
    assert_eq!(status("not-a-token-of-anybody"), 401);
    let ana = add(&tokens, "ana", &[]);
    until("a new client is let in", || status(&ana) == 200);
    // While the file is broken, empty or missing, nobody is let in.
    let good = fs::read_to_string(&tokens).unwrap();
    for text in [Some(format!("{good}\n[broken")), Some(String::new()), None] {
        match &text {
            Some(text) => fs::write(&tokens, text).unwrap(),
            None => fs::remove_file(&tokens).unwrap(),
        }
        until("nobody is let in", || status(&mei) == 401);
        assert_eq!(status(&ana), 401, "{text:?}");
        fs::write(&tokens, &good).unwrap();
        until("it is usable again", || status(&mei) == 200);
    }
    // Its scopes change, then it is removed.
    let sees_both = |token: &str| {
        let (_, body) = query(&server, token, json!({ "query": "deploy" }));
        body.contains("secretlab-1")
    };
    assert!(!sees_both(&mei));
    fs::write(&tokens, good.replace("scopes = [\"platform\"]\n", "")).unwrap();
    until("it sees every scope", || sees_both(&mei));
    let new = add(&tokens, "mei", &["--replace", "--scopes", "platform"]);
    until("the old token ends", || status(&mei) == 401);
    assert_eq!(status(&new), 200);
    let (_, _, errors) = server.signal("TERM");
    for part in [
        "cannot be used: ",
        "no client, so nobody is let in",
        "cannot read the tokens in ",
        "; nobody is let in until it can be used",
    ] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    for token in [&mei, &ana, &new] {
        assert!(!errors.contains(token.as_str()), "{errors}");
    }
}

#[test]
fn metrics_count_requests_and_hold_no_secret() {
    let root = root();
    let tokens = root.path().join("tokens.toml");
    let mei = add(&tokens, "mei", &[]);
    let prometheus = add(&tokens, "prometheus", &["--metrics"]);
    let server = serve(&root, &tokens, &[]);
    assert_eq!(get(&server, "/metrics", None).0, 401);
    assert_eq!(get(&server, "/metrics", Some(&mei)).0, 403);
    query(&server, &mei, json!({ "query": "Tuesday" }));
    query(&server, &mei, json!({ "query": "Tuesday", "limit": 9999 }));
    ask(
        &server,
        &mei,
        "tools/call",
        json!({ "name": "made_up_7", "arguments": {} }),
    );
    ask(&server, &mei, "made/up", json!({}));
    ask(&server, "wrong-token-0123456789", "ping", json!({}));
    let (status, text) = get(&server, "/metrics", Some(&prometheus));
    assert_eq!(status, 200);
    let value = |start: &str, parts: &[&str]| -> Option<f64> {
        let mut lines = text.lines().filter(|line| line.starts_with(start));
        let line = lines.find(|line| parts.iter().all(|part| line.contains(part)))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let counted = |parts: &[&str]| value("ack_memory_requests_total{", parts);
    let tool = "tool=\"query_memories\"";
    assert_eq!(
        counted(&["client=\"mei\"", tool, "\"ok\""]),
        Some(1.0),
        "{text}"
    );
    assert_eq!(
        counted(&["client=\"mei\"", tool, "\"error\""]),
        Some(1.0),
        "{text}"
    );
    assert_eq!(counted(&["tool=\"other\""]), Some(1.0), "{text}");
    assert_eq!(counted(&["method=\"other\""]), Some(1.0), "{text}");
    assert_eq!(
        counted(&["client=\"\"", "status=\"401\""]),
        Some(1.0),
        "{text}"
    );
    let time = "ack_memory_request_duration_seconds_count{";
    assert_eq!(value(time, &[tool]), Some(2.0), "{text}");
    assert_eq!(value("ack_memory_clients ", &[]), Some(2.0), "{text}");
    assert!(
        value("ack_memory_index_bytes{", &["platform"]) > Some(0.0),
        "{text}"
    );
    assert_eq!(
        value("ack_memory_scope_readable{", &["secretlab"]),
        Some(1.0),
        "{text}"
    );
    assert_eq!(counted(&["method=\"\"", "status=\"403\""]), None, "{text}");
    assert!(text.ends_with("# EOF\n"), "it is OpenMetrics: {text}");
    for secret in [mei.as_str(), &prometheus, "Tuesday", "made_up_7", "made/up"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[test]
fn while_the_tokens_are_broken_the_metrics_and_readiness_say_so() {
    let root = root();
    let tokens = root.path().join("tokens.toml");
    let mei = add(&tokens, "mei", &[]);
    let prometheus = add(&tokens, "prometheus", &["--metrics"]);
    let server = serve(&root, &tokens, &[]);
    let status = |token: &str| query(&server, token, json!({ "query": "deploy" })).0;
    let broken = || {
        let (status, text) = get(&server, "/metrics", Some(&prometheus));
        assert_eq!(status, 200, "{text}");
        text.contains("\nack_memory_tokens_broken 1\n")
    };
    assert_eq!(get(&server, "/ready", None).0, 200);
    assert!(!broken());
    let good = fs::read_to_string(&tokens).unwrap();
    fs::write(&tokens, format!("{good}\n[broken")).unwrap();
    until("it is not ready", || get(&server, "/ready", None).0 == 503);
    let (_, body) = get(&server, "/ready", None);
    assert!(body.contains("the file of tokens cannot be used"), "{body}");
    assert!(
        !body.contains("tokens.toml") && !body.contains("broken"),
        "{body}"
    );
    assert!(broken());
    assert_eq!(status(&prometheus), 401, "it reads metrics, not memories");
    assert_eq!(status(&mei), 401);
    assert_eq!(get(&server, "/metrics", Some(&mei)).0, 401);
    fs::write(&tokens, &good).unwrap();
    until("it is ready", || get(&server, "/ready", None).0 == 200);
    assert_eq!(status(&mei), 200);
    assert!(!broken());
    // Without clients, nobody can use it either. Nobody reads the metrics then.
    fs::write(&tokens, "").unwrap();
    until("nobody is let in", || get(&server, "/ready", None).0 == 503);
    let (_, body) = get(&server, "/ready", None);
    assert!(body.contains("names no client"), "{body}");
    assert_eq!(get(&server, "/metrics", Some(&prometheus)).0, 401);
    let (status, body) = get(&server, "/mcp", None);
    assert_eq!(status, 401);
    assert!(
        body.contains("ask whoever runs this server") && !body.contains("printed"),
        "{body}"
    );
}

#[test]
fn metrics_of_a_limited_client_tell_of_its_scopes_and_requests_alone() {
    let root = root();
    let tokens = root.path().join("tokens.toml");
    let mei = add(&tokens, "mei", &[]);
    let ana = add(&tokens, "ana", &["--metrics", "--scopes", "platform"]);
    let server = serve(&root, &tokens, &[]);
    query(&server, &mei, json!({ "query": "Tuesday" }));
    query(&server, &mei, json!({ "query": "Monday" }));
    query(&server, &ana, json!({ "query": "Tuesday" }));
    ask(&server, "wrong-token-0123456789", "ping", json!({}));
    let (status, text) = get(&server, "/metrics", Some(&ana));
    assert_eq!(status, 200);
    let has = |part: &str| text.lines().any(|line| line.starts_with(part));
    for line in [
        "ack_memory_requests_total{client=\"ana\",method=\"tools/call\",tool=\"query_memories\",\
         outcome=\"ok\",status=\"200\"} 1",
        "ack_memory_request_duration_seconds_count{method=\"tools/call\",\
         tool=\"query_memories\"} 1",
        "ack_memory_scope_readable{scope=\"platform\"} 1",
        "ack_memory_index_bytes{scope=\"platform\"} ",
        "ack_memory_start_time_seconds ",
        "ack_memory_build_info{version=",
    ] {
        assert!(has(line), "{line}: {text}");
    }
    for other in [
        "secretlab",
        "mei",
        "client=\"\"",
        "401",
        "ack_memory_clients",
        "under_way",
        "resident",
    ] {
        assert!(!text.contains(other), "{other}: {text}");
    }
}

#[test]
fn the_access_log_has_a_line_for_each_request_and_no_text() {
    let root = root();
    let tokens = root.path().join("tokens.toml");
    let log = root.path().join("access.jsonl");
    let mei = add(&tokens, "mei", &[]);
    let server = serve(&root, &tokens, &["--access-log", log.to_str().unwrap()]);
    query(&server, &mei, json!({ "query": "Tuesday" }));
    ask(&server, "wrong-token-0123456789", "ping", json!({}));
    get(&server, "/health", None);
    get(&server, "/ready", None);
    assert_eq!(get(&server, "/metrics", Some(&mei)).0, 403);
    assert_eq!(get(&server, "/metrics", None).0, 401);
    let lines = |path: &Path| -> Vec<Value> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    };
    let written = lines(&log);
    assert_eq!(written.len(), 2, "{written:?}");
    assert_eq!(written[0]["client"], "mei");
    assert_eq!(written[0]["tool"], "query_memories");
    assert_eq!(written[0]["outcome"], "ok");
    assert!(written[0]["bytes"].as_u64() > Some(100), "{written:?}");
    assert_eq!(written[1]["status"], 401);
    assert!(written[1].get("client").is_none());
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains("Tuesday") && !text.contains(&mei), "{text}");
    assert_eq!(
        fs::metadata(&log).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // Like logrotate.
    let old = root.path().join("access.jsonl.1");
    fs::rename(&log, &old).unwrap();
    query(&server, &mei, json!({}));
    assert_eq!(lines(&log).len(), 1);
}

#[test]
fn readiness_reports_when_the_server_can_answer() {
    let empty = Root::new();
    let server = Http::with(
        empty.path(),
        &["--http", "127.0.0.1:0", "--no-token"],
        |_| {},
    );
    assert_eq!(get(&server, "/health", None).0, 200);
    let (status, body) = get(&server, "/ready", None);
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("there is no scope"), "{body}");
    empty.store("late", &[memory("late-1", "It came later", json!({}))]);
    until("the scope is seen", || {
        get(&server, "/ready", None).0 == 200
    });
    let root = root();
    let arguments = ["--http", "127.0.0.1:0", "--no-token", "--warm"];
    let server = Http::with(root.path(), &arguments, |_| {});
    until("the indexes are made", || {
        get(&server, "/ready", None).0 == 200
    });
    let (status, body) = get(&server, "/ready", None);
    assert!(status == 200 && !body.contains("platform"), "{body}");
}

#[test]
fn a_new_token_is_labelled_and_what_cannot_work_is_reported() {
    let root = root();
    let tokens = root.path().join("tokens.toml");
    let token = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_ack-memory"))
            .arg("--root")
            .arg(root.path())
            .args(["token", "mei"])
            .args(arguments)
            .output()
            .unwrap()
    };
    let file = ["--file", tokens.to_str().unwrap()];
    let past = token(&[file[0], file[1], "--last-day", "2020-01-31"]);
    let errors = String::from_utf8_lossy(&past.stderr);
    assert!(!past.status.success(), "{errors}");
    assert!(errors.contains("2020-01-31 is over"), "{errors}");
    assert!(past.stdout.is_empty() && !tokens.exists(), "{errors}");
    for wrong in ["soon", "20270131", "2027-02-30"] {
        let refused = token(&["--last-day", wrong]);
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert!(
            errors.contains("write a day such as 2027-01-31"),
            "{wrong}: {errors}"
        );
    }
    let made = token(&[file[0], file[1], "--scopes", "platform,platfrom"]);
    let errors = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{errors}");
    for part in [
        "there is no scope `platfrom` here",
        "the token of `mei`, a secret that is shown only now",
        "Authorization: Bearer TOKEN",
    ] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    assert!(!errors.contains("no scope `platform`"), "{errors}");
    let text = String::from_utf8(made.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "a script reads the token alone");
    let printed = token(&["--scopes", "platform"]);
    let errors = String::from_utf8_lossy(&printed.stderr);
    assert!(errors.contains("add this to the token file"), "{errors}");
    assert!(
        errors.contains("a secret that is shown only now"),
        "{errors}"
    );
}

#[test]
fn a_token_file_is_written_atomically_and_private() {
    let root = root();
    let tokens = root.path().join("tokens.toml");
    add(
        &tokens,
        "mei",
        &["--scopes", "platform,secretlab", "--last-day", "2031-01-31"],
    );
    let mode = fs::metadata(&tokens).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = format!("# Who may ask\n{}", fs::read_to_string(&tokens).unwrap());
    fs::write(&tokens, &before).unwrap();
    let add_again = Command::new(env!("CARGO_BIN_EXE_ack-memory"))
        .args(["token", "mei", "--file"])
        .arg(&tokens)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&add_again.stderr);
    assert!(
        !add_again.status.success() && errors.contains("--replace"),
        "{errors}"
    );
    assert_eq!(fs::read_to_string(&tokens).unwrap(), before);
    add(&tokens, "ana", &[]);
    let after = fs::read_to_string(&tokens).unwrap();
    assert!(after.starts_with(&before), "{after}");
    fs::write(&tokens, "[mei]\nhash = 3\n").unwrap();
    let output = refused(
        root.path(),
        &[
            "--http",
            "127.0.0.1:0",
            "--tokens",
            tokens.to_str().unwrap(),
        ],
        None,
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("cannot be used"),
        "{errors}"
    );
    assert!(
        errors.contains("ack-memory token NAME --file FILE"),
        "{errors}"
    );
}
