//! The records of a version as a native store, built from its table, so that a bucket is read by
//! the same code as any store.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};

use ack_api::memory::{Memory, Unreviewed};
use ack_api::source::RowKey;
use ack_lance::record_blocks::RecordBlock;
use ack_lance::records;
use ack_store::links::Link;
use ack_store::table_version::tag_file;
use ack_store::{Access, READ_TIMEOUT, Store};
use rusqlite::{Connection, OptionalExtension, params};

use crate::BucketError;
use crate::address::Address;
use crate::cache;
use crate::format::{LINKS, Version};

const SCHEMA: &str = include_str!("../../../schemas/scope.sql");

/// Adds or replaces a record.
const UPSERT: &str = "INSERT OR REPLACE INTO memories (rowid, id, project, session, session_id, \
    date, type, title, subtitle, facts, concepts, files, narrative, status, confidence, \
    reviewed_at, reviewed_by, superseded_by, created_at, updated_at, stale_after) VALUES (?1, ?2, \
    ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";

const MAX_QUEUED_BLOCKS: usize = 4;
/// The page size of a new database, in bytes: with SQLite's own of 4 KiB, writing it and reading
/// all of it take four times as many calls of the system.
const PAGE_BYTES: u32 = 16 << 10;
/// SQLite's page cache while it writes, in KiB: the index of ids is filled in random order.
const PAGE_CACHE_KIB: i64 = 32 << 10;

pub fn database_path(folder: &Path) -> PathBuf {
    folder.join("memory.db")
}

pub fn table_folder(folder: &Path) -> PathBuf {
    folder.join("lance")
}

pub fn store(folder: &Path) -> Store {
    Store::new(database_path(folder), Unreviewed::Staging)
}

/// Tags the version of the table that readers use, in Lance's format.
pub fn tag_version(folder: &Path, version: &Version) -> Result<(), BucketError> {
    let manifest = version.files.iter().find(|file| file.path.ends_with(".manifest"));
    let (manifest, number) =
        manifest.and_then(|it| Some((it, manifest_number(&it.path)?))).ok_or_else(|| {
            BucketError::damaged(&version.scope, "none of its files lists the fragments")
        })?;
    let path = tag_file(&table_folder(folder));
    if let Some(folder) = path.parent() {
        cache::make_folder(folder)?;
    }
    let contents = serde_json::json!({
        "branch": null, "version": number, "createdAt": null, "updatedAt": null,
        "manifestSize": manifest.bytes,
    });
    cache::replace(&path, contents.to_string().as_bytes())
}

/// The Lance version number of a manifest. The number in the file name counts down, so that the
/// newest file comes first in a listing.
fn manifest_number(path: &str) -> Option<u64> {
    let name = Path::new(path).file_stem()?.to_str()?;
    let number: u64 = name.parse().ok()?;
    Some(if name.len() == 20 { u64::MAX - number } else { number })
}

/// Builds the database of a version. If there is a previous version, its database is copied and
/// updated. `limit`: how many bytes of records may be written.
pub fn update(
    address: &Address,
    before: Option<&Path>,
    folder: &Path,
    limit: u64,
) -> Result<(), BucketError> {
    let path = database_path(folder);
    if let Some(before) = before
        && fs::copy(database_path(before), &path).is_ok()
        && let Ok(known) = fingerprints(&store(before))
        && write(address, folder, known, limit).is_ok()
    {
        return Ok(());
    }
    write(address, folder, HashMap::new(), limit)
}

pub(crate) fn fingerprints(store: &Store) -> Result<HashMap<i64, u64>, BucketError> {
    let rows = store.read(Access::FullScan, READ_TIMEOUT, |snapshot| snapshot.fingerprints())?;
    Ok(rows.into_iter().map(|(key, fingerprint, _status)| (key.rowid, fingerprint)).collect())
}

