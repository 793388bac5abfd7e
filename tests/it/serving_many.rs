//! `serve --http` for several people: a token for each, limits, readiness.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{Outcome, binary, run};
use crate::http::{Http, post, refused};
use crate::support::{Root, memory, read_text, titled, write_file};

/// Two scopes, each with an approved memory and one that waits.
fn root() -> Root {
    let root = Root::new();
    for scope in ["platform", "secretlab"] {
        let approved = format!("Deploy of {scope} on Tuesday");
        let waits = format!("Deploy of {scope} waits");
        let staging = json!({ "project": scope, "status": "staging" });
        let memories = [
            memory(&format!("{scope}-1"), &approved, json!({ "project": scope })),
            memory(&format!("{scope}-2"), &waits, staging),
        ];
        root.store(scope, &memories);
    }
    root
}

/// Runs `token` for a client, over a root if there is one.
fn token(root: Option<&Root>, name: &str, arguments: &[&str]) -> Outcome {
    let mut command = binary();
    if let Some(root) = root {
        command.arg("--root").arg(root.path());
    }
    run(command.args(["token", name]).args(arguments))
}

/// A root, its file of tokens, and `mei` in it.
fn with_mei(arguments: &[&str]) -> (Root, PathBuf, String) {
    let root = root();
    let tokens = root.path().join("tokens.toml");
    let mei = add(&tokens, "mei", arguments);
    (root, tokens, mei)
}

/// Adds a client to the file of tokens; its token.
fn add(file: &Path, name: &str, arguments: &[&str]) -> String {
    let outcome = token(None, name, &[&["--file", file.to_str().unwrap()], arguments].concat());
    let errors = outcome.err.clone();
    let token = outcome.ok().trim().to_owned();
    assert_lacks!(read_text(file), &token);
    assert_lacks!(errors, &token; "standard error is often a log");
    token
}

fn serve(root: &Root, tokens: &Path, more: &[&str]) -> Http {
    let tokens = ["--http", "127.0.0.1:0", "--tokens", tokens.to_str().unwrap()];
    Http::with(root.path(), &[&tokens, more].concat(), |_| {})
}

/// Sends a request as a client; the status and the body of the answer.
fn ask(server: &Http, token: &str, method: &str, params: Value) -> (u16, String) {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let body = message.to_string();
    post(&server.agent, &server.url, Some(token), body.as_bytes(), &[])
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
    let (root, tokens, mei) = with_mei(&["--scopes", "platform"]);
    let all = add(&tokens, "ops", &[]);
    let server = serve(&root, &tokens, &[]);
    let call = |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        ("tools/call", params)
    };
    let client = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" },
    });
    let recall = json!({ "name": "recall", "arguments": { "question": "deploy" } });
    let by_address = json!({ "ids": ["memory://secretlab/secretlab-1", "platform-1"] });
    let platform = json!({ "project_path": "/home/me/platform", "focus": "deploy" });
    let requests = [
        ("initialize", client),
        ("tools/list", json!({})),
        call("query_memories", json!({ "query": "deploy" })),
        call("query_memories", json!({ "query": "deploy", "status": "all" })),
        call("query_memories", json!({})),
        call("get_memory", json!({ "ids": ["secretlab-1", "platform-1"] })),
        call("get_memory", by_address),
        call("list_scopes", json!({})),
        call("get_context", json!({ "project_path": "/home/me/secretlab" })),
        call("get_context", platform),
        ("resources/list", json!({})),
        ("resources/read", json!({ "uri": "memory://scopes" })),
        ("prompts/get", recall),
    ];
    let mut seen_by_ops = 0;
    for (method, params) in requests {
        let (status, body) = ask(&server, &mei, method, params.clone());
        assert_eq!(status, 200, "{method}: {body}");
        // The client's own words may be repeated.
        let asked = params.to_string();
        let leaks = |body: &str| body.contains("secretlab") && !asked.contains("secretlab");
        assert!(!leaks(&body), "{method} {asked}: {body}");
        assert_lacks!(body, "Deploy of secretlab"; "{method} {asked}");
        let (_, body) = ask(&server, &all, method, params);
        seen_by_ops += usize::from(body.contains("Deploy of secretlab") || leaks(&body));
    }
    assert!(seen_by_ops >= 3, "the requests find nothing");
    for uri in ["memory://secretlab", "memory://secretlab/secretlab-1"] {
        let (_, body) = ask(&server, &mei, "resources/read", json!({ "uri": uri }));
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert!(answer["error"].is_object(), "{uri}: {body}");
        let (_, body) = ask(&server, &all, "resources/read", json!({ "uri": uri }));
        assert_contains!(body, "secretlab"; "{uri}");
    }
    let secretlab = json!({ "query": "deploy", "scope": "secretlab" });
    let (_, body) = query(&server, &mei, secretlab);
    assert_contains!(body, "isError\":true");
    assert_lacks!(body, "Deploy of");
    let (_, body) = query(&server, &mei, json!({ "query": "deploy" }));
    assert_contains!(body, "Deploy of platform on Tuesday");
}

