//! Builds and updates a vector table: what `index` does.
//!
//! The store is read twice: first the fingerprints of its rows, in one short snapshot, then the
//! rows that the table lacks, in batches. No snapshot lasts longer than reading one batch, so that
//! programs that write to the store are not blocked. A few batches become one version of the table.
//! Only the last step, moving the tag, shows them to readers.

mod contents;
mod feed;
mod prepare;
mod report;

use std::collections::{HashMap, HashSet};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, SchemaRef, UInt64Type};
use lancedb::Table;
use lancedb::database::CreateTableMode;
use lancedb::table::OptimizeAction;

use self::contents::{Contents, StoredRow, contents};
pub use self::report::{EncoderChoice, MAX_READ_IN_CONTEXT, Options, Progress, Report, Target};
use super::columns;
use super::extent::Extent;
use super::indexes::{ROWS_PER_FRAGMENT, compact, drop_word_indexes, update_indexes};
use super::{
    PUBLISHED, TABLE, TableError, check_files, connect, next_batch, open, select_rows, tag_file,
    wait,
};
use ack_api::Hint;
use ack_api::source::{Records, RowKey};
use ack_contextual::{Contextual, EncodeError};
use ack_search::analyzer::analyzer_threads;
use ack_search::encoder::Encoder;
use ack_store::StoreError;
use ack_store::{READ_TIMEOUT, Snapshot};

/// How many rows one thread prepares at once; each batch has its own lexicon. A small number of
/// rows is divided among all threads.
const ROWS_PER_BATCH: usize = 16_384;
const MIN_ROWS_PER_BATCH: usize = 1_024;
/// How many batches become one version and one fragment of the table. A killed build loses at most
/// these. Every fragment slows down each search of a large table a little.
const BATCHES_PER_VERSION: usize = ROWS_PER_FRAGMENT / ROWS_PER_BATCH;
/// Rows per batch if the small transformer reads them. That takes long, so progress is saved more
/// often.
const ROWS_PER_CONTEXTUAL_BATCH: usize = 256;
/// How many rows one condition may name.
const MAX_KEYS_PER_CONDITION: usize = 1_000;
/// In a table that replaces its store, versions older than this are removed, except the published
/// one. The bucket keeps its own older versions.
const RETENTION_HOURS: i64 = 1;
/// Begins the name of a table that was moved aside because it could not be replaced.
const BROKEN: &str = ".broken-";

/// What a build has to change in the table.
struct Plan {
    /// Rows to add.
    add: Vec<RowKey>,
    /// Rows to remove first.
    remove: Vec<RowKey>,
    kept: usize,
}

/// Why a table cannot be built. Readers keep the previous version.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The small transformer failed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The table cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The binary carries a broken encoder.
    #[error("the encoder inside this binary is damaged")]
    DamagedEncoder,
}

impl BuildError {
    /// What to do about it.
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
///
/// # Errors
/// If the store cannot be read or the table cannot be written. Readers then keep the previous
/// version.
pub fn build(
    target: &Target<'_>,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, BuildError> {
    let encoder = Encoder::embedded().ok_or(BuildError::DamagedEncoder)?;
    let folder = &target.folder;
    check_files(folder)?;
    let wanted = target.store.full_scan(READ_TIMEOUT, fingerprints)?;
    if options.dry_run {
        let choice = resolve(options.encoder, folder, wanted.len());
        let is_there = folder.join(format!("{TABLE}.lance")).is_dir();
        let found = (is_there && !options.rebuild).then(|| {
            wait(async { contents(&open(folder).await?, encoder, (choice, target.extent)).await })
        });
        let (known, rebuild_reason) = match found {
            Some(Ok(contents)) => (contents.rows, None),
            Some(Err(error)) => (Vec::new(), Some(error.to_string())),
            None => (Vec::new(), None),
        };
        let plan = Plan::new(&wanted, &known);
        return Ok(Report {
            scope: target.scope.to_owned(),
            contextual: choice.is_contextual() == Some(true),
            added: plan.add.len(),
            removed: plan.remove.len(),
            kept: plan.kept,
            rebuild_reason,
            version: None,
        });
    }
    let _lock = lock(folder)?;
    remove_broken(folder)?;
    let choice = resolve(options.encoder, folder, wanted.len());
    let encoders = Encoders { encoder, choice };
    match write(target, encoders, options.rebuild, &wanted, progress) {
        // A table that cannot be extended is rebuilt next to the published version, which readers
        // keep until the new one is complete.
        Err(BuildError::Table(error)) if error.is_table_fault() && !options.rebuild => {
            let mut report = write(target, encoders, true, &wanted, progress)?;
            report.rebuild_reason = Some(error.to_string());
            Ok(report)
        }
        done => done,
    }
}

/// The encoders that make vectors.
#[derive(Clone, Copy)]
struct Encoders {
    encoder: &'static Encoder,
    choice: EncoderChoice,
}

impl Encoders {
    /// The network for new vectors.
    const fn network(&self) -> Option<&'static Contextual> {
        match self.choice {
            EncoderChoice::Contextual(network) => Some(network),
            EncoderChoice::Usual | EncoderChoice::Static => None,
        }
    }
}

