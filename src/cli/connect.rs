//! `print-config`, `connect` and `disconnect`: a client's configuration, shown, changed and changed back.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use super::args::{ConnectArgs, DisconnectArgs, EntryArgs, Global};
use super::{config, write_err, write_out};
use crate::cli::error::CliError;
use crate::config::SettingsError;
use crate::config::{Config, ENV_DB, ENV_ROOT, Source};
use crate::connect::file::{self, Action, Change};
use crate::connect::{Allowed, Client, ConfigFile, Launch, NAME, Places, Wanted, json, ours};
use crate::offer::Offer;
use crate::toolset::{OfferedTool, ToolsetPreset};
use ack_worktree::repository::Repository;

/// Runs `print-config`.
pub fn print_config(global: &Global, args: &EntryArgs) -> Result<(), CliError> {
    let config = config(global)?;
    let launch = launch(&config, args.surface)?;
    let wanted = wanted(&config, args)?;
    let places = places(&config, args.here)?;
    let files = files(args.client, &places, &launch, &wanted)?;
    let mut out = String::new();
    if let Some(command) = args.client.own_command(&launch).filter(|_| !args.here) {
        let _ = write!(
            out,
            "Its own command registers the server:\n\n{command}\n\n"
        );
    }
    for file in &files {
        let _ = write!(out, "{}\n\n{}\n", file.path.display(), file::alone(file));
    }
    let here = if args.here { " --here" } else { "" };
    let _ = writeln!(
        out,
        "`ack-memory connect {}{here}` writes this.",
        args.client.name()
    );
    for line in warnings(&config, args, &places, &files, &wanted)
        .iter()
        .chain(&next_step(args.client, &files))
    {
        let _ = writeln!(out, "{line}");
    }
    write_out(&out)
}

/// Runs `connect`.
pub fn connect(global: &Global, args: &ConnectArgs) -> Result<(), CliError> {
    let config = config(global)?;
    let entry = &args.entry;
    let launch = launch(&config, entry.surface)?;
    let wanted = wanted(&config, entry)?;
    let places = places(&config, entry.here)?;
    let files = files(entry.client, &places, &launch, &wanted)?;
    let changes = plan(&files, Action::Put)?;
    if changes.is_empty() {
        twice(&config, entry.client, &places, &files)
            .iter()
            .for_each(|line| write_err(&format!("{line}\n")));
        return write_out(&format!(
            "{} is connected already; nothing to change\n",
            entry.client.name()
        ));
    }
    let warnings = warnings(&config, entry, &places, &files, &wanted);
    if settle(&changes, &warnings, args.dry_run, args.yes)? {
        write_out(&format!("{} is connected\n", entry.client.name()))?;
        let hooks: Vec<ConfigFile> = files
            .iter()
            .filter(|file| changes.iter().any(|change| change.path == file.path))
            .cloned()
            .collect();
        if let Some(step) = next_step(entry.client, &hooks) {
            write_out(&(step + "\n"))?;
        }
    }
    Ok(())
}

/// Runs `disconnect`.
pub fn disconnect(global: &Global, args: &DisconnectArgs) -> Result<(), CliError> {
    let config = config(global)?;
    let places = places(&config, args.here)?;
    let files = files(args.client, &places, &launch(&config, None)?, &Wanted::ALL)?;
    let changes = plan(&files, Action::Take)?;
    if changes.is_empty() {
        return write_out(&format!(
            "{} is not connected; nothing to change\n",
            args.client.name()
        ));
    }
    let warning = args.client.warning(args.here).map(str::to_owned);
    if settle(&changes, warning.as_slice(), args.dry_run, args.yes)? {
        write_out(&format!("{} is disconnected\n", args.client.name()))?;
    }
    Ok(())
}

/// All changes that are needed. They are planned before any is carried out, so that a file that cannot be changed stops all.
fn plan(files: &[ConfigFile], action: Action) -> Result<Vec<Change>, CliError> {
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
fn settle(
    changes: &[Change],
    warnings: &[String],
    dry_run: bool,
    yes: bool,
) -> Result<bool, CliError> {
    for change in changes {
        write_out(&change.shown())?;
        if let Some(kept) = change.kept() {
            write_out(&format!(
                "(the present content is kept as {})\n",
                kept.display()
            ))?;
        }
        write_out("\n")?;
    }
    for warning in warnings {
        write_err(&format!("{warning}\n"));
    }
    if dry_run {
        write_out("nothing was written\n")?;
        return Ok(false);
    }
    if !yes && !confirmed() {
        write_out("nothing was written; run the same command with --yes to write it\n")?;
        return Ok(false);
    }
    // What can fail fails before the first file is replaced.
    let prepared = changes
        .iter()
        .map(Change::prepare)
        .collect::<Result<Vec<_>, _>>()?;
    for change in prepared {
        change.carry_out()?;
    }
    Ok(true)
}

/// Standard error shows a line that has no end yet, and is read where the output goes elsewhere.
fn confirmed() -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    write_err("Write this? [y/N] ");
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
}

