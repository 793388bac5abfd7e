//! Ids that exist in several scopes: which memory is meant, how the others are mentioned, and how
//! each is reached, at every entry point.

use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use ack_api::GetRequest;
use ack_api::uri::Address;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::cli::{ack, ack_with_input};
use crate::mcp::Server;
use crate::support::{Ask, Root, memory, rejected, titled, unreviewed};
use ack_memory::internal::Setting;

/// Four scopes with memories of one id: three approved or promoted, one that waits and is first by
/// name, one rejected.
fn root() -> Root {
    let root = Root::new();
    for (scope, status) in
        [("alpha", "staging"), ("beta", "approved"), ("delta", "rejected"), ("gamma", "promoted")]
    {
        let title = format!("Rotate the {scope} keys every month");
        let same = memory("same", &title, json!({ "status": status }));
        let only = titled(&format!("only-{scope}"), &format!("Nothing but {scope}"));
        root.store(scope, &[same, only]);
    }
    root
}

fn address(scope: &str, id: &str) -> String {
    let (scope, id) = (scope.to_owned(), id.to_owned());
    Address::Memory { scope, id }.to_string()
}

/// Scope, and the message of the note about others.
fn scope_and_note(answer: &Value) -> (String, String) {
    let notes = answer["notes"].as_array().into_iter().flatten();
    let note = notes
        .filter(|note| note["kind"] == "same_id")
        .map(|note| note["message"].as_str().unwrap());
    (answer["scope"].as_str().unwrap().to_owned(), note.collect())
}

#[test]
fn a_shared_id_prefers_approved_then_the_current_scope_and_notes_the_others() {
    let root = root();
    let [alpha, beta, gamma] = ["`alpha` (staging)", "`beta` (approved)", "`gamma` (promoted)"];
    for (current, status, expected, others) in [
        ("nowhere", "approved", "beta", [gamma, alpha]),
        ("nowhere", "all", "beta", [gamma, alpha]),
        ("gamma", "all", "gamma", [beta, alpha]),
        ("alpha", "all", "beta", [gamma, alpha]),
        ("delta", "all", "beta", [gamma, alpha]),
        ("gamma", "staging", "alpha", [gamma, beta]),
    ] {
        let service = root.service_with(|inputs| {
            inputs.project = Some(Setting::flag("-C", root.path().join(current)))
        });
        let answer = service.fetch(json!({ "id": "same", "status": status }));
        let (scope, note) = scope_and_note(&answer);
        assert_eq!(scope, expected, "{current}, {status}");
        assert_contains!(note, &others.join(", "); "{current}, {status}");
        assert_lacks!(note, "delta");
        let many = service.fetch(json!({ "ids": ["same", "only-beta"], "status": status }));
        let found = &many["memories"][0]["scope"];
        assert_eq!(*found, expected, "{current}, {status}");
    }
    let service = root.service();
    let alone = service.fetch(json!({ "id": "only-beta" }));
    assert_eq!(scope_and_note(&alone), ("beta".to_owned(), String::new()));
    let named = service.fetch(json!({ "id": "same", "scope": "gamma" }));
    assert_eq!(scope_and_note(&named), ("gamma".to_owned(), String::new()));
}

#[test]
fn a_waiting_memory_is_refused_before_a_rejected_one() {
    let root = Root::with("alpha", &[rejected("same", "Rejected")]);
    root.store("beta", &[unreviewed("same", "Waits")]);
    let error = call(&root.service(), "get_memory", json!({ "id": "same" })).unwrap_err();
    assert_contains!(error.to_string(), "`beta` is `staging`");
    let read = root.service().fetch(json!({ "id": "same", "status": "all" }));
    assert_eq!(read["scope"], "beta");
}

