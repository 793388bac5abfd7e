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
        /// Whether it is searched itself.
        pub searched: bool,
        /// When it was published.
        pub built_at: Option<jiff::Timestamp>,
    }

    /// Reads a table into an index.
    ///
    /// # Errors
    /// Always [`TableError::Disabled`].
    pub fn load(_folder: &Path, _encoder: &Encoder, _resident: usize) -> Result<(Index, TableInfo), TableError> {
        Err(TableError::Disabled)
    }
}

/// Searching a table.
pub mod search {
    use super::TableError;
    use crate::memory::StatusFilter;
    use crate::query::filter::Condition;
    use crate::query::inverted::DocId;
    use crate::query::semantic::Code;

    /// There is none: [`super::load::load`] never makes one.
    #[derive(Debug)]
    pub enum Searcher {}

    /// What a table is asked.
    pub struct Ask<'a> {
        /// The terms of the query, with their weights.
        pub keys: &'a [(String, f32)],
        /// Those that are identifiers with hardly a holder.
        pub anchors: &'a [String],
        /// The vector of the query.
        pub code: Option<&'a Code>,
        /// What the filters ask for.
        pub condition: Condition<'a>,
        /// Which statuses may be shown.
        pub status: StatusFilter,
        /// There are memories of others.
        pub others: bool,
    }

    /// A memory that was found.
    pub struct Row {
        /// Which one.
        pub doc: DocId,
        /// Which of the keys it holds, and their weighted frequencies.
        pub frequencies: Vec<(usize, f32)>,
        /// Its vector.
        pub code: Option<Code>,
    }

    /// What was found.
    pub struct Answer {
        /// The memories.
        pub docs: Vec<DocId>,
        /// These are all.
        pub complete: bool,
    }

    impl Searcher {
        /// Every term of the table.
        pub const fn terms(&self) -> std::iter::Empty<&str> {
            match *self {}
        }

        /// How many memories hold a term.
        pub const fn holders(&self, _key: &str, _filter: StatusFilter) -> usize {
            match *self {}
        }

        /// How much memory it takes.
        pub const fn bytes(&self) -> usize {
            match *self {}
        }

        /// The memories that are worth a look.
        ///
        /// # Errors
        /// Never.
        pub const fn search(&self, _ask: &Ask<'_>) -> Result<Answer, TableError> {
            match *self {}
        }

        /// Reads memories.
        ///
        /// # Errors
        /// Never.
        pub const fn fetch(&self, _wanted: &[DocId], _keys: &[(String, f32)]) -> Result<Vec<Row>, TableError> {
            match *self {}
        }
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
