//! Where secrets are written: after a name, in a URL, in a command, in a header, in a sentence.

use std::sync::LazyLock;

use regex::Regex;

use super::values::{is_random_uuid, is_secret, is_strong};
use crate::plain::pattern;
use crate::table::{Found, Kind, Row, columns};

/// Words for what a person chose; `_` joins words. Short ones stand alone or at the end of a name.
const PASSWORDS: &str = r"passwords? | passwd | passphrase | passcode | requirepass
    | \b(?: pass | pwd | pw | psk | creds | mdp | clave | sandi | pin_code )
    | passwort | kennwort | zugangscode | mot_de_passe | code_d'acces | contrasena | senha
    | palavra_passe | parola | wachtwoord | losenord | adgangskode | passord | salasana | heslo
    | haslo | geslo | lozinka | jelszo | sifre | mat_khau | kata_sandi | slaptazodis | parool
    | пароль | пароля | паролем | лозинка | парола | κωδικος | συνθηματικο | סיסמה | סיסמא
    | كلمة_المرور | كلمة_السر | رمز_عبور | पासवर्ड | รหัสผ่าน
    | 密码 | 密碼 | 口令 | パスワード | 暗証番号 | 비밀번호 | 암호";

/// Words for what a program made.
const TOKENS: &str = r"tokens? | credentials? | jeton | токен | токена | 令牌 | トークン | 토큰
    | (?: api | secret | private | access | auth | master | encryption | encrypt | signing
        | account | storage | service | app | admin | deploy | consumer | subscription | shared
        | hmac | jwt | aes | sas | fernet | cookie | webhook | authorization | license | client ) _? key
    | api_?schlussel | zugangsschlussel | cle_(?:d')? api | clave_de_api
    | chave_(?:de_)? api | chiave_api | klucz_api | api_?ключ | ключ_api
    | api_?密钥 | 密钥 | api_?キー | 秘密鍵 | api_?키
    | \S_(?: auth | pat )";

/// Words after such a word that do not change what it stands for.
const ENDINGS: &str = r"base | value | prod | production | staging | live | old | new | raw | plain
    | main | dev | admin\w* | root | user | server | serveur | servidor | db | database | datenbank
    | login | account | wifi | secret[ao] | maestr[ao] | администратора | пользователя | базы | \d+";

/// Words in a name that make its value public, short-lived, or the name of something else.
const PUBLIC: &str = r"\b(?: public | pub | publishable | anon | csrf | xsrf | page | next
    | continuation | cursor | sync | cancellation | idempotency | bos | eos | pad | unk | sep | cls
    | special | stop | mask | hash | hashed | digest | fingerprint | checksum | foreign | cache
    | partition | sort | row | no | design | per | max | min | num
    | (?: starting | change | purchase | confirmation | resume | paging )_token )\b";

/// Between a name and the value that is assigned to it.
const ASSIGNED: &str = r#"["'`*\\\]\ \t]{0,8} (?: :=|=>|->|={1,3}|[:|>]|[(] ["']
    |["'] \ {1,4} value \ ? = ) [*\ \t]*"#;

/// Between a name and its value in a sentence.
const TOLD: &str = r#"(?: [\ \t]+ (?: for|of|on|to|in|at|fur|der|des|del|de|du|da|do|di|dla|od|van
        |voor|til|от|для|к ) [\ \t] [^.;!?(,:=|\n]{1,60}? )?
    (?: [\ \t]+ (?: is|was|are|ist|lautet|war|es|est|e|jest|to|to\ jest|это|-|=|olan ) [\ \t]
        | :\ | \ ?(?: 是|为|爲|は|が|는|은|이|가 ) )
    (?: \ * (?: now|still|currently|set\ to|just )\  )? [\ \t]*"#;

/// The other places, each with its examples.
pub const PLACES: &str = include_str!("places.txt");

