//! Reading and writing objects: what is needed of a bucket, with time limits, for threads that wait.

use std::future::Future;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ack_api::remote::{Credentials, RemoteSettings, SettingProblem};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AwsCredential};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{ClientOptions, StaticCredentialProvider};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig,
    UpdateVersion,
};
use serde::Deserialize;
use tokio::runtime::Runtime;

use crate::BucketError;
use crate::address::{Address, Kind};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(3);
/// How long one request may take.
const REQUEST: Duration = Duration::from_mins(1);
/// How long the command that gives credentials may take.
const COMMAND: Duration = Duration::from_secs(20);

/// A bucket that can be read and written.
#[derive(Debug, Clone)]
pub struct Client {
    store: Arc<dyn ObjectStore>,
    address: Address,
}

/// An object, with what identifies its state.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its contents.
    pub bytes: Bytes,
    /// Its state.
    pub state: ObjectState,
}

/// The state of an object: two states with different contents differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectState {
    tag: Option<String>,
    version: Option<String>,
}

impl ObjectState {
    /// The state with this entity tag.
    pub const fn of_tag(tag: String) -> Self {
        Self {
            tag: Some(tag),
            version: None,
        }
    }

    /// A state that an object in this one is not in.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            tag: self.tag.as_ref().map(|_| format!("\"{}\"", "0".repeat(32))),
            version: self.version.as_ref().map(|_| "1".to_owned()),
        }
    }

    /// Its entity tag.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }
}

/// What a read gave.
#[derive(Debug)]
pub enum Read {
    /// The object.
    Found(Object),
    /// It is still in the state that was named.
    Unchanged,
    /// It is not there.
    Missing,
}

/// An object in a listing.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its name, without the prefix of the address.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was last written.
    pub modified: jiff::Timestamp,
}

/// On what condition an object is written.
#[derive(Debug, Clone)]
pub enum Condition<'a> {
    /// On none.
    Always,
    /// It is not there yet.
    New,
    /// It is still in this state.
    Still(&'a ObjectState),
}

