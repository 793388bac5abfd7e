//! `serve`: over standard input and output, or over HTTP with a bearer token, which is created on
//! first use.

use std::fs;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;

use super::args::{Global, ServeArgs};
use super::output::{report, write_err, write_out};
use super::settings::{explain, inputs, load};
use super::{command, signals};
use crate::cli::error::CliError;
use crate::mcp::http::tokens::TokenFile;
use crate::mcp::http::{HEALTH, PATH, ServeError, ServerExtras, listen};
use crate::offer::Offer;
use crate::toolset::Toolset;
use ack_api::{Diagnostic as _, text};
use ack_gateway::server::Report;
use ack_http::gate::Token;
use ack_service::Service;
use ack_service::config::{Config, ENV_TOKEN};
use ack_sys::files;

const TOKEN_FILE: &str = "http-token";
const TOKEN_BYTES: usize = 32;
const MAX_TOKEN_FILE_BYTES: u64 = 4_096;

/// Where the token comes from, for people.
struct TokenSource {
    note: String,
    /// What a shell puts into a request's header.
    in_shell: Option<String>,
    file: Option<PathBuf>,
}

pub fn run(args: &ServeArgs, global: &Global) -> Result<ExitCode, CliError> {
    match settings(args, global) {
        Ok((config, offer)) => serve(config, offer, args, global).map(|()| ExitCode::SUCCESS),
        // A client hides why a server does not start.
        Err(error) if args.http.is_none() && !std::io::stdin().is_terminal() => {
            serve_in_trouble(&error, args, global)
        }
        Err(error) => Err(error),
    }
}

/// Serves on standard input and output although the settings cannot be used: each call returns the
/// error, until they can.
fn serve_in_trouble(
    error: &CliError,
    args: &ServeArgs,
    global: &Global,
) -> Result<ExitCode, CliError> {
    report(error, global.json);
    let mut config = Config::without_file(inputs(global)?)?;
    config.offline = global.offline;
    config.command = command::command;
    let toolset = Toolset::of(args.surface.unwrap_or_default());
    let offer = Offer { toolset, upstreams: Vec::new() };
    let is_fixed = Arc::new(AtomicBool::new(false));
    let started = Arc::clone(&is_fixed);
    let (args, global) = (args.clone(), global.clone());
    let start = move || {
        let (config, offer) =
            settings(&args, &global).map_err(|error| Box::new(error.body_for(&command::SHELL)))?;
        let service = Service::new(config).leak();
        std::thread::spawn(move || service.ask_buckets());
        started.store(true, Ordering::Relaxed);
        Ok((service, offer))
    };
    let service = Service::new(config).leak();
    let ended = crate::mcp::serve_stdio(service, offer, upstream_report(), Some(Box::new(start)));
    match ended.map_err(CliError::io("serve on", "standard input and output"))? {
        Some(signal) => signals::end(signal),
        None if is_fixed.load(Ordering::Relaxed) => Ok(ExitCode::SUCCESS),
        None => Ok(ExitCode::from(error.exit_code())),
    }
}

/// Writes messages about upstream servers to standard error.
fn upstream_report() -> Report {
    Arc::new(|line: &str| write_err(&format!("{}\n", text::line(line, 1_000))))
}

fn settings(args: &ServeArgs, global: &Global) -> Result<(Config, Offer), CliError> {
    let config = load(global)?;
    let mut offer = Offer::load(&config, args.surface, &|name| std::env::var_os(name))?;
    if global.offline {
        for name in offer.without_network() {
            write_err(&format!(
                "--offline: the upstream server `{name}` is reached over HTTP and is left out\n"
            ));
        }
    }
    Ok((config, offer))
}

fn serve(config: Config, offer: Offer, args: &ServeArgs, global: &Global) -> Result<(), CliError> {
    if global.verbose {
        explain(&config);
    }
    let Some(address) = args.http else {
        if std::io::stdin().is_terminal() && !global.quiet {
            write_err(&format!(
                "waiting for an MCP client on standard input; agents start this themselves after \
                 `{}`. Press Ctrl-C to stop\n",
                command::command("connect")
            ));
        }
        let service = Service::new(config).leak();
        std::thread::spawn(move || service.ask_buckets());
        let result = crate::mcp::serve_stdio(service, offer, upstream_report(), None);
        service.close();
        let ended = result.map_err(CliError::io("serve on", "standard input and output"))?;
        return ended.map_or(Ok(()), |signal| signals::end(signal));
    };
    if args.no_token && !address.ip().is_loopback() {
        return Err(ServeError::Open(address).into());
    }
    let (token, token_source) = token(args)?;
    let tokens =
        args.tokens.as_deref().map(TokenFile::open).transpose().map_err(ServeError::from)?;
    let extras = ServerExtras { tokens, warm: args.warm, report: upstream_report() };
    let listener = listen(address, &args.allow_host, token, extras)?;
    announce(&format!("http://{}", listener.address()), &token_source, global.json)?;
    let ip = listener.address().ip();
    if !ip.is_loopback() {
        write_err(
            "others on the network can reach this address, and HTTP is not encrypted: put a TLS \
             proxy in front of it\n",
        );
    }
    if ip.is_unspecified() && args.allow_host.is_empty() {
        write_err(
            "clients on other machines are refused until `--allow-host` names the host or \
             address they use\n",
        );
    }
    let service = Service::new(config).leak();
    std::thread::spawn(move || service.ask_buckets());
    let result = listener.serve(service, offer);
    service.close();
    result.map_err(CliError::io("serve on", address.to_string()))
}

