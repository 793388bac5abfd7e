//! Several clients, each with its own token. The token file names them and is read again when it
//! changes.
//!
//! The file has a table for each client, with the hash of its token instead of the token:
//!
//! ```toml
//! [mei]
//! hash = "sha256:…"
//! scopes = ["platform"]
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use ack_api::text;
use ack_api::time::utc_day;
use ack_store::quick_state::QuickState;
use ack_sys::files;

use ack_service::config::file;

const CHECK_AFTER: Duration = Duration::from_secs(1);
const MAX_BYTES: u64 = 1 << 20;
const HASH_PREFIX: &str = "sha256:";
pub const MAX_CONCURRENT: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientEntry {
    /// `sha256:` and the SHA-256 of the token in hexadecimal digits.
    pub hash: String,
    /// The scopes that the client can see (default: all).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<BTreeSet<String>>,
    /// The last day of the token, as in `2027-01-31`, in UTC (default: it does not end).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_day: Option<String>,
}

#[derive(Debug)]
pub struct TokenClient {
    pub name: String,
    pub entry: ClientEntry,
    last_day: Option<Date>,
    /// The places of its requests. They are still taken when the file is read again.
    pub places: Arc<Semaphore>,
}

#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    checked: Instant,
    version: Option<QuickState>,
    /// The clients that are let in: nobody while the file is not usable.
    clients: Vec<Arc<TokenClient>>,
    /// By the names of all clients so far: the file may name one again.
    places: Places,
    problem: Option<String>,
}

type Places = HashMap<String, Arc<Semaphore>>;

#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    #[error("cannot read the tokens in `{}`: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the tokens in `{}` cannot be used: {reason}", path.display())]
    Wrong { path: PathBuf, reason: String },
}

impl TokenFile {
    pub fn open(path: &Path) -> Result<Self, TokensError> {
        let version = QuickState::read(path, None);
        let mut places = Places::new();
        let clients = read(path, &mut places)?;
        if clients.is_empty() {
            return Err(TokensError::Wrong {
                path: path.to_owned(),
                reason: "it names no client".to_owned(),
            });
        }
        let state = State { checked: Instant::now(), version, clients, places, problem: None };
        Ok(Self { path: path.to_owned(), state: Mutex::new(state) })
    }

    /// The client with a token whose day is not over.
    pub fn client(&self, token: &[u8]) -> Option<Arc<TokenClient>> {
        let hash = hash(token);
        let mut found = None;
        // Compare all of them, so that the time reveals nothing.
        for client in &self.state.lock().clients {
            if bool::from(client.entry.hash.as_bytes().ct_eq(hash.as_bytes())) {
                found = Some(Arc::clone(client));
            }
        }
        let today = utc_day(Timestamp::now());
        found.filter(|client| client.last_day.is_none_or(|last| today <= last))
    }

    pub fn closed_reason(&self) -> Option<&'static str> {
        let state = self.state.lock();
        if state.problem.is_some() {
            return Some("the file of tokens cannot be used, so nobody is let in");
        }
        let is_empty = state.clients.is_empty();
        is_empty.then_some("the file of tokens names no client, so nobody is let in")
    }

    /// Reads the file again if it has changed. Returns a message: that it was read, or why it is
    /// not usable. In the second case nobody is let in, because nobody knows who was removed.
    pub fn refresh(&self) -> Option<String> {
        let mut state = self.state.lock();
        if state.checked.elapsed() < CHECK_AFTER {
            return None;
        }
        state.checked = Instant::now();
        let version = QuickState::read(&self.path, None);
        // What the file's folder allows can change without a change of the file.
        if version == state.version && state.problem.is_none() {
            return None;
        }
        state.version = version;
        match read(&self.path, &mut state.places) {
            Ok(clients) => {
                let found = match clients.len() {
                    0 => "no client, so nobody is let in".to_owned(),
                    1 => "1 client".to_owned(),
                    number => format!("{number} clients"),
                };
                state.clients = clients;
                state.problem = None;
                Some(format!("the tokens in `{}` were read again: {found}", self.path.display()))
            }
            Err(error) => {
                let problem = format!("{error}; nobody is let in until it can be used");
                let is_new = state.problem.as_ref() != Some(&problem);
                state.clients.clear();
                state.problem = Some(problem.clone());
                is_new.then_some(problem)
            }
        }
    }
}

