//! Limits what a server may send. rmcp starts a task for each request of the server and keeps
//! reading. Without a limit, a server that sends requests faster than it reads answers would fill
//! this process's memory, and so would a line that does not end.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use rmcp::model::{JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::MAX_MESSAGE_BYTES;

/// How many requests of a server may be unanswered at once. Further ones are not read yet.
const MAX_OPEN_REQUESTS: usize = 32;
/// How long a server may leave that many answers unread.
const ANSWER_READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the end of its input may wait for what is being written to it.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);
const MAX_MESSAGES_PER_MINUTE: u32 = 20_000;

/// The state that a transport shares with the owner of the connection.
#[derive(Default)]
pub struct Gate {
    changed: Notify,
    /// How many bytes came since the last answer to a request.
    unanswering: AtomicUsize,
    reason: Mutex<Option<String>>,
}

impl Gate {
    /// Waits for a notification that the tools changed.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Why reading stopped.
    pub fn reason(&self) -> Option<String> {
        self.reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn shut(&self, reason: String) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }
}

/// The output of a server. It ends if too much comes before an answer is complete.
pub struct Limited<R> {
    output: R,
    gate: Arc<Gate>,
}

impl<R> Limited<R> {
    /// Wraps the output.
    pub const fn new(output: R, gate: Arc<Gate>) -> Self {
        Self { output, gate }
    }
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
            self.gate.shut(format!(
                "it sent more than {MAX_MESSAGE_BYTES} bytes before an answer was complete"
            ));
            // Nothing more is the end of the output.
            buffer.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}

/// A transport with limits.
pub struct Bounded<T> {
    inner: T,
    gate: Arc<Gate>,
    permits: Arc<Semaphore>,
    /// A permit for the next request.
    reserved: Option<OwnedSemaphorePermit>,
    /// Since when no permit has been free.
    full_since: Option<Instant>,
    /// The server's unanswered requests, each with its permit.
    unanswered: Arc<Mutex<HashMap<RequestId, OwnedSemaphorePermit>>>,
    /// Our requests that the server has not answered.
    asked: HashSet<RequestId>,
    /// The start of the current minute, and the number of messages since then.
    minute: (Instant, u32),
}

impl<T> Bounded<T> {
    /// Wraps a transport.
    pub fn new(inner: T, gate: Arc<Gate>) -> Self {
        Self {
            inner,
            gate,
            permits: Arc::new(Semaphore::new(MAX_OPEN_REQUESTS)),
            reserved: None,
            full_since: None,
            unanswered: Arc::default(),
            asked: HashSet::new(),
            minute: (Instant::now(), 0),
        }
    }

    /// Waits for a permit. `false` if that takes too long. May be dropped and called again.
    async fn reserve(&mut self) -> bool {
        if self.reserved.is_some() {
            return true;
        }
        let since = *self.full_since.get_or_insert_with(Instant::now);
        let time_left = ANSWER_READ_TIMEOUT.saturating_sub(since.elapsed());
        self.reserved = timeout(time_left, Arc::clone(&self.permits).acquire_owned())
            .await
            .ok()
            .and_then(Result::ok);
        if self.reserved.is_none() {
            self.gate.shut(format!(
                "it does not read the answers to {MAX_OPEN_REQUESTS} requests of its own"
            ));
            return false;
        }
        self.full_since = None;
        true
    }

    /// Counts a message. `false` if there are too many.
    fn count(&mut self) -> bool {
        let (since, count) = self.minute;
        self.minute = if since.elapsed() < Duration::from_secs(60) {
            (since, count + 1)
        } else {
            (Instant::now(), 1)
        };
        let is_within_limit = self.minute.1 <= MAX_MESSAGES_PER_MINUTE;
        if !is_within_limit {
            self.gate.shut(format!(
                "it sent more than {MAX_MESSAGES_PER_MINUTE} requests and notifications in a minute"
            ));
        }
        is_within_limit
    }

    /// Records a request. `false` if its id is already in use.
    fn note(&mut self, id: &RequestId) -> bool {
        let Some(room) = self.reserved.take() else {
            return false;
        };
        let mut unanswered = self
            .unanswered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_new = unanswered.insert(id.clone(), room).is_none();
        if !is_new {
            self.gate
                .shut("it has two open requests with the same id".to_owned());
        }
        is_new
    }

    /// Records the answer to a request. One that nobody asked for counts as noise.
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
        let answered = match &message {
            JsonRpcMessage::Request(request) => {
                self.asked.insert(request.id.clone());
                None
            }
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Notification(_) => None,
        };
        let room = answered.and_then(|id| {
            self.unanswered
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&id)
        });
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            drop(room);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if !self.reserve().await {
                return None;
            }
            let message = self.inner.receive().await?;
            match &message {
                JsonRpcMessage::Request(request) => {
                    if !self.count() || !self.note(&request.id) {
                        return None;
                    }
                }
                JsonRpcMessage::Notification(notification) => {
                    if !self.count() {
                        return None;
                    }
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
        timeout(CLOSE_TIMEOUT, self.inner.close())
            .await
            .unwrap_or(Ok(()))
    }
}
