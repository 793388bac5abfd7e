//! Lists the files of a folder, with the metadata that shows whether they changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ack_api::number::{count, verb};
use ack_sys::files;
use ack_sys::watch::Watch;
use walkdir::{DirEntry, WalkDir};

use super::dialect::Dialect;
use super::instructions::{is_instructions, left_out};
use crate::quick_state::FileMetadata;

const MAX_FILES: usize = 100_000;
/// How many files and folders are visited. A folder with more is not one of notes.
pub const MAX_ENTRIES: usize = 200_000;
/// The extensions of files that may be notes and are not read.
const UNREAD_EXTENSIONS: [&str; 12] = [
    "adoc", "asciidoc", "docx", "mdown", "mdx", "mkd", "odt", "org", "rst", "rtf", "textile", "txt",
];
const MAX_DEPTH: usize = 32;

pub fn is_skipped(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") || name == "node_modules"
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Its path in the folder, or the name of a single file.
    pub relative: PathBuf,
    pub length: u64,
    pub modified: SystemTime,
    pub metadata: FileMetadata,
}

impl FileEntry {
    fn of(relative: &Path, metadata: &std::fs::Metadata) -> Self {
        Self {
            relative: relative.to_owned(),
            length: metadata.len(),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            metadata: FileMetadata::of(metadata),
        }
    }
}

#[derive(Debug, Default)]
pub struct Listing {
    /// The files, each once, in no particular order.
    pub files: Vec<FileEntry>,
    pub problems: Vec<String>,
    /// The problems that may hide notes: unreadable folders, and special files named like a note.
    pub hidden: Vec<String>,
    pub cut: Option<String>,
    pub is_too_large: bool,
    /// A watch of the folders that began before they were listed.
    pub watch: Watch,
}

pub fn is_markdown(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["md", "markdown"].iter().any(|it| extension.eq_ignore_ascii_case(it))
}

/// `3 files are not read: 2 .txt, 1 .org`, by how many files have each extension.
fn unread_problem(unread: &BTreeMap<&'static str, usize>) -> Option<String> {
    let mut counts: Vec<_> = unread.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let total: u64 = unread.values().map(|count| *count as u64).sum();
    let listed = counts.iter().map(|(extension, it)| format!("{it} .{extension}"));
    let listed = listed.collect::<Vec<_>>().join(", ");
    (total > 0).then(|| {
        let (files, are) = (count(total, "file"), verb(total, "is", "are"));
        format!("{files} {are} not read: {listed}; notes are .md or .markdown files")
    })
}

fn shown(path: &Path) -> String {
    ack_api::text::line(&path.display().to_string(), 100)
}

/// The files with memories in a folder, or the one file. Hidden folders and links are skipped.
pub fn list(path: &Path, dialect: Dialect) -> io::Result<Listing> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_dir() {
        // A named pipe or a device is not a store.
        files::check(path)?;
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        return Ok(Listing { files: vec![FileEntry::of(&name, &metadata)], ..Listing::default() });
    }
    // A folder that cannot be read at all is an error; an unreadable subfolder is a problem.
    std::fs::read_dir(path)?;
    let mut visit = FolderVisit {
        top: path,
        dialect,
        listing: Listing::default(),
        instructions: Vec::new(),
        unread: BTreeMap::new(),
    };
    let walk = WalkDir::new(path).max_depth(MAX_DEPTH).into_iter().filter_entry(|entry| {
        let relative = entry.path().strip_prefix(path).unwrap_or(entry.path());
        let is_entered = !entry.file_type().is_dir() || dialect.enters(relative);
        entry.depth() == 0 || is_entered && !is_skipped(entry.file_name())
    });
    for (number, entry) in walk.enumerate() {
        if number > MAX_ENTRIES {
            visit.listing.is_too_large = true;
            return Ok(visit.listing);
        }
        match entry {
            Err(error) => visit.unreadable(&error),
            Ok(entry) if entry.file_type().is_dir() => visit.folder(&entry),
            Ok(entry) => visit.file(&entry),
        }
        if visit.listing.cut.is_some() {
            break;
        }
    }
    let FolderVisit { mut listing, mut instructions, unread, .. } = visit;
    instructions.sort();
    listing.problems.extend(left_out(&instructions));
    listing.problems.extend(unread_problem(&unread));
    Ok(listing)
}

struct FolderVisit<'a> {
    top: &'a Path,
    dialect: Dialect,
    listing: Listing,
    instructions: Vec<String>,
    unread: BTreeMap<&'static str, usize>,
}

impl FolderVisit<'_> {
    fn hide(&mut self, problem: String) {
        self.listing.hidden.push(problem.clone());
        self.listing.problems.push(problem);
    }

    fn relative<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(self.top).unwrap_or(path)
    }

    fn unreadable(&mut self, error: &walkdir::Error) {
        let folder = shown(self.relative(error.path().unwrap_or(self.top)));
        let reason = error.io_error().map(io::Error::to_string);
        let reason = reason.unwrap_or_else(|| "it contains itself through a link".to_owned());
        self.hide(format!("`{folder}` cannot be opened: {reason}; its notes are left out"));
    }

    fn folder(&mut self, entry: &DirEntry) {
        self.listing.watch.add(entry.path());
        if entry.depth() == MAX_DEPTH {
            let folder = shown(self.relative(entry.path()));
            self.listing.problems.push(format!(
                "`{folder}` is deeper than {MAX_DEPTH} folders; its notes are left out"
            ));
        }
    }

    fn file(&mut self, entry: &DirEntry) {
        let relative = self.relative(entry.path());
        let is_file = entry.file_type().is_file();
        if is_file && is_instructions(relative) {
            self.instructions.push(relative.display().to_string());
        }
        if entry.file_type().is_symlink() {
            return;
        }
        if !self.dialect.holds_memories(relative) {
            let extension = relative.extension().unwrap_or_default();
            let known = UNREAD_EXTENSIONS.iter().find(|it| extension.eq_ignore_ascii_case(it));
            if let Some(known) = known.filter(|_| is_file) {
                *self.unread.entry(known).or_default() += 1;
            }
            return;
        }
        if !is_file {
            if let Err(error) = files::check(entry.path()) {
                self.hide(format!("`{}` is left out: {error}", shown(relative)));
            }
            return;
        }
        // A file that has disappeared by now is ignored.
        let Ok(metadata) = entry.metadata() else { return };
        if self.listing.files.len() >= MAX_FILES {
            let problem = format!("it holds more than {MAX_FILES} files; the rest was left out");
            self.listing.problems.push(problem.clone());
            self.listing.cut = Some(problem);
            return;
        }
        // It can be written through a hard link in a folder that is not watched.
        if metadata.nlink() > 1 {
            self.listing.watch.stop();
        }
        self.listing.files.push(FileEntry::of(relative, &metadata));
    }
}
