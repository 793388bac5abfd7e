//! Whether the server can answer questions: at least one scope is readable, and the indexes to
//! build at startup are ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ack_service::Service;
use parking_lot::Mutex;

/// How long a result is cached, because anyone may ask.
const CACHE_TTL: Duration = Duration::from_secs(1);

type State = Result<(), &'static str>;

pub struct Readiness {
    service: &'static Service,
    is_warm: Arc<AtomicBool>,
    last: Mutex<Option<(Instant, State)>>,
}

impl Readiness {
    /// Starts building the indexes of all shared scopes if `warm` is set.
    pub fn new(service: &'static Service, warm: bool) -> Self {
        let is_warm = Arc::new(AtomicBool::new(!warm));
        if warm {
            let is_warm = Arc::clone(&is_warm);
            std::thread::spawn(move || {
                service.warm();
                is_warm.store(true, Ordering::Release);
            });
        }
        Self { service, is_warm, last: Mutex::default() }
    }

    pub async fn check(&self) -> State {
        if !self.is_warm.load(Ordering::Acquire) {
            return Err("the indexes are being built");
        }
        let last = *self.last.lock();
        if let Some((at, state)) = last
            && at.elapsed() < CACHE_TTL
        {
            return state;
        }
        let service = self.service;
        let check = move || {
            let scopes = service.registry.discover().scopes;
            let is_readable = |scope: &Arc<ack_service::scope::Scope>| {
                scope.problem.is_none() && scope.store.file_state().is_ok()
            };
            if scopes.iter().any(is_readable) {
                Ok(())
            } else if scopes.is_empty() {
                Err("there is no scope")
            } else {
                Err("no scope can be read")
            }
        };
        let state = tokio::task::spawn_blocking(check).await.unwrap_or(Err("the check failed"));
        *self.last.lock() = Some((Instant::now(), state));
        state
    }
}
