//! A scope in a bucket, compared with the scope that it was published from:
//! `cargo bench --bench bucket [-- SIZE]`.
//!
//! `cargo bench --bench bucket -- first [SIZE]` only measures the first answer to a new reader,
//! several times, with 30 ms a request. `ACK_BENCH_BINARY` names another binary to compare with.
//!
//! Publishes 100,000 memories (or SIZE) to a bucket on this machine that answers each request after
//! 0, 10, 30 and 100 ms, and measures the real binary: publishing everything, publishing 100
//! changes, a new reader's first question, later questions next to those of the original scope, a
//! new version, and a server that does not answer. Prints the requests and bytes that the bucket
//! counted. Measurements are noisy: compare figures of one run only.
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
#[path = "latency/published.rs"]
mod published;
#[path = "latency/server.rs"]
mod server;

use std::path::Path;
use std::time::{Duration, Instant};

use ack_test_bucket::{Action, Bucket};
use serde_json::{Value, json};

use self::data::{Random, store};
use self::published::{CHANGE, binary, follow, publish, publish_with, sql};
use self::server::Server;

/// Questions of each kind.
const CALLS: usize = 200;
/// How often the first answer is measured.
const ROUNDS: usize = 7;
const DELAYS: [u64; 4] = [0, 10, 30, 100];

fn main() {
    let named = std::env::args().find_map(|word| word.parse().ok());
    let size: usize = named.unwrap_or(100_000);
    let source = tempfile::tempdir().unwrap();
    let source = source.path();
    store(source, size);
    sql(source, "UPDATE memories SET status = 'approved'");
    let bucket = Bucket::start().unwrap();
    println!("{size} memories");
    if std::env::args().any(|word| word == "first") {
        return first_answers(source);
    }
    let published = |what: &str| {
        bucket.reset_log();
        report_traffic(&bucket, what, publish(source, &bucket));
    };
    published("publish all");
    sql(source, CHANGE);
    published("publish 100 of them changed");
    index(source);
    let mut own = Server::start(source);
    own.handshake();
    let asked = asked();
    own.call("query_memories", &asked);
    for delay in DELAYS {
        let delayed = Action::Delay(Duration::from_millis(delay));
        bucket.intercept(move |_| delayed);
        println!("a bucket that answers after {delay} ms");
        let reader = tempfile::tempdir().unwrap();
        let reader = reader.path();
        follow(reader, &bucket, "1h");
        bucket.reset_log();
        let mut server = Server::start(reader);
        server.handshake();
        let began = Instant::now();
        until_answered(&mut server, &asked);
        report_traffic(&bucket, "first answer to a newcomer", began.elapsed());
        bucket.reset_log();
        compare_latency(&mut own, &mut server);
        println!("    {} requests", bucket.requests().len());
        drop(server);
        bucket.reset_log();
        let mut server = Server::start(reader);
        server.handshake();
        let began = Instant::now();
        server.call("query_memories", &asked);
        report_traffic(&bucket, "first question of the next process", began.elapsed());
        drop(server);
        if delay == 30 {
            sql(source, CHANGE);
            published("publish 100 of them changed");
            follow(reader, &bucket, "1s");
            std::thread::sleep(Duration::from_millis(1_100));
            bucket.reset_log();
            let mut server = Server::start(reader);
            server.handshake();
            let began = Instant::now();
            server.call("query_memories", &asked);
            report_traffic(&bucket, "first question after a new version", began.elapsed());
            frozen(&bucket, &mut server, &asked);
        }
    }
}

fn asked() -> Value {
    json!({ "query": "connection refused after deploy" })
}

/// The first answers of this build and of another one, in turn, each from a bucket that the same
/// build published to.
fn first_answers(source: &Path) {
    let built = env!("CARGO_BIN_EXE_ack-memory").to_owned();
    let other = std::env::var("ACK_BENCH_BINARY").ok();
    let publish_with = |binary: String| {
        let bucket = Bucket::start().unwrap();
        let took = publish_with(&binary, source, &bucket);
        report_traffic(&bucket, &binary, took);
        bucket.intercept(|_| Action::Delay(Duration::from_millis(30)));
        (binary, bucket)
    };
    let buckets: Vec<_> = other.into_iter().chain([built]).map(publish_with).collect();
    for (binary, bucket) in buckets.iter().cycle().take(ROUNDS * buckets.len()) {
        let reader = tempfile::tempdir().unwrap();
        follow(reader.path(), bucket, "1h");
        bucket.reset_log();
        let began = Instant::now();
        let mut server = Server::start_binary(binary, reader.path());
        server.handshake();
        until_answered(&mut server, &asked());
        let took = began.elapsed();
        let (processor, (_, memory)) = (server.processor_time(), server.memory());
        report_traffic(bucket, binary, took);
        println!("    {processor:>5.0} ms of processor time, at most {memory:.0} MiB");
    }
}

/// Asks until the scope answers: a question waits ten seconds for the first version.
fn until_answered(server: &mut Server, asked: &Value) {
    let called = json!({ "name": "query_memories", "arguments": asked });
    for _ in 0..6_000 {
        let reply = server.request("tools/call", called.clone());
        if reply["result"]["isError"] != json!(true) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the scope never came");
}

/// The time lost to a server that accepts requests and does not answer.
fn frozen(bucket: &Bucket, server: &mut Server, asked: &Value) {
    std::thread::sleep(Duration::from_millis(1_100));
    bucket.intercept(|_| Action::Hang);
    let began = Instant::now();
    server.call("query_memories", asked);
    println!("  frozen server, first question {:>8.2} ms", millis(began.elapsed()));
    questions("frozen server, later questions", server);
    bucket.clear_faults();
}

fn index(root: &Path) {
    let done = binary().arg("--root").arg(root).args(["index", "--all"]).output().unwrap();
    assert!(done.status.success());
}

fn questions(what: &str, server: &mut Server) {
    let mut random = Random(7);
    let times = (0..CALLS).map(|_| timed(server, &question(&mut random)));
    report_times(what, times.collect());
}

/// Asks the original scope and the one that follows it in turn, so that other load on the machine
/// affects both.
fn compare_latency(own: &mut Server, follower: &mut Server) {
    let mut random = Random(7);
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let asked = question(&mut random);
        here.push(timed(own, &asked));
        there.push(timed(follower, &asked));
    }
    report_times("questions to the scope itself", here);
    report_times("the same to the follower", there);
}

fn question(random: &mut Random) -> Value {
    let query = (0..5).map(|_| random.word()).collect::<Vec<_>>().join(" ");
    json!({ "query": query })
}

fn timed(server: &mut Server, asked: &Value) -> f64 {
    let began = Instant::now();
    server.call("query_memories", asked);
    millis(began.elapsed())
}

fn report_times(what: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    println!("  {what:<36} p50 {:>8.2} ms  p99 {:>8.2} ms", at(0.5), at(0.99));
}

fn report_traffic(bucket: &Bucket, what: &str, took: Duration) {
    let requests = bucket.requests();
    let up: u64 = requests.iter().map(|request| request.bytes_in).sum();
    let down: u64 = requests.iter().map(|request| request.bytes_out).sum();
    println!(
        "  {what:<36} {:>8.0} ms  {:>4} requests  {:>8.2} MB up  {:>8.2} MB down",
        millis(took),
        requests.len(),
        up as f64 / 1e6,
        down as f64 / 1e6
    );
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
