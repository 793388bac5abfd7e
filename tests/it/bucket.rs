//! Publishing to a bucket: `publish --to`, with the real binary, a real store and a real server.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ack_test_bucket::{Action, Bucket, Operation};
use serde_json::{Value, json};

use crate::bucket_clouds::Server;
use crate::cli::{Outcome, binary, run};
use crate::support::{Root, memory, run_sql, titled};

/// Where the tests publish.
pub const ADDRESS: &str = "s3://memories/platform";

/// The binary over a root, with the key that the bucket knows.
pub fn command(root: &Path) -> Command {
    let mut command = binary();
    command
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "us-east-1")
        .env_remove("AWS_ENDPOINT_URL")
        .arg("--root")
        .arg(root);
    command
}

pub fn publish_command(root: &Root, bucket: &Bucket, more: &[&str]) -> Command {
    let mut command = command(root.path());
    command
        .args(["publish", "mine", "--to", ADDRESS, "--endpoint"])
        .arg(bucket.endpoint())
        .args(more);
    command
}

pub fn publish(root: &Root, bucket: &Bucket, more: &[&str]) -> Outcome {
    run(&mut publish_command(root, bucket, more))
}

/// What was planned or published, as JSON.
#[track_caller]
pub fn published(root: &Root, bucket: &Bucket, more: &[&str]) -> Value {
    let arguments: Vec<&str> = ["--json", "--yes"].iter().chain(more).copied().collect();
    let outcome = publish(root, bucket, &arguments);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
    serde_json::from_str(&outcome.out).unwrap()
}

/// The ids of a kind in a plan.
fn planned(plan: &Value, kind: &str) -> Vec<String> {
    let items = plan[kind].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// A scope with memories of every status, and a bucket.
pub fn scene() -> (Root, Bucket) {
    let root = Root::new();
    let first = json!({ "project": "ledger-api" });
    let second = json!({ "status": "staging", "narrative": "qxzwaits" });
    let third = json!({ "status": "rejected", "narrative": "qxzrejected" });
    let rest = json!({ "status": "blessed", "narrative": "qxzblessed" });
    let more = json!({ "status": "promoted" });
    let fields = json!({ "superseded_by": "m-2" });
    let memories = [
        memory(
            "m-1",
            "Exit code 137 in CI means the linker ran out of memory",
            json!({ "type": "gotcha", "project": "ledger-api", "facts": ["137 = 128 + SIGKILL"],
                "concepts": ["ci"], "files": [".github/workflows/ci.yml"], "narrative": "Symptom: the link step dies.",
                "created_at": "2026-01-04T10:00:00.123Z", "reviewed_by": "human:ana" }),
        ),
        memory("m-2", "The connection pool has 20 connections", first),
        memory("m-3", "STAGED-text waits for review", second),
        memory("m-4", "REJECTED-text", third),
        memory("m-5", "UNKNOWN-text", rest),
        memory("m-6", "Promoted to every team", more),
        memory("m-7", "The pool had 10 connections", fields),
    ];
    root.store("mine", &memories);
    sql(
        &root,
        "INSERT INTO memory_links (from_id, to_id, kind) VALUES ('m-2', 'm-7', 'supersedes'), \
         ('m-1', 'm-3', 'related'), ('m-1', 'm-6', 'related')",
    );
    (root, Bucket::start().unwrap())
}

/// Refuses every request that is not signed with this key, or does not carry this token.
pub fn only_for(bucket: &Bucket, key: &'static str) {
    bucket.intercept(move |request| match request.key_id.as_deref() {
        Some(signed) if signed == key => Action::Answer,
        _ => Action::Refuse(403),
    });
}

pub fn sql(root: &Root, text: &str) {
    let store = root.scope_folder("mine").join("memory.db");
    run_sql(store, text);
}

/// The published head.
fn head(bucket: &Bucket) -> Value {
    serde_json::from_slice(&bucket.get("platform/HEAD.json").unwrap()).unwrap()
}

/// The titles of everything that a new reader finds.
pub fn read_anew(bucket: &Bucket) -> Vec<String> {
    let reader = reader(bucket, "60s");
    let outcome = run(command(reader.path()).args(["query", "--all", "--json", "--limit", "50"]));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
    titles(&outcome.out)
}

pub fn titles(json: &str) -> Vec<String> {
    let answer: Value = serde_json::from_str(json).unwrap();
    let results = answer["results"].as_array().unwrap().iter();
    let mut titles: Vec<String> =
        results.map(|result| result["title"].as_str().unwrap().to_owned()).collect();
    titles.sort();
    titles
}

/// A root with a scope that follows the bucket.
pub fn reader(bucket: &Bucket, max_age: &str) -> Root {
    let root = Root::new();
    root.manifest(
        "team",
        &format!(
            "table = \"{ADDRESS}\"\n[remote]\nendpoint = \"{}\"\nmax_age = \"{max_age}\"\n",
            bucket.endpoint()
        ),
    );
    root
}

#[test]
fn only_approved_memories_are_published() {
    let (root, bucket) = scene();
    let plan = published(&root, &bucket, &[]);
    assert_eq!(planned(&plan, "added"), ["m-1", "m-2", "m-6", "m-7"]);
    assert_eq!(plan["published"]["version"], 1);
    assert_eq!(
        read_anew(&bucket),
        [
            "Exit code 137 in CI means the linker ran out of memory",
            "Promoted to every team",
            "The connection pool has 20 connections",
        ]
    );
}

#[test]
fn a_dry_run_plans_and_uploads_nothing() {
    let (root, bucket) = scene();
    let plan = published(&root, &bucket, &["--dry-run"]);
    assert_eq!(plan["written"], false);
    assert!(plan["cost"]["upload_bytes"].as_u64().unwrap() > 1_000);
    assert!(bucket.keys().is_empty(), "{:?}", bucket.keys());
    let outcome = publish(&root, &bucket, &["--dry-run"]);
    assert_contains!(outcome.out, "4 to add", "requests; the version has");
}

#[test]
fn only_what_changed_is_uploaded() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let nothing = publish(&root, &bucket, &["--yes"]);
    assert_contains!(nothing.out, "nothing to do");
    assert_eq!(head(&bucket)["version"], 1);
    sql(
        &root,
        "UPDATE memories SET title = 'The connection pool has 40 connections' WHERE id = 'm-2'; \
         UPDATE memories SET status = 'rejected' WHERE id = 'm-6'; \
         UPDATE memories SET status = 'approved' WHERE id = 'm-3'",
    );
    bucket.reset_log();
    let plan = published(&root, &bucket, &[]);
    assert_eq!(planned(&plan, "added"), ["m-3"]);
    assert_eq!(planned(&plan, "changed"), ["m-2"]);
    assert_eq!(planned(&plan, "withdrawn"), ["m-6"]);
    assert_eq!(plan["unchanged"], 2);
    assert!(bucket.requests().len() <= 30, "{:?}", bucket.requests());
    assert_eq!(
        read_anew(&bucket),
        [
            "Exit code 137 in CI means the linker ran out of memory",
            "STAGED-text waits for review",
            "The connection pool has 40 connections",
        ]
    );
}

