//! Scopes in a bucket: what readers get, with the network as it is.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ack_test_bucket::{Action, Bucket};
use serde_json::{Value, json};

use crate::arguments::call;
use crate::bucket::{command, publish, published, reader, scene, sql, titles};
use crate::cli::{Outcome, run, run_with_input};
use crate::support::{Ask, Root, titled, write_file};

pub fn ask(root: &Root, more: &[&str]) -> Outcome {
    run(command(root.path()).args(["query", "pool connections", "--json"]).args(more))
}

#[track_caller]
pub fn answer(root: &Root) -> Value {
    let outcome = ask(root, &[]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
    serde_json::from_str(&outcome.out).unwrap()
}

/// The kinds of the notes of an answer.
pub fn notes(answer: &Value) -> Vec<String> {
    let notes = answer["notes"].as_array().into_iter().flatten();
    notes.map(|note| note["kind"].as_str().unwrap().to_owned()).collect()
}

/// The output and the errors of a command.
pub fn both(outcome: &Outcome) -> String {
    format!("{}{}", outcome.out, outcome.err)
}

/// The folder of a reader's copy of the bucket.
pub fn remote(reader: &Root) -> PathBuf {
    let buckets = reader.scope_folder("team").join("remote");
    buckets.read_dir().unwrap().next().unwrap().unwrap().path()
}

pub fn first(answer: &Value) -> &str {
    answer["results"][0]["title"].as_str().unwrap()
}

/// A published scope, the bucket, and a root that follows it and has asked once.
pub fn followed(max_age: &str) -> (Root, Bucket, Root) {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let reader = reader(&bucket, max_age);
    assert_eq!(first(&answer(&reader)), "The connection pool has 20 connections");
    (root, bucket, reader)
}

/// The title of the memory about the pool after [`enlarge`].
pub const ENLARGED: &str = "The connection pool has 40 connections";

/// Changes a memory that is published.
pub fn enlarge(root: &Root) {
    let update = format!("UPDATE memories SET title = '{ENLARGED}' WHERE id = 'm-2'");
    sql(root, &update);
}

pub fn wait(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

#[test]
fn a_warm_query_does_not_contact_the_bucket() {
    let (_root, bucket, reader) = followed("1h");
    bucket.reset_log();
    for _ in 0..5 {
        let answer = answer(&reader);
        assert!(!notes(&answer).iter().any(|kind| kind.starts_with("remote")));
    }
    assert_eq!(bucket.requests().len(), 0, "{:?}", bucket.requests());
}

#[test]
fn a_memory_has_all_that_was_published_of_it() {
    let (_root, bucket, reader) = followed("1h");
    drop(bucket);
    let team = reader.service();
    let got = team.fetch(json!({ "ids": ["m-1"] }));
    assert_contains!(
        got.to_string(),
        "137 = 128 + SIGKILL",
        "the link step dies",
        "human:ana",
        ".github/workflows/ci.yml"
    );
    // Memories that are not published are not found, whatever the request.
    let arguments = json!({ "ids": ["m-3"], "status": "all" });
    let none = call(&team, "get_memory", arguments);
    let none = none.map_or_else(|error| error.to_string(), |answer| answer.to_string());
    assert_lacks!(none, "STAGED-text");
}

#[test]
fn a_new_version_is_fetched_after_max_age() {
    let (root, _bucket, reader) = followed("1s");
    enlarge(&root);
    published(&root, &_bucket, &[]);
    wait(1_100);
    assert_eq!(first(&answer(&reader)), ENLARGED);
    published(&root, &_bucket, &["--withdraw", "m-2"]);
    wait(1_100);
    assert_lacks!(answer(&reader).to_string(), "40 connections");
}

#[test]
fn fetched_memories_are_served_without_a_network() {
    let (_root, mut bucket, reader) = followed("1s");
    bucket.close();
    wait(1_100);
    let answer = answer(&reader);
    assert_eq!(first(&answer), "The connection pool has 20 connections");
    assert_eq!(notes(&answer), ["remote_stale"], "{answer}");
    let people = run(command(reader.path()).args(["query", "pool connections"]));
    assert_contains!(people.out, "as of");
}

#[test]
fn a_frozen_server_delays_only_one_request() {
    let (_root, bucket, reader) = followed("1s");
    wait(1_100);
    bucket.intercept(|_| Action::Hang);
    let began = Instant::now();
    assert_eq!(notes(&answer(&reader)), ["remote_stale"]);
    let first = began.elapsed();
    assert!(first < Duration::from_secs(4), "{first:?}");
    bucket.reset_log();
    // The next process knows, and asks nobody.
    assert_eq!(notes(&answer(&reader)), ["remote_stale"]);
    assert_eq!(bucket.requests().len(), 0);
    bucket.clear_faults();
    wait(1_100);
    assert!(notes(&answer(&reader)).is_empty());
}

#[test]
fn a_copy_older_than_the_offline_limit_is_not_served() {
    let (root, mut bucket) = scene();
    published(&root, &bucket, &[]);
    let reader = reader(&bucket, "1s");
    let manifest = format!(
        "table = \"s3://memories/platform\"\n[remote]\nendpoint = \"{}\"\nmax_age = \"1s\"\noffline = \"2s\"\n",
        bucket.endpoint()
    );
    reader.manifest("team", &manifest);
    answer(&reader);
    bucket.close();
    wait(3_100);
    let refused = ask(&reader, &[]);
    assert_ne!(refused.code, Some(0), "{}", refused.out);
    assert_contains!(both(&refused), "offline");
}

#[test]
fn a_scope_is_cold_before_the_first_fetch() {
    let (_root, bucket) = scene();
    let reader = reader(&bucket, "1s");
    let refused = ask(&reader, &[]);
    assert_ne!(refused.code, Some(0));
    assert_contains!(both(&refused), "nothing is published");
    // Other scopes answer anyway, and the answer says what is missing.
    reader.store("own", &[titled("o-1", "My own pool of connections")]);
    let answer = answer(&reader);
    assert_eq!(first(&answer), "My own pool of connections");
    assert_eq!(notes(&answer), ["remote_cold"]);
}

#[test]
fn network_failures_are_retried_or_reported() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    // Some requests fail and are repeated.
    let arrived = AtomicUsize::new(0);
    bucket.intercept(move |_| match arrived.fetch_add(1, Ordering::SeqCst) % 3 {
        2 => Action::Refuse(503),
        _ => Action::Answer,
    });
    assert_eq!(first(&answer(&reader(&bucket, "1h"))), "The connection pool has 20 connections");
    bucket.clear_faults();
    // A file that differs from the published one is never used.
    let data = bucket.keys().into_iter().find(|key| key.contains("/data/")).unwrap();
    let sound = bucket.get(&data).unwrap();
    let mut damaged = sound.to_vec();
    damaged[100] ^= 1;
    bucket.put(&data, damaged);
    let refused = ask(&reader(&bucket, "1h"), &[]);
    assert_ne!(refused.code, Some(0));
    assert_contains!(both(&refused), "is not what was published");
    bucket.put(&data, sound);
    // A description that leads out of its folder is refused.
    let log = bucket.keys().into_iter().find(|key| key.contains("/log/")).unwrap();
    let text = String::from_utf8(bucket.get(&log).unwrap().to_vec()).unwrap();
    let said = "\"path\": \"../../../links.jsonl\"";
    let hostile = text.replace("\"path\": \"links.jsonl\"", said);
    assert_ne!(hostile, text);
    let mut head: Value =
        serde_json::from_slice(&bucket.get("platform/HEAD.json").unwrap()).unwrap();
    head["sha256"] = json!(sha256(&hostile));
    bucket.put(&log, hostile);
    bucket.put("platform/HEAD.json", head.to_string());
    let refused = ask(&reader(&bucket, "1h"), &[]);
    assert_contains!(both(&refused), "not a path inside it");
}

fn sha256(text: &str) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_hook_never_asks_the_bucket() {
    let (_root, bucket, reader) = followed("1s");
    wait(1_100);
    bucket.reset_log();
    let event = json!({ "hook_event_name": "SessionStart", "source": "startup", "session_id": "s", "cwd": reader.path() });
    let mut hook = command(reader.path());
    hook.args(["hook", "session-start"]);
    run_with_input(&mut hook, event.to_string().as_bytes()).ok();
    assert_eq!(bucket.requests().len(), 0);
}

#[test]
fn the_bucket_is_not_contacted_offline() {
    let (_root, bucket, reader) = followed("1s");
    wait(1_100);
    bucket.reset_log();
    assert!(!first(&ask(&reader, &["--offline"]).json()).is_empty());
    assert_eq!(bucket.requests().len(), 0);
    let publish = "--offline publish team --to s3://other/place --yes";
    let publish: Vec<&str> = publish.split(' ').collect();
    let refused = crate::cli::ack(reader.path(), &publish).fails(1);
    assert_contains!(refused, "--offline allows no connection");
}

#[test]
fn bucket_settings_in_a_manifest_are_validated() {
    let root = Root::new();
    let manifests = r#"
        "s3://memories" => s3://bucket/prefix
        "s3://m/x", store = "a.db" => leave out `store` and `ref`
        "s3://m/x", [remote], max_age = "soon" => max_age
        "s3://m/x", [remote], endpoint = "http://example.com" => https://
        "s3://m/x", [remote], credentials = "command" => command"#;
    for line in manifests.lines().skip(1) {
        let (keys, expected) = line.trim().split_once(" => ").unwrap();
        let manifest = format!("table = {}\n", keys.replace(", ", "\n"));
        root.manifest("team", &manifest);
        let outcome = run(command(root.path()).args(["query", "x", "--json"]));
        assert_ne!(outcome.code, Some(0), "{manifest}");
        assert_contains!(both(&outcome), expected; "{manifest}");
    }
}

#[test]
fn a_followed_scope_is_not_published_and_not_imported_into() {
    let (_root, bucket, reader) = followed("1h");
    reader.manifest("mine", "table = \"s3://memories/platform\"\n");
    let refused = publish(&reader, &bucket, &["--yes"]);
    assert_contains!(refused.err, "already published");
    let lines = reader.path().join("lines.jsonl");
    write_file(&lines, "{\"title\":\"x\"}\n");
    let refused = run(command(reader.path()).arg("import").arg(&lines).args(["--scope", "team"]));
    assert_ne!(refused.code, Some(0), "{}", refused.out);
    assert_contains!(refused.err, "bucket");
    let refused = run(command(reader.path()).args(["index", "--scope", "team"]));
    assert_ne!(refused.code, Some(0), "{}", refused.out);
    assert_contains!(refused.err, "bucket");
    let kept = run(command(reader.path()).args(["query", "--all", "--json", "--scope", "team"]));
    assert_eq!(titles(&kept.out).len(), 3);
}
