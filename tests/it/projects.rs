//! Several projects in one scope: which one is current, what `project` means, and `scope` as the
//! name of a project.

use std::path::{Path, PathBuf};

use ack_memory::Service;
use ack_memory::internal::BriefRequest;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::support::{Root, memory, sorted_ids};
use ack_memory::internal::Setting;

/// A memory of a project.
fn of(project: &str, id: &str) -> Value {
    memory(
        id,
        &format!("We chose {id} for good"),
        json!({ "project": project, "type": "decision" }),
    )
}

fn unnamed(id: &str) -> Value {
    memory(
        id,
        &format!("We chose {id} for good"),
        json!({ "type": "decision" }),
    )
}

fn folder(root: &Root, path: &str) -> PathBuf {
    let folder = root.path().join(path);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn repository(folder: &Path, remote: Option<&str>) {
    let git = folder.join(".git");
    for part in ["objects", "refs/heads"] {
        std::fs::create_dir_all(git.join(part)).unwrap();
    }
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let remote = remote.map_or_else(String::new, |url| {
        format!("[remote \"origin\"]\n\turl = {url}\n")
    });
    std::fs::write(
        git.join("config"),
        format!("[core]\n\trepositoryformatversion = 0\n{remote}"),
    )
    .unwrap();
}

/// The ids of all memories of a project.
fn filtered(service: &Service, arguments: Value) -> Vec<String> {
    sorted_ids(&call(service, "query_memories", arguments).unwrap()["results"])
}

/// The current project's name, its own memories, and those of others, as the tool and the hook
/// report them.
fn context(service: &Service, folder: &Path) -> (String, Vec<String>, Vec<String>) {
    let asked = json!({ "project_path": folder, "max_memories": 20, "max_tokens": 20_000 });
    let tool = call(service, "get_context", asked).unwrap();
    let brief = service
        .session_brief(&BriefRequest {
            project_path: Some(folder.display().to_string()),
            own: 20,
            others: 20,
            sessions: false,
        })
        .unwrap();
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
    let focused = call(service, "get_context", asked).unwrap();
    let others = sorted_ids(focused.get("cross_project_learnings").unwrap_or(&json!([])));
    (name(&tool), own(&tool), others)
}

#[test]
fn projects_of_a_scope_are_kept_apart() {
    let root = Root::new();
    root.manifest("team", "projects = ['web', 'ledger']\npaths = ['src']");
    root.store(
        "team",
        &[
            of("web", "next-font"),
            of("Ledger", "sqlx"),
            of("ledger", "tokio"),
            unnamed("anything"),
        ],
    );
    root.store("other", &[of("ledger", "promoted"), of("kiosk", "vite")]);
    let service = root.service();
    assert_eq!(
        filtered(&service, json!({ "project": "web" })),
        ["next-font"]
    );
    assert_eq!(
        filtered(&service, json!({ "project": "LEDGER" })),
        ["promoted", "sqlx", "tokio"]
    );
    assert_eq!(
        filtered(&service, json!({ "project": "ledger", "scope": "team" })),
        ["sqlx", "tokio"]
    );
    assert_eq!(
        filtered(&service, json!({ "project": "team" })),
        ["anything"],
        "the scope's name has what names no project"
    );
    assert_eq!(filtered(&service, json!({ "project": "kiosk" })), ["vite"]);
    let ledger = folder(&root, "code/ledger");
    repository(&ledger, None);
    // What names no project belongs to the scope, and so to each of its projects.
    let own = ["anything", "promoted", "sqlx", "tokio"]
        .map(str::to_owned)
        .to_vec();
    let others = ["next-font", "vite"].map(str::to_owned).to_vec();
    assert_eq!(
        context(&service, &ledger),
        ("ledger".to_owned(), own, others)
    );
    let (name, own, _) = context(&service, &folder(&root, "code/web"));
    assert_eq!(
        (name.as_str(), own.join(" ")),
        ("web", "anything next-font".to_owned())
    );
}

#[test]
fn aliases_are_names_of_the_same_project_in_every_scope() {
    let root = Root::new();
    root.manifest(
        "pay",
        "[projects]\nbilling-api = ['billing', 'Billing Service']\nledger = []\n",
    );
    root.store(
        "pay",
        &[
            of("billing", "a"),
            of("billing-api", "b"),
            of("billing_service", "c"),
            of("ledger", "d"),
        ],
    );
    root.store(
        "platform",
        &[of("billing", "promoted"), of("platform", "p")],
    );
    // Here the same name belongs to another project.
    root.manifest("shop", "[projects]\nstorefront = ['billing']\n");
    root.store(
        "shop",
        &[
            of("billing", "shop-billing"),
            of("storefront", "shop-front"),
        ],
    );
    let service = root.service();
    for name in ["billing-api", "Billing_Service"] {
        assert_eq!(
            filtered(&service, json!({ "project": name })),
            ["a", "b", "c", "promoted"],
            "{name}"
        );
    }
    assert_eq!(
        filtered(&service, json!({ "project": "storefront" })),
        ["promoted", "shop-billing", "shop-front"]
    );
    assert_eq!(filtered(&service, json!({ "project": "ledger" })), ["d"]);
    let clone = folder(&root, "code/billing-service");
    repository(&clone, None);
    let (name, own, others) = context(&service, &clone);
    assert_eq!(name, "billing-api");
    assert_eq!(own, ["a", "b", "c", "promoted"]);
    assert_eq!(others, ["d", "p", "shop-billing", "shop-front"]);
    let answer = call(&service, "get_context", json!({ "project_path": clone })).unwrap();
    assert_eq!(
        answer["project"]["detected_by"],
        "projects `Billing Service`, an alias of `billing-api`"
    );
}

#[test]
fn in_a_monorepo_the_longest_path_says_which_project_it_is() {
    let root = Root::new();
    let mono = folder(&root, "mono");
    repository(&mono, Some("git@github.com:org/mono.git"));
    root.store(
        "all",
        &[
            of("mono", "m"),
            of("web", "w"),
            of("api", "a"),
            of("infra", "i"),
        ],
    );
    let places = [
        "mono",
        "mono/web/src",
        "mono/services/api",
        "mono/deploy/live/x",
        "mono/docs",
    ]
    .map(|path| folder(&root, path));
    let current = |manifest: &str| {
        root.manifest(
            "all",
            &manifest.replace("ROOT", root.path().to_str().unwrap()),
        );
        places.clone().map(|place| {
            let (name, own, _) = context(&root.service(), &place);
            format!("{name}: {}", own.join(" "))
        })
    };
    // A list of paths: the last part names the project.
    let listed = "projects = ['mono', 'web', 'api', 'infra']\npaths = ['ROOT/mono', 'ROOT/mono/web', 'ROOT/mono/services/api', 'ROOT/mono/*/infra-*']";
    let web = "web: w";
    assert_eq!(
        current(listed),
        ["mono: m", web, "api: a", "mono: m", "mono: m"]
    );
    // The last part may be an alias.
    let own = "remotes = ['github.com/org/mono']\npaths = ['ROOT/mono/web', 'ROOT/mono/deploy']\n[projects]\nweb = []\ninfra = ['ops', 'deploy']\n";
    assert_eq!(
        current(own),
        ["mono: m", web, "mono: m", "infra: i", "mono: m"]
    );
    // Nothing but the names of the folders.
    let names = "projects = ['web', 'api', 'infra']\npaths = ['ROOT/mono']";
    assert_eq!(
        current(names),
        ["mono: m", web, "api: a", "mono: m", "mono: m"]
    );
}

#[test]
fn the_project_is_found_by_its_remote_and_by_the_end_of_a_path() {
    let root = Root::new();
    root.store("all", &[of("web", "w"), of("api", "a")]);
    let clone = folder(&root, "code/somewhere");
    repository(&clone, Some("git@github.com:org/api.git"));
    let name = |manifest: &str| {
        root.manifest(
            "all",
            &manifest.replace("ROOT", root.path().to_str().unwrap()),
        );
        context(&root.service(), &clone).0
    };
    assert_eq!(
        name("projects = ['web', 'api']\nremotes = ['github.com/org/web', 'github.com/org/api']"),
        "api"
    );
    assert_eq!(
        name("paths = ['ROOT/code/some*']\n[projects]\napi = []\nweb = ['somewhere']\n"),
        "web",
        "a path goes before a remote"
    );
    assert_eq!(
        name("projects = ['web', 'some']\npaths = ['ROOT/code/some*']"),
        "some",
        "the name before the wildcard"
    );
}

#[test]
fn a_scope_of_one_project_has_it_under_every_name() {
    let root = Root::new();
    root.store(
        "ledger-api",
        &[of("ledger-api", "a"), unnamed("b"), of("kiosk", "k")],
    );
    let clone = folder(&root, "code/Ledger_API");
    repository(&clone, None);
    assert_eq!(context(&root.service(), &clone).1, ["a", "b"]);
    assert_eq!(
        filtered(&root.service(), json!({ "project": "ledger_api" })),
        ["a", "b"]
    );
    root.manifest(
        "ledger-api",
        "projects = ['money']\nremotes = ['github.com/org/money-core']",
    );
    let clone = folder(&root, "code/checkout");
    repository(&clone, Some("https://github.com/org/money-core"));
    let (name, own, others) = context(&root.service(), &clone);
    assert_eq!(
        (name.as_str(), own, others),
        (
            "money",
            vec!["a".to_owned(), "b".to_owned()],
            vec!["k".to_owned()]
        )
    );
    assert_eq!(
        filtered(&root.service(), json!({ "project": "money" })),
        ["a", "b"]
    );
}

#[test]
fn recorded_projects_select_a_scope_as_the_last_rule() {
    let root = Root::new();
    let rejected = memory(
        "r",
        "Rejected",
        json!({ "project": "solo", "status": "rejected" }),
    );
    root.store(
        "notes",
        &[
            of("alpha", "a"),
            of("beta", "b"),
            of("beta", "b2"),
            unnamed("n"),
            rejected,
        ],
    );
    root.store("twin", &[of("beta", "t")]);
    root.store("diary", &[of("gamma", "secret")]);
    root.manifest("diary", "visibility = 'private'");
    let service = root.service();
    let found = |name: &str| {
        let answer = call(
            &service,
            "get_context",
            json!({ "project_path": folder(&root, &format!("code/{name}")) }),
        )
        .unwrap();
        (
            answer["project"]["scope"].clone(),
            answer["project"]["detected_by"].clone(),
        )
    };
    assert_eq!(
        found("Beta"),
        (
            json!("notes"),
            json!("project `beta` recorded in the store")
        )
    );
    let (_, own, others) = context(&service, &folder(&root, "code/beta"));
    assert_eq!(
        (own.join(" "), others.join(" ")),
        ("b b2 n t".to_owned(), "a".to_owned())
    );
    assert_eq!(
        found("gamma"),
        (Value::Null, Value::Null),
        "a private store is not opened for a name"
    );
    assert_eq!(
        found("solo"),
        (Value::Null, Value::Null),
        "nobody vouches for a rejected memory"
    );
    // Later rows are seen.
    crate::support::insert(
        &rusqlite::Connection::open(root.scope_folder("twin").join("memory.db")).unwrap(),
        &[of("delta", "d")],
    );
    assert_eq!(found("delta").0, json!("twin"));
    std::fs::write(root.path().join("config.toml"), "default_scope = 'twin'").unwrap();
    let service = root.service();
    let current = |name: &str| {
        let asked = json!({ "project_path": folder(&root, &format!("code/{name}")) });
        call(&service, "get_context", asked).unwrap()["project"]["detected_by"].clone()
    };
    assert_eq!(current("alpha"), "project `alpha` recorded in the store");
    assert_eq!(current("gamma"), "default_scope in config.toml");
    // What an owner wrote takes precedence.
    root.manifest("twin", "projects = ['alpha']");
    assert_eq!(current("alpha"), "projects `alpha`");
}

#[test]
fn scope_may_be_the_name_of_a_project() {
    let root = Root::new();
    root.manifest("team", "[projects]\nledger = ['Ledger API']\nweb = []\n");
    root.store("team", &[of("ledger", "l"), of("web", "w")]);
    root.store("web", &[of("x", "x")]);
    root.store("cm", &[of("kiosk", "k"), of("other", "o")]);
    root.manifest(
        "mine",
        "visibility = 'private'\nprojects = ['dotfiles', 'ledger']",
    );
    root.store("mine", &[of("dotfiles", "secret")]);
    let service = root.service();
    let asked = |name: &str| {
        let answer = call(&service, "query_memories", json!({ "scope": name })).unwrap();
        let note = answer["notes"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|note| note["kind"] == "scope_of_project");
        (
            answer["searched"]["scopes"].clone(),
            note.map_or(Value::Null, |note| note["message"].clone()),
        )
    };
    let message = |name: &str, scopes: &str| {
        json!(format!(
            "no scope is called `{name}`; {scopes} has a project of this name"
        ))
    };
    assert_eq!(
        asked("ledger_api"),
        (json!(["team"]), message("ledger_api", "`team`"))
    );
    assert_eq!(
        asked("web"),
        (json!(["web"]), Value::Null),
        "a scope's name goes first"
    );
    assert_eq!(
        asked("Kiosk"),
        (json!(["cm"]), message("Kiosk", "`cm`")),
        "recorded in the store"
    );
    assert_eq!(
        asked("ledger").0,
        json!(["team"]),
        "a private scope is meant only where no other is"
    );
    assert_eq!(
        asked("dotfiles"),
        (json!(["mine"]), message("dotfiles", "`mine`"))
    );
    root.manifest("cm", "projects = ['ledger']");
    assert_eq!(
        asked("ledger"),
        (json!(["cm", "team"]), message("ledger", "`cm` and `team`")),
        "both claim it"
    );
    let memory = call(
        &service,
        "get_memory",
        json!({ "id": "l", "scope": "ledger api" }),
    )
    .unwrap();
    assert_eq!(
        (&memory["scope"], &memory["notes"][0]["kind"]),
        (&json!("team"), &json!("scope_of_project"))
    );
    let listed = call(&service, "list_scopes", json!({ "scope": "dotfiles" })).unwrap();
    assert_eq!(
        (&listed["scopes"][0]["name"], &listed["notes"][0]["scope"]),
        (&json!("mine"), &json!("mine"))
    );
    let body = call(&service, "query_memories", json!({ "scope": "legder" }))
        .unwrap_err()
        .body();
    assert_eq!(
        (body.code.as_str(), body.nearest),
        ("scope_not_found", vec!["ledger".to_owned()])
    );
    let body = call(&service, "query_memories", json!({ "scope": "dotfile" }))
        .unwrap_err()
        .body();
    assert!(
        body.nearest.is_empty(),
        "projects of private scopes are not revealed: {body:?}"
    );
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
        assert_eq!(
            filtered(&service, json!({ "scope": name })),
            ["l", "r"],
            "{name}"
        );
    }
    for tool in ["query_memories", "list_scopes", "get_memory"] {
        for name in ["other", "kiosk", "nowhere"] {
            let mut arguments = json!({ "scope": name });
            if tool == "get_memory" {
                arguments["id"] = json!("l");
            }
            let error = call(&service, tool, arguments).unwrap_err();
            assert_eq!(error.code(), "scope_refused", "{tool} {name}");
            assert_eq!(error.body().allowed, ["team"], "{tool} {name}");
        }
    }
}

