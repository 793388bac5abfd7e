//! Credentials for a bucket: from a command, a container's service, or the metadata service of a
//! machine. The services are servers on this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use ack_test_bucket::Bucket;
use serde_json::json;

use crate::bucket::{ADDRESS, command, only_for, published, scene};
use crate::bucket_clouds::{Answer, Server, refused as refusal};
use crate::bucket_reading::{both, first, notes};
use crate::cli::{Outcome, ack, run};
use crate::support::Root;

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
    command
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .args(["query", "pool connections", "--json"]);
    command
}

fn credentials(more: &str) -> String {
    format!(r#"{{"Version":1,"AccessKeyId":"given","SecretAccessKey":"{SECRET}"{more}}}"#)
}

/// A program that counts its runs and prints something.
fn program(root: &Root, prints: &str) -> PathBuf {
    let (path, runs) = (root.path().join("give"), root.path().join("runs"));
    let script = format!("#!/bin/sh\necho run >> {runs:?}\n{prints}\n");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

fn runs(root: &Root) -> usize {
    let runs = fs::read_to_string(root.path().join("runs"));
    runs.unwrap_or_default().lines().count()
}

/// Lets a root's scope use a program.
fn use_program(root: &Root, bucket: &Bucket, prints: &str) {
    let path = program(root, prints);
    let more = format!("credentials = \"command\"\ncommand = [{path:?}, \"an argument\"]");
    root.manifest("team", &manifest(bucket, &more));
}

#[test]
fn a_command_gives_the_credentials() {
    let bucket = guarded();
    let reader = Root::new();
    use_program(&reader, &bucket, &format!("echo '{}'", credentials("")));
    let answer = run(&mut query(&reader)).json();
    assert_eq!(first(&answer), TITLE);
    assert!(notes(&answer).is_empty(), "{answer}");
    assert_eq!(runs(&reader), 1);
    // Without it, the key of the environment is refused.
    let other = follower(&bucket, "");
    let refused = both(&run(query(&other)
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")));
    assert!(refused.contains("refuses"), "{refused}");
}

#[test]
fn problems_with_a_command_are_reported_without_secrets() {
    let bucket = guarded();
    let reader = Root::new();
    for (prints, cause) in [
        ("echo $SECRET; exit 3", "failed (exit status: 3)"),
        ("echo $SECRET", "gave no JSON"),
    ] {
        let _ = fs::remove_dir_all(reader.scope_folder("team").join("remote"));
        use_program(&reader, &bucket, &prints.replace("$SECRET", SECRET));
        let refused = run(&mut query(&reader));
        assert_ne!(refused.code, Some(0), "{}", refused.out);
        let output = both(&refused);
        assert!(output.contains(cause), "{prints}: {output}");
        assert!(
            output.contains("no credentials for s3://memories/platform"),
            "{output}"
        );
        assert!(!output.contains(SECRET), "{output}");
        let state = walkdir::WalkDir::new(reader.scope_folder("team")).into_iter();
        for entry in state
            .map(Result::unwrap)
            .filter(|one| one.file_type().is_file())
        {
            let text = fs::read(entry.path()).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains(SECRET));
        }
    }
    assert!(
        bucket
            .requests()
            .iter()
            .all(|request| request.key_id.as_deref() != Some("given"))
    );
}

#[test]
fn a_program_is_only_named_by_the_users_own_manifest() {
    let bucket = guarded();
    let prints = format!("echo '{}'", credentials(""));
    let not_run = |outcome: Outcome, root: &Root| {
        let output = both(&outcome);
        assert_ne!(outcome.code, Some(0), "{output}");
        assert_eq!(runs(root), 0, "{output}");
        output
    };
    let refused = |outcome: Outcome, root: &Root| {
        let output = not_run(outcome, root);
        assert!(output.contains("command"), "{output}");
    };
    // A manifest in a repository, reached by a link, does not count.
    let reader = Root::new();
    let repository = tempfile::tempdir().unwrap();
    let folder = repository.path().join("memory");
    fs::create_dir_all(&folder).unwrap();
    let path = program(&reader, &prints);
    let more = format!("credentials = \"command\"\ncommand = [{path:?}]");
    fs::write(folder.join("scope.toml"), manifest(&bucket, &more)).unwrap();
    fs::create_dir_all(reader.path().join("scopes")).unwrap();
    std::os::unix::fs::symlink(&folder, reader.path().join("scopes/team")).unwrap();
    not_run(run(&mut query(&reader)), &reader);
    // Only the manifest is a link.
    let reader = Root::new();
    program(&reader, &prints);
    let own = reader.scope_folder("team").join("scope.toml");
    std::os::unix::fs::symlink(folder.join("scope.toml"), own).unwrap();
    refused(run(&mut query(&reader)), &reader);
    // Next to a database that was named.
    let reader = Root::new();
    let database = reader.store("mine", &[crate::support::memory("m", "Text", json!({}))]);
    let moved = folder.join("memory.db");
    fs::copy(database, &moved).unwrap();
    let path = program(&reader, &prints);
    let text = format!("[remote]\ncredentials = \"command\"\ncommand = [{path:?}]\n");
    fs::write(folder.join("scope.toml"), text).unwrap();
    let publish = run(command(reader.path())
        .arg("--db")
        .arg(&moved)
        .args(["publish", "memory", "--to", ADDRESS, "--yes", "--endpoint"])
        .arg(bucket.endpoint()));
    refused(publish, &reader);
    // In the working folder.
    let reader = follower(&bucket, "credentials = \"command\"\ncommand = [\"./give\"]");
    program(&reader, &prints);
    refused(run(query(&reader).current_dir(reader.path())), &reader);
    assert!(
        ack(reader.path(), &["doctor"])
            .out
            .contains("absolute path")
    );
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
        fs::write(&file, token).unwrap();
        run(query(&reader)
            .env("AWS_CONTAINER_CREDENTIALS_FULL_URI", &uri)
            .env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &file))
    };
    assert_eq!(first(&ask("pass").json()), TITLE);
    // With another token it refuses, and the address stays secret.
    let output = both(&ask("other"));
    let named = "AWS_CONTAINER_CREDENTIALS_FULL_URI gave no credentials";
    assert!(output.contains(named) && output.contains("403"), "{output}");
    assert!(!output.contains("/v1/credentials"), "{output}");
    // Without one, nothing else is asked.
    let reader = follower(&bucket, "");
    let output = both(&run(
        query(&reader).env("AWS_CONTAINER_CREDENTIALS_FULL_URI", &uri)
    ));
    assert!(
        output.contains("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE is not"),
        "{output}"
    );
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
    assert!(
        output.contains("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set"),
        "{output}"
    );
    assert!(output.contains("instance"), "{output}");
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
    assert!(output.contains("not visible ASCII"), "{output}");
    assert!(!output.contains(SECRET), "{output}");
}
