//! The command line as it is typed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::builder::{
    FalseyValueParser, OsStringValueParser, PossibleValuesParser, Resettable, TypedValueParser,
};
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::config::{ENV_DB, ENV_LOG, ENV_PROJECT, ENV_ROOT, ENV_SCOPE, Setting, Source};
use crate::connect::{Client, Hooks};
use crate::toolset::ToolsetPreset;
use ack_api::memory::Unreviewed;

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
    /// Reads the command line and the environment. A variable that is empty counts as unset.
    ///
    /// # Errors
    /// What clap refuses; help and version too.
    pub fn read() -> Result<Self, clap::Error> {
        let command = Self::command().mut_args(|argument| {
            let value = argument.get_env().and_then(std::env::var_os);
            if value.is_some_and(|value| value.is_empty()) {
                argument.env(Resettable::Reset)
            } else {
                argument
            }
        });
        let matches = command.try_get_matches()?;
        let mut cli = Self::from_arg_matches(&matches)?;
        let given =
            |(id, _): &(&str, &str)| matches.value_source(id) == Some(ValueSource::EnvVariable);
        cli.global.variables = SOURCES
            .into_iter()
            .filter(given)
            .map(|(_, variable)| variable)
            .collect();
        Ok(cli)
    }
}

/// Settings of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// Folder that holds `scopes/` and `config.toml` [default: ~/.ack-mem]
    #[arg(long, global = true, value_name = "DIR", env = ENV_ROOT, hide_env_values = true)]
    pub root: Option<PathBuf>,
    /// A single database, served as the only scope
    #[arg(long, global = true, value_name = "FILE", env = ENV_DB, hide_env_values = true)]
    pub db: Option<PathBuf>,
    /// Pin to this scope; every other one is refused
    #[arg(long, global = true, value_name = "NAME", env = ENV_SCOPE, hide_env_values = true, value_parser = scope_name())]
    pub scope: Option<String>,
    /// The project's folder [default: working directory]
    #[arg(long, global = true, value_name = "DIR", env = ENV_PROJECT, hide_env_values = true)]
    pub project: Option<PathBuf>,
    /// Print the tools' JSON instead of text for people
    #[arg(long, global = true)]
    pub json: bool,
    /// Open no connection: upstream servers over HTTP are left out, nothing is downloaded
    #[arg(long, global = true)]
    pub offline: bool,
    /// Say on standard error what was resolved
    #[arg(long, short = 'v', global = true, env = ENV_LOG, hide_env_values = true, value_parser = FalseyValueParser::new())]
    pub verbose: bool,
    /// The variables that gave a setting in place of its flag.
    #[arg(skip)]
    pub variables: Vec<&'static str>,
}

/// The settings with a source, each with its variable.
const SOURCES: [(&str, &str); 4] = [
    ("root", ENV_ROOT),
    ("db", ENV_DB),
    ("scope", ENV_SCOPE),
    ("project", ENV_PROJECT),
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

/// A scope's name. One that is not UTF-8 names no scope, which the answer says better than a usage error.
fn scope_name() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|name| name.to_string_lossy().into_owned())
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve MCP on standard input and output, or over HTTP
    Serve(ServeArgs),
    /// Search memories, or list the newest
    Query(QueryArgs),
    /// Show memories by id
    Get(GetArgs),
    /// List the scopes, or add one for a store that lies elsewhere
    Scopes(ScopesArgs),
    /// Show what matters for a project now
    Context(ContextArgs),
    /// Answer a coding agent's hook: its JSON on standard input, memories on standard output; always exits with 0
    Hook(HookArgs),
    /// Show what a client's configuration has to hold to use this server
    PrintConfig(EntryArgs),
    /// Write it there: shows the change, asks, keeps what was there
    Connect(ConnectArgs),
    /// Take it out again
    Disconnect(DisconnectArgs),
    /// Import memories from JSON lines into a scope
    Import(ImportArgs),
    /// Build or update the vector table of a scope (--scope NAME) or of every one (--all)
    Index(IndexArgs),
    /// Download the transformer that `index --model` can use
    Model(ModelArgs),
    /// Say how each scope was opened, what is wrong and what to do
    Doctor(DoctorArgs),
    /// Measure retrieval on questions of your own
    Eval(EvalArgs),
    /// Build sample scopes and show what the tools answer
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages, for packages
    #[command(hide = true)]
    Man {
        /// Folder to put them in; made if it is missing
        folder: PathBuf,
    },
}

