//! One memory store: its records, wherever they come from, joined with people's decisions.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ack_api::memory::{Overviews, Unreviewed};
use ack_sys::files::is_only_name;
use ack_sys::watch::FolderWatch;
use jiff::Timestamp;
use parking_lot::Mutex;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode};
use rustc_hash::FxHashSet;

use crate::database::{Access, Database, Origin};
use crate::decisions::seal::seal_path;
use crate::decisions::signers::Signers;
use crate::decisions::{DecisionLog, Decisions, SignersFile};
use crate::flags::Flags;
use crate::folder::{Notes, NotesReport, SAME_REQUEST_WINDOW};
use crate::layout::{self, Layout, Profile};
use crate::open::FileState;
use crate::parallel_scan::data_version;
use crate::snapshot::Known;
use crate::{NamedBy, Snapshot, StoreError, StoreProblem, profiles};

/// How long a read retries while the store changes.
pub const READ_TIMEOUT: Duration = Duration::from_secs(4);
const MAX_VALUE_BYTES: i32 = 8 << 20;
const SQLITE_MAX_VALUE_BYTES: i32 = 1_000_000_000;

#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    unreviewed: Unreviewed,
    named: NamedBy,
    pub(crate) flags: Flags,
    pub(crate) overviews: Option<Overviews>,
    decisions: Option<DecisionLog>,
    watch: Option<Arc<FolderWatch>>,
    watched: Mutex<Option<(u64, FileState)>>,
    /// Each read determines which of the two the path names.
    database: Database,
    notes: Notes,
    layout: Mutex<Option<(LayoutKey, Arc<Layout>)>>,
    known: Mutex<Known>,
    /// Whether a value was too large to read whole: rows are then read with truncated values.
    truncate_values: AtomicBool,
}

/// What belongs to a store.
#[derive(Debug, Default)]
pub struct StoreSettings {
    pub named: NamedBy,
    pub overviews: Option<Overviews>,
    /// The decision log, which may be missing.
    pub decisions: Option<PathBuf>,
    pub signers: Option<SignersFile>,
    /// The reference whose files count as approved, for a folder in a git repository.
    pub reference: Option<String>,
    /// The folder of the database and the log, if it is watched. What is known about the files is
    /// used again as long as nothing in it changes.
    pub watch: Option<Arc<FolderWatch>>,
}

/// The database file, SQLite's schema cookie, and whether values are truncated.
type LayoutKey = (u64, i64, bool);

impl Store {
    pub fn new(path: PathBuf, unreviewed: Unreviewed) -> Self {
        Self::with(path, unreviewed, StoreSettings::default())
    }

    /// A store at `path`. Nothing is opened yet.
    pub fn with(path: PathBuf, unreviewed: Unreviewed, settings: StoreSettings) -> Self {
        let StoreSettings { named, overviews, decisions, signers, reference, watch } = settings;
        Self {
            database: Database::new(path.clone()),
            path,
            unreviewed,
            named,
            flags: Flags::default(),
            overviews,
            decisions: decisions.map(|log| DecisionLog::new(log, signers)),
            watch,
            watched: Mutex::default(),
            notes: Notes::with_reference(reference),
            layout: Mutex::default(),
            known: Mutex::default(),
            truncate_values: AtomicBool::new(false),
        }
    }

    pub fn signers(&self) -> Result<Option<Arc<Signers>>, StoreError> {
        self.decisions.as_ref().map_or(Ok(None), DecisionLog::signers)
    }

    pub fn decisions(&self) -> Result<Arc<Decisions>, StoreError> {
        self.decisions.as_ref().map_or_else(|| Ok(Arc::default()), DecisionLog::read)
    }

    pub fn decision_log(&self) -> Option<&Path> {
        self.decisions.as_ref().map(DecisionLog::path)
    }

    /// Closes idle connections and forgets copies, unless they are being read.
    pub fn close(&self) {
        self.notes.forget();
        self.database.close();
    }

