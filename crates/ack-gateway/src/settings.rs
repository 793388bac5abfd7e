//! `[upstream.NAME]` of `config.toml`: other MCP servers whose tools are offered with ack-memory's.
//! Only servers that are configured here are contacted; [`crate::server`] connects.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ack_api::number::count;
use ack_api::settings::{Problem, invalid_name_message, is_name};
use ack_api::text;
use ack_sys::files::expand_home;

use ack_api::settings::upstream::{PublicName, UpstreamEntry};

/// Variables that every process gets, because hardly any program runs without them. The owner names
/// all others.
pub const INHERITED_VARIABLES: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

const DEFAULT_TIMEOUT_MS: u32 = 30_000;
const MAX_START: Duration = Duration::from_secs(10);
const MAX_UPSTREAMS: usize = 16;

/// A validated upstream server, with its values from the environment.
#[derive(Clone, PartialEq)]
pub struct Upstream {
    pub name: String,
    pub connection: Connection,
    pub tools: Vec<UpstreamTool>,
    pub call_timeout: Duration,
    /// How long it may take to connect and list its tools.
    pub start_timeout: Duration,
    pub trust_unannotated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamTool {
    pub upstream_name: String,
    pub name: String,
}

#[derive(Clone, PartialEq)]
pub enum Connection {
    Process { program: PathBuf, arguments: Vec<String>, environment: Vec<(String, OsString)> },
    Http { url: String, token: Option<String> },
    Unusable(String),
}

impl fmt::Debug for Upstream {
    /// Leaves out what may be secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Upstream({}: {})", self.name, self.connection)
    }
}

impl fmt::Display for Connection {
    /// Leaves out what may be secret: arguments, environment, token.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { program, arguments, .. } if arguments.is_empty() => {
                write!(out, "{}", program.display())
            }
            Self::Process { program, arguments, .. } => {
                let arguments = count(arguments.len() as u64, "argument");
                write!(out, "{} with {arguments}", program.display())
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
pub fn build(
    entries: &BTreeMap<String, UpstreamEntry>,
    mut taken: BTreeSet<String>,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<Upstream>, Problem> {
    if entries.len() > MAX_UPSTREAMS {
        let servers = entries.len();
        let message = format!("{servers} upstream servers; at most {MAX_UPSTREAMS} are allowed");
        return Err(Problem::at([], message));
    }
    let mut upstreams = Vec::new();
    for (name, entry) in entries {
        let under = |problem: Problem| problem.below_path(&[name]);
        if !is_name(name) {
            let shown = text::line(name, 80);
            let message =
                format!("`{shown}` is not a valid name: use letters, digits, `_` and `-`");
            return Err(Problem::at([name], message));
        }
        let tools = tools(entry, &mut taken).map_err(under)?;
        let timeout_ms = entry.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
        let call_timeout = Duration::from_millis(u64::from(timeout_ms));
        upstreams.push(Upstream {
            name: name.clone(),
            connection: connection(entry, home, variable).map_err(under)?,
            tools,
            call_timeout,
            start_timeout: call_timeout.min(MAX_START),
            trust_unannotated: entry.trust_unannotated,
        });
    }
    Ok(upstreams)
}

/// The offered tools. Each name must be unique among all tools.
fn tools(
    entry: &UpstreamEntry,
    taken: &mut BTreeSet<String>,
) -> Result<Vec<UpstreamTool>, Problem> {
    if entry.tools.is_empty() {
        return Err(Problem::at(
            [],
            "`tools` is missing: only tools that it names are offered, as `THEIR_NAME = \"NAME\"`",
        ));
    }
    let mut tools = Vec::new();
    for (upstream_name, PublicName(name)) in &entry.tools {
        let wrong = |message: String| Err(Problem::at(["tools", upstream_name], message));
        if !is_name(name) {
            return wrong(invalid_name_message(name));
        }
        if !taken.insert(name.clone()) {
            return wrong(format!("another tool already has the name `{name}`"));
        }
        tools.push(UpstreamTool { upstream_name: upstream_name.clone(), name: name.clone() });
    }
    Ok(tools)
}

fn connection(
    entry: &UpstreamEntry,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Connection, Problem> {
    match (entry.command.split_first(), &entry.url) {
        (Some(_), Some(_)) => Err(Problem::at(["url"], "use either `command` or `url`")),
        (None, None) => {
            Err(Problem::at([], "`command` (what to start) or `url` (where it answers) is missing"))
        }
        (Some(_), None) if entry.token_env.is_some() => {
            Err(Problem::at(["token_env"], "`token_env` needs `url`"))
        }
        (Some((program, arguments)), None) => process(entry, program, arguments, home, variable),
        (None, Some(_)) if !entry.env_from.is_empty() => {
            Err(Problem::at(["env_from"], "`env_from` needs `command`"))
        }
        (None, Some(url)) => http(entry, url, variable),
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
        let shown = text::line(&program.display().to_string(), 80);
        let message = format!("`{shown}` is neither an absolute path nor a plain program name");
        return Err(Problem::at(["command"], message));
    }
    let inherited = INHERITED_VARIABLES.iter();
    let inherited = inherited.filter_map(|name| Some(((*name).to_owned(), variable(name)?)));
    let mut environment: Vec<(String, OsString)> = inherited.collect();
    let mut missing = Vec::new();
    for name in &entry.env_from {
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!("`{}` is not a valid variable name", text::line(name, 80));
            return Err(Problem::at(["env_from"], message));
        }
        match variable(name) {
            Some(value) => environment.push((name.clone(), value)),
            None => missing.push(format!("`{}`", text::line(name, 80))),
        }
    }
    if !missing.is_empty() {
        // Clients pass on different variables; ack-memory's own tools must work anyway.
        let missing = missing.join(", ");
        let reason = format!("{missing} of `env_from` is not set where this server runs");
        return Ok(Connection::Unusable(reason));
    }
    Ok(Connection::Process { program, arguments: arguments.to_vec(), environment })
}

fn http(
    entry: &UpstreamEntry,
    url: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Connection, Problem> {
    let variable_of = |name: &String| {
        let value = variable(name)?.to_string_lossy().trim().to_owned();
        Some(value).filter(|value| !value.is_empty())
    };
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if authority.is_empty()
        || authority.contains('@')
        || url.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        // The address may contain a password.
        let message = "it is not a valid address: use `http://` or `https://`, a host and a \
                       path, without a user";
        return Err(Problem::at(["url"], message));
    }
    let token = entry.token_env.as_ref().and_then(variable_of);
    if let (Some(name), None) = (&entry.token_env, &token) {
        let name = text::line(name, 80);
        let reason = format!("`{name}` of `token_env` is not set where this server runs");
        return Ok(Connection::Unusable(reason));
    }
    Ok(Connection::Http { url: url.to_owned(), token })
}
