//! The command line as typed: the global settings, and the commands by topic.

mod clients;
mod curate;
pub(in crate::cli) mod day;
mod help;
mod old;
mod read;
mod scopes;
mod setup;
mod stores;
mod team;

pub use clients::*;
pub use curate::*;
pub use help::command;
pub use read::*;
pub use scopes::*;
pub use setup::*;
pub use stores::*;
pub use team::*;

use std::path::PathBuf;

use clap::builder::{FalseyValueParser, OsStringValueParser, Resettable, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use ack_api::memory::Unreviewed;

use crate::config::{ENV_DB, ENV_LOG, ENV_PROJECT, ENV_ROOT, ENV_SCOPE, Setting, Source};

/// Curated memories for coding agents, read-only, over the Model Context Protocol.
#[derive(Debug, Parser)]
#[command(
    name = "ack-memory",
    version,
    max_term_width = 100,
    propagate_version = true
)]
pub struct Cli {
    /// Settings of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the command line and the environment. An empty variable counts as unset.
    ///
    /// # Errors
    /// An error from clap, which includes help and version.
    pub fn read() -> Result<Self, clap::Error> {
        let command = help::command().mut_args(|argument| {
            let value = argument.get_env().and_then(std::env::var_os);
            if value.is_some_and(|value| value.is_empty()) {
                argument.env(Resettable::Reset)
            } else {
                argument
            }
        });
        // Without a subcommand, `here` runs.
        let command = command
            .subcommand_required(false)
            .arg_required_else_help(false);
        let mut matches = command.clone().try_get_matches()?;
        if matches.subcommand_name().is_none() {
            let arguments = std::env::args_os().chain(["here".into()]);
            matches = command.try_get_matches_from(arguments)?;
        }
        let mut cli = Self::from_arg_matches(&matches)?;
        let given =
            |(id, _): &(&str, &str)| matches.value_source(id) == Some(ValueSource::EnvVariable);
        cli.global.variables = SOURCES
            .into_iter()
            .filter(given)
            .map(|(_, variable)| variable)
            .collect();
        let whole = Self::command();
        let own = matches.subcommand_name();
        let own = own.and_then(|name| whole.find_subcommand(name));
        cli.read_old_spellings(std::env::args_os(), |flag| {
            own.is_some_and(|own| own.get_arguments().any(|one| one.get_id() == flag))
        });
        if let Command::Scopes(args) = &cli.command
            && matches!(args.command, Some(ScopesCommand::Add(_)))
        {
            // The flag belongs to the new scope, not to `--db`.
            cli.global.unreviewed = None;
        }
        Ok(cli)
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names are those of other programs")]
pub enum ColorArg {
    #[default]
    Auto,
    Always,
    Never,
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
    /// What memories of that database count as that have no review status: staging or approved
    #[arg(long, global = true, value_name = "STATUS", value_parser = scopes::unreviewed)]
    pub unreviewed: Option<Unreviewed>,
    /// Pin to this scope; every other one is refused
    #[arg(long, global = true, value_name = "NAME", env = ENV_SCOPE, hide_env_values = true, value_parser = scope_name())]
    pub pin: Option<String>,
    /// The project's folder [default: working directory]
    #[arg(long, short = 'C', global = true, value_name = "DIR", env = ENV_PROJECT, hide_env_values = true)]
    pub dir: Option<PathBuf>,
    /// `--scope` where the command has none of its own: it pinned in version 0.1.
    #[arg(long, short = 's', global = true, hide = true, value_name = "NAME", value_parser = scope_name())]
    pub scope: Option<String>,
    /// `--project` where the command has none of its own: it was the project's folder in version 0.1.
    #[arg(long, short = 'p', global = true, hide = true, value_name = "NAME")]
    pub project: Option<String>,
    /// Print the tools' JSON instead of text for people
    #[arg(long, global = true)]
    pub json: bool,
    /// Open no connection: upstream servers over HTTP are left out, nothing is downloaded
    #[arg(long, global = true)]
    pub offline: bool,
    /// Say on standard error what was resolved
    #[arg(long, short = 'v', global = true, env = ENV_LOG, hide_env_values = true, value_parser = FalseyValueParser::new())]
    pub verbose: bool,
    /// No hints and no notes, only the answer
    #[arg(long, short = 'q', global = true)]
    pub quiet: bool,
    /// When to use colours
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t = ColorArg::Auto,
        hide_default_value = true
    )]
    pub color: ColorArg,
    /// Print long answers at once, without a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// The variables that gave a setting in place of its flag.
    #[arg(skip)]
    pub variables: Vec<&'static str>,
    /// What was written in an old spelling, and how it is written now.
    #[arg(skip)]
    pub old: Vec<String>,
}

