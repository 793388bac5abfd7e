//! Where the records of a store come from: a database, or notes in files.
//!
//! Each source passes one state of itself to a reader, as a connection: the rows of notes are kept
//! in an in-memory database. Decisions are joined one level up, in [`Store`](crate::Store). A new
//! kind of source is a new variant here.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::StoreError;
use crate::database::Database;
use crate::folder::{Notes, SAME_REQUEST_WINDOW};
use crate::layout::Profile;
use crate::open::{FileState, Opening};

/// What a store reads from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Database(&'a Database),
    /// Notes, and the path of their folder or file.
    Notes(&'a Notes, &'a Path),
}

/// How much of a source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Some rows.
    Rows,
    /// Every row.
    FullScan,
}

/// One state of a source.
pub(crate) struct Origin<'a> {
    pub connection: &'a Connection,
    /// Another connection that may read half of a large table.
    pub second_connection: Option<Connection>,
    pub opening: Opening,
    /// The program that wrote it, if its tables do not show it.
    pub profile: Option<Profile>,
    /// The state of the files before the read.
    pub state: &'a FileState,
}

impl<'a> Origin<'a> {
    pub const fn of(connection: &'a Connection, opening: Opening, state: &'a FileState) -> Self {
        Self {
            connection,
            second_connection: None,
            opening,
            profile: None,
            state,
        }
    }
}

/// What a reader made from one state.
pub(crate) struct ReadResult<T> {
    pub value: T,
    /// Whether it read every row. Such a connection is closed, which frees its memory.
    pub has_scanned: bool,
}

impl Source<'_> {
    /// The current state of the files.
    pub fn state(self) -> Result<FileState, StoreError> {
        match self {
            Self::Database(database) => database.state(),
            Self::Notes(notes, path) => {
                notes.read(&Notes::real_path(path), Duration::ZERO, |notes| {
                    Ok(FileState::of_notes(notes.version, notes.bytes))
                })
            }
        }
    }

    /// Passes one state to `read`. If the files change meanwhile, `read` runs again; only the
    /// result of an undisturbed run is returned.
    pub fn read<T>(
        self,
        timeout: Duration,
        access: Access,
        read: &mut impl FnMut(Origin<'_>) -> Result<ReadResult<T>, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Database(database) => database.read(timeout, access, read),
            Self::Notes(notes, path) => {
                notes.read(&Notes::real_path(path), SAME_REQUEST_WINDOW, |notes| {
                    let state = FileState::of_notes(notes.version, notes.bytes);
                    let result = read(Origin {
                        profile: Some(notes.profile),
                        ..Origin::of(notes.connection, Opening::Parsed, &state)
                    });
                    let ended = notes.connection.execute_batch("COMMIT");
                    let value = result?.value;
                    ended.map_err(|error| StoreError::sqlite(path, error))?;
                    Ok(value)
                })
            }
        }
    }
}
