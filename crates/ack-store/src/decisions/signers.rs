//! Who may decide, where the owner wants signatures: a file in the format of OpenSSH's
//! `allowed_signers` (ssh-keygen(1)), and the signatures in a log
//! (<https://cvsweb.openbsd.org/src/usr.bin/ssh/PROTOCOL.sshsig>).
//!
//! A signature covers the SHA-256 of every line of one batch, and the name of the scope. Lines may
//! be merged and reordered: the newest by its own time counts, so one that is appended again
//! changes nothing.

use std::collections::HashMap;

use ack_api::decision::{Decision, SignatureLine};
use ack_api::text;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use ssh_key::{Algorithm, EcdsaCurve, PublicKey, SshSig};
use xxhash_rust::xxh3::xxh3_64;

use super::lines_of;

/// What the signatures are for, so that one made for another purpose does not count.
pub const NAMESPACE: &str = "ack-memory";
/// Security keys end their signatures with a byte of flags and a counter of four bytes.
const SK_TRAILER_BYTES: usize = 5;
const SK_TOUCHED: u8 = 1;

type LineDigest = String;

#[derive(Debug)]
pub struct Signers {
    scope: String,
    keys: Vec<AllowedKey>,
    /// The lines that cannot be used.
    pub(super) problems: Vec<String>,
    pub(super) version: u64,
    /// The key of each signature that was seen: checking one takes as long as a hundred lines.
    checked: Mutex<HashMap<LineDigest, Option<usize>>>,
}

#[derive(Debug)]
struct AllowedKey {
    key: PublicKey,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl Signers {
    /// Parses a file. A line that cannot be used allows nobody.
    pub fn parse(content: &[u8], scope: &str) -> Self {
        let mut signers = Self {
            scope: scope.to_owned(),
            keys: Vec::new(),
            problems: Vec::new(),
            version: xxh3_64(content).max(1),
            checked: Mutex::default(),
        };
        for (number, line) in lines_of(content) {
            let line = String::from_utf8_lossy(line);
            if line.starts_with('#') {
                continue;
            }
            match allowed_key(&line) {
                Ok(Some(key)) => signers.keys.push(key),
                Ok(None) => {}
                Err(reason) => signers.problems.push(format!("line {number}: {reason}")),
            }
        }
        signers
    }

    /// Whether signatures with this key count at a time. The key is the text of a `.pub` file.
    pub fn allows(&self, key: &str, time: Timestamp) -> bool {
        let key = PublicKey::from_openssh(key.trim());
        key.is_ok_and(|key| self.allows_key(&key, time))
    }

    fn allows_key(&self, key: &PublicKey, time: Timestamp) -> bool {
        self.keys.iter().any(|allowed| {
            allowed.key.key_data() == key.key_data()
                && allowed.after.is_none_or(|after| after <= time)
                && allowed.before.is_none_or(|before| time < before)
        })
    }

    pub fn message(&self, lines: &str) -> String {
        self.message_about(&digests_of(lines))
    }

    fn message_about(&self, digests: &[String]) -> String {
        let mut message = format!("ack-memory decisions\nscope {}\n", self.scope);
        for digest in digests {
            message.push_str(digest);
            message.push('\n');
        }
        message
    }

    /// The line that follows a batch; `None` if nobody who may sign made the signature.
    pub fn signature_line(&self, lines: &str, signature: &str) -> Option<String> {
        let line = SignatureLine { signature: signature.to_owned(), lines: digests_of(lines) };
        self.signer(&line).map(|_| line.to_line())
    }

    /// The key that made a signature. Its times are not checked.
    fn signer(&self, line: &SignatureLine) -> Option<usize> {
        let signature = SshSig::from_pem(&line.signature).ok()?;
        let message = self.message_about(&line.lines);
        if !is_touched(&signature) {
            return None;
        }
        self.keys.iter().position(|allowed| {
            // The times differ between lines with the same key, but one of them is enough here.
            allowed.key.key_data() == signature.public_key()
                && allowed.key.verify(NAMESPACE, message.as_bytes(), &signature).is_ok()
        })
    }

    /// The lines of a log that somebody signed, with the keys.
    pub(super) fn signed_lines(&self, log: &[u8]) -> SignedLines<'_> {
        let mut signed = SignedLines::new();
        for (_, text) in lines_of(log) {
            let Some(line) = signature_line(text) else { continue };
            let digest = sha256(text);
            let known = self.checked.lock().get(&digest).copied();
            let signer = known.unwrap_or_else(|| {
                let signer = self.signer(&line);
                self.checked.lock().insert(digest, signer);
                signer
            });
            let Some(signer) = signer.and_then(|signer| self.keys.get(signer)) else { continue };
            for digest in line.lines {
                signed.entry(digest).or_default().push(&signer.key);
            }
        }
        signed
    }

