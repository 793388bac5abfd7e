//! Flags: the short ones, what people type out of habit, and the spellings of version 0.1.

use serde_json::{Value, json};

use crate::cli::{Outcome, ack, ack_with_input};
use crate::support::{Root, memory};

fn scopes(outcome: Outcome) -> Value {
    outcome.json()["searched"]["scopes"].clone()
}

#[test]
fn scope_filters_and_pin_pins() {
    let root = Root::samples();
    let one = json!(["platform"]);
    for filter in ["-s", "--scope"] {
        let answer = ack(
            root.path(),
            &["query", "docker", filter, "platform", "--json"],
        );
        assert_eq!(scopes(answer), one, "{filter}");
    }
    // In any position.
    let answer = ack(
        root.path(),
        &["-s", "platform", "query", "docker", "--json"],
    );
    assert_eq!(scopes(answer), one);
    let refused = ack(
        root.path(),
        &["--pin", "platform", "query", "docker", "-s", "ledger-api"],
    );
    assert!(refused.fails(1).contains("platform"));
}

#[test]
fn project_filters_and_c_is_the_folder() {
    let root = Root::samples();
    let folder = root.path().join("ledger-api");
    std::fs::create_dir(&folder).unwrap();
    let answer = ack(
        root.path(),
        &[
            "query",
            "-p",
            "kiosk-web",
            "-C",
            folder.to_str().unwrap(),
            "--json",
        ],
    )
    .json();
    assert_eq!(answer["searched"]["current_scope"], "ledger-api");
    let results = answer["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        assert_eq!(result["project"], "kiosk-web");
    }
}

#[test]
fn all_shows_what_waits_for_review() {
    let root = Root::new();
    let waiting = memory("m-1", "Xylophone", json!({ "status": "staging" }));
    root.store("music", &[waiting]);
    let total = |arguments: &[&str]| ack(root.path(), arguments).json()["total"].clone();
    assert_eq!(total(&["query", "xylophone", "--json"]), 0);
    assert_eq!(total(&["query", "xylophone", "-a", "--json"]), 1);
    ack(root.path(), &["get", "m-1"]).fails(1);
    ack(root.path(), &["get", "m-1", "-a"]).ok();
    ack(root.path(), &["query", "-a", "--status", "staging"]).fails(2);
}

#[test]
fn common_habitual_spellings_are_accepted() {
    let root = Root::samples();
    let id = "ack_a41f0c_2025-11-24_001";
    for (typed, meant) in [
        (vec!["search", "deadlock"], vec!["query", "deadlock"]),
        (vec!["list"], vec!["query"]),
        (vec!["show", id], vec!["get", id]),
        (vec!["status"], vec!["doctor"]),
    ] {
        let typed = ack(root.path(), &[&typed[..], &["--json"]].concat());
        let meant = ack(root.path(), &[&meant[..], &["--json"]].concat());
        assert_eq!((typed.out, typed.code), (meant.out, meant.code));
    }
}

#[test]
fn old_spellings_work_and_name_the_new_ones() {
    let root = Root::samples();
    let folder = root.path().join("ledger-api");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    for (arguments, hint) in [
        (
            vec!["query", "docker", "--in-scope", "platform"],
            "`--scope`",
        ),
        (
            vec!["query", "docker", "--in-project=platform"],
            "`--project`",
        ),
        (vec!["query", "docker", "--full"], "`--long`"),
        (vec!["query", "docker", "--project", folder], "`-C DIR`"),
        (vec!["--project", folder, "context"], "`-C DIR`"),
        (vec!["--scope", "platform", "context"], "`--pin`"),
    ] {
        let outcome = ack(root.path(), &arguments);
        assert!(
            outcome.err.contains("hint: ") && outcome.err.contains(hint),
            "{arguments:?}: {outcome:?}"
        );
        assert_eq!(outcome.err.lines().count(), 1, "{outcome:?}");
        outcome.ok();
        for quiet in ["--json", "--quiet"] {
            let outcome = ack(root.path(), &[&arguments[..], &[quiet]].concat());
            assert_eq!(outcome.err, "", "{arguments:?}");
        }
    }
    let context = ack(root.path(), &["--scope", "platform", "context", "--json"]).json();
    assert_eq!(context["searched"]["detected_by"], "flag --pin");
    let context = ack(root.path(), &["--project", folder, "context", "--json"]).json();
    assert_eq!(context["searched"]["current_scope"], "ledger-api");
}

#[test]
fn client_entries_of_an_older_version_still_start() {
    let root = Root::samples();
    let hook = ack(
        root.path(),
        &["--scope", "platform", "hook", "session-start"],
    );
    assert_eq!((hook.code, hook.err.as_str()), (Some(0), ""), "{hook:?}");
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" },
    } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "query_memories", "arguments": { "query": "docker" },
    } });
    let input = format!("{initialize}\n{call}\n");
    let arguments = ["--scope", "platform", "serve"];
    let served = ack_with_input(root.path(), &arguments, input.as_bytes());
    let answer = served.out.lines().last().unwrap_or_default();
    assert!(answer.contains(r#""scopes":["platform"]"#), "{served:?}");
}

#[test]
fn dates_are_accepted_in_several_formats() {
    let root = Root::samples();
    let total = |since: &str| {
        ack(root.path(), &["query", "--since", since, "--json"]).json()["total"].clone()
    };
    assert_eq!(total("-9000d"), total("9000d"));
    let wrong = ack(root.path(), &["query", "--since", "-soon"]).fails(2);
    assert!(wrong.contains("yesterday"), "{wrong}");
    let wrong = ack(root.path(), &["query", "-n", "ten"]).fails(2);
    assert!(wrong.contains("use a whole number"), "{wrong}");
}
