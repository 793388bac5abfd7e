//! Which scope is current: every rule, their order, and the spellings of paths, remotes and names.

use ack_api::Diagnostic;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ack_memory::Config;
use ack_memory::SettingsError;
use ack_memory::internal::{ENV_SCOPE, Inputs, Setting};
use serde_json::{Value, json};

use crate::support::{Ask, Root, titled, write_file};

/// A root with the scopes named, each with its manifest.
fn scopes(manifests: &[(&str, &str)]) -> Root {
    let root = Root::new();
    for (name, text) in manifests {
        let rule = titled(&format!("of-{name}"), &format!("Rule of {name}"));
        root.store(name, &[rule]);
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
    let answer = service.scopes(json!({}));
    let text = |field: &str| answer[field].as_str().map(str::to_owned);
    (text("current_scope"), text("detected_by"))
}

fn detect(root: &Root, project: &Path) -> String {
    match detect_with(root, project, |_| {}) {
        (Some(scope), Some(rule)) => {
            let rule = rule.replace(root.path().to_str().unwrap(), "ROOT");
            format!("{scope} by {rule}")
        }
        (None, None) => "none".to_owned(),
        other => panic!("{other:?}"),
    }
}

/// The current scope of a project alone, or `none`.
fn current(root: &Root, project: &Path) -> String {
    let (scope, _) = detect_with(root, project, |_| {});
    scope.unwrap_or_else(|| "none".to_owned())
}

/// A folder inside the root's temporary folder.
pub fn folder(root: &Root, path: &str) -> PathBuf {
    let folder = root.path().join(path);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A git repository made of files.
pub fn repository(folder: &Path, config: &str) {
    git_folder(&folder.join(".git"), &format!("\tbare = false\n{config}"));
}

/// The folder of a git repository.
fn git_folder(git: &Path, config: &str) {
    for part in ["objects", "refs/heads"] {
        std::fs::create_dir_all(git.join(part)).unwrap();
    }
    write_file(git.join("HEAD"), "ref: refs/heads/main\n");
    let core = format!("[core]\n\trepositoryformatversion = 0\n{config}");
    write_file(git.join("config"), core);
}

/// A linked worktree of a repository's git folder, as `git worktree add` leaves it.
fn worktree(git: &Path, name: &str, place: &Path) {
    let git_dir = git.join("worktrees").join(name);
    std::fs::create_dir_all(&git_dir).unwrap();
    std::fs::create_dir_all(place).unwrap();
    write_file(git_dir.join("HEAD"), "ref: refs/heads/feature\n");
    write_file(git_dir.join("commondir"), "../..\n");
    let own = place.join(".git");
    write_file(git_dir.join("gitdir"), format!("{}\n", own.display()));
    write_file(own, format!("gitdir: {}\n", git_dir.display()));
}

pub fn remote(url: &str) -> String {
    format!("[remote \"origin\"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n")
}

#[test]
fn the_rules_apply_in_their_order() {
    let root = Root::new();
    let project = folder(&root, "work/named");
    repository(&project, &remote("git@github.com:org/thing.git"));
    let scopes = "by-default by-path by-remote by-project named pinned-env pinned-flag";
    for scope in scopes.split(' ') {
        root.store(scope, &[]);
    }
    let config = root.path().join("config.toml");
    let paths = format!("paths = ['{}']", root.path().join("work").display());
    let remotes = "remotes = ['https://github.com/org/thing']";
    assert_eq!(detect(&root, &project), "named by scope name `named`");
    write_file(&config, "default_scope = 'by-default'");
    assert_eq!(detect(&root, &project), "named by scope name `named`");
    for (scope, manifest, rule) in [
        ("by-project", "projects = ['NAMED']", "projects `NAMED`"),
        ("by-remote", remotes, "remotes `https://github.com/org/thing`"),
        ("by-path", &paths, "paths `ROOT/work`"),
    ] {
        root.manifest(scope, manifest);
        assert_eq!(detect(&root, &project), format!("{scope} by {rule}"));
    }
    let found = |scope: &str, rule: &str| (Some(scope.to_owned()), Some(rule.to_owned()));
    let env = |inputs: &mut Inputs| {
        inputs.current_scope = Some(Setting::variable(ENV_SCOPE, "Pinned_Env".to_owned()))
    };
    let by_env = detect_with(&root, &project, env);
    assert_eq!(by_env, found("pinned-env", "environment ACK_MEM_SCOPE"));
    let flag = |inputs: &mut Inputs| {
        inputs.pinned = Some(Setting::flag("--pin", "pinned-flag".to_owned()))
    };
    let by_flag = detect_with(&root, &project, flag);
    assert_eq!(by_flag, found("pinned-flag", "flag --pin"));
    let elsewhere = folder(&root, "elsewhere");
    let by_default = "by-default by default_scope in config.toml";
    assert_eq!(detect(&root, &elsewhere), by_default);
    std::fs::remove_file(config).unwrap();
    assert_eq!(detect(&root, &elsewhere), "none");
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
        let body = service.refused(tool, arguments);
        assert_eq!(body.code, "scope_not_found", "{tool}");
        let text = serde_json::to_string(&body).unwrap();
        assert_contains!(text, "ledger_apl", "--pin"; "{tool}");
        assert_lacks!(text, "ledger-"; "{tool}");
    }
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
            root.manifest(name, &format!("paths = ['{paths}']"));
        }
        let found = detect_with(&root, &project, |inputs| inputs.home = Some(home.clone()));
        for (name, _) in &scopes {
            std::fs::remove_dir_all(root.scope_folder(name)).unwrap();
        }
        assert_eq!(found.0.as_deref().unwrap_or("none"), expected, "{case}");
    }
}

