//! Whether a memory names a file of the project: the file itself, its folder, or a glob.

use std::path::Path;

use super::signals::{is_everyday, is_generic_folder, stem};
use crate::scope::resolve::Current;
use ack_search::file_pattern::{self, glob_matches, is_glob};

/// Minimum letters of a specific glob. `*.rs` has too few.
const MIN_GLOB_LETTERS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Naming {
    Path,
    FileName,
    Folder,
    Glob,
}

/// The folders that paths of a project's files may start from.
pub struct ProjectRoots {
    /// Absolute, without a trailing `/`, in lower case.
    roots: Vec<String>,
    name: String,
    /// The project's folder from the top, with a trailing `/`; empty if it is the top.
    inner: String,
}

impl ProjectRoots {
    pub fn of(current: &Current) -> Self {
        let folder = folded(&current.folder);
        let top = folded(&current.top);
        let main = current.repository.as_ref().map(|repository| folded(&repository.main));
        let inner = folder.strip_prefix(&top).unwrap_or_default().trim_matches('/');
        let name = main.as_ref().unwrap_or(&top).rsplit('/').next();
        Self {
            inner: if inner.is_empty() { String::new() } else { format!("{inner}/") },
            name: name.unwrap_or_default().to_owned(),
            roots: std::iter::once(top).chain(main).filter(|root| !root.is_empty()).collect(),
        }
    }

    pub fn file(&self, path: &str) -> ProjectFile {
        let path = file_pattern::folded(path);
        let inner = path.strip_prefix(&self.inner).filter(|_| !self.inner.is_empty());
        ProjectFile {
            paths: std::iter::once(path.clone()).chain(inner.map(str::to_owned)).collect(),
            roots: self.roots.clone(),
            repository: self.name.clone(),
        }
    }

    /// A file, by any path; `None` if it is outside the project.
    pub fn file_at(&self, path: &str) -> Option<ProjectFile> {
        let path = file_pattern::folded(path);
        if !is_absolute(&path) {
            return Some(self.file(&format!("{}{path}", self.inner)));
        }
        self.roots.iter().find_map(|root| path_below(&path, root)).map(|below| self.file(below))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path from the top of the repository, and from the project's folder.
    paths: Vec<String>,
    roots: Vec<String>,
    repository: String,
}

impl ProjectFile {
    pub fn path(&self) -> &str {
        self.paths.first().map_or("", String::as_str)
    }

    /// The names of its folders, one of which occurs in every entry that covers it.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.path().rsplit('/').skip(1).filter(|folder| !is_generic_folder(folder))
    }

    /// How an entry of a memory's files names it; `None` if it does not.
    pub fn named_by(&self, entry: &str) -> Option<Naming> {
        let entry = file_pattern::folded(entry);
        let inside = if is_absolute(&entry) {
            let inside = inside(&entry, &self.roots, &self.repository);
            match inside.and_then(|start| entry.get(start..)) {
                Some(inside) => inside,
                // The same project in another place, under another name.
                None => {
                    let is_same = self.path().contains('/') && ends_with_path(&entry, self.path());
                    return is_same.then_some(Naming::FileName);
                }
            }
        } else {
            &entry
        };
        self.paths.iter().filter_map(|path| naming(path, inside)).min()
    }
}

/// A folder as it is compared: without a trailing `/`, in lower case.
fn folded(folder: &Path) -> String {
    file_pattern::folded(&folder.to_string_lossy()).trim_end_matches('/').to_owned()
}

/// Where an absolute path enters a project: below a root, or a folder called like its repository.
pub fn inside(path: &str, roots: &[String], repository: &str) -> Option<usize> {
    let below = roots.iter().find_map(|root| path_below(path, root));
    // Another clone, or another person's.
    let elsewhere = || {
        let part = format!("/{repository}/");
        Some(path.rfind(&part).filter(|_| part.len() > 2)? + part.len())
    };
    below.map(|rest| path.len() - rest.len()).or_else(elsewhere)
}

fn naming(path: &str, entry: &str) -> Option<Naming> {
    if path == entry {
        return Some(Naming::Path);
    }
    if is_glob(entry) {
        let is_specific = specific_letters(entry) >= MIN_GLOB_LETTERS;
        return (is_specific && glob_matches(entry, path)).then_some(Naming::Glob);
    }
    let folder = entry.trim_end_matches('/');
    if path_below(path, folder).is_some() {
        return folder.split('/').any(|part| !is_generic_folder(part)).then_some(Naming::Folder);
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_named = !entry.ends_with('/') && ends_with_path(path, entry);
    (is_named && !is_everyday(stem(name))).then_some(Naming::FileName)
}

/// The letters of a glob, without the file extension and common folder names.
fn specific_letters(glob: &str) -> usize {
    let (folders, name) = glob.rsplit_once('/').unwrap_or(("", glob));
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    let parts = folders.split('/').filter(|part| !is_generic_folder(part)).chain([name]);
    parts.flat_map(str::chars).filter(|c| c.is_alphanumeric()).count()
}

fn path_below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
    (!folder.is_empty() && !rest.is_empty()).then_some(rest)
}

pub fn ends_with_path(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end);
    !end.is_empty() && before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

pub fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.as_bytes().get(1) == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entry: &str, expected: Option<Naming>) {
        let roots = ProjectRoots {
            roots: vec!["/home/kim/ledger-api".to_owned()],
            name: "ledger-api".to_owned(),
            inner: "services/pay/".to_owned(),
        };
        let file = roots.file("services/pay/migrations/004_Lock.sql");
        assert_eq!(file.named_by(entry), expected, "{entry}");
    }

    #[test]
    fn a_file_is_named_by_its_path_its_folder_or_a_glob() {
        let paths = "services/pay/migrations/004_lock.sql ./migrations/004_lock.sql:10-20 \
                     migrations\\004_lock.sql#L3 \
                     /home/kim/ledger-api/services/pay/migrations/004_lock.sql \
                     /Users/ann/src/ledger-api/migrations/004_lock.sql";
        for entry in paths.split(' ') {
            check(entry, Some(Naming::Path));
        }
        check("004_lock.sql", Some(Naming::FileName));
        check("pay/migrations/004_lock.sql", Some(Naming::FileName));
        check("D:/x/services/pay/migrations/004_lock.sql", Some(Naming::FileName));
        for entry in ["migrations/", "migrations", "services/pay", "/home/kim/ledger-api/services/"]
        {
            check(entry, Some(Naming::Folder));
        }
        for entry in
            ["migrations/*.sql", "services/**/*.sql", "00*_lock.sql", "services/pay/migrations/*"]
        {
            check(entry, Some(Naming::Glob));
        }
        let others = "| / | . | ./ | *.sql | **/* | ** | lock.sql | migrations/005.sql \
                      | old/migrations/ | igrations/ | /home/kim/other/migrations/ \
                      | migrations/004_lock.sql/x";
        for entry in others.split('|') {
            check(entry.trim(), None);
        }
    }

    #[test]
    fn folders_of_every_project_name_nothing() {
        let roots = ProjectRoots { roots: Vec::new(), name: String::new(), inner: String::new() };
        assert_eq!(roots.file("src/pay/mod.rs").named_by("src/"), None);
        assert_eq!(roots.file("src/pay/mod.rs").named_by("mod.rs"), None);
        assert_eq!(roots.file("src/pay/mod.rs").named_by("src/pay/"), Some(Naming::Folder));
        assert_eq!(roots.file("src/a.rs").named_by("/other/src/a.rs"), Some(Naming::FileName));
    }
}
