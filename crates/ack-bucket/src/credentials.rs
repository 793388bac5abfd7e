//! Credentials for S3. object_store finds those of the environment, of a container and of a
//! machine; here is which of these may be used, and the command that the owner of a scope
//! configures.
//!
//! The metadata service of a machine is asked only if a scope says so (`instance`): outside a
//! cloud, nothing answers there, and every request would wait for it. No error contains anything
//! that was given as credentials.

use std::net::IpAddr;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ack_api::remote::Credentials;
use ack_api::text;
use async_trait::async_trait;
use jiff::Timestamp;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use object_store::CredentialProvider;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential, AwsCredentialProvider};
use reqwest::Url;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::runtime::{block_on, reason};

/// A command runs again this long before its credentials expire, or after four fifths of their life.
const MARGIN: Duration = Duration::from_mins(2);
/// How long a command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// How long to wait for the end of the output once a command has ended: a process that it left
/// behind may keep the output open.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(100);

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

/// The hosts of AWS's container services, which speak plain HTTP.
const CONTAINER_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

/// Gives a builder its credentials. Runs the command, if there is one.
pub(crate) fn add(
    builder: AmazonS3Builder,
    credentials: Credentials,
    command: &[String],
) -> Result<AmazonS3Builder, CredentialsProblem> {
    let place = match credentials {
        Credentials::Anonymous => return Ok(builder.with_skip_signature(true)),
        Credentials::Command => {
            let provider = CommandProvider {
                command: command.to_vec(),
                printed: Mutex::default(),
            };
            // The requests that follow have shorter limits.
            let first = block_on(provider.current());
            first.map_err(|error| CredentialsProblem(error.to_string()))??;
            return Ok(builder.with_credentials(Arc::new(provider)));
        }
        Credentials::Env => {
            check_container_address(&builder)?;
            place_in_environment(&builder)?
        }
        Credentials::Instance => {
            check_container_address(&builder)?;
            place_in_environment(&builder).unwrap_or("the metadata service of this machine")
        }
    };
    let found = builder.clone().build();
    let found = found.map_err(|error| CredentialsProblem(reason(&error)))?;
    Ok(builder.with_credentials(Arc::new(LibraryProvider {
        provider: Arc::clone(found.credentials()),
        place,
    })))
}

