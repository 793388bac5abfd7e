//! Scopes in a bucket if something is wrong on this machine: its clock, a damaged copy, a bucket
//! that does not answer.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bucket::{command, published, reader, scene};
use crate::bucket_reading::{
    ENLARGED, answer, ask, both, enlarge, first, followed, notes, remote, wait,
};
use crate::cli::run;
use crate::support::{Root, write_file};

const TITLE: &str = "The connection pool has 20 connections";

/// Changes what the reader knows about the bucket.
fn edit_state(reader: &Root, change: impl FnOnce(&mut Value)) {
    let path = remote(reader).join("state.json");
    let mut state = state(reader);
    change(&mut state);
    write_file(path, state.to_string());
}

fn state(reader: &Root) -> Value {
    serde_json::from_slice(&fs::read(remote(reader).join("state.json")).unwrap()).unwrap()
}

/// The files of the table in the version that is served.
fn table_files(reader: &Root) -> Vec<PathBuf> {
    let folder = remote(reader).join("current/lance").canonicalize().unwrap();
    let files = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    files
        .filter(|entry| entry.file_type().is_file())
        .map(walkdir::DirEntry::into_path)
        .filter(|path| path.extension().is_some_and(|extension| extension == "lance"))
        .collect()
}

/// Overwrites the middle and the end of a file. Its length stays, and so do its other names.
fn damage(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    for place in [length / 2, length - 40] {
        file.write_all_at(&[0x5a; 40], place).unwrap();
    }
}

fn truncate(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(10).unwrap();
}

fn message<'a>(answer: &'a Value, kind: &str) -> &'a str {
    let mut notes = answer["notes"].as_array().unwrap().iter();
    let note = notes.find(|note| note["kind"] == kind);
    note.unwrap_or_else(|| panic!("{answer}"))["message"].as_str().unwrap()
}

/// A time in the far future, in milliseconds since 1970.
const FUTURE: i64 = 32_503_680_000_000;

#[test]
fn a_clock_that_was_ahead_does_not_freeze_a_reader() {
    let (root, bucket, reader) = followed("1h");
    enlarge(&root);
    published(&root, &bucket, &[]);
    edit_state(&reader, |state| state["asked_at"] = json!(FUTURE));
    assert_eq!(first(&answer(&reader)), ENLARGED);
    // A failure in the future ends no sooner.
    published(&root, &bucket, &["--withdraw", "m-2"]);
    edit_state(&reader, |state| {
        state["asked_at"] = json!(0);
        state["failed_at"] = json!(FUTURE);
        state["failures"] = json!(9);
    });
    assert_lacks!(answer(&reader).to_string(), "40 connections");
    assert_eq!(state(&reader)["failures"], 0);
}

#[test]
fn offline_after_a_clock_was_ahead_the_copy_answers_for_as_long_as_it_may() {
    let (_root, mut bucket, reader) = followed("1s");
    bucket.close();
    edit_state(&reader, |state| state["asked_at"] = json!(FUTURE));
    let stale = answer(&reader);
    assert_eq!(first(&stale), TITLE);
    let note = message(&stale, "remote_stale");
    assert!(note.starts_with("as of an unknown time"), "{note}");
    // From then on, its age counts.
    let asked_at = state(&reader)["asked_at"].as_i64().unwrap();
    assert!(asked_at > 0 && asked_at < FUTURE / 2, "{asked_at}");
    wait(1_100);
    let still = answer(&reader);
    let note = message(&still, "remote_stale");
    assert!(note.starts_with("as of an unknown time"), "{note}");
}

#[test]
fn offline_a_damaged_record_of_the_bucket_costs_no_answer() {
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    for damage in [truncate, remove] {
        let (_root, mut bucket, reader) = followed("1s");
        bucket.close();
        damage(&remote(&reader).join("state.json"));
        for _ in 0..2 {
            let answer = answer(&reader);
            assert_eq!(first(&answer), TITLE);
            let note = message(&answer, "remote_stale");
            assert!(note.starts_with("as of an unknown time"), "{note}");
        }
    }
}

/// What a person or a disk does to a copy.
fn damage_records(reader: &Root) {
    write_file(remote(reader).join("current/memory.db"), b"no database");
}

fn damage_table(reader: &Root) {
    table_files(reader).iter().for_each(|file| damage(file));
}

fn truncate_table(reader: &Root) {
    table_files(reader).iter().for_each(|file| truncate(file));
}

fn damage_both(reader: &Root) {
    damage_table(reader);
    damage_records(reader);
}

