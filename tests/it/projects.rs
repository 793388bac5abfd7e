//! Several projects in one scope: which one is current, what `project` means, and `scope` as the
//! name of a project.

use std::path::{Path, PathBuf};

use ack_memory::Service;
use ack_memory::internal::BriefRequest;
use serde_json::{Value, json};

use crate::detection::{folder, remote, repository};
use crate::support::{Ask, Root, memory, result_ids, rows, sorted_ids, write_file};
use ack_memory::internal::Setting;

/// A memory of a project.
fn of(project: &str, id: &str) -> Value {
    let rest = json!({ "project": project, "type": "decision" });
    memory(id, &format!("We chose {id} for good"), rest)
}

fn unnamed(id: &str) -> Value {
    let rest = json!({ "type": "decision" });
    memory(id, &format!("We chose {id} for good"), rest)
}

/// As [`context`]: the project's name, its own memories, and those of others.
#[track_caller]
fn check(service: &Service, folder: &Path, expected: [&str; 3]) {
    let (name, own, others) = context(service, folder);
    assert_eq!([name, own, others], expected);
}

/// The ids that a request finds, sorted.
fn filtered(service: &Service, arguments: Value) -> String {
    sorted_ids(&service.find(arguments)["results"]).join(" ")
}

/// The ids of all memories of a project.
fn in_project(service: &Service, project: &str) -> String {
    filtered(service, json!({ "project": project }))
}

/// The current project's name, its own memories, and those of others, as the tool and the hook
/// report them.
fn context(service: &Service, folder: &Path) -> (String, String, String) {
    let asked = json!({ "project_path": folder, "max_memories": 20, "max_tokens": 20_000 });
    let tool = service.brief(asked);
    let request = BriefRequest {
        project_path: Some(folder.display().to_string()),
        own: 20,
        others: 20,
        sessions: false,
    };
    let brief = service.session_brief(&request).unwrap();
    let hook = serde_json::to_value(brief.context).unwrap();
    let name = |answer: &Value| answer["project"]["name"].as_str().unwrap().to_owned();
    assert_eq!(name(&tool), name(&hook), "the hook and the tool agree");
    let own = |answer: &Value| sorted_ids(answer.get("recent_memories").unwrap_or(&json!([])));
    assert_eq!(own(&tool), own(&hook), "the hook and the tool agree");
    // Memories of other projects need evidence, which a focus gives to all of them.
    let asked = json!({
        "project_path": folder, "focus": "what we chose for good",
        "max_memories": 20, "max_tokens": 20_000,
    });
    let focused = service.brief(asked);
    let others = sorted_ids(focused.get("cross_project_learnings").unwrap_or(&json!([])));
    (name(&tool), own(&tool).join(" "), others.join(" "))
}

#[test]
fn projects_of_a_scope_are_kept_apart() {
    let root = Root::new();
    root.manifest("team", "projects = ['web', 'ledger']\npaths = ['src']");
    let memories =
        [of("web", "next-font"), of("Ledger", "sqlx"), of("ledger", "tokio"), unnamed("anything")];
    root.store("team", &memories);
    root.store("other", &[of("ledger", "promoted"), of("kiosk", "vite")]);
    let service = root.service();
    for (project, found) in [
        ("web", "next-font"),
        ("LEDGER", "promoted sqlx tokio"),
        // The scope's name has what names no project.
        ("team", "anything"),
        ("kiosk", "vite"),
    ] {
        assert_eq!(in_project(&service, project), found, "{project}");
    }
    let in_team = json!({ "project": "ledger", "scope": "team" });
    assert_eq!(filtered(&service, in_team), "sqlx tokio");
    let ledger = folder(&root, "code/ledger");
    repository(&ledger, "");
    // What names no project belongs to the scope, and so to each of its projects.
    check(&service, &ledger, ["ledger", "anything promoted sqlx tokio", "next-font vite"]);
    let (name, own, _) = context(&service, &folder(&root, "code/web"));
    assert_eq!([name, own], ["web", "anything next-font"]);
}