/// The choice for a table that will have this many rows: what was asked for, or what it was begun
/// with.
fn resolve(asked: EncoderChoice, folder: &Path, rows: usize) -> EncoderChoice {
    if !matches!(asked, EncoderChoice::Usual) {
        return asked;
    }
    let begun_with = wait(async {
        let schema = open(folder).await?.schema().await;
        schema.map_err(TableError::lance_error("read the schema"))
    });
    let is_contextual = match begun_with {
        Ok(schema) => columns::is_contextual(schema.metadata()),
        Err(_) => rows <= MAX_READ_IN_CONTEXT,
    };
    let network = Contextual::embedded().filter(|_| is_contextual);
    network.map_or(asked, EncoderChoice::Contextual)
}

/// Vectors that a network contributed to, each with the network's hash, by the hash of the encoded
/// text.
type ReusableVectors = HashMap<u64, (Box<[f32]>, String)>;

fn write(
    target: &Target<'_>,
    encoders: Encoders,
    rebuild: bool,
    wanted: &[(RowKey, u64)],
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, BuildError> {
    let mut writer = Writer::open(target, encoders, rebuild)?;
    let mut plan = Plan::new(wanted, &writer.contents.rows);
    if writer.contents.has_mostly_old_records(&plan) {
        writer = Writer::open(target, encoders, true)?;
        writer.rebuild_reason =
            Some("most of the records in it were replaced or removed".to_owned());
        plan = Plan::new(wanted, &[]);
    }
    let (added, removed, kept) = (plan.add.len(), plan.remove.len(), plan.kept);
    if target.extent == Extent::Derived {
        plan.rewrite_batches(&writer.contents.rows);
    }
    let mut report = Report {
        scope: target.scope.to_owned(),
        contextual: encoders.choice.is_contextual() == Some(true),
        added,
        removed,
        kept,
        rebuild_reason: writer.rebuild_reason.take(),
        version: None,
    };
    progress(Progress::Begin(plan.add.len()));
    if target.extent == Extent::Derived && !plan.remove.is_empty() {
        // They would keep the words of removed rows. `publish` makes them again, even if this run
        // is killed before.
        wait(drop_word_indexes(&writer.table))?;
    }
    writer.remove(&plan.remove)?;
    writer.remove(&writer.contents.unused_lexicons(&plan.remove))?;
    let (batch, batches_per_version) = if encoders.network().is_some() {
        (ROWS_PER_CONTEXTUAL_BATCH, 1)
    } else {
        (rows_per_batch(plan.add.len()), BATCHES_PER_VERSION)
    };
    feed::append(
        &writer,
        (plan.add.chunks(batch), batches_per_version),
        progress,
        |keys| target.store.snapshot(|snapshot| snapshot.rows(keys)),
    )?;
    progress(Progress::Indexing);
    report.version = Some(writer.publish(target)?);
    Ok(report)
}

/// Rows per batch, so that every thread prepares about the same number.
fn rows_per_batch(rows: usize) -> usize {
    let threads = analyzer_threads();
    let rounds = rows.div_ceil(ROWS_PER_BATCH * threads).max(2);
    rows.div_ceil(rounds * threads)
        .clamp(MIN_ROWS_PER_BATCH, ROWS_PER_BATCH)
}

/// The fingerprint of every row that may be served, in the order of the store. Of several rows with
/// the same id, the one with the strongest claim is used.
fn fingerprints(snapshot: &Snapshot<'_>) -> Result<Vec<(RowKey, u64)>, StoreError> {
    let mut rows = snapshot.fingerprints()?;
    let mut ids: HashSet<Box<str>> = HashSet::with_capacity(rows.len());
    rows.retain_mut(|(_, _, id)| ids.insert(std::mem::take(id)));
    Ok(rows
        .into_iter()
        .map(|(key, fingerprint, _)| (key, fingerprint))
        .collect())
}

impl Plan {
    fn new(wanted: &[(RowKey, u64)], known: &[StoredRow]) -> Self {
        let stored: HashMap<RowKey, Option<u64>> =
            known.iter().map(|row| (row.key, row.fingerprint)).collect();
        let needed: HashMap<RowKey, u64> = wanted.iter().copied().collect();
        let add: Vec<RowKey> = wanted
            .iter()
            .filter(|(key, fingerprint)| stored.get(key) != Some(&Some(*fingerprint)))
            .map(|(key, _)| *key)
            .collect();
        // A row that a killed build left in the table twice is written again.
        let mut keys = HashSet::new();
        let twice: HashSet<RowKey> = known
            .iter()
            .map(|row| row.key)
            .filter(|key| !keys.insert(*key))
            .collect();
        let stale = |row: &&StoredRow| {
            row.fingerprint.is_none()
                || needed.get(&row.key) != row.fingerprint.as_ref()
                || twice.contains(&row.key)
        };
        let mut remove: Vec<RowKey> = known.iter().filter(stale).map(|row| row.key).collect();
        remove.sort_unstable_by_key(|key| (key.source, key.rowid));
        remove.dedup();
        let again = twice.iter().filter(|key| {
            needed.contains_key(key)
                && stored.get(key).copied().flatten() == needed.get(key).copied()
        });
        let add: Vec<RowKey> = add.into_iter().chain(again.copied()).collect();
        Self {
            kept: wanted.len() - add.len(),
            add,
            remove,
        }
    }

    /// Writes every row again that shares a batch with a removed one. The rows of a batch share a
    /// lexicon, which would keep the words of the removed row.
    fn rewrite_batches(&mut self, known: &[StoredRow]) {
        let removed: HashSet<RowKey> = self.remove.iter().copied().collect();
        let stale: HashSet<u64> = known
            .iter()
            .filter(|row| removed.contains(&row.key))
            .map(|row| row.batch)
            .collect();
        let mates = known
            .iter()
            .filter(|row| stale.contains(&row.batch) && !removed.contains(&row.key));
        let mates: Vec<RowKey> = mates.map(|row| row.key).collect();
        self.add.extend(&mates);
        self.kept = self.kept.saturating_sub(mates.len());
        // First, because a build that is killed here leaves the rows that tell the next one which
        // batches to write again.
        self.remove.splice(0..0, mates);
    }
}

/// Takes the build lock. It is released when the process ends for any reason.
fn lock(folder: &Path) -> Result<File, TableError> {
    let io = |action: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| TableError::Io {
            action,
            path,
            source,
        }
    };
    // The table contains the text of memories, so only the owner may read it: the store itself may
    // be private.
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(io("make", folder))?;
    let path = folder.join(".lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(TableError::Busy),
        Err(TryLockError::Error(source)) => Err(io("lock", &path)(source)),
    }
}

