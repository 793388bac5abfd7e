//! Connects to the services that host buckets, with their credentials. Credentials come from the
//! environment variables that the cloud's own tools use, from the machine, or from a command that
//! the owner of a scope configures.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ack_api::remote::{Credentials, RemoteSettings, SettingProblem};
use object_store::aws::{AmazonS3Builder, AwsCredential};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{ClientOptions, StaticCredentialProvider};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{Error, ObjectStore, RetryConfig};
use serde::Deserialize;

use crate::BucketError;
use crate::address::Address;
use crate::client::{REQUEST, reason};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(3);
/// How long the command that prints credentials may take.
const COMMAND: Duration = Duration::from_secs(20);

fn options(settings: &RemoteSettings) -> ClientOptions {
    let is_plain = settings
        .endpoint
        .as_ref()
        .is_some_and(|endpoint| endpoint.starts_with("http://"));
    ClientOptions::new()
        .with_allow_http(is_plain)
        .with_connect_timeout(CONNECT)
        .with_timeout(REQUEST)
}

fn retry() -> RetryConfig {
    RetryConfig {
        max_retries: 3,
        retry_timeout: Duration::from_secs(30),
        ..RetryConfig::default()
    }
}

fn unusable(address: &Address) -> impl Fn(Error) -> BucketError + '_ {
    move |error| BucketError::Credentials {
        address: address.to_string(),
        problem: reason(&error),
    }
}

pub(crate) fn s3(
    address: &Address,
    settings: &RemoteSettings,
) -> Result<impl ObjectStore, BucketError> {
    let mut builder = match settings.credentials {
        Credentials::Env | Credentials::Instance => AmazonS3Builder::from_env(),
        Credentials::Anonymous | Credentials::Command => AmazonS3Builder::new(),
    };
    if settings.region.is_some() || std::env::var_os("AWS_REGION").is_none() {
        builder = builder.with_region(settings.region());
    }
    match settings.credentials {
        Credentials::Env if !has_aws_credentials() => {
            return Err(BucketError::Credentials {
                address: address.to_string(),
                problem: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set".to_owned(),
            });
        }
        Credentials::Env | Credentials::Instance => {}
        Credentials::Anonymous => builder = builder.with_skip_signature(true),
        Credentials::Command => {
            let given = aws_from_command(address, &settings.command)?;
            let given = StaticCredentialProvider::new(AwsCredential {
                key_id: given.key_id,
                secret_key: given.secret_key,
                token: given.token,
            });
            builder = builder.with_credentials(Arc::new(given));
        }
    }
    if let Some(endpoint) = &settings.endpoint {
        builder = builder
            .with_endpoint(endpoint.trim_end_matches('/'))
            .with_virtual_hosted_style_request(false);
    }
    builder
        .with_bucket_name(&address.bucket)
        .with_client_options(options(settings))
        .with_retry(retry())
        .build()
        .map_err(unusable(address))
}

/// Whether the environment names a key, a web identity or a container's credentials.
fn has_aws_credentials() -> bool {
    [
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ]
    .iter()
    .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

pub(crate) fn gcs(
    address: &Address,
    settings: &RemoteSettings,
) -> Result<impl ObjectStore, BucketError> {
    let mut builder = match settings.credentials {
        Credentials::Env | Credentials::Instance => GoogleCloudStorageBuilder::from_env(),
        Credentials::Anonymous => GoogleCloudStorageBuilder::new().with_skip_signature(true),
        Credentials::Command => return Err(only_for_s3()),
    };
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    builder
        .with_bucket_name(&address.bucket)
        .with_client_options(options(settings))
        .with_retry(retry())
        .build()
        .map_err(unusable(address))
}

pub(crate) fn azure(
    address: &Address,
    settings: &RemoteSettings,
) -> Result<impl ObjectStore, BucketError> {
    let mut builder = match settings.credentials {
        Credentials::Env | Credentials::Instance => MicrosoftAzureBuilder::from_env(),
        Credentials::Anonymous => MicrosoftAzureBuilder::from_env().with_skip_signature(true),
        Credentials::Command => return Err(only_for_s3()),
    };
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    builder
        .with_container_name(&address.bucket)
        .with_client_options(options(settings))
        .with_retry(retry())
        .build()
        .map_err(unusable(address))
}

fn only_for_s3() -> BucketError {
    BucketError::Setting(SettingProblem {
        key: "credentials",
        problem: "`command`, which is for s3:// alone".to_owned(),
    })
}

/// The output of such a command, in the format of AWS's `credential_process`.
#[derive(Deserialize)]
struct Given {
    #[serde(rename = "AccessKeyId")]
    key_id: String,
    #[serde(rename = "SecretAccessKey")]
    secret_key: String,
    #[serde(rename = "SessionToken")]
    token: Option<String>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the owner of the scope names the command in its scope.toml"
)]
fn aws_from_command(address: &Address, command: &[String]) -> Result<Given, BucketError> {
    let failed = |problem: String| BucketError::Credentials {
        address: address.to_string(),
        problem,
    };
    let Some((program, arguments)) = command.split_first() else {
        return Err(failed("no command".to_owned()));
    };
    let name = ack_api::text::line(program, 100);
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(format!("`{name}` cannot be started: {error}")))?;
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if began.elapsed() < COMMAND => {
                std::thread::sleep(Duration::from_millis(10));
            }
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!("`{name}` took too long")));
            }
        }
    }
    let output = child
        .wait_with_output()
        .map_err(|error| failed(format!("`{name}` cannot be read: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("`{name}` failed: {}", output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(|_| {
        failed(format!(
            "`{name}` printed no JSON with AccessKeyId and SecretAccessKey"
        ))
    })
}
