//! The server's answers: its paths, the limits of a message, and the rejections.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue,
    RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::tokens::{MAX_CONCURRENT, TokenClient, TokenFile};
use super::{HEALTH, Limits, PATH, READY, ServerExtras};
use crate::mcp::Server;
use crate::mcp::message::{decode, failure, memory_size, sanitize_error_body};
use ack_http::gate::{Gate, Refusal, bearer};
use ack_http::peers::{Peer, Turns, read_body};
use ack_service::Service;
use ack_service::scope::Scope;

/// How long a result is cached, because anyone may ask.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// Messages that take more memory than this wait for their turn.
const LARGE_MESSAGE_BYTES: usize = 64 << 10;
const MAX_LARGE_MESSAGES: usize = 4;

/// The JSON-RPC code for errors that a server defines itself.
const REFUSED_CODE: i32 = -32000;

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

pub(super) struct Site {
    gate: Gate,
    server: Server,
    whole: View,
    /// The views of clients with limits, each built on first use.
    limited: Mutex<Vec<LimitedView>>,
    limits: Limits,
    large: Semaphore,
    extras: ServerExtras,
    readiness: Readiness,
}

type LimitedView = (Option<BTreeSet<String>>, Arc<View>);

type View = StreamableHttpService<Server, NeverSessionManager>;

fn view_of(server: Server, gate: &Gate, limits: Limits) -> View {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(gate.hosts())
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(limits.bytes);
    StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config)
}

impl Site {
    pub(super) fn new(server: Server, gate: Gate, limits: Limits, extras: ServerExtras) -> Self {
        Self {
            readiness: Readiness::new(server.service, extras.warm),
            whole: view_of(server.clone(), &gate, limits),
            limited: Mutex::default(),
            server,
            gate,
            limits,
            large: Semaphore::new(MAX_LARGE_MESSAGES),
            extras,
        }
    }

    pub(super) async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Answer {
        let mut answer = self.route(request, peer).await;
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        answer
    }

    async fn route(&self, request: Request<Incoming>, peer: &Peer) -> Answer {
        if let Err(refusal) = self.gate.check_target(request.uri(), request.headers()) {
            return refused(refusal, self.extras.tokens.is_some());
        }
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        match request.uri().path() {
            HEALTH | READY if !is_read => not_allowed("GET, HEAD"),
            HEALTH => {
                let health = json!({
                    "status": "ok",
                    "name": env!("CARGO_PKG_NAME"),
                    "version": env!("CARGO_PKG_VERSION"),
                });
                in_json(StatusCode::OK, &health)
            }
            READY => match self.ready().await {
                Ok(()) => in_json(StatusCode::OK, &json!({ "status": "ready" })),
                Err(reason) => {
                    let answer = json!({ "status": "not ready", "reason": reason });
                    in_json(StatusCode::SERVICE_UNAVAILABLE, &answer)
                }
            },
            PATH => match self.caller(request.headers()) {
                Err(refusal) => refused(refusal, self.extras.tokens.is_some()),
                Ok(_) if request.method() != Method::POST => {
                    peer.mark_known();
                    not_allowed("POST")
                }
                Ok(None) => {
                    peer.mark_known();
                    self.message(request, peer, &self.whole).await
                }
                Ok(Some(client)) => {
                    peer.mark_known();
                    match client.places.try_acquire() {
                        Ok(_place) => {
                            let view = self.view(&client);
                            self.message(request, peer, &view).await
                        }
                        Err(_) => too_many(&client.name),
                    }
                }
            },
            other => {
                let other = ack_api::text::line(other, 80);
                let message = format!(
                    "there is nothing at `{other}`; MCP is at `{PATH}`, and `{HEALTH}` says that \
                     the server is there"
                );
                error(StatusCode::NOT_FOUND, &message)
            }
        }
    }

    /// The client that sent a request, from the token file; `None` if there is no such file.
    fn caller(&self, headers: &HeaderMap) -> Result<Option<Arc<TokenClient>>, Refusal> {
        let Some(tokens) = &self.extras.tokens else {
            return self.gate.token(headers).map(|()| None);
        };
        self.refresh(tokens);
        let client = tokens.client(bearer(headers)?);
        client.map(Some).ok_or(Refusal::WrongToken)
    }

    fn refresh(&self, tokens: &TokenFile) {
        if let Some(news) = tokens.refresh() {
            (self.extras.report)(&news);
        }
    }

