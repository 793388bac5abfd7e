//! The stores that people have: each is written here as its program documents it, found by `setup`,
//! read in place, and left as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cli::{ack, add_scope, run};
use crate::connect::{Home, contents};
use crate::curate::decide;
use crate::store_support::serve_notes;
use crate::support::{Ask, Root, fingerprint};
use crate::terminal::Session;

/// A store of another program, see `program_stores.toml`.
#[derive(serde::Deserialize)]
struct Sample {
    name: String,
    store: String,
    titles: Vec<String>,
    word: String,
    files: BTreeMap<String, String>,
}

/// A word that is in files of the stores and in no memory.
const NO_MEMORY: &str = "zeppelin";

fn samples() -> Vec<Sample> {
    let text = include_str!("program_stores.toml");
    let mut all: BTreeMap<String, Vec<Sample>> = toml::from_str(text).unwrap();
    all.remove("store").unwrap()
}

fn home() -> Home {
    let home = Home::new();
    home.write("src/shop/.git/HEAD", "ref: refs/heads/main\n");
    home
}

fn write(home: &Home, sample: &Sample) -> PathBuf {
    for (file, text) in &sample.files {
        let path = format!("{}/{file}", sample.store);
        home.write(path.trim_end_matches('/'), text);
    }
    home.path(&sample.store)
}

fn titles(found: &Value) -> Vec<String> {
    let found = found.as_array().unwrap().iter();
    let mut titles: Vec<String> =
        found.map(|memory| memory["title"].as_str().unwrap().to_owned()).collect();
    titles.sort();
    titles
}

#[test]
fn setup_names_each_store_with_its_count_and_changes_nothing() {
    let home = home();
    for sample in &samples() {
        write(&home, sample);
    }
    // Instructions alone, empty folders and templates are no stores.
    home.write("src/shop/QWEN.md", "# Rules\n\nUse tabs.\n");
    home.write("src/shop/.kilo/rules/memory-bank/brief.md", "# Brief\n\n## Later\n");
    fs::create_dir_all(home.path(".openclaw/workspace-empty")).unwrap();
    let before = contents(home.0.path());
    let shown = run(&mut home.in_shop(&["setup", "--dry-run"])).ok();
    for sample in &samples() {
        let (count, one) = (sample.titles.len(), ["memories", "memory"]);
        let word = one[usize::from(count == 1)];
        let line = format!("  {}: {count} {word}, ~/{}\n", sample.name, sample.store);
        assert_contains!(shown, &line);
    }
    let answer = run(&mut home.in_shop(&["setup", "--dry-run", "--json"])).json();
    let stores = answer["stores"].as_array().unwrap();
    assert_eq!(stores.len(), samples().len(), "{answer:#}");
    assert!(stores.iter().all(|store| store["action"] == "would_add"));
    let commands: Vec<&str> =
        stores.iter().map(|store| store["command"].as_str().unwrap()).collect();
    for name in "memory-bank-shop goose goose-shop gemini-cli qwen-code-shop".split(' ') {
        let add = format!("ack-memory scopes add {name} ");
        assert!(commands.iter().any(|it| it.starts_with(&add)), "{name}: {commands:#?}");
    }
    // Each under a name of its own, as `setup` adds them.
    let names: BTreeSet<_> = commands.iter().map(|it| it.split(' ').nth(3)).collect();
    assert_eq!(names.len(), commands.len(), "{commands:#?}");
    assert_eq!(contents(home.0.path()), before);
}

#[test]
fn each_store_is_found_after_approval_and_not_before() {
    for sample in &samples() {
        let home = home();
        let store = write(&home, sample);
        let before = fingerprint(home.0.path());
        let root = Root::new();
        add_scope(root.path(), "theirs", &store).ok();
        let find = |word: &str| {
            let found = ack(root.path(), &["query", word, "--json"]).json();
            found["results"].as_array().unwrap().len()
        };
        let list = ack(root.path(), &["review", "--list", "--json"]).json();
        assert_eq!(titles(&list["waiting"]), sample.titles, "{}", sample.store);
        assert_eq!(find(&sample.word), 0, "{}", sample.store);
        decide(root.path(), &["approve", "--waiting", "--yes"]).ok();
        assert_eq!(find(&sample.word), 1, "{}", sample.store);
        let all = ack(root.path(), &["query", NO_MEMORY, "--json"]).json();
        assert_lacks!(all["results"].to_string(), NO_MEMORY; "{}", sample.store);
        assert_eq!(fingerprint(home.0.path()), before, "{}", sample.store);
    }
}

/// The memory with a title.
fn memory(root: &Root, title: &str) -> Value {
    let found = root.service().find(json!({ "limit": 10 }));
    let results = found["results"].as_array().unwrap().iter();
    let mut with_title = results.filter(|result| result["title"] == title);
    let id = with_title.next().unwrap()["id"].clone();
    root.service().fetch(json!({ "id": id }))
}

