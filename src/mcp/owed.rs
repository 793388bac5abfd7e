//! Answers that are owed: requests that were read and whose answers are not written yet. There is a bound on them, in number and
//! in bytes; while it is reached nothing more is read, so that a client which asks faster than it reads, or than we answer, waits
//! in its own writing and not in our memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

/// Most answers that are owed.
const MOST: usize = 128;
/// Most memory that their requests may take, in bytes, but for a single one.
const MOST_BYTES: usize = 16 << 20;

/// What is owed. Clones share it.
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
    /// Answers to what is no request.
    others: usize,
}

impl Owed {
    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.0
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more may be read.
    pub fn has_room(&self) -> bool {
        let requests = self.requests();
        requests.known.len() + requests.others < MOST && requests.bytes < MOST_BYTES
    }

    /// Takes a request of so many bytes in; false where another one of its id is not answered yet.
    pub fn add(&self, id: &RequestId, bytes: usize) -> bool {
        let mut requests = self.requests();
        if requests.known.contains_key(id) {
            return false;
        }
        requests.known.insert(id.clone(), bytes);
        requests.bytes += bytes;
        true
    }

    /// A request is answered, or taken back.
    pub fn settle(&self, id: &RequestId) {
        let mut requests = self.requests();
        if let Some(bytes) = requests.known.remove(id) {
            requests.bytes -= bytes;
            self.0.settled.notify_one();
        }
    }

    /// An answer to what is no request; it is owed until this is dropped.
    pub fn other(&self) -> Other {
        self.requests().others += 1;
        Other(self.clone())
    }

    /// Waits until something is settled.
    pub async fn settled(&self) {
        self.0.settled.notified().await;
    }
}

/// An answer to what is no request.
#[derive(Debug)]
pub struct Other(Owed);

impl Drop for Other {
    fn drop(&mut self) {
        self.0.requests().others -= 1;
        self.0.0.settled.notify_one();
    }
}
