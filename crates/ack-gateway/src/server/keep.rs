//! One task a server: it connects, keeps the connection, and connects again with growing pauses. There is never more than one
//! process of a server: the next is started when the one before has ended, with all that it started.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, CustomResult, Implementation,
    ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RoleClient, RunningService,
    RunningServiceCancellationToken, serve_client_with_lifecycle,
};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::bounded::{Bounded, Gate};
use super::offered::{declared, offered};
use super::process::{self, Process};
use super::{Link, SIGN_OF_LIFE, State, http, left};
use crate::settings::Connection;
use ack_api::text;

/// Pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection that held for so long begins with the first pause again.
const STEADY: Duration = Duration::from_secs(60);
/// After so many failures in a row the tools are listed no more.
const GIVEN_UP: u32 = 3;
/// Pause between a server's word that its tools changed and the question which they are.
const SETTLING: Duration = Duration::from_millis(500);
/// Most pages of a list of tools.
const MOST_PAGES: usize = 20;

/// What we are for an upstream server: a client without capabilities. Its requests get the errors of the protocol; what it
/// says of changes, [`Bounded`] takes.
struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut implementation = Implementation::from_build_env();
        env!("CARGO_PKG_NAME").clone_into(&mut implementation.name);
        env!("CARGO_PKG_VERSION").clone_into(&mut implementation.version);
        ClientConfig::new(ClientCapabilities::default(), implementation)
    }
}

/// A connection.
struct Connected {
    peer: Peer<RoleClient>,
    token: RunningServiceCancellationToken,
    /// Becomes true when it has ended.
    over: watch::Receiver<bool>,
    process: Option<Process>,
    gate: Arc<Gate>,
}

impl Connected {
    /// Ends it; how it ended, in words.
    async fn end(mut self) -> String {
        self.token.cancel();
        let _ = timeout(SETTLING, set(&mut self.over)).await;
        let ended = match self.process {
            Some(process) => process.end().await,
            None => "the connection broke off".to_owned(),
        };
        self.gate.reason().unwrap_or(ended)
    }
}

/// Waits until it is set. Nothing of the channel is held after that.
async fn set(flag: &mut watch::Receiver<bool>) {
    // Whoever could set it is gone: that is the end too.
    let _ = flag.wait_for(|flag| *flag).await;
}

/// Keeps one server connected until everything ends.
pub async fn supervise(link: Arc<Link>) {
    let mut stop = link.shared.stop.subscribe();
    let mut stopped = stop.clone();
    if let Connection::Unusable(reason) = &link.settings.connection {
        link.report(reason);
        link.state.send_replace(State::Down {
            reason: reason.clone(),
            next: None,
        });
        return;
    }
    let mut failures: u32 = 0;
    let mut mode = Mode::Initialize;
    loop {
        let reason = tokio::select! {
            biased;
            () = set(&mut stopped) => return,
            connected = connect(&link, &mut mode) => match connected {
                Ok(mut connected) => {
                    let since = Instant::now();
                    link.state.send_replace(State::Up(connected.peer.clone()));
                    let (reason, over) = hold(&link, &mut connected, &mut stop).await;
                    link.state.send_replace(State::Again);
                    let ended = connected.end().await;
                    if over {
                        return;
                    }
                    if since.elapsed() >= STEADY {
                        failures = 0;
                    }
                    reason.unwrap_or(ended)
                }
                Err(reason) => reason,
            },
        };
        failures += 1;
        let pause = FIRST_PAUSE
            .saturating_mul(1 << (failures - 1).min(10))
            .min(LONGEST_PAUSE);
        link.report(&format!("{reason}; trying again in {} s", pause.as_secs()));
        if failures >= GIVEN_UP {
            let missing = link.missing();
            link.offer(declared(&link.settings, &missing), missing);
        }
        link.state.send_replace(State::Down {
            reason,
            next: Some(Instant::now() + pause),
        });
        tokio::select! {
            () = set(&mut stop) => return,
            () = sleep(pause) => {}
        }
        link.state.send_replace(State::Again);
    }
}

/// Waits for the end of a connection: why it has to end, if it did not end by itself, and whether everything ends.
async fn hold(
    link: &Link,
    connected: &mut Connected,
    stop: &mut watch::Receiver<bool>,
) -> (Option<String>, bool) {
    loop {
        tokio::select! {
            () = set(stop) => return (None, true),
            () = set(&mut connected.over) => return (None, false),
            () = link.silent.notified() => {
                // A connection that was found broken may have been replaced since.
                let alive = matches!(timeout(SIGN_OF_LIFE.min(link.settings.start), told(&connected.peer)).await, Ok(Ok(_)));
                if !alive {
                    return (Some("it does not answer any more".to_owned()), false);
                }
            }
            () = connected.gate.changed() => {
                sleep(SETTLING).await;
                if let Ok(Ok(told)) = timeout(link.settings.start, told(&connected.peer)).await {
                    let (tools, missing) = offered(&link.settings, &told);
                    link.offer(tools, missing);
                }
            }
        }
    }
}

/// How a server is greeted; the one that worked is tried first the next time.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Initialize,
    Discover,
}

