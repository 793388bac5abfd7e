//! What goes wrong while a person decides: each message says what was wrong, what is allowed and
//! what to do next, and nothing is lost.

use serde_json::{Value, json};

use crate::cli::run;
use crate::curate::{decide, log};
use crate::support::{Root, memory, titled};

/// Four lessons that wait.
fn lessons() -> Root {
    let titles = [
        ("les-0001", "Use pnpm"),
        ("les-0002", "Retries need jitter"),
        ("les-0003", "The lock is held by two writers"),
        ("les-0104", "Fonts come from the disk"),
    ];
    let memories = (1..).zip(titles).map(|(day, (id, title))| {
        let created = format!("2026-01-0{day}T00:00:00Z");
        let rest = json!({ "status": "staging", "type": "gotcha", "created_at": created });
        memory(id, title, rest)
    });
    Root::with("alpha", &memories.collect::<Vec<Value>>())
}

/// What a refused command says.
#[track_caller]
fn refused(root: &Root, arguments: &[&str]) -> String {
    let outcome = run(&mut crate::curate::with_token(root.path(), arguments));
    assert_ne!(outcome.code, Some(0), "{arguments:?}: {}", outcome.out);
    assert_eq!(outcome.out, "", "{arguments:?}");
    outcome.err
}

#[test]
fn ids_that_mean_nothing_or_several_memories_are_refused_with_a_hint() {
    let root = lessons();
    let message = refused(&root, &["approve", "les-0009"]);
    assert_contains!(message, "no memory has the id `les-0009`", "did you mean `les-0001`");
    let message = refused(&root, &["approve", "les-0"]);
    assert_contains!(
        message,
        "begins the ids of several memories",
        "les-0104 in alpha",
        "give more of the id"
    );
    let many = Root::new();
    let store: Vec<Value> = (10..22).map(|n| titled(&format!("m-{n}"), "Lesson")).collect();
    many.store("alpha", &store);
    assert_contains!(refused(&many, &["reject", "m-"]), " and 4 more");
    assert!(log(&root, "alpha").is_empty());
}

#[test]
fn a_decision_that_was_made_already_is_named_and_not_written_again() {
    let root = lessons();
    decide(root.path(), &["approve", "les-0001"]).ok();
    let again = decide(root.path(), &["approve", "les-0001", "les-0002"]);
    let said = "note: les-0001 is approved already (process:ana, ";
    assert_contains!(again.err, said);
    assert_contains!(again.out, "wrote 1 decision:", "approved  les-0002");
    let again = decide(root.path(), &["approve", "les-0001"]);
    assert_eq!(again.code, Some(0));
    assert_eq!(again.out.as_str(), "nothing was decided\n");
    let output = decide(root.path(), &["approve", "les-0001", "--json"]).json();
    assert_eq!(output["written"], 0);
    assert_eq!(output["decisions"], json!([]));
    // With a reason it is new, and another verdict is another decision.
    let words = ["approve", "les-0001", "--because", "seen twice"];
    decide(root.path(), &words).ok();
    assert_contains!(
        decide(root.path(), &["approve", "les-0001", "--promote"]).ok(),
        "promoted  les-0001"
    );
}

#[test]
fn a_memory_that_was_replaced_already_is_named_and_not_replaced_again() {
    let root = lessons();
    let more = json!({ "facts": ["Seen twice."], "concepts": ["retry"] });
    root.store("beta", &[memory("more", "Retry twice", more), titled("less", "Retry thrice")]);
    for words in [
        &["replace", "les-0001", "--by", "les-0002"] as &[&str],
        &["replace", "more", "--by", "less", "--merge"],
    ] {
        decide(root.path(), words).ok();
        let again = decide(root.path(), words);
        let said =
            format!("note: {} is replaced by `{}` already (process:ana, ", words[1], words[3]);
        assert_contains!(again.err, said);
        assert_eq!(again.code, Some(0));
        assert_eq!(again.out.as_str(), "nothing was decided\n");
    }
    let again = decide(root.path(), &["replace", "more", "--by", "less", "--json"]).json();
    assert_eq!(again["written"], 0, "{again}");
    // What was merged, and what it gave the other one.
    assert_eq!((log(&root, "alpha").len(), log(&root, "beta").len()), (1, 2));
    // By another one, or with a reason, it is another decision.
    decide(root.path(), &["replace", "les-0001", "--by", "les-0003"]).ok();
    decide(root.path(), &["replace", "les-0001", "--by", "les-0003", "--because", "newer"]).ok();
    assert_eq!(log(&root, "alpha").len(), 3);
}

