//! A scope in a bucket beside the scope it was published from: `cargo bench --bench bucket [-- SIZE]`.
//!
//! Publishes 100,000 memories (or SIZE) to a bucket on this machine that answers each request after
//! 0, 10, 30 and 100 ms, and measures the real binary: publishing everything, publishing 100 changes,
//! a newcomer's first question, later questions beside those of the scope itself, a new version, and
//! a server that does not answer. Prints requests and bytes as the bucket counted them. Machines are
//! noisy: compare figures of one run.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    dead_code,
    reason = "a program that measures and prints, with parts of another one"
)]

#[path = "latency/data.rs"]
mod data;
#[path = "latency/server.rs"]
mod server;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ack_test_bucket::Bucket;
use rusqlite::Connection;
use serde_json::{Value, json};

use self::data::{Random, store};
use self::server::Server;

/// Questions of each kind.
const CALLS: usize = 200;
const ADDRESS: &str = "s3://memories/bench";
/// Changes a hundred memories.
const CHANGE: &str = "UPDATE memories SET title = title || ' again' \
    WHERE rowid % (SELECT count(*) / 100 FROM memories) = 0";
const DELAYS: [u64; 4] = [0, 10, 30, 100];

fn main() {
    let named = std::env::args().find_map(|word| word.parse().ok());
    let size: usize = named.unwrap_or(100_000);
    // The bucket knows this key; a server started here inherits it.
    let source = tempfile::tempdir().unwrap();
    store(source.path(), size);
    let database = source.path().join("scopes/bench/memory.db");
    let sql = |text: &str| {
        Connection::open(&database)
            .unwrap()
            .execute_batch(text)
            .unwrap()
    };
    sql("UPDATE memories SET status = 'approved'");
    let bucket = Bucket::start().unwrap();
    println!("{size} memories");
    let publish = |what: &str| {
        bucket.reset_log();
        let began = Instant::now();
        let output = binary()
            .arg("--root")
            .arg(source.path())
            .args([
                "publish",
                "bench",
                "--to",
                ADDRESS,
                "--yes",
                "--skip-held",
                "--endpoint",
            ])
            .arg(bucket.endpoint())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        told(&bucket, what, began.elapsed());
    };
    publish("publish all");
    sql(CHANGE);
    publish("publish 100 of them changed");
    index(source.path());
    let mut own = Server::start(source.path());
    own.handshake();
    questions("questions to the scope itself", &mut own);
    drop(own);
    for delay in DELAYS {
        bucket.set_delay(Duration::from_millis(delay));
        println!("a bucket that answers after {delay} ms");
        let reader = tempfile::tempdir().unwrap();
        manifest(reader.path(), &bucket, "1h");
        bucket.reset_log();
        let mut server = Server::start(reader.path());
        server.handshake();
        let began = Instant::now();
        let asked = json!({ "query": "connection refused after deploy" });
        until_answered(&mut server, &asked);
        told(&bucket, "first answer to a newcomer", began.elapsed());
        bucket.reset_log();
        questions("later questions", &mut server);
        println!("    {} requests", bucket.requests().len());
        drop(server);
        bucket.reset_log();
        let mut server = Server::start(reader.path());
        server.handshake();
        let began = Instant::now();
        server.call("query_memories", &asked);
        told(
            &bucket,
            "first question of the next process",
            began.elapsed(),
        );
        drop(server);
        if delay == 30 {
            sql(CHANGE);
            publish("publish 100 of them changed");
            manifest(reader.path(), &bucket, "1s");
            std::thread::sleep(Duration::from_millis(1_100));
            bucket.reset_log();
            let mut server = Server::start(reader.path());
            server.handshake();
            let began = Instant::now();
            server.call("query_memories", &asked);
            told(
                &bucket,
                "first question after a new version",
                began.elapsed(),
            );
            frozen(&bucket, &mut server, &asked);
        }
    }
}

/// Asks until the scope is here: a question waits ten seconds for the first version.
fn until_answered(server: &mut Server, asked: &Value) {
    let called = json!({ "name": "query_memories", "arguments": asked });
    for _ in 0..200 {
        let reply = server.request("tools/call", called.clone());
        if reply["result"]["isError"] != json!(true) {
            return;
        }
    }
    panic!("the scope never came");
}

/// What a server costs that takes requests and does not answer.
fn frozen(bucket: &Bucket, server: &mut Server, asked: &Value) {
    std::thread::sleep(Duration::from_millis(1_100));
    bucket.freeze();
    let began = Instant::now();
    server.call("query_memories", asked);
    println!(
        "  frozen server, first question {:>8.2} ms",
        millis(began.elapsed())
    );
    questions("frozen server, later questions", server);
    bucket.thaw();
}

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ack-memory"));
    command
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret");
    command
}

fn index(root: &Path) {
    let done = binary()
        .arg("--root")
        .arg(root)
        .args(["index", "--all"])
        .output()
        .unwrap();
    assert!(done.status.success());
}

fn manifest(root: &Path, bucket: &Bucket, max_age: &str) {
    let scope = root.join("scopes/bench");
    std::fs::create_dir_all(&scope).unwrap();
    let text = format!(
        "table = \"{ADDRESS}\"\n[remote]\nendpoint = \"{}\"\ncredentials = \"anonymous\"\nmax_age = \"{max_age}\"\n",
        bucket.endpoint()
    );
    std::fs::write(scope.join("scope.toml"), text).unwrap();
}

fn questions(what: &str, server: &mut Server) {
    let mut random = Random(7);
    let mut times: Vec<f64> = (0..CALLS)
        .map(|_| {
            let query = (0..5).map(|_| random.word()).collect::<Vec<_>>().join(" ");
            let asked = json!({ "query": query });
            let began = Instant::now();
            server.call("query_memories", &asked);
            millis(began.elapsed())
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    println!(
        "  {what:<36} p50 {:>8.2} ms  p99 {:>8.2} ms",
        at(0.5),
        at(0.99)
    );
}

fn told(bucket: &Bucket, what: &str, took: Duration) {
    let traffic = bucket.traffic();
    println!(
        "  {what:<36} {:>8.0} ms  {:>4} requests  {:>8.2} MB up  {:>8.2} MB down",
        millis(took),
        traffic.requests,
        traffic.bytes_in as f64 / 1e6,
        traffic.bytes_out as f64 / 1e6
    );
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
