//! Plans the changes that connect a client, and the warnings for its user.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::args::EntryArgs;
use crate::cli::error::CliError;
use crate::cli::program::{Program, program_on_path, runner};
use crate::offer::Offer;
use crate::toolset::{OfferedTool, ToolsetPreset};
use ack_connect::file::{self, FileAction, FileChange};
use ack_connect::status::{self, Start, status};
use ack_connect::unreviewed::{self, Unreviewed};
use ack_connect::{Allowed, Client, ClientFile, ClientPlaces, Extras, FileFormat, Launch, ours};
use ack_service::config::Config;
use ack_service::config::SettingsError;
use ack_worktree::repository::Repository;

pub struct ConnectPlan {
    pub client: Client,
    /// The necessary changes; empty if it is connected.
    pub changes: Vec<FileChange>,
    /// What its user must know before anything is written.
    pub warnings: Vec<String>,
    pub next_step: Option<String>,
    /// The client's own command that adds the server, if it has one.
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
        let extras = Extras {
            former_roots: connected_root(client, &places).into_iter().collect(),
            ..extras(config, client, entry)?
        };
        let files = client.files(&places, &launch, &extras).unwrap_or_default();
        let changes = plan(&files, action)?;
        let mut warnings = if changes.is_empty() {
            plugin_warnings(config, client, &places)
        } else {
            warnings(config, client, &places, &files, &extras)
        };
        warnings.extend(client.no_hook(&entry.hooks(client)));
        let changed: Vec<ClientFile> = files
            .into_iter()
            .filter(|file| changes.iter().any(|change| change.path == file.path))
            .collect();
        Ok(Self {
            client,
            next_step: next_step(client, &changed).filter(|_| !changes.is_empty()),
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

/// What the user must know before anything is written.
fn warnings(
    config: &Config,
    client: Client,
    places: &ClientPlaces,
    files: &[ClientFile],
    extras: &Extras,
) -> Vec<String> {
    let mut warnings: Vec<String> = client.row().warning.iter().cloned().collect();
    if files.iter().any(ClientFile::allows) {
        warnings.extend(client.row().permission.clone());
    }
    if matches!(extras.allowed, Allowed::Tools(_)) && client.row().permission.is_some() {
        let none = if client == Client::Gemini {
            ": `trust` would apply to all of them, so it is left out"
        } else {
            ""
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

/// Warnings about plugins that bring the same server and hook.
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

fn next_step(client: Client, files: &[ClientFile]) -> Option<String> {
    client.next_step(files.iter().any(ClientFile::calls_hooks)).map(str::to_owned)
}

fn extras(config: &Config, client: Client, args: &EntryArgs) -> Result<Extras, CliError> {
    // `serve` checks whether a token exists, so any value will do here.
    let offer = Offer::load(config, args.surface, &|_| Some(OsString::from("-")))?;
    let offers_own_tools =
        || offer.toolset.tools().iter().map(|tool: &OfferedTool| tool.name.clone()).collect();
    Ok(Extras {
        hooks: args.hooks(client),
        allowed: match (args.no_allow, offer.upstreams.is_empty()) {
            (true, _) => Allowed::Nothing,
            (false, true) => Allowed::Server,
            (false, false) => Allowed::Tools(offers_own_tools()),
        },
        root: root(config),
        former_roots: Vec::new(),
    })
}

/// The root of the memories and their decisions. A single database has none.
pub fn root(config: &Config) -> Option<PathBuf> {
    config.db.is_none().then(|| config.root.value.clone())
}

/// The root that a client's present entry names, if any.
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
    let scope = config.pinned.as_ref().map(|pinned| ["--pin".to_owned(), pinned.value.clone()]);
    Ok(Launch {
        binary: program.path,
        name: program.name,
        runner: program.runner.map_or(&[], |runner| runner.arguments),
        places,
        flags: scope.into_iter().flatten().collect(),
        surface: surface.map(ToolsetPreset::name),
    })
}

/// The root of the project's repository, or the project's folder if it has none.
pub fn repository(config: &Config) -> PathBuf {
    let folder = &config.project.value;
    // A home folder in git is not a project.
    let is_root_of_repository = |root: &PathBuf| {
        config.home.as_ref().and_then(|home| home.canonicalize().ok()).as_ref() != Some(root)
    };
    Repository::discover(folder, config.home.as_deref())
        .map(|found| found.work_tree)
        .filter(is_root_of_repository)
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
    let calls = |path: &PathBuf| {
        status::read(path, FileFormat::Json)
            .is_some_and(|settings| ours::calls_hook(&settings, hook))
    };
    client.settings_files(&places).iter().any(calls)
}
