//! What the command line says when something is wrong, and what it advises.

use serde_json::json;

use crate::cli::{ack, ack_with_input, add_scope};
use crate::support::{Root, titled, write_file};
use crate::terminal::Terminal;

#[test]
fn json_that_is_not_in_lines_is_recognised() {
    let root = Root::new();
    let import = |input: &str| {
        let arguments = ["import", "-", "--scope", "music"];
        ack_with_input(root.path(), &arguments, input.as_bytes()).fails(1)
    };
    for array in [
        r#"[{"title": "Tune it"}]"#,
        "[\n  {\"title\": \"Tune it\"},\n  {\"title\": \"Oil it\"}\n]\n",
    ] {
        let error = import(array);
        assert_contains!(error, "line 1: a JSON array, not an object");
        assert_contains!(error, "jq -c '.[]' FILE");
    }
    assert_contains!(import("{\n  \"title\": \"Tune it\"\n}\n"), "jq -c . FILE");
    // A file of lines with one mistake is not an array.
    assert_lacks!(import("{\"title\": \"Tune it\"}\n[1]\n"), "jq");
    assert!(!root.path().join("scopes/music/memory.db").exists());
}

#[test]
fn a_name_that_no_scope_can_have_is_answered_with_one_that_it_can() {
    let root = Root::new();
    for (name, like) in [
        ("My Project", "for instance `my-project`; use up to 64"),
        ("acme/web app!", "for instance `acme-web-app`; use"),
        ("..", "hint: use up to 64"),
        (&"x y".repeat(40), "for instance `x-yx-yx-y"),
    ] {
        let arguments = ["import", "-", "--scope", name];
        let error = ack_with_input(root.path(), &arguments, b"{\"title\": \"a\"}\n").fails(2);
        assert_contains!(error, like);
    }
}

#[test]
fn a_value_given_in_the_wrong_way_is_answered_with_the_right_one() {
    let root = Root::with("music", &[titled("m-1", "Tune it")]);
    let tips = "\
        review music --list => to name a scope, use `--scope music`
        scopes music => to name a scope, use `--scope music`
        review store --list => to name a scope, use `--scope store`
        import lines.jsonl music => to name a scope, use `--scope music`
        publish --scope music => give the scope without `--scope`
        context --focus music => give the focus without `--focus`
        query --query=music => give the query without `--query`
        get --id m-1 => give the id without `--id`
        connect --client codex => give the client without `--client`
        scopes remove --name music => give the name without `--name`
        query docker --in-scope music => `--scope NAME`
        query docker --in-project=music => `--project NAME`
        query docker --full => `--long`
        query --page 1 => query --next
        --project music context => `-C DIR`
        -s music context => `--pin NAME`
        scopes list => `ack-memory scopes`
        scopes claim => scopes set NAME paths+=.";
    for line in tips.lines() {
        let (line, tip) = line.trim().split_once(" => ").unwrap();
        let arguments: Vec<&str> = line.split(' ').collect();
        let error = ack(root.path(), &arguments).fails(2);
        assert!(error.contains(tip), "{line}: {error}");
        assert_lacks!(error, "similar argument"; "{line}");
    }
    // What no scope can be keeps its own error.
    let error = ack(root.path(), &["review", "--lst"]).fails(2);
    assert_lacks!(error, "to name a scope");
}

#[test]
#[cfg(feature = "table")]
fn without_scopes_there_is_nothing_to_index_and_that_is_said() {
    let root = Root::new();
    for arguments in [&["index"][..], &["index", "--all"]] {
        let error = ack(root.path(), arguments).fails(1);
        assert_contains!(error, "no memories yet: there is no scope"; "{arguments:?}");
    }
}

#[test]
#[cfg(feature = "table")]
fn index_names_the_setting_that_contradicts_all() {
    let root = Root::with("music", &[titled("m-1", "Tune it")]);
    for (arguments, named) in [
        (&["index", "--scope", "music", "--all"][..], "`--scope`"),
        (&["--pin", "music", "index", "--all"], "`--pin`"),
    ] {
        let error = ack(root.path(), arguments).fails(2);
        assert_contains!(error, &format!("{named} is given together with --all"));
        assert_contains!(error, "by its name: music");
    }
}

