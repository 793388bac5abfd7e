//! What a bucket contains.
//!
//! ```text
//! HEAD.json                        the one object that changes: which version is current
//! log/12-9f3a1c22.json             one object per version: publisher, time, changes, files
//! manifests/12-9f3a1c22.manifest   the list of fragments and indexes that Lance reads first
//! memories.lance/…                 the table's files, under the random names that Lance gives them
//! links/12-9f3a1c22.jsonl          the links between memories
//! ```
//!
//! All objects but the first are written once, before `HEAD.json` names them, and never changed. A
//! killed publisher leaves objects that no version names. `HEAD.json` is replaced only if it is
//! still what the publisher read (`If-Match`). So a reader always sees one complete version.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The format that this program reads and writes.
pub const FORMAT: u32 = 2;
/// The name of the object that names the current version.
pub const HEAD: &str = "HEAD.json";
/// The file of links, in the folder of a version.
pub const LINKS: &str = "links.jsonl";
/// The largest number of files of a version.
const MAX_FILES: usize = 20_000;

/// `HEAD.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub format: u32,
    pub version: u64,
    /// The object that describes it.
    pub log: String,
    /// The SHA-256 of that object.
    pub sha256: String,
    /// How many memories the version has.
    pub rows: u64,
    pub published_at: String,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its place in the folder of the version.
    pub path: String,
    /// The object, without the prefix of the address.
    pub object: String,
    pub bytes: u64,
    pub sha256: String,
}

/// A memory that was withdrawn by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawn {
    pub id: String,
    pub at: String,
    pub by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub format: u32,
    pub version: u64,
    pub scope: String,
    pub published_at: String,
    pub by: String,
    pub rows: u64,
    pub added: u64,
    pub changed: u64,
    /// How many memories were removed.
    pub withdrawn: u64,
    /// The object that describes the previous version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The version that it restores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<u64>,
    /// Memories that were withdrawn by hand. They are not published again unless someone asks for
    /// it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<Withdrawn>,
    /// Ids of memories that were withdrawn by hand and later allowed back with `--restore`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    pub encoder: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileEntry>,
}

impl Version {
    /// How many bytes its files take. The largest number if their sum is larger.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    pub fn holds_back(&self, id: &str) -> bool {
        self.held_back.iter().any(|mark| mark.id == id)
    }

    /// Why it cannot have been published after a version that is known. `None` if it can.
    pub fn contradiction(&self, known: &Self) -> Option<String> {
        if self.version < known.version {
            return Some("it is older".to_owned());
        }
        let ids = known.held_back.iter().map(|mark| &mark.id);
        let lost = ids.filter(|id| !self.restored.contains(id) && !self.holds_back(id));
        let lost: Vec<String> = lost.map(|id| ack_api::text::line(id, 100)).collect();
        (!lost.is_empty()).then(|| {
            let ids = lost.join(", ");
            format!("it no longer says that these memories were withdrawn: {ids}")
        })
    }

    /// What is wrong with it, if anything: everything in a bucket is untrusted.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.files.len() > MAX_FILES {
            return Some(format!("it lists {} files", self.files.len()));
        }
        self.files.iter().find_map(|file| {
            let (path, digest) = (ack_api::text::line(&file.path, 100), &file.sha256);
            if !is_inside(&file.path) || !is_inside(&file.object) {
                return Some(format!("`{path}` is not a path inside it"));
            }
            let is_digest = digest.len() == 64 && digest.bytes().all(|c| c.is_ascii_hexdigit());
            (!is_digest).then(|| format!("the digest of `{path}` is not valid"))
        })
    }
}

/// Whether a path stays in its folder and is in canonical form.
fn is_inside(path: &str) -> bool {
    let plain =
        |part| matches!(part, Component::Normal(name) if !name.to_string_lossy().starts_with('.'));
    !path.is_empty()
        && !path.contains('\\')
        && !path.contains("//")
        && Path::new(path).components().all(plain)
}

/// The SHA-256 of some bytes, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_overflow_are_as_large_as_can_be() {
        let file = serde_json::json!({
            "path": "a.lance", "object": "a.lance", "bytes": u64::MAX - 1, "sha256": "",
        });
        let version = serde_json::json!({
            "format": 2, "version": 1, "scope": "s", "published_at": "", "by": "", "rows": 1,
            "added": 1, "changed": 0, "withdrawn": 0, "encoder": "", "files": [file, file],
        });
        let version: Version = serde_json::from_value(version).unwrap();
        assert_eq!(version.bytes(), u64::MAX);
    }

    #[test]
    fn a_path_stays_in_its_folder() {
        for good in ["links.jsonl", "memories.lance/data/a-1.lance"] {
            assert!(is_inside(good), "{good}");
        }
        for bad in ["", "/etc/passwd", "../x", "a/../b", "./a", "a//b", "a/.ssh/b", "a\\b"] {
            assert!(!is_inside(bad), "{bad}");
        }
    }
}