/// The table of a build, at its latest version.
struct Writer {
    table: Table,
    encoders: Encoders,
    extent: Extent,
    /// Its contents when it was opened.
    contents: Contents,
    /// The number of the first batch to add.
    batch: u64,
    /// Vectors of the removed rows.
    reusable: ReusableVectors,
    /// Why it is being rebuilt.
    rebuild_reason: Option<String>,
}

impl Writer {
    /// Opens the table. Creates it if there is none, if it was made with another encoder, or if it
    /// cannot be read.
    fn open(target: &Target<'_>, encoders: Encoders, rebuild: bool) -> Result<Self, TableError> {
        let (folder, extent) = (&target.folder, target.extent);
        let (encoder, choice) = (encoders.encoder, encoders.choice);
        let place = folder.join(format!("{TABLE}.lance"));
        let schema = columns::schema(encoder, extent, choice.is_contextual() == Some(true));
        let found = if rebuild || !place.is_dir() {
            None
        } else {
            Some(wait(async {
                let table = open(folder).await?;
                let contents = contents(&table, encoder, (choice, extent)).await?;
                Ok((table, contents))
            }))
        };
        let (table, contents, rebuild_reason) = match found {
            Some(Ok((table, contents))) => (table, contents, None),
            Some(Err(error)) => (
                create(folder, &schema, &place)?,
                Contents::default(),
                Some(error.to_string()),
            ),
            None => {
                let rebuild_reason = (rebuild && place.is_dir()).then(|| "`--rebuild`".to_owned());
                (
                    create(folder, &schema, &place)?,
                    Contents::default(),
                    rebuild_reason,
                )
            }
        };
        Ok(Self {
            table,
            encoders,
            extent,
            batch: contents.next_batch(),
            contents,
            reusable: HashMap::new(),
            rebuild_reason,
        })
    }

