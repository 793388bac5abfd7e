//! What stands behind one result: memories whose text it contains whole, and no others. Two texts
//! can differ in a single word and be opposites, so likeness hides nothing, through any door.

use ack_compare::{Profile, relate};
use ack_memory::api::RelationKind;
use ack_memory::internal::Setting;
use serde_json::{Value, json};

use crate::cli::{binary, run_with_input};
use crate::context::project;
use crate::support::{Ask, Root, ids, memory, result_ids, titled};

/// Texts, and what says something else by a small change.
fn changes() -> Vec<[&'static str; 2]> {
    let lines = include_str!("fold.txt").lines();
    let texts: Vec<&str> = lines.filter(|line| !line.starts_with("# ")).collect();
    texts.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
}

/// The two texts of a change as memories: as titles, and as facts under one title.
fn pairs() -> Vec<[Value; 2]> {
    let ids = ["one", "other"];
    let about = json!({ "project": "alpha", "files": ["src/gateway.rs"] });
    let as_title = |id: &str, text: &str| memory(id, text, about.clone());
    let as_fact = |id: &str, text: &str| {
        let mut fact = memory(id, "What the gateway team learned", about.clone());
        fact["facts"] = json!([text]);
        fact
    };
    let changes = changes();
    assert_eq!(changes.len(), 33);
    let titles = changes.iter().map(|texts| [0, 1].map(|n| as_title(ids[n], texts[n])));
    let facts = changes.iter().map(|texts| [0, 1].map(|n| as_fact(ids[n], texts[n])));
    titles.chain(facts).collect()
}

/// What a hook adds to the conversation. What it remembers stays in the root.
fn hook_text(root: &Root, hook: &str, event: &Value) -> String {
    let mut command = binary();
    for variable in ["HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"] {
        command.env(variable, root.path());
    }
    command.arg("--root").arg(root.path()).args(["hook", hook]);
    run_with_input(&mut command, event.to_string().as_bytes()).out
}

#[test]
fn a_memory_that_says_something_else_is_never_hidden() {
    for pair in pairs() {
        let root = Root::with("alpha", &pair);
        let folder = project(&root, "alpha", "main");
        let service =
            root.service_with(|inputs| inputs.project = Some(Setting::flag("-C", folder.clone())));
        let fact = pair[0]["facts"][0].as_str();
        let text = fact.or(pair[0]["title"].as_str()).unwrap();
        let has_both = |door: &str, mut ids: Vec<String>| {
            ids.sort();
            assert_eq!(ids, ["one", "other"], "{door}: {text}");
        };
        for mode in ["hybrid", "lexical"] {
            let answer = service.find(json!({ "query": text, "mode": mode }));
            has_both(mode, result_ids(&answer));
            assert_lacks!(answer, "\"also\""; "{mode}: {text}");
        }
        for asked in [json!({}), json!({ "focus": text })] {
            let context = service.brief(asked);
            has_both("get_context", ids(&context["recent_memories"]));
        }
        let start =
            json!({ "hook_event_name": "SessionStart", "cwd": folder, "source": "startup" });
        let start = hook_text(&root, "session-start", &start);
        assert_contains!(start, "id one", "id other"; "session start: {text}");
        let prompt =
            json!({ "hook_event_name": "UserPromptSubmit", "cwd": folder, "prompt": text });
        let prompt = hook_text(&root, "user-prompt", &prompt);
        // It shows what is near the prompt, in languages that the encoder knows, and what it quotes.
        let shows = |id: &str| prompt.contains(&format!("id {id}"));
        assert!(shows("one") || !shows("other"), "prompt: {text}");
        let edit = json!({ "session_id": "s", "cwd": folder, "hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": { "file_path": folder.join("src/gateway.rs"), "old_string": "a", "new_string": "b" } });
        let edit = hook_text(&root, "pre-tool-use", &edit);
        assert_contains!(edit, "id one", "id other"; "edit: {text}");
    }
}

#[test]
fn a_memory_that_says_something_else_is_never_called_the_same() {
    for pair in pairs() {
        let [one, other] = [&pair[0], &pair[1]].map(|memory| {
            let fact = memory["facts"][0].as_str();
            let texts: Vec<&str> = memory["title"].as_str().into_iter().chain(fact).collect();
            Profile::of_texts(&texts)
        });
        for relation in [relate(&one, &other), relate(&other, &one)] {
            let is_claim = [RelationKind::Differs, RelationKind::Contradicts];
            assert!(is_claim.contains(&relation.kind), "{pair:?}: {relation:?}");
        }
    }
}

