//! The twin of the vector table in a build without the `table` feature: there is none. Scopes answer in memory, `index` says
//! why it does nothing. Names and signatures are those of the real one, so that no caller knows which it has.

use std::path::Path;

/// What went wrong with a vector table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// This program was built without them.
    #[error("this build of ack-memory has no vector tables")]
    Disabled,
}

impl TableError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        "answers are the same without one; a build with the default features makes it"
    }
}

/// The state of a table's published version: none, whatever lies in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableStamp;

impl TableStamp {
    /// Looks at the folder of a table.
    pub const fn of(_folder: &Path) -> Self {
        Self
    }

    /// When it was published.
    pub const fn published_at(&self) -> Option<jiff::Timestamp> {
        None
    }

    /// Whether there is a published table.
    pub const fn is_some(&self) -> bool {
        false
    }
}

/// Reading a table.
pub mod load {
    use std::path::Path;

    use super::TableError;
    use crate::encoder::Encoder;
    use crate::query::inverted::Index;

    /// What a table says of itself.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TableInfo {
        /// Rows of the published version.
        pub rows: u64,
        /// The version.
        pub version: u64,
        /// The encoder of its vectors.
        pub encoder: String,
        /// When it was published.
        pub built_at: Option<jiff::Timestamp>,
    }

    /// Reads a table into an index.
    ///
    /// # Errors
    /// Always [`TableError::Disabled`].
    pub fn load(_folder: &Path, _encoder: &Encoder) -> Result<(Index, TableInfo), TableError> {
        Err(TableError::Disabled)
    }
}

/// Building a table.
pub mod build {
    use std::path::PathBuf;

    use serde::Serialize;

    use super::TableError;
    use crate::error::Error;
    use crate::scope::Scope;

    /// How a build is to go.
    #[derive(Debug, Clone, Default)]
    pub struct Options {
        /// Only say what would be done.
        pub dry_run: bool,
        /// Take nothing from the table that is there.
        pub rebuild: bool,
        /// Folder of the transformer that embeds memories.
        pub model: Option<PathBuf>,
    }

    /// What a build did.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
    pub struct Report {
        /// The scope.
        pub scope: String,
        /// Rows that were added or replaced.
        pub added: usize,
        /// Rows that were taken out.
        pub removed: usize,
        /// Rows that were there already.
        pub kept: usize,
        /// The table was made anew, and why.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub anew: Option<String>,
        /// Version of the table that readers see now.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub version: Option<u64>,
    }

    /// A step of a build.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Progress {
        /// So many rows are to be added.
        Begin(usize),
        /// So many more were.
        Added(usize),
        /// The rows are there; indexes are made.
        Indexing,
    }

    /// Builds the vector table of a scope.
    ///
    /// # Errors
    /// Always [`Error::Table`] with [`TableError::Disabled`].
    pub fn build(scope: &Scope, _options: &Options, _progress: &mut dyn FnMut(Progress)) -> Result<Report, Error> {
        Err(Error::Table {
            scope: scope.name.clone(),
            source: TableError::Disabled,
        })
    }
}
