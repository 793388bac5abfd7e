//! A transport that takes in no more than is worked off. The library behind it starts a task for each request of the server and
//! reads on; a server that asks faster than it reads the answers would fill our memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Requests of a server that may be unanswered at the same time; the next one is not read before.
const UNANSWERED: usize = 32;
/// How long a server may leave the answers to so many requests unread.
const PATIENCE: Duration = Duration::from_secs(5);
/// Requests and notifications that a server may send in a minute.
const A_MINUTE: u32 = 20_000;

/// What a connection's owner knows of it.
#[derive(Default)]
pub struct Gate {
    changed: Notify,
    reason: Mutex<Option<String>>,
}

impl Gate {
    /// Waits until the server said that its tools changed.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Why nothing was taken in any more.
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

/// The transport.
pub struct Bounded<T> {
    inner: T,
    gate: Arc<Gate>,
    room: Arc<Semaphore>,
    /// Room for the next request.
    reserved: Option<OwnedSemaphorePermit>,
    /// Since when there is no room.
    full: Option<Instant>,
    /// The requests that are not answered yet, each with the room that it takes.
    unanswered: Arc<Mutex<HashMap<RequestId, OwnedSemaphorePermit>>>,
    /// What came since the minute began.
    minute: (Instant, u32),
}

impl<T> Bounded<T> {
    /// This transport, bounded.
    pub fn new(inner: T, gate: Arc<Gate>) -> Self {
        Self {
            inner,
            gate,
            room: Arc::new(Semaphore::new(UNANSWERED)),
            reserved: None,
            full: None,
            unanswered: Arc::default(),
            minute: (Instant::now(), 0),
        }
    }

    /// Waits for room; `false` where there is none for too long. May be dropped and called again.
    async fn reserve(&mut self) -> bool {
        if self.reserved.is_some() {
            return true;
        }
        let since = *self.full.get_or_insert_with(Instant::now);
        let left = PATIENCE.saturating_sub(since.elapsed());
        self.reserved = timeout(left, Arc::clone(&self.room).acquire_owned())
            .await
            .ok()
            .and_then(Result::ok);
        if self.reserved.is_none() {
            self.gate.shut(format!(
                "it does not read the answers to {UNANSWERED} requests of its own"
            ));
            return false;
        }
        self.full = None;
        true
    }

    /// Counts what nobody asked for; `false` where it is too much.
    fn count(&mut self) -> bool {
        let (since, count) = self.minute;
        self.minute = if since.elapsed() < Duration::from_secs(60) {
            (since, count + 1)
        } else {
            (Instant::now(), 1)
        };
        let few = self.minute.1 <= A_MINUTE;
        if !few {
            self.gate.shut(format!(
                "it sent more than {A_MINUTE} requests and notifications in a minute"
            ));
        }
        few
    }

    /// Notes a request; `false` where another of that number is not answered yet.
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
                .shut("it has two requests of one number at the same time".to_owned());
        }
        is_new
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
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
            let goes_on = match &message {
                JsonRpcMessage::Request(request) => self.count() && self.note(&request.id),
                JsonRpcMessage::Notification(_) => self.count(),
                _ => true,
            };
            if !goes_on {
                return None;
            }
            match message {
                JsonRpcMessage::Notification(notification) => {
                    if matches!(
                        notification.notification,
                        ServerNotification::ToolListChangedNotification(_)
                    ) {
                        self.gate.changed.notify_one();
                    }
                }
                message => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
