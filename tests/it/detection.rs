//! Which scope is current: every rule, their order, and the spellings of paths, remotes and names.

use ack_api::Diagnostic;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ack_memory::Config;
use ack_memory::SettingsError;
use ack_memory::internal::{ENV_DB, ENV_SCOPE, Inputs, Setting};
use serde_json::{Value, json};

use crate::arguments::call;
use crate::support::{Root, memory};

/// A root with the scopes named, each with its manifest.
fn scopes(manifests: &[(&str, &str)]) -> Root {
    let root = Root::new();
    for (name, text) in manifests {
        root.store(
            name,
            &[memory(
                &format!("of-{name}"),
                &format!("Rule of {name}"),
                json!({}),
            )],
        );
        root.manifest(name, text);
    }
    root
}

/// The current scope of a project, and the rule that found it.
fn detect_with(
    root: &Root,
    project: &Path,
    change: impl FnOnce(&mut Inputs),
) -> (Option<String>, Option<String>) {
    let service = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", project.to_owned()));
        change(inputs);
    });
    let answer = call(&service, "list_scopes", json!({})).unwrap();
    let text = |field: &str| answer[field].as_str().map(str::to_owned);
    (text("current_scope"), text("detected_by"))
}

fn detect(root: &Root, project: &Path) -> String {
    match detect_with(root, project, |_| {}) {
        (Some(scope), Some(rule)) => format!(
            "{scope} by {}",
            rule.replace(root.path().to_str().unwrap(), "ROOT")
        ),
        (None, None) => "none".to_owned(),
        other => panic!("{other:?}"),
    }
}

