//! The twin of the vector table in a build without the `table` feature: there is none. Scopes answer in memory, `index` says
//! why it does nothing. Names and signatures are those of the real one, so that no caller knows which it has.

pub mod shapes;

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
    use super::shapes::TableInfo;
    use crate::encoder::Encoder;
    use crate::query::inverted::Index;

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
    use super::shapes::{Answer, Ask, Row};
    use crate::query::inverted::DocId;
    use ack_api::memory::StatusFilter;

    /// There is none: [`super::load::load`] never makes one.
    #[derive(Debug)]
    pub enum Searcher {}

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
    use super::TableError;
    use super::shapes::{Options, Progress, Report};
    use crate::error::Error;
    use crate::scope::Scope;

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
