//! What a person types. A thread reads a line when one is asked for, so that Ctrl+C is noticed
//! meanwhile, and an editor has the terminal to itself.

use std::cell::Cell;
use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::cli::output::write_err;
use crate::cli::signals;

/// An answer to a question.
#[derive(Debug)]
pub enum Typed {
    /// A line, without spaces around it.
    Line(String),
    /// Ctrl+C.
    Interrupt,
    /// There is no more input.
    End,
}

/// What ends the wait for an answer.
enum Event {
    Typed(Typed),
    /// The process goes on after Ctrl-Z.
    Resumed,
}

pub struct Input {
    wanted: Sender<()>,
    events: Receiver<Event>,
    sender: Sender<Event>,
    /// Whether a question is on the screen.
    is_asking: Arc<AtomicBool>,
    /// Whether the thread was asked for a line that has not been received yet.
    is_reading: Cell<bool>,
}

impl Input {
    /// Starts the thread. It reads nothing yet.
    pub fn start() -> Self {
        let (wanted, wants) = channel::<()>();
        let (sender, events) = channel();
        let answers = sender.clone();
        std::thread::spawn(move || {
            while wants.recv().is_ok() {
                if answers.send(Event::Typed(read_line())).is_err() {
                    return;
                }
            }
        });
        let is_asking = Arc::new(AtomicBool::new(false));
        let (resumed, asks) = (sender.clone(), Arc::clone(&is_asking));
        signals::on_resume(move || {
            if asks.load(Ordering::Relaxed) {
                drop(resumed.send(Event::Resumed));
            }
        });
        Self {
            wanted,
            events,
            sender,
            is_asking,
            is_reading: Cell::new(false),
        }
    }

    /// Asks on standard error, again if the process was stopped meanwhile.
    pub fn ask(&self, question: &str) -> Typed {
        loop {
            if let Some(typed) = self.ask_once(question) {
                return typed;
            }
        }
    }

    /// Asks on standard error. `None` if the process was stopped meanwhile, so that the screen shows
    /// something else now.
    pub fn ask_once(&self, question: &str) -> Option<Typed> {
        // A person may press Ctrl+C as soon as the question appears.
        let sender = self.sender.clone();
        signals::on_interrupt(move || drop(sender.send(Event::Typed(Typed::Interrupt))));
        self.is_asking.store(true, Ordering::Relaxed);
        write_err(question);
        if !self.is_reading.replace(true) && self.wanted.send(()).is_err() {
            return Some(Typed::End);
        }
        let event = self.events.recv();
        self.is_asking.store(false, Ordering::Relaxed);
        let typed = match event.unwrap_or(Event::Typed(Typed::End)) {
            Event::Typed(typed) => typed,
            Event::Resumed => return None,
        };
        match typed {
            Typed::Interrupt => write_err("\n"),
            Typed::Line(_) | Typed::End => self.is_reading.set(false),
        }
        Some(typed)
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
