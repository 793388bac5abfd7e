//! What the tests of stores share: odd databases, another process on the same file, every answer of
//! every tool.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ack_api::memory::StatusFilter;
use ack_api::{
    ContextRequest, Detail, GetRequest, GetResponse, Include, ListScopesRequest, MemoryHit,
    NoteKind, QueryRequest, QueryResponse,
};
use ack_memory::Error;
use ack_memory::Service;
use rusqlite::Connection;
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::{Root, Sql, run_sql, write_file};

/// The variable that turns this test binary into the other process; see [`Other`].
const JOB: &str = "ACK_TEST_OTHER_PROCESS";

/// Tables of claude-mem as version 13 writes them, without its indexes and triggers.
pub const CLAUDE_MEM: &str = "
CREATE TABLE schema_versions (id INTEGER PRIMARY KEY, version INTEGER UNIQUE NOT NULL, applied_at TEXT NOT NULL);
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, memory_session_id TEXT UNIQUE,
  project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude', user_prompt TEXT, started_at TEXT NOT NULL,
  started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER, status TEXT NOT NULL DEFAULT 'active', custom_title TEXT);
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, text TEXT,
  type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT,
  prompt_number INTEGER, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, discovery_tokens INTEGER DEFAULT 0,
  content_hash TEXT, merged_into_project TEXT, metadata TEXT,
  FOREIGN KEY(memory_session_id) REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, request TEXT,
  investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT, prompt_number INTEGER,
  created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, merged_into_project TEXT);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, prompt_number INTEGER NOT NULL,
  prompt_text TEXT NOT NULL, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE tool_uses (id INTEGER PRIMARY KEY AUTOINCREMENT, tool_use_id TEXT NOT NULL, content_session_id TEXT NOT NULL,
  memory_session_id TEXT, project TEXT NOT NULL, tool_name TEXT NOT NULL, tool_input TEXT, tool_response TEXT, created_at_epoch INTEGER);
CREATE TABLE pending_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, message_type TEXT NOT NULL,
  tool_input TEXT, tool_response TEXT, last_user_message TEXT, last_assistant_message TEXT, created_at_epoch INTEGER NOT NULL);
CREATE VIRTUAL TABLE observations_fts USING fts5(title, subtitle, narrative, text, facts, concepts, content='observations', content_rowid='id');
CREATE VIRTUAL TABLE user_prompts_fts USING fts5(prompt_text, content='user_prompts', content_rowid='id');
";

/// A database in a scope's folder, made by SQL.
pub fn database(root: &Root, scope: &str, sql: &str) -> PathBuf {
    let path = root.scope_folder(scope).join("memory.db");
    run_sql(&path, sql);
    path
}

/// A database in a scope's folder and a service over it.
pub fn served(sql: &str) -> (Root, Service) {
    let root = Root::new();
    database(&root, "odd", sql);
    let service = root.service();
    (root, service)
}

/// Writes a file with the folders that it is in.
pub fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_file(&path, text);
    path
}

/// A scope over a folder or file of notes that its owner trusts, and its service.
pub fn serve_notes(path: &Path) -> (Root, Service) {
    let root = Root::new();
    let store = path.display();
    let settings = format!("store = '{store}'\nunreviewed = 'approved'");
    root.manifest("notes", &settings);
    let service = root.service();
    (root, service)
}

/// A query for everything that may be asked for, in full.
pub fn everything() -> QueryRequest {
    QueryRequest {
        status: Some(StatusFilter::All),
        limit: Some(50),
        max_tokens: Some(20_000),
        detail: Some(Detail::Full),
        ..QueryRequest::default()
    }
}

/// A query for words, whatever the status.
pub fn words(query: &str) -> QueryRequest {
    QueryRequest { query: Some(query.to_owned()), ..everything() }
}

