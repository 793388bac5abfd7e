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

use lancedb::Table;
use lancedb::database::CreateTableMode;
use lancedb::table::OptimizeAction;
use serde::Serialize;

use self::contents::{Contents, StoredRow, add_used_terms, lexicon_key, open_contents};
use self::feed::Versions;
use super::columns::{self, Extent, Format};
use super::indexes::{compact, drop_word_indexes, update_indexes, will_search_on_disk};
use super::listing;
use super::{
    PUBLISHED, TABLE, TableError, absolute, check_files, connect, next_batch, open, rows,
    select_rows, tag_file, terms, wait,
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

/// Gets how many rows are added, and how many will be. Once all are, indexes are created.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize);

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
    progress: Progress<'_>,
) -> Result<Report, BuildError> {
    let encoder = Encoder::embedded().ok_or(BuildError::DamagedEncoder)?;
    let folder = &target.folder;
    check_files(folder)?;
    let (wanted, listing) = read_store(target)?;
    let _lock = if options.dry_run { None } else { Some(lock(folder)?) };
    let network = resolve(options.encoder, folder, wanted.len());
    let format = Format { extent: target.extent, encoder, network };
    if options.dry_run {
        let (known, rebuild_reason) = match open_known(folder, format, options.rebuild) {
            Ok(known) => (known.map(|(_, contents)| contents.rows).unwrap_or_default(), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let plan = Plan::new(&wanted, &known, target.is_searched(wanted.len()));
        return Ok(plan.report(target, format, rebuild_reason));
    }
    let report = match write(target, format, options.rebuild, &wanted, progress) {
        // A table that cannot be extended is rebuilt next to the published version, which readers
        // keep until the new one is complete.
        Err(BuildError::Table(error)) if error.is_table_fault() && !options.rebuild => {
            let mut report = write(target, format, true, &wanted, progress)?;
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

/// The rows of a store that belong in the table, each with its fingerprint.
type Wanted = Vec<(RowKey, u64, Status)>;

/// What a store has, with the listing for readers of a table next to its store, and its key.
fn read_store(target: &Target<'_>) -> Result<(Wanted, Option<(u64, Listing)>), StoreError> {
    let store = target.store;
    // A reader recognises the state of the store by its files. If one was written just now, the
    // next change could leave the same time.
    if !store.file_state()?.is_settled() {
        std::thread::sleep(CLOCK_TICK);
    }
    store.read(Access::FullScan, READ_TIMEOUT, |snapshot| {
        let has_listing = snapshot.file_state.is_settled() && target.extent == Extent::Derived;
        let listing = has_listing.then(|| Listing::read(snapshot)).transpose()?;
        let key = listing::key(store, &snapshot.file_state);
        Ok((snapshot.fingerprints()?, listing.map(|listing| (key, listing))))
    })
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
    format: Format,
    rebuild: bool,
    wanted: &[(RowKey, u64, Status)],
    progress: Progress<'_>,
) -> Result<Report, BuildError> {
    let mut writer = Writer::open(&target.folder, format, rebuild)?;
    let is_searched = target.is_searched(wanted.len());
    let mut plan = Plan::new(wanted, &writer.contents.rows, is_searched);
    if writer.contents.has_mostly_old_records(&plan) {
        writer = Writer::open(&target.folder, format, true)?;
        writer.rebuild_reason =
            Some("most of the records in it were replaced or removed".to_owned());
        plan = Plan::new(wanted, &[], is_searched);
    }
    let mut report = plan.report(target, format, writer.rebuild_reason.take());
    let is_derived = target.extent == Extent::Derived;
    if is_derived && !plan.remove.is_empty() {
        // They would keep the words of removed rows. `publish` makes them again, even if this run
        // is killed before.
        wait(drop_word_indexes(&writer.table))?;
    }
    // The lexicons go first: if this run is killed before they are written again, the next one
    // finds rows without one, and writes these rows again.
    let batches = writer.contents.outdated_lexicons(&plan.remove, is_derived);
    writer.remove(&batches.iter().copied().map(lexicon_key).collect::<Vec<_>>())?;
    writer.remove(&plan.remove)?;
    if is_derived {
        writer.write_lexicons(&batches)?;
    }
    feed::append(&writer, &plan.add, progress, |keys| {
        target.store.snapshot(|snapshot| snapshot.rows(keys))
    })?;
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
        format: Format,
        rebuild_reason: Option<String>,
    ) -> Report {
        Report {
            scope: target.scope.to_owned(),
            contextual: format.network.is_some(),
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

/// Opens an existing table and reads what it contains. `None` if there is none, or if it will be
/// built again anyway.
fn open_known(
    folder: &Path,
    format: Format,
    rebuild: bool,
) -> Result<Option<(Table, Contents)>, TableError> {
    let is_there = folder.join(format!("{TABLE}.lance")).is_dir();
    (is_there && !rebuild).then(|| wait(open_contents(folder, format))).transpose()
}

/// The table of a build, at its latest version.
struct Writer {
    table: Table,
    format: Format,
    contents: Contents,
    /// Why it is being rebuilt.
    rebuild_reason: Option<String>,
}

impl Writer {
    /// Opens the table. Creates it if there is none, if it was made with another encoder, or if it
    /// cannot be read.
    fn open(folder: &Path, format: Format, rebuild: bool) -> Result<Self, TableError> {
        let place = folder.join(format!("{TABLE}.lance"));
        let rebuild_reason = match open_known(folder, format, rebuild) {
            Ok(Some((table, contents))) => {
                return Ok(Self { table, format, contents, rebuild_reason: None });
            }
            Ok(None) => place.is_dir().then(|| "`--rebuild`".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        let table = create(folder, format, &place)?;
        Ok(Self { table, format, contents: Contents::default(), rebuild_reason })
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

    /// Writes the lexicons of batches again, with the terms that the rows of the table need.
    fn write_lexicons(&self, batches: &[u32]) -> Result<(), TableError> {
        for batches in batches.chunks(MAX_KEYS_PER_CONDITION) {
            let numbers: Vec<String> = batches.iter().map(u32::to_string).collect();
            let condition = format!("batch IN ({})", numbers.join(", "));
            let used = wait(async {
                let mut used: HashMap<u32, Vec<bool>> = HashMap::new();
                let columns = ["source", "detail"];
                let mut rows = select_rows(&self.table, &columns, Some(&condition)).await?;
                while let Some(batch) = next_batch(&mut rows).await? {
                    rows::details(&batch, |_, detail| add_used_terms(&detail, &mut used))?;
                }
                Ok(used)
            })?;
            let mut version = Versions::new(&self.table, used.len());
            for (batch, used) in used {
                let whole = self.contents.lexicons.get(&batch).ok_or(TableError::Damaged)?;
                let lexicon = terms::shrink_lexicon(whole, &used).ok_or(TableError::Damaged)?;
                version.add(self.format.lexicon(batch, lexicon)?)?;
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
            compact(&self.table, rows, target.extent).await?;
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
        let is_derived = self.format.extent == Extent::Derived;
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
fn create(folder: &Path, format: Format, table_path: &Path) -> Result<Table, TableError> {
    if table_path.is_dir() && wait(async { open(folder).await.map(|_| ()) }).is_err() {
        std::fs::remove_dir_all(table_path).map_err(TableError::io("remove", table_path))?;
    }
    let empty = format.empty()?;
    wait(async {
        connect(&absolute(folder)?.to_string_lossy())
            .await?
            .create_table(TABLE, empty)
            .mode(CreateTableMode::Overwrite)
            .execute()
            .await
            .map_err(TableError::lance_error("make the table"))
    })
}
