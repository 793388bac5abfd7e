//! The large run over every entry point: no answer shows what the store and the decision log do not
//! approve at that moment.
//!
//! A *case* is one triple: a generated state of the stores, a generated state of their decision
//! logs, and one generated request at one entry point, whose whole answer is searched for the marks
//! of every memory, session and overview that it may not show (`curation::inspect`). Every field of
//! a memory holds its mark or a number of its own. Agents see nothing of what waits, in no field;
//! the owner sees it where a list of scopes or of the queue, or `status`, asks for it
//! (`curation::Caller`). A plan goes through four states of stores and logs, and each state is asked
//! many times:
//!
//! 1. as the stores were written, without a log;
//! 2. with the first half of the log, whose lines two writers wrote in turn;
//! 3. after other programs changed statuses and texts and removed rows;
//! 4. with the rest of the log: lines about rows that changed, that are gone, and whose id exists
//!    twice, torn lines, lines with unknown verdicts, a torn last line.
//!
//! The stores keep their files, and each new plan replaces what is in them, so that every server
//! follows them while it runs. Tools of services in this process, for every current and pinned
//! scope and every caller, are most of the cases; real servers over standard input and output (the
//! four tools, and another program's set of tools), over HTTP, and the command line, what it
//! publishes, and hooks have their share.
//! Scopes with a vector table are not among them: they are asked in `large` and `table`, which need
//! the full build.
//!
//! `ACK_TEST_LEAK_CASES` says how many cases (a small piece without it), `ACK_TEST_LEAK_SECONDS`
//! how long at most, and `ACK_TEST_LEAK_SEED` where to begin. The counts by entry point are
//! printed.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use ack_memory::Service;
use ack_memory::internal::{BriefRequest, MaxStatus, Setting};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rusqlite::params;
use serde_json::{Value, json};

use crate::arguments::call_as;
use crate::cli::{ack_with_input, binary, run};
use crate::curation::{
    CHOSEN, Caller, Plan, Question, REVIEW, SCOPES, STATUSES, StoredRow, decide, fill, id, inspect,
    marker, plans, project_folder, request, status_text,
};
use crate::http::Http;
use crate::leak_states::{RandomSource, add_twins, connection, of_id, root};
use crate::mcp::Server;
use crate::support::{Root, Sql, read_text};

/// Requests to services of this process in each state.
const IN_PROCESS: usize = 240;
/// Requests to each real server in each state.
const TO_SERVERS: usize = 8;
/// One state in so many is asked on the command line and by hooks.
const STATES_PER_PROCESS: usize = 4;
/// Cases, unless `ACK_TEST_LEAK_CASES` says how many.
const DEFAULT_CASES: u64 = 4_000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap())
}

/// A service of this process, with its settings.
struct ConfiguredService {
    service: Service,
    /// The same, where agents may ask for what waits.
    trusting: Service,
    current: Option<usize>,
    pinned: Option<usize>,
}

/// Every entry point of one root.
struct EntryPoints {
    root: Root,
    services: Vec<ConfiguredService>,
    plain: Server,
    other_tools: Server,
    http: Http,
    cases: BTreeMap<&'static str, u64>,
}

impl EntryPoints {
    fn open(root: Root) -> Self {
        let currents = [None, Some(0), Some(1), Some(2), Some(3)];
        let pins = [None, Some(0), Some(2)];
        let mut services = Vec::new();
        for current in currents {
            for pinned in pins {
                let service = root.service_with(|inputs| {
                    if let Some(current) = current {
                        let folder = project_folder(root.path(), current);
                        inputs.project = Some(Setting::flag("-C", folder));
                    }
                    let name = pinned.map(|scope: usize| SCOPES[scope].to_owned());
                    inputs.pinned = name.map(|name| Setting::flag("--pin", name));
                });
                let mut trusting = service.limited(None);
                trusting.config.max_status.value = MaxStatus::All;
                services.push(ConfiguredService { trusting, service, current, pinned });
            }
        }
        let plain = Server::within(root.path(), project_folder(root.path(), 0));
        let other_tools = Server::with(root.path(), &["--surface", "siftcoder"]);
        let http = Http::start(root.path());
        Self { root, services, plain, other_tools, http, cases: BTreeMap::new() }
    }