#[test]
fn an_address_names_exactly_one_memory() {
    let root = Root::new();
    let odd = ["same", "team/2026/01", "100 % sure", "memory://scope/alpha/memory/same", "データ"];
    for scope in ["alpha", "beta", "gamma"] {
        let memories: Vec<Value> = (0..)
            .zip(odd)
            .map(|(n, id): (usize, _)| {
                memory(id, &format!("{scope} {n}0"), json!({ "type": scope }))
            })
            .collect();
        root.store(scope, &memories);
    }
    root.manifest("gamma", "visibility = \"private\"\n");
    let service = root.service();
    for scope in ["alpha", "beta", "gamma"] {
        let addresses: Vec<String> = odd.iter().map(|id| address(scope, id)).collect();
        for (id, address) in odd.iter().zip(&addresses) {
            // The id of a memory may look like an address: taken literally, it is that memory.
            if *address != odd[3] {
                let found = service.fetch(json!({ "id": address }));
                assert_eq!((&found["id"], &found["type"]), (&json!(id), &json!(scope)));
            }
        }
        let several = service.fetch(json!({ "ids": &addresses[1..3] }));
        for memory in several["memories"].as_array().unwrap() {
            assert_eq!(memory["scope"], scope);
        }
    }
    let literal = service.fetch(json!({ "id": odd[3], "scope": "beta" }));
    assert_eq!(literal["id"], json!(odd[3]));
    assert_eq!(literal["scope"], "beta");
    // A pinned server has one scope, this way too.
    let pinned = root
        .service_with(|inputs| inputs.pinned = Some(Setting::flag("--pin", "alpha".to_owned())));
    let other = json!({ "id": address("beta", "team/2026/01") });
    assert_eq!(pinned.refused("get_memory", other).code, "scope_refused");
}

#[test]
fn an_address_and_another_scope_are_refused_with_both_names() {
    let root = root();
    let service = root.service();
    let given = address("beta", "same");
    for (tool, arguments) in [
        ("get_memory", json!({ "id": given, "scope": "gamma" })),
        ("query_memories", json!({ "like": given, "scope": "gamma" })),
    ] {
        let error = call(&service, tool, arguments).unwrap_err();
        assert_eq!(error.code(), "invalid_argument", "{tool}");
        let body = json!(error.body());
        let message = format!("{}; {}", body["message"], body["hint"]);
        for words in [
            given.as_str(),
            "is the address of a memory in scope `beta`, and the scope is given as `gamma`",
            "leave `scope` out because the address names one",
            "or give `same` instead of the address",
        ] {
            assert_contains!(message, words; "{tool}");
        }
    }
    // Of several ids, each has its own reason.
    let answer = service.fetch(json!({ "ids": [given, "same"], "scope": "gamma" }));
    assert_contains!(answer["missing"][0]["reason"].to_string(), "leave `scope` out");
    assert_eq!(answer["memories"].as_array().unwrap().len(), 1);
    // The same scope is no contradiction, however it is spelled.
    let same = json!({ "id": given, "scope": "Beta" });
    assert!(call(&service, "get_memory", same).is_ok());
    let message = ack(root.path(), &["get", &given, "--scope", "gamma"]).fails(2);
    assert_contains!(message, "leave `--scope` out", "as `gamma`");
}

#[test]
fn like_and_expect_resolve_ids_as_get_memory_does() {
    let root = Root::new();
    let near = |subject: &str| {
        memory("same", &format!("{subject} first"), json!({ "status": "approved" }))
    };
    let cats = "Cats sleep on the warm keyboard";
    let ships = "Ships need a harbour with deep water";
    let mut first = near(ships);
    first["status"] = json!("staging");
    root.store("alpha", &[first, titled("ships", &format!("{ships} and a pilot"))]);
    root.store("beta", &[near(cats), titled("cats", &format!("{cats} and purr"))]);
    let service = root.service();
    for status in ["approved", "all"] {
        let answer = service.find(json!({ "like": "same", "status": status, "limit": 1 }));
        assert_eq!(answer["results"][0]["id"], "cats", "{answer}");
        assert_contains!(answer["notes"].to_string(), "same_id", "`alpha` (staging)");
    }
    let named = service.find(json!({ "like": address("alpha", "same"), "limit": 1 }));
    assert_eq!(named["results"][0]["id"], "ships", "{named}");
    let expected = |given: &str| {
        let asked = json!({ "query": "cats keyboard", "expect": given, "status": "all" });
        service.find(asked)
    };
    let answer = expected("same");
    assert_eq!(answer["expected"]["scope"], "beta");
    assert_eq!(answer["expected"]["stage"], "returned");
    assert_eq!(answer["expected"]["id"], "same");
    assert_contains!(answer["notes"].to_string(), "`alpha` (staging)");
    let found = &expected(&address("alpha", "same"))["expected"]["scope"];
    assert_eq!(*found, "alpha");
}

