//! The README and `docs/` mention everything, their commands can be typed, their links resolve, and
//! their generated parts are up to date. `UPDATE_DOCS=1` regenerates these.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use ack_api::{ErrorCode, NoteKind, settings};
use ack_memory::internal::{Cli, ClientEntry, ConfigFile, ENVIRONMENT, Manifest};
use clap::{CommandFactory, Parser};
use serde_json::Value;

use crate::support::{shell_words, write_file};

/// The page that is generated as a whole.
const COMMAND_LINE: &str = "docs/cli.md";

/// Most bytes of the README.
const README_BYTES: usize = 9_500;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A page: its path from the root of the repository, and its text.
struct Page {
    path: PathBuf,
    text: String,
}

impl Page {
    fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let text = read(&root().join(&path));
        Self { path, text }
    }
}

/// What users read: the README and `docs/`.
fn manual() -> Vec<Page> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| Path::new("docs").join(entry.unwrap().file_name()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    paths.push("README.md".into());
    paths.sort();
    paths.into_iter().map(Page::at).collect()
}

/// The manual, and what contributors read.
fn pages() -> Vec<Page> {
    let mut pages = manual();
    let others = "ARCHITECTURE CHANGELOG CONTRIBUTING SECURITY encoder/MODEL_CARD".split(' ');
    pages.extend(others.map(|name| Page::at(format!("{name}.md"))));
    pages
}

/// Whether a word is in a text, not as a part of a longer one.
fn names(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

#[track_caller]
fn check(what: &str, words: impl IntoIterator<Item = String>) {
    let pages = manual();
    let named = |word: &String| pages.iter().any(|page| names(&page.text, word));
    let missing: Vec<String> = words.into_iter().filter(|word| !named(word)).collect();
    let none: [&str; 0] = [];
    assert_eq!(missing, none, "README.md and docs/ do not name {what}");
}

/// Checks that each word has a row in a table of docs/tools.md.
#[track_caller]
fn check_rows(what: &str, words: impl IntoIterator<Item = String>) {
    let page = Page::at("docs/tools.md");
    let rows = page.text.lines().filter_map(|line| line.strip_prefix("| "));
    let cells: Vec<&str> = rows.filter_map(|row| row.split(" | ").next()).collect();
    let explained = |word: &String| cells.iter().any(|cell| cell.contains(&format!("`{word}`")));
    let missing: Vec<String> = words.into_iter().filter(|word| !explained(word)).collect();
    let none: [&str; 0] = [];
    assert_eq!(missing, none, "docs/tools.md does not explain {what}");
}

/// The fenced blocks of a page: language and lines.
fn blocks(page: &Page) -> Vec<(String, Vec<String>)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, Vec<String>)> = None;
    for line in page.text.lines() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(language), None) => open = Some((language.trim().to_owned(), Vec::new())),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.1.push(line.to_owned());
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    let path = page.path.display();
    assert!(open.is_none(), "a block of {path} is never closed");
    blocks
}

#[test]
fn the_readme_is_short_and_says_how_to_run_the_tests() {
    let readme = Page::at("README.md").text;
    let bytes = readme.len();
    assert!(bytes <= README_BYTES, "{bytes} bytes: move details to docs/");
    assert_contains!(readme, "cargo test");
}

#[test]
fn the_index_of_the_docs_names_every_page() {
    let index = Page::at("docs/README.md").text;
    for page in manual() {
        let name = page.path.file_name().unwrap().to_str().unwrap();
        if name != "README.md" {
            assert_contains!(index, format!("({name})"));
        }
    }
}

/// The program's commands with their arguments, as they are typed: `scopes add`.
fn every_command() -> Vec<(String, clap::Command)> {
    fn walk(command: &clap::Command, prefix: &str, found: &mut Vec<(String, clap::Command)>) {
        for inner in command.get_subcommands() {
            if inner.get_name() == "help" || inner.is_hide_set() {
                continue;
            }
            let name = format!("{prefix}{}", inner.get_name());
            found.push((name.clone(), inner.clone()));
            walk(inner, &format!("{name} "), found);
        }
    }
    let mut cli = Cli::command();
    cli.build();
    let mut found = Vec::new();
    walk(&cli, "", &mut found);
    found
}

