//! A command as a process: its exit code, its streams and folders, what it leaves on the disk.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{ack, ack_with_input, binary, run};
use crate::support::{Root, fingerprint, memory};

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
    assert!(served.err.contains("does not exist"), "{served:?}");
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
    root.store(
        "ledger",
        &[memory("a", "Deploy rule", json!({ "project": "ledger" }))],
    );
    let gone = |arguments: &str| {
        let folder = root.path().join("gone");
        std::fs::create_dir_all(&folder).unwrap();
        let script = format!(
            "rmdir \"$PWD\" && exec '{}' {arguments}",
            env!("CARGO_BIN_EXE_ack-memory")
        );
        let mut command = binary();
        let shell = std::mem::replace(&mut command, Command::new("sh"));
        for (name, value) in shell.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        run(command
            .current_dir(&folder)
            .stdin(Stdio::null())
            .args(["-c", &script]))
    };
    let here = format!("--root '{}'", root.path().display());
    let answer = gone(&format!("{here} --json query deploy")).json();
    assert_eq!(answer["results"][0]["id"], "a");
    assert!(answer["searched"].get("current_scope").is_none());
    assert_eq!(gone(&format!("{here} --json get a")).json()["id"], "a");
    assert_eq!(
        gone(&format!("{here} --json scopes")).json()["scopes"][0]["name"],
        "ledger"
    );
    let context = gone(&format!("{here} --json context")).json();
    assert!(
        context["notes"]
            .to_string()
            .contains("working directory was removed"),
        "{context}"
    );
    let project = root.path().join("ledger");
    std::fs::create_dir_all(&project).unwrap();
    let context = gone(&format!("{here} -C '{}' --json context", project.display())).json();
    assert_eq!(context["recent_memories"][0]["id"], "a");
    let hook = gone(&format!(
        "{here} -C '{}' hook session-start",
        project.display()
    ));
    assert!(
        hook.out.contains("Deploy rule") && hook.err.is_empty(),
        "{hook:?}"
    );
    let hook = gone(&format!("{here} hook session-start"));
    assert!(hook.code == Some(0) && hook.err.is_empty(), "{hook:?}");
    gone("--root nowhere --json query deploy").fails(1);
}

