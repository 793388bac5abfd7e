//! Finds text that tries to direct the agent that reads it, instead of stating a fact.
//!
//! It knows the usual forms: orders to ignore instructions, new roles, secrecy towards people, the
//! markup of chats, rules in the voice of a policy, orders to whoever reads the text. What a
//! project tells agents about its own work ("agents should run the tests") is none of these. It
//! protects from nothing: whoever knows the forms can avoid them.

use std::sync::LazyLock;

use regex::Regex;

use super::plain::{Plain, pattern, plain};
use super::table::{Found, Kind, Row, columns, find};

const FORMS: &str = include_str!("agent_text.txt");

/// The markup of chats and hosts, which has no place in a note unless it is quoted as code.
const MARKUP: &str = "[INST] [/INST] <<SYS>> <</SYS>> <|im_start|> <|im_end|> <|system|> <|user|> \
    <|assistant|> <|start_header_id|> <|end_header_id|> <|eot_id|> <|endoftext|> <system> </system>";
/// Beginnings and ends of names of tags that only hosts write.
const TAGS: (&str, &str) = (
    "system important assistant developer agent user hidden admin new",
    "[-_](?:reminder|prompt|instructions?|message|context|override|note)>",
);
/// Something that is not quoted follows it.
const UNQUOTED: &str = r#"[^`'"]*?\w"#;

/// What a text has both of if it plays both parts of a conversation.
const DIALOGUE_PARTS: [[&str; 2]; 2] = [
    [r"(?:^|\n|[.!?]\s+)Assistant:\s+\w", r"(?:^|\n|[.!?]\s+)(?:Human|User):\s+\w"],
    [r"(?m)^#+ Instructions?:", r"(?m)^#+ (?:Response|Output):"],
];

pub fn rows() -> impl Iterator<Item = Row> {
    let mut parts: Vec<(&str, String)> = Vec::new();
    let mut rows = Vec::new();
    for [words, rest] in columns(FORMS) {
        let filled = |text: &str| {
            parts.iter().fold(text.to_owned(), |text, (name, part)| text.replace(name, part))
        };
        let rest = filled(rest);
        if words.starts_with('{') && words.ends_with('}') {
            parts.push((words, rest));
            continue;
        }
        let order = words.strip_prefix('>');
        let words = filled(order.unwrap_or(words));
        let words = words.trim_start_matches("(?:").trim_end_matches(')');
        rows.push(Row {
            before: order.map(|_| filled("{begin}")),
            ..Row::new(Kind::Order, words, rest.replace(' ', r"\s+"))
        });
    }
    let tags = TAGS.0.split(' ').flat_map(|tag| [format!("<{tag}"), format!("</{tag}")]);
    let marks = MARKUP.split(' ').map(str::to_owned);
    let markup = |words: Vec<String>, rest: &str| Row {
        before: Some(r#"(?:^|[^`'"\w\\])"#.to_owned()),
        words,
        ignores_case: false,
        ..Row::new(Kind::Order, "", format!("{rest}{UNQUOTED}"))
    };
    rows.push(markup(marks.collect(), ""));
    rows.push(markup(tags.collect(), TAGS.1));
    rows.into_iter()
}

/// Where a plain text directs an agent, with what the table found in it.
fn orders(text: &str, found: &[Found]) -> Vec<usize> {
    static DIALOGUES: LazyLock<Option<[[Regex; 2]; 2]>> = LazyLock::new(|| {
        let [first, second] =
            DIALOGUE_PARTS.map(|[first, second]| Some([pattern(first)?, pattern(second)?]));
        Some([first?, second?])
    });
    let orders = found.iter().filter(|found| found.kind == Kind::Order);
    let mut orders: Vec<usize> = orders.map(|found| found.start).collect();
    for [first, second] in DIALOGUES.iter().flatten() {
        let first = first.find(text).filter(|_| second.is_match(text));
        orders.extend(first.map(|first| first.end()));
    }
    orders
}

/// The lines in which a text gives the agent that reads it instructions, from 1.
pub fn agent_lines(text: &Plain<'_>) -> Vec<usize> {
    let directs = |text: &str| !orders(text, &find(text)).is_empty();
    let mut found = orders(&text.text, &text.found);
    let decoded = text.decoded.iter();
    let decoded = decoded.filter(|(_, decoded)| directs(&plain(decoded)));
    found.extend(decoded.map(|(at, _)| *at));
    let spelled = spelled(&text.text).into_iter().filter(|(_, words)| directs(words));
    found.extend(spelled.map(|(at, _)| at));
    text.lines_of(found)
}

/// The words that are spelled with a space after each letter, each run with where it begins.
fn spelled(text: &str) -> Vec<(usize, String)> {
    static RUNS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        pattern(r"(?-u:\b)[a-zA-Z](?:[ \t.-][a-zA-Z]){5,}(?-u:\b)(?:[ \t.-]{1,4}[a-zA-Z](?-u:\b))*")
    });
    static APART: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"[ \t.-]{2,}"));
    if !has_single_letters(text) {
        return Vec::new();
    }
    let (Some(runs), Some(apart)) = (RUNS.as_ref(), APART.as_ref()) else {
        return Vec::new();
    };
    let joined = |run: &str| {
        let words = apart.split(run).map(|word| word.replace([' ', '\t', '.', '-'], ""));
        words.collect::<Vec<_>>().join(" ")
    };
    runs.find_iter(text).map(|run| (run.start(), joined(run.as_str()))).collect()
}

/// Whether some single letters follow each other, with one character between two.
fn has_single_letters(text: &str) -> bool {
    let is_between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'.' | b'-');
    text.as_bytes().windows(11).any(|window| {
        window.iter().skip(1).step_by(2).all(is_between)
            && window.iter().step_by(2).all(u8::is_ascii_alphabetic)
    })
}
