//! Whether a value is one that nobody would guess, and not a placeholder, a name or a hash.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::plain::byte_pattern as pattern;

/// Parts of placeholders for a secret.
const PLACEHOLDER: &str = r"(?ix) x{4} | ^.{0,6}xxx.{0,6}$ | example | change | placeholder | dummy
    | redacted | masked | foobar | replace | insert | fake | sample | password | passw0rd | s3cr3t
    | secret | not[-_]real | testing | mytoken | [-_]your[-_] | ^your | \.\.\. | < | \{\{
    | \*\*\*
    # of documentation
    | BQokikJOvBiI2HlWgH4olfQ2 | 4eC39HqLyjWDarjtT1zdp7dc | SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV";

/// How a placeholder begins, or shows that it is one by a variable in it.
const VARIABLE: &str = r"(?x) ^[$<{*.%\[@&\#!] | ^my[_-] | \$[({] | \$[A-Z_]{3,} | \$[A-Z_]{1,2}$
    | (?i)^(?: process\.env | import\.meta\.env | deno\.env\.get | bun\.env | os\.environ
        | os\.getenv | (?:std::)?env::var | (?:system\.)?getenv | secrets\. | env[.\[]
      ) [\w.\[\]()!'\x22]*$
    | (?-i)^(?: dXNlcm5hbWU6 | dXNlcjpwYXNz | QWxhZGRpbjp )";

const OTHERS: &[&str] = &[
    // What everybody guesses.
    r"(?ix)^(?: abc(?:d(?:ef)?)? | admin | app | bar | baz | api | client | db | default | demo | dev
        | foo | guest | key | local | mysql | pass | mypass | postgres | pw | pwd | qwerty | redis
        | root | string | test(?:s|test)? | tok(?:en)? | user | value ) [^a-z]*$",
    "(?i)^(?:abc123|abcd1234|123|abcdefghij).{0,34}$",
    // A path, a file, an expression.
    r"^[/~\\]|://",
    r"^[\w./-]+\.[A-Za-z]{1,5}$",
    r"^[A-Za-z_]\w{0,23}(?:\.[A-Za-z_]\w{0,23})+$",
    r"[(\[{}\\]|::|->|&&|\|\||!=",
    // A format, a version, a number with a unit.
    r"(?ix)^(?: (?: aes | argon | ascii | base | bcrypt | blake | char | ecdsa | ed | ec | float | hmac
        | hs | http | int | ipv | md | oauth | pbkdf | pkcs | python | rs | rsa | scrypt | sha | str
        | uint | utf | uuidv | varchar | x ) \d+ [a-z]{0,3} \d* | \d+ | [-_] )+$",
    r"(?i)^[vr^~=>]*[\d._x-]+$",
    r"^[\d._:+-]+[a-z]{1,12}$",
    // A hash that says so, a time.
    r"(?i)^(?:arn:|sha[1235]|md5|\$2[aby]\$|\$argon|ssh-)",
    r"(?i)^[\d:.tz+-]{10,}$",
];

static PLACEHOLDERS: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(PLACEHOLDER));
static VARIABLES: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(VARIABLE));
static NO_SECRETS: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(&format!("(?:{})", OTHERS.join(")|(?:"))));
static UUIDS: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern("(?i)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"));

fn matches(regex: &'static LazyLock<Option<Regex>>, value: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(value.as_bytes()))
}

/// Whether a value of at least so many characters is one that nobody would guess.
pub fn is_secret(given: &str, least: usize) -> bool {
    let value = given.trim_end_matches(['.', ',', ':', ';', '!', '?', ')', ']', '}', '*', '_']);
    (least..=4_096).contains(&value.len())
        && is_mixed(value)
        && !matches(&PLACEHOLDERS, value)
        && !matches(&VARIABLES, given)
        && !matches(&NO_SECRETS, value)
        && !is_slug(value)
        && !is_camel(value)
        && !matches(&UUIDS, value)
}

/// Whether a value that only its place calls a secret has letters of both cases and digits.
pub fn is_strong(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|byte| is(&byte));
    let is_varied = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    is_varied && has(u8::is_ascii_digit) && is_secret(value, 8)
}

/// Whether a value is a UUID of random digits. Several vendors' keys are.
pub fn is_random_uuid(value: &str) -> bool {
    let mut parts = value.split('-').skip(2);
    let is_random = |part: Option<&str>, marks: &str| {
        part.is_some_and(|part| part.starts_with(|c| marks.contains(c)))
    };
    matches(&UUIDS, value) && is_random(parts.next(), "4") && is_random(parts.next(), "89abAB")
}