/// Every page of a query.
pub fn pages(service: &Service, request: &QueryRequest) -> Vec<QueryResponse> {
    let mut request = request.clone();
    let mut pages = Vec::new();
    loop {
        let page = service.query_memories(&request).unwrap();
        request.cursor.clone_from(&page.next_cursor);
        pages.push(page);
        if request.cursor.is_none() {
            return pages;
        }
        assert!(pages.len() < 5_000, "the pages never end");
    }
}

/// The results of every page of a query.
pub fn hits(service: &Service, request: &QueryRequest) -> Vec<MemoryHit> {
    pages(service, request).into_iter().flat_map(|page| page.results).collect()
}

/// The ids of a page, those that were folded in too.
pub fn ids(response: &QueryResponse) -> Vec<String> {
    let own = response.results.iter().map(|hit| hit.id.clone());
    let folded = response.results.iter().flat_map(|hit| &hit.also);
    own.chain(folded.map(|also| also.id.clone())).collect()
}

/// One memory with everything around it, whatever its status.
pub fn get(service: &Service, id: &str) -> Result<GetResponse, Error> {
    service.get_memory(&GetRequest { id: Some(id.to_owned()), ..around() })
}

fn around() -> GetRequest {
    GetRequest {
        status: Some(StatusFilter::All),
        include: Some(vec![Include::Timeline, Include::Links, Include::History]),
        ..GetRequest::default()
    }
}

/// One memory with everything around it, as JSON.
pub fn fetched(service: &Service, id: &str) -> Value {
    json!(get(service, id).unwrap_or_else(|error| panic!("get_memory {id:?}: {error}")))
}

/// Whether an answer holds a note of this kind.
pub fn has_note(response: &QueryResponse, kind: NoteKind) -> bool {
    response.notes.iter().any(|note| note.kind == kind)
}

/// What every tool answers about everything it can reach: lists, searches, single memories, scopes,
/// contexts and errors.
pub fn every_answer(service: &Service) -> Vec<(String, Value)> {
    fn json_of<T: Serialize>(answer: Result<T, Error>) -> Value {
        answer.map_or_else(|error| json!(error.body()), |answer| json!(answer))
    }
    let mut answers = Vec::new();
    let mut keep = |name: String, value: Value| answers.push((name, value));
    let all = pages(service, &everything());
    let known: Vec<String> = all.iter().flat_map(ids).collect();
    for page in all {
        keep("query_memories".to_owned(), json!(page));
    }
    let searched = QueryRequest {
        explain: Some(true),
        ..words("evil title narrative marker session fact tag")
    };
    for page in pages(service, &searched) {
        keep("query_memories with words".to_owned(), json!(page));
    }
    for status in [None, Some(StatusFilter::Staging)] {
        let request = QueryRequest { status, ..searched.clone() };
        let page = service.query_memories(&request).unwrap();
        keep("query_memories by status".to_owned(), json!(page));
    }
    for some in known.chunks(20) {
        let request = GetRequest { ids: Some(some.to_vec()), ..around() };
        let answer = json_of(service.get_memory(&request));
        keep("get_memory by ids".to_owned(), answer);
    }
    let unknown = ["no such id", "evil"].map(str::to_owned);
    for id in known.into_iter().chain(unknown) {
        keep(format!("get_memory {id:?}"), json_of(get(service, &id)));
        let name = format!("get_memory {id:?} as approved");
        let request = GetRequest { id: Some(id), ..GetRequest::default() };
        keep(name, json_of(service.get_memory(&request)));
    }
    let scopes = service.list_scopes(&ListScopesRequest::default()).unwrap();
    for scope in &scopes.scopes {
        let request =
            ListScopesRequest { scope: Some(scope.name.clone()), ..ListScopesRequest::default() };
        let name = format!("list_scopes {}", scope.name);
        keep(name, json_of(service.list_scopes(&request)));
        let nowhere = std::env::temp_dir().join("ack-test-no-such-folder");
        let folder = nowhere.join(&scope.name);
        for focus in [None, Some("evil title narrative marker".to_owned())] {
            let request = ContextRequest {
                project_path: Some(folder.to_string_lossy().into_owned()),
                max_memories: Some(50),
                max_tokens: Some(20_000),
                focus,
                ..ContextRequest::default()
            };
            let name = format!("get_context {}", scope.name);
            keep(name, json_of(service.get_context(&request)));
        }
    }
    keep("list_scopes".to_owned(), json!(scopes));
    answers
}

