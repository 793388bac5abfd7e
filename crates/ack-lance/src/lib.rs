//! The vector table: a LanceDB table next to a store. It is derived from the store, and may be
//! absent, stale or broken.
//!
//! It is in the folder `lance/` of a scope and has, for every row of the store, what is expensive
//! to compute: the terms of the text, its vector, and the columns that filters need. A reader uses
//! the rows that still match the store and computes the others itself. So a bad table can cost
//! time, but never an answer.
//!
//! Only [`build`] writes it, and only while it holds the lock in `lance/`. Readers see the version
//! that the tag [`PUBLISHED`] names. A build adds versions after it and moves the tag at the end,
//! in one step. So a reader sees the old state or the new one. A killed build leaves the old one,
//! and the next build continues from what it had written.

// For the benchmark that compares with LanceDB itself.
#[doc(hidden)]
pub use arrow;
#[doc(hidden)]
pub use lancedb;

pub mod build;
mod columns;
mod direct;
pub mod indexes;
pub mod listing;
pub mod load;
pub mod record_blocks;
pub mod records;
mod rows;
mod search;
mod terms;

pub use self::columns::Extent;
use ack_api::Hint;
use ack_store::table_version::{PUBLISHED, TABLE, TableVersion, tag_file};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use futures::{StreamExt, TryStreamExt};
use lance::Dataset;
use lance::dataset::builder::DatasetBuilder;
use lance::dataset::fragment::FragReadConfig;
use lancedb::arrow::SendableRecordBatchStream;
use lancedb::query::{ExecutableQuery, QueryBase, Select};
use lancedb::{Connection, ObjectStoreRegistry, Session, Table};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// How many rows are decoded at once. Decoded rows that are not read yet count towards the peak
/// memory of the process.
const DECODED_ROWS: u32 = 4_096;
/// The size of LanceDB's caches for the indexes and metadata of all tables, in bytes.
const INDEX_CACHE_BYTES: usize = 128 << 20;
const METADATA_CACHE_BYTES: usize = 16 << 20;

