//! One task per server: it connects, keeps the connection up, and reconnects with growing pauses. A
//! server never has more than one process: the next one starts after the previous one and all of
//! its children have ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::HeaderValue;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, CustomResult, Implementation,
    ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RoleClient, RunningService,
    RunningServiceCancellationToken, serve_client_with_lifecycle,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::bounded::{Bounded, Gate};
use super::offered::ConfiguredTool;
use super::process::{self, Process};
use super::{Link, MAX_MESSAGE_BYTES, PROBE_TIMEOUT, State, time_left};
use crate::settings::Connection;
use ack_api::text;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after the first failure. Each further failure doubles it.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// A connection that was up for this long resets the pause.
const STABLE_AFTER: Duration = Duration::from_secs(60);
/// After this many failures in a row, the tools are no longer listed.
const FAILURES_BEFORE_UNLISTING: u32 = 3;
/// Pause between a notification that the tools changed and listing them again.
const TOOL_CHANGE_DELAY: Duration = Duration::from_millis(500);
const MAX_TOOL_PAGES: usize = 20;

/// The client side of the connection, without capabilities. Requests of the server are answered
/// with protocol errors; [`Bounded`] handles its notifications.
struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
    }
}

struct Connected {
    peer: Peer<RoleClient>,
    token: RunningServiceCancellationToken,
    ended: JoinHandle<()>,
    process: Option<Process>,
    gate: Arc<Gate>,
}

impl Connected {
    async fn end(mut self) -> String {
        self.token.cancel();
        if !self.ended.is_finished() {
            let _ = timeout(TOOL_CHANGE_DELAY, &mut self.ended).await;
        }
        let ended = match self.process {
            Some(process) => process.end().await,
            None => "the connection was lost".to_owned(),
        };
        self.gate.reason.lock().take().unwrap_or(ended)
    }
}

async fn wait_until_set(flag: &mut watch::Receiver<bool>) {
    // A dropped sender also means the end.
    let _ = flag.wait_for(|flag| *flag).await;
}

pub async fn supervise(link: Arc<Link>) {
    let mut stop = link.shared.stop.subscribe();
    let mut stopped = stop.clone();
    if let Connection::Unusable(reason) = &link.settings.connection {
        link.report(reason);
        let (reason, next) = (reason.clone(), None);
        link.state.send_replace(State::Down { reason, next });
        return;
    }
    let mut failures: u32 = 0;
    let mut discovers = false;
    loop {
        let reason = tokio::select! {
            biased;
            () = wait_until_set(&mut stopped) => return,
            connected = connect(&link, &mut discovers) => match connected {
                Ok(mut connected) => {
                    let since = Instant::now();
                    link.state.send_replace(State::Up(connected.peer.clone()));
                    let (reason, over) = watch_connection(&link, &mut connected, &mut stop).await;
                    link.state.send_replace(State::Reconnecting);
                    let ended = connected.end().await;
                    if over {
                        return;
                    }
                    if since.elapsed() >= STABLE_AFTER {
                        failures = 0;
                    }
                    reason.unwrap_or(ended)
                }
                Err(reason) => reason,
            },
        };
        failures += 1;
        let pause = INITIAL_BACKOFF.saturating_mul(1 << (failures - 1).min(10)).min(MAX_BACKOFF);
        link.report(&format!("{reason}; trying again in {} s", pause.as_secs()));
        if failures >= FAILURES_BEFORE_UNLISTING {
            let withheld =
                link.tools().iter().filter(|tool| tool.offered.is_err()).cloned().collect();
            link.offer(withheld);
        }
        let next = Some(Instant::now() + pause);
        link.state.send_replace(State::Down { reason, next });
        tokio::select! {
            () = wait_until_set(&mut stop) => return,
            () = sleep(pause) => {}
        }
        link.state.send_replace(State::Reconnecting);
    }
}

/// Waits for the end of a connection. Returns why this side ends it, if the server did not, and
/// whether this process is shutting down.
async fn watch_connection(
    link: &Link,
    connected: &mut Connected,
    stop: &mut watch::Receiver<bool>,
) -> (Option<String>, bool) {
    loop {
        tokio::select! {
            () = wait_until_set(stop) => return (None, true),
            _ = &mut connected.ended => return (None, false),
            () = link.unresponsive.notified() => {
                // The broken connection may have been replaced since then.
                let limit = PROBE_TIMEOUT.min(link.settings.start_timeout);
                let listed = timeout(limit, list_tools(&connected.peer)).await;
                if !matches!(listed, Ok(Ok(_))) {
                    return (Some("it no longer answers".to_owned()), false);
                }
            }
            () = connected.gate.changed.notified() => {
                sleep(TOOL_CHANGE_DELAY).await;
                let listed = timeout(link.settings.start_timeout, list_tools(&connected.peer)).await;
                if let Ok(Ok(listed)) = listed {
                    link.offer(ConfiguredTool::all_of(&link.settings, &listed));
                }
            }
        }
    }
}

/// Connects and lists the tools, within the time allowed for it. `discovers` is which of the two
/// handshakes worked last: it is tried first.
async fn connect(link: &Link, discovers: &mut bool) -> Result<Connected, String> {
    let deadline = Instant::now() + link.settings.start_timeout;
    let mut refused = String::new();
    for discover in [*discovers, !*discovers] {
        match handshake(link, discover, deadline).await {
            Ok(connected) => {
                *discovers = discover;
                return Ok(connected);
            }
            Err(HandshakeError::Failed(reason)) => return Err(reason),
            // The server may only speak the other one.
            Err(HandshakeError::Refused(reason)) if refused.is_empty() => refused = reason,
            Err(HandshakeError::Refused(_)) => {}
        }
    }
    Err(refused)
}