impl Client {
    /// A client for an address. Nothing is contacted yet; a command that gives credentials runs.
    ///
    /// # Errors
    /// [`BucketError::Setting`] or [`BucketError::Credentials`].
    pub fn new(address: &Address, settings: &RemoteSettings) -> Result<Self, BucketError> {
        settings.check()?;
        // The first of the process stays; the upstream connections of this program use the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store: Arc<dyn ObjectStore> = match address.kind {
            Kind::S3 => Arc::new(s3(address, settings)?),
            Kind::Gcs => Arc::new(gcs(address, settings)?),
            Kind::Azure => Arc::new(azure(address, settings)?),
        };
        Ok(Self {
            store,
            address: address.clone(),
        })
    }

    /// The address.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    fn path(&self, name: &str) -> Path {
        Path::from(self.address.key(name))
    }

    /// Reads an object, unless it is in a state that is known.
    ///
    /// # Errors
    /// The server refuses, fails or takes longer than `within`.
    pub fn read(
        &self,
        name: &str,
        known: Option<&ObjectState>,
        within: Duration,
    ) -> Result<Read, BucketError> {
        let options = GetOptions {
            if_none_match: known.and_then(|state| state.tag.clone()),
            ..GetOptions::default()
        };
        let path = self.path(name);
        let read = async {
            let found = self.store.get_opts(&path, options).await?;
            let state = ObjectState {
                tag: found.meta.e_tag.clone(),
                version: found.meta.version.clone(),
            };
            let bytes = found.bytes().await?;
            Ok(Object { bytes, state })
        };
        match self.wait(within, read)? {
            Ok(object) => Ok(Read::Found(object)),
            Err(Error::NotModified { .. }) => Ok(Read::Unchanged),
            Err(Error::NotFound { .. }) => Ok(Read::Missing),
            Err(error) => Err(self.failed("read", name, &error)),
        }
    }

    /// Reads an object that must be there.
    ///
    /// # Errors
    /// As [`Client::read`], and [`BucketError::Missing`].
    pub fn get(&self, name: &str, within: Duration) -> Result<Object, BucketError> {
        match self.read(name, None, within)? {
            Read::Found(object) => Ok(object),
            Read::Unchanged | Read::Missing => Err(BucketError::Missing {
                address: self.address.to_string(),
                key: name.to_owned(),
            }),
        }
    }

    /// Reads parts of objects, several at once, and hands each to `take` in the order they arrive.
    /// `take` says whether to go on.
    ///
    /// # Errors
    /// The first that fails.
    pub fn get_parts(
        &self,
        parts: Vec<(usize, String, Range<u64>)>,
        together: usize,
        mut take: impl FnMut(usize, Range<u64>, Bytes) -> Result<(), BucketError>,
    ) -> Result<(), BucketError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(together);
        let store = Arc::clone(&self.store);
        let prefix = self.address.clone();
        let task = runtime()?.spawn(async move {
            let reads = parts.into_iter().map(|(number, name, range)| {
                let store = Arc::clone(&store);
                let path = Path::from(prefix.key(&name));
                Ok::<_, ()>(async move {
                    let read = async {
                        if range.is_empty() {
                            return Ok(Bytes::new());
                        }
                        store.get_range(&path, range.clone()).await
                    };
                    let read = tokio::time::timeout(REQUEST, read).await;
                    Ok((number, name, range, read))
                })
            });
            let mut reads = futures::stream::iter(reads).try_buffer_unordered(together);
            while let Ok(Some(done)) = reads.try_next().await {
                // Sending may wait until a part is written; the runtime has another thread.
                if tokio::task::block_in_place(|| sender.send(done)).is_err() {
                    break;
                }
            }
        });
        let mut result = Ok(());
        for (number, name, range, read) in receiver {
            let taken = match read {
                Ok(Ok(bytes)) => take(number, range, bytes),
                Ok(Err(Error::NotFound { .. })) => Err(BucketError::Missing {
                    address: self.address.to_string(),
                    key: name,
                }),
                Ok(Err(error)) => Err(self.failed("read", &name, &error)),
                Err(_) => Err(self.timeout(REQUEST)),
            };
            if taken.is_err() {
                result = taken;
                break;
            }
        }
        task.abort();
        result
    }

    /// Writes an object; `None` if the condition does not hold.
    ///
    /// # Errors
    /// The server refuses, fails or takes too long.
    pub fn put(
        &self,
        name: &str,
        bytes: Bytes,
        condition: &Condition<'_>,
    ) -> Result<Option<ObjectState>, BucketError> {
        let mode = match condition {
            Condition::Always => PutMode::Overwrite,
            Condition::New => PutMode::Create,
            Condition::Still(state) => PutMode::Update(UpdateVersion {
                e_tag: state.tag.clone(),
                version: state.version.clone(),
            }),
        };
        let path = self.path(name);
        let put = self
            .store
            .put_opts(&path, PutPayload::from(bytes), PutOptions::from(mode));
        match self.wait(REQUEST, put)? {
            Ok(put) => Ok(Some(ObjectState {
                tag: put.e_tag,
                version: put.version,
            })),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(None),
            // A condition on an object that is not there does not hold either.
            Err(Error::NotFound { .. }) if matches!(condition, Condition::Still(_)) => Ok(None),
            Err(error) => Err(self.failed("write", name, &error)),
        }
    }

    /// Writes a large object in parts.
    ///
    /// # Errors
    /// The file cannot be read; the server refuses, fails or takes too long.
    pub fn upload(
        &self,
        name: &str,
        part: usize,
        mut next: impl FnMut(&mut Vec<u8>) -> Result<(), BucketError>,
    ) -> Result<(), BucketError> {
        let path = self.path(name);
        let started = self.wait(REQUEST, self.store.put_multipart(&path))?;
        let mut upload = started.map_err(|error| self.failed("write", name, &error))?;
        let mut sent = Ok(());
        loop {
            let mut bytes = Vec::with_capacity(part);
            sent = sent.and_then(|()| next(&mut bytes));
            if sent.is_err() || bytes.is_empty() {
                break;
            }
            sent = self
                .wait(REQUEST, upload.put_part(bytes.into()))?
                .map_err(|error| self.failed("write", name, &error));
        }
        if sent.is_err() {
            let _ = self.wait(REQUEST, upload.abort());
            return sent;
        }
        let done = self.wait(REQUEST, upload.complete())?;
        done.map_err(|error| self.failed("write", name, &error))?;
        Ok(())
    }

    /// Removes objects that may not be there.
    ///
    /// # Errors
    /// The server refuses, fails or takes too long.
    pub fn delete(&self, names: &[String]) -> Result<(), BucketError> {
        for name in names {
            let path = self.path(name);
            match self.wait(REQUEST, self.store.delete(&path))? {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failed("remove", name, &error)),
            }
        }
        Ok(())
    }

    /// The objects whose names begin with a folder.
    ///
    /// # Errors
    /// The server refuses, fails or takes too long.
    pub fn list(&self, folder: &str) -> Result<Vec<Listed>, BucketError> {
        let path = if folder.is_empty() {
            Path::from(self.address.prefix.clone())
        } else {
            self.path(folder)
        };
        let listed = self.wait(REQUEST, async {
            self.store.list(Some(&path)).try_collect::<Vec<_>>().await
        })?;
        let listed = listed.map_err(|error| self.failed("list", folder, &error))?;
        let root = self.address.key("");
        Ok(listed
            .into_iter()
            .filter_map(|object| {
                Some(Listed {
                    name: object.location.as_ref().strip_prefix(&root)?.to_owned(),
                    bytes: object.size,
                    modified: jiff::Timestamp::from_second(object.last_modified.timestamp())
                        .ok()?,
                })
            })
            .collect())
    }

    fn wait<T>(&self, within: Duration, work: impl Future<Output = T>) -> Result<T, BucketError> {
        let runtime = runtime()?;
        runtime
            .block_on(async { tokio::time::timeout(within, work).await })
            .map_err(|_| self.timeout(within))
    }

    fn timeout(&self, waited: Duration) -> BucketError {
        BucketError::Timeout {
            address: self.address.to_string(),
            waited,
        }
    }

    fn failed(&self, verb: &str, name: &str, error: &Error) -> BucketError {
        let address = self.address.to_string();
        let action = format!("{verb} `{name}`");
        let reason = reason(error);
        match error {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                BucketError::Refused {
                    address,
                    action,
                    reason,
                }
            }
            _ => BucketError::Unreachable {
                address,
                action,
                reason,
            },
        }
    }
}