pub fn hash(token: impl AsRef<[u8]>) -> String {
    let mut text = HASH_PREFIX.to_owned();
    for byte in Sha256::digest(token) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

/// Checks that a file is valid. It may name no client.
pub fn check(path: &Path) -> Result<(), TokensError> {
    read(path, &mut Places::new()).map(drop)
}

/// Reads the clients of a file, who keep their `places`.
fn read(path: &Path, places: &mut Places) -> Result<Vec<Arc<TokenClient>>, TokensError> {
    let text = files::read_text(path, MAX_BYTES)
        .map_err(|source| TokensError::Read { path: path.to_owned(), source })?;
    let wrong = |reason: String| TokensError::Wrong { path: path.to_owned(), reason };
    let entries: BTreeMap<String, ClientEntry> =
        toml::from_str(&text).map_err(|error| wrong(explain(&text, &error)))?;
    let mut clients: Vec<Arc<TokenClient>> = Vec::with_capacity(entries.len());
    for (name, entry) in entries {
        let client = client(&name, entry, places).map_err(&wrong)?;
        if let Some(twin) = clients.iter().find(|other| other.entry.hash == client.entry.hash) {
            return Err(wrong(format!(
                "`{}` and `{name}` have the same hash; give each a token of its own",
                twin.name
            )));
        }
        clients.push(Arc::new(client));
    }
    Ok(clients)
}

/// Describes an error in a TOML file with its line, but without a value, so that no hash is
/// printed.
fn explain(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let written = text.lines().nth(line - 1).unwrap_or_default();
    let key = written.split('=').next().unwrap_or_default().trim();
    let problem = error.message().lines().next().unwrap_or_default();
    let unknown = problem.strip_prefix("unknown field `");
    let unknown = unknown.and_then(|rest| rest.split('`').next());
    if let Some((unknown, instead)) =
        unknown.and_then(|key| Some((key, file::instead_of(file::TOKENS, key)?)))
    {
        return format!("line {line}: the key `{unknown}` no longer exists: {instead}");
    }
    // The library repeats texts in double quotes.
    let hidden = match (problem.split_once('"'), problem.rsplit_once('"')) {
        (Some((first, _)), Some((_, last))) => format!("{first}\"…\"{last}"),
        _ => problem.to_owned(),
    };
    match key {
        "scopes" | "last_day" => format!("line {line}: `{key}`: {hidden}"),
        _ => format!("line {line}: {hidden}"),
    }
}

fn client(name: &str, mut entry: ClientEntry, places: &mut Places) -> Result<TokenClient, String> {
    if !is_name(name) {
        return Err(format!(
            "`{}` is not a valid client name: use letters, digits, `-`, `_` and `.`, at most 64",
            text::line(name, 80)
        ));
    }
    let digits = entry.hash.strip_prefix(HASH_PREFIX).unwrap_or_default();
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(format!(
            "`hash` of `{name}` must be `{HASH_PREFIX}` and 64 hexadecimal digits; \
             `ack-memory token {name}` makes a token with its hash"
        ));
    }
    entry.hash.make_ascii_lowercase();
    let last_day = entry
        .last_day
        .as_ref()
        .map(|day| day.parse())
        .transpose()
        .map_err(|_| format!("`last_day` of `{name}` must be a day such as \"2027-01-31\""))?;
    let places = places.entry(name.to_owned());
    let places = places.or_insert_with(|| Arc::new(Semaphore::new(MAX_CONCURRENT)));
    Ok(TokenClient { name: name.to_owned(), entry, last_day, places: Arc::clone(places) })
}

#[cfg(test)]
mod tests;
