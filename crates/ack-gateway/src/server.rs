//! Connections to other MCP servers, and calls of their tools.
//!
//! Each server has one task that connects, keeps the connection up and reconnects
//! (`supervisor.rs`). It starts when tools are first listed or called. A call waits no longer than
//! its own timeout, and calls of ack-memory's own tools never wait for it. When a server goes down,
//! its tools stay listed for a short time; a call then reports why there is no answer.

mod bounded;
mod offered;
mod process;
mod supervisor;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use parking_lot::{Mutex, RwLock};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ErrorData, ResultType,
    ServerResult, Tool,
};
use rmcp::service::{
    Peer, PeerRequestOptions, RequestContext, RequestHandle, RoleClient, RoleServer, ServiceError,
};
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use self::offered::ConfiguredTool;
use self::supervisor::{cause, list_tools, supervise};
use crate::error::UpstreamError;
use crate::settings::Upstream;
use ack_api::cancel::Stopped;
use ack_api::text;

/// Longest answer of a process, with what it sends before it, and longest event of an HTTP server, in
/// bytes. rmcp reads an answer in plain JSON up to 16 MiB.
const MAX_MESSAGE_BYTES: usize = 8 << 20;
const MAX_CONCURRENT_CALLS: usize = 8;
const LIST_WAIT: Duration = Duration::from_millis(1_500);
/// After a call timed out: how long the server may take to list its tools, to show that it is
/// alive.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a call whose connection was lost waits for the reason.
const REASON_TIMEOUT: Duration = Duration::from_millis(500);

pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

pub struct Upstreams {
    links: Vec<Arc<Link>>,
    shared: Arc<Shared>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    /// Counts changes of the offered tools.
    changes: watch::Sender<u64>,
    stop: watch::Sender<bool>,
    report: Report,
}

struct Link {
    settings: Upstream,
    started: AtomicBool,
    state: watch::Sender<State>,
    /// The configured tools, once the server has listed its own.
    tools: RwLock<Arc<Vec<ConfiguredTool>>>,
    permits: Semaphore,
    /// Signalled when a call finds that the server no longer answers.
    unresponsive: Notify,
    shared: Arc<Shared>,
}

#[derive(Clone)]
enum State {
    Connecting,
    Reconnecting,
    Up(Peer<RoleClient>),
    Down { reason: String, next: Option<Instant> },
}

/// Why a call has no result.
pub enum CallError {
    /// The server's protocol error.
    Refused(ErrorData),
    Upstream(UpstreamError),
}

