//! Tracks the open connections of a server and decides which one to close when another needs its
//! place, or when its client does not read.
//!
//! A connection belongs to a stranger until one of its requests passes the gate and shows the
//! token. Strangers have limits: in total, per address, and in time. The oldest stranger makes room
//! for the next one. So clients without a token cannot keep out clients that have one. If every
//! place is taken, a stranger is closed first, then the connection that has been idle longest, then
//! the one whose request has been waited for longest.

mod slow_reader;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::sleep;

pub use self::slow_reader::ReadRate;
use self::slow_reader::SlowReaderGuard;

/// How often to look for an idle connection while every place is taken.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 64 << 10;

/// A connection with the guard against clients that do not read.
type Guarded<S> = http1::Connection<TokioIo<SlowReaderGuard<TcpStream>>, S>;

/// How many connections are allowed.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// In total.
    pub max_total: usize,
    /// Of strangers.
    pub max_unknown: usize,
    /// Of strangers from one address.
    pub max_per_address: usize,
    /// How long a connection may remain a stranger.
    pub unknown_timeout: Duration,
}

/// The open connections.
#[derive(Debug)]
pub struct Peers {
    connection_limits: ConnectionLimits,
    open: Mutex<Open>,
    /// Notified when a connection has closed.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// By number, so the oldest comes first.
    peers: BTreeMap<u64, Arc<Peer>>,
}

/// One connection.
#[derive(Debug)]
pub struct Peer {
    address: IpAddr,
    known: AtomicBool,
    state: Mutex<State>,
    must_close: Notify,
}

#[derive(Debug)]
struct State {
    /// Whether a request is being answered.
    is_answering: bool,
    /// Since when the server has been waiting for the rest of its request.
    reading: Option<Instant>,
    /// Whether an answer is being written.
    writing: bool,
    /// When it was last busy.
    last: Instant,
}

impl Peers {
    /// No connections yet.
    pub fn new(connection_limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            connection_limits,
            open: Mutex::default(),
            freed: Notify::new(),
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place and takes it.
    pub async fn wait_for_slot(self: &Arc<Self>, address: IpAddr) -> PeerSlot {
        loop {
            if let Some(peer_slot) = self.admit(address) {
                return peer_slot;
            }
            tokio::select! {
                () = self.freed.notified() => {}
                () = sleep(IDLE_CHECK_INTERVAL) => {}
            }
        }
    }

    /// Takes a place, and closes another connection if necessary; `None` if every connection is
    /// busy.
    fn admit(self: &Arc<Self>, address: IpAddr) -> Option<PeerSlot> {
        let mut open = self.open();
        let strangers = || open.peers.iter().filter(|(_, peer)| !peer.is_known());
        let oldest = strangers().map(|(number, _)| *number).next();
        let neighbours = || strangers().filter(|(_, peer)| peer.address == address);
        let leaves = if neighbours().count() >= self.connection_limits.max_per_address {
            neighbours().map(|(number, _)| *number).next()
        } else if strangers().count() >= self.connection_limits.max_unknown {
            oldest
        } else if open.peers.len() >= self.connection_limits.max_total {
            let idle = open
                .peers
                .iter()
                .filter_map(|(number, peer)| Some((peer.idle_since()?, *number)));
            let incomplete = open
                .peers
                .iter()
                .filter_map(|(number, peer)| Some((peer.state().reading?, *number)));
            let longest_idle = idle.min().or_else(|| incomplete.min());
            Some(oldest.or_else(|| longest_idle.map(|(_, number)| number))?)
        } else {
            None
        };
        if let Some(peer) = leaves.and_then(|number| open.peers.remove(&number)) {
            peer.must_close.notify_one();
        }
        let peer = Arc::new(Peer {
            address,
            known: AtomicBool::new(false),
            state: Mutex::new(State {
                is_answering: false,
                reading: None,
                writing: false,
                last: Instant::now(),
            }),
            must_close: Notify::new(),
        });
        open.next += 1;
        let number = open.next;
        open.peers.insert(number, Arc::clone(&peer));
        Some(PeerSlot {
            peers: Arc::clone(self),
            peer,
            number,
        })
    }
}

impl Peer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of the client.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Marks that it has shown the token.
    pub fn mark_known(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }

    /// When it became idle; `None` while it is busy.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (!state.is_answering && !state.writing).then_some(state.last)
    }

    /// Sets whether an answer is being written to it.
    pub fn set_writing(&self, writing: bool) {
        let mut state = self.state();
        state.writing = writing;
        state.last = Instant::now();
    }
}

/// The place of one connection. It is free again when this is dropped.
#[derive(Debug)]
pub struct PeerSlot {
    peers: Arc<Peers>,
    /// The connection that has the place.
    pub peer: Arc<Peer>,
    number: u64,
}

impl PeerSlot {
    /// Waits until the connection must be closed: another one needs its place, or it has been a
    /// stranger for too long.
    pub async fn must_close(&self) {
        let too_long = async {
            sleep(self.peers.connection_limits.unknown_timeout).await;
            if self.peer.is_known() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.peer.must_close.notified() => {}
            () = too_long => {}
        }
    }

