//! The handle through which tests control a bucket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::http::HeaderMap;

use crate::dialect::Dialect;
use crate::log::{Request, Traffic};
use crate::route::Operation;
use crate::server::{Server, Shared};
use crate::switches::{Access, Action, Decide, FaultRule, Switches};
use crate::uploads::concat;

/// A running bucket. Dropping it stops the server and discards its objects.
#[derive(Debug)]
pub struct Bucket {
    shared: Arc<Shared>,
    server: Server,
}

impl Bucket {
    /// Starts a bucket named `memories` on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The system provides no port or no thread.
    pub fn start() -> io::Result<Self> {
        Self::start_as(Dialect::Amazon)
    }

    /// Starts a bucket named `memories` that speaks the protocol of this cloud.
    ///
    /// # Errors
    /// The system provides no port or no thread.
    pub fn start_as(dialect: Dialect) -> io::Result<Self> {
        Self::start_with((Ipv4Addr::LOCALHOST, 0).into(), "memories", dialect)
    }

    /// Starts a bucket of this name on this address.
    ///
    /// # Errors
    /// The address is in use, or the system provides no thread.
    pub fn start_at(address: SocketAddr, name: &str) -> io::Result<Self> {
        Self::start_with(address, name, Dialect::Amazon)
    }

    fn start_with(address: SocketAddr, name: &str, dialect: Dialect) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(name, dialect));
        let server = Server::start(address, Arc::clone(&shared))?;
        Ok(Self { shared, server })
    }

    /// The name: the first part of each path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The address that the server listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The endpoint for clients: `http://127.0.0.1:PORT`, without the bucket's name.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The URL of a key for a client's settings: `s3://NAME/KEY`.
    #[must_use]
    pub fn url(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.name())
    }

    /// Stops listening and closes every connection, so that clients are refused. The objects stay.
    pub fn close(&mut self) {
        self.server.close();
    }

    /// Listens again, on the same address.
    ///
    /// # Errors
    /// Another program has taken the port meanwhile.
    pub fn open(&mut self) -> io::Result<()> {
        self.server.open()
    }

    // ---- Objects

    /// Every key, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.shared.store.lock().objects.keys()
    }

    /// The bytes of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Bytes> {
        let store = self.shared.store.lock();
        store.objects.get(key).map(|object| object.bytes.clone())
    }

    /// Stores an object, without a request.
    pub fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        let mut store = self.shared.store.lock();
        store.objects.put(key, bytes.into(), HeaderMap::new());
    }

    /// Removes an object, without a request. Returns whether it existed.
    pub fn remove(&self, key: &str) -> bool {
        self.shared.store.lock().objects.remove(key)
    }

    /// Changes the bytes of an object silently: its `ETag` and date stay. Returns whether the
    /// object exists.
    pub fn damage(&self, key: &str, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.shared.store.lock().objects.damage(key, change)
    }

    /// The bytes of every object and of every part of an unfinished upload, concatenated, to search
    /// for text that must not be there.
    #[must_use]
    pub fn all_bytes(&self) -> Vec<u8> {
        let store = self.shared.store.lock();
        let objects = store.objects.iter().map(|(_, object)| &object.bytes);
        concat(objects.chain(store.uploads.parts()))
    }

    /// The keys of multipart uploads that were neither completed nor aborted.
    #[must_use]
    pub fn unfinished(&self) -> Vec<String> {
        self.shared.store.lock().uploads.keys()
    }

    // ---- The request log

    /// Every request since the start or [`Self::reset_log`], in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.requests()
    }

    /// Clears the log.
    pub fn reset_log(&self) {
        self.shared.log.reset();
    }

    /// How many requests of one kind there were.
    #[must_use]
    pub fn count(&self, operation: Operation) -> usize {
        let requests = self.requests();
        let those = requests.iter().filter(|one| one.operation == operation);
        those.count()
    }

    /// How many requests there were, and how many bytes they carried.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.log.traffic()
    }

    // ---- Switches

    /// How long each request waits before it is answered: the round-trip time.
    pub fn set_delay(&self, delay: Duration) {
        self.shared
            .switches
            .change(|switches| switches.delay = delay);
    }

    /// How many bytes per second pass in each direction, shared by all connections; `None` for no
    /// limit.
    pub fn set_bandwidth(&self, bytes_per_second: Option<u64>) {
        self.shared.upload_throttle.set_rate(bytes_per_second);
        self.shared.download_throttle.set_rate(bytes_per_second);
    }

    /// Which requests are answered with 503 `SlowDown`.
    pub fn set_failures(&self, which: FaultRule) {
        self.shared
            .switches
            .change(|switches| switches.failures = which.into());
    }

    /// Which conditional writes are answered with 409 `ConditionalRequestConflict`, as if another
    /// write had been running.
    pub fn set_conflicts(&self, which: FaultRule) {
        self.shared
            .switches
            .change(|switches| switches.conflicts = which.into());
    }

    /// After how many bytes of a body the connection is closed; `None` sends whole bodies.
    pub fn set_cut(&self, bytes: Option<u64>) {
        self.shared.switches.change(|switches| switches.cut = bytes);
    }

    /// Accepts requests without answering them, and pauses bodies.
    pub fn freeze(&self) {
        self.shared.frozen.send_replace(true);
    }

    /// Resumes after [`Self::freeze`], and answers the waiting requests.
    pub fn thaw(&self) {
        self.shared.frozen.send_replace(false);
    }

    /// Whether lists are answered with 403 `AccessDenied`.
    pub fn set_deny_list(&self, deny: bool) {
        self.shared
            .switches
            .change(|switches| switches.deny_list = deny);
    }

    /// Whether `If-Match` and `If-None-Match` of writes are ignored, as some servers do.
    pub fn set_ignore_conditions(&self, ignore: bool) {
        self.shared
            .switches
            .change(|switches| switches.ignore_conditions = ignore);
    }

    /// Sets who may do what.
    pub fn set_access(&self, access: Access) {
        self.shared
            .switches
            .change(|switches| switches.access = access);
    }

    /// The largest number of keys in one page of a list. The default, and the maximum, is 1,000.
    pub fn set_page_size(&self, keys: usize) {
        self.shared
            .switches
            .change(|switches| switches.page = keys.clamp(1, 1000));
    }

    /// Lets `decide` choose what happens to each request, before every other switch except
    /// [`Self::freeze`] and the delay. The request is as in the log, without a status.
    pub fn intercept(&self, decide: impl Fn(&Request) -> Action + Send + Sync + 'static) {
        let decide: Decide = Arc::new(decide);
        self.shared
            .switches
            .change(|switches| switches.decide = Some(decide));
    }

    /// Resets every switch.
    pub fn clear_faults(&self) {
        self.shared
            .switches
            .change(|switches| *switches = Switches::default());
        self.set_bandwidth(None);
        self.thaw();
    }
}