impl From<UpstreamError> for CallError {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

/// The state of a server, for `doctor`.
pub struct Health {
    pub name: String,
    pub reached: String,
    pub down: Option<String>,
    /// The tools that it offers, under the names that agents see.
    pub tools: Vec<String>,
    /// Why configured tools are not offered.
    pub problems: Vec<String>,
}

impl Upstreams {
    /// Creates the connections. No server is contacted yet.
    pub fn new(settings: Vec<Upstream>, report: Report) -> Self {
        let shared = Arc::new(Shared {
            changes: watch::channel(0).0,
            stop: watch::channel(false).0,
            report,
        });
        let links = settings.into_iter().map(|settings| {
            Arc::new(Link {
                settings,
                started: AtomicBool::new(false),
                state: watch::channel(State::Connecting).0,
                tools: RwLock::default(),
                permits: Semaphore::new(MAX_CONCURRENT_CALLS),
                unresponsive: Notify::new(),
                shared: Arc::clone(&shared),
            })
        });
        Self { links: links.collect(), shared, tasks: Mutex::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The names of all tools that may be offered.
    pub fn names(&self) -> Vec<&str> {
        let tools = self.links.iter().flat_map(|link| &link.settings.tools);
        tools.map(|tool| tool.name.as_str()).collect()
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// The offered tools. Waits for servers that connect for the first time, but not long.
    pub async fn list_tools(&self) -> Vec<Tool> {
        let waiting = self.links.iter().map(|link| async {
            self.start(link);
            link.settle(LIST_WAIT).await;
            link.tools()
        });
        let tools = join_all(waiting).await;
        tools.iter().flat_map(|tools| offered(tools)).cloned().collect()
    }

    pub async fn call(
        &self,
        name: &str,
        values: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResult, CallError>> {
        let offers = |link: &&Arc<Link>| link.settings.tools.iter().any(|tool| tool.name == name);
        let link = self.links.iter().find(offers)?;
        self.start(link);
        Some(link.call(name, values, context).await)
    }

    /// The state of each server, after an attempt to connect to it.
    pub async fn health(&self) -> Vec<Health> {
        let pending = self.links.iter().map(|link| async {
            self.start(link);
            let down = match link.settle(link.settings.start_timeout * 2).await {
                Some(State::Up(_)) => None,
                Some(State::Down { reason, .. }) => Some(reason),
                _ => Some("it did not start in time".to_owned()),
            };
            let tools = link.tools();
            Health {
                name: link.settings.name.clone(),
                reached: link.settings.connection.to_string(),
                down,
                tools: offered(&tools).map(|tool| tool.name.to_string()).collect(),
                problems: tools.iter().filter_map(ConfiguredTool::problem).collect(),
            }
        });
        join_all(pending).await
    }

    pub async fn end(&self) {
        self.shared.stop.send_replace(true);
        let tasks = std::mem::take(&mut *self.tasks.lock());
        let _ = timeout(SHUTDOWN_TIMEOUT, join_all(tasks)).await;
    }

    fn start(&self, link: &Arc<Link>) {
        if !link.started.swap(true, Ordering::SeqCst) {
            let task = tokio::spawn(supervise(Arc::clone(link)));
            self.tasks.lock().push(task);
        }
    }
}

impl Link {
    fn tools(&self) -> Arc<Vec<ConfiguredTool>> {
        Arc::clone(&self.tools.read())
    }

    /// Waits for the end of the first attempt to connect.
    async fn settle(&self, limit: Duration) -> Option<State> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Connecting));
        Some(timeout(limit, settled).await.ok()?.ok()?.clone())
    }

    /// Replaces the tools, and notifies clients if others are offered.
    fn offer(&self, tools: Vec<ConfiguredTool>) {
        tools.iter().filter_map(ConfiguredTool::problem).for_each(|problem| self.report(&problem));
        let has_changed = !offered(&self.tools()).eq(offered(&tools));
        *self.tools.write() = Arc::new(tools);
        if has_changed {
            self.shared.changes.send_modify(|count| *count += 1);
        }
    }

    fn report(&self, line: &str) {
        let line = text::line(line, 400);
        (self.shared.report)(&format!("upstream {}: {line}", self.settings.name));
    }

    fn unavailable(&self, reason: impl Into<String>) -> UpstreamError {
        UpstreamError::Unavailable { name: self.settings.name.clone(), reason: reason.into() }
    }

    fn failed(&self, reason: impl Into<String>) -> UpstreamError {
        UpstreamError::Failed { name: self.settings.name.clone(), reason: reason.into() }
    }

    /// The failure of a call whose connection was lost. Waits a moment for the reason.
    async fn disconnected(&self) -> UpstreamError {
        let mut state = self.state.subscribe();
        let down = state.wait_for(|state| matches!(state, State::Down { .. }));
        if let Ok(Ok(state)) = timeout(REASON_TIMEOUT, down).await
            && let State::Down { reason, .. } = &*state
        {
            return self.failed(reason.clone());
        }
        self.failed("the connection was lost")
    }

    fn timed_out(&self) -> UpstreamError {
        let (name, limit) = (self.settings.name.clone(), self.settings.call_timeout);
        UpstreamError::TimedOut { name, limit }
    }

    async fn call(
        self: &Arc<Self>,
        name: &str,
        values: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, CallError> {
        let deadline = Instant::now() + self.settings.call_timeout;
        let peer = self.ready(deadline).await?;
        let tools = self.tools();
        let tool = tools.iter().find(|tool| tool.wanted.name == name);
        let tool = tool.ok_or_else(|| self.unavailable("it has not listed its tools yet"))?;
        let upstream_name = &tool.wanted.upstream_name;
        tool.offered.as_ref().map_err(|why| UpstreamError::Refused {
            name: self.settings.name.clone(),
            tool: text::line(upstream_name, 80),
            why: why.clone(),
        })?;
        let Ok(Ok(_permit)) = timeout(time_left(deadline), self.permits.acquire()).await else {
            return Err(self.timed_out().into());
        };
        let mut params = CallToolRequestParams::new(upstream_name.clone());
        params.arguments = Some(values);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sending = peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let sent = timeout(time_left(deadline), sending).await;
        let mut waiting = PendingRequest(sent.ok().and_then(Result::ok));
        let Some(handle) = &mut waiting.0 else {
            self.unresponsive.notify_one();
            return Err(self.disconnected().await.into());
        };
        let response = tokio::select! {
            response = &mut handle.rx => response,
            () = sleep(time_left(deadline)) => {
                drop(waiting);
                tokio::spawn(Arc::clone(self).probe_after_timeout(peer));
                return Err(self.timed_out().into());
            }
            () = context.ct.cancelled() => {
                return Err(UpstreamError::from(Stopped::Cancelled).into());
            }
        };
        waiting.0 = None;
        match response {
            Ok(Ok(result)) => Ok(self.result(result)?),
            Ok(Err(ServiceError::McpError(error))) => Err(CallError::Refused(error)),
            Ok(Err(ServiceError::TransportSend(error))) => {
                self.unresponsive.notify_one();
                Err(self.failed(cause(&*error.error)).into())
            }
            Ok(Err(error)) => Err(self.failed(cause(&error)).into()),
            Err(_) => Err(self.disconnected().await.into()),
        }
    }

    /// Waits for the connection until the deadline, or returns why there is none.
    async fn ready(&self, deadline: Instant) -> Result<Peer<RoleClient>, UpstreamError> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| matches!(state, State::Up(_) | State::Down { .. }));
        match timeout(time_left(deadline), settled).await.ok().and_then(Result::ok).as_deref() {
            Some(State::Up(peer)) => Ok(peer.clone()),
            Some(State::Down { reason, next }) => {
                let again = next.map(|next| {
                    let seconds = next.saturating_duration_since(Instant::now()).as_secs() + 1;
                    format!("; next attempt in {seconds} s")
                });
                Err(self.unavailable(format!("{reason}{}", again.unwrap_or_default())))
            }
            _ => Err(self.unavailable("it is still being started")),
        }
    }

