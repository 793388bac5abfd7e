//! The commands that this program prints for people to run. They act on the same root or database
//! as the command that prints them, so they carry the flags that named it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use directories::BaseDirs;

use super::args::{Cli, Command, Global};
use super::program;
use crate::config::{ENV_DB, ENV_ROOT, ENV_SCOPE};
use crate::connect::quoted;
use ack_api::text;
use ack_sys::files::expand_home;

/// How a command begins.
const PROGRAM: &str = "ack-memory ";
/// The longest path that is printed, in characters.
const MAX_PATH_CHARS: usize = 4_096;
/// Commands that use no root, so they need no flags.
const ROOTLESS_COMMANDS: [&str; 6] = ["demo", "token", "model", "completions", "man", "help"];

/// The flags that this process was given, each with a space before it.
static FLAGS: OnceLock<String> = OnceLock::new();
/// What starts this program: its name, or a package runner with it.
static STARTS: OnceLock<String> = OnceLock::new();

/// Remembers the flags that named a root, a database or a pin. A variable or the default needs no
/// flag: a command that is copied finds them again.
pub fn remember_flags(cli: &Cli) {
    let mut global = cli.global.clone();
    // `import --scope` and `index --scope` name the scope to write to; they do not pin.
    if matches!(cli.command, Command::Import(_) | Command::Index(_)) {
        global.pin = None;
    }
    let _ = FLAGS.set(flags(&global));
}

fn flags(global: &Global) -> String {
    let flag_of = |value: &Option<PathBuf>, variable| {
        let value = value.as_ref();
        value
            .filter(|_| !global.variables.contains(&variable))
            .cloned()
    };
    let home = BaseDirs::new().map(|folders| folders.home_dir().to_owned());
    let absolute = |path: PathBuf| {
        let path = expand_home(&path, home.as_deref());
        std::path::absolute(&path).unwrap_or(path)
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
    let root = flag_of(&global.root, ENV_ROOT).map(absolute);
    if let Some(root) = root.filter(|root| !is_usual(root)) {
        add("--root", &root);
    }
    if let Some(db) = flag_of(&global.db, ENV_DB).map(absolute) {
        add("--db", &db);
        if let Some(unreviewed) = global.unreviewed {
            add("--unreviewed", Path::new(unreviewed.status().as_str()));
        }
    }
    let pin = global.pin.as_ref().map(PathBuf::from);
    if let Some(pin) = flag_of(&pin, ENV_SCOPE) {
        add("--pin", &pin);
    }
    flags
}

/// The command line for these arguments: `query --next` as `ack-memory --root DIR query --next`.
pub fn command(arguments: &str) -> String {
    in_text(&format!("{PROGRAM}{arguments}"))
}

/// One of our texts, in which each command carries the flags.
pub fn in_text(text: &str) -> String {
    if !text.contains(PROGRAM) {
        return text.to_owned();
    }
    let starts = STARTS.get_or_init(|| {
        let runner = program::runner();
        runner.map_or_else(|| PROGRAM.trim_end().to_owned(), |runner| runner.command())
    });
    with_flags(text, starts, FLAGS.get().map_or("", String::as_str))
}

fn with_flags(text: &str, starts: &str, flags: &str) -> String {
    if flags.is_empty() && starts == PROGRAM.trim_end() {
        return text.to_owned();
    }
    // What comes before the program's name. A text may pass through here twice.
    let runner = starts.strip_suffix(PROGRAM.trim_end()).unwrap_or_default();
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(PROGRAM) {
        out.push_str(before);
        // A path may end like the program's name.
        let is_program = before
            .chars()
            .last()
            .is_none_or(|last| !is_part_of_a_name(last));
        let command = is_program.then(|| command_in(after)).flatten();
        let has_runner = !runner.is_empty() && before.ends_with(runner);
        let is_bare = command.is_some() && !has_runner;
        out.push_str(if is_bare { starts } else { PROGRAM.trim_end() });
        if command.is_some_and(|command| !ROOTLESS_COMMANDS.contains(&command)) {
            out.push_str(flags);
        }
        out.push(' ');
        rest = after;
    }
    out + rest
}

fn is_part_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || "-_./".contains(letter)
}

/// The command that a text begins with, if any.
fn command_in(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
    let word = text.get(..end.unwrap_or(text.len()))?;
    let is_known = super::args::command().find_subcommand(word).is_some();
    is_known.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_in_a_text_carries_the_flags() {
        let flags = " --root '/my root'";
        for (text, with) in [
            ("ack-memory setup", "ack-memory --root '/my root' setup"),
            (
                "try `ack-memory query --next` or `ack-memory demo`",
                "try `ack-memory --root '/my root' query --next` or `ack-memory demo`",
            ),
            (
                "ack-memory scopes set a x=y  ·  ack-memory doctor",
                "ack-memory --root '/my root' scopes set a x=y  ·  ack-memory --root '/my root' doctor",
            ),
            ("ack-memory --root /x setup", "ack-memory --root /x setup"),
            ("ack-memory is a server", "ack-memory is a server"),
            ("/opt/ack-memory get", "/opt/ack-memory get"),
        ] {
            assert_eq!(with_flags(text, "ack-memory", flags), with);
            assert_eq!(with_flags(text, "ack-memory", ""), text);
        }
        for (text, with) in [
            ("ack-memory get 1", "npx ack-memory --pin a get 1"),
            ("run `ack-memory demo`", "run `npx ack-memory demo`"),
            ("ack-memory is a server", "ack-memory is a server"),
        ] {
            assert_eq!(with_flags(text, "npx ack-memory", " --pin a"), with);
            assert_eq!(
                with_flags(with, "npx ack-memory", " --pin a"),
                with,
                "twice"
            );
        }
    }
}
