//! The findings about clients: what each of them starts, and over which memories.

use std::path::{Path, PathBuf};

use super::checks::{DoctorFinding, Level};
use crate::cli::command::command;
use crate::cli::connect::{installed, places, unreviewed};
use crate::cli::program::program_on_path;
use ack_connect::ours::write_rule;
use ack_connect::status::{HookState, ProgramEntry, Start, Status, status};
use ack_connect::{Client, ClientPlaces};
use ack_service::config::{Config, ENV_DB, ENV_ROOT};
use ack_service::scope::known::is_same;
use ack_sys::files::{expand_home, with_tilde};

pub fn clients(config: &Config) -> Vec<DoctorFinding> {
    let Ok(places) = places(config) else {
        return Vec::new();
    };
    let installed = installed(config).unwrap_or_default();
    let mut found = Vec::new();
    for client in Client::ALL.iter().copied() {
        let status = status(client, &places);
        let is_there = |it: &Status| it.starts.is_some() || installed.contains(&client);
        if let Some(status) = status.filter(is_there) {
            found.extend(one_client(client, &status, &places, config));
        }
    }
    found
}

fn one_client(
    client: Client,
    status: &Status,
    places: &ClientPlaces,
    config: &Config,
) -> Vec<DoctorFinding> {
    let title = title(client.name());
    let home = config.home.as_deref();
    let problem = |(path, reason): &(PathBuf, String)| {
        let message = format!("its file {}: {reason}", with_tilde(path, home));
        DoctorFinding::new(Level::Error, "", message)
            .advise(format!("fix that file; the documentation of {title} describes it"))
    };
    let mut found: Vec<DoctorFinding> = status.problems.iter().map(problem).collect();
    // Nothing is known about an entry in a file that cannot be read.
    if status.problems.iter().all(|(path, _)| *path != status.file) {
        found.insert(0, connection(client, status, config));
        found.extend(hook_that_never_runs(client, &title, status));
        found.extend(unprotected(client, status, config));
    }
    for other in unreviewed(config, client, places) {
        let mut finding = DoctorFinding::new(Level::Warning, "", other.described());
        if other.can_switch_off() {
            finding.advice.push(format!("`{}` offers to switch it off", command("setup")));
        } else {
            finding.advice.extend(other.advice);
        }
        found.push(finding);
    }
    if let Some(first) = found.first_mut() {
        first.subject = title;
    }
    found
}

/// A hook that is set up and never runs: sessions start without memories, and nobody says so.
fn hook_that_never_runs(client: Client, title: &str, status: &Status) -> Option<DoctorFinding> {
    let (message, advice) = match status.hook? {
        HookState::On | HookState::Missing => return None,
        HookState::Untrusted => (
            "the session hook waits for your trust, so sessions start without memories",
            format!("open `/hooks` in {title} and trust it"),
        ),
        HookState::Overruled => (
            "there is a hooks.json next to the settings, so the session hook in them is ignored",
            "move the entry to hooks.json".to_owned(),
        ),
        HookState::SwitchedOff if client == Client::Codex => (
            "the session hook is switched off, so sessions start without memories",
            format!("open `/hooks` in {title}, or look at `[features]` in its config.toml"),
        ),
        HookState::SwitchedOff => (
            "`disableAllHooks` keeps the session hook from running",
            format!("remove it from the settings of {title}"),
        ),
    };
    // What its owner switched off is not wrong.
    let is_wanted = status.hook == Some(HookState::SwitchedOff);
    let level = if is_wanted { Level::Note } else { Level::Warning };
    Some(DoctorFinding::new(level, "", message).advise(advice))
}

/// A connected client whose own tools may write below the root that it serves, although the client
/// has rules against that.
fn unprotected(client: Client, status: &Status, config: &Config) -> Option<DoctorFinding> {
    let (denied, home) = (status.denied.as_ref()?, config.home.as_deref()?);
    let Some(Start::Program(entry)) = &status.starts else {
        return None;
    };
    let served = served_by(entry, config);
    let rule = write_rule(&served.path, home).filter(|_| !served.is_database)?;
    if denied.contains(&rule) {
        return None;
    }
    let root = with_tilde(&served.path, Some(home));
    let message = format!("no rule keeps its file tools from writing below {root}");
    let finding = DoctorFinding::new(Level::Warning, "", message);
    Some(finding.run(&format!("connect {}", client.name())))
}

