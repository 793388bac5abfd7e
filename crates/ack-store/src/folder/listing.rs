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
use crate::{StoreError, StoreProblem};

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
    /// The files that hosts load themselves.
    instructions: Vec<String>,
    /// How many files with each extension are not read.
    unread: BTreeMap<&'static str, usize>,
    /// A watch of the folders that began before they were listed.
    pub watch: Watch,
}

pub fn is_markdown(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["md", "markdown"].iter().any(|it| extension.eq_ignore_ascii_case(it))
}

/// `3 files are not read: 2 .txt, 1 .org`.
fn unread_problem(unread: &BTreeMap<&'static str, usize>) -> Option<String> {
    let mut counts: Vec<_> = unread.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let listed = counts.iter().map(|(extension, it)| format!("{it} .{extension}"));
    let listed = listed.collect::<Vec<_>>().join(", ");
    let total = unread.values().sum::<usize>() as u64;
    let (files, are) = (count(total, "file"), verb(total, "is", "are"));
    (total > 0)
        .then(|| format!("{files} {are} not read: {listed}; notes are .md or .markdown files"))
}

fn relative<'p>(path: &'p Path, top: &Path) -> &'p Path {
    path.strip_prefix(top).unwrap_or(path)
}

fn shown(path: &Path) -> String {
    ack_api::text::line(&path.display().to_string(), 100)
}

/// The files with memories in a folder, or the one file. Hidden folders and links are skipped.
pub fn list(path: &Path, dialect: Dialect) -> Result<Listing, StoreError> {
    let io = |source| StoreProblem::Io(source).at(path);
    let metadata = std::fs::metadata(path).map_err(io)?;
    let mut listing = Listing::default();
    if !metadata.is_dir() {
        // A named pipe or a device is not a store.
        files::check(path).map_err(io)?;
        let name = Path::new(path.file_name().unwrap_or_default());
        listing.files.push(FileEntry::of(name, &metadata));
        return Ok(listing);
    }
    // A folder that cannot be read at all is an error; an unreadable subfolder is a problem.
    std::fs::read_dir(path).map_err(io)?;
    let walk = WalkDir::new(path).max_depth(MAX_DEPTH).into_iter().filter_entry(|entry| {
        let is_entered =
            !entry.file_type().is_dir() || dialect.enters(relative(entry.path(), path));
        entry.depth() == 0 || is_entered && !is_skipped(entry.file_name())
    });
    for (number, entry) in walk.enumerate() {
        if number > MAX_ENTRIES {
            return Err(StoreProblem::TooManyFiles(MAX_ENTRIES).at(path));
        }
        match entry {
            Err(error) => listing.add_unreadable(path, &error),
            Ok(entry) if entry.file_type().is_dir() => listing.add_folder(path, &entry),
            Ok(entry) => listing.add_file(path, &entry, dialect),
        }
        if listing.cut.is_some() {
            break;
        }
    }
    listing.instructions.sort();
    listing.problems.extend(left_out(&listing.instructions));
    listing.problems.extend(unread_problem(&listing.unread));
    Ok(listing)
}

impl Listing {
    fn hide(&mut self, problem: String) {
        self.hidden.push(problem.clone());
        self.problems.push(problem);
    }

    fn add_unreadable(&mut self, top: &Path, error: &walkdir::Error) {
        let folder = shown(relative(error.path().unwrap_or(top), top));
        let reason = error.io_error().map(io::Error::to_string);
        let reason = reason.unwrap_or_else(|| "it contains itself through a link".to_owned());
        self.hide(format!("`{folder}` cannot be opened: {reason}; its notes are left out"));
    }

    fn add_folder(&mut self, top: &Path, entry: &DirEntry) {
        self.watch.add(entry.path());
        if entry.depth() == MAX_DEPTH {
            let folder = shown(relative(entry.path(), top));
            self.problems.push(format!(
                "`{folder}` is deeper than {MAX_DEPTH} folders; its notes are left out"
            ));
        }
    }

    fn add_file(&mut self, top: &Path, entry: &DirEntry, dialect: Dialect) {
        let relative = relative(entry.path(), top);
        let is_file = entry.file_type().is_file();
        if is_file && is_instructions(relative) {
            self.instructions.push(relative.display().to_string());
        }
        if entry.file_type().is_symlink() {
            return;
        }
        if !dialect.holds_memories(relative) {
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
        if self.files.len() >= MAX_FILES {
            let problem = format!("it holds more than {MAX_FILES} files; the rest was left out");
            self.problems.push(problem.clone());
            self.cut = Some(problem);
            return;
        }
        // It can be written through a hard link in a folder that is not watched.
        if metadata.nlink() > 1 {
            self.watch.stop();
        }
        self.files.push(FileEntry::of(relative, &metadata));
    }
}
