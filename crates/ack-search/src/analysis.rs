//! Splits text into terms: the same analysis for memories and for queries.
//!
//! White space, brackets, quotes and the like separate *chunks*. A chunk with inner punctuation is
//! an *identifier*: it is a term as a whole (`err_pnpm_outdated_lockfile`, `tokio::select`,
//! `src/store/ack.rs`), and its words are terms too. So is an operator that stands alone (`=>`). A
//! word in camel case is also split. Words are lower-cased, stripped of diacritics ([`letters`]),
//! dropped if they are stop words, and stemmed ([`stems`]). Text in scripts without spaces between
//! words (Chinese, Japanese, Thai and others; also Korean) becomes pairs of adjacent characters.
//!
//! [`symbols`] and [`numbers`] have the words that two neighbouring ones are together.

pub mod letters;
pub mod numbers;
pub mod stems;
pub mod symbols;

use std::borrow::Cow;
use std::sync::LazyLock;

use rustc_hash::FxHashSet;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use self::letters::strip_diacritics;

/// Words that say nothing about what a text is about. Sorted.
const STOP_WORDS: &str = "\
    a about after all also am an and any are as at be because been before being but by can
    could did do does doing dont each for from had has have having he her here his how i if in
    into is it its just me more most my no nor not of on only or other our out over own same
    she should so some such than that the their them then there these they this those through
    to too under until up us use used using very was we were what when where which while who
    why will with would you your";
/// Words of other languages that say as little, without their diacritics: those that a question
/// begins with or refers to persons with. Notes have few of them, so that they would count as rare
/// words. Not those that are English words or names too. Sorted.
const OTHER_STOP_WORDS: &str = "\
    avez avons ces cette chce chcialbym como cua cual cuales cuando darf debe debo deve devo
    dlaczego dois doit donde dove duoc este esto faut gdzie gostaria habe haben hemos ich ihr ihre
    isso isto jak jaka jaki jakie je jest kann kiedy konnen konnte kto ktora ktore ktory mein
    meine meinem meinen meiner meu meus mich miei minha minhas mio mochte mochten moge moj moja
    moje mojego mojej mozna muon muss mussen musze nasz nasza nhung nosotros nossa nosso nostra
    nostro notre nous nuestra nuestro onde perche peut peux pode porque posso pourquoi puede puedo
    puo quais qual quale quali quand quando que quel quelle quelles quels quem quero questa questo
    qui quien quiero quisiera quoi sich sie soll sollen sollte sont suis tengo tenho tiene trzeba
    unser unsere unseren veux voglio vorrei votre voudrais voulez vous wann warum welche welchen
    welcher welches werden weshalb wie wieso wird wurde yo вам вас ваш вы где должен если зачем
    как какая какие каким какое какой когда кто ли меня мне могу мое моего моей может можно мои
    моих мой мою моя мы надо нам нас наш наша наши нужно почему хотел хочу чем что эта эти это
    этот я いつ した すか する だれ です どう どこ どれ なぜ ます 为什 么样 什么 什麼 可以 哪个 哪些 哪個 哪裡 哪里 多少 如何 怎么 怎样 怎樣 怎麼 我想 我要
    是否 為什 能否 請問 请问 麼樣 나요 누구 니까 니다 떻게 무엇 습니 어디 어떻 언제 인가 합니";
const MAX_STOP_WORD_BYTES: usize = 12;

static ALL_STOP_WORDS: LazyLock<FxHashSet<&str>> = LazyLock::new(|| {
    [STOP_WORDS, OTHER_STOP_WORDS].iter().flat_map(|it| it.split_whitespace()).collect()
});

/// The longest word or identifier that is indexed. Longer ones are encoded data or minified code.
const MAX_TOKEN_BYTES: usize = 120;
const MAX_OPERATOR_BYTES: usize = 4;
const MAX_CHUNK_BYTES: usize = 4 * MAX_TOKEN_BYTES;
const MAX_SCRIPT_BYTES: usize = 200 * MAX_TOKEN_BYTES;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenKind {
    Word,
    Identifier,
}

/// A token, before stemming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: TokenKind,
    /// The text in lower case, normalized.
    pub text: Cow<'a, str>,
}

/// Whether a text is a memory or a query. They differ for ideographs: a query for a single one must
/// match it inside words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    Document,
    Query,
}

pub fn is_stop_word(word: &str) -> bool {
    word.len() <= MAX_STOP_WORD_BYTES && ALL_STOP_WORDS.contains(word)
}

/// Whether an identifier is so specific that a query for it asks for the memories that contain it:
/// an error code, a path, a qualified name, a flag or a version, but not a hyphenated word.
pub fn is_specific(identifier: &str) -> bool {
    let has_digit = identifier.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = identifier.chars().any(char::is_alphabetic);
    let has_joiner = identifier.contains(['_', '/', '\\', ':', '@', '.', '$', '#', '+']);
    (has_digit && has_letter) || has_joiner || identifier.starts_with('-')
}

