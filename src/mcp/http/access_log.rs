//! Logs each request as one line of JSON, without any text of a question or memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;

use super::request_record::RequestRecord;

/// How often to check whether the file was moved away.
const CHECK_AFTER: Duration = Duration::from_secs(1);

/// The destination of the lines.
#[derive(Debug)]
pub struct AccessLog {
    /// The file, or standard error.
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: Option<File>,
    checked: Instant,
    has_failed: bool,
}

/// The line of a request.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    address: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    method: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    tool: &'a str,
    status: u16,
    outcome: &'static str,
    ms: f64,
    bytes: usize,
}

impl AccessLog {
    /// Appends to a file, or writes to standard error for `-`. Only the owner can read a new file.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = (path.as_os_str() != "-").then(|| path.to_owned());
        let file = path.as_deref().map(append).transpose()?;
        Ok(Self {
            path,
            state: Mutex::new(State {
                file,
                checked: Instant::now(),
                has_failed: false,
            }),
        })
    }

    /// Writes the line of a request. Returns a message for the first failure.
    pub fn write(&self, record: &RequestRecord) -> Option<String> {
        let line = Line {
            time: format!("{:.3}", Timestamp::now()),
            address: record.address,
            client: record.client.as_deref(),
            method: record.method,
            tool: &record.tool,
            status: record.status.as_u16(),
            outcome: record.outcome.as_str(),
            ms: (record.seconds() * 1e5).round() / 1e2,
            bytes: record.bytes,
        };
        // Strings and numbers can always be written as JSON.
        let mut line = serde_json::to_string(&line).unwrap_or_default();
        line.push('\n');
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match &self.path {
            None => io::stderr().write_all(line.as_bytes()),
            Some(path) => state.write(path, line.as_bytes()),
        };
        match result {
            Ok(()) => {
                state.has_failed = false;
                None
            }
            Err(error) => {
                let is_first = !std::mem::replace(&mut state.has_failed, true);
                is_first.then(|| format!("cannot write the access log: {error}"))
            }
        }
    }
}

impl State {
    fn write(&mut self, path: &Path, line: &[u8]) -> io::Result<()> {
        if self.checked.elapsed() >= CHECK_AFTER {
            self.checked = Instant::now();
            if !self.is_at(path) {
                self.file = None;
            }
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => append(path)?,
        };
        // A single call, so that lines of several processes do not mix.
        let result = file.write_all(line);
        self.file = Some(file);
        result
    }

    /// Whether the path still names the open file.
    fn is_at(&self, path: &Path) -> bool {
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let current = std::fs::metadata(path).map(identity).ok();
        let open = self.file.as_ref().and_then(|file| file.metadata().ok());
        current.is_some() && current == open.map(identity)
    }
}

fn append(path: &Path) -> io::Result<File> {
    // A named pipe would keep the server waiting for its other end.
    match ack_sys::files::check(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}