#[test]
fn what_a_file_says_about_its_memories_is_kept() {
    let home = home();
    for (number, title, key, value) in [
        (0, "Goals", "type", json!("projectbrief")),
        (0, "Goals", "subtitle", json!("Shop")),
        (0, "Goals", "id", json!("projectbrief#goals")),
        (2, "Use just build with the xylophone.", "type", json!("development")),
        (2, "Use just build with the xylophone.", "concepts", json!(["build", "workflow"])),
        (2, "Tests need Redis on port 6380", "concepts", Value::Null),
        (4, "I prefer pnpm to npm", "id", json!("GEMINI#i-prefer-pnpm-to-npm")),
        (7, "Money is in cents", "type", json!("project")),
        (12, "Ana likes short answers", "type", json!("USER")),
        (14, "Dana reviews the xylophone", "subtitle", json!("People")),
        (14, "The backup moved to the attic", "created_at", json!("2026-11-20T00:00:00Z")),
    ] {
        let store = write(&home, &samples()[number]);
        let (root, _service) = serve_notes(&store);
        let found = memory(&root, title);
        assert_eq!(found[key], value, "{title}: {found:#}");
    }
}

#[test]
fn an_edited_section_waits_again_and_its_neighbours_stay() {
    let home = home();
    let store = write(&home, &samples()[0]);
    let root = Root::new();
    add_scope(root.path(), "bank", &store).ok();
    decide(root.path(), &["approve", "--waiting", "--yes"]).ok();
    let path = store.join("projectbrief.md");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("One till", "Two tills")).unwrap();
    let list = ack(root.path(), &["review", "--list", "--json"]).json();
    assert_eq!(titles(&list["waiting"]), ["Goals"]);
}

#[test]
fn instructions_without_added_memories_are_refused() {
    let home = home();
    let text = "# Rules\n\nUse tabs.\n\n```\n## Gemini Added Memories\n- no\n```\n";
    home.write(".gemini/GEMINI.md", text);
    let refused = add_scope(Root::new().path(), "g", &home.path(".gemini/GEMINI.md"));
    assert_contains!(refused.err, "instructions for agents");
}

/// Settings with a memory of Goose's own, a server and somebody's comments.
const GOOSE: &str = "# mine\nGOOSE_MODE: auto\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n    name: developer\n  memory: # its own\n    bundled: true\n    enabled: true\n    name: memory\n    timeout: 300\n    type: builtin\n";
const OPENCODE: &str = "{\n  // mine\n  \"plugin\": [\"opencode-wakatime\", \"opencode-supermemory@latest\", [\"@mem0/opencode-plugin\", { \"x\": 1 }]],\n  \"plugins\": [{ \"package\": \"opencode-mem\" }, \"./memory-game/score.ts\"]\n}\n";

#[test]
fn the_memories_of_goose_and_opencode_are_switched_off_and_come_back() {
    let home = home();
    write(&home, &samples()[2]);
    home.write(".config/goose/config.yaml", GOOSE);
    home.write(".config/opencode/opencode.jsonc", OPENCODE);
    home.write(".config/opencode/plugins/claude-mem.js", "");
    home.write(".config/opencode/plugins/memo.js", "");
    let mut terminal = Session::start(home.in_shop(&["setup"]));
    terminal
        .expect("it also shows them to agents itself")
        .answer("Goose memories [t/r/s/T/R/S] ", "s\n");
    terminal
        .expect("opencode: plugins listed in ~/.config/opencode/opencode.jsonc add")
        .expect("opencode-supermemory@latest and")
        .answer("switch it off? [y/N] ", "y\n");
    terminal.expect("opencode-mem").answer("switch it off? [y/N] ", "y\n");
    terminal
        .expect("~/.config/opencode/plugins/claude-mem.js")
        .expect("move it out of that folder");
    terminal.expect("goose: its memory is on").answer("switch it off? [y/N] ", "y\n");
    for _ in 0..2 {
        terminal.answer("[Y/n/d] ", "n\n");
    }
    assert_eq!(terminal.end().0, Some(0));
    let opencode = home.read(".config/opencode/opencode.jsonc");
    assert_contains!(opencode, "// mine", "opencode-wakatime", "./memory-game/score.ts");
    assert_lacks!(opencode, "supermemory");
    assert_lacks!(opencode, "mem0");
    assert_lacks!(opencode, "opencode-mem");
    let goose = home.read(".config/goose/config.yaml");
    assert_contains!(goose, "# mine", "memory: # its own", "enabled: false");
    let left = run(&mut home.in_shop(&["doctor"])).out;
    assert_eq!(left.matches("nobody reviewed").count(), 1, "{left}");
    for client in ["opencode", "goose"] {
        run(&mut home.in_shop(&["disconnect", client, "--yes"])).ok();
    }
    assert_eq!(home.read(".config/opencode/opencode.jsonc"), OPENCODE);
    assert_eq!(home.read(".config/goose/config.yaml"), GOOSE);
}
