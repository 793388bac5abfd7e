//! The commands that this program prints for people to run. They act on the same root or database
//! as the command that prints them, so they carry the flags that named it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use directories::BaseDirs;

use super::args::{Cli, Command, Global};
use super::program;
use ack_api::shell::Shell;
use ack_api::text;
use ack_connect::quoted;
use ack_service::config::{ENV_DB, ENV_ROOT};
use ack_sys::files::expand_home;

const PROGRAM: &str = "ack-memory";
const MAX_PATH_CHARS: usize = 4_096;
/// Commands that use no root, so they need no flags.
const ROOTLESS_COMMANDS: [&str; 5] = ["demo", "token", "completions", "man", "help"];

/// The flags that this process was given, each with a space before it.
static FLAGS: OnceLock<String> = OnceLock::new();
/// What starts this program: its name, or a package runner with it.
static STARTS: OnceLock<&str> = OnceLock::new();

/// Remembers the flags that named a root, a database or a pin. A variable or the default needs no
/// flag: a command that is copied finds them again.
pub fn remember_flags(cli: &Cli) {
    let mut global = cli.global.clone();
    // `import --scope` and `index --scope` name the scope to write to; they do not pin.
    if matches!(cli.command, Some(Command::Import(_) | Command::Index(_))) {
        global.pin = None;
    }
    let _ = FLAGS.set(flags(&global));
}

fn flags(global: &Global) -> String {
    let home = BaseDirs::new().map(|folders| folders.home_dir().to_owned());
    let flag_of = |value: &Option<PathBuf>, variable| {
        let value = value.as_ref().filter(|_| !global.variables.contains(&variable))?;
        let path = expand_home(value, home.as_deref());
        Some(std::path::absolute(&path).unwrap_or(path))
    };
    let mut flags = String::new();
    let mut add = |flag: &str, value: &Path| {
        let value = quoted(&text::line(&value.display().to_string(), MAX_PATH_CHARS));
        flags.push_str(&format!(" {flag} {value}"));
    };
    // `connect` writes the default root as a flag.
    let usual = home.as_ref().map(|home| home.join(".ack-mem"));
    let is_usual =
        |root: &PathBuf| usual.as_ref() == Some(root) && std::env::var_os(ENV_ROOT).is_none();
    if let Some(root) = flag_of(&global.root, ENV_ROOT).filter(|root| !is_usual(root)) {
        add("--root", &root);
    }
    if let Some(db) = flag_of(&global.db, ENV_DB) {
        add("--db", &db);
        if let Some(unreviewed) = global.unreviewed {
            add("--unreviewed", Path::new(unreviewed.status().as_str()));
        }
    }
    if let Some(pin) = &global.pin {
        add("--pin", Path::new(pin));
    }
    flags
}

/// A person who reads what this process prints.
pub const SHELL: Shell = Shell { command };

/// The command line for these arguments: `query --next` as `ack-memory --root DIR query --next`.
pub fn command(arguments: &str) -> String {
    let starts = STARTS.get_or_init(|| program::runner().map_or(PROGRAM, |runner| runner.typed));
    let name = arguments.split(' ').next().unwrap_or_default();
    let is_rootless = name.starts_with('-') || ROOTLESS_COMMANDS.contains(&name);
    let flags = FLAGS.get().filter(|_| !is_rootless).map_or("", String::as_str);
    format!("{starts}{flags} {arguments}")
}
