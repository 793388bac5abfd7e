//! Limits what a server may send. rmcp starts a task for each request of the server and keeps
//! reading. Without a limit, a server that sends requests and reads no answers would fill this
//! process's memory, and so would a line that does not end.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::model::{JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::MAX_MESSAGE_BYTES;

const MAX_PER_MINUTE: u32 = 20_000;
/// How many notifications a request counts as: it is answered, which takes memory until the server
/// reads.
const REQUEST_WEIGHT: u32 = 20;
/// How long the end of its input may wait for what is being written to it.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// The state that a transport shares with the owner of the connection.
#[derive(Default)]
pub struct Gate {
    /// Notified when the server says that its tools changed.
    pub changed: Notify,
    /// How many bytes came since the last answer to a request.
    unanswering: AtomicUsize,
    /// Why reading stopped.
    pub reason: Mutex<Option<String>>,
}

/// The output of a server. It ends if too much comes before an answer is complete.
pub struct Limited<R> {
    pub output: R,
    pub gate: Arc<Gate>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Limited<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        let total = read + self.gate.unanswering.fetch_add(read, Ordering::Relaxed);
        if total > MAX_MESSAGE_BYTES {
            let reason = format!(
                "it sent more than {MAX_MESSAGE_BYTES} bytes before an answer was complete"
            );
            *self.gate.reason.lock() = Some(reason);
            // Nothing more is the end of the output.
            buffer.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}

pub struct Bounded<T> {
    inner: T,
    gate: Arc<Gate>,
    asked: HashSet<RequestId>,
    /// The start of the current minute, and the weight of the messages since then.
    minute: (Instant, u32),
}

impl<T> Bounded<T> {
    pub fn new(inner: T, gate: Arc<Gate>) -> Self {
        Self { inner, gate, asked: HashSet::new(), minute: (Instant::now(), 0) }
    }

    /// Counts a message that is no answer. `false` if there are too many.
    fn count(&mut self, weight: u32) -> bool {
        let (since, before) = self.minute;
        self.minute = if since.elapsed() < Duration::from_secs(60) {
            (since, before + weight)
        } else {
            (Instant::now(), weight)
        };
        let is_within_limit = self.minute.1 <= MAX_PER_MINUTE;
        if !is_within_limit {
            let requests = MAX_PER_MINUTE / REQUEST_WEIGHT;
            *self.gate.reason.lock() = Some(format!(
                "it sent more than {requests} requests or {MAX_PER_MINUTE} notifications in a minute"
            ));
        }
        is_within_limit
    }

    /// Records the answer to a request. An answer without a request counts as noise.
    fn answered(&mut self, id: &RequestId) {
        if self.asked.remove(id) {
            self.gate.unanswering.store(0, Ordering::Relaxed);
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message {
            self.asked.insert(request.id.clone());
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            match &message {
                JsonRpcMessage::Request(_) if !self.count(REQUEST_WEIGHT) => return None,
                JsonRpcMessage::Request(_) => {}
                JsonRpcMessage::Notification(_) if !self.count(1) => return None,
                JsonRpcMessage::Notification(notification) => {
                    if matches!(
                        notification.notification,
                        ServerNotification::ToolListChangedNotification(_)
                    ) {
                        self.gate.changed.notify_one();
                    }
                    continue;
                }
                JsonRpcMessage::Response(response) => self.answered(&response.id),
                JsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        self.answered(id);
                    }
                }
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A writer may wait forever for a server that does not read.
        timeout(CLOSE_TIMEOUT, self.inner.close()).await.unwrap_or(Ok(()))
    }
}
