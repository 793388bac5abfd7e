//! Connects to the services that host buckets, with their credentials. Those come from the
//! environment variables that the cloud's own tools use, or from the machine if a scope says so
//! ([`credentials`]).

use std::path::Path;
use std::time::Duration;

use ack_api::remote::{Credentials, RemoteSettings};
use object_store::aws::AmazonS3Builder;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{ClientConfigKey, ClientOptions, HttpClient, HttpConnector};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{Error, ObjectStore, RetryConfig};

use crate::BucketError;
use crate::address::Address;
use crate::credentials;
use crate::error::reason;

/// How long one request may take.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

fn client_options(settings: &RemoteSettings) -> ClientOptions {
    let is_plain =
        settings.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    ClientOptions::new()
        .with_allow_http(is_plain)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_timeout(REQUEST_TIMEOUT)
}

/// Connects without following redirects. Otherwise a server could have requests, with their
/// credentials, sent to an address that is not in the configuration.
#[derive(Debug)]
struct WithoutRedirects;

impl HttpConnector for WithoutRedirects {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        // What gives out credentials on a machine is asked with a shorter limit.
        let connect_timeout = options
            .get_config_value(&ClientConfigKey::ConnectTimeout)
            .and_then(|text| Duration::try_from(text.parse::<jiff::SignedDuration>().ok()?).ok());
        reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .https_only(allows_http.as_deref() != Some("true"))
            .connect_timeout(connect_timeout.unwrap_or(CONNECT_TIMEOUT))
            .timeout(REQUEST_TIMEOUT)
            .http1_only()
            .build()
            .map(HttpClient::new)
            .map_err(|source| Error::Generic { store: "HTTP", source: Box::new(source) })
    }
}

fn retry_config() -> RetryConfig {
    RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(30), ..RetryConfig::default() }
}

fn refused(address: &Address, problem: String) -> BucketError {
    BucketError::Credentials { address: address.to_string(), problem }
}

pub(crate) fn s3(
    address: &Address,
    settings: &RemoteSettings,
) -> Result<impl ObjectStore, BucketError> {
    let mut builder = match settings.credentials {
        Credentials::Env | Credentials::Instance => AmazonS3Builder::from_env(),
        Credentials::Anonymous => AmazonS3Builder::new(),
    };
    if settings.region.is_some() || std::env::var_os("AWS_REGION").is_none() {
        builder = builder.with_region(settings.region());
    }
    builder = builder
        .with_bucket_name(&address.bucket)
        .with_client_options(client_options(settings))
        .with_http_connector(WithoutRedirects)
        .with_retry(retry_config());
    builder = credentials::add(builder, settings.credentials)
        .map_err(|problem| refused(address, problem))?;
    if let Some(endpoint) = &settings.endpoint {
        builder = builder
            .with_endpoint(endpoint.trim_end_matches('/'))
            .with_virtual_hosted_style_request(false);
    }
    builder.build().map_err(|error| refused(address, reason(&error)))
}

pub(crate) fn gcs(
    address: &Address,
    settings: &RemoteSettings,
) -> Result<impl ObjectStore, BucketError> {
    let mut builder = match settings.credentials {
        Credentials::Env | Credentials::Instance => GoogleCloudStorageBuilder::from_env(),
        // The library asks for a token before each write, even without signatures, and then sends
        // none but this one.
        Credentials::Anonymous => {
            GoogleCloudStorageBuilder::new().with_skip_signature(true).with_bearer_token("")
        }
    };
    if settings.credentials == Credentials::Env && !has_gcs_credentials(&builder) {
        return Err(refused(address, "GOOGLE_APPLICATION_CREDENTIALS is not set".to_owned()));
    }
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    builder
        .with_bucket_name(&address.bucket)
        .with_client_options(client_options(settings))
        .with_http_connector(WithoutRedirects)
        .with_retry(retry_config())
        .build()
        .map_err(|error| refused(address, reason(&error)))
}

/// Whether the environment has credentials, or the user logged in with `gcloud auth
/// application-default login`. Without any, the library would ask the machine's metadata service.
fn has_gcs_credentials(builder: &GoogleCloudStorageBuilder) -> bool {
    let keys = [
        GoogleConfigKey::ServiceAccount,
        GoogleConfigKey::ServiceAccountKey,
        GoogleConfigKey::ApplicationCredentials,
        GoogleConfigKey::BearerToken,
    ];
    let login = ".config/gcloud/application_default_credentials.json";
    keys.iter().any(|key| builder.get_config_value(key).is_some())
        || std::env::var_os("HOME").is_some_and(|home| Path::new(&home).join(login).exists())
}

pub(crate) fn azure(
    address: &Address,
    settings: &RemoteSettings,
) -> Result<impl ObjectStore, BucketError> {
    let mut builder = MicrosoftAzureBuilder::from_env();
    match settings.credentials {
        Credentials::Env if !has_azure_credentials(&builder) => {
            return Err(refused(address, "AZURE_STORAGE_ACCOUNT_KEY is not set".to_owned()));
        }
        Credentials::Env | Credentials::Instance => {}
        Credentials::Anonymous => builder = builder.with_skip_signature(true),
    }
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    builder
        .with_container_name(&address.bucket)
        .with_client_options(client_options(settings))
        .with_http_connector(WithoutRedirects)
        .with_retry(retry_config())
        .build()
        .map_err(|error| refused(address, reason(&error)))
}

/// Whether the environment has credentials, or selects another way to authenticate. Without any,
/// the library would ask the machine's metadata service.
fn has_azure_credentials(builder: &MicrosoftAzureBuilder) -> bool {
    let keys = [
        AzureConfigKey::AccessKey,
        AzureConfigKey::Token,
        AzureConfigKey::SasKey,
        AzureConfigKey::ClientSecret,
        AzureConfigKey::FederatedTokenFile,
        AzureConfigKey::FabricSessionToken,
    ];
    let switches = [AzureConfigKey::UseEmulator, AzureConfigKey::UseAzureCli];
    keys.iter().any(|key| builder.get_config_value(key).is_some())
        || switches.iter().any(|key| builder.get_config_value(key).as_deref() == Some("true"))
}
