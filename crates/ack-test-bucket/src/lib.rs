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

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::executor::block_on;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;

use crate::server::Server;

/// The name of every bucket.
pub(crate) const NAME: &str = "memories";

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reading an object or a range of it.
    Get,
    /// Writing an object or a part of it.
    Put,
    /// Removing objects.
    Delete,
    /// Listing keys.
    List,
}

/// A request that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What it asks for.
    pub operation: Operation,
    /// The key; empty if the request is about the bucket.
    pub key: String,
    /// The header `Range`, as it was sent.
    pub range: Option<String>,
    /// The id of the key that signed it, or the token that it carries. Signatures are not verified.
    pub key_id: Option<String>,
    /// Bytes of its body.
    pub bytes_in: u64,
    /// Bytes of the answer's body; 0 until it is sent.
    pub bytes_out: u64,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is answered.
    Answer,
    /// It is answered after a delay.
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
    shared: Arc<Shared>,
    server: Server,
}

impl Bucket {
    /// Starts a bucket on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The system provides no port or no thread.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let server = Server::start(Arc::clone(&shared))?;
        Ok(Self { shared, server })
    }

    /// The endpoint for clients, without the bucket's name.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Stops listening and closes every connection. The objects stay.
    pub fn close(&mut self) {
        self.server.close();
    }

    /// Listens again, on the same address.
    ///
    /// # Errors
    /// Another program took the port in the meantime.
    pub fn open(&mut self) -> io::Result<()> {
        self.server.open()
    }

    /// Every key, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let listed = self.shared.objects.list(None);
        let keys = listed.filter_map(async |object| Some(object.ok()?.location.to_string()));
        block_on(keys.collect())
    }

    /// The bytes of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Bytes> {
        block_on(async {
            let found = self.shared.objects.get(&Path::from(key)).await.ok()?;
            found.bytes().await.ok()
        })
    }

    /// Stores an object.
    pub fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        let (path, bytes) = (Path::from(key), bytes.into());
        // Memory takes whatever it is given.
        let _ = block_on(self.shared.objects.put(&path, bytes.into()));
    }

    /// Removes an object.
    pub fn remove(&self, key: &str) {
        let _ = block_on(self.shared.objects.delete(&Path::from(key)));
    }

    /// The bytes of every object, to search for text that must not be there.
    #[must_use]
    pub fn all_bytes(&self) -> Vec<u8> {
        let keys = self.keys();
        let objects = keys.iter().filter_map(|key| self.get(key));
        objects.flatten().collect()
    }

    /// Every request since the start or [`Self::reset_log`], in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().clone()
    }

    /// Forgets the requests.
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