#[test]
fn a_folder_with_wildcards_in_its_name_is_matched_literally() {
    let root = Root::new();
    let project = folder(&root, "work/[draft] {v2}");
    root.manifest("a", &format!("paths = ['{}']", project.display()));
    assert_eq!(current(&root, &project), "a");
}

#[test]
fn a_relative_path_in_a_manifest_does_not_depend_on_where_the_server_was_started() {
    let root = Root::new();
    root.manifest("a", "paths = ['.', 'src']");
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
    worktree(&main.join(".git"), "fix-the-lock", &tree);
    folder(&root, "trees/fix-the-lock/crates/core");
    folder(&root, "src/ledger-api/crates/core");
    let paths = |path: &Path| format!("paths = ['{}']", path.display());
    for place in [&tree, &tree.join("crates/core")] {
        for (scope, manifest, expected) in [
            ("ledger_api", String::new(), "ledger_api by scope name `ledger_api`"),
            (
                "by-remote",
                "remotes = ['github.com/org/money']".to_owned(),
                "by-remote by remotes `github.com/org/money`",
            ),
            ("by-path", paths(&main), "by-path by paths `ROOT/src/ledger-api`"),
            // Both are equally long; the first by name wins.
            ("by-tree", paths(&tree), "by-path by paths `ROOT/src/ledger-api`"),
        ] {
            root.manifest(scope, &manifest);
            assert_eq!(detect(&root, place), expected);
        }
        for scope in ["ledger_api", "by-remote", "by-path", "by-tree"] {
            std::fs::remove_dir_all(root.scope_folder(scope)).unwrap();
        }
    }
    root.store("other", &[]);
    let answer = root.service().brief(json!({ "project_path": tree }));
    assert_eq!(answer["project"]["name"], "ledger-api");
}

#[test]
fn a_worktree_of_a_bare_repository_is_known_by_the_repository() {
    let root = Root::new();
    for (bare, name) in [("src/ledger.git", "ledger"), ("src/kiosk/.bare", "kiosk")] {
        let bare = folder(&root, bare);
        git_folder(&bare, "\tbare = true\n");
        let tree = root.path().join(format!("trees/{name}-one"));
        worktree(&bare, "one", &tree);
        root.manifest(name, "");
        assert_eq!(detect(&root, &tree), format!("{name} by scope name `{name}`"));
    }
}