fn flags(command: &clap::Command) -> Vec<String> {
    let longs = command.get_arguments().filter_map(clap::Arg::get_long);
    longs
        .filter(|long| !["help", "version"].contains(long))
        .map(|long| format!("--{long}"))
        .collect()
}

#[test]
fn the_docs_name_every_command_and_every_flag() {
    let commands = every_command();
    assert!(commands.iter().any(|(name, _)| name == "scopes add"));
    let all = commands.iter().flat_map(|(_, command)| flags(command));
    check("these flags", all);
    check("these settings of every command", flags(&Cli::command()));
    let names = commands.iter();
    let names = names.map(|(name, _)| format!("ack-memory {name}"));
    check("these commands", names);
}

#[test]
fn the_docs_name_every_tool_variable_and_key() {
    let tools = ack_memory::internal::TOOLS;
    check("these tools", tools.map(str::to_owned));
    let variables = ENVIRONMENT.map(|(name, _)| name.to_owned());
    check("these variables", variables);
    check("these keys of config.toml", settings::keys::<ConfigFile>());
    check("these keys of scope.toml", settings::keys::<Manifest>());
    let text = "these keys of a file of tokens";
    check(text, settings::keys::<ClientEntry>());
}

#[test]
fn the_docs_name_every_error_code_and_kind_of_note() {
    let codes = ErrorCode::ALL.iter().map(ToString::to_string);
    check_rows("these error codes", codes);
    let schema = schemars::schema_for!(NoteKind).to_value();
    let kinds = schema["oneOf"].as_array().unwrap().iter();
    let kinds = kinds.filter_map(|kind| kind["const"].as_str());
    let kinds: Vec<String> = kinds.map(str::to_owned).collect();
    assert!(kinds.contains(&"hidden_by_status".to_owned()), "{schema}");
    check_rows("these kinds of notes", kinds);
}

#[test]
fn every_command_in_the_docs_parses() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for page in pages() {
        for (language, lines) in blocks(&page) {
            if ["json", "jsonc", "rust", "sql", "text", "toml"].contains(&language.as_str()) {
                continue;
            }
            for line in joined(&lines) {
                for words in commands(&line) {
                    tried += 1;
                    if let Err(error) = Cli::try_parse_from(&words)
                        && error.use_stderr()
                    {
                        wrong.push(format!("{}: {line}\n{error}", page.path.display()));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 30, "the docs show only {tried} commands");
}

/// Joins lines that end in a backslash with the next one.
fn joined(lines: &[String]) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    let mut continued = false;
    for line in lines {
        let (text, more) = match line.trim_end().strip_suffix('\\') {
            Some(text) => (text, true),
            None => (line.as_str(), false),
        };
        match whole.last_mut().filter(|_| continued) {
            Some(last) => *last += text,
            None => whole.push(text.to_owned()),
        }
        continued = more;
    }
    whole
}

/// The calls of `ack-memory` in a shell line, as words, with placeholders filled in. `cargo run …
/// --` calls it too.
fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.trim().trim_start_matches("$ ");
    let line = line.split(" # ").next().unwrap_or_default();
    line.split(" | ")
        .flat_map(|part| part.split(" && "))
        .filter_map(|part| {
            let mut words = shell_words(part);
            if words.first().is_some_and(|word| word == "cargo")
                && words.get(1).is_some_and(|word| word == "run")
            {
                let dashes = words.iter().position(|word| word == "--")?;
                words.splice(..=dashes, ["ack-memory".to_owned()]);
            }
            let called = |at: usize| {
                // Before it are at most variables, or another program's words up to `--`.
                let before = words.get(..at).unwrap_or_default();
                before.iter().all(|word| word.contains('='))
                    || before.last().is_some_and(|word| word == "--")
            };
            let named = |word: &String| word == "ack-memory" || word.ends_with("/ack-memory");
            let start = (0..words.len()).find(|at| named(&words[*at]) && called(*at))?;
            let words =
                words[start..].iter().take_while(|word| ![">", "<", "2>"].contains(&word.as_str()));
            Some(words.filter_map(|word| placeholder(word)).collect())
        })
        .collect()
}

/// A word with its placeholder replaced by what a person would type; `None` for an ellipsis.
fn placeholder(word: &str) -> Option<String> {
    let word = word.trim_matches(['[', ']']);
    match word {
        "…" | "..." => None,
        "N" => Some("5".to_owned()),
        "DAY" | "YYYY-MM-DD" => Some("2026-01-31".to_owned()),
        "SHELL" | "<shell>" => Some("bash".to_owned()),
        _ => Some(word.split('|').next().unwrap_or_default().to_owned()),
    }
}

/// The fenced blocks in a language on all pages, each with its page.
fn blocks_in(language: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for page in pages() {
        let own = blocks(&page).into_iter().filter(|(own, _)| own == language);
        found.extend(own.map(|(_, lines)| (page.path.clone(), lines.join("\n"))));
    }
    found
}

#[test]
fn the_toml_in_the_docs_is_a_config_file_or_a_manifest_or_a_clients() {
    for (page, text) in blocks_in("toml") {
        let value: toml::Table = toml::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}\n{text}", page.display()));
        let fits = toml::from_str::<ConfigFile>(&text).is_ok()
            || toml::from_str::<Manifest>(&text).is_ok()
            || toml::from_str::<BTreeMap<String, ClientEntry>>(&text).is_ok();
        let is_codex = value.contains_key("mcp_servers");
        assert!(fits || is_codex, "{}:\n{text}", page.display());
    }
}

