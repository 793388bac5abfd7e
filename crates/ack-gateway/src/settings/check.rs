//! Validates the upstream servers of `config.toml` and resolves their environment variables.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ack_api::settings::{Problem, checked_description, invalid_name_message, is_name};
use ack_api::text;
use ack_sys::files::expand_home;

use super::{ToolOfUpstream, UpstreamEntry, UpstreamTool, declared};

/// Variables that every process gets, because hardly any program runs without them. The owner names
/// all others.
pub const INHERITED_VARIABLES: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
];

const DEFAULT_CALL_TIMEOUT_MS: u32 = 30_000;
const DEFAULT_START_TIMEOUT_MS: u32 = 10_000;
const DEFAULT_LIST_WAIT_MS: u32 = 1_500;
const MAX_UPSTREAMS: usize = 16;

/// A validated upstream server, with its values from the environment.
#[derive(Clone, PartialEq)]
pub struct Upstream {
    /// Its name in `config.toml`.
    pub name: String,
    /// How it is reached.
    pub connection: Connection,
    /// The offered tools: the server's own name and the configuration of each.
    pub tools: Vec<(String, UpstreamTool)>,
    /// How long a call may take.
    pub call_timeout: Duration,
    /// How long it may take to connect and list its tools.
    pub start_timeout: Duration,
    /// How long the first tool list waits for it.
    pub list_wait: Duration,
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
        /// The working directory.
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
    /// It cannot be reached, with the reason.
    Unusable(String),
}

/// The source of a bearer token.
#[derive(Clone, PartialEq)]
pub enum Token {
    /// There is none.
    None,
    /// The environment, with its value.
    Inline(String),
    /// A file, read for each connection.
    File(PathBuf),
}

impl fmt::Debug for Upstream {
    /// Leaves out what may be secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Upstream({}: {})", self.name, self.connection)
    }
}

impl fmt::Display for Connection {
    /// Leaves out what may be secret: arguments, environment, headers.
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

/// Validates the servers of `[upstream]`. `taken` holds the names of ack-memory's own tools;
/// `variable` reads an environment variable.
///
/// # Errors
/// The first [`Problem`].
pub fn build(
    entries: &BTreeMap<String, UpstreamEntry>,
    mut taken: BTreeSet<String>,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<Upstream>, Problem> {
    if entries.len() > MAX_UPSTREAMS {
        return Err(Problem::at(
            [],
            format!(
                "{} upstream servers; at most {MAX_UPSTREAMS} are allowed",
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
                "`{}` is not a valid name: use letters, digits, `_` and `-`",
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
            call_timeout: milliseconds(entry.timeout_ms, DEFAULT_CALL_TIMEOUT_MS),
            start_timeout: milliseconds(entry.start_timeout_ms, DEFAULT_START_TIMEOUT_MS),
            list_wait: milliseconds(entry.list_wait_ms, DEFAULT_LIST_WAIT_MS),
            trust_unannotated: entry.trust_unannotated,
        });
    }
    Ok(upstreams)
}

/// The configured tools. Each name must be unique among all tools.
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
    for (upstream_name, tool) in &entry.tools {
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
            let mut problem = Problem::at(["tools", upstream_name.as_str()], message);
            problem.path.extend(at.iter().map(|key| (*key).to_owned()));
            problem
        };
        if !is_name(&tool.name) {
            return Err(problem(at, invalid_name_message(&tool.name)));
        }
        if !taken.insert(tool.name.clone()) {
            return Err(problem(
                at,
                format!("another tool already has the name `{}`", tool.name),
            ));
        }
        let mut tool = tool;
        if let Some(description) = &tool.description {
            let described = checked_description(description)
                .map_err(|message| problem(&["description"], message))?;
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
        let mut names = BTreeSet::new();
        for (public, upstream_name) in &tool.arguments {
            if !names.insert(upstream_name) {
                return Err(problem(
                    &["arguments", public],
                    format!("two arguments map to `{}`", text::line(upstream_name, 80)),
                ));
            }
            if tool.preset.contains_key(upstream_name) {
                let message = format!(
                    "`{}` has a fixed value in `preset`",
                    text::line(upstream_name, 80)
                );
                return Err(problem(&["arguments", public], message));
            }
        }
        tools.push((upstream_name.clone(), tool));
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
        .find(|(_, is_set)| *is_set)
    {
        Some((key, _)) => Err(Problem::at([key], format!("`{key}` needs `{other}`"))),
        None => Ok(()),
    };
    match (entry.command.split_first(), &entry.url) {
        (Some(_), Some(_)) => Err(Problem::at(["url"], "use either `command` or `url`")),
        (None, None) => Err(Problem::at(
            [],
            "`command` (what to start) or `url` (where it answers) is missing",
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
            "`{}` is neither an absolute path nor a plain program name",
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
            format!("`{}` is not a valid variable name", text::line(name, 80)),
        )),
        false => Ok(()),
    };
    let mut environment: Vec<(String, OsString)> = INHERITED_VARIABLES
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
                format!("`{}` already has a value in `env`", text::line(name, 80)),
            ));
        }
        match variable(name) {
            Some(value) => environment.push((name.clone(), value)),
            None => missing.push(format!("`{}`", text::line(name, 80))),
        }
    }
    if !missing.is_empty() {
        // Clients pass on different variables; ack-memory's own tools must work anyway.
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
        // The address may contain a password.
        let message = "it is not a valid address: use `http://` or `https://`, a host and a \
                       path, without a user";
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
            let message = format!("the header `{}` cannot be set", text::line(name, 80));
            return Err(Problem::at(["headers", name.as_str()], message));
        }
        if !value.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
            return Err(Problem::at(
                ["headers", name.as_str()],
                "a header value must be visible ASCII",
            ));
        }
        if name.eq_ignore_ascii_case("authorization")
            && (entry.token_env.is_some() || entry.token_file.is_some())
        {
            return Err(Problem::at(
                ["headers", name.as_str()],
                "use either this header or a token",
            ));
        }
    }
    let token = match (&entry.token_env, &entry.token_file) {
        (Some(_), Some(_)) => {
            return Err(Problem::at(
                ["token_file"],
                "use either `token_env` or `token_file`",
            ));
        }
        (Some(name), None) => {
            match variable(name).map(|token| token.to_string_lossy().trim().to_owned()) {
                Some(token) if !token.is_empty() => Token::Inline(token),
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