#[test]
fn remotes_are_equal_in_every_spelling() {
    let spellings = "git@github.com:Org/Ledger-API.git|git@github.com:org/ledger-api|\
        github.com:org/ledger-api.git|ssh://git@github.com/org/ledger-api.git|\
        ssh://git@github.com:22/org/ledger-api|https://github.com/org/ledger-api|\
        https://github.com/org/ledger-api/|https://github.com/org/ledger-api.git/|\
        http://user:token@github.com/org/ledger-api.git|git://github.com/org/ledger-api.git|\
        HTTPS://GITHUB.COM/Org/Ledger-API|github.com/org/ledger-api|github.com/org/ledger-api.git|\
        https://github.com/org/ledger-api |ssh://GitHub.com/org/ledger-api";
    let spellings = || spellings.split('|');
    let root = Root::new();
    let project = folder(&root, "work/clone");
    for in_repository in spellings() {
        repository(&project, &remote(in_repository));
        for in_manifest in spellings() {
            let remotes = format!("remotes = ['gitlab.com/x/y', '{in_manifest}']");
            root.manifest("a", &remotes);
            assert_eq!(current(&root, &project), "a", "{in_repository} / {in_manifest}");
        }
    }
    for other in [
        "https://github.com/org/ledger-api-v2",
        "https://gitlab.com/org/ledger-api",
        "https://github.com/ledger-api",
        "/srv/git/ledger-api.git",
    ] {
        repository(&project, &remote(other));
        root.manifest("a", "remotes = ['github.com/org/ledger-api', '']");
        assert_eq!(current(&root, &project), "none", "{other}");
    }
    let two = format!(
        "[remote \"fork\"]\n\turl = https://github.com/me/fork\n{}",
        remote("https://github.com/org/ledger-api")
    );
    repository(&project, &two);
    root.manifest("a", "remotes = ['github.com/me/fork']");
    assert_eq!(detect(&root, &project), "a by remotes `github.com/me/fork`");
    root.manifest("b", "remotes = ['github.com/org/ledger-api']");
    assert_eq!(detect(&root, &project), "b by remotes `github.com/org/ledger-api`");
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
        root.manifest("a", &format!("remotes = ['{in_manifest}']"));
        detect_with(&root, &project, |inputs| inputs.home = Some(home.clone())).0.is_some()
    };
    let wanted = "github.com/org/ledger-api";
    let by_alias = remote("work:org/ledger-api.git");
    assert!(!found(&by_alias, wanted));
    let ssh = home.join(".ssh/config");
    let text = "Host work personal-*\n  HostName ssh.github.com\n  Port 443\n";
    write_file(&ssh, text);
    assert!(found(&by_alias, wanted) && found(&by_alias, "git@work:org/ledger-api"));
    assert!(found(
        &remote("https://www.github.com/Org/ledger-api.git"),
        "git@personal-2:org/ledger-api"
    ));
    assert!(!found(&remote("git@other:org/ledger-api.git"), wanted));
    // A file that is not regular is not waited for.
    std::fs::remove_file(&ssh).unwrap();
    nix::unistd::mkfifo(&ssh, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    assert!(!found(&by_alias, wanted));
    let short = remote("gh:org/ledger-api");
    assert!(!found(&short, wanted));
    let own = "[url \"git@github.com:\"]\n\tinsteadOf = gh:\n";
    assert!(found(&format!("{short}{own}"), wanted), "the repository's own settings");
    for file in [".gitconfig", ".config/git/config"] {
        write_file(home.join(file), own);
        assert!(found(&short, wanted) && found(&short, "gh:org/ledger-api"), "{file}");
        std::fs::remove_file(home.join(file)).unwrap();
    }
    // The longest prefix counts, and a manifest without the rewritten URL matches, too.
    let mirror = "[url \"https://mirror.corp/\"]\n\tinsteadOf = https://github.com/\n[url \"https://vault.corp/\"]\n\tinsteadOf = https://github.com/org/\n";
    write_file(home.join(".gitconfig"), mirror);
    let plain = remote("https://github.com/org/ledger-api");
    assert!(found(&plain, "vault.corp/ledger-api") && found(&plain, wanted));
    assert!(!found(&plain, "mirror.corp/org/ledger-api"));
}

