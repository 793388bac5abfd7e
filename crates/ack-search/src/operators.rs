//! Operators and other marks of programming languages: those that stand alone (`&&`, `??`, `=>`,
//! `2>&1`), and some of those inside code (`a?.b`). They are not words, but a memory can be about
//! one.

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

/// Operators that are also found between two operands without white space. Others are parts of
/// names, paths and markup there (`std::fs`, `a--b`, `**bold**`).
const INFIX: &[&str] = &[
    "!=", "!==", "%=", "&&", "&&=", "&=", "*=", "+=", "-=", "->", "->>", "..<", "..=", ":=", "<<",
    "<<=", "<=", "<=>", "==", "===", "=>", "=~", ">=", ">>", ">>=", ">>>", "?.", "?:", "??", "??=",
    "^=", "|=", "|>", "||", "||=",
];
/// Operators that are also found before an operand.
const PREFIX: &[&str] = &["!!"];
/// Whether operators inside code consist of such characters.
const fn is_operator_char(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'%' | b'&' | b'*' | b'+' | b'-' | b'.' | b':' | b'<'..=b'?' | b'^' | b'|' | b'~'
    )
}

/// Calls `emit` for each operator that stands alone in a text, between white space, quotes or
/// brackets, and for each operator of some kinds inside a word.
pub fn operators<'a>(text: &'a str, emit: &mut impl FnMut(&'a str)) {
    for word in text.split_ascii_whitespace() {
        let mut pairs = word.as_bytes().array_windows();
        if pairs.any(|[one, next]| is_operator_char(*one) && is_operator_char(*next)) {
            inside(word, emit);
        }
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

/// Calls `emit` for each operator inside a word.
fn inside<'a>(word: &'a str, emit: &mut impl FnMut(&'a str)) {
    let is_part = |byte: &u8| is_operator_char(*byte);
    let bytes = word.as_bytes();
    let mut start = 0;
    while let Some(offset) = bytes
        .get(start..)
        .and_then(|rest| rest.iter().position(is_part))
    {
        let first = start + offset;
        let rest = bytes.get(first..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_part(byte)).count();
        start = first + length;
        let Some((before, operator)) = word
            .get(..start)
            .and_then(|all| all.split_at_checked(first))
        else {
            return;
        };
        let is_operand = |c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '\'' | '$');
        let ends = |c: char| is_operand(c) || matches!(c, ')' | ']' | '}');
        let begins = |c: char| is_operand(c) || matches!(c, '(' | '[' | '{');
        let after = word.get(start..).unwrap_or_default();
        let is_infix = before.ends_with(ends) && INFIX.binary_search(&operator).is_ok();
        let is_prefix =
            before.trim_start_matches(DELIMITERS).is_empty() && PREFIX.contains(&operator);
        if after.starts_with(begins) && (is_infix || is_prefix) {
            emit(operator);
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
    fn operators_that_stand_alone_or_inside_code_are_found() {
        assert!(OPERATORS.is_sorted());
        assert!(
            OPERATORS
                .iter()
                .all(|operator| operator.len() <= MAX_OPERATOR_BYTES)
        );
        assert!(INFIX.is_sorted());
        check("`a && b` || (c ?? d)", &["&&", "||", "??"]);
        check("what does `$?` mean, and 2>&1?", &["$?", "2>&1"]);
        check("use “=>”, not ->.", &["=>", "->"]);
        check("what is ??", &["??"]);
        check("is it a?.b or a&&b", &["?.", "&&"]);
        check(
            "`x=>y`, (!!ok) or v[0]??=f(a!=b);",
            &["=>", "!!", "??=", "!="],
        );
        check(
            "std::fs a--b **bold** wait... x.y a-b really?! <b>x</b> C++",
            &[],
        );
        check("http://a/b?c=d&e=f 1->2 größe>=2", &["->", ">="]);
        check("wait ... (really) - yes = 1; { } ;", &[]);
    }
}
