//! Sends and receives bodies: counts them, limits their bandwidth, and cuts them off on purpose.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body, Bytes, Frame, Incoming};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::log::Entry;
use crate::server::Shared;

/// How many bytes are sent at once.
const CHUNK: usize = 64 << 10;
/// How long a connection stays open after the last byte of a cut body, so that this byte is sent.
const LAST_BYTE: Duration = Duration::from_millis(5);

/// The body of an answer.
pub(crate) type Outgoing = UnsyncBoxBody<Bytes, io::Error>;

/// One direction of the network line that all connections share.
#[derive(Debug)]
pub(crate) struct Throttle(Mutex<Pace>);

#[derive(Debug)]
struct Pace {
    /// Bytes per second.
    rate: Option<u64>,
    available_at: Instant,
}

impl Default for Throttle {
    fn default() -> Self {
        Self(Mutex::new(Pace {
            rate: None,
            available_at: Instant::now(),
        }))
    }
}

impl Throttle {
    pub(crate) fn set_rate(&self, rate: Option<u64>) {
        let mut pace = self.0.lock();
        pace.rate = rate.filter(|rate| *rate > 0);
        pace.available_at = Instant::now();
    }

    /// Waits until this many bytes have passed.
    async fn pass(&self, bytes: usize) {
        let arrival = self.reserve(bytes);
        if let Some(arrival) = arrival {
            tokio::time::sleep_until(arrival).await;
        }
    }

    fn reserve(&self, bytes: usize) -> Option<Instant> {
        let mut pace = self.0.lock();
        let rate = pace.rate?;
        let nanoseconds = (bytes as u64).saturating_mul(1_000_000_000) / rate;
        pace.available_at =
            pace.available_at.max(Instant::now()) + Duration::from_nanos(nanoseconds);
        Some(pace.available_at)
    }
}

/// The whole body of a request.
///
/// # Errors
/// The connection ended early.
pub(crate) async fn receive(
    shared: &Shared,
    mut incoming: Incoming,
    entry: &Entry,
) -> Result<Bytes, hyper::Error> {
    let expected = incoming.size_hint().exact().unwrap_or_default();
    let mut all = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    while let Some(frame) = incoming.frame().await {
        if let Ok(bytes) = frame?.into_data() {
            shared.upload_throttle.pass(bytes.len()).await;
            entry.note(|request| request.bytes_in += bytes.len() as u64);
            all.extend_from_slice(&bytes);
        }
    }
    Ok(all.into())
}

/// A body that is being sent.
struct OutgoingBody {
    shared: Arc<Shared>,
    entry: Entry,
    rest: Bytes,
    /// How many bytes may still be sent before the connection is closed.
    allowed: Option<u64>,
}

/// A body for hyper; the connection is closed after `cut` bytes.
pub(crate) fn send(shared: Arc<Shared>, entry: Entry, body: Bytes, cut: Option<u64>) -> Outgoing {
    let sending = OutgoingBody {
        shared,
        entry,
        rest: body,
        allowed: cut,
    };
    BodyExt::boxed_unsync(StreamBody::new(stream::unfold(sending, next)))
}

/// The next piece of a body; `None` after the last one.
async fn next(mut sending: OutgoingBody) -> Option<(io::Result<Frame<Bytes>>, OutgoingBody)> {
    if sending.rest.is_empty() {
        return None;
    }
    if sending.allowed == Some(0) {
        tokio::time::sleep(LAST_BYTE).await;
        sending.rest.clear();
        return Some((Err(io::ErrorKind::ConnectionAborted.into()), sending));
    }
    let allowed = usize::try_from(sending.allowed.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let piece = sending
        .rest
        .split_to(sending.rest.len().min(CHUNK).min(allowed));
    sending.shared.thawed().await;
    sending.shared.download_throttle.pass(piece.len()).await;
    let length = piece.len() as u64;
    sending.allowed = sending
        .allowed
        .map(|allowed| allowed.saturating_sub(length));
    sending.entry.note(|request| request.bytes_out += length);
    Some((Ok(Frame::data(piece)), sending))
}
