//! Whether a value is one that nobody would guess, and not a placeholder, a name or a hash.

/// Parts of values, in lower case, that stand for a secret and are none.
const PLACEHOLDERS: [&str; 25] = [
    "...",
    "…",
    "<",
    "${",
    "{{",
    "example",
    "change",
    "placeholder",
    "dummy",
    "redacted",
    "masked",
    "foobar",
    "replace",
    "insert",
    "fake",
    "sample",
    "***",
    "password",
    "passw0rd",
    "s3cr3t",
    "secret",
    "not-real",
    "not_real",
    "testing",
    "mytoken",
];

/// Values, in lower case and without digits at the end, that everybody guesses.
const COMMON: [&str; 34] = [
    "abc", "abcd", "abcdef", "admin", "app", "bar", "baz", "api", "client", "db", "default",
    "demo", "dev", "foo", "guest", "key", "local", "mysql", "pass", "postgres", "pw", "pwd",
    "qwerty", "redis", "root", "string", "test", "testtest", "tests", "token", "user", "value",
    "tok", "mypass",
];

/// How programs read an environment variable, in lower case, before its name.
const ENVIRONMENT: [&str; 13] = [
    "process.env",
    "import.meta.env",
    "deno.env.get",
    "bun.env",
    "os.environ",
    "os.getenv",
    "std::env::var",
    "env::var",
    "system.getenv",
    "getenv",
    "secrets.",
    "env.",
    "env[",
];

/// How the names of formats and methods begin, in lower case. Digits follow.
const TECHNICAL: [&str; 31] = [
    "aes", "argon", "ascii", "base", "bcrypt", "blake", "char", "ecdsa", "ed", "ec", "float",
    "hmac", "hs", "http", "int", "ipv", "md", "oauth", "pbkdf", "pkcs", "python", "rs", "rsa",
    "scrypt", "sha", "str", "uint", "utf", "uuidv", "varchar", "x",
];

/// The beginnings of hashes that say how they were made, and of names in Amazon's cloud.
const HASHES: [&str; 11] = [
    "arn:", "sha1", "sha2", "sha3", "sha5", "md5", "$2a$", "$2b$", "$2y$", "$argon", "ssh-",
];

/// Whether a value of at least so many characters is one that nobody would guess.
pub fn is_secret(value: &str, least: usize) -> bool {
    let given = value;
    let value = value.trim_end_matches(['.', ',', ':', ';', '!', '?', ')', ']', '}', '*', '_']);
    (least..=4_096).contains(&value.len())
        && value.is_ascii()
        && is_mixed(value)
        && !is_placeholder(given)
        && !is_common(value)
        && !is_code(value)
        && !is_technical(value)
        && !is_name(value)
        && !is_id(value)
}

/// Whether letters and digits, or else small and capital letters, alternate as in random values.
fn is_mixed(value: &str) -> bool {
    let has = |is: fn(&char) -> bool| value.chars().any(|c| is(&c));
    let has_letter = has(char::is_ascii_alphabetic);
    if has_letter && has(char::is_ascii_digit) {
        return true;
    }
    let has_both = has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase);
    let has_sign = value.chars().any(|c| "!@#%^&*+~".contains(c));
    let letters: Vec<char> = value.chars().filter(char::is_ascii_alphabetic).collect();
    let pairs = letters.windows(2);
    let changes = pairs
        .filter(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() != b.is_ascii_lowercase()));
    let alternates = letters.len() >= 8 && changes.count() * 5 >= letters.len() * 2;
    has_both && value.len() >= 8 && (has_sign || alternates)
}

/// Whether a value stands for a secret that is not written there.
pub fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    lower.starts_with(['$', '<', '{', '*', '.', '%', '[', '@', '&', '#', '!'])
        || is_crossed_out(value)
        || has_variable(value)
        || ["your", "my_", "my-"]
            .iter()
            .any(|start| lower.starts_with(start))
        || ["-your-", "_your_"].iter().any(|part| lower.contains(part))
        || PLACEHOLDERS.iter().any(|part| lower.contains(part))
        || ENVIRONMENT.iter().any(|read| reads(&lower, read))
}

/// Whether a value has `xxxx`, or in short ones `xxx`, in place of the secret.
fn is_crossed_out(value: &str) -> bool {
    let has = |part: &str| value.contains(part);
    has("xxxx") || has("XXXX") || (value.len() < 10 && (has("xxx") || has("XXX")))
}

/// Whether a shell or a program puts a variable into the value.
fn has_variable(value: &str) -> bool {
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        if c == '$' && (next == '(' || next == '_' || next.is_ascii_uppercase()) {
            let rest: Vec<char> = chars.clone().take(4).collect();
            return rest.len() < 4 || rest.iter().all(|c| c.is_ascii_uppercase() || *c == '_');
        }
    }
    false
}

/// Whether a value, in lower case, only says which variable holds the secret.
fn reads(value: &str, read: &str) -> bool {
    let name = value.strip_prefix(read);
    name.is_some_and(|name| {
        let name = name.trim_start_matches(['.', '[', '(', '"', '\'', '!']);
        let mut name = name.chars();
        name.all(|c| c.is_ascii_alphanumeric() || "_.[]()!".contains(c))
    })
}

/// Whether everybody would guess a value.
fn is_common(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let stem = lower.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
    let is_counted = ["abc123", "abcd1234", "123", "abcdefghij"]
        .iter()
        .any(|start| lower.starts_with(start));
    COMMON.contains(&stem) || (is_counted && lower.len() <= 40)
}

