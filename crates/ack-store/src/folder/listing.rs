//! Lists the files of a folder, with the metadata that shows whether they changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ack_sys::files;
use ack_sys::watch::Watch;
use walkdir::{DirEntry, WalkDir};

use super::instructions::{is_instructions, left_out};

/// How many files are read.
const MAX_FILES: usize = 100_000;
/// How many files and folders are visited. A folder with more is not one of notes.
pub const MAX_ENTRIES: usize = 200_000;
/// The extensions of files that may be notes and are not read.
const UNREAD_EXTENSIONS: [&str; 12] = [
    "adoc", "asciidoc", "docx", "mdown", "mdx", "mkd", "odt", "org", "rst", "rtf", "textile", "txt",
];
/// The deepest folder that is searched.
const MAX_DEPTH: usize = 32;
/// A file that changed more recently than this may change again without a change of its metadata.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// Whether a folder or file inside a folder of notes is skipped because of its name.
pub fn is_skipped(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") || name == "node_modules"
}

/// A file with its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Its path in the folder, or the name of a single file.
    pub relative: PathBuf,
    /// Its length in bytes.
    pub length: u64,
    /// When its content changed.
    pub modified: SystemTime,
    inode: u64,
    /// Seconds and nanoseconds since 1970 when its metadata changed.
    changed: (i64, i64),
}

impl FileEntry {
    fn of(relative: &Path, metadata: &std::fs::Metadata) -> Self {
        Self {
            relative: relative.to_owned(),
            length: metadata.len(),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether equal metadata will later prove that the content is the same.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let bound = now
            .checked_sub(SETTLED_AFTER)
            .and_then(|bound| bound.duration_since(SystemTime::UNIX_EPOCH).ok());
        let bound = bound.map_or(0, |bound| {
            i64::try_from(bound.as_secs()).unwrap_or(i64::MAX)
        });
        self.changed.0 < bound
    }
}

/// The files of a folder.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files, each once, in no particular order.
    pub files: Vec<FileEntry>,
    /// What could not be read.
    pub problems: Vec<String>,
    /// Those of the problems that may hide notes: folders that cannot be opened, and special files
    /// with the name of a note.
    pub hidden: Vec<String>,
    /// That there are more files than are read.
    pub cut: Option<String>,
    /// Whether there is more than is visited.
    pub is_too_large: bool,
    /// A watch of the folders that began before they were listed.
    pub watch: Watch,
}

/// Whether a path names a Markdown file.
pub fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        let is = |name: &str| extension.eq_ignore_ascii_case(name);
        is("md") || is("markdown")
    })
}

