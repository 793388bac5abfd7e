//! Builds and updates a vector table: what `index` does.
//!
//! The store is read twice: first the fingerprints of its rows, in one short snapshot, then the
//! rows that the table lacks, in batches. No snapshot lasts longer than reading one batch, so that
//! programs that write to the store are not blocked. A few batches become one version of the table.
//! Only the last step, moving the tag, shows them to readers.
//!
//! A row that changed or is gone is removed, and its words leave the lexicon of its batch. The other
//! rows of the batch stay as they are.

mod contents;
mod feed;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use lancedb::Table;
use lancedb::database::CreateTableMode;
use lancedb::table::OptimizeAction;
use serde::Serialize;

use self::contents::{BatchTerms, Contents, StoredRow, lexicon_key, open_contents};
use self::feed::Versions;
use super::columns;
use super::extent::Extent;
use super::indexes::{compact, drop_word_indexes, update_indexes, will_search_on_disk};
use super::listing;
use super::rows;
use super::{
    PUBLISHED, TABLE, TableError, absolute, check_files, connect, next_batch, open, select_rows,
    tag_file, wait,
};
use ack_api::Hint;
use ack_api::memory::Status;
use ack_api::source::{Records, RowKey};
use ack_contextual::{Contextual, EncodeError};
use ack_search::encoder::Encoder;
use ack_search::inverted::sync::Listing;
use ack_store::open::CLOCK_TICK;
use ack_store::{Access, READ_TIMEOUT, Store, StoreError};
use ack_sys::files;

/// How many rows one condition may name.
const MAX_KEYS_PER_CONDITION: usize = 1_000;
/// In a table that replaces its store, versions older than this are removed, except the published
/// one. The bucket keeps its own older versions.
const RETENTION_HOURS: i64 = 1;

pub struct Target<'a> {
    pub scope: &'a str,
    pub folder: PathBuf,
    /// The store it is derived from.
    pub store: &'a Store,
    pub extent: Extent,
    /// If the table has more rows than this, it is searched on disk and gets indexes.
    pub resident: usize,
}

impl Target<'_> {
    /// Whether readers search it on disk, or soon will, if it has this many rows.
    fn is_searched(&self, rows: usize) -> bool {
        will_search_on_disk(rows, self.resident)
    }
}

#[derive(Clone, Copy)]
pub struct Options {
    /// Only report what would be done.
    pub dry_run: bool,
    pub rebuild: bool,
    pub encoder: EncoderChoice,
}

/// Up to this many memories, a new table has contextual vectors: that takes about 13 s.
pub const MAX_READ_IN_CONTEXT: usize = 5_000;

/// What makes a memory's vector.
#[derive(Clone, Copy)]
pub enum EncoderChoice {
    /// The one with which the table was begun. For a new table, the small transformer if there are
    /// at most [`MAX_READ_IN_CONTEXT`] memories; otherwise the static encoder.
    Usual,
    Static,
    /// The static encoder and the small transformer.
    Contextual(&'static Contextual),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub scope: String,
    /// Whether the small transformer reads its memories.
    pub contextual: bool,
    /// Rows that were added or replaced.
    pub added: usize,
    /// Rows that were removed: they changed, left the store, or were rejected.
    pub removed: usize,
    pub kept: usize,
    /// Why the table was rebuilt, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuild_reason: Option<String>,
    /// The version of the table that readers see now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// With numbers of rows: all that will be added, or those that were just added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Begin(usize),
    Added(usize),
    /// All rows are added; indexes are being created.
    Indexing,
}

/// What a build has to change in the table.
struct Plan {
    add: Vec<RowKey>,
    remove: Vec<RowKey>,
    kept: usize,
}

/// Why a table cannot be built. Readers keep the previous version.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("the encoder inside this binary is damaged")]
    DamagedEncoder,
}

impl BuildError {
    pub fn hints(&self) -> Vec<Hint> {
        let advice = match self {
            Self::Store(error) => return error.hints(),
            Self::Table(error) => return error.hints(),
            Self::Encode(_) => "build it with `--encoder static`",
            Self::DamagedEncoder => "install ack-memory again",
        };
        vec![Hint::advice(advice)]
    }
}