    /// When this store was last read while a writer held its lock, unless it has been read unlocked
    /// since. Such an answer lacks what the writer has not committed.
    pub fn read_while_locked(&self) -> Option<Timestamp> {
        self.database.read_while_locked()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub const fn unreviewed(&self) -> Unreviewed {
        self.unreviewed
    }

    pub fn file_state(&self) -> Result<FileState, StoreError> {
        let generation = || self.watch.as_ref().and_then(|watch| watch.generation());
        let before = generation();
        let mut watched = self.watched.lock();
        if let (Some(before), Some((known, state))) = (before, watched.as_ref())
            && before == *known
        {
            return Ok(state.clone());
        }
        *watched = None;
        let version = self.decisions()?.version;
        let state = if self.notes.are_at(&self.path) {
            self.notes.read(&self.path, Duration::ZERO, |notes| Ok(notes.state.clone()))
        } else {
            self.database.state()
        };
        let state = state.map_err(|error| error.of_store(&self.path, &self.named))?;
        let state = state.with_decisions(version);
        let log = self.decision_log().unwrap_or(&self.path);
        let is_in_folder = |file: &Path| is_only_name(file) || !file.exists();
        if state.is_at_rest()
            && is_only_name(&self.path)
            && is_in_folder(log)
            && is_in_folder(&seal_path(log))
            && !self.decisions.as_ref().is_some_and(DecisionLog::has_signers)
        {
            let after = generation().filter(|after| before == Some(*after));
            *watched = after.map(|after| (after, state.clone()));
        }
        Ok(state)
    }

    /// What is wrong with the files of notes, as of the last read.
    pub fn notes_report(&self) -> Arc<NotesReport> {
        self.notes.report()
    }

    /// The text of a note in a folder, exactly as it is served; `None` for other stores.
    pub fn note_text(&self, id: &str) -> Option<String> {
        let is_folder = self.notes.are_at(&self.path) && !self.path.is_file();
        is_folder.then(|| self.notes.note_text(&self.path, id)).flatten()
    }

    /// Reads one consistent state, of which a few rows. If the database changes during a read without
    /// locks, `read` runs again; only the result of an undisturbed run is returned.
    pub fn snapshot<T>(
        &self,
        read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.read(Access::Rows, READ_TIMEOUT, read)
    }

    /// The same, for a pass over every row if `access` says so, and for at most `timeout`.
    pub fn read<T>(
        &self,
        access: Access,
        timeout: Duration,
        mut read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut read = |origin: Origin<'_>| self.read_from(origin, &mut read);
        let mut result = self.read_source(access, timeout, &mut read);
        if result.as_ref().is_err_and(is_too_large)
            && !self.truncate_values.swap(true, Ordering::Relaxed)
        {
            result = self.read_source(access, timeout, &mut read);
        }
        result.map_err(|error| error.of_store(&self.path, &self.named))
    }

    fn read_source<T>(
        &self,
        access: Access,
        timeout: Duration,
        read: &mut impl FnMut(Origin<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if !self.notes.are_at(&self.path) {
            return self.database.read(access, timeout, read);
        }
        self.notes.read(&self.path, SAME_REQUEST_WINDOW, |notes| {
            let connection = notes.connection;
            let result = read(notes);
            let ended = connection.execute_batch("COMMIT");
            let value = result?;
            ended?;
            Ok(value)
        })
    }

    fn read_from<T>(
        &self,
        origin: Origin<'_>,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Origin { connection, second_connection, opening, profile, state } = origin;
        let max_length = if self.truncate_values.load(Ordering::Relaxed) {
            SQLITE_MAX_VALUE_BYTES
        } else {
            MAX_VALUE_BYTES
        };
        for connection in second_connection.iter().chain([connection]) {
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, max_length)?;
        }
        let second = second_connection.and_then(|it| Some((data_version(&it).ok()?, it)));
        connection.execute_batch("BEGIN")?;
        // This first read fixes the state that the transaction sees.
        let layout = self.layout(connection, state, profile)?;
        let decisions = self.decisions()?;
        let second = second.and_then(|(version, second)| {
            second.execute_batch("BEGIN").ok()?;
            (data_version(&second).ok()? == version).then_some(second)
        });
        let mut snapshot = Snapshot {
            store: self,
            connection,
            layout,
            file_state: state.clone().with_decisions(decisions.version),
            opening,
            decisions,
            against_approved: FxHashSet::default(),
            known: Some(&self.known),
            second_connection: RefCell::new(second),
        };
        if snapshot.holds_back() {
            snapshot.against_approved = snapshot.against_approved()?;
        }
        read(&snapshot)
    }

    fn layout(
        &self,
        connection: &Connection,
        state: &FileState,
        profile: Option<Profile>,
    ) -> Result<Arc<Layout>, StoreError> {
        let mut cookie = connection.prepare_cached("PRAGMA schema_version")?;
        let cookie: i64 = cookie.query_row([], |row| row.get(0))?;
        let truncate = self.truncate_values.load(Ordering::Relaxed);
        let key = (state.main.inode, cookie, truncate);
        let mut cached = self.layout.lock();
        if let Some((_, layout)) = cached.as_ref().filter(|(known, _)| *known == key) {
            return Ok(Arc::clone(layout));
        }
        let tables = layout::tables(connection)?;
        let mut layout = profiles::recognise(&tables).ok_or_else(|| {
            let names = tables.into_iter().map(|table| match table.row_number {
                Some(_) => table.name,
                None => format!("{} WITHOUT ROWID", table.name),
            });
            StoreProblem::Foreign(names.collect()).at(&self.path)
        })?;
        layout.profile = profile.unwrap_or(layout.profile);
        let layout = Arc::new(if truncate { layout.with_truncated_values() } else { layout });
        *cached = Some((key, Arc::clone(&layout)));
        Ok(layout)
    }
}

fn is_too_large(error: &StoreError) -> bool {
    matches!(&error.problem, StoreProblem::Sqlite(source) if source.sqlite_error_code() == Some(ErrorCode::TooBig))
}
