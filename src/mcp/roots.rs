//! The folders of a client's workspace, which MCP calls roots. Some clients start servers in `/` or
//! in the home folder, and their workspace says which project is open.
//!
//! Clients of the versions with a handshake can be asked. Nothing else waits for the answer than a
//! call that may need it, and that only for a moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::service::{Peer, RoleServer};
use tokio::sync::watch;
use tokio::time::timeout;

use super::Server;

/// How long after the question a call waits for the answer.
const CALL_TIMEOUT: Duration = Duration::from_millis(300);
/// How long after the question an answer still counts.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Roots {
    /// Whether the client was asked for its folders.
    is_asked: AtomicBool,
    /// When it was asked, until it has answered.
    waiting_since: watch::Sender<Option<Instant>>,
    there: Mutex<Option<(Vec<String>, Server)>>,
}

impl Roots {
    async fn settle(&self) {
        let mut waiting = self.waiting_since.subscribe();
        let Some(since) = *waiting.borrow() else { return };
        let left = CALL_TIMEOUT.saturating_sub(since.elapsed());
        let _ = timeout(left, waiting.wait_for(Option::is_none)).await;
    }
}

#[expect(deprecated, reason = "the clients that offer roots are older")]
async fn folders(peer: &Peer<RoleServer>) -> Option<Vec<String>> {
    let answer = timeout(ANSWER_TIMEOUT, peer.list_roots()).await;
    let roots = answer.ok()?.ok()?.roots;
    Some(roots.into_iter().map(|root| root.uri).collect())
}

impl Server {
    /// The same server where the client's workspace is.
    pub(super) async fn in_workspace(self, peer: &Peer<RoleServer>) -> Self {
        self.ask_roots(peer);
        self.roots.settle().await;
        let there = self.roots.there.lock().as_ref().map(|(_, there)| there.clone());
        there.unwrap_or(self)
    }

    /// Asks a client for its folders, once, if it offers them and nothing else says where the
    /// project is.
    pub(super) fn ask_roots(&self, peer: &Peer<RoleServer>) {
        let offers_roots = || peer.peer_info().is_some_and(|it| it.capabilities.roots.is_some());
        if self.is_shared || !self.service.config.wants_workspace() || !offers_roots() {
            return;
        }
        if self.roots.is_asked.swap(true, Ordering::SeqCst) {
            return;
        }
        self.roots.waiting_since.send_replace(Some(Instant::now()));
        let (server, peer) = (self.clone(), peer.clone());
        tokio::spawn(async move {
            if let Some(folders) = folders(&peer).await {
                server.follow(folders);
            }
            server.roots.waiting_since.send_replace(None);
        });
    }

    pub(super) fn ask_roots_again(&self, peer: &Peer<RoleServer>) {
        self.roots.is_asked.store(false, Ordering::SeqCst);
        self.ask_roots(peer);
    }

    fn follow(&self, folders: Vec<String>) {
        let mut there = self.roots.there.lock();
        let known = there.as_ref().map(|(known, _)| known.as_slice());
        if known.unwrap_or_default() == folders {
            return;
        }
        let config = self.service.config.clone().with_workspace(folders.iter().cloned());
        let server = Self {
            service: self.service.configured(config).leak(),
            service_state: Arc::default(),
            roots: Arc::default(),
            ..self.clone()
        };
        *there = Some((folders, server));
    }
}
