//! Requests that were read but not answered yet. Their number and size are limited. When a limit is
//! reached, nothing more is read. So a client that sends faster than it reads, or than we answer,
//! blocks on its own writes and does not fill our memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::RequestId;
use tokio::sync::Notify;

const MAX_OPEN: usize = 128;
/// Maximum memory of their requests, in bytes. A single request may take more.
const MAX_OPEN_BYTES: usize = 16 << 20;

/// The open requests. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct OpenRequests(Arc<OpenRequestsInner>);

#[derive(Debug, Default)]
struct OpenRequestsInner {
    requests: Mutex<Requests>,
    answer_sent: Notify,
}

#[derive(Debug, Default)]
struct Requests {
    request_bytes: HashMap<RequestId, usize>,
    bytes: usize,
    /// Answers to messages that are not valid requests.
    invalid_count: usize,
}

impl OpenRequests {
    /// Whether another message may be read.
    pub fn has_room(&self) -> bool {
        let requests = self.0.requests.lock();
        requests.request_bytes.len() + requests.invalid_count < MAX_OPEN
            && requests.bytes < MAX_OPEN_BYTES
    }

    /// Whether an answer is still open.
    pub fn are_open(&self) -> bool {
        let requests = self.0.requests.lock();
        !requests.request_bytes.is_empty() || requests.invalid_count > 0
    }

    /// Adds a request of this many bytes; false if another request with the same id is still open.
    pub fn add(&self, id: &RequestId, bytes: usize) -> bool {
        let mut requests = self.0.requests.lock();
        if requests.request_bytes.contains_key(id) {
            return false;
        }
        requests.request_bytes.insert(id.clone(), bytes);
        requests.bytes += bytes;
        true
    }

    /// Removes a request that was answered or cancelled.
    pub fn remove(&self, id: &RequestId) {
        let mut requests = self.0.requests.lock();
        if let Some(bytes) = requests.request_bytes.remove(id) {
            requests.bytes -= bytes;
            self.0.answer_sent.notify_one();
        }
    }

    /// Adds an answer to an invalid request. It stays open until this is dropped.
    pub fn add_invalid(&self) -> InvalidRequestAnswer {
        self.0.requests.lock().invalid_count += 1;
        InvalidRequestAnswer(self.clone())
    }

    pub async fn answer_sent(&self) {
        self.0.answer_sent.notified().await;
    }
}

#[derive(Debug)]
pub struct InvalidRequestAnswer(OpenRequests);

impl Drop for InvalidRequestAnswer {
    fn drop(&mut self) {
        self.0.0.requests.lock().invalid_count -= 1;
        self.0.0.answer_sent.notify_one();
    }
}
