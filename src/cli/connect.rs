//! `connect` and `disconnect`: change and restore a client's configuration.

use std::ffi::OsString;
use std::path::PathBuf;

use super::args::{ConnectArgs, DisconnectArgs, EntryArgs, Global};
use super::error::CliError;
use super::output::{report, write_err, write_out};
use super::program::{Program, program_on_path, runner};
use super::prompt;
use super::settings::config;
use crate::offer::Offer;
use crate::toolset::ToolsetPreset;
use ack_connect::file::{self, FileAction, FileChange};
use ack_connect::status::{self, Start, status};
use ack_connect::unreviewed::{self, Unreviewed, switched_off};
use ack_connect::{
    Allowed, Client, ClientFile, ClientPlaces, Extras, FileFormat, Launch, NAME, ours,
};
use ack_service::config::{Config, SettingsError};
use ack_worktree::repository::Repository;

pub fn connect(global: &Global, args: &ConnectArgs) -> Result<(), CliError> {
    let config = config(global)?;
    let found;
    let clients = if args.clients.is_empty() {
        found = installed(&config)?;
        if found.is_empty() {
            let names = names(Client::ALL);
            return write_out(&format!("no known client is installed; supported: {names}\n"));
        }
        write_out(&format!("installed: {}\n\n", names(&found)))?;
        &found
    } else {
        &args.clients
    };
    // A failure does not stop the other clients.
    let mut failed = None;
    let action = if args.replace { FileAction::Replace } else { FileAction::Put };
    for client in clients {
        let result = ConnectPlan::new(&config, *client, &args.entry, action)
            .and_then(|planned| connect_one(&planned, args));
        if let Err(error) = result
            && let Some(earlier) = failed.replace(error)
        {
            report(&earlier, global.json);
        }
    }
    failed.map_or(Ok(()), Err)
}

fn names(clients: &[Client]) -> String {
    clients.iter().map(|client| client.name()).collect::<Vec<_>>().join(", ")
}

fn connect_one(planned: &ConnectPlan, args: &ConnectArgs) -> Result<(), CliError> {
    let name = planned.client.name();
    if planned.changes.is_empty() {
        for line in &planned.warnings {
            write_err(&prompt::wrapped("", line));
        }
        return write_out(&format!("{name} is already connected; nothing to change\n"));
    }
    if let Some(command) = planned.own_command.as_ref().filter(|_| args.dry_run) {
        write_out(&format!("the client's own command adds the server alone:\n\n{command}\n\n"))?;
    }
    if confirm_and_write(&planned.changes, &planned.warnings, args.dry_run, args.yes)? {
        write_out(&format!("{name} is connected\n"))?;
        if let Some(step) = &planned.next_step {
            write_out(&format!("{step}\n"))?;
        }
    }
    Ok(())
}

pub fn disconnect(global: &Global, args: &DisconnectArgs) -> Result<(), CliError> {
    let config = config(global)?;
    let places = places(&config)?;
    let extras = Extras {
        root: root(&config),
        former_roots: connected_root(args.client, &places).into_iter().collect(),
        ..Extras::all()
    };
    let mut files = args.client.files(&places, &Launch::by_name(), &extras).unwrap_or_default();
    files.extend(switched_off(args.client, &places, &files)?);
    let changes = plan(&files, FileAction::Remove)?;
    for file in &files {
        if let Some(does) = file::foreign_entry(file)? {
            let path = file.path.display();
            let note = format!("`{path}` has an entry `{NAME}` that {does}; it stays as it is.");
            write_err(&prompt::wrapped("", &note));
        }
    }
    if changes.is_empty() {
        return write_out(&format!("{} is not connected; nothing to change\n", args.client.name()));
    }
    let mut warnings = Vec::from_iter(args.client.row().warning.clone());
    if changes.iter().any(FileChange::switches_on) {
        warnings.push("What you had `setup` switch off is switched on again.".to_owned());
    }
    if confirm_and_write(&changes, &warnings, args.dry_run, args.yes)? {
        write_out(&format!("{} is disconnected\n", args.client.name()))?;
        for copy in changes.iter().filter_map(FileChange::left_copy) {
            write_out(&format!("the content before `connect` is kept in {}\n", copy.display()))?;
        }
    }
    Ok(())
}

