//! `[upstream.NAME]` of `config.toml`: other MCP servers whose tools are offered beside ours.
//!
//! Here stands what the owner says of them and its checks; [`crate::server`] connects. Nothing is contacted that does not
//! stand here.

pub mod declared;

use ack_api::cancel::Stopped;
use ack_api::{Diagnostic, ErrorCode};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use ack_api::settings::{Problem, bounded, described, is_name, no_name};
use ack_api::text;
use ack_sys::files::expand_home;

/// Variables that every process gets, because hardly any runs without them. All others are named by the owner.
pub const PASSED: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
];

/// Milliseconds that a call may take where nothing else is said.
const CALL: u32 = 30_000;
/// Milliseconds that a server may take until it has told its tools.
const START: u32 = 10_000;
/// Milliseconds that the first list of tools waits for a server.
const LIST: u32 = 1_500;
/// Most upstream servers.
const MOST: usize = 16;

/// `[upstream.NAME]`: another MCP server as a source beside the memories, started by `command` or reached at `url`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct UpstreamEntry {
    /// The program, absolute or found on the path, and its arguments. No shell reads them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Variables that the process gets, with their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables of this server's own environment that the process gets too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<String>,
    /// The folder it is started in; default: that of this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Instead of `command`: the address of a streamable HTTP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request to it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The variable that holds its bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The file that holds its bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Its tools that are offered, each with the name that agents see, or a table.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ToolOfUpstream>,
    /// Milliseconds a call may take, 100 to 600000 (default 30000).
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::<_, 100, 600000>"
    )]
    #[schemars(range(min = 100, max = 600_000))]
    pub timeout_ms: Option<u32>,
    /// Milliseconds it may take until it has told its tools, 100 to 120000 (default 10000).
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::<_, 100, 120000>"
    )]
    #[schemars(range(min = 100, max = 120_000))]
    pub start_timeout_ms: Option<u32>,
    /// Milliseconds that the first list of tools waits for it, 0 to 10000 (default 1500).
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::<_, 0, 10000>"
    )]
    #[schemars(range(min = 0, max = 10_000))]
    pub list_wait_ms: Option<u32>,
    /// Whether tools are offered too that do not say whether they only read.
    pub trust_unannotated: bool,
}

/// A tool of an upstream server: the name that agents see, or a table.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few of them are read once, at the start"
)]
pub enum ToolOfUpstream {
    /// The name that agents see.
    Name(String),
    /// More about it.
    Table(UpstreamTool),
}

/// A tool of an upstream server, in full.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct UpstreamTool {
    /// The name that agents see.
    pub name: String,
    /// What agents read about it, word for word, instead of what the server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema of its arguments that agents see, instead of the server's. The tool is listed then while the server is away.
    #[serde(
        alias = "inputSchema",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "schema_of_arguments"
    )]
    pub input_schema: Option<Map<String, Value>>,
    /// Its arguments: the name that agents give, and the server's own. Those that are not named keep their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Arguments that always have this value; agents do not see them.
    #[serde(
        skip_serializing_if = "Map::is_empty",
        deserialize_with = "ack_api::settings::values"
    )]
    pub preset: Map<String, Value>,
    /// Arguments that have this value where a call does not give them, under the server's own names.
    #[serde(
        skip_serializing_if = "Map::is_empty",
        deserialize_with = "ack_api::settings::values"
    )]
    pub defaults: Map<String, Value>,
}

fn schema_of_arguments<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<Map<String, Value>>, D::Error> {
    ack_api::settings::values(input).map(Some)
}

// Written by hand, because the derived reader of an untagged type loses the place of what is wrong.
impl<'de> Deserialize<'de> for ToolOfUpstream {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = ToolOfUpstream;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the name that agents see, or a table")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<ToolOfUpstream, E> {
                Ok(ToolOfUpstream::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ToolOfUpstream, A::Error> {
                UpstreamTool::deserialize(MapAccessDeserializer::new(map))
                    .map(ToolOfUpstream::Table)
            }
        }
        input.deserialize_any(Reader)
    }
}

/// An upstream server, checked, with what it takes from the environment.
#[derive(Clone, PartialEq)]
pub struct Upstream {
    /// Its name in `config.toml`.
    pub name: String,
    /// How it is reached.
    pub connection: Connection,
    /// Its tools that are offered: its own name of each, and the table.
    pub tools: Vec<(String, UpstreamTool)>,
    /// How long a call may take.
    pub call: Duration,
    /// How long it may take until it has told its tools.
    pub start: Duration,
    /// How long the first list of tools waits for it.
    pub list: Duration,
    /// Whether tools without annotations are offered.
    pub trust_unannotated: bool,
}

