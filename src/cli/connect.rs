//! `print-config`, `connect` and `disconnect`: a client's configuration, shown, changed and changed back.

use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal};

use super::args::{ConnectArgs, DisconnectArgs, EntryArgs, Global};
use super::{config, write_out};
use crate::config::Config;
use crate::connect::file::{self, Action, Change};
use crate::connect::{Client, ConfigFile, Hooks, Launch, Places};
use crate::error::{Error, SettingsError};
use crate::surface::Set;

/// Runs `print-config`.
pub fn print_config(global: &Global, args: &EntryArgs) -> Result<(), Error> {
    let config = config(global)?;
    let launch = launch(&config, args.surface)?;
    let files = files(&config, args.client, args.here, &launch, args.hooks())?;
    let mut out = String::new();
    if let Some(command) = args.client.own_command(&launch).filter(|_| !args.here) {
        let _ = write!(out, "Its own command registers the server:\n\n{command}\n\n");
    }
    for file in &files {
        let _ = write!(out, "{}\n\n{}\n", file.path.display(), file::alone(file));
    }
    let here = if args.here { " --here" } else { "" };
    let _ = writeln!(out, "`ack-memory connect {}{here}` writes this.", args.client.name());
    if let Some(remark) = args.client.remark() {
        let _ = writeln!(out, "{remark}");
    }
    write_out(&out)
}

/// Runs `connect`.
pub fn connect(global: &Global, args: &ConnectArgs) -> Result<(), Error> {
    let config = config(global)?;
    let entry = &args.entry;
    let launch = launch(&config, entry.surface)?;
    let files = files(&config, entry.client, entry.here, &launch, entry.hooks())?;
    let changes = plan(&files, Action::Put)?;
    if changes.is_empty() {
        return write_out(&format!("{} is connected already; nothing to change\n", entry.client.name()));
    }
    if settle(&changes, args.dry_run, args.yes)? {
        let remark = entry.client.remark().map_or_else(String::new, |remark| format!("{remark}\n"));
        write_out(&format!("{} is connected\n{remark}", entry.client.name()))?;
    }
    Ok(())
}

/// Runs `disconnect`.
pub fn disconnect(global: &Global, args: &DisconnectArgs) -> Result<(), Error> {
    let config = config(global)?;
    let every = Hooks {
        session_start: true,
        user_prompt: true,
    };
    let files = files(&config, args.client, args.here, &launch(&config, None)?, every)?;
    let changes = plan(&files, Action::Take)?;
    if changes.is_empty() {
        return write_out(&format!("{} is not connected; nothing to change\n", args.client.name()));
    }
    if settle(&changes, args.dry_run, args.yes)? {
        write_out(&format!("{} is disconnected\n", args.client.name()))?;
    }
    Ok(())
}

/// All changes that are needed. They are planned before any is carried out, so that a file that cannot be changed stops all.
fn plan(files: &[ConfigFile], action: Action) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    for file in files {
        let change = file::plan(file, action)?;
        if change.is_needed() {
            changes.push(change);
        }
    }
    Ok(changes)
}

/// Shows the changes, asks where there is somebody to ask, and writes them. Whether they were written.
fn settle(changes: &[Change], dry_run: bool, yes: bool) -> Result<bool, Error> {
    for change in changes {
        write_out(&change.shown())?;
        if let Some(kept) = change.kept() {
            write_out(&format!("(the present content is kept as {})\n", kept.display()))?;
        }
        write_out("\n")?;
    }
    if dry_run {
        write_out("nothing was written\n")?;
        return Ok(false);
    }
    if !yes && !confirmed()? {
        write_out("nothing was written; run the same command with --yes to write it\n")?;
        return Ok(false);
    }
    for change in changes {
        change.write()?;
    }
    Ok(true)
}

fn confirmed() -> Result<bool, Error> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    write_out("Write this? [y/N] ")?;
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    Ok(["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
}

/// This program, with the settings in force as flags: clients pass few variables on.
fn launch(config: &Config, surface: Option<Set>) -> Result<Launch, Error> {
    let binary = std::env::current_exe().map_err(|source| Error::Io {
        action: "find",
        path: "this program".into(),
        source,
    })?;
    let mut flags = match &config.db {
        Some(db) => vec!["--db".to_owned(), db.value.display().to_string()],
        None => vec!["--root".to_owned(), config.root.value.display().to_string()],
    };
    if let Some(pinned) = &config.pinned {
        flags.extend(["--scope".to_owned(), pinned.value.clone()]);
    }
    Ok(Launch {
        binary,
        flags,
        surface: surface.map(Set::name),
    })
}

fn files(config: &Config, client: Client, here: bool, launch: &Launch, hooks: Hooks) -> Result<Vec<ConfigFile>, Error> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(std::path::PathBuf::from)
    };
    let home = config.home.clone().ok_or(SettingsError::NoHome)?;
    let places = Places {
        settings: directories::BaseDirs::new().map_or_else(|| home.join(".config"), |dirs| dirs.config_dir().to_owned()),
        home,
        project: here.then(|| config.project.value.clone()),
        claude: variable("CLAUDE_CONFIG_DIR"),
        codex: variable("CODEX_HOME"),
    };
    client.files(&places, launch, hooks).ok_or_else(|| {
        let able = Client::ALL.into_iter().filter(|client| *client != Client::ClaudeDesktop);
        let able: Vec<&str> = able.map(Client::name).collect();
        Error::invalid(
            "--here",
            format!("given for {}, which has no settings of a project's own", client.name()),
            able.join(", "),
        )
    })
}
