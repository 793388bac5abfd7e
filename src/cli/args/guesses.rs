//! What people type because other programs have it, or because this one had it.

/// Words and flags that do not exist here, some after a command, with what to use instead.
const GUESSES: &[(&[&str], &str)] = &[
    (
        &["mcp", "server", "start", "run", "stdio", "daemon", "http"],
        "to serve MCP, use `ack-memory serve`",
    ),
    (
        &["new", "create", "remember", "save", "store", "write"],
        "to write a memory, use `ack-memory add TITLE`; to add a store, `ack-memory scopes add NAME \
         --store PATH`",
    ),
    (
        &["init", "install", "configure", "quickstart"],
        "to find stores and connect clients, use `ack-memory setup`",
    ),
    (
        &["remove", "rm", "delete", "forget"],
        "to hide a memory from agents, use `ack-memory reject ID`; to remove a scope, \
         `ack-memory scopes remove NAME`",
    ),
    (
        &["uninstall"],
        "to remove this server from a client, use `ack-memory disconnect CLIENT`",
    ),
    (
        &["supersede"],
        "to replace a memory, use `ack-memory replace ID --by ID`",
    ),
    (
        &["promote"],
        "to approve a memory that matters beyond its project, use `ack-memory approve ID --promote`",
    ),
    (
        &[
            "ui",
            "web",
            "open",
            "dashboard",
            "desk",
            "queue",
            "inbox",
            "curate",
            "pending",
        ],
        "to decide what agents may see, use `ack-memory review`",
    ),
    (
        &["info", "health", "diagnose", "debug", "log", "logs"],
        "to see what works and what does not, use `ack-memory doctor`",
    ),
    (
        &["stats", "projects", "stores"],
        "to list the scopes, use `ack-memory scopes`",
    ),
    (
        &["update", "sync", "refresh", "reindex", "embed", "build"],
        "searches pick up every change by themselves; to build the vector tables, use \
         `ack-memory index --all`",
    ),
    (
        &["print-config"],
        "to see what a client needs, use `ack-memory connect CLIENT --dry-run`",
    ),
    (
        &["export", "share", "backup", "dump"],
        "to write approved memories to a folder, use `ack-memory publish NAME --to-folder DIR`",
    ),
    (
        &["publish --format"],
        "`ack-memory publish NAME --to-folder DIR` writes one Markdown file for each memory",
    ),
    (
        &["scopes list", "scopes ls", "scopes show"],
        "`ack-memory scopes` lists them, and `ack-memory scopes --scope NAME` shows one",
    ),
    (
        &["scopes discover"],
        "`ack-memory setup --dry-run` lists the stores on this machine, and `ack-memory setup` adds \
         them",
    ),
    (
        &["scopes claim"],
        "to assign this project to a scope, use `ack-memory scopes set NAME paths+=.`",
    ),
    (
        &["here"],
        "`ack-memory query` lists the newest memories, and `ack-memory` alone says where you are",
    ),
    (
        &["query --page"],
        "`ack-memory query --next` shows the next page, and the query itself the first",
    ),
    (
        &["token --max-status"],
        "`max_status` in config.toml applies to every client: `ack-memory config edit`",
    ),
    (
        &["token --requests-per-minute", "token --upstreams"],
        "a token has neither: limit the rate in the reverse proxy; `ack-memory serve` offers upstream \
         servers where there is no file of tokens",
    ),
    (
        &["serve --access-log", "token --metrics"],
        "the reverse proxy in front of `ack-memory serve --http` logs and counts requests",
    ),
    (&["--in-scope"], "use `--scope NAME`"),
    (&["--in-project"], "use `--project NAME`"),
    (&["--full"], "use `--long`"),
    (&["--max-memories"], "use `--limit N`"),
    (
        &["--scope", "-s", "--project", "-p"],
        "`--scope` and `--project` come after a command that has them; `--pin NAME` limits every \
         command to one scope, and `-C DIR` names the project's folder",
    ),
];

/// What to use instead of a word that is not a command or flag here. `typed` may begin with the
/// command that it is for.
pub(super) fn guess(typed: &str) -> Option<&'static str> {
    let mut guesses = GUESSES.iter();
    let found = guesses.find(|(words, _)| words.contains(&typed));
    found.map(|(_, tip)| *tip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::command;

    #[test]
    fn every_tip_names_commands_that_exist() {
        for (words, tip) in GUESSES {
            for typed in *words {
                let words = typed.split(' ');
                let parsed =
                    command().try_get_matches_from(["ack-memory"].into_iter().chain(words));
                assert!(parsed.is_err(), "{typed}");
            }
            let commands: Vec<&str> = tip
                .split('`')
                .filter(|part| part.starts_with("ack-memory "))
                .collect();
            let is_flag = words.iter().all(|word| word.starts_with('-'));
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
