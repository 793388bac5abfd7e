//! What tests share: a builder of scope roots with real stores, a service over them, a fingerprint
//! of every file.

pub mod everywhere;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Once;
use std::time::SystemTime;

use ack_api::ErrorBody;
use ack_memory::Config;
use ack_memory::Service;
use ack_memory::internal::{Inputs, Setting};
use rusqlite::{Connection, Params, params};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::call;

/// A scope root in a temporary folder.
pub struct Root {
    folder: TempDir,
}

/// Lets the processes that tests start end at SIGHUP, even if this one was started by `nohup`: they
/// inherit that a signal is ignored, but not that it is handled.
fn undo_nohup() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if ignored.unwrap_or_default() & 1 != 0 {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            let _inside = runtime.enter();
            let _ = signal(SignalKind::hangup()).unwrap();
        }
    });
}

impl Root {
    /// An empty root.
    pub fn new() -> Self {
        undo_nohup();
        Self { folder: TempDir::with_prefix("ack-test-").unwrap() }
    }

    /// A root with a store, see [`Root::store`].
    pub fn with(scope: &str, memories: &[Value]) -> Self {
        let root = Self::new();
        root.store(scope, memories);
        root
    }

    /// The sample scopes of `scopes-example/`.
    pub fn samples() -> Self {
        let root = Self::new();
        ack_memory::internal::build_demo(root.path(), "2026-11-21T00:00:00Z".parse().unwrap())
            .unwrap();
        root
    }

    /// Lets agents ask for what waits for review.
    pub fn let_agents_review(self) -> Self {
        let path = self.path().join("config.toml");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, format!("max_status = \"all\"\n{text}")).unwrap();
        self
    }

    /// The root's folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of a scope, created if needed.
    pub fn scope_folder(&self, name: &str) -> PathBuf {
        let folder = self.path().join("scopes").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Writes a scope's manifest.
    pub fn manifest(&self, scope: &str, text: &str) -> &Self {
        std::fs::write(self.scope_folder(scope).join("scope.toml"), text).unwrap();
        self
    }

    /// A native store with these memories (JSON objects, see [`memory`]).
    pub fn store(&self, scope: &str, memories: &[Value]) -> PathBuf {
        let path = self.scope_folder(scope).join("memory.db");
        let connection = Connection::open(&path).unwrap();
        connection.sql(ack_memory::internal::import::SCHEMA);
        insert(&connection, memories);
        path
    }

    /// A service over this root, with a project folder that no scope claims.
    pub fn service(&self) -> Service {
        self.service_with(|_| {})
    }

    /// A service over this root with other settings.
    pub fn service_with(&self, change: impl FnOnce(&mut Inputs)) -> Service {
        let mut inputs = Inputs {
            root: Some(Setting::flag("--root", self.path().to_owned())),
            project: Some(Setting::flag("-C", self.path().join("elsewhere"))),
            working_directory: self.path().to_owned(),
            ..Inputs::default()
        };
        change(&mut inputs);
        Service::new(Config::load(inputs).unwrap())
    }
}

/// A memory as JSON: `title` and whatever else is given; an approved one unless `status` says
/// otherwise.
pub fn memory(id: &str, title: &str, rest: Value) -> Value {
    let mut memory = serde_json::json!({ "id": id, "title": title, "status": "approved", "created_at": "2026-01-01T00:00:00Z" });
    for (key, value) in rest.as_object().into_iter().flatten() {
        memory[key] = value.clone();
    }
    memory
}

/// Memories as lines of a text, with a value for each key between bars. A value that begins with a
/// bracket is JSON, and `-` is none.
pub fn rows(keys: &str, lines: &str) -> Vec<Value> {
    let row = |line: &str| {
        let values = line.split(" | ").map(str::trim);
        let pairs = keys.split(" | ").zip(values).filter(|(_, value)| *value != "-");
        let fields = pairs.map(|(key, value)| {
            let is_json = value.starts_with(['[', '{']);
            let json = is_json.then(|| value.parse().unwrap());
            (key.to_owned(), json.unwrap_or_else(|| json!(value)))
        });
        let fields: Value = fields.collect();
        let [id, title] = ["id", "title"].map(|key| fields[key].as_str().unwrap().to_owned());
        memory(&id, &title, fields)
    };
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(row).collect()
}

/// An approved memory with nothing but a title.
pub fn titled(id: &str, title: &str) -> Value {
    memory(id, title, json!({}))
}

/// As [`titled`], and it waits for review.
pub fn unreviewed(id: &str, title: &str) -> Value {
    memory(id, title, json!({ "status": "staging" }))
}

/// As [`titled`], and its curator rejected it.
pub fn rejected(id: &str, title: &str) -> Value {
    memory(id, title, json!({ "status": "rejected" }))
}

