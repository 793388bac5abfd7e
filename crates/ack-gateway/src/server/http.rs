//! An upstream server over streamable HTTP: rmcp's client over reqwest. As with a process, the
//! results of calls stay raw JSON.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream::{Sse, SseStream};

use super::MAX_MESSAGE_BYTES;
use super::process::too_long;
use crate::settings::Connection;
use ack_api::text;

const SESSION_HEADER: &str = "mcp-session-id";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A transport to the server.
///
/// # Errors
/// Why it cannot be created.
pub fn connect(connection: &Connection) -> Result<StreamableHttpClientTransport<Wire>, String> {
    let Connection::Http { url, token } = connection else {
        return Err("it has no address".to_owned());
    };
    if token
        .as_ref()
        .is_some_and(|token| HeaderValue::from_str(token).is_err())
    {
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
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .max_sse_event_size(MAX_MESSAGE_BYTES)
        .reinit_on_expired_session(true);
    config.auth_header.clone_from(token);
    Ok(StreamableHttpClientTransport::with_client(
        Wire { client },
        config,
    ))
}

/// reqwest's client, which keeps the results of calls and lists as JSON.
#[derive(Clone)]
pub struct Wire {
    client: reqwest::Client,
}

type Failure = StreamableHttpError<reqwest::Error>;

impl StreamableHttpClient for Wire {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session,
            token,
            headers,
            MAX_MESSAGE_BYTES,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        max_event_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        match &message {
            JsonRpcMessage::Request(request)
                if matches!(
                    request.request,
                    ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_)
                ) =>
            {
                let id = request.id.clone();
                self.ask(&uri, &message, id, session, token, headers).await
            }
            _ => {
                let posted = self.client.post_message_with_max_sse_event_size(
                    uri,
                    message,
                    session,
                    token,
                    headers,
                    max_event_bytes,
                );
                posted.await
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.client
            .delete_session(uri, session, token, headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.client
            .get_stream_with_max_sse_event_size(
                uri,
                session,
                last,
                token,
                headers,
                MAX_MESSAGE_BYTES,
            )
            .await
    }
}

impl Wire {
    /// Posts a request whose result is kept as JSON.
    async fn ask(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        id: RequestId,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut request = self
            .client
            .post(uri)
            .header(ACCEPT, "text/event-stream, application/json");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let in_session = session.is_some();
        if let Some(session) = session {
            request = request.header(SESSION_HEADER, session.as_ref());
        }
        let response = request.json(message).send().await?;
        let status = response.status();
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let session = response
            .headers()
            .get(SESSION_HEADER)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        if status == reqwest::StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if status.is_success() && kind.starts_with("text/event-stream") {
            let mut remaining = 2 * MAX_MESSAGE_BYTES;
            let bytes = response
                .bytes_stream()
                .map_err(std::io::Error::other)
                .map(move |piece| {
                    let piece = piece?;
                    remaining = remaining
                        .checked_sub(piece.len())
                        .ok_or_else(|| std::io::Error::other("its answer is too long"))?;
                    Ok::<_, std::io::Error>(piece)
                });
            let events = SseStream::from_bytes_stream(bytes).map_ok(|mut event| {
                event.data = event.data.map(|data| raw_result(&data).unwrap_or(data));
                event
            });
            return Ok(StreamableHttpPostResponse::Sse(events.boxed(), session));
        }
        let max = if status.is_success() {
            MAX_MESSAGE_BYTES
        } else {
            MAX_ERROR_BYTES
        };
        let Some(body) = read_bounded(response, max).await? else {
            return Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::error(too_long(), Some(id)),
                session,
            ));
        };
        let body = raw_result(&body).unwrap_or(body);
        match serde_json::from_str::<ServerJsonRpcMessage>(&body) {
            Ok(message @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)))
                if kind.starts_with("application/json") =>
            {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            _ => Err(StreamableHttpError::UnexpectedServerResponse(
                format!("HTTP {status}: {}", text::line(&body, 200)).into(),
            )),
        }
    }
}

/// The source of an rmcp error that `Error::source` does not return.
pub fn find_source<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a (dyn std::error::Error + 'static)> {
    match error.downcast_ref::<Failure>()? {
        StreamableHttpError::Client(inner) => Some(inner),
        _ => None,
    }
}

/// The body as text. `None` if it is longer than `max` bytes.
async fn read_bounded(
    mut response: reqwest::Response,
    max: usize,
) -> Result<Option<String>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > max {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(String::from_utf8_lossy(&body).into_owned()))
}

/// Turns the result of a response into a string that holds its JSON, so that it is not decoded as a
/// known type. `None` for other messages.
fn raw_result(message: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(message).ok()?;
    if value.get("method").is_some() {
        return None;
    }
    let result = value.get_mut("result")?;
    *result = Value::from(result.to_string());
    Some(value.to_string())
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CustomResult, ServerResult};

    use super::*;

    #[test]
    fn a_result_comes_through_as_it_is() {
        for result in [
            r#"{"content":[{"type":"text","text":"x","more":1}],"structuredContent":[1],"odd":null}"#,
            "{}",
            r#"{"resultType":"complete","ttlMs":5}"#,
            r#"{"tools":[{"name":5}]}"#,
        ] {
            let message =
                raw_result(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)).unwrap();
            let JsonRpcMessage::Response(response) =
                serde_json::from_str::<ServerJsonRpcMessage>(&message).unwrap()
            else {
                panic!("{message}")
            };
            let ServerResult::CustomResult(CustomResult(kept)) = response.result else {
                panic!("{message}")
            };
            assert_eq!(kept, Value::from(result));
        }
        assert_eq!(
            raw_result(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#),
            None
        );
    }
}