/// Prints the address and, for people, how to connect. Does not print the token, because terminals
/// and logs keep what they show.
fn announce(base: &str, token_source: &TokenSource, json: bool) -> Result<(), CliError> {
    let url = format!("{base}{PATH}");
    let TokenSource { note, in_shell, file } = token_source;
    if json {
        let file = file.as_ref().map(|path| path.display().to_string());
        let ready = json!({ "url": url, "health": format!("{base}{HEALTH}"), "token_file": file });
        return write_out(&format!("{ready}\n"));
    }
    write_out(&format!("{url}\n"))?;
    let header = in_shell
        .as_ref()
        .map_or_else(String::new, |token| format!(" --header \"Authorization: Bearer {token}\""));
    write_err(&format!(
        "serving MCP at {url}; Ctrl-C ends it\n{note}\nconnect: claude mcp add --transport http ack-memory {url}{header}\n"
    ));
    Ok(())
}

/// The token: from `--token-file`, from the environment, or from this program's own folder, where
/// it is created if missing.
fn token(args: &ServeArgs) -> Result<(Option<Token>, TokenSource), CliError> {
    if args.no_token {
        let note = "no token is needed: every program on this machine can read the memories";
        return Ok((None, TokenSource { note: note.to_owned(), in_shell: None, file: None }));
    }
    if let Some(path) = &args.tokens {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let note = format!("tokens: those of the clients in {}", path.display());
        let in_shell = Some("TOKEN".to_owned());
        return Ok((None, TokenSource { note, in_shell, file: None }));
    }
    let (path, is_new) = if let Some(path) = &args.token_file {
        (std::path::absolute(path).unwrap_or_else(|_| path.clone()), false)
    } else if let Some(value) = std::env::var_os(ENV_TOKEN).filter(|value| !value.is_empty()) {
        let token = Token::new(&value.to_string_lossy())
            .map_err(|reason| ServeError::Token { place: format!("`{ENV_TOKEN}`"), reason })?;
        let (note, in_shell) = (format!("token: {ENV_TOKEN}"), Some(format!("${ENV_TOKEN}")));
        return Ok((Some(token), TokenSource { note, in_shell, file: None }));
    } else {
        let folders = directories::ProjectDirs::from("", "", "ack-memory");
        let path = folders.ok_or(ServeError::NoHome)?.config_dir().join(TOKEN_FILE);
        let is_new = create_token_file(&path)?;
        (path, is_new)
    };
    let (token, shown) = (read(&path)?, path.display());
    let created = if is_new { " (created just now, readable only by you)" } else { "" };
    let note = format!("token: in {shown}{created}");
    let in_shell = Some(format!("$(cat '{shown}')"));
    Ok((Some(token), TokenSource { note, in_shell, file: Some(path) }))
}

/// Reads a token from a file, and warns if others may read it too.
fn read(path: &Path) -> Result<Token, CliError> {
    let io = CliError::io("read the token in", path);
    let file = files::open(path).map_err(&io)?;
    let mode = file.metadata().map_err(&io)?.permissions().mode();
    if mode & 0o077 != 0 {
        write_err(&format!(
            "others may read the token in `{0}` (mode {1:o}); `chmod 600 '{0}'` changes that\n",
            path.display(),
            mode & 0o777
        ));
    }
    let mut text = String::new();
    file.take(MAX_TOKEN_FILE_BYTES).read_to_string(&mut text).map_err(&io)?;
    let place = || format!("`{}`", path.display());
    Ok(Token::new(&text).map_err(|reason| ServeError::Token { place: place(), reason })?)
}

/// Creates the file with a new token, readable only by its owner, if there is none. Returns whether
/// it did. The file appears atomically, and if two servers start at once, only one creates it.
fn create_token_file(path: &Path) -> Result<bool, CliError> {
    if path.exists() {
        return Ok(false);
    }
    let io = CliError::io("keep a token in", path);
    let folder = path.parent().unwrap_or(path);
    files::make_private(folder).map_err(&io)?;
    let token = new_token().map_err(&io)?;
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)
        .map_err(&io)?;
    writeln!(file, "{token}").map_err(&io)?;
    file.as_file().sync_all().map_err(&io)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(io(error.error)),
    }
}

pub(super) fn new_token() -> std::io::Result<String> {
    let mut secret = [0_u8; TOKEN_BYTES];
    getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(secret))
}