enum HandshakeError {
    /// The server answered and refused.
    Refused(String),
    Failed(String),
}

async fn handshake(
    link: &Link,
    discover: bool,
    deadline: Instant,
) -> Result<Connected, HandshakeError> {
    let gate = Arc::new(Gate::default());
    let (serving, process) = match &link.settings.connection {
        Connection::Unusable(reason) => return Err(HandshakeError::Failed(reason.clone())),
        Connection::Http { url, token } => {
            let transport = over_http(url, token.as_ref()).map_err(HandshakeError::Failed)?;
            let transport = Bounded::new(transport, Arc::clone(&gate));
            (serve(transport, discover, deadline).await, None)
        }
        Connection::Process { program, arguments, environment } => {
            let started = process::start(program, arguments, environment, &gate);
            let (process, pipe) = started.map_err(HandshakeError::Failed)?;
            let transport = Bounded::new(pipe, Arc::clone(&gate));
            (serve(transport, discover, deadline).await, Some(process))
        }
    };
    let running = match serving {
        Some(Ok(running)) => running,
        Some(Err(error)) => return Err(handshake_failure(&error, process).await),
        None => {
            let ended = end(process).await;
            let said = ended.filter(|ended| ended.contains("; it said: "));
            let said = said.map_or_else(String::new, |ended| format!(" ({ended})"));
            return Err(HandshakeError::Failed(format!("{}{said}", late(link))));
        }
    };
    let peer = running.peer().clone();
    let token = running.cancellation_token();
    // How it ended is known from the process.
    let ended = tokio::spawn(async { drop(running.waiting().await) });
    let listed = timeout(time_left(deadline), list_tools(&peer)).await;
    let connected = Connected { peer, token, ended, process, gate };
    match listed {
        Ok(Ok(listed)) => {
            link.offer(ConfiguredTool::all_of(&link.settings, &listed));
            Ok(connected)
        }
        Ok(Err(reason)) => {
            let ended = connected.end().await;
            let reason = format!("it did not list its tools: {reason} ({ended})");
            Err(HandshakeError::Failed(reason))
        }
        Err(_) => {
            connected.end().await;
            Err(HandshakeError::Failed(late(link)))
        }
    }
}

fn late(link: &Link) -> String {
    let limit = link.settings.start_timeout.as_millis();
    format!("it did not start within {limit} ms")
}

/// Greets the server; `None` if it takes too long.
async fn serve<T: Transport<RoleClient> + 'static>(
    transport: T,
    discover: bool,
    deadline: Instant,
) -> Option<Result<RunningService<RoleClient, Client>, ClientInitializeError>> {
    let lifecycle = if discover {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    let serving = serve_client_with_lifecycle(Client, transport, lifecycle);
    timeout(time_left(deadline), serving).await.ok()
}

async fn handshake_failure(
    error: &ClientInitializeError,
    process: Option<Process>,
) -> HandshakeError {
    let failure = match error {
        ClientInitializeError::TransportError { error, .. } => cause(&*error.error),
        other => cause(other),
    };
    let ended = end(process).await;
    let is_refused = matches!(
        error,
        ClientInitializeError::JsonRpcError(_)
            | ClientInitializeError::NoCompatibleProtocolVersion { .. }
            | ClientInitializeError::ExpectedInitResult(_)
    );
    if is_refused {
        return HandshakeError::Refused(format!("it refused the handshake: {failure}"));
    }
    HandshakeError::Failed(ended.unwrap_or_else(|| format!("it cannot be reached: {failure}")))
}

async fn end(process: Option<Process>) -> Option<String> {
    match process {
        Some(process) => Some(process.end().await),
        None => None,
    }
}

/// The innermost cause of a failure. The outer ones name types and addresses, which may hold
/// secrets.
pub fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(next) = find_source(innermost).or_else(|| innermost.source()) {
        innermost = next;
    }
    let message = innermost.to_string();
    text::line(message.split(" for url (").next().unwrap_or(&message), 300)
}

pub async fn list_tools(peer: &Peer<RoleClient>) -> Result<Vec<Value>, String> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_TOOL_PAGES {
        let mut request = ListToolsRequest::default();
        let mut page = PaginatedRequestParams::default();
        page.cursor = cursor.take();
        request.params = Some(page);
        let result = peer.send_request(ClientRequest::ListToolsRequest(request)).await;
        let value = match result.map_err(|error| cause(&error))? {
            // A tool in it is not valid; the others may be.
            ServerResult::CustomResult(CustomResult(value)) => value,
            other => serde_json::to_value(other).unwrap_or_default(),
        };
        let Some(Value::Array(page)) = value.get("tools").cloned() else {
            return Err("its tool list is malformed".to_owned());
        };
        tools.extend(page);
        match value.get("nextCursor").and_then(Value::as_str) {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(tools),
        }
    }
    Ok(tools)
}

/// The transport of an upstream server over streamable HTTP.
fn over_http(
    url: &str,
    token: Option<&String>,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    if token.is_some_and(|token| HeaderValue::from_str(token).is_err()) {
        return Err("its token has characters that a header cannot contain".to_owned());
    }
    // Fails if a provider was installed before, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A redirect would send the token elsewhere.
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(0)
        .no_proxy()
        .build()
        .map_err(|error| format!("the HTTP client could not be built: {error}"))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .max_sse_event_size(MAX_MESSAGE_BYTES)
        .reinit_on_expired_session(true);
    config.auth_header = token.cloned();
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// The source of an rmcp error that `Error::source` does not return.
fn find_source<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a (dyn std::error::Error + 'static)> {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>()? {
        StreamableHttpError::Client(inner) => Some(inner),
        _ => None,
    }
}
