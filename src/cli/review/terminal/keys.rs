//! The keys that a terminal sends, from its bytes.

/// The most bytes of a paste. The rest of a longer one is dropped with it.
const MAX_PASTE: usize = 64 << 10;
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    Tab,
    Escape,
    Backspace,
    Up,
    Down,
    Right,
    PageUp,
    PageDown,
    /// Ctrl+C.
    Interrupt,
    /// Ctrl+Z.
    Suspend,
    /// Ctrl+\.
    Quit,
    /// Text that was pasted. Its letters are no keys.
    Paste(String),
    /// Nothing more comes.
    End,
    Other,
}

/// The first key of some bytes, and how many bytes it has. `None` while it is not complete: an
/// escape alone may be the key, or the beginning of another one.
pub fn first_key(bytes: &[u8]) -> Option<(Key, usize)> {
    let key = match *bytes.first()? {
        0x1b => return escaped(bytes),
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Tab,
        0x7f | 0x08 => Key::Backspace,
        0x03 => Key::Interrupt,
        0x1a => Key::Suspend,
        0x1c => Key::Quit,
        0..0x20 => Key::Other,
        _ => return character(bytes),
    };
    Some((key, 1))
}

fn character(bytes: &[u8]) -> Option<(Key, usize)> {
    let start = bytes.get(..bytes.len().min(4))?;
    match start.utf8_chunks().next()?.valid().chars().next() {
        Some(first) => Some((Key::Char(first), first.len_utf8())),
        // The beginning of a character, or no text at all.
        None => std::str::from_utf8(start).err()?.error_len().map(|length| (Key::Other, length)),
    }
}

/// A key that begins with an escape, as terminals in the manner of the VT100 send it.
fn escaped(bytes: &[u8]) -> Option<(Key, usize)> {
    let rest = match bytes {
        [_, b'[' | b'O', rest @ ..] => rest,
        [_] => return None,
        _ => return Some((Key::Escape, 1)),
    };
    let end = rest.iter().position(|byte| (0x40..0x7f).contains(byte))?;
    let key = match (rest.get(..end)?, rest.get(end)?) {
        (b"200", b'~') => return pasted(bytes),
        (b"5", b'~') => Key::PageUp,
        (b"6", b'~') => Key::PageDown,
        (_, b'A') => Key::Up,
        (_, b'B') => Key::Down,
        (_, b'C') => Key::Right,
        _ => Key::Other,
    };
    Some((key, end + 3))
}

fn pasted(bytes: &[u8]) -> Option<(Key, usize)> {
    let start = PASTE_END.len();
    let text = bytes.get(start..)?;
    match text.windows(start).position(|part| part == PASTE_END) {
        Some(end) => {
            let text = String::from_utf8_lossy(text.get(..end)?).into_owned();
            Some((Key::Paste(text), 2 * start + end))
        }
        None if bytes.len() > MAX_PASTE => Some((Key::Other, bytes.len())),
        None => None,
    }
}
