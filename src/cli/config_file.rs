//! `config`: shows the path of `config.toml` and the effective settings, and opens the file in an
//! editor.

use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::process::Command;

use schemars::schema_for;
use serde_json::json;

use super::args::{ConfigAction, Global};
use super::error::CliError;
use super::output::{write_json, write_out, write_plain};
use super::settings::{ShownSetting, inputs, shown};
use super::signals;
use crate::offer::Offer;
use ack_api::{ErrorCode, Hint};
use ack_service::config::{Config, ConfigFile};
use ack_sys::text_file;

const CONFIG_FILE: &str = "config.toml";
const NEW_FILE_TEXT: &str = "# Keys and values: `ack-memory config schema`\n";

pub fn run(global: &Global, action: ConfigAction) -> Result<(), CliError> {
    // A broken file also has a path and can be fixed.
    let path = Config::without_file(inputs(global)?)?.root.value.join(CONFIG_FILE);
    match action {
        ConfigAction::Path if global.json => write_json(&json!({ "path": path })),
        ConfigAction::Path => write_plain(&format!("{}\n", path.display())),
        ConfigAction::Show => show(&Config::load(inputs(global)?)?, global.json),
        ConfigAction::Edit => edit(&path),
        ConfigAction::Schema => {
            let schema = serde_json::to_string_pretty(&schema_for!(ConfigFile));
            write_out(&(schema.unwrap_or_default() + "\n"))
        }
    }
}

fn show(config: &Config, json: bool) -> Result<(), CliError> {
    let settings = shown(config);
    if json {
        return write_json(&settings);
    }
    let widest = settings.iter().map(|setting| setting.value.len()).max();
    let width = widest.unwrap_or_default().min(40);
    let lines = settings.iter().map(|ShownSetting { name, value, source }| {
        format!("{name:<16} {value:<width$}  {source}\n")
    });
    write_plain(&lines.collect::<String>())
}

fn edit(path: &Path) -> Result<(), CliError> {
    let editor = editor()
        .map_err(|error| error.with_hint(Hint::command("config path", "prints the file")))?;
    let folder = path.parent().unwrap_or(path);
    if !path.exists() {
        fs::create_dir_all(folder)
            .and_then(|()| text_file::replace(path, NEW_FILE_TEXT))
            .map_err(CliError::io("create", path))?;
    }
    let read = || fs::read_to_string(path).map_err(CliError::io("read", path));
    let before = read()?;
    open_editor(path, &editor)?;
    let is_changed = read()? != before;
    // What `serve` offers depends on it, too.
    Offer::load(&Config::at(folder)?, None, &|_| Some("-".into()))?;
    let what = if is_changed { path.display().to_string() } else { "nothing".to_owned() };
    write_plain(&format!("{what} was changed\n"))
}

/// The user's editor. Without one that the user chose, `vi`, which needs a terminal.
pub(super) fn editor() -> Result<String, CliError> {
    let chosen = |name| std::env::var_os(name)?.into_string().ok();
    let mut chosen = ["VISUAL", "EDITOR"].into_iter().filter_map(chosen);
    if let Some(editor) = chosen.find(|editor| !editor.trim().is_empty()) {
        return Ok(editor);
    }
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok("vi".to_owned());
    }
    let message = "there is no terminal for the editor";
    Err(CliError::usage("config edit", message)
        .with_hint("set VISUAL or EDITOR to an editor that needs none"))
}

/// Runs `$VISUAL` or `$EDITOR`, which may have arguments.
#[expect(
    clippy::disallowed_methods,
    reason = "the editor is the user's own program, run at their terminal"
)]
pub(super) fn open_editor(file: &Path, editor: &str) -> Result<(), CliError> {
    signals::ignore_interrupts(true);
    let status =
        Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(file).status();
    signals::ignore_interrupts(false);
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(CliError::new(ErrorCode::IoError, format!("the editor `{editor}` failed"))
            .with_hint("set VISUAL or EDITOR to another one")),
    }
}
