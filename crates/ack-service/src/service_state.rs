//! What a server or hook can promise about the memories it serves, under the current configuration.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::engine::Service;
use crate::scope::Scope;
use crate::scope::resolve::{Current, current, is_visible};
use ack_api::memory::{StatusFilter, Visibility};
use ack_api::text;
use ack_store::Access;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use parking_lot::Mutex;

const LOCK_TIMEOUT: Duration = Duration::from_millis(20);
/// How long a result is reused for the instructions.
const MAX_AGE: Duration = Duration::from_secs(5);
/// The largest store whose memories are counted for the instructions.
const MAX_STORE_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReviewState {
    #[default]
    Reviewed,
    /// A searched scope has unreviewed notes that count as approved.
    Assumed,
    /// It is unknown, because the check took too long or failed.
    Unknown,
    /// There are no memories, because no scope exists yet.
    Nothing,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceState {
    pub review: ReviewState,
    pub may_ask_unreviewed: bool,
    pub pinned: Option<String>,
    pub is_pin_missing: bool,
    pub private: Option<String>,
    /// How many memories wait for review, if none is approved.
    pub waiting: Option<u64>,
}

/// The last result. Over HTTP, the MCP library asks with every request.
#[derive(Debug, Default)]
pub struct CachedServiceState(Mutex<Option<(Instant, ServiceState)>>);

impl CachedServiceState {
    pub fn get(&self, service: &'static Service, budget: Duration) -> ServiceState {
        let mut last = self.0.lock();
        last.take_if(|(at, _)| at.elapsed() >= MAX_AGE);
        let (_, state) = last.get_or_insert_with(|| {
            let state = ServiceState::within(service, budget);
            (Instant::now(), state)
        });
        state.clone()
    }
}

impl ServiceState {
    /// Reads the manifests and stores within `budget`. A connecting client waits for this.
    fn within(service: &'static Service, budget: Duration) -> Self {
        let end = Instant::now() + budget;
        let (send, receive) = channel();
        std::thread::spawn(move || {
            let (mut service_state, scopes) = Self::by_manifests(service);
            let _ = send.send(service_state.clone());
            let today = (service.config.clock)().to_zoned(TimeZone::UTC).date();
            service_state.waiting = waiting(&scopes, today);
            let _ = send.send(service_state);
        });
        let mut service_state =
            Self { review: ReviewState::Unknown, pinned: pinned(service), ..Self::default() };
        while let Ok(known) = receive.recv_timeout(end.saturating_duration_since(Instant::now())) {
            service_state = known;
        }
        service_state
    }

    /// What the manifests say, with the searched scopes. Opens no store.
    fn by_manifests(service: &Service) -> (Self, Vec<Arc<Scope>>) {
        let scopes = service.registry.discover().scopes;
        let Ok(current) = current(&service.config, &scopes, None, false) else {
            let is_pin_missing = service.config.pinned.is_some();
            let (review, pinned) = (ReviewState::Unknown, pinned(service));
            return (Self { review, is_pin_missing, pinned, ..Self::default() }, Vec::new());
        };
        let is_pinned = service.config.pinned.is_some();
        let own_scope = current.scope.as_ref();
        let name = |scope: &Arc<Scope>| text::line(&scope.name, 100);
        let is_private = |scope: &&Arc<Scope>| scope.manifest.visibility == Visibility::Private;
        let searched: Vec<Arc<Scope>> =
            service.readable_by_default(&scopes, &current).cloned().collect();
        let state = Self {
            review: if scopes.is_empty() {
                ReviewState::Nothing
            } else if searched.iter().any(|scope| serves_unreviewed(scope)) {
                ReviewState::Assumed
            } else {
                ReviewState::Reviewed
            },
            may_ask_unreviewed: !service.config.max_status.value.withholds(true),
            pinned: own_scope.filter(|_| is_pinned).map(name),
            private: own_scope.filter(|scope| !is_pinned && is_private(scope)).map(name),
            waiting: None,
            is_pin_missing: false,
        };
        (state, searched)
    }
}

fn pinned(service: &Service) -> Option<String> {
    service.config.pinned.as_ref().map(|pinned| text::line(&pinned.value, 100))
}

impl Service {
    /// The scopes with a readable manifest that are searched when no scope is named.
    pub fn readable_by_default<'a>(
        &self,
        scopes: &'a [Arc<Scope>],
        current: &Current,
    ) -> impl Iterator<Item = &'a Arc<Scope>> {
        let is_pinned = self.config.pinned.is_some();
        let readable = scopes.iter().filter(|scope| scope.problem.is_none());
        readable.filter(move |it| current.is_of(it) || !is_pinned && is_visible(it, current))
    }

    pub fn serves_unreviewed<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let scopes = self.registry.discover().scopes;
        let is_found =
            |name: &str| scopes.iter().any(|it| it.name == name && serves_unreviewed(it));
        names.into_iter().any(is_found)
    }
}

pub fn serves_unreviewed(scope: &Scope) -> bool {
    StatusFilter::Approved.allows(scope.store.unreviewed().status())
}

/// How many memories wait for review if none is approved. `None` if unknown.
fn waiting(scopes: &[Arc<Scope>], today: Date) -> Option<u64> {
    let mut waiting = 0;
    for scope in scopes {
        if std::fs::metadata(scope.store.path()).ok()?.len() > MAX_STORE_BYTES {
            return None;
        }
        let counts =
            scope.store.read(Access::Rows, LOCK_TIMEOUT, |snapshot| snapshot.review_counts(today));
        waiting += counts.ok().filter(|counts| !counts.has_approved && !counts.is_partial)?.waiting;
    }
    (waiting > 0).then_some(waiting)
}