/// The settings with a source, each with its environment variable.
const SOURCES: [(&str, &str); 4] = [
    ("root", ENV_ROOT),
    ("db", ENV_DB),
    ("pin", ENV_SCOPE),
    ("dir", ENV_PROJECT),
];

impl Global {
    /// The value of a flag or its variable, with its source.
    pub fn setting<T: Clone>(
        &self,
        value: Option<&T>,
        flag: &'static str,
        variable: &'static str,
    ) -> Option<Setting<T>> {
        let source = if self.variables.contains(&variable) {
            Source::Environment(variable)
        } else {
            Source::Flag(flag)
        };
        let value = value.cloned()?;
        Some(Setting { value, source })
    }
}

/// Parses a scope's name. A name that is not UTF-8 matches no scope, which gives a better message
/// than a usage error.
fn scope_name() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|name| name.to_string_lossy().into_owned())
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find stores and clients on this machine: ask what to do with each, try a query
    Setup(SetupArgs),
    /// Serve MCP on standard input and output, or over HTTP
    Serve(ServeArgs),
    /// Make a token for a client of `serve --http --tokens`
    Token(TokenArgs),
    /// Search memories, or list the newest
    #[command(aliases = ["search", "find", "list", "ls"])]
    Query(QueryArgs),
    /// Show memories by id
    #[command(alias = "show")]
    Get(GetArgs),
    /// List the scopes, or add one for a store that lies elsewhere
    Scopes(ScopesArgs),
    /// Show what matters for a project now
    Context(ContextArgs),
    /// Answer a coding agent's hook: its JSON on standard input, memories on standard output; always exits with 0
    Hook(HookArgs),
    /// Show what a client's configuration has to hold
    PrintConfig(PrintConfigArgs),
    /// Connect a client to this server: shows the change, asks, keeps what was there; without a
    /// client each that is installed
    Connect(ConnectArgs),
    /// Disconnect a client: take out what `connect` wrote
    Disconnect(DisconnectArgs),
    /// Go through the memories that wait for review; decide about each
    Review(ReviewArgs),
    /// Decide that agents may see memories
    Approve(ChosenArgs),
    /// Decide that nobody sees memories
    Reject(ChosenArgs),
    /// Approve memories that matter beyond their project
    Promote(ChosenArgs),
    /// Put memories back among those that wait for review; with --until, off until a later day
    Stage(StageArgs),
    /// Unite a memory with another one that says the same
    Merge(MergeArgs),
    /// Decide that a newer memory takes the place of another one
    Supersede(SupersedeArgs),
    /// Take the newest batch of decisions back
    Undo(UndoArgs),
    /// Write the approved memories of a scope to a folder; shows the plan first
    Publish(PublishArgs),
    /// Check notes before they are merged: form, ids, links, evidence, secrets
    Check(CheckArgs),
    /// Import memories from JSON lines into a scope
    Import(ImportArgs),
    /// Build or update the vector table of a scope (--scope NAME) or of every one (--all)
    Index(IndexArgs),
    /// Download the transformer that `index --model` can use
    Model(ModelArgs),
    /// Say what works, what does not, and what to do
    #[command(alias = "status")]
    Doctor(DoctorArgs),
    /// Measure retrieval on questions of your own
    Eval(EvalArgs),
    /// Build sample scopes and show what the tools answer
    Demo(DemoArgs),
    /// Print a completion script for a shell; it asks this program for scopes, ids and tags
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Say where you are: what `ack-memory` alone does
    #[command(hide = true)]
    Here,
    /// Show or change the settings in config.toml
    Config(ConfigArgs),
    /// Write the manual pages, for packages
    #[command(hide = true)]
    Man {
        /// Folder to put them in; made if it is missing
        folder: PathBuf,
    },
}

/// Arguments of `config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// What to do
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// The commands under `config`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigCommand {
    /// Print where config.toml lies, or would lie
    Path,
    /// Show the settings in force, each with its source
    Show,
    /// Open config.toml in $VISUAL or $EDITOR; what cannot be used is not kept unasked
    Edit,
    /// Print the JSON schema of config.toml
    Schema,
}

/// Arguments of `doctor`.
#[derive(Debug, Clone, Default, Args)]
pub struct DoctorArgs {
    /// Also connect to the upstream servers of config.toml, to see what they offer
    #[arg(long)]
    pub upstreams: bool,
}