const LAST_WORDS: &str = "word|words|passwd|phrase|code|pass|pwd|pw|psk|creds|mdp|clave|sandi|\
    passwort|kennwort|passe|d'acces|contrasena|contrasenas|senha|parola|wachtwoord|losenord|\
    adgangskode|passord|salasana|heslo|haslo|geslo|lozinka|jelszo|sifre|khau|slaptazodis|parool|\
    пароль|пароля|паролем|лозинка|парола|κωδικος|συνθηματικο|סיסמה|סיסמא|المرور|السر|عبور|पासवर्ड|\
    รหัสผ่าน|密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|secret|secrets|token|tokens|\
    credential|credentials|jeton|токен|токена|令牌|トークン|토큰|key|schlussel|zugangsschlussel|api|ключ|密钥|\
    キー|秘密鍵|키|auth|pat";

const MAX_VALUE: usize = 128;
/// How far before its last word a name may begin, in bytes, and how many words it has at most.
const MAX_NAME: usize = 64;
const NAME_WORDS: usize = 5;

/// What is asked of a value at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// A name before it stands for a secret. It is at least this long.
    Named(usize),
    Long(usize),
    /// Nothing but its place says that it is one.
    Strong,
    /// It is all of what was found.
    Whole,
    /// It is the password of an authority.
    Url,
    /// It is the 40 characters of Amazon's secret access key.
    Amazon,
}

impl Test {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "strong" => Self::Strong,
            "whole" => Self::Whole,
            "url" => Self::Url,
            "amazon" => Self::Amazon,
            least => Self::Long(least.parse().ok()?),
        })
    }
}

struct Names {
    password: Regex,
    secret: Regex,
    token: Regex,
    public: Regex,
    endings: Regex,
}

fn endings() -> String {
    format!(r"(?: [_.\ \-]? (?: {ENDINGS} ) )*")
}

pub fn rows() -> impl Iterator<Item = Row> {
    let endings = endings();
    let named = [(ASSIGNED, 6), (TOLD, 7)].map(|(between, least)| {
        let rest = format!("(?x: {endings} {between} )");
        Row { inside: true, ..Row::new(Kind::Place(Test::Named(least)), LAST_WORDS, rest) }
    });
    let others = columns(PLACES).filter_map(|[words, rest, test]| {
        let kind = Kind::Place(Test::parse(test)?);
        Some(Row::new(kind, words, rest.to_owned()))
    });
    named.into_iter().chain(others)
}

/// Where the secret is: in what was found, or after it. `None` if there is none.
pub fn secret(text: &str, found: Found, test: Test) -> Option<usize> {
    static NAMES: LazyLock<Option<Names>> = LazyLock::new(Names::new);
    let matched = text.get(found.rest..found.end).unwrap_or_default();
    let (is_secret, at) = match test {
        Test::Named(least) => (NAMES.as_ref()?.is_named(text, found, least), found.end),
        Test::Long(least) => (is_secret(value(text, found.end), least), found.end),
        Test::Strong => (is_strong(value(text, found.end)), found.end),
        Test::Whole => (is_secret(matched.trim(), 6), found.rest),
        Test::Url => (is_in_url(matched), found.rest),
        Test::Amazon => (is_of_amazon(matched), found.rest),
    };
    is_secret.then_some(at)
}

impl Names {
    fn new() -> Option<Self> {
        let spaced = |words: String| pattern(&format!("(?ix) {words}"));
        let apart = |words: &str| words.replace('_', r"\ ");
        let ends = |words: &str| format!(r"(?: {} ) (?: \ (?: {ENDINGS} ) )* $", apart(words));
        Some(Self {
            password: spaced(ends(PASSWORDS))?,
            secret: spaced(ends("secrets?"))?,
            token: spaced(ends(TOKENS))?,
            public: spaced(apart(PUBLIC))?,
            endings: spaced(format!("^ {}", endings()))?,
        })
    }

    /// Whether a name and what follows it are before a secret.
    fn is_named(&self, text: &str, found: Found, least: usize) -> bool {
        let value = assigned_value(text, found.end);
        let is_random_id = is_random_uuid(value);
        if !is_random_id && !is_secret(value, least) {
            return false;
        }
        let rest = text.get(found.rest..found.end).unwrap_or_default();
        let end = found.rest + self.endings.find(rest).map_or(0, |endings| endings.end());
        // `AWS secret access key`: words before belong to the name.
        let from = text.floor_char_boundary(found.start.saturating_sub(MAX_NAME));
        let before = text.get(from..found.start).unwrap_or_default();
        let is_separate = |c: char| !c.is_alphanumeric() && !" \t_.-'".contains(c);
        let name = before.rsplit(is_separate).next().unwrap_or_default();
        // The address of a badge is public, and so is the token in it.
        if before.ends_with(['?', '&']) && before.contains("badge") {
            return false;
        }
        let least = self.least(text.get(found.start - name.len()..end).unwrap_or_default());
        least.is_some_and(|least| is_random_id || value.len() >= least)
    }