/// Whether a program made a token, rather than a person as an example.
pub fn is_made_by_program(token: &str) -> bool {
    let mut seen: Vec<u8> = token.bytes().collect();
    seen.sort_unstable();
    seen.dedup();
    let has_capital = seen.iter().any(u8::is_ascii_uppercase);
    seen.len() >= 6 && !matches(&PLACEHOLDERS, token) && (has_capital || !is_slug(token))
}

/// Whether letters and digits, or else small and capital letters, alternate as in random values.
fn is_mixed(value: &str) -> bool {
    let (mut has_digit, mut has_letter, mut has_sign, mut changes) = (false, false, false, 0);
    let (mut small, mut capital, mut was_small) = (0, 0, None);
    for byte in value.bytes() {
        has_digit |= byte.is_ascii_digit();
        has_letter |= byte.is_ascii_alphabetic();
        has_sign |= matches!(byte, b'!' | b'@' | b'#' | b'%' | b'^' | b'&' | b'*' | b'+' | b'~');
        // The plain form of a text has capital letters only in ASCII.
        if byte.is_ascii_alphabetic() || !byte.is_ascii() {
            let is_small = !byte.is_ascii_uppercase();
            small += usize::from(is_small);
            capital += usize::from(!is_small);
            changes += usize::from(was_small.is_some_and(|was| was != is_small));
            was_small = Some(is_small);
        }
    }
    let letters = small + capital;
    let alternates = letters >= 8 && changes * 5 >= letters * 2;
    let is_cased = small > 0 && capital > 0 && value.len() >= 8 && (has_sign || alternates);
    is_cased || (has_letter && has_digit)
}

/// Whether words and small numbers are joined as in names: `db-password-2`, `STAGING_KEY_1`.
fn is_slug(value: &str) -> bool {
    let mut parts = value.split(['-', '_', '.', '/', ':', '@', '#']);
    let is_word = |part: &str| {
        let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let rest = word.strip_prefix(|c: char| c.is_ascii_uppercase());
        let is_cased = rest.unwrap_or(word).bytes().all(|b| b.is_ascii_lowercase())
            || word.bytes().all(|b| b.is_ascii_uppercase())
            || is_camel(part);
        is_cased && word.len() <= 16 && part.len() - word.len() <= 4
    };
    value.contains(['-', '_', '.', '/', ':', '@', '#']) && parts.all(is_word)
}

/// Whether a value is several words without a space between them, and a small number.
fn is_camel(value: &str) -> bool {
    static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| pattern("[A-Z]+[a-z]*|[a-z]+|[0-9]+"));
    let (mut count, mut length, mut acronyms, mut numbers) = (0, 0, 0, 0);
    let words = WORDS.iter().flat_map(|words| words.find_iter(value.as_bytes()));
    for word in words.filter_map(|word| str::from_utf8(word.as_bytes()).ok()) {
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            numbers += 1;
            if numbers > 1 || word.len() > 4 {
                return false;
            }
            continue;
        }
        // In `HTTPServer`, the last capital letter begins the second word.
        let capitals = word.bytes().filter(u8::is_ascii_uppercase).count();
        let at = if capitals < word.len() { capitals.saturating_sub(1) } else { 0 };
        let (acronym, word) = word.split_at(at);
        if !can_be_said(acronym) || !can_be_said(word) {
            return false;
        }
        (count, length, acronyms) = (count + 1, length + word.len(), acronyms + acronym.len());
    }
    let is_plain = value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_cased = value.bytes().any(|byte| byte.is_ascii_uppercase())
        && value.bytes().any(|byte| byte.is_ascii_lowercase());
    is_plain && is_cased && length >= count * 3 && length > acronyms && count + acronyms.min(1) > 1
}

/// Whether a word has vowels as words of a language do.
fn can_be_said(word: &str) -> bool {
    let between = |vowels: &str| {
        let parts = word.split(|c: char| vowels.contains(c.to_ascii_lowercase()));
        parts.map(str::len).max().unwrap_or_default()
    };
    let is_acronym = word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let has_vowel = between("aeiou") < word.len();
    let has_y = between("y") < word.len() && between("y") <= 3;
    word.len() <= 2 || is_acronym || (between("aeiouy") <= 4 && (has_vowel || has_y))
}