/// Whether a [specific](is_specific) identifier is unlikely to be ordinary vocabulary: it has three
/// digits or three parts, or is a path, a package or a flag. In a sentence, `to_string`, `i8` or
/// `serde::Serialize` is one word among others.
pub fn is_distinctive(identifier: &str) -> bool {
    let digits = identifier.bytes().filter(u8::is_ascii_digit).count();
    let has_letter = identifier.chars().any(char::is_alphabetic);
    let parts = identifier.split(|c: char| !c.is_alphanumeric());
    let parts = parts.filter(|part| !part.is_empty()).count();
    parts > 0
        && is_specific(identifier)
        && (digits > 2 && has_letter
            || parts > 2
            || identifier.starts_with('-')
            || identifier.contains(['/', '\\', '@']))
}

/// Calls `emit` for every token of `text`: first the operators, then the others, each in order.
pub fn tokenize<'a>(text: &'a str, role: TextRole, emit: &mut impl FnMut(Token<'a>)) {
    for operator in text.split_ascii_whitespace().filter_map(operator) {
        emit(Token { kind: TokenKind::Identifier, text: Cow::Borrowed(operator) });
    }
    for raw in text.split(is_separator) {
        if raw.is_ascii() { ascii_chunk(raw, emit) } else { unicode_chunk(raw, role, emit) }
    }
}

/// The operator that a text without white space is, perhaps in quotes or brackets: `&&`, `=>`,
/// `2>&1`. Single characters and the marks of Markdown are too common to tell what a text is about.
fn operator(word: &str) -> Option<&str> {
    // The fast path for most words.
    if word.starts_with(|c: char| c.is_alphabetic()) {
        return None;
    }
    let word =
        word.trim_matches(['`', '"', '\'', '(', ')', '[', ']', '{', '}', ',', ';', '“', '”']);
    // `what is =>?`, but `??` and `$?` are operators.
    [word.trim_end_matches(['.', ':', '?', '!']), word].into_iter().find(|word| is_operator(word))
}

fn is_operator(word: &str) -> bool {
    let is_redirection = word.contains(">&");
    let is_mark = |byte: u8| byte.is_ascii_punctuation() || is_redirection && byte.is_ascii_digit();
    (2..=MAX_OPERATOR_BYTES).contains(&word.len())
        && word.bytes().all(is_mark)
        && !word.bytes().all(|byte| b"-.#*_~".contains(&byte))
}

fn is_separator(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '=' | '"' | '`' | ',' | ';')
        || matches!(c, '|' | '“' | '”' | '„' | '«' | '»' | '…' | '。' | '、' | '「' | '」')
        || matches!(c, '（' | '）' | '，')
}

fn trim(chunk: &str) -> &str {
    let chunk = chunk
        .trim_matches(['\'', '*', '!', '?', ':', '~', '^', '&', '’', '‘'])
        .trim_end_matches(['.', '/', '\\', '-']);
    chunk.strip_prefix("./").unwrap_or(chunk).trim_matches(['\'', '*', '!', '?', ':'])
}

fn ascii_chunk<'a>(raw: &'a str, emit: &mut impl FnMut(Token<'a>)) {
    // The fast path for most words: there is nothing to trim, to split or to lower-case.
    if !raw.is_empty()
        && raw.len() <= MAX_TOKEN_BYTES
        && raw.bytes().all(|byte| byte.is_ascii_lowercase())
    {
        emit(Token { kind: TokenKind::Word, text: Cow::Borrowed(raw) });
        return;
    }
    let chunk = trim(raw);
    if chunk.is_empty() || chunk.len() > MAX_CHUNK_BYTES {
        return;
    }
    if chunk.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        emit_camel_case(chunk, emit);
        return;
    }
    let parts = chunk.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let is_alphanumeric = chunk.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_numeric = chunk.bytes().all(|byte| byte.is_ascii_digit());
    let has_apostrophe = chunk.contains('\'');
    if !has_apostrophe && !is_numeric && !is_alphanumeric {
        emit_identifier(chunk, emit);
        // `src/a.rs:42:7` is about `src/a.rs`, but `00:1b:44` is no position in a file.
        let path = chunk.trim_end_matches(|c: char| c == ':' || c.is_ascii_digit());
        let is_file = path.contains(['.', '/', '\\']);
        let has_position = is_file && chunk.as_bytes().get(path.len()) == Some(&b':');
        let bare = if path.len() < chunk.len() && has_position { path } else { chunk };
        // The last part of a path, of a qualified name, or of a package with its version.
        let tail = bare.rsplit(['/', '@']).next().unwrap_or(bare);
        let tail = tail.rsplit("::").next().unwrap_or(tail);
        for name in [Some(bare), Some(tail).filter(|tail| *tail != bare)].into_iter().flatten() {
            let has_punctuation = name.bytes().any(|byte| !byte.is_ascii_alphanumeric());
            if name.len() > 2 && name.len() < chunk.len() && has_punctuation {
                emit_identifier(name, emit);
            }
        }
    }
    let mut first = true;
    for part in parts {
        let is_number =
            part.trim_start_matches(['v', 'V']).bytes().all(|byte| byte.is_ascii_digit());
        // What follows an apostrophe (`s`, `t`, `re`) and the single digits of a version mean
        // nothing alone.
        let is_useful = is_alphanumeric
            || (part.len() > 1 && !(is_number && part.len() < 3))
                && (first || !has_apostrophe || part.len() > 2);
        if is_useful {
            emit_camel_case(part, emit);
        }
        first = false;
    }
}