/// A folder inside the root's temporary folder.
fn folder(root: &Root, path: &str) -> PathBuf {
    let folder = root.path().join(path);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A git repository made of files.
fn repository(folder: &Path, config: &str) {
    let git = folder.join(".git");
    for part in ["objects", "refs/heads"] {
        std::fs::create_dir_all(git.join(part)).unwrap();
    }
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(
        git.join("config"),
        format!("[core]\n\trepositoryformatversion = 0\n\tbare = false\n{config}"),
    )
    .unwrap();
}

/// A linked worktree of a repository, as `git worktree add` leaves it.
fn worktree(main: &Path, name: &str, place: &Path) {
    let git_dir = main.join(".git/worktrees").join(name);
    std::fs::create_dir_all(&git_dir).unwrap();
    std::fs::create_dir_all(place).unwrap();
    std::fs::write(git_dir.join("HEAD"), "ref: refs/heads/feature\n").unwrap();
    std::fs::write(git_dir.join("commondir"), "../..\n").unwrap();
    std::fs::write(
        git_dir.join("gitdir"),
        format!("{}\n", place.join(".git").display()),
    )
    .unwrap();
    std::fs::write(
        place.join(".git"),
        format!("gitdir: {}\n", git_dir.display()),
    )
    .unwrap();
}

fn remote(url: &str) -> String {
    format!("[remote \"origin\"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n")
}

#[test]
fn the_rules_apply_in_their_order() {
    let root = Root::new();
    let project = folder(&root, "work/named");
    repository(&project, &remote("git@github.com:org/thing.git"));
    for scope in [
        "by-default",
        "by-path",
        "by-remote",
        "by-project",
        "named",
        "pinned-env",
        "pinned-flag",
    ] {
        root.store(scope, &[]);
    }
    let detected = || detect(&root, &project);
    assert_eq!(detected(), "named by scope name `named`");
    std::fs::write(
        root.path().join("config.toml"),
        "default_scope = 'by-default'",
    )
    .unwrap();
    assert_eq!(detected(), "named by scope name `named`");
    root.manifest("by-project", "projects = ['NAMED']");
    assert_eq!(detected(), "by-project by projects `NAMED`");
    root.manifest("by-remote", "remotes = ['https://github.com/org/thing']");
    assert_eq!(
        detected(),
        "by-remote by remotes `https://github.com/org/thing`"
    );
    root.manifest(
        "by-path",
        &format!("paths = ['{}']", root.path().join("work").display()),
    );
    assert_eq!(detected(), "by-path by paths `ROOT/work`");
    let env = |inputs: &mut Inputs| {
        inputs.current_scope = Some(Setting::variable(ENV_SCOPE, "Pinned_Env".to_owned()))
    };
    assert_eq!(
        detect_with(&root, &project, env),
        (
            Some("pinned-env".to_owned()),
            Some("environment ACK_MEM_SCOPE".to_owned())
        )
    );
    let flag = |inputs: &mut Inputs| {
        inputs.pinned = Some(Setting::flag("--pin", "pinned-flag".to_owned()))
    };
    assert_eq!(
        detect_with(&root, &project, flag),
        (
            Some("pinned-flag".to_owned()),
            Some("flag --pin".to_owned())
        )
    );
    assert_eq!(
        detect(&root, &folder(&root, "elsewhere")),
        "by-default by default_scope in config.toml"
    );
    std::fs::remove_file(root.path().join("config.toml")).unwrap();
    assert_eq!(detect(&root, &folder(&root, "elsewhere")), "none");
}

#[test]
fn a_pin_on_a_scope_that_does_not_exist_names_no_other() {
    let root = scopes(&[
        ("ledger-api", "projects = ['ledger-apo']"),
        ("ledger-diary", "visibility = 'private'"),
    ]);
    let service = root.service_with(|inputs| {
        inputs.pinned = Some(Setting::flag("--pin", "ledger_apl".to_owned()))
    });
    for (tool, arguments) in [
        ("query_memories", json!({})),
        ("query_memories", json!({ "scope": "ledger-api" })),
        ("get_memory", json!({ "id": "of-ledger-api" })),
        ("list_scopes", json!({})),
        ("list_scopes", json!({ "scope": "ledger-api" })),
        ("get_context", json!({})),
    ] {
        let body = call(&service, tool, arguments).unwrap_err().body();
        assert_eq!(body.code, "scope_not_found", "{tool}");
        let text = serde_json::to_string(&body).unwrap();
        assert!(
            text.contains("ledger_apl") && text.contains("--pin"),
            "{tool}: {text}"
        );
        assert!(!text.contains("ledger-"), "{tool}: {text}");
    }
}

#[test]
fn the_project_is_the_given_folder_or_the_working_directory() {
    let root = scopes(&[("one", ""), ("two", "")]);
    let [one, two] = ["one", "two"].map(|name| folder(&root, name));
    let current = |project: Option<&PathBuf>| {
        let service = root.service_with(|inputs| {
            inputs.project = project.map(|project| Setting::flag("-C", project.clone()));
            inputs.working_directory = two.clone();
        });
        call(&service, "list_scopes", json!({})).unwrap()["current_scope"].clone()
    };
    assert_eq!(current(Some(&one)), "one");
    assert_eq!(current(Some(&PathBuf::from("../one"))), "one");
    assert_eq!(current(None), "two");
}

#[test]
fn the_longest_matching_path_wins() {
    let root = Root::new();
    let home = folder(&root, "home");
    let service = folder(&root, "home/code/mono/services/ledger/src");
    folder(&root, "home/code/kiosk-web");
    symlink(root.path().join("home/code"), root.path().join("short")).unwrap();
    // The patterns of the scopes `a | b | c`, where the project is, and the current scope.
    let cases = "
        ROOT/home/code | ROOT/home/code/mono/services | ROOT/home/code/mono -> b
        ~/code/mono/*/ledger | ~/code/mono/services -> a
        ~/code/** | ~/code/mono/services -> a
        ~/code/m?n[opq] | ~/code -> a
        ~/code/{mono,poly} -> a
        ~/code/* @ home/code -> none
        ~/code/kiosk-* @ home/code/kiosk-web -> a
        ~/code/kiosk @ home/code/kiosk-web -> none
        ~/code/mono/ -> a
        ~ | ~/nowhere & ~/code/mono -> b
        ~ -> a
        ROOT/short/mono -> a
        ROOT/short/mono/* -> a
        ~/code/mono @ short/mono/services -> a
        ROOT/gone @ gone/deeper -> a
        EMPTY | [ -> none";
    for case in cases.lines().map(str::trim).filter(|case| !case.is_empty()) {
        let (patterns, expected) = case.rsplit_once(" -> ").unwrap();
        let (patterns, project) = match patterns.split_once(" @ ") {
            Some((patterns, inside)) => (patterns, root.path().join(inside)),
            None => (patterns, service.clone()),
        };
        let patterns = patterns.replace("EMPTY", "");
        let patterns = patterns.replace("ROOT", root.path().to_str().unwrap());
        let names = ["a", "b", "c"].into_iter();
        let scopes: Vec<(&str, &str)> = names.zip(patterns.split(" | ")).collect();
        for (name, patterns) in &scopes {
            let paths = patterns.replace(" & ", "', '");
            root.store_folder_with(name, &format!("paths = ['{paths}']"));
        }
        let found = detect_with(&root, &project, |inputs| inputs.home = Some(home.clone()));
        for (name, _) in &scopes {
            std::fs::remove_dir_all(root.scope_folder(name)).unwrap();
        }
        assert_eq!(found.0.as_deref().unwrap_or("none"), expected, "{case}");
    }
}

/// A scope without memories, for a manifest alone.
trait Bare {
    fn store_folder_with(&self, name: &str, manifest: &str);
}

impl Bare for Root {
    fn store_folder_with(&self, name: &str, manifest: &str) {
        std::fs::write(self.scope_folder(name).join("scope.toml"), manifest).unwrap();
    }
}

#[test]
fn a_folder_with_wildcards_in_its_name_is_matched_literally() {
    let root = Root::new();
    let project = folder(&root, "work/[draft] {v2}");
    root.store_folder_with("a", &format!("paths = ['{}']", project.display()));
    assert_eq!(detect_with(&root, &project, |_| {}).0.as_deref(), Some("a"));
}

#[test]
fn a_relative_path_in_a_manifest_does_not_depend_on_where_the_server_was_started() {
    let root = Root::new();
    root.store_folder_with("a", "paths = ['.', 'src']");
    let here = std::env::current_dir().unwrap();
    let (scope, rule) = detect_with(&root, &here, |_| {});
    assert_eq!(scope, None, "{rule:?}");
}

#[test]
fn a_worktree_counts_as_its_main_repository() {
    let root = Root::new();
    let main = folder(&root, "src/ledger-api");
    repository(&main, &remote("https://github.com/org/money"));
    let tree = root.path().join("trees/fix-the-lock");
    worktree(&main, "fix-the-lock", &tree);
    std::fs::create_dir_all(tree.join("crates/core")).unwrap();
    std::fs::create_dir_all(main.join("crates/core")).unwrap();
    for place in [&tree, &tree.join("crates/core")] {
        root.store_folder_with("ledger_api", "");
        assert_eq!(
            detect(&root, place),
            "ledger_api by scope name `ledger_api`"
        );
        root.store_folder_with("by-remote", "remotes = ['github.com/org/money']");
        assert_eq!(
            detect(&root, place),
            "by-remote by remotes `github.com/org/money`"
        );
        root.store_folder_with("by-path", &format!("paths = ['{}']", main.display()));
        assert_eq!(
            detect(&root, place),
            "by-path by paths `ROOT/src/ledger-api`"
        );
        root.store_folder_with("by-tree", &format!("paths = ['{}']", tree.display()));
        assert_eq!(
            detect_with(&root, place, |_| {}).0.as_deref().unwrap(),
            "by-path",
            "both are equally long; the first by name wins"
        );
        for scope in ["ledger_api", "by-remote", "by-path", "by-tree"] {
            std::fs::remove_dir_all(root.scope_folder(scope)).unwrap();
        }
    }
    let answer = {
        root.store("other", &[]);
        call(
            &root.service(),
            "get_context",
            json!({ "project_path": tree }),
        )
        .unwrap()
    };
    assert_eq!(answer["project"]["name"], "ledger-api");
}

#[test]
fn a_worktree_of_a_bare_repository_is_known_by_the_repository() {
    let root = Root::new();
    for (bare, name) in [("src/ledger.git", "ledger"), ("src/kiosk/.bare", "kiosk")] {
        let bare = folder(&root, bare);
        for part in ["objects", "refs/heads", "worktrees/one"] {
            std::fs::create_dir_all(bare.join(part)).unwrap();
        }
        std::fs::write(bare.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(
            bare.join("config"),
            "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        )
        .unwrap();
        let tree = folder(&root, &format!("trees/{name}-one"));
        let git_dir = bare.join("worktrees/one");
        std::fs::write(git_dir.join("HEAD"), "ref: refs/heads/one\n").unwrap();
        std::fs::write(git_dir.join("commondir"), "../..\n").unwrap();
        std::fs::write(
            git_dir.join("gitdir"),
            format!("{}\n", tree.join(".git").display()),
        )
        .unwrap();
        std::fs::write(
            tree.join(".git"),
            format!("gitdir: {}\n", git_dir.display()),
        )
        .unwrap();
        root.store_folder_with(name, "");
        assert_eq!(
            detect(&root, &tree),
            format!("{name} by scope name `{name}`")
        );
    }
}

#[test]
fn remotes_are_equal_in_every_spelling() {
    let spellings = [
        "git@github.com:Org/Ledger-API.git",
        "git@github.com:org/ledger-api",
        "github.com:org/ledger-api.git",
        "ssh://git@github.com/org/ledger-api.git",
        "ssh://git@github.com:22/org/ledger-api",
        "https://github.com/org/ledger-api",
        "https://github.com/org/ledger-api/",
        "https://github.com/org/ledger-api.git/",
        "http://user:token@github.com/org/ledger-api.git",
        "git://github.com/org/ledger-api.git",
        "HTTPS://GITHUB.COM/Org/Ledger-API",
        "github.com/org/ledger-api",
        "github.com/org/ledger-api.git",
        " https://github.com/org/ledger-api ",
        "ssh://GitHub.com/org/ledger-api",
    ];
    let root = Root::new();
    let project = folder(&root, "work/clone");
    let mut differ = Vec::new();
    for in_repository in spellings {
        repository(&project, &remote(in_repository));
        for in_manifest in spellings {
            root.store_folder_with(
                "a",
                &format!("remotes = ['gitlab.com/x/y', '{in_manifest}']"),
            );
            if detect_with(&root, &project, |_| {}).0.is_none() {
                differ.push(format!("{in_repository} / {in_manifest}"));
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    for other in [
        "https://github.com/org/ledger-api-v2",
        "https://gitlab.com/org/ledger-api",
        "https://github.com/ledger-api",
        "/srv/git/ledger-api.git",
    ] {
        repository(&project, &remote(other));
        root.store_folder_with("a", "remotes = ['github.com/org/ledger-api', '']");
        assert_eq!(detect_with(&root, &project, |_| {}).0, None, "{other}");
    }
    let two = format!(
        "[remote \"fork\"]\n\turl = https://github.com/me/fork\n{}",
        remote("https://github.com/org/ledger-api")
    );
    repository(&project, &two);
    root.store_folder_with("a", "remotes = ['github.com/me/fork']");
    assert_eq!(detect(&root, &project), "a by remotes `github.com/me/fork`");
    root.store_folder_with("b", "remotes = ['github.com/org/ledger-api']");
    assert_eq!(
        detect(&root, &project),
        "b by remotes `github.com/org/ledger-api`"
    );
}

#[test]
fn remotes_are_resolved_with_the_settings_of_git_and_ssh() {
    let root = Root::new();
    let home = folder(&root, "home");
    folder(&root, "home/.ssh");
    folder(&root, "home/.config/git");
    let project = folder(&root, "work/clone");
    let found = |in_repository: &str, in_manifest: &str| {
        repository(&project, in_repository);
        root.store_folder_with("a", &format!("remotes = ['{in_manifest}']"));
        detect_with(&root, &project, |inputs| inputs.home = Some(home.clone()))
            .0
            .is_some()
    };
    let wanted = "github.com/org/ledger-api";
    let by_alias = remote("work:org/ledger-api.git");
    assert!(!found(&by_alias, wanted));
    let ssh = home.join(".ssh/config");
    std::fs::write(
        &ssh,
        "Host work personal-*\n  HostName ssh.github.com\n  Port 443\n",
    )
    .unwrap();
    assert!(found(&by_alias, wanted) && found(&by_alias, "git@work:org/ledger-api"));
    assert!(found(
        &remote("https://www.github.com/Org/ledger-api.git"),
        "git@personal-2:org/ledger-api"
    ));
    assert!(!found(&remote("git@other:org/ledger-api.git"), wanted));
    // A file that is not regular is not waited for.
    std::fs::remove_file(&ssh).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&ssh)
            .status()
            .unwrap()
            .success()
    );
    assert!(!found(&by_alias, wanted));
    let short = remote("gh:org/ledger-api");
    assert!(!found(&short, wanted));
    let own = "[url \"git@github.com:\"]\n\tinsteadOf = gh:\n";
    assert!(
        found(&format!("{short}{own}"), wanted),
        "the repository's own settings"
    );
    for file in [".gitconfig", ".config/git/config"] {
        std::fs::write(home.join(file), own).unwrap();
        assert!(
            found(&short, wanted) && found(&short, "gh:org/ledger-api"),
            "{file}"
        );
        std::fs::remove_file(home.join(file)).unwrap();
    }
    // The longest prefix counts, and a manifest without the rewritten URL matches, too.
    let mirror = "[url \"https://mirror.corp/\"]\n\tinsteadOf = https://github.com/\n[url \"https://vault.corp/\"]\n\tinsteadOf = https://github.com/org/\n";
    std::fs::write(home.join(".gitconfig"), mirror).unwrap();
    let plain = remote("https://github.com/org/ledger-api");
    assert!(found(&plain, "vault.corp/ledger-api") && found(&plain, wanted));
    assert!(!found(&plain, "mirror.corp/org/ledger-api"));
}

#[test]
fn names_are_equal_whatever_their_case_and_dashes() {
    let root = scopes(&[("Ledger_API", ""), ("other", "projects = ['Kiosk Web']")]);
    for (project, expected) in [
        ("ledger-api", "Ledger_API"),
        ("LEDGER_api", "Ledger_API"),
        ("kiosk_web", "other"),
        ("Kiosk-Web", "other"),
    ] {
        assert_eq!(
            detect_with(&root, &folder(&root, &format!("work/{project}")), |_| {})
                .0
                .as_deref(),
            Some(expected),
            "{project}"
        );
    }
    let repository_folder = folder(&root, "deep/ledger-api");
    repository(&repository_folder, "");
    assert_eq!(
        detect_with(&root, &folder(&root, "deep/ledger-api/crates/core"), |_| {})
            .0
            .as_deref(),
        Some("Ledger_API")
    );
    assert_eq!(detect(&root, &folder(&root, "work/ledgerapi")), "none");
}

#[test]
fn a_default_scope_that_does_not_exist_is_reported() {
    let root = scopes(&[("ledger-api", "")]);
    std::fs::write(
        root.path().join("config.toml"),
        "default_scope = 'ledger-apo'",
    )
    .unwrap();
    let answer = call(&root.service(), "list_scopes", json!({})).unwrap();
    assert!(
        answer["notes"].to_string().contains("ledger-apo"),
        "{answer:#}"
    );
}

#[test]
fn a_symbolic_link_that_leaves_the_scope_root_is_not_followed() {
    let outside = Root::new();
    outside.store("stolen", &[memory("x", "Deploy secret", json!({}))]);
    let root = scopes(&[("own", "")]);
    symlink(
        outside.scope_folder("stolen"),
        root.path().join("scopes/link"),
    )
    .unwrap();
    symlink(root.scope_folder("own"), root.path().join("scopes/twin")).unwrap();
    symlink(
        root.path().join("nowhere"),
        root.path().join("scopes/dangling"),
    )
    .unwrap();
    let service = root.service();
    let answer = call(&service, "query_memories", json!({ "status": "all" })).unwrap();
    assert!(!answer.to_string().contains("secret"));
    let skipped: Vec<&Value> = answer["searched"]["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skipped| &skipped["scope"])
        .collect();
    assert_eq!(skipped, ["dangling", "link"]);
    assert_eq!(
        call(&service, "query_memories", json!({ "scope": "link" }))
            .unwrap_err()
            .code(),
        "scope_not_found"
    );
    assert_eq!(answer["searched"]["scopes"], json!(["own", "twin"]));
}

#[test]
fn an_invalid_manifest_is_reported_with_line_and_key() {
    let every_key = "description = 'd'\nprojects = ['a']\npaths = ['~/a', '/b/*']\nremotes = ['github.com/a/b']\nvisibility = 'private'\nstore = 'x.db'\nunreviewed = 'approved'\n";
    let valid = [
        "",
        "# nothing\n",
        every_key,
        "[projects]\na = ['b', 'c']\nd = []\n",
        "description = 'd'\r\nvisibility = 'shared'\r\n",
    ];
    let lists = "a list of names, or a table";
    let belong = "folders and remotes of a project belong to `paths`";
    let invalid = [
        ("description = 'd'\nvisibilty = 'private'\n", 2, "visibilty"),
        ("visibilty = 'private'\n", 1, "did you mean `visibility`"),
        ("\n\nproject = ['a']\n", 3, "did you mean `projects`"),
        ("visibility = 'secret'\n", 1, "secret"),
        ("visibility = 'Private'\n", 1, "Private"),
        ("projects = 'a'\n", 1, lists),
        ("[projects]\na = 'b'\n", 2, "a list of aliases"),
        ("[projects.a]\npaths = ['b']\n", 1, belong),
        ("\ndescription = 5\n", 2, "`description`"),
        ("paths = [\n    'a=b', 5,\n]\n", 2, "`paths[1]`"),
        ("projects = ['a'\n", 1, ""),
        ("description = 'a'\ndescription = 'b'\n", 2, "description"),
        ("[limits]\nresults = 5\n", 1, "limits"),
        ("visibility: private\n", 1, ""),
    ];
    let root = Root::new();
    root.store("a", &[memory("x", "Deploy rule", json!({}))]);
    let service = root.service();
    let problems = |text: &str| {
        root.manifest("a", text);
        call(&service, "list_scopes", json!({})).unwrap()["scopes"][0]["health"].clone()
    };
    for text in valid {
        let health = problems(text);
        assert_ne!(health["state"], "unavailable", "{text}: {health}");
        assert!(
            text == every_key || health["problems"].as_array().is_none_or(Vec::is_empty),
            "{text}: {health}"
        );
    }
    let mut poor = Vec::new();
    for (text, line, says) in invalid {
        let health = problems(text);
        assert_eq!(health["state"], "unavailable", "{text}");
        let message = health["problems"][0].as_str().unwrap_or_default();
        let line = format!("line {line}:");
        if ![&*line, says, "scope.toml"]
            .iter()
            .all(|part| message.contains(part))
        {
            poor.push(format!("{text:?} ({line} {says}): {message}"));
        }
        // It is the only scope, so nothing can be searched.
        let error = call(&service, "query_memories", json!({})).unwrap_err();
        assert!(
            error.code() == "scope_unusable" && error.to_string().contains("scope.toml"),
            "{text}: {error}"
        );
    }
    assert!(poor.is_empty(), "{}", poor.join("\n"));
}

#[test]
fn an_invalid_configuration_is_refused_with_line_and_key() {
    let root = Root::new();
    let load = |text: &str| {
        std::fs::write(root.path().join("config.toml"), text).unwrap();
        Config::load(Inputs {
            root: Some(Setting::flag("--root", root.path().to_owned())),
            working_directory: root.path().to_owned(),
            ..Inputs::default()
        })
    };
    for text in [
        "",
        "default_scope = 'a'",
        "[limits]",
        "[limits]\ntokens = 20000",
        "[limits]\ntokens = 200",
    ] {
        load(text).unwrap();
    }
    assert_eq!(load("[limits]\ntokens = 300").unwrap().tokens.value, 300);
    let invalid = [
        ("defualt_scope = 'a'", 1, "defualt_scope", "default_scope"),
        ("\n[limit]\ntokens = 500", 2, "limit", "limits"),
        ("[limits]\ntokns = 500", 2, "tokns", "tokens"),
        ("[limits]\nseconds = 0", 2, "seconds", ""),
        ("[limits]\nseconds = 3601", 2, "seconds", ""),
        ("[limits]\ntokens = 199", 2, "tokens", ""),
        ("[limits]\nseconds = -1", 2, "", ""),
        ("[limits]\nseconds = '5'", 2, "`limits.seconds`", ""),
        // What there was says what to do instead.
        (
            "[serve]\nmax_status = 'all'",
            1,
            "the key `serve` no longer exists: write `max_status` at the top",
            "",
        ),
        (
            "[limits]\nmemory = 64",
            2,
            "the key `limits.memory` no longer exists: remove the line",
            "",
        ),
        (
            "[limits]\nresults = 5",
            2,
            "the key `limits.results` no longer exists: remove the line",
            "",
        ),
        ("default_scope = 5", 1, "", ""),
        ("default_scope = ", 1, "", ""),
    ];
    let mut poor = Vec::new();
    for (text, line, key, near) in invalid {
        let error = load(text).unwrap_err();
        let SettingsError::Invalid {
            nearest, message, ..
        } = &error
        else {
            panic!("{text}: {error}")
        };
        let close = near.is_empty() || nearest.first().is_some_and(|found| found == near);
        if !message.contains(&format!("line {line}")) || !message.contains(key) || !close {
            poor.push(format!(
                "{text:?} (line {line}): {message}; nearest {nearest:?}"
            ));
        }
        assert_eq!(error.body().code, "invalid_settings");
    }
    assert!(poor.is_empty(), "{}", poor.join("\n"));
}

#[test]
fn a_single_database_is_the_only_scope() {
    let root = scopes(&[("hidden", "")]);
    let elsewhere = Root::new();
    let path = elsewhere.store(
        "team",
        &[
            memory("x", "Deploy rule", json!({})),
            memory("y", "Deploy draft", json!({ "status": "staging" })),
        ],
    );
    let service =
        root.service_with(|inputs| inputs.db = Some(Setting::variable(ENV_DB, path.clone())));
    let answer = call(&service, "query_memories", json!({ "query": "deploy" })).unwrap();
    assert_eq!(
        (&answer["total"], &answer["searched"]["scopes"]),
        (&json!(1), &json!(["memory"]))
    );
    assert!(
        !call(&service, "list_scopes", json!({}))
            .unwrap()
            .to_string()
            .contains("hidden")
    );
    assert_eq!(
        call(&service, "get_memory", json!({ "id": "of-hidden" }))
            .unwrap_err()
            .code(),
        "memory_not_found"
    );
    assert_eq!(
        call(
            &service,
            "get_memory",
            json!({ "id": "x", "scope": "memory" })
        )
        .unwrap()["id"],
        "x"
    );
    let absent = root.service_with(|inputs| {
        inputs.db = Some(Setting::variable(ENV_DB, root.path().join("no-such.db")))
    });
    let body = call(&absent, "query_memories", json!({}))
        .unwrap_err()
        .body();
    assert!(
        body.message.starts_with("Memory database not found")
            && body.message.contains("no-such.db"),
        "{}",
        body.message
    );
    assert_eq!(
        call(&absent, "list_scopes", json!({})).unwrap()["scopes"][0]["health"]["state"],
        "unavailable"
    );
}

#[test]
fn a_single_database_inside_a_scope_keeps_the_rules_of_its_manifest() {
    let root = scopes(&[("diary", "unreviewed = 'approved'\nvisibility = 'private'")]);
    let connection =
        rusqlite::Connection::open(root.scope_folder("diary").join("memory.db")).unwrap();
    connection
        .execute_batch(
            "DROP TABLE memories; CREATE TABLE memories (id TEXT, title TEXT); INSERT INTO memories VALUES ('n', 'Never reviewed')",
        )
        .unwrap();
    let path = root.scope_folder("diary").join("memory.db");
    let service = root.service_with(|inputs| inputs.db = Some(Setting::variable(ENV_DB, path)));
    assert_eq!(
        call(&service, "query_memories", json!({})).unwrap()["total"],
        1,
        "`unreviewed` of the scope.toml beside it counts"
    );
}
