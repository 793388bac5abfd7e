//! What is wrong with the notes of a folder: for their owner, for answers, and for publishing.

use std::path::Path;

use super::files::ReadFile;
use super::listing::Listing;
use super::reference::Reference;
use super::rows::display_path;
use super::{Dialect, LoadedNotes, MAX_PROBLEMS, NotesReport, note};

fn sentence(file: &ReadFile, problem: &str) -> String {
    format!("`{}` {problem}", display_path(file.entry.relative.as_os_str()))
}

impl LoadedNotes {
    /// `rows` are the problems with single notes.
    pub(super) fn report_of(&self, listing: &Listing, rows: Vec<String>) -> NotesReport {
        let reference = self.reference.as_ref();
        let hidden = self.hidden_notes(listing);
        NotesReport {
            problems: self.problems(listing, rows),
            unserved: self.unserved_notes(listing, &hidden),
            hidden,
            unknown_reference: reference.and_then(|it| Some(it.unknown()?.reason)),
        }
    }

    fn problems(&self, listing: &Listing, rows: Vec<String>) -> Vec<String> {
        let mut of_files = rows;
        for file in self.files.values() {
            let problem = file.problem.as_ref().or(file.partial_problem.as_ref());
            of_files.extend(problem.map(|problem| sentence(file, problem)));
            // A reference's tree names files by UTF-8.
            if self.reference.is_some() && file.entry.relative.to_str().is_none() {
                let problem = "waits for review: its name is not UTF-8, so no reference approves \
                               it; rename it";
                of_files.push(sentence(file, problem));
            }
        }
        for (relative, row) in self.rows.files() {
            let name = display_path(relative);
            let problem = row.problem.as_ref().filter(|_| row.text.is_from_git);
            of_files.extend(problem.map(|it| format!("`{name}`, as it is committed: {it}")));
            let doubt = row.single.as_ref().and_then(|note| note.doubt.as_ref());
            let doubt = doubt.filter(|_| row.text.is_committed);
            of_files.extend(doubt.map(|doubt| format!("`{name}` {doubt}")));
        }
        of_files.sort();
        of_files.dedup();
        let reference = self.reference.as_ref().and_then(Reference::problem);
        let mut problems: Vec<String> = reference.into_iter().collect();
        problems.extend(listing.problems.iter().cloned());
        problems.extend(of_files);
        let more = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        problems.extend((more > 0).then(|| format!("and {more} more")));
        problems
    }

    fn hidden_notes(&self, listing: &Listing) -> Vec<String> {
        if let Some(reference) = &self.reference {
            // Committed notes are read from git, so only problems with git can hide them.
            let unknown = reference.unknown().map(|problem| problem.text.clone());
            return unknown.into_iter().chain(self.missing.clone()).collect();
        }
        let unread = self.files.values().filter(|file| file.is_unreadable);
        let unread = unread.filter_map(|file| Some(sentence(file, file.problem.as_deref()?)));
        listing.hidden.iter().cloned().chain(unread).collect()
    }

    fn unserved_notes(&self, listing: &Listing, hidden: &[String]) -> Vec<String> {
        let mut unserved = hidden.to_vec();
        if self.reference.is_some() {
            unserved.extend(self.unfit.iter().cloned());
            for (relative, row) in self.rows.files().filter(|(_, row)| row.text.is_committed) {
                let problem = row.problem.as_ref().filter(|_| self.has_lines(Path::new(relative)));
                let name = display_path(relative);
                unserved.extend(problem.map(|problem| format!("`{name}`: {problem}")));
            }
        } else {
            unserved.extend(listing.cut.iter().cloned());
            for file in self.files.values() {
                let lines = file.partial_problem.as_ref();
                let lines = lines.filter(|_| self.has_lines(&file.entry.relative));
                let problem = file.problem.as_ref().or(lines);
                unserved.extend(problem.map(|problem| sentence(file, problem)));
            }
        }
        unserved.sort();
        unserved.dedup();
        unserved
    }

    fn has_lines(&self, relative: &Path) -> bool {
        self.dialect == Dialect::ServerMemory || note::is_json_lines(relative)
    }
}