#[test]
fn a_client_gets_no_path_of_the_servers_machine() {
    let root = root();
    let notes = root.path().join("far/notes");
    fs::create_dir_all(&notes).unwrap();
    let text = "# Deploy of notes\n\nThe file is `/srv/shop/deploy.toml`.\n";
    write_file(notes.join("a.md"), text);
    let manifest = format!("store = '{}'\nunreviewed = 'approved'\n", notes.display());
    root.manifest("notes", &manifest);
    root.manifest("gone", "store = '/nowhere/at/all.db'\n");
    root.manifest("odd", "store = 3\n");
    write_file(root.scope_folder("bad").join("memory.db"), "no database");
    let log = root.scope_folder("secretlab").join("decisions.jsonl");
    write_file(log, "not a log\n");
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
            assert_lacks!(body, place);
        }
    }
    let all = bodies.concat();
    for part in ["`secretlab/decisions.jsonl`", "`bad/memory.db`", "`gone`"] {
        assert_contains!(all, part);
    }
    // The text of a memory is unchanged.
    let shown = call("get_memory", json!({ "id": "a" }));
    assert_contains!(shown, "/srv/shop/deploy.toml");
}

#[test]
fn tokens_are_valid_as_soon_as_they_are_in_the_file() {
    let (root, tokens, mei) = with_mei(&["--scopes", "platform"]);
    let server = serve(&root, &tokens, &[]);
    let status = |token: &str| query(&server, token, json!({ "query": "deploy" })).0;
    assert_eq!(status(&mei), 200);
    assert_eq!(status("not-a-token-of-anybody"), 401);
    let ana = add(&tokens, "ana", &[]);
    until("a new client is let in", || status(&ana) == 200);
    // While the file is broken, empty or missing, nobody is let in.
    let good = read_text(&tokens);
    for text in [Some(format!("{good}\n[broken")), Some(String::new()), None] {
        match &text {
            Some(text) => write_file(&tokens, text),
            None => fs::remove_file(&tokens).unwrap(),
        }
        until("nobody is let in", || status(&mei) == 401);
        assert_eq!(status(&ana), 401, "{text:?}");
        write_file(&tokens, &good);
        until("it is usable again", || status(&mei) == 200);
    }
    // Its scopes change, then it is removed.
    let sees_both = |token: &str| {
        let (_, body) = query(&server, token, json!({ "query": "deploy" }));
        body.contains("secretlab-1")
    };
    assert!(!sees_both(&mei));
    write_file(&tokens, good.replace("scopes = [\"platform\"]\n", ""));
    until("it sees every scope", || sees_both(&mei));
    let new = add(&tokens, "mei", &["--replace", "--scopes", "platform"]);
    until("the old token ends", || status(&mei) == 401);
    assert_eq!(status(&new), 200);
    let (_, _, errors) = server.signal("TERM");
    assert_contains!(
        errors,
        "cannot be used: ",
        "no client, so nobody is let in",
        "cannot read the tokens in ",
        "; nobody is let in until it can be used"
    );
    for token in [&mei, &ana, &new] {
        assert_lacks!(errors, token.as_str());
    }
}

