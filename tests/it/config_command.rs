//! `config`: its path, the effective settings, and an editor.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::cli::{Outcome, ack, binary, run};
use crate::support::{Root, read_text, write_file};
use crate::terminal::Session;

/// An editor that writes a text into the file, or the next one of several.
fn editor(folder: &Path, texts: &[&str]) -> String {
    for (number, text) in texts.iter().enumerate() {
        write_file(folder.join(format!("{number}.toml")), text);
    }
    let script = folder.join("editor");
    let body = format!(
        "#!/bin/sh\ncd '{}'\nnext=$(ls [0-9].toml | head -n 1)\nmv \"$next\" \"$1\"\n",
        folder.display()
    );
    write_file(&script, body);
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    script.display().to_string()
}

fn edit(root: &Root, editor: &str) -> Outcome {
    run(binary().env("EDITOR", editor).arg("--root").arg(root.path()).args(["config", "edit"]))
}

#[test]
fn config_path_show_and_schema_report_the_effective_settings() {
    let root = Root::new();
    let path = root.path().join("config.toml");
    write_file(&path, "[limits]\ntokens = 700\n");
    let output = ack(root.path(), &["config", "path"]).ok();
    assert_eq!(output.trim(), path.to_str().unwrap());
    let output = ack(root.path(), &["config", "show"]).ok();
    let line = output.lines().find(|line| line.starts_with("limits.tokens"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    assert_eq!(words, ["limits.tokens", "700", "config.toml"]);
    let answer = ack(root.path(), &["config", "show", "--json"]).json();
    let of = |name: &str| {
        answer.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone()
    };
    assert_eq!(of("limits.seconds")["source"], "default");
    let schema: Value = ack(root.path(), &["config", "schema"]).json();
    let kept = read_text("schemas/config.json");
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(schema["properties"], kept["properties"]);
    // The path of a broken file is printed anyway.
    write_file(&path, "= nonsense");
    ack(root.path(), &["config", "path"]).ok();
    for arguments in [&["config", "show"][..], &["setup", "--dry-run"]] {
        let error = ack(root.path(), arguments).fails(1);
        for command in ["config edit`", "doctor`"] {
            assert!(error.contains(command), "{arguments:?}: {error}");
        }
        assert_lacks!(error, "docs/");
    }
}

#[test]
fn config_edit_without_a_terminal_needs_a_named_editor() {
    let root = Root::new();
    let mut command = binary();
    command.env_remove("VISUAL").env_remove("EDITOR");
    command.arg("--root").arg(root.path()).args(["config", "edit"]);
    let error = run(&mut command).fails(2);
    assert_contains!(error, "EDITOR", "config path");
}

#[test]
fn config_edit_says_what_is_wrong_afterwards() {
    let (root, tools) = (Root::new(), tempfile::TempDir::new().unwrap());
    let path = root.path().join("config.toml");
    let good = "[limits]\ntokens = 700\n";
    edit(&root, &editor(tools.path(), &[good])).ok();
    assert_eq!(read_text(&path), good);
    for bad in ["[limits]\ntokens = 0\n", "limts = 1\n", "[tools]\nset = \"nothing\"\n"] {
        let outcome = edit(&root, &editor(tools.path(), &[bad]));
        assert_ne!(outcome.code, Some(0), "{bad}");
        assert_contains!(outcome.err, path.to_str().unwrap());
        assert_eq!(read_text(&path), bad);
    }
    edit(&root, &editor(tools.path(), &[good])).ok();
    let output = edit(&root, &editor(tools.path(), &[good])).ok();
    assert_contains!(output, "nothing was changed");
    edit(&root, "false").fails(1);
}

#[test]
fn without_a_command_the_project_its_scope_and_what_is_wrong_are_shown() {
    let root = Root::samples();
    let home = tempfile::TempDir::new().unwrap();
    let project = root.path().join("ledger-api");
    std::fs::create_dir(&project).unwrap();
    let alone = |root: &Path, json: bool| {
        let mut command = binary();
        command
            .env("HOME", home.path())
            .env("PATH", home.path())
            .arg("-C")
            .arg(&project)
            .arg("--root")
            .arg(root);
        if json {
            command.arg("--json");
        }
        run(&mut command)
    };
    let output = alone(root.path(), false).ok();
    for part in [
        project.to_str().unwrap(),
        "scope ledger-api, found by",
        "4 unreviewed",
        "nothing is wrong",
    ] {
        assert_contains!(output, part);
    }
    let answer = alone(root.path(), true).json();
    assert_eq!(answer["current_scope"], "ledger-api");
    let empty = Root::new();
    assert_contains!(alone(empty.path(), false).ok(), " setup\n");
}

#[test]
fn serve_at_a_terminal_explains_that_it_waits_for_a_client() {
    let root = Root::samples();
    let mut command = binary();
    command.arg("--root").arg(root.path()).arg("serve");
    let mut terminal = Session::start(command);
    terminal.expect("waiting for an MCP client").press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
}
