//! What a session gets from other projects, and from its scope as a whole: promoted memories, those
//! with the same tags, those of no project. Never what is merely recent.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::changes::shown_memories;
use crate::context::{context, project};
use crate::mcp::Server;
use crate::support::{Root, ids, memory, rows, unreviewed};

/// A memory of a project, written on a day of January.
fn on(day: u32, id: &str, title: &str, rest: Value) -> Value {
    let mut one = memory(id, title, rest);
    one["created_at"] = json!(format!("2026-01-{day:02}T00:00:00Z"));
    one
}

/// The project `till` in a clean tree, with memories of its own, and two other scopes.
fn shops() -> (Root, PathBuf) {
    let root = Root::new();
    let keys = "id | project | status | created_at | title | concepts";
    let till = r#"
        cash | till | approved | 2026-01-03T00:00:00Z | Round cash to five cents | ["Cash_Rounding", "gotcha"]
        drawer | till | approved | 2026-01-02T00:00:00Z | The drawer opens late | ["escpos", "how-it-works"]"#;
    root.store("till", &rows(keys, till));
    let platform = r#"
        recent | kiosk | approved | 2026-01-09T00:00:00Z | Screens dim at noon | ["screens"]
        kind | kiosk | approved | 2026-01-08T00:00:00Z | A queue that grew | ["gotcha", "how-it-works"]
        tagged | kiosk | approved | 2026-01-04T00:00:00Z | Printers speak a dialect | ["ESCPOS"]
        two-tags | kiosk | approved | 2026-01-01T00:00:00Z | Receipts differ | ["cash rounding", "escpos"]
        promoted | kiosk | promoted | 2026-01-02T00:00:00Z | Rotate the signing keys | []
        promoted-tagged | kiosk | promoted | 2026-01-01T00:00:00Z | Drawers jam | ["escpos"]
        waiting | kiosk | staging | 2026-01-09T00:00:00Z | Not seen | ["escpos"]
        rejected | kiosk | rejected | 2026-01-09T00:00:00Z | Not seen either | ["escpos"]"#;
    root.store("platform", &rows(keys, platform));
    let diary = r#"private | kiosk | promoted | 2026-01-09T00:00:00Z | Dear diary | ["escpos"]"#;
    root.store("diary", &rows(keys, diary));
    root.manifest("diary", "visibility = \"private\"");
    let folder = project(&root, "till", "main");
    (root, folder)
}

#[test]
fn promoted_memories_come_first_then_those_that_share_tags_and_no_other() {
    let (root, folder) = shops();
    let answer = context(&root, &folder, json!({ "include_cross_project": true }));
    let learned = &answer["cross_project_learnings"];
    let shares = "shares tags with this project: ";
    assert_eq!(
        shown_memories(learned),
        [
            ("promoted-tagged", "promoted"),
            ("promoted", "promoted"),
            ("two-tags", &*format!("{shares}cash rounding, escpos")),
            ("tagged", &*format!("{shares}ESCPOS")),
        ]
    );
    // A session starts with them, too.
    let started = crate::hook::start(root.path(), &crate::hook::event(&folder, "startup")).ok();
    assert_contains!(started, "Rotate the signing keys", "Receipts differ");
    assert_lacks!(started, "Screens dim");
    let none = context(&root, &folder, json!({ "include_cross_project": false }));
    assert_eq!(none["cross_project_learnings"], json!([]));
    assert_eq!(none.get("notes"), None);
}

