//! Reloads `config.toml` when it changes.
//!
//! Settings that affect single requests apply immediately: limits, the default scope, which
//! memories agents may ask for. Tools, upstream servers and the number of memories held in memory
//! stay as they were, because connected clients and existing indexes depend on them.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ack_api::Diagnostic;
use ack_api::shell::Shell;
use ack_service::config::Config;
use ack_store::quick_state::QuickState;

/// How often to check whether the file changed.
const CHECK_AFTER: Duration = Duration::from_secs(1);

/// The file of the current settings.
pub struct Settings {
    path: PathBuf,
    /// When it was looked at last, and its version then; `None` if there is no file.
    state: Mutex<(Instant, Option<QuickState>)>,
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
        let version = QuickState::read(&path, None);
        Self {
            path,
            state: Mutex::new((Instant::now(), version)),
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
        let now = QuickState::read(&self.path, None);
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
