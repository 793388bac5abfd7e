//! Reads and writes objects: the operations that a bucket needs, blocking, with time limits.

use std::fs::{self, File};
use std::future::Future;
use std::io::Read;
use std::path::Path as FilePath;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ack_api::remote::RemoteSettings;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use tokio::runtime::Runtime;

use crate::BucketError;
use crate::address::{Address, Provider};
use crate::credentials::CredentialsProblem;
use crate::error::{Refusal, reason};
use crate::servers::{REQUEST_TIMEOUT, azure, gcs, s3};

/// Larger files are uploaded in parts of this size.
const PART_BYTES: usize = 16 << 20;

#[derive(Debug, Clone)]
pub struct Client {
    store: Arc<dyn ObjectStore>,
    address: Address,
    /// How long reading a small object may take.
    small_object_timeout: Duration,
}

pub enum ReadOutcome {
    /// The object, and what identifies these contents of it.
    Found(Bytes, UpdateVersion),
    /// It still has the known entity tag.
    Unchanged,
    Missing,
}

pub struct ListedObject {
    /// Its name, without the prefix of the address.
    pub name: String,
    pub bytes: u64,
    pub modified: jiff::Timestamp,
}

impl Client {
    /// Contacts nothing yet, but runs the command that prints credentials, if there is one.
    pub fn new(
        address: &Address,
        settings: &RemoteSettings,
        small_object_timeout: Duration,
    ) -> Result<Self, BucketError> {
        settings.check()?;
        // The first provider in a process stays; this program's upstream connections use the same
        // one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store: Arc<dyn ObjectStore> = match address.kind {
            Provider::S3 => Arc::new(s3(address, settings)?),
            Provider::Gcs => Arc::new(gcs(address, settings)?),
            Provider::Azure => Arc::new(azure(address, settings)?),
        };
        Ok(Self { store, address: address.clone(), small_object_timeout })
    }

    pub const fn address(&self) -> &Address {
        &self.address
    }

    fn path(&self, name: &str) -> Path {
        Path::from(self.address.key(name))
    }

    /// Reads a small object, unless it still has the known entity tag.
    pub fn read(&self, name: &str, known: Option<String>) -> Result<ReadOutcome, BucketError> {
        let options = GetOptions { if_none_match: known, ..GetOptions::default() };
        let path = self.path(name);
        let read = async {
            let found = self.store.get_opts(&path, options).await?;
            let (e_tag, version) = (found.meta.e_tag.clone(), found.meta.version.clone());
            Ok((found.bytes().await?, UpdateVersion { e_tag, version }))
        };
        match self.wait(self.small_object_timeout, read)? {
            Ok((bytes, state)) => Ok(ReadOutcome::Found(bytes, state)),
            Err(Error::NotModified { .. }) => Ok(ReadOutcome::Unchanged),
            Err(error) if is_missing(&error) => Ok(ReadOutcome::Missing),
            Err(error) => Err(self.failed("read", name, &error)),
        }
    }

    /// Reads a small object that must exist.
    pub fn get(&self, name: &str) -> Result<Bytes, BucketError> {
        match self.read(name, None)? {
            ReadOutcome::Found(bytes, _) => Ok(bytes),
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
                while at < end
                    && let Some(mut bytes) = stream.try_next().await?
                {
                    // A server may send more than was asked for.
                    bytes.truncate(usize::try_from(end - at).unwrap_or(usize::MAX));
                    if let Err(error) = take(&bytes) {
                        refused = Some(error);
                        break;
                    }
                    at += bytes.len() as u64;
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
            return match read? {
                Ok(()) => {
                    let problem = format!("`{name}` is shorter than what was published");
                    Err(BucketError::damaged(&self.address, problem))
                }
                Err(error) if is_missing(&error) => Err(self.missing(name)),
                Err(error) => Err(self.failed("read", name, &error)),
            };
        }
        Ok(())
    }

    /// Writes an object; `None` if the condition does not hold.
    pub fn put(
        &self,
        name: &str,
        bytes: impl Into<PutPayload>,
        condition: PutMode,
    ) -> Result<Option<UpdateVersion>, BucketError> {
        let is_update = matches!(condition, PutMode::Update(_));
        let path = self.path(name);
        let put = self.store.put_opts(&path, bytes.into(), PutOptions::from(condition));
        match self.wait(REQUEST_TIMEOUT, put)? {
            Ok(put) => Ok(Some(put.into())),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(None),
            // A condition on a missing object does not hold either.
            Err(error) if is_update && is_missing(&error) => Ok(None),
            Err(error) => Err(self.failed("write", name, &error)),
        }
    }

    /// Writes a file of this length under a name that is unique. `sent` gets the number of bytes of
    /// each part.
    pub fn upload(
        &self,
        name: &str,
        file: &FilePath,
        bytes: u64,
        mut sent: impl FnMut(u64),
    ) -> Result<(), BucketError> {
        let failed = BucketError::io("read", file);
        if bytes <= PART_BYTES as u64 {
            // Writing it twice is harmless.
            self.put(name, fs::read(file).map_err(failed)?, PutMode::Overwrite)?;
            sent(bytes);
            return Ok(());
        }
        let mut file = File::open(file).map_err(&failed)?;
        let path = self.path(name);
        let mut upload = self.ask("write", name, self.store.put_multipart(&path))?;
        let mut send_parts = || loop {
            let mut part = Vec::with_capacity(PART_BYTES);
            (&mut file).take(PART_BYTES as u64).read_to_end(&mut part).map_err(&failed)?;
            if part.is_empty() {
                return self.ask("write", name, upload.complete()).map(drop);
            }
            sent(part.len() as u64);
            self.ask("write", name, upload.put_part(part.into()))?;
        };
        let done = send_parts();
        if done.is_err() {
            // Its parts would stay in the bucket, where nothing lists them.
            let _ = self.wait(REQUEST_TIMEOUT, upload.abort());
        }
        done
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
        let path = self.path(folder);
        let listed = self.store.list(Some(&path)).try_collect::<Vec<_>>();
        let listed = self.ask("list", folder, listed)?.into_iter();
        let root = self.address.key("");
        let named = listed.filter_map(|object| {
            Some(ListedObject {
                name: object.location.as_ref().strip_prefix(&root)?.to_owned(),
                bytes: object.size,
                modified: jiff::Timestamp::from_second(object.last_modified.timestamp()).ok()?,
            })
        });
        Ok(named.collect())
    }

    /// Waits for a request for which no error means anything special.
    fn ask<T>(
        &self,
        verb: &str,
        name: &str,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, BucketError> {
        self.wait(REQUEST_TIMEOUT, request)?.map_err(|error| self.failed(verb, name, &error))
    }

    fn wait<T>(&self, within: Duration, work: impl Future<Output = T>) -> Result<T, BucketError> {
        runtime()?
            .block_on(async { tokio::time::timeout(within, work).await })
            .map_err(|_| BucketError::Timeout { address: self.address.to_string(), waited: within })
    }

    fn missing(&self, name: &str) -> BucketError {
        BucketError::Missing { address: self.address.to_string(), key: name.to_owned() }
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
        let (action, reason) = (format!("{verb} `{name}`"), reason(error));
        match Refusal::of(error) {
            Some(refusal) => BucketError::Refused { address, action, reason, refusal },
            None => BucketError::Unreachable { address, action, reason },
        }
    }
}

/// How many requests uploading a file of this length takes.
pub const fn upload_requests(bytes: u64) -> u64 {
    if bytes <= PART_BYTES as u64 { 1 } else { bytes.div_ceil(PART_BYTES as u64) + 2 }
}

/// The runtime of all requests: one per process, started with the first request.
fn runtime() -> Result<&'static Runtime, BucketError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("bucket")
        .enable_all()
        .build()
        .map_err(BucketError::io("start the threads for", "bucket".as_ref()))?;
    Ok(RUNTIME.get_or_init(|| built))
}

/// Whether a service that issues tokens failed, and not the bucket: a machine's metadata service,
/// or the login of Google or Microsoft.
fn is_about_token(error: &Error) -> bool {
    let error_text = error.to_string();
    ["token request", "token response"].iter().any(|what| error_text.contains(what))
}

/// Whether the bucket has no such object.
fn is_missing(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. }) && !is_without_bucket(error)
}

/// Whether the server answered that there is no such bucket. The library has no specific error for
/// that.
fn is_without_bucket(error: &Error) -> bool {
    let error_text = error.to_string();
    ["<Code>NoSuchBucket</Code>", "<Code>ContainerNotFound</Code>"]
        .iter()
        .any(|code| error_text.contains(code))
}
