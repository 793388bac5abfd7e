//! Stores of other programs are recognised by their content and counted, and nothing in them
//! changes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use ack_memory::internal::recogniser::{StoreKind, StorePlaces, Support, at, survey};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::cli::{ack, claude_mem};
use crate::support::{Root, Sql, fingerprint, outside, write_file};

fn nothing(_: &str) -> Option<OsString> {
    None
}

/// A person's home folder, empty.
pub struct Person {
    pub folder: TempDir,
}

impl Person {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("ack-person-").tempdir();
        Self { folder: folder.unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_file(&path, text);
        path
    }

    /// Copies a file or folder of the real stores to a path in the home.
    pub fn copy(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.path(name);
        for entry in walkdir::WalkDir::new(from).into_iter().map(Result::unwrap) {
            let inside = entry.path().strip_prefix(from).unwrap();
            // Joining nothing would end the path of a file with a slash.
            let mut to = to.clone();
            to.extend(inside);
            if entry.file_type().is_dir() {
                fs::create_dir_all(to).unwrap();
            } else {
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(entry.path(), &to).unwrap();
            }
        }
        to
    }

    fn places(&self) -> StorePlaces<'static> {
        StorePlaces {
            home: self.folder.path().to_owned(),
            data: self.path(".local/share"),
            settings: self.path(".config"),
            project: Some(self.path("src/shop")),
            variable: &nothing,
        }
    }

    #[track_caller]
    fn check_finds(&self, expected: &[(StoreKind, &str, Option<u64>)]) {
        let found: Vec<_> = survey(&self.places())
            .into_iter()
            .map(|found| (found.kind, found.path, found.memories))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(kind, path, memories)| (*kind, self.path(path), *memories))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn every_real_store_is_recognised_in_its_default_place() {
    let Some(stores) = outside("ACK_TEST_REAL_STORES") else {
        return;
    };
    let person = Person::new();
    let seen = ".claude-mem/claude-mem.db";
    person.copy(&stores.join("claude-mem/claude-mem.db"), seen);
    person.copy(&stores.join("auto-memory/projects"), ".claude/projects");
    person.copy(&stores.join("basic-memory"), "basic-memory");
    let service = ".local/share/mcp-memory/sqlite_vec.db";
    person.copy(&stores.join("mcp-memory-service/sqlite_vec.db"), service);
    let lines = "graph/memory.jsonl";
    let graph = person.copy(&stores.join("server-memory/memory.jsonl"), lines);
    let memory = serde_json::json!({ "env": { "MEMORY_FILE_PATH": graph } });
    let client =
        serde_json::json!({ "projects": { "/x": { "mcpServers": { "memory": memory } } } });
    person.write(".claude.json", &client.to_string());
    // Not a usual place: the home folder is not searched.
    person.copy(&stores.join("auto-memory/projects"), "documents/projects");
    let before = fingerprint(person.folder.path());
    let [ledger, kiosk] = ["-Users-dana-src-ledger-api", "-home-dana-src-kiosk-web"]
        .map(|project| format!(".claude/projects/{project}/memory"));
    person.check_finds(&[
        (StoreKind::ClaudeMem, seen, Some(756)),
        // One of its 17 files is empty.
        (StoreKind::AutoMemory, &ledger, Some(16)),
        (StoreKind::AutoMemory, &kiosk, Some(215)),
        (StoreKind::ServerMemory, lines, Some(98)),
        (StoreKind::BasicMemory, "basic-memory", Some(83)),
        (StoreKind::McpMemoryService, service, Some(201)),
    ]);
    assert_eq!(fingerprint(person.folder.path()), before);

    // The same, one by one and under meaningless names.
    let kiosk = "auto-memory/projects/-home-dana-src-kiosk-web/memory";
    let vectors = "mcp-memory-service/sqlite_vec.db";
    for (from, name, kind) in [
        ("claude-mem/claude-mem.db", "a", StoreKind::ClaudeMem),
        (vectors, "b", StoreKind::McpMemoryService),
        ("server-memory/memory.jsonl", "c", StoreKind::ServerMemory),
        ("basic-memory", "d", StoreKind::BasicMemory),
        (kiosk, "e", StoreKind::AutoMemory),
    ] {
        let path = person.copy(&stores.join(from), name);
        assert_eq!(at(&path).map(|found| found.kind), Some(kind), "{from}");
    }
}

#[test]
fn a_database_in_use_is_counted_with_its_log() {
    let Some(stores) = outside("ACK_TEST_REAL_STORES") else {
        return;
    };
    let person = Person::new();
    person.copy(&stores.join("claude-mem-live"), ".claude-mem");
    let before = fingerprint(person.folder.path());
    let found = survey(&person.places());
    assert_eq!(found[0].kind, StoreKind::ClaudeMem);
    assert_eq!(found[0].approved, None);
    assert!(found[0].memories.unwrap() > 756, "{found:?}");
    assert_eq!(fingerprint(person.folder.path()), before);
}

