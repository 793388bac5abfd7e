//! Reads a database with a log into memory, without a lock.
//!
//! A reader of a log blocks checkpoints for as long as it reads. If several clients scan whole
//! stores, the log may never be merged. So the pages of a small store are read first, which is fast
//! and blocks nothing: committed pages from the log, all others from the database. The wal-index in
//! the shared memory tells which frames are committed (<https://www.sqlite.org/walformat.html>).
//! Afterwards it also tells whether a checkpoint wrote newer pages into the database or restarted
//! the log during the read. If so, the image is discarded.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::Connection;

use super::open::{is_shared, sidecar_path};
use ack_sys::files;

/// The largest image, in bytes.
pub const MAX_IMAGE_BYTES: u64 = 32 << 20;
/// The bytes of the wal-index that are read: its header, twice, and the checkpoint information.
const WAL_INDEX_BYTES: usize = 136;
/// The size of the log's header.
const WAL_HEADER_BYTES: u64 = 32;
/// The size of each frame's header.
const FRAME_HEADER_BYTES: u64 = 24;

/// The wal-index's information about the log.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WalIndex {
    page_size: u64,
    /// Committed frames.
    frames: u32,
    /// Pages of the database.
    pages: u32,
    salts: [u8; 8],
    /// How many frames a checkpoint has written, or is writing, into the database.
    attempted: u32,
}

/// Opens a connection to an image of the last committed state, or `None` if there is none at the
/// moment. The caller holds the gate, see [`super::open`].
pub fn read(path: &Path) -> Option<Connection> {
    let (database, log) = (
        files::open(path).ok()?,
        files::open(&sidecar_path(path, "-wal")).ok()?,
    );
    let shared = files::open(&sidecar_path(path, "-shm")).ok()?;
    if !is_shared(&shared) {
        return None;
    }
    let wal_index = read_wal_index(&shared)?;
    let length = wal_index
        .page_size
        .checked_mul(u64::from(wal_index.pages))?;
    if length == 0 || length > MAX_IMAGE_BYTES {
        return None;
    }
    let pages = Pages {
        database,
        newest: newest_frames(&log, &wal_index).ok()?,
        log,
        wal_index,
        next: 1,
        page: Vec::new(),
        consumed: 0,
    };
    #[expect(clippy::disallowed_methods, reason = "the image is what is in memory")]
    let mut connection = Connection::open_in_memory().ok()?;
    let log = pages.log.try_clone().ok()?;
    connection
        .deserialize_read_exact("main", pages, usize::try_from(length).ok()?, true)
        .ok()?;
    let after = read_wal_index(&shared)?;
    let mut header = [0; 24];
    log.read_exact_at(&mut header, 0).ok()?;
    let same_log = header.get(16..24) == Some(&wal_index.salts) && after.salts == wal_index.salts;
    (same_log && after.attempted <= wal_index.frames).then_some(connection)
}

/// Reads the wal-index. `None` if it is being written or is invalid.
fn read_wal_index(shared: &File) -> Option<WalIndex> {
    let mut bytes = [0; WAL_INDEX_BYTES];
    shared.read_exact_at(&mut bytes, 0).ok()?;
    let (first, second) = (bytes.get(..48)?, bytes.get(48..96)?);
    let is_initialized = first.get(12) == Some(&1);
    if first != second || !is_initialized {
        return None;
    }
    let number = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let size = u16::from_ne_bytes(bytes.get(14..16)?.try_into().ok()?);
    Some(WalIndex {
        // 65,536 does not fit and is stored as 1.
        page_size: if size == 1 { 1 << 16 } else { u64::from(size) },
        frames: number(16)?,
        pages: number(20)?,
        salts: bytes.get(32..40)?.try_into().ok()?,
        attempted: number(128)?,
    })
}

/// The offset in the log of the newest version of each page.
fn newest_frames(log: &File, wal_index: &WalIndex) -> Result<HashMap<u32, u64>> {
    let mut newest = HashMap::new();
    for frame in 0..u64::from(wal_index.frames) {
        let offset = WAL_HEADER_BYTES + frame * (FRAME_HEADER_BYTES + wal_index.page_size);
        let mut header = [0; 16];
        log.read_exact_at(&mut header, offset)?;
        let [a, b, c, d, .., s1, s2, s3, s4, s5, s6, s7, s8] = header;
        if [s1, s2, s3, s4, s5, s6, s7, s8] != wal_index.salts {
            return Err(std::io::Error::other("a frame of another log"));
        }
        newest.insert(
            u32::from_be_bytes([a, b, c, d]),
            offset + FRAME_HEADER_BYTES,
        );
    }
    Ok(newest)
}

/// Reads the pages of the image in order.
struct Pages {
    database: File,
    log: File,
    wal_index: WalIndex,
    newest: HashMap<u32, u64>,
    next: u32,
    page: Vec<u8>,
    /// How many bytes of `page` have been read.
    consumed: usize,
}

impl Read for Pages {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.consumed == self.page.len() {
            if self.next > self.wal_index.pages {
                return Ok(0);
            }
            self.load_next()?;
        }
        let unread = self.page.get(self.consumed..).unwrap_or_default();
        let count = unread.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), unread.get(..count)) {
            to.copy_from_slice(from);
        }
        self.consumed += count;
        Ok(count)
    }
}

impl Pages {
    fn load_next(&mut self) -> Result<()> {
        self.page.resize(
            usize::try_from(self.wal_index.page_size).unwrap_or_default(),
            0,
        );
        match self.newest.get(&self.next) {
            Some(offset) => self.log.read_exact_at(&mut self.page, *offset)?,
            None => self.database.read_exact_at(
                &mut self.page,
                u64::from(self.next - 1) * self.wal_index.page_size,
            )?,
        }
        // An image has no log, so its header must not declare WAL mode.
        if self.next == 1
            && let Some(versions) = self.page.get_mut(18..20)
        {
            versions.fill(1);
        }
        (self.next, self.consumed) = (self.next + 1, 0);
        Ok(())
    }
}