/// A status filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum StatusArg {
    Approved,
    Staging,
    All,
}

/// The legs of retrieval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum ModeArg {
    Hybrid,
    Semantic,
    Lexical,
}

/// Arguments of `doctor`.
#[derive(Debug, Clone, Default, Args)]
pub struct DoctorArgs {
    /// Also connect to the upstream servers of config.toml, to see what they offer
    #[arg(long)]
    pub upstreams: bool,
}

/// Arguments of `serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// The tools that agents see: a built-in set, instead of `[tools]` in config.toml
    #[arg(long, value_name = "NAME", value_parser = set())]
    pub surface: Option<ToolsetPreset>,
    /// Streamable HTTP instead, on this address or port [without one: 127.0.0.1:7767]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7767", value_parser = address)]
    pub http: Option<SocketAddr>,
    /// File with the bearer token [default: the token in ACK_MEM_TOKEN, or a file that is made at first use]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub token_file: Option<PathBuf>,
    /// Answer without a token; on loopback addresses only
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub no_token: bool,
    /// Another host name that clients use for this server (repeatable)
    #[arg(long, value_name = "NAME", requires = "http")]
    pub allow_host: Vec<String>,
}

/// Reads `7767`, `127.0.0.1:7767`, `[::1]:7767` or `localhost:7767`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port: &str| {
        Some(SocketAddr::new(
            Ipv4Addr::LOCALHOST.into(),
            port.parse().ok()?,
        ))
    };
    text.parse()
        .ok()
        .or_else(|| loopback(text.strip_prefix("localhost:").unwrap_or(text)))
        .ok_or_else(|| {
            "give a port, or an IP address and a port: 7767, 127.0.0.1:7767 or [::1]:7767"
                .to_owned()
        })
}

/// Arguments of `eval`.
#[derive(Debug, Clone, Args)]
pub struct EvalArgs {
    /// The questions, one JSON object a line: text, relevant (ids), and where they matter project, filter, category
    pub queries: PathBuf,
}

/// Arguments of `query`.
#[derive(Debug, Clone, Default, Args)]
pub struct QueryArgs {
    /// Words, an error message, an identifier or a question; none: the newest
    pub query: Vec<String>,
    /// Only memories with this tag (repeatable)
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// One of the tags is enough
    #[arg(long)]
    pub any_tag: bool,
    /// Only memories learned in this project
    #[arg(long = "in-project", value_name = "NAME")]
    pub in_project: Option<String>,
    /// Only this scope, without pinning to it
    #[arg(long = "in-scope", value_name = "NAME")]
    pub in_scope: Option<String>,
    /// Which statuses to show
    #[arg(long, value_enum)]
    pub status: Option<StatusArg>,
    /// Results, 1 to 50
    #[arg(long, short = 'n', allow_negative_numbers = true)]
    pub limit: Option<i64>,
    /// Only this type, or one of several between commas
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Only memories about such a file (repeatable; globs allowed)
    #[arg(long = "file", value_name = "PATH")]
    pub files: Vec<String>,
    /// First day, YYYY-MM-DD
    #[arg(long, value_name = "DAY")]
    pub since: Option<String>,
    /// Last day, included, YYYY-MM-DD
    #[arg(long, value_name = "DAY")]
    pub until: Option<String>,
    /// Only memories of this session
    #[arg(long)]
    pub session: Option<String>,
    /// Without a query: the oldest first
    #[arg(long)]
    pub oldest: bool,
    /// Show narrative and files too
    #[arg(long)]
    pub full: bool,
    /// Most tokens the answer may take, 200 to 20000
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_tokens: Option<i64>,
    /// `next_cursor` of the page before
    #[arg(long)]
    pub cursor: Option<String>,
    /// Say how each result was ranked
    #[arg(long)]
    pub explain: bool,
    /// Memories near this one in meaning, instead of or beside a query
    #[arg(long, value_name = "ID")]
    pub like: Option<String>,
    /// Which legs of retrieval run [default: hybrid]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// A memory that should be there: say where it was lost
    #[arg(long, value_name = "ID")]
    pub expect: Option<String>,
}

