//! Scopes in a bucket: records as earlier and present formats keep them.

use std::fs;
use std::path::{Path, PathBuf};

use ack_test_bucket::Bucket;
use serde_json::Value;

use crate::bucket::{published, read_anew, reader, scene, sql};
use crate::bucket_reading::{answer, first, notes};

/// What a build that wrote format 1 published of [`scene`].
fn format_1() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/bucket_format_1")
}

/// A bucket with those objects.
fn bucket_of_format_1() -> Bucket {
    let bucket = Bucket::start().unwrap();
    for entry in walkdir::WalkDir::new(format_1()) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let key = entry.path().strip_prefix(format_1()).unwrap();
            bucket.put(key.to_str().unwrap(), fs::read(entry.path()).unwrap());
        }
    }
    bucket
}

fn format(bucket: &Bucket) -> Value {
    let head = bucket.get("platform/HEAD.json").unwrap();
    let head: Value = serde_json::from_slice(&head).unwrap();
    head["format"].clone()
}

#[test]
fn a_bucket_of_format_1_is_read_and_continued() {
    let bucket = bucket_of_format_1();
    assert_eq!(format(&bucket), 1);
    let whole = [
        "Exit code 137 in CI means the linker ran out of memory",
        "Promoted to every team",
        "The connection pool has 20 connections",
        "The pool had 10 connections",
    ];
    let before = read_anew(&bucket);
    assert!(
        before.iter().all(|title| whole.contains(&title.as_str())),
        "{before:?}"
    );
    assert_eq!(before.len(), 3);
    // Some records then have rows of their own, and the others are in a block.
    let (root, _) = scene();
    sql(
        &root,
        "UPDATE memories SET title = 'The connection pool has 40' WHERE id = 'm-2'",
    );
    let plan = published(&root, &bucket, &[]);
    assert_eq!(plan["published"]["version"], 2, "{plan}");
    assert_eq!(plan["changed"].as_array().unwrap().len(), 1, "{plan}");
    assert_eq!(format(&bucket), 2);
    let after = read_anew(&bucket);
    assert_eq!(after.len(), 3, "{after:?}");
    assert!(
        after.contains(&"The connection pool has 40".to_owned()),
        "{after:?}"
    );
    published(&root, &bucket, &["--reindex"]);
    assert_eq!(read_anew(&bucket), after);
}

#[test]
fn a_first_answer_leaves_only_the_version() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let reader = reader(&bucket, "1h");
    let answer = answer(&reader);
    assert_eq!(first(&answer), "The connection pool has 20 connections");
    assert!(notes(&answer).is_empty(), "{answer}");
    let remote = reader.scope_folder("team").join("remote");
    let bucket_folder = fs::read_dir(remote).unwrap().next().unwrap().unwrap();
    let mut names: Vec<String> = fs::read_dir(bucket_folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [".lock", "current", "files", "state.json", "versions"]
    );
}
