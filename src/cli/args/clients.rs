//! The commands that serve and connect clients: `serve`, `hook`, `connect` and related ones.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::civil::Date;

use crate::hook::wire::{HookEvent, Host};
use crate::mcp::http::tokens::is_name;
use crate::toolset::ToolsetPreset;
use ack_connect::{Client, Hook};

#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// The tools that agents see: a built-in set, instead of `[tools]` in config.toml
    #[arg(long, value_name = "NAME", value_parser = set())]
    pub surface: Option<ToolsetPreset>,
    /// Serve Streamable HTTP on this address or port [without a value: 127.0.0.1:7767]
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:7767",
        value_parser = address
    )]
    pub http: Option<SocketAddr>,
    /// File with the bearer token [default: the token in ACK_MEM_TOKEN, or a file created on first
    /// use]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub token_file: Option<PathBuf>,
    /// Require no token; only on loopback addresses
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub no_token: bool,
    /// File of clients, each with its own token and limits; `ack-memory token` adds one
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with_all = ["token_file", "no_token"])]
    pub tokens: Option<PathBuf>,
    /// Another host name that clients use for this server (repeatable)
    #[arg(long, value_name = "NAME", requires = "http")]
    pub allow_host: Vec<String>,
    /// Build the indexes of shared scopes before the first request
    #[arg(long, requires = "http")]
    pub warm: bool,
}

#[derive(Debug, Clone, Args)]
pub struct TokenArgs {
    /// The client's name
    #[arg(value_parser = client_name)]
    pub name: String,
    /// The token file; created if missing [default: print the lines for it]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The scopes that the client can see [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub scopes: Vec<String>,
    /// The last day on which the token is valid, such as 2027-01-31 [default: no expiry]
    #[arg(long, value_name = "DAY", value_parser = last_day)]
    pub last_day: Option<Date>,
    /// Replace the token and settings of a client that is already in the file
    #[arg(long, requires = "file")]
    pub replace: bool,
}

fn client_name(text: &str) -> Result<String, String> {
    let name = Some(text.to_owned()).filter(|name| is_name(name));
    name.ok_or_else(|| "use letters, digits, `-`, `_` and `.`, at most 64".to_owned())
}

/// Parses `7767`, `127.0.0.1:7767`, `[::1]:7767` or `localhost:7767`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback =
        |port: &str| Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port.parse().ok()?));
    text.parse()
        .ok()
        .or_else(|| loopback(text.strip_prefix("localhost:").unwrap_or(text)))
        .ok_or_else(|| {
            "give a port, or an IP address and a port: 7767, 127.0.0.1:7767 or [::1]:7767"
                .to_owned()
        })
}

#[derive(Debug, Clone, Args)]
pub struct HookArgs {
    /// Which hook
    #[arg(value_enum)]
    pub event: HookEvent,
    /// The program that calls the hook [default: detected from its input]
    #[arg(long, value_enum)]
    pub client: Option<Host>,
    /// Called by the plugin: print nothing if Claude Code's settings also call the hook
    #[arg(long)]
    pub plugin: bool,
}

/// What is put into a client's configuration.
#[derive(Debug, Clone, Default, Args)]
pub struct EntryArgs {
    /// Leave out the permission to call the tools without asking
    #[arg(long)]
    pub no_allow: bool,
    /// Add only the hooks that are asked for
    #[arg(long)]
    pub no_hook: bool,
    /// Add the hook that adds memories to prompts
    #[arg(long)]
    pub prompt_hook: bool,
    /// Add the hook that shows memories about a file before it is edited
    #[arg(long)]
    pub edit_hook: bool,
    /// Add the hook that shows the memory that explains why a command failed; Claude Code and Qwen
    /// Code get it anyway
    #[arg(long)]
    pub failure_hook: bool,
    /// Leave out that hook
    #[arg(long, conflicts_with = "failure_hook")]
    pub no_failure_hook: bool,
    /// Have the server offer a built-in set of tools
    #[arg(long, value_name = "NAME", value_parser = set())]
    pub surface: Option<ToolsetPreset>,
}

impl EntryArgs {
    pub fn hooks(&self, client: Client) -> Vec<Hook> {
        let after_failures = client.tells_failures() && !self.no_hook && !self.no_failure_hook;
        let asked = [
            (Hook::SESSION_START, !self.no_hook),
            (Hook::USER_PROMPT, self.prompt_hook),
            (Hook::PRE_TOOL_USE, self.edit_hook),
            (Hook::TOOL_FAILURE, self.failure_hook || after_failures),
        ];
        asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(hook, _)| hook).collect()
    }
}

#[derive(Debug, Clone, Args)]
pub struct ConnectArgs {
    /// The clients [default: all that are installed]
    #[arg(value_name = "CLIENT", value_parser = client())]
    pub clients: Vec<Client>,
    #[command(flatten)]
    pub entry: EntryArgs,
    /// Replace an entry named `ack-memory` that runs another program or connects to a server
    #[arg(long)]
    pub replace: bool,
    /// Show the change without writing it
    #[arg(long)]
    pub dry_run: bool,
    /// Write without asking
    #[arg(long, short = 'y')]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct DisconnectArgs {
    /// The client
    #[arg(value_parser = client())]
    pub client: Client,
    /// Show the change without writing it
    #[arg(long)]
    pub dry_run: bool,
    /// Write without asking
    #[arg(long, short = 'y')]
    pub yes: bool,
}

fn client() -> impl TypedValueParser<Value = Client> {
    PossibleValuesParser::new(Client::ALL.iter().map(|client| client.name())).try_map(|name| {
        Client::ALL.iter().copied().find(|client| client.name() == name).ok_or("no such client")
    })
}

fn set() -> impl TypedValueParser<Value = ToolsetPreset> {
    PossibleValuesParser::new(ToolsetPreset::names()).try_map(|name| name.parse::<ToolsetPreset>())
}

fn last_day(text: &str) -> Result<Date, String> {
    let day = text.parse().ok().filter(|_| text.len() == "2027-01-31".len());
    day.ok_or_else(|| "write a day such as 2027-01-31".to_owned())
}
