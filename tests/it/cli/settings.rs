//! Where settings come from: flags, the environment, config.toml, manifests, defaults.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ack, binary, run};
use crate::support::{Root, write_file};

#[test]
fn a_broken_config_file_is_named_with_line_and_nearest_key() {
    let root = Root::samples();
    let content = "\ndefault_scop = \"platform\"\n";
    write_file(root.path().join("config.toml"), content);
    let error = ack(root.path(), &["query", "x"]).fails(1);
    assert_contains!(error, "config.toml", "line 2", "default_scop`", "default_scope");
    for text in ["[limits]\ntokens = 1\n", "limits = 5\n", "= nonsense\n"] {
        write_file(root.path().join("config.toml"), text);
        let error = ack(root.path(), &["query", "x"]).fails(1);
        assert_contains!(error, "config.toml"; "{text}");
    }
    // The command that should find this must not fail because of it: the scopes are checked anyway.
    let doctor = ack(root.path(), &["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert_contains!(doctor.out, "✗ config.toml", " config edit", "✓ platform");
    let doctor = ack(root.path(), &["doctor", "--json"]);
    let answer: Value = serde_json::from_str(&doctor.out).unwrap();
    assert_eq!(answer["findings"][0]["level"], "error", "{answer}");
    assert_eq!(answer["scopes"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_scope_that_is_named_and_has_a_broken_manifest_is_an_error() {
    let root = Root::samples();
    root.manifest("misspelt", "descripton = \"x\"\n");
    for arguments in [
        vec!["query", "x", "--scope", "misspelt"],
        vec!["--pin", "misspelt", "query", "x"],
        vec!["get", "x", "--scope", "misspelt"],
        vec!["review", "--list", "--scope", "misspelt"],
        vec!["approve", "x", "--scope", "misspelt"],
        vec!["import", "-", "--scope", "misspelt"],
        vec!["publish", "misspelt", "--to-folder", "notes"],
        vec!["scopes", "set", "misspelt", "visibility=shared"],
    ] {
        let error = ack(root.path(), &arguments).fails(1);
        let expected = "`descripton`; did you mean `description`?";
        assert_contains!(error, "misspelt/scope.toml`", "line 1: ", expected; "{arguments:?}");
        assert_eq!(error.matches("did you mean").count(), 1, "{error}");
        assert_lacks!(error, "memory.db"; "{arguments:?}");
    }
}

#[test]
fn the_doctor_names_the_line_of_a_broken_manifest() {
    let root = Root::new();
    root.manifest("misspelt", "\ndescripton = \"x\"\n");
    root.manifest("cut", "description = \"x\n");
    root.manifest("value", "visibility = \"privat\"\n");
    root.manifest("list", "paths = \"~/a\"\n");
    std::fs::create_dir(root.scope_folder("folder").join("scope.toml")).unwrap();
    let outcome = ack(root.path(), &["doctor", "--json"]);
    let answer: Value = serde_json::from_str(&outcome.out).unwrap();
    let finding = |subject: &str| {
        let findings = answer["findings"].as_array().unwrap().iter();
        let mut of_it = findings.filter(|finding| finding["subject"] == subject);
        of_it.next().unwrap().clone()
    };
    let advice = |scope: &str, line: usize| {
        let file = root.path().join(format!("scopes/{scope}/scope.toml"));
        json!([format!("correct line {line} of {}", file.display())])
    };
    assert_eq!(finding("misspelt")["level"], "error");
    assert_eq!(finding("misspelt")["advice"], advice("misspelt", 2));
    assert_eq!(finding("cut")["advice"], advice("cut", 1));
    for (scope, problem) in [
        ("misspelt", "line 2: unknown key `descripton`; did you mean `description`?"),
        (
            "value",
            "line 1: `visibility`: unknown value `privat`, expected `shared` or `private`; did you mean `private`?",
        ),
        ("list", "line 1: `paths`: wrong type: string \"~/a\", expected a list"),
    ] {
        let expected = format!("its scope.toml cannot be used: {problem}");
        assert_eq!(finding(scope)["message"], expected);
    }
    let unreadable = finding("folder")["advice"].to_string();
    assert_contains!(unreadable, "folder/scope.toml");
    assert_lacks!(unreadable, "remove");
    for scope in answer["scopes"].as_array().unwrap() {
        assert_eq!(scope.get("store"), None, "{scope}");
    }
    let removal = ack(root.path(), &["scopes", "remove", "misspelt"]).out;
    assert_contains!(removal, "no store is touched");
}

/// A setting's value and source, as `doctor` reports it.
fn setting(doctor: &Value, name: &str) -> Option<[String; 2]> {
    let mut settings = doctor["settings"].as_array().unwrap().iter();
    let setting = settings.find(|setting| setting["name"] == name)?;
    Some(["value", "source"].map(|key| setting[key].as_str().unwrap().to_owned()))
}

#[test]
fn flags_override_the_environment_and_the_environment_overrides_defaults() {
    let (flag, variable, home) = (Root::samples(), Root::samples(), TempDir::new().unwrap());
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let doctor = |variables: &[(&str, &str)], flags: &[&str]| {
        let mut command = binary();
        command.env("HOME", home.path());
        command.envs(variables.iter().copied()).args(flags);
        run(command.args(["doctor", "--json"])).json()
    };
    let (root, other) = (text(variable.path()), text(flag.path()));
    let usual = text(&home.path().join(".ack-mem"));
    let named = [("ACK_MEM_PATH", &*root)];
    for (variables, flags, value, source) in [
        (&[][..], &[][..], &*usual, "default"),
        (&named, &[], &root, "environment ACK_MEM_PATH"),
        (&named, &["--root", &other], &other, "flag --root"),
    ] {
        let doctor = doctor(variables, flags);
        assert_eq!(setting(&doctor, "root").unwrap(), [value, source]);
        assert!(!Path::new(&usual).exists(), "nothing is made");
    }
    let db = &*text(&flag.scope_folder("platform").join("memory.db"));
    let named = [("ACK_MEM_DB", db), ("ACK_MEM_SCOPE", "platform")];
    let shown = doctor(&named, &[]);
    let source = "environment ACK_MEM_DB";
    assert_eq!(setting(&shown, "db").unwrap(), [db, source]);
    let source = "environment ACK_MEM_SCOPE";
    assert_eq!(setting(&shown, "scope").unwrap(), ["platform", source]);
    let shown = doctor(&named, &["--db", db, "--pin", "memory"]);
    assert_eq!(setting(&shown, "db").unwrap(), [db, "flag --db"]);
    assert_eq!(setting(&shown, "pin").unwrap(), ["memory", "flag --pin"]);
    // An empty variable says nothing.
    let empty = ["ACK_MEM_PATH", "ACK_MEM_SCOPE", "ACK_MEM_DB", "CLAUDE_PROJECT_DIR"];
    let shown = doctor(&empty.map(|name| (name, "")), &[]);
    assert_eq!(setting(&shown, "root").unwrap()[1], "default");
    assert_eq!(setting(&shown, "scope"), None);
    assert_eq!(setting(&shown, "db"), None);
    let source = &setting(&shown, "project").unwrap()[1];
    assert_eq!(source, "working directory");

    let folder = |name: &str| text(&variable.path().join(name));
    for name in ["kiosk-web", "platform"] {
        std::fs::create_dir(folder(name)).unwrap();
    }
    let (ledger, kiosk) = (folder("ledger-api"), folder("kiosk-web"));
    let claude = [("CLAUDE_PROJECT_DIR", &*ledger)];
    for (variables, flags, source, scope) in [
        (&claude[..], &[][..], "environment CLAUDE_PROJECT_DIR", "ledger-api"),
        (&claude, &["-C", &kiosk], "flag -C", "kiosk-web"),
        (&[], &[], "working directory", "platform"),
    ] {
        let mut command = binary();
        command.env("HOME", home.path()).env("ACK_MEM_PATH", &root);
        command.envs(variables.iter().copied()).args(flags);
        command.current_dir(folder("platform"));
        let shown = run(command.args(["doctor", "--json"])).json();
        assert_eq!(setting(&shown, "project").unwrap()[1], source);
        assert_eq!(shown["current_scope"], scope);
    }
}

#[test]
fn a_single_database_is_served_as_the_only_scope() {
    let (samples, home) = (Root::samples(), TempDir::new().unwrap());
    let [database, other] = ["platform", "kiosk-web"]
        .map(|scope| samples.path().join(format!("scopes/{scope}/memory.db")));
    let (root, other) = (samples.path().to_str().unwrap(), other.to_str().unwrap());
    let named = ("ACK_MEM_DB", database.to_str().unwrap());
    // A single database comes before a root, and a flag before a variable.
    for (variables, flags, served) in [
        (&[named][..], &[][..], named.1),
        (&[named], &["--db", other], other),
        (&[named, ("ACK_MEM_PATH", root)], &[], named.1),
    ] {
        let mut command = binary();
        command.env("HOME", home.path());
        command.envs(variables.iter().copied()).args(flags);
        let answer = run(command.args(["scopes", "--json"])).json();
        assert_eq!(answer["scopes"].as_array().unwrap().len(), 1);
        assert_eq!(answer["scopes"][0]["store"], served);
    }
    let mut command = binary();
    command.env("HOME", home.path());
    let missing = run(command.args(["--db", "nowhere.db", "query", "x"])).fails(1);
    assert_contains!(missing, "Memory database not found", "nowhere.db");
}

#[test]
fn the_environment_makes_a_scope_current_and_refuses_no_other() {
    let root = Root::samples();
    let run_with = |scope: &str, arguments: &[&str]| {
        let mut command = binary();
        command.arg("--root").arg(root.path());
        run(command.env("ACK_MEM_SCOPE", scope).args(arguments))
    };
    let query = |scope: &str, arguments: &[&str]| {
        run_with(scope, &[&["query", "docker", "--json"], arguments].concat()).json()
    };
    let answer = query("Dana_Private", &[]);
    let searched = &answer["searched"];
    assert_eq!(searched["current_scope"], "dana-private");
    assert_eq!(searched["detected_by"], "environment ACK_MEM_SCOPE");
    // The current one, private as it is, and every shared one.
    let scopes = searched["scopes"].to_string();
    assert_contains!(scopes, "\"dana-private\"", "\"platform\"");
    // It comes before the project's folder, and a pin before it.
    let project = root.path().join("ledger-api");
    std::fs::create_dir(&project).unwrap();
    let project = project.to_str().unwrap();
    let answer = query("platform", &["-C", project]);
    assert_eq!(answer["searched"]["current_scope"], "platform");
    let named = query("platform", &["--scope", "kiosk-web"]);
    assert_eq!(named["searched"]["scopes"], json!(["kiosk-web"]));
    let pinned = query("platform", &["--pin", "kiosk-web"]);
    assert_eq!(pinned["searched"]["scopes"], json!(["kiosk-web"]));
    assert_eq!(pinned["searched"]["detected_by"], "flag --pin");
    // A name that no scope has is said, and the project decides.
    let answer = query("platfrom", &["-C", project]);
    assert_eq!(answer["searched"]["current_scope"], "ledger-api");
    let skipped = answer["searched"]["skipped"].to_string();
    assert_contains!(skipped, "platfrom", "ACK_MEM_SCOPE");
    // A command that needs the name of a scope takes it.
    let file = root.path().join("one.jsonl");
    write_file(&file, "{\"title\": \"Imported here\"}\n");
    run_with("platform", &["import", file.to_str().unwrap()]).ok();
    let found = query("platform", &["-a", "--scope", "platform"]);
    assert!(found["total"].as_u64().unwrap() > 0, "{found}");
}

#[test]
fn home_is_the_only_required_variable() {
    let home = TempDir::new().unwrap();
    let root = home.path().join(".ack-mem");
    run(binary().arg("demo").arg(&root)).ok();
    let bare = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ack-memory"));
        command.env_clear().env("HOME", home.path()).current_dir("/").stdin(Stdio::null());
        command
    };
    let answer = run(bare().args(["query", "deadlock", "--json"])).json();
    assert!(answer["total"].as_u64().unwrap() > 0);
    run(bare().arg("doctor")).ok();
    // `~` that no shell has replaced.
    let answer = run(bare().args(["--root=~/.ack-mem", "query", "deadlock", "--json"])).json();
    assert!(answer["total"].as_u64().unwrap() > 0);
    // The sample manifest of Dana's scope names `~/dotfiles`.
    let project = home.path().join("dotfiles");
    std::fs::create_dir(&project).unwrap();
    let answer = run(bare().args(["query", "--json", "-C"]).arg(&project)).json();
    let found = &answer["searched"]["current_scope"];
    assert_eq!(*found, "dana-private", "{answer}");
}

#[test]
fn the_environment_names_a_single_database() {
    let (samples, home) = (Root::samples(), TempDir::new().unwrap());
    let database = samples.path().join("scopes/platform/memory.db");
    let with = |scope: &str, arguments: &[&str]| {
        let mut command = binary();
        command.env("HOME", home.path()).env("ACK_MEM_DB", &database).env("ACK_MEM_SCOPE", scope);
        run(command.args(arguments))
    };
    for name in ["team memories", "Émile-2", "platform", "memory"] {
        let answer = with(name, &["query", "exit code 137", "-n", "1", "--json"]).json();
        assert_eq!(answer["results"][0]["scope"], name, "{answer}");
        let found = &answer["searched"]["detected_by"];
        assert_eq!(*found, "environment ACK_MEM_SCOPE");
        let answer = with(name, &["query", "--scope", name, "--json"]).json();
        assert_eq!(answer["searched"]["scopes"], json!([name]));
        with(name, &["get", "ack_d7640b_2026-04-13_001"]).ok();
        assert!(with(name, &["scopes", "--json"]).json()["scopes"][0]["memory_count"].is_number());
        with(name, &["context"]).ok();
        with(name, &["query", "x", "--scope", "another"]).fails(1);
    }
    // What could be mistaken for another name is not a name.
    for name in ["a/b", "..", "a\u{202e}b"] {
        let answer = with(name, &["query", "exit code 137", "--json"]).json();
        assert_eq!(answer["results"][0]["scope"], "memory", "{answer}");
        with(name, &["query", "x", "--pin", name]).fails(1);
    }
}