/// Connects and asks for the tools, within the time that the server has for it.
async fn connect(link: &Link, mode: &mut Mode) -> Result<Connected, String> {
    let deadline = Instant::now() + link.settings.start;
    let modes = match mode {
        Mode::Initialize => [Mode::Initialize, Mode::Discover],
        Mode::Discover => [Mode::Discover, Mode::Initialize],
    };
    let mut refused = String::new();
    for next in modes {
        match greet(link, next, deadline).await {
            Ok(connected) => {
                *mode = next;
                return Ok(connected);
            }
            Err(Greeting::Failed(reason)) => return Err(reason),
            // It may be of the other era.
            Err(Greeting::Refused(reason)) if refused.is_empty() => refused = reason,
            Err(Greeting::Refused(_)) => {}
        }
    }
    Err(refused)
}

/// Why there is no connection.
enum Greeting {
    /// The server answered, and refuses.
    Refused(String),
    Failed(String),
}

async fn greet(link: &Link, mode: Mode, deadline: Instant) -> Result<Connected, Greeting> {
    let gate = Arc::new(Gate::default());
    let lifecycle = match mode {
        Mode::Initialize => ClientLifecycleMode::Initialize,
        Mode::Discover => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let mut process = None;
    let serving = match &link.settings.connection {
        Connection::Http { .. } => {
            let transport = http::connect(&link.settings.connection).map_err(Greeting::Failed)?;
            let transport = Bounded::new(transport, Arc::clone(&gate));
            timeout(
                left(deadline),
                serve_client_with_lifecycle(Client, transport, lifecycle),
            )
            .await
        }
        _ => {
            let (started, pipe) =
                process::start(&link.settings.connection).map_err(Greeting::Failed)?;
            process = Some(started);
            let pipe = Bounded::new(pipe, Arc::clone(&gate));
            timeout(
                left(deadline),
                serve_client_with_lifecycle(Client, pipe, lifecycle),
            )
            .await
        }
    };
    let late = || {
        format!(
            "it did not come up within {} ms",
            link.settings.start.as_millis()
        )
    };
    let running: RunningService<RoleClient, Client> = match serving {
        Ok(Ok(running)) => running,
        Ok(Err(error)) => {
            let refused = matches!(
                error,
                ClientInitializeError::JsonRpcError(_)
                    | ClientInitializeError::NoCompatibleProtocolVersion { .. }
                    | ClientInitializeError::ExpectedInitResult(_)
            );
            let said = match &error {
                ClientInitializeError::TransportError { error, .. } => cause(&*error.error),
                other => cause(other),
            };
            let ended = end(process).await;
            return Err(match ended {
                _ if refused => Greeting::Refused(format!("it refuses the greeting: {said}")),
                Some(ended) => Greeting::Failed(ended),
                None => Greeting::Failed(format!("it cannot be reached: {said}")),
            });
        }
        Err(_) => {
            let ended = end(process)
                .await
                .filter(|ended| ended.contains("; it said: "));
            return Err(Greeting::Failed(
                ended.map_or_else(late, |ended| format!("{} ({ended})", late())),
            ));
        }
    };
    let peer = running.peer().clone();
    let token = running.cancellation_token();
    let (ended, over) = watch::channel(false);
    tokio::spawn(async move {
        // How it ended says the process.
        let _ = running.waiting().await;
        ended.send_replace(true);
    });
    let listed = timeout(left(deadline), told(&peer)).await;
    let connected = Connected {
        peer,
        token,
        over,
        process,
        gate,
    };
    match listed {
        Ok(Ok(told)) => {
            let (tools, missing) = offered(&link.settings, &told);
            link.offer(tools, missing);
            Ok(connected)
        }
        Ok(Err(reason)) => {
            let ended = connected.end().await;
            Err(Greeting::Failed(format!(
                "it does not tell its tools: {reason} ({ended})"
            )))
        }
        Err(_) => {
            connected.end().await;
            Err(Greeting::Failed(late()))
        }
    }
}

async fn end(process: Option<Process>) -> Option<String> {
    match process {
        Some(process) => Some(process.end().await),
        None => None,
    }
}

/// The innermost cause of a failure: what stands around it names types, and addresses with what may be secret in them.
pub fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(next) = http::within(innermost).or_else(|| innermost.source()) {
        innermost = next;
    }
    let told = innermost.to_string();
    text::line(told.split(" for url (").next().unwrap_or(&told), 300)
}

/// The tools that a server tells, as the JSON they are.
pub async fn told(peer: &Peer<RoleClient>) -> Result<Vec<Value>, String> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let mut request = ListToolsRequest::default();
        let mut page = PaginatedRequestParams::default();
        page.cursor = cursor.take();
        request.params = Some(page);
        let result = peer
            .send_request(ClientRequest::ListToolsRequest(request))
            .await;
        let value = match result.map_err(|error| cause(&error))? {
            ServerResult::CustomResult(CustomResult(Value::String(kept))) => {
                serde_json::from_str(&kept).unwrap_or_default()
            }
            ServerResult::CustomResult(CustomResult(value)) => value,
            other => serde_json::to_value(other).unwrap_or_default(),
        };
        let Some(Value::Array(page)) = value.get("tools").cloned() else {
            return Err("its list of tools is none".to_owned());
        };
        tools.extend(page);
        match value.get("nextCursor").and_then(Value::as_str) {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(tools),
        }
    }
    Ok(tools)
}