    fn remove(&mut self, keys: &[RowKey]) -> Result<(), TableError> {
        for keys in keys.chunks(MAX_KEYS_PER_CONDITION) {
            let mut by_source: HashMap<u8, Vec<String>> = HashMap::new();
            for key in keys {
                by_source
                    .entry(key.source)
                    .or_default()
                    .push(key.rowid.to_string());
            }
            for (source, rows) in by_source {
                // This condition has only numbers, no text of a store.
                let condition = format!("source = {source} AND row IN ({})", rows.join(", "));
                let vectors = wait(reusable_vectors(&self.table, &condition))?;
                self.reusable.extend(vectors);
                wait(async {
                    self.table
                        .delete(condition.as_str())
                        .await
                        .map_err(TableError::lance_error("remove rows"))?;
                    Ok(())
                })?;
            }
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
            let version = self
                .table
                .version()
                .await
                .map_err(TableError::lance_error("read the version"))?;
            let mut tags = self
                .table
                .tags()
                .await
                .map_err(TableError::lance_error("read the tags"))?;
            let known = match tags.list().await {
                Ok(known) => known,
                Err(_) => {
                    // A damaged tag names no version that could be lost.
                    let _ = std::fs::remove_file(tag_file(folder));
                    tags.list()
                        .await
                        .map_err(TableError::lance_error("read the tags"))?
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
        match self.table.optimize(prune).await {
            Err(source) if is_derived => {
                Err(TableError::lance_error("remove old versions")(source))
            }
            _ => Ok(()),
        }
    }
}

/// Creates an empty table. An existing one keeps its published version until the new one is
/// published. One that cannot even be replaced is moved aside.
fn create(folder: &Path, schema: &SchemaRef, table_path: &Path) -> Result<Table, TableError> {
    let make = || {
        wait(async {
            let connection = connect(folder).await?;
            connection
                .create_table(TABLE, RecordBatch::new_empty(SchemaRef::clone(schema)))
                .mode(CreateTableMode::Overwrite)
                .execute()
                .await
                .map_err(TableError::lance_error("make the table"))
        })
    };
    if table_path.is_dir() && wait(async { open(folder).await.map(|_| ()) }).is_err() {
        let broken: PathBuf = folder.join(format!("{BROKEN}{}", std::process::id()));
        std::fs::rename(table_path, &broken).map_err(|source| TableError::Io {
            action: "put aside",
            path: table_path.to_owned(),
            source,
        })?;
    }
    let table = make()?;
    remove_broken(folder)?;
    Ok(table)
}

/// Removes tables that were moved aside, also those that a killed build left.
fn remove_broken(folder: &Path) -> Result<(), TableError> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(BROKEN) {
            let path = entry.path();
            std::fs::remove_dir_all(&path).map_err(|source| TableError::Io {
                action: "remove",
                path,
                source,
            })?;
        }
    }
    Ok(())
}

/// The vectors that a network contributed to, of the rows that a condition selects.
async fn reusable_vectors(table: &Table, condition: &str) -> Result<ReusableVectors, TableError> {
    let condition = format!("model IS NOT NULL AND ({condition})");
    let mut batches = select_rows(table, &["content", "vector", "model"], Some(&condition)).await?;
    let mut reusable = HashMap::new();
    while let Some(batch) = next_batch(&mut batches).await? {
        let content = batch
            .column_by_name("content")
            .and_then(|column| column.as_primitive_opt::<UInt64Type>());
        let model = batch
            .column_by_name("model")
            .and_then(|column| column.as_string_opt::<i32>());
        let vectors = batch
            .column_by_name("vector")
            .and_then(|column| column.as_fixed_size_list_opt());
        let (Some(content), Some(model), Some(vectors)) = (content, model, vectors) else {
            return Err(TableError::Column { column: "vector" });
        };
        for ((content, model), vector) in content.values().iter().zip(model).zip(vectors.iter()) {
            let vector = vector
                .as_ref()
                .and_then(|vector| vector.as_primitive_opt::<Float32Type>());
            if let (Some(model), Some(vector)) = (model, vector) {
                reusable.insert(
                    *content,
                    (
                        vector.values().to_vec().into_boxed_slice(),
                        model.to_owned(),
                    ),
                );
            }
        }
    }
    Ok(reusable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_that_is_killed_while_it_removes_rows_leaves_no_batch_with_their_words() {
        let key = |rowid| RowKey { source: 0, rowid };
        let row = |rowid: i64| StoredRow {
            key: key(rowid),
            fingerprint: Some(1),
            batch: rowid.unsigned_abs() / 10,
        };
        let wanted: Vec<(RowKey, u64)> = (0..30)
            .filter(|rowid| ![3, 7, 25].contains(rowid))
            .map(|rowid| (key(rowid), 1))
            .collect();
        let plan = |known: &[StoredRow]| {
            let mut plan = Plan::new(&wanted, known);
            plan.rewrite_batches(known);
            plan.remove
        };
        let all: Vec<StoredRow> = (0..30).map(row).collect();
        let first = plan(&all);
        for killed_after in 0..=first.len() {
            let mut removed: HashSet<RowKey> = first[..killed_after].iter().copied().collect();
            let left = (0..30).filter(|rowid| !removed.contains(&key(*rowid)));
            removed.extend(plan(&left.map(row).collect::<Vec<_>>()));
            let expected: HashSet<RowKey> = (0..10).chain(20..30).map(key).collect();
            assert_eq!(removed, expected, "killed after {killed_after}");
        }
    }
}
