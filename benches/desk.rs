//! The page of `review`, with 10,000 memories waiting and 100,000 approved:
//! `cargo bench --bench desk [--no-default-features]`.
//!
//! Starts the real binary and asks as the page does, over HTTP. The start is measured up to the
//! first card; a decision up to the card of the next memory; every other key up to what it shows.
//! Then the same desk at a terminal of 100 columns and 30 rows: from a key to what it changes on the
//! screen. A light development build does: `cargo bench --profile dev`.
//! `ACK_BENCH_BINARY` names another binary to measure.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a program that measures and prints"
)]

#[path = "latency/data.rs"]
mod data;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use serde_json::{Value, json};

const APPROVED: usize = 100_000;
const WAITING: usize = 10_000;
const DECISIONS: usize = 500;
const OWNER: &str = "a-token-of-the-bench";

struct Desk {
    child: Child,
    agent: ureq::Agent,
    origin: String,
    session: String,
}

impl Desk {
    fn open(root: &Path) -> Self {
        let built = env!("CARGO_BIN_EXE_ack-memory").into();
        let binary = std::env::var_os("ACK_BENCH_BINARY").unwrap_or(built);
        let mut child = Command::new(binary)
            .env("ACK_MEM_CURATOR_TOKEN", OWNER)
            .arg("--root")
            .arg(root)
            .args(["review", "--browser"])
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address =
            lines.map_while(Result::ok).find(|line| line.trim().starts_with("http://")).unwrap();
        let (origin, word) = address.trim().split_once("/#").unwrap();
        let mut desk = Self {
            child,
            agent: ureq::Agent::new_with_defaults(),
            origin: origin.to_owned(),
            session: String::new(),
        };
        let entered = desk.ask("enter", &json!({ "word": word }));
        desk.session = entered["session"].as_str().unwrap().to_owned();
        desk
    }