#[test]
fn aliases_are_names_of_the_same_project_in_every_scope() {
    let root = Root::new();
    let settings = "[projects]\nbilling-api = ['billing', 'Billing Service']\nledger = []\n";
    root.manifest("pay", settings);
    let rows =
        [of("billing", "a"), of("billing-api", "b"), of("billing_service", "c"), of("ledger", "d")];
    root.store("pay", &rows);
    let memories = [of("billing", "promoted"), of("platform", "p")];
    root.store("platform", &memories);
    // Here the same name belongs to another project.
    root.manifest("shop", "[projects]\nstorefront = ['billing']\n");
    let store = [of("billing", "shop-billing"), of("storefront", "shop-front")];
    root.store("shop", &store);
    let service = root.service();
    for (project, found) in [
        ("billing-api", "a b c promoted"),
        ("Billing_Service", "a b c promoted"),
        ("storefront", "promoted shop-billing shop-front"),
        ("ledger", "d"),
    ] {
        assert_eq!(in_project(&service, project), found, "{project}");
    }
    let clone = folder(&root, "code/billing-service");
    repository(&clone, "");
    check(&service, &clone, ["billing-api", "a b c promoted", "d p shop-billing shop-front"]);
    let answer = service.brief(json!({ "project_path": clone }));
    assert_eq!(
        answer["project"]["detected_by"],
        "projects `Billing Service`, an alias of `billing-api`"
    );
}

#[test]
fn in_a_monorepo_the_longest_path_says_which_project_it_is() {
    let root = Root::new();
    let mono = folder(&root, "mono");
    repository(&mono, &remote("git@github.com:org/mono.git"));
    let memories = [of("mono", "m"), of("web", "w"), of("api", "a"), of("infra", "i")];
    root.store("all", &memories);
    let places = "mono mono/web/src mono/services/api mono/deploy/live/x mono/docs".split(' ');
    let places: Vec<PathBuf> = places.map(|path| folder(&root, path)).collect();
    let here = root.path().to_str().unwrap();
    let current = |manifest: &str| {
        root.manifest("all", &manifest.replace("ROOT", here));
        let found = places.iter().map(|place| {
            let (name, own, _) = context(&root.service(), place);
            format!("{name}: {own}")
        });
        found.collect::<Vec<_>>()
    };
    // A list of paths: the last part names the project.
    let listed = "projects = ['mono', 'web', 'api', 'infra']\npaths = ['ROOT/mono', 'ROOT/mono/web', 'ROOT/mono/services/api', 'ROOT/mono/*/infra-*']";
    let web = "web: w";
    assert_eq!(current(listed), ["mono: m", web, "api: a", "mono: m", "mono: m"]);
    // The last part may be an alias.
    let own = "remotes = ['github.com/org/mono']\npaths = ['ROOT/mono/web', 'ROOT/mono/deploy']\n[projects]\nweb = []\ninfra = ['ops', 'deploy']\n";
    assert_eq!(current(own), ["mono: m", web, "mono: m", "infra: i", "mono: m"]);
    // Nothing but the names of the folders.
    let names = "projects = ['web', 'api', 'infra']\npaths = ['ROOT/mono']";
    assert_eq!(current(names), ["mono: m", web, "api: a", "mono: m", "mono: m"]);
}

#[test]
fn the_project_is_found_by_its_remote_and_by_the_end_of_a_path() {
    let root = Root::with("all", &[of("web", "w"), of("api", "a")]);
    let clone = folder(&root, "code/somewhere");
    repository(&clone, &remote("git@github.com:org/api.git"));
    for (project, manifest) in [
        (
            "api",
            "projects = ['web', 'api']\nremotes = ['github.com/org/web', 'github.com/org/api']",
        ),
        // A path goes before a remote.
        ("web", "paths = ['ROOT/code/some*']\n[projects]\napi = []\nweb = ['somewhere']\n"),
        // The name before the wildcard.
        ("some", "projects = ['web', 'some']\npaths = ['ROOT/code/some*']"),
    ] {
        root.manifest("all", &manifest.replace("ROOT", root.path().to_str().unwrap()));
        assert_eq!(context(&root.service(), &clone).0, project);
    }
}