#[test]
fn other_projects_of_a_current_private_scope_count_as_cross_project() {
    let root = Root::new();
    root.manifest(
        "mine",
        "visibility = 'private'\nprojects = ['dotfiles', 'garden']",
    );
    root.store(
        "mine",
        &[of("dotfiles", "d"), of("garden", "g"), unnamed("u")],
    );
    root.manifest("hidden", "visibility = 'private'");
    root.store("hidden", &[of("dotfiles", "secret")]);
    let (name, own, others) = context(&root.service(), &folder(&root, "code/dotfiles"));
    assert_eq!(
        (name.as_str(), own.join(" "), others.join(" ")),
        ("dotfiles", "d u".to_owned(), "g".to_owned())
    );
}

#[test]
fn of_equal_matches_the_current_project_wins_and_not_its_scope() {
    let root = Root::new();
    root.manifest("team", "projects = ['web', 'ledger']");
    let note = |project: &str, id: &str, day: &str| {
        let rest = json!({ "project": project, "created_at": format!("2026-01-{day}T00:00:00Z") });
        memory(id, &format!("Deploy rule number {}", id.len()), rest)
    };
    root.store(
        "team",
        &[note("web", "aa", "09"), note("ledger", "bb", "01")],
    );
    let service = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", folder(&root, "code/ledger")))
    });
    let answer = call(
        &service,
        "query_memories",
        json!({ "query": "deploy rule", "mode": "lexical", "explain": true }),
    )
    .unwrap();
    assert_eq!(answer["results"][0]["id"], "bb", "{answer:#}");
}

