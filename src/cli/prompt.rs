//! Questions at a terminal, answered with one key. A question goes to standard error, so it is
//! visible while the output goes elsewhere. Only keys that are pressed after it appears count.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::read;

use super::screen::Screen;
use super::signals;
use ack_api::text;

/// The terminal's settings from before a question, while a question is open.
static SAVED_TERMINAL: Mutex<Option<Termios>> = Mutex::new(None);
/// The last answer, in case the user goes on to type it as a word.
static LAST_ANSWER: Mutex<Option<TypedWord>> = Mutex::new(None);

const INTERRUPT_BYTE: u8 = 3;
const END_BYTE: u8 = 4;
const ESCAPE_BYTE: u8 = 27;
/// How soon the next letter of a word follows.
const NEXT_LETTER_TIMEOUT: Duration = Duration::from_millis(700);
/// How soon the rest of an escape sequence follows, in milliseconds.
const NEXT_BYTE_TIMEOUT_MS: u8 = 50;

/// Whether there is a user who can see and answer a question.
pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks for one of several keys, each with the word to show once it is pressed. Enter selects the
/// first one. `None` at the end of the input.
pub fn choose(question: &str, keys: &[(char, &str)]) -> Option<char> {
    let default = keys.first().map(|(key, _)| *key)?;
    ask(question, keys, default)
}

/// Asks for yes or no; Enter is no.
pub fn confirm(question: &str) -> bool {
    ask(question, &[('y', "yes"), ('n', "no")], 'n') == Some('y')
}

fn ask(question: &str, keys: &[(char, &str)], default: char) -> Option<char> {
    // The user may press a key as soon as the question appears.
    let keys_alone = RawMode::begin();
    let prompt = format!("{} [{}] ", text::safe(question), key_letters(keys, default));
    write_error(&prompt);
    let answer = answer(keys, default, &prompt);
    drop(keys_alone);
    let word = answer.and_then(|key| keys.iter().find(|(known, _)| *known == key));
    write_error(&format!("{}\n", word.map_or("", |(_, word)| word)));
    answer
}

fn write_error(text: &str) {
    let mut error = anstream::stderr().lock();
    let _ = error.write_all(text.as_bytes());
    let _ = error.flush();
}

/// `R/t/s`: the default in upper case.
fn key_letters(keys: &[(char, &str)], default: char) -> String {
    let letter = |(key, _): &(char, &str)| match *key == default {
        true => key.to_ascii_uppercase().to_string(),
        false => key.to_string(),
    };
    keys.iter().map(letter).collect::<Vec<_>>().join("/")
}

/// The keys with their words, for a user who pressed another one.
fn allowed_keys(keys: &[(char, &str)], default: char) -> String {
    let words = keys.iter().map(|(key, word)| match *key == default {
        true => format!("{key} or Enter: {word}"),
        false => format!("{key}: {word}"),
    });
    words.collect::<Vec<_>>().join(", ")
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

/// What the user pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Letter(char),
    Enter,
    Interrupt,
    End,
    /// Any other key, such as an arrow.
    Other,
}

/// Waits for an answer. The first key that is not an answer lists the allowed ones.
fn answer(keys: &[(char, &str)], default: char, prompt: &str) -> Option<char> {
    let mut has_listed_keys = false;
    loop {
        let key = read_key();
        let mut typed = LAST_ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
        if typed
            .as_mut()
            .is_some_and(|typed| typed.continues_with(key, Instant::now()))
        {
            continue;
        }
        *typed = None;
        match key {
            Key::Interrupt => {
                restore();
                write_error("\n");
                signals::end_by_interrupt()
            }
            Key::End => return None,
            Key::Enter => return Some(default),
            Key::Letter(letter) => {
                if let Some((key, word)) = keys.iter().find(|(key, _)| *key == letter) {
                    *typed = Some(TypedWord::new(*key, word, Instant::now()));
                    return Some(*key);
                }
            }
            Key::Other => {}
        }
        if !has_listed_keys {
            has_listed_keys = true;
            write_error(&format!("\n    {}\n{prompt}", allowed_keys(keys, default)));
        }
    }
}

/// An answer whose letter is counted, and the rest of its word, which the user may still type.
#[derive(Debug)]
struct TypedWord {
    rest: String,
    last: Instant,
    /// Whether Enter followed it.
    ended: bool,
}

