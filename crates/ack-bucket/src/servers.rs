//! Connects to the services that host buckets, with their credentials. Those come from the
//! environment variables that the cloud's own tools use, or from the machine if a scope says so
//! ([`credentials`]).

use std::path::PathBuf;
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
use crate::runtime::{REQUEST_TIMEOUT, reason};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The environment settings that contain credentials for Google Cloud Storage.
const GCS_CREDENTIALS: [GoogleConfigKey; 4] = [
    GoogleConfigKey::ServiceAccount,
    GoogleConfigKey::ServiceAccountKey,
    GoogleConfigKey::ApplicationCredentials,
    GoogleConfigKey::BearerToken,
];
/// The same for Azure Blob Storage.
const AZURE_CREDENTIALS: [AzureConfigKey; 6] = [
    AzureConfigKey::AccessKey,
    AzureConfigKey::Token,
    AzureConfigKey::SasKey,
    AzureConfigKey::ClientSecret,
    AzureConfigKey::FederatedTokenFile,
    AzureConfigKey::FabricSessionToken,
];
/// The Azure settings that select another way to authenticate.
const AZURE_SWITCHES: [AzureConfigKey; 2] =
    [AzureConfigKey::UseEmulator, AzureConfigKey::UseAzureCli];

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
        let asked = options.get_config_value(&ClientConfigKey::ConnectTimeout);
        let asked = asked.and_then(|text| text.parse::<jiff::SignedDuration>().ok());
        let asked = asked.and_then(|asked| Duration::try_from(asked).ok());
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .https_only(allows_http.as_deref() != Some("true"))
            .connect_timeout(asked.unwrap_or(CONNECT_TIMEOUT))
            .timeout(REQUEST_TIMEOUT)
            .http1_only()
            .build();
        let client =
            client.map_err(|source| Error::Generic { store: "HTTP", source: Box::new(source) })?;
        Ok(HttpClient::new(client))
    }
}

fn retry_config() -> RetryConfig {
    RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(30), ..RetryConfig::default() }
}

fn unusable_settings(address: &Address) -> impl Fn(Error) -> BucketError + '_ {
    move |error| BucketError::Credentials { address: address.to_string(), problem: reason(&error) }
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
        .map_err(|problem| none(address, &problem.to_string()))?;
    if let Some(endpoint) = &settings.endpoint {
        builder = builder
            .with_endpoint(endpoint.trim_end_matches('/'))
            .with_virtual_hosted_style_request(false);
    }
    builder.build().map_err(unusable_settings(address))
}

fn none(address: &Address, problem: &str) -> BucketError {
    BucketError::Credentials { address: address.to_string(), problem: problem.to_owned() }
}

pub(crate) fn gcs(
    address: &Address,
    settings: &RemoteSettings,
) -> Result<impl ObjectStore, BucketError> {
    let mut builder = match settings.credentials {
        Credentials::Instance => GoogleCloudStorageBuilder::from_env(),
        Credentials::Env => {
            let builder = GoogleCloudStorageBuilder::from_env();
            let is_set = |key| builder.get_config_value(key).is_some();
            // Without any, the library would ask the machine's metadata service.
            if !GCS_CREDENTIALS.iter().any(is_set) && !has_gcloud_credentials() {
                let problem = "GOOGLE_APPLICATION_CREDENTIALS is not set";
                return Err(none(address, problem));
            }
            builder
        }
        // The library asks for a token before each write, even without signatures, and then sends
        // none but this one.
        Credentials::Anonymous => {
            GoogleCloudStorageBuilder::new().with_skip_signature(true).with_bearer_token("")
        }
    };
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    builder
        .with_bucket_name(&address.bucket)
        .with_client_options(client_options(settings))
        .with_http_connector(WithoutRedirects)
        .with_retry(retry_config())
        .build()
        .map_err(unusable_settings(address))
}

pub(crate) fn azure(
    address: &Address,
    settings: &RemoteSettings,
) -> Result<impl ObjectStore, BucketError> {
    let mut builder = match settings.credentials {
        Credentials::Instance => MicrosoftAzureBuilder::from_env(),
        Credentials::Env => {
            let builder = MicrosoftAzureBuilder::from_env();
            let value = |key| builder.get_config_value(key);
            let is_set = |key| value(key).is_some();
            let is_on = |key| value(key).is_some_and(|value| value == "true");
            // Without any, the library would ask the machine's metadata service.
            if !AZURE_CREDENTIALS.iter().any(is_set) && !AZURE_SWITCHES.iter().any(is_on) {
                return Err(none(address, "AZURE_STORAGE_ACCOUNT_KEY is not set"));
            }
            builder
        }
        Credentials::Anonymous => MicrosoftAzureBuilder::from_env().with_skip_signature(true),
    };
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    builder
        .with_container_name(&address.bucket)
        .with_client_options(client_options(settings))
        .with_http_connector(WithoutRedirects)
        .with_retry(retry_config())
        .build()
        .map_err(unusable_settings(address))
}

/// Whether the user logged in with `gcloud auth application-default login`.
fn has_gcloud_credentials() -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.is_some_and(|home| {
        home.join(".config/gcloud/application_default_credentials.json").exists()
    })
}
