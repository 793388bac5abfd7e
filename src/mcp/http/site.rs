//! What the server answers: its paths, the limits of a message, and the refusals.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::visitors::Visitor;
use super::{HEALTH, Limits, PATH};
use crate::gate::{Gate, Refusal};
use crate::mcp::Server;
use crate::mcp::message::{failure, mended, polite_body, weight};
use crate::mcp::raw;

/// Messages that take more memory than this, in bytes, are large.
const LARGE: usize = 64 << 10;
/// How many large messages are handled at the same time.
const LARGE_ONES: usize = 4;

/// JSON-RPC's code for errors that a server defines itself.
const REFUSED: i32 = -32000;

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// The paths of the server.
pub(super) struct Site {
    gate: Gate,
    mcp: StreamableHttpService<Server, NeverSessionManager>,
    limits: Limits,
    /// Whether there are upstream servers, whose results are passed on.
    passes_on: bool,
    large: Semaphore,
}

impl Site {
    pub(super) fn new(server: Server, gate: Gate, limits: Limits) -> Self {
        let passes_on = !server.upstreams.is_empty();
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(gate.hosts())
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(limits.bytes);
        Self {
            gate,
            mcp: StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config),
            limits,
            passes_on,
            large: Semaphore::new(LARGE_ONES),
        }
    }

    pub(super) async fn answer(&self, request: Request<Incoming>, visitor: &Visitor) -> Answer {
        let mut answer = self.route(request, visitor).await;
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        answer
    }

    async fn route(&self, request: Request<Incoming>, visitor: &Visitor) -> Answer {
        if let Err(refusal) = self.gate.place(request.uri(), request.headers()) {
            return refused(refusal);
        }
        match request.uri().path() {
            HEALTH if [Method::GET, Method::HEAD].contains(request.method()) => {
                let health = json!({ "status": "ok", "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") });
                in_json(StatusCode::OK, &health)
            }
            HEALTH => not_allowed("GET, HEAD"),
            PATH => match self.gate.token(request.headers()) {
                Err(refusal) => refused(refusal),
                Ok(()) => {
                    visitor.make_known();
                    if request.method() == Method::POST {
                        self.message(request).await
                    } else {
                        not_allowed("POST")
                    }
                }
            },
            other => {
                let other = ack_api::text::line(other, 80);
                error(
                    StatusCode::NOT_FOUND,
                    &format!(
                        "there is nothing at `{other}`; MCP is at `{PATH}`, and `{HEALTH}` says that the server is there"
                    ),
                )
            }
        }
    }

    /// Reads a message and answers it, within the limits.
    async fn message(&self, request: Request<Incoming>) -> Answer {
        let Limits {
            body: patience,
            bytes,
            ..
        } = self.limits;
        let (mut head, body) = request.into_parts();
        // Nothing after the gate needs the token.
        head.headers.remove(AUTHORIZATION);
        let too_long = || {
            let message = format!("the body is longer than {bytes} bytes");
            closing(error(StatusCode::PAYLOAD_TOO_LARGE, &message))
        };
        if body.size_hint().lower() > bytes as u64 {
            return too_long();
        }
        let (body, large) = match timeout(patience, self.body(body)).await {
            Ok(Ok(Some(body))) => body,
            Ok(Ok(None)) => return too_long(),
            Ok(Err(_)) => return closing(error(StatusCode::BAD_REQUEST, "the body broke off")),
            Err(_) => {
                let message = format!("the body took longer than {}", seconds(patience));
                return closing(error(StatusCode::REQUEST_TIMEOUT, &message));
            }
        };
        let _large = match large {
            None if weight(&body) > LARGE => self.large.acquire().await.ok(),
            other => other,
        };
        let body = match mended(&body) {
            Ok((std::borrow::Cow::Owned(mended), _)) => Bytes::from(mended),
            Ok(_) => body,
            Err(Some(answer)) => return in_json(StatusCode::BAD_REQUEST, &answer),
            // A notification that cannot be decoded is not answered.
            Err(None) => return empty(StatusCode::ACCEPTED),
        };
        let answer = self.mcp.handle(Request::from_parts(head, Full::new(body)));
        let answer = async {
            let answer = answer.await;
            let in_json = answer
                .headers()
                .get(CONTENT_TYPE)
                .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
            if !in_json {
                return answer;
            }
            let (mut head, body) = answer.into_parts();
            let body = body
                .collect()
                .await
                .map(Collected::to_bytes)
                .unwrap_or_default();
            let held = if self.passes_on {
                raw::body(&body)
            } else {
                None
            };
            let body = held
                .or_else(|| polite_body(&body))
                .map_or(body, Bytes::from);
            head.headers.remove(CONTENT_LENGTH);
            Response::from_parts(head, Full::new(body).boxed())
        };
        let patience = self.limits.answer;
        timeout(patience, answer).await.unwrap_or_else(|_| {
            let message = format!(
                "the answer took longer than {}; try again",
                seconds(patience)
            );
            error(StatusCode::SERVICE_UNAVAILABLE, &message)
        })
    }
}

impl Site {
    /// Reads a body; `None` if it is too long. A large one takes one of the few permits for large
    /// messages and keeps it until the message is answered.
    async fn body(
        &self,
        mut body: Incoming,
    ) -> Result<Option<(Bytes, Option<SemaphorePermit<'_>>)>, hyper::Error> {
        let mut read = Vec::new();
        let mut large = None;
        while let Some(frame) = body.frame().await {
            let Ok(piece) = frame?.into_data() else {
                continue;
            };
            let length = read.len() + piece.len();
            if length > self.limits.bytes {
                return Ok(None);
            }
            if length > LARGE && large.is_none() {
                large = self.large.acquire().await.ok();
            }
            read.extend_from_slice(&piece);
        }
        Ok(Some((Bytes::from(read), large)))
    }
}

fn seconds(patience: Duration) -> String {
    format!("{} seconds", patience.as_secs_f32())
}

fn refused(refusal: Refusal) -> Answer {
    let (status, message) = match refusal {
        Refusal::NoHost => (StatusCode::BAD_REQUEST, "one `Host` header is needed"),
        Refusal::WrongHost => (
            StatusCode::FORBIDDEN,
            "`Host` names no host of this server; allowed are localhost, its address, and what `--allow-host` adds",
        ),
        Refusal::WrongOrigin => (
            StatusCode::FORBIDDEN,
            "`Origin` is another one than this server's: pages elsewhere may not ask",
        ),
        Refusal::NoToken => (
            StatusCode::UNAUTHORIZED,
            "a token is needed: `Authorization: Bearer TOKEN`; the server said at its start where the token is",
        ),
        Refusal::WrongToken => (
            StatusCode::UNAUTHORIZED,
            "the token is not this server's; the server said at its start where the right one is",
        ),
    };
    let mut answer = error(status, message);
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer realm=\"ack-memory\"");
        answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    // The body of a refused request is not read.
    closing(answer)
}

fn not_allowed(allowed: &'static str) -> Answer {
    let mut answer = error(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("allowed here: {allowed}"),
    );
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Closes the connection after the answer.
fn closing(mut answer: Answer) -> Answer {
    let close = HeaderValue::from_static("close");
    answer
        .headers_mut()
        .insert(hyper::header::CONNECTION, close);
    answer
}

fn error(status: StatusCode, message: &str) -> Answer {
    in_json(status, &failure(&Value::Null, REFUSED, message))
}

fn in_json(status: StatusCode, body: &Value) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body.to_string())).boxed());
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::new()).boxed());
    *answer.status_mut() = status;
    answer
}
