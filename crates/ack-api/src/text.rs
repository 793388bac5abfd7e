//! Makes memory text safe to print and limits its size. Memory text is untrusted data: anyone who
//! worked on a project may have written it.
//!
//! Removed: terminal escape sequences with their parameters, control characters, bidirectional
//! overrides and isolates, zero-width and tag characters that hide text from a reader. Kept: every
//! script, emoji with their joiners and, in long text, line breaks and tabs. [`untagged`] is for
//! text that reaches a model outside a tool's result.

mod sentence;
mod tags;
mod tokens;
pub mod vocabulary;

use std::borrow::Cow;
use std::fmt::Write;

pub use self::sentence::{ends_sentence, first_sentence};
pub use self::tags::{is_invisible, neutralize_host_tags, untag, untagged};
pub use self::tokens::{is_common_word, tokens};

pub const LINE_CAP: usize = 1_000;
/// The longest text in a full answer, in bytes.
pub const BLOCK_CAP: usize = 24_000;

pub const ID_CAP: usize = 200;

/// A memory's id as answers show it: a safe line of at most [`ID_CAP`] characters. A longer id is
/// cut and ends in a digest of the whole, so that ids with the same prefix stay distinct.
pub fn id(raw: &str) -> String {
    let whole = line(raw, usize::MAX);
    if whole.len() <= ID_CAP || whole.chars().count() <= ID_CAP {
        return whole;
    }
    let digest = format!("…{:016x}", fnv(whole.bytes()));
    let prefix_chars = ID_CAP - digest.chars().count();
    whole.chars().take(prefix_chars).chain(digest.chars()).collect()
}

fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Makes one line of text safe: cleaned, with white space folded to single spaces, at most `cap`
/// characters. An ellipsis marks a cut.
pub fn line(raw: &str, cap: usize) -> String {
    if is_plain_line(raw, cap) {
        return raw.to_owned();
    }
    let safe = safe(raw);
    let mut out = String::with_capacity(safe.len().min(cap.saturating_mul(4)));
    let mut count = 0;
    for word in safe.split_whitespace() {
        let lead = usize::from(!out.is_empty());
        if lead == 1 {
            out.push(' ');
        }
        let length = word.chars().count();
        if count + lead + length > cap {
            let room = cap.saturating_sub(count + lead + 1);
            out.extend(word.chars().take(room));
            let kept_bytes = out.trim_end().len();
            out.truncate(kept_bytes);
            out.push('…');
            return out;
        }
        out.push_str(word);
        count += lead + length;
    }
    out
}

/// The same, at most about `max` tokens by the estimate of [`tokens()`].
pub fn line_within(raw: &str, max: usize) -> String {
    let mut short = line(raw, usize::MAX);
    let mut count = tokens(&short);
    while count > max {
        let char_count = short.chars().count();
        let cap = (char_count * max / count).min(char_count.saturating_sub(2));
        if cap == 0 {
            return String::new();
        }
        short = line(&short, cap);
        count = tokens(&short);
    }
    short
}

/// Whether [`line()`] would not change the text, which is the common case.
fn is_plain_line(raw: &str, cap: usize) -> bool {
    raw.len() <= cap
        && has_only(raw, |byte| byte.is_ascii_graphic() | (byte == b' '))
        && !raw.contains("  ")
        && !raw.starts_with(' ')
        && !raw.ends_with(' ')
}

/// Looks at every byte, because a loop that may end early cannot be vectorised.
fn has_only(text: &str, allows: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(true, |so_far, byte| so_far & allows(byte))
}

/// Makes a long text safe: cleaned, with `\n` line ends, trimmed. Its length is not limited.
pub fn block(raw: &str) -> String {
    let mut safe = safe(raw);
    if safe.contains('\r') {
        safe = safe.replace("\r\n", "\n").replace('\r', "\n").into();
    }
    safe.trim().to_owned()
}

/// How the name of a character in [`named()`] begins.
pub const NAMED: &str = "[U+";

/// A text with the names of the characters in it that [`safe`] removes, as `[U+202E]`. Of several
/// in a row, the first is named and the others are counted.
pub fn named(raw: &str) -> Cow<'_, str> {
    if raw.chars().all(|c| keep_char(c).is_some()) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        if let Some(kept) = keep_char(c) {
            out.push(kept);
            continue;
        }
        let mut more = 0;
        while chars.next_if(|c| keep_char(*c).is_none()).is_some() {
            more += 1;
        }
        let _ = match more {
            0 => write!(out, "{NAMED}{:04X}]", u32::from(c)),
            more => write!(out, "{NAMED}{:04X} and {more} more hidden]", u32::from(c)),
        };
    }
    Cow::Owned(out)
}

/// Makes every string of a JSON value safe to print. Member names are unchanged.
pub fn clean_json(value: &mut serde_json::Value) {
    map_strings(value, &|text| safe(text));
}