#[test]
fn what_agents_read_of_other_projects() {
    let (root, folder) = shops();
    let mut server = Server::initialized(root.path());
    let answer = server.call("get_context", json!({ "project_path": folder }));
    insta::assert_snapshot!(answer["content"][0]["text"].as_str().unwrap(), @r"
    Project till, scope till (scope name `till`)

    Its memories:
    - **Round cash to five cents** (cash, till, 2026-01-03)
      why: gotcha of this project
    - **The drawer opens late** (drawer, till, 2026-01-02)
      why: recent in this project

    From other projects:
    - **Drawers jam** (promoted-tagged, platform/kiosk, 2026-01-01, promoted)
      why: promoted
    - **Rotate the signing keys** (promoted, platform/kiosk, 2026-01-02, promoted)
      why: promoted
    - **Receipts differ** (two-tags, platform/kiosk, 2026-01-01)
      why: shares tags with this project: cash rounding, escpos
    - **Printers speak a dialect** (tagged, platform/kiosk, 2026-01-04)
      why: shares tags with this project: ESCPOS
    ");
}

#[test]
fn an_empty_list_of_other_projects_has_a_reason() {
    let (root, folder) = shops();
    let why = |root: &Root, rest: Value| {
        let answer = context(root, &folder, rest);
        assert_eq!(answer["cross_project_learnings"], json!([]), "{answer}");
        let mut notes = answer["notes"].as_array().unwrap().iter();
        let note = notes.find(|note| note["kind"] == "nothing_certain");
        note.unwrap()["message"].as_str().unwrap().to_owned()
    };
    let found = why(&root, json!({ "focus": "zeppelins over Lisbon" }));
    assert_eq!(found, "no memory of another project matches the focus");
    let arguments = json!({ "project": "kiosk" });
    let unlike = memory("recent", "Screens dim at noon", arguments);
    std::fs::remove_dir_all(root.scope_folder("platform")).unwrap();
    root.store("platform", &[unlike]);
    assert_eq!(
        why(&root, json!({})),
        "no memory of another project was promoted, or shares files, dependencies or tags with this \
         one"
    );
    std::fs::remove_dir_all(root.scope_folder("platform")).unwrap();
    assert_eq!(
        why(&root, json!({})),
        "no approved memory of another project is in the searched scopes"
    );
}

#[test]
fn a_memory_of_no_project_is_offered_to_every_project_of_its_scope() {
    let root = Root::new();
    let of = |project: &str| json!({ "project": project });
    let till = |day| on(day, &format!("till{day}"), &format!("Till rule {day}0"), of("till"));
    let mut rows: Vec<Value> = (1..=4).map(till).collect();
    rows.push(on(5, "kiosk1", "Kiosk rule", of("kiosk")));
    rows.push(on(20, "common", "Releases need two reviews", json!({})));
    rows.push(on(21, "lock", "Lock timeout of the payout job", json!({})));
    root.store("shops", &rows);
    root.manifest("shops", "projects = [\"till\", \"kiosk\"]");
    root.store("platform", &[on(22, "elsewhere", "Also of no project", json!({}))]);
    let own = |name: &str, branch: &str, rest: Value| {
        let answer = context(&root, &project(&root, name, branch), rest);
        ids(&answer["recent_memories"])
    };
    let all = json!({ "max_memories": 50 });
    assert_eq!(
        own("till", "main", all.clone()),
        ["till4", "till3", "till2", "till1", "lock", "common"],
        "after its own"
    );
    assert_eq!(own("kiosk", "main", all), ["kiosk1", "lock", "common"]);
    // With a reason, it comes first like any other.
    assert_eq!(own("kiosk", "lock-timeout", json!({}))[0], "lock");
    let arguments = json!({ "focus": "how many reviews does a release need" });
    assert_eq!(own("kiosk", "main", arguments)[0], "common");
}

#[test]
fn a_folder_of_no_scope_is_told_what_waits() {
    let (root, _) = shops();
    root.store("more", &[unreviewed("m", "Waits")]);
    let folder = project(&root, "unheard-of", "main");
    for rest in [json!({}), json!({ "focus": "printers" })] {
        let answer = context(&root, &folder, rest);
        assert!(answer["project"].get("scope").is_none());
        assert_eq!(answer["pending"]["count"], 2, "{answer}");
    }
    let learned = context(&root, &folder, json!({}))["cross_project_learnings"].clone();
    assert_eq!(ids(&learned), ["promoted", "promoted-tagged"]);
    let mut server = Server::initialized(root.path());
    let answer = server.call("get_context", json!({ "project_path": folder }));
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert_contains!(text, "2 wait for review");
}