fn emit_word<'a>(part: &'a str, emit: &mut impl FnMut(Token<'a>)) {
    if part.len() <= MAX_TOKEN_BYTES {
        emit(Token { kind: TokenKind::Word, text: lower(part) });
    }
}

/// Emits a word and, if it is in camel case, its parts.
fn emit_camel_case<'a>(part: &'a str, emit: &mut impl FnMut(Token<'a>)) {
    emit_word(part, emit);
    // The fast path: nearly every word is in one case.
    if !part.bytes().skip(1).any(|byte| byte.is_ascii_uppercase()) {
        return;
    }
    let pieces = camel_parts(part);
    if pieces.len() > 1 {
        pieces.into_iter().filter(|piece| piece.len() > 1).for_each(|piece| emit_word(piece, emit));
    }
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

fn emit_identifier<'a>(chunk: &'a str, emit: &mut impl FnMut(Token<'a>)) {
    let bare = chunk.trim_start_matches('-');
    // `-i` keeps its dash; `--frozen-lockfile` matches `frozen-lockfile`, `v1.2.3` matches `1.2.3`.
    let identifier = without_version_mark(if bare.len() > 1 { bare } else { chunk });
    if (2..=MAX_TOKEN_BYTES).contains(&identifier.len()) {
        emit(Token { kind: TokenKind::Identifier, text: lower(identifier) });
    }
}

/// A version without the `v` in front of it.
pub(super) fn without_version_mark(identifier: &str) -> &str {
    let is_version =
        |rest: &&str| rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains('.');
    identifier.strip_prefix(['v', 'V']).filter(is_version).unwrap_or(identifier)
}

/// Splits camel case: `useEffect` into `use` and `Effect`, `XMLHttpRequest` into `XML`, `Http` and
/// `Request`. Any other word is returned as it is.
pub(super) fn camel_parts(word: &str) -> Vec<&str> {
    let bytes = word.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let mut parts = Vec::new();
    let mut start = 0;
    for index in 1..bytes.len() {
        let boundary = at(index).is_ascii_uppercase()
            && (at(index - 1).is_ascii_lowercase()
                || (at(index - 1).is_ascii_uppercase() && at(index + 1).is_ascii_lowercase()));
        if boundary {
            parts.extend(word.get(start..index));
            start = index;
        }
    }
    parts.extend(word.get(start..));
    // A plural such as `IDs` or `URLs` is not a compound.
    if parts.len() == 2 && parts.last().is_some_and(|last| last.len() <= 2) {
        vec![word]
    } else {
        parts
    }
}

/// Tokenizes a chunk with characters beyond ASCII. Ideographs, kana and typographic marks separate
/// it into parts, so that identifiers are found in Japanese text and in any quotation marks.
fn unicode_chunk<'a>(raw: &'a str, role: TextRole, emit: &mut impl FnMut(Token<'a>)) {
    let separates = |c: char| {
        !c.is_ascii()
            && (is_unspaced(c)
                || !(c.is_alphanumeric()
                    || is_combining_mark(c)
                    || c == '\u{200d}'
                    || c == '\u{200c}'))
    };
    let mut rest = raw;
    while !rest.is_empty() {
        let is_separator = rest.starts_with(separates);
        let end = rest.find(|c: char| separates(c) != is_separator).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        if piece.is_ascii() { ascii_chunk(piece, emit) } else { unicode_words(piece, role, emit) }
    }
}

/// Emits the words of a text in any script, or its pairs of characters.
fn unicode_words<'a>(raw: &str, role: TextRole, emit: &mut impl FnMut(Token<'a>)) {
    let normal: String = trim(raw).nfkc().flat_map(char::to_lowercase).collect();
    if normal.len() > MAX_SCRIPT_BYTES {
        return;
    }
    let mut run = String::new();
    let mut pairs: Vec<char> = Vec::new();
    let flush_word = |run: &mut String, emit: &mut dyn FnMut(Token<'a>)| {
        if !run.is_empty() {
            let word = strip_diacritics(run);
            // A word of combining marks only becomes empty.
            if run.len() <= MAX_TOKEN_BYTES && !word.is_empty() {
                emit(Token { kind: TokenKind::Word, text: Cow::Owned(word) });
            }
            run.clear();
        }
    };
    let flush_pairs = |pairs: &mut Vec<char>, emit: &mut dyn FnMut(Token<'a>)| {
        let words: Vec<String> = pairs.windows(2).map(|pair| pair.iter().collect()).collect();
        let is_question_word = |at: usize| {
            let word = words.get(at).filter(|_| role == TextRole::Query);
            word.is_some_and(|word| is_stop_word(word))
        };
        for (at, word) in words.iter().enumerate() {
            // Not the last character of a question word with the first of the next word.
            if is_question_word(at)
                || !is_question_word(at + 1) && !is_question_word(at.wrapping_sub(1))
            {
                emit(Token { kind: TokenKind::Word, text: Cow::Owned(word.clone()) });
            }
        }
        if pairs.len() == 1 || role == TextRole::Document {
            for single in pairs.iter() {
                emit(Token { kind: TokenKind::Word, text: Cow::Owned(single.to_string()) });
            }
        }
        pairs.clear();
    };
    for c in normal.chars() {
        if is_unspaced(c) {
            flush_word(&mut run, emit);
            pairs.push(c);
        } else if c.is_alphanumeric() || (is_combining_mark(c) && !run.is_empty()) {
            flush_pairs(&mut pairs, emit);
            run.push(c);
        } else if c == 'ー' && !pairs.is_empty() {
            pairs.push(c);
        } else if c != '\u{200d}' && c != '\u{200c}' {
            flush_word(&mut run, emit);
            flush_pairs(&mut pairs, emit);
        }
    }
    flush_word(&mut run, emit);
    flush_pairs(&mut pairs, emit);
}

