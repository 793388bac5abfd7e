//! How fast the small transformer reads memories, on all processors, and a question, on one:
//!
//! ```sh
//! cargo bench --package ack-contextual
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a program that measures and prints"
)]

use std::time::Instant;

use ack_contextual::Contextual;

const MEMORIES: usize = 400;
const QUESTIONS: usize = 200;

fn main() {
    let contextual = Contextual::embedded().unwrap();
    for tokens in [64, 128] {
        // Each word is one token; two are special.
        let text = "lock ".repeat(tokens - 2);
        let texts = vec![text; MEMORIES];
        let begun = Instant::now();
        contextual.memories(&texts).unwrap();
        let seconds = begun.elapsed().as_secs_f64();
        println!("memories of {tokens} tokens: {:.0} a second", MEMORIES as f64 / seconds);
    }
    let question = "why does stopping our container take ten seconds";
    let begun = Instant::now();
    for _ in 0..QUESTIONS {
        contextual.question(question).unwrap();
    }
    let each = begun.elapsed().as_secs_f64() * 1_000.0 / QUESTIONS as f64;
    println!("a question: {each:.2} ms");
}