#[test]
fn names_are_equal_whatever_their_case_and_dashes() {
    let root = scopes(&[("Ledger_API", ""), ("other", "projects = ['Kiosk Web']")]);
    repository(&folder(&root, "deep/ledger-api"), "");
    for (project, expected) in [
        ("work/ledger-api", "Ledger_API"),
        ("work/LEDGER_api", "Ledger_API"),
        ("work/kiosk_web", "other"),
        ("work/Kiosk-Web", "other"),
        ("deep/ledger-api/crates/core", "Ledger_API"),
        ("work/ledgerapi", "none"),
    ] {
        let found = current(&root, &folder(&root, project));
        assert_eq!(found, expected, "{project}");
    }
}

#[test]
fn a_symbolic_link_that_leaves_the_scope_root_is_not_followed() {
    let outside = Root::with("stolen", &[titled("x", "Deploy secret")]);
    let root = scopes(&[("own", "")]);
    for (name, target) in [
        ("link", outside.scope_folder("stolen")),
        ("twin", root.scope_folder("own")),
        ("dangling", root.path().join("nowhere")),
    ] {
        symlink(target, root.path().join("scopes").join(name)).unwrap();
    }
    let service = root.service();
    let answer = service.find(json!({ "status": "all" }));
    assert_lacks!(answer, "secret");
    let skipped = answer["searched"]["skipped"].as_array().unwrap();
    let skipped: Vec<&Value> = skipped.iter().map(|skipped| &skipped["scope"]).collect();
    assert_eq!(skipped, ["dangling", "link"]);
    let error = service.refused("query_memories", json!({ "scope": "link" }));
    assert_eq!(error.code, "scope_unusable");
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
    let root = Root::with("a", &[titled("x", "Deploy rule")]);
    let service = root.service();
    let problems = |text: &str| {
        root.manifest("a", text);
        service.scopes(json!({}))["scopes"][0]["health"].clone()
    };
    for text in valid {
        let health = problems(text);
        assert_ne!(health["state"], "unavailable", "{text}: {health}");
        assert!(
            text == every_key || health["problems"].as_array().is_none_or(Vec::is_empty),
            "{text}: {health}"
        );
    }
    for (text, line, says) in invalid {
        let health = problems(text);
        assert_eq!(health["state"], "unavailable", "{text}");
        let line = format!("line {line}:");
        assert_contains!(health["problems"][0], line, says, "scope.toml"; "{text}");
        // It is the only scope, so nothing can be searched.
        let error = service.refused("query_memories", json!({}));
        assert_eq!(error.code, "scope_unusable", "{text}");
        assert_contains!(error.message, "scope.toml"; "{text}");
    }
}

#[test]
fn an_invalid_configuration_is_refused_with_line_and_key() {
    let root = Root::new();
    let load = |text: &str| {
        write_file(root.path().join("config.toml"), text);
        Config::load(Inputs {
            root: Some(Setting::flag("--root", root.path().to_owned())),
            working_directory: root.path().to_owned(),
            ..Inputs::default()
        })
    };
    for text in ["", "default_scope = 'a'", "[limits]\ntokens = 20000"] {
        load(text).unwrap();
    }
    assert_eq!(load("[limits]\ntokens = 200").unwrap().tokens.value, 200);
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
        ("[serve]\nmax_status = 'x'", 1, "write `max_status`", ""),
        ("[limits]\nmemory = 64", 2, "no longer exists: remove", ""),
        ("[limits]\nresults = 5", 2, "no longer exists: remove", ""),
        ("default_scope = 5", 1, "", ""),
        ("default_scope = ", 1, "", ""),
    ];
    for (text, line, key, near) in invalid {
        let error = load(text).unwrap_err();
        let SettingsError::Invalid { nearest, message, .. } = &error else {
            panic!("{text}: {error}")
        };
        assert_contains!(message, format!("line {line}"), key; "{text:?}");
        let close = near.is_empty() || nearest.first().is_some_and(|found| found == near);
        assert!(close, "{text:?}: {nearest:?}");
        assert_eq!(error.body().code, "invalid_settings");
    }
}