#[test]
fn the_command_line_and_toolsets_name_other_holders_in_their_own_terms() {
    let root = root();
    let out = ack(root.path(), &["get", "same"]).ok();
    let said = "pass `--scope` to choose one";
    assert_contains!(out, "the beta keys", "`gamma` (promoted)", said);
    let out = ack(root.path(), &["get", &address("gamma", "same")]).ok();
    assert_contains!(out, "the gamma keys");
    assert_lacks!(out, "other scopes");
    let mut server = Server::with(root.path(), &["--surface", "siftcoder"]);
    let answer = server.call("mem_get", json!({ "id": "same" }));
    assert_eq!(scope_and_note(&answer["structuredContent"]).0, "beta");
    let named = server.call("mem_get", json!({ "id": "same", "scope": "gamma" }));
    let found = scope_and_note(&named["structuredContent"]);
    assert_eq!(found, ("gamma".to_owned(), String::new()));
}

/// What a hook adds to the conversation of a project.
fn hook_text(root: &Root, hook: &str, event: Value) -> String {
    let out = ack_with_input(root.path(), &["hook", hook], event.to_string().as_bytes()).ok();
    let answer: Value =
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

/// The title, id and scope of each memory in a hook's text.
fn printed_ids(text: &str) -> Vec<(String, String, Option<String>)> {
    let lines: Vec<&str> = text.lines().collect();
    let ids =
        lines.iter().enumerate().filter_map(|(at, line)| Some((at, line.strip_prefix(">   id ")?)));
    ids.map(|(at, id)| {
        let id = id.split(" (").next().unwrap();
        let (id, scope) = id
            .split_once(" in scope ")
            .map_or((id, None), |(id, scope)| (id, Some(scope.to_owned())));
        let title = lines[..at].iter().rev().find(|line| !line.starts_with(">   ")).unwrap();
        let title = title.trim_start_matches("> ").split("] ").last().unwrap().to_owned();
        (title, id.to_owned(), scope)
    })
    .collect()
}

#[test]
fn an_id_in_hook_output_resolves_to_its_memory() {
    let root = root();
    // A memory that a newer one replaces is shown by no hook, but is still found by its id.
    let twice = json!({ "superseded_by": "newer" });
    let memories = [
        memory("twice", "An older rule about sandboxes", twice),
        titled("newer", "A newer rule about trains"),
    ];
    root.store("aardvark", &memories);
    root.store(
        "gamma2",
        &[memory(
            "twice",
            "Sandboxes of the gamma project are rebuilt daily",
            json!({ "project": "gamma" }),
        )],
    );
    let folder = root.path().join("gamma");
    std::fs::create_dir(&folder).unwrap();
    let service =
        root.service_with(|inputs| inputs.project = Some(Setting::flag("-C", folder.clone())));
    let start = json!({ "hook_event_name": "SessionStart", "cwd": folder, "source": "startup" });
    let text = hook_text(&root, "session-start", start);
    let prompt = json!({ "hook_event_name": "UserPromptSubmit", "cwd": folder, "prompt": "when do we rotate the beta keys every month?" });
    let near = hook_text(&root, "user-prompt", prompt);
    let mut all = printed_ids(&text);
    assert!(
        all.iter().any(|(.., scope)| scope.is_none()),
        "an id that one scope holds stands alone: {text}"
    );
    assert!(all.iter().any(|(_, id, scope)| id == "twice" && scope.is_some()), "{text}");
    let found = printed_ids(&near);
    assert!(found.len() > 1, "{near}");
    all.extend(found);
    for (title, id, scope) in all {
        let mut asked = json!({ "id": id });
        if let Some(scope) = scope {
            asked["scope"] = json!(scope);
        }
        assert_eq!(service.fetch(asked.clone())["title"], title, "{asked}");
    }
}

/// A request that locked its scopes and then looked up an address waited for itself if the store
/// had changed in between.
#[test]
fn an_address_is_found_while_another_program_writes() {
    let root = root();
    let service = root.service();
    let store = rusqlite::Connection::open(root.path().join("scopes/beta/memory.db")).unwrap();
    store.pragma_update(None, "journal_mode", "wal").unwrap();
    let (done, wait) = channel();
    std::thread::spawn(move || {
        for _ in 0..300 {
            let request = GetRequest { id: Some(address("beta", "same")), ..GetRequest::default() };
            service.get_memory(&request).unwrap();
        }
        done.send(()).unwrap();
    });
    let end = Instant::now() + Duration::from_secs(60);
    for number in 0.. {
        store.execute("UPDATE memories SET narrative = ?1", [number]).unwrap();
        match wait.try_recv() {
            Ok(()) => return,
            Err(TryRecvError::Empty) => assert!(Instant::now() < end, "it waits for itself"),
            Err(TryRecvError::Disconnected) => panic!("a request failed"),
        }
    }
}
