//! Reads and writes objects: the operations that a bucket needs, blocking, with time limits.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ack_api::remote::RemoteSettings;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};

use crate::BucketError;
use crate::address::{Address, Provider};
use crate::credentials::CredentialsProblem;
use crate::error::Refusal;
use crate::runtime::{REQUEST_TIMEOUT, reason, runtime};
use crate::servers::{azure, gcs, s3};

/// A bucket that can be read and written.
#[derive(Debug, Clone)]
pub struct Client {
    store: Arc<dyn ObjectStore>,
    address: Address,
}

#[derive(Debug, Clone)]
pub struct Object {
    pub bytes: Bytes,
    pub state: ObjectState,
}

/// Identifies the contents of an object: states with different contents differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectState {
    tag: Option<String>,
    version: Option<String>,
}

impl ObjectState {
    /// The state with this entity tag.
    pub const fn from_etag(tag: String) -> Self {
        Self { tag: Some(tag), version: None }
    }

    /// A state that differs from this one.
    #[must_use]
    pub fn altered(&self) -> Self {
        Self {
            tag: self.tag.as_ref().map(|_| format!("\"{}\"", "0".repeat(32))),
            version: self.version.as_ref().map(|_| "1".to_owned()),
        }
    }

    pub fn etag(&self) -> Option<&str> {
        self.tag.as_deref()
    }
}

#[derive(Debug)]
pub enum ReadOutcome {
    Found(Object),
    /// The object is still in the given state.
    Unchanged,
    /// There is no such object.
    Missing,
}

#[derive(Debug, Clone)]
pub struct ListedObject {
    /// Its name, without the prefix of the address.
    pub name: String,
    pub bytes: u64,
    pub modified: jiff::Timestamp,
}

/// The condition under which an object is written.
#[derive(Debug, Clone)]
pub enum WriteCondition<'a> {
    Always,
    /// Only if it does not exist yet.
    IfAbsent,
    /// Only if it is still in this state.
    IfUnchanged(&'a ObjectState),
}

