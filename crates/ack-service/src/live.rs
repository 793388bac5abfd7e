//! The live search index of each scope. It is built from the vector table if that matches, else
//! from the store, and updated with every row that was committed before a request. When all indexes
//! together exceed their memory limit, the least recently used ones are dropped.
//!
//! A [`Scope`] has its index. When its manifest changes, another scope and index take its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ack_api::text;
use ack_search::encoder::Encoder;
use ack_search::inverted::Index;
use ack_search::inverted::sync::Listing;
use ack_search::remote::TableInfo;
use ack_store::open::FileState;
use ack_store::table_version::TableVersion;
use ack_store::{Access, READ_TIMEOUT, Snapshot, StoreError};
use ack_sys::heap;
use parking_lot::{ArcRwLockReadGuard, Mutex, RawRwLock, RwLock};

use crate::scope::Scope;

/// A logical clock: counts the uses of indexes.
static CLOCK: AtomicU64 = AtomicU64::new(1);

#[derive(Debug, Default)]
pub struct LiveIndex {
    slot: Arc<RwLock<Option<IndexedScope>>>,
    /// When it was last used, on the logical clock.
    last_used: AtomicU64,
    /// A table that could be opened but not searched, with the reason. It is not used again.
    refused_table: Mutex<Option<(TableVersion, String)>>,
}

#[derive(Debug)]
struct IndexedScope {
    /// `None` after an update that did not complete.
    file_state: Option<FileState>,
    index: Index,
    table_version: TableVersion,
    table: TableState,
    /// When its last update began, on the logical clock.
    update_began: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableState {
    None,
    Unusable {
        reason: String,
        /// Whether its files may be damaged, rather than made for another program.
        may_be_damaged: bool,
    },
    Used(TableInfo),
}

/// A scope's index as of the last commit before the request. The guard keeps it from changing.
pub struct IndexGuard(ArcRwLockReadGuard<RawRwLock, Option<IndexedScope>>);

impl IndexGuard {
    pub fn get(&self) -> Option<&Index> {
        self.0.as_ref().map(|indexed| &indexed.index)
    }

    pub fn table(&self) -> Option<&TableState> {
        self.0.as_ref().map(|indexed| &indexed.table)
    }
}

/// Drops the least recently used indexes, but none of a `needed` scope or that is being read.
pub fn evict_to_fit(bytes: usize, scopes: &[Arc<Scope>], needed: &[Arc<Scope>]) {
    let used = |scope: &Scope| scope.live.last_used.load(Ordering::Relaxed);
    let mut sizes: Vec<(u64, usize, &Arc<Scope>)> =
        scopes.iter().map(|scope| (used(scope), scope.live.bytes(), scope)).collect();
    let mut total: usize = sizes.iter().map(|(_, size, _)| size).sum();
    sizes.sort_unstable_by_key(|(used, ..)| *used);
    for (_, size, scope) in sizes {
        if total <= bytes {
            break;
        }
        let is_needed = needed.iter().any(|other| Arc::ptr_eq(scope, other));
        if !is_needed && let Some(mut slot) = scope.live.slot.try_write() {
            free_index(&mut slot);
            total -= size;
        }
    }
}

impl LiveIndex {
    /// Stops using the present vector table. From the next request on, the store is read.
    pub fn refuse_table(&self, reason: &str) {
        let mut slot = self.slot.write();
        if let Some(indexed) = slot.take_if(|indexed| indexed.index.remote().is_some()) {
            *self.refused_table.lock() = Some((indexed.table_version, text::line(reason, 300)));
        }
    }

    /// The index, updated with every row that was committed before this call.
    pub fn current(&self, scope: &Scope, timeout: Duration) -> Result<IndexGuard, StoreError> {
        let now = CLOCK.fetch_add(1, Ordering::SeqCst);
        self.last_used.store(now, Ordering::Relaxed);
        let stamp = scope.store.file_state()?;
        let table_version = scope.table_version();
        let current = self.slot.read_arc();
        let fits = |indexed: &IndexedScope| {
            indexed.file_state.as_ref() == Some(&stamp) && indexed.table_version == table_version
        };
        if current.as_ref().is_some_and(fits) {
            return Ok(IndexGuard(current));
        }
        drop(current);
        let mut slot = self.slot.write();
        // A request that waited here while another one read the store shares the result, unless
        // that read began too early.
        let shares = |indexed: &IndexedScope| {
            indexed.file_state.is_some()
                && indexed.update_began > now
                && indexed.table_version == table_version
        };
        if !slot.as_ref().is_some_and(shares) {
            let began = CLOCK.fetch_add(1, Ordering::SeqCst);
            self.refresh(scope, &mut slot, table_version, timeout)?;
            if let Some(indexed) = slot.as_mut() {
                indexed.update_began = began;
            }
        }
        drop(slot);
        Ok(IndexGuard(self.slot.read_arc()))
    }

    /// The index as the last call of [`LiveIndex::current`] left it, or built again if dropped.
    pub fn refreshed(&self, scope: &Scope, timeout: Duration) -> Result<IndexGuard, StoreError> {
        let current = self.slot.read_arc();
        if current.is_some() {
            return Ok(IndexGuard(current));
        }
        drop(current);
        self.current(scope, timeout)
    }

    /// Whether there is an index and no thread is updating it.
    pub fn is_ready(&self) -> bool {
        self.slot.try_read().is_some_and(|slot| slot.is_some())
    }

    pub fn is_missing(&self) -> bool {
        self.slot.try_read().is_some_and(|slot| slot.is_none())
    }

    pub fn bytes(&self) -> usize {
        let slot = self.slot.try_read();
        slot.map_or(0, |slot| slot.as_ref().map_or(0, |indexed| indexed.index.bytes()))
    }