/// Brings a vector table up to date with its store.
pub fn build(
    target: &Target<'_>,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, BuildError> {
    let encoder = Encoder::embedded().ok_or(BuildError::DamagedEncoder)?;
    let folder = &target.folder;
    check_files(folder)?;
    let Wanted { rows: wanted, listing } = Wanted::read(target)?;
    let _lock = if options.dry_run { None } else { Some(lock(folder)?) };
    let network = resolve(options.encoder, folder, wanted.len());
    let encoders = Encoders { encoder, network };
    if options.dry_run {
        let is_there = folder.join(format!("{TABLE}.lance")).is_dir();
        let found = (is_there && !options.rebuild)
            .then(|| wait(open_contents(folder, encoders, target.extent)));
        let (known, rebuild_reason) = match found {
            Some(Ok((_, contents))) => (contents.rows, None),
            Some(Err(error)) => (Vec::new(), Some(error.to_string())),
            None => (Vec::new(), None),
        };
        let plan = Plan::new(&wanted, &known, target.is_searched(wanted.len()));
        return Ok(plan.report(target, encoders, rebuild_reason));
    }
    let report = match write(target, encoders, options.rebuild, &wanted, progress) {
        // A table that cannot be extended is rebuilt next to the published version, which readers
        // keep until the new one is complete.
        Err(BuildError::Table(error)) if error.is_table_fault() && !options.rebuild => {
            let mut report = write(target, encoders, true, &wanted, progress)?;
            report.rebuild_reason = Some(error.to_string());
            report
        }
        done => done?,
    };
    if let Some((key, listing)) = listing {
        listing::write(folder, key, &listing)?;
    }
    Ok(report)
}

/// What a store has.
struct Wanted {
    /// The rows that belong in the table.
    rows: Vec<(RowKey, u64, Status)>,
    /// The listing for readers of a table next to its store, with its key.
    listing: Option<(u64, Listing)>,
}

impl Wanted {
    fn read(target: &Target<'_>) -> Result<Self, StoreError> {
        let store = target.store;
        // A reader recognises the state of the store by its files. If one was written just now, the
        // next change could leave the same time.
        if !store.file_state()?.is_settled() {
            std::thread::sleep(CLOCK_TICK);
        }
        store.read(Access::FullScan, READ_TIMEOUT, |snapshot| {
            let is_settled = snapshot.file_state.is_settled();
            let key = listing::key(store, &snapshot.file_state);
            let has_listing = is_settled && target.extent == Extent::Derived;
            let listing = has_listing.then(|| Listing::read(snapshot)).transpose()?;
            Ok(Self {
                rows: snapshot.fingerprints()?,
                listing: listing.map(|listing| (key, listing)),
            })
        })
    }
}

/// What makes the vectors of a table.
#[derive(Clone, Copy)]
struct Encoders {
    encoder: &'static Encoder,
    /// Reads every memory of the table, if there is one.
    network: Option<&'static Contextual>,
}

/// The network of a table that will have this many rows: what was asked for, or what it was begun
/// with.
fn resolve(asked: EncoderChoice, folder: &Path, rows: usize) -> Option<&'static Contextual> {
    match asked {
        EncoderChoice::Static => return None,
        EncoderChoice::Contextual(network) => return Some(network),
        EncoderChoice::Usual => {}
    }
    let begun_with = wait(async {
        let schema = open(folder).await?.schema().await;
        schema.map_err(TableError::lance_error("read the schema"))
    });
    let is_contextual = match begun_with {
        Ok(schema) => columns::is_contextual(schema.metadata()),
        Err(_) => rows <= MAX_READ_IN_CONTEXT,
    };
    Contextual::embedded().filter(|_| is_contextual)
}