/// Whether a value is an expression of a program, a path, or an address.
fn is_code(value: &str) -> bool {
    let is_path = value.starts_with(['/', '~', '\\']) || value.contains("://");
    let has_extension = value.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.chars().all(|c| c.is_ascii_alphabetic())
            && stem
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
    });
    let members: Vec<&str> = value.split('.').collect();
    let is_member = members.len() > 1
        && members.iter().all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.len() <= 24
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
    let is_hyphened_path = value.contains('/')
        && value.split('/').all(|part| {
            part.is_empty() || is_slug(part) || part.chars().all(|c| c.is_ascii_lowercase())
        });
    let has_code = ["(", "::", "->", "[", "{", "}", "&&", "||", "!=", "\\"];
    is_path
        || has_extension
        || is_member
        || is_hyphened_path
        || has_code.iter().any(|code| value.contains(code))
}

/// Whether a value is the name of a format or a method, a version, or a number with a unit.
fn is_technical(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_method = lower.split(['-', '_']).all(is_method);
    let version = lower.trim_start_matches(['v', 'r', '^', '~', '=', '>']);
    let is_version = version
        .chars()
        .all(|c| c.is_ascii_digit() || "._-x".contains(c));
    let unit = lower.trim_start_matches(|c: char| c.is_ascii_digit() || "._-+:".contains(c));
    let is_number = unit.len() < lower.len()
        && unit.len() <= 12
        && value.ends_with(unit)
        && unit.chars().all(|c| c.is_ascii_lowercase());
    is_method || is_version || is_number
}

/// Whether a part of a value, in lower case, is like `sha256`, `argon2id` or `utf8mb4`.
fn is_method(part: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    TECHNICAL.iter().any(|start| {
        let rest = part.strip_prefix(start).unwrap_or_default();
        let letters = rest.trim_start_matches(is_digit);
        let letters_alone = letters.trim_end_matches(is_digit);
        rest.starts_with(is_digit)
            && letters_alone.len() <= 3
            && !letters_alone.contains(is_digit)
            && rest.len() <= 8
    }) || (!part.is_empty() && part.chars().all(is_digit))
}

/// Whether a value is words with small numbers, joined as in names: `db-password-2`, `MyToken2`,
/// `STAGING_KEY_1`.
fn is_name(value: &str) -> bool {
    is_slug(value) || is_camel(value)
}

/// Whether words and small numbers are joined by `-`, `_`, `.`, `/` and the like.
pub fn is_slug(value: &str) -> bool {
    let parts: Vec<&str> = value.split(['-', '_', '.', '/', ':', '@', '#']).collect();
    parts.len() > 1
        && parts.iter().all(|part| {
            let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
            let is_cased = word.chars().all(|c| c.is_ascii_lowercase())
                || word.chars().all(|c| c.is_ascii_uppercase())
                || is_camel(part)
                || is_capitalised(word);
            let digits = part.len() - word.len();
            is_cased && word.len() <= 16 && digits <= 4
        })
}

fn is_capitalised(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().skip(1).all(|c| c.is_ascii_lowercase())
}

/// Whether a value is several words without a space between them, and small numbers.
fn is_camel(value: &str) -> bool {
    let chars: Vec<char> = value.chars().collect();
    let mut words: Vec<String> = Vec::new();
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| chars.get(before));
        let is_small = |c: Option<&char>| c.is_some_and(char::is_ascii_lowercase);
        let begins = before.is_none_or(|before| {
            before.is_ascii_digit() != c.is_ascii_digit()
                || (c.is_ascii_uppercase()
                    && (is_small(Some(before)) || is_small(chars.get(at + 1))))
        });
        match words.last_mut().filter(|_| !begins) {
            Some(word) => word.push(*c),
            None => words.push(String::from(*c)),
        }
    }
    let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
    let letters: Vec<&String> = words.iter().filter(|word| !is_number(word)).collect();
    let length: usize = letters.iter().map(|word| word.len()).sum();
    chars.iter().all(char::is_ascii_alphanumeric)
        && chars.iter().any(char::is_ascii_uppercase)
        && chars.iter().any(char::is_ascii_lowercase)
        && letters.len() > 1
        && length >= letters.len() * 3
        && words.iter().filter(|word| is_number(word)).count() <= 1
        && words.iter().all(|word| !is_number(word) || word.len() <= 4)
        && letters.iter().all(|word| can_be_said(word))
}

/// Whether a word has vowels as words of a language do.
fn can_be_said(word: &str) -> bool {
    let is_vowel = |c: char| "aeiouyAEIOUY".contains(c);
    let longest = word.split(is_vowel).map(str::len).max().unwrap_or_default();
    let is_acronym = word.len() <= 4 && word.chars().all(|c| c.is_ascii_uppercase());
    word.len() <= 2 || is_acronym || (longest <= 4 && word.contains(is_vowel))
}

/// Whether a value is a hash that says so, a UUID, or a time.
fn is_id(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_hash = HASHES.iter().any(|start| lower.starts_with(start));
    let groups: Vec<usize> = lower.split('-').map(str::len).collect();
    let is_uuid =
        groups == [8, 4, 4, 4, 12] && lower.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let is_time = lower.len() >= 10
        && lower
            .chars()
            .all(|c| c.is_ascii_digit() || "-:.tz+".contains(c));
    is_hash || is_uuid || is_time
}
