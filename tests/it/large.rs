//! Large scopes: terms and vectors stay in the vector table and are searched there, and the answers
//! are those of a scope that is held in memory.

use ack_memory::Service;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::cli::ack;
use crate::decisions::decide;
use crate::query::bulk;
use crate::support::{Ask, Root, Sql, memory, titled, write_file};
use crate::table::build;

/// More than the least that `resident` may be.
const SIZE: usize = 10_400;

/// A linear congruential generator (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// A word: a technical term or a generated one, by frequency.
    fn word(&mut self) -> String {
        const WORDS: [&str; 16] = [
            "deploy", "timeout", "cache", "lock", "thread", "config", "build", "retry", "query",
            "server", "memory", "token", "docker", "branch", "schema", "queue",
        ];
        const SYLLABLES: [&str; 12] =
            ["ba", "ke", "lo", "mi", "nu", "par", "qui", "ros", "sta", "tem", "ul", "ver"];
        let rank = self.below(3_000).min(self.below(3_000)).min(self.below(3_000));
        WORDS.get(rank).map_or_else(
            || {
                let (a, b, c) = (rank % 12, rank / 12 % 12, rank / 144 % 24);
                format!("{}{}{}", SYLLABLES[a], SYLLABLES[b], SYLLABLES[c % 12])
            },
            |word| (*word).to_owned(),
        )
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

fn memories() -> Vec<Value> {
    let mut random = Random(7);
    (0..SIZE)
        .map(|number| {
            let title = format!("{} E{number:05}", random.text(7));
            let rest = json!({
                "facts": [random.text(8), random.text(8)], "concepts": [format!("Tag-{}", random.below(30))], "narrative": random.text(40),
                "files": [format!("src/{}/{}.rs", random.word(), random.word())], "project": format!("Project_{}", random.below(6)),
                "session": format!("s{}", number / 20), "type": (["decision", "bugfix", "gotcha"][random.below(3)]),
                "status": (["approved", "approved", "approved", "promoted", "staging"][random.below(5)]),
                "created_at": format!("2025-{:02}-{:02}T10:00:00Z", 1 + random.below(12), 1 + random.below(28)),
            });
            memory(&format!("m{number:05}"), &title, rest)
        })
        .collect()
}

/// A root with one scope and a table that is made to be searched.
fn large() -> (Root, Connection) {
    let root = Root::new();
    let store = bulk(&root, "alpha", &memories());
    searched(&root, build);
    (root, store)
}

/// Runs something in a setting that searches the table on disk.
fn searched<T>(root: &Root, work: impl FnOnce(&Root) -> T) -> T {
    let config = root.path().join("config.toml");
    write_file(&config, "limits.resident = 10000");
    let done = work(root);
    std::fs::remove_file(config).unwrap();
    done
}

/// Two services over the same root: one that searches the table, one that holds it in memory.
fn both(root: &Root) -> (Service, Service) {
    (searched(root, Root::service), root.service())
}

fn query(service: &Service, arguments: &Value) -> Value {
    call(service, "query_memories", arguments.clone())
        .unwrap_or_else(|error| panic!("{arguments}: {error}"))
}

/// What is shown of each result, and how it scored.
fn results(answer: &Value) -> Vec<(String, f64, Value)> {
    let hits = answer["results"].as_array().unwrap().iter();
    hits.map(|hit| {
        (
            hit["id"].as_str().unwrap().to_owned(),
            hit["score"].as_f64().unwrap_or_default(),
            hit["why"].clone(),
        )
    })
    .collect()
}

fn ids(answer: &Value) -> Vec<String> {
    results(answer).into_iter().map(|(id, ..)| id).collect()
}

fn questions() -> Vec<Value> {
    let mut random = Random(99);
    let mut questions: Vec<Value> = (0..12)
        .map(|number| {
            let words = 2 + number % 5;
            let mode = ["hybrid", "lexical", "semantic"][number % 3];
            json!({ "query": random.text(words), "mode": mode })
        })
        .collect();
    questions.extend([
        json!({ "query": "E04711" }),
        json!({ "query": "the deploy failed with E00042 on the build server" }),
        json!({ "query": "docker queue timeout", "project": "project-3" }),
        json!({ "query": "docker queue timeout", "tags": ["tag-7", "tag-8"], "match_tags": "any", "limit": 20 }),
        json!({ "query": "schema branch", "type": "Gotcha", "since": "2025-03-01", "until": "2025-03-03" }),
        json!({ "query": "schema branch", "mode": "semantic", "session": "s77" }),
        json!({ "query": "memory token", "files": ["src/cache/*.rs"] }),
        json!({ "query": "memory token", "status": "staging" }),
        json!({ "query": "memory token", "status": "all", "limit": 50, "max_tokens": 20_000 }),
        json!({ "query": "dployment of the cashe" }),
        json!({ "like": "m01234" }),
        json!({ "tags": ["tag-3"], "limit": 7 }),
    ]);
    // The answers contain different notes: none may be cut for its length.
    for question in &mut questions {
        question["max_tokens"] = json!(20_000);
    }
    questions
}

#[test]
fn decisions_about_a_large_scope_take_effect_at_once() {
    let (root, _store) = large();
    let (searching, holding) = both(&root);
    let folder = root.scope_folder("alpha");
    let staged = ids(&query(
        &searching,
        &json!({ "query": "docker queue", "status": "staging", "limit": 3 }),
    ));
    let served = ids(&query(&searching, &json!({ "query": "docker queue", "limit": 3 })));
    decide(&folder, "memory.db", &staged[0], "approve", json!({}));
    decide(&folder, "memory.db", &served[0], "reject", json!({}));
    let edit =
        json!({ "edit": { "title": "Zeppelins are inflated with helium", "project": "airship" } });
    decide(&folder, "memory.db", &served[1], "edit", edit);
    for service in [&searching, &holding] {
        let found = ids(&query(
            service,
            &json!({ "query": "docker queue", "limit": 50, "max_tokens": 20_000 }),
        ));
        assert!(found.contains(&staged[0]), "what was approved is found");
        let all = query(
            service,
            &json!({ "query": "docker queue", "status": "all", "limit": 50, "max_tokens": 20_000 }),
        );
        assert_lacks!(all.to_string(), &served[0]; "what was rejected is gone");
        let shown = &ids(&query(service, &json!({ "query": "zeppelins helium" })))[0];
        assert_eq!(*shown, served[1]);
        let shown = ids(&query(service, &json!({ "query": "helium", "project": "airship" })));
        assert_eq!(shown, [served[1].as_str()]);
        let old = ids(&query(
            service,
            &json!({ "query": "docker queue", "project": "project-3", "limit": 50, "max_tokens": 20_000 }),
        ));
        assert!(!old.contains(&served[1]), "it is another project's now");
    }
}

#[test]
fn a_large_scope_answers_like_one_in_memory() {
    let (root, store) = large();
    let (searching, holding) = both(&root);
    let compare = |what: &str| {
        for question in questions() {
            let (found, expected) = (query(&searching, &question), query(&holding, &question));
            assert_eq!(results(&found), results(&expected), "{what}: {question}");
            let hidden =
                |answer: &Value| answer["hidden"]["by_status"].as_u64().unwrap_or_default() > 0;
            if question["mode"] != "semantic" && question.get("like").is_none() {
                assert_eq!(hidden(&found), hidden(&expected), "{what}: {question}");
            }
        }
    };
    compare("as it was indexed");
    let answer = query(&searching, &json!({ "query": "docker queue" }));
    assert_contains!(answer["notes"].to_string(), "best_matches_only");
    assert_eq!(answer["total_is_lower_bound"], true);
    let scopes = searching.scopes(json!({ "scope": "alpha" }));
    assert_eq!(scopes["scopes"][0]["index"]["coverage"], 1.0);
    let arguments = json!({ "id": "m00500", "include": ["related", "timeline"] });
    let full = call(&searching, "get_memory", arguments);
    let arguments = json!({ "id": "m00500", "include": ["related", "timeline"] });
    let expected = call(&holding, "get_memory", arguments);
    assert_eq!(full.unwrap(), expected.unwrap());

    // A written row is found immediately, not under its old content.
    store.sql("UPDATE memories SET title = 'Zeppelins are inflated with helium' WHERE id = 'm00010';
             UPDATE memories SET status = 'rejected' WHERE id = 'm04711';
             UPDATE memories SET status = 'approved' WHERE status = 'staging' AND id < 'm00100';
             DELETE FROM memories WHERE id = 'm00042';
             INSERT INTO memories (id, title, status) VALUES ('new', 'A dirigible is filled with gas, see E99999', 'approved');");
    for (question, first) in [
        (json!({ "query": "E99999" }), "new"),
        (json!({ "query": "zeppelin helium" }), "m00010"),
        (json!({ "query": "airship balloon gas", "mode": "semantic", "limit": 1 }), "new"),
    ] {
        assert_eq!(ids(&query(&searching, &question))[0], first, "{question}");
    }
    for gone in ["E04711", "E00042"] {
        let arguments = json!({ "query": gone, "mode": "lexical", "status": "all" });
        let answer = query(&searching, &arguments);
        assert!(
            !ids(&answer).iter().any(|id| id == "m04711" || id == "m00042"),
            "{gone}: {answer}"
        );
    }
}

#[test]
fn a_table_gets_indexes_only_if_it_is_searched_on_disk() {
    let root = Root::new();
    let _store = bulk(&root, "alpha", &memories());
    build(&root);
    let indexes = root.path().join("scopes/alpha/lance/memories.lance/_indices");
    assert!(!indexes.exists(), "all of it is held in memory");
    let problems = |service: &Service| {
        let answer = service.scopes(json!({}));
        answer["scopes"][0]["health"]["problems"].clone()
    };
    let (searching, _) = both(&root);
    let found = problems(&searching).to_string();
    assert_contains!(found, "`ack-memory index --scope alpha` makes them");
    let answer = query(&searching, &json!({ "query": "retry queue" }));
    assert!(!answer["results"].as_array().unwrap().is_empty(), "and nothing is missing meanwhile");
    searched(&root, build);
    assert!(indexes.is_dir());
    let (searching, _) = both(&root);
    let arguments = json!({ "query": "retry queue", "mode": "hybrid" });
    let answer = query(&searching, &arguments);
    assert_contains!(answer["notes"].to_string(), "best_matches_only");
    assert!(problems(&searching).as_array().is_none_or(Vec::is_empty), "{}", problems(&searching));
}

#[test]
fn filters_never_cost_results_of_a_large_scope() {
    let (root, _) = large();
    let (searching, holding) = both(&root);
    for mode in ["hybrid", "lexical", "semantic"] {
        for filter in [
            json!({ "session": "s12" }),
            json!({ "tags": ["TAG-4"], "project": "project_2", "type": "decision" }),
            json!({ "since": "2025-05-05", "until": "2025-05-05" }),
            json!({ "files": ["deploy"] }),
            json!({ "project": "nobody" }),
        ] {
            let mut question = json!({ "query": "deploy the server config with a token", "mode": mode, "limit": 30, "max_tokens": 20_000 });
            question.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
            let (found, expected) =
                (ids(&query(&searching, &question)), ids(&query(&holding, &question)));
            assert_eq!(found, expected, "{question}");
        }
    }
    // Pages are consistent.
    let mut seen = Vec::new();
    let mut question = json!({ "query": "docker queue", "limit": 40, "max_tokens": 20_000 });
    for _ in 0..4 {
        let answer = query(&searching, &question);
        seen.extend(ids(&answer));
        question["cursor"] = answer["next_cursor"].clone();
    }
    let mut distinct = seen.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!((seen.len(), distinct.len()), (160, 160));
}

/// What matches best is in the other project, of both there are more than can be looked at one by
/// one, and the page is filled.
#[test]
fn a_filter_far_from_the_best_matches_still_fills_its_page() {
    const EACH: usize = 20_200;
    let mut random = Random(11);
    let memories: Vec<Value> = (0..2 * EACH)
        .map(|number| {
            let near = number % 2 == 0;
            let title = if near {
                "Zeppelins are filled with helium"
            } else {
                "Deploying the server"
            };
            let body = if near { "zeppelin helium gas" } else { "one zeppelin" };
            // One memory of the other project is as good as any.
            let title = if number == 20_001 {
                "Zeppelins, helium and zeppelins"
            } else {
                title
            };
            let project = if near { "airships" } else { "servers" };
            let rest = json!({
                "narrative": format!("{body} {}", random.text(3)), "project": project, "files": [format!("src/{project}/main.rs")],
            });
            memory(&format!("m{number:05}"), title, rest)
        })
        .collect();
    let root = Root::new();
    let _store = bulk(&root, "alpha", &memories);
    searched(&root, build);
    let searching = searched(&root, Root::service);
    for mode in ["hybrid", "lexical", "semantic"] {
        let question =
            json!({ "query": "zeppelin helium", "mode": mode, "limit": 50, "max_tokens": 20_000 });
        let answer = query(&searching, &question);
        assert_contains!(answer["notes"].to_string(), "best_matches_only"; "{mode}");
        // The table can decide the first one by itself, and not the second one.
        for filter in [json!({ "project": "servers" }), json!({ "files": ["src/servers/*.rs"] })] {
            let mut within = question.clone();
            within.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
            let answer = query(&searching, &within);
            let found = ids(&answer);
            assert_eq!(found.len(), 50, "{within}: {answer}");
            let shown = found.first().map(String::as_str);
            assert_eq!(shown, Some("m20001"), "{within}");
            let odd = |id: &String| id.trim_start_matches('m').parse::<usize>().unwrap() % 2 == 1;
            assert!(found.iter().all(odd), "{within}: {found:?}");
        }
    }
}

#[test]
fn a_table_lost_during_a_search_is_only_a_note() {
    let (root, _) = large();
    let question = json!({ "query": "docker queue timeout", "limit": 20, "max_tokens": 20_000 });
    // Asked after the damage, so that LanceDB cannot know the answer yet.
    let other = json!({ "query": "a branch of the schema, a lock and its retry", "limit": 20, "max_tokens": 20_000 });
    for damage in ["removed", "emptied", "without its words"] {
        let (searching, holding) = both(&root);
        let expected = ids(&query(&holding, &question));
        let expected_other = ids(&query(&holding, &other));
        assert_eq!(ids(&query(&searching, &question)), expected);
        let lance = root.scope_folder("alpha").join("lance");
        let aside = root.path().join("aside");
        let _ = std::fs::remove_dir_all(&aside);
        copy(&lance, &aside);
        match damage {
            "removed" => std::fs::remove_dir_all(&lance).unwrap(),
            "emptied" => truncate(&lance.join("memories.lance/data")),
            _ => truncate(&lance.join("memories.lance/_indices")),
        }
        assert_eq!(ids(&query(&searching, &other)), expected_other, "{damage}");
        assert_eq!(ids(&query(&searching, &question)), expected, "{damage}");
        let _ = std::fs::remove_dir_all(&lance);
        copy(&aside, &lance);
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in walkdir::WalkDir::new(from).into_iter().map(Result::unwrap) {
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Cuts every file under a folder to half.
fn truncate(folder: &std::path::Path) {
    let files = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    for entry in files.filter(|entry| entry.file_type().is_file()) {
        let length = entry.metadata().unwrap().len();
        std::fs::File::options()
            .write(true)
            .open(entry.path())
            .unwrap()
            .set_len(length / 2)
            .unwrap();
    }
}

/// The files below a folder that this process has open.
#[cfg(target_os = "linux")]
fn open_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let files = descriptors.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    files.filter(|file| file.starts_with(folder)).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_server_holds_no_files_open() {
    let (root, store) = large();
    drop(store);
    let (searching, in_memory) = both(&root);
    for service in [&searching, &in_memory] {
        query(service, &json!({ "query": "deploy timeout" }));
    }
    let closed = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        open_files(root.path()).is_empty()
    });
    assert!(closed, "still open: {:?}", open_files(root.path()));
    // Another store in its place is another store, however soon.
    let one = root.store("beta", &[titled("b1", "the beta marker")]);
    let other = root.store("gamma", &[titled("c1", "the gamma marker")]);
    let marker = json!({ "query": "marker", "scope": "beta" });
    assert_eq!(ids(&query(&in_memory, &marker)), ["b1"]);
    std::fs::rename(other, one).unwrap();
    assert_eq!(ids(&query(&in_memory, &marker)), ["c1"]);
}

#[test]
fn a_contextual_table_answers_the_same_on_disk_and_in_memory() {
    let root = Root::new();
    let mut random = Random(11);
    let short = |number: usize| titled(&format!("m{number:05}"), &random.text(5));
    bulk(&root, "alpha", &(0..SIZE).map(short).collect::<Vec<_>>());
    let index = ["index", "--all", "--encoder", "contextual"];
    searched(&root, |root| ack(root.path(), &index).ok());
    let (searching, holding) = both(&root);
    for question in ["docker queue timeout", "why does the build lose its lock"] {
        for mode in ["hybrid", "semantic"] {
            let question = json!({ "query": question, "mode": mode });
            let (on_disk, in_memory) = (query(&searching, &question), query(&holding, &question));
            assert_eq!(results(&on_disk), results(&in_memory), "{question}");
        }
    }
}