/// Whether a character is of a script without spaces between words, or with attached particles.
pub fn is_unspaced(c: char) -> bool {
    matches!(
        c,
        '\u{0e00}'..='\u{0eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{31f0}'..='\u{31ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str, role: TextRole) -> Vec<String> {
        let mut out = Vec::new();
        tokenize(text, role, &mut |token| {
            out.push(match token.kind {
                TokenKind::Word => token.text.into_owned(),
                TokenKind::Identifier => format!("={}", token.text),
            });
        });
        out
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(tokens(text, TextRole::Query), expected, "{text}");
    }

    #[test]
    fn identifiers_are_kept_whole_and_split() {
        check(
            "ERR_PNPM_OUTDATED_LOCKFILE",
            &["=err_pnpm_outdated_lockfile", "err", "pnpm", "outdated", "lockfile"],
        );
        check("`tokio::select!`", &["=tokio::select", "tokio", "select"]);
        check("--frozen-lockfile", &["=frozen-lockfile", "frozen", "lockfile"]);
        check("-i", &["=-i"]);
        check("v1.2.3", &["=1.2.3"]);
        check("useEffect(", &["useeffect", "use", "effect"]);
        check("E0382.", &["e0382"]);
        check("./src/store/ack.rs", &["=src/store/ack.rs", "=ack.rs", "src", "store", "ack", "rs"]);
        check("key=value", &["key", "value"]);
        check("error[E0382]:", &["error", "e0382"]);
        check("C", &["c"]);
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.split_whitespace().is_sorted());
        assert!(OTHER_STOP_WORDS.split_whitespace().is_sorted());
        let longest = ALL_STOP_WORDS.iter().map(|word| word.len()).max();
        assert_eq!(longest, Some(MAX_STOP_WORD_BYTES));
        for word in OTHER_STOP_WORDS.split_whitespace() {
            let plain = strip_diacritics(word);
            assert!(plain == word || word.chars().any(is_unspaced), "{word}");
        }
        assert!(is_stop_word("the") && !is_stop_word("lock"));
    }

    #[test]
    fn hyphenated_words_are_not_specific_identifiers() {
        for specific in ["e0382", "tokio::select", "src/a.rs", "1.2.3", "err_x", "-i"] {
            assert!(is_specific(specific), "{specific}");
        }
        for ordinary in ["re-run", "end-to-end", "useeffect"] {
            assert!(!is_specific(ordinary), "{ordinary}");
        }
        for distinctive in ["e0382", "40p01", "src/a.rs", "1.2.3", "err_x_y", "-i"] {
            assert!(is_distinctive(distinctive), "{distinctive}");
        }
        for word in ["to_string", "i8", "f32", "utf8", "serde::serialize"] {
            assert!(is_specific(word) && !is_distinctive(word), "{word}");
        }
    }
}
