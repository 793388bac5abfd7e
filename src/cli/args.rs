//! The command line as typed: the global settings, and the commands by topic.

mod clients;
mod curate;
pub(in crate::cli) mod day;
mod help;
mod read;
mod stores;

pub use clients::*;
pub use curate::*;
pub use help::command;
pub use read::*;
pub use stores::*;

use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use clap::builder::{FalseyValueParser, OsStringValueParser, Resettable, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Args, ColorChoice, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use nix::sys::stat::{SFlag, fstat};

use ack_api::memory::Unreviewed;

use ack_service::config::{ENV_DB, ENV_LOG, ENV_PROJECT, ENV_ROOT, Setting};

/// Curated memories for coding agents, read-only, over the Model Context Protocol.
#[derive(Debug, Parser)]
#[command(name = "ack-memory", version, max_term_width = 100, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    /// What to do [default: doctor]
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// Parses the command line and the environment. An empty variable counts as unset.
    pub fn read() -> Result<Self, clap::Error> {
        let command = help::command().mut_args(|argument| {
            let value = argument.get_env().and_then(std::env::var_os);
            if value.is_some_and(|value| value.is_empty()) {
                argument.env(Resettable::Reset)
            } else {
                argument
            }
        });
        let parsed = command.clone().try_get_matches();
        let matches = parsed.map_err(|error| explain_value(error, &command))?;
        let mut cli = Self::from_arg_matches(&matches)?;
        cli.global.variables = SOURCES
            .into_iter()
            .filter(|(id, _)| matches.value_source(id) == Some(ValueSource::EnvVariable))
            .map(|(_, variable)| variable)
            .collect();
        match &cli.command {
            None if !cli.global.json && is_started_by_client() => {
                cli.command = Some(Command::Serve(ServeArgs::default()));
                cli.global.is_served_unasked = true;
            }
            // They write to the scope that they name.
            Some(
                Command::Import(ImportArgs { scope, .. }) | Command::Index(IndexArgs { scope, .. }),
            ) if scope.is_some() => cli.global.pin.clone_from(scope),
            // The flag belongs to the new scope, not to `--db`.
            Some(Command::Scopes(ScopesArgs { command: Some(ScopesCommand::Add(_)), .. })) => {
                cli.global.unreviewed = None
            }
            _ => {}
        }
        Ok(cli)
    }
}

/// Whether a client started this process to speak with it: standard input is a pipe or a socket,
/// and no terminal shows the output. A script has a file or nothing there.
fn is_started_by_client() -> bool {
    let is_pipe = fstat(std::io::stdin().as_fd()).is_ok_and(|input| {
        let kind = SFlag::from_bits_truncate(input.st_mode) & SFlag::S_IFMT;
        kind == SFlag::S_IFIFO || kind == SFlag::S_IFSOCK
    });
    is_pipe && !std::io::stdout().is_terminal()
}

/// Adds what to type instead to the error for an unexpected argument.
fn explain_value(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    let (kind, suggested) = match error.kind() {
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        ErrorKind::InvalidSubcommand => {
            (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand)
        }
        _ => return error,
    };
    let Some(ContextValue::String(unexpected)) = error.get(kind).cloned() else {
        return error;
    };
    let (mut command, mut path) = (command, String::new());
    for word in std::env::args_os().skip(1) {
        if let Some(inner) = command.find_subcommand(&word) {
            command = inner;
            path += &format!("{} ", inner.get_name());
        }
    }
    let is_typo = error.get(ContextKind::SuggestedSubcommand).is_some();
    let Some(tip) = tip(&unexpected, command, &path, is_typo) else {
        return error;
    };
    // Not what merely looks like it.
    error.remove(suggested);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// What to type instead of an unexpected argument: a value without a flag that the command does not
/// have, a scope with one, which most commands take, or what other programs call something else.
/// `is_typo`: it looks like a command.
fn tip(unexpected: &str, command: &clap::Command, path: &str, is_typo: bool) -> Option<String> {
    let option = unexpected.strip_prefix("--").unwrap_or_default();
    let is_meant = |argument: &clap::Arg| {
        let id = argument.get_id().as_str();
        id == option || id.strip_suffix('s') == Some(option)
    };
    if command.get_positionals().any(is_meant) {
        return Some(format!("give the {option} without `--{option}`"));
    }
    // After a command that takes no other, a bare word is a scope or a question.
    let may_be_a_command = command.has_subcommands() || unexpected.starts_with('-');
    let guess = help::guess(&format!("{path}{unexpected}"))
        .or_else(|| help::guess(unexpected).filter(|_| may_be_a_command));
    let takes_scope = command.get_opts().any(|option| option.get_id() == "scope");
    let may_be_a_scope = takes_scope && !is_typo && !unexpected.starts_with('-');
    guess
        .map(str::to_owned)
        .or_else(|| may_be_a_scope.then(|| format!("to name a scope, use `--scope {unexpected}`")))
}

/// Settings of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Folder that holds `scopes/` and `config.toml` [default: ~/.ack-mem]
    #[arg(long, global = true, value_name = "DIR", env = ENV_ROOT, hide_env_values = true)]
    pub root: Option<PathBuf>,
    /// A single database, served as the only scope
    #[arg(long, global = true, value_name = "FILE", env = ENV_DB, hide_env_values = true)]
    pub db: Option<PathBuf>,
    /// With --db, the status of memories that have none: staging or approved
    #[arg(long, global = true, value_name = "STATUS", value_parser = stores::unreviewed)]
    pub unreviewed: Option<Unreviewed>,
    /// Pin to this scope; requests for any other are refused
    #[arg(long, global = true, value_name = "NAME", value_parser = scope_name())]
    pub pin: Option<String>,
    /// The project's folder [default: working directory]
    #[arg(long, short = 'C', global = true, value_name = "DIR", env = ENV_PROJECT, hide_env_values = true)]
    pub dir: Option<PathBuf>,
    /// Print JSON in the tools' format instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Make no network connections: skip upstream servers over HTTP, ask no bucket
    #[arg(long, global = true)]
    pub offline: bool,
    /// Explain on standard error which root, scope and project are used
    #[arg(long, short = 'v', global = true, env = ENV_LOG, hide_env_values = true, value_parser = FalseyValueParser::new())]
    pub verbose: bool,
    /// Print only the answer, without hints and notes
    #[arg(long, short = 'q', global = true)]
    pub quiet: bool,
    /// When to use colours
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    #[arg(default_value_t, hide_default_value = true)]
    pub color: ColorChoice,
    /// The environment variables that provided a setting.
    #[arg(skip)]
    pub variables: Vec<&'static str>,
    /// Whether a client started this program without a command, so that it serves.
    #[arg(skip)]
    pub is_served_unasked: bool,
}