fn remove_versions_of_damaged_files(reader: &Root) {
    damage_table(reader);
    fs::remove_dir_all(remote(reader).join("versions")).unwrap();
}

#[test]
fn a_damaged_copy_is_fetched_again_before_it_answers() {
    for hurt in [truncate_table, damage_both, remove_versions_of_damaged_files] {
        let (_root, bucket, reader) = followed("1h");
        hurt(&reader);
        assert_eq!(first(&answer(&reader)), TITLE);
        bucket.reset_log();
        assert!(notes(&answer(&reader)).is_empty());
        assert!(bucket.requests().is_empty());
    }
}

#[test]
fn offline_a_damaged_table_costs_no_answer() {
    for hurt in [truncate_table, damage_table] {
        let (_root, mut bucket, reader) = followed("1h");
        bucket.close();
        hurt(&reader);
        for _ in 0..2 {
            let answer = answer(&reader);
            assert_eq!(first(&answer), TITLE);
            let note = message(&answer, "index_unusable");
            assert_contains!(note, "nothing is missing");
            assert_contains!(note, "fetched again from s3://memories/platform");
        }
        bucket.open().unwrap();
        edit_state(&reader, |state| state["failures"] = json!(0));
        assert_eq!(first(&answer(&reader)), TITLE);
        assert!(notes(&answer(&reader)).is_empty());
    }
}

#[test]
fn a_damaged_file_of_the_right_length_is_fetched_again() {
    let (_root, bucket, reader) = followed("1h");
    damage_table(&reader);
    bucket.reset_log();
    let answer_now = answer(&reader);
    assert_eq!(first(&answer_now), TITLE);
    assert_lacks!(message(&answer_now, "index_unusable"), "index --scope");
    // The next question gets it again.
    assert!(notes(&answer(&reader)).is_empty(), "{}", answer(&reader));
    assert!(!bucket.requests().is_empty());
    bucket.reset_log();
    assert!(notes(&answer(&reader)).is_empty());
    assert!(bucket.requests().is_empty());
    // Doctor agrees.
    assert_lacks!(run(command(reader.path()).args(["doctor"])).out, "not used");
}

#[test]
fn damaged_records_are_made_again_without_the_network() {
    let (_root, mut bucket, reader) = followed("1h");
    bucket.close();
    let database = remote(&reader).join("current/memory.db");
    for _ in 0..2 {
        damage_records(&reader);
        assert_eq!(first(&answer(&reader)), TITLE);
    }
    fs::remove_file(&database).unwrap();
    assert_eq!(first(&answer(&reader)), TITLE);
    // Pages that are only read with a record.
    let length = fs::metadata(&database).unwrap().len();
    let file = File::options().write(true).open(&database).unwrap();
    file.write_all_at(&vec![0x5a; usize::try_from(length).unwrap() - 8_192], 8_192).unwrap();
    assert_lacks!(both(&ask(&reader, &[])), ".recover");
}

#[test]
fn a_publisher_whose_copy_is_damaged_says_so_and_goes_on() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let copies = root.scope_folder("mine").join("remote");
    let files = walkdir::WalkDir::new(copies).into_iter().map(Result::unwrap);
    let data = files.filter(|entry| entry.path().extension().is_some_and(|end| end == "lance"));
    data.filter(|entry| entry.file_type().is_file()).for_each(|entry| damage(entry.path()));
    enlarge(&root);
    let refused = crate::bucket::publish(&root, &bucket, &["--yes"]);
    if refused.code != Some(0) {
        assert_contains!(refused.err, "run the command again");
        published(&root, &bucket, &[]);
    }
    let reader = reader(&bucket, "1h");
    assert_eq!(first(&answer(&reader)), ENLARGED);
}

#[test]
fn a_server_asks_its_buckets_when_it_starts() {
    let (_root, bucket, reader) = followed("1s");
    wait(1_100);
    bucket.reset_log();
    let mut server = command(reader.path())
        .arg("serve")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while bucket.requests().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "it never asked");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(server.stdin.take());
    server.wait().unwrap();
    // Not if it may not.
    wait(1_100);
    bucket.reset_log();
    let mut server = command(reader.path())
        .args(["--offline", "serve"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait(500);
    drop(server.stdin.take());
    server.wait().unwrap();
    assert!(bucket.requests().is_empty());
}

#[test]
fn without_a_copy_offline_says_what_to_do() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let reader = reader(&bucket, "1h");
    let refused = both(&ask(&reader, &["--offline"]));
    assert_contains!(refused, "without `--offline`");
    assert_lacks!(refused, "in a moment");
}
