//! Scopes in a bucket over several runs: a fetch that is continued, a withdrawn text that leaves
//! this machine, and going back.

use std::fs;
use std::path::{Path, PathBuf};

use ack_test_bucket::Action;
use serde_json::{Value, json};

use crate::bucket::{publish, published, reader, scene, sql};
use crate::bucket_reading::{answer, ask, both, first, remote, wait};

const TITLE: &str = "The connection pool has 20 connections";

#[test]
fn a_fetch_continues_where_the_last_process_ended() {
    let (root, bucket) = scene();
    let rows = (0..40).map(|row| {
        let text: String = (0..3_000).map(|word| format!("w{} ", word * 7_919 + row)).collect();
        format!(
            "INSERT INTO memories (id, title, narrative, status) \
             VALUES ('long-{row}', 'A long memory {row}', '{text}', 'approved');"
        )
    });
    sql(&root, &rows.collect::<String>());
    published(&root, &bucket, &[]);
    let files = |key: &String| key.contains("/memories.lance/") || key.contains("/manifests/");
    let keys = bucket.keys().into_iter();
    let whole: usize = keys.filter(files).map(|key| bucket.get(&key).unwrap().len()).sum();
    let reader = reader(&bucket, "1h");
    // Too slow for the 10 seconds that a question waits.
    bucket.intercept(move |_| Action::Slow(whole as u64 / 20));
    let refused = both(&ask(&reader, &[]));
    assert_contains!(refused, "is being fetched: ");
    assert_lacks!(refused, ": 0.0 of");
    let parts = fs::read_dir(remote(&reader).join("files")).unwrap();
    assert!(parts.count() > 0);
    bucket.clear_faults();
    bucket.reset_log();
    assert_eq!(first(&answer(&reader)), TITLE);
    let requests = bucket.requests();
    let ranges = requests.iter().filter_map(|request| request.range.as_deref());
    let continued = ranges.filter(|range| !range.starts_with("bytes=0-")).count();
    assert!(continued > 0, "{requests:?}");
    let fetched: u64 = requests.iter().map(|request| request.bytes_out).sum();
    assert!((fetched as usize) < whole * 9 / 10, "{fetched} of {whole}");
}

/// The files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let files = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let files = files.filter(|entry| entry.file_type().is_file());
    let files = files.map(walkdir::DirEntry::into_path);
    files
        .filter(|path| {
            let bytes = fs::read(path).unwrap();
            bytes.windows(text.len()).any(|part| part == text.as_bytes())
        })
        .collect()
}

#[test]
fn a_withdrawn_text_leaves_the_readers_machine() {
    let (root, bucket) = scene();
    let secret = "hunter2-in-the-narrative";
    let update = format!("UPDATE memories SET narrative = '{secret}' WHERE id = 'm-2'");
    sql(&root, &update);
    published(&root, &bucket, &[]);
    let reader = reader(&bucket, "1s");
    assert_eq!(first(&answer(&reader)), TITLE);
    let folder = remote(&reader);
    assert!(!files_with(&folder, secret).is_empty());
    published(&root, &bucket, &["--withdraw", "m-2"]);
    wait(1_100);
    assert!(!answer(&reader).to_string().contains(TITLE));
    let databases = files_with(&folder, secret);
    let databases = databases.iter().filter(|path| path.ends_with("memory.db"));
    assert_eq!(databases.count(), 0);
    published(&root, &bucket, &["--reindex"]);
    published(&root, &bucket, &["--prune", "0d"]);
    wait(1_100);
    assert!(!answer(&reader).to_string().contains(TITLE));
    assert_eq!(files_with(&folder, secret), Vec::<PathBuf>::new());
}

#[test]
fn going_back_says_what_it_does_and_how_to_undo_it() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    published(&root, &bucket, &["--withdraw", "m-2"]);
    let back = ["--rollback", "v-1", "--restore", "m-2", "--yes"];
    let back = publish(&root, &bucket, &back).ok();
    assert_contains!(back, "version 3 restores version 1");
    assert_lacks!(back, "would");
    assert_contains!(back, "undo: ", "--rollback v-2");
    let listed = publish(&root, &bucket, &["--list"]).ok();
    assert_contains!(listed, "what v-1 had");
    assert_lacks!(listed, "+0 ~0 -0");
    // Nothing is new, and something waits.
    let nothing = publish(&root, &bucket, &["--yes"]).ok();
    assert_contains!(nothing, "nothing to do", "1 memory waits for review: `");
    assert_contains!(nothing, "review --scope mine");
}

#[test]
fn the_plan_to_go_back_counts_what_changes() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    sql(
        &root,
        "UPDATE memories SET title = 'A mistake' WHERE id = 'm-1'; \
         UPDATE memories SET status = 'approved' WHERE id IN ('m-3', 'm-5'); \
         UPDATE memories SET status = 'rejected' WHERE id = 'm-6'",
    );
    published(&root, &bucket, &[]);
    let plan = published(&root, &bucket, &["--rollback", "v-1", "--dry-run"]);
    let changes = json!({ "come_back": 1, "go_away": 2, "change": 1 });
    assert_eq!(plan["changes"], changes, "{plan}");
    assert_eq!(plan["written"], false);
    let plan = publish(&root, &bucket, &["--rollback", "v-1", "--dry-run"]).ok();
    assert_contains!(plan, "coming back: 1, changed: 1, going away: 2");
    let plan = publish(&root, &bucket, &["--rollback", "v-2", "--dry-run"]).ok();
    assert_contains!(plan, "nothing changes for readers");
    // A damaged version is a reason to go back.
    let object = |name: &str| -> Value {
        serde_json::from_slice(&bucket.get(&format!("platform/{name}")).unwrap()).unwrap()
    };
    let log = object(object("HEAD.json")["log"].as_str().unwrap());
    let files = log["files"].as_array().unwrap().iter();
    for file in files {
        bucket.remove(&format!("platform/{}", file["object"].as_str().unwrap()));
    }
    std::fs::remove_dir_all(root.scope_folder("mine").join("remote")).unwrap();
    let plan = publish(&root, &bucket, &["--rollback", "v-1", "--dry-run"]).ok();
    assert_contains!(plan, "what that changes is not known");
}

#[test]
fn a_network_failure_is_no_reason_to_remove_a_scope() {
    let (root, mut bucket) = scene();
    published(&root, &bucket, &[]);
    let reader = reader(&bucket, "1h");
    bucket.close();
    let doctor = crate::cli::run(crate::bucket::command(reader.path()).arg("doctor"));
    assert_contains!(doctor.out, "team");
    assert_lacks!(doctor.out, "scopes remove");
}
