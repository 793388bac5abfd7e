//! Publishing a folder of notes some of which cannot be read: what is published stays, and the
//! message names the files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::changes::git;
use crate::cli::{Outcome, ack};
use crate::support::{Root, memory};

/// A root with a scope over committed notes, the repository, and the notes' folder.
fn scene() -> (Root, TempDir, PathBuf) {
    let repository = tempfile::tempdir().unwrap();
    git(repository.path(), &["init", "-q"]);
    let notes = repository.path().join("docs/memory");
    fs::create_dir_all(&notes).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(
            notes.join(format!("{name}.md")),
            format!("# Deploy {name}\n\nText.\n"),
        )
        .unwrap();
    }
    let lines = |id: &str| json!({ "id": id, "title": format!("Deploy {id}") }).to_string();
    fs::write(
        notes.join("l.jsonl"),
        format!("{}\n{}\n", lines("l-1"), lines("l-2")),
    )
    .unwrap();
    fs::write(notes.join("one.jsonl"), format!("{}\n", lines("o-1"))).unwrap();
    commit(repository.path());
    let root = Root::new();
    root.manifest(
        "n",
        &format!("store = '{}'\nref = 'main'\n", notes.display()),
    );
    (root, repository, notes)
}

fn commit(folder: &Path) {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", "notes"]);
}

fn publish(root: &Root, to: &Path, more: &[&str]) -> Outcome {
    let to = to.to_str().unwrap();
    let words = ["publish", "n", "--to-folder", to];
    let words: Vec<&str> = words.iter().chain(more).copied().collect();
    ack(root.path(), &words)
}

/// A way to make a committed note unreadable: its name, its content, what the message says.
fn damages() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let second_broken = b"{\"id\": \"l-1\", \"title\": \"Deploy l-1\"}\n{\"id\": \"l-2\", \"tit\n";
    let too_large = [b"# Deploy a\n\n".as_slice(), &vec![b'x'; 9 << 20]].concat();
    vec![
        ("a.md", b"# Deploy\0a\n".to_vec(), "is not text"),
        ("a.md", b"\xFF\xFE#\0 \0a\0".to_vec(), "is UTF-16"),
        ("a.md", pointer.to_vec(), "Git LFS pointer"),
        ("a.md", too_large, "larger than 8 MB"),
        ("l.jsonl", second_broken.to_vec(), "line 2 was left out"),
        (
            "one.jsonl",
            b"{\"id\": \"o-1\", \"tit\n".to_vec(),
            "line 1 was left out",
        ),
    ]
}

#[test]
fn a_committed_note_that_cannot_be_read_stops_publishing() {
    for is_checked_out in [true, false] {
        for (name, content, why) in damages() {
            let (root, repository, notes) = scene();
            let out = tempfile::tempdir().unwrap();
            publish(&root, out.path(), &["--yes"]).ok();
            fs::write(notes.join(name), content).unwrap();
            commit(repository.path());
            if !is_checked_out {
                git(repository.path(), &["checkout", "-q", "--detach", "HEAD~1"]);
            }
            let scopes = ack(root.path(), &["scopes", "--scope", "n"]).ok();
            assert!(scopes.contains(name), "{scopes}");
            assert!(!scopes.contains("partial clone"), "{scopes}");
            let refused = publish(&root, out.path(), &["--dry-run"]);
            let message = refused.fails(1);
            assert!(message.contains(&format!("`{name}`")), "{message}");
            assert!(message.contains(why), "{message}");
            assert!(
                message.contains("correct the note and commit it"),
                "{message}"
            );
            // Once it is readable again, publishing goes on.
            git(repository.path(), &["checkout", "-q", "main"]);
            git(repository.path(), &["revert", "--no-edit", "HEAD"]);
            let planned = publish(&root, out.path(), &["--dry-run"]).ok();
            assert!(planned.contains("0 to remove"), "{planned}");
        }
    }
}

