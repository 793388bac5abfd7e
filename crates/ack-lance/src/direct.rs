//! Reads the files of a table on the calling thread.
//!
//! LanceDB's own layer for local files hands every read to another thread. A search of a large
//! scope makes hundreds of small reads, nearly always from the page cache. Handing such a read to a
//! thread takes several times as long as the read itself, and so does opening the file each time.
//! Tables are written through LanceDB's own layer; this one is read-only.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path as FilePath;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};
use lance_io::object_store::{ObjectStore as LanceStore, ObjectStoreParams, ObjectStoreProvider};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use url::Url;

use ack_sys::files;
use ack_sys::idle_pool::IdlePool;

/// The scheme of addresses that are read this way.
pub const SCHEME: &str = "file-object-store";
/// Reads that are closer together than this many bytes are merged.
const COALESCE_BYTES: usize = 4_096;
/// How many reads may run at once.
const MAX_PARALLEL_READS: usize = 8;

pub fn address(folder: &FilePath) -> Option<String> {
    let file = Url::from_directory_path(folder).ok()?;
    let rest = file.as_str().strip_prefix("file:")?;
    Some(format!("{SCHEME}:{}", rest.trim_end_matches('/')))
}

/// Provides [`Direct`] to LanceDB.
#[derive(Debug)]
pub struct Provider;

#[async_trait]
impl ObjectStoreProvider for Provider {
    async fn new_store(&self, base: Url, _params: &ObjectStoreParams) -> lance::Result<LanceStore> {
        let direct = Arc::new(Direct(LocalFileSystem::new()));
        Ok(LanceStore::new(
            direct,
            base,
            Some(COALESCE_BYTES),
            None,
            false,
            false,
            MAX_PARALLEL_READS,
            0,
            None,
        ))
    }
}

#[derive(Debug)]
struct Direct(LocalFileSystem);

impl std::fmt::Display for Direct {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("files, read-only")
    }
}

#[async_trait]
impl ObjectStore for Direct {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let plain = !options.head
            && options.version.is_none()
            && options.if_match.is_none()
            && options.if_none_match.is_none()
            && options.if_modified_since.is_none()
            && options.if_unmodified_since.is_none();
        match &options.range {
            Some(GetRange::Bounded(range)) if plain => read(&self.0, location, range.clone()),
            _ if files::is_special(&self.0.path_to_filesystem(location)?) => {
                Err(read_error(location, std::io::ErrorKind::InvalidInput.into()))
            }
            _ => self.0.get_opts(location, options).await,
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn put_opts(
        &self,
        _location: &Path,
        _payload: PutPayload,
        _options: PutOptions,
    ) -> Result<PutResult> {
        Err(read_only())
    }

    async fn put_multipart_opts(
        &self,
        _location: &Path,
        _options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only())
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        locations.and_then(|_| async { Err(read_only()) }).boxed()
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, _options: CopyOptions) -> Result<()> {
        Err(read_only())
    }
}

fn read_only() -> Error {
    Error::NotSupported { source: "a table is only read here".into() }
}

struct OpenFile {
    file: File,
    meta: ObjectMeta,
}

/// Files that are read repeatedly: a table of a million memories has about twenty.
static OPEN_FILES: IdlePool<Arc<OpenFile>> = IdlePool::new(96);

/// Whether a file never changes once written: LanceDB gives data and indexes random names.
fn is_immutable(location: &Path) -> bool {
    let mut parts = location.parts().rev().skip(1);
    let folder = parts.next();
    let parent = parts.next();
    folder.is_some_and(|folder| folder.as_ref() == "data")
        || parent.is_some_and(|parent| parent.as_ref() == "_indices")
}

fn open(local: &LocalFileSystem, location: &Path) -> Result<Arc<OpenFile>> {
    let failed = |source| read_error(location, source);
    let known =
        |opened: &Arc<OpenFile>| (opened.meta.location == *location).then(|| Arc::clone(opened));
    if let Some(opened) = OPEN_FILES.find(known) {
        return Ok(opened);
    }
    let file = files::open(&local.path_to_filesystem(location)?).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let meta = ObjectMeta {
        location: location.clone(),
        last_modified: metadata.modified().map_err(failed)?.into(),
        size: metadata.len(),
        e_tag: None,
        version: None,
    };
    let opened = Arc::new(OpenFile { file, meta });
    if is_immutable(location) {
        OPEN_FILES.keep(Arc::clone(&opened));
    }
    Ok(opened)
}

fn read_error(location: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        std::io::ErrorKind::NotFound => {
            Error::NotFound { path: location.to_string(), source: source.into() }
        }
        _ => Error::Generic { store: SCHEME, source: source.into() },
    }
}

fn read(local: &LocalFileSystem, location: &Path, range: Range<u64>) -> Result<GetResult> {
    let opened = open(local, location)?;
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or_default();
    // A file that is shorter than expected is damaged: missing bytes are never made up.
    if range.end > opened.meta.size {
        return Err(read_error(location, std::io::ErrorKind::UnexpectedEof.into()));
    }
    let mut bytes = vec![0; length];
    let read = opened.file.read_exact_at(&mut bytes, range.start);
    read.map_err(|source| read_error(location, source))?;
    Ok(GetResult {
        payload: GetResultPayload::Stream(stream::once(async { Ok(bytes.into()) }.boxed()).boxed()),
        meta: opened.meta.clone(),
        range,
        attributes: object_store::Attributes::default(),
        extensions: object_store::Extensions::default(),
    })
}