/// Fails where a string of an answer holds a character that could steer a terminal, hide text or
/// turn its direction.
pub fn assert_neutral(name: &str, answer: &Value) {
    fn check(name: &str, key: &str, value: &Value) {
        match value {
            Value::String(text) => {
                let long = ["narrative", "overview"].contains(&key);
                for c in text.chars() {
                    let lines = long && (c == '\n' || c == '\t');
                    let hidden = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{e0000}'..='\u{e0fff}');
                    assert!(
                        (!c.is_control() || lines) && !hidden,
                        "{name}: U+{:04X} in `{key}`: {:?}",
                        u32::from(c),
                        text.chars().take(200).collect::<String>()
                    );
                }
            }
            Value::Array(values) => values.iter().for_each(|value| check(name, key, value)),
            Value::Object(map) => {
                for (key, value) in map {
                    check(name, "a key", &Value::String(key.clone()));
                    check(name, key, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    check(name, "", answer);
}

/// Runs something and fails if it takes longer than a limit.
pub fn within<T>(limit: Duration, what: &str, run: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = run();
    assert!(started.elapsed() < limit, "{what} took {:?}", started.elapsed());
    result
}

/// Another process with a connection to a database: this test binary, run again with one test that
/// obeys.
pub struct Other {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Other {
    /// Starts it. Its connection has no busy timeout, so that every conflict shows as an error.
    pub fn open(path: &Path) -> Self {
        Self::start(&json!({ "job": "obey", "path": path }))
    }

    /// Starts it with another job, see [`run_job`].
    pub fn start(job: &Value) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store_support::the_other_process_obeys"])
            .arg("--nocapture")
            .env(JOB, job.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        Self { child, input, output }
    }

    /// Runs SQL there; its error as text.
    pub fn try_sql(&mut self, sql: &str) -> Result<(), String> {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{}", json!(sql)).unwrap();
        input.flush().unwrap();
        match self.line().as_deref() {
            Some("@ok") => Ok(()),
            other => Err(other.unwrap_or("the other process is gone").to_owned()),
        }
    }

    /// Runs SQL there.
    pub fn sql(&mut self, sql: &str) {
        self.try_sql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Kills it without a chance to clean up.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end normally: its connection closes.
    pub fn end(mut self) {
        drop(self.input.take());
        self.child.wait().unwrap();
    }

    /// Its lines, for a separate thread.
    pub fn lines(&mut self) -> BufReader<ChildStdout> {
        self.output.take().unwrap()
    }

    /// Closes its input, which tells it to stop.
    pub fn stop(&mut self) {
        drop(self.input.take());
    }

    fn line(&mut self) -> Option<String> {
        message(self.output.as_mut().unwrap())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next line that the job wrote; what the test runner prints is passed over.
pub fn message(output: &mut impl BufRead) -> Option<String> {
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(at) = line.find('@') {
            return Some(line[at..].trim_end().to_owned());
        }
    }
}

fn say(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// The other process of [`Other`]; in an ordinary run this does nothing.
#[test]
fn the_other_process_obeys() {
    if let Some(job) = std::env::var_os(JOB) {
        run_job(&serde_json::from_str(&job.to_string_lossy()).unwrap());
    }
}

/// `obey`: runs each line of standard input, a JSON string of SQL. `insert`: inserts row after row,
/// says each id when it is committed, and sums up when standard input ends.
fn run_job(job: &Value) {
    let path = job["path"].as_str().unwrap();
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::ZERO).unwrap();
    if job["job"] == "obey" {
        for line in std::io::stdin().lock().lines() {
            let sql: String = serde_json::from_str(&line.unwrap()).unwrap();
            let answer = connection
                .execute_batch(&sql)
                .map_or_else(|error| format!("@{error}"), |()| "@ok".to_owned());
            say(&answer).unwrap();
        }
        return;
    }
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(stop);
    });
    let mut connection = Some(connection);
    let configure =
        |connection: &Connection| connection.sql(job["setup"].as_str().unwrap_or_default());
    configure(connection.as_ref().unwrap());
    let pause = Duration::from_micros(job["pause_us"].as_u64().unwrap());
    let hold = Duration::from_micros(job["hold_us"].as_u64().unwrap_or_default());
    let (mut errors, mut slowest, mut count) = (Vec::<String>::new(), Duration::ZERO, 0u64);
    while stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
        if connection.is_none() {
            let again = Connection::open(path).unwrap();
            again.busy_timeout(Duration::ZERO).unwrap();
            configure(&again);
            connection = Some(again);
        }
        let open = connection.as_ref().unwrap();
        let started = Instant::now();
        let id = format!("row-{count}");
        let word = unique_word(count);
        let result = (|| {
            open.execute_batch("BEGIN IMMEDIATE")?;
            open.execute(
                "INSERT INTO memories (id, title, status, created_at) VALUES (?1, ?2, 'approved', '2026-01-01T00:00:00Z')",
                [&id, &format!("{word} was learned")],
            )?;
            std::thread::sleep(hold);
            open.execute_batch("COMMIT")
        })();
        match result {
            Ok(()) => {
                slowest = slowest.max(started.elapsed().saturating_sub(hold));
                say(&format!("@{count}")).unwrap();
                count += 1;
            }
            Err(error) => {
                let _ = open.execute_batch("ROLLBACK");
                if errors.len() < 20 {
                    errors.push(format!("row {count}: {error}"));
                }
            }
        }
        if job["reopen"] == true {
            connection = None;
        }
        std::thread::sleep(pause);
    }
    say(&format!(
        "@summary {}",
        json!({ "errors": errors, "slowest_ms": slowest.as_millis() as u64, "count": count })
    ))
    .unwrap();
}

/// A word for each number that no other number has, in letters that no stemmer touches.
pub fn unique_word(mut number: u64) -> String {
    const LETTERS: &[u8] = b"bcdfghjkmnpqrvwx";
    let mut word = String::from("zq");
    for _ in 0..6 {
        word.push(char::from(LETTERS[(number % 16) as usize]));
        number /= 16;
    }
    word.push('q');
    word
}

/// The real binary, on a root, from a folder of no project.
pub fn binary(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ack-memory"));
    settle(&mut command, root);
    command
}

fn settle(command: &mut Command, root: &Path) {
    command.current_dir("/").env("ACK_MEM_PATH", root).env("NO_COLOR", "1");
    let projects = "CLAUDE_PROJECT_DIR CURSOR_PROJECT_DIR WORKSPACE_FOLDER_PATHS";
    for name in "ACK_MEM_SCOPE ACK_MEM_DB".split(' ').chain(projects.split(' ')) {
        command.env_remove(name);
    }
}

/// The real binary as a user who may not write to the stores: root ignores file permissions.
/// `None`, with a message, if that is not possible.
pub fn unprivileged(root: &Path) -> Option<Command> {
    let dry = tempfile::NamedTempFile::new().unwrap();
    let is_root = std::os::unix::fs::MetadataExt::uid(&dry.as_file().metadata().unwrap()) == 0;
    if !is_root {
        return Some(binary(root));
    }
    let wrapped = || {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(env!("CARGO_BIN_EXE_ack-memory"));
        settle(&mut command, root);
        command
    };
    let works = wrapped().arg("--version").output().is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("setpriv cannot run the binary as another user: this test did nothing");
    }
    works.then(wrapped)
}

/// The exit code and the JSON that the binary printed: an answer on standard output or an error on
/// standard error.
pub fn run_json(command: &mut Command) -> (i32, Value) {
    let output = command.arg("--json").output().unwrap();
    let text = if output.status.success() { &output.stdout } else { &output.stderr };
    let value = serde_json::from_slice(text)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)));
    (output.status.code().unwrap(), value)
}
