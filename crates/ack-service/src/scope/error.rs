//! Why a request has no scopes to search.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ack_api::memory::nearest;
use ack_api::{Diagnostic, ErrorBody, ErrorCode, Hint, Tool, text};

use crate::config::{Config, FULL_BUILD, LIGHT_BUILD, Setting, Source};

const LISTED: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    #[error("there is no scope `{name}`")]
    NotFound {
        name: String,
        known: Vec<String>,
        /// The projects that these scopes list, which are also valid names.
        projects: Vec<String>,
    },
    /// It names no other scope, because the client may not know of any.
    #[error("there is no scope `{name}` ({by})")]
    PinNotFound { name: String, by: String },
    #[error("scope `{name}` is refused: this server is pinned to scope `{pinned}`")]
    Refused { name: String, pinned: String },
    /// Its manifest may say who is allowed to read it, or this build cannot follow it.
    #[error("scope `{name}` cannot be read: {reason}")]
    Unusable { name: String, reason: String },
    #[error("scope `{name}` cannot be searched yet: {reason}")]
    Cold { name: String, reason: String, hints: Vec<Hint> },
    #[error("no memories yet: there is no scope under `{}`", root.join("scopes").display())]
    NoScopes {
        root: PathBuf,
        /// The database of claude-mem, if this user has one.
        claude_mem: Option<PathBuf>,
    },
    /// The root was named, and does not exist.
    #[error("no memories: the folder `{}` ({by}) does not exist", root.display())]
    NoRoot { root: PathBuf, by: String },
    #[error("cannot read `{}`: {source}", folder.display())]
    Unreadable { folder: PathBuf, source: io::Error },
}

impl ScopeError {
    /// No scopes, or a folder of scopes that cannot be read.
    pub fn no_scopes(config: &Config) -> Self {
        let folder = config.root.value.join("scopes");
        if let Err(source) = fs::read_dir(&folder)
            && source.kind() != io::ErrorKind::NotFound
        {
            return Self::Unreadable { folder, source };
        }
        let Setting { value, source } = &config.root;
        let home = config.home.as_deref();
        let is_usual = home.is_some_and(|home| *value == home.join(".ack-mem"));
        if *source != Source::Default && !is_usual && !value.exists() {
            return Self::NoRoot { root: value.clone(), by: source.to_string() };
        }
        let claude_mem = home.map(|home| home.join(".claude-mem/claude-mem.db"));
        Self::NoScopes { root: value.clone(), claude_mem: claude_mem.filter(|path| path.is_file()) }
    }
}

impl Diagnostic for ScopeError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } | Self::PinNotFound { .. } => ErrorCode::ScopeNotFound,
            Self::Refused { .. } => ErrorCode::ScopeRefused,
            Self::Unusable { .. } => ErrorCode::ScopeUnusable,
            Self::Cold { .. } => ErrorCode::BucketFailed,
            Self::NoScopes { .. } | Self::NoRoot { .. } => ErrorCode::NoScopes,
            Self::Unreadable { .. } => ErrorCode::IoError,
        }
    }

    fn hints(&self) -> Vec<Hint> {
        match self {
            Self::NotFound { .. } => vec![
                Hint::call(Tool::ListScopes, "shows the scopes"),
                Hint::omit("scope", "to search every shared one"),
            ],
            Self::PinNotFound { .. } => {
                vec![Hint::advice("correct the name, or leave the pin out")]
            }
            Self::Refused { pinned, .. } => vec![
                Hint::omit("scope", format!("to search `{pinned}`")),
                Hint::setting(format!("without `--pin {pinned}`, a server"), "searches the others"),
            ],
            Self::Unusable { reason, .. } if reason == LIGHT_BUILD => {
                vec![Hint::advice(FULL_BUILD)]
            }
            Self::Unusable { .. } => {
                vec![Hint::advice("correct the file"), Hint::command("doctor", "shows every scope")]
            }
            Self::Cold { hints, .. } => hints.clone(),
            Self::Unreadable { .. } => vec![Hint::advice(
                "it has to be a folder that you may read; --root names another root",
            )],
            Self::NoRoot { .. } => vec![
                Hint::advice("correct the path"),
                Hint::command("setup", "sets up memories there"),
            ],
            Self::NoScopes { claude_mem: Some(store), .. } => {
                let store = store.display();
                vec![
                    Hint::advice(format!("claude-mem has its database at `{store}`")),
                    Hint::command(
                        format!("scopes add claude-mem --store {store} --yes"),
                        "adds it",
                    ),
                    Hint::command("setup", "asks about everything on this machine"),
                ]
            }
            Self::NoScopes { .. } => vec![
                Hint::command("setup", "finds the stores on this machine"),
                Hint::command("demo", "shows sample memories"),
                Hint::command("import FILE --scope NAME", "imports memories"),
            ],
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::NoScopes { root, .. } | Self::NoRoot { root, .. } => Some(root),
            Self::Unreadable { folder, .. } => Some(folder),
            _ => None,
        }
    }

    fn details(&self, body: &mut ErrorBody) {
        match self {
            Self::NotFound { name, known, projects } => {
                body.value = Some(text::line(name, 200));
                body.nearest = nearest(name, known.iter().chain(projects).map(String::as_str), 3);
                body.allowed = known.iter().take(LISTED).cloned().collect();
            }
            Self::PinNotFound { name, .. } => body.value = Some(text::line(name, 200)),
            Self::Refused { name, pinned } => {
                body.value = Some(text::line(name, 200));
                body.allowed = vec![pinned.clone()];
            }
            _ => {}
        }
    }
}
