//! docs/teams.md: its ten commands are run unchanged, by an author and a colleague with two clones,
//! and the command of its workflow is run on what they made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::changes::git;
use crate::support::{read_text, write_file};

/// The block after a mark.
fn block(mark: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/teams.md");
    let page = read_text(page);
    let (_, rest) = page.split_once(&format!("<!-- {mark} -->")).unwrap();
    let (_, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    rest.split_once("\n```").unwrap().0.to_owned()
}

/// A person with a home folder and a clone.
struct Person {
    home: PathBuf,
    clone: PathBuf,
}

impl Person {
    fn new(folder: &Path, name: &str, remote: &Path) -> Self {
        let home = folder.join(name);
        fs::create_dir_all(home.join(".ack-mem")).unwrap();
        let clone = home.join("project");
        git(&home, &["clone", "-q", &remote.display().to_string(), "project"]);
        for (key, value) in [("user.name", name), ("user.email", "x@example.org")] {
            git(&clone, &["config", key, value]);
        }
        // Decisions are made at a terminal, or by whoever has the owner's token.
        write_file(home.join(".ack-mem/curator-token"), "a-token-of-the-owner\n");
        Self { home, clone }
    }

    /// Runs a line as a shell would, with this build as `ack-memory`.
    fn run(&self, line: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_ack-memory"));
        let path =
            format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        Command::new("sh")
            .args(["-c", line])
            .current_dir(&self.clone)
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("GIT_AUTHOR_NAME", "ana")
            .env("ACK_MEM_CURATOR_TOKEN", "a-token-of-the-owner")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap()
    }

    #[track_caller]
    fn runs(&self, line: &str) -> String {
        let done = self.run(line);
        let out = String::from_utf8(done.stdout).unwrap();
        let err = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{line}\n{out}{err}");
        out
    }
}

#[test]
fn ten_commands_lead_from_the_first_memory_to_the_whole_team() {
    let folder = tempfile::tempdir().unwrap();
    let remote = folder.path().join("remote.git");
    git(folder.path(), &["init", "-q", "--bare", "remote.git"]);
    let ana = Person::new(folder.path(), "ana", &remote);
    let words = ["commit", "-q", "--allow-empty", "-m", "first"];
    git(&ana.clone, &words);
    git(&ana.clone, &["push", "-q", "origin", "HEAD:main"]);
    let ben = Person::new(folder.path(), "ben", &remote);
    write_file(ana.clone.join("lesson.jsonl"), block("file: lesson.jsonl") + "\n");
    let author = block("run: author");
    let everybody = block("run: everybody");
    let lines: Vec<&str> = author.lines().chain(everybody.lines()).collect();
    assert_eq!(lines.len(), 10, "{lines:?}");
    for line in author.lines() {
        ana.runs(line);
    }
    let check = block("workflow");
    let check = check
        .lines()
        .find_map(|line| line.trim().strip_prefix("run: ~/ack-memory/bin/"))
        .unwrap()
        .to_owned();
    let checked = ana.runs(&check);
    assert_eq!(checked, "1 memory in 1 file: 0 errors, 0 warnings\n");
    // The pull request is merged where the remote is.
    let fetch = ben.runs("git fetch -q && git branch -r --list '*memory-mine'");
    assert_contains!(fetch, "origin/memory-mine");
    git(&remote, &["update-ref", "refs/heads/main", "refs/heads/memory-mine"]);
    let mut last = String::new();
    for line in everybody.lines() {
        last = ben.runs(line);
    }
    assert_contains!(last, "Exit code 137 in CI");
    assert!(!ben.clone.join("docs").exists(), "nothing was checked out");
    // A secret in the next pull request is seen there, at its line.
    let note = fs::read_dir(ana.clone.join("docs/memory")).unwrap().flatten();
    let note = note.map(|entry| entry.path()).find(|path| !path.ends_with("index.md")).unwrap();
    write_file(&note, read_text(&note) + "\npassword = hunter2hunter2\n");
    let failed = ana.run(&check);
    assert_eq!(failed.status.code(), Some(1));
    let out = String::from_utf8(failed.stdout).unwrap();
    let said = "::error file=docs/memory/exit-code-137";
    assert!(out.starts_with(said), "{out}");
    // Withdrawn by its author, merged, removed for everybody.
    ana.runs("git checkout -q -- docs && ack-memory reject ci-137 --scope mine");
    ana.runs("ack-memory publish mine --to-folder docs/memory --yes");
    ana.runs("git commit -qam withdrawn && git push -q");
    ben.runs("ack-memory query 'exit code 137' --exit-code");
    git(&remote, &["update-ref", "refs/heads/main", "refs/heads/memory-mine"]);
    ben.runs("git fetch -q");
    let gone: Value =
        serde_json::from_str(&ben.runs("ack-memory query 'exit code 137' --json")).unwrap();
    let found = gone["results"].as_array().map(Vec::len);
    assert_eq!(found, Some(0), "{gone:#}");
}

#[test]
fn the_workflow_runs_the_check_with_minimal_permissions() {
    let workflow = block("workflow");
    for line in [
        "  contents: read",
        "persist-credentials: false",
        "cargo install --path .ack-memory --no-default-features --locked --root ~/ack-memory",
        "run: ~/ack-memory/bin/ack-memory check docs/memory --format github",
    ] {
        assert!(workflow.contains(line), "{line}");
    }
    assert_lacks!(workflow, "secrets.", ": write");
    // It is YAML as far as this can be checked without a parser: two spaces per level, no tab.
    for line in workflow.lines() {
        let indent = line.len() - line.trim_start().len();
        assert!(indent % 2 == 0 && !line.contains('\t'), "{line}");
    }
}
