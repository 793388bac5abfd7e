//! `hook pre-tool-use`: what is known about a file before it is edited.

use std::path::PathBuf;

use ack_api::text;
use serde_json::{Value, json};

use crate::cli::{Outcome, binary, run_with_input};
use crate::connect::Home;
use crate::context::project;
use crate::decisions::decide;
use crate::query::bulk;
use crate::support::{Ask, Root, fingerprint, memory, run_sql, write_file};

/// A root, a project in it, and a home for what hooks remember.
struct Desk {
    root: Root,
    top: PathBuf,
    home: Home,
}

impl Desk {
    fn new(memories: &[Value]) -> Self {
        let root = Root::new();
        bulk(&root, "ledger", memories);
        let top = project(&root, "ledger", "main");
        let home = Home::new();
        Self { root, top, home }
    }

    fn call(&self, hook: &[&str], sent: &Value) -> Outcome {
        let mut command = self.home.prepared(binary());
        for variable in ["XDG_RUNTIME_DIR", "XDG_CACHE_HOME"] {
            command.env_remove(variable);
        }
        command.arg("--root").arg(self.root.path()).arg("hook").args(hook);
        run_with_input(&mut command, sent.to_string().as_bytes())
    }

    /// What is added before this file is edited in a session; empty if nothing is.
    #[track_caller]
    fn added(&self, session: &str, file: &str) -> String {
        let outcome = self.call(&["pre-tool-use"], &self.edit(session, file));
        assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""));
        context(&outcome)
    }

    fn edit(&self, session: &str, file: &str) -> Value {
        json!({ "session_id": session, "cwd": self.top, "hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": { "file_path": self.top.join(file), "old_string": "a", "new_string": "b" } })
    }
}

/// The text for the model, in an output that decides nothing about the tool.
#[track_caller]
fn context(outcome: &Outcome) -> String {
    if outcome.out.is_empty() {
        return String::new();
    }
    let answer: Value = serde_json::from_str(&outcome.out).unwrap();
    let inner = answer["hookSpecificOutput"].as_object().unwrap();
    let keys: Vec<&String> = inner.keys().collect();
    assert_eq!(keys, ["hookEventName", "additionalContext"]);
    assert_eq!(answer.as_object().unwrap().len(), 1);
    assert_eq!(inner["hookEventName"], "PreToolUse");
    inner["additionalContext"].as_str().unwrap().to_owned()
}

fn ids(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(">   id "));
    lines.map(|line| line.split(' ').next().unwrap()).collect()
}

fn about(id: &str, file: &str, mut rest: Value) -> Value {
    rest["files"] = json!(["docs/other.md", file]);
    if rest.get("project").is_none() {
        rest["project"] = json!("ledger");
    }
    memory(id, &format!("What to know of {id}"), rest)
}

#[test]
fn copilot_gets_memories_about_a_file_in_its_own_format() {
    let desk = Desk::new(&[about("rounding", "src/pay.rs", json!({}))]);
    let hook = ["pre-tool-use", "--client", "copilot"];
    let path = desk.top.join("src/pay.rs");
    let sent = |session: &str, tool: &str, arguments: Value| {
        json!({ "sessionId": session, "timestamp": 1_795_761_887_847_i64, "cwd": desk.top,
            "toolName": tool, "toolArgs": arguments })
    };
    let edit = json!({ "path": path, "old_str": "a", "new_str": "b" });
    for (session, tool, arguments, is_told) in [
        ("s", "bash", json!({ "command": "ls src/pay.rs" }), false),
        ("s", "view", json!({ "path": path }), false),
        ("s", "edit", edit.clone(), true),
        ("s", "edit", edit.clone(), false),
        ("t", "create", json!({ "path": path, "file_text": "x" }), true),
        ("u", "edit", json!(edit.to_string()), true),
    ] {
        let outcome = desk.call(&hook, &sent(session, tool, arguments));
        assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""));
        if !is_told {
            assert_eq!(outcome.out, "", "{session} {tool}");
            continue;
        }
        let answer: Value = serde_json::from_str(&outcome.out).unwrap();
        assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
        let text = answer["additionalContext"].as_str().unwrap();
        assert_eq!(ids(text), ["rounding"], "{text}");
    }
    // A cleared session is told again.
    let start = json!({ "sessionId": "s", "cwd": desk.top, "source": "new" });
    desk.call(&["session-start", "--client", "copilot"], &start).ok();
    assert_ne!(desk.call(&hook, &sent("s", "edit", edit)).out, "");
}

