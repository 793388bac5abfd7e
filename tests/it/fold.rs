//! What stands behind one result: memories whose text it contains whole, and no others. Two texts
//! can differ in a single word and be opposites, so likeness hides nothing, through any door.

use std::io::Write;
use std::process::Stdio;

use ack_compare::{Profile, relate};
use ack_memory::api::RelationKind;
use ack_memory::internal::Setting;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::cli::binary;
use crate::context::project;
use crate::support::{Root, ids, memory, result_ids};

/// What is done to a text so that it says something else.
const CHANGES: &[(&str, &str)] = &[
    // Two nouns change places.
    (
        "Copy the config from staging to production before the release",
        "Copy the config from production to staging before the release",
    ),
    (
        "Service A calls service B when an invoice is written",
        "Service B calls service A when an invoice is written",
    ),
    (
        "The importer reads from the bucket and writes to the queue",
        "The importer reads from the queue and writes to the bucket",
    ),
    (
        "Deploy the consumers before the producers of the ledger topic",
        "Deploy the producers before the consumers of the ledger topic",
    ),
    // A direction, a verb, a side.
    (
        "Warm the cache before the traffic is switched over",
        "Warm the cache after the traffic is switched over",
    ),
    (
        "The workers wait for a connection; raise max_connections",
        "The workers wait for a connection; lower max_connections",
    ),
    (
        "Scroll the audit table upwards to load older entries",
        "Scroll the audit table downwards to load older entries",
    ),
    (
        "The proxy accepts requests without a host header",
        "The proxy rejects requests without a host header",
    ),
    // A number, a version, a weekday, a path, an identifier.
    (
        "The gateway closes idle connections after 90 seconds",
        "The gateway closes idle connections after 60 seconds",
    ),
    (
        "The nightly build of the gateway needs version 1.2.3 of the toolchain",
        "The nightly build of the gateway needs version 1.2.4 of the toolchain",
    ),
    (
        "The dependency update of the gateway runs every Friday evening",
        "The dependency update of the gateway runs every Monday evening",
    ),
    (
        "The relay reads its limits from /etc/relay.toml at start",
        "The relay reads its limits from /opt/relay.toml at start",
    ),
    (
        "The parser of the ledger export is written in C",
        "The parser of the ledger export is written in C++",
    ),
    // The order of steps.
    (
        "Drop the old column. Then run the backfill.",
        "Then run the backfill. Drop the old column.",
    ),
    // A negation.
    (
        "The workers wait for a connection; raise max_connections",
        "The workers wait for a connection; do not raise max_connections",
    ),
    (
        "Raise the busy timeout before a migration of the ledger",
        "Never raise the busy timeout before a migration of the ledger",
    ),
    (
        "Le cache des sessions est partagé entre les instances",
        "Le cache des sessions n'est pas partagé entre les instances",
    ),
    (
        "Die Sicherung der Rechnungen wird verschlüsselt",
        "Die Sicherung der Rechnungen wird nicht verschlüsselt",
    ),
    (
        "La copia de seguridad de las facturas se cifra",
        "La copia de seguridad de las facturas no se cifra",
    ),
    (
        "O cache de sessões é compartilhado entre as instâncias",
        "O cache de sessões não é compartilhado entre as instâncias",
    ),
    (
        "Il backup delle fatture è cifrato ogni notte",
        "Il backup delle fatture non è cifrato ogni notte",
    ),
    (
        "De back-up van de facturen wordt elke nacht versleuteld",
        "De back-up van de facturen wordt niet elke nacht versleuteld",
    ),
    (
        "Kopia zapasowa faktur jest szyfrowana co noc",
        "Kopia zapasowa faktur nie jest szyfrowana co noc",
    ),
    (
        "Резервная копия счетов шифруется каждую ночь",
        "Резервная копия счетов не шифруется каждую ночь",
    ),
    (
        "Резервна копія рахунків шифрується щоночі",
        "Резервна копія рахунків не шифрується щоночі",
    ),
    (
        "Säkerhetskopian av fakturorna krypteras varje natt",
        "Säkerhetskopian av fakturorna krypteras inte varje natt",
    ),
    (
        "Faturaların yedeği her gece şifrelenir",
        "Faturaların yedeği her gece şifrelenmez",
    ),
    ("部署之前重新启动支付服务", "部署之前不要重新启动支付服务"),
    (
        "リリースの前に支払いサービスを再起動する",
        "リリースの前に支払いサービスを再起動しない",
    ),
    (
        "릴리스 전에 결제 서비스를 다시 시작한다",
        "릴리스 전에 결제 서비스를 다시 시작하지 않는다",
    ),
];

