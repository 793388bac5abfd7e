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
    Notes(&'a Notes, &'a Path),
}

impl Source<'_> {
    pub fn state(self) -> Result<FileState, StoreError> {
        match self {
            Self::Database(database) => database.state(),
            Self::Notes(notes, path) => {
                notes.read(&Notes::real_path(path), Duration::ZERO, |notes| Ok(notes.state.clone()))
            }
        }
    }

    /// Passes one state to `read`. If the files change meanwhile, `read` runs again; only the
    /// result of an undisturbed run is returned.
    pub fn read<T>(
        self,
        timeout: Duration,
        access: Access,
        read: &mut impl FnMut(Origin<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Database(database) => database.read(timeout, access, read),
            Self::Notes(notes, path) => {
                notes.read(&Notes::real_path(path), SAME_REQUEST_WINDOW, |notes| {
                    let result = read(Origin {
                        profile: Some(notes.profile),
                        ..Origin::of(notes.connection, Opening::Parsed, &notes.state)
                    });
                    let ended = notes.connection.execute_batch("COMMIT");
                    let value = result?;
                    ended?;
                    Ok(value)
                })
            }
        }
    }
}

/// How much of a source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Rows,
    /// A quick pass over all rows.
    QuickScan,
    FullScan,
}

pub(crate) struct Origin<'a> {
    pub connection: &'a Connection,
    /// Another connection that may read half of a large table.
    pub second_connection: Option<Connection>,
    pub opening: Opening,
    /// The program that wrote it, if its tables do not show it.
    pub profile: Option<Profile>,
    pub state: &'a FileState,
}

impl<'a> Origin<'a> {
    pub const fn of(connection: &'a Connection, opening: Opening, state: &'a FileState) -> Self {
        Self { connection, second_connection: None, opening, profile: None, state }
    }
}
