//! Asks the service that the environment of a container names, as AWS's SDKs do:
//! <https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html>.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ack_api::text;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderValue};

use super::{CredentialsProblem, FetchedCredentials, MAX_OUTPUT, decode, variable};

/// How long the service may take.
const LIMIT: Duration = Duration::from_secs(5);
/// The host that relative addresses of container credentials refer to.
const CONTAINER_HOST: &str = "http://169.254.170.2";
/// The addresses that serve container credentials over HTTP, besides the machine itself.
const CONTAINER_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

/// The service that provides a container's credentials. Its address can be a secret.
pub(super) struct Service {
    url: Url,
    /// The variable that names it.
    named_by: &'static str,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Service")
            .field("named_by", &self.named_by)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// The service that the environment names.
    pub(super) fn of_environment() -> Result<Option<Self>, CredentialsProblem> {
        const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
        const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
        let (address, named_by) = match (variable(RELATIVE), variable(FULL)) {
            (Some(path), _) if path.starts_with('/') => {
                (format!("{CONTAINER_HOST}{path}"), RELATIVE)
            }
            (Some(_), _) => {
                return Err(CredentialsProblem(format!(
                    "{RELATIVE} has to begin with `/`"
                )));
            }
            (None, Some(address)) => (address, FULL),
            (None, None) => return Ok(None),
        };
        let url: Option<Url> = address.parse().ok();
        let Some(url) = url.filter(may_give_credentials) else {
            return Err(CredentialsProblem(format!(
                "{named_by} has to be an https:// address, or http:// on this machine or one of {}",
                CONTAINER_HOSTS.join(", ")
            )));
        };
        Ok(Some(Self { url, named_by }))
    }

    /// Asks for credentials.
    pub(super) async fn ask(&self) -> Result<FetchedCredentials, CredentialsProblem> {
        let from = format!("the address in {}", self.named_by);
        let problem = |what: String| CredentialsProblem(format!("{from} {what}"));
        let failed =
            |error: reqwest::Error| problem(format!("did not answer: {}", without_address(error)));
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(1))
            .timeout(LIMIT)
            .build()
            .map_err(failed)?;
        let mut request = client.get(self.url.clone());
        if let Some(token) = container_token()? {
            request = request.header(AUTHORIZATION, token);
        }
        let mut response = request.send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(problem(format!("answered {}", response.status())));
        }
        let mut answer = Vec::new();
        while let Some(part) = response.chunk().await.map_err(failed)? {
            answer.extend_from_slice(&part);
            if answer.len() > MAX_OUTPUT {
                return Err(problem(format!(
                    "answered with more than {} KiB",
                    MAX_OUTPUT >> 10
                )));
            }
        }
        decode(&answer, &from)
    }
}

/// Whether an address is safe for credentials: no one in between can read or change them.
fn may_give_credentials(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<IpAddr> = host.parse().ok();
    let is_near = host == "localhost"
        || address.is_some_and(|address| address.is_loopback())
        || CONTAINER_HOSTS.contains(&host);
    !host.is_empty() && (url.scheme() == "https" || url.scheme() == "http" && is_near)
}

/// The token that a container sends to its service.
fn container_token() -> Result<Option<HeaderValue>, CredentialsProblem> {
    const FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
    const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
    let (token, named_by) = match (variable(FILE), variable(TOKEN)) {
        (Some(path), _) => {
            let path = PathBuf::from(path);
            let token = ack_sys::files::read_text(&path, MAX_OUTPUT as u64).map_err(|error| {
                CredentialsProblem(format!(
                    "the file that {FILE} names cannot be read: {error}"
                ))
            })?;
            (token, FILE)
        }
        (None, Some(token)) => (token, TOKEN),
        (None, None) => return Ok(None),
    };
    let mut value = HeaderValue::from_str(token.trim())
        .map_err(|_| CredentialsProblem(format!("{named_by} holds no token that can be sent")))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The cause of an error.
fn without_address(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut last: &dyn std::error::Error = &error;
    while let Some(next) = last.source() {
        last = next;
    }
    text::line(&last.to_string(), 200)
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
        ] {
            assert_eq!(
                may_give_credentials(&address.parse().unwrap()),
                may,
                "{address}"
            );
        }
    }
}