#[test]
fn what_a_project_holds_is_found() {
    let person = Person::new();
    person.write("src/shop/.serena/memories/deep/style.md", "Two spaces.");
    let solution = "---\nmodule: api\nproblem_type: crash\n---\nIt was the cache.";
    person.write("src/shop/docs/solutions/api/cache.md", solution);
    person.write("src/shop/docs/solutions/README.md", "What is here.");
    person.write("src/shop/wiki/index.md", "---\nokf_version: \"0.2\"\n---\n");
    person.write("src/shop/wiki/log.md", "---\ntype: log\n---\n");
    let text = "\u{feff}---\r\ntype: decision\r\n---\r\nCents.";
    person.write("src/shop/wiki/a/pay.md", text);
    person.write("src/shop/AGENTS.md", "Use tabs.");
    person.write(".codex/memories/memory_summary.md", "v1\n\nUser profile");
    let groups = "# Task Group: a\nOne.\n\n# Task Group: b\nTwo.\n# Task Group: empty\n";
    person.write(".codex/memories/MEMORY.md", groups);
    let text = "thread_id: 1\n\nIt built.\n";
    person.write(".codex/memories/rollout_summaries/one.md", text);
    person.check_finds(&[
        (StoreKind::KnowledgeFormat, "src/shop/wiki", Some(1)),
        (StoreKind::Codex, ".codex/memories", Some(3)),
        (StoreKind::Serena, "src/shop/.serena/memories", Some(1)),
        (StoreKind::Solutions, "src/shop/docs/solutions", Some(2)),
    ]);
}

#[test]
fn the_global_memories_of_serena_are_found() {
    let person = Person::new();
    let folder = person.path(".serena/memories/global");
    fs::create_dir_all(&folder).unwrap();
    person.check_finds(&[]);
    person.write(".serena/memories/global/style.md", "Short lines.\n");
    let name = ".serena/memories/global";
    person.check_finds(&[(StoreKind::Serena, name, Some(1))]);
}

#[test]
fn a_native_store_says_how_much_is_approved() {
    let root = Root::samples();
    let store = root.path().join("scopes/ledger-api/memory.db");
    let found = at(&store).unwrap();
    assert_eq!(found.kind, StoreKind::AckMemory);
    assert_eq!(found.kind.support(), Support::Served);
    assert!(found.approved.unwrap() > 0 && found.approved < found.memories, "{found:?}");
    assert_eq!(at(store.parent().unwrap()), Some(found));
}

#[test]
fn a_file_name_alone_is_not_a_store() {
    let person = Person::new();
    let path = person.write(".claude-mem/claude-mem.db", "");
    fs::remove_file(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.sql("CREATE TABLE bookmarks (url TEXT)");
    drop(other);
    person.write("src/shop/memory.jsonl", "{\"event\":\"start\"}\n");
    person.write("src/shop/index.md", "# Shop\nokf_version: 1\n");
    person.write("basic-memory/todo.md", "- [ ] milk");
    person.write(".claude/projects/-x/memory/notes.txt", "no Markdown");
    person.write(".codex/memories/README.md", "none yet");
    person.check_finds(&[]);
    assert_eq!(at(&person.path("none")), None);
}

#[test]
fn broken_stores_are_listed_with_the_reason() {
    let person = Person::new();
    let text = "SQLite format 3\0 and then nothing of the kind";
    person.write(".claude-mem/claude-mem.db", text);
    person.write(".local/share/mcp-memory/sqlite_vec.db", "");
    person.write("basic-memory/a.md", "---\npermalink: a\n---\nMilk.\n");
    person.write(".basic-memory/config.json", "{ not JSON");
    let project = person.path("src/shop");
    fs::create_dir_all(&project).unwrap();
    // Opening one would wait for a writer.
    nix::unistd::mkfifo(&project.join("memory.jsonl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    nix::unistd::mkfifo(&project.join("CLAUDE.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink(&project, project.join("loop")).unwrap();
    let found = survey(&person.places());
    let listed: Vec<String> =
        found.iter().map(|found| format!("{:?} {}", found.kind, found.count())).collect();
    let expected = [
        "ClaudeMem not counted: it is not an SQLite database",
        "BasicMemory 1 memory",
        "McpMemoryService not counted: it is empty: no database was ever written there",
    ];
    assert_eq!(listed, expected);
}

#[test]
fn import_names_the_store_that_it_does_not_read() {
    let root = Root::new();
    let person = Person::new();
    let graph =
        "{\"type\":\"entity\",\"name\":\"a\",\"entityType\":\"tool\",\"observations\":[]}\n";
    let graph = person.write("memory.jsonl", graph);
    drop(claude_mem(&person.path("claude-mem.db")));
    let notes = person.write("notes/MEMORY.md", "# Index");
    let database = person.path("claude-mem.db");
    let notes = notes.parent().unwrap();
    for (path, expected) in [
        (&*graph, "is server-memory, and `import` reads"),
        (&database, " scopes add NAME --store PATH`"),
        (notes, "is Claude Code auto-memory, and `import` reads"),
    ] {
        let path = path.to_str().unwrap();
        let error = ack(root.path(), &["import", path, "--scope", "new"]).fails(2);
        assert_contains!(error, expected);
    }
    for (name, path) in [("graph", &*graph), ("notes", notes)] {
        let path = path.to_str().unwrap();
        let words = ["scopes", "add", name, "--store", path, "--yes"];
        ack(root.path(), &words).ok();
    }
}
