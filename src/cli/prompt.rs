//! Questions at a terminal, answered with one key. A question goes to standard error, so it is
//! visible while the output goes elsewhere, and it appears before the answer is read.

use std::io::{IsTerminal, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

use super::screen::Screen;
use super::signals;
use ack_api::text;

/// The terminal's settings from before a question, while a question is open.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// Whether the last question was answered with a letter. If the user adds Enter out of habit, that
/// does not answer the next question.
static LETTER: AtomicBool = AtomicBool::new(false);

const INTERRUPT: u8 = 3;
const END: u8 = 4;

/// Whether there is a user who can see and answer a question.
pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks for one of several keys, each with the word to show once it is pressed. Enter selects the
/// first one. `None` at the end of the input.
pub fn choose(question: &str, keys: &[(char, &str)]) -> Option<char> {
    let letters: Vec<String> = keys.iter().map(|(key, _)| key.to_string()).collect();
    // The user may press a key as soon as the question appears.
    let keys_alone = KeysAlone::begin();
    let mut error = anstream::stderr().lock();
    let _ = write!(error, "{} [{}] ", text::safe(question), letters.join("/"));
    let _ = error.flush();
    let answer = read(keys);
    drop(keys_alone);
    let word = answer.and_then(|key| keys.iter().find(|(known, _)| *known == key));
    let _ = writeln!(error, "{}", word.map_or("", |(_, word)| word));
    answer
}

/// Indented text for people, wrapped if standard error is a terminal.
pub fn wrapped(indent: &str, text: &str) -> String {
    let Some(width) = Screen::of_errors().width else {
        return format!("{indent}{text}\n");
    };
    let options = textwrap::Options::new(width)
        .initial_indent(indent)
        .subsequent_indent(indent);
    textwrap::fill(text, options) + "\n"
}

/// Asks for yes or no; Enter is no.
pub fn confirm(question: &str) -> bool {
    choose(question, &[('n', "no"), ('y', "yes")]) == Some('y')
}

fn read(keys: &[(char, &str)]) -> Option<char> {
    let mut input = std::io::stdin().lock();
    let mut byte = [0];
    loop {
        match input.read(&mut byte) {
            Ok(1) => {}
            _ => return None,
        }
        let [byte] = byte;
        match byte {
            INTERRUPT => {
                restore();
                let _ = writeln!(std::io::stderr());
                signals::end(Signal::SIGINT as i32)
            }
            END => return None,
            b'\r' | b'\n' if LETTER.swap(false, Ordering::Relaxed) => {}
            b'\r' | b'\n' => return keys.first().map(|(key, _)| *key),
            byte => {
                let pressed = char::from(byte).to_ascii_lowercase();
                if keys.iter().any(|(key, _)| *key == pressed) {
                    LETTER.store(true, Ordering::Relaxed);
                    return Some(pressed);
                }
            }
        }
    }
}

/// Makes the terminal pass on each key at once without echo, until this is dropped.
struct KeysAlone;

impl KeysAlone {
    fn begin() -> Self {
        let input = std::io::stdin();
        if let Ok(before) = tcgetattr(&input) {
            let mut settings = before.clone();
            let lines = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG;
            settings.local_flags.remove(lines);
            *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
            let _ = tcsetattr(&input, SetArg::TCSANOW, &settings);
        }
        Self
    }
}

impl Drop for KeysAlone {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, also for a process that ends in the middle of a question.
pub fn restore() {
    let before = BEFORE.try_lock().ok().and_then(|mut before| before.take());
    if let Some(before) = before {
        let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &before);
    }
}
