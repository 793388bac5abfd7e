//! Many clients of one server:
//! `cargo bench --no-default-features --bench load [-- SECONDS CLIENTS MEMORIES PAUSE]`, or
//! `cargo bench --bench load -- bucket [SECONDS …]` over a scope in a bucket.
//!
//! Starts `serve --http` with a token for each client over a scope of 100,000 memories, and has 200
//! clients ask five-word questions on a connection of their own for 60 seconds, each with a pause
//! of 1,000 milliseconds between an answer and its next question. Prints requests, failures, the
//! time of an answer in milliseconds, and the server's memory. The clients run on the same machine.
//!
//! With the word `bucket`, the memories are published to a bucket that takes 30 ms for each
//! request, the server follows it, and a version with 100 changes is published every minute.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    dead_code,
    reason = "a program that measures and prints, with parts of another one"
)]

#[path = "latency/data.rs"]
mod data;
#[path = "latency/published.rs"]
mod published;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ack_test_bucket::{Action, Bucket};
use serde_json::json;

use self::data::{Random, store};
use self::published::{CHANGE, binary, follow, publish, sql};

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |position: usize, otherwise| numbers.get(position).copied().unwrap_or(otherwise);
    let seconds = number(0, 60);
    let clients = number(1, 200) as usize;
    let memories = number(2, 100_000) as usize;
    let pause = Duration::from_millis(number(3, 1_000));
    let (source, follower) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    store(source.path(), memories);
    let bucket = std::env::args().any(|word| word == "bucket").then(|| {
        let bucket = Bucket::start().unwrap();
        sql(source.path(), "UPDATE memories SET status = 'approved'");
        publish(source.path(), &bucket);
        bucket.intercept(|_| Action::Delay(Duration::from_millis(30)));
        follow(follower.path(), &bucket, "20s");
        bucket
    });
    let root = if bucket.is_some() { &follower } else { &source };
    let tokens: Vec<String> = (0..clients).map(|client| token(root.path(), client)).collect();
    let mut server = Server::start(root.path());
    let warm = server.wait_until_ready();
    println!(
        "{clients} clients, {memories} memories, {seconds} s, {} ms between an answer and the next \
         question; ready after {:.1} s",
        pause.as_millis(),
        warm.as_secs_f64()
    );
    println!("  memory before {:.0} MiB", server.resident());
    let barrier = Barrier::new(clients);
    let address = server.address.as_str();
    let over = AtomicBool::new(false);
    let results: Vec<Vec<(u16, f64)>> = std::thread::scope(|scope| {
        if let Some(bucket) = &bucket {
            scope.spawn(|| republish(source.path(), bucket, &over));
        }
        let threads: Vec<_> = tokens
            .iter()
            .enumerate()
            .map(|(client, token)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut random = Random(client as u64 + 1);
                    barrier.wait();
                    // Spreads the starts, so that the clients do not begin at the same moment.
                    std::thread::sleep(pause.mul_f64(client as f64 / clients as f64));
                    let end = Instant::now() + Duration::from_secs(seconds);
                    run(address, token, &mut random, end, pause)
                })
            })
            .collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        over.store(true, Ordering::SeqCst);
        results
    });
    let answers: Vec<(u16, f64)> = results.into_iter().flatten().collect();
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for (status, _) in &answers {
        *statuses.entry(*status).or_default() += 1;
    }
    let mut times: Vec<f64> = answers.iter().map(|(_, time)| *time).collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    println!(
        "  {} answers, {:.0} a second, by status {statuses:?} (0: the connection failed)",
        answers.len(),
        answers.len() as f64 / seconds as f64
    );
    println!("  p50 {:.1}  p99 {:.1}  longest {:.1} ms", at(0.5), at(0.99), at(1.0));
    println!("  memory after {:.0} MiB", server.resident());
    if let Some(bucket) = &bucket {
        let requests = bucket.requests();
        let down: u64 = requests.iter().map(|request| request.bytes_out).sum();
        println!("  {} requests to the bucket, {:.1} MB down", requests.len(), down as f64 / 1e6);
    }
    server.stop();
}

/// Publishes 100 changes every minute.
fn republish(source: &Path, bucket: &Bucket, over: &AtomicBool) {
    let mut waited = 0;
    while !over.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_secs(1));
        waited += 1;
        if waited % 60 == 0 {
            sql(source, CHANGE);
            publish(source, bucket);
        }
    }
}

/// Asks until the end; the status and the milliseconds of each answer.
fn run(
    address: &str,
    token: &str,
    random: &mut Random,
    end: Instant,
    pause: Duration,
) -> Vec<(u16, f64)> {
    let mut answers = Vec::new();
    let mut connection = None;
    while Instant::now() < end {
        let words: Vec<String> = (0..5).map(|_| random.word()).collect();
        let started = Instant::now();
        let status = ask(address, token, &words.join(" "), &mut connection).unwrap_or_else(|| {
            connection = None;
            0
        });
        answers.push((status, started.elapsed().as_secs_f64() * 1e3));
        std::thread::sleep(pause);
    }
    answers
}

/// One question; the status of its answer, read to the end.
fn ask(
    address: &str,
    token: &str,
    question: &str,
    connection: &mut Option<BufReader<TcpStream>>,
) -> Option<u16> {
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": { "name": "query_memories", "arguments": { "query": question } },
    })
    .to_string();
    let stream = match connection {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(address).ok()?;
            stream.set_nodelay(true).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
            connection.insert(BufReader::new(stream))
        }
    };
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.get_mut().write_all(head.as_bytes()).ok()?;
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line).ok()?;
        let header = line.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).ok()?;
    Some(status)
}

/// Makes the token of a client.
fn token(root: &Path, client: usize) -> String {
    let output = binary()
        .args(["token", &format!("client-{client}"), "--file"])
        .arg(root.join("tokens.toml"))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The server, which ends with the benchmark.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(root: &Path) -> Self {
        let mut child = binary()
            .arg("--root")
            .arg(root)
            .args(["serve", "--http", "127.0.0.1:0", "--warm", "--tokens"])
            .arg(root.join("tokens.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let address = url.trim().trim_start_matches("http://");
        Self { child, address: address.trim_end_matches("/mcp").to_owned() }
    }

    fn wait_until_ready(&self) -> Duration {
        let started = Instant::now();
        loop {
            let mut stream = TcpStream::connect(&self.address).unwrap();
            let request = "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            if answer.starts_with("HTTP/1.1 200") {
                return started.elapsed();
            }
            assert!(started.elapsed() < Duration::from_secs(120), "{answer}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Resident memory in MiB.
    fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or_default() / 1024.0
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
