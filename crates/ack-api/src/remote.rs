//! `[remote]` of a manifest: how to reach a bucket, and how long fetched memories stay valid. Also
//! how up to date they are.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const DEFAULT_MAX_AGE: Duration = Duration::from_mins(1);
const DEFAULT_OFFLINE: Duration = Duration::from_hours(7 * 24);
const DEFAULT_REGION: &str = "us-east-1";

/// The keys of `[remote]`. All are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RemoteSettings {
    /// The server, if it is not the cloud's own, for instance `https://minio.example.com`.
    /// `http://` is allowed only for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The region of the bucket (default `us-east-1`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Where the credentials come from: `env` (default), `instance` or `anonymous`.
    pub credentials: Credentials,
    /// How long a local version counts as current before the bucket is asked again, for instance
    /// `60s` (the default), `5m` or `1h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<String>,
    /// How long the last version is served while the bucket cannot be reached, for instance `7d`
    /// (the default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offline: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` of [remote] is {problem}")]
pub struct SettingProblem {
    pub key: &'static str,
    pub problem: String,
}

/// Where credentials come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Credentials {
    /// The environment (default).
    #[default]
    Env,
    /// The environment, or else the metadata service of the cloud machine that this runs on.
    Instance,
    /// None: anyone may read the bucket.
    Anonymous,
}

impl RemoteSettings {
    pub fn check(&self) -> Result<(), SettingProblem> {
        self.max_age()?;
        self.offline()?;
        if let Some(endpoint) = &self.endpoint {
            check_endpoint(endpoint).map_err(|allowed| SettingProblem {
                key: "endpoint",
                problem: invalid_value(endpoint, allowed),
            })?;
        }
        Ok(())
    }

    pub fn region(&self) -> &str {
        self.region.as_deref().unwrap_or(DEFAULT_REGION)
    }

    pub fn max_age(&self) -> Result<Duration, SettingProblem> {
        duration("max_age", self.max_age.as_deref(), DEFAULT_MAX_AGE)
    }

    pub fn offline(&self) -> Result<Duration, SettingProblem> {
        duration("offline", self.offline.as_deref(), DEFAULT_OFFLINE)
    }
}

/// How up to date the local copy is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// It is what was published at most `max_age` ago.
    Current,
    /// It may be out of date: the bucket was not asked recently, did not answer, or a newer version
    /// is being fetched.
    Stale { asked_at: Option<Timestamp>, reason: String },
    Cold {
        reason: String,
        /// Whether retrying is pointless until somebody fixes the cause, such as a full disk.
        is_lasting: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitPolicy {
    Brief,
    None,
}

/// A time such as `90s`, `5m`, `12h` or `30d`.
pub fn duration(
    key: &'static str,
    value: Option<&str>,
    default: Duration,
) -> Result<Duration, SettingProblem> {
    let Some(value) = value else {
        return Ok(default);
    };
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let parsed = units.iter().find_map(|(unit, seconds)| {
        let number: u64 = value.trim().strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(*seconds).map(Duration::from_secs)
    });
    parsed.ok_or_else(|| SettingProblem {
        key,
        problem: invalid_value(value, "a whole number and s, m, h or d, for instance `60s`"),
    })
}

fn invalid_value(value: &str, allowed: &str) -> String {
    format!("`{}`; allowed is {allowed}", crate::text::line(value, 60))
}

pub fn check_endpoint(endpoint: &str) -> Result<(), &'static str> {
    const ALLOWED: &str = "an address with https://, or with http:// on this machine";
    let (scheme, rest) = endpoint.split_once("://").ok_or(ALLOWED)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(inside) => inside.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    if host.is_empty() || authority.contains('@') {
        return Err(ALLOWED);
    }
    let address: Option<IpAddr> = host.parse().ok();
    let is_here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    match scheme {
        "https" => Ok(()),
        "http" if is_here => Ok(()),
        "http" => {
            Err("https://; http:// would send memories and credentials where others can read them")
        }
        _ => Err(ALLOWED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(max_age: &str, endpoint: &str) -> RemoteSettings {
        RemoteSettings {
            max_age: Some(max_age.to_owned()),
            endpoint: Some(endpoint.to_owned()),
            ..RemoteSettings::default()
        }
    }

    #[test]
    fn values_have_units_and_unusable_ones_are_named() {
        let usable = settings("5m", "https://minio.example.com");
        usable.check().unwrap();
        assert_eq!(usable.max_age().unwrap(), Duration::from_mins(5));
        for (settings, key) in [
            (settings("5", "https://a.example"), "max_age"),
            (settings("5m", "http://a.example"), "endpoint"),
            (settings("5m", "a.example"), "endpoint"),
        ] {
            let error = settings.check().unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
        settings("5m", "http://127.0.0.1:9000").check().unwrap();
    }
}
