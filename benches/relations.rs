//! How memories relate: `cargo bench --bench relations [--no-default-features]`.
//!
//! The relation of two memories; the nearest of 100,000 approved ones, while there is no index and
//! with it; the near-duplicates among 10,000 waiting memories; `check` over 10,000 notes in files.
//! `ACK_BENCH_BINARY` names another binary to measure with `check`. One memory in ten is a
//! near-duplicate.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    dead_code,
    reason = "a program that measures and prints, with parts of another one"
)]

#[path = "latency/data.rs"]
mod data;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ack_compare::groups::{ALIKE, alike};
use ack_compare::{Profile, relate};
use ack_memory::Config;
use ack_memory::Service;
use ack_memory::api::memory::Memory;
use ack_memory::internal::{Inputs, Setting};

use self::data::Random;

const APPROVED: usize = 100_000;
const WAITING: usize = 10_000;
const CALLS: usize = 500;

fn main() {
    let waiting = memories(WAITING);
    relations(&waiting);
    nearest(&waiting);
    groups(&waiting);
    check(&waiting);
}

/// Generated memories of realistic length.
fn memories(count: usize) -> Vec<Memory> {
    let mut random = Random(7);
    let mut memories: Vec<Memory> = Vec::new();
    for number in 0..count {
        let text = |random: &mut Random, words: usize| {
            let words = (0..words).map(|_| random.word());
            words.collect::<Vec<_>>().join(" ")
        };
        let mut memory = Memory {
            title: text(&mut random, 8),
            subtitle: Some(text(&mut random, 10)),
            facts: (0..3).map(|_| text(&mut random, 9)).collect(),
            narrative: Some(text(&mut random, 90)),
            ..Memory::default()
        };
        if number % 10 == 9 {
            memory = memories[random.below(number)].clone();
            memory.facts.push(text(&mut random, 2));
        }
        memory.id = data::id(number);
        memories.push(memory);
    }
    memories
}

fn relations(memories: &[Memory]) {
    let mut times: Vec<Duration> = memories
        .windows(2)
        .take(CALLS)
        .map(|pair| {
            let began = Instant::now();
            let (newer, older) = (Profile::of(&pair[0]), Profile::of(&pair[1]));
            std::hint::black_box(relate(&newer, &older));
            began.elapsed()
        })
        .collect();
    report("relation of two memories, both read anew", &mut times);
}

fn nearest(waiting: &[Memory]) {
    let folder = tempfile::tempdir().unwrap();
    data::store(folder.path(), APPROVED);
    rusqlite::Connection::open(folder.path().join("scopes/bench/memory.db"))
        .unwrap()
        .execute_batch("UPDATE memories SET status = 'approved', superseded_by = NULL")
        .unwrap();
    let inputs = Inputs {
        root: Some(Setting::flag("--root", folder.path().to_owned())),
        ..Inputs::default()
    };
    let service = Service::new(Config::load(inputs).unwrap()).leak();
    let scopes = service.registry.discover().scopes;
    let scope = scopes.iter().find(|scope| scope.name == "bench").unwrap();
    let began = Instant::now();
    let mut without = Vec::new();
    for memory in waiting {
        let asked = Instant::now();
        service.nearest_approved(memory, "bench", &[]).unwrap();
        if scope.live.bytes() > 0 {
            break;
        }
        without.push(asked.elapsed());
    }
    report("the first nearest", &mut without[..1]);
    report("nearest, while the index is made", &mut without[1..]);
    report("until the index is there", &mut [began.elapsed()]);
    let mut times: Vec<Duration> = waiting[..CALLS]
        .iter()
        .map(|memory| {
            let asked = Instant::now();
            service.nearest_approved(memory, "bench", &[]).unwrap();
            asked.elapsed()
        })
        .collect();
    report("nearest of 100,000, with the index", &mut times);
    service.close();
}

fn groups(waiting: &[Memory]) {
    let memories: Vec<&Memory> = waiting.iter().collect();
    let began = Instant::now();
    let groups = alike(&memories, ALIKE);
    report("groups of 10,000", &mut [began.elapsed()]);
    println!("{} groups", groups.len());
}

fn check(waiting: &[Memory]) {
    let folder = tempfile::tempdir().unwrap();
    for (number, memory) in waiting.iter().enumerate() {
        write(folder.path(), number, memory);
    }
    let built = env!("CARGO_BIN_EXE_ack-memory").into();
    let binary = std::env::var_os("ACK_BENCH_BINARY").unwrap_or(built);
    let began = Instant::now();
    let output = Command::new(binary).arg("check").arg(folder.path()).output().unwrap();
    report("`check` over 10,000 notes", &mut [began.elapsed()]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let found = stdout.lines().filter(|line| line.contains("near-duplicate"));
    println!("{} near-duplicates", found.count());
}

fn write(folder: &Path, number: usize, memory: &Memory) {
    let note = format!(
        "---\ntitle: {}\ntype: note\n---\n- {}\n\n{}\n",
        memory.title,
        memory.facts.join("\n- "),
        memory.narrative.as_deref().unwrap_or_default()
    );
    std::fs::write(folder.join(format!("{number}.md")), note).unwrap();
}

fn report(what: &str, times: &mut [Duration]) {
    if times.is_empty() {
        return;
    }
    times.sort_unstable();
    let at = |share: f64| {
        let position = ((times.len() - 1) as f64 * share).round() as usize;
        times[position].as_secs_f64() * 1e3
    };
    println!(
        "{what:48} p50 {:9.2}  p99 {:9.2}  max {:9.2} ms  ({})",
        at(0.5),
        at(0.99),
        at(1.0),
        times.len()
    );
}
