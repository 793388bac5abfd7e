//! Requests that were read but not answered yet. Their number and size are limited. When a limit is
//! reached, nothing more is read. So a client that sends faster than it reads, or than we answer,
//! blocks on its own writes and does not fill our memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

/// Maximum number of open answers.
const MOST: usize = 128;
/// Maximum memory of their requests, in bytes. A single request may take more.
const MOST_BYTES: usize = 16 << 20;

/// The open requests. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Owed(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    requests: Mutex<Requests>,
    settled: Notify,
}

#[derive(Debug, Default)]
struct Requests {
    /// The bytes of each request.
    known: HashMap<RequestId, usize>,
    bytes: usize,
    /// Answers to messages that are not valid requests.
    others: usize,
}

impl Owed {
    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.0
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another message may be read.
    pub fn has_room(&self) -> bool {
        let requests = self.requests();
        requests.known.len() + requests.others < MOST && requests.bytes < MOST_BYTES
    }

    /// Adds a request of this many bytes; false if another request with the same id is still open.
    pub fn add(&self, id: &RequestId, bytes: usize) -> bool {
        let mut requests = self.requests();
        if requests.known.contains_key(id) {
            return false;
        }
        requests.known.insert(id.clone(), bytes);
        requests.bytes += bytes;
        true
    }

    /// Removes a request that was answered or cancelled.
    pub fn settle(&self, id: &RequestId) {
        let mut requests = self.requests();
        if let Some(bytes) = requests.known.remove(id) {
            requests.bytes -= bytes;
            self.0.settled.notify_one();
        }
    }

    /// Adds an answer to an invalid request. It stays open until this is dropped.
    pub fn other(&self) -> Other {
        self.requests().others += 1;
        Other(self.clone())
    }

    /// Waits until an answer has been sent.
    pub async fn settled(&self) {
        self.0.settled.notified().await;
    }
}

/// An answer to an invalid request.
#[derive(Debug)]
pub struct Other(Owed);

impl Drop for Other {
    fn drop(&mut self) {
        self.0.requests().others -= 1;
        self.0.0.settled.notify_one();
    }
}