    /// Answers the requests of the connection. A client may take so long to send the head of a
    /// request, and must read its answers at least so fast.
    pub fn serve<S, B>(
        &self,
        stream: TcpStream,
        head: Duration,
        pace: ReadRate,
        answer: S,
    ) -> Guarded<S>
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
        B: Body + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let _ = stream.set_nodelay(true);
        let stream = SlowReaderGuard::new(stream, Arc::clone(&self.peer), pace);
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), answer)
    }
}

impl Drop for PeerSlot {
    fn drop(&mut self) {
        self.peers.open().peers.remove(&self.number);
        self.peers.freed.notify_one();
    }
}

/// Marks that the server waits for the body of a connection's request, until this is dropped.
#[derive(Debug)]
pub struct ReadingGuard<'a>(&'a Peer);

impl<'a> ReadingGuard<'a> {
    /// Marks the connection.
    pub fn new(peer: &'a Peer) -> Self {
        peer.state().reading = Some(Instant::now());
        Self(peer)
    }
}

impl Drop for ReadingGuard<'_> {
    fn drop(&mut self) {
        self.0.state().reading = None;
    }
}

/// Marks a connection as being answered until this is dropped.
#[derive(Debug)]
pub struct AnsweringGuard<'a>(&'a Peer);

impl<'a> AnsweringGuard<'a> {
    /// Marks the connection.
    pub fn new(peer: &'a Peer) -> Self {
        peer.state().is_answering = true;
        Self(peer)
    }
}

impl Drop for AnsweringGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        (state.is_answering, state.last) = (false, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection_limits() -> ConnectionLimits {
        ConnectionLimits {
            max_total: 6,
            max_unknown: 4,
            max_per_address: 2,
            unknown_timeout: Duration::from_millis(100),
        }
    }

    fn from(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    /// Whether the connection must be closed.
    async fn must_close_now(peer_slot: &PeerSlot) -> bool {
        tokio::time::timeout(
            Duration::from_millis(5),
            peer_slot.peer.must_close.notified(),
        )
        .await
        .is_ok()
    }

    #[tokio::test]
    async fn the_oldest_unknown_connection_of_the_same_address_closes_first() {
        let peers = Peers::new(connection_limits());
        let mut guests = Vec::new();
        for address in [1, 1, 2, 3] {
            guests.push(peers.wait_for_slot(from(address)).await);
        }
        guests.push(peers.wait_for_slot(from(1)).await);
        assert!(
            must_close_now(&guests[0]).await,
            "the older one of the same address"
        );
        guests.push(peers.wait_for_slot(from(4)).await);
        assert!(must_close_now(&guests[1]).await, "the oldest of all");
        for peer_slot in &guests[2..] {
            assert!(!must_close_now(peer_slot).await);
        }
    }

    #[tokio::test]
    async fn a_known_client_outlasts_unknown_ones_and_stays_while_answered() {
        let peers = Peers::new(connection_limits());
        let mut known = Vec::new();
        for _ in 0..5 {
            known.push(peers.wait_for_slot(from(1)).await);
            known.last().unwrap().peer.mark_known();
        }
        let stranger = peers.wait_for_slot(from(2)).await;
        known.push(peers.wait_for_slot(from(1)).await);
        known.last().unwrap().peer.mark_known();
        assert!(must_close_now(&stranger).await);
        // Among those that showed a token, the one that has been idle longest is closed.
        let first = AnsweringGuard::new(&known[0].peer);
        known[1].peer.set_writing(true);
        let next = peers.wait_for_slot(from(3)).await;
        assert!(must_close_now(&known[2]).await);
        for peer_slot in [&known[0], &known[1], &known[3], &next] {
            assert!(!must_close_now(peer_slot).await);
        }
        // While every connection is being answered, the next one waits.
        next.peer.mark_known();
        let busy: Vec<AnsweringGuard<'_>> = [&known[3], &known[4], &known[5], &next]
            .map(|peer_slot| AnsweringGuard::new(&peer_slot.peer))
            .into();
        assert!(peers.admit(from(4)).is_none());
        // One whose request is not complete makes room.
        let reading = [&known[4], &known[3]].map(|peer_slot| ReadingGuard::new(&peer_slot.peer));
        let more = peers.admit(from(4)).unwrap();
        more.peer.mark_known();
        let busy_too = AnsweringGuard::new(&more.peer);
        assert!(must_close_now(&known[4]).await && !must_close_now(&known[3]).await);
        drop(reading);
        assert!(peers.admit(from(4)).is_none());
        drop(first);
        assert!(peers.admit(from(4)).is_some());
        drop((busy, busy_too));
    }

    #[tokio::test]
    async fn an_unknown_connection_closes_after_a_while() {
        let peers = Peers::new(connection_limits());
        let (stranger, known) = (
            peers.wait_for_slot(from(1)).await,
            peers.wait_for_slot(from(1)).await,
        );
        known.peer.mark_known();
        let timeout = Duration::from_secs(10);
        tokio::time::timeout(timeout, stranger.must_close())
            .await
            .unwrap();
        assert!(
            tokio::time::timeout(connection_limits().unknown_timeout * 2, known.must_close())
                .await
                .is_err()
        );
        drop((stranger, known));
        assert!(peers.open().peers.is_empty());
    }
}
