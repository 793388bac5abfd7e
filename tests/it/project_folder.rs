//! The project's folder, however a client names it: a folder inside it, a file, a deleted folder,
//! an address, a workspace with several folders.

use std::path::{Path, PathBuf};

use ack_memory::Config;
use ack_memory::internal::Setting;
use serde_json::{Value, json};

use crate::arguments::{call, call_as};
use crate::cli::ack_with_input;
use crate::context::project;
use crate::store_support::binary;
use crate::support::{Ask, Root, ids, memory, write_file};

/// A scope that only its name, its manifest or its memories connect with the project `till`.
fn till(manifest: &str, scope: &str) -> Root {
    let root = Root::new();
    let arguments = json!({ "project": "till" });
    let rule = memory("rule", "Round cash to five cents", arguments);
    let other = memory("other", "About the kiosk", json!({ "project": "kiosk" }));
    root.store(scope, &[rule, other]);
    root.manifest(scope, manifest);
    root
}

/// The project, its scope and its memories, as `get_context` answers for a path.
fn found(root: &Root, path: &str) -> Value {
    let service = root.service_with(|inputs| inputs.home = Some(root.path().join("home")));
    let answer = service.brief(json!({ "project_path": path }));
    json!([answer["project"]["name"], answer["project"]["scope"], ids(&answer["recent_memories"])])
}

/// Spellings of a project's folder.
fn spellings(folder: &Path) -> Vec<String> {
    let deep = folder.join("tools/cash drawer/é");
    std::fs::create_dir_all(&deep).unwrap();
    write_file(deep.join("open.py"), "");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let encoded = text(&deep).replace(' ', "%20").replace('é', "%C3%A9");
    vec![
        text(folder),
        text(&folder.join("tools")),
        text(&deep),
        text(&deep.join("open.py")),
        text(&folder.join("gone")),
        text(&deep.join("gone/further/old.py")),
        format!("file://{encoded}"),
        format!("file://localhost{encoded}/open.py"),
        format!("file://{}/", folder.display()),
    ]
}

#[test]
fn every_path_in_a_project_is_found_like_its_folder() {
    let claims: [(&str, &str); 5] = [
        ("", "till"),
        ("projects = [\"till\", \"kiosk\"]", "shops"),
        ("projects = { register = [\"till\"], kiosk = [] }", "shops"),
        ("", "shops"),
        ("paths = [\"../../home/work/till\"]", "shops"),
    ];
    for (manifest, scope) in claims {
        for marker in ["", ".jj", ".hg", ".sl", ".git"] {
            let root = till(manifest, scope);
            let folder = root.path().join("home/work/till");
            match marker {
                ".git" => drop(std::fs::rename(project(&root, "till", "main").join(".git"), {
                    std::fs::create_dir_all(&folder).unwrap();
                    folder.join(".git")
                })),
                marker => std::fs::create_dir_all(folder.join(marker)).unwrap(),
            }
            let spellings = spellings(&folder);
            let expected = found(&root, &spellings[0]);
            let case = format!("`{manifest}` of {scope}, {marker}");
            assert_eq!(expected[1], scope, "{case}");
            assert_contains!(expected[2].to_string(), "rule"; "{case}");
            for path in &spellings {
                assert_eq!(found(&root, path), expected, "{case}: {path}");
            }
        }
    }
}

#[test]
fn a_folder_above_counts_only_if_its_name_is_a_project() {
    let root = till("", "shops");
    let service = root.service();
    for (project, path) in [("src", "home/src/new"), ("home", "home/new")] {
        let path = root.path().join(path);
        std::fs::create_dir_all(&path).unwrap();
        let row = memory(project, "Rule of a folder", json!({ "project": project }));
        root.store(&format!("of-{project}"), &[row]);
        let answer = found(&root, path.to_str().unwrap());
        assert_eq!(answer[0], "new", "{project}");
        assert_eq!(answer[1], Value::Null, "{project}");
    }
    // A path of another machine names no folder here, and its parents are not this machine's.
    let answer = service.brief(json!({ "project_path": "/of-src/shops/new" }));
    assert_eq!(answer["project"]["scope"], Value::Null);
    assert_contains!(answer["notes"].to_string(), "not a folder on this machine");
}

#[test]
fn a_private_scope_is_claimed_by_a_folder_above_that_exists() {
    let root = till("visibility = \"private\"", "till");
    std::fs::create_dir_all(root.path().join("home/till")).unwrap();
    let here = root.path().join("home/till/gone");
    assert_eq!(found(&root, here.to_str().unwrap())[1], "till");
    assert_eq!(found(&root, "/nowhere/till")[1], Value::Null);
    assert_eq!(found(&root, "/nowhere/till/gone")[1], Value::Null);
}

#[test]
fn a_home_folder_in_git_is_no_project() {
    let root = till("", "till");
    let settings = project(&root, "settings", "main").join(".git");
    let folder = root.path().join("home/till/tools");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::rename(settings, root.path().join("home/.git")).unwrap();
    assert_eq!(found(&root, folder.to_str().unwrap())[0], "till");
}

