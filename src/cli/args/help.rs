//! Help: the commands by purpose, with examples.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use super::Cli;

/// The commands by purpose.
const GROUPS: &[(&str, &[&str])] = &[
    ("Ask", &["query", "get", "context"]),
    ("Write", &["add", "edit"]),
    (
        "Set up",
        &[
            "setup",
            "scopes",
            "connect",
            "disconnect",
            "config",
            "doctor",
        ],
    ),
    (
        "Decide",
        &["review", "approve", "reject", "stage", "replace", "undo"],
    ),
    ("Share", &["publish", "check"]),
    ("Serve", &["serve", "token", "hook"]),
    ("More", &["import", "index", "eval", "demo", "completions"]),
];

/// Examples of commands.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "query",
        &[
            "ack-memory query \"container killed exit code 137\"",
            "ack-memory query deadlock -s ledger-api --since 2w",
            "ack-memory query --next",
            "ack-memory query -t ci -a -n 20      # the newest with a tag, including unreviewed \
             ones",
        ],
    ),
    (
        "get",
        &[
            "ack-memory get 1                     # the first result of the last query",
            "ack-memory get 7be2-2                # the beginning of an id",
            "ack-memory get 1 --include links --include history",
        ],
    ),
    (
        "context",
        &[
            "ack-memory context",
            "ack-memory context --preview",
            "ack-memory context -C ~/code/ledger-api deadlock",
        ],
    ),
    ("setup", &["ack-memory setup", "ack-memory setup --yes"]),
    (
        "scopes",
        &["ack-memory scopes", "ack-memory scopes -s platform"],
    ),
    (
        "connect",
        &[
            "ack-memory connect",
            "ack-memory connect claude-code --dry-run",
        ],
    ),
    ("disconnect", &["ack-memory disconnect claude-code"]),
    ("config", &["ack-memory config", "ack-memory config edit"]),
    (
        "doctor",
        &["ack-memory doctor", "ack-memory doctor --upstreams"],
    ),
    (
        "review",
        &["ack-memory review", "ack-memory review --scope inbox"],
    ),
    (
        "serve",
        &["ack-memory serve", "ack-memory serve --http 7767"],
    ),
    (
        "import",
        &["ack-memory import memories.jsonl --scope my-project"],
    ),
    (
        "publish",
        &[
            "ack-memory publish mine --to-folder docs/memory --dry-run",
            "ack-memory publish mine --to-folder docs/memory --yes",
        ],
    ),
    (
        "check",
        &[
            "ack-memory check docs/memory",
            "ack-memory check docs/memory --format github --strict",
        ],
    ),
    ("index", &["ack-memory index --all"]),
    ("eval", &["ack-memory eval questions.jsonl"]),
    ("demo", &["ack-memory demo", "ack-memory demo ./demo-root"]),
    (
        "completions",
        &["ack-memory completions bash > ~/.local/share/bash-completion/completions/ack-memory"],
    ),
    (
        "approve",
        &[
            "ack-memory approve 7be2 19f7",
            "ack-memory approve 7be2 --promote",
            "ack-memory approve --project ledger-api --dry-run",
        ],
    ),
    ("reject", &["ack-memory reject 7be2 --because outdated"]),
    (
        "stage",
        &["ack-memory stage 7be2", "ack-memory stage 7be2 --until 2w"],
    ),
    (
        "replace",
        &[
            "ack-memory replace 7be2 --by 19f7            # 19f7 is the newer one",
            "ack-memory replace 7be2 --by 19f7 --merge    # both say the same",
        ],
    ),
    (
        "add",
        &[
            "ack-memory add \"Exit code 137 is SIGKILL\" --fact \"128 + 9\" --tag docker",
            "ack-memory add                       # write it in your editor",
        ],
    ),
    ("edit", &["ack-memory edit 7be2"]),
    ("undo", &["ack-memory undo", "ack-memory undo --dry-run"]),
    ("token", &["ack-memory token ana --file tokens.toml"]),
    (
        "hook",
        &[
            "ack-memory hook session-start --client claude-code",
            "ack-memory hook pre-tool-use --client codex",
        ],
    ),
    (
        "scopes add",
        &[
            "ack-memory scopes add claude-mem --store ~/.claude-mem/claude-mem.db",
            "ack-memory scopes add notes --store ~/notes --private --yes",
        ],
    ),
    (
        "scopes set",
        &[
            "ack-memory scopes set claude-mem unreviewed=approved",
            "ack-memory scopes set api projects+=web description=",
            "ack-memory scopes set api paths+=.",
        ],
    ),
    ("scopes remove", &["ack-memory scopes remove claude-mem"]),
];

/// The command line with its help.
pub fn command() -> Command {
    let mut command = Cli::command();
    // `--help` lists the global options on every page; `-h` shows only the command's own.
    command = command.mut_args(|argument| match argument.is_global_set() {
        true => argument.hide_short_help(true),
        false => argument,
    });
    for (name, examples) in EXAMPLES {
        let text = format!("Examples:\n  {}", examples.join("\n  "));
        command = with_examples(command, name, text);
    }
    let listed = grouped_commands(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}Options:\n{{options}}\n\n\
         One command: ack-memory help COMMAND, or COMMAND -h.\n\
         Without a command, ack-memory shows the current project and scope.\n\
         Exit codes: 0 done, 1 could not, 2 wrong usage.\n"
    ))
}

/// Adds examples to the page of a command, given as `scopes set`. A build may lack the command.
fn with_examples(command: Command, name: &str, text: String) -> Command {
    let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
    if command.find_subcommand(first).is_none() {
        return command;
    }
    command.mut_subcommand(first, |inner| match rest {
        "" => inner.after_help(text),
        rest => with_examples(inner, rest, text),
    })
}

/// The commands by group. Commands without a group come last.
fn grouped_commands(command: &Command) -> String {
    let shown: Vec<&Command> = command
        .get_subcommands()
        .filter(|one| !one.is_hide_set())
        .collect();
    let grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let more: Vec<&str> = shown
        .iter()
        .map(|one| one.get_name())
        .filter(|name| !grouped(name))
        .collect();
    let mut out = String::new();
    for (title, names) in GROUPS.iter().copied().chain([("Others", more.as_slice())]) {
        if names.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{title}:");
        for name in names {
            let Some(one) = shown.iter().find(|one| one.get_name() == *name) else {
                continue;
            };
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            // One line each. The command's own page has the full text.
            let short = about
                .split(['(', ';', ':'])
                .next()
                .unwrap_or_default()
                .trim();
            let _ = writeln!(out, "  {name:<13} {short}");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn has_examples(command: &Command, name: &str) {
        for inner in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = format!("{name} {}", inner.get_name());
            let help = inner.get_after_help().map(ToString::to_string);
            assert!(
                help.is_some_and(|help| help.contains("Examples:")),
                "{name}"
            );
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
        for name in names.chain(EXAMPLES.iter().map(|(name, _)| name)) {
            let mut words = name.split(' ');
            let found = words.try_fold(&command, |inner, word| inner.find_subcommand(word));
            assert!(found.is_some(), "{name}");
        }
        for example in EXAMPLES.iter().flat_map(|(_, examples)| examples.iter()) {
            let line = example
                .split(" # ")
                .next()
                .unwrap()
                .split(" > ")
                .next()
                .unwrap();
            let words = line
                .replace("\"container killed exit code 137\"", "x")
                .replace('"', "");
            let parsed = self::command().try_get_matches_from(words.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
    }
}
