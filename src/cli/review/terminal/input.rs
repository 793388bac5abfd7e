//! What a person types. A thread reads a line when one is asked for, so that Ctrl+C is noticed
//! meanwhile, and an editor has the terminal to itself.

use std::cell::Cell;
use std::io::BufRead as _;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::cli::output::write_err;
use crate::cli::{prompt, signals};

#[derive(Debug)]
pub enum Typed {
    /// A line, without spaces around it.
    Line(String),
    /// Ctrl+C.
    Interrupt,
    End,
}

pub struct Input {
    wanted: Sender<()>,
    answers: Receiver<Typed>,
    sender: Sender<Typed>,
    /// Whether the thread was asked for a line that has not been received yet.
    is_reading: Cell<bool>,
}

impl Input {
    /// Starts the thread. It reads nothing yet.
    pub fn start() -> Self {
        prompt::begin_reading();
        let (wanted, wants) = channel::<()>();
        let (sender, answers) = channel();
        let lines = sender.clone();
        std::thread::spawn(move || {
            while wants.recv().is_ok() {
                if lines.send(read_line()).is_err() {
                    return;
                }
            }
        });
        Self { wanted, answers, sender, is_reading: Cell::new(false) }
    }

    /// Asks on standard error.
    pub fn ask(&self, question: &str) -> Typed {
        // A person may press Ctrl+C as soon as the question appears.
        let sender = self.sender.clone();
        signals::on_interrupt(move || drop(sender.send(Typed::Interrupt)));
        write_err(question);
        if !self.is_reading.replace(true) && self.wanted.send(()).is_err() {
            return Typed::End;
        }
        let typed = self.answers.recv().unwrap_or(Typed::End);
        match typed {
            Typed::Interrupt => write_err("\n"),
            Typed::Line(_) | Typed::End => self.is_reading.set(false),
        }
        typed
    }
}

/// One line, whatever its bytes are.
fn read_line() -> Typed {
    let mut line = Vec::new();
    match std::io::stdin().lock().read_until(b'\n', &mut line) {
        Ok(1..) => Typed::Line(String::from_utf8_lossy(&line).trim().to_owned()),
        _ => Typed::End,
    }
}