#[test]
fn a_scope_of_one_project_has_it_under_every_name() {
    let root = Root::new();
    root.store("ledger-api", &[of("ledger-api", "a"), unnamed("b"), of("kiosk", "k")]);
    let clone = folder(&root, "code/Ledger_API");
    repository(&clone, "");
    assert_eq!(context(&root.service(), &clone).1, "a b");
    assert_eq!(in_project(&root.service(), "ledger_api"), "a b");
    let settings = "projects = ['money']\nremotes = ['github.com/org/money-core']";
    root.manifest("ledger-api", settings);
    let clone = folder(&root, "code/checkout");
    repository(&clone, &remote("https://github.com/org/money-core"));
    check(&root.service(), &clone, ["money", "a b", "k"]);
    assert_eq!(in_project(&root.service(), "money"), "a b");
}

#[test]
fn recorded_projects_select_a_scope_as_the_last_rule() {
    let root = Root::new();
    let rejected = json!({ "project": "solo", "status": "rejected" });
    let memories = [
        of("alpha", "a"),
        of("beta", "b"),
        of("beta", "b2"),
        unnamed("n"),
        memory("r", "Rejected", rejected),
    ];
    root.store("notes", &memories);
    let twin = root.store("twin", &[of("beta", "t")]);
    root.store("diary", &[of("gamma", "secret")]);
    root.manifest("diary", "visibility = 'private'");
    let found = |service: &Service, name: &str| {
        let folder = folder(&root, &format!("code/{name}"));
        let project = service.brief(json!({ "project_path": folder }))["project"].clone();
        (project["scope"].clone(), project["detected_by"].clone())
    };
    let service = root.service();
    let recorded = json!("project `beta` recorded in the store");
    assert_eq!(found(&service, "Beta"), (json!("notes"), recorded));
    check(&service, &folder(&root, "code/beta"), ["beta", "b b2 n t", "a"]);
    // A private store is not opened for a name, and nobody vouches for a rejected memory.
    for name in ["gamma", "solo"] {
        assert_eq!(found(&service, name), (Value::Null, Value::Null));
    }
    // Later rows are seen.
    let store = rusqlite::Connection::open(twin).unwrap();
    crate::support::insert(&store, &[of("delta", "d")]);
    assert_eq!(found(&service, "delta").0, "twin");
    write_file(root.path().join("config.toml"), "default_scope = 'twin'");
    let service = root.service();
    assert_eq!(found(&service, "alpha").1, "project `alpha` recorded in the store");
    assert_eq!(found(&service, "gamma").1, "default_scope in config.toml");
    // What an owner wrote takes precedence.
    root.manifest("twin", "projects = ['alpha']");
    assert_eq!(found(&service, "alpha").1, "projects `alpha`");
}

#[test]
fn scope_may_be_the_name_of_a_project() {
    let root = Root::new();
    root.manifest("team", "[projects]\nledger = ['Ledger API']\nweb = []\n");
    root.store("team", &[of("ledger", "l"), of("web", "w")]);
    root.store("web", &[of("x", "x")]);
    root.store("cm", &[of("kiosk", "k"), of("other", "o")]);
    let settings = "visibility = 'private'\nprojects = ['dotfiles', 'ledger']";
    root.manifest("mine", settings);
    root.store("mine", &[of("dotfiles", "secret")]);
    let service = root.service();
    let asked = |name: &str, scopes: &[&str], told: Option<&str>| {
        let answer = service.find(json!({ "scope": name }));
        assert_eq!(answer["searched"]["scopes"], json!(scopes), "{name}");
        let mut notes = answer["notes"].as_array().into_iter().flatten();
        let note = notes.find(|note| note["kind"] == "scope_of_project");
        let told = told.map(|owners| {
            format!("no scope is called `{name}`; {owners} has a project of this name").into()
        });
        assert_eq!(note.map(|note| note["message"].clone()), told);
    };
    asked("ledger_api", &["team"], Some("`team`"));
    // A scope's name goes first.
    asked("web", &["web"], None);
    // Recorded in the store.
    asked("Kiosk", &["cm"], Some("`cm`"));
    // A private scope is meant only where no other is.
    asked("ledger", &["team"], Some("`team`"));
    asked("dotfiles", &["mine"], Some("`mine`"));
    // Both claim it.
    root.manifest("cm", "projects = ['ledger']");
    asked("ledger", &["cm", "team"], Some("`cm` and `team`"));
    let memory = service.fetch(json!({ "id": "l", "scope": "ledger api" }));
    assert_eq!(memory["scope"], "team");
    assert_eq!(memory["notes"][0]["kind"], "scope_of_project");
    let listed = service.scopes(json!({ "scope": "dotfiles" }));
    assert_eq!(listed["scopes"][0]["name"], "mine");
    assert_eq!(listed["notes"][0]["scope"], "mine");
    // Projects of private scopes are not revealed.
    for (name, nearest) in [("legder", vec!["ledger"]), ("dotfile", vec![])] {
        let body = service.refused("query_memories", json!({ "scope": name }));
        assert_eq!(body.code, "scope_not_found");
        assert_eq!(body.nearest, nearest);
    }
}

