//! The memory that explains an error, when a command failed:
//!
//! ```sh
//! cargo bench --no-default-features --bench failures
//! ```
//!
//! Errors that real tools printed, half of them with a memory that explains them, among 2,000
//! memories that explain none (`benches/failures/`). Counts how often the right memory arrives, how
//! often a wrong one does, and the tokens of what arrives. The errors marked `dev` were used to
//! choose the constants; those marked `test` were not.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a program that measures and prints"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use ack_memory::Config;
use ack_memory::Service;
use ack_memory::internal::import::{self, ImportOptions};
use ack_memory::internal::{Inputs, Setting};
use ack_service::context::failure::FailedCommand;
use serde_json::Value;

fn main() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/failures");
    let root = tempfile::tempdir().unwrap();
    for file in ["memories.jsonl", "unrelated.jsonl"] {
        let Ok(text) = std::fs::read_to_string(data.join(file)) else {
            continue;
        };
        let now = "2026-11-27T00:00:00Z".parse().unwrap();
        let scope = root.path().join("scopes/bench");
        std::fs::create_dir_all(&scope).unwrap();
        let text = text.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line["status"] = "approved".into();
            format!("{line}\n")
        });
        let text: String = text.collect();
        import::run(scope.join("memory.db"), &mut text.as_bytes(), ImportOptions::default(), now)
            .unwrap();
    }
    let inputs =
        Inputs { root: Some(Setting::flag("--root", root.path().to_owned())), ..Inputs::default() };
    let service = Service::new(Config::load(inputs).unwrap()).leak();
    let errors = std::fs::read_to_string(data.join("errors.jsonl")).unwrap();
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    let details = std::env::args().any(|word| word == "--each");
    for line in errors.lines() {
        let error: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        let failed = FailedCommand {
            command: text("command"),
            exit_code: error["exit_code"].as_i64(),
            is_known: true,
            output: text("output"),
        };
        let began = Instant::now();
        let found = service.about_failure(None, &failed).unwrap().memories.pop();
        let counts = counts.entry(text("split")).or_default();
        counts.time += began.elapsed();
        let arrived = found.as_ref().map(|memory| memory.id.as_str());
        let outcome = match (error["memory"].as_str(), arrived) {
            (Some(wanted), Some(arrived)) if wanted == arrived => &mut counts.right,
            (Some(_), Some(_)) => &mut counts.another,
            (Some(_), None) => &mut counts.missed,
            (None, Some(_)) => &mut counts.wrong,
            (None, None) => &mut counts.silent,
        };
        *outcome += 1;
        if details && let Some(memory) = &found {
            println!("{} wants {}: {} {}", error["id"], error["memory"], memory.id, memory.title);
        }
    }
    for (split, counts) in counts {
        let Counts { right, another, missed, wrong, silent, time } = counts;
        let with = right + another + missed;
        println!(
            "{split}: {with} errors with a memory: right {right}, another {another}, none {missed} \
             (recall {:.3}); {} without: wrong {wrong} ({:.1} of 300); {:.1} ms each",
            right as f64 / with as f64,
            wrong + silent,
            300.0 * wrong as f64 / (wrong + silent) as f64,
            time.as_secs_f64() * 1e3 / (with + wrong + silent) as f64,
        );
    }
}

#[derive(Default)]
struct Counts {
    right: u32,
    another: u32,
    missed: u32,
    wrong: u32,
    silent: u32,
    time: Duration,
}
