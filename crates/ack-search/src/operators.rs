//! Operators and other marks of programming languages that stand alone: `&&`, `??`, `=>`, `2>&1`.
//! They are not words, but a memory can be about one.

/// Sorted. Brackets and single characters are too common to tell what a text is about.
const OPERATORS: &[&str] = &[
    "!!", "!=", "!==", "!~", "#!", "##", "$!", "$#", "$$", "$*", "$?", "$@", "$_", "%%", "%=",
    "&&", "&&=", "&=", "&>", "&>>", "**", "**=", "*=", "++", "+=", "-=", "->", "->>", "..", "..<",
    "..=", "/=", "1>&2", "2>&1", "::", ":=", "<$>", "<*>", "<-", "<<", "<<-", "<<<", "<<=", "<=",
    "<=>", "<>", "<|", "==", "===", "=>", "=~", ">&2", ">=", ">=>", ">>", ">>=", ">>>", ">|", "?.",
    "?:", "??", "??=", "@@", "^=", "|&", "|=", "|>", "||", "||=", "~=",
];
const MAX_OPERATOR_BYTES: usize = 4;

/// What may surround an operator in a text.
const DELIMITERS: [char; 13] = [
    '`', '"', '\'', '(', ')', '[', ']', '{', '}', ',', ';', '“', '”',
];

/// Calls `emit` for each operator that stands alone in a text, between white space, quotes or brackets.
pub fn operators<'a>(text: &'a str, emit: &mut impl FnMut(&'a str)) {
    for word in text.split_ascii_whitespace() {
        // The fast path: most words begin with a letter.
        if word.starts_with(|c: char| c.is_alphabetic()) {
            continue;
        }
        let bare = word.trim_matches(DELIMITERS);
        for candidate in [bare, bare.trim_end_matches([',', '.', ':', '?', '!'])] {
            if candidate.len() <= MAX_OPERATOR_BYTES && OPERATORS.binary_search(&candidate).is_ok()
            {
                emit(candidate);
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        operators(text, &mut |operator| found.push(operator));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn operators_that_stand_alone_are_found() {
        assert!(OPERATORS.is_sorted());
        assert!(
            OPERATORS
                .iter()
                .all(|operator| operator.len() <= MAX_OPERATOR_BYTES)
        );
        check("`a && b` || (c ?? d)", &["&&", "||", "??"]);
        check("what does `$?` mean, and 2>&1?", &["$?", "2>&1"]);
        check("use “=>”, not ->.", &["=>", "->"]);
        check("what is ??", &["??"]);
        check("is it a?.b or a&&b", &[]);
        check("wait ... (really) - yes = 1; { } ;", &[]);
    }
}
