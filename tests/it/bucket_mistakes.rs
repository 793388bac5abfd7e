//! Ordinary mistakes with a bucket, and how they are reported.

use std::process::Command;

use ack_test_bucket::Bucket;

use crate::bucket::{ADDRESS, command, publish, published, read_anew, reader, scene};
use crate::bucket_clouds::{Server, refused};
use crate::bucket_reading::both;
use crate::cli::{Outcome, run};
use crate::support::Root;

fn publish_to(root: &Root, address: &str, endpoint: &str, more: &[&str]) -> Command {
    let mut command = command(root.path());
    command.args(["publish", "mine", "--to", address, "--endpoint", endpoint]).args(more);
    command
}

/// The outcome of following an address for the first time.
fn followed(address: &str, bucket: &Bucket) -> Outcome {
    let root = Root::new();
    root.manifest(
        "team",
        &format!("table = \"{address}\"\n[remote]\nendpoint = \"{}\"\n", bucket.endpoint()),
    );
    run(command(root.path()).args(["query", "pool"]))
}

#[test]
fn a_bucket_that_does_not_exist_is_named() {
    let (root, bucket) = scene();
    let address = "s3://memoires/platform";
    for flag in ["--dry-run", "--yes", "--list"] {
        let refused = run(&mut publish_to(&root, address, &bucket.endpoint(), &[flag]));
        assert_eq!(refused.code, Some(1), "{}", refused.out);
        let said = "there is no bucket `memoires`";
        assert!(refused.err.contains(said), "{flag}: {}", refused.err);
        assert_contains!(refused.err, "create the bucket");
    }
    let outcome = followed(address, &bucket);
    assert_ne!(outcome.code, Some(0));
    assert_contains!(both(&outcome), "there is no bucket `memoires`");
}

#[test]
fn an_address_that_is_none_says_what_is_wrong() {
    let (root, bucket) = scene();
    for (address, problem) in [
        ("s3://memories", "it names no prefix in the bucket"),
        ("s3://memories/", "it names no prefix in the bucket"),
        ("memories/platform", "it does not begin with `s3://`"),
        ("https://memories.s3.amazonaws.com/x", "it does not begin with `s3://`"),
        ("s3://memories/my notes", "letters, digits"),
    ] {
        let refused = run(&mut publish_to(&root, address, &bucket.endpoint(), &[]));
        assert_eq!(refused.code, Some(1), "{}", refused.out);
        assert!(refused.err.contains(problem), "{address}: {}", refused.err);
        assert_contains!(refused.err, "s3://bucket/prefix");
    }
    let output = both(&followed("s3://memories/platfrom", &bucket));
    assert_contains!(output, "nothing is published", "check the address");
}

#[test]
fn withdrawing_twice_changes_nothing_and_stops_nothing() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let first = publish(&root, &bucket, &["--yes", "--withdraw", "m-1"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_contains!(first.out, "--prune 0d");
    let again = publish(&root, &bucket, &["--yes", "--withdraw", "m-1"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert_contains!(again.out, "m-1\n         was withdrawn by hand; `--restore m-1`");
    assert_contains!(again.out, "nothing to do");
    // Another memory in the same command is still withdrawn.
    let more = ["--yes", "--withdraw", "m-1", "--withdraw", "m-6"];
    let both = publish(&root, &bucket, &more);
    assert_eq!(both.code, Some(0), "{}", both.err);
    assert_eq!(read_anew(&bucket), ["The connection pool has 20 connections"]);
    let unknown = publish(&root, &bucket, &["--yes", "--withdraw", "m-99"]);
    assert_ne!(unknown.code, Some(0));
    assert_contains!(unknown.err, "`m-99` is not published", "finds the ids");
}

#[test]
fn a_pruned_version_is_distinguished_from_one_that_never_existed() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    published(&root, &bucket, &["--withdraw", "m-1"]);
    let pruned = publish(&root, &bucket, &["--yes", "--prune", "0d"]);
    assert_eq!(pruned.code, Some(0), "{}", pruned.err);
    let gone = publish(&root, &bucket, &["--yes", "--rollback", "v-1"]);
    assert_ne!(gone.code, Some(0));
    assert_contains!(gone.err, "no longer has version 1: `--prune` removed it");
    assert_contains!(gone.err, "v-2");
    let never = publish(&root, &bucket, &["--yes", "--rollback", "v-7"]);
    assert_contains!(never.err, "has no version 7");
}

#[test]
fn only_a_reader_is_promised_another_attempt() {
    let (root, mut bucket) = scene();
    let endpoint = bucket.endpoint();
    let reader = reader(&bucket, "60s");
    bucket.close();
    let publish = run(&mut publish_to(&root, ADDRESS, &endpoint, &["--yes"]));
    assert_eq!(publish.code, Some(1), "{}", publish.out);
    assert_contains!(publish.err, "--endpoint");
    assert_lacks!(publish.err, "tried again");
    let query = both(&run(command(reader.path()).args(["query", "pool"])));
    assert_contains!(query, "tried again by itself");
}

#[test]
fn what_a_server_refuses_says_what_to_do() {
    let (root, _bucket) = scene();
    let answers = "\
        400 | ExpiredToken | The provided token has expired. | get new credentials
        403 | RequestTimeTooSkewed | The request time and the current time differ. | set the clock
        400 | AuthorizationHeaderMalformed | the region 'us-east-1' is wrong; expecting 'eu-central-1' | `--region`
        301 | PermanentRedirect | The bucket must be addressed using the specified endpoint. | `--region`
        403 | AccessDenied | Access Denied | readers need GetObject
        403 | InvalidAccessKeyId | The AWS Access Key Id does not exist in our records. | check the key";
    for line in answers.lines() {
        let parts: Vec<&str> = line.trim().split(" | ").collect();
        let (status, code) = (parts[0].parse().unwrap(), parts[1]);
        let (message, advice) = (parts[2], parts[3]);
        let xml = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
        let server = Server::start(move |_| refused(status, &xml));
        let endpoint = server.url();
        let publish = run(&mut publish_to(&root, ADDRESS, &endpoint, &["--yes"]));
        let reader = Root::new();
        let manifest = format!("table = \"{ADDRESS}\"\n[remote]\nendpoint = \"{endpoint}\"\n");
        reader.manifest("team", &manifest);
        let query = run(command(reader.path()).args(["query", "pool"]));
        for outcome in [publish, query] {
            assert_ne!(outcome.code, Some(0), "{}", outcome.out);
            let output = both(&outcome);
            assert_contains!(output, "refuses to read `HEAD.json`");
            assert_contains!(output, advice; "{code}");
            assert_lacks!(output, "tried again");
        }
    }
}
