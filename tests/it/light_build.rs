//! What the light build says about a scope in a bucket, and about publishing to one.

use serde_json::{Value, json};

use crate::cli::{Outcome, ack};
use crate::support::{Root, titled};

const MANIFEST: &str = "visibility = \"shared\"\ntable = \"s3://acme-memory/platform\"\n\
    [remote]\nregion = \"eu-central-1\"\n";
const LACKS: &str = "its memories are in a bucket, which the light build cannot read";
const INSTALL: &str =
    "install the full build: `cargo install --path .` without `--no-default-features`";

/// A scope with a memory, and one in a bucket.
fn root() -> Root {
    let root = Root::with("mine", &[titled("m-1", "The pool has 20")]);
    root.manifest("team", MANIFEST);
    root
}

/// The file is right, so nothing may ask for it to be corrected.
#[track_caller]
fn names_the_build(outcome: &Outcome) {
    let all = format!("{}{}", outcome.out, outcome.err);
    assert_contains!(all, LACKS);
    assert_lacks!(all, "correct", "cannot be used");
}

#[test]
fn the_light_build_says_that_a_scope_in_a_bucket_needs_the_full_one() {
    let root = root();
    for words in [
        &["query", "pool", "--scope", "team"][..],
        &["get", "m-1", "--scope", "team"],
        &["review", "--scope", "team"],
        &["publish", "team", "--to-folder", "notes"],
    ] {
        let outcome = ack(root.path(), words);
        assert_ne!(outcome.code, Some(0), "{words:?}");
        names_the_build(&outcome);
        assert!(outcome.err.contains(INSTALL), "{words:?}: {}", outcome.err);
    }
}

#[test]
fn the_other_scopes_still_answer_in_the_light_build() {
    let root = root();
    let outcome = ack(root.path(), &["query", "pool"]);
    assert_eq!(outcome.code, Some(0));
    assert_contains!(outcome.out, "The pool has 20");
    names_the_build(&outcome);
    let outcome = ack(root.path(), &["scopes"]);
    names_the_build(&outcome);
    assert_lacks!(outcome.out, "(private)");
    let report = ack(root.path(), &["doctor", "--json"]);
    names_the_build(&report);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let team = findings.iter().find(|finding| finding["subject"] == "team").unwrap();
    assert_eq!(team["advice"], json!([INSTALL]));
}

#[test]
fn the_light_build_says_how_to_publish_to_a_bucket() {
    let root = root();
    for scope in ["mine", "team"] {
        let words = ["publish", scope, "--to", "s3://acme-memory/platform"];
        let outcome = ack(root.path(), &words);
        assert_eq!(outcome.code, Some(2), "{}", outcome.err);
        let error = outcome.err;
        assert_contains!(error, "the light build, which cannot publish", INSTALL);
        assert_contains!(error, "--to-folder DIR");
    }
}
