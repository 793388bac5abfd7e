//! What a project's files say about the present work: changed files, the branch, languages,
//! dependencies.

use std::time::Duration;

use super::manifests::{self, ManifestNames};
use crate::config::Config;
use crate::scope::resolve::Current;
use ack_api::text;
use ack_worktree::changes::Changes;

/// Leaves enough for a total below 20 ms.
const CHANGES_TIMEOUT: Duration = Duration::from_millis(10);
/// Types and tags of memories that stay valid for long.
pub const LASTING_TYPES: [&str; 7] =
    ["decision", "decisions", "gotcha", "gotchas", "pitfall", "pitfalls", "convention"];
/// Generated files, whose changes mean nothing.
const GENERATED_FILES: &str = "\
    cargo.lock composer.lock gemfile.lock go.sum npm-shrinkwrap.json package-lock.json \
    pnpm-lock.yaml poetry.lock uv.lock yarn.lock";
const EVERYDAY_FILE_NAMES: &str = "\
    __init__ app build cargo changelog common conftest config constants go helpers index init \
    lib license main mod package pyproject readme requirements settings setup test tests \
    tsconfig types utils";
const GENERIC_FOLDERS: &str = "\
    app apps cmd crates internal lib packages pkg src test tests";

/// A word in at most this many memories is distinctive, however small the store is.
const MAX_DISTINCTIVE_MEMORIES: usize = 5;

/// Words to search for, from the most to the least specific source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signals {
    pub changes: Changes,
    pub branch: Option<String>,
    pub declared: ManifestNames,
}

impl Signals {
    /// The user's git settings decide which files are ignored.
    pub fn of(current: &Current, config: &Config) -> Self {
        let repository = current.repository.as_ref();
        let home = config.home.as_deref();
        let changes = repository.map(|repository| Changes::read(repository, home, CHANGES_TIMEOUT));
        let mut changes = changes.unwrap_or_default();
        changes.files.retain(|path| !text::has_word(GENERATED_FILES, &name(path).to_lowercase()));
        Self {
            branch: repository.and_then(|repository| repository.branch.clone()),
            declared: manifests::read(&current.folder, &current.top),
            changes,
        }
    }

    /// The ends of the changed paths, by which the project's own memories name them.
    pub fn endings(&self) -> Vec<String> {
        self.changes.files.iter().map(|path| path_ending(path)).collect()
    }

    /// The topics of the changed files, for memories that name none of their paths.
    pub fn subjects(&self) -> Subjects {
        let mut subjects = Subjects::default();
        for path in &self.changes.files {
            let (name, stem) = (name(path), stem(name(path)));
            if !is_everyday(stem) {
                let stem = stem.trim_start_matches("test_").trim_end_matches("_test");
                subjects.add(name);
                subjects.add(stem.trim_end_matches("_spec"));
            } else if let Some(folder) = path.rsplit('/').nth(1)
                && !is_generic_folder(folder)
            {
                subjects.add(folder);
            }
        }
        subjects
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subjects {
    /// Names: of files, and of words that look like code.
    pub names: Vec<String>,
    /// Possibly ordinary words: `query.rs` does not make every memory about a query relevant. They
    /// count only if [`is_distinctive`] holds.
    pub words: Vec<String>,
}

impl Subjects {
    fn add(&mut self, subject: &str) {
        // An inner capital, a digit or a symbol: `retry_policy`, `PayoutJob`, `e2e`.
        let ordinary = subject.chars().skip(1).all(char::is_lowercase)
            && subject.chars().all(char::is_alphabetic);
        let subjects = if ordinary { &mut self.words } else { &mut self.names };
        subjects.extend(Some(subject.to_lowercase()).filter(|it| it.chars().count() > 2));
    }
}

/// Whether a word that this many memories contain is specific enough.
pub fn is_distinctive(holders: usize, memories: usize) -> bool {
    holders <= (memories / 50).max(MAX_DISTINCTIVE_MEMORIES)
}

/// All the ways a memory may name a file.
pub fn file_names(path: &str) -> Vec<String> {
    let name = name(path);
    vec![path_ending(path), name.to_owned(), stem(name).to_owned()]
}

/// How memories name a file: by its name, with its folder if the name is common.
fn path_ending(path: &str) -> String {
    let name = name(path);
    let folder = path.rsplit('/').nth(1);
    match folder.filter(|_| is_everyday(stem(name))) {
        Some(folder) => format!("{folder}/{name}"),
        None => name.to_owned(),
    }
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A file's name up to its first dot. A name that begins with a dot stays whole.
pub fn stem(name: &str) -> &str {
    name.split_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}

/// Whether the name of a folder says nothing about its content.
pub fn is_generic_folder(name: &str) -> bool {
    text::has_word(GENERIC_FOLDERS, name)
}

pub fn is_everyday(stem: &str) -> bool {
    text::has_word(EVERYDAY_FILE_NAMES, &stem.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_named_by_its_name_or_its_folder() {
        let files = "src/pay/payout.rs src/pay/mod.rs README.md web/app/index.tsx \
                     tests/test_refund.py src/PayoutJob.java .github/workflows/ci.yml";
        let files = files.split(' ').map(str::to_owned).collect();
        let changes = Changes { files, ..Changes::default() };
        let signals = Signals { changes, ..Signals::default() };
        let endings =
            "payout.rs pay/mod.rs README.md app/index.tsx test_refund.py PayoutJob.java ci.yml";
        assert_eq!(signals.endings().join(" "), endings);
        let subjects = signals.subjects();
        let names = "payout.rs test_refund.py payoutjob.java payoutjob ci.yml";
        assert_eq!(subjects.names.join(" "), names, "unusual spellings");
        assert_eq!(subjects.words, ["payout", "pay", "refund"]);
    }
}
