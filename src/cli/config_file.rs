//! `config`: shows the path of `config.toml` and the effective settings, and edits the file safely.

use ack_api::Hint;
use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::process::Command;

use schemars::schema_for;
use serde_json::json;

use super::args::{ConfigAction, Global};
use super::doctor::settings;
use super::error::CliError;
use super::output::{write_err, write_out, write_plain};
use super::settings::inputs;
use super::{prompt, signals};
use crate::offer::Offer;
use ack_api::Diagnostic;
use ack_service::config::{Config, ConfigFile, SettingsError};
use ack_sys::text_file;

const CONFIG_FILE: &str = "config.toml";
const NEW_FILE_TEXT: &str = "# Keys and values: `ack-memory config schema`\n";

pub fn run(global: &Global, action: ConfigAction) -> Result<(), CliError> {
    // A broken file also has a path and can be fixed.
    let without = Config::without_file(inputs(global)?)?;
    let path = without.root.value.join(CONFIG_FILE);
    match action {
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
    let settings = settings(config);
    if json {
        let settings = settings.iter();
        let settings = settings
            .map(|(name, value, source)| json!({ "name": name, "value": value, "source": source }));
        let settings: Vec<_> = settings.collect();
        return super::output::write_json(&settings);
    }
    let width = settings
        .iter()
        .map(|(_, value, _)| value.len())
        .max()
        .unwrap_or_default()
        .min(40);
    let lines = settings
        .iter()
        .map(|(name, value, source)| format!("{name:<16} {value:<width$}  {source}\n"));
    write_plain(&lines.collect::<String>())
}

/// Lets the user edit a copy, and replaces the file if the copy is valid.
fn edit(path: &Path) -> Result<(), CliError> {
    let io = |action| {
        let path = path.to_owned();
        move |source| CliError::Io {
            action,
            path,
            source,
        }
    };
    let editor = editor()
        .map_err(|error| error.with_hint(Hint::command("config path", "prints the file")))?;
    writable(path).map_err(io("write"))?;
    let before = match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        read => Some(read.map_err(io("read"))?),
    };
    let folder = tempfile::tempdir().map_err(io("edit a copy of"))?;
    let copy = folder.path().join(CONFIG_FILE);
    let text = before.clone().unwrap_or_else(|| NEW_FILE_TEXT.to_owned());
    fs::write(&copy, &text).map_err(io("edit a copy of"))?;
    loop {
        open_editor(&copy, &editor)?;
        let after = fs::read_to_string(&copy).map_err(io("read the copy of"))?;
        if Some(&after) == before.as_ref() || (before.is_none() && after == NEW_FILE_TEXT) {
            return write_plain("nothing was changed\n");
        }
        if let Err(error) = check(folder.path()) {
            let message = error.body().message;
            let shown_message = message.replace(&*copy.to_string_lossy(), &path.to_string_lossy());
            write_err(&format!("error: {shown_message}\n"));
            let keys = [('e', "edit again"), ('d', "discard"), ('k', "keep")];
            let is_terminal = std::io::stdin().is_terminal();
            match is_terminal
                .then(|| {
                    prompt::choose(
                        "Edit again, discard the changes, or keep them as they are?",
                        &keys,
                    )
                })
                .flatten()
            {
                Some('e') => continue,
                Some('k') => {}
                _ => return Err(CliError::ConfigNotChanged),
            }
        }
        fs::create_dir_all(path.parent().unwrap_or(path))
            .and_then(|()| text_file::replace(path, &after))
            .map_err(io("write"))?;
        return write_plain(&format!("{} was changed\n", path.display()));
    }
}

/// The user's editor. Without one that the user chose, `vi`, which needs a terminal.
pub(super) fn editor() -> Result<String, CliError> {
    let candidates = ["VISUAL", "EDITOR"].into_iter();
    let mut candidates = candidates.filter_map(|name| std::env::var_os(name)?.into_string().ok());
    if let Some(editor) = candidates.find(|editor| !editor.trim().is_empty()) {
        return Ok(editor);
    }
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok("vi".to_owned());
    }
    let message = "there is no terminal for the editor";
    Err(CliError::usage("config edit", message)
        .with_hint("set VISUAL or EDITOR to an editor that needs none"))
}

/// Fails if the file could not be replaced, before anything is edited.
fn writable(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    match folder.is_dir() {
        true => tempfile::NamedTempFile::new_in(folder).map(drop),
        // It is created when the file is written.
        false => Ok(()),
    }
}

/// Checks the settings in a folder, including what `serve` offers.
fn check(folder: &Path) -> Result<(), SettingsError> {
    let config = Config::at(folder)?;
    Offer::load(&config, None, &|_| Some("-".into())).map(drop)
}

/// Runs `$VISUAL` or `$EDITOR`, which may have arguments.
#[expect(
    clippy::disallowed_methods,
    reason = "the editor is the user's own program, run at their terminal"
)]
pub(super) fn open_editor(file: &Path, editor: &str) -> Result<(), CliError> {
    signals::ignore_interrupts(true);
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file)
        .status();
    signals::ignore_interrupts(false);
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(CliError::Editor {
            editor: editor.to_owned(),
        }),
    }
}
