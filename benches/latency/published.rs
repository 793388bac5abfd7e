//! A scope that is published to a bucket, and the scope that follows it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ack_test_bucket::Bucket;
use rusqlite::Connection;

/// Where the benchmarks publish.
pub const ADDRESS: &str = "s3://memories/bench";
/// Changes a hundred memories.
pub const CHANGE: &str = "UPDATE memories SET title = title || ' again' \
    WHERE rowid % (SELECT count(*) / 100 FROM memories) = 0";

/// The real binary. The bucket knows this key; a server started with it does too.
pub fn binary() -> Command {
    with_key(env!("CARGO_BIN_EXE_ack-memory"))
}

fn with_key(binary: &str) -> Command {
    let mut command = Command::new(binary);
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
    command
}

/// Runs SQL in the store of a root.
pub fn sql(root: &Path, text: &str) {
    let database = Connection::open(root.join("scopes/bench/memory.db")).unwrap();
    database.execute_batch(text).unwrap();
}

/// Publishes the store of a root, and returns how long that took.
pub fn publish(root: &Path, bucket: &Bucket) -> Duration {
    publish_with(env!("CARGO_BIN_EXE_ack-memory"), root, bucket)
}

/// The same with a binary that was built from another state of the code.
pub fn publish_with(binary: &str, root: &Path, bucket: &Bucket) -> Duration {
    let began = Instant::now();
    let words = "publish bench --yes --skip-held --to";
    let output = with_key(binary)
        .arg("--root")
        .arg(root)
        .args(words.split(' '))
        .args([ADDRESS, "--endpoint"])
        .arg(bucket.endpoint())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    began.elapsed()
}

/// Makes the scope of a root follow the bucket.
pub fn follow(root: &Path, bucket: &Bucket, max_age: &str) {
    let scope = root.join("scopes/bench");
    std::fs::create_dir_all(&scope).unwrap();
    let text = format!(
        "table = \"{ADDRESS}\"\n[remote]\nendpoint = \"{}\"\ncredentials = \"anonymous\"\n\
         max_age = \"{max_age}\"\n",
        bucket.endpoint()
    );
    std::fs::write(scope.join("scope.toml"), text).unwrap();
}
