//! What was rejected in a folder of notes does not come back under another id: as a copy, under
//! another file name, or where another note took its id.

use std::fs;
use std::path::{Path, PathBuf};

use ack_memory::Service;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::changes::git;
use crate::cli::ack;
use crate::curate::decide;
use crate::support::{Ask, Root, ids, read_text, sorted_ids, write_file};

const ALPHA: &str = "---\nid: alpha\ntitle: Deploy on Fridays\n---\nThe whole team is there.\n";
const PLAIN: &str = "# Deploy by hand\n\nNobody waits for the pipeline.\n";
const BARE: &str = "Deploy while everybody is asleep.\n";

/// A repository with notes in `notes`, a scope over it, and a service whose agents may ask for
/// what waits.
struct Scene {
    repository: TempDir,
    root: Root,
    service: Service,
}

impl Scene {
    /// With `settings` in the scope's manifest.
    fn new(settings: &str, files: &[(&str, &str)]) -> Self {
        let repository = tempfile::tempdir().unwrap();
        git(repository.path(), &["init", "-q"]);
        let root = Root::new().let_agents_review();
        let notes = repository.path().join("notes");
        let store = format!("store = '{}'\n{settings}\n", notes.display());
        root.manifest("team", &store);
        let service = root.service();
        let scene = Self { repository, root, service };
        scene.write("other.md", "# Deploy on Mondays\n\nBefore noon.\n");
        for (name, text) in files {
            scene.write(name, text);
        }
        scene.commit();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.repository.path().join("notes").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_file(path, text);
    }

