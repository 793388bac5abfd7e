//! Other MCP servers as sources beside the memories: their connections, and the calls of their tools.
//!
//! Each server has one task that connects, keeps the connection, and connects again with growing pauses (`keep.rs`); it is
//! started when tools are first listed or called. Calls never wait for more than their own time, and nothing of it touches the
//! calls of our own tools. A tool that was offered once stays listed while its server is away for a short while, and a call of it
//! says why there is no answer.

mod bounded;
mod guard;
mod http;
mod keep;
mod offered;
mod process;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures::future::join_all;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CustomResult, ErrorData, ServerResult,
    Tool,
};
use rmcp::service::{
    Peer, PeerRequestOptions, RequestContext, RequestHandle, RoleClient, RoleServer, ServiceError,
};
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use self::keep::{cause, supervise, told};
use self::offered::{Missing, Offered, declared};
use crate::settings::{Upstream, UpstreamError};
use ack_api::ErrorBody;
use ack_api::cancel::Stopped;
use ack_api::text;

/// Longest message of an upstream server, in bytes.
const LONGEST: usize = 8 << 20;
/// Calls of one server at the same time; further ones wait.
const CONCURRENT: usize = 8;
/// How long a server may take to show that it is alive, after a call took too long.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// How long all servers together may take to end.
const FAREWELL: Duration = Duration::from_secs(3);
/// How long a call whose connection ended waits for the reason.
const REASON_TIMEOUT: Duration = Duration::from_millis(500);

/// Takes one line about an upstream server, for people.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// The upstream servers of this process. All clients share them.
pub struct Upstreams {
    links: Vec<Arc<Link>>,
    shared: Arc<Shared>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    /// Counts the changes of what is offered.
    changes: watch::Sender<u64>,
    /// Whether everything ends.
    stop: watch::Sender<bool>,
    report: Report,
}

/// One server.
struct Link {
    settings: Upstream,
    started: AtomicBool,
    state: watch::Sender<State>,
    /// What it offers, as it was last told.
    tools: RwLock<Vec<Offered>>,
    /// Tools that the owner names and that were not offered when it was last there.
    missing: RwLock<Vec<Missing>>,
    places: Semaphore,
    /// Somebody found that it answers no more.
    silent: Notify,
    shared: Arc<Shared>,
}

#[derive(Clone)]
enum State {
    /// It is being connected for the first time, or will be.
    New,
    /// It is being connected again.
    Again,
    Up(Peer<RoleClient>),
    Down {
        reason: String,
        next: Option<Instant>,
    },
}

/// What became of a call.
pub enum Answer {
    /// The result as the server gave it, labelled.
    Result(Value),
    /// The protocol's error that the server gave.
    Refused(ErrorData),
    /// The arguments are none of the tool's.
    Arguments(Box<ErrorBody>),
    /// There is no result.
    None(UpstreamError),
}

/// How a server fares, for whoever asks.
pub struct Fare {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub reached: String,
    /// Why it is not there, if it is not.
    pub down: Option<String>,
    /// The tools that it offers, under the names that agents see.
    pub tools: Vec<String>,
    /// Why tools that the owner names are not offered.
    pub problems: Vec<String>,
}