/// How an upstream server is reached.
#[derive(Clone, PartialEq)]
pub enum Connection {
    /// As a process, over its standard input and output.
    Process {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
        /// Its whole environment.
        environment: Vec<(String, OsString)>,
        /// Its folder.
        folder: Option<PathBuf>,
    },
    /// Over HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
        /// The bearer token.
        token: Token,
    },
    /// Not at all, and why.
    Unusable(String),
}

/// Where a bearer token is from.
#[derive(Clone, PartialEq)]
pub enum Token {
    /// There is none.
    None,
    /// The environment; this is it.
    Given(String),
    /// A file, read whenever a connection is made.
    File(PathBuf),
}

impl fmt::Debug for Upstream {
    /// Without what may be secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Upstream({}: {})", self.name, self.connection)
    }
}

impl fmt::Display for Connection {
    /// How it is reached, without what may be secret: no arguments, no environment, no headers.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process {
                program, arguments, ..
            } if arguments.is_empty() => write!(out, "{}", program.display()),
            Self::Process {
                program, arguments, ..
            } => {
                let more = if arguments.len() == 1 {
                    "argument"
                } else {
                    "arguments"
                };
                write!(out, "{} with {} {more}", program.display(), arguments.len())
            }
            // A query may hold a key.
            Self::Http { url, .. } => {
                out.write_str(url.split(['?', '#']).next().unwrap_or_default())
            }
            Self::Unusable(reason) => write!(out, "unusable: {reason}"),
        }
    }
}

/// Why a call of an upstream server's tool has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UpstreamError {
    /// It is not there now.
    #[error("the upstream server `{name}` is not available: {reason}")]
    Unavailable {
        /// Its name.
        name: String,
        /// Why, and when it is tried again.
        reason: String,
    },
    /// It is there, and this tool of it is not offered.
    #[error("`{tool}` of the upstream server `{name}` is not offered: {}", why.reason)]
    Refused {
        /// Its name.
        name: String,
        /// The server's own name of the tool.
        tool: String,
        /// Why.
        why: NotOffered,
    },
    /// It took too long.
    #[error("the upstream server `{name}` did not answer within {} ms", limit.as_millis())]
    TimedOut {
        /// Its name.
        name: String,
        /// How long it had.
        limit: Duration,
    },
    /// It broke off, or answered with what is no answer.
    #[error("the upstream server `{name}` gave no answer: {reason}")]
    Failed {
        /// Its name.
        name: String,
        /// What happened.
        reason: String,
    },
    /// The client took the request back.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Why a tool is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotOffered {
    /// What is in the way, in words.
    pub reason: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl Diagnostic for UpstreamError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable { .. } => ErrorCode::UpstreamUnavailable,
            Self::Refused { .. } => ErrorCode::UpstreamRefused,
            Self::TimedOut { .. } => ErrorCode::UpstreamTimeout,
            Self::Failed { .. } => ErrorCode::UpstreamFailed,
            Self::Stopped(stopped) => stopped.code(),
        }
    }

    fn hint(&self) -> Option<Cow<'static, str>> {
        let hint = match self {
            Self::Unavailable { .. } => {
                "the other tools answer as ever; `ack-memory doctor --upstreams` says what is wrong with it"
            }
            Self::Refused { why, .. } => why.hint,
            Self::TimedOut { .. } => {
                "ask for less, or try again; `timeout_ms` in config.toml says how long it may take"
            }
            Self::Failed { .. } => "try again; the other tools answer as ever",
            Self::Stopped(_) => return None,
        };
        Some(hint.into())
    }
}

