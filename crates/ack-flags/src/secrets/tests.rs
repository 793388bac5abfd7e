use super::places::PLACES;
use super::{FORMS, secret_lines};
use crate::plain::Plain;
use crate::table::columns;
use crate::tests::examples;

const HEX: &str = "0123456789abcdef";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SIGNS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#%^*+~";

/// Where a token is, with its letters and length.
const TOKEN_AFTER: &[(&str, &str, usize)] = &[
    ("API_TOKEN=\"{}\"", LETTERS, 40),
    ("api_token: {}", LETTERS, 32),
    ("SECRET_KEY='{}'", URL, 50),
    ("SECRET_KEY_BASE={}", HEX, 128),
    ("clientSecret: '{}'", URL, 36),
    ("x-api-key: {}", LETTERS, 32),
    ("PRIVATE-TOKEN: {}", URL, 24),
    ("our API key is {}", HEX, 32),
    ("API-Schlüssel: {}", LETTERS, 32),
    ("API密钥：{}", LETTERS, 32),
    ("aws_secret_access_key = {}", BASE64, 40),
    ("the AWS secret of the bucket: {}", LETTERS, 40),
    ("AccountName=x;AccountKey={}==;Endpoint=y", BASE64, 86),
    ("SharedAccessKeyName=root;SharedAccessKey={}=", BASE64, 43),
    ("PrivateKey = {}8=", BASE64, 42),
    ("    token: {}", LETTERS, 48),
    ("the token of the bot: {}", LETTERS, 40),
];

fn holds_secret(text: &str) -> bool {
    !secret_lines(&Plain::of(text)).is_empty()
}

/// Makes secrets when the test runs, so that no file holds one.
struct Maker(u64);

impl Maker {
    fn next(&mut self) -> u64 {
        // SplitMix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let chars: Vec<char> = alphabet.chars().collect();
        let count = u64::try_from(chars.len()).unwrap();
        let mut pick = || chars[usize::try_from(self.next() % count).unwrap()];
        loop {
            let made: String = (0..length).map(|_| pick()).collect();
            let has = |is: fn(&char) -> bool| made.chars().filter(is).count();
            // Some of each, and no sign at an end, as password generators take care of.
            let is_long = has(char::is_ascii_digit) >= 2 && has(char::is_ascii_alphabetic) >= 3;
            let ends = made.starts_with(|c: char| c.is_ascii_alphabetic())
                && made.ends_with(|c: char| c.is_ascii_alphanumeric());
            if is_long && ends {
                return made;
            }
        }
    }

    fn password(&mut self) -> String {
        let length = usize::try_from(10 + self.next() % 15).unwrap();
        let alphabet = [LETTERS, LOWER, SIGNS][usize::try_from(self.next() % 3).unwrap()];
        self.of(alphabet, length)
    }

    /// A text of every shape, each with a new secret.
    fn texts(&mut self) -> Vec<String> {
        let mut texts: Vec<String> =
            examples("password").map(|shape| shape.replace("{}", &self.password())).collect();
        let with_token = TOKEN_AFTER.iter();
        texts.extend(
            with_token
                .map(|(shape, alphabet, length)| shape.replace("{}", &self.of(alphabet, *length))),
        );
        texts
    }
}

/// An example of the table: `·` is nothing, and `text×36` is the text repeated to 36 characters.
fn written_out(example: &str) -> String {
    let part = |part: &str| match part.split_once('×') {
        Some((text, count)) => {
            let count = count.parse().unwrap();
            text.chars().cycle().take(count).collect()
        }
        None => part.to_owned(),
    };
    example.split('·').map(part).collect()
}

#[test]
fn each_form_of_a_token_finds_its_first_example_and_not_its_second() {
    for [words, _, found, fine] in columns(FORMS) {
        let (before, words) = match words.split_once('…') {
            Some(("[?&;]", words)) => ("&", words),
            Some((_, words)) if words.starts_with(":AA") => ("612345678", words),
            Some((_, words)) if words == "-us" => ("3fa94c17e0b28d653fa94c17e0b28d65", words),
            Some((_, words)) => ("admin", words),
            None => ("", words),
        };
        for word in words.split('|') {
            let text = |rest: &str| format!("see {before}{word}{}.", written_out(rest));
            assert!(holds_secret(&text(found)), "{}", text(found));
            assert!(!holds_secret(&text(fine)), "{}", text(fine));
            let hidden: String = text(found).chars().flat_map(|c| [c, '\u{200b}']).collect();
            assert!(holds_secret(&hidden), "{hidden}");
        }
    }
}

#[test]
fn each_place_finds_its_first_example_and_not_its_second() {
    for [_, _, _, found, fine] in columns(PLACES) {
        let found = found.replace('§', "kT5vW9yB2mX7cR4pL1n");
        assert!(holds_secret(&found), "{found}");
        assert!(!holds_secret(fine), "{fine}");
    }
}

#[test]
fn secrets_of_every_shape_are_found() {
    let made: Vec<String> = (0..100).flat_map(|seed| Maker(seed).texts()).collect();
    let missed: Vec<&String> = made.iter().filter(|text| !holds_secret(text)).collect();
    // By chance, a password can look like words and a small number.
    assert!(missed.len() * 1_000 <= made.len(), "{missed:#?}");
}

#[test]
fn secrets_that_people_choose_are_found() {
    for secret in examples("secret") {
        assert!(holds_secret(&secret), "{secret}");
    }
}

#[test]
fn a_secret_is_on_its_own_line() {
    let text = "a\n  password hunter2hunter2\n\nb";
    assert_eq!(secret_lines(&Plain::of(text)), [2]);
}

#[test]
fn names_placeholders_and_hashes_are_not_secrets() {
    let mut maker = Maker(7);
    let hashes = [40, 64].map(|length| maker.of(HEX, length));
    let [commit, digest] = &hashes;
    let made = [
        format!("commit {commit} fixes the token"),
        format!("sha256:{digest}"),
        format!("password_hash: {digest}"),
        format!("password hash: {commit}"),
        format!("token = \"sha256:{digest}\""),
        format!("the cache key is {digest}"),
        format!("the aws image {commit}"),
        format!("PublicKeyToken={}", maker.of(HEX, 16)),
        format!("public_key = {}", maker.of(BASE64, 43)),
        format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{}", maker.of(BASE64, 43)),
        format!("next_page_token: {}", maker.of(URL, 30)),
        format!("integrity sha512-{}==", maker.of(BASE64, 86)),
    ];
    for fine in made.into_iter().chain(examples("no secret")) {
        assert!(!holds_secret(&fine), "{fine}");
    }
}