    /// Whether requests can be answered: somebody is let in, and the service is ready.
    async fn ready(&self) -> Result<(), &'static str> {
        if let Some(tokens) = &self.extras.tokens {
            self.refresh(tokens);
            tokens.closed_reason().map_or(Ok(()), Err)?;
        }
        self.readiness.check().await
    }

    fn view(&self, client: &TokenClient) -> Arc<View> {
        let scopes = &client.entry.scopes;
        let mut limited = self.limited.lock();
        if let Some((_, view)) = limited.iter().find(|(known, _)| known == scopes) {
            return Arc::clone(view);
        }
        let server = self.server.limited(scopes.as_ref());
        let view = Arc::new(view_of(server, &self.gate, self.limits));
        limited.push((scopes.clone(), Arc::clone(&view)));
        view
    }

    async fn message(&self, request: Request<Incoming>, peer: &Peer, view: &View) -> Answer {
        let (mut head, body) = request.into_parts();
        // Nothing after the gate needs the token.
        head.headers.remove(AUTHORIZATION);
        let turns = Turns { bytes: LARGE_MESSAGE_BYTES, left: &self.large };
        let read = read_body(body, self.limits.bytes, self.limits.body, Some(turns)).await;
        let (body, mut turn) = match read {
            Ok(read) => read,
            Err(refused) => return close_after(error(refused.status(), &refused.to_string())),
        };
        let _answering = peer.answering();
        if turn.is_none() && memory_size(&body) > LARGE_MESSAGE_BYTES {
            turn = self.large.acquire().await.ok();
        }
        let body = match decode(&body) {
            Ok((Cow::Owned(repaired), _)) => Bytes::from(repaired),
            Ok(_) => body,
            Err(Some(answer)) => return in_json(StatusCode::BAD_REQUEST, &answer),
            // A notification that cannot be decoded is not answered.
            Err(None) => return with_status(StatusCode::ACCEPTED, Bytes::new()),
        };
        let answer = async {
            let answer = view.handle(Request::from_parts(head, Full::new(body))).await;
            let kind = answer.headers().get(CONTENT_TYPE);
            if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json")) {
                return answer;
            }
            let (mut head, body) = answer.into_parts();
            let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
            let body = sanitize_error_body(&body).map_or(body, Bytes::from);
            head.headers.remove(CONTENT_LENGTH);
            Response::from_parts(head, Full::new(body).boxed())
        };
        let limit = self.limits.answer;
        let Ok(answer) = timeout(limit, answer).await else {
            let seconds = limit.as_secs();
            let message = format!("the answer took longer than {seconds} seconds; try again");
            return error(StatusCode::SERVICE_UNAVAILABLE, &message);
        };
        drop(turn);
        answer
    }
}

/// Whether the server can answer questions: at least one scope is readable, and the indexes to
/// build at startup are ready.
struct Readiness {
    service: &'static Service,
    is_warm: Arc<AtomicBool>,
    last: Mutex<Option<(Instant, Result<(), &'static str>)>>,
}

impl Readiness {
    /// Starts building the indexes of all shared scopes if `warm` is set.
    fn new(service: &'static Service, warm: bool) -> Self {
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

    async fn check(&self) -> Result<(), &'static str> {
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
            let is_readable =
                |scope: &Arc<Scope>| scope.problem.is_none() && scope.store.file_state().is_ok();
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

fn refused(refusal: Refusal, has_names: bool) -> Answer {
    let (status, message) = match refusal {
        Refusal::NoHost => (StatusCode::BAD_REQUEST, "one `Host` header is needed"),
        Refusal::WrongHost => (
            StatusCode::FORBIDDEN,
            "`Host` does not name this server; allowed are localhost, its address, and what \
             `--allow-host` adds",
        ),
        Refusal::WrongOrigin => (
            StatusCode::FORBIDDEN,
            "`Origin` is not this server's: pages of other sites are refused",
        ),
        Refusal::NoToken if has_names => (
            StatusCode::UNAUTHORIZED,
            "a token is needed: `Authorization: Bearer TOKEN`; ask whoever runs this server",
        ),
        Refusal::NoToken => (
            StatusCode::UNAUTHORIZED,
            "a token is needed: `Authorization: Bearer TOKEN`; the server printed where the token \
             is when it started",
        ),
        Refusal::WrongToken if has_names => (
            StatusCode::UNAUTHORIZED,
            "no client has this token, or it has expired; ask whoever runs this server",
        ),
        Refusal::WrongToken => (
            StatusCode::UNAUTHORIZED,
            "the token is not this server's; the server printed where the right one is when it \
             started",
        ),
    };
    let mut answer = error(status, message);
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer realm=\"ack-memory\"");
        answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    // The body of a rejected request is not read.
    close_after(answer)
}

fn too_many(client: &str) -> Answer {
    let message =
        format!("`{client}` may have {MAX_CONCURRENT} requests in progress; try again in a second");
    let mut answer = error(StatusCode::TOO_MANY_REQUESTS, &message);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    // Its body is not read.
    close_after(answer)
}

fn not_allowed(allowed: &'static str) -> Answer {
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, &format!("allowed here: {allowed}"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn close_after(mut answer: Answer) -> Answer {
    let close = HeaderValue::from_static("close");
    answer.headers_mut().insert(hyper::header::CONNECTION, close);
    answer
}

fn error(status: StatusCode, message: &str) -> Answer {
    in_json(status, &failure(&Value::Null, REFUSED_CODE, message))
}

fn in_json(status: StatusCode, body: &Value) -> Answer {
    let mut answer = with_status(status, body.to_string().into());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn with_status(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body).boxed());
    *answer.status_mut() = status;
    answer
}