#[test]
fn readiness_says_that_the_tokens_are_broken_or_none() {
    let (root, tokens, mei) = with_mei(&[]);
    let server = serve(&root, &tokens, &[]);
    let status = |token: &str| query(&server, token, json!({ "query": "deploy" })).0;
    assert_eq!(get(&server, "/ready", None).0, 200);
    let good = read_text(&tokens);
    for (text, reason) in [
        (format!("{good}\n[broken"), "the file of tokens cannot be used"),
        (String::new(), "names no client"),
    ] {
        write_file(&tokens, text);
        until("it is not ready", || get(&server, "/ready", None).1.contains(reason));
        let (status_code, body) = get(&server, "/ready", None);
        assert_eq!(status_code, 503, "{body}");
        assert_lacks!(body, "tokens.toml", "broken");
        assert_eq!(status(&mei), 401);
        let (status, body) = get(&server, "/mcp", None);
        assert_eq!(status, 401);
        assert_contains!(body, "ask whoever runs this server");
        assert_lacks!(body, "printed");
    }
    write_file(&tokens, &good);
    until("it is ready", || get(&server, "/ready", None).0 == 200);
    assert_eq!(status(&mei), 200);
}

#[test]
fn readiness_reports_when_the_server_can_answer() {
    let empty = Root::new();
    let words = ["--http", "127.0.0.1:0", "--no-token"];
    let server = Http::with(empty.path(), &words, |_| {});
    assert_eq!(get(&server, "/health", None).0, 200);
    let (status, body) = get(&server, "/ready", None);
    assert_eq!(status, 503, "{body}");
    assert_contains!(body, "there is no scope");
    empty.store("late", &[titled("late-1", "It came later")]);
    until("the scope is seen", || get(&server, "/ready", None).0 == 200);
    let root = root();
    let arguments = ["--http", "127.0.0.1:0", "--no-token", "--warm"];
    let server = Http::with(root.path(), &arguments, |_| {});
    until("the indexes are made", || get(&server, "/ready", None).0 == 200);
    let (status, body) = get(&server, "/ready", None);
    assert!(status == 200 && !body.contains("platform"), "{body}");
}

#[test]
fn a_new_token_is_labelled_and_what_cannot_work_is_reported() {
    let root = root();
    let tokens = root.path().join("tokens.toml");
    let token = |arguments: &[&str]| token(Some(&root), "mei", arguments);
    let file = ["--file", tokens.to_str().unwrap()];
    let past = token(&[file[0], file[1], "--last-day", "2020-01-31"]);
    assert_ne!(past.code, Some(0));
    assert_contains!(past.err, "2020-01-31 is over");
    assert!(past.out.is_empty() && !tokens.exists(), "{past:?}");
    for wrong in ["soon", "20270131", "2027-02-30"] {
        let refused = token(&["--last-day", wrong]);
        assert_contains!(refused.err, "write a day such as 2027-01-31"; "{wrong}");
    }
    let made = token(&[file[0], file[1], "--scopes", "platform,platfrom"]);
    assert_contains!(
        made.err,
        "there is no scope `platfrom` here",
        "the token of `mei`, a secret that is shown only now",
        "Authorization: Bearer TOKEN"
    );
    assert_lacks!(made.err, "no scope `platform`");
    assert_eq!(made.ok().lines().count(), 1, "a script reads the token alone");
    let printed = token(&["--scopes", "platform"]);
    let said = "a secret that is shown only now";
    assert_contains!(printed.err, "add this to the token file", said);
}

#[test]
fn a_token_file_is_written_atomically_and_private() {
    let (root, tokens, _) =
        with_mei(&["--scopes", "platform,secretlab", "--last-day", "2031-01-31"]);
    let mode = fs::metadata(&tokens).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = format!("# Who may ask\n{}", read_text(&tokens));
    write_file(&tokens, &before);
    let file = tokens.to_str().unwrap();
    let again = token(None, "mei", &["--file", file]);
    assert_ne!(again.code, Some(0));
    assert_contains!(again.err, "--replace");
    assert_eq!(read_text(&tokens), before);
    add(&tokens, "ana", &[]);
    let after = read_text(&tokens);
    assert!(after.starts_with(&before), "{after}");
    write_file(&tokens, "[mei]\nhash = 3\n");
    let serve = ["--http", "127.0.0.1:0", "--tokens", file];
    let (code, errors) = refused(root.path(), &serve, None);
    assert_ne!(code, Some(0));
    let said = "ack-memory token NAME --file FILE";
    assert_contains!(errors, "cannot be used", said);
}
