//! Merge conflicts that nobody resolved.

/// A marker that git leaves at the beginning of a line.
const BEGINS: &str = "<<<<<<<";
const BASE: &str = "|||||||";
const PARTS: &str = "=======";
const ENDS: &str = ">>>>>>>";

/// The lines of a text that belong to the marks of merge conflicts, from 1, in order. `=======`
/// alone underlines a heading, so it counts only within a conflict.
pub fn marked_lines(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut is_within = false;
    for (number, line) in (1..).zip(text.lines()) {
        let is_mark = if is_mark(line, BEGINS) {
            is_within = true;
            true
        } else if is_mark(line, ENDS) {
            is_within = false;
            true
        } else {
            is_within && (is_mark(line, PARTS) || is_mark(line, BASE))
        };
        if is_mark {
            lines.push(number);
        }
    }
    lines
}

/// Whether a line is a marker, alone or with the name of a side.
fn is_mark(line: &str, mark: &str) -> bool {
    let rest = line.trim_end().strip_prefix(mark);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_at_the_beginning_of_lines() {
        for (text, lines) in [
            (
                "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\nd\n",
                vec![2, 4, 6],
            ),
            (
                "<<<<<<< ours\r\nb\r\n||||||| base\r\n=======\r\n>>>>>>> x\r\n",
                vec![1, 3, 4, 5],
            ),
            ("text\n>>>>>>> left over\n", vec![2]),
            ("<<<<<<<\n", vec![1]),
            ("Heading\n=======\n\nText\n", vec![]),
            ("  <<<<<<< HEAD\n> >>>>>>> x\n", vec![]),
            ("<<<<<<<< eight\n<<<<<<<x\n========\n", vec![]),
        ] {
            assert_eq!(marked_lines(text), lines, "{text}");
        }
    }
}
