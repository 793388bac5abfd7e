//! Google Cloud Storage: publishing and following, with the token of a machine. The bucket speaks
//! Google's protocol, and each request without the token is refused.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use ack_test_bucket::{Access, Bucket, Dialect};
use serde_json::{Value, json};

use crate::bucket::{command, delay_first_head, scene, sql, titles};
use crate::bucket_clouds::{Server, TOKEN, google_machine};
use crate::cli::{Outcome, run};
use crate::support::Root;

const ADDRESS: &str = "gs://memories/platform";

/// A bucket at Google and a machine there, which has the token for it.
struct Cloud {
    bucket: Bucket,
    machine: Server,
}

impl Cloud {
    fn start() -> Self {
        let bucket = Bucket::start_as(Dialect::Google).unwrap();
        bucket.set_access(Access::Key(TOKEN.to_owned()));
        Self {
            bucket,
            machine: google_machine(),
        }
    }

    /// The end of a manifest whose scope is published to, or follows, this bucket.
    fn remote(&self) -> String {
        format!(
            "[remote]\nendpoint = \"{}\"\ncredentials = \"instance\"\n",
            self.bucket.endpoint()
        )
    }

    /// The scope that is published.
    fn publisher(&self) -> Root {
        let (root, _) = scene();
        root.manifest("mine", &self.remote());
        root
    }

    fn command(&self, root: &Root) -> Command {
        let mut command = command(root.path());
        command
            .env_remove("AWS_ACCESS_KEY_ID")
            .env_remove("AWS_SECRET_ACCESS_KEY")
            .env_remove("GOOGLE_APPLICATION_CREDENTIALS")
            .env("HOME", root.path())
            .env("GCE_METADATA_HOST", &self.machine.address)
            .env("GCE_METADATA_IP", &self.machine.address);
        command
    }

    fn publish_command(&self, root: &Root, more: &[&str]) -> Command {
        let mut command = self.command(root);
        command.args(["publish", "mine", "--to", ADDRESS, "--yes"]);
        command.args(more);
        command
    }

    fn publish(&self, root: &Root, more: &[&str]) -> Outcome {
        run(&mut self.publish_command(root, more))
    }

    #[track_caller]
    fn published(&self, root: &Root, more: &[&str]) -> Value {
        let arguments: Vec<&str> = more.iter().chain(&["--json"]).copied().collect();
        let outcome = self.publish(root, &arguments);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
        outcome.json()
    }

    /// The titles of everything that a new reader finds.
    #[track_caller]
    fn read(&self) -> Vec<String> {
        let reader = Root::new();
        let manifest = format!("table = \"{ADDRESS}\"\n{}", self.remote());
        reader.manifest("team", &manifest);
        let outcome = run(self
            .command(&reader)
            .args(["query", "--all", "--json", "--limit", "50"]));
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
        titles(&outcome.out)
    }

    fn version(&self) -> u64 {
        let head = self.bucket.get("platform/HEAD.json").unwrap();
        let head: Value = serde_json::from_slice(&head).unwrap();
        head["version"].as_u64().unwrap()
    }
}

#[test]
fn a_scope_is_published_followed_rolled_back_and_pruned() {
    let cloud = Cloud::start();
    let root = cloud.publisher();
    let plan = cloud.published(&root, &[]);
    assert_eq!(plan["published"]["version"], 1);
    let first = cloud.read();
    assert_eq!(
        first,
        [
            "Exit code 137 in CI means the linker ran out of memory",
            "Promoted to every team",
            "The connection pool has 20 connections",
        ]
    );
    sql(
        &root,
        "UPDATE memories SET title = 'A mistake' WHERE id = 'm-1'",
    );
    cloud.published(&root, &[]);
    cloud.published(&root, &["--withdraw", "m-6"]);
    assert_eq!(
        cloud.read(),
        ["A mistake", "The connection pool has 20 connections"]
    );
    cloud.published(&root, &["--restore", "m-6"]);
    cloud.published(&root, &["--rollback", "v-1"]);
    assert_eq!(cloud.read(), first);
    let listed = cloud.publish(&root, &["--list"]);
    assert!(listed.out.starts_with("* v-5"), "{}", listed.out);
    let before = cloud.bucket.keys().len();
    let pruned = cloud.published(&root, &["--prune", "0s"]);
    assert_eq!(pruned["versions"], json!([4, 3, 2, 1]));
    assert!(cloud.bucket.keys().len() < before);
    assert_eq!(cloud.read(), first);
    // Nothing was sent without the token, and none of the steps of an upload was left open.
    assert!(cloud.bucket.unfinished().is_empty());
    let requests = cloud.bucket.requests();
    assert!(requests.iter().all(|request| request.status != Some(403)));
}

#[test]
fn a_server_that_ignores_generations_is_refused() {
    let cloud = Cloud::start();
    let root = cloud.publisher();
    cloud.bucket.set_ignore_conditions(true);
    let refused = cloud.publish(&root, &[]);
    assert_ne!(refused.code, Some(0), "{}", refused.out);
    assert!(refused.err.contains("safely"), "{}", refused.err);
    assert!(cloud.bucket.get("platform/HEAD.json").is_none());
}

/// Starts a publisher that is slow to write its head, and waits for that moment.
fn slow(cloud: &Cloud, root: &Root) -> Child {
    let heads = delay_first_head(&cloud.bucket);
    let child = cloud
        .publish_command(root, &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while heads.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn two_publishers_at_once_lose_nothing() {
    let cloud = Cloud::start();
    let (one, other) = (cloud.publisher(), cloud.publisher());
    cloud.published(&one, &[]);
    for root in [&one, &other] {
        sql(
            root,
            "UPDATE memories SET title = 'The pool has 40 connections' WHERE id = 'm-2'",
        );
    }
    sql(
        &one,
        "INSERT INTO memories (id, title, status) VALUES ('late', 'A late one', 'approved')",
    );
    let slow = slow(&cloud, &other);
    cloud.published(&one, &[]);
    let output = slow.wait_with_output().unwrap();
    cloud.bucket.clear_faults();
    cloud.bucket.set_access(Access::Key(TOKEN.to_owned()));
    // The slow publisher's store lacks what the other one added meanwhile, so it stops.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("would remove"), "{said}");
    assert_eq!(cloud.version(), 2);
    assert!(cloud.read().contains(&"A late one".to_owned()));
}