#[test]
fn an_unknown_project_is_answered_with_the_names_like_it() {
    let root = Root::new();
    root.manifest("team", "[projects]\nbilling-api = ['payments']\n");
    root.store("team", &[of("billing-api", "b")]);
    let service = root.service();
    let suggestions = |project: &str, query: &str| {
        let answer = call(
            &service,
            "query_memories",
            json!({ "project": project, "query": query, "mode": "lexical" }),
        )
        .unwrap();
        answer["suggestions"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(
        suggestions("biling-api", "chose"),
        "No memory was learned in project \"biling-api\"; similar: billing-api"
    );
    assert!(
        suggestions("payments", "zzz").starts_with("Leave out filters"),
        "the project is known"
    );
}

#[test]
fn the_samples_keep_their_projects_apart() {
    let root = Root::samples();
    let service = root.service_with(|inputs| inputs.home = Some(root.path().join("home")));
    let total = |project: &str, status: &str| {
        let asked = json!({ "project": project, "status": status, "limit": 1 });
        call(&service, "query_memories", asked).unwrap()["total"].clone()
    };
    let store =
        rusqlite::Connection::open(root.scope_folder("platform").join("memory.db")).unwrap();
    let count = |project: &str| -> i64 {
        let sql = "SELECT count(*) FROM memories WHERE project = ?1 AND status IN ('approved', 'promoted') AND superseded_by IS NULL";
        store.query_row(sql, [project], |row| row.get(0)).unwrap()
    };
    // The store has two, and one of them represents the other.
    assert_eq!((count("infra"), total("infra", "all")), (1, json!(1)));
    for project in ["infra", "platform"] {
        assert_eq!(total(project, "approved"), count(project), "{project}");
    }
    assert_eq!(total("ledger", "all"), total("ledger-api", "all"));
    let live = folder(&root, "home/projects/infra-live");
    repository(&live, None);
    assert_eq!(context(&service, &live).0, "infra");
    assert_eq!(
        context(&service, &folder(&root, "home/src/platform/modules")).0,
        "platform"
    );
}