#[test]
fn a_memory_replaces_neither_itself_nor_what_replaced_it() {
    let root = lessons();
    let message = refused(&root, &["replace", "les-0001", "--by", "les-0001", "--merge"]);
    assert_contains!(message, "it is the same memory", "name another memory");
    decide(root.path(), &["replace", "les-0001", "--by", "les-0002"]).ok();
    let message = refused(&root, &["replace", "les-0002", "--by", "les-0001"]);
    assert_contains!(message, "already replaces `", "name another memory");
    decide(root.path(), &["replace", "les-0002", "--by", "les-0003"]).ok();
    let message = refused(&root, &["replace", "les-0003", "--by", "les-0001"]);
    assert_contains!(message, ", through others");
    let message = refused(&root, &["replace", "les-0104", "--by", "les-0001"]);
    assert_contains!(message, "`les-0002` replaced it");
    decide(root.path(), &["reject", "les-0104"]).ok();
    let message = refused(&root, &["replace", "les-0003", "--by", "les-0104", "--merge"]);
    assert_contains!(message, "it was rejected");
}

#[test]
fn a_filter_without_matches_says_what_else_matches() {
    let root = lessons();
    let other = json!({ "status": "staging", "type": "gotcha" });
    root.store("beta", &[memory("b-1", "Elsewhere", other)]);
    decide(root.path(), &["approve", "les-0001"]).ok();
    decide(root.path(), &["reject", "les-0002"]).ok();
    decide(root.path(), &["replace", "les-0003", "--by", "les-0001"]).ok();
    decide(root.path(), &["stage", "les-0104", "--until", "2w"]).ok();
    let message = refused(&root, &["reject", "--type", "gotcha", "--scope", "alpha"]);
    assert_contains!(
        message,
        "of the others that do, 1 is approved, 1 is rejected, 1 is replaced, 1 is snoozed",
        "; in scope `beta`, 1 matches and waits",
        "leave out --scope"
    );
    decide(root.path(), &["approve", "b-1", "--promote"]).ok();
    let message = refused(&root, &["approve", "--waiting"]);
    assert_contains!(message, "1 is approved, 1 is promoted", "name its id");
    assert_lacks!(message, "in scope");
}

#[test]
fn a_memory_of_another_scope_is_found_there() {
    let root = lessons();
    root.store("beta", &[titled("b-1", "Elsewhere")]);
    decide(root.path(), &["reject", "les-0002"]).ok();
    for (id, status) in [("les-0001", "waits for review"), ("les-0002", "is rejected")] {
        let message = refused(&root, &["approve", id, "--scope", "beta"]);
        let named =
            format!("scope `beta` has no memory `{id}`; it is in scope `alpha` and {status}");
        assert_contains!(message, &named, "`--scope alpha`");
    }
    let message = refused(&root, &["approve", "nothing", "--scope", "beta"]);
    assert_contains!(message, "no memory has the id `nothing`");
    // An address names the scope as well.
    let address = "memory://scope/alpha/memory/les-0001";
    let message = refused(&root, &["approve", address, "-s", "beta"]);
    assert_contains!(
        message,
        "is the address of a memory in scope `alpha`, and the scope is given as `beta`",
        "leave `--scope` out",
        "give `les-0001` instead of the address"
    );
    let message = refused(&root, &["approve", "memory://scope/gamma/memory/x"]);
    assert_contains!(message, "there is no scope `gamma`");
    assert_contains!(decide(root.path(), &["approve", address]).ok(), "approved  les-0001");
}

#[test]
fn a_blank_reason_is_none() {
    let root = lessons();
    for (id, blank) in [("les-0001", ""), ("les-0002", " \t\n")] {
        let made = decide(root.path(), &["reject", id, "--because", blank, "--json"]).json();
        assert_eq!(made["decisions"][0].get("reason"), None, "{made}");
        // So it says nothing new.
        let again = decide(root.path(), &["reject", id, "--because", blank]);
        assert_contains!(again.err, "is rejected already");
    }
    let kept = ["replace", "les-0003", "--by", "les-0104", "--because", " why ", "--json"];
    let dry = decide(root.path(), &[&kept[..], &["--dry-run"]].concat()).json();
    let made = decide(root.path(), &kept).json();
    for message in [dry, made] {
        assert_eq!(message["decisions"][0]["reason"], "why", "{message}");
    }
}