    fn refresh(
        &self,
        scope: &Scope,
        slot: &mut Option<IndexedScope>,
        table_version: TableVersion,
        timeout: Duration,
    ) -> Result<(), StoreError> {
        // Look once at a table that appeared, changed or disappeared.
        let looked = slot.as_ref().is_some_and(|indexed| indexed.table_version == table_version);
        let mut table = TableState::None;
        if !looked && table_version.is_some() {
            // Free the old index first, because two would take twice the memory.
            free_index(slot);
            let (loaded, state) = self.load(scope, &table_version, timeout)?;
            if let Some(loaded) = loaded {
                store_index(slot, loaded, table_version, state);
                return Ok(());
            }
            table = state;
        }
        if let Some(indexed) = slot {
            // The rows from an earlier table are still valid.
            if !looked {
                indexed.table = table.clone();
                indexed.table_version = table_version.clone();
            }
            let (stamp, changes) = scope.store.read(Access::QuickScan, timeout, |snapshot| {
                let listing = Listing::read(snapshot)?;
                Ok((snapshot.file_state.clone(), indexed.index.changes(listing, snapshot)?))
            })?;
            indexed.file_state = None;
            if indexed.index.apply(changes) {
                indexed.file_state = Some(stamp);
                return Ok(());
            }
        }
        if let Some(indexed) = slot.as_mut() {
            table = indexed.table.clone();
        }
        free_index(slot);
        let build =
            |snapshot: &Snapshot<'_>| Ok((snapshot.file_state.clone(), Index::build(snapshot)?));
        let (stamp, index) = scope.store.read(Access::FullScan, READ_TIMEOUT, build)?;
        store_index(slot, (stamp, index), table_version, table);
        Ok(())
    }

    /// Reads the table and lists the store's rows in parallel: both take about the same time.
    /// There is no index if the table cannot be used.
    fn load(
        &self,
        scope: &Scope,
        table_version: &TableVersion,
        timeout: Duration,
    ) -> Result<(Option<(FileState, Index)>, TableState), StoreError> {
        let mut read = None;
        let (stamp, changes) = scope.store.read(Access::QuickScan, timeout, |snapshot| {
            let (table, listing) = match read.take() {
                Some(table) => (table, list(scope, snapshot)?),
                None => std::thread::scope(|threads| {
                    let reading = threads.spawn(|| self.read_table(scope, table_version));
                    let listing = list(scope, snapshot);
                    let table = reading.join();
                    let table = table.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    listing.map(|listing| (table, listing))
                })?,
            };
            let index = table.as_ref().ok().map(|(index, _)| index);
            let changes = index.map(|index| index.changes(listing, snapshot)).transpose()?;
            // A disturbed snapshot is read again; the table is not.
            read = Some(table);
            Ok((snapshot.file_state.clone(), changes))
        })?;
        Ok(match (read, changes) {
            (Some(Ok((mut index, info))), Some(changes)) => {
                let is_complete = index.apply(changes);
                (is_complete.then_some((stamp, index)), TableState::Used(info))
            }
            (Some(Err(table)), _) => (None, table),
            _ => (None, TableState::None),
        })
    }

    fn read_table(&self, scope: &Scope, stamp: &TableVersion) -> LoadedTable {
        let unusable =
            |reason, may_be_damaged| Err(TableState::Unusable { reason, may_be_damaged });
        let Some(encoder) = Encoder::embedded() else {
            return unusable("the encoder inside this binary is damaged".to_owned(), false);
        };
        match &*self.refused_table.lock() {
            Some((refused, reason)) if refused == stamp => return unusable(reason.clone(), true),
            _ => {}
        }
        load_table(scope, encoder)
    }
}

/// The index in a vector table, or why that cannot be used.
type LoadedTable = Result<(Index, TableInfo), TableState>;

#[cfg(feature = "table")]
fn load_table(scope: &Scope, encoder: &Encoder) -> LoadedTable {
    ack_lance::load::load(&scope.lance_folder(), encoder, scope.resident).map_err(|error| {
        TableState::Unusable {
            reason: text::line(&error.to_string(), 300),
            may_be_damaged: error.may_be_damage(),
        }
    })
}

#[cfg(not(feature = "table"))]
const fn load_table(_: &Scope, _: &Encoder) -> LoadedTable {
    Err(TableState::None)
}

/// A store's rows, as the table lists them if the store is as at the table's last build.
fn list(scope: &Scope, snapshot: &Snapshot<'_>) -> Result<Listing, StoreError> {
    #[cfg(feature = "table")]
    {
        let key = ack_lance::listing::key(&scope.store, &snapshot.file_state);
        if let Some(known) = ack_lance::listing::read(&scope.lance_folder(), key) {
            return Ok(known);
        }
    }
    #[cfg(not(feature = "table"))]
    let _ = scope;
    Listing::read(snapshot)
}

/// Stores a new index, and returns the memory that building it took to the system.
fn store_index(
    slot: &mut Option<IndexedScope>,
    (stamp, index): (FileState, Index),
    table_version: TableVersion,
    table: TableState,
) {
    let (size, file_state) = (index.bytes(), Some(stamp));
    *slot = Some(IndexedScope { file_state, index, table_version, table, update_began: 0 });
    if size >= heap::MIN_RELEASE_BYTES {
        heap::release();
    }
}

/// Frees an index, and returns its memory to the system if it is large enough.
fn free_index(slot: &mut Option<IndexedScope>) {
    let freed = slot.take().map_or(0, |indexed| indexed.index.bytes());
    if freed >= heap::MIN_RELEASE_BYTES {
        heap::release();
    }
}
