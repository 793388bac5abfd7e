//! A bucket in memory for tests and benchmarks: object_store's own, behind a server on a loopback
//! address, because the program reaches buckets over HTTP (`http://127.0.0.1:PORT/memories/KEY`).
//!
//! [`Bucket`] starts the server on its own threads, so that blocking tests can use it, and stops it
//! when it is dropped. Tests read and change the objects without a request, see which requests
//! arrived, and decide what happens to each of them ([`Bucket::intercept`]).
//!
//! The server knows as much of the protocol of S3 and of Google as the program needs. How real
//! servers behave is tested against moto and Azurite, in `tests/clients`.

mod protocol;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::executor::block_on;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// The name of every bucket.
pub(crate) const NAME: &str = "memories";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Get,
    /// Writing an object or a part of it.
    Put,
    Delete,
    List,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub operation: Operation,
    /// The key; empty if the request is about the bucket.
    pub key: String,
    pub range: Option<String>,
    /// The id of the key that signed it, or the token that it carries. Signatures are not verified.
    pub key_id: Option<String>,
    pub bytes_in: u64,
    /// Bytes of the answer's body; 0 until it is sent.
    pub bytes_out: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Answer,
    Delay(Duration),
    /// It is answered as if it had no conditions, as some servers do.
    IgnoreConditions,
    /// The body of its answer arrives with so many bytes per second.
    Slow(u64),
    /// It is refused with this status and has no effect.
    Refuse(u16),
    /// It takes effect, and the connection is closed without an answer.
    LoseAnswer,
    /// It is never answered and has no effect.
    Hang,
}

type Decide = Arc<dyn Fn(&Request) -> Action + Send + Sync>;

/// What the server's threads and the test share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) objects: InMemory,
    pub(crate) requests: Mutex<Vec<Request>>,
    decide: Mutex<Option<Decide>>,
}

impl Shared {
    pub(crate) fn decide(&self, request: &Request) -> Action {
        let decide = self.decide.lock().clone();
        decide.map_or(Action::Answer, |decide| decide(request))
    }
}

/// A running bucket named `memories`.
pub struct Bucket {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// `None` once it is dropped.
    runtime: Option<Runtime>,
    /// Accepts connections; `None` while the server is closed. Aborting it closes them.
    accepting: Option<JoinHandle<()>>,
}

impl Bucket {
    /// Every key, in order.
    pub fn keys(&self) -> Vec<String> {
        let listed = self.shared.objects.list(None);
        let keys = listed.filter_map(async |object| Some(object.ok()?.location.to_string()));
        block_on(keys.collect())
    }

    pub fn get(&self, key: &str) -> Option<Bytes> {
        block_on(async { self.shared.objects.get(&Path::from(key)).await.ok()?.bytes().await.ok() })
    }

    pub fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        let (path, bytes) = (Path::from(key), bytes.into());
        // Memory takes whatever it is given.
        let _ = block_on(self.shared.objects.put(&path, bytes.into()));
    }

    pub fn remove(&self, key: &str) {
        let _ = block_on(self.shared.objects.delete(&Path::from(key)));
    }

    /// The bytes of every object, to search for text that must not be there.
    pub fn all_bytes(&self) -> Vec<u8> {
        self.keys().iter().filter_map(|key| self.get(key)).flatten().collect()
    }

    /// Every request since the start or [`Self::reset_log`], in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().clone()
    }

    pub fn reset_log(&self) {
        self.shared.requests.lock().clear();
    }

    /// Lets `decide` choose what happens to each request.
    pub fn intercept(&self, decide: impl Fn(&Request) -> Action + Send + Sync + 'static) {
        *self.shared.decide.lock() = Some(Arc::new(decide));
    }

    /// Answers every request again.
    pub fn clear_faults(&self) {
        *self.shared.decide.lock() = None;
    }
}