#[test]
fn a_server_that_ignores_conditions_is_refused() {
    let (root, bucket) = scene();
    bucket.intercept(|_| Action::IgnoreConditions);
    let refused = publish(&root, &bucket, &["--yes"]);
    assert_ne!(refused.code, Some(0), "{}", refused.out);
    assert_contains!(refused.err, "safely");
    assert!(bucket.get("platform/HEAD.json").is_none());
}

#[test]
fn a_manually_withdrawn_memory_stays_withdrawn_until_it_is_restored() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let plan = published(&root, &bucket, &["--withdraw", "m-1"]);
    assert_eq!(planned(&plan, "withdrawn"), ["m-1"]);
    assert_eq!(read_anew(&bucket).len(), 2);
    let again = published(&root, &bucket, &[]);
    assert_eq!(planned(&again, "held_back"), ["m-1"]);
    assert_eq!(again["written"], false);
    let back = publish(&root, &bucket, &["--rollback", "v-1", "--yes"]);
    assert_ne!(back.code, Some(0));
    assert_contains!(back.err, "withdrawn since: m-1");
    let unknown = publish(&root, &bucket, &["--withdraw", "nope", "--yes"]);
    assert_contains!(unknown.err, "is not published");
    let restored = published(&root, &bucket, &["--restore", "m-1"]);
    assert_eq!(planned(&restored, "added"), ["m-1"]);
    assert_eq!(read_anew(&bucket).len(), 3);
}

