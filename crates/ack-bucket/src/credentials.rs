//! Credentials for S3. object_store finds those of the environment, of a container and of a
//! machine; here is which of these may be used.
//!
//! The metadata service of a machine is asked only if a scope says so (`instance`): outside a
//! cloud, nothing answers there, and every request would wait for it. No error contains anything
//! that was given as credentials.

use std::net::IpAddr;
use std::sync::Arc;

use ack_api::remote::Credentials;
use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential, AwsCredentialProvider};
use reqwest::Url;

use crate::error::reason;

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
        Self::Generic { store: "S3", source: Box::new(problem) }
    }
}

/// The hosts of AWS's container services, which speak plain HTTP.
const CONTAINER_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

pub(crate) fn add(
    builder: AmazonS3Builder,
    credentials: Credentials,
) -> Result<AmazonS3Builder, String> {
    if credentials == Credentials::Anonymous {
        return Ok(builder.with_skip_signature(true));
    }
    check_container_address(&builder)?;
    let place = match place_in_environment(&builder) {
        Err(_) if credentials == Credentials::Instance => "the metadata service of this machine",
        place => place?,
    };
    let store = builder.clone().build().map_err(|error| reason(&error))?;
    let provider = Arc::clone(store.credentials());
    Ok(builder.with_credentials(Arc::new(LibraryProvider { provider, place })))
}

/// Where object_store takes credentials from, in its order, if not from the metadata service.
fn place_in_environment(builder: &AmazonS3Builder) -> Result<&'static str, &'static str> {
    use AmazonS3ConfigKey as Key;
    let is_set = |key| builder.get_config_value(&key).is_some();
    if is_set(Key::AccessKeyId) || is_set(Key::SecretAccessKey) {
        Ok("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    } else if is_set(Key::WebIdentityTokenFile) && is_set(Key::RoleArn) {
        Ok("AWS_WEB_IDENTITY_TOKEN_FILE")
    } else if is_set(Key::ContainerCredentialsRelativeUri) {
        Ok("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    } else if !is_set(Key::ContainerCredentialsFullUri) {
        Err("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set")
    } else if !is_set(Key::ContainerAuthorizationTokenFile) {
        Err("AWS_CONTAINER_CREDENTIALS_FULL_URI is set, and \
             AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE is not")
    } else {
        Ok("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    }
}

/// Refuses the address of a container's service that would get its token in clear text:
/// object_store asks any address.
fn check_container_address(builder: &AmazonS3Builder) -> Result<(), &'static str> {
    let address = builder.get_config_value(&AmazonS3ConfigKey::ContainerCredentialsFullUri);
    if address.is_none_or(|address| may_give_credentials(&address)) {
        return Ok(());
    }
    Err("AWS_CONTAINER_CREDENTIALS_FULL_URI must be an https:// address, or an http:// address of \
         this machine or of its container service")
}

/// Whether an address is encrypted, or near: on this machine, or a container service of AWS.
fn may_give_credentials(address: &str) -> bool {
    let Ok(address) = Url::parse(address) else {
        return false;
    };
    let host = address.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    match address.scheme() {
        "https" => !host.is_empty(),
        "http" => is_loopback || host == "localhost" || CONTAINER_HOSTS.contains(&host),
        _ => false,
    }
}

/// Credentials that object_store finds, and replaces in time.
#[derive(Debug)]
struct LibraryProvider {
    provider: AwsCredentialProvider,
    place: &'static str,
}

#[async_trait]
impl CredentialProvider for LibraryProvider {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let place = self.place;
        let credential = self.provider.get_credential().await.map_err(|error| {
            CredentialsProblem(format!("{place} gave no credentials: {}", reason(&error)))
        })?;
        check(&credential, place)?;
        Ok(credential)
    }
}

/// Checks that credentials can be sent: object_store would panic over a line break in one.
fn check(credential: &AwsCredential, from: &str) -> Result<(), CredentialsProblem> {
    let is_sendable = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_graphic());
    if is_sendable(&credential.key_id)
        && is_sendable(&credential.secret_key)
        && credential.token.as_deref().is_none_or(is_sendable)
    {
        return Ok(());
    }
    Err(CredentialsProblem(format!(
        "{from} gave credentials that are empty or have characters that are not visible ASCII"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_asks_only_near_addresses_and_encrypted_ones() {
        for (address, may) in [
            ("http://127.0.0.1:8080/x", true),
            ("http://localhost/x", true),
            ("http://[::1]/x", true),
            ("http://169.254.170.23/v1/credentials", true),
            ("http://[fd00:ec2::23]/v1/credentials", true),
            ("https://credentials.example.com/x", true),
            ("http://credentials.example.com/x", false),
            ("http://169.254.169.254/x", false),
            ("file:///etc/passwd", false),
            ("credentials", false),
        ] {
            let key = AmazonS3ConfigKey::ContainerCredentialsFullUri;
            let builder = AmazonS3Builder::new().with_config(key, address);
            assert_eq!(check_container_address(&builder).is_ok(), may, "{address}");
        }
    }
}