/// The upstream servers of `[upstream]`, checked. `taken` are the names of our own tools; `variable` looks into the
/// environment.
///
/// # Errors
/// The first [`Problem`].
pub fn build(
    entries: &BTreeMap<String, UpstreamEntry>,
    mut taken: BTreeSet<String>,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<Upstream>, Problem> {
    if entries.len() > MOST {
        return Err(Problem::at(
            [],
            format!(
                "{} upstream servers; at most {MOST} are allowed",
                entries.len()
            ),
        ));
    }
    let mut upstreams = Vec::new();
    for (name, entry) in entries {
        let under = |mut problem: Problem| {
            problem.path.insert(0, name.clone());
            problem
        };
        if !is_name(name) {
            let message = format!(
                "`{}` is no name: letters, digits, `_` and `-`",
                text::line(name, 80)
            );
            return Err(under(Problem::at([], message)));
        }
        let tools = tools(entry, &mut taken).map_err(under)?;
        let milliseconds = |value: Option<u32>, default: u32| {
            Duration::from_millis(u64::from(value.unwrap_or(default)))
        };
        upstreams.push(Upstream {
            name: name.clone(),
            connection: connection(entry, home, variable).map_err(under)?,
            tools,
            call: milliseconds(entry.timeout_ms, CALL),
            start: milliseconds(entry.start_timeout_ms, START),
            list: milliseconds(entry.list_wait_ms, LIST),
            trust_unannotated: entry.trust_unannotated,
        });
    }
    Ok(upstreams)
}

/// The tools that are offered. Their names are new ones, and stay the same whatever the server does.
fn tools(
    entry: &UpstreamEntry,
    taken: &mut BTreeSet<String>,
) -> Result<Vec<(String, UpstreamTool)>, Problem> {
    if entry.tools.is_empty() {
        return Err(Problem::at(
            [],
            "`tools` is missing: only tools that it names are offered, as `THEIR_NAME = \"NAME\"`",
        ));
    }
    let mut tools = Vec::new();
    for (theirs, tool) in &entry.tools {
        let (tool, at): (UpstreamTool, &[&str]) = match tool {
            ToolOfUpstream::Name(name) => (
                UpstreamTool {
                    name: name.clone(),
                    ..UpstreamTool::default()
                },
                &[],
            ),
            ToolOfUpstream::Table(table) => (table.clone(), &["name"]),
        };
        let problem = |at: &[&str], message: String| {
            let mut problem = Problem::at(["tools", theirs.as_str()], message);
            problem.path.extend(at.iter().map(|key| (*key).to_owned()));
            problem
        };
        if !is_name(&tool.name) {
            return Err(problem(at, no_name(&tool.name)));
        }
        if !taken.insert(tool.name.clone()) {
            return Err(problem(
                at,
                format!("another tool has the name `{}` already", tool.name),
            ));
        }
        let mut tool = tool;
        if let Some(description) = &tool.description {
            let described =
                described(description).map_err(|message| problem(&["description"], message))?;
            tool.description = Some(described);
        }
        if let Some(both) = tool
            .defaults
            .keys()
            .find(|name| tool.preset.contains_key(*name))
        {
            let message = format!("`{}` has a fixed value in `preset`", text::line(both, 80));
            return Err(problem(&["defaults", both], message));
        }
        if let Some(schema) = &tool.input_schema {
            declared::check(schema, &tool)
                .map_err(|message| problem(&["input_schema"], message))?;
        }
        let mut own = BTreeSet::new();
        for (public, theirs) in &tool.arguments {
            if !own.insert(theirs) {
                return Err(problem(
                    &["arguments", public],
                    format!("two arguments stand for `{}`", text::line(theirs, 80)),
                ));
            }
            if tool.preset.contains_key(theirs) {
                let message = format!("`{}` has a fixed value in `preset`", text::line(theirs, 80));
                return Err(problem(&["arguments", public], message));
            }
        }
        tools.push((theirs.clone(), tool));
    }
    Ok(tools)
}

fn connection(
    entry: &UpstreamEntry,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Connection, Problem> {
    let of_process = [
        ("env", !entry.env.is_empty()),
        ("env_from", !entry.env_from.is_empty()),
        ("cwd", entry.cwd.is_some()),
    ];
    let of_http = [
        ("headers", !entry.headers.is_empty()),
        ("token_env", entry.token_env.is_some()),
        ("token_file", entry.token_file.is_some()),
    ];
    let only = |keys: [(&'static str, bool); 3], other: &str| match keys
        .into_iter()
        .find(|(_, there)| *there)
    {
        Some((key, _)) => Err(Problem::at([key], format!("`{key}` goes with `{other}`"))),
        None => Ok(()),
    };
    match (entry.command.split_first(), &entry.url) {
        (Some(_), Some(_)) => Err(Problem::at(["url"], "either `command` or `url`")),
        (None, None) => Err(Problem::at(
            [],
            "`command` says what to start, or `url` where it answers",
        )),
        (Some((program, arguments)), None) => {
            only(of_http, "url")?;
            process(entry, program, arguments, home, variable)
        }
        (None, Some(url)) => {
            only(of_process, "command")?;
            http(entry, url, home, variable)
        }
    }
}

fn process(
    entry: &UpstreamEntry,
    program: &str,
    arguments: &[String],
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Connection, Problem> {
    let program = expand_home(Path::new(program), home);
    let bare = program.components().count() == 1 && !program.as_os_str().is_empty();
    if !program.is_absolute() && !bare || program.as_os_str().to_string_lossy().contains('\0') {
        let message = format!(
            "`{}` is neither absolute nor a bare name to be found on the path",
            text::line(&program.display().to_string(), 80)
        );
        return Err(Problem::at(["command"], message));
    }
    let folder = entry.cwd.as_deref().map(|folder| expand_home(folder, home));
    if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_absolute()) {
        return Err(Problem::at(
            ["cwd"],
            format!(
                "`{}` is not absolute",
                text::line(&folder.display().to_string(), 80)
            ),
        ));
    }
    let named = |key: &'static str, name: &str| match name.is_empty() || name.contains(['=', '\0'])
    {
        true => Err(Problem::at(
            [key],
            format!("`{}` is no name of a variable", text::line(name, 80)),
        )),
        false => Ok(()),
    };
    let mut environment: Vec<(String, OsString)> = PASSED
        .iter()
        .filter(|name| !entry.env.contains_key(**name))
        .filter_map(|name| Some(((*name).to_owned(), variable(name)?)))
        .collect();
    for (name, value) in &entry.env {
        named("env", name)?;
        environment.push((name.clone(), value.into()));
    }
    let mut missing = Vec::new();
    for name in &entry.env_from {
        named("env_from", name)?;
        if entry.env.contains_key(name) {
            return Err(Problem::at(
                ["env_from"],
                format!("`{}` has a value in `env` already", text::line(name, 80)),
            ));
        }
        match variable(name) {
            Some(value) => environment.push((name.clone(), value)),
            None => missing.push(format!("`{}`", text::line(name, 80))),
        }
    }
    if !missing.is_empty() {
        // Clients pass different variables on, and ours must be there all the same.
        return Ok(Connection::Unusable(format!(
            "{} of `env_from` is not set where this server runs",
            missing.join(", ")
        )));
    }
    Ok(Connection::Process {
        program,
        arguments: arguments.to_vec(),
        environment,
        folder,
    })
}

fn http(
    entry: &UpstreamEntry,
    url: &str,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Connection, Problem> {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let authority = rest
        .and_then(|rest| rest.split(['/', '?', '#']).next())
        .unwrap_or_default();
    if authority.is_empty()
        || authority.contains('@')
        || url.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        // It may hold a password.
        let message =
            "it is no address: `http://` or `https://`, a host and a path, without a user";
        return Err(Problem::at(["url"], message));
    }
    let reserved = |name: &str| {
        let name = name.to_ascii_lowercase();
        [
            "host",
            "accept",
            "content-type",
            "content-length",
            "last-event-id",
        ]
        .contains(&name.as_str())
            || name.starts_with("mcp-")
    };
    for (name, value) in &entry.headers {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) || reserved(name) {
            let message = format!("`{}` is no header that can be set", text::line(name, 80));
            return Err(Problem::at(["headers", name.as_str()], message));
        }
        if !value.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
            return Err(Problem::at(
                ["headers", name.as_str()],
                "the value of a header is visible ASCII",
            ));
        }
        if name.eq_ignore_ascii_case("authorization")
            && (entry.token_env.is_some() || entry.token_file.is_some())
        {
            return Err(Problem::at(
                ["headers", name.as_str()],
                "either this header or a token",
            ));
        }
    }
    let token = match (&entry.token_env, &entry.token_file) {
        (Some(_), Some(_)) => {
            return Err(Problem::at(
                ["token_file"],
                "either `token_env` or `token_file`",
            ));
        }
        (Some(name), None) => {
            match variable(name).map(|token| token.to_string_lossy().trim().to_owned()) {
                Some(token) if !token.is_empty() => Token::Given(token),
                _ => {
                    let reason = format!(
                        "`{}` of `token_env` is not set where this server runs",
                        text::line(name, 80)
                    );
                    return Ok(Connection::Unusable(reason));
                }
            }
        }
        (None, Some(path)) => {
            let path = expand_home(path, home);
            if !path.is_absolute() {
                return Err(Problem::at(
                    ["token_file"],
                    format!(
                        "`{}` is not absolute",
                        text::line(&path.display().to_string(), 80)
                    ),
                ));
            }
            Token::File(path)
        }
        (None, None) => Token::None,
    };
    Ok(Connection::Http {
        url: url.to_owned(),
        headers: entry
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        token,
    })
}
