//! Credentials for S3: from the environment, a container, the machine, or a command that the owner
//! of a scope configures.
//!
//! The metadata service of a machine is asked only if a scope says so (`instance`): outside a
//! cloud, nothing answers there, and every request would wait for it. No error contains anything
//! that was given as credentials.

mod command;
mod container;

use std::sync::Arc;
use std::time::Duration;

use ack_api::remote::Credentials;
use async_trait::async_trait;
use jiff::Timestamp;
use object_store::CredentialProvider;
use object_store::aws::{AmazonS3Builder, AwsCredential, AwsCredentialProvider};
use serde::Deserialize;
use tokio::sync::Mutex;

use self::container::Service;
use crate::runtime::{block_on, reason};

/// Credentials are replaced this long before they expire, or after four fifths of their life.
const MARGIN: Duration = Duration::from_mins(2);
/// How long to keep using the current credentials after new ones could not be fetched.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The longest output of a command or a service, in bytes.
const MAX_OUTPUT: usize = 64 << 10;

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CredentialsProblem(String);

impl CredentialsProblem {
    /// The problem that an error comes from, if it is about credentials.
    pub(crate) fn of(error: &object_store::Error) -> Option<&Self> {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = next {
            if let Some(problem) = error.downcast_ref() {
                return Some(problem);
            }
            next = error.source();
        }
        None
    }
}

impl From<CredentialsProblem> for object_store::Error {
    fn from(problem: CredentialsProblem) -> Self {
        Self::Generic {
            store: "S3",
            source: Box::new(problem),
        }
    }
}

/// Gives a builder its credentials. Runs the command, if there is one.
///
/// # Errors
/// There are none.
pub(crate) fn add(
    builder: AmazonS3Builder,
    credentials: Credentials,
    command: &[String],
) -> Result<AmazonS3Builder, CredentialsProblem> {
    let source = match credentials {
        Credentials::Anonymous => return Ok(builder.with_skip_signature(true)),
        Credentials::Command => Source::Command(command.to_vec()),
        Credentials::Env | Credentials::Instance => {
            from_environment(&builder, credentials == Credentials::Instance)?
        }
    };
    let is_slow = matches!(source, Source::Command(_));
    let provider = Provider {
        source,
        cached: Mutex::default(),
    };
    if is_slow {
        // The requests that follow have shorter limits.
        let first = block_on(provider.current());
        first.unwrap_or_else(|error| Err(CredentialsProblem(error.to_string())))?;
    }
    Ok(builder.with_credentials(Arc::new(provider)))
}

/// What the environment names, or the machine if it may be asked.
fn from_environment(
    builder: &AmazonS3Builder,
    may_ask_machine: bool,
) -> Result<Source, CredentialsProblem> {
    let place = if is_set("AWS_ACCESS_KEY_ID") {
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    } else if is_set("AWS_WEB_IDENTITY_TOKEN_FILE") && is_set("AWS_ROLE_ARN") {
        "AWS_WEB_IDENTITY_TOKEN_FILE"
    } else if let Some(service) = Service::of_environment()? {
        return Ok(Source::Container(service));
    } else if may_ask_machine {
        "the metadata service of this machine"
    } else {
        return Err(CredentialsProblem(
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set".to_owned(),
        ));
    };
    let store = builder.clone().build();
    let store = store.map_err(|error| CredentialsProblem(reason(&error)))?;
    Ok(Source::Library {
        provider: Arc::clone(store.credentials()),
        place,
    })
}

fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(|value| value.to_string_lossy().into_owned())
}

fn is_set(name: &str) -> bool {
    variable(name).is_some()
}

/// Provides credentials, and replaces them before they expire.
#[derive(Debug)]
struct Provider {
    source: Source,
    cached: Mutex<Option<FetchedCredentials>>,
}

/// Where credentials come from.
#[derive(Debug)]
enum Source {
    /// Credentials that object_store finds, and keeps itself.
    Library {
        provider: AwsCredentialProvider,
        place: &'static str,
    },
    /// The service that a container's environment names.
    Container(Service),
    /// A program and its arguments.
    Command(Vec<String>),
}

/// The current credentials.
#[derive(Debug)]
struct FetchedCredentials {
    credential: Arc<AwsCredential>,
    expires: Option<Timestamp>,
    /// When to replace them.
    until: Option<Timestamp>,
}

