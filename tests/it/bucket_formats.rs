//! Scopes in a bucket: the format, and what a reader keeps.

use std::fs;

use serde_json::Value;

use crate::bucket::{command, published, reader, scene};
use crate::bucket_reading::{answer, first, notes};
use crate::cli::run;

#[test]
fn a_bucket_of_another_format_says_what_to_do() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    for format in [1, 3] {
        let head = bucket.get("platform/HEAD.json").unwrap();
        let mut head: Value = serde_json::from_slice(&head).unwrap();
        head["format"] = format.into();
        bucket.put("platform/HEAD.json", head.to_string().into_bytes());
        let reader = reader(&bucket, "1h");
        let outcome = run(command(reader.path()).args(["query", "pool"]));
        let said = format!("{}{}", outcome.out, outcome.err);
        let expected = format!("in format {format}; this program reads format 2");
        assert_contains!(said, &expected);
    }
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
    assert_eq!(names, [".lock", "current", "files", "state.json", "versions"]);
}