    fn count(&mut self, entry_point: &'static str) {
        *self.cases.entry(entry_point).or_default() += 1;
    }

    fn total(&self) -> u64 {
        self.cases.values().sum()
    }

    /// Asks at every entry point in one state.
    fn ask(
        &mut self,
        plan: &Plan,
        stored_rows: &[StoredRow],
        draws: &mut RandomSource,
        with_processes: bool,
    ) {
        for _ in 0..IN_PROCESS {
            self.ask_service(plan, stored_rows, draws);
        }
        for _ in 0..TO_SERVERS {
            self.ask_protocol(plan, stored_rows, draws);
            self.ask_other_tools(plan, stored_rows, draws);
            self.ask_http(plan, stored_rows, draws);
        }
        if with_processes {
            self.ask_command_line(plan, stored_rows, draws);
            self.ask_hooks(plan, stored_rows, draws);
        }
    }

    fn ask_service(&mut self, plan: &Plan, stored_rows: &[StoredRow], draws: &mut RandomSource) {
        let number = draws.below(self.services.len());
        let asked = &self.services[number];
        let seen = Plan { current: asked.current, pinned: asked.pinned, ..plan.clone() };
        let caller = [Caller::Agent, Caller::TrustedAgent, Caller::Owner][draws.below(3)];
        let service = match caller {
            Caller::TrustedAgent => &asked.trusting,
            _ => &asked.service,
        };
        let root = &self.root;
        let (entry_point, tool, arguments, mut answer) = match draws.below(16) {
            0 | 1 => {
                let name = SCOPES[draws.below(SCOPES.len())];
                let resource = service.scope_resource(name);
                let arguments = json!({ "scope": name });
                ("resources", "list_scopes", arguments, json!(resource.ok()))
            }
            2 => {
                let resource = service.scopes_resource();
                ("resources", "list_scopes", json!({}), json!(resource.ok()))
            }
            3 => {
                let folder = some_folder(plan, root, draws);
                let wanted = BriefRequest {
                    project_path: Some(folder.clone()),
                    own: 6,
                    others: 3,
                    sessions: true,
                };
                let brief = service.session_brief(&wanted).ok();
                let answer = json!(brief.map(|brief| brief.context));
                let arguments = json!({ "project_path": folder });
                ("session start", CHOSEN, arguments, answer)
            }
            4 => {
                let folder = some_folder(plan, root, draws);
                let mark = marker(draws.below(plan.memories.len()));
                let files = [format!("src/{mark}.rs"), "src".to_owned()];
                let found = service.about_files(Some(&folder), &files, 5).ok();
                let answer = json!(found.map(|found| found.memories));
                let arguments = json!({ "project_path": folder });
                ("before an edit", CHOSEN, arguments, answer)
            }
            _ => {
                let (tool, arguments) = request(&draws.bytes(), plan, root);
                let by_agent = caller != Caller::Owner;
                let answer = call_as(service, tool, arguments.clone(), by_agent);
                let answer = answer.unwrap_or_else(|error| json!(error.body()));
                // The next page is one more answer.
                let next = answer["next_cursor"].clone();
                if !next.is_null() {
                    let mut arguments = arguments.clone();
                    arguments["cursor"] = next;
                    let page = call_as(service, tool, arguments.clone(), by_agent);
                    let page = page.unwrap_or_else(|error| json!(error.body()));
                    let both = json!([answer, page]);
                    (tool_name(tool), tool, arguments, both)
                } else {
                    (tool_name(tool), tool, arguments, answer)
                }
            }
        };
        let question = Question { caller, tool, arguments: &arguments };
        inspect(&seen, root, stored_rows, &question, &mut answer);
        self.count(entry_point);
    }