#[test]
fn eval_takes_the_ids_that_query_prints_and_says_what_is_wrong_with_a_line() {
    let memories = [
        titled("ack_one_1", "Tune the xylophone"),
        titled("ack_two_1", "Oil the hinges"),
        titled("ack_two_2", "Oil the chain"),
    ];
    let root = Root::with("music", &memories);
    let file = root.path().join("queries.jsonl");
    let eval = |text: &str| {
        write_file(&file, text);
        ack(root.path(), &["eval", "--json", file.to_str().unwrap()])
    };
    write_file(&file, r#"{"text": "xylophone", "relevant": ["one"]}"#);
    let table = ack(root.path(), &["eval", file.to_str().unwrap()]).ok();
    let heading: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heading, ["queries", "Recall@5", "Recall@10", "MRR@10", "nDCG@10"]);
    // A prefix of an id, with and without the prefix of its program.
    for id in ["one", "ack_one", "ack_one_1"] {
        let line = json!({ "text": "xylophone", "relevant": [id] });
        let report = eval(&format!("\u{feff}{line}")).json();
        for mode in report["modes"].as_array().unwrap() {
            assert_eq!(mode["all"]["recall_5"]["mean"], 1.0, "{id}: {report}");
        }
    }
    // An id that nothing can find is named, and only once.
    let line = r#"{"text": "xylophone", "relevant": ["one", "absent"]}"#;
    assert_eq!(eval(line).json()["unknown_ids"], json!(["absent"]));
    let said = ack(root.path(), &["eval", file.to_str().unwrap()]).ok();
    let warning =
        "Warning: no searched scope contains 1 relevant id (absent); it is counted as not";
    assert_contains!(said, warning);
    let wrong = r#"
        {"text": "x", "relevant": ["two"]} => query `1`: 2 ids begin with `two`
        {"text": "x"} => line 1: missing field `relevant`
        {"text": "x", "relevant": [], "filter": {"tags": ["a"]}} => line 1: `filter.tags`: unknown field `tags`
        {"text": "x", "relevant": [], "filter": {"since": "last week"}} => line 1: `filter.since`: last week is not a day
        {"text": "x", "relevant": "a"} => line 1: `relevant`: invalid type
        {"text": "x" => line 1: not a JSON object: see column"#;
    let wrong = wrong.lines().skip(1).map(|line| line.trim().split_once(" => ").unwrap());
    for (text, expected) in wrong.chain([("\n", "the file has no queries")]) {
        let answer: serde_json::Value = serde_json::from_str(&eval(text).fails(2)).unwrap();
        let message = answer["message"].as_str().unwrap();
        assert!(message.starts_with(expected), "{text}: {answer}");
    }
}

#[test]
fn a_reference_that_approves_nothing_is_reported_when_it_is_set() {
    let root = Root::new();
    let notes = root.path().join("notes");
    std::fs::create_dir(&notes).unwrap();
    write_file(notes.join("a.md"), "# Tune it\n");
    add_scope(root.path(), "notes", &notes).ok();
    let outcome = ack(root.path(), &["scopes", "set", "notes", "ref=main"]);
    let said = "note: `ref = \"main\"`: the folder is in no git";
    assert_contains!(outcome.err, said);
    outcome.ok();
    let outcome = ack(root.path(), &["scopes", "set", "notes", "description=mine"]);
    assert_eq!(outcome.err, "");
}

#[test]
fn a_query_that_cannot_be_stored_is_reported() {
    let root = Root::with("music", &[titled("m-1", "Tune it")]);
    let mut terminal = Terminal::new();
    // The cache folder is a file, so nobody can write into it, whoever runs this test.
    let cache = terminal.home.path().join("cache");
    write_file(&cache, "");
    let mut run = |arguments: &[&str]| {
        let mut command = terminal.command(root.path(), arguments);
        command.env("XDG_CACHE_HOME", &cache);
        if cfg!(target_os = "macos") {
            command.env("HOME", &cache);
        }
        terminal.run(&mut command, "").out
    };
    let output = run(&["query", "tune"]);
    assert_contains!(output, "your cache folder cannot be written");
    assert_lacks!(run(&["-q", "query", "tune"]), "cache folder");
    let output = run(&["get", "1"]);
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_contains!(output, "there was none in the last day");
}