/// Counts the files that may be notes and are not read, by their extensions.
#[derive(Default)]
struct Unread(BTreeMap<&'static str, usize>);

impl Unread {
    fn add(&mut self, path: &Path) {
        let extension = path.extension().unwrap_or_default();
        let known = UNREAD_EXTENSIONS.iter();
        if let Some(known) = known
            .into_iter()
            .find(|it| extension.eq_ignore_ascii_case(it))
        {
            *self.0.entry(known).or_default() += 1;
        }
    }

    /// `3 files are not read: 2 .txt, 1 .org`.
    fn problem(&self) -> Option<String> {
        let mut counts: Vec<(&str, usize)> = self.0.iter().map(|(name, it)| (*name, *it)).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let total: usize = counts.iter().map(|(_, count)| count).sum();
        let files = match total {
            0 => return None,
            1 => "1 file is".to_owned(),
            total => format!("{total} files are"),
        };
        let listed: Vec<String> = counts
            .iter()
            .map(|(extension, count)| format!("{count} .{extension}"))
            .collect();
        Some(format!(
            "{files} not read: {}; notes are .md or .markdown files",
            listed.join(", ")
        ))
    }
}

/// The problem message for a subfolder that cannot be opened.
fn unreadable_folder_problem(top: &Path, error: &walkdir::Error) -> String {
    let path = error.path().unwrap_or(top);
    let shown = path.strip_prefix(top).unwrap_or(path).display().to_string();
    let reason = error.io_error().map(io::Error::to_string);
    format!(
        "`{}` cannot be opened: {}; its notes are left out",
        ack_api::text::line(&shown, 100),
        reason.unwrap_or_else(|| "it contains itself through a link".to_owned())
    )
}

/// The problem message for a folder whose files are not searched.
fn too_deep_problem(top: &Path, folder: &Path) -> String {
    let shown = folder.strip_prefix(top).unwrap_or(folder).display();
    format!(
        "`{}` is deeper than {MAX_DEPTH} folders; its notes are left out",
        ack_api::text::line(&shown.to_string(), 100)
    )
}

/// Lists the files in a folder that `wanted` lets through, or the one file that the path names.
/// Hidden folders and links are skipped.
///
/// # Errors
/// The path cannot be read.
pub fn list(path: &Path, wanted: &dyn Fn(&Path) -> bool) -> io::Result<Listing> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_dir() {
        // A named pipe or a device is not a store.
        files::check(path)?;
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        return Ok(Listing {
            files: vec![FileEntry::of(&name, &metadata)],
            ..Listing::default()
        });
    }
    // A folder that cannot be read at all is an error; an unreadable subfolder is a problem.
    std::fs::read_dir(path)?;
    let mut visit = FolderVisit {
        top: path,
        wanted,
        listing: Listing::default(),
        instructions: Vec::new(),
        unread: Unread::default(),
    };
    let walk = WalkDir::new(path)
        .max_depth(MAX_DEPTH)
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !is_skipped(entry.file_name()));
    for (number, entry) in walk.enumerate() {
        if number > MAX_ENTRIES {
            visit.listing.is_too_large = true;
            return Ok(visit.listing);
        }
        match entry {
            Err(error) => visit.hide(unreadable_folder_problem(path, &error)),
            Ok(entry) if entry.file_type().is_dir() => visit.folder(&entry),
            Ok(entry) => visit.file(&entry),
        }
        if visit.listing.cut.is_some() {
            break;
        }
    }
    let FolderVisit {
        mut listing,
        mut instructions,
        unread,
        ..
    } = visit;
    instructions.sort();
    listing.problems.extend(left_out(&instructions));
    listing.problems.extend(unread.problem());
    Ok(listing)
}

/// The entries of a folder, one after the other.
struct FolderVisit<'a> {
    top: &'a Path,
    wanted: &'a dyn Fn(&Path) -> bool,
    listing: Listing,
    instructions: Vec<String>,
    unread: Unread,
}

impl FolderVisit<'_> {
    /// Adds a problem that may hide notes.
    fn hide(&mut self, problem: String) {
        self.listing.hidden.push(problem.clone());
        self.listing.problems.push(problem);
    }

    fn folder(&mut self, entry: &DirEntry) {
        self.listing.watch.add(entry.path());
        if entry.depth() == MAX_DEPTH {
            let problem = too_deep_problem(self.top, entry.path());
            self.listing.problems.push(problem);
        }
    }

    fn file(&mut self, entry: &DirEntry) {
        let Ok(relative) = entry.path().strip_prefix(self.top) else {
            return;
        };
        let is_file = entry.file_type().is_file();
        if is_file && is_instructions(relative) {
            self.instructions.push(relative.display().to_string());
        }
        if entry.file_type().is_symlink() {
            return;
        }
        if !(self.wanted)(relative) {
            if is_file {
                self.unread.add(relative);
            }
            return;
        }
        if !is_file {
            if let Err(error) = files::check(entry.path()) {
                self.hide(format!(
                    "`{}` is left out: {error}",
                    ack_api::text::line(&relative.display().to_string(), 100)
                ));
            }
            return;
        }
        // A file that has disappeared by now is ignored.
        let Ok(metadata) = entry.metadata() else {
            return;
        };
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
