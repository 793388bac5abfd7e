//! A command as a process: its exit code, its streams and folders, what it leaves on the disk.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{ack, ack_with_input, binary, run};
use crate::support::{Root, memory, write_file};

#[test]
fn a_missing_folder_is_an_error_for_commands_but_not_for_hooks() {
    let root = Root::samples();
    let missing = root.path().join("ledgr-api");
    let missing = missing.to_str().unwrap();
    let file = root.path().join("scopes/platform/memory.db");
    for (folder, command) in [
        (missing, &["context"][..]),
        (missing, &[]),
        (missing, &["doctor"]),
        (file.to_str().unwrap(), &["query", "x"]),
    ] {
        let error = ack(root.path(), &[&["-C", folder], command].concat()).fails(2);
        assert_eq!(error, format!("error: there is no folder {folder}\n"));
    }
    let hook = ["-C", missing, "hook", "session-start"];
    let event = br#"{"hook_event_name":"SessionStart","source":"startup"}"#;
    let outcome = ack_with_input(root.path(), &hook, event);
    assert_eq!((outcome.code, &*outcome.err), (Some(0), ""), "{outcome:?}");
    // A server still has what is shared.
    let served = ack_with_input(root.path(), &["-C", missing, "serve"], b"");
    assert_eq!(served.code, Some(0), "{served:?}");
    assert_contains!(served.err, "does not exist");
    // Nor did a person type what a host put into the environment.
    let mut command = binary();
    command.env("CLAUDE_PROJECT_DIR", missing);
    command.arg("--root").arg(root.path());
    run(command.args(["query", "deadlock"])).ok();
}

#[test]
#[cfg(unix)]
fn a_removed_working_directory_stops_only_commands_that_need_it() {
    let root = Root::new();
    root.store("ledger", &[memory("a", "Deploy rule", json!({ "project": "ledger" }))]);
    let gone = |arguments: &str| {
        let folder = root.path().join("gone");
        std::fs::create_dir_all(&folder).unwrap();
        let script =
            format!("rmdir \"$PWD\" && exec '{}' {arguments}", env!("CARGO_BIN_EXE_ack-memory"));
        let mut command = binary();
        let shell = std::mem::replace(&mut command, Command::new("sh"));
        for (name, value) in shell.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        run(command.current_dir(&folder).stdin(Stdio::null()).args(["-c", &script]))
    };
    let here = format!("--root '{}'", root.path().display());
    let answer = gone(&format!("{here} --json query deploy")).json();
    assert_eq!(answer["results"][0]["id"], "a");
    assert!(answer["searched"].get("current_scope").is_none());
    assert_eq!(gone(&format!("{here} --json get a")).json()["id"], "a");
    let found = &gone(&format!("{here} --json scopes")).json()["scopes"][0]["name"];
    assert_eq!(*found, "ledger");
    let context = gone(&format!("{here} --json context")).json();
    let said = "working directory was removed";
    assert_contains!(context["notes"].to_string(), said);
    let project = root.path().join("ledger");
    std::fs::create_dir_all(&project).unwrap();
    let context = gone(&format!("{here} -C '{}' --json context", project.display())).json();
    assert_eq!(context["recent_memories"][0]["id"], "a");
    let hook = gone(&format!("{here} -C '{}' hook session-start", project.display()));
    assert_contains!(hook.out, "Deploy rule");
    assert_eq!(hook.err, "");
    let hook = gone(&format!("{here} hook session-start"));
    assert!(hook.code == Some(0) && hook.err.is_empty(), "{hook:?}");
    gone("--root nowhere --json query deploy").fails(1);
}

#[test]
fn exit_codes_are_0_success_1_failure_2_usage() {
    let root = Root::samples();
    let empty = Root::new();
    for (root, code, lines) in [
        (
            &root,
            0,
            "query deadlock|query zzzzqqqq|query|query --since yesterday|scopes|context|doctor\
             |get ack_a41f0c_2025-11-24_001|--version|--help|help query",
        ),
        (
            &root,
            1,
            "get nothing|query x --scope nothing|--pin nothing query x\
             |--pin platform import no-such-file.jsonl",
        ),
        (
            &root,
            2,
            "nothing|query --nothing|query -n 51|query -n -1|query -n many|query --since soon\
             |query --cursor nonsense|get|import x.jsonl|completions nothing",
        ),
        (&empty, 0, "doctor"),
        (&empty, 1, "query x|get x"),
    ] {
        for line in lines.split('|') {
            let arguments: Vec<&str> = line.split(' ').collect();
            let outcome = ack(root.path(), &arguments);
            assert_eq!(outcome.code, Some(code), "{line}: {outcome:?}");
            // Data goes to standard output.
            assert_eq!(outcome.out.is_empty(), code != 0, "{line}: {outcome:?}");
        }
    }
    let bare = ack(root.path(), &[]);
    assert_eq!((bare.code, bare.out.is_empty()), (Some(0), false));
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let root = Root::samples();
    let lines = "query --status all -n 50 --long --max-tokens 20000|query --status all -n 50 --json\
        |scopes|context|doctor --json|--help|demo|completions zsh|completions bash";
    for line in lines.split('|') {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = binary();
        command.arg("--root").arg(root.path()).args(line.split(' '));
        let command = command.stdout(writer).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {error}");
        assert_eq!(error, "", "{line}");
    }
}

#[test]
fn an_unread_message_does_not_crash() {
    let root = Root::samples();
    let lines = root.path().join("bad.jsonl");
    write_file(&lines, "{}\n");
    for arguments in [
        vec!["get", "nothing"],
        vec!["query", "--nothing"],
        vec!["--pin", "new", "import", lines.to_str().unwrap()],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = binary();
        command.arg("--root").arg(root.path()).args(&arguments);
        let command = command.stdout(Stdio::null()).stderr(writer);
        let code = command.spawn().unwrap().wait().unwrap().code();
        assert!(matches!(code, Some(1 | 2)), "{arguments:?}: {code:?}");
    }
}

#[test]
fn colour_is_used_only_at_terminals() {
    let root = Root::samples();
    let escape = "\u{1b}";
    let query = |environment: &[(&str, &str)], more: &[&str]| {
        let mut command = binary();
        command.envs(environment.iter().copied());
        command.arg("--root").arg(root.path());
        run(command.args(["query", "deadlock"]).args(more)).ok()
    };
    let forced = ("CLICOLOR_FORCE", "1");
    assert_lacks!(query(&[], &[]), escape; "not a terminal");
    assert_lacks!(query(&[("TERM", "xterm-256color")], &[]), escape);
    assert_lacks!(query(&[("NO_COLOR", "1"), forced], &[]), escape);
    assert_contains!(query(&[forced], &[]), escape; "asked for");
    assert_lacks!(query(&[forced], &["--json"]), escape; "JSON has no colour");
}

#[test]
fn a_full_disk_is_not_reported_as_a_permission_problem() {
    if !Path::new("/dev/full").exists() {
        eprintln!("no /dev/full: this test did nothing");
        return;
    }
    let root = Root::samples();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let mut command = binary();
    command.arg("--root").arg(root.path()).args(["query", "exit code 137"]);
    let command = command.stdout(full.unwrap()).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_contains!(error, "no space left");
    assert_lacks!(error, "may be used");
}