/// A title with the facts below it.
type Sample<'a> = (&'a str, &'a [&'a str]);

/// The results of a search for the title of the first of two memories, and the ids below them.
fn found(one: Sample<'_>, other: Sample<'_>) -> (String, String) {
    let root = Root::new();
    let sample =
        |id: &str, (title, facts): Sample<'_>| memory(id, title, json!({ "facts": facts }));
    root.store("alpha", &[sample("a", one)]);
    root.store("beta", &[sample("b", other)]);
    let answer = root.service().find(json!({ "query": one.0 }));
    assert_eq!(answer["total"], 2, "{answer}");
    let also = answer["results"][0].get("also").map(ids);
    (result_ids(&answer).join(" "), also.unwrap_or_default().join(" "))
}

/// As [`found`], where one is shown, and the other one below it.
#[track_caller]
fn shown(one: Sample<'_>, other: Sample<'_>, expected: [&str; 2]) {
    let (results, also) = found(one, other);
    assert_eq!([results, also], expected, "{other:?}");
}

#[test]
fn equal_memories_are_shown_once() {
    let close = "Close the pool at the end of the job";
    let one: Sample<'_> = (close, &["It has 30 connections."]);
    shown(one, one, ["a", "b"]);
    shown(one, ("close the  pool at the end of the job.", &["it has 30 connections"]), ["a", "b"]);
    shown(
        one,
        ("**Close** the pool at the end of the job!", &["It has `30` connections."]),
        ["a", "b"],
    );
    for other in [
        (close, &["It has 40 connections."] as &[&str]),
        ("At the end of the job, close the pool", &["It has 30 connections."]),
    ] {
        let (results, also) = found(one, other);
        assert_eq!((results.split(' ').count(), also.as_str()), (2, ""), "{other:?}");
    }
}

#[test]
fn of_two_memories_the_one_that_contains_the_other_is_shown() {
    let short: Sample<'_> = ("Close the pool at the end of the job", &[]);
    let worker = "A worker has one of its own.";
    let long: Sample<'_> = (short.0, &[worker]);
    // The short one is the better match, and stands in the place of the long one otherwise.
    shown(short, long, ["b", "a"]);
    shown(long, short, ["a", "b"]);
    // A part of a sentence is not the whole of it, and a title is about all that follows.
    let denied: Sample<'_> = ("Do not close the pool at the end of the job", &[]);
    let refused: Sample<'_> = ("What reviewers refuse", &[short.0, worker]);
    for other in [denied, refused] {
        assert_eq!(found(short, other).0.split(' ').count(), 2, "{other:?}");
    }
}

#[test]
fn a_session_starts_with_the_memory_that_contains_the_others() {
    let root = Root::new();
    let learned = |id: &str, title: &str, facts: &[&str], day: u32| {
        let created = format!("2026-03-{day:02}T00:00:00Z");
        let rest = json!({ "project": "alpha", "facts": facts, "created_at": created });
        memory(id, title, rest)
    };
    let facts = ["A worker has its own."];
    let memories = [
        learned("short", "Close the pool", &[], 3),
        learned("again", "close the pool.", &[], 2),
        learned("long", "Close the pool", &facts, 1),
    ];
    root.store("alpha", &memories);
    let folder = project(&root, "alpha", "main");
    let service =
        root.service_with(|inputs| inputs.project = Some(Setting::flag("-C", folder.clone())));
    for asked in [json!({}), json!({ "focus": "close the pool" })] {
        let context = service.brief(asked);
        assert_eq!(ids(&context["recent_memories"]), ["long"], "{context}");
    }
}

#[test]
fn an_approved_memory_is_not_hidden_behind_one_that_waits() {
    let root = Root::new().let_agents_review();
    let rest = json!({ "status": "staging", "facts": ["And wait a minute."] });
    let waits = memory("waits", "Close the pool", rest);
    root.store("alpha", &[titled("approved", "Close the pool"), waits]);
    let answer = root.service().find(json!({ "query": "close the pool", "status": "all" }));
    assert_eq!(result_ids(&answer).len(), 2, "{answer}");
}