/// Arguments of `get`.
#[derive(Debug, Clone, Args)]
pub struct GetArgs {
    /// One id, or up to 20
    #[arg(required = true)]
    pub ids: Vec<String>,
    /// The scope that holds them, without pinning to it
    #[arg(long = "in-scope", value_name = "NAME")]
    pub in_scope: Option<String>,
    /// Which statuses to show
    #[arg(long, value_enum)]
    pub status: Option<StatusArg>,
    /// Also show these (repeatable)
    #[arg(long, value_enum)]
    pub include: Vec<IncludeArg>,
    /// Neighbours before it in the timeline, 0 to 20 [default: 3]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub before: Option<i64>,
    /// Neighbours after it, 0 to 20 [default: 3]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub after: Option<i64>,
    /// What holds these neighbours [default: the first of these that has others]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub timeline_within: Option<WithinArg>,
    /// Steps that links are followed, 1 to 8 [default: 4]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub depth: Option<i64>,
    /// Follow only links of this kind (repeatable)
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<String>,
}

/// What holds the neighbours of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum WithinArg {
    Session,
    Project,
    Scope,
}

/// What `get` can add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum IncludeArg {
    Timeline,
    Related,
    Links,
    History,
}

/// Arguments of `scopes`.
#[derive(Debug, Clone, Args)]
pub struct ScopesArgs {
    /// What to do; none: list
    #[command(subcommand)]
    pub command: Option<ScopesCommand>,
    /// One scope in detail
    #[arg(long = "in-scope", value_name = "NAME")]
    pub in_scope: Option<String>,
}

/// The commands under `scopes`.
#[derive(Debug, Clone, Subcommand)]
pub enum ScopesCommand {
    /// Write a manifest for a store that lies elsewhere; shows it first, writes it with --yes
    Add(AddArgs),
}

/// Arguments of `scopes add`.
#[derive(Debug, Clone, Args)]
pub struct AddArgs {
    /// Name of the new scope
    pub name: String,
    /// The database, opened in place
    #[arg(long, value_name = "PATH")]
    pub store: PathBuf,
    /// What the scope is about
    #[arg(long)]
    pub description: Option<String>,
    /// A project that belongs here (repeatable)
    #[arg(long = "belongs", value_name = "PROJECT")]
    pub projects: Vec<String>,
    /// A project folder that belongs here (repeatable)
    #[arg(long = "path", value_name = "DIR")]
    pub paths: Vec<String>,
    /// A git remote that belongs here (repeatable)
    #[arg(long = "remote", value_name = "URL")]
    pub remotes: Vec<String>,
    /// Only searched when it is current or named
    #[arg(long)]
    pub private: bool,
    /// What rows count as in a store that keeps no review status
    #[arg(long, value_parser = unreviewed, value_name = "staging|approved")]
    pub unreviewed: Option<Unreviewed>,
    /// Write it
    #[arg(long)]
    pub yes: bool,
}

fn unreviewed(word: &str) -> Result<Unreviewed, String> {
    match word {
        "staging" => Ok(Unreviewed::Staging),
        "approved" => Ok(Unreviewed::Approved),
        other => Err(format!("`{other}` is not allowed; use staging or approved")),
    }
}

/// Arguments of `context`.
#[derive(Debug, Clone, Default, Args)]
pub struct ContextArgs {
    /// What the session is about
    pub focus: Vec<String>,
    /// Leave out what other projects learned
    #[arg(long)]
    pub own_only: bool,
    /// Memories a list, 1 to 50
    #[arg(long, short = 'n', allow_negative_numbers = true)]
    pub max_memories: Option<i64>,
    /// Most tokens the answer may take, 200 to 20000
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_tokens: Option<i64>,
}

/// Arguments of `hook`.
#[derive(Debug, Clone, Args)]
pub struct HookArgs {
    /// Which hook
    #[command(subcommand)]
    pub command: HookCommand,
}