#[test]
fn a_withdrawn_text_leaves_the_bucket_after_a_rebuild_and_prune() {
    let (root, bucket) = scene();
    sql(
        &root,
        "UPDATE memories SET title = 'qxzwithdrawn', narrative = NULL, facts = NULL WHERE id = 'm-1'",
    );
    // The texts are compressed, the stems of their words are not.
    let is_there = || String::from_utf8_lossy(&bucket.all_bytes()).contains("qxzwithdrawn");
    published(&root, &bucket, &[]);
    published(&root, &bucket, &["--withdraw", "m-1"]);
    assert!(is_there());
    let titles = read_anew(&bucket);
    // Columns may be compressed, so the files that contained the text are checked, too.
    let data = |bucket: &Bucket| {
        let keys = bucket.keys().into_iter();
        keys.filter(|key| key.contains("/data/")).collect::<Vec<_>>()
    };
    let old = data(&bucket);
    published(&root, &bucket, &["--reindex"]);
    assert!(old.iter().all(|key| bucket.get(key).is_some()));
    published(&root, &bucket, &["--prune", "0d"]);
    assert!(old.iter().all(|key| bucket.get(key).is_none()), "{old:?}");
    assert_eq!(data(&bucket).len(), 1);
    assert!(!is_there());
    assert_eq!(read_anew(&bucket), titles);
}

#[test]
fn versions_can_be_rolled_back_and_pruned() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let update = "UPDATE memories SET title = 'A mistake' WHERE id = 'm-1'";
    sql(&root, update);
    published(&root, &bucket, &[]);
    assert!(read_anew(&bucket).contains(&"A mistake".to_owned()));
    let back = published(&root, &bucket, &["--rollback", "v-1"]);
    assert_eq!(back["version"], 3);
    assert!(!read_anew(&bucket).contains(&"A mistake".to_owned()));
    let none = publish(&root, &bucket, &["--rollback", "v-9", "--yes"]);
    assert_contains!(none.err, "has no version 9");
    let listed = publish(&root, &bucket, &["--list"]);
    assert_eq!(listed.out.lines().count(), 3, "{}", listed.out);
    assert!(listed.out.starts_with("* v-3"), "{}", listed.out);
    let before = bucket.keys().len();
    let pruned = published(&root, &bucket, &["--prune", "0s"]);
    assert_eq!(pruned["versions"], json!([2, 1]));
    assert!(bucket.keys().len() < before);
    // The files that it kept are all that a reader needs, and the next version builds on it.
    assert_eq!(read_anew(&bucket).len(), 3);
    published(&root, &bucket, &[]);
    assert!(read_anew(&bucket).contains(&"A mistake".to_owned()));
}

#[test]
fn a_publisher_that_would_remove_what_another_one_added_is_stopped() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let other = Root::new();
    let copy = other.scope_folder("mine").join("memory.db");
    fs::copy(root.scope_folder("mine").join("memory.db"), &copy).unwrap();
    let before = head(&bucket)["version"].as_u64().unwrap();
    sql(
        &root,
        "INSERT INTO memories (id, title, status) VALUES ('late', 'A late one', 'approved')",
    );
    // The first one is slow to write its head, and another one publishes meanwhile.
    let heads = delay_first_head(&bucket);
    let update = "UPDATE memories SET title = 'Mine' WHERE id = 'm-1'";
    sql(&other, update);
    let slow = publish_command(&other, &bucket, &["--yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while heads.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    published(&root, &bucket, &[]);
    let output = slow.wait_with_output().unwrap();
    let stopped = Outcome {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    };
    bucket.clear_faults();
    assert_ne!(stopped.code, Some(0), "{}", stopped.out);
    assert_contains!(stopped.err, "would remove");
    assert_eq!(head(&bucket)["version"].as_u64().unwrap(), before + 1);
    assert!(read_anew(&bucket).contains(&"A late one".to_owned()));
}

/// Delays the first write of the head by five seconds. Counts these writes as they arrive.
fn delay_first_head(bucket: &Bucket) -> Arc<AtomicUsize> {
    let heads = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&heads);
    bucket.intercept(move |request| {
        let is_head = request.operation == Operation::Put && request.key.ends_with("HEAD.json");
        if is_head && counter.fetch_add(1, Ordering::SeqCst) == 0 {
            return Action::Delay(Duration::from_secs(5));
        }
        Action::Answer
    });
    heads
}