impl Upstreams {
    /// The servers. None is contacted yet.
    pub fn new(settings: Vec<Upstream>, report: Report) -> Self {
        let shared = Arc::new(Shared {
            changes: watch::channel(0).0,
            stop: watch::channel(false).0,
            report,
        });
        let links = settings.into_iter().map(|settings| {
            Arc::new(Link {
                tools: RwLock::new(declared(&settings, &[])),
                settings,
                started: AtomicBool::new(false),
                state: watch::channel(State::New).0,
                missing: RwLock::default(),
                places: Semaphore::new(CONCURRENT),
                silent: Notify::new(),
                shared: Arc::clone(&shared),
            })
        });
        Self {
            links: links.collect(),
            shared,
            tasks: Mutex::default(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The names of all tools that may be offered.
    pub fn names(&self) -> Vec<&str> {
        let tables = self.links.iter().flat_map(|link| &link.settings.tools);
        tables.map(|(_, table)| table.name.as_str()).collect()
    }

    /// Changes of what is offered.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// The tools that are offered. Where servers are still connecting for the first time, they are waited for within their bounds.
    pub async fn listed(&self) -> Vec<Tool> {
        let waiting = self.links.iter().map(|link| async {
            self.start(link);
            let mut state = link.state.subscribe();
            let settled = state.wait_for(|state| !matches!(state, State::New));
            let _ = timeout(link.settings.list, settled).await;
            link.tools()
                .iter()
                .map(|tool| tool.listed.clone())
                .collect::<Vec<_>>()
        });
        join_all(waiting).await.into_iter().flatten().collect()
    }

    /// Calls a tool; `None` where no server has one of that name.
    pub async fn call(
        &self,
        name: &str,
        values: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Option<Answer> {
        let link = self.links.iter().find(|link| {
            link.settings
                .tools
                .iter()
                .any(|(_, table)| table.name == name)
        })?;
        self.start(link);
        let deadline = Instant::now() + link.settings.call;
        Some(link.call(name, values, deadline, context).await)
    }

    /// How each server fares, once each was tried.
    pub async fn fare(&self) -> Vec<Fare> {
        let asked = self.links.iter().map(|link| async {
            self.start(link);
            let mut state = link.state.subscribe();
            let settled = timeout(
                link.settings.start * 2,
                state.wait_for(|state| !matches!(state, State::New)),
            );
            let down = match settled.await.ok().and_then(Result::ok).as_deref() {
                Some(State::Up(_)) => None,
                Some(State::Down { reason, .. }) => Some(reason.clone()),
                _ => Some("it did not come up in time".to_owned()),
            };
            Fare {
                name: link.settings.name.clone(),
                reached: link.settings.connection.to_string(),
                down,
                tools: link
                    .tools()
                    .iter()
                    .map(|tool| tool.listed.name.to_string())
                    .collect(),
                problems: link.missing().iter().map(ToString::to_string).collect(),
            }
        });
        join_all(asked).await
    }

    /// Ends every connection and every process.
    pub async fn end(&self) {
        self.shared.stop.send_replace(true);
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = timeout(FAREWELL, join_all(tasks)).await;
    }

    fn start(&self, link: &Arc<Link>) {
        if !link.started.swap(true, Ordering::SeqCst) {
            let task = tokio::spawn(supervise(Arc::clone(link)));
            self.tasks
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(task);
        }
    }
}

impl Link {
    fn tools(&self) -> Vec<Offered> {
        self.tools
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn missing(&self) -> Vec<Missing> {
        self.missing
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Keeps what is offered now, and tells the clients where it is something else.
    fn offer(&self, tools: Vec<Offered>, missing: Vec<Missing>) {
        for missing in &missing {
            self.report(&missing.to_string());
        }
        *self.missing.write().unwrap_or_else(PoisonError::into_inner) = missing;
        let changed = {
            let mut offered = self.tools.write().unwrap_or_else(PoisonError::into_inner);
            let changed = *offered != tools;
            *offered = tools;
            changed
        };
        if changed {
            self.shared.changes.send_modify(|count| *count += 1);
        }
    }

    fn report(&self, line: &str) {
        (self.shared.report)(&format!(
            "upstream {}: {}",
            self.settings.name,
            text::line(line, 400)
        ));
    }

    fn unavailable(&self, reason: String) -> UpstreamError {
        let name = self.settings.name.clone();
        UpstreamError::Unavailable { name, reason }
    }

    /// Why a tool of this name is not offered, though the server is there.
    fn refused(&self, name: &str) -> UpstreamError {
        match self
            .missing()
            .into_iter()
            .find(|missing| missing.name == name)
        {
            Some(missing) => UpstreamError::Refused {
                name: self.settings.name.clone(),
                tool: text::line(&missing.theirs, 80),
                why: missing.why,
            },
            None => self.unavailable("it is still telling its tools".to_owned()),
        }
    }

    fn failed(&self, reason: impl Into<String>) -> UpstreamError {
        let name = self.settings.name.clone();
        UpstreamError::Failed {
            name,
            reason: reason.into(),
        }
    }

    /// The failure of a call whose connection ended, with the reason where it is known in a moment.
    async fn broken_off(&self) -> UpstreamError {
        let mut state = self.state.subscribe();
        let down = state.wait_for(|state| matches!(state, State::Down { .. }));
        if let Ok(Ok(state)) = timeout(REASON_TIMEOUT, down).await
            && let State::Down { reason, .. } = &*state
        {
            return self.failed(reason.clone());
        }
        self.failed("the connection broke off")
    }

    fn timed_out(&self) -> UpstreamError {
        UpstreamError::TimedOut {
            name: self.settings.name.clone(),
            limit: self.settings.call,
        }
    }

    async fn call(
        self: &Arc<Self>,
        name: &str,
        values: Map<String, Value>,
        deadline: Instant,
        context: &RequestContext<RoleServer>,
    ) -> Answer {
        let peer = match self.ready(deadline).await {
            Ok(peer) => peer,
            Err(error) => return Answer::None(error),
        };
        let tools = self.tools();
        let Some(tool) = tools.iter().find(|tool| tool.listed.name == name) else {
            return Answer::None(self.refused(name));
        };
        let arguments = match tool.arguments(values) {
            Ok(arguments) => arguments,
            Err(body) => return Answer::Arguments(body),
        };
        let Ok(Ok(_place)) = timeout(left(deadline), self.places.acquire()).await else {
            return Answer::None(self.timed_out());
        };
        let mut params = CallToolRequestParams::new(tool.theirs.clone());
        params.arguments = Some(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let Ok(Ok(handle)) = timeout(
            left(deadline),
            peer.send_cancellable_request(request, PeerRequestOptions::no_options()),
        )
        .await
        else {
            self.silent.notify_one();
            return Answer::None(self.broken_off().await);
        };
        let mut waiting = Waiting(Some(handle));
        let Some(handle) = waiting.0.as_mut() else {
            return Answer::None(self.broken_off().await);
        };
        let response = tokio::select! {
            response = &mut handle.rx => response,
            () = sleep(left(deadline)) => {
                drop(waiting);
                tokio::spawn(Arc::clone(self).expect_life(peer));
                return Answer::None(self.timed_out());
            }
            () = context.ct.cancelled() => return Answer::None(Stopped::Cancelled.into()),
        };
        waiting.0 = None;
        match response {
            Ok(Ok(result)) => self.result(result),
            Ok(Err(ServiceError::McpError(error))) if error.code == process::TOO_LONG => {
                Answer::None(self.failed(error.message.to_string()))
            }
            Ok(Err(ServiceError::McpError(error))) => Answer::Refused(error),
            Ok(Err(ServiceError::TransportSend(error))) => {
                self.silent.notify_one();
                Answer::None(self.failed(cause(&*error.error)))
            }
            Ok(Err(error)) => Answer::None(self.failed(cause(&error))),
            Err(_) => Answer::None(self.broken_off().await),
        }
    }

    /// The connection, as soon as there is one within the time, or why there is none.
    async fn ready(&self, deadline: Instant) -> Result<Peer<RoleClient>, UpstreamError> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::New | State::Again));
        match timeout(left(deadline), settled).await {
            Ok(Ok(state)) => match &*state {
                State::Up(peer) => Ok(peer.clone()),
                State::Down { reason, next } => {
                    let again = next.map_or_else(String::new, |next| {
                        let seconds = next.saturating_duration_since(Instant::now()).as_secs() + 1;
                        format!("; it is tried again in {seconds} s")
                    });
                    Err(self.unavailable(format!("{reason}{again}")))
                }
                State::New | State::Again => {
                    Err(self.unavailable("it is being started".to_owned()))
                }
            },
            _ => Err(self.unavailable("it is still being started".to_owned())),
        }
    }

    /// A result as the server gave it, with its origin in `_meta`.
    fn result(&self, result: ServerResult) -> Answer {
        let value = match result {
            ServerResult::CustomResult(CustomResult(Value::String(kept))) => {
                serde_json::from_str(&kept).unwrap_or_default()
            }
            ServerResult::CustomResult(CustomResult(value)) => value,
            other => serde_json::to_value(other).unwrap_or_default(),
        };
        let Value::Object(mut result) = value else {
            return Answer::None(self.failed("it answered with what is no result"));
        };
        match result.get("resultType").and_then(Value::as_str) {
            None | Some("complete") => {}
            Some(other) => {
                return Answer::None(self.failed(format!(
                    "it asked for more (`{}`), which is not given",
                    text::line(other, 40)
                )));
            }
        }
        if !result.get("content").is_none_or(Value::is_array)
            || result.get("content").is_none() && result.get("structuredContent").is_none()
        {
            return Answer::None(self.failed("it answered with what is no result of a tool"));
        }
        let meta = result
            .entry("_meta")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(LABEL.to_owned(), Value::from(self.settings.name.as_str()));
        }
        Answer::Result(Value::Object(result))
    }

    /// After a call that took too long: a server that does not even tell its tools is taken for dead.
    async fn expect_life(self: Arc<Self>, peer: Peer<RoleClient>) {
        let limit = SIGN_OF_LIFE.min(self.settings.call.max(Duration::from_secs(1)));
        if !matches!(timeout(limit, told(&peer)).await, Ok(Ok(_))) {
            self.silent.notify_one();
        }
    }
}

/// The key of `_meta` under which the origin of a result stands.
pub const LABEL: &str = "ack-memory/upstream";

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// A request that is under way; where nobody waits for it any more, it is taken back.
struct Waiting(Option<RequestHandle<RoleClient>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            tokio::spawn(async move {
                // Where the server does not read, the word does not get through.
                let _ = timeout(
                    SIGN_OF_LIFE,
                    handle.cancel(Some("nobody waits for it any more".to_owned())),
                )
                .await;
            });
        }
    }
}

/// Connects to every server, says how each fares, and ends all of it.
pub fn look(settings: Vec<Upstream>) -> Vec<Fare> {
    let Ok(runtime) = tokio::runtime::Runtime::new() else {
        return Vec::new();
    };
    let fare = runtime.block_on(async {
        let upstreams = Upstreams::new(settings, Arc::new(|_| {}));
        let fare = upstreams.fare().await;
        upstreams.end().await;
        fare
    });
    runtime.shutdown_background();
    fare
}
