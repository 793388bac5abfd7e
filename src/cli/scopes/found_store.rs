//! Asks what to do with a store that was found, does it, and prints the equivalent
//! command.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use super::add;
use super::discover::with_tilde;
use crate::cli::args::AddArgs;
use crate::cli::error::CliError;
use crate::cli::{command, prompt};
use crate::config::Config;
use crate::connect::quoted;
use crate::recogniser::FoundStore;
use crate::scope::KnownScopes;
use ack_api::memory::Unreviewed;

/// The owner's answer about a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Every memory counts as approved.
    Trust,
    /// Memories stay hidden until someone approves them; those already approved are shown.
    Review,
    /// It is not added.
    Skip,
}

/// Asks what to do with a store. Enter is the safe answer. `None` at the end of the input.
pub fn ask(found: &FoundStore, home: Option<&Path>) -> Option<Answer> {
    let keys: &[(char, &str)] = match found.approved {
        Some(_) => &[('a', "add"), ('s', "skip")],
        None => &[('r', "review first"), ('t', "trust all"), ('s', "skip")],
    };
    let answers = match found.approved {
        Some(_) => "(a)dd, (s)kip",
        None => "(r)eview first, (t)rust all, (s)kip",
    };
    // If the list goes elsewhere, the question names the store.
    let store_line = match std::io::stdout().is_terminal() {
        true => String::new(),
        false => format!(", {}", with_tilde(&found.path, home)),
    };
    let question = format!("    {}{store_line}: {answers}", found.kind.title());
    Some(match prompt::choose(&question, keys)? {
        't' => Answer::Trust,
        's' => Answer::Skip,
        _ => Answer::Review,
    })
}

/// The equivalent command.
pub fn command(found: &FoundStore, name: &str, answer: Answer) -> String {
    let trusts = if answer == Answer::Trust {
        " --unreviewed approved"
    } else {
        ""
    };
    let store = quoted(&found.path.display().to_string());
    command::command(&format!("scopes add {name} --store {store}{trusts} --yes"))
}

/// Adds the store as a scope.
pub fn add(
    config: &Config,
    known: &mut KnownScopes,
    found: &FoundStore,
    name: &str,
    answer: Answer,
) -> Result<(), CliError> {
    let args = AddArgs {
        reference: None,
        name: name.to_owned(),
        store: PathBuf::from(&found.path),
        description: None,
        projects: Vec::new(),
        paths: Vec::new(),
        remotes: Vec::new(),
        private: false,
        unreviewed: (answer == Answer::Trust).then_some(Unreviewed::Approved),
        no_index: true,
        yes: true,
    };
    let planned = add::plan(config, known, &args)?;
    planned.write()?;
    known.add(name, &found.path);
    Ok(())
}
