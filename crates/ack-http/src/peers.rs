//! Accepts the connections of a server and reads requests, within limits.
//!
//! A connection belongs to a stranger until one of its requests passes the gate and shows the
//! token, which it has to do soon. If every place is taken, or every place for strangers, the oldest
//! stranger makes room for the next connection, or else the one that has waited longest for a
//! complete request. So clients without a token cannot keep out clients that have one. A client that
//! does not read its answers is disconnected by the system.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

/// How often to look for an idle connection while every place is taken, and how long to wait if
/// none can be accepted.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

const MAX_HEAD: usize = 64 << 10;

#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    pub max_total: usize,
    pub max_unknown: usize,
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
            let (stream, _) = listener.accept().await?;
            Ok::<_, std::io::Error>((stream, peers.place().await))
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

#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    #[error("the body was cut off")]
    CutOff,
    #[error("the body took longer than {} seconds", .0.as_secs_f32())]
    TooSlow(Duration),
}

impl BodyError {
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
    pub left: &'a Semaphore,
}

/// Reads the body of a request. A large one takes a turn once that much of it has arrived, so that
/// a client which only announces one keeps nobody waiting. The caller gives the turn back.
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
            if turn.is_none()
                && let Some(turns) = turns
                && read.len() + piece.len() > turns.bytes
            {
                turn = turns.left.acquire().await.ok();
            }
            read.extend_from_slice(&piece);
        }
        Ok((Bytes::from(read), turn))
    };
    timeout(limit, reading).await.unwrap_or(Err(BodyError::TooSlow(limit)))
}

/// Lets the system end the connection if its client reads nothing for this long.
fn limit_unread(stream: &TcpStream, limit: Duration) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(limit));
    #[cfg(not(target_os = "linux"))]
    let _ = limit;
}

#[derive(Debug)]
struct Peers {
    limits: ConnectionLimits,
    /// The oldest comes first.
    open: Mutex<Vec<Arc<Peer>>>,
    freed: Notify,
}

#[derive(Debug)]
pub struct Peer {
    /// Whether it has shown the token.
    known: AtomicBool,
    /// Since when the server waits for a complete request; `None` while it answers one.
    idle_since: Mutex<Option<Instant>>,
    must_close: Notify,
}

/// The place of one connection. It is free again when this is dropped.
#[derive(Debug)]
struct Place {
    peers: Arc<Peers>,
    peer: Arc<Peer>,
}

impl Peers {
    fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default(), freed: Notify::new() })
    }

    async fn place(self: &Arc<Self>) -> Place {
        loop {
            if let Some(place) = self.take_place() {
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
    fn take_place(self: &Arc<Self>) -> Option<Place> {
        let mut open = self.open.lock();
        let strangers = open.iter().filter(|peer| !peer.is_known()).count();
        if open.len() >= self.limits.max_total || strangers >= self.limits.max_unknown {
            let place = least_needed(&open)?;
            open.remove(place).must_close.notify_one();
        }
        let peer = Arc::new(Peer {
            known: AtomicBool::new(false),
            idle_since: Mutex::new(Some(Instant::now())),
            must_close: Notify::new(),
        });
        open.push(Arc::clone(&peer));
        Some(Place { peers: Arc::clone(self), peer })
    }
}

/// Where the connection is that makes room for another: the oldest stranger, or else the one that
/// has been idle longest; `None` if all are being answered.
fn least_needed(open: &[Arc<Peer>]) -> Option<usize> {
    let stranger = open.iter().position(|peer| !peer.is_known());
    let idle = open.iter().enumerate();
    let idle = idle.filter_map(|(place, peer)| Some(((*peer.idle_since.lock())?, place)));
    stranger.or_else(|| idle.min().map(|(_, place)| place))
}

impl Peer {
    pub fn mark_known(&self) {
        self.known.store(true, Ordering::Release);
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// Marks that it has sent a complete request, which is being answered until this is dropped.
    pub fn answering(&self) -> Answering<'_> {
        *self.idle_since.lock() = None;
        Answering(self)
    }
}

#[derive(Debug)]
pub struct Answering<'a>(&'a Peer);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        *self.0.idle_since.lock() = Some(Instant::now());
    }
}

impl Place {
    /// Waits until the connection must be closed: another one needs its place, or it has been a
    /// stranger for too long.
    async fn must_close(&self) {
        let too_long = async {
            sleep(self.peers.limits.unknown_timeout).await;
            if self.peer.is_known() {
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
        self.peers.open.lock().retain(|other| !Arc::ptr_eq(other, &self.peer));
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
            unknown_timeout: Duration::from_millis(100),
            head_timeout: Duration::from_secs(1),
            unread_timeout: Duration::from_secs(1),
        }
    }

    async fn must_close_now(place: &Place) -> bool {
        let closes = place.peer.must_close.notified();
        timeout(Duration::from_millis(5), closes).await.is_ok()
    }

    #[tokio::test]
    async fn a_known_client_outlasts_strangers_and_stays_while_answered() {
        let peers = Peers::new(limits());
        let mut known = Vec::new();
        for _ in 0..4 {
            known.push(peers.place().await);
            known.last().unwrap().peer.mark_known();
        }
        let strangers = [peers.place().await, peers.place().await];
        for stranger in &strangers {
            known.push(peers.place().await);
            known.last().unwrap().peer.mark_known();
            assert!(must_close_now(stranger).await, "the oldest first");
        }
        // Among those that showed a token, the one that has been idle longest is closed.
        let first = known[0].peer.answering();
        let next = peers.place().await;
        assert!(must_close_now(&known[1]).await);
        for place in [&known[0], &known[2], &next] {
            assert!(!must_close_now(place).await);
        }
        // While every connection is being answered, the next one waits.
        next.peer.mark_known();
        let busy = [&known[2], &known[3], &known[4], &known[5], &next];
        let busy = busy.map(|place| place.peer.answering());
        assert!(peers.take_place().is_none());
        drop(first);
        assert!(peers.take_place().is_some());
        drop(busy);
    }

    #[tokio::test]
    async fn an_unknown_connection_closes_after_a_while() {
        let peers = Peers::new(limits());
        let (stranger, known) = (peers.place().await, peers.place().await);
        known.peer.mark_known();
        let closes = timeout(Duration::from_secs(10), stranger.must_close());
        closes.await.unwrap();
        let closes = timeout(limits().unknown_timeout * 2, known.must_close());
        assert!(closes.await.is_err());
        drop((stranger, known));
        assert!(peers.open.lock().is_empty());
    }
}
