//! The request log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::http::Method;
use parking_lot::Mutex;

use crate::route::Operation;

/// A request and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What it asks for.
    pub operation: Operation,
    /// The method.
    pub method: Method,
    /// The key; empty if the request is about the bucket.
    pub key: String,
    /// The query as sent; empty if there is none.
    pub query: String,
    /// The header `Range` as sent.
    pub range: Option<String>,
    /// The id of the key that signed it.
    pub key_id: Option<String>,
    /// The status of the answer; `None` if there was none (yet).
    pub status: Option<u16>,
    /// Bytes of the request's body.
    pub bytes_in: u64,
    /// Bytes of the answer's body that were sent.
    pub bytes_out: u64,
    /// When it arrived, after the server's start.
    pub arrived: Duration,
    /// From its arrival to the last byte of the answer, or until now if that is not sent yet.
    pub duration: Duration,
}

/// Sums over the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many requests.
    pub requests: usize,
    /// Bytes of their bodies.
    pub bytes_in: u64,
    /// Bytes of the bodies of their answers.
    pub bytes_out: u64,
}

/// A log entry that may still change.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    started_at: Instant,
    request: Arc<Mutex<Request>>,
}

impl Entry {
    /// Changes the entry and updates the time taken.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Request)) {
        let mut request = self.request.lock();
        change(&mut request);
        request.duration = self.started_at.elapsed();
    }

    pub(crate) fn request(&self) -> Request {
        self.request.lock().clone()
    }
}

/// Every request, in the order of arrival.
#[derive(Debug)]
pub(crate) struct Log {
    started_at: Instant,
    entries: Mutex<Vec<Entry>>,
    answers: AtomicU64,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            started_at: Instant::now(),
            entries: Mutex::default(),
            answers: AtomicU64::new(1),
        }
    }
}

impl Log {
    /// Adds a request that has arrived.
    pub(crate) fn add(&self, mut request: Request) -> Entry {
        let began = Instant::now();
        request.arrived = began.duration_since(self.started_at);
        let request = Arc::new(Mutex::new(request));
        let entry = Entry {
            started_at: began,
            request,
        };
        self.entries.lock().push(entry.clone());
        entry
    }

    /// A unique number for an answer.
    pub(crate) fn number(&self) -> u64 {
        self.answers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.entries.lock().iter().map(Entry::request).collect()
    }

    pub(crate) fn reset(&self) {
        self.entries.lock().clear();
    }

    pub(crate) fn traffic(&self) -> Traffic {
        let entries = self.entries.lock();
        entries.iter().fold(Traffic::default(), |sum, entry| {
            let request = entry.request.lock();
            Traffic {
                requests: sum.requests + 1,
                bytes_in: sum.bytes_in + request.bytes_in,
                bytes_out: sum.bytes_out + request.bytes_out,
            }
        })
    }
}
