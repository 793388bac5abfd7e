//! Whether front matter is YAML.
//!
//! Notes with invalid front matter are still served, read as far as possible
//! (`ack_store::folder::front_matter`). Other programs reject the whole header, and an unclosed
//! value is served with the wrong content.

use serde::de::IgnoredAny;

/// How many lists and maps may be open at once.
const MAX_DEPTH: usize = 100;

/// Why a text is not valid YAML.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line with the problem, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Checks the lines between the `---` markers.
///
/// # Errors
/// They are not valid YAML.
pub fn check(lines: &str) -> Result<(), Problem> {
    // The parser takes the square of the depth.
    if let Some(line) = too_deep(lines) {
        return Err(Problem {
            line,
            message: format!("its front matter nests more than {MAX_DEPTH} lists or maps"),
        });
    }
    let Err(error) = serde_yaml_ng::from_str::<IgnoredAny>(lines) else {
        return Ok(());
    };
    let error_text = error.to_string();
    // In `did not find expected ',' or ']' at line 3 column 1, while parsing a flow sequence at
    // line 2 column 8`, the unclosed bracket is on the earlier line.
    let numbers = error_text.split(" at line ").skip(1).filter_map(number);
    let line = numbers.min().unwrap_or(1);
    let what = error_text.split(" at line ").next().unwrap_or_default();
    let tab = lines.lines().position(|line| line.starts_with('\t'));
    let tab = tab.filter(|_| {
        ["a tab", "any token"]
            .iter()
            .any(|part| what.contains(part))
    });
    let line = tab.map_or(line, |before| before + 1);
    let message = if tab.is_some() {
        "a tab indents this line; use spaces".to_owned()
    } else if what.starts_with("mapping values are not allowed") {
        "put a value that contains `: ` in quotes".to_owned()
    } else if let Some(sign) = unclosed(&error_text) {
        format!("{sign} is opened here and never closed")
    } else if what == "could not find expected ':'" {
        "this line has no key and no `:`".to_owned()
    } else {
        what.to_owned()
    };
    let message = format!("its front matter is not valid YAML: {message}");
    Err(Problem { line, message })
}

/// The line in which more brackets are open than anybody writes.
fn too_deep(lines: &str) -> Option<usize> {
    let mut depth = 0_usize;
    (1..).zip(lines.lines()).find_map(|(number, line)| {
        let is_deep = line.bytes().any(|byte| {
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth > MAX_DEPTH
        });
        is_deep.then_some(number)
    })
}

/// What was not closed.
fn unclosed(message: &str) -> Option<&'static str> {
    let opened = [
        ("a flow sequence", "`[`"),
        ("a flow mapping", "`{`"),
        ("a quoted scalar", "a quote"),
    ];
    let (_, context) = message.split_once("while ")?;
    let found = opened.iter().find(|(name, _)| context.contains(name));
    found.map(|(_, sign)| *sign)
}

/// The number at the start of a text. 0 does not count, because line numbers start at 1.
fn number(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let digits = text.get(..end.unwrap_or(text.len()))?;
    digits.parse().ok().filter(|line| *line > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faulty_line_is_named() {
        let lists = format!("type: x\ntags: {}\n", "[".repeat(8 << 20));
        let maps = format!("tags: {}", "{a: [".repeat(1 << 20));
        for (lines, line, part) in [
            (
                "type: note\ntitle: [unclosed\nid: x\n",
                2,
                "`[` is opened here",
            ),
            ("title: \"unclosed\nid: x\n", 1, "a quote"),
            ("title: {unclosed\n", 1, "`{`"),
            ("type: note\ntags:\n\t- ci\n", 3, "a tab"),
            ("type: note\r\n\tid: x\r\n", 2, "a tab"),
            ("type: note\ntitle: One: two\n", 2, "in quotes"),
            ("type: note\nno key\nid: x\n", 2, "`:`"),
            ("title: @x\n", 1, ""),
            ("title: *x\n", 1, ""),
            (lists.as_str(), 2, "more than 100"),
            (maps.as_str(), 1, "more than 100"),
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