fn write(
    target: &Target<'_>,
    encoders: Encoders,
    rebuild: bool,
    wanted: &[(RowKey, u64, Status)],
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, BuildError> {
    let mut writer = Writer::open(target, encoders, rebuild)?;
    let is_searched = target.is_searched(wanted.len());
    let mut plan = Plan::new(wanted, &writer.contents.rows, is_searched);
    if writer.contents.has_mostly_old_records(&plan) {
        writer = Writer::open(target, encoders, true)?;
        writer.rebuild_reason =
            Some("most of the records in it were replaced or removed".to_owned());
        plan = Plan::new(wanted, &[], is_searched);
    }
    let mut report = plan.report(target, encoders, writer.rebuild_reason.take());
    progress(Progress::Begin(plan.add.len()));
    if target.extent == Extent::Derived && !plan.remove.is_empty() {
        // They would keep the words of removed rows. `publish` makes them again, even if this run
        // is killed before.
        wait(drop_word_indexes(&writer.table))?;
    }
    writer.remove(&plan.remove)?;
    writer.remove(&writer.contents.unused_lexicons(&plan.remove))?;
    if target.extent == Extent::Derived {
        writer.shrink_lexicons(&writer.contents.outdated_lexicons(&plan.remove))?;
    }
    feed::append(&writer, &plan.add, progress, |keys| {
        target.store.snapshot(|snapshot| snapshot.rows(keys))
    })?;
    progress(Progress::Indexing);
    report.version = Some(writer.publish(target)?);
    Ok(report)
}

impl Plan {
    /// The changes to a table with rows that are `known`. Only in one that is searched on disk does
    /// it matter which status a row has.
    fn new(wanted: &[(RowKey, u64, Status)], known: &[StoredRow], is_searched: bool) -> Self {
        let of = |fingerprint, status| (fingerprint, is_searched.then_some(status));
        let mut needed: HashMap<RowKey, _> = HashMap::with_capacity(wanted.len());
        needed.extend(wanted.iter().map(|(key, hash, status)| (*key, of(*hash, *status))));
        let mut kept: HashSet<RowKey> = HashSet::with_capacity(wanted.len());
        let mut remove = Vec::new();
        for row in known {
            let stored = row.fingerprint.map(|hash| of(hash, row.status));
            let is_current = stored.is_some() && stored.as_ref() == needed.get(&row.key);
            // A row that is there twice is removed and written again.
            if !is_current || !kept.insert(row.key) {
                remove.push(row.key);
            }
        }
        for key in &remove {
            kept.remove(key);
        }
        let keys = wanted.iter().map(|(key, ..)| *key);
        Self { kept: kept.len(), add: keys.filter(|key| !kept.contains(key)).collect(), remove }
    }

    fn report(
        &self,
        target: &Target<'_>,
        encoders: Encoders,
        rebuild_reason: Option<String>,
    ) -> Report {
        Report {
            scope: target.scope.to_owned(),
            contextual: encoders.network.is_some(),
            added: self.add.len(),
            removed: self.remove.len(),
            kept: self.kept,
            rebuild_reason,
            version: None,
        }
    }
}

/// Takes the build lock. It is released when the process ends for any reason.
fn lock(folder: &Path) -> Result<File, TableError> {
    // The table contains the text of memories, so only the owner may read it: the store itself may
    // be private.
    files::make_private(folder).map_err(TableError::io("make", folder))?;
    let path = folder.join(".lock");
    files::try_lock(&path).map_err(TableError::io("lock", &path))?.ok_or(TableError::Busy)
}

/// The table of a build, at its latest version.
struct Writer {
    table: Table,
    encoders: Encoders,
    extent: Extent,
    contents: Contents,
    /// Why it is being rebuilt.
    rebuild_reason: Option<String>,
}

impl Writer {
    /// Opens the table. Creates it if there is none, if it was made with another encoder, or if it
    /// cannot be read.
    fn open(target: &Target<'_>, encoders: Encoders, rebuild: bool) -> Result<Self, TableError> {
        let (folder, extent) = (&target.folder, target.extent);
        let place = folder.join(format!("{TABLE}.lance"));
        let rebuild_reason = if !place.is_dir() {
            None
        } else if rebuild {
            Some("`--rebuild`".to_owned())
        } else {
            match wait(open_contents(folder, encoders, extent)) {
                Ok((table, contents)) => {
                    return Ok(Self { table, encoders, extent, contents, rebuild_reason: None });
                }
                Err(error) => Some(error.to_string()),
            }
        };
        let schema = columns::schema(encoders.encoder, extent, encoders.network.is_some());
        let table = create(folder, &schema, &place)?;
        Ok(Self { table, encoders, extent, contents: Contents::default(), rebuild_reason })
    }

    fn remove(&self, keys: &[RowKey]) -> Result<(), TableError> {
        for keys in keys.chunks(MAX_KEYS_PER_CONDITION) {
            let mut by_source: HashMap<u8, Vec<String>> = HashMap::new();
            for key in keys {
                by_source.entry(key.source).or_default().push(key.rowid.to_string());
            }
            for (source, rows) in by_source {
                // This condition has only numbers, no text of a store.
                let condition = format!("source = {source} AND row IN ({})", rows.join(", "));
                wait(async {
                    let deleted = self.table.delete(condition.as_str()).await;
                    deleted.map_err(TableError::lance_error("remove rows"))
                })?;
            }
        }
        Ok(())
    }

    /// Writes the lexicons of batches again without the terms that no row needs. If this run is
    /// killed in between, the next one finds these lexicons, or rows without one.
    fn shrink_lexicons(&self, batches: &[u64]) -> Result<(), TableError> {
        for batches in batches.chunks(MAX_KEYS_PER_CONDITION) {
            let numbers: Vec<String> = batches.iter().map(u64::to_string).collect();
            let condition = format!("batch IN ({})", numbers.join(", "));
            let (schema, terms) = wait(async {
                let schema = self.table.schema().await;
                let schema = schema.map_err(TableError::lance_error("read the schema"))?;
                let columns = ["source", "detail"];
                let mut rows = select_rows(&self.table, &columns, Some(&condition)).await?;
                let mut terms = BatchTerms::default();
                while let Some(batch) = next_batch(&mut rows).await? {
                    rows::details(&batch, |_, detail| terms.add(&detail))?;
                }
                Ok((schema, terms))
            })?;
            let (mut keys, mut shrunk) = (Vec::new(), Vec::new());
            for (batch, lexicon) in terms.shrunk() {
                keys.extend(lexicon_key(batch));
                shrunk.push(columns::lexicon(&schema, batch, lexicon)?);
            }
            self.remove(&keys)?;
            let mut version = Versions::new(&self.table, shrunk.len());
            for lexicon in shrunk {
                version.add(lexicon)?;
            }
            version.finish()?;
        }
        Ok(())
    }

    /// Creates worthwhile indexes, and publishes the result.
    fn publish(&self, target: &Target<'_>) -> Result<u64, TableError> {
        let folder = &target.folder;
        wait(async {
            let rows = self
                .table
                .count_rows(None)
                .await
                .map_err(TableError::lance_error("count the rows"))?;
            compact(&self.table, rows, self.extent).await?;
            update_indexes(&self.table, rows, target.resident, target.extent).await?;
            let version =
                self.table.version().await.map_err(TableError::lance_error("read the version"))?;
            let mut tags =
                self.table.tags().await.map_err(TableError::lance_error("read the tags"))?;
            let known = match tags.list().await {
                Ok(known) => known,
                Err(_) => {
                    // A damaged tag names no version that could be lost.
                    let _ = std::fs::remove_file(tag_file(folder));
                    tags.list().await.map_err(TableError::lance_error("read the tags"))?
                }
            };
            let result = match known.get(PUBLISHED) {
                Some(tag) if tag.version == version => Ok(()),
                Some(_) => tags.update(PUBLISHED, version).await,
                None => tags.create(PUBLISHED, version).await,
            };
            result.map_err(TableError::lance_error("publish the new version"))?;
            self.prune().await?;
            Ok(version)
        })
    }

    /// Removes what no reader needs any more: earlier versions, and what killed builds left. Next
    /// to a store nothing older than this build stays, because it may have the text of memories
    /// that the store no longer has. A reader of the earlier version opens the new one.
    async fn prune(&self) -> Result<(), TableError> {
        let is_derived = self.extent == Extent::Derived;
        let retention = if is_derived { 0 } else { RETENTION_HOURS };
        let prune = OptimizeAction::Prune {
            older_than: Some(chrono::Duration::hours(retention)),
            // No other build is writing: this one holds the lock.
            delete_unverified: is_derived.then_some(true),
            error_if_tagged_old_versions: None,
        };
        let pruned = self.table.optimize(prune).await;
        let pruned = pruned.map(drop).map_err(TableError::lance_error("remove old versions"));
        if is_derived { pruned } else { Ok(()) }
    }
}

/// Creates an empty table. An existing one keeps its published version until the new one is
/// published, unless it cannot even be opened.
fn create(folder: &Path, schema: &SchemaRef, table_path: &Path) -> Result<Table, TableError> {
    if table_path.is_dir() && wait(async { open(folder).await.map(|_| ()) }).is_err() {
        std::fs::remove_dir_all(table_path).map_err(TableError::io("remove", table_path))?;
    }
    wait(async {
        connect(&absolute(folder)?.to_string_lossy())
            .await?
            .create_table(TABLE, RecordBatch::new_empty(SchemaRef::clone(schema)))
            .mode(CreateTableMode::Overwrite)
            .execute()
            .await
            .map_err(TableError::lance_error("make the table"))
    })
}