/// The tools of a service with arguments as a client sends them; each answers.
pub trait Ask {
    fn ask(&self, tool: &'static str, arguments: Value) -> Value;
    fn refused(&self, tool: &'static str, arguments: Value) -> ErrorBody;

    #[track_caller]
    fn find(&self, arguments: Value) -> Value {
        self.ask("query_memories", arguments)
    }

    #[track_caller]
    fn fetch(&self, arguments: Value) -> Value {
        self.ask("get_memory", arguments)
    }

    #[track_caller]
    fn scopes(&self, arguments: Value) -> Value {
        self.ask("list_scopes", arguments)
    }

    #[track_caller]
    fn brief(&self, arguments: Value) -> Value {
        self.ask("get_context", arguments)
    }
}

impl Ask for Service {
    #[track_caller]
    fn ask(&self, tool: &'static str, arguments: Value) -> Value {
        call(self, tool, arguments).unwrap()
    }

    #[track_caller]
    fn refused(&self, tool: &'static str, arguments: Value) -> ErrorBody {
        call(self, tool, arguments).unwrap_err().body()
    }
}

/// SQL that succeeds.
pub trait Sql {
    fn sql(&self, statements: &str);
    fn sql_with(&self, statement: &str, values: impl Params);
}

impl Sql for Connection {
    #[track_caller]
    fn sql(&self, statements: &str) {
        self.execute_batch(statements).unwrap();
    }

    #[track_caller]
    fn sql_with(&self, statement: &str, values: impl Params) {
        self.execute(statement, values).unwrap();
    }
}

/// Runs SQL in a database, and closes it.
#[track_caller]
pub fn run_sql(path: impl AsRef<Path>, statements: &str) {
    Connection::open(path).unwrap().sql(statements);
}

/// Writes a file.
#[track_caller]
pub fn write_file(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    std::fs::write(path, content).unwrap();
}

/// The text of a file.
#[track_caller]
pub fn read_text(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// What [`assert_contains`] looks at: a text, or the text or the JSON of a value.
pub trait AsText {
    fn as_text(&self) -> Cow<'_, str>;
}

impl AsText for str {
    fn as_text(&self) -> Cow<'_, str> {
        self.into()
    }
}

impl AsText for String {
    fn as_text(&self) -> Cow<'_, str> {
        self.into()
    }
}

impl AsText for Value {
    fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::String(text) => text.into(),
            other => other.to_string().into(),
        }
    }
}

impl<T: AsText + ?Sized> AsText for &T {
    fn as_text(&self) -> Cow<'_, str> {
        (**self).as_text()
    }
}

impl<T: AsText + ?Sized + ToOwned> AsText for Cow<'_, T> {
    fn as_text(&self) -> Cow<'_, str> {
        (**self).as_text()
    }
}

/// Fails, and shows the text, unless it contains each part. What else it should say follows a
/// semicolon.
macro_rules! assert_contains {
    ($text:expr, $($part:expr),+ $(; $($what:tt)+)?) => {
        match &$text {
            text => $crate::support::check_parts(
                &$crate::support::AsText::as_text(text),
                &[$(AsRef::<str>::as_ref(&$part)),+],
                true,
                &[$(format!($($what)+))?],
            ),
        }
    };
}

/// Fails, and shows the text, if it contains one of these parts. See [`assert_contains`].
macro_rules! assert_lacks {
    ($text:expr, $($part:expr),+ $(; $($what:tt)+)?) => {
        match &$text {
            text => $crate::support::check_parts(
                &$crate::support::AsText::as_text(text),
                &[$(AsRef::<str>::as_ref(&$part)),+],
                false,
                &[$(format!($($what)+))?],
            ),
        }
    };
}

/// What [`assert_contains`] and [`assert_lacks`] do. `about` is empty or says what the text is.
#[track_caller]
pub fn check_parts(text: &str, parts: &[&str], wanted: bool, about: &[String]) {
    for part in parts {
        let how = if wanted { "is not in" } else { "is in" };
        assert!(text.contains(part) == wanted, "{} {part:?} {how}: {text}", about.concat());
    }
}

/// Inserts memories into a native store. Lists are stored as JSON, other values unchanged.
pub fn insert(connection: &Connection, memories: &[Value]) {
    for memory in memories {
        for (position, (key, value)) in memory.as_object().unwrap().iter().enumerate() {
            let value: rusqlite::types::Value = match value {
                Value::Null => rusqlite::types::Value::Null,
                Value::String(text) => text.clone().into(),
                Value::Number(number) if number.is_i64() => number.as_i64().unwrap().into(),
                Value::Number(number) => number.as_f64().unwrap().into(),
                other => other.to_string().into(),
            };
            let id = memory["id"].as_str().unwrap();
            if position == 0 {
                connection
                    .execute(
                        "INSERT INTO memories (id, title) VALUES (?1, ?2)",
                        params![id, memory["title"].as_str().unwrap_or_default()],
                    )
                    .unwrap();
            }
            connection
                .execute(
                    &format!("UPDATE memories SET \"{key}\" = ?1 WHERE id = ?2"),
                    params![value, id],
                )
                .unwrap();
        }
    }
}

/// The ids of a list of memories, in its order.
#[track_caller]
pub fn ids(list: &Value) -> Vec<String> {
    let hits = list.as_array().unwrap_or_else(|| panic!("no list: {list}")).iter();
    hits.map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
}

/// The ids of the results of a query, in their order.
#[track_caller]
pub fn result_ids(answer: &Value) -> Vec<String> {
    ids(&answer["results"])
}

/// The ids of a list of memories, sorted.
#[track_caller]
pub fn sorted_ids(list: &Value) -> Vec<String> {
    let mut ids = ids(list);
    ids.sort();
    ids
}

/// A process that is killed when the test ends, however it ends.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The address of a server over HTTP, which it prints first.
pub fn http_address(server: &mut Child) -> String {
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    url.trim().trim_start_matches("http://").trim_end_matches("/mcp").to_owned()
}

/// Name, size, time of change and content of every file under a folder.
pub fn fingerprint(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime, u64)> {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .map(Result::unwrap)
        .map(|entry| {
            let metadata = entry.metadata().unwrap();
            let content =
                if metadata.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
            (
                entry.path().to_owned(),
                (
                    metadata.len(),
                    metadata.modified().unwrap(),
                    xxhash_rust::xxh3::xxh3_64(&content),
                ),
            )
        })
        .collect()
}

/// The words of a shell line; quotes hold words together.
pub fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The folder of a set outside the repository, from the environment; `None`, with a message, if it
/// is not set.
pub fn outside(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_dir());
    if folder.is_none() {
        eprintln!("{variable} names no folder: this test did nothing");
    }
    folder
}
