//! Names that say that a value is secret: `DB_PASSWORD`, `apiToken`, `aws-secret-access-key`.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// What a name stands for, and so how short a value can be and still be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something that a person may have chosen.
    Password,
    /// `secret`, which can be both.
    Secret,
    /// Something that a program made.
    Token,
}

impl Kind {
    /// The length of the shortest value that is reported.
    pub const fn least(self) -> usize {
        match self {
            Self::Password => 6,
            Self::Secret => 8,
            Self::Token => 10,
        }
    }
}

/// Words at the end of a name that do not change what it stands for.
const ENDINGS: [&str; 12] = [
    "base",
    "value",
    "prod",
    "production",
    "staging",
    "live",
    "old",
    "new",
    "raw",
    "plain",
    "main",
    "dev",
];

/// Words before `key` that make it a secret one.
const KEYS: [&str; 24] = [
    "api",
    "secret",
    "private",
    "access",
    "auth",
    "master",
    "encryption",
    "encrypt",
    "signing",
    "account",
    "storage",
    "service",
    "app",
    "admin",
    "deploy",
    "consumer",
    "subscription",
    "shared",
    "hmac",
    "jwt",
    "aes",
    "sas",
    "webhook",
    "authorization",
];

/// Words that make a value public, short-lived, or the name of something else.
const PUBLIC: [&str; 38] = [
    "public",
    "pub",
    "publishable",
    "anon",
    "csrf",
    "xsrf",
    "page",
    "next",
    "continuation",
    "cursor",
    "sync",
    "cancellation",
    "idempotency",
    "bos",
    "eos",
    "pad",
    "unk",
    "sep",
    "cls",
    "special",
    "stop",
    "mask",
    "hash",
    "hashed",
    "digest",
    "fingerprint",
    "checksum",
    "foreign",
    "cache",
    "partition",
    "sort",
    "row",
    "no",
    "design",
    "per",
    "max",
    "min",
    "num",
];

/// Words before `token` that make it a place in a list or an event.
const PAGES: [&str; 6] = [
    "starting",
    "change",
    "purchase",
    "confirmation",
    "resume",
    "paging",
];

/// Part of every name that stands for a secret, if it is written in ASCII.
const PARTS: [&str; 9] = [
    "pass",
    "pw",
    "psk",
    "secret",
    "key",
    "token",
    "credential",
    "auth",
    "pat",
];

/// Whether a text may contain a name that stands for a secret.
pub fn may_be_in(text: &str) -> bool {
    static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let mut builder = AhoCorasick::builder();
        builder.ascii_case_insensitive(true).build(PARTS).ok()
    });
    let finder = FINDER.as_ref().filter(|_| text.is_ascii());
    finder.is_none_or(|finder| finder.is_match(text))
}

/// The words of a name, in lower case: `apiToken`, `API_TOKEN` and `api-token` are `api token`.
pub fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| chars.get(before));
        let next_is_lower = chars.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let begins = c.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && next_is_lower)
            });
        let separates = !c.is_alphanumeric();
        if (begins || separates) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if !separates {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// What the words of a name stand for, if it is a secret.
pub fn kind(words: &[String]) -> Option<Kind> {
    let is_ending =
        |word: &String| word.chars().all(|c| c.is_ascii_digit()) || ENDINGS.contains(&&**word);
    let kept = words.iter().rposition(|word| !is_ending(word))? + 1;
    let words = words.get(..kept)?;
    if words.iter().any(|word| PUBLIC.contains(&&**word)) {
        return None;
    }
    let (last, before) = words.split_last()?;
    if *last == "token" && before.last().is_some_and(|word| PAGES.contains(&&**word)) {
        return None;
    }
    let has_before = !before.is_empty();
    let ends = |endings: &[&str]| endings.iter().any(|ending| last.ends_with(ending));
    if ends(&["password", "passwd", "passphrase", "passcode", "passwort"])
        || ends(&["requirepass", "contraseña"])
        || ["pass", "pwd", "pw"].contains(&&**last)
        || (has_before && *last == "psk")
    {
        return Some(Kind::Password);
    }
    if ends(&["secret", "secrets"]) {
        return Some(Kind::Secret);
    }
    let is_key = match last.strip_suffix("key") {
        Some("") => before.iter().any(|word| KEYS.contains(&&**word)),
        Some(rest) => KEYS.contains(&rest),
        None => false,
    };
    let is_token = is_key
        || ends(&["token", "credential", "credentials"])
        || (has_before && ["auth", "pat"].contains(&&**last));
    is_token.then_some(Kind::Token)
}