impl Client {
    /// A client for an address. It contacts nothing yet, but runs the command that prints
    /// credentials, if there is one.
    pub fn new(address: &Address, settings: &RemoteSettings) -> Result<Self, BucketError> {
        settings.check()?;
        // The first provider in a process stays; this program's upstream connections use the same
        // one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store: Arc<dyn ObjectStore> = match address.kind {
            Provider::S3 => Arc::new(s3(address, settings)?),
            Provider::Gcs => Arc::new(gcs(address, settings)?),
            Provider::Azure => Arc::new(azure(address, settings)?),
        };
        Ok(Self { store, address: address.clone() })
    }

    pub const fn address(&self) -> &Address {
        &self.address
    }

    fn path(&self, name: &str) -> Path {
        Path::from(self.address.key(name))
    }

    /// Reads an object, unless it is still in the known state.
    pub fn read(
        &self,
        name: &str,
        known: Option<&ObjectState>,
        within: Duration,
    ) -> Result<ReadOutcome, BucketError> {
        let options = GetOptions {
            if_none_match: known.and_then(|state| state.tag.clone()),
            ..GetOptions::default()
        };
        let path = self.path(name);
        let read = async {
            let found = self.store.get_opts(&path, options).await?;
            let state =
                ObjectState { tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
            let bytes = found.bytes().await?;
            Ok(Object { bytes, state })
        };
        match self.wait(within, read)? {
            Ok(object) => Ok(ReadOutcome::Found(object)),
            Err(Error::NotModified { .. }) => Ok(ReadOutcome::Unchanged),
            Err(error @ Error::NotFound { .. }) if !is_without_bucket(&error) => {
                Ok(ReadOutcome::Missing)
            }
            Err(error) => Err(self.failed("read", name, &error)),
        }
    }

    /// Reads an object that must exist.
    pub fn get(&self, name: &str, within: Duration) -> Result<Object, BucketError> {
        match self.read(name, None, within)? {
            ReadOutcome::Found(object) => Ok(object),
            ReadOutcome::Unchanged | ReadOutcome::Missing => Err(self.missing(name)),
        }
    }

    /// Reads an object from a position to its end, and passes its bytes to `take` as they arrive.
    ///
    /// A connection that ends too early is replaced, as long as each brings some bytes: on a slow
    /// link, one request may take longer than it is allowed to.
    pub fn read_from(
        &self,
        name: &str,
        mut at: u64,
        end: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), BucketError>,
    ) -> Result<(), BucketError> {
        let path = self.path(name);
        while at < end {
            let begun = at;
            let mut refused = None;
            let options = GetOptions { range: Some((at..end).into()), ..GetOptions::default() };
            let read = self.wait(REQUEST_TIMEOUT, async {
                let mut stream = self.store.get_opts(&path, options).await?.into_stream();
                while let Some(mut bytes) = stream.try_next().await? {
                    // A server may send more than was asked for.
                    bytes.truncate(usize::try_from(end - at).unwrap_or(usize::MAX));
                    if let Err(error) = take(&bytes) {
                        refused = Some(error);
                        break;
                    }
                    at += bytes.len() as u64;
                    if at >= end {
                        break;
                    }
                }
                Ok::<(), Error>(())
            });
            if let Some(error) = refused {
                return Err(error);
            }
            // The next request gets the rest.
            if at > begun {
                continue;
            }
            match read? {
                Ok(()) => {
                    let problem = format!("`{name}` is shorter than what was published");
                    return Err(BucketError::damaged(&self.address, problem));
                }
                Err(error @ Error::NotFound { .. }) if !is_without_bucket(&error) => {
                    return Err(self.missing(name));
                }
                Err(error) => return Err(self.failed("read", name, &error)),
            }
        }
        Ok(())
    }

    /// Writes an object; `None` if the condition does not hold.
    pub fn put(
        &self,
        name: &str,
        bytes: Bytes,
        condition: &WriteCondition<'_>,
    ) -> Result<Option<ObjectState>, BucketError> {
        let mode = match condition {
            WriteCondition::Always => PutMode::Overwrite,
            WriteCondition::IfAbsent => PutMode::Create,
            WriteCondition::IfUnchanged(state) => PutMode::Update(UpdateVersion {
                e_tag: state.tag.clone(),
                version: state.version.clone(),
            }),
        };
        let path = self.path(name);
        let put = self.store.put_opts(&path, PutPayload::from(bytes), PutOptions::from(mode));
        match self.wait(REQUEST_TIMEOUT, put)? {
            Ok(put) => Ok(Some(ObjectState { tag: put.e_tag, version: put.version })),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(None),
            // A condition on a missing object does not hold either.
            Err(error @ Error::NotFound { .. })
                if matches!(condition, WriteCondition::IfUnchanged(_))
                    && !is_without_bucket(&error) =>
            {
                Ok(None)
            }
            Err(error) => Err(self.failed("write", name, &error)),
        }
    }

    /// Writes a large object in parts.
    pub fn upload(
        &self,
        name: &str,
        part: usize,
        mut next: impl FnMut(&mut Vec<u8>) -> Result<(), BucketError>,
    ) -> Result<(), BucketError> {
        let path = self.path(name);
        let started = self.wait(REQUEST_TIMEOUT, self.store.put_multipart(&path))?;
        let mut upload = started.map_err(|error| self.failed("write", name, &error))?;
        let mut sent = Ok(());
        loop {
            let mut bytes = Vec::with_capacity(part);
            sent = sent.and_then(|()| next(&mut bytes));
            if sent.is_err() || bytes.is_empty() {
                break;
            }
            let outcome = self.wait(REQUEST_TIMEOUT, upload.put_part(bytes.into()));
            sent = outcome
                .and_then(|outcome| outcome.map_err(|error| self.failed("write", name, &error)));
        }
        if sent.is_ok() {
            let outcome = self.wait(REQUEST_TIMEOUT, upload.complete());
            sent = outcome.and_then(|outcome| match outcome {
                Ok(_) => Ok(()),
                Err(error) => Err(self.failed("write", name, &error)),
            });
        }
        if sent.is_err() {
            // Its parts would stay in the bucket, where nothing lists them.
            let _ = self.wait(REQUEST_TIMEOUT, upload.abort());
        }
        sent
    }

    /// Removes objects; missing ones are no error.
    pub fn delete(&self, names: &[String]) -> Result<(), BucketError> {
        for name in names {
            let path = self.path(name);
            match self.wait(REQUEST_TIMEOUT, self.store.delete(&path))? {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failed("remove", name, &error)),
            }
        }
        Ok(())
    }

    pub fn list(&self, folder: &str) -> Result<Vec<ListedObject>, BucketError> {
        let path = if folder.is_empty() {
            Path::from(self.address.prefix.clone())
        } else {
            self.path(folder)
        };
        let listed = self.wait(REQUEST_TIMEOUT, async {
            self.store.list(Some(&path)).try_collect::<Vec<_>>().await
        })?;
        let listed = listed.map_err(|error| self.failed("list", folder, &error))?;
        let root = self.address.key("");
        Ok(listed
            .into_iter()
            .filter_map(|object| {
                Some(ListedObject {
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

    fn missing(&self, name: &str) -> BucketError {
        BucketError::Missing { address: self.address.to_string(), key: name.to_owned() }
    }

    fn timeout(&self, waited: Duration) -> BucketError {
        BucketError::Timeout { address: self.address.to_string(), waited }
    }

    fn failed(&self, verb: &str, name: &str, error: &Error) -> BucketError {
        let address = self.address.to_string();
        if let Some(problem) = CredentialsProblem::of(error) {
            return BucketError::Credentials { address, problem: problem.to_string() };
        }
        if is_about_token(error) {
            let problem = format!("no token could be obtained: {}", reason(error));
            return BucketError::Credentials { address, problem };
        }
        if is_without_bucket(error) {
            return BucketError::NoSuchBucket { address, bucket: self.address.bucket.clone() };
        }
        let action = format!("{verb} `{name}`");
        let reason = reason(error);
        if let Some(refusal) = refusal(error) {
            BucketError::Refused { address, action, reason, refusal }
        } else {
            BucketError::Unreachable { address, action, reason }
        }
    }
}

/// Why the server refused, if it did. The library has no specific error for refused listings, nor
/// for some reasons.
fn refusal(error: &Error) -> Option<Refusal> {
    let error_text = error.to_string();
    let is_denied = matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
        || error_text.contains("status code: 403")
        || error_text.contains("status code: 401");
    Refusal::in_error_text(&error_text).or(is_denied.then_some(Refusal::Denied))
}

/// Whether a service that issues tokens failed, and not the bucket: a machine's metadata service,
/// or the login of Google or Microsoft.
fn is_about_token(error: &Error) -> bool {
    let error_text = error.to_string();
    ["token request", "token response"].iter().any(|what| error_text.contains(what))
}

/// Whether the server answered that there is no such bucket. The library has no specific error for
/// that either.
fn is_without_bucket(error: &Error) -> bool {
    let error_text = error.to_string();
    ["NoSuchBucket", "ContainerNotFound"]
        .iter()
        .any(|code| error_text.contains(&format!("<Code>{code}</Code>")))
}
