//! Signs decisions with an SSH key of the user, where the scope's manifest names `signers`.
//!
//! `ssh-keygen -Y sign` makes the signature, so that agents, passphrases, confirmations and
//! security keys work as they do for git. One signature covers a batch, so a key is touched once.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ack_store::decisions::signers::{NAMESPACE, Signers};
use ack_sys::files;

use super::CurateError;
use ack_service::scope::Scope;

const MAX_KEY_BYTES: u64 = 64 << 10;

enum SigningKey {
    /// A public key in the home folder; the private one is beside it or in the agent.
    File(PathBuf),
    /// A key that only the agent has.
    Agent(String),
}

/// The line that signs the lines of a batch; empty if the scope wants no signatures.
pub fn signature(scope: &Scope, lines: &str) -> Result<String, CurateError> {
    let Some(signers) = scope.store.signers()? else {
        return Ok(String::new());
    };
    let message = signers.message(lines);
    let mut reason = String::new();
    for key in keys(scope, &signers)? {
        let signature = run_ssh_keygen(&key, &message);
        match signature.map(|signature| signers.signature_line(lines, &signature)) {
            Ok(Some(line)) => return Ok(line + "\n"),
            Ok(None) => "its signature is not valid".clone_into(&mut reason),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(refuse(scope, &format!("`ssh-keygen -Y sign`: {reason}")))
}

/// Checks that the user has a key that may sign.
pub fn check(scope: &Scope) -> Result<(), CurateError> {
    match scope.store.signers()? {
        Some(signers) => keys(scope, &signers).map(drop),
        None => Ok(()),
    }
}

/// The keys of the user that may sign now, those with files first.
fn keys(scope: &Scope, signers: &Signers) -> Result<Vec<SigningKey>, CurateError> {
    let now = jiff::Timestamp::now();
    let folder = scope.home.as_deref().map(|home| home.join(".ssh"));
    let mut keys: Vec<SigningKey> = Vec::new();
    for file in folder.iter().flat_map(|folder| public_keys(folder)) {
        if signers.allows(&files::read_text(&file, MAX_KEY_BYTES).unwrap_or_default(), now) {
            keys.push(SigningKey::File(file));
        }
    }
    if keys.is_empty() {
        let listed = agent_keys();
        let allowed = listed.lines().filter(|key| signers.allows(key, now));
        keys.extend(allowed.map(|key| SigningKey::Agent(key.to_owned())));
    }
    match keys.is_empty() {
        true => Err(refuse(scope, "none of your SSH keys is in the list of signers")),
        false => Ok(keys),
    }
}

fn public_keys(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut keys: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    keys.retain(|path| path.extension().is_some_and(|extension| extension == "pub"));
    keys.sort();
    keys
}

/// The public keys in the agent, one a line; none if there is no agent.
#[expect(clippy::disallowed_methods, reason = "only OpenSSH knows the agent and the passphrase")]
fn agent_keys() -> String {
    let listed =
        Command::new("ssh-add").arg("-L").stdin(Stdio::null()).stderr(Stdio::null()).output();
    listed.map_or_else(|_| String::new(), |it| String::from_utf8_lossy(&it.stdout).into_owned())
}

/// Signs a message. What `ssh-keygen` asks for goes to the terminal.
#[expect(clippy::disallowed_methods, reason = "only OpenSSH knows the agent and the passphrase")]
fn run_ssh_keygen(key: &SigningKey, message: &str) -> io::Result<String> {
    // `ssh-keygen` finds the private key, in the file beside this one or in the agent.
    let (path, _file) = match key {
        SigningKey::File(path) => (path.clone(), None),
        SigningKey::Agent(key) => {
            let mut file = tempfile::Builder::new().suffix(".pub").tempfile()?;
            file.write_all(key.as_bytes())?;
            (file.path().to_owned(), Some(file))
        }
    };
    let mut process = Command::new("ssh-keygen")
        .args(["-Y", "sign", "-n", NAMESPACE, "-f"])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    // It may end before it has read everything; its exit status says so.
    let _ = process.stdin.take().map(|mut stdin| stdin.write_all(message.as_bytes()));
    let done = process.wait_with_output()?;
    if !done.status.success() {
        return Err(io::Error::other(format!("{}", done.status)));
    }
    String::from_utf8(done.stdout).map_err(io::Error::other)
}

fn refuse(scope: &Scope, reason: &str) -> CurateError {
    CurateError::Unsigned { scope: scope.name.clone(), reason: reason.to_owned() }
}