/// Shows the changes, asks if there is a terminal, and writes them. Returns whether they were
/// written.
fn confirm_and_write(
    changes: &[FileChange],
    warnings: &[String],
    dry_run: bool,
    yes: bool,
) -> Result<bool, CliError> {
    for change in changes {
        write_out(&change.shown())?;
        if let Some(backup) = change.backup_path() {
            write_out(&format!("(the current content is saved as {})\n", backup.display()))?;
        }
        write_out("\n")?;
    }
    for warning in warnings {
        write_err(&prompt::wrapped("", warning));
    }
    if dry_run {
        write_out("nothing was written\n")?;
    } else if yes || (prompt::is_possible() && prompt::confirm("Write this?")) {
        carry_out(changes)?;
        return Ok(true);
    } else {
        write_out("nothing was written; run the same command with --yes to write it\n")?;
    }
    Ok(false)
}

pub struct ConnectPlan {
    pub client: Client,
    pub changes: Vec<FileChange>,
    /// What its user must know before anything is written.
    pub warnings: Vec<String>,
    pub next_step: Option<String>,
    pub own_command: Option<String>,
}

impl ConnectPlan {
    /// Makes the plan, with the action that connects: [`FileAction::Put`] or
    /// [`FileAction::Replace`]. Writes nothing.
    pub fn new(
        config: &Config,
        client: Client,
        entry: &EntryArgs,
        action: FileAction,
    ) -> Result<Self, CliError> {
        let launch = launch(config, entry.surface)?;
        let places = places(config)?;
        let extras = extras(config, client, &places, entry)?;
        let files = client.files(&places, &launch, &extras).unwrap_or_default();
        let changes = plan(&files, action).map_err(|error| match error {
            CliError::Connect(error) => CliError::Connect(error.about(client)),
            error => error,
        })?;
        let mut warnings = if changes.is_empty() {
            plugin_warnings(config, client, &places)
        } else {
            warnings(config, client, &places, &files, &extras)
        };
        warnings.extend(client.no_hook(&entry.hooks(client)));
        let is_changed = |file: &ClientFile| changes.iter().any(|it| it.path == file.path);
        let calls_hooks = files.iter().any(|file| file.calls_hooks() && is_changed(file));
        let next_step = client.next_step(calls_hooks).filter(|_| !changes.is_empty());
        Ok(Self {
            client,
            next_step: next_step.map(str::to_owned),
            own_command: client.own_command(&launch),
            changes,
            warnings,
        })
    }
}

/// Writes changes. Whatever can fail is tried before the first file is replaced.
pub fn carry_out(changes: &[FileChange]) -> Result<(), CliError> {
    let prepared = changes.iter().map(FileChange::prepare).collect::<Result<Vec<_>, _>>()?;
    for change in prepared {
        change.carry_out()?;
    }
    Ok(())
}

/// The installed clients: their program is on the PATH, or their settings folder exists.
pub fn installed(config: &Config) -> Result<Vec<Client>, CliError> {
    let places = places(config)?;
    let is_there = |client: &Client| {
        client.has_settings_folder(&places)
            || client.row().programs.iter().any(|program| program_on_path(program).is_some())
    };
    Ok(Client::ALL.iter().copied().filter(is_there).collect())
}

/// All necessary changes. They are planned before any is carried out, so that a file that cannot be
/// changed stops all of them.
pub fn plan(files: &[ClientFile], action: FileAction) -> Result<Vec<FileChange>, CliError> {
    let mut changes = Vec::new();
    for file in files {
        let change = file::plan(file, action)?;
        if change.is_needed() {
            changes.push(change);
        }
    }
    Ok(changes)
}

fn warnings(
    config: &Config,
    client: Client,
    places: &ClientPlaces,
    files: &[ClientFile],
    extras: &Extras,
) -> Vec<String> {
    let mut warnings = Vec::from_iter(client.row().warning.clone());
    if files.iter().any(ClientFile::allows) {
        warnings.extend(client.row().permission.clone());
    }
    if matches!(extras.allowed, Allowed::Tools(_)) && client.row().permission.is_some() {
        let none = match client {
            Client::Gemini => ": `trust` would apply to all of them, so it is left out",
            _ => "",
        };
        warnings.push(format!(
            "Only this server's own tools are allowed, not those of [upstream] in config.toml{none}."
        ));
    }
    warnings.extend(plugin_warnings(config, client, places));
    warnings.extend(runner().map(|runner| {
        format!(
            "You ran this program with `{}`, so the client will too, which makes each start \
             slower. To avoid that, install it (`{}`) and connect again.",
            runner.typed, runner.install
        )
    }));
    warnings
}

fn plugin_warnings(config: &Config, client: Client, places: &ClientPlaces) -> Vec<String> {
    let project = ClientPlaces { project: Some(repository(config)), ..places.clone() };
    let mut found = Vec::new();
    for path in client.settings_files(&project) {
        let settings = status::read(&path, FileFormat::Json).unwrap_or_default();
        if let Some(plugin) = ours::enabled_plugin(&settings) {
            found.push(format!(
                "The plugin {plugin}, which is enabled in {}, also brings the server and the hook: \
                 keep only one of them (`claude plugin disable {plugin}`).",
                path.display()
            ));
        }
    }
    found
}