#[test]
fn exit_codes_are_0_success_1_failure_2_usage() {
    let root = Root::samples();
    let empty = Root::new();
    for (root, code, arguments) in [
        (&root, 0, vec!["query", "deadlock"]),
        (&root, 0, vec!["query", "zzzzqqqq"]),
        (&root, 0, vec!["query"]),
        (&root, 0, vec!["get", "ack_a41f0c_2025-11-24_001"]),
        (&root, 0, vec!["scopes"]),
        (&root, 0, vec!["context"]),
        (&root, 0, vec!["doctor"]),
        (&root, 0, vec!["--version"]),
        (&root, 0, vec!["--help"]),
        (&root, 0, vec!["help", "query"]),
        (&root, 1, vec!["get", "nothing"]),
        (&root, 1, vec!["query", "x", "--scope", "nothing"]),
        (&root, 1, vec!["--pin", "nothing", "query", "x"]),
        (
            &root,
            1,
            vec!["--pin", "platform", "import", "no-such-file.jsonl"],
        ),
        (&empty, 1, vec!["query", "x"]),
        (&empty, 1, vec!["get", "x"]),
        (&empty, 0, vec!["doctor"]),
        (&root, 0, vec![]),
        (&root, 2, vec!["nothing"]),
        (&root, 2, vec!["query", "--nothing"]),
        (&root, 2, vec!["query", "-n", "51"]),
        (&root, 2, vec!["query", "-n", "-1"]),
        (&root, 2, vec!["query", "-n", "many"]),
        (&root, 0, vec!["query", "--since", "yesterday"]),
        (&root, 2, vec!["query", "--since", "soon"]),
        (&root, 2, vec!["query", "--cursor", "nonsense"]),
        (&root, 2, vec!["get"]),
        (&root, 2, vec!["import", "x.jsonl"]),
        (&root, 2, vec!["completions", "nothing"]),
    ] {
        let outcome = ack(root.path(), &arguments);
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {outcome:?}");
        assert_eq!(
            outcome.out.is_empty(),
            code != 0,
            "{arguments:?}: data goes to stdout: {outcome:?}"
        );
    }
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let root = Root::samples();
    for arguments in [
        vec![
            "query",
            "--status",
            "all",
            "-n",
            "50",
            "--long",
            "--max-tokens",
            "20000",
        ],
        vec!["query", "--status", "all", "-n", "50", "--json"],
        vec!["scopes"],
        vec!["context"],
        vec!["doctor", "--json"],
        vec!["--help"],
        vec!["demo"],
        vec!["completions", "zsh"],
        vec!["completions", "bash"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = binary();
        command
            .arg("--root")
            .arg(root.path())
            .args(&arguments)
            .stdout(writer)
            .stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
        assert_eq!(error, "", "{arguments:?}");
    }
}

#[test]
fn an_unread_message_does_not_crash() {
    let root = Root::samples();
    let lines = root.path().join("bad.jsonl");
    std::fs::write(&lines, "{}\n").unwrap();
    for arguments in [
        vec!["get", "nothing"],
        vec!["query", "--nothing"],
        vec!["--pin", "new", "import", lines.to_str().unwrap()],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = binary();
        command
            .arg("--root")
            .arg(root.path())
            .args(&arguments)
            .stdout(Stdio::null())
            .stderr(writer);
        let status = command.spawn().unwrap().wait().unwrap();
        assert!(
            matches!(status.code(), Some(1 | 2)),
            "{arguments:?}: {status}"
        );
    }
}

#[test]
fn colour_is_used_only_at_terminals() {
    let root = Root::samples();
    let escape = '\u{1b}';
    let query = |environment: &[(&str, &str)]| {
        let mut command = binary();
        command.envs(environment.iter().copied());
        run(command
            .arg("--root")
            .arg(root.path())
            .args(["query", "deadlock"]))
        .ok()
    };
    assert!(!query(&[]).contains(escape), "not a terminal");
    assert!(!query(&[("TERM", "xterm-256color")]).contains(escape));
    assert!(!query(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]).contains(escape));
    assert!(
        query(&[("CLICOLOR_FORCE", "1")]).contains(escape),
        "asked for"
    );
    let forced = run(binary()
        .env("CLICOLOR_FORCE", "1")
        .arg("--root")
        .arg(root.path())
        .args(["query", "deadlock", "--json"]))
    .ok();
    assert!(!forced.contains(escape), "JSON has no colour");
    // `script` gives the command a terminal.
    let line = format!(
        "{} --root {} query deadlock",
        env!("CARGO_BIN_EXE_ack-memory"),
        root.path().display()
    );
    let terminal = |no_colour: bool| {
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("ACK_MEM_PAGER", "cat")
            .stdin(Stdio::null());
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
            command.env_remove(variable);
        }
        if no_colour {
            command.env("NO_COLOR", "1");
        }
        command
            .output()
            .ok()
            .filter(|output| output.status.success())
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    match (terminal(false), terminal(true)) {
        (Some(with), Some(without)) => {
            assert!(with.contains(escape), "{with:?}");
            assert!(!without.contains(escape), "{without:?}");
        }
        _ => eprintln!("`script` is not there: no terminal was tried"),
    }
}

#[test]
fn reading_commands_change_nothing() {
    let root = Root::samples();
    let before = fingerprint(root.path());
    for arguments in [
        vec!["query", "deadlock", "--status", "all"],
        vec!["get", "ack_a41f0c_2025-11-24_001", "--include", "links"],
        vec!["scopes"],
        vec!["context"],
        vec!["doctor"],
    ] {
        ack(root.path(), &arguments).ok();
        assert_eq!(fingerprint(root.path()), before, "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_not_reported_as_a_permission_problem() {
    if !Path::new("/dev/full").exists() {
        eprintln!("no /dev/full: this test did nothing");
        return;
    }
    let root = Root::samples();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = binary()
        .arg("--root")
        .arg(root.path())
        .args(["query", "exit code 137"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("no space left") && !error.contains("may be used"),
        "{error}"
    );
}
