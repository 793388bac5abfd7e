//! Publishing a folder of notes some of which cannot be read: what is published stays, and the
//! message names the files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::changes::git;
use crate::cli::{Outcome, ack};
use crate::support::{Root, memory, read_text, titled, write_file};

/// A root with a scope over committed notes, the repository, and the notes' folder.
fn scene() -> (Root, TempDir, PathBuf) {
    let repository = tempfile::tempdir().unwrap();
    git(repository.path(), &["init", "-q"]);
    let notes = repository.path().join("docs/memory");
    fs::create_dir_all(&notes).unwrap();
    for name in ["a", "b", "c"] {
        let text = format!("# Deploy {name}\n\nText.\n");
        write_file(notes.join(format!("{name}.md")), text);
    }
    let lines = |id: &str| json!({ "id": id, "title": format!("Deploy {id}") }).to_string();
    let text = format!("{}\n{}\n", lines("l-1"), lines("l-2"));
    write_file(notes.join("l.jsonl"), text);
    write_file(notes.join("one.jsonl"), format!("{}\n", lines("o-1")));
    commit(repository.path());
    let root = Root::new();
    let settings = format!("store = '{}'\nref = 'main'\n", notes.display());
    root.manifest("n", &settings);
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
        ("one.jsonl", b"{\"id\": \"o-1\", \"tit\n".to_vec(), "line 1 was left out"),
    ]
}

#[test]
fn a_committed_note_that_cannot_be_read_stops_publishing() {
    for is_checked_out in [true, false] {
        for (name, content, why) in damages() {
            let (root, repository, notes) = scene();
            let out = tempfile::tempdir().unwrap();
            publish(&root, out.path(), &["--yes"]).ok();
            write_file(notes.join(name), content);
            commit(repository.path());
            if !is_checked_out {
                git(repository.path(), &["checkout", "-q", "--detach", "HEAD~1"]);
            }
            let scopes = ack(root.path(), &["scopes", "--scope", "n"]).ok();
            assert_contains!(scopes, name);
            assert_lacks!(scopes, "partial clone");
            let refused = publish(&root, out.path(), &["--dry-run"]);
            let message = refused.fails(1);
            assert_contains!(message, &format!("`{name}`"), why);
            assert_contains!(message, "correct the note and commit it");
            // Once it is readable again, publishing goes on.
            git(repository.path(), &["checkout", "-q", "main"]);
            git(repository.path(), &["revert", "--no-edit", "HEAD"]);
            let planned = publish(&root, out.path(), &["--dry-run"]).ok();
            assert_contains!(planned, "0 to remove");
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
        write_file(notes.join(name), content);
        let message = publish(&root, out.path(), &["--dry-run"]).fails(1);
        assert_contains!(message, name, why);
        write_file(notes.join(name), before);
    }
    publish(&root, out.path(), &["--dry-run"]).ok();
}

#[test]
fn a_local_note_that_is_not_committed_stops_nothing() {
    let (root, _repository, notes) = scene();
    write_file(notes.join("draft.md"), b"\0");
    write_file(notes.join("draft.jsonl"), b"{\"id\": \"d-1\", \"tit\n");
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
        assert_contains!(message, flags[0], "--to-folder");
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
    }
}

#[test]
fn only_promoted_memories_are_written_to_a_folder_if_asked_for() {
    let root = Root::new();
    let m_2 = json!({ "status": "promoted" });
    let memories = [titled("m-1", "Merely approved"), memory("m-2", "Promoted to every team", m_2)];
    root.store("n", &memories);
    let out = tempfile::tempdir().unwrap();
    let notes = out.path().join("notes");
    publish(&root, &notes, &["--only-promoted", "--yes"]).ok();
    let written: String =
        fs::read_dir(&notes).unwrap().map(|entry| read_text(entry.unwrap().path())).collect();
    assert_contains!(written, "Promoted to every team");
    assert_lacks!(written, "Merely approved");
}

#[test]
fn the_dates_of_committed_notes_depend_on_the_commit_alone() {
    let (root, repository, notes) = scene();
    let text = "---\ndate: 2026-03-14\n---\n# Deploy dated\n\nText.\n";
    write_file(notes.join("dated.md"), text);
    write_file(notes.join("d.md"), "# Deploy d\n\nText.\n");
    let local = ack(root.path(), &["get", "d", "--status", "all", "--json"]).json();
    assert_contains!(local.to_string(), "created_at");
    commit(repository.path());
    let out = tempfile::tempdir().unwrap();
    publish(&root, out.path(), &["--yes"]).ok();
    // Another clone has other times, and so does a checkout of another branch.
    let clones = tempfile::tempdir().unwrap();
    let from = repository.path().display().to_string();
    git(clones.path(), &["clone", "-q", &from, "clone"]);
    let clone = clones.path().join("clone/docs/memory");
    let settings = format!("store = '{}'\nref = 'main'\n", clone.display());
    root.manifest("n", &settings);
    let planned = publish(&root, out.path(), &["--yes"]).ok();
    assert_contains!(planned, "0 to change");
    git(&clone, &["checkout", "-q", "--detach", "HEAD~1"]);
    git(&clone, &["commit", "-q", "--allow-empty", "-m", "later"]);
    git(&clone, &["rm", "-q", "-r", "."]);
    let planned = publish(&root, out.path(), &["--yes"]).ok();
    assert_contains!(planned, "0 to change, 0 to remove");
}
