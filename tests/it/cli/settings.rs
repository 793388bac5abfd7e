//! Where settings come from: flags, the environment, config.toml, manifests, defaults.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ack, binary, run};
use crate::support::Root;

#[test]
fn a_broken_config_file_is_named_with_line_and_nearest_key() {
    let root = Root::samples();
    std::fs::write(
        root.path().join("config.toml"),
        "\ndefault_scop = \"platform\"\n",
    )
    .unwrap();
    let error = ack(root.path(), &["query", "x"]).fails(1);
    for part in ["config.toml", "line 2", "default_scop", "default_scope"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    for text in ["[limits]\ntokens = 1\n", "limits = 5\n", "= nonsense\n"] {
        std::fs::write(root.path().join("config.toml"), text).unwrap();
        assert!(
            ack(root.path(), &["query", "x"])
                .fails(1)
                .contains("config.toml"),
            "{text}"
        );
    }
    // The command that should find this must not fail because of it: the scopes are checked anyway.
    let doctor = ack(root.path(), &["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    for part in ["✗ config.toml", " config edit", "✓ platform"] {
        assert!(doctor.out.contains(part), "{part}: {doctor:?}");
    }
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
        for part in [
            "misspelt/scope.toml`",
            "line 1: ",
            "`descripton`; did you mean `description`?",
        ] {
            assert!(error.contains(part), "{arguments:?}: {part}: {error}");
        }
        assert_eq!(error.matches("did you mean").count(), 1, "{error}");
        assert!(!error.contains("memory.db"), "{arguments:?}: {error}");
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
    let file = |scope: &str| root.path().join(format!("scopes/{scope}/scope.toml"));
    assert_eq!(
        finding("misspelt"),
        json!({
            "level": "error",
            "subject": "misspelt",
            "message": "its scope.toml cannot be used: line 2: unknown key `descripton`; did you mean `description`?",
            "advice": [format!("correct line 2 of {}", file("misspelt").display())],
        })
    );
    assert_eq!(
        finding("cut")["advice"],
        json!([format!("correct line 1 of {}", file("cut").display())])
    );
    assert_eq!(
        finding("value")["message"],
        "its scope.toml cannot be used: line 1: `visibility`: unknown value `privat`, expected `shared` or `private`; did you mean `private`?"
    );
    assert_eq!(
        finding("list")["message"],
        "its scope.toml cannot be used: line 1: `paths`: wrong type: string \"~/a\", expected a list"
    );
    let unreadable = finding("folder")["advice"].to_string();
    assert!(
        unreadable.contains("folder/scope.toml") && !unreadable.contains("remove"),
        "{unreadable}"
    );
    for scope in answer["scopes"].as_array().unwrap() {
        assert_eq!(scope.get("store"), None, "{scope}");
    }
    let removal = ack(root.path(), &["scopes", "remove", "misspelt"]).out;
    assert!(removal.contains("no store is touched"), "{removal}");
}

/// A setting's value and source, as `doctor` reports it.
fn setting(doctor: &Value, name: &str) -> Option<(String, String)> {
    let setting = doctor["settings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|setting| setting["name"] == name)?;
    let text = |key: &str| setting[key].as_str().unwrap().to_owned();
    Some((text("value"), text("source")))
}

#[test]
fn flags_override_the_environment_and_the_environment_overrides_defaults() {
    let (flag, variable, home) = (Root::samples(), Root::samples(), TempDir::new().unwrap());
    let doctor = |change: &dyn Fn(&mut Command)| {
        let mut command = binary();
        command.env("HOME", home.path());
        change(&mut command);
        run(command.args(["doctor", "--json"])).json()
    };
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let default = doctor(&|_| {});
    assert_eq!(
        setting(&default, "root"),
        Some((path(&home.path().join(".ack-mem")), "default".to_owned()))
    );
    assert!(!home.path().join(".ack-mem").exists(), "nothing is made");
    let from_variable = doctor(&|command| {
        command.env("ACK_MEM_PATH", variable.path());
    });
    assert_eq!(
        setting(&from_variable, "root"),
        Some((path(variable.path()), "environment ACK_MEM_PATH".to_owned()))
    );
    let from_flag = doctor(&|command| {
        command
            .env("ACK_MEM_PATH", variable.path())
            .arg("--root")
            .arg(flag.path());
    });
    assert_eq!(
        setting(&from_flag, "root"),
        Some((path(flag.path()), "flag --root".to_owned()))
    );
    let db = flag.scope_folder("platform").join("memory.db");
    let sources = |flags: &[&str]| {
        let doctor = doctor(&|command| {
            command
                .env("ACK_MEM_DB", &db)
                .env("ACK_MEM_SCOPE", "platform")
                .args(flags);
        });
        [
            setting(&doctor, "db").unwrap(),
            setting(&doctor, "pin")
                .or(setting(&doctor, "scope"))
                .unwrap(),
        ]
    };
    let [own_db, own_scope] = sources(&[]);
    assert_eq!(own_db, (path(&db), "environment ACK_MEM_DB".to_owned()));
    assert_eq!(
        own_scope,
        (
            "platform".to_owned(),
            "environment ACK_MEM_SCOPE".to_owned()
        )
    );
    let given = path(&db);
    let [own_db, own_scope] = sources(&["--db", &given, "--pin", "memory"]);
    assert_eq!(own_db, (given.clone(), "flag --db".to_owned()));
    assert_eq!(own_scope, ("memory".to_owned(), "flag --pin".to_owned()));
    let empty = doctor(&|command| {
        command
            .env("ACK_MEM_PATH", "")
            .env("ACK_MEM_SCOPE", "")
            .env("ACK_MEM_DB", "")
            .env("CLAUDE_PROJECT_DIR", "");
    });
    assert_eq!(
        setting(&empty, "root").unwrap().1,
        "default",
        "an empty variable says nothing"
    );
    assert_eq!(setting(&empty, "scope"), None);
    assert_eq!(setting(&empty, "db"), None);
    assert_eq!(setting(&empty, "project").unwrap().1, "working directory");

    let project = |change: &dyn Fn(&mut Command)| {
        let doctor = doctor(&|command| {
            command.env("ACK_MEM_PATH", variable.path());
            change(command);
        });
        (
            setting(&doctor, "project").unwrap().1,
            doctor["current_scope"].clone(),
        )
    };
    let folder = |name: &str| variable.path().join(name);
    std::fs::create_dir(folder("kiosk-web")).unwrap();
    let resolved = project(&|command| {
        command.env("CLAUDE_PROJECT_DIR", folder("ledger-api"));
    });
    assert_eq!(
        resolved,
        (
            "environment CLAUDE_PROJECT_DIR".to_owned(),
            json!("ledger-api")
        )
    );
    let resolved = project(&|command| {
        command
            .env("CLAUDE_PROJECT_DIR", folder("ledger-api"))
            .arg("-C")
            .arg(folder("kiosk-web"));
    });
    assert_eq!(resolved, ("flag -C".to_owned(), json!("kiosk-web")));
    std::fs::create_dir(folder("platform")).unwrap();
    let resolved = project(&|command| {
        command.current_dir(folder("platform"));
    });
    assert_eq!(
        resolved,
        ("working directory".to_owned(), json!("platform"))
    );
}

#[test]
fn a_single_database_is_served_as_the_only_scope() {
    let (samples, home) = (Root::samples(), TempDir::new().unwrap());
    let database = samples.path().join("scopes/platform/memory.db");
    let other = samples.path().join("scopes/kiosk-web/memory.db");
    let scopes = |change: &dyn Fn(&mut Command)| {
        let mut command = binary();
        command.env("HOME", home.path());
        change(&mut command);
        let answer = run(command.args(["scopes", "--json"])).json();
        let paths: Vec<String> = answer["scopes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|scope| scope["store"].as_str().unwrap().to_owned())
            .collect();
        paths
    };
    let text = |path: &Path| vec![path.to_str().unwrap().to_owned()];
    let served = scopes(&|command| {
        command.env("ACK_MEM_DB", &database);
    });
    assert_eq!(served, text(&database));
    let served = scopes(&|command| {
        command.env("ACK_MEM_DB", &database).arg("--db").arg(&other);
    });
    assert_eq!(served, text(&other));
    let served = scopes(&|command| {
        command
            .env("ACK_MEM_DB", &database)
            .env("ACK_MEM_PATH", samples.path());
    });
    assert_eq!(
        served,
        text(&database),
        "a single database comes before a root"
    );
    let missing = run(binary()
        .env("HOME", home.path())
        .args(["--db", "nowhere.db", "query", "x"]))
    .fails(1);
    assert!(
        missing.contains("Memory database not found") && missing.contains("nowhere.db"),
        "{missing}"
    );
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
    let scopes = searched["scopes"].as_array().unwrap();
    assert!(
        scopes.contains(&json!("dana-private")) && scopes.contains(&json!("platform")),
        "the current one, private as it is, and every shared one: {scopes:?}"
    );
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
    assert!(
        skipped.contains("platfrom") && skipped.contains("ACK_MEM_SCOPE"),
        "{answer}"
    );
    // A command that needs the name of a scope takes it.
    let file = root.path().join("one.jsonl");
    std::fs::write(&file, "{\"title\": \"Imported here\"}\n").unwrap();
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
        command
            .env_clear()
            .env("HOME", home.path())
            .current_dir("/")
            .stdin(Stdio::null());
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
    assert_eq!(
        answer["searched"]["current_scope"], "dana-private",
        "{answer}"
    );
}

#[test]
fn the_environment_names_a_single_database() {
    let (samples, home) = (Root::samples(), TempDir::new().unwrap());
    let database = samples.path().join("scopes/platform/memory.db");
    let with = |scope: &str, arguments: &[&str]| {
        let mut command = binary();
        command
            .env("HOME", home.path())
            .env("ACK_MEM_DB", &database)
            .env("ACK_MEM_SCOPE", scope);
        run(command.args(arguments))
    };
    for name in ["team memories", "Émile-2", "platform", "memory"] {
        let answer = with(name, &["query", "exit code 137", "-n", "1", "--json"]).json();
        assert_eq!(answer["results"][0]["scope"], name, "{answer}");
        assert_eq!(
            answer["searched"]["detected_by"],
            "environment ACK_MEM_SCOPE"
        );
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
