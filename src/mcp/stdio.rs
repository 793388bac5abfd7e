//! Standard input and output, the transport of the MCP specification ("Transports", stdio): one
//! JSON message per line.
//!
//! If rmcp's own line transport cannot decode a line, it answers without the id or not at all, and
//! the client waits forever. This transport decodes each line with [`super::message`] and answers
//! invalid ones with an error. It notices when standard input ends, so that the process ends too.
//! Until the handshake is over, it ignores everything except requests. It stops reading while too
//! many answers are open ([`OpenRequests`]).

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rmcp::model::{
    ClientNotification, ClientRequest, GetMeta, JsonRpcMessage, JsonRpcRequest, ProtocolVersion,
    RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::sleep;

use super::message::{MAX_MESSAGE_BYTES, TooLong, decode, failure, memory_size};

const MAX_OPEN: usize = 128;
/// Maximum memory of their requests, in bytes. A single request may take more.
const MAX_OPEN_BYTES: usize = 16 << 20;
/// How often to check the other end of standard input while it is not being read.
const CLOSED_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long a request waits for the answer to an earlier one with the same id.
const SAME_ID_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    Open,
    Ended,
    /// It has ended, and its other end was closed before the first message was read: the messages
    /// were piped in.
    PipedAndEnded,
}

/// Waits for the end of standard input. Returns whether its messages were piped in.
pub async fn end_of(input: &mut watch::Receiver<Input>) -> bool {
    // If the sender is dropped, no one reads any more, which also counts as the end.
    let input = input.wait_for(|input| *input != Input::Open).await;
    input.is_ok_and(|input| *input == Input::PipedAndEnded)
}

/// Whether the other end of this process's standard input is closed, even if there is more to read.
pub fn is_closed() -> bool {
    let input = std::io::stdin();
    #[cfg(target_os = "linux")]
    let flags = PollFlags::from_bits_retain(nix::libc::POLLRDHUP);
    #[cfg(not(target_os = "linux"))]
    let flags = PollFlags::empty();
    let mut input = [PollFd::new(input.as_fd(), flags)];
    let is_readable = poll(&mut input, PollTimeout::ZERO).is_ok();
    let events = input.first().and_then(PollFd::revents).unwrap_or(PollFlags::empty());
    is_readable && events.intersects(flags | PollFlags::POLLHUP | PollFlags::POLLERR)
}

/// The transport over a pair of streams, such as this process's standard input and output.
/// `is_closed` checks the other end of the first one while it is not being read.
pub fn transport(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    is_closed: fn() -> bool,
) -> (impl Transport<RoleServer, Error = std::io::Error> + 'static, watch::Receiver<Input>) {
    let (closed, receiver) = watch::channel(Input::Open);
    let lines = Lines {
        reader: BufReader::new(reader),
        writer: Arc::new(Mutex::new(writer)),
        closed,
        is_closed,
        open_requests: Arc::default(),
        held_request: None,
        line: Vec::new(),
        too_long: None,
        is_piped: None,
        open: false,
    };
    (lines, receiver)
}

struct Lines<R, W> {
    reader: BufReader<R>,
    writer: Arc<Mutex<W>>,
    closed: watch::Sender<Input>,
    is_closed: fn() -> bool,
    open_requests: Arc<OpenRequests>,
    held_request: Option<HeldRequest>,
    /// The part of the current line read so far. A call of `receive` may be dropped before the line
    /// is complete.
    line: Vec<u8>,
    /// What is kept of it instead if it is too long.
    too_long: Option<TooLong>,
    /// Whether the other end was closed before the first message was read.
    is_piped: Option<bool>,
    /// Whether the handshake is over. Before that, a notification or a stray response would make
    /// rmcp, and the process, end.
    open: bool,
}

/// A request that waits until its id is free: an earlier one with the same id may still be open.
struct HeldRequest {
    request: JsonRpcRequest<ClientRequest>,
    bytes: usize,
    since: Instant,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    /// Waits until an answer has been sent, or for a moment; false if the other end is closed.
    async fn wait(&mut self) -> bool {
        tokio::select! {
            () = self.open_requests.answer_sent.notified() => true,
            () = sleep(CLOSED_CHECK_INTERVAL) => {
                let closed = (self.is_closed)();
                if closed {
                    self.end();
                }
                !closed
            }
        }
    }

    /// Reads until the line is complete; false at the end of input with nothing left.
    async fn read_line(&mut self) -> bool {
        while *self.closed.borrow() == Input::Open {
            let Ok(available) = self.reader.fill_buf().await else {
                self.end();
                return false;
            };
            if available.is_empty() {
                self.end();
                // The last line may lack a line end.
                return !self.line.is_empty() || self.too_long.is_some();
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let piece = available.get(..newline.unwrap_or(available.len())).unwrap_or_default();
            if let Some(long) = &mut self.too_long {
                long.add(piece);
            } else if self.line.len() + piece.len() > MAX_MESSAGE_BYTES {
                let long = self.too_long.get_or_insert_default();
                long.add(&std::mem::take(&mut self.line));
                long.add(piece);
            } else {
                self.line.extend_from_slice(piece);
            }
            let used = newline.map_or(available.len(), |newline| newline + 1);
            self.reader.consume(used);
            if newline.is_some() {
                return true;
            }
        }
        false
    }

    fn end(&mut self) {
        // The end of a single message without a line end comes before the message.
        let is_piped = *self.is_piped.get_or_insert(true);
        self.closed.send_replace(if is_piped { Input::PipedAndEnded } else { Input::Ended });
    }
}

impl<R, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    fn answer(&self, answer: &Value) {
        let (writer, open) = (Arc::clone(&self.writer), Arc::clone(&self.open_requests));
        open.add(None, 0);
        let answer = answer.to_string().into_bytes();
        // In its own task, because the caller may be dropped in the middle of a write, which would
        // leave half a line.
        tokio::spawn(async move {
            let written = write(&mut *writer.lock().await, answer).await;
            open.remove(None);
            written
        });
    }

