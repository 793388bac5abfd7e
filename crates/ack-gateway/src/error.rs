//! Why a call of an upstream server's tool has no result.

use std::time::Duration;

use ack_api::cancel::Stopped;
use ack_api::{Diagnostic, ErrorCode, Hint};

#[derive(Debug, Clone, thiserror::Error)]
pub enum UpstreamError {
    #[error("the upstream server `{name}` is not available: {reason}")]
    Unavailable {
        name: String,
        /// Why, and when the next attempt is.
        reason: String,
    },
    #[error("`{tool}` of the upstream server `{name}` is not offered: {}", why.reason)]
    Refused { name: String, tool: String, why: NotOffered },
    #[error("the upstream server `{name}` did not answer within {} ms", limit.as_millis())]
    TimedOut { name: String, limit: Duration },
    #[error("the upstream server `{name}` gave no answer: {reason}")]
    Failed { name: String, reason: String },
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotOffered {
    pub reason: String,
    pub hint: &'static str,
}

impl Diagnostic for UpstreamError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable { .. } => ErrorCode::UpstreamUnavailable,
            Self::Refused { .. } => ErrorCode::UpstreamRefused,
            Self::TimedOut { .. } => ErrorCode::UpstreamTimeout,
            Self::Failed { .. } => ErrorCode::UpstreamFailed,
            Self::Stopped(stopped) => stopped.code(),
        }
    }

    fn hints(&self) -> Vec<Hint> {
        let advice = match self {
            Self::Unavailable { .. } => {
                return vec![
                    Hint::advice("the other tools still work"),
                    Hint::command("doctor --upstreams", "shows what is wrong"),
                ];
            }
            Self::Refused { why, .. } => why.hint,
            Self::TimedOut { .. } => {
                "ask for less or try again; `timeout_ms` in config.toml is the limit"
            }
            Self::Failed { .. } => "try again; the other tools still work",
            Self::Stopped(_) => return Vec::new(),
        };
        vec![Hint::advice(advice)]
    }
}
