//! One state of a source of records, as it is passed to a reader.

use rusqlite::Connection;

use crate::layout::Profile;
use crate::open::{FileState, Opening};

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
