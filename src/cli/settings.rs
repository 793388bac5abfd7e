//! The settings of a command: from its flags, the environment, and the configuration file.

use std::path::{Path, PathBuf};

use ack_api::{Hint, text};
use directories::BaseDirs;
use serde::Serialize;

use super::args::Global;
use super::command;
use super::error::CliError;
use super::output::write_err;
use ack_service::config::{
    Config, ENV_CURSOR_PROJECT, ENV_DB, ENV_PROJECT, ENV_ROOT, ENV_SCOPE, ENV_WORKSPACE, Inputs,
    Setting,
};

pub(super) fn inputs(global: &Global) -> Result<Inputs, CliError> {
    if global.unreviewed.is_some() && global.db.is_none() {
        let message = "`--unreviewed` needs `--db FILE`";
        let hint = Hint::command("scopes set NAME unreviewed=approved", "sets it for a scope");
        return Err(CliError::usage("--unreviewed", message).with_hint(hint));
    }
    let inputs = Inputs {
        root: global.setting(global.root.as_ref(), "--root", ENV_ROOT),
        db: global.setting(global.db.as_ref(), "--db", ENV_DB),
        unreviewed: global.unreviewed,
        pinned: global.pin.clone().map(|name| Setting::flag("--pin", name)),
        current_scope: current_scope(),
        project: global.setting(global.dir.as_ref(), "-C", ENV_PROJECT),
        workspace: workspace(),
        home: BaseDirs::new().map(|dirs| dirs.home_dir().to_owned()),
        working_directory: PathBuf::new(),
    };
    match std::env::current_dir() {
        Ok(working_directory) => Ok(Inputs { working_directory, ..inputs }),
        // A removed working directory is no project. Only a relative path needs one.
        Err(_) if !inputs.needs_working_directory() => Ok(inputs),
        Err(error) => Err(CliError::io("find", "the working directory")(error)),
    }
}

/// The folders that an editor names in the environment, each once.
fn workspace() -> Vec<Setting<PathBuf>> {
    let mut folders: Vec<Setting<PathBuf>> = Vec::new();
    let mut add = |variable, folder: PathBuf| {
        if !folder.as_os_str().is_empty() && folders.iter().all(|known| known.value != folder) {
            folders.push(Setting::variable(variable, folder));
        }
    };
    let value = |variable| std::env::var_os(variable).unwrap_or_default();
    add(ENV_CURSOR_PROJECT, value(ENV_CURSOR_PROJECT).into());
    let list = value(ENV_WORKSPACE);
    // The name of a single folder may have a comma.
    if Path::new(&list).exists() {
        add(ENV_WORKSPACE, list.into());
    } else {
        let names = list.to_string_lossy();
        names.split(',').map(str::trim).for_each(|name| add(ENV_WORKSPACE, name.into()));
    }
    folders
}

/// The scope that the environment names. A name that is not UTF-8 matches no scope.
fn current_scope() -> Option<Setting<String>> {
    let name = std::env::var_os(ENV_SCOPE)?.to_string_lossy().into_owned();
    (!name.is_empty()).then(|| Setting::variable(ENV_SCOPE, name))
}

pub(super) fn load(global: &Global) -> Result<Config, CliError> {
    let mut config = Config::load(inputs(global)?)?;
    config.offline = global.offline;
    config.command = command::command;
    Ok(config)
}

/// The effective settings, printed to standard error with `--verbose`.
pub(super) fn config(global: &Global) -> Result<Config, CliError> {
    let config = load(global)?;
    if global.verbose {
        explain(&config);
    }
    Ok(config)
}

/// Prints the settings that decide which scopes are searched. Standard output is for answers.
pub(super) fn explain(config: &Config) {
    let line = |line: &str| write_err(&format!("ack-memory: {}\n", text::line(line, 1_000)));
    for setting in shown(config) {
        line(&format!("{} {} ({})", setting.name, setting.value, setting.source));
    }
    if config.pinned.is_none() {
        line("not pinned to a scope");
    }
}

#[derive(Serialize)]
pub(super) struct ShownSetting {
    pub name: &'static str,
    pub value: String,
    pub source: String,
}

pub(super) fn shown(config: &Config) -> Vec<ShownSetting> {
    let mut settings = Vec::new();
    let mut add = |name, value: String, source: String| {
        settings.push(ShownSetting { name, value, source });
    };
    let path = |setting: &Setting<PathBuf>| setting.value.display().to_string();
    add("root", path(&config.root), config.root.source.to_string());
    let file = config.file.as_ref().map(|file| file.display().to_string());
    add("config.toml", file.unwrap_or_else(|| "none".to_owned()), "root".to_owned());
    if let Some(db) = &config.db {
        add("db", path(db), db.source.to_string());
    }
    for (name, setting) in [
        ("pin", &config.pinned),
        ("scope", &config.current_scope),
        ("default_scope", &config.default_scope),
    ] {
        if let Some(setting) = setting {
            add(name, setting.value.clone(), setting.source.to_string());
        }
    }
    add("project", path(&config.project), config.project.source.to_string());
    for (name, limit) in [
        ("limits.tokens", &config.tokens),
        ("limits.resident", &config.resident),
        ("limits.seconds", &config.seconds),
    ] {
        add(name, limit.value.to_string(), limit.source.to_string());
    }
    let max_status = &config.max_status;
    add("max_status", max_status.value.as_str().to_owned(), max_status.source.to_string());
    settings
}