    /// Whether somebody who was allowed to at that time signed a line.
    pub(super) fn cover(&self, signed: &SignedLines<'_>, line: &[u8], decision: &Decision) -> bool {
        let Ok(time) = decision.time.parse() else { return false };
        let mut keys = signed.get(&sha256(line)).into_iter().flatten();
        keys.any(|key| self.allows_key(key, time))
    }
}

pub(super) type SignedLines<'a> = HashMap<LineDigest, Vec<&'a PublicKey>>;

pub(super) fn signature_line(line: &[u8]) -> Option<SignatureLine> {
    // Decisions begin with the id.
    if !line.starts_with(b"{\"signature\":") {
        return None;
    }
    serde_json::from_slice(line).ok()
}

fn is_touched(signature: &SshSig) -> bool {
    let key = signature.public_key();
    if !key.is_sk_ed25519() && !key.is_sk_ecdsa_p256() {
        return true;
    }
    let flags = signature.signature_bytes().iter().nth_back(SK_TRAILER_BYTES - 1);
    flags.is_some_and(|flags| flags & SK_TOUCHED != 0)
}

/// The key of a line, with the times between which it counts; `None` if it is for other purposes.
fn allowed_key(line: &str) -> Result<Option<AllowedKey>, String> {
    let (_, rest) = split_field(line);
    let (options, key) = match PublicKey::from_openssh(rest.trim()) {
        Ok(key) => ("", key),
        Err(_) => {
            let (options, rest) = split_field(rest);
            let key = PublicKey::from_openssh(rest.trim());
            let form = "it is not `NAMES [OPTIONS] KEYTYPE KEY`, see ssh-keygen(1)";
            (options, key.map_err(|_| form)?)
        }
    };
    match key.algorithm() {
        Algorithm::Ed25519
        | Algorithm::SkEd25519
        | Algorithm::SkEcdsaSha2NistP256
        | Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 } => {}
        other => return Err(format!("keys of type {} are not supported", other.as_str())),
    }
    let mut allowed = AllowedKey { key, after: None, before: None };
    for option in split_quoted(options, ',') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = value.trim_matches('"');
        match name.to_ascii_lowercase().as_str() {
            "" => {}
            "namespaces" if value.split(',').any(|it| it == NAMESPACE || it == "*") => {}
            "namespaces" => return Ok(None),
            "valid-after" => allowed.after = Some(time(value)?),
            "valid-before" => allowed.before = Some(time(value)?),
            "cert-authority" => {
                return Err("`cert-authority` is not supported; list the keys themselves".into());
            }
            name => return Err(format!("unknown option `{}`", text::line(name, 40))),
        }
    }
    Ok(Some(allowed))
}

/// A time of the file: `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`, in UTC with or without `Z`.
fn time(value: &str) -> Result<Timestamp, String> {
    let digits = value.trim_end_matches(['Z', 'z']);
    let padded = format!("{digits:0<14}");
    let time = DateTime::strptime("%Y%m%d%H%M%S", &padded).ok();
    let time = time.filter(|_| matches!(digits.len(), 8 | 12 | 14));
    time.and_then(|time| time.to_zoned(TimeZone::UTC).ok())
        .map(|time| time.timestamp())
        .ok_or_else(|| format!("`{}` is not a time", text::line(value, 40)))
}