    fn refuse(&self, id: &RequestId, why: &str) {
        let id = serde_json::to_value(id).unwrap_or_default();
        self.answer(&failure(&id, -32600, why));
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (writer, open) = (Arc::clone(&self.writer), Arc::clone(&self.open_requests));
        async move {
            let id = match &message {
                JsonRpcMessage::Response(response) => Some(response.id.clone()),
                JsonRpcMessage::Error(error) => error.id.clone(),
                _ => None,
            };
            // Encode it only when it is its turn, so that waiting answers are not in memory twice.
            let mut writer = writer.lock().await;
            let encoded = match serde_json::to_vec(&message) {
                Ok(message) => write(&mut *writer, message).await,
                Err(error) => Err(error.into()),
            };
            if id.is_some() {
                open.remove(id.as_ref());
            }
            encoded
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(held) = self.held_request.take() {
                if self.open_requests.add(Some(held.request.id.clone()), held.bytes) {
                    return Some(JsonRpcMessage::Request(held.request));
                }
                if held.since.elapsed() > SAME_ID_TIMEOUT {
                    self.refuse(&held.request.id, "a request with this id is not answered yet");
                    continue;
                }
                self.held_request = Some(held);
            }
            if self.held_request.is_some() || !self.open_requests.has_room() {
                if !self.wait().await {
                    return None;
                }
                continue;
            }
            if !self.read_line().await {
                // After this the answers that are not ready are dropped.
                while self.open_requests.are_open() {
                    self.open_requests.answer_sent.notified().await;
                }
                return None;
            }
            self.is_piped.get_or_insert_with(self.is_closed);
            let line = std::mem::take(&mut self.line);
            let decoded = match self.too_long.take() {
                Some(long) => Err(Some(long.answer())),
                None => decode(&line).map(|(_, message)| message),
            };
            match decoded {
                Ok(JsonRpcMessage::Request(request))
                    if !self.open && precedes_the_handshake(&request.request) =>
                {
                    self.refuse(&request.id, "the first request of a session is `initialize`");
                }
                Ok(JsonRpcMessage::Request(request)) => {
                    self.open |= ends_the_handshake(&request.request);
                    self.held_request = Some(HeldRequest {
                        request,
                        bytes: memory_size(&line),
                        since: Instant::now(),
                    });
                }
                Ok(message) if self.open => {
                    if let JsonRpcMessage::Notification(notification) = &message
                        && let ClientNotification::CancelledNotification(cancelled) =
                            &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        // A cancelled request is not answered.
                        self.open_requests.remove(Some(id));
                    }
                    return Some(message);
                }
                Err(Some(answer)) => self.answer(&answer),
                Ok(_) | Err(None) => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.writer.lock().await.flush().await
    }
}

/// Whether this request ends rmcp's handshake: `initialize`, or any other that describes its client
/// fully. rmcp answers `ping` and `server/discover` and keeps waiting.
fn ends_the_handshake(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => {
            let meta = other.get_meta();
            let version = meta.protocol_version();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && version.is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        }
    }
}

/// Whether this request needs a handshake: it does not name a version of the protocol.
fn precedes_the_handshake(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_)
        | ClientRequest::PingRequest(_)
        | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().protocol_version().is_none(),
    }
}

async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    mut message: Vec<u8>,
) -> std::io::Result<()> {
    message.push(b'\n');
    writer.write_all(&message).await?;
    writer.flush().await
}

/// Requests that were read but not answered yet. Their number and size are limited. When a limit is
/// reached, nothing more is read. So a client that sends faster than it reads, or than we answer,
/// blocks on its own writes and does not fill our memory.
#[derive(Debug, Default)]
struct OpenRequests {
    /// The id and the bytes of each. One that is not a valid request has no id.
    requests: parking_lot::Mutex<Vec<(Option<RequestId>, usize)>>,
    answer_sent: Notify,
}

impl OpenRequests {
    fn has_room(&self) -> bool {
        let requests = self.requests.lock();
        let bytes: usize = requests.iter().map(|(_, bytes)| bytes).sum();
        requests.len() < MAX_OPEN && bytes < MAX_OPEN_BYTES
    }

    fn are_open(&self) -> bool {
        !self.requests.lock().is_empty()
    }

    /// Adds a request of this many bytes; false if another request with the same id is still open.
    fn add(&self, id: Option<RequestId>, bytes: usize) -> bool {
        let mut requests = self.requests.lock();
        let is_new = id.is_none() || requests.iter().all(|(other, _)| *other != id);
        if is_new {
            requests.push((id, bytes));
        }
        is_new
    }

    /// Removes a request that was answered or cancelled.
    fn remove(&self, id: Option<&RequestId>) {
        let mut requests = self.requests.lock();
        if let Some(place) = requests.iter().position(|(other, _)| other.as_ref() == id) {
            requests.swap_remove(place);
            self.answer_sent.notify_one();
        }
    }
}