fn map_strings(value: &mut serde_json::Value, change: &dyn Fn(&str) -> Cow<'_, str>) {
    use serde_json::Value;
    match value {
        Value::String(text) => {
            if let Cow::Owned(changed) = change(text) {
                *text = changed;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|it| map_strings(it, change)),
        Value::Object(members) => members.values_mut().for_each(|it| map_strings(it, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

pub fn has_word(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// Why one line of JSON could not be read, without the line number: only the caller knows it.
pub fn json_line_problem(error: &serde_json::Error) -> String {
    if !error.is_data() {
        return format!("invalid JSON at column {}", error.column());
    }
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    match message.strip_prefix("missing field ") {
        Some(field) => format!("{field} is missing"),
        None if message.contains("expected struct ") => "expected a JSON object".to_owned(),
        None => message.to_owned(),
    }
}

/// Cuts a text to at most `cap` bytes at a character boundary. The flag says whether it was cut.
pub fn cut(text: &str, cap: usize) -> (Cow<'_, str>, bool) {
    if text.len() <= cap {
        return (Cow::Borrowed(text), false);
    }
    let end = text.floor_char_boundary(cap.saturating_sub('…'.len_utf8()));
    let prefix = text.get(..end).unwrap_or_default();
    (Cow::Owned(format!("{prefix}…")), true)
}

/// Makes a message that quotes other text safe: like [`block()`], but not trimmed.
pub fn safe(raw: &str) -> Cow<'_, str> {
    if has_only(raw, |byte| byte.is_ascii_graphic() | matches!(byte, b' ' | b'\n' | b'\t')) {
        return Cow::Borrowed(raw);
    }
    // An unterminated escape sequence must not swallow the rest of the text. So a lone ESC is
    // dropped, and a sequence ends with its line.
    let plain = if raw.contains(['\u{1b}', '\u{9b}', '\u{9d}', '\u{90}']) {
        Cow::Owned(strip_escapes(raw))
    } else {
        Cow::Borrowed(raw)
    };
    Cow::Owned(plain.chars().filter_map(keep_char).collect())
}

/// Removes terminal escape sequences: CSI up to its final byte, OSC, DCS, SOS, PM and APC up to
/// their terminator on the same line (ECMA-48), and two-character escapes.
fn strip_escapes(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        // What begins a sequence, in its form of two characters.
        let begun = match c {
            '\u{1b}' => chars.next_if(|next| matches!(next, ' '..='~')),
            '\u{9b}' => Some('['),
            '\u{9d}' | '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => Some(']'),
            _ => {
                out.push(c);
                continue;
            }
        };
        match begun {
            // Parameters, and a final byte.
            Some('[') => {
                while chars.next_if(|next| matches!(next, ' '..='?')).is_some() {}
                chars.next_if(|next| matches!(next, '@'..='~'));
            }
            // Anything up to a terminator.
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while let Some(next) = chars.next_if(|next| *next != '\n') {
                    if next == '\u{1b}' {
                        chars.next_if_eq(&'\\');
                    }
                    if matches!(next, '\u{1b}' | '\u{7}' | '\u{9c}') {
                        break;
                    }
                }
            }
            Some(' '..='/') => {
                chars.next();
            }
            _ => {}
        }
    }
    out
}

fn keep_char(c: char) -> Option<char> {
    match c {
        '\n' | '\t' | '\r' => Some(c),
        '\u{2028}' | '\u{2029}' => Some('\n'),
        // Joiners stay: emoji and several scripts need them.
        '\u{200c}' | '\u{200d}' => Some(c),
        _ if c.is_control() => None,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' => None,
        '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' => None,
        '\u{e0000}'..='\u{e0fff}' => None,
        _ => Some(c),
    }
}

/// Lists names in backticks: at most eight, then the number of others.
pub fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let quoted = names.iter().take(8).map(|name| format!("`{}`", line(name, 80)));
    let quoted = quoted.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(8) {
        0 => quoted,
        more => format!("{quoted} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_controls_and_overrides_are_removed_and_the_words_stay() {
        assert_eq!(line("a\u{1b}[31mred\u{1b}[0m b", 100), "ared b");
        assert_eq!(line("\u{1b}]0;title\u{7}shell", 100), "shell");
        assert_eq!(line("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\!", 100), "link!");
        assert_eq!(line("safe\u{202e}txt.exe\0", 100), "safetxt.exe");
        assert_eq!(line("\u{9b}31mred", 100), "red");
        assert_eq!(line("bell\u{7} rings", 100), "bell rings");
    }

    #[test]
    fn an_unterminated_escape_removes_at_most_its_line() {
        assert_eq!(block("\u{1b}]0;never closed\nsecond line"), "second line");
    }

    #[test]
    fn emoji_and_scripts_stay_whole() {
        for text in ["👩‍👩‍👧 family", "שלום", "データベース", "e\u{301}"] {
            assert_eq!(line(text, 100), text);
        }
    }

    #[test]
    fn long_ids_stay_apart_and_short() {
        let long = |end: &str| format!("{}{end}", "a".repeat(300));
        let (one, two) = (id(&long("one")), id(&long("two")));
        assert_ne!(one, two);
        assert_eq!((one.chars().count(), id(&one)), (ID_CAP, one.clone()));
        let exact = "é".repeat(ID_CAP);
        assert_eq!(id(&exact), exact);
    }

    #[test]
    fn lines_fold_and_keep_their_cap() {
        assert_eq!(line("  a\n\tb  ", 100), "a b");
        for (raw, expected) in
            [("", ""), (" ", ""), ("a b", "a b"), ("a  b", "a b"), (" a", "a"), ("a ", "a")]
        {
            assert_eq!(line(raw, 100), expected, "{raw:?}");
        }
        let long = line(&"x".repeat(100_000), 50);
        assert_eq!(long.chars().count(), 50);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn cutting_respects_characters() {
        assert_eq!(cut("äöü", 100), (Cow::Borrowed("äöü"), false));
        let (prefix, was_cut) = cut("äöüäöü", 7);
        assert!(was_cut && prefix.len() <= 7);
    }
}