/// The first field of a line and the rest. Spaces in quotes belong to the field.
fn split_field(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    let field = split_quoted(line, ' ').next().unwrap_or_default();
    (field, line.get(field.len()..).unwrap_or_default())
}

/// The parts of a text between separators that are not in quotes.
fn split_quoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c: char| {
        is_quoted ^= c == '"';
        !is_quoted && (c == separator || separator == ' ' && c == '\t')
    })
}

fn sha256(line: &[u8]) -> LineDigest {
    hex(&Sha256::digest(line))
}

fn digests_of(lines: &str) -> Vec<String> {
    lines_of(lines.as_bytes()).map(|(_, line)| sha256(line)).collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use ssh_key::private::Ed25519Keypair;
    use ssh_key::public::{KeyData, SkEd25519};
    use ssh_key::{HashAlg, LineEnding, PrivateKey, Signature, SigningKey};

    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";

    fn allows(file: &str, time: &str) -> bool {
        Signers::parse(file.as_bytes(), "alpha").allows(KEY, time.parse().unwrap())
    }

    #[test]
    fn lines_are_read_as_openssh_reads_them() {
        let now = "2026-11-27T10:00:00Z";
        for (options, allowed) in [
            ("", true),
            ("namespaces=\"git,ack-memory\" ", true),
            ("namespaces=\"*\" ", true),
            ("namespaces=\"git\" ", false),
            ("valid-after=\"20261127\" ", true),
            ("valid-after=\"20261128Z\" ", false),
            ("valid-before=\"202611271001Z\" ", true),
            ("VALID-BEFORE=\"20261127100000\" ", false),
            ("namespaces=\"ack-memory\",valid-after=\"20250101\",valid-before=\"20270101\" ", true),
            ("cert-authority ", false),
            ("no-such-option ", false),
            ("valid-after=\"tomorrow\" ", false),
        ] {
            for names in ["ana@example.org", "\"ana maria\",bob"] {
                let line = format!("# people\n\n{names} {options}{KEY} a comment\r\n");
                assert_eq!(allows(&line, now), allowed, "{line}");
            }
        }
        assert!(!allows("ana ssh-ed25519 AAAA\n", now));
    }

    /// A public key, and a signature as a security key makes it, with the flags that it reports.
    fn security_key(message: &str, flags: u8) -> (String, String) {
        fn sign<K: SigningKey>(key: &K, data: &[u8]) -> Vec<u8> {
            key.try_sign(data).unwrap().as_bytes().to_vec()
        }
        let pair = Ed25519Keypair::from_seed(&[7; 32]);
        let key = KeyData::SkEd25519(SkEd25519::from(pair.public));
        let signed = SshSig::signed_data(NAMESPACE, HashAlg::Sha512, message.as_bytes()).unwrap();
        let flags_and_counter = [flags, 0, 0, 0, 1];
        let data = [&Sha256::digest(b"ssh:")[..], &flags_and_counter, &Sha256::digest(&signed)];
        let mut signature = sign(&PrivateKey::from(pair), &data.concat());
        signature.extend(flags_and_counter);
        let signature = Signature::new(Algorithm::SkEd25519, signature).unwrap();
        let signature = SshSig::new(key.clone(), NAMESPACE, HashAlg::Sha512, signature);
        let signature = signature.unwrap().to_pem(LineEnding::LF).unwrap();
        (PublicKey::from(key).to_openssh().unwrap(), signature)
    }

    #[test]
    fn a_security_key_must_have_been_touched() {
        let lines = "{\"id\":\"a\"}\n";
        let message = Signers::parse(b"", "alpha").message(lines);
        for (flags, counts) in [(1, true), (5, true), (0, false), (4, false)] {
            let (key, signature) = security_key(&message, flags);
            let signers = Signers::parse(format!("ana {key}\n").as_bytes(), "alpha");
            assert_eq!(signers.signature_line(lines, &signature).is_some(), counts, "{flags}");
        }
    }
}