#[test]
fn an_unreadable_note_without_a_reference_stops_publishing_too() {
    let (root, _repository, notes) = scene();
    root.manifest("n", &format!("store = '{}'\n", notes.display()));
    let out = tempfile::tempdir().unwrap();
    publish(&root, out.path(), &["--dry-run"]).ok();
    for (name, content, why) in damages() {
        let before = fs::read(notes.join(name)).unwrap();
        fs::write(notes.join(name), content).unwrap();
        let message = publish(&root, out.path(), &["--dry-run"]).fails(1);
        assert!(message.contains(name) && message.contains(why), "{message}");
        fs::write(notes.join(name), before).unwrap();
    }
    publish(&root, out.path(), &["--dry-run"]).ok();
}

#[test]
fn a_local_note_that_is_not_committed_stops_nothing() {
    let (root, _repository, notes) = scene();
    fs::write(notes.join("draft.md"), b"\0").unwrap();
    fs::write(notes.join("draft.jsonl"), b"{\"id\": \"d-1\", \"tit\n").unwrap();
    let out = tempfile::tempdir().unwrap();
    publish(&root, out.path(), &["--yes"]).ok();
}

#[test]
fn flags_for_buckets_are_refused_with_a_folder() {
    let (root, _repository, _notes) = scene();
    let out = tempfile::tempdir().unwrap();
    for flags in [
        ["--withdraw", "a"].as_slice(),
        &["--restore", "a"],
        &["--rollback", "v-1"],
        &["--list"],
        &["--prune", "0d"],
        &["--replace", "other"],
        &["--reindex"],
        &["--endpoint", "http://127.0.0.1:1"],
        &["--region", "eu-central-1"],
    ] {
        let more: Vec<&str> = flags.iter().chain(&["--yes"]).copied().collect();
        let message = publish(&root, out.path(), &more).fails(2);
        assert!(message.contains(flags[0]), "{message}");
        assert!(message.contains("--to-folder"), "{message}");
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
    }
}

#[test]
fn only_promoted_memories_are_written_to_a_folder_if_asked_for() {
    let root = Root::new();
    root.store(
        "n",
        &[
            memory("m-1", "Merely approved", json!({})),
            memory(
                "m-2",
                "Promoted to every team",
                json!({ "status": "promoted" }),
            ),
        ],
    );
    let out = tempfile::tempdir().unwrap();
    let notes = out.path().join("notes");
    publish(&root, &notes, &["--only-promoted", "--yes"]).ok();
    let written: String = fs::read_dir(&notes)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(written.contains("Promoted to every team"), "{written}");
    assert!(!written.contains("Merely approved"), "{written}");
}

#[test]
fn the_dates_of_committed_notes_depend_on_the_commit_alone() {
    let (root, repository, notes) = scene();
    fs::write(
        notes.join("dated.md"),
        "---\ndate: 2026-03-14\n---\n# Deploy dated\n\nText.\n",
    )
    .unwrap();
    fs::write(notes.join("d.md"), "# Deploy d\n\nText.\n").unwrap();
    let local = ack(root.path(), &["get", "d", "--status", "all", "--json"]).json();
    assert!(local.to_string().contains("created_at"), "{local}");
    commit(repository.path());
    let out = tempfile::tempdir().unwrap();
    publish(&root, out.path(), &["--yes"]).ok();
    // Another clone has other times, and so does a checkout of another branch.
    let clones = tempfile::tempdir().unwrap();
    let from = repository.path().display().to_string();
    git(clones.path(), &["clone", "-q", &from, "clone"]);
    let clone = clones.path().join("clone/docs/memory");
    root.manifest(
        "n",
        &format!("store = '{}'\nref = 'main'\n", clone.display()),
    );
    let planned = publish(&root, out.path(), &["--yes"]).ok();
    assert!(planned.contains("0 to change"), "{planned}");
    git(&clone, &["checkout", "-q", "--detach", "HEAD~1"]);
    git(&clone, &["commit", "-q", "--allow-empty", "-m", "later"]);
    git(&clone, &["rm", "-q", "-r", "."]);
    let planned = publish(&root, out.path(), &["--yes"]).ok();
    assert!(planned.contains("0 to change, 0 to remove"), "{planned}");
}