#[test]
fn memories_about_a_file_are_shown_once_per_session() {
    let desk = Desk::new(&[about(
        "rounding",
        "src/pay/payout.rs",
        json!({ "type": "gotcha", "facts": ["Amounts are rounded late"] }),
    )]);
    let before = fingerprint(desk.root.path());
    let text = desk.added("s1", "src/pay/payout.rs");
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("pre_tool_use", text));
    assert_eq!(desk.added("s1", "src/pay/payout.rs"), "");
    assert_eq!(desk.added("s1", "src/pay/refund.rs"), "");
    assert_eq!(desk.added("s2", "src/pay/payout.rs"), text);
    // A compacted conversation no longer contains our text; a resumed one does.
    for (source, again) in [("resume", false), ("compact", true)] {
        let start = json!({ "session_id": "s2", "cwd": desk.top, "hook_event_name": "SessionStart", "source": source });
        desk.call(&["session-start"], &start).ok();
        let found = !desk.added("s2", "src/pay/payout.rs").is_empty();
        assert_eq!(found, again, "{source}");
    }
    let found = fingerprint(desk.root.path());
    assert_eq!(found, before, "nothing is kept beside a store");
    // Of several calls at once, one is told.
    let told = std::thread::scope(|scope| {
        let call = || !desk.added("s3", "src/pay/payout.rs").is_empty();
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        let told = calls.into_iter().map(|call| usize::from(call.join().unwrap()));
        told.sum::<usize>()
    });
    assert_eq!(told, 1);
}

#[test]
fn only_certain_and_approved_memories_are_shown() {
    let file = "src/pay/payout.rs";
    let plain = |id: &str, file: &str| about(id, file, json!({}));
    let with = |id: &str, key: &str, value: &str| about(id, file, json!({ key: value }));
    let mention = json!({ "project": "ledger" });
    let desk = Desk::new(&[
        plain("exact", file),
        plain("folder", "src/pay/"),
        plain("glob", "src/pay/*.rs"),
        plain("everything", "src/"),
        plain("any-rust", "*.rs"),
        plain("namesake", "lib/web/payout.rs"),
        with("staged", "status", "staging"),
        with("rejected", "status", "rejected"),
        with("old", "superseded_by", "exact"),
        with("theirs", "project", "kiosk"),
        memory("mention", "The payout.rs file is long", mention),
    ]);
    let memories = [about("private", "src/pay/payout.rs", json!({}))];
    bulk(&desk.root, "diary", &memories);
    desk.root.manifest("diary", "visibility = \"private\"");
    let text = desk.added("s", "src/pay/payout.rs");
    assert_eq!(ids(&text), ["exact", "folder", "glob"], "{text}");
    assert_contains!(text, "id folder (about its folder)");
    assert_eq!(desk.added("s", "src/web/routes.rs"), "");
    assert_eq!(desk.added("s", "/etc/hosts"), "");
}

#[test]
fn a_file_is_the_same_however_its_letters_are_composed() {
    let [composed, decomposed] =
        ["src/Mar\u{e9}es/\u{e9}t\u{e9}.rs", "src/Mare\u{301}es/e\u{301}te\u{301}.rs"];
    let desk = Desk::new(&[
        about("one", composed, json!({})),
        about("other", decomposed, json!({})),
        about("folder", "src/Mare\u{301}es/", json!({})),
    ]);
    for (session, file) in [("a", composed), ("b", decomposed)] {
        let text = desk.added(session, file);
        assert_eq!(ids(&text), ["one", "other", "folder"], "{text}");
    }
    let service = desk.root.service();
    for file in [composed, decomposed] {
        let found = service.find(json!({ "files": [file] }));
        assert_eq!(found["total"], 3, "{found}");
    }
    write_file(desk.top.join("e\u{301}te\u{301}.rs"), "changed");
    let brief = service.brief(json!({ "project_path": desk.top }));
    assert_contains!(brief["recent_memories"][0]["why"], "changed files");
}

#[test]
fn replaced_and_edited_memories_are_shown_in_their_current_form() {
    let file = "src/pay/payout.rs";
    let old = |id: &str, newer: &str| about(id, file, json!({ "superseded_by": newer }));
    let desk = Desk::new(&[
        old("by-staged", "staged"),
        old("by-nobody", "gone"),
        old("by-rejected", "rejected"),
        old("by-newer", "newer"),
        old("by-chain", "middle"),
        old("middle", "newer"),
        old("one-of-two", "two-of-two"),
        old("two-of-two", "one-of-two"),
        about("staged", file, json!({ "status": "staging" })),
        about("rejected", file, json!({ "status": "rejected" })),
        about("newer", "src/elsewhere.rs", json!({})),
        about("edited-away", file, json!({})),
        about("edited-here", "src/elsewhere.rs", json!({})),
    ]);
    let folder = desk.root.scope_folder("ledger");
    for (id, files) in [("edited-away", "src/elsewhere.rs"), ("edited-here", file)] {
        let edit = json!({ "edit": { "files": [files] } });
        decide(&folder, "memory.db", id, "edit", edit);
    }
    let mut shown: Vec<String> = Vec::new();
    for session in 0..4 {
        let text = desk.added(&format!("s{session}"), file);
        shown.extend(ids(&text).into_iter().map(str::to_owned));
        for id in ids(&text) {
            decide(&folder, "memory.db", id, "reject", json!({}));
        }
    }
    shown.sort_unstable();
    let expected = "by-nobody by-rejected by-staged edited-here one-of-two two-of-two";
    assert_eq!(shown.join(" "), expected);
}