/// What is wrong with a vector table. The store is not affected, and every memory is still found.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("{action}: {}", reason(.source))]
    Lance { action: &'static str, source: Box<lancedb::Error> },
    /// It was made with another encoder or version.
    #[error("it was made with {found}, this program needs {needed}")]
    Mismatch { found: String, needed: String },
    #[error("the encoder was {found}")]
    OtherEncoder { found: &'static str },
    #[error("its column `{column}` is missing or of another type")]
    Column { column: &'static str },
    /// Its contents contradict each other, or LanceDB panicked while reading them.
    #[error("it is damaged")]
    Damaged,
    /// No version of it is published yet.
    #[error("its first build has not finished")]
    Unpublished,
    #[error("another `index` is working on it")]
    Busy,
    /// Its folder holds something that is neither a file nor a folder. Opening it could wait
    /// forever.
    #[error("{source}")]
    Special { source: std::io::Error },
    #[error("{action} {}: {source}", .path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// What LanceDB says, without the places in its source that it appends. The text of a panic would
/// help nobody, so it is reported as damage, which causes it.
fn reason(error: &lancedb::Error) -> String {
    let text = error.to_string();
    if text.contains("panicked") {
        return TableError::Damaged.to_string();
    }
    let mut reason = &*text;
    while let Some((before, place)) = reason.rsplit_once(", ")
        && place.contains(".rs:")
    {
        reason = before;
    }
    ack_api::text::line(reason, 300)
}

impl TableError {
    /// Whether the table itself is at fault, and not its folder or another build.
    const fn is_table_fault(&self) -> bool {
        !matches!(self, Self::Unpublished | Self::Busy | Self::Special { .. } | Self::Io { .. })
    }

    /// Whether a damaged file can be the cause.
    pub const fn may_be_damage(&self) -> bool {
        matches!(self, Self::Lance { .. } | Self::Column { .. } | Self::Damaged | Self::Io { .. })
    }

    pub fn hints(&self) -> Vec<Hint> {
        let (advice, index) = match self {
            Self::Busy => {
                let advice = "wait until it has finished; what it does is not lost";
                return vec![Hint::advice(advice)];
            }
            Self::Special { .. } => (
                "searches go on without the table; remove that from `lance/` in the scope's folder",
                "builds the table again",
            ),
            _ => (
                "searches work without it; fix the cause",
                "then builds it again, with --rebuild if the table is damaged",
            ),
        };
        vec![Hint::advice(advice), Hint::command("index", index)]
    }

    fn io(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    fn lance_error<E: Into<lancedb::Error>>(action: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Lance { action, source: Box::new(source.into()) }
    }
}

/// The runtime that LanceDB runs on: one per process, started with the first table.
fn runtime() -> Result<&'static Runtime, TableError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4))
        .thread_name("lance")
        .enable_all()
        .build()
        .map_err(TableError::io("start the threads for", TABLE.as_ref()))?;
    Ok(RUNTIME.get_or_init(|| built))
}

/// Runs LanceDB work on other threads.
fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<JoinHandle<T>, TableError> {
    Ok(runtime()?.spawn(work))
}

/// Runs LanceDB work and waits for it. A panic of the library, which a damaged table can cause, is
/// an error like any other.
fn wait<T: Send>(
    work: impl Future<Output = Result<T, TableError>> + Send,
) -> Result<T, TableError> {
    let runtime = runtime()?;
    let guarded = std::panic::AssertUnwindSafe(|| runtime.block_on(work));
    std::panic::catch_unwind(guarded).unwrap_or(Err(TableError::Damaged))
}

/// One set of caches for all tables of the process, so that memory is limited however many scopes
/// there are.
fn session() -> Arc<Session> {
    static SESSION: OnceLock<Arc<Session>> = OnceLock::new();
    Arc::clone(SESSION.get_or_init(|| new_session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES)))
}

/// A session with caches of these sizes, in bytes.
fn new_session(index_cache: usize, metadata_cache: usize) -> Arc<Session> {
    let stores = ObjectStoreRegistry::default();
    stores.insert(direct::SCHEME, Arc::new(direct::Provider));
    Arc::new(Session::new(index_cache, metadata_cache, Arc::new(stores)))
}

fn absolute(folder: &Path) -> Result<PathBuf, TableError> {
    std::path::absolute(folder).map_err(TableError::io("resolve", folder))
}

/// The address from which a folder is read.
fn address(folder: &Path) -> Result<String, TableError> {
    let path = absolute(folder)?;
    Ok(direct::address(&path).unwrap_or_else(|| path.to_string_lossy().into_owned()))
}

/// Connects to an existing folder. LanceDB would create a missing one.
async fn connect(address: &str) -> Result<Connection, TableError> {
    lancedb::connect(address)
        .session(session())
        .execute()
        .await
        .map_err(TableError::lance_error("open the folder"))
}

/// Checks that a folder holds nothing that LanceDB could wait for.
fn check_files(folder: &Path) -> Result<(), TableError> {
    ack_sys::files::check_tree(folder).map_err(|source| match source.kind() {
        std::io::ErrorKind::InvalidInput => TableError::Special { source },
        _ => TableError::io("read", folder)(source),
    })
}

async fn open(folder: &Path) -> Result<Table, TableError> {
    check_files(folder)?;
    open_at(&absolute(folder)?.to_string_lossy()).await
}

async fn open_at(address: &str) -> Result<Table, TableError> {
    let opening = connect(address).await?.open_table(TABLE);
    opening.execute().await.map_err(TableError::lance_error("open the table"))
}

/// Opens the published version for searching.
async fn open_published(folder: &Path) -> Result<Table, TableError> {
    let table = open_at(&address(folder)?).await?;
    table.checkout_tag(PUBLISHED).await.map_err(|_| TableError::Unpublished)?;
    Ok(table)
}

/// Opens the published version to read all of it once. It shares no caches: they would keep what
/// was read of every version that a long-running process has loaded.
async fn published_dataset(folder: &Path) -> Result<Dataset, TableError> {
    dataset_with(folder, new_session(0, 0)).await
}

/// Opens the published version with the caches of a session.
async fn dataset_with(folder: &Path, session: Arc<Session>) -> Result<Dataset, TableError> {
    check_files(folder)?;
    DatasetBuilder::from_uri(address(&folder.join(format!("{TABLE}.lance")))?)
        .with_session(session)
        .with_tag(PUBLISHED)
        .load()
        .await
        .map_err(TableError::lance_error("open the published version"))
}

/// Reads columns of all rows, with their numbers in `_rowid`, in ascending order, file by file. A
/// query would give the same rows, but planning one is slow and loads much program code.
async fn each_batch(
    dataset: &Dataset,
    columns: &[&str],
    mut visit: impl FnMut(&RecordBatch) -> Result<(), TableError>,
) -> Result<(), TableError> {
    let failed = TableError::lance_error("read the rows");
    let schema = dataset.schema().project(columns).map_err(&failed)?;
    let mut fragments = dataset.get_fragments();
    fragments.sort_unstable_by_key(lance::dataset::fragment::FileFragment::id);
    for fragment in fragments {
        let config = FragReadConfig::default().with_row_id(true);
        let reader = fragment.open(&schema, config).await.map_err(&failed)?;
        let rows =
            u32::try_from(fragment.count_rows(None).await.map_err(&failed)?).unwrap_or(u32::MAX);
        // One part at a time: data that is read ahead stays in memory.
        for first in (0..rows).step_by(DECODED_ROWS as usize) {
            let part = first..rows.min(first.saturating_add(DECODED_ROWS));
            let mut batches =
                reader.read_range(part, DECODED_ROWS).await.map_err(&failed)?.buffered(1);
            while let Some(batch) = batches.try_next().await.map_err(&failed)? {
                visit(&batch)?;
            }
        }
    }
    Ok(())
}

/// Reads columns of the rows that a condition selects, or of all rows.
async fn select_rows(
    table: &Table,
    columns: &[&str],
    condition: Option<&str>,
) -> Result<SendableRecordBatchStream, TableError> {
    let mut query = table.query().select(Select::columns(columns));
    if let Some(condition) = condition {
        query = query.only_if(condition);
    }
    query.execute().await.map_err(TableError::lance_error("read the rows"))
}

async fn next_batch(
    batches: &mut SendableRecordBatchStream,
) -> Result<Option<RecordBatch>, TableError> {
    batches.try_next().await.map_err(TableError::lance_error("read the rows"))
}
