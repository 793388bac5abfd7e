//! Whether the vector table beside a store changed, seen without opening it.

use std::path::{Path, PathBuf};

/// Name of the table in its folder.
pub const TABLE: &str = "memories";
/// The tag on the version that readers may see.
pub const PUBLISHED: &str = "published";

/// The state of a table's published version, to see a change without opening it: the tag's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableVersion(Option<(u64, std::time::SystemTime)>);

impl TableVersion {
    /// Looks at the folder of a table.
    pub fn of(folder: &Path) -> Self {
        let metadata = std::fs::metadata(tag_file(folder)).ok();
        Self(metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?))))
    }

    /// When it was published.
    pub fn published_at(&self) -> Option<jiff::Timestamp> {
        let (_, modified) = self.0?;
        jiff::Timestamp::try_from(modified).ok()
    }

    /// Whether there is a published table.
    pub const fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

/// The file of the tag.
pub fn tag_file(folder: &Path) -> PathBuf {
    folder.join(format!("{TABLE}.lance/_refs/tags/{PUBLISHED}.json"))
}
