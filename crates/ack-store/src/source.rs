//! Where the records of a store come from: a database, or notes in files.
//!
//! Each source passes one state of itself to a reader, as a connection: the rows of notes are kept
//! in an in-memory database. Decisions are joined one level up, in [`Store`](crate::Store). A new
//! kind of source is a new variant here.

use std::path::Path;
use std::time::Duration;

use crate::StoreError;
use crate::database::Database;
use crate::folder::{Notes, SAME_REQUEST_WINDOW};
use crate::open::{FileState, Opening};
use crate::origin::{Access, Origin, ReadResult};

/// What a store reads from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Database(&'a Database),
    /// Notes, and the path of their folder or file.
    Notes(&'a Notes, &'a Path),
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
