//! Reloads `config.toml` when it changes.
//!
//! Settings that affect single requests apply immediately: limits, the default scope, which
//! memories agents may ask for. Tools, upstream servers and the number of memories held in memory
//! stay as they were, because connected clients and existing indexes depend on them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::config::Config;
use crate::shell::Shell;
use ack_api::Diagnostic;

/// How often to check whether the file changed.
const CHECK_AFTER: Duration = Duration::from_secs(1);

/// Identifies a version of the file; `None` if there is no file.
type Stamp = Option<(u64, SystemTime, u64)>;

/// The file of the current settings.
pub struct Settings {
    path: PathBuf,
    state: Mutex<(Instant, Stamp)>,
}

/// The result of reading a changed file.
pub struct SettingsChange {
    /// The settings, if the file is valid.
    pub config: Option<Config>,
    /// The message for the owner.
    pub message: String,
}

impl Settings {
    /// The settings file of a configuration, whether it exists or not.
    pub fn of(config: &Config) -> Self {
        let path = config.root.value.join("config.toml");
        let stamp = stamp(&path);
        Self {
            path,
            state: Mutex::new((Instant::now(), stamp)),
        }
    }

    /// Reads the file again if it has changed. Invalid settings change nothing.
    pub fn refresh(&self, config: &Config) -> Option<SettingsChange> {
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
        Some(match config.reload() {
            Ok(config) => SettingsChange {
                config: Some(config),
                message: format!(
                    "`{path}` was read again; `[tools]`, `[upstream]` and `limits.resident` take \
                     effect after a restart"
                ),
            },
            Err(error) => {
                let shell = Shell {
                    command: config.command,
                };
                let hint = error.hint_for(&shell).map(|hint| format!("; {hint}"));
                SettingsChange {
                    config: None,
                    message: format!(
                        "{error}{}; the previous settings still apply",
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
