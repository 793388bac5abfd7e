//! `connect --here` in somebody else's repository: nothing is written through a link that leads out
//! of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::connect::{Home, contents};
use crate::support::{read_text, write_file};

/// The files that `connect --here` writes, by client.
const FILES: [(&str, &str); 17] = [
    ("claude-code", ".mcp.json"),
    ("claude-code", ".claude/settings.local.json"),
    ("codex", ".codex/config.toml"),
    ("codex", ".codex/hooks.json"),
    ("cursor", ".cursor/mcp.json"),
    ("cursor", ".cursor/hooks.json"),
    ("vscode", ".vscode/mcp.json"),
    ("gemini", ".gemini/settings.json"),
    ("copilot", ".mcp.json"),
    ("copilot", ".github/hooks/ack-memory.json"),
    ("opencode", "opencode.json"),
    ("qwen", ".qwen/settings.json"),
    ("roo", ".roo/mcp.json"),
    ("zed", ".zed/settings.json"),
    ("amp", ".amp/settings.json"),
    ("kiro", ".kiro/settings/mcp.json"),
    ("junie", ".junie/mcp/mcp.json"),
];

/// A home with a clone of somebody's repository, and a folder of its owner.
struct Clone {
    home: Home,
    repository: PathBuf,
    private: PathBuf,
}

impl Clone {
    fn new() -> Self {
        let home = Home::new();
        let (repository, private) = (home.path("src/clone"), home.path("private"));
        fs::create_dir_all(repository.join(".git/objects")).unwrap();
        fs::create_dir_all(repository.join(".git/refs/heads")).unwrap();
        write_file(repository.join(".git/HEAD"), "ref: refs/heads/main\n");
        fs::create_dir_all(&private).unwrap();
        write_file(private.join("profile"), "alias = 1\n");
        Self {
            home,
            repository,
            private,
        }
    }

    /// A link in the repository.
    fn link(&self, to: &Path, name: &str) {
        let path = self.repository.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> crate::cli::Outcome {
        let here = self.repository.to_str().unwrap();
        self.home
            .run(&[&["-C", here][..], arguments, &["--here"]].concat())
    }

    /// Checks that a client is refused, with and without `--dry-run`, and that nothing was written.
    #[track_caller]
    fn is_refused(&self, command: &str, client: &str, said: &str) {
        let before = contents(self.home.0.path());
        for flag in ["--dry-run", "--yes"] {
            let error = self.run(&[command, client, flag]).fails(1);
            assert_contains!(error, said, "was not changed"; "{client} {flag}");
            assert_eq!(contents(self.home.0.path()), before, "{client} {flag}");
        }
    }
}

#[test]
fn no_part_of_a_path_is_a_link_out_of_the_repository() {
    for (client, file) in FILES {
        let parts: Vec<&str> = file.split('/').collect();
        for count in 1..=parts.len() {
            let name = parts[..count].join("/");
            let is_file = count == parts.len();
            // An existing file or folder of the owner, one behind two links, and nothing yet.
            let clone = Clone::new();
            let there = if is_file { "profile" } else { "" };
            clone.link(&clone.private.join(there), &name);
            let private = clone.private.canonicalize().unwrap();
            clone.is_refused("connect", client, private.to_str().unwrap());

            let clone = Clone::new();
            clone.link(&clone.private.join(there), "docs/shortcut");
            clone.link(&clone.repository.join("docs/shortcut"), &name);
            let private = clone.private.canonicalize().unwrap();
            clone.is_refused("connect", client, private.to_str().unwrap());

            let clone = Clone::new();
            clone.link(&clone.private.join("new"), &name);
            clone.is_refused("connect", client, "does not exist");
        }
    }
}

#[test]
fn a_link_into_the_folder_of_git_is_refused() {
    let clone = Clone::new();
    clone.link(Path::new(".git"), ".cursor");
    clone.is_refused("connect", "cursor", "/.git/");
}

#[test]
fn a_backup_is_not_written_through_a_link() {
    for (client, file) in FILES {
        for there in ["profile", "new"] {
            let clone = Clone::new();
            let path = clone.repository.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if client == "codex" && file.ends_with("toml") {
                write_file(&path, "model = \"m\"\n");
            } else {
                write_file(&path, "{}\n");
            }
            let text = format!("{file}.before-ack-memory");
            clone.link(&clone.private.join(there), &text);
            clone.is_refused("connect", client, "is a link");
        }
    }
}

#[test]
fn disconnect_changes_nothing_behind_a_link_either() {
    for (client, folder) in [
        ("cursor", ".cursor"),
        ("codex", ".codex"),
        ("qwen", ".qwen"),
    ] {
        let clone = Clone::new();
        clone.run(&["connect", client, "--yes"]).ok();
        let moved = clone.private.join("moved");
        fs::rename(clone.repository.join(folder), &moved).unwrap();
        clone.link(&moved, folder);
        let real = moved.canonicalize().unwrap();
        clone.is_refused("disconnect", client, real.to_str().unwrap());
    }
}

#[test]
fn a_link_to_another_file_of_the_repository_is_followed() {
    let clone = Clone::new();
    let shared = clone.repository.join(".mcp.json");
    write_file(&shared, "{}\n");
    clone.link(Path::new("../.mcp.json"), ".cursor/mcp.json");
    clone.link(Path::new("tools/qwen"), ".qwen");
    fs::create_dir_all(clone.repository.join("tools/qwen")).unwrap();
    let before = contents(&clone.repository);
    for client in ["cursor", "qwen"] {
        clone.run(&["connect", client, "--yes"]).ok();
    }
    assert_contains!(read_text(&shared), "ack-memory");
    assert!(clone.repository.join(".cursor/mcp.json").is_symlink());
    let qwen = clone.repository.join("tools/qwen/settings.json");
    assert_contains!(read_text(qwen), "ack-memory");
    for client in ["cursor", "qwen"] {
        clone.run(&["disconnect", client, "--yes"]).ok();
    }
    assert_eq!(contents(&clone.repository), before);
}

#[test]
fn another_name_of_the_same_file_is_mentioned_and_not_changed() {
    let clone = Clone::new();
    let other = clone.private.join("settings");
    write_file(&other, "{}\n");
    fs::hard_link(&other, clone.repository.join(".mcp.json")).unwrap();
    for flag in ["--dry-run", "--yes"] {
        let shown = clone.run(&["connect", "claude-code", flag]);
        assert_contains!(shown.err, "hard link"; "{flag}");
        assert_eq!(read_text(&other), "{}\n", "{flag}");
    }
    assert_contains!(read_text(clone.repository.join(".mcp.json")), "ack-memory");
}
