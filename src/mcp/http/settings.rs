//! `config.toml`, read again when it changes.
//!
//! What a request asks about counts from then on: limits, the default scope, which memories agents
//! may ask for. Which tools and upstream servers there are was told to clients that are connected,
//! and how much of a scope is held in memory decides what was made; both stay as they were.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::config::Config;
use ack_api::Diagnostic;

/// How often to check whether the file changed.
const CHECK_AFTER: Duration = Duration::from_secs(1);

/// What shows that the file changed; `None` where there is none.
type Stamp = Option<(u64, SystemTime, u64)>;

/// The file of the settings in force.
pub struct Settings {
    path: PathBuf,
    state: Mutex<(Instant, Stamp)>,
}

/// What became of a file that changed.
pub struct News {
    /// The settings, if it can be used.
    pub config: Option<Config>,
    /// What to tell the owner.
    pub told: String,
}

impl Settings {
    /// The file that settings came from, or would have come from.
    pub fn of(config: &Config) -> Self {
        let path = config.root.value.join("config.toml");
        let stamp = stamp(&path);
        Self {
            path,
            state: Mutex::new((Instant::now(), stamp)),
        }
    }

    /// Reads the file again if it changed. Settings that cannot be used change nothing.
    pub fn refresh(&self, config: &Config) -> Option<News> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (checked, known) = &mut *state;
        if checked.elapsed() < CHECK_AFTER {
            return None;
        }
        *checked = Instant::now();
        let now = stamp(&self.path);
        if now == *known {
            return None;
        }
        *known = now;
        drop(state);
        let path = self.path.display();
        Some(match config.read_again() {
            Ok(config) => News {
                config: Some(config),
                told: format!(
                    "`{path}` was read again; `[tools]`, `[upstream]` and `limits.resident` count \
                     after a restart"
                ),
            },
            Err(error) => {
                let hint = error.hint().map(|hint| format!("; {hint}"));
                News {
                    config: None,
                    told: format!(
                        "{error}{}; the settings from before still count",
                        hint.unwrap_or_default()
                    ),
                }
            }
        })
    }
}

fn stamp(path: &Path) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?, metadata.ino()))
}
