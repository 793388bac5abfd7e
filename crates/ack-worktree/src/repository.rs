//! Reads the properties of a git repository from its files, without starting git.

use std::path::{Path, PathBuf};

use gix_index::hash::Kind;

use crate::remote::UrlRewrites;
use ack_sys::files;

const MAX_GIT_FILE_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repository {
    /// The folder of the main working tree, even if the folder is in a linked worktree.
    pub main: PathBuf,
    pub work_tree: PathBuf,
    /// The remotes in every form to compare, `origin` first; see [`UrlRewrites::spellings`].
    pub remotes: Vec<String>,
    pub rewrites: UrlRewrites,
    /// The branch that is checked out, without `refs/heads/`.
    pub branch: Option<String>,
    /// Git's folder for this working tree, with `HEAD` and the index.
    pub git_dir: PathBuf,
    /// Git's folder for all working trees of the repository.
    pub common_dir: PathBuf,
    /// The hash function of object names (`extensions.objectFormat`).
    pub hash: Kind,
    /// Whether file names ignore case (`core.ignoreCase`).
    pub ignore_case: bool,
    /// The global ignore file, if the repository's own settings name one (`core.excludesFile`).
    pub excludes_file: Option<PathBuf>,
}

impl Repository {
    /// The user's settings are in `home`.
    pub fn discover(folder: &Path, home: Option<&Path>) -> Option<Self> {
        if !is_safe_to_discover(folder) {
            return None;
        }
        let (found, _) = gix_discover::upwards(folder).ok()?;
        let (git_dir, work_tree) = found.into_repository_and_work_tree_directories();
        let git_dir = absolute(folder, git_dir);
        let work_tree = absolute(folder, work_tree.unwrap_or_else(|| git_dir.clone()));
        let common = common_dir(&git_dir);
        let main = match common.parent() {
            Some(parent)
                if common.file_name().is_some_and(|name| name == ".git" || name == ".bare") =>
            {
                parent.to_owned()
            }
            // The folder of a submodule or a bare repository is not the project's folder; the
            // working tree is.
            _ if common == git_dir => work_tree.clone(),
            _ => common.clone(),
        };
        let head = files::read_text(&git_dir.join("HEAD"), MAX_GIT_FILE_BYTES).unwrap_or_default();
        let branch = head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned);
        let config = settings_file(&common.join("config"), gix_config::Source::Local);
        let text = |key: &str| config.as_ref().and_then(|config| config.string(key));
        let ignore_case =
            config.as_ref().and_then(|config| config.boolean("core.ignoreCase").ok().flatten());
        let rewrites = UrlRewrites::read(config.as_ref(), home);
        Some(Self {
            remotes: config.as_ref().map(|config| remotes(config, &rewrites)).unwrap_or_default(),
            rewrites,
            hash: match text("extensions.objectFormat") {
                Some(format) if format.eq_ignore_ascii_case(b"sha256") => Kind::Sha256,
                _ => Kind::Sha1,
            },
            ignore_case: ignore_case.unwrap_or(false),
            excludes_file: text("core.excludesFile").map(|path| PathBuf::from(path.to_string())),
            main: canonical(&main),
            work_tree: canonical(&work_tree),
            branch,
            git_dir,
            common_dir: common,
        })
    }

    /// The repository's name: the name of the main working tree's folder.
    pub fn name(&self) -> Option<String> {
        let name = self.main.file_name()?.to_string_lossy();
        Some(name.strip_suffix(".git").unwrap_or(&name).to_owned())
    }
}

/// The name under which the user makes commits in a folder (`user.name`), from the repository's
/// settings or those in the home folder. Includes are not followed.
pub fn git_user_name(folder: &Path, home: Option<&Path>) -> Option<String> {
    let own = Repository::discover(folder, home).map(|found| found.common_dir.join("config"));
    let own = own.and_then(|file| settings_file(&file, gix_config::Source::Local));
    own.into_iter().chain(user_settings(home)).find_map(|config| {
        let name = config.string("user.name")?;
        Some(name.to_string()).filter(|name| !name.trim().is_empty())
    })
}

pub fn user_settings(home: Option<&Path>) -> impl Iterator<Item = gix_config::File> {
    let files = [".gitconfig", ".config/git/config"].into_iter();
    files.filter_map(move |file| settings_file(&home?.join(file), gix_config::Source::User))
}

pub fn settings_file(path: &Path, source: gix_config::Source) -> Option<gix_config::File> {
    let text = files::read(path, MAX_GIT_FILE_BYTES).ok()?;
    let origin = gix_config::file::Metadata::from(source).at(path);
    gix_config::File::from_bytes_no_includes(&text, origin, Default::default()).ok()
}

/// Whether discovery can start at a folder. On the way up, the library opens git's files without
/// checking their type, and a named pipe would block it.
fn is_safe_to_discover(folder: &Path) -> bool {
    for folder in canonical(folder).ancestors() {
        let dot_git = folder.join(".git");
        let linked_git_dir =
            if dot_git.is_file() { linked_git_dir(folder, &dot_git) } else { None };
        let folders = [folder, linked_git_dir.as_deref().unwrap_or(&dot_git)];
        let read = ["HEAD", "commondir", "gitdir"];
        let mut files = folders.iter().flat_map(|folder| read.map(|name| folder.join(name)));
        if files::is_special(&dot_git) || files.any(|file| files::is_special(&file)) {
            return false;
        }
        // The search ends at a complete repository.
        if ["HEAD", "objects", "refs"].iter().all(|name| dot_git.join(name).exists()) {
            return true;
        }
    }
    true
}

fn linked_git_dir(folder: &Path, file: &Path) -> Option<PathBuf> {
    let text = files::read_text(file, MAX_GIT_FILE_BYTES).ok()?;
    Some(folder.join(text.strip_prefix("gitdir:")?.trim()))
}

/// What a linked worktree shares with its main repository (gitrepository-layout(5)).
fn common_dir(git_dir: &Path) -> PathBuf {
    match files::read_text(&git_dir.join("commondir"), MAX_GIT_FILE_BYTES) {
        Ok(text) => canonical(&git_dir.join(text.trim())),
        Err(_) => git_dir.to_owned(),
    }
}

fn remotes(config: &gix_config::File, rewrites: &UrlRewrites) -> Vec<String> {
    let mut remotes: Vec<(bool, String)> = Vec::new();
    for section in config.sections_by_name("remote").into_iter().flatten() {
        let origin = section.header().subsection_name().is_some_and(|name| name == "origin");
        for url in section.values("url") {
            for url in rewrites.spellings(&url.to_string()) {
                if !remotes.iter().any(|(_, known)| *known == url) {
                    remotes.push((!origin, url));
                }
            }
        }
    }
    remotes.sort_by_key(|(other, _)| *other);
    remotes.into_iter().map(|(_, url)| url).collect()
}

fn absolute(base: &Path, path: PathBuf) -> PathBuf {
    canonical(&if path.is_absolute() { path } else { base.join(path) })
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
