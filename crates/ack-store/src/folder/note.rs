//! A memory as read from a file, and what is no note.

use std::path::Path;

/// The suffix of the id of a note whose local text differs from the committed one.
pub const EDITED_SUFFIX: &str = "@edited";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NoteStatus {
    /// None, or one that does not count.
    #[default]
    Plain,
    /// It is not finished, or it is not clear what its status means.
    Draft,
    Withdrawn,
    /// It matters beyond its own project.
    Promoted,
}

impl NoteStatus {
    /// What a status in a header means, by its first word; `None` if that is not known, or if
    /// there is none.
    pub fn parse(status: &str) -> Option<Self> {
        let status = status.to_lowercase();
        let mut words = status.split(|c: char| !c.is_alphanumeric());
        Some(match words.find(|word| !word.is_empty())? {
            "draft" | "staging" | "proposed" | "pending" | "wip" => Self::Draft,
            "deprecated" | "rejected" | "withdrawn" | "obsolete" | "archived" | "superseded" => {
                Self::Withdrawn
            }
            "promoted" => Self::Promoted,
            "accepted" | "active" | "approved" | "complete" | "completed" | "current" | "done"
            | "final" | "published" | "resolved" | "reviewed" | "solved" | "stable"
            | "verified" => Self::Plain,
            _ => return None,
        })
    }

    /// Whether nothing but a decision may approve such a note.
    pub const fn withholds(self) -> bool {
        matches!(self, Self::Draft | Self::Withdrawn)
    }

    /// The status of a note. `is_committed` tells whether the reference has it with this content.
    pub const fn status(self, is_committed: bool) -> &'static str {
        match self {
            Self::Withdrawn => "rejected",
            Self::Draft => "staging",
            Self::Plain | Self::Promoted if !is_committed => "staging",
            Self::Promoted => "promoted",
            Self::Plain => "approved",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    pub id: String,
    pub declared_id: Option<String>,
    pub status: NoteStatus,
    /// The word for that status, if it withholds the note.
    pub withheld_by: Option<String>,
    /// Why a reference does not approve it, as the end of a sentence about the file.
    pub doubt: Option<String>,
    pub reviewed_by: Option<String>,
    pub reviewed_at: Option<String>,
    pub title: String,
    /// Whether it has no title of its own, no text and no facts.
    pub says_nothing: bool,
    pub is_named_by_file: bool,
    pub subtitle: Option<String>,
    pub kind: Option<String>,
    pub project: Option<String>,
    pub session: Option<String>,
    pub facts: Vec<String>,
    pub tags: Vec<String>,
    pub files: Vec<String>,
    pub text: String,
    pub created: Option<String>,
    pub updated: Option<String>,
    /// When its file was changed, for notes without dates of their own that are in no commit.
    pub modified: Option<String>,
    /// The day after which its author expects it to be out of date.
    pub stale_after: Option<String>,
    /// The kind of each link, and the name of the note, or `/` and the path of its file.
    pub links: Vec<(String, String)>,
    pub names: Vec<String>,
}

/// Why content is not a note, as the end of a sentence about the file.
pub fn unreadable_reason(content: &[u8]) -> Option<&'static str> {
    if is_lfs_pointer(content) {
        Some("is a Git LFS pointer, not the note's text; run `git lfs pull`")
    } else if content.starts_with(b"\xFF\xFE") || content.starts_with(b"\xFE\xFF") {
        Some("is UTF-16 and was left out; save it as UTF-8")
    } else if content.contains(&0) {
        Some("is not text and was left out")
    } else {
        None
    }
}

/// Whether Git LFS keeps the text elsewhere
/// (<https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md>).
pub fn is_lfs_pointer(content: &[u8]) -> bool {
    const VERSIONS: [&[u8]; 2] =
        [b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/"];
    content.len() < 1024
        && VERSIONS.iter().any(|version| content.starts_with(version))
        && content.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"oid sha256:"))
}

/// The index of auto-memory and of Codex, which holds memories itself.
pub const INDEX: &str = "MEMORY.md";

/// The id of a note: its path without the extension.
pub fn id_from_path(relative: &Path) -> String {
    relative.with_extension("").to_string_lossy().into_owned()
}

pub fn is_json_lines(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_means_what_its_first_word_says() {
        for (status, expected) in [
            ("stable", Some(NoteStatus::Plain)),
            ("Accepted (2026-01-31)", Some(NoteStatus::Plain)),
            ("Superseded by ADR-7", Some(NoteStatus::Withdrawn)),
            ("draft", Some(NoteStatus::Draft)),
            ("promoted", Some(NoteStatus::Promoted)),
            ("🚧 draft", Some(NoteStatus::Draft)),
            ("~~rejected~~", Some(NoteStatus::Withdrawn)),
            ("⛔", None),
            ("???", None),
            ("whatever", None),
            ("not approved", None),
            ("in review", None),
        ] {
            assert_eq!(NoteStatus::parse(status), expected, "{status}");
        }
    }
}