/// Where object_store takes credentials from, in its order, if not from the metadata service.
fn place_in_environment(builder: &AmazonS3Builder) -> Result<&'static str, CredentialsProblem> {
    use AmazonS3ConfigKey as Key;
    let is_set = |key| builder.get_config_value(&key).is_some();
    if is_set(Key::AccessKeyId) || is_set(Key::SecretAccessKey) {
        Ok("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    } else if is_set(Key::WebIdentityTokenFile) && is_set(Key::RoleArn) {
        Ok("AWS_WEB_IDENTITY_TOKEN_FILE")
    } else if is_set(Key::ContainerCredentialsRelativeUri) {
        Ok("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    } else if !is_set(Key::ContainerCredentialsFullUri) {
        let problem = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set";
        Err(CredentialsProblem(problem.to_owned()))
    } else if !is_set(Key::ContainerAuthorizationTokenFile) {
        let problem = "AWS_CONTAINER_CREDENTIALS_FULL_URI is set, and \
                       AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE is not";
        Err(CredentialsProblem(problem.to_owned()))
    } else {
        Ok("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    }
}

/// Refuses the address of a container's service that would get its token in clear text:
/// object_store asks any address.
fn check_container_address(builder: &AmazonS3Builder) -> Result<(), CredentialsProblem> {
    let address = builder.get_config_value(&AmazonS3ConfigKey::ContainerCredentialsFullUri);
    if address.is_none_or(|address| may_give_credentials(&address)) {
        return Ok(());
    }
    let problem = "AWS_CONTAINER_CREDENTIALS_FULL_URI must be an https:// address, or an http:// \
                   address of this machine or of its container service";
    Err(CredentialsProblem(problem.to_owned()))
}

/// Whether an address is encrypted, or near: on this machine, or a container service of AWS.
fn may_give_credentials(address: &str) -> bool {
    let Ok(address) = Url::parse(address) else {
        return false;
    };
    let host = address.host_str().unwrap_or_default();
    let host = host.trim_matches(['[', ']']);
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

/// Credentials that a program prints.
#[derive(Debug)]
struct CommandProvider {
    /// The program and its arguments.
    command: Vec<String>,
    printed: Mutex<Option<PrintedCredentials>>,
}

#[derive(Debug, Clone)]
struct PrintedCredentials {
    credential: Arc<AwsCredential>,
    expires: Option<Timestamp>,
    /// When the command runs again.
    until: Option<Timestamp>,
}

#[async_trait]
impl CredentialProvider for CommandProvider {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        Ok(self.current().await?)
    }
}

impl CommandProvider {
    async fn current(&self) -> Result<Arc<AwsCredential>, CredentialsProblem> {
        let mut printed = self.printed.lock().await;
        let now = Timestamp::now();
        let is_before = |moment: Option<Timestamp>| moment.is_none_or(|moment| now < moment);
        if let Some(known) = printed.as_ref().filter(|known| is_before(known.until)) {
            return Ok(Arc::clone(&known.credential));
        }
        match run(&self.command, COMMAND_TIMEOUT).await {
            Ok(new) => Ok(Arc::clone(&printed.insert(new).credential)),
            // The known ones are valid a little longer.
            Err(problem) => match printed.as_ref().filter(|known| is_before(known.expires)) {
                Some(known) => Ok(Arc::clone(&known.credential)),
                None => Err(problem),
            },
        }
    }
}

/// Runs a program with its arguments, without a shell and outside the working folder, and decodes
/// what it prints. One that prints more than a pipe holds is stopped when its time is up.
async fn run(
    command: &[String],
    limit: Duration,
) -> Result<PrintedCredentials, CredentialsProblem> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| CredentialsProblem("there is no command".to_owned()))?;
    let name = format!("`{}`", text::line(program, 100));
    let problem = |what: String| CredentialsProblem(format!("{name} {what}"));
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| problem(format!("cannot be started: {error}")))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    let ended: Option<std::io::Result<ExitStatus>> = timeout(limit, child.wait()).await.ok();
    let failed = match ended {
        Some(Ok(status)) if status.success() => {
            let mut output = Vec::new();
            if let Some(mut stdout) = child.stdout.take() {
                let _ = timeout(OUTPUT_TIMEOUT, stdout.read_to_end(&mut output)).await;
            }
            return decode(&output, &name);
        }
        Some(Ok(status)) => format!("failed ({status}); run it in a terminal to see why"),
        Some(Err(error)) => format!("cannot be waited for: {error}"),
        None => format!("took longer than {} s", limit.as_secs_f32()),
    };
    if let Some(group) = group {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    Err(problem(failed))
}

/// What a command prints: the format of AWS's `credential_process`.
#[derive(Deserialize)]
struct CredentialsJson {
    #[serde(rename = "Version", default)]
    version: Option<u64>,
    #[serde(rename = "AccessKeyId")]
    key_id: String,
    #[serde(rename = "SecretAccessKey")]
    secret_key: String,
    #[serde(rename = "SessionToken", default)]
    token: Option<String>,
    #[serde(rename = "Expiration", default)]
    expiration: Option<String>,
}

/// Decodes credentials. `from` is where they come from, for errors.
fn decode(json: &[u8], from: &str) -> Result<PrintedCredentials, CredentialsProblem> {
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
    Ok(PrintedCredentials {
        credential: Arc::new(credential),
        expires,
        until: left.and_then(|left| now.checked_add(left - MARGIN.min(left / 5)).ok()),
    })
}

/// Checks that credentials can be sent: object_store would panic over a line break in one.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(script: &str, limit: Duration) -> Result<PrintedCredentials, String> {
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        let done = block_on(run(&command, limit)).unwrap();
        done.map_err(|problem| problem.to_string())
    }

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

    const SHORT: Duration = Duration::from_millis(500);

    #[test]
    fn a_command_gives_a_key_and_perhaps_a_token() {
        let plain = r#"echo '{"Version":1,"AccessKeyId":"AKIA","SecretAccessKey":"s3cret"}'"#;
        let fetched = ran(plain, COMMAND_TIMEOUT).unwrap();
        assert_eq!(fetched.credential.key_id, "AKIA");
        assert!(fetched.credential.token.is_none() && fetched.until.is_none());
        let all = r#"echo '{"Version":1,"AccessKeyId":"AKIA","SecretAccessKey":"s3cret",
            "SessionToken":"t0ken","Expiration":"2999-01-01T00:00:00Z"}'"#;
        let fetched = ran(all, COMMAND_TIMEOUT).unwrap();
        assert_eq!(fetched.credential.token.as_deref(), Some("t0ken"));
        assert!(fetched.until < fetched.expires);
    }

    #[test]
    fn an_open_pipe_a_long_run_and_endless_output_do_not_hang() {
        let left = r#"sleep 30 & echo '{"AccessKeyId":"AKIA","SecretAccessKey":"s3cret"}'"#;
        assert_eq!(
            ran(left, COMMAND_TIMEOUT).unwrap().credential.key_id,
            "AKIA"
        );
        for endless in ["sleep 30", "yes s3cret"] {
            let error = ran(endless, SHORT).unwrap_err();
            assert_eq!(error, "`/bin/sh` took longer than 0.5 s");
        }
    }

    #[test]
    fn a_command_runs_again_shortly_before_its_credentials_expire() {
        let folder = tempfile::tempdir().unwrap();
        let (runs, printed) = (folder.path().join("runs"), folder.path().join("printed"));
        let good_for = |duration: Duration| {
            let until = Timestamp::now() + duration;
            let key = r#""AccessKeyId":"AKIA","SecretAccessKey":"s3cret""#;
            std::fs::write(&printed, format!(r#"{{{key},"Expiration":"{until}"}}"#)).unwrap();
        };
        let script = format!("echo run >> {runs:?}; cat {printed:?}");
        let provider = CommandProvider {
            command: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
            printed: Mutex::default(),
        };
        let asked = || {
            block_on(provider.current()).unwrap().unwrap();
            std::fs::read_to_string(&runs).unwrap().lines().count()
        };
        good_for(Duration::from_secs(5));
        assert_eq!((asked(), asked()), (1, 1));
        good_for(Duration::from_hours(1));
        std::thread::sleep(Duration::from_millis(4_100));
        assert_eq!((asked(), asked()), (2, 2));
        // If it fails while they are valid, they are used a little longer.
        let mut known = provider.printed.try_lock().unwrap();
        known.as_mut().unwrap().until = Some(Timestamp::now());
        drop(known);
        std::fs::remove_file(&printed).unwrap();
        assert_eq!(asked(), 3);
    }

    #[test]
    fn errors_name_the_cause_and_no_secret() {
        let key = r#""AccessKeyId":"a","SecretAccessKey":"s3cret""#;
        for (script, cause) in [
            (
                "echo s3cret >&2; exit 3".to_owned(),
                "failed (exit status: 3)",
            ),
            ("echo s3cret".to_owned(), "gave no JSON"),
            (
                r#"echo '{"AccessKeyId":"s3cret"}'"#.to_owned(),
                "gave no JSON",
            ),
            (
                format!(r#"echo '{{"Version":"s3cret",{key}}}'"#),
                "gave no JSON",
            ),
            (
                format!(r#"echo '{{"Version":2,{key}}}'"#),
                "a `Version` other than 1",
            ),
            (
                format!(r#"echo '{{{key},"Expiration":"s3cret"}}'"#),
                "`Expiration` that is not a time",
            ),
            (
                format!(r#"echo '{{{key},"Expiration":"2020-01-01T00:00:00Z"}}'"#),
                "have expired",
            ),
            (
                r#"printf '{"AccessKeyId":"a\\nb","SecretAccessKey":"s3cret"}'"#.to_owned(),
                "are empty or have characters",
            ),
        ] {
            let message = ran(&script, COMMAND_TIMEOUT).unwrap_err();
            assert!(message.contains(cause), "{script}: {message}");
            assert!(!message.contains("s3cret"), "{script}: {message}");
        }
        let none = block_on(run(&["/no/such/program".to_owned()], SHORT)).unwrap();
        let message = none.map(drop).unwrap_err().to_string();
        assert!(message.contains("cannot be started"), "{message}");
    }
}
