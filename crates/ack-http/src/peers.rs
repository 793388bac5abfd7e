//! Accepts the connections of a server and reads requests, within limits.
//!
//! A connection belongs to a stranger until one of its requests passes the gate and shows the
//! token. Strangers have limits: in total, per address, and in time. The oldest stranger makes room
//! for the next one. So clients without a token cannot keep out clients that have one. If every
//! place is taken, a stranger is closed first, then the connection that has waited longest for a
//! complete request. A client that does not read its answers is disconnected by the system.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

/// How often to look for an idle connection while every place is taken, and how long to wait if
/// none can be accepted.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 64 << 10;

/// The limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// How many there may be.
    pub max_total: usize,
    /// How many strangers.
    pub max_unknown: usize,
    /// How many strangers from one address.
    pub max_per_address: usize,
    /// How long a connection may remain a stranger.
    pub unknown_timeout: Duration,
    /// How long a client may take to send the head of a request, and how long a connection may be
    /// idle before it.
    pub head_timeout: Duration,
    /// How long a client may read nothing of an answer. Only Linux has this limit.
    pub unread_timeout: Duration,
}

/// Accepts connections until `stop` ends, and answers their requests. Returns what `stop` returns,
/// and the connections that are still open.
///
/// # Errors
/// The listener cannot be used.
pub async fn serve<T, A, F, B>(
    listener: TcpListener,
    limits: ConnectionLimits,
    stop: impl Future<Output = T>,
    answer: A,
) -> std::io::Result<(T, GracefulShutdown)>
where
    A: Fn(Request<Incoming>, Arc<Peer>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let peers = Peers::new(limits);
    let open = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let next = async {
            let (stream, address) = listener.accept().await?;
            Ok::<_, std::io::Error>((stream, peers.place(address.ip()).await))
        };
        let accepted = tokio::select! {
            next = next => next,
            ended = &mut stop => return Ok((ended, open)),
        };
        let Ok((stream, place)) = accepted else {
            // The process is out of file descriptors, or the client has already gone.
            sleep(RETRY_INTERVAL).await;
            continue;
        };
        limit_unread(&stream, limits.unread_timeout);
        let (answer, peer) = (answer.clone(), Arc::clone(&place.peer));
        let answer = service_fn(move |request| {
            let answer = answer(request, Arc::clone(&peer));
            async { Ok::<_, Infallible>(answer.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_timeout)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), answer);
        let connection = open.watch(connection);
        tokio::spawn(async move {
            tokio::select! {
                // A client that disconnects is not an error.
                _ = connection => {}
                () = place.must_close() => {}
            }
        });
        // Let the new connection run before the next one is accepted, which may take its place.
        tokio::task::yield_now().await;
    }
}

/// Why the body of a request cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It has more bytes than this.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// The client stopped sending it.
    #[error("the body was cut off")]
    CutOff,
    /// It took longer than this.
    #[error("the body took longer than {} seconds", .0.as_secs_f32())]
    TooSlow(Duration),
}

impl BodyError {
    /// The status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::CutOff => StatusCode::BAD_REQUEST,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
        }
    }
}

/// The turns of large bodies, so that few of them are in memory at once.
#[derive(Debug, Clone, Copy)]
pub struct Turns<'a> {
    /// A longer body waits for its turn.
    pub bytes: usize,
    /// The turns that are left.
    pub left: &'a Semaphore,
}

/// Reads the body of a request. A large one takes a turn once that much of it has arrived, so that
/// a client which only announces one keeps nobody waiting. The caller gives the turn back.
///
/// # Errors
/// It is too long, or is not sent in time.
pub async fn read_body<'a>(
    body: Incoming,
    bytes: usize,
    limit: Duration,
    turns: Option<Turns<'a>>,
) -> Result<(Bytes, Option<SemaphorePermit<'a>>), BodyError> {
    if body.size_hint().lower() > bytes as u64 {
        return Err(BodyError::TooLong(bytes));
    }
    let mut body = Limited::new(body, bytes);
    let reading = async {
        let mut read = Vec::new();
        let mut turn = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    BodyError::TooLong(bytes)
                } else {
                    BodyError::CutOff
                }
            })?;
            let Ok(piece) = frame.into_data() else {
                continue;
            };
            let is_large = |turns: &Turns<'a>| read.len() + piece.len() > turns.bytes;
            if turn.is_none()
                && let Some(turns) = turns.filter(is_large)
            {
                turn = turns.left.acquire().await.ok();
            }
            read.extend_from_slice(&piece);
        }
        Ok((Bytes::from(read), turn))
    };
    let read = timeout(limit, reading).await;
    read.unwrap_or(Err(BodyError::TooSlow(limit)))
}

/// Lets the system end the connection if its client reads nothing for this long.
fn limit_unread(stream: &TcpStream, limit: Duration) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(limit));
    #[cfg(not(target_os = "linux"))]
    let _ = limit;
}

/// The open connections.
#[derive(Debug)]
struct Peers {
    limits: ConnectionLimits,
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
    state: Mutex<State>,
    must_close: Notify,
}

#[derive(Debug)]
struct State {
    /// Whether it has shown the token.
    known: bool,
    /// Since when the server waits for a complete request; `None` while it answers one.
    idle_since: Option<Instant>,
}

/// The place of one connection. It is free again when this is dropped.
#[derive(Debug)]
struct Place {
    peers: Arc<Peers>,
    peer: Arc<Peer>,
    number: u64,
}

