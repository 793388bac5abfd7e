//! Help: the commands by purpose, with examples, and what to use instead of what people type
//! because other programs have it, or because this one had it.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use super::Cli;

const GROUPS: &[(&str, &[&str])] = &[
    ("Ask", &["query", "get", "context"]),
    ("Write", &["add", "edit"]),
    ("Set up", &["setup", "scopes", "connect", "disconnect", "config", "doctor"]),
    ("Decide", &["review", "approve", "reject", "stage", "replace", "undo"]),
    ("Share", &["publish", "check"]),
    ("Serve", &["serve", "token", "hook"]),
    ("More", &["import", "index", "eval", "demo", "completions"]),
];

/// Examples of commands: the name of a command, and below it lines of its page.
const EXAMPLES: &str = include_str!("examples.txt");

/// The commands with examples, each with the lines of its page.
fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.split("\n\n").filter_map(|one| one.split_once('\n'))
}

pub fn command() -> Command {
    let mut command = Cli::command();
    // `--help` lists the global options on every page; `-h` shows only the command's own.
    command = command.mut_args(|argument| match argument.is_global_set() {
        true => argument.hide_short_help(true),
        false => argument,
    });
    for (name, lines) in examples() {
        command = with_examples(command, name, format!("Examples:\n{}", lines.trim_end()));
    }
    let listed = grouped_commands(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}Options:\n{{options}}\n\n\
         One command: ack-memory help COMMAND, or COMMAND -h.\n\
         Without a command, this is ack-memory doctor.\n\
         Exit codes: 0 done, 1 could not, 2 wrong usage.\n"
    ))
}

/// Adds examples to the page of a command, given as `scopes set`.
fn with_examples(command: Command, name: &str, text: String) -> Command {
    let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
    command.mut_subcommand(first, |inner| match rest {
        "" => inner.after_help(text),
        rest => with_examples(inner, rest, text),
    })
}

fn grouped_commands(command: &Command) -> String {
    let mut out = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(out, "{title}:");
        for (name, one) in
            names.iter().filter_map(|name| Some((name, command.find_subcommand(name)?)))
        {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            // One line each. The command's own page has the full text.
            let short = about.split(['(', ';', ':']).next().unwrap_or_default().trim();
            let _ = writeln!(out, "  {name:<13} {short}");
        }
        out.push('\n');
    }
    out
}

/// Words and flags that do not exist here, some after a command, with what to use instead.
const GUESSES: &str = include_str!("guesses.txt");

/// A line for each tip: the words that it is for, and the tip.
fn guesses() -> impl Iterator<Item = (impl Iterator<Item = &'static str>, &'static str)> {
    let lines = GUESSES.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(words, tip)| (words.split(", "), tip))
}

/// What to use instead of a word that is not a command or flag here. `typed` may begin with the
/// command that it is for.
pub(super) fn guess(typed: &str) -> Option<&'static str> {
    let mut guesses = guesses();
    guesses.find_map(|(mut words, tip)| words.any(|word| word == typed).then_some(tip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn has_examples(command: &Command, name: &str) {
        for inner in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = format!("{name} {}", inner.get_name());
            let help = inner.get_after_help().map(ToString::to_string);
            assert!(help.is_some_and(|help| help.contains("Examples:")), "{name}");
            has_examples(inner, &name);
        }
    }

    #[test]
    fn every_page_has_examples() {
        has_examples(&command(), "ack-memory");
    }

    #[test]
    fn every_group_and_example_names_commands_that_exist() {
        let command = command();
        let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
        for shown in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            assert!(names.clone().any(|name| *name == shown.get_name()), "{shown}");
        }
        for name in names.copied().chain(examples().map(|(name, _)| name)) {
            let mut words = name.split(' ');
            let found = words.try_fold(&command, |inner, word| inner.find_subcommand(word));
            assert!(found.is_some(), "{name}");
        }
        for example in examples().flat_map(|(_, lines)| lines.lines()) {
            assert!(example.len() <= 80, "a terminal breaks it: {example}");
            let line = example.split(" # ").next().unwrap().split(" > ").next().unwrap();
            let words = line.replace("\"container killed exit code 137\"", "x").replace('"', "");
            let parsed = self::command().try_get_matches_from(words.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
    }

    #[test]
    fn every_tip_names_commands_that_exist() {
        for (all, tip) in guesses() {
            let all: Vec<&str> = all.collect();
            for typed in &all {
                let words = typed.split(' ');
                let parsed =
                    command().try_get_matches_from(["ack-memory"].into_iter().chain(words));
                assert!(parsed.is_err(), "{typed}");
            }
            let commands: Vec<&str> =
                tip.split('`').filter(|part| part.starts_with("ack-memory ")).collect();
            let is_flag = all.iter().all(|word| word.starts_with('-'));
            assert!(is_flag || !commands.is_empty(), "{tip}");
            for line in commands {
                // What stands for a client's name is not one.
                let line = line.replace(" CLIENT", " codex");
                let parsed = command().try_get_matches_from(line.split(' '));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