/// Runs the command that undoes a publication, as it was printed.
fn undo(root: &Root, published: &Outcome) -> Outcome {
    assert_eq!(published.code, Some(0), "{}{}", published.out, published.err);
    let (_, printed) = published.out.split_once("; undo: ack-memory ").unwrap();
    let printed = printed.lines().next().unwrap();
    let mut again = binary();
    again
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env_remove("AWS_ENDPOINT_URL")
        .current_dir(root.path())
        .args(printed.split_whitespace())
        .arg("--yes");
    run(&mut again)
}

#[test]
fn the_command_that_undoes_a_publication_works_as_it_is_printed() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let before = read_anew(&bucket);
    let update = "UPDATE memories SET title = 'A mistake' WHERE id = 'm-1'";
    sql(&root, update);
    let outcome = publish(&root, &bucket, &["--yes", "--region", "us-east-1"]);
    assert_ne!(read_anew(&bucket), before);
    let undone = undo(&root, &outcome);
    assert_eq!(undone.code, Some(0), "{}{}", outcome.out, undone.err);
    assert_eq!(read_anew(&bucket), before);
    // Memories that were withdrawn by hand only come back if they are named.
    let words = ["--yes", "--withdraw", "m-1", "--withdraw", "m-2"];
    let outcome = publish(&root, &bucket, &words);
    assert_ne!(read_anew(&bucket), before);
    let undone = undo(&root, &outcome);
    assert_eq!(undone.code, Some(0), "{}{}", outcome.out, undone.err);
    assert_eq!(read_anew(&bucket), before);
}

#[test]
fn another_scope_does_not_replace_what_is_published() {
    let (root, bucket) = scene();
    root.store("theirs", &[titled("t-1", "Something else")]);
    published(&root, &bucket, &[]);
    let before = read_anew(&bucket);
    let other = |more: &[&str]| {
        let mut command = command(root.path());
        command
            .args(["publish", "theirs", "--to", ADDRESS, "--yes", "--endpoint"])
            .arg(bucket.endpoint())
            .args(more);
        run(&mut command)
    };
    for more in [&[] as &[&str], &["--dry-run"], &["--replace", "third"]] {
        let refused = other(more);
        assert_ne!(refused.code, Some(0), "{}", refused.out);
        assert_contains!(refused.err, "4 memories of scope `mine`", "--replace mine");
    }
    // Any scope may withdraw, and the other memories stay those of the first scope.
    other(&["--withdraw", "m-6"]).ok();
    assert_eq!(read_anew(&bucket).len(), before.len() - 1);
    published(&root, &bucket, &["--restore", "m-6"]);
    assert_eq!(read_anew(&bucket), before);
    other(&["--replace", "mine"]).ok();
    assert_eq!(read_anew(&bucket), ["Something else"]);
    assert_contains!(publish(&root, &bucket, &["--yes"]).err, "of scope `theirs`");
}

#[test]
fn without_the_right_to_list_nothing_is_removed() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    published(&root, &bucket, &["--reindex"]);
    let before = bucket.keys();
    bucket.intercept(|request| match request.operation {
        Operation::List => Action::Refuse(403),
        _ => Action::Answer,
    });
    let outcome = publish(&root, &bucket, &["--prune", "0s", "--yes"]);
    assert_eq!(outcome.code, Some(1), "{}{}", outcome.out, outcome.err);
    assert_contains!(outcome.err, "refuses to list", "ListBucket");
    assert_eq!(bucket.keys(), before);
}

#[test]
fn an_endpoint_that_cannot_be_used_is_named_as_it_was_given() {
    let (root, _bucket) = scene();
    let publish = |endpoint: &str| {
        let mut command = command(root.path());
        command.args(["publish", "mine", "--to", ADDRESS, "--yes"]);
        command.args(["--endpoint", endpoint]);
        run(&mut command).fails(2)
    };
    for endpoint in ["minio.example.com", "ftp://minio.example.com"] {
        let output = publish(endpoint);
        assert_contains!(output, "--endpoint", "an address with https://");
        assert_lacks!(output, "[remote]");
    }
    assert_contains!(publish("http://example.com"), "others can read them");
    let mut command = command(root.path());
    command.args(["publish", "mine", "--to", ADDRESS, "--yes"]).env("AWS_ENDPOINT_URL", "nowhere");
    let output = run(&mut command).fails(2);
    assert_contains!(output, "AWS_ENDPOINT_URL");
}

