//! Tool and argument names in messages, hints and notes, for readers who know these under other
//! names.
//!
//! A message uses the four tools' own names (`get_memory`, between backticks or not), and their
//! arguments between backticks, alone (`` `scope` ``) or with a value (`` `status: "all"` ``). An
//! agent whose tools are renamed and a person at a terminal read the same message through a
//! [`Vocabulary`].

use std::borrow::Cow;

/// A name in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'a> {
    /// A word that may be the name of a tool.
    Tool(&'a str),
    /// A quotation between backticks that may be an argument, with its value if it has one, as
    /// written.
    Argument(&'a str, Option<&'a str>),
}

/// What a reader calls tools and arguments.
pub trait Vocabulary {
    /// The replacement, with its backticks if any; `None` keeps what is there.
    fn translate(&mut self, name: Name<'_>) -> Option<String>;
}

/// A message with its names replaced by those of a vocabulary.
pub fn reword<'a>(message: &'a str, vocabulary: &mut impl Vocabulary) -> Cow<'a, str> {
    let mut out = String::new();
    // Everything before this position is in `out`.
    let mut copied = 0;
    let mut at = 0;
    while let Some((start, end, name)) = next_name(message, at) {
        at = end;
        if let Some(translated) = name.and_then(|name| vocabulary.translate(name)) {
            out.push_str(&message[copied..start]);
            out.push_str(&translated);
            copied = end;
        }
    }
    if copied == 0 && out.is_empty() {
        return Cow::Borrowed(message);
    }
    out.push_str(&message[copied..]);
    Cow::Owned(out)
}

/// Where the next word or quotation between backticks begins and ends, and what it may name.
fn next_name(message: &str, from: usize) -> Option<(usize, usize, Option<Name<'_>>)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let rest = &message[from..];
    let start = from + rest.find(|c| is_part(c) || c == '`')?;
    let rest = &message[start..];
    if let Some(quoted) = rest.strip_prefix('`')
        && let Some((inside, _)) = quoted.split_once('`')
    {
        return Some((start, start + inside.len() + 2, Some(quotation(inside))));
    }
    let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len()).max(1);
    let word = &rest[..length];
    let name = word.contains('_').then_some(Name::Tool(word));
    Some((start, start + length, name))
}

fn quotation(inside: &str) -> Name<'_> {
    match inside.split_once(':') {
        Some((argument, value)) => Name::Argument(argument, Some(value.trim_start())),
        None => Name::Argument(inside, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Uppercase;

    impl Vocabulary for Uppercase {
        fn translate(&mut self, name: Name<'_>) -> Option<String> {
            match name {
                Name::Tool(tool) => (tool == "get_memory").then(|| "GET".to_owned()),
                Name::Argument("get_memory", None) => Some("`GET`".to_owned()),
                Name::Argument("status", None) => Some("`STATUS`".to_owned()),
                Name::Argument("status", Some(value)) => Some(format!("`STATUS={value}`")),
                Name::Argument(..) => None,
            }
        }
    }

    #[test]
    fn only_names_change() {
        for (message, reworded) in [
            (
                "get_memory, `get_memory`; my_get_memory get_memory_2",
                "GET, `GET`; my_get_memory get_memory_2",
            ),
            (
                "pass `status: \"all\"` or leave `status` out",
                "pass `STATUS=\"all\"` or leave `STATUS` out",
            ),
            ("the status of é `é` and `x", "the status of é `é` and `x"),
            ("`status: \"never closed", "`status: \"never closed"),
            ("``status`` ``", "``status`` ``"),
            ("", ""),
        ] {
            assert_eq!(reword(message, &mut Uppercase), reworded);
        }
    }
}
