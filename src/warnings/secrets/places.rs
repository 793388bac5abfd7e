//! Where secrets are written in a line: after a name, in a URL, in a command, in a sentence.

use super::names::{self, Kind};
use super::values::is_secret;

/// Whether a line holds a secret where one is expected.
pub fn holds_secret(line: &str) -> bool {
    in_url(line)
        || in_command(line)
        || in_machine_entry(line)
        || in_header(line)
        || of_amazon(line)
        || after_name(line)
}

/// Characters of names.
fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-' || c == '.'
}

/// A name in a line, and where it ends.
struct Name<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

fn names_of(line: &str) -> Vec<Name<'_>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
        if is_name_part(c) {
            start.get_or_insert(at);
        } else if let Some(from) = start.take() {
            let text = line.get(from..at).unwrap_or_default();
            found.push(Name {
                text,
                start: from,
                end: at,
            });
        }
    }
    found
}

/// Whether a value is given to a name that stands for a secret.
fn after_name(line: &str) -> bool {
    if !names::may_be_in(line) {
        return false;
    }
    let found = names_of(line);
    found.iter().enumerate().any(|(at, name)| {
        let mut words = names::words(name.text);
        let last = words.last().map_or("", String::as_str);
        if ![
            "key",
            "token",
            "secret",
            "password",
            "passphrase",
            "passwd",
            "pass",
            "pw",
            "pwd",
            "psk",
        ]
        .iter()
        .any(|end| last.ends_with(end))
            && names::kind(&words).is_none()
        {
            return false;
        }
        // `AWS secret access key`, `password hash`: the words before and after belong to the name.
        for before in found
            .get(at.saturating_sub(2)..at)
            .unwrap_or_default()
            .iter()
            .rev()
        {
            let between = line.get(before.end..name.start).unwrap_or_default();
            if between
                .trim_matches(|c: char| c.is_whitespace() || is_name_part(c))
                .is_empty()
            {
                let mut joined = names::words(before.text);
                joined.append(&mut words);
                words = joined;
            }
        }
        let Some(kind) = names::kind(&words) else {
            return false;
        };
        let rest = line.get(name.end..).unwrap_or_default();
        let before = line.get(..name.start).unwrap_or_default();
        // The image's address is public, and so is the token in it.
        if before.ends_with(['?', '&']) && before.contains("://") && line.contains("badge") {
            return false;
        }
        is_assigned(rest, before, name.text, kind) || is_told(rest, kind)
    })
}

/// Whether a secret is assigned: `= value`, `: value`, `("value")`, `| value |`, `>value<`.
fn is_assigned(rest: &str, before: &str, name: &str, kind: Kind) -> bool {
    let is_flag = name.starts_with("--") && rest.starts_with(' ');
    let is_element = before.ends_with('<') && rest.starts_with('>');
    let is_call = ["(\"", "('"].iter().any(|call| rest.starts_with(call));
    if is_flag || is_element || is_call {
        return is_secret(value(rest.get(1..).unwrap_or_default()), kind.least());
    }
    let spaced = rest.trim_start();
    if kind == Kind::Password && spaced.len() < rest.len() && spaced.starts_with(['"', '\'', '`']) {
        return is_secret(value(spaced), kind.least());
    }
    let rest = rest.trim_start_matches(['"', '\'', '`', ' ', '\t', '*', '\\', ']']);
    let assigned = rest
        .strip_prefix(":=")
        .or_else(|| rest.strip_prefix("=>"))
        .or_else(|| rest.strip_prefix('='))
        .or_else(|| rest.strip_prefix('|'))
        .or_else(|| rest.strip_prefix(':').filter(|rest| !rest.starts_with(':')));
    let Some(assigned) = assigned else {
        return false;
    };
    let assigned = assigned.trim_start_matches(['=', ' ', '\t', '*']);
    let given = value(assigned);
    if is_secret(given, kind.least()) {
        return true;
    }
    // `token: string = "value"`
    let typed = assigned.strip_prefix(given).map(str::trim_start);
    let typed = typed.and_then(|rest| rest.strip_prefix('='));
    typed.is_some_and(|rest| is_secret(value(rest.trim_start_matches([' ', '='])), kind.least()))
}

/// Whether a sentence says what a secret is: `the password of the database is value`.
fn is_told(rest: &str, kind: Kind) -> bool {
    let end = rest.char_indices().nth(70).map_or(rest.len(), |(at, _)| at);
    let near = rest.get(..end).unwrap_or(rest);
    let told = [" is ", " was ", " ist ", " es ", " est ", " = ", ": "]
        .iter()
        .filter_map(|verb| {
            let at = near.find(verb)?;
            let between = near.get(..at)?;
            let links = ["", " for ", " of ", " on ", " to ", " in ", " at "];
            let begins = links
                .iter()
                .any(|link| between == *link || (!link.is_empty() && between.starts_with(link)));
            let is_clause = !between.contains(['.', ';', '!', '?', '(', ',', ':', '=', '|']);
            (begins && is_clause).then(|| rest.get(at + verb.len()..))?
        });
    told.into_iter().any(|said| {
        let mut said = said.trim_start();
        for filler in ["now ", "still ", "currently ", "set to ", "just "] {
            said = said.strip_prefix(filler).unwrap_or(said);
        }
        is_secret(value(said), kind.least().max(7))
    })
}

/// The value at the beginning of a text, without its quotes. A quoted text with spaces is none.
fn value(text: &str) -> &str {
    let text = text.trim_start_matches([' ', '\t', '\\']);
    if let Some(quote) = text.chars().next().filter(|c| "\"'`".contains(*c)) {
        let rest = text.trim_start_matches(quote);
        let inner = rest.split([quote, '\\']).next().unwrap_or_default();
        return if inner.contains(char::is_whitespace) {
            ""
        } else {
            inner
        };
    }
    let ends = |c: char| !c.is_ascii_graphic() || "\"'`,;)<>|\\".contains(c);
    text.split(ends).next().unwrap_or_default()
}