/// What somebody has to know before it is written.
fn warnings(
    config: &Config,
    args: &EntryArgs,
    places: &Places,
    files: &[ConfigFile],
    wanted: &Wanted,
) -> Vec<String> {
    let client = args.client;
    let mut warnings: Vec<String> = client
        .warning(args.here)
        .map(str::to_owned)
        .into_iter()
        .collect();
    if files.iter().any(ConfigFile::allows) {
        warnings.extend(client.permission().map(str::to_owned));
    }
    if matches!(wanted.allowed, Allowed::Tools(_)) && client.permission().is_some() {
        let none = if client == Client::Gemini {
            ": `trust` would be for all of them and is left out"
        } else {
            ""
        };
        warnings.push(format!(
            "Only this server's own tools are allowed, not those of [upstream] in config.toml{none}."
        ));
    }
    warnings.extend(twice(config, client, places, files));
    if args.here {
        warnings.extend(shared(config, client, files));
    }
    warnings
}

/// What else starts the same server, or tells the same when a session starts.
fn twice(config: &Config, client: Client, places: &Places, files: &[ConfigFile]) -> Vec<String> {
    let settings = |path: &Path| {
        json::value(
            ack_sys::files::read_text(path, file::LARGEST)
                .ok()?
                .trim_start_matches('\u{feff}'),
        )
    };
    let project = Places {
        project: Some(repository(config)),
        ..places.clone()
    };
    let mut found = Vec::new();
    for path in client.plugin_files(&project) {
        let settings = settings(&path).unwrap_or_default();
        if let Some(plugin) = ours::enabled_plugin(&settings) {
            found.push(format!(
                "The plugin {plugin} is enabled in {} and brings the server and the hook too: keep one of both \
                 (`claude plugin disable {plugin}`).",
                path.display()
            ));
        }
    }
    let user = Places {
        project: None,
        ..places.clone()
    };
    let other = if places.project.is_some() {
        &user
    } else {
        &project
    };
    let calls = |path: &PathBuf| {
        settings(path).is_some_and(|settings| ours::calls_hook(&settings, "session-start"))
    };
    let hooks = files.iter().any(ConfigFile::calls_hooks);
    if let Some(path) = client.hook_file(other).filter(|path| hooks && calls(path)) {
        found.push(format!(
            "{} has the hook already, and a session would be told twice: --no-hook leaves it out here.",
            path.display()
        ));
    }
    found
}

/// What has to be known of files that others read too.
fn shared(config: &Config, client: Client, files: &[ConfigFile]) -> Vec<String> {
    let names: Vec<String> = files
        .iter()
        .filter(|file| file.is_shared())
        .map(|file| file.path.display().to_string())
        .collect();
    let mut lines = vec![format!(
        "Teams usually commit {}: whoever works there gets the server, so no path of this machine is in it.",
        names.join(" and ")
    )];
    if files.iter().any(|file| !file.is_shared()) {
        lines.push(
            ".claude/settings.local.json names paths of this machine and is not to be committed."
                .to_owned(),
        );
    }
    if on_path().is_none() {
        lines.push(format!(
            "`{NAME}` is not on the PATH: {} starts it by that name and will not find it.",
            client.name()
        ));
    }
    let elsewhere = match &config.db {
        Some(db) => Some((ENV_DB, db.value.as_path())),
        None if config.root.source != Source::Default => {
            Some((ENV_ROOT, config.root.value.as_path()))
        }
        None => None,
    };
    if let Some((variable, path)) = elsewhere {
        lines.push(format!(
            "{} is not written there: set {variable} to it where the client starts.",
            path.display()
        ));
    }
    lines
}

fn next_step(client: Client, files: &[ConfigFile]) -> Option<String> {
    client
        .next_step(files.iter().any(ConfigFile::calls_hooks))
        .map(str::to_owned)
}

