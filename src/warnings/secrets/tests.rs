use super::places::PLACES;
use super::{FORMS, holds_secret, secret_lines};
use crate::warnings::plain::Plain;
use crate::warnings::table::columns;

const HEX: &str = "0123456789abcdef";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SIGNS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#%^*+~";

/// Where a password is.
const PASSWORD_AFTER: &[&str] = &[
    "the job uses postgres://admin:{}@db.internal:5432/ledger",
    "clone with https://deploy:{}@git.corp.net/x.git",
    "db_pass: {}",
    "password: {}",
    "**Password:** `{}`",
    "| password | {} |",
    "DB_PASSWORD='{}'",
    "export PGPASSWORD={} && psql",
    "{\"password\": \"{}\"}",
    "\"narrative\": \"password = \\\"{}\\\"\"",
    "The database password is {}",
    "The password for the staging database is {}.",
    "the password of the admin account was `{}`",
    "<password>{}</password>",
    "conn.setPassword(\"{}\")",
    "const password: string = \"{}\";",
    "Server=db,1433;User ID=app;Password={};Encrypt=True",
    "Das Passwort für die Datenbank lautet {}",
    "le mot de passe du serveur est {}",
    "mot de passe : {}",
    "la contraseña del servidor es {}",
    "a senha do banco é {}",
    "la password del database è {}",
    "wachtwoord: {}",
    "hasło: {}",
    "пароль: {}",
    "şifre: {}",
    "密码：{}",
    "数据库密码是 {}",
    "パスワードは「{}」です",
    "비밀번호: {}",
    "كلمة المرور: {}",
    "पासवर्ड: {}",
    "ｐａｓｓｗｏｒｄ：　{}",
    "pаsswоrd: {}",
    "pass\u{200d}word: {}",
];

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
        let with_password = PASSWORD_AFTER.iter();
        let mut texts: Vec<String> = with_password
            .map(|shape| shape.replace("{}", &self.password()))
            .collect();
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
    for secret in [
        "password: hunter2",
        "password = hunter2hunter2",
        "the password: see the vault; for the demo password=hunter2hunter2",
        "PASSWORD=$DB_PASSWORD in CI, password=hunter2hunter2 at home",
        "The database password is Winter2024!",
        "secret=envoy4tr0ub4dor",
        "api_key: k9envx0p27ab",
        "export API_KEY=\"a1b2c3d4e5f6\"",
        "password = hunter2hunter2\u{202e}",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",
        "PuTTY-User-Key-File-3: ssh-ed25519",
        // `-----BEGIN EC PRIVATE KEY-----`, as in a kubeconfig
        "client-key-data: LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0tCk1IY0NBUUVF",
        "SNYK_TOKEN=5fd2e8c2-cd4f-4926-a9ff-5b0d93593d86",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "postgres://app:hunter2@db.internal/x",
        r"p\u0061ssword = hunter2hunter2",
        r#"{"s\u0065cret": "envoy4tr0ub4dor"}"#,
    ] {
        assert!(holds_secret(secret), "{secret}");
    }
}

#[test]
fn a_secret_is_on_its_own_line() {
    let text = "a\n  password hunter2hunter2\n\nb";
    assert_eq!(secret_lines(&Plain::of(text)), [2]);
}

#[test]
fn no_line_of_a_private_key_is_shown() {
    let key = "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"k\"\n\
               P2/56wAAAi4AAAA3aWYtbW9kbntzaWdue3JzYS1w\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\nafter";
    let shown = crate::warnings::without_secret(key);
    assert!(
        !shown.contains("P2/56") && shown.ends_with("after"),
        "{shown}"
    );
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
        format!(
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{}",
            maker.of(BASE64, 43)
        ),
        format!("next_page_token: {}", maker.of(URL, 30)),
        format!("integrity sha512-{}==", maker.of(BASE64, 86)),
    ];
    let fine = [
        "the password is in the vault",
        "the password is required",
        "password: $DB_PASSWORD",
        "password: ${DB_PASSWORD1}",
        "password: {{ vault.db1 }}",
        "password: string",
        "password: changeme1",
        "password: <token1>",
        "password: xxxx1234",
        "password: your-password-1",
        "password: example123",
        "password: argon2id",
        "password: at least 12 characters",
        "password: 12characters or more",
        "passwords are hashed with argon2",
        "the password of the user is hashed with scrypt2",
        "| password | varchar255 |",
        "set api_key=<your key 123>",
        "password=process.env.PASSWORD1",
        "password = os.environ['PGPASSWORD1']",
        "secret: std::env::var(\"SECRET_2\")",
        "api_key = getenv(\"API_KEY_2\")",
        "secret=env.SECRET_KEY_2",
        "token: ${{ secrets.GITHUB_TOKEN_2 }}",
        "access_token: process.env['TOKEN2'], read at start",
        "secret: the retry count must be 3",
        "secretName: db-password-2",
        "secretKeyRef: key-2-of-db",
        "token: abc123",
        "token_count: 512k",
        "max_tokens: 128k",
        "token: 123e4567-e89b-12d3-a456-426614174000",
        "API_TOKEN is read from /run/secrets/token1",
        "token_file: /run/secrets/api_token_2",
        "key: cache-linux-v2-abc",
        "primary key: order_id_2",
        "Authorization: Bearer <token>",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer YOUR_TOKEN_1",
        "curl -u user:password https://x",
        "curl -u $USER:$PASSWORD1 https://x",
        "docker run -p 8080:80 nginx1",
        "mkdir -p build2/mysql",
        "postgres://postgres:postgres@localhost/x",
        "postgres://user:pass@localhost/x",
        "postgres://app:app123@localhost/x",
        "postgres://user:${PASSWORD1}@host/x",
        "postgres://user:pw1234@db.example.com/x",
        "https://host:8080/x@y",
        "git@github.com:ack/memory2.git",
        "AKIAIOSFODNN7EXAMPLE",
        // `-----BEGIN CERTIFICATE-----`
        "certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM=",
        "Das Passwort steht im Tresor",
        "mot de passe : au moins 12 caractères",
        "la clave primaria es order_id_2",
        "密码：请参阅 vault2",
        "build:5432:latest:x:y",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-learn-is-a-library-for-machine-learning",
        "risk-based testing",
        "pypi-publish-with-trusted-publishers-in-ci-2024",
        "Token::new(1)",
        "let token = next_token2(input)",
        "token = self.tokens2[0]",
        "password = config.database.password1",
        "password = getPassword2()",
        "the token is OAuth2Token",
        "the secret is stored in KMS2",
        "the token is valid for 3600seconds",
        "the api key is sent as X-Api-Key-V2",
        "SKILL.md says",
        "![badge](https://ci.corp.net/badge.svg?token=B1EnafGlRL)",
        "credentials: ack256/home#assets/crates-credentials",
    ];
    for fine in fine.into_iter().chain(made.iter().map(String::as_str)) {
        assert!(!holds_secret(fine), "{fine}");
    }
}
