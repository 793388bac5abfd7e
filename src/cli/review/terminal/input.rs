//! What a person types, line by line. Ctrl+C is noticed meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::device::read_typed;
use crate::cli::output::write_err;
use crate::cli::signals;

/// How often Ctrl+C is checked for.
const TICK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub enum Typed {
    /// A line, without spaces around it.
    Line(String),
    /// Ctrl+C.
    Interrupt,
    End,
}

#[derive(Debug, Default)]
pub struct Input {
    typed: Vec<u8>,
    is_interrupted: Arc<AtomicBool>,
}

impl Input {
    /// Asks on standard error.
    pub fn ask(&mut self, question: &str) -> Typed {
        // A person may press Ctrl+C as soon as the question appears.
        let is_interrupted = Arc::clone(&self.is_interrupted);
        signals::on_interrupt(move || is_interrupted.store(true, Ordering::Relaxed));
        write_err(question);
        loop {
            if self.is_interrupted.swap(false, Ordering::Relaxed) {
                write_err("\n");
                return Typed::Interrupt;
            }
            if let Some(end) = self.typed.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.typed.drain(..=end).collect();
                return Typed::Line(String::from_utf8_lossy(&line).trim().to_owned());
            }
            match read_typed(&mut self.typed, TICK) {
                Some(false) if self.typed.is_empty() => return Typed::End,
                // The last line may have no end.
                Some(false) => self.typed.push(b'\n'),
                Some(true) | None => {}
            }
        }
    }
}