impl TypedWord {
    fn new(key: char, word: &str, now: Instant) -> Self {
        let word = word.to_lowercase();
        let words = word.split_inclusive(' ');
        let rest: String = words.skip_while(|word| !word.starts_with(key)).collect();
        Self {
            rest: rest.chars().skip(1).collect(),
            last: now,
            ended: false,
        }
    }

    /// Whether a key belongs to the word: its next letter, or the Enter after it.
    fn continues_with(&mut self, key: Key, now: Instant) -> bool {
        if self.ended || now.saturating_duration_since(self.last) >= NEXT_LETTER_TIMEOUT {
            return false;
        }
        let mut letters = self.rest.chars();
        match key {
            Key::Letter(letter) if letters.next() == Some(letter) => {}
            Key::Enter => self.ended = true,
            _ => return false,
        }
        self.rest = letters.as_str().to_owned();
        self.last = now;
        true
    }
}

/// Reads one key.
fn read_key() -> Key {
    let Some(first) = read_byte() else {
        return Key::End;
    };
    match first {
        INTERRUPT_BYTE => Key::Interrupt,
        END_BYTE => Key::End,
        b'\r' | b'\n' => Key::Enter,
        ESCAPE_BYTE => {
            skip_escape_sequence();
            Key::Other
        }
        first if first.is_ascii_graphic() || first == b' ' => {
            Key::Letter(char::from(first).to_ascii_lowercase())
        }
        // The other bytes of a letter beyond ASCII.
        first if first >= 0xC0 => {
            for _ in 1..first.leading_ones() {
                let _ = read_byte_soon();
            }
            Key::Other
        }
        _ => Key::Other,
    }
}

/// Reads the rest of an escape sequence: `ESC [ … final`, `ESC O letter`, or `ESC letter`.
fn skip_escape_sequence() {
    match read_byte_soon() {
        Some(b'[') => while read_byte_soon().is_some_and(|byte| !(0x40..=0x7E).contains(&byte)) {},
        Some(b'O') => {
            let _ = read_byte_soon();
        }
        _ => {}
    }
}

/// Reads one byte, bypassing the standard library's buffer, which would keep what follows.
fn read_byte() -> Option<u8> {
    let mut byte = [0];
    loop {
        match read(std::io::stdin().as_fd(), &mut byte) {
            Ok(1) => return byte.first().copied(),
            Err(nix::errno::Errno::EINTR) => {}
            _ => return None,
        }
    }
}

fn read_byte_soon() -> Option<u8> {
    let input = std::io::stdin();
    let mut wanted = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    match poll(&mut wanted, PollTimeout::from(NEXT_BYTE_TIMEOUT_MS)) {
        Ok(ready) if ready > 0 => read_byte(),
        _ => None,
    }
}

/// Makes the terminal pass on each key immediately and without echo, until this is dropped. Drops
/// what was typed before.
struct RawMode;

impl RawMode {
    fn begin() -> Self {
        let input = std::io::stdin();
        if let Ok(before) = tcgetattr(&input) {
            let mut settings = before.clone();
            let lines = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG;
            settings.local_flags.remove(lines);
            *SAVED_TERMINAL
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(before);
            let _ = tcsetattr(&input, SetArg::TCSAFLUSH, &settings);
        }
        Self
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, also for a process that ends in the middle of a question.
pub fn restore() {
    let before = SAVED_TERMINAL
        .try_lock()
        .ok()
        .and_then(|mut before| before.take());
    if let Some(before) = before {
        let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_typed_word_is_ignored() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut typed = TypedWord::new('t', "trust all", start);
        for (place, letter) in "rust".chars().enumerate() {
            let now = at(300 * (place as u64 + 1));
            assert!(typed.continues_with(Key::Letter(letter), now), "{letter}");
        }
        assert!(typed.continues_with(Key::Enter, at(1_400)));
        assert!(
            !typed.continues_with(Key::Enter, at(1_500)),
            "the next answer"
        );

        let mut typed = TypedWord::new('d', "the difference", start);
        assert!(typed.continues_with(Key::Letter('i'), at(100)));
        assert!(
            !typed.continues_with(Key::Letter('y'), at(200)),
            "another letter"
        );
        assert!(
            !typed.continues_with(Key::Letter('f'), at(2_000)),
            "too late"
        );
    }

    #[test]
    fn the_default_is_marked() {
        let keys = [('r', "review first"), ('t', "trust all")];
        assert_eq!(key_letters(&keys, 'r'), "R/t");
        assert_eq!(
            allowed_keys(&keys, 'r'),
            "r or Enter: review first, t: trust all"
        );
    }
}