/// The commands under `hook`.
#[derive(Debug, Clone, Subcommand)]
pub enum HookCommand {
    /// The memories a session starts with
    SessionStart(HostArgs),
    /// Memories that a prompt is about, if there are any that are near enough
    UserPrompt(HostArgs),
}

/// Arguments of every hook.
#[derive(Debug, Clone, Args)]
pub struct HostArgs {
    /// The program that calls the hook [default: told by what it sends]
    #[arg(long, value_enum)]
    pub client: Option<HostArg>,
    /// The plugin calls it: nothing is said where the settings of Claude Code call it as well
    #[arg(long)]
    pub plugin: bool,
}

/// The programs whose hooks are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names are those of the programs")]
pub enum HostArg {
    ClaudeCode,
    Codex,
    Gemini,
    Cursor,
    Copilot,
}

/// What is put into a client's configuration; the arguments of `print-config`.
#[derive(Debug, Clone, Args)]
pub struct EntryArgs {
    /// The client
    #[arg(value_parser = client())]
    pub client: Client,
    /// In the project's repository, for this project alone
    #[arg(long)]
    pub here: bool,
    /// Without the permission to call the tools unasked
    #[arg(long)]
    pub no_allow: bool,
    /// Without the hook that tells memories when a session starts
    #[arg(long)]
    pub no_hook: bool,
    /// With the hook that adds the memories that a prompt is about
    #[arg(long)]
    pub prompt_hook: bool,
    /// Have the server offer a built-in set of tools
    #[arg(long, value_name = "NAME", value_parser = set())]
    pub surface: Option<ToolsetPreset>,
}

impl EntryArgs {
    /// The hooks that are wanted.
    pub const fn hooks(&self) -> Hooks {
        Hooks {
            session_start: !self.no_hook,
            user_prompt: self.prompt_hook,
        }
    }
}

/// Arguments of `connect`.
#[derive(Debug, Clone, Args)]
pub struct ConnectArgs {
    /// What is written
    #[command(flatten)]
    pub entry: EntryArgs,
    /// Show the change and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write without asking
    #[arg(long)]
    pub yes: bool,
}

/// Arguments of `disconnect`.
#[derive(Debug, Clone, Args)]
pub struct DisconnectArgs {
    /// The client
    #[arg(value_parser = client())]
    pub client: Client,
    /// In the project's repository
    #[arg(long)]
    pub here: bool,
    /// Show the change and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write without asking
    #[arg(long)]
    pub yes: bool,
}

fn client() -> impl TypedValueParser<Value = Client> {
    PossibleValuesParser::new(Client::ALL.map(Client::name)).try_map(|name| {
        Client::ALL
            .into_iter()
            .find(|client| client.name() == name)
            .ok_or("no such client")
    })
}

fn set() -> impl TypedValueParser<Value = ToolsetPreset> {
    PossibleValuesParser::new(ToolsetPreset::ALL.map(ToolsetPreset::name))
        .try_map(|name| ToolsetPreset::named(&name).ok_or("no such set"))
}

/// Arguments of `import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// The file, or `-` for standard input; one JSON object a line (schemas/import-line.json)
    pub file: PathBuf,
    /// Import the good lines where others are refused
    #[arg(long)]
    pub skip_refused: bool,
    /// Replace memories that are there with other content
    #[arg(long)]
    pub update: bool,
    /// Say what would be done and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `index`.
#[derive(Debug, Clone, Args)]
pub struct IndexArgs {
    /// Every scope
    #[arg(long)]
    pub all: bool,
    /// Say what would be done and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Make the table anew, whatever is there
    #[arg(long)]
    pub rebuild: bool,
    /// Folder with the transformer's model.safetensors, for better vectors
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
}

/// Arguments of `model`.
#[derive(Debug, Clone, Args)]
pub struct ModelArgs {
    /// What to do
    #[command(subcommand)]
    pub command: ModelCommand,
}

/// The commands under `model`.
#[derive(Debug, Clone, Subcommand)]
pub enum ModelCommand {
    /// Download the transformer (91 MB) for `index --model`; nothing else is ever downloaded
    Fetch {
        /// Folder to put it in
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
}

/// Arguments of `demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Folder to build in and keep, empty or absent; none: a temporary one
    pub folder: Option<PathBuf>,
}
