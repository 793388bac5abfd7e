//! `token`: creates a token for a client of `serve --http --tokens`. Prints the token once and
//! stores only its hash in the file.

use std::io::ErrorKind;
use std::path::Path;

use ack_api::time::utc_day;
use jiff::Timestamp;
use serde_json::json;
use toml_edit::{DocumentMut, Item};

use super::args::TokenArgs;
use super::command::command;
use super::output::{write_err, write_json, write_out};
use super::serve::new_token;
use crate::cli::error::CliError;
use crate::mcp::http::ServeError;
use crate::mcp::http::tokens::{self, ClientEntry, TokensError};
use ack_service::config::Config;
use ack_service::scope::Registry;
use ack_sys::{files, text_file};

const MAX_BYTES: u64 = 1 << 20;

/// Runs `token`. `config` says which scopes there are; `None` if it cannot be read.
pub fn run(args: &TokenArgs, config: Option<&Config>, json: bool) -> Result<(), CliError> {
    let today = utc_day(Timestamp::now());
    if let Some(day) = args.last_day.filter(|day| *day < today) {
        let message =
            format!("{day} is over, so nobody could use the token; today is {today} in UTC");
        return Err(CliError::usage("last-day", message));
    }
    let token = new_token().map_err(CliError::io("make", "a token"))?;
    let entry = ClientEntry {
        hash: tokens::hash(&token),
        scopes: (!args.scopes.is_empty()).then(|| args.scopes.iter().cloned().collect()),
        last_day: args.last_day.map(|day| day.to_string()),
    };
    let name = &args.name;
    let text = toml::to_string(&entry).unwrap_or_default();
    let table: DocumentMut = text.parse().unwrap_or_default();
    let table = Item::Table(table.as_table().clone());
    match &args.file {
        None => {
            let mut document = DocumentMut::new();
            document.insert(name, table);
            write_err(&format!("add this to the token file:\n\n{document}\n"));
        }
        Some(file) => {
            add(file, name, table, args.replace)?;
            let file = file.display();
            write_err(&format!("`{name}` is in {file}, with the hash of its token\n"));
        }
    }
    let config = config.filter(|_| !args.scopes.is_empty());
    let known = config.map(|config| Registry::new(config).discover().scopes);
    let is_missing = |name: &&String| {
        known.as_ref().is_some_and(|known| known.iter().all(|scope| scope.name != **name))
    };
    for scope in args.scopes.iter().filter(is_missing) {
        write_err(&format!(
            "there is no scope `{scope}` here; `{name}` sees it once there is one \
             (`{}` lists the scopes)\n",
            command("scopes")
        ));
    }
    write_err(&format!(
        "the token of `{name}`, a secret that is shown only now; `{name}` sends it with each \
         request, as `Authorization: Bearer TOKEN`:\n"
    ));
    if json {
        return write_json(&json!({ "client": name, "token": token }));
    }
    write_out(&format!("{token}\n"))
}

/// Adds a client's table to a file, atomically.
fn add(path: &Path, name: &str, table: Item, may_replace: bool) -> Result<(), CliError> {
    let io = CliError::io("write the tokens to", path);
    let text = match files::read_text(path, MAX_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.map_err(&io)?,
    };
    if !text.trim().is_empty() {
        // The existing content must be valid, or the server would not accept the new client either.
        tokens::check(path).map_err(ServeError::from)?;
    }
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        ServeError::from(TokensError::Wrong {
            path: path.to_owned(),
            reason: error.message().to_owned(),
        })
    })?;
    if document.contains_key(name) && !may_replace {
        let message = format!("client `{name}` is in the file already");
        let hint = "choose another name, or give this client a new token with --replace";
        return Err(CliError::usage("name", message).with_hint(hint));
    }
    document.insert(name, table);
    text_file::replace(path, &document.to_string()).map_err(&io)
}