/// What happened, without the layers that it came through.
fn reason(error: &Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(next) = last.source() {
        last = next;
    }
    let (mut told, root) = (error.to_string(), last.to_string());
    if !told.contains(&root) {
        told = format!("{told}: {root}");
    }
    ack_api::text::line(&told, 300)
}

/// The threads that requests run on: one runtime a process, started with the first request.
fn runtime() -> Result<&'static Runtime, BucketError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("bucket")
        .enable_all()
        .build()
        .map_err(BucketError::io("start the threads for", "bucket".as_ref()))?;
    Ok(RUNTIME.get_or_init(|| made))
}

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

fn s3(address: &Address, settings: &RemoteSettings) -> Result<impl ObjectStore, BucketError> {
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

fn gcs(address: &Address, settings: &RemoteSettings) -> Result<impl ObjectStore, BucketError> {
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

fn azure(address: &Address, settings: &RemoteSettings) -> Result<impl ObjectStore, BucketError> {
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

/// What a command prints, as AWS's `credential_process` does.
#[derive(Deserialize)]
struct Given {
    #[serde(rename = "AccessKeyId")]
    key_id: String,
    #[serde(rename = "SecretAccessKey")]
    secret_key: String,
    #[serde(rename = "SessionToken")]
    token: Option<String>,
}

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
