//! Credentials for a bucket: from a container's service, or the metadata service of a machine. The
//! services are servers on this machine.

use std::process::Command;
use std::time::{Duration, Instant};

use ack_test_bucket::Bucket;

use crate::bucket::{ADDRESS, command, only_for, published, scene};
use crate::bucket_clouds::{Answer, Server, refused as refusal};
use crate::bucket_reading::{both, first};
use crate::cli::run;
use crate::support::{Root, write_file};

const TITLE: &str = "The connection pool has 20 connections";
/// What no message may contain.
const SECRET: &str = "s3cret-of-the-test";

/// A published scope in a bucket that only the key `given` may read.
fn guarded() -> Bucket {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    only_for(&bucket, "given");
    bucket
}

/// A root that follows the bucket, with these lines under `[remote]`.
fn follower(bucket: &Bucket, more: &str) -> Root {
    let root = Root::new();
    root.manifest("team", &manifest(bucket, more));
    root
}

fn manifest(bucket: &Bucket, more: &str) -> String {
    format!(
        "table = \"{ADDRESS}\"\n[remote]\nendpoint = \"{}\"\nmax_age = \"1s\"\n{more}\n",
        bucket.endpoint()
    )
}

/// A query without any credentials in the environment.
fn query(root: &Root) -> Command {
    let mut command = command(root.path());
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY").args([
        "query",
        "pool connections",
        "--json",
    ]);
    command
}

fn credentials(more: &str) -> String {
    format!(r#"{{"Version":1,"AccessKeyId":"given","SecretAccessKey":"{SECRET}"{more}}}"#)
}

/// Credentials in the format of a cloud's service.
fn of_service() -> Answer {
    let text = credentials(r#","Token":"of-the-service","Expiration":"2999-01-01T00:00:00Z""#);
    (200, String::new(), text.into_bytes())
}

#[test]
fn a_container_gives_the_credentials() {
    let bucket = guarded();
    let service = Server::start(|request| {
        if request.path == "GET /v1/credentials" && request.header("authorization") == Some("pass")
        {
            return of_service();
        }
        refusal(403, "")
    });
    let uri = format!("{}/v1/credentials", service.url());
    let ask = |token: &str| {
        let reader = follower(&bucket, "");
        let file = reader.path().join("token");
        write_file(&file, token);
        run(query(&reader)
            .env("AWS_CONTAINER_CREDENTIALS_FULL_URI", &uri)
            .env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &file))
    };
    assert_eq!(first(&ask("pass").json()), TITLE);
    // With another token it refuses, and the address stays secret.
    let output = both(&ask("other"));
    let named = "AWS_CONTAINER_CREDENTIALS_FULL_URI gave no credentials";
    assert_contains!(output, named, "403");
    assert_lacks!(output, "/v1/credentials");
    // Without one, nothing else is asked.
    let reader = follower(&bucket, "");
    let output = both(&run(query(&reader).env("AWS_CONTAINER_CREDENTIALS_FULL_URI", &uri)));
    assert_contains!(output, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE is not");
}

#[test]
fn a_machine_is_only_asked_where_the_scope_says_so() {
    let bucket = guarded();
    let service = Server::start(|request| {
        let text = |text: &str| (200, String::new(), text.as_bytes().to_vec());
        let has_token = request.header("x-aws-ec2-metadata-token") == Some("session");
        match request.path.as_str() {
            "PUT /latest/api/token" => text("session"),
            "GET /latest/meta-data/iam/security-credentials/" if has_token => text("a-role"),
            "GET /latest/meta-data/iam/security-credentials/a-role" if has_token => of_service(),
            _ => refusal(403, ""),
        }
    });
    let ask = |more: &str| {
        let reader = follower(&bucket, more);
        let mut command = query(&reader);
        command.env("AWS_METADATA_ENDPOINT", service.url());
        let began = Instant::now();
        (run(&mut command), began.elapsed())
    };
    let (refused, took) = ask("");
    let output = both(&refused);
    assert_contains!(output, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set");
    assert_contains!(output, "instance");
    assert!(service.seen().is_empty());
    assert!(took < Duration::from_secs(5), "{took:?}");
    let (answer, _) = ask("credentials = \"instance\"");
    assert_eq!(first(&answer.json()), TITLE);
    assert_eq!(service.seen().len(), 3);
}

#[test]
fn keys_that_cannot_be_sent_are_refused() {
    let bucket = guarded();
    let reader = follower(&bucket, "");
    let refused = run(query(&reader)
        .env("AWS_ACCESS_KEY_ID", "given\nx-other: header")
        .env("AWS_SECRET_ACCESS_KEY", SECRET));
    let output = both(&refused);
    assert_contains!(output, "not visible ASCII");
    assert_lacks!(output, SECRET);
}