fn extras(
    config: &Config,
    client: Client,
    places: &ClientPlaces,
    args: &EntryArgs,
) -> Result<Extras, CliError> {
    // `serve` checks whether a token exists, so any value will do here.
    let offer = Offer::load(config, args.surface, &|_| Some(OsString::from("-")))?;
    let own_tools = offer.toolset.tools().iter().map(|tool| tool.name.clone());
    Ok(Extras {
        hooks: args.hooks(client),
        allowed: match (args.no_allow, offer.upstreams.is_empty()) {
            (true, _) => Allowed::Nothing,
            (false, true) => Allowed::Server,
            (false, false) => Allowed::Tools(own_tools.collect()),
        },
        root: root(config),
        former_roots: connected_root(client, places).into_iter().collect(),
    })
}

/// The root of the memories and their decisions. A single database has none.
pub fn root(config: &Config) -> Option<PathBuf> {
    config.db.is_none().then(|| config.root.value.clone())
}

pub fn connected_root(client: Client, places: &ClientPlaces) -> Option<PathBuf> {
    match status(client, places)?.starts? {
        Start::Program(entry) => entry.flag("--root").map(PathBuf::from),
        Start::Address(_) | Start::Unknown => None,
    }
}

/// How to start this program, with the effective settings as flags, because clients pass on few
/// variables.
fn launch(config: &Config, surface: Option<ToolsetPreset>) -> Result<Launch, CliError> {
    let program = Program::find()?;
    let (flag, place) = match &config.db {
        Some(db) => ("--db", db),
        None => ("--root", &config.root),
    };
    let mut places = vec![flag.to_owned(), place.value.display().to_string()];
    if let Some(unreviewed) = config.unreviewed.filter(|_| config.db.is_some()) {
        places.extend(["--unreviewed", unreviewed.status().as_str()].map(str::to_owned));
    }
    let pin = config.pinned.as_ref().map(|pinned| ["--pin".to_owned(), pinned.value.clone()]);
    Ok(Launch {
        binary: program.path,
        name: program.name,
        runner: program.runner.map_or(&[], |runner| runner.arguments),
        places,
        flags: pin.into_iter().flatten().collect(),
        surface: surface.map(ToolsetPreset::name),
    })
}

pub fn repository(config: &Config) -> PathBuf {
    let (folder, home) = (&config.project.value, config.home.as_deref());
    // A home folder in git is not a project.
    let real_home = home.and_then(|home| home.canonicalize().ok());
    Repository::discover(folder, home)
        .map(|found| found.work_tree)
        .filter(|root| real_home.as_ref() != Some(root))
        .unwrap_or_else(|| folder.clone())
}

pub fn places(config: &Config) -> Result<ClientPlaces, SettingsError> {
    let variable =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = config.home.clone().ok_or(SettingsError::NoHome)?;
    Ok(ClientPlaces {
        settings: directories::BaseDirs::new()
            .map_or_else(|| home.join(".config"), |dirs| dirs.config_dir().to_owned()),
        home,
        project: None,
        claude: variable("CLAUDE_CONFIG_DIR"),
        codex: variable("CODEX_HOME"),
        copilot: variable("COPILOT_HOME"),
    })
}

/// What else puts memories into a client's sessions, in the current project, that nobody reviewed.
pub fn unreviewed(config: &Config, client: Client, places: &ClientPlaces) -> Vec<Unreviewed> {
    let places = ClientPlaces { project: Some(repository(config)), ..places.clone() };
    #[expect(
        clippy::disallowed_methods,
        reason = "the command line is where the environment is read"
    )]
    let is_off = std::env::var("CLAUDE_CODE_DISABLE_AUTO_MEMORY")
        .is_ok_and(|value| !unreviewed::is_no(&value));
    unreviewed::unreviewed(client, &places, !is_off)
}

pub fn settings_call_hook(config: &Config, client: Client, hook: &str) -> bool {
    let Ok(places) = places(config) else {
        return false;
    };
    let places = ClientPlaces {
        project: Some(repository(config)).filter(|folder| !folder.as_os_str().is_empty()),
        ..places
    };
    client.settings_files(&places).iter().any(|path| {
        let settings = status::read(path, FileFormat::Json);
        settings.is_some_and(|settings| ours::calls_hook(&settings, hook))
    })
}