    /// The server's result, with its origin in `_meta`.
    fn result(&self, result: ServerResult) -> Result<CallToolResult, UpstreamError> {
        let mut result = match result {
            ServerResult::CallToolResult(result) => result,
            ServerResult::InputRequiredResult(_) => {
                return Err(self.failed("it asked for more input, which is not supported"));
            }
            _ => return Err(self.failed("its answer is not a tool result")),
        };
        // An older server does not say it.
        result.result_type = Some(ResultType::COMPLETE);
        let origin = Value::from(self.settings.name.as_str());
        let meta = result.meta.get_or_insert_default();
        meta.0.insert(ORIGIN_META_KEY.to_owned(), origin);
        Ok(result)
    }

    /// After a call timed out: a server that does not even list its tools is considered dead.
    async fn probe_after_timeout(self: Arc<Self>, peer: Peer<RoleClient>) {
        let limit = PROBE_TIMEOUT.min(self.settings.call_timeout.max(Duration::from_secs(1)));
        if !matches!(timeout(limit, list_tools(&peer)).await, Ok(Ok(_))) {
            self.unresponsive.notify_one();
        }
    }
}

fn offered(tools: &[ConfiguredTool]) -> impl Iterator<Item = &Tool> {
    tools.iter().filter_map(|tool| tool.offered.as_ref().ok())
}

/// The key in `_meta` that names the origin of a result.
pub const ORIGIN_META_KEY: &str = "ack-memory/upstream";

fn time_left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

struct PendingRequest(Option<RequestHandle<RoleClient>>);

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            tokio::spawn(async move {
                // A server that does not read never gets the cancellation.
                let cancelled = handle.cancel(Some("the result is no longer needed".to_owned()));
                let _ = timeout(PROBE_TIMEOUT, cancelled).await;
            });
        }
    }
}

/// Connects to every server, returns the state of each, and disconnects.
pub fn probe(settings: Vec<Upstream>) -> Vec<Health> {
    let Ok(runtime) = tokio::runtime::Runtime::new() else {
        return Vec::new();
    };
    let health = runtime.block_on(async {
        let upstreams = Upstreams::new(settings, Arc::new(|_| {}));
        let health = upstreams.health().await;
        upstreams.end().await;
        health
    });
    runtime.shutdown_background();
    health
}
