//! Logs each request as one line of JSON, without any text of a question or memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use serde::Serialize;

use super::request_record::RequestRecord;

/// The destination of the lines.
#[derive(Debug)]
pub struct AccessLog {
    /// The file, or standard error.
    path: Option<PathBuf>,
    has_failed: AtomicBool,
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
        path.as_deref().map(append).transpose()?;
        Ok(Self {
            path,
            has_failed: AtomicBool::new(false),
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
        let result = match &self.path {
            None => io::stderr().write_all(line.as_bytes()),
            // Opened for each line, so that the file can be moved away at any time. One write, so
            // that lines of several processes do not mix.
            Some(path) => append(path).and_then(|mut file| file.write_all(line.as_bytes())),
        };
        let has_failed = self.has_failed.swap(result.is_err(), Ordering::Relaxed);
        let error = result.err().filter(|_| !has_failed)?;
        Some(format!("cannot write the access log: {error}"))
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
