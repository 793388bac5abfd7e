//! The runtime that requests run on, how long one may take, and why one failed.

use std::sync::OnceLock;
use std::time::Duration;

use object_store::Error;
use tokio::runtime::Runtime;

use crate::BucketError;

/// How long one request may take.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// The cause of an error, without the layers around it.
pub(crate) fn reason(error: &Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(next) = last.source() {
        last = next;
    }
    let (error_text, root) = (error.to_string(), last.to_string());
    // The library prints the address, the time and its settings before the cause.
    let between = |tag: &str| {
        let (_, rest) = error_text.split_once(&format!("<{tag}>"))?;
        let (text, _) = rest.split_once(&format!("</{tag}>"))?;
        Some(text)
    };
    let error_text = match (between("Code"), between("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        (None, _) if root.is_empty() => error_text,
        (None, _) => root,
    };
    ack_api::text::line(&error_text, 300)
}

/// The runtime of all requests: one per process, started with the first request.
pub(crate) fn runtime() -> Result<&'static Runtime, BucketError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("bucket")
        .enable_all()
        .build()
        .map_err(BucketError::io("start the threads for", "bucket".as_ref()))?;
    Ok(RUNTIME.get_or_init(|| built))
}