    /// What an agent without special rights asks of a server.
    fn agents_request(
        &self,
        plan: &Plan,
        draws: &mut RandomSource,
    ) -> (&'static str, &'static str, Value, &'static str, Value) {
        let some_id = id(draws.below(plan.memories.len() + 2));
        let scope = SCOPES[draws.below(SCOPES.len())];
        match draws.below(10) {
            0 => {
                let uri = format!("memory://scope/{scope}/memory/{some_id}");
                let arguments = json!({ "scope": scope, "id": some_id });
                let params = json!({ "uri": uri });
                ("resources", "resources/read", params, "get_memory", arguments)
            }
            1 if draws.below(2) == 0 => {
                let (method, params) = [
                    ("resources/list", json!({})),
                    ("resources/read", json!({ "uri": "memory://scopes" })),
                    ("tools/list", json!({})),
                    ("prompts/list", json!({})),
                ][draws.below(4)]
                .clone();
                ("resources", method, params, "list_scopes", json!({}))
            }
            1 => {
                let uri = format!("memory://scope/{scope}");
                let arguments = json!({ "scope": scope });
                let params = json!({ "uri": uri });
                ("resources", "resources/read", params, "list_scopes", arguments)
            }
            2 => {
                let (_, asked) = request(&draws.bytes(), plan, &self.root);
                let query = ["certificate", "deployment nightly", &some_id][draws.below(3)];
                let mut arguments = json!({ "query": query });
                if let (Some(scope), true) = (asked.get("scope"), draws.below(2) == 0) {
                    arguments["scope"] = scope.clone();
                }
                let params = json!({ "name": "recall", "arguments": arguments });
                ("prompts", "prompts/get", params, CHOSEN, arguments)
            }
            _ => {
                let (tool, arguments) = request(&draws.bytes(), plan, &self.root);
                let params = json!({ "name": tool, "arguments": arguments });
                (tool_name(tool), "tools/call", params, tool, arguments)
            }
        }
    }

    fn ask_protocol(&mut self, plan: &Plan, stored_rows: &[StoredRow], draws: &mut RandomSource) {
        let (entry_point, method, params, tool, arguments) = self.agents_request(plan, draws);
        let mut answer = self.plain.request(method, params);
        let seen = seen_by(plan, Some(0));
        let question = agents(tool, &arguments);
        inspect(&seen, &self.root, stored_rows, &question, &mut answer);
        self.count(match entry_point {
            "prompts" => "prompts of a server",
            "resources" => "resources of a server",
            _ => "tools of a server",
        });
    }

    fn ask_http(&mut self, plan: &Plan, stored_rows: &[StoredRow], draws: &mut RandomSource) {
        let (_, method, params, tool, arguments) = self.agents_request(plan, draws);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (status, answer) = self.http.post(&body, &[]);
        assert_eq!(status, 200, "{answer}");
        let mut answer = json!(answer);
        let seen = seen_by(plan, None);
        let question = agents(tool, &arguments);
        inspect(&seen, &self.root, stored_rows, &question, &mut answer);
        self.count("HTTP");
    }

    fn ask_other_tools(
        &mut self,
        plan: &Plan,
        stored_rows: &[StoredRow],
        draws: &mut RandomSource,
    ) {
        let some_id = id(draws.below(plan.memories.len() + 2));
        let (tool, arguments) = match draws.below(5) {
            0 => ("mem_get", json!({ "ids": [some_id, id(draws.below(24))] })),
            1 => ("mem_timeline", json!({ "near_id": some_id, "window": 3 })),
            2 => ("mem_why", json!({ "id": some_id, "depth": 4 })),
            _ => {
                let query = ["certificate", &some_id][draws.below(2)];
                ("mem_search", json!({ "query": query }))
            }
        };
        let params = json!({ "name": tool, "arguments": arguments });
        let mut answer = self.other_tools.request("tools/call", params);
        let seen = seen_by(plan, None);
        let question = agents("get_memory", &arguments);
        inspect(&seen, &self.root, stored_rows, &question, &mut answer);
        self.count("another program's tools");
    }