#[test]
fn the_text_before_an_edit_is_short() {
    let long = "many words about money ".repeat(40);
    let memories: Vec<Value> = (0..6)
        .map(|number| {
            let rest = json!({ "facts": [long, long, long], "subtitle": long, "narrative": long });
            let mut one = about(&format!("m{number}"), "src/a.rs", rest);
            one["title"] = json!(format!("{number} {long}"));
            one
        })
        .collect();
    let desk = Desk::new(&memories);
    let text = desk.added("s", "src/a.rs");
    assert!(!ids(&text).is_empty() && text::tokens(&text) <= 400, "{text}");
}

#[test]
fn reasons_to_doubt_a_memory_are_shown_before_an_edit() {
    let at = |id: &str, day: &str, mut rest: Value| {
        rest["created_at"] = json!(format!("{day}T00:00:00Z"));
        about(id, "src/db.rs", rest)
    };
    let desk = Desk::new(&[
        at("off", "2026-01-01", json!({})),
        at("on", "2026-06-01", json!({})),
        at("old", "2026-01-02", json!({ "stale_after": "2026-03-01" })),
    ]);
    let store = desk.root.scope_folder("ledger").join("memory.db");
    let link =
        "INSERT INTO memory_links (from_id, to_id, kind) VALUES ('on', 'off', 'contradicts')";
    run_sql(store, link);
    std::fs::create_dir_all(desk.top.join("src")).unwrap();
    write_file(desk.top.join("src/db.rs"), "");
    let text = desk.added("s", "src/db.rs");
    assert_contains!(
        text,
        "id off (contradicted by on (newer))",
        "id on (contradicts off (older))",
        "id old (stale: past 2026-03-01, the day its author set)"
    );
    // The start of a session and a prompt mark contradictions on both sides too.
    let start = json!({ "cwd": desk.top, "hook_event_name": "SessionStart", "source": "startup" });
    let started = desk.call(&["session-start"], &start).ok();
    let prompt = json!({ "cwd": desk.top, "hook_event_name": "UserPromptSubmit",
        "prompt": "What to know of off and on?" });
    let prompted = desk.call(&["user-prompt"], &prompt).ok();
    for text in [&started, &prompted] {
        assert_contains!(text, "contradicts off (older)");
        assert_contains!(text, "contradicted by on (newer)");
    }
}

#[test]
fn other_tools_hosts_and_broken_input_get_no_output() {
    let desk = Desk::new(&[about("exact", "src/a.rs", json!({}))]);
    let mut edit = desk.edit("s", "src/a.rs");
    edit["tool_name"] = json!("Read");
    let mut without_session = desk.edit("s", "src/a.rs");
    without_session["session_id"].take();
    let mut odd = desk.edit("s", "src/a.rs");
    odd["tool_input"] = json!([1, { "file_path": {} }]);
    for sent in [edit, without_session, odd, json!({}), json!([])] {
        let outcome = desk.call(&["pre-tool-use"], &sent);
        assert_eq!(outcome.code, Some(0), "{sent}");
        assert_eq!(outcome.out.as_str(), "", "{sent}");
        assert!(outcome.err.lines().count() <= 1);
    }
    let gemini = desk.edit("s", "src/a.rs");
    for client in ["gemini", "cursor", "droid"] {
        let outcome = desk.call(&["pre-tool-use", "--client", client], &gemini);
        assert_eq!(outcome.code, Some(0), "{client}");
        assert_eq!(outcome.out.as_str(), "", "{client}");
    }
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n*** End Patch\n";
    let codex = json!({
        "session_id": "s", "turn_id": "t", "cwd": desk.top, "hook_event_name": "PreToolUse",
        "model": "m", "permission_mode": "default", "tool_name": "apply_patch",
        "tool_input": { "command": patch }, "tool_use_id": "c",
    });
    let outcome = desk.call(&["pre-tool-use", "--client", "codex"], &codex);
    assert_eq!(ids(&context(&outcome)), ["exact"]);
    write_file(desk.root.scope_folder("ledger").join("memory.db"), vec![0xA5; 4096]);
    let outcome = desk.call(&["pre-tool-use"], &desk.edit("t", "src/a.rs"));
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(0), ""));
    assert_eq!(outcome.err.lines().count(), 1, "{outcome:?}");
}