impl Peers {
    fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            open: Mutex::default(),
            freed: Notify::new(),
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place and takes it.
    async fn place(self: &Arc<Self>, address: IpAddr) -> Place {
        loop {
            if let Some(place) = self.take_place(address) {
                return place;
            }
            tokio::select! {
                () = self.freed.notified() => {}
                () = sleep(RETRY_INTERVAL) => {}
            }
        }
    }

    /// Takes a place, and closes another connection if necessary; `None` if every connection is
    /// being answered.
    fn take_place(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut open = self.open();
        if let Some(number) = open.must_leave(&self.limits, address)?
            && let Some(peer) = open.peers.remove(&number)
        {
            peer.must_close.notify_one();
        }
        let peer = Arc::new(Peer {
            address,
            state: Mutex::new(State {
                known: false,
                idle_since: Some(Instant::now()),
            }),
            must_close: Notify::new(),
        });
        open.next += 1;
        let number = open.next;
        open.peers.insert(number, Arc::clone(&peer));
        Some(Place {
            peers: Arc::clone(self),
            peer,
            number,
        })
    }
}

impl Open {
    /// The connection that makes room for another from this address, if one must; `None` if one
    /// must and all are being answered.
    fn must_leave(&self, limits: &ConnectionLimits, address: IpAddr) -> Option<Option<u64>> {
        let strangers = || self.peers.iter().filter(|(_, peer)| !peer.state().known);
        let oldest = strangers().map(|(number, _)| *number).next();
        let neighbours = || strangers().filter(|(_, peer)| peer.address == address);
        if neighbours().count() >= limits.max_per_address {
            return Some(neighbours().map(|(number, _)| *number).next());
        }
        if strangers().count() >= limits.max_unknown {
            return Some(oldest);
        }
        if self.peers.len() < limits.max_total {
            return Some(None);
        }
        let idle = self.peers.iter().filter_map(|(number, peer)| {
            let since = peer.state().idle_since?;
            Some((since, *number))
        });
        let longest_idle = idle.min().map(|(_, number)| number);
        oldest.or(longest_idle).map(Some)
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
        self.state().known = true;
    }

    /// Marks that it has sent a complete request, which is being answered until this is dropped.
    pub fn answering(&self) -> Answering<'_> {
        self.state().idle_since = None;
        Answering(self)
    }
}

/// A connection whose request is being answered.
#[derive(Debug)]
pub struct Answering<'a>(&'a Peer);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.state().idle_since = Some(Instant::now());
    }
}

impl Place {
    /// Waits until the connection must be closed: another one needs its place, or it has been a
    /// stranger for too long.
    async fn must_close(&self) {
        let too_long = async {
            sleep(self.peers.limits.unknown_timeout).await;
            if self.peer.state().known {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.peer.must_close.notified() => {}
            () = too_long => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.peers.open().peers.remove(&self.number);
        self.peers.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> ConnectionLimits {
        ConnectionLimits {
            max_total: 6,
            max_unknown: 4,
            max_per_address: 2,
            unknown_timeout: Duration::from_millis(100),
            head_timeout: Duration::from_secs(1),
            unread_timeout: Duration::from_secs(1),
        }
    }

    fn from(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    /// Whether the connection must be closed.
    async fn must_close_now(place: &Place) -> bool {
        let closes = place.peer.must_close.notified();
        timeout(Duration::from_millis(5), closes).await.is_ok()
    }

    #[tokio::test]
    async fn the_oldest_unknown_connection_of_the_same_address_closes_first() {
        let peers = Peers::new(limits());
        let mut guests = Vec::new();
        for address in [1, 1, 2, 3] {
            guests.push(peers.place(from(address)).await);
        }
        guests.push(peers.place(from(1)).await);
        assert!(
            must_close_now(&guests[0]).await,
            "the older one of the same address"
        );
        guests.push(peers.place(from(4)).await);
        assert!(must_close_now(&guests[1]).await, "the oldest of all");
        for place in &guests[2..] {
            assert!(!must_close_now(place).await);
        }
    }

    #[tokio::test]
    async fn a_known_client_outlasts_unknown_ones_and_stays_while_answered() {
        let peers = Peers::new(limits());
        let mut known = Vec::new();
        for _ in 0..5 {
            known.push(peers.place(from(1)).await);
            known.last().unwrap().peer.mark_known();
        }
        let stranger = peers.place(from(2)).await;
        known.push(peers.place(from(1)).await);
        known.last().unwrap().peer.mark_known();
        assert!(must_close_now(&stranger).await);
        // Among those that showed a token, the one that has been idle longest is closed.
        let first = known[0].peer.answering();
        let next = peers.place(from(3)).await;
        assert!(must_close_now(&known[1]).await);
        for place in [&known[0], &known[2], &next] {
            assert!(!must_close_now(place).await);
        }
        // While every connection is being answered, the next one waits.
        next.peer.mark_known();
        let busy = [&known[2], &known[3], &known[4], &known[5], &next];
        let busy = busy.map(|place| place.peer.answering());
        assert!(peers.take_place(from(4)).is_none());
        drop(first);
        assert!(peers.take_place(from(4)).is_some());
        drop(busy);
    }

    #[tokio::test]
    async fn an_unknown_connection_closes_after_a_while() {
        let peers = Peers::new(limits());
        let (stranger, known) = (peers.place(from(1)).await, peers.place(from(1)).await);
        known.peer.mark_known();
        let closes = timeout(Duration::from_secs(10), stranger.must_close());
        closes.await.unwrap();
        let closes = timeout(limits().unknown_timeout * 2, known.must_close());
        assert!(closes.await.is_err());
        drop((stranger, known));
        assert!(peers.open().peers.is_empty());
    }
}