#[test]
fn the_first_folder_of_a_workspace_that_belongs_to_a_scope_is_the_project() {
    let root = till("", "till");
    let folders = ["web", "till", "kiosk"].map(|name| root.path().join("w 1").join(name));
    for folder in &folders {
        std::fs::create_dir_all(folder).unwrap();
    }
    let address = |folder: &PathBuf| format!("file://{}", folder.display()).replace(' ', "%20");
    let config = Config::at(root.path()).unwrap();
    assert!(config.wants_workspace());
    let detected = |config: Config| {
        let answer = call(&ack_memory::Service::new(config), "get_context", json!({})).unwrap();
        let rule = answer["project"]["detected_by"].as_str().unwrap_or_default();
        let rule = rule.replace(root.path().to_str().unwrap(), "ROOT");
        (answer["project"]["name"].clone(), rule)
    };
    let roots = folders.iter().map(address);
    let both = config.clone().with_workspace(roots);
    let rule = "scope name `till`, for `ROOT/w 1/till`";
    assert_eq!(detected(both.clone()), (json!("till"), rule.to_owned()));
    // Without one, it is the first.
    let others = config.clone().with_workspace([address(&folders[0])]);
    assert_eq!(detected(others), (json!("web"), String::new()));
    // What is no folder of this machine changes nothing, nor do roots where `-C` says it.
    let remote = ["https://example.org/till", "vscode-remote://ssh/till", "till"];
    assert!(config.clone().with_workspace(remote.map(str::to_owned)).wants_workspace());
    let chosen = config.with_project(&folders[2]);
    assert!(!chosen.wants_workspace());
    let chosen = chosen.with_workspace([address(&folders[1])]);
    let rule = "project `kiosk` recorded in the store";
    assert_eq!(detected(chosen), (json!("kiosk"), rule.to_owned()));
}

#[test]
fn a_pinned_server_takes_the_folder_of_the_workspace_that_its_scope_claims() {
    let root = till("projects = [\"till\", \"kiosk\"]", "shops");
    root.store("web", &[]);
    let folders = ["web", "kiosk"].map(|name| root.path().join(name));
    let service = root.service_with(|inputs| {
        inputs.project = None;
        inputs.pinned = Some(Setting::flag("--pin", "shops".to_owned()));
        let folders = folders.into_iter();
        inputs.workspace = folders.map(|it| Setting::variable("CURSOR_PROJECT_DIR", it)).collect();
    });
    let answer = service.brief(json!({}));
    assert_eq!(answer["project"]["name"], "kiosk");
    assert_eq!(answer["project"]["detected_by"], "flag --pin");
    assert_eq!(ids(&answer["recent_memories"]), ["other"]);
}

#[test]
fn an_editor_names_the_folders_of_its_workspace_in_the_environment() {
    let root = till("", "till");
    let [web, till, comma] =
        ["web", "till", "till, 2"].map(|name| root.path().join("w").join(name));
    for folder in [&web, &till, &comma] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let scope = |variables: &[(&str, String)]| {
        let mut command = binary(root.path());
        command.args(["--json", "context"]);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let output = command.output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["project"]["scope"].as_str().map(str::to_owned)
    };
    let text = |folder: &PathBuf| folder.to_str().unwrap().to_owned();
    let list = |folders: &[&PathBuf]| {
        let folders: Vec<String> = folders.iter().map(|folder| text(folder)).collect();
        folders.join(",")
    };
    let (cursor, workspace) = ("CURSOR_PROJECT_DIR", "WORKSPACE_FOLDER_PATHS");
    let found = Some("till".to_owned());
    assert_eq!(scope(&[]), None);
    assert_eq!(scope(&[(cursor, text(&till))]), found);
    assert_eq!(scope(&[(workspace, text(&till.join("src")))]), found);
    assert_eq!(scope(&[(workspace, list(&[&web, &till]))]), found);
    let shown = scope(&[(cursor, text(&web)), (workspace, list(&[&web, &till]))]);
    assert_eq!(shown, found);
    let shown = scope(&[(cursor, String::new()), (workspace, String::new())]);
    assert_eq!(shown, None);
    let shown = scope(&[("CLAUDE_PROJECT_DIR", text(&web)), (cursor, text(&till))]);
    assert_eq!(shown, None);
    assert_eq!(scope(&[(workspace, text(&comma))]), None);
}

#[test]
fn a_server_started_nowhere_says_how_to_name_the_project() {
    let root = till("", "till");
    let service =
        root.service_with(|inputs| inputs.project = Some(Setting::flag("-C", "/".into())));
    let answer = call_as(&service, "get_context", json!({}), true).unwrap();
    let notes = answer["notes"].to_string();
    assert_contains!(notes, "`/` is not a project's folder");
    assert_contains!(notes, "pass `project_path`");
}

#[test]
fn a_hook_looks_at_every_folder_of_the_workspace() {
    let root = till("", "till");
    let [web, till] = ["web", "till"].map(|name| root.path().join("w").join(name));
    for folder in [&web, &till] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let started = |folders: &[&PathBuf]| {
        let sent = json!({ "hook_event_name": "sessionStart", "workspace_roots": folders });
        let sent = sent.to_string();
        ack_with_input(root.path(), &["hook", "session-start"], sent.as_bytes()).ok()
    };
    assert_contains!(started(&[&web, &till]), "Round cash");
    assert_contains!(started(&[&till, &web]), "Round cash");
    assert_lacks!(started(&[&web]), "Round cash");
}