#[async_trait]
impl CredentialProvider for Provider {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        Ok(self.current().await?)
    }
}

impl Provider {
    async fn current(&self) -> Result<Arc<AwsCredential>, CredentialsProblem> {
        let mut cached = self.cached.lock().await;
        let now = Timestamp::now();
        let is_before = |moment: Option<Timestamp>| moment.is_none_or(|moment| now < moment);
        if let Some(cached) = cached.as_ref().filter(|cached| is_before(cached.until)) {
            return Ok(Arc::clone(&cached.credential));
        }
        match self.source.fetch().await {
            Ok(new) => {
                let credential = Arc::clone(&new.credential);
                *cached = Some(new);
                Ok(credential)
            }
            Err(problem) => match cached.as_mut().filter(|cached| is_before(cached.expires)) {
                // The current ones are valid a little longer.
                Some(cached) => {
                    cached.until = now.checked_add(RETRY_INTERVAL).ok();
                    Ok(Arc::clone(&cached.credential))
                }
                None => Err(problem),
            },
        }
    }
}

impl Source {
    /// New credentials.
    async fn fetch(&self) -> Result<FetchedCredentials, CredentialsProblem> {
        match self {
            Self::Command(words) => command::run(words, command::LIMIT).await,
            Self::Container(service) => service.ask().await,
            Self::Library { provider, place } => {
                let credential = provider.get_credential().await.map_err(|error| {
                    CredentialsProblem(format!("{place} gave no credentials: {}", reason(&error)))
                })?;
                check(&credential, place)?;
                // The library keeps them and replaces them in time.
                let asked_again = Some(Timestamp::now());
                Ok(FetchedCredentials {
                    credential,
                    expires: asked_again,
                    until: asked_again,
                })
            }
        }
    }
}

/// What a command prints, in the format of AWS's `credential_process`, and what a container's
/// service answers.
#[derive(Deserialize)]
struct CredentialsJson {
    #[serde(rename = "Version", default)]
    version: Option<u64>,
    #[serde(rename = "AccessKeyId")]
    key_id: String,
    #[serde(rename = "SecretAccessKey")]
    secret_key: String,
    #[serde(rename = "SessionToken", alias = "Token", default)]
    token: Option<String>,
    #[serde(rename = "Expiration", default)]
    expiration: Option<String>,
}

/// Decodes credentials. `from` is where they come from, for errors.
fn decode(json: &[u8], from: &str) -> Result<FetchedCredentials, CredentialsProblem> {
    let problem = |what: &str| CredentialsProblem(format!("{from} {what}"));
    // The error from the parser may quote what it read.
    let output: CredentialsJson = serde_json::from_slice(json)
        .map_err(|_| problem("gave no JSON with `AccessKeyId` and `SecretAccessKey`"))?;
    if output.version.is_some_and(|version| version != 1) {
        return Err(problem("gave a `Version` other than 1"));
    }
    let expires: Option<Timestamp> = output
        .expiration
        .map(|moment| moment.parse())
        .transpose()
        .map_err(|_| problem("gave an `Expiration` that is not a time"))?;
    let now = Timestamp::now();
    let left = expires.map(|expires| Duration::try_from(expires.duration_since(now)));
    let left = match left {
        Some(Ok(left)) if !left.is_zero() => Some(left),
        Some(_) => return Err(problem("gave credentials that have expired")),
        None => None,
    };
    let credential = AwsCredential {
        key_id: output.key_id,
        secret_key: output.secret_key,
        token: output.token.filter(|token| !token.is_empty()),
    };
    check(&credential, from)?;
    Ok(FetchedCredentials {
        credential: Arc::new(credential),
        expires,
        until: left.and_then(|left| now.checked_add(left - MARGIN.min(left / 5)).ok()),
    })
}

/// Checks that credentials can be sent.
fn check(credential: &AwsCredential, from: &str) -> Result<(), CredentialsProblem> {
    let is_sendable = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_graphic());
    let token = credential.token.as_deref();
    let is_usable = is_sendable(&credential.key_id)
        && is_sendable(&credential.secret_key)
        && token.is_none_or(is_sendable);
    if is_usable {
        return Ok(());
    }
    Err(CredentialsProblem(format!(
        "{from} gave credentials that are empty or have characters that are not visible ASCII"
    )))
}