#[test]
fn a_pinned_server_knows_the_projects_of_its_own_scope_and_no_other_name() {
    let root = Root::new();
    root.manifest("team", "projects = ['ledger']");
    root.store("team", &[of("ledger", "l"), of("recorded", "r")]);
    root.manifest("other", "projects = ['kiosk']");
    root.store("other", &[of("kiosk", "k")]);
    let service =
        root.service_with(|inputs| inputs.pinned = Some(Setting::flag("--pin", "team".to_owned())));
    for name in ["team", "ledger", "recorded"] {
        let found = filtered(&service, json!({ "scope": name }));
        assert_eq!(found, "l r", "{name}");
    }
    for tool in ["query_memories", "list_scopes", "get_memory"] {
        for name in ["other", "kiosk", "nowhere"] {
            let mut arguments = json!({ "scope": name });
            if tool == "get_memory" {
                arguments["id"] = json!("l");
            }
            let error = service.refused(tool, arguments);
            assert_eq!(error.code, "scope_refused", "{tool} {name}");
            assert_eq!(error.allowed, ["team"], "{tool} {name}");
        }
    }
}

#[test]
fn other_projects_of_a_current_private_scope_count_as_cross_project() {
    let root = Root::new();
    let settings = "visibility = 'private'\nprojects = ['dotfiles', 'garden']";
    root.manifest("mine", settings);
    root.store("mine", &[of("dotfiles", "d"), of("garden", "g"), unnamed("u")]);
    root.manifest("hidden", "visibility = 'private'");
    root.store("hidden", &[of("dotfiles", "secret")]);
    check(&root.service(), &folder(&root, "code/dotfiles"), ["dotfiles", "d u", "g"]);
}

#[test]
fn a_project_that_a_question_names_says_where_to_look() {
    let memories = rows(
        "id | project | title | narrative",
        "
        ledger-api | ledger-api | Webhook retries | The sender waits a minute between two attempts.
        kiosk | kiosk | Webhook retries | Three attempts, then a person has to look.
        other | - | The ledger-api and the kiosk share a database
        ",
    );
    let root = Root::with("alpha", &memories);
    let service = root.service();
    let found = |query: &str| {
        let answer = service.find(json!({ "query": query }));
        result_ids(&answer)
    };
    for project in ["ledger-api", "kiosk"] {
        for question in [
            format!("webhook retries in {project}"),
            format!("{project}: how often are webhooks retried?"),
            format!("Webhook retries ({})", project.to_uppercase()),
        ] {
            assert_eq!(found(&question)[0], project, "{question}");
        }
    }
    // A question for the name itself.
    assert_eq!(found("ledger-api")[0], "other");
    let explained = service.find(json!({ "query": "webhook retries in kiosk", "explain": true }));
    let fusion = &explained["results"][0]["explanation"]["fusion"];
    assert_contains!(fusion, " + named in the query 0.500 = ");
}
