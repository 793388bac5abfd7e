//! Whether front matter is YAML.
//!
//! Notes with invalid front matter are still served, read as far as possible
//! (`ack_store::folder::front_matter`). Other programs reject the whole header, and an unclosed
//! value is served with the wrong content.

use serde::de::IgnoredAny;
use serde_saphyr::{DuplicateKeyPolicy, NonFiniteFloatPolicy, options};

#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Checks the lines between the `---` markers.
pub fn check(lines: &str) -> Result<(), Problem> {
    let options = options! {
        // Two equal keys are reported by themselves.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    };
    let Err(error) = serde_saphyr::from_str_with_options::<IgnoredAny>(lines, options) else {
        return Ok(());
    };
    let line = error.location().map_or(1, |location| location.line());
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    let text = error.without_snippet().to_string();
    let what = text.split_once(": ").map_or(text.as_str(), |(_, what)| what);
    let tab = lines.lines().position(|line| line.starts_with('\t'));
    let (line, message) = if what.contains("tab")
        && let Some(before) = tab
    {
        (before + 1, "a tab indents this line; use spaces".to_owned())
    } else if what.starts_with("mapping values are not allowed") {
        (line, "put a value that contains `: ` in quotes".to_owned())
    } else if what.contains("expected ':'") {
        (line, "this line has no key and no `:`".to_owned())
    } else if what.starts_with("unclosed quote") {
        (line, "a quote is opened here and never closed".to_owned())
    } else if what.starts_with("recursion limit") {
        (line, "this line nests too many lists or maps".to_owned())
    } else if OPEN_BRACKET.iter().any(|said| what.contains(said))
        && let Some((opened, bracket)) = open_bracket(lines, line)
    {
        (opened, format!("`{bracket}` is opened here and never closed"))
    } else {
        (line, what.to_owned())
    };
    let message = format!("its front matter is not valid YAML: {message}");
    Err(Problem { line, message })
}

/// What the parser says of a bracket that is never closed.
const OPEN_BRACKET: [&str; 3] = ["flow", "unclosed bracket", "illegal placement of ':'"];

/// The bracket that is open at the end of a line, and the line where it was opened.
fn open_bracket(lines: &str, end: usize) -> Option<(usize, char)> {
    let mut open = Vec::new();
    for (number, line) in (1..=end).zip(lines.lines()) {
        for c in line.chars() {
            match c {
                '[' | '{' => open.push((number, c)),
                ']' | '}' => drop(open.pop()),
                _ => {}
            }
        }
    }
    open.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faulty_line_is_named() {
        let lists = format!("type: x\ntags: {}\n", "[".repeat(8 << 20));
        let maps = format!("tags: {}", "{a: [".repeat(1 << 20));
        for (lines, line, part) in [
            ("type: note\ntitle: [unclosed\nid: x\n", 2, "`[` is opened here"),
            ("title: \"unclosed\nid: x\n", 1, "a quote"),
            ("title: {unclosed\n", 1, "`{`"),
            ("type: note\ntags:\n\t- ci\n", 3, "a tab"),
            ("type: note\r\n\tid: x\r\n", 2, "a tab"),
            ("type: note\ntitle: One: two\n", 2, "in quotes"),
            ("type: note\nno key\nid: x\n", 2, "`:`"),
            ("title: @x\n", 1, ""),
            ("range: from [0, 1)\nby: @x\n", 2, ""),
            ("title: *x\n", 1, ""),
            (lists.as_str(), 2, "nests too many"),
            (maps.as_str(), 1, "nests too many"),
        ] {
            let problem = check(lines).unwrap_err();
            assert_eq!(problem.line, line, "{problem:?}");
            assert!(problem.message.contains(part), "{problem:?}");
        }
        for lines in [
            "",
            "# only a comment\n",
            "type: note\r\ntags: [a,\r\n  b]\r\n",
            "type: note\ntype: other\n",
            "title: \"One: two\"\nwhy: |\n  a: b: c\nrelated: [[Note]]\n",
            "title:\tx\nverified: {by: human:ana}\n",
        ] {
            assert_eq!(check(lines), Ok(()), "{lines}");
        }
    }
}
