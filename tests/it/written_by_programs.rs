//! Notes in the shape in which other programs write them: nothing in them is lost.

use serde_json::{Value, json};

use crate::store_support::{serve_notes, write};
use crate::support::{Ask, Root, sorted_ids};

fn get(root: &Root, id: &str) -> Value {
    let arguments = json!({ "id": id, "include": "links", "depth": 1 });
    root.service().fetch(arguments)
}

/// The links that a note has, as `kind target`.
fn links_from(root: &Root, id: &str) -> Vec<String> {
    let memory = get(root, id);
    let links = memory["links"].as_array().cloned().unwrap_or_default();
    let mut listed: Vec<String> = links
        .iter()
        .filter(|link| link["from_id"] == id)
        .map(|link| format!("{} {}", link["kind"], link["to_id"]).replace('"', ""))
        .collect();
    listed.sort();
    listed
}

#[test]
fn a_text_after_a_rule_is_not_a_header() {
    let folder = tempfile::tempdir().unwrap();
    let content = "---\nThe lock is held: by the walrus.\n\nSecond paragraph.\n";
    write(folder.path(), "open.md", content);
    let content = "---\nNothing here is a key\n---\nThe rest.\n";
    write(folder.path(), "closed.md", content);
    let (root, _service) = serve_notes(folder.path());
    for (id, first, second) in
        [("open", "walrus", "Second paragraph."), ("closed", "Nothing here is a key", "The rest.")]
    {
        let text = get(&root, id)["narrative"].as_str().unwrap().to_owned();
        assert_contains!(text, first, second);
    }
}

#[test]
fn references_between_memories_of_serena_are_links() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "core.md",
        "# Core\n\nSee `mem:net/retry_rules`, mem:style. Not item:style, nor `mem:gone`.\n",
    );
    let text = "Twice. Back to (mem:core).\n";
    write(folder.path(), "net/retry_rules.md", text);
    write(folder.path(), "style.md", "Short lines.\n");
    let (root, _service) = serve_notes(folder.path());
    assert_eq!(links_from(&root, "core"), ["related net/retry_rules", "related style"]);
    assert_eq!(links_from(&root, "net/retry_rules"), ["related core"]);
}

#[test]
fn statements_and_relations_are_read_as_basic_memory_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "queues/Swift queue.md",
        "---\ntitle: Swift queue\ntype: note\npermalink: main/queues/swift-queue\n---\n\n\
         - [fact] Kept for a day #ttl\n* [idea] Split it\n1. [step] Stop the writer\n\
         - [-] Cancelled task\n- [>] Deferred task\n- [00:01:12] Spoken line\n- [site](x) A link\n\n\
         - needs [[Token]] (since spring)\n- \"was part of\" [[queues/Crane]]\n\
         * guards [[main/token]]\n- see [[Token]] and also [[queues/crane-queue]]\n\n\
         Written as `[[Heron]]`.\n\n\
         ```sh\n- [fake] In code\n- fakes [[Token]]\n[[ -f x ]]\n```\n",
    );
    write(folder.path(), "Heron.md", "# Heron\n\nNot linked.\n");
    let text = "---\ntitle: Token\npermalink: main/token\n---\nAn hour.\n";
    write(folder.path(), "Token.md", text);
    let text = "---\ntitle: The crane\npermalink: main/queues/crane-queue\n---\nOld.\n";
    write(folder.path(), "queues/Crane.md", text);
    let (root, _service) = serve_notes(folder.path());
    let id = "queues/Swift queue";
    assert_eq!(
        get(&root, id)["facts"],
        json!(["Kept for a day #ttl", "Split it", "Stop the writer"])
    );
    assert_eq!(
        links_from(&root, id),
        [
            "guards Token",
            "needs Token",
            "related Token",
            "related queues/Crane",
            "was part of queues/Crane",
        ]
    );
}

#[test]
fn indexes_in_every_folder_of_the_open_knowledge_format_are_no_notes() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "ops/drain.md",
        "---\ntype: Playbook\ntitle: Drain it\ntags: [queue]\nverified:\n\
         - {by: 'human:ana', at: '2026-11-02T08:00:00Z'}\nstatus: stable\n---\n\nStop first.\n",
    );
    let text = "# ops\n\n- [Drain it](drain.md)\n";
    write(folder.path(), "ops/index.md", text);
    write(folder.path(), "ops/log.md", "# Log\n");
    write(folder.path(), "index.md", "# All\n");
    let ids = |root: &Root| {
        let answer = root.service().find(json!({ "limit": 10 }));
        sorted_ids(&answer["results"])
    };
    // Elsewhere these names mean nothing in a subfolder.
    let (root, _service) = serve_notes(folder.path());
    assert_eq!(ids(&root), ["ops/drain", "ops/index", "ops/log"]);
    let text = "---\nokf_version: \"0.2\"\n---\n\n# All\n";
    write(folder.path(), "index.md", text);
    assert_eq!(ids(&root), ["ops/drain"]);
}
