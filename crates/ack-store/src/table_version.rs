//! Detects a new version of the vector table next to a store without opening the table.

use std::path::{Path, PathBuf};

pub const TABLE: &str = "memories";
/// The tag of the version that readers may use.
pub const PUBLISHED: &str = "published";

/// The published version of a table, identified by the metadata of its tag file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableVersion(Option<(u64, std::time::SystemTime)>);

impl TableVersion {
    pub fn of(folder: &Path) -> Self {
        let metadata = std::fs::metadata(tag_file(folder)).ok();
        Self(metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?))))
    }

    pub const fn none() -> Self {
        Self(None)
    }

    pub fn published_at(&self) -> Option<jiff::Timestamp> {
        let (_, modified) = self.0?;
        jiff::Timestamp::try_from(modified).ok()
    }

    pub const fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

pub fn tag_file(folder: &Path) -> PathBuf {
    folder.join(format!("{TABLE}.lance/_refs/tags/{PUBLISHED}.json"))
}