    /// The owner asks in the folder of the private scope.
    fn ask_command_line(
        &mut self,
        plan: &Plan,
        stored_rows: &[StoredRow],
        draws: &mut RandomSource,
    ) {
        let some_id = id(draws.below(plan.memories.len()));
        let status = ["approved", "staging", "all"][draws.below(3)];
        let published = tempfile::tempdir().unwrap();
        let target = published.path().join("notes");
        let found = |words: &'static str| words.split(' ').collect::<Vec<_>>();
        // Publishing is asked in any case; the others by chance.
        let drawn = match self.cases.get("publishing") {
            None => 6,
            Some(_) => draws.below(9),
        };
        let (command_line, tool, arguments) = match drawn {
            0 => {
                let get = vec!["get", &some_id, "--include", "history"];
                (get, "get_memory", json!({ "id": some_id }))
            }
            1 => (found("scopes --json"), "list_scopes", json!({})),
            2 => (found("query certificate --long"), "query_memories", json!({})),
            3 => (found("review --list"), REVIEW, json!({})),
            4 => (found("review --list --json"), REVIEW, json!({})),
            5 => (found("context --json"), "get_context", json!({})),
            6 | 7 => {
                let scope = SCOPES[draws.below(SCOPES.len())];
                let target = target.to_str().unwrap();
                let publish = vec!["publish", scope, "--yes", "--skip-held", "--to-folder", target];
                (publish, CHOSEN, json!({ "scope": scope }))
            }
            _ => {
                let query = vec!["query", "certificate", "--status", status, "--json"];
                (query, "query_memories", json!({ "status": status }))
            }
        };
        let folder = project_folder(self.root.path(), 2);
        let mut command = binary();
        command.arg("--root").arg(self.root.path());
        let outcome = run(command.args(&command_line).arg("-C").arg(folder));
        let parsed = serde_json::from_str(&outcome.out);
        let out = parsed.unwrap_or_else(|_| json!(outcome.out));
        let mut answer = json!([out, outcome.err, texts_below(published.path())]);
        let seen = seen_by(plan, Some(2));
        let question = Question { caller: Caller::Owner, tool, arguments: &arguments };
        inspect(&seen, &self.root, stored_rows, &question, &mut answer);
        self.count(match command_line[0] {
            "publish" => "publishing",
            _ => "command line",
        });
    }

    fn ask_hooks(&mut self, plan: &Plan, stored_rows: &[StoredRow], draws: &mut RandomSource) {
        let scope = draws.below(SCOPES.len());
        let folder = project_folder(self.root.path(), scope);
        let (hook, sent) = match draws.below(2) {
            0 => (
                "session-start",
                json!({ "hook_event_name": "SessionStart", "source": "startup", "cwd": folder }),
            ),
            _ => (
                "user-prompt",
                json!({
                    "hook_event_name": "UserPromptSubmit", "cwd": folder,
                    "prompt": "why does the nightly deployment miss a certificate?",
                }),
            ),
        };
        let sent = sent.to_string();
        let outcome = ack_with_input(self.root.path(), &["hook", hook], sent.as_bytes());
        let mut answer = json!([outcome.out, outcome.err]);
        let seen = seen_by(plan, Some(scope));
        let arguments = json!({ "project_path": folder });
        let question = agents(CHOSEN, &arguments);
        inspect(&seen, &self.root, stored_rows, &question, &mut answer);
        self.count("hooks");
    }
}

/// A plan as a process sees it that is in the folder of a scope's project, and pinned to none.
fn seen_by(plan: &Plan, current: Option<usize>) -> Plan {
    Plan { current, pinned: None, ..plan.clone() }
}

/// The question of an agent without special rights.
fn agents<'a>(tool: &'static str, arguments: &'a Value) -> Question<'a> {
    Question { caller: Caller::Agent, tool, arguments }
}

/// The folder of a scope's project, or one with the name of a project that one memory names.
fn some_folder(plan: &Plan, root: &Root, draws: &mut RandomSource) -> String {
    let folder = match draws.below(SCOPES.len() + 2) {
        scope @ ..4 => project_folder(root.path(), scope),
        _ => {
            let name = format!("prj-{}", marker(draws.below(plan.memories.len())));
            root.path().join("projects").join(name)
        }
    };
    folder.to_str().unwrap().to_owned()
}

/// The names and the texts of all files in a folder.
fn texts_below(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        texts.push(entry.file_name().to_string_lossy().into_owned());
        match entry.file_type().unwrap().is_dir() {
            true => texts.extend(texts_below(&entry.path())),
            false => texts.push(read_text(entry.path())),
        }
    }
    texts
}

fn tool_name(tool: &str) -> &'static str {
    match tool {
        "query_memories" => "query_memories",
        "get_memory" => "get_memory",
        "list_scopes" => "list_scopes",
        _ => "get_context",
    }
}

