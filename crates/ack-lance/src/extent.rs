//! The purpose of a table, and so which columns it fills.

use std::collections::HashMap;

use super::TableError;

/// The metadata key of a table's purpose; absent for [`Extent::Derived`].
pub const META_EXTENT: &str = "ack-memory.extent";

/// The purpose of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// It is next to its store.
    Derived,
    /// It replaces its store, so it has whole records.
    Records {
        /// Whether it is so large that readers search it on disk. Otherwise they load it into
        /// memory, and the columns that only a search on disk needs are empty.
        on_disk: bool,
    },
}

impl Extent {
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Derived => None,
            Self::Records { on_disk: false } => Some("records"),
            Self::Records { on_disk: true } => Some("records, searched on disk"),
        }
    }

    pub(crate) const fn has_records(self) -> bool {
        matches!(self, Self::Records { .. })
    }

    pub(crate) const fn is_searched_on_disk(self) -> bool {
        !matches!(self, Self::Records { on_disk: false })
    }
}

/// Checks that a table has the wanted purpose.
pub fn check(found: &HashMap<String, String>, wanted: Extent) -> Result<(), TableError> {
    let found = found.get(META_EXTENT).map(String::as_str);
    if found == wanted.name() {
        return Ok(());
    }
    let describe = |name: Option<&str>| format!("extent {}", name.unwrap_or("derived"));
    Err(TableError::Mismatch {
        found: ack_api::text::line(&describe(found), 60),
        needed: describe(wanted.name()),
    })
}