/// The two texts of a change as memories: as titles, and as facts under one title.
fn pairs() -> Vec<[Value; 2]> {
    let about = json!({ "project": "alpha", "files": ["src/gateway.rs"] });
    let titles = CHANGES.iter().map(|(one, other)| {
        [("one", one), ("other", other)].map(|(id, text)| memory(id, text, about.clone()))
    });
    let facts = CHANGES.iter().map(|(one, other)| {
        [("one", one), ("other", other)].map(|(id, text)| {
            let mut fact = memory(id, "What the gateway team learned", about.clone());
            fact["facts"] = json!([text]);
            fact
        })
    });
    titles.chain(facts).collect()
}

/// What a hook adds to the conversation. What it remembers stays in the root.
fn hook_text(root: &Root, hook: &str, event: &Value) -> String {
    let mut command = binary();
    for variable in ["HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"] {
        command.env(variable, root.path());
    }
    let mut child = command
        .arg("--root")
        .arg(root.path())
        .args(["hook", hook])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(event.to_string().as_bytes()).unwrap();
    drop(pipe);
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn a_memory_that_says_something_else_is_never_hidden() {
    let mut hidden = Vec::new();
    for pair in pairs() {
        let root = Root::new();
        root.store("alpha", &pair);
        let folder = project(&root, "alpha", "main");
        let service =
            root.service_with(|inputs| inputs.project = Some(Setting::flag("-C", folder.clone())));
        let text = pair[0]["facts"][0]
            .as_str()
            .or(pair[0]["title"].as_str())
            .unwrap();
        let is_shown = |ids: Vec<String>| {
            ["one", "other"]
                .iter()
                .all(|id| ids.iter().any(|known| known == id))
        };
        let mut check = |door: &str, is_shown: bool| {
            if !is_shown {
                hidden.push(format!("{door}: {text}"));
            }
        };
        for mode in ["hybrid", "lexical"] {
            let asked = json!({ "query": text, "mode": mode });
            let answer = call(&service, "query_memories", asked).unwrap();
            check(
                mode,
                is_shown(result_ids(&answer)) && !answer.to_string().contains("\"also\""),
            );
        }
        let context = call(&service, "get_context", json!({})).unwrap();
        check("get_context", is_shown(ids(&context["recent_memories"])));
        let focused = call(&service, "get_context", json!({ "focus": text })).unwrap();
        check("focus", is_shown(ids(&focused["recent_memories"])));
        let start =
            json!({ "hook_event_name": "SessionStart", "cwd": folder, "source": "startup" });
        let start = hook_text(&root, "session-start", &start);
        check(
            "session start",
            start.contains("id one") && start.contains("id other"),
        );
        let prompt =
            json!({ "hook_event_name": "UserPromptSubmit", "cwd": folder, "prompt": text });
        let prompt = hook_text(&root, "user-prompt", &prompt);
        // It shows what is near the prompt, in languages that the encoder knows.
        check(
            "prompt",
            prompt.contains("id one") == prompt.contains("id other"),
        );
        let edit = json!({ "session_id": "s", "cwd": folder, "hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": { "file_path": folder.join("src/gateway.rs"), "old_string": "a", "new_string": "b" } });
        let edit = hook_text(&root, "pre-tool-use", &edit);
        check("edit", edit.contains("id one") && edit.contains("id other"));
    }
    assert!(
        hidden.is_empty(),
        "{} hidden:\n{}",
        hidden.len(),
        hidden.join("\n")
    );
}

#[test]
fn a_memory_that_says_something_else_is_never_called_the_same() {
    for pair in pairs() {
        let texts = |memory: &Value| -> Vec<String> {
            let fact = memory["facts"][0].as_str().map(str::to_owned);
            std::iter::once(memory["title"].as_str().unwrap().to_owned())
                .chain(fact)
                .collect()
        };
        let [one, other] = [&pair[0], &pair[1]].map(|memory| {
            let texts = texts(memory);
            Profile::of_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>())
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
fn found(one: Sample<'_>, other: Sample<'_>) -> (Vec<String>, Vec<String>) {
    let root = Root::new();
    let sample =
        |id: &str, (title, facts): Sample<'_>| memory(id, title, json!({ "facts": facts }));
    root.store("alpha", &[sample("a", one)]);
    root.store("beta", &[sample("b", other)]);
    let answer = call(&root.service(), "query_memories", json!({ "query": one.0 })).unwrap();
    assert_eq!(answer["total"], 2, "{answer}");
    let first = &answer["results"][0];
    let also = first["also"].as_array().map(|also| ids(&json!(also)));
    (result_ids(&answer), also.unwrap_or_default())
}

#[test]
fn equal_memories_are_shown_once() {
    let one = (
        "Close the pool at the end of the job",
        &["It has 30 connections."] as &[&str],
    );
    for other in [
        (
            "Close the pool at the end of the job",
            &["It has 30 connections."] as &[&str],
        ),
        (
            "close the  pool at the end of the job.",
            &["It has 30 connections"],
        ),
        (
            "**Close** the pool at the end of the job!",
            &["It has `30` connections."],
        ),
    ] {
        assert_eq!(
            found(one, other),
            (vec!["a".to_owned()], vec!["b".to_owned()]),
            "{other:?}"
        );
    }
    for other in [
        (
            "Close the pool at the end of the job",
            &["It has 40 connections."] as &[&str],
        ),
        (
            "At the end of the job, close the pool",
            &["It has 30 connections."],
        ),
    ] {
        let (results, also) = found(one, other);
        assert_eq!((results.len(), also.len()), (2, 0), "{other:?}");
    }
}

#[test]
fn of_two_memories_the_one_that_contains_the_other_is_shown() {
    let short: Sample<'_> = ("Close the pool at the end of the job", &[]);
    let long: Sample<'_> = (
        "Pools",
        &[
            "Close the pool at the end of the job.",
            "A worker has one of its own.",
        ],
    );
    // The short one is the better match, and stands in the place of the long one otherwise.
    assert_eq!(
        found(short, long),
        (vec!["b".to_owned()], vec!["a".to_owned()])
    );
    assert_eq!(
        found(long, short),
        (vec!["a".to_owned()], vec!["b".to_owned()])
    );
    // A part of a sentence is not the whole of it.
    let denied: Sample<'_> = ("Do not close the pool at the end of the job", &[]);
    assert_eq!(found(short, denied).0.len(), 2);
}

#[test]
fn a_session_starts_with_the_memory_that_contains_the_others() {
    let root = Root::new();
    let learned = |id: &str, title: &str, facts: &[&str], day: u32| {
        let created = format!("2026-03-{day:02}T00:00:00Z");
        memory(
            id,
            title,
            json!({ "project": "alpha", "facts": facts, "created_at": created }),
        )
    };
    root.store(
        "alpha",
        &[
            learned("short", "Close the pool", &[], 3),
            learned("again", "close the pool.", &[], 2),
            learned(
                "long",
                "Pools",
                &["Close the pool.", "A worker has its own."],
                1,
            ),
        ],
    );
    let folder = project(&root, "alpha", "main");
    let service =
        root.service_with(|inputs| inputs.project = Some(Setting::flag("-C", folder.clone())));
    for asked in [json!({}), json!({ "focus": "close the pool" })] {
        let context = call(&service, "get_context", asked).unwrap();
        assert_eq!(ids(&context["recent_memories"]), ["long"], "{context}");
    }
}

#[test]
fn an_approved_memory_is_not_hidden_behind_one_that_waits() {
    let root = Root::new().let_agents_review();
    root.store(
        "alpha",
        &[
            memory("approved", "Close the pool", json!({})),
            memory(
                "waits",
                "Close the pool",
                json!({ "status": "staging", "facts": ["And wait a minute."] }),
            ),
        ],
    );
    let asked = json!({ "query": "close the pool", "status": "all" });
    let answer = call(&root.service(), "query_memories", asked).unwrap();
    assert_eq!(result_ids(&answer).len(), 2, "{answer}");
}
