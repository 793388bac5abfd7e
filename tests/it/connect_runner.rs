//! `npx`, `uvx` and `pipx run` start the program from a cache: no configuration names that cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::cli::{Outcome, binary, run};
use crate::connect::{CLIENTS, Home, contents};

/// A home with the program in a cache, as a package runner puts it there.
struct Cached {
    home: Home,
    program: PathBuf,
    /// The folders that the runner puts on the PATH, and the one that holds the runners.
    path: std::ffi::OsString,
}

impl Cached {
    fn new(program: &str, on_path: &str) -> Self {
        let home = Home::new();
        let program = home.path(program);
        put(&program);
        let folder = home.path(on_path);
        if !folder.join("ack-memory").exists() {
            put(&folder.join("ack-memory"));
        }
        for runner in ["npx", "uvx", "pipx"] {
            executable(&home.write(&format!("bin/{runner}"), "#!/bin/sh\n"));
        }
        let path = std::env::join_paths([folder, home.path("bin")]).unwrap();
        Self { home, program, path }
    }

    fn npx() -> Self {
        Self::new(
            ".npm/_npx/0e6d932f0e3be3cb/node_modules/ack-memory-linux-x64/bin/ack-memory",
            ".npm/_npx/0e6d932f0e3be3cb/node_modules/.bin",
        )
    }

    fn uvx() -> Self {
        let folder = ".cache/uv/archive-v0/8Xb7eNxCjI5malGI/bin";
        Self::new(&format!("{folder}/ack-memory"), folder)
    }

    fn pipx() -> Self {
        let program = ".cache/pipx/b487b696446c1f4/bin/ack-memory";
        Self::new(program, "empty").without("empty/ack-memory")
    }

    fn without(self, name: &str) -> Self {
        std::fs::remove_file(self.home.path(name)).unwrap();
        self
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        let usual = binary();
        let mut command = Command::new(&self.program);
        command.current_dir(usual.get_current_dir().unwrap());
        for (variable, value) in usual.get_envs() {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        let mut command = self.home.prepared(command);
        run(command.env("PATH", &self.path).args(arguments))
    }

    fn entry(&self, client: &str) -> Value {
        let file = self.home.settings(client);
        self.home.json(file)["mcpServers"]["ack-memory"].clone()
    }
}

/// Copies the program there: a link would lead back to where it was built.
fn put(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let built = env!("CARGO_BIN_EXE_ack-memory");
    if std::fs::hard_link(built, path).is_err() {
        std::fs::copy(built, path).unwrap();
    }
}

fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_program_in_a_cache_is_started_by_its_runner() {
    for (cached, runner, words, command) in [
        (Cached::npx(), "npx", vec!["-y", "ack-memory"], "npx -y ack-memory "),
        (Cached::uvx(), "uvx", vec!["ack-memory"], "uvx ack-memory "),
        (Cached::pipx(), "pipx", vec!["run", "ack-memory"], "pipx run ack-memory "),
    ] {
        let root = cached.home.path(".ack-mem");
        let mut expected: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        expected.extend(["--root", root.to_str().unwrap(), "serve"].map(str::to_owned));
        let before = contents(cached.home.0.path());

        let outcome = cached.run(&["connect", "claude-code", "--yes"]);
        assert_contains!(outcome.err, "install it");
        outcome.ok();
        let entry = cached.entry("claude-code");
        assert_eq!(entry["command"], runner);
        assert_eq!(entry["args"], json!(expected));
        let hooks = cached.home.json(".claude/settings.json");
        let hook = hooks.pointer("/hooks/SessionStart/0/hooks/0/command");
        let hook = hook.and_then(Value::as_str).unwrap();
        assert!(hook.starts_with(command), "{hook}");

        // A client with a window may have another PATH.
        cached.run(&["connect", "cursor", "--yes"]).ok();
        let entry = cached.entry("cursor");
        let path = cached.home.path("bin").join(runner);
        assert_eq!(entry["command"], path.to_str().unwrap());
        assert_eq!(entry["args"], json!(expected));

        // A command that is printed can be typed.
        let outcome = cached.run(&["query", "lock"]).fails(1);
        let typed = command.replace("-y ", "") + "setup";
        assert_contains!(outcome, &format!("`{typed}`"));

        // Both are recognised again: by `connect`, by `doctor` and by `disconnect`.
        let again = cached.run(&["connect", "claude-code", "--yes"]).ok();
        assert_contains!(again, "already connected");
        let doctor = cached.run(&["doctor"]);
        for line in ["Claude Code", "Cursor"] {
            let line = doctor.out.lines().find(|text| text.contains(line));
            let line = line.unwrap_or_else(|| panic!("{doctor:?}"));
            assert_contains!(line, "connected, session hook on");
        }
        for client in ["claude-code", "cursor"] {
            cached.run(&["disconnect", client, "--yes"]).ok();
        }
        assert_eq!(contents(cached.home.0.path()), before);
    }
}

#[test]
fn a_runner_that_is_not_on_the_path_is_not_written() {
    let cached = Cached::uvx().without("bin/uvx");
    cached.run(&["connect", "claude-code", "--yes"]).ok();
    assert_eq!(cached.entry("claude-code")["command"], "pipx");
    let cached = cached.without("bin/pipx");
    let error = cached.run(&["connect", "claude-code", "--yes"]).fails(1);
    assert_contains!(error, "is in a cache");
}

#[test]
fn a_program_that_is_also_installed_is_named_as_it_is_installed() {
    let cached = Cached::uvx();
    std::fs::hard_link(&cached.program, cached.home.path("bin/ack-memory")).unwrap();
    cached.run(&["connect", "claude-code", "--yes"]).ok();
    assert_eq!(cached.entry("claude-code")["command"], "ack-memory");
}

#[test]
fn a_name_on_the_path_of_an_environment_alone_is_not_written() {
    let home = Home::new();
    let program = home.path("venv/bin/ack-memory");
    put(&program);
    let mut command = home.prepared(Command::new(&program));
    command.env("VIRTUAL_ENV", home.path("venv"));
    command.env("PATH", home.path("venv/bin"));
    run(command.args(["connect", "claude-code", "--yes"])).ok();
    let entry = &home.json(".claude.json")["mcpServers"]["ack-memory"];
    assert_eq!(entry["command"], program.to_str().unwrap());
}

#[test]
fn nothing_is_written_if_it_is_not_known_what_starts_the_program_again() {
    let cached = Cached::new(
        ".cache/pnpm/dlx/fd2/node_modules/ack-memory-linux-x64/bin/ack-memory",
        ".cache/pnpm/dlx/fd2/node_modules/.bin",
    );
    let before = contents(cached.home.0.path());
    for client in CLIENTS {
        let error = cached.run(&["connect", client, "--yes"]).fails(1);
        assert_contains!(error, "is in a cache", "npm install --global");
    }
    assert_eq!(contents(cached.home.0.path()), before);
    // An entry that was written by another way of starting can be removed.
    cached.run(&["disconnect", "claude-code", "--yes"]).ok();
}
