//! Requests that were read but not answered yet. Their number and size are limited. When a limit is
//! reached, nothing more is read. So a client that sends faster than it reads, or than we answer,
//! blocks on its own writes and does not fill our memory.

use std::collections::HashMap;

use parking_lot::Mutex;
use rmcp::model::RequestId;
use tokio::sync::Notify;

const MAX_OPEN: usize = 128;
/// Maximum memory of their requests, in bytes. A single request may take more.
const MAX_OPEN_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub struct OpenRequests {
    requests: Mutex<Requests>,
    pub answer_sent: Notify,
}

#[derive(Debug, Default)]
struct Requests {
    request_bytes: HashMap<RequestId, usize>,
    bytes: usize,
    /// Answers to messages that are not valid requests.
    invalid_count: usize,
}

impl OpenRequests {
    pub fn has_room(&self) -> bool {
        let requests = self.requests.lock();
        requests.request_bytes.len() + requests.invalid_count < MAX_OPEN
            && requests.bytes < MAX_OPEN_BYTES
    }

    pub fn are_open(&self) -> bool {
        let requests = self.requests.lock();
        !requests.request_bytes.is_empty() || requests.invalid_count > 0
    }

    /// Adds a request of this many bytes; false if another request with the same id is still open.
    pub fn add(&self, id: &RequestId, bytes: usize) -> bool {
        let mut requests = self.requests.lock();
        if requests.request_bytes.contains_key(id) {
            return false;
        }
        requests.request_bytes.insert(id.clone(), bytes);
        requests.bytes += bytes;
        true
    }

    /// Removes a request that was answered or cancelled.
    pub fn remove(&self, id: &RequestId) {
        let mut requests = self.requests.lock();
        if let Some(bytes) = requests.request_bytes.remove(id) {
            requests.bytes -= bytes;
            self.answer_sent.notify_one();
        }
    }

    /// Adds an answer to an invalid request.
    pub fn add_invalid(&self) {
        self.requests.lock().invalid_count += 1;
    }

    pub fn remove_invalid(&self) {
        self.requests.lock().invalid_count -= 1;
        self.answer_sent.notify_one();
    }
}
