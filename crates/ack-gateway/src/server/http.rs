//! An upstream server over streamable HTTP.

use std::time::Duration;

use reqwest::header::HeaderValue;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};

use super::MAX_MESSAGE_BYTES;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub fn connect(
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
pub fn find_source<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a (dyn std::error::Error + 'static)> {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>()? {
        StreamableHttpError::Client(inner) => Some(inner),
        _ => None,
    }
}