#[test]
fn the_json_in_the_docs_is_json() {
    for (page, text) in blocks_in("json") {
        let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
        // Or JSON lines.
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let is_good = is_json(&text) || lines.all(is_json);
        assert!(is_good, "{}:\n{text}", page.display());
    }
}

/// A page without its fenced blocks and its inline code, in which brackets are not links.
fn prose(page: &Page) -> String {
    let mut prose = String::new();
    let mut fenced = false;
    for line in page.text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let outside = line.split('`').step_by(2).collect::<Vec<_>>();
            prose += &outside.join("`");
            prose.push('\n');
        }
    }
    prose
}

/// Where the links and pictures of a page lead.
fn links(page: &Page) -> Vec<String> {
    let prose = prose(page);
    let markdown =
        prose.match_indices("](").filter_map(|(at, _)| prose[at + 2..].split([')', ' ']).next());
    let html = ["href=\"", "src=\"", "srcset=\""]
        .into_iter()
        .flat_map(|key| prose.match_indices(key).map(move |(at, _)| at + key.len()))
        .filter_map(|at| prose[at..].split('"').next());
    markdown.chain(html).map(str::to_owned).collect()
}

/// The anchors of a page: its headings as they are turned into anchors, and those written by hand.
fn anchors(page: &Page) -> BTreeSet<String> {
    let mut fenced = false;
    let mut anchors = BTreeSet::new();
    for line in page.text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if let Some((_, id)) = line.split_once("<a id=\"") {
            anchors.extend(id.split('"').next().map(str::to_owned));
        }
        let heading = line.trim_start_matches('#');
        if fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        anchors.insert(kept);
    }
    anchors
}

