use super::holds_secret;

const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SIGNS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#%^*+~";

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
        let mut texts = Vec::new();
        for shape in [
            "the job uses postgres://admin:{}@db.internal:5432/ledger",
            "clone with https://deploy:{}@git.corp.net/x.git",
            "cache: redis://:{}@cache-1:6379/0",
            "mongodb+srv://svc:{}@cluster0.ab1cd.mongodb.net/prod?retryWrites=true",
            "amqps://ci:{}@queue.internal/",
            "db_pass: {}",
            "password: {}",
            "**Password:** `{}`",
            "| password | {} |",
            "DB_PASSWORD='{}'",
            "export PGPASSWORD={} && psql",
            "{\"password\": \"{}\"}",
            "\"narrative\": \"password = \\\"{}\\\"\"",
            "curl -u ci:{} https://ci.corp.net/job",
            "sshpass -p {} ssh deploy@build-1",
            "sshpass -p '{}' ssh deploy@build-1",
            "mysql -uroot -p{} ledger",
            "docker login -u ci -p {} registry.corp.net",
            "machine git.corp.net login ci password {}",
            "  password {}",
            "requirepass {}",
            "The database password is {}",
            "The password for the staging database is {}.",
            "the password of the admin account was `{}`",
            "<password>{}</password>",
            "conn.setPassword(\"{}\")",
            "psql --password {}",
            "const password: string = \"{}\";",
        ] {
            texts.push(shape.replace("{}", &self.password()));
        }
        for (shape, alphabet, length) in [
            ("API_TOKEN=\"{}\"", LETTERS, 40),
            ("api_token: {}", LETTERS, 32),
            ("SLACK_TOKEN={}", LETTERS, 32),
            ("SECRET_KEY='{}'", URL, 50),
            ("SECRET_KEY_BASE={}", HEX, 128),
            ("clientSecret: '{}'", URL, 36),
            ("x-api-key: {}", LETTERS, 32),
            ("PRIVATE-TOKEN: {}", URL, 24),
            ("our API key is {}", HEX, 32),
            ("Authorization: Bearer {}", URL, 40),
            ("curl -H 'Authorization: Bearer {}' https://x", HEX, 40),
            ("Authorization: Basic {}==", LETTERS, 22),
            ("AKIA{}", UPPER, 16),
            ("aws_secret_access_key = {}", BASE64, 40),
            ("the AWS secret of the bucket: {}", LETTERS, 40),
            ("aws configure set x {}", BASE64, 40),
            ("key AIza{}", URL, 35),
            ("sk_live_{}", LETTERS, 24),
            ("rk_live_{}", LETTERS, 99),
            ("AccountName=x;AccountKey={}==;Endpoint=y", BASE64, 86),
            ("ghp_{}", LETTERS, 36),
            ("github_pat_{}", LETTERS, 82),
            ("glpat-{}", URL, 20),
            ("npm_{}", LETTERS, 36),
            ("dckr_pat_{}", URL, 27),
            ("hf_{}", LETTERS, 34),
            ("hvs.{}", URL, 90),
            ("dop_v1_{}", HEX, 64),
            ("shpat_{}", HEX, 32),
            ("twilio SK{}", HEX, 32),
            ("bot 7123456789:AA{}", URL, 33),
            ("AGE-SECRET-KEY-1{}", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
            ("xoxb-123456789012-123456789012-{}", LETTERS, 24),
            ("xapp-1-A0123-{}", LETTERS, 64),
            ("sk-proj-{}", URL, 100),
            ("sk-ant-api03-{}", URL, 95),
            ("GOCSPX-{}", URL, 28),
            ("tskey-auth-{}", LETTERS, 32),
            (
                "https://hooks.slack.com/services/T0123/B0123/{}",
                LETTERS,
                24,
            ),
        ] {
            texts.push(shape.replace("{}", &self.of(alphabet, length)));
        }
        let grid = format!("SG.{}.{}", self.of(URL, 22), self.of(URL, 43));
        let signed = ["eyJhbGciOiJIUzI1NiJ9", "eyJ", "."];
        let [head, begin, dot] = signed;
        let web = format!(
            "{head}{dot}{begin}{}{dot}{}",
            self.of(URL, 40),
            self.of(URL, 43)
        );
        texts.extend([grid, web]);
        texts
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
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "postgres://app:hunter2@db.internal/x",
    ] {
        assert!(holds_secret(secret), "{secret}");
    }
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