#[test]
fn no_entry_point_shows_unapproved_memories() {
    let wanted = number("ACK_TEST_LEAK_CASES").unwrap_or(DEFAULT_CASES);
    let seconds = number("ACK_TEST_LEAK_SECONDS").unwrap_or(u64::MAX >> 20);
    let seed = number("ACK_TEST_LEAK_SEED").unwrap_or(0x5eed);
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut draws = RandomSource(seed | 1);
    let strategy = plans();
    let began = Instant::now();
    let mut states: usize = 0;
    let first = strategy.new_tree(&mut runner).unwrap().current();
    let mut entry_points = EntryPoints::open(root(&first));
    let mut reported = began;
    while entry_points.total() < wanted && began.elapsed() < Duration::from_secs(seconds) {
        let mut plan = strategy.new_tree(&mut runner).unwrap().current();
        let numbers = plan.memories.len();
        for scope in SCOPES {
            let log = entry_points.root.scope_folder(scope).join("decisions.jsonl");
            let _ = std::fs::remove_file(log);
        }
        fill(&entry_points.root, &plan);
        let mut stored_rows: Vec<StoredRow> = plan.memories.iter().map(StoredRow::of).collect();
        let twins = add_twins(&mut plan, &mut stored_rows, &entry_points.root, &mut draws);
        plan.duplicate_ids.clone_from(&twins);
        let mut next = |entry_points: &mut EntryPoints,
                        plan: &Plan,
                        stored_rows: &[StoredRow],
                        draws: &mut RandomSource| {
            states += 1;
            entry_points.ask(plan, stored_rows, draws, states.is_multiple_of(STATES_PER_PROCESS));
        };
        next(&mut entry_points, &plan, &stored_rows, &mut draws);

        // Two writers in turn.
        let (before, after) = plan.lines.split_at(plan.lines.len() / 2);
        let (one, other): (Vec<_>, Vec<_>) = before.iter().partition(|line| line.memory % 2 == 0);
        for lines in [one, other] {
            let lines: Vec<_> = lines.into_iter().cloned().collect();
            decide(&plan, &entry_points.root, &mut stored_rows, &lines);
        }
        next(&mut entry_points, &plan, &stored_rows, &mut draws);

        for (number, status) in plan.changes.iter().filter(|(number, _)| *number < numbers) {
            let scope = plan.memories[*number].scope;
            let changed = params![status_text(*status, *number), id(*number)];
            connection(&entry_points.root, scope)
                .sql_with("UPDATE memories SET status = ?1 WHERE id = ?2", changed);
            for same in of_id(*number, &twins) {
                stored_rows[same].stored = STATUSES[*status].1;
            }
        }
        for number in plan.rewritten.iter().filter(|number| **number < numbers) {
            let scope = plan.memories[*number].scope;
            let sql = "UPDATE memories SET narrative = narrative || ' and more' WHERE id = ?1";
            connection(&entry_points.root, scope).sql_with(sql, [id(*number)]);
            for same in of_id(*number, &twins) {
                stored_rows[same].content += 1;
            }
        }
        let gone = draws.below(numbers);
        connection(&entry_points.root, plan.memories[gone].scope)
            .sql_with("DELETE FROM memories WHERE id = ?1", [id(gone)]);
        for same in of_id(gone, &twins) {
            stored_rows[same].is_gone = true;
        }
        next(&mut entry_points, &plan, &stored_rows, &mut draws);

        decide(&plan, &entry_points.root, &mut stored_rows, after);
        // The last line is still being written: nobody can tell which memory it is about.
        let log = entry_points.root.scope_folder(SCOPES[0]).join("decisions.jsonl");
        let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        write!(log, "{{\"id\":\"ack_mk").unwrap();
        next(&mut entry_points, &plan, &stored_rows, &mut draws);
        if reported.elapsed() > Duration::from_secs(60) {
            reported = Instant::now();
            eprintln!("{} cases in {:?}", entry_points.total(), began.elapsed());
        }
    }
    eprintln!("{} cases over {states} states in {:?}", entry_points.total(), began.elapsed());
    for (entry_point, count) in &entry_points.cases {
        eprintln!("  {count:>9}  {entry_point}");
    }
    let asked_count = entry_points.cases.len();
    assert!(asked_count >= 15, "an entry point was not asked: {:?}", entry_points.cases);
}