#[test]
fn every_link_in_the_docs_resolves() {
    let mut wrong = Vec::new();
    let mut followed = 0;
    for page in pages() {
        for link in links(&page) {
            if link.contains("://") {
                continue;
            }
            followed += 1;
            let (path, anchor) = match link.split_once('#') {
                Some((path, anchor)) => (path, Some(anchor)),
                None => (link.as_str(), None),
            };
            let target = match path {
                "" => page.path.clone(),
                _ => page.path.parent().unwrap().join(path),
            };
            let there = root().join(&target).exists();
            let has = |anchor| there && anchors(&Page::at(&target)).contains(anchor);
            let anchored = anchor.is_none_or(has);
            if !there || !anchored {
                wrong.push(format!("{}: {link}", page.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "they lead nowhere: {wrong:#?}");
    assert!(followed > 100, "the docs have only {followed} links");
}

/// A text in a cell of a table: one line, no bars, and no angle brackets that would be read as
/// HTML.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;").trim_end_matches('.').to_owned()
}

/// The type of a property in a few words.
fn kind(schema: &Value, property: &Value) -> String {
    if let Some(reference) = property["$ref"].as_str() {
        let definition = schema.pointer(reference.trim_start_matches('#')).unwrap();
        return kind(schema, definition);
    }
    if let Some(any) = property["anyOf"].as_array() {
        let kinds: BTreeSet<String> =
            any.iter().map(|one| kind(schema, one)).filter(|kind| kind != "null").collect();
        return kinds.into_iter().collect::<Vec<_>>().join(" or ");
    }
    let list = |key: &str| property[key].as_array().cloned().unwrap_or_default();
    let constants = list("oneOf").into_iter().map(|one| one["const"].clone());
    let words = list("enum").into_iter().chain(constants);
    let words = words.filter_map(|word| word.as_str().map(|word| format!("`{word}`")));
    let words: Vec<String> = words.collect();
    if !words.is_empty() {
        return words.join(", ");
    }
    let described = property["description"].as_str().unwrap_or_default();
    let one = |name: &str| match name {
        "array" => match kind(schema, &property["items"]).as_str() {
            "string" => "list of strings".to_owned(),
            words if words.starts_with('`') => format!("list of {words}"),
            _ => "list".to_owned(),
        },
        "object" => "table".to_owned(),
        "integer" => match (property["minimum"].as_i64(), property["maximum"].as_i64()) {
            (Some(min), Some(max)) if !described.contains(&format!("{min} to {max}")) => {
                format!("{min} to {max}")
            }
            _ => "integer".to_owned(),
        },
        other => other.to_owned(),
    };
    match &property["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            let names = names.filter(|name| *name != "null").map(one);
            names.collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// The properties of a schema file (`schemas/config.json#/$defs/Limits`) as a table.
fn keys(reference: &str) -> String {
    let (path, pointer) = reference.split_once('#').unwrap_or((reference, ""));
    let schema: Value = serde_json::from_str(&read(&root().join(path))).unwrap();
    let within = schema.pointer(pointer).unwrap_or_else(|| panic!("there is no {reference}"));
    let required = within["required"].as_array().cloned().unwrap_or_default();
    let mut table = "| name | value | meaning |\n|---|---|---|\n".to_owned();
    for (name, property) in within["properties"].as_object().unwrap() {
        let meaning = cell(property["description"].as_str().unwrap_or_default());
        let is_required = required.iter().any(|key| key == name) && path.contains("import");
        let must = if is_required { "; required" } else { "" };
        let kind = kind(&schema, property);
        let _ = writeln!(table, "| `{name}` | {kind}{must} | {meaning} |");
    }
    table
}

fn variables() -> String {
    let mut table = "| variable | meaning |\n|---|---|\n".to_owned();
    for (name, meaning) in ENVIRONMENT {
        let _ = writeln!(table, "| `{name}` | {} |", cell(meaning));
    }
    table
}

/// A page with the parts between its markers regenerated.
fn filled(page: &Page) -> String {
    let mut text = String::new();
    let mut inside = false;
    for line in page.text.lines() {
        let marker = line.strip_prefix("<!-- ");
        let marker = marker.and_then(|line| line.strip_suffix(" -->"));
        if marker == Some("end") {
            let path = page.path.display();
            assert!(inside, "{path}: an end without a beginning");
            inside = false;
        }
        if !inside {
            text += line;
            text.push('\n');
        }
        let made = match marker.map(|marker| marker.split_once(": ").unwrap_or((marker, ""))) {
            Some(("keys", reference)) => keys(reference),
            Some(("variables", _)) => variables(),
            _ => continue,
        };
        text += &format!("\n{made}\n");
        inside = true;
    }
    assert!(!inside, "{}: a part has no end", page.path.display());
    text
}

/// The text of [`COMMAND_LINE`].
fn command_line() -> String {
    fn arguments(command: &clap::Command, global: bool) -> String {
        let mut rows = String::new();
        let hidden = |argument: &clap::Arg| {
            argument.is_hide_set() || ["help", "version"].contains(&argument.get_id().as_str())
        };
        let all = command.get_arguments();
        for argument in all.filter(|one| one.is_global_set() == global && !hidden(one)) {
            let value = argument.get_value_names().and_then(|names| names.first());
            let value = value.map(ToString::to_string);
            let takes = argument.get_action().takes_values();
            let name = match (argument.get_long(), value.filter(|_| takes)) {
                (Some(long), Some(value)) => format!("--{long} {value}"),
                (Some(long), None) => format!("--{long}"),
                (None, value) => {
                    value.unwrap_or_else(|| argument.get_id().to_string().to_uppercase())
                }
            };
            let short = argument.get_short().map(|short| format!("`-{short}`, "));
            let mut values = argument.get_possible_values();
            values.retain(|value| takes && !value.is_hide_set());
            let values = values.iter().map(|value| format!("`{}`", value.get_name()));
            let allowed = values.collect::<Vec<_>>().join(", ");
            let allowed = Some(format!(": {allowed}")).filter(|_| !allowed.is_empty());
            let help = argument.get_long_help().or(argument.get_help());
            let help = help.map(ToString::to_string).unwrap_or_default();
            let variable = argument.get_env();
            let variable = variable.map(|name| format!(" [env: {}]", name.display()));
            let short = short.unwrap_or_default() + &format!("`{}`", cell(&name));
            let more = variable.unwrap_or_default() + &allowed.unwrap_or_default();
            let _ = writeln!(rows, "| {short} | {}{more} |", cell(&help));
        }
        if rows.is_empty() { rows } else { format!("| argument | meaning |\n|---|---|\n{rows}\n") }
    }
    let mut page = "# Command line\n\n<!-- Generated: UPDATE_DOCS=1 cargo test docs -->\n\n\
        With `--json`, a command prints what the tools answer, and errors as they do, on standard \
        error. `connect`, `disconnect` and `demo` refuse it; `serve`, `hook`, `completions`, `config \
        edit` and `config schema` do not change with it.\n\n\
        ## Exit codes\n\n\
        | code | meaning |\n|---|---|\n\
        | 0 | answered, or done |\n\
        | 1 | could not; no such memory (`get`); nothing found (`query --exit-code`); errors found (`check`, `doctor`) |\n\
        | 2 | wrong usage |\n\
        | 128 + n | ended by the signal n; `serve --http` finishes its answers and exits with 0 |\n\n\
        `hook` always exits with 0.\n\n\
        Without a terminal nobody can be asked. Then `connect`, `disconnect`, `scopes remove` and \
        `publish` only show what they would do, as `scopes add` always does, and exit with 0: pass \
        `--yes`. `setup` needs `--yes` or `--dry-run`, or exits with 2. The commands that decide \
        need [a token](curation.md#decide), or exit with 1; `--dry-run` and `review --list` do \
        not.\n\n\
        ## Flags of every command\n\n"
        .to_owned();
    page += &arguments(&Cli::command(), true);
    for (name, command) in every_command() {
        let about = command.get_about().map(ToString::to_string);
        let about = cell(&about.unwrap_or_default());
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").trim();
        page += &format!("## ack-memory {name}\n\n{about}.\n\n```text\n{usage}\n```\n\n");
        page += &arguments(&command, false);
    }
    page.trim_end().to_owned() + "\n"
}

#[test]
fn the_generated_parts_of_the_docs_are_up_to_date() {
    let update = std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1");
    let mut pages = manual();
    pages.retain(|page| page.path != Path::new(COMMAND_LINE));
    let made = pages.iter().map(|page| (page.path.clone(), filled(page)));
    let mut made: Vec<(PathBuf, String)> = made.collect();
    made.push((COMMAND_LINE.into(), command_line()));
    let mut stale = Vec::new();
    for (path, text) in made {
        let file = root().join(&path);
        if update {
            write_file(&file, &text);
        }
        if std::fs::read_to_string(&file).unwrap_or_default() != text {
            stale.push(path.display().to_string());
        }
    }
    assert!(stale.is_empty(), "run with UPDATE_DOCS=1: {stale:?}");
}

#[test]
fn the_picture_matches_the_output_of_the_program() {
    let there = |program: &str| {
        let done = Command::new(program).arg("--version").output();
        done.is_ok_and(|done| done.status.success())
    };
    if !there("python3") || !there("git") {
        return;
    }
    let script = root().join("docs/assets/make-picture.py");
    let mut check = Command::new("python3");
    let check = check.arg(script).args(["--check", env!("CARGO_BIN_EXE_ack-memory")]);
    crate::cli::run(check).ok();
}

#[test]
fn files_named_for_contributors_exist() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"].map(Page::at) {
        let inline = page.text.split('`').skip(1).step_by(2);
        let folders =
            ["benches/", "crates/", "docs/", "fuzz/", "schemas/", "src/", "tests/", "tools/"];
        let ours = inline.filter(|word| folders.iter().any(|folder| word.starts_with(folder)));
        for path in ours.filter(|word| !word.contains(['*', ' '])) {
            tried += 1;
            if !root().join(path).exists() {
                wrong.push(format!("{}: {path}", page.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "they do not exist: {wrong:#?}");
    assert!(tried > 15, "only {tried} paths were found");
}