    fn ask(&self, path: &str, body: &Value) -> Value {
        let mut answer = self
            .agent
            .post(format!("{}/{path}", self.origin))
            .header("authorization", format!("Bearer {}", self.session))
            .send(body.to_string())
            .unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The desk at a terminal, which does what came so far.
struct Screen {
    child: Child,
    terminal: File,
    shown: vt100::Parser,
}

impl Screen {
    fn open(root: &Path) -> Self {
        let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).unwrap();
        let stream = || Stdio::from(pair.slave.try_clone().unwrap());
        let built = env!("CARGO_BIN_EXE_ack-memory").into();
        let binary = std::env::var_os("ACK_BENCH_BINARY").unwrap_or(built);
        let child = Command::new(binary)
            .env("TERM", "xterm")
            .arg("--root")
            .arg(root)
            .args(["review", "--tty"])
            .current_dir(root)
            .stdin(stream())
            .stdout(stream())
            .stderr(stream())
            .spawn()
            .unwrap();
        Self { child, terminal: pair.master.into(), shown: vt100::Parser::new(30, 100, 0) }
    }

    /// Reads until the screen has a text. How long that took.
    fn wait(&mut self, text: &str) -> Duration {
        let began = Instant::now();
        let mut bytes = [0; 65536];
        while !self.shown.screen().contents().contains(text) {
            let read = self.terminal.read(&mut bytes).unwrap();
            self.shown.process(&bytes[..read]);
        }
        began.elapsed()
    }

    /// From a key to a text on the screen.
    fn press(&mut self, key: &str, text: &str) -> Duration {
        self.terminal.write_all(key.as_bytes()).unwrap();
        self.wait(text)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn at_a_terminal(root: &Path, waiting: usize) {
    let began = Instant::now();
    let mut screen = Screen::open(root);
    screen.wait("unreviewed memories, in");
    report("at a terminal: opening, to the plan", &mut [began.elapsed()]);
    screen.press("o", &format!("1 of {waiting}"));
    // What is looked for at the beginning ends.
    std::thread::sleep(Duration::from_secs(20));
    let (mut decided, mut moved, mut filtered) = (Vec::new(), Vec::new(), Vec::new());
    for n in 1..=DECISIONS {
        let key = ["a", "5"][n % 2];
        decided.push(screen.press(key, &format!("{n} of {waiting} decided")));
    }
    for n in 1..=DECISIONS {
        moved.push(screen.press("j", &format!("{} of {waiting}", DECISIONS + 1 + n)));
    }
    for n in 0..20 {
        let word = format!("/{n}");
        for (position, letter) in word.char_indices() {
            let shown = if position == 0 {
                "filter: ".to_owned()
            } else {
                format!("filter: {}", &word[1..=position])
            };
            filtered.push(screen.press(&letter.to_string(), &shown));
        }
        screen.press("\x1b", "/ filter");
    }
    report("at a terminal: a decision", &mut decided);
    report("at a terminal: the next card", &mut moved);
    report("at a terminal: a letter of a filter", &mut filtered);
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    data::store(root, APPROVED + WAITING);
    let database = root.join("scopes/bench/memory.db");
    let every = (APPROVED + WAITING) / WAITING;
    rusqlite::Connection::open(database)
        .unwrap()
        .execute_batch(&format!(
            "UPDATE memories SET status = CASE WHEN rowid % {every} = 0 THEN 'staging' \
             ELSE 'approved' END, superseded_by = NULL"
        ))
        .unwrap();
    std::fs::write(root.join("curator-token"), OWNER).unwrap();
    let mut openings: Vec<Duration> = (0..5)
        .map(|_| {
            let began = Instant::now();
            let desk = Desk::open(root);
            let queue = desk.ask("queue", &json!({ "count": 60 }));
            assert_eq!(queue["total"], WAITING);
            desk.ask("card", &json!({ "number": queue["entries"][0]["number"] }));
            began.elapsed()
        })
        .collect();
    report("opening, to the first card", &mut openings);
    let desk = Desk::open(root);
    let mut number = desk.ask("queue", &json!({ "count": 1 }))["entries"][0]["number"].clone();
    let began = Instant::now();
    desk.ask("near", &json!({ "number": number }));
    report("the first nearest, which reads the index", &mut [began.elapsed()]);
    let (mut cards, mut near) = (Vec::new(), Vec::new());
    for n in 0..DECISIONS {
        let choice = ["approve", "reject"][n % 2];
        let began = Instant::now();
        let answer =
            desk.ask("choose", &json!({ "numbers": [number], "choice": { "do": choice } }));
        number = answer["next"].clone();
        desk.ask("card", &json!({ "number": number }));
        cards.push(began.elapsed());
        let began = Instant::now();
        desk.ask("near", &json!({ "number": number }));
        near.push(began.elapsed());
    }
    report("a decision and the next card", &mut cards);
    report("its nearest approved memories, with word diff", &mut near);
    while desk.ask("summary", &json!({}))["approved"] != APPROVED {
        std::thread::sleep(Duration::from_millis(50));
    }
    let approved = json!({ "queue": "approved" });
    let decided = json!({ "queue": "approved", "last_decided": true });
    let found = json!({ "queue": "approved", "filter": "type:gotcha err_00" });
    let words = json!({ "filter": "-type:gotcha err_00" });
    let keep = json!({ "numbers": [WAITING + 7], "choice": { "do": "approve" }, "view": approved });
    let name = desk.ask("plan", &json!({}))["plan"]["heaps"][0]["name"].clone();
    for (what, path, body) in [
        ("the plan", "plan", json!({})),
        ("a heap", "heap", json!({ "name": name, "choice": { "do": "approve" } })),
        ("undo", "back", json!({})),
        ("a filter", "queue", json!({ "view": words, "count": 60 })),
        ("all that match", "matching", json!({ "view": words })),
        ("approved: the list", "queue", json!({ "view": approved, "count": 60 })),
        ("approved: the other order", "queue", json!({ "view": decided, "count": 60 })),
        ("approved: a search", "queue", json!({ "view": found, "count": 60 })),
        ("approved: a card", "card", json!({ "number": WAITING + 50, "view": approved })),
        ("approved: kept", "choose", keep),
    ] {
        let mut times: Vec<Duration> = Vec::new();
        for _ in 0..40 {
            let began = Instant::now();
            desk.ask(path, &body);
            times.push(began.elapsed());
            if path == "heap" {
                desk.ask("back", &json!({}));
            }
        }
        report(what, &mut times);
    }
    let began = Instant::now();
    let written = desk.ask("write", &json!({}));
    // 40 were undone, and 1 approved memory was kept.
    assert_eq!(written["written"], DECISIONS - 39);
    report("writing 500 decisions", &mut [began.elapsed()]);
    drop(desk);
    at_a_terminal(root, WAITING + 40 - DECISIONS);
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| {
        let position = ((times.len() - 1) as f64 * share).round() as usize;
        times[position].as_secs_f64() * 1e3
    };
    println!(
        "{what:48} p50 {:8.1}  p99 {:8.1}  max {:8.1} ms  ({})",
        at(0.5),
        at(0.99),
        at(1.0),
        times.len()
    );
}