/// Asks a reader until its answer is as wanted: on a busy machine a request does not wait for the
/// bucket, and after failures the bucket is left alone for a while. `may_show` is whether an answer
/// may have the withdrawn memory.
#[track_caller]
fn ask_until(reader: &Root, may_show: bool, wanted: impl Fn(&str) -> bool) {
    let asked_until = Instant::now() + Duration::from_secs(60);
    loop {
        let outcome = run(command(reader.path()).args(["query", "linker memory", "--json"]));
        let answer = format!("{}{}", outcome.out, outcome.err);
        assert!(may_show || !answer.contains("Exit code 137"), "{answer}");
        if wanted(&answer) {
            return;
        }
        assert!(Instant::now() < asked_until, "{answer}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_bucket_that_was_set_back_serves_nothing_again_that_was_withdrawn() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let old = bucket.get("platform/HEAD.json").unwrap();
    published(&root, &bucket, &["--withdraw", "m-1"]);
    let (reader, twin) = (reader(&bucket, "0s"), reader(&bucket, "0s"));
    for reader in [&reader, &twin] {
        ask_until(reader, false, |answer| {
            answer.contains("\"results\"") && !answer.contains("remote_")
        });
    }
    bucket.put("platform/HEAD.json", old);
    ask_until(&reader, false, |answer| {
        answer.contains("version 1") && answer.contains("does not follow version 2")
    });
    // Somebody without the newest version publishes twice: the number is higher, the mark is gone.
    let other = Root::new();
    let copy = other.scope_folder("mine").join("memory.db");
    fs::copy(root.scope_folder("mine").join("memory.db"), copy).unwrap();
    for title in ["One", "Two"] {
        let change = format!("UPDATE memories SET title = '{title}' WHERE id = 'm-2'");
        sql(&other, &change);
        published(&other, &bucket, &[]);
    }
    assert_eq!(head(&bucket)["version"], 3);
    ask_until(&reader, false, |answer| answer.contains("were withdrawn: m-1"));
    // The machine that withdrew it knows, also after it only looked, and repairs the bucket.
    let looked = published(&root, &bucket, &["--dry-run"]);
    assert_eq!(planned(&looked, "held_back"), ["m-1"]);
    let healed = published(&root, &bucket, &[]);
    assert_eq!(planned(&healed, "held_back"), ["m-1"]);
    ask_until(&reader, false, |answer| {
        answer.contains("\"results\"") && !answer.contains("remote_")
    });
    // What somebody restores on purpose comes back, also for readers that missed that version.
    published(&root, &bucket, &["--restore", "m-1"]);
    let update = "UPDATE memories SET title = 'Three' WHERE id = 'm-2'";
    sql(&root, update);
    published(&root, &bucket, &[]);
    ask_until(&twin, true, |answer| answer.contains("Exit code 137"));
}

#[test]
fn a_redirect_to_another_host_is_not_followed() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    bucket.reset_log();
    let target = bucket.endpoint();
    let redirecting = Server::start(move |request| {
        let path = request.path.trim_start_matches("GET ");
        (307, format!("location: {target}{path}\r\n"), Vec::new())
    });
    let reader = Root::new();
    reader.manifest(
        "team",
        &format!("table = \"{ADDRESS}\"\n[remote]\nendpoint = \"{}\"\n", redirecting.url()),
    );
    let outcome = run(command(reader.path()).args(["query", "linker memory", "--json"]));
    assert!(!redirecting.seen().is_empty());
    let said = format!("{}{}", outcome.out, outcome.err);
    assert_lacks!(said, "Exit code 137");
    assert_contains!(said, "307");
    assert!(bucket.requests().is_empty(), "{:?}", bucket.requests());
}

#[test]
fn a_version_that_grows_a_hundredfold_on_this_machine_is_refused() {
    let (root, bucket) = scene();
    let long = "a".repeat(1 << 20);
    let rows: Vec<String> =
        (0..12).map(|row| format!("('big-{row}', 'Big {row}', '{long}', 'approved')")).collect();
    sql(
        &root,
        &format!("INSERT INTO memories (id, title, narrative, status) VALUES {}", rows.join(", ")),
    );
    published(&root, &bucket, &[]);
    let reader = reader(&bucket, "60s");
    let outcome = run(command(reader.path()).args(["query", "linker memory", "--json"]));
    let said = format!("{}{}", outcome.out, outcome.err);
    assert_contains!(said, "far larger than its files say");
}
