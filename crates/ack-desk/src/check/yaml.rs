//! Whether front matter is YAML.
//!
//! Notes with invalid front matter are still served, read as far as possible
//! (`ack_store::folder::front_matter`). Other programs reject the whole header, and an unclosed
//! value is served with the wrong content.

use serde::de::IgnoredAny;
use serde_saphyr::{DuplicateKeyPolicy, NonFiniteFloatPolicy, options};

/// Why a text is not valid YAML.
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
    let read = serde_saphyr::from_str_with_options::<IgnoredAny>(lines, options);
    let Err(error) = read else {
        return Ok(());
    };
    let line = error.location().map_or(1, |location| location.line());
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    let text = error.without_snippet().to_string();
    let what = text
        .split_once(": ")
        .map_or(text.as_str(), |(_, what)| what);
    let message = format!("its front matter is not valid YAML: {what}");
    Err(Problem { line, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faulty_line_is_named() {
        let lists = format!("type: x\ntags: {}\n", "[".repeat(8 << 20));
        let maps = format!("tags: {}", "{a: [".repeat(1 << 20));
        for (lines, line, part) in [
            ("type: note\ntitle: [unclosed\n", 2, "flow"),
            ("title: \"unclosed\nid: x\n", 1, "quote"),
            ("type: note\ntags:\n\t- ci\n", 3, "tab"),
            ("type: note\ntitle: One: two\n", 2, "mapping values"),
            ("type: note\nno key\nid: x\n", 2, "':'"),
            ("title: @x\n", 1, ""),
            (lists.as_str(), 2, "recursion"),
            (maps.as_str(), 1, "recursion"),
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