/// The settings with a source, each with its environment variable.
const SOURCES: [(&str, &str); 3] = [("root", ENV_ROOT), ("db", ENV_DB), ("dir", ENV_PROJECT)];

impl Global {
    /// The value of a flag or its variable, with its source.
    pub fn setting<T: Clone>(
        &self,
        value: Option<&T>,
        flag: &'static str,
        variable: &'static str,
    ) -> Option<Setting<T>> {
        let value = value.cloned()?;
        Some(match self.variables.contains(&variable) {
            true => Setting::variable(variable, value),
            false => Setting::flag(flag, value),
        })
    }
}

/// Parses a scope's name. A name that is not UTF-8 matches no scope, which gives a better message
/// than a usage error.
fn scope_name() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|name| name.to_string_lossy().into_owned())
}

impl Default for Command {
    fn default() -> Self {
        Self::Doctor(DoctorArgs::default())
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find stores and clients on this machine; asks what to do with each, and tries a query
    Setup(SetupArgs),
    /// Serve MCP on standard input and output, or over HTTP
    Serve(ServeArgs),
    /// Create a token for a client of `serve --http --tokens`
    Token(TokenArgs),
    /// Search memories, or list the newest
    #[command(aliases = ["search", "find", "list", "ls"])]
    Query(QueryArgs),
    /// Show memories by id
    #[command(alias = "show")]
    Get(GetArgs),
    /// List the scopes, or add one for an existing store
    Scopes(ScopesArgs),
    /// Show the memories that matter for a project now
    Context(ContextArgs),
    /// Answer a coding agent's hook: reads its JSON from standard input, prints memories to
    /// standard output; always exits with 0
    Hook(HookArgs),
    /// Connect a client to this server: shows the change, asks, and keeps a backup; without a
    /// client, offers each that is installed
    Connect(ConnectArgs),
    /// Undo `connect`: remove what it wrote from a client's files
    Disconnect(DisconnectArgs),
    /// Review the unreviewed memories one by one
    Review(ReviewArgs),
    /// Add a memory that you write yourself; it is approved
    Add(AddMemoryArgs),
    /// Edit a memory in your editor, and approve it as it is then
    Edit(EditArgs),
    /// Approve memories, so that agents see them
    Approve(ApproveArgs),
    /// Reject memories, so that no agent sees them
    Reject(ChosenArgs),
    /// Return memories to the review queue; with --until, defer them until a later day
    Stage(StageArgs),
    /// Replace a memory with another one (newer, or with --merge, one that says the same)
    #[command(alias = "merge")]
    Replace(ReplaceArgs),
    /// Undo the newest batch of decisions
    Undo(UndoArgs),
    /// Write the approved memories of a scope to a folder; shows the plan first
    Publish(PublishArgs),
    /// Check notes before they are merged: format, ids, links, evidence, secrets
    Check(CheckArgs),
    /// Import memories from JSON lines into a scope
    Import(ImportArgs),
    /// Build or update the vector table of a scope (--scope NAME) or of all scopes (--all)
    Index(IndexArgs),
    /// Check the setup: what works, what does not, and how to fix it
    #[command(alias = "status")]
    Doctor(DoctorArgs),
    /// Measure retrieval on your own queries
    Eval(EvalArgs),
    /// Build sample scopes and show what the tools answer
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Show or change the settings in config.toml
    Config(ConfigArgs),
    /// Write the manual pages, for packages
    #[command(hide = true)]
    Man {
        /// Folder to put them in; created if missing
        folder: PathBuf,
    },
}

#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// What to do
    #[arg(value_enum, default_value_t)]
    pub action: ConfigAction,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ConfigAction {
    /// Show the effective settings, each with its source
    #[default]
    Show,
    /// Open config.toml in $VISUAL or $EDITOR, then say what is wrong with it
    Edit,
    /// Print the path of config.toml
    Path,
    /// Print the JSON schema of config.toml
    Schema,
}

#[derive(Debug, Clone, Default, Args)]
pub struct DoctorArgs {
    /// Also connect to the upstream servers in config.toml and list their tools
    #[arg(long)]
    pub upstreams: bool,
}