fn write(
    address: &Address,
    folder: &Path,
    mut known: HashMap<i64, u64>,
    limit: u64,
) -> Result<(), BucketError> {
    let path = database_path(folder);
    let failed = unwritable(&path);
    let mut writer = Writer::open(&path, known.is_empty()).map_err(&failed)?;
    let mut present: Vec<i64> = Vec::new();
    let mut is_foreign = false;
    // One thread reads and decompresses the table; the other one decodes records and writes them.
    let (read, written) = std::thread::scope(|threads| {
        let (sender, receiver) = sync_channel::<RecordBlock>(MAX_QUEUED_BLOCKS);
        let writing = threads.spawn(|| {
            let written = writer.upsert_all(&receiver, limit);
            drop(receiver);
            written
        });
        let read = records::read(
            &table_folder(folder),
            |RowKey { source, rowid }, fingerprint| {
                is_foreign |= source != 0;
                present.push(rowid);
                known.remove(&rowid) != Some(fingerprint)
            },
            |block| {
                // The receiver stops early if it failed, and reports why.
                let _ = sender.send(block);
            },
        );
        drop(sender);
        (read, writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let Some(unreadable) = written.map_err(&failed)? else {
        return Err(BucketError::damaged(address, "its records are far larger than its files say"));
    };
    read?;
    present.sort_unstable();
    if is_foreign || !present.is_sorted_by(|row, next| row < next) {
        return Err(BucketError::damaged(address, "a record is in it twice"));
    }
    if unreadable > 0 {
        return Err(BucketError::damaged(address, format!("{unreadable} records cannot be read")));
    }
    let removed: Vec<i64> = known.into_keys().collect();
    writer.remove(&removed).map_err(&failed)?;
    writer.set_links(&links(folder)?).map_err(&failed)?;
    writer.finish().map_err(failed)
}

pub fn links(folder: &Path) -> Result<Vec<Link>, BucketError> {
    let path = folder.join(LINKS);
    let Ok(file) = ack_sys::files::open(&path) else {
        return Ok(Vec::new());
    };
    let mut links = Vec::new();
    for line in BufReader::new(file).lines() {
        links.extend(serde_json::from_str::<Link>(&line.map_err(BucketError::io("read", &path))?));
    }
    Ok(links)
}

/// What a version's database could not be written for.
pub fn unwritable(path: &Path) -> impl Fn(rusqlite::Error) -> BucketError {
    move |error| BucketError::io("write", path)(std::io::Error::other(error))
}

/// Writes the database of a version. Nothing else reads or writes it yet.
pub struct Writer {
    connection: Connection,
    create_indexes: String,
}

impl Writer {
    pub fn open(path: &Path, is_new: bool) -> rusqlite::Result<Self> {
        if is_new {
            let _ = fs::remove_file(path);
        }
        let connection = Connection::open(path)?;
        // It gets its name once it is complete, and can always be rebuilt. What is removed may have
        // been withdrawn, so its bytes must not stay in the file.
        connection.execute_batch(&format!(
            "PRAGMA page_size = {PAGE_BYTES}; PRAGMA journal_mode = OFF; \
             PRAGMA synchronous = OFF; PRAGMA secure_delete = ON; \
             PRAGMA cache_size = -{PAGE_CACHE_KIB}; BEGIN"
        ))?;
        let mut create_indexes = String::new();
        if is_new {
            // Creating the indexes at the end takes half the time.
            let (indexes, tables): (Vec<&str>, Vec<&str>) =
                SCHEMA.lines().partition(|line| line.starts_with("CREATE INDEX"));
            connection.execute_batch(&tables.join("\n"))?;
            create_indexes = indexes.join("\n");
        }
        Ok(Self { connection, create_indexes })
    }

    /// Adds or replaces a record under its row number.
    pub fn upsert(&mut self, rowid: i64, record: &Memory) -> rusqlite::Result<()> {
        let list =
            |values: &[String]| serde_json::to_string(values).unwrap_or_else(|_| "[]".to_owned());
        self.connection.prepare_cached(UPSERT)?.execute(params![
            rowid,
            record.id,
            record.project,
            record.session,
            record.session_id,
            record.date,
            record.kind,
            record.title,
            record.subtitle,
            list(&record.facts),
            list(&record.concepts),
            list(&record.files),
            record.narrative,
            record.status.as_str(),
            record.confidence,
            record.reviewed_at.map(|it| it.to_string()),
            record.reviewed_by,
            record.superseded_by,
            record.created_at.map(|it| it.to_string()),
            record.updated_at.map(|it| it.to_string()),
            record.stale_after.map(|it| it.to_string()),
        ])?;
        Ok(())
    }

    /// Adds or replaces records as they arrive. Returns how many cannot be read; `None` if they have
    /// more than `limit` bytes, so that not all were written.
    fn upsert_all(
        &mut self,
        blocks: &Receiver<RecordBlock>,
        limit: u64,
    ) -> rusqlite::Result<Option<u64>> {
        let (mut unreadable, mut bytes) = (0, 0_u64);
        for block in blocks {
            for (key, json) in block.iter() {
                bytes = bytes.saturating_add(json.len() as u64);
                if bytes > limit {
                    return Ok(None);
                }
                match std::str::from_utf8(json).ok().and_then(Memory::parse_published) {
                    Some(record) => self.upsert(key.rowid, &record)?,
                    None => unreadable += 1,
                }
            }
        }
        Ok(Some(unreadable))
    }

    pub fn last_row(&self) -> rusqlite::Result<i64> {
        let sql = "SELECT coalesce(max(rowid), 0) FROM memories";
        self.connection.query_row(sql, [], |row| row.get(0))
    }

    pub fn find_row(&self, id: &str) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT rowid FROM memories WHERE id = ?1";
        self.connection.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()
    }

    pub fn remove(&mut self, rows: &[i64]) -> rusqlite::Result<()> {
        let mut statement =
            self.connection.prepare_cached("DELETE FROM memories WHERE rowid = ?1")?;
        rows.iter().try_for_each(|row| statement.execute([row]).map(drop))
    }

    pub fn set_links(&mut self, links: &[Link]) -> rusqlite::Result<()> {
        self.connection.execute("DELETE FROM memory_links", [])?;
        let mut statement = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO memory_links (from_id, to_id, kind, source, confidence) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        links.iter().try_for_each(|link| {
            let values = params![link.from, link.to, link.kind, link.source, link.confidence];
            statement.execute(values).map(drop)
        })
    }

    pub fn finish(self) -> rusqlite::Result<()> {
        self.connection.execute_batch(&format!("{}\nCOMMIT", self.create_indexes))?;
        self.connection.close().map_err(|(_, error)| error)
    }
}