/// The hooks and permissions that are to be written.
fn wanted(config: &Config, args: &EntryArgs) -> Result<Wanted, CliError> {
    // Whether a token is there is for `serve` to find out.
    let offer = Offer::load(config, args.surface, &|_| Some(OsString::from("-")))?;
    let own = || {
        offer
            .toolset
            .tools()
            .iter()
            .map(|tool: &OfferedTool| tool.name.clone())
            .collect()
    };
    Ok(Wanted {
        hooks: args.hooks(),
        allowed: match (args.no_allow, offer.upstreams.is_empty()) {
            (true, _) => Allowed::Nothing,
            (false, true) => Allowed::Server,
            (false, false) => Allowed::Tools(own()),
        },
    })
}

/// This program, with the settings in force as flags: clients pass few variables on.
fn launch(config: &Config, surface: Option<ToolsetPreset>) -> Result<Launch, CliError> {
    let running = std::env::current_exe().map_err(|source| CliError::Io {
        action: "find",
        path: "this program".into(),
        source,
    })?;
    // The path of a link stays when a package manager puts the next version elsewhere.
    let same = |path: &PathBuf| {
        path.canonicalize()
            .ok()
            .is_some_and(|real| running.canonicalize().is_ok_and(|running| running == real))
    };
    let places = match &config.db {
        Some(db) => {
            let mut words = vec!["--db".to_owned(), db.value.display().to_string()];
            if let Some(unreviewed) = config.unreviewed {
                words.extend(["--unreviewed", unreviewed.status().as_str()].map(str::to_owned));
            }
            words
        }
        None => vec!["--root".to_owned(), config.root.value.display().to_string()],
    };
    let scope = config
        .pinned
        .as_ref()
        .map(|pinned| ["--pin".to_owned(), pinned.value.clone()]);
    Ok(Launch {
        binary: on_path().filter(same).unwrap_or(running),
        places,
        flags: scope.into_iter().flatten().collect(),
        surface: surface.map(ToolsetPreset::name),
    })
}

/// Where the program is found by its name.
fn on_path() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let name = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&folders)
        .map(|folder| folder.join(&name))
        .find(|path| path.is_absolute() && path.is_file())
}

/// The root of the project's repository, or the project's folder where it has none of its own.
pub fn repository(config: &Config) -> PathBuf {
    let folder = &config.project.value;
    // A home folder that is kept in git is no project.
    let own = |root: &PathBuf| {
        config
            .home
            .as_ref()
            .and_then(|home| home.canonicalize().ok())
            .as_ref()
            != Some(root)
    };
    Repository::discover(folder, config.home.as_deref())
        .map(|found| found.work_tree)
        .filter(own)
        .unwrap_or_else(|| folder.clone())
}

fn places(config: &Config, here: bool) -> Result<Places, CliError> {
    if here && config.project.value.as_os_str().is_empty() {
        return Err(CliError::invalid(
            "--here",
            "given in a working directory that was removed",
            "a folder that is there, or -C",
        ));
    }
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let home = config.home.clone().ok_or(SettingsError::NoHome)?;
    Ok(Places {
        settings: directories::BaseDirs::new()
            .map_or_else(|| home.join(".config"), |dirs| dirs.config_dir().to_owned()),
        home,
        project: here.then(|| repository(config)),
        claude: variable("CLAUDE_CONFIG_DIR"),
        codex: variable("CODEX_HOME"),
        copilot: variable("COPILOT_HOME"),
    })
}

/// Whether Claude Code's settings call a hook besides: then its plugin has nothing to say.
pub fn settings_call(config: &Config, hook: &str) -> bool {
    let Ok(places) = places(config, true) else {
        return false;
    };
    let calls = |path: &PathBuf| {
        let settings = ack_sys::files::read_text(path, file::LARGEST)
            .ok()
            .and_then(|text| json::value(&text));
        settings.is_some_and(|settings| ours::calls_hook(&settings, hook))
    };
    Client::ClaudeCode.plugin_files(&places).iter().any(calls)
}

fn files(
    client: Client,
    places: &Places,
    launch: &Launch,
    wanted: &Wanted,
) -> Result<Vec<ConfigFile>, CliError> {
    client.files(places, launch, wanted).ok_or_else(|| {
        let able = Client::ALL
            .into_iter()
            .filter(|client| *client != Client::ClaudeDesktop);
        let able: Vec<&str> = able.map(Client::name).collect();
        CliError::invalid(
            "--here",
            format!(
                "given for {}, which has no settings of a project's own",
                client.name()
            ),
            able.join(", "),
        )
    })
}