/// Whether a host stands for one that the reader has to fill in.
fn is_example_host(host: &str) -> bool {
    host.starts_with(['<', '$', '{']) || host.contains("example.")
}

/// `scheme://user:value@host`
fn in_url(line: &str) -> bool {
    line.match_indices("://").any(|(at, separator)| {
        let before = line.get(..at).unwrap_or_default();
        let rest = line.get(at + separator.len()..).unwrap_or_default();
        let ends = |c: char| c.is_whitespace() || "\"'`<>|\\,".contains(c);
        let address = rest.split(ends).next().unwrap_or_default();
        let authority = address.split('/').next().unwrap_or_default();
        let Some((user, host)) = authority.rsplit_once('@') else {
            return false;
        };
        let Some((user, password)) = user.split_once(':') else {
            return false;
        };
        let host = host.split([':', '?']).next().unwrap_or_default();
        let stem = password.trim_end_matches(|c: char| c.is_ascii_digit());
        before.ends_with(|c: char| c.is_ascii_alphanumeric())
            && (user.is_empty() || !stem.eq_ignore_ascii_case(user))
            && !host.is_empty()
            && !is_example_host(host)
            && is_secret(password, 6)
    })
}

/// Commands, the option that takes a secret, and whether a user name and `:` come before it.
const COMMANDS: [(&str, &str, bool); 11] = [
    ("curl", "-u", true),
    ("curl", "--user", true),
    ("curl", "--proxy-user", true),
    ("sshpass", "-p", false),
    ("mysql", "-p", false),
    ("mysqldump", "-p", false),
    ("mariadb", "-p", false),
    ("mongosh", "-p", false),
    ("docker login", "-p", false),
    ("helm registry login", "-p", false),
    ("redis-cli", "-a", false),
];

/// `curl -u user:value`, `sshpass -p value`
fn in_command(line: &str) -> bool {
    line.contains(" -")
        && COMMANDS.iter().any(|(command, option, has_user)| {
            let Some(at) = line.find(command) else {
                return false;
            };
            let rest = line.get(at + command.len()..).unwrap_or_default();
            let before = line.get(..at).unwrap_or_default();
            let is_command = !before.ends_with(is_name_part) && rest.starts_with(' ');
            let option = format!(" {option}");
            is_command
                && rest.match_indices(&option).any(|(at, _)| {
                    let given = rest.get(at + option.len()..).unwrap_or_default();
                    let given = value(given.trim_start_matches([' ', '=']));
                    match has_user {
                        true => given
                            .split_once(':')
                            .is_some_and(|(_, password)| is_secret(password, 6)),
                        false => is_secret(given, 6),
                    }
                })
        })
}

/// `machine host login user password value` of a `.netrc`, also on lines of their own; a
/// `requirepass value` of Redis.
fn in_machine_entry(line: &str) -> bool {
    if !["password", "requirepass", "masterauth"]
        .iter()
        .any(|word| line.contains(word))
    {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_alone = words.len() == 2;
    let is_entry = words.contains(&"login") || words.contains(&"machine");
    words.windows(2).any(|pair| match pair {
        ["password", given] => (is_alone || is_entry) && is_secret(value(given), 6),
        ["requirepass" | "masterauth", given] => is_secret(value(given), 6),
        _ => false,
    })
}

/// Words before the secret in the header `Authorization`.
const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "apikey", "api-key", "digest"];

/// How `username:`, `user:pass` and RFC 7617's `Aladdin:` begin in base64.
const EXAMPLE_USERS: [&str; 3] = ["dXNlcm5hbWU6", "dXNlcjpwYXNz", "QWxhZGRpbjp"];

/// `Authorization: Bearer value`, `Bearer value`
fn in_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(3).any(|words| match words {
        [header, scheme, given] => {
            SCHEMES
                .iter()
                .any(|known| scheme.eq_ignore_ascii_case(known))
                && header.to_ascii_lowercase().ends_with("authorization:")
                && !EXAMPLE_USERS
                    .iter()
                    .any(|user| value(given).starts_with(user))
                && is_secret(value(given), 10)
        }
        _ => false,
    }) || words.windows(2).any(|words| match words {
        [scheme, given] => {
            let scheme = scheme.trim_start_matches(['"', '\'', '`', '(']);
            scheme.eq_ignore_ascii_case("bearer") && is_secret(value(given), 16)
        }
        _ => false,
    })
}

/// The 40 characters of Amazon's secret access key, in a line that speaks of one.
fn of_amazon(line: &str) -> bool {
    const LENGTH: usize = 40;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '/' || c == '+';
    let is_key = |word: &str| {
        let count = |is: fn(&char) -> bool| word.chars().filter(is).count();
        word.len() == LENGTH
            && count(char::is_ascii_digit) >= 2
            && count(char::is_ascii_uppercase) >= 5
            && count(char::is_ascii_lowercase) >= 5
            && is_secret(word, LENGTH)
    };
    // A part of an address is none.
    let is_separate = |word: &str| {
        let at = word.as_ptr().addr() - line.as_ptr().addr();
        !line
            .get(..at)
            .is_some_and(|before| before.ends_with(['.', '-', '_']))
    };
    let mut parts = line.split(|c| !is_part(c));
    line.len() >= LENGTH && parts.any(|word| is_key(word) && is_separate(word)) && {
        let lower = line.to_ascii_lowercase();
        let speaks = ["aws", "amazon", "secret", "access key", "s3"];
        speaks.iter().any(|word| lower.contains(word))
    }
}