fn connection(client: Client, status: &Status, config: &Config) -> DoctorFinding {
    let hook = match status.hook {
        Some(HookState::On) => ", session hook on",
        Some(HookState::Missing) => ", session hook off",
        // The next finding says more.
        Some(HookState::Untrusted | HookState::SwitchedOff | HookState::Overruled) | None => "",
    };
    let (level, message) = match &status.starts {
        None => (Level::Note, "installed, not connected".to_owned()),
        Some(Start::Address(address)) => (Level::Ok, format!("connected to {address}{hook}")),
        Some(Start::Unknown) => {
            (Level::Warning, format!("its entry in {} has no command", status.file.display()))
        }
        Some(Start::Program(entry)) => program(entry, hook, config),
    };
    let finding = DoctorFinding::new(level, "", message);
    if level == Level::Ok { finding } else { finding.run(&format!("connect {}", client.name())) }
}

/// What a client's entry starts, and how the memories that it serves differ from those of a
/// configuration.
fn program(entry: &ProgramEntry, hook: &str, config: &Config) -> (Level, String) {
    let program = &entry.program;
    let path = match program.components().count() {
        1 => program_on_path(&program.to_string_lossy()),
        _ => Some(program.clone()).filter(|path| path.is_file()),
    };
    let Some(path) = path else {
        return (Level::Error, format!("connected, but {} does not exist", program.display()));
    };
    let is_this_program = std::env::current_exe().is_ok_and(|running| is_same(&running, &path));
    // A package runner starts whichever version it finds.
    if entry.runner().is_none() && !is_this_program {
        let message = format!("connected{hook}; starts another binary, {}", path.display());
        return (Level::Warning, message);
    }
    let (served, home) = (served_by(entry, config), config.home.as_deref());
    let path = config.db.as_ref().unwrap_or(&config.root).value.as_path();
    if served.is_database != config.db.is_some() || !is_same(&served.path, path) {
        let (theirs, ours) = (with_tilde(&served.path, home), with_tilde(path, home));
        return (Level::Warning, format!("connected{hook}, but it serves {theirs}, not {ours}"));
    }
    let pin = config.pinned.as_ref().map(|pin| pin.value.as_str());
    let scope = match (served.pin.as_deref(), pin) {
        (theirs, ours) if theirs == ours => String::new(),
        (Some(theirs), None) => format!("; it serves only the scope `{theirs}`"),
        (Some(theirs), Some(ours)) => format!("; it serves the scope `{theirs}`, not `{ours}`"),
        (None, ours) => format!("; it serves every scope, not only `{}`", ours.unwrap_or_default()),
    };
    // What differs is one scope, as its owner chose.
    (Level::Ok, format!("connected{hook}{scope}"))
}

struct Served {
    path: PathBuf,
    is_database: bool,
    pin: Option<String>,
}

fn served_by(entry: &ProgramEntry, config: &Config) -> Served {
    let home = config.home.as_deref();
    // A client that names no place passes on the variables of the shell it was started from.
    let names_a_place = entry.flag("--root").is_some() || entry.flag("--db").is_some();
    let inherited = |variable: &str| {
        let value = std::env::var_os(variable).filter(|_| !names_a_place)?;
        value.into_string().ok().filter(|value| !value.is_empty())
    };
    let place = |flag: &str, variable: &str| {
        let named = entry.flag(flag).map(str::to_owned);
        let named = named.or_else(|| entry.variables.get(variable).cloned());
        let named = named.or_else(|| inherited(variable))?;
        Some(expand_home(Path::new(&named), home))
    };
    let database = place("--db", ENV_DB);
    let usual = || home.map(|home| home.join(".ack-mem")).unwrap_or_default();
    Served {
        is_database: database.is_some(),
        path: database.or_else(|| place("--root", ENV_ROOT)).unwrap_or_else(usual),
        pin: entry.flag("--pin").map(str::to_owned),
    }
}

/// `claude-code` as people write it.
fn title(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        first.to_uppercase() + rest
    });
    words.collect::<Vec<_>>().join(" ")
}