    fn rename(&self, from: &str, to: &str) {
        let to = self.path(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(self.path(from), to).unwrap();
    }

    fn commit(&self) {
        let folder: &Path = self.repository.path();
        git(folder, &["add", "-A"]);
        git(folder, &["commit", "-q", "--allow-empty", "-m", "notes"]);
    }

    fn decide(&self, arguments: &[&str]) {
        decide(self.root.path(), arguments).ok();
    }

    /// The ids with a status, sorted.
    fn ids(&self, status: &str) -> Vec<String> {
        let arguments = json!({ "query": "deploy", "status": status, "limit": 20 });
        sorted_ids(&self.service.find(arguments)["results"])
    }
}

impl Scene {
    /// How many notes are approved, wait, and are rejected. A search folds equal ones.
    fn counts(&self) -> [u64; 3] {
        let listed = self.service.scopes(json!({}));
        let counts = &listed["scopes"][0]["counts"];
        ["approved", "staging", "rejected"].map(|status| counts[status].as_u64().unwrap())
    }
}

/// With a reference, and with every note counted as approved by its owner.
const APPROVED: [&str; 2] = ["ref = 'HEAD'", "unreviewed = 'approved'"];

#[test]
fn a_copy_of_a_rejected_note_stays_rejected() {
    for settings in APPROVED {
        for copy in ["zulu.md", "0-first.md", "more/alpha.md"] {
            let scene = Scene::new(settings, &[("alpha.md", ALPHA)]);
            assert_eq!(scene.ids("approved"), ["alpha", "other"], "{settings}");
            scene.decide(&["reject", "alpha", "--because", "not true"]);
            assert_eq!(scene.ids("all"), ["other"], "{settings}");
            scene.write(copy, ALPHA);
            scene.commit();
            assert_eq!(scene.ids("all"), ["other"], "{settings} {copy}");
            // The first file is removed, and the copy gets the id.
            fs::remove_file(scene.path("alpha.md")).unwrap();
            scene.commit();
            assert_eq!(scene.ids("all"), ["other"], "{settings} {copy}");
        }
    }
}

#[test]
fn a_rejection_says_which_equal_notes_it_takes_along() {
    let copy = ALPHA.replace("id: alpha", "id: copy");
    for settings in APPROVED {
        let scene = Scene::new(settings, &[("alpha.md", ALPHA), ("copy.md", &copy)]);
        let root = scene.root.path();
        // The answer folds the copy into the other one.
        assert_eq!(scene.ids("approved"), ["alpha", "other"], "{settings}");
        let line = "also rejected, the same text: copy  Deploy on Fridays";
        let seen = ack(root, &["reject", "alpha", "--dry-run"]).ok();
        assert_contains!(seen, line; "{settings}");
        let seen = ack(root, &["reject", "alpha", "--dry-run", "--json"]).json();
        assert_eq!(ids(&seen["also_rejected"]), ["copy"], "{settings}: {seen}");
        let answer = decide(root, &["reject", "alpha"]).ok();
        assert_contains!(answer, line; "{settings}");
        assert_eq!(scene.ids("all"), ["other"], "{settings}");
        let answer = decide(root, &["undo", "--json"]).json();
        let found = sorted_ids(&answer["served_again"]);
        assert_eq!(found, ["alpha", "copy"], "{settings}: {answer}");
        assert_eq!(scene.ids("approved"), ["alpha", "other"], "{settings}");
        // If both are named, only the one with a decision counts.
        let seen = ack(root, &["reject", "alpha", "copy", "--dry-run", "--json"]).json();
        assert_eq!(ids(&seen["also_rejected"]), Vec::<String>::new(), "{settings}: {seen}");
    }
}

#[test]
fn a_rejected_note_that_loses_its_id_to_another_one_stays_rejected() {
    let scene = Scene::new("ref = 'HEAD'", &[("alpha.md", ALPHA)]);
    scene.decide(&["reject", "alpha"]);
    let other = ALPHA.replace("Fridays", "Sundays");
    scene.write("0-first.md", &other);
    scene.commit();
    // The id now has another text, which waits.
    assert_eq!(scene.ids("approved"), ["other"]);
    assert_eq!(scene.ids("all"), ["alpha", "other"]);
}

#[test]
fn a_rejected_note_stays_rejected_under_another_file_name() {
    for settings in APPROVED {
        for (text, id) in [(PLAIN, "by-hand"), (BARE, "by-hand"), (ALPHA, "alpha")] {
            let scene = Scene::new(settings, &[("by-hand.md", text)]);
            scene.decide(&["reject", id]);
            assert_eq!(scene.ids("all"), ["other"], "{settings} {text}");
            for (from, to) in [
                ("by-hand.md", "manual.md"),
                ("manual.md", "ops/night/manual.md"),
                ("ops/night/manual.md", "by-hand.md"),
            ] {
                scene.rename(from, to);
                assert_eq!(scene.ids("all"), ["other"], "{settings} {to}: {text}");
                scene.commit();
                assert_eq!(scene.ids("all"), ["other"], "{settings} {to}: {text}");
            }
        }
    }
}

#[test]
fn a_line_with_the_text_of_a_rejected_one_stays_rejected() {
    let line = |id: &str| {
        let line = json!({ "id": id, "title": "Deploy blindly", "narrative": "It works." });
        format!("{line}\n")
    };
    let scene = Scene::new("ref = 'HEAD'", &[("a.jsonl", &line("one"))]);
    scene.decide(&["reject", "one"]);
    scene.write("b.jsonl", &line("two"));
    scene.commit();
    assert_eq!(scene.ids("all"), ["other"]);
}

#[test]
fn what_was_put_back_or_replaced_waits_under_another_name() {
    for decision in [
        vec!["stage", "by-hand"],
        vec!["replace", "by-hand", "--by", "other"],
        vec!["replace", "by-hand", "--by", "other", "--merge"],
    ] {
        let scene = Scene::new("ref = 'HEAD'", &[("by-hand.md", PLAIN)]);
        scene.decide(&decision);
        scene.rename("by-hand.md", "manual.md");
        scene.commit();
        assert_eq!(scene.ids("approved"), ["other"], "{decision:?}");
        assert_eq!(scene.ids("staging"), ["manual"], "{decision:?}");
    }
}

#[test]
fn of_two_files_with_one_text_the_one_that_takes_the_others_place_stays() {
    let scene = Scene::new("ref = 'HEAD'", &[("by-hand.md", PLAIN), ("manual.md", PLAIN)]);
    assert_eq!(scene.ids("approved").len(), 2, "equal ones are folded");
    scene.decide(&["replace", "by-hand", "--by", "manual", "--merge"]);
    assert_eq!(scene.ids("approved"), ["manual", "other"]);
    // A third one adds nothing.
    scene.write("more.md", PLAIN);
    scene.commit();
    assert_eq!(scene.ids("approved"), ["manual", "other"]);
}

#[test]
fn a_person_can_approve_the_copy_and_take_that_back() {
    let scene = Scene::new("ref = 'HEAD'", &[("by-hand.md", PLAIN)]);
    scene.decide(&["reject", "by-hand", "--because", "too risky"]);
    scene.rename("by-hand.md", "manual.md");
    scene.commit();
    assert_eq!(scene.ids("all"), ["other"]);
    let words = ["get", "manual", "--include", "history"];
    let history = decide(scene.root.path(), &words);
    let shown = history.ok();
    let said = "too risky (about `by-hand`, which has the same text)";
    assert_contains!(shown, said);
    scene.decide(&["approve", "manual"]);
    assert_eq!(scene.ids("approved"), ["manual", "other"]);
    scene.decide(&["undo"]);
    assert_eq!(scene.ids("all"), ["other"], "the first decision counts again");
    scene.decide(&["undo"]);
    assert_eq!(scene.ids("approved"), ["manual", "other"]);
}

/// Four files with one text.
const EQUAL: [(&str, &str); 4] =
    [("a.md", PLAIN), ("b.md", PLAIN), ("c.md", PLAIN), ("sub/d.md", PLAIN)];

#[test]
fn copies_stay_rejected_as_long_as_one_copy_is_rejected() {
    for settings in ["ref = 'HEAD'", "unreviewed = 'approved'", ""] {
        let scene = Scene::new(settings, &EQUAL);
        let root = scene.root.path();
        let other = if settings.is_empty() { [0, 1] } else { [1, 0] };
        let expected = |approved, rejected| [other[0] + approved, other[1], rejected];
        let answer = decide(root, &["reject", "a", "b", "--json"]).json();
        assert_eq!(ids(&answer["also_rejected"]), ["c", "sub/d"], "{answer}");
        // `b` is still rejected.
        let answer = decide(root, &["approve", "a", "--json"]).json();
        for kind in ["also_rejected", "wait_again", "served_again"] {
            assert_eq!(answer[kind], json!([]), "{settings} {kind}: {answer}");
        }
        assert_eq!(scene.counts(), expected(1, 3), "{settings}");
        scene.write("new.md", PLAIN);
        scene.commit();
        assert_eq!(scene.counts(), expected(1, 4), "{settings}");
        decide(root, &["undo"]).ok();
        assert_eq!(scene.counts(), expected(0, 5), "{settings}");
    }
}

#[test]
fn the_end_of_the_last_rejection_names_the_copies_that_come_back() {
    for (settings, kind, line) in [
        ("ref = 'HEAD'", "served_again", "served again: c"),
        ("", "wait_again", "unreviewed again: c"),
    ] {
        let scene = Scene::new(settings, &EQUAL);
        let root = scene.root.path();
        let before = scene.counts();
        scene.decide(&["reject", "a"]);
        let rejected = scene.counts();
        assert_eq!(rejected[2], 4);
        assert_contains!(ack(root, &["approve", "a", "--dry-run"]).ok(), line);
        let answer = decide(root, &["approve", "a", "--json"]).json();
        assert_eq!(ids(&answer[kind]), ["b", "c", "sub/d"], "{answer}");
        let answer = decide(root, &["undo", "--json"]).json();
        let again = ids(&answer["also_rejected"]);
        assert_eq!(again, ["b", "c", "sub/d"], "{answer}");
        assert_eq!(scene.counts(), rejected, "{settings}");
        decide(root, &["undo"]).ok();
        assert_eq!(scene.counts(), before, "{settings}");
    }
}

#[test]
fn a_decision_that_cannot_be_read_approves_no_copy() {
    let scene = Scene::new("ref = 'HEAD'", &[("by-hand.md", PLAIN)]);
    scene.decide(&["approve", "by-hand"]);
    let log = scene.root.scope_folder("team").join("decisions.jsonl");
    let text = read_text(&log);
    let content = format!("{text}{{\"id\":\"by-hand\",\"verdict\":\"rej");
    write_file(&log, content);
    scene.write("manual.md", PLAIN);
    scene.commit();
    assert_eq!(scene.ids("approved"), ["other"]);
}

#[test]
fn another_text_is_not_touched_by_a_rejection() {
    let scene = Scene::new("ref = 'HEAD'", &[("by-hand.md", BARE), ("manual.md", PLAIN)]);
    scene.decide(&["reject", "by-hand"]);
    assert_eq!(scene.ids("approved"), ["manual", "other"]);
    let listed: Value = scene.service.scopes(json!({}));
    assert_eq!(listed["scopes"][0]["counts"]["rejected"], 1, "{listed}");
}
