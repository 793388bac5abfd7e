//! What is wrong with the notes of a folder: for their owner, for answers, and for publishing.

use std::ffi::OsString;
use std::path::Path;

use rustc_hash::FxHashMap;

use super::files::ReadFile;
use super::listing::Listing;
use super::reference::Reference;
use super::rows::{NoteRow, TextOrigin, display_path};
use super::{Dialect, LoadedNotes, MAX_PROBLEMS, note};

impl LoadedNotes {
    pub(super) fn set_problems(&mut self, listing: &Listing, rows: Vec<String>) {
        let has_reference = self.reference.is_some();
        let reference = self.reference.as_ref().and_then(Reference::problem);
        let untyped = (self.dialect == Dialect::Knowledge).then(|| untyped_notes(&self.files));
        let files = self.files.values().filter_map(|file| {
            let name = display_path(file.entry.relative.as_os_str());
            let problem = file.problem.as_ref().or(file.partial_problem.as_ref());
            Some(format!("`{name}` {}", problem?))
        });
        let committed = self
            .partial_problems
            .iter()
            .map(|((relative, _), partial_problem)| {
                format!(
                    "`{}`, as it is committed: {partial_problem}",
                    display_path(relative)
                )
            });
        // A reference's tree names files by UTF-8.
        let unnamed = self.files.values().filter_map(|file| {
            let relative = file.entry.relative.as_os_str();
            (has_reference && relative.to_str().is_none()).then(|| {
                format!(
                    "`{}` waits for review: its name is not UTF-8, so no reference approves it; \
                     rename it",
                    display_path(relative)
                )
            })
        });
        let doubts = self.rows.doubts();
        let doubts =
            doubts.map(|(relative, doubt)| format!("`{}` {doubt}", display_path(relative)));
        let files = files.chain(committed).chain(unnamed).chain(doubts);
        let files = files.chain(rows);
        let mut files: Vec<String> = files.collect();
        files.sort();
        files.dedup();
        let mut problems: Vec<String> = reference
            .into_iter()
            .chain(listing.problems.iter().cloned())
            .chain(untyped.flatten())
            .chain(files)
            .collect();
        if problems.len() > MAX_PROBLEMS {
            let more = problems.len() - MAX_PROBLEMS;
            problems.truncate(MAX_PROBLEMS);
            problems.push(format!("and {more} more"));
        }
        self.problems = problems;
        self.hidden.clear();
        if let Some(reference) = &self.reference {
            // Committed notes are read from git, so only problems with git can hide them.
            let unknown = reference.unknown_reason().map(str::to_owned);
            self.hidden.extend(unknown);
            self.hidden.extend(self.missing.iter().cloned());
        } else {
            let unread = self.files.values().filter(|file| file.is_unreadable);
            let unread = unread.map(|file| {
                let name = display_path(file.entry.relative.as_os_str());
                format!("`{name}` {}", file.problem.as_deref().unwrap_or_default())
            });
            self.hidden
                .extend(listing.hidden.iter().cloned().chain(unread));
        }
        self.unserved = self.unserved_notes(listing);
    }

    /// Notes that exist and are not served, or not completely: what publishing would remove.
    fn unserved_notes(&self, listing: &Listing) -> Vec<String> {
        let mut unserved = self.hidden.clone();
        if self.reference.is_some() {
            unserved.extend(self.unfit.iter().cloned());
        } else {
            unserved.extend(listing.cut.iter().cloned());
            unserved.extend(self.files.values().filter_map(|file| {
                let lines = || {
                    file.partial_problem
                        .as_ref()
                        .filter(|_| self.has_lines(&file.entry.relative))
                };
                let problem = file.problem.as_ref().or_else(lines)?;
                Some(format!(
                    "`{}` {problem}",
                    display_path(file.entry.relative.as_os_str())
                ))
            }));
        }
        unserved.sort();
        unserved.dedup();
        unserved
    }

    /// The committed files of which lines could not be read.
    pub(super) fn broken_lines(&self, plan: &[NoteRow]) -> Vec<String> {
        let committed = plan.iter().filter(|note_row| note_row.is_committed);
        committed
            .filter_map(|note_row| {
                let relative = &note_row.key.relative;
                if !self.has_lines(Path::new(relative)) {
                    return None;
                }
                let problem = match note_row.source {
                    TextOrigin::File => self.files.get(relative)?.partial_problem.as_ref()?,
                    TextOrigin::Object(_) => {
                        let key = (relative.clone(), note_row.content);
                        self.partial_problems.get(&key)?
                    }
                };
                Some(format!("`{}`: {problem}", display_path(relative)))
            })
            .collect()
    }

    /// Whether each line of a file is a memory of its own.
    fn has_lines(&self, relative: &Path) -> bool {
        self.dialect == Dialect::ServerMemory || note::is_json_lines(relative)
    }
}

/// Names the notes without the `type` that the format requires; `None` if every note has one.
fn untyped_notes(files: &FxHashMap<OsString, ReadFile>) -> Option<String> {
    let mut names: Vec<String> = files
        .iter()
        .filter(|(_, file)| file.is_untyped)
        .map(|(relative, _)| display_path(relative))
        .collect();
    names.sort();
    let first = names.first()?;
    let (subject, have) = match names.len() {
        1 => (format!("`{first}`"), "has"),
        2 => (format!("`{first}` and 1 more note"), "have"),
        count => (format!("`{first}` and {} more notes", count - 1), "have"),
    };
    Some(format!(
        "{subject} {have} no `type` in the header, which the Open Knowledge Format requires"
    ))
}