    /// How long a value is at least if a name stands for a secret.
    fn least(&self, name: &str) -> Option<usize> {
        let words = words(name);
        let near = words.rmatch_indices(' ').nth(NAME_WORDS).map_or(0, |(at, _)| at);
        let words = words.get(near..)?;
        if self.public.is_match(words) {
            return None;
        }
        let of_kind = [(&self.password, 6), (&self.secret, 8), (&self.token, 10)];
        of_kind.into_iter().find(|(kind, _)| kind.is_match(words)).map(|(_, least)| least)
    }
}

/// Whether an authority, up to its host, holds a password.
fn is_in_url(authority: &str) -> bool {
    let parts = authority.rsplit_once('@');
    let Some(((user, password), host)) =
        parts.and_then(|(user, host)| Some((user.split_once(':')?, host)))
    else {
        return false;
    };
    let stem = password.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_user = !user.is_empty() && stem.eq_ignore_ascii_case(user);
    // The reader has to fill in such a host.
    let is_example = host.starts_with(['<', '$', '{']) || host.contains("example.");
    !is_user && !is_example && is_secret(password, 6)
}

/// Whether the last 40 characters of what was found are random.
fn is_of_amazon(found: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/+".contains(c);
    let key = found.trim_end_matches(|c| !is_part(c));
    let key = key.get(key.len().saturating_sub(40)..).unwrap_or_default();
    let count = |is: fn(&u8) -> bool| key.bytes().filter(is).count();
    count(u8::is_ascii_digit) >= 2
        && count(u8::is_ascii_uppercase) >= 5
        && count(u8::is_ascii_lowercase) >= 5
        && is_secret(key, 40)
}

/// The words of a name, in lower case: `apiToken`, `API_TOKEN` and `api-token` are `api token`.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut before = ' ';
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let next_is_small = chars.peek().is_some_and(char::is_ascii_lowercase);
        let begins = c.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || before.is_ascii_digit() || next_is_small);
        if (begins || !c.is_alphanumeric()) && !words.ends_with(' ') {
            words.push(' ');
        }
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        }
        before = c;
    }
    words.trim().to_owned()
}

/// The value at a position of a text, without its quotes. A quoted text with spaces is not one.
fn value(text: &str, at: usize) -> &str {
    let rest = text.get(at..text.floor_char_boundary(at + MAX_VALUE)).unwrap_or_default();
    let rest = rest.trim_start_matches([' ', '\t', '\\']);
    let quote = rest.bytes().next().filter(|byte| b"\"'`".contains(byte));
    let rest = rest.trim_start_matches(['"', '\'', '`']);
    let ends = |byte: u8| match quote {
        Some(quote) => byte == quote || matches!(byte, b'\\' | b'\n'),
        None => {
            byte <= b' '
                || matches!(
                    byte,
                    b'"' | b'\'' | b'`' | b',' | b';' | b')' | b'<' | b'>' | b'|' | b'\\'
                )
        }
    };
    let end = rest.bytes().position(ends).unwrap_or(rest.len());
    let value = rest.get(..end).unwrap_or_default();
    let has_space = quote.is_some() && value.bytes().any(|byte| byte <= b' ');
    if has_space { value.get(..0).unwrap_or_default() } else { value }
}

/// The value that is assigned at a position, also after a type: `token: string = "value"`.
fn assigned_value(text: &str, at: usize) -> &str {
    let given = value(text, at);
    let start = given.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    let rest = text.get(start.wrapping_add(given.len())..).unwrap_or_default();
    let rest = rest.trim_start_matches(' ');
    match rest.strip_prefix("= ") {
        Some(rest) if !given.is_empty() => value(rest, 0),
        _ => given,
    }
}
