//! Arguments as clients send them, good and hostile: each is either understood or refused with an
//! error that helps.

use ack_api::{ContextRequest, GetRequest, ListScopesRequest, QueryRequest};
use ack_memory::Error;
use ack_memory::Service;
use ack_memory::internal::{Toolset, arguments};
use serde_json::{Map, Value, json};

use crate::support::{Ask, Root, memory, titled};

/// Calls a tool as an adapter does: arguments decoded, the operation run, its answer as JSON.
pub fn call(service: &Service, tool: &'static str, values: Value) -> Result<Value, Error> {
    call_as(service, tool, values, false)
}

/// As [`call`], by an agent or by the owner.
pub fn call_as(
    service: &Service,
    tool: &'static str,
    values: Value,
    by_agent: bool,
) -> Result<Value, Error> {
    let Value::Object(values) = values else { panic!("arguments are an object") };
    let (values, note) = Toolset::default().find(tool).unwrap().read(values)?;
    let mut answer = match tool {
        "query_memories" => {
            let request: QueryRequest = arguments(tool, values)?;
            let request = QueryRequest { by_agent, ..request };
            json!(service.query_memories(&request)?)
        }
        "get_memory" => {
            let request: GetRequest = arguments(tool, values)?;
            let request = GetRequest { by_agent, ..request };
            json!(service.get_memory(&request)?)
        }
        "list_scopes" => {
            let request: ListScopesRequest = arguments(tool, values)?;
            let request = ListScopesRequest { by_agent, ..request };
            json!(service.list_scopes(&request)?)
        }
        "get_context" => {
            let request: ContextRequest = arguments(tool, values)?;
            let request = ContextRequest { by_agent, ..request };
            json!(service.get_context(&request)?)
        }
        other => panic!("no tool `{other}`"),
    };
    if let Some(note) = note {
        let notes = answer.as_object_mut().unwrap().entry("notes");
        let notes = notes.or_insert_with(|| json!([]));
        notes.as_array_mut().unwrap().push(json!(note));
    }
    Ok(answer)
}

fn root() -> Root {
    let root = Root::new();
    let rest = json!({ "concepts": ["postgres"], "project": "ledger-api" });
    let lock = memory("ack_1", "Lock accounts in id order", rest);
    root.store("ledger-api", &[lock]);
    root.store("platform", &[titled("ack_2", "Pin the base image")]);
    root
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!("end"), |inner, _| json!([inner]))
}

/// Arguments that no tool accepts.
fn refused() -> Vec<(&'static str, Value)> {
    let query = [
        json!({ "query": ["lock", "order"] }),
        json!({ "query": true }),
        json!({ "query": "x".repeat(1 << 20) }),
        json!({ "query": vec!["long"; 100_000] }),
        json!({ "tags": { "postgres": true } }),
        json!({ "tags": [deep(90)] }),
        json!({ "tags": vec!["x".repeat(100_000); 51] }),
        json!({ "tags": ["x".repeat(1_001)] }),
        json!({ "match_tags": "both" }),
        json!({ "scope": "nowhere" }),
        json!({ "scope": "../ledger-api" }),
        json!({ "scope": "ledger-api\0" }),
        json!({ "scope": 3 }),
        json!({ "status": "aproved" }),
        json!({ "status": "rejected" }),
        json!({ "limit": -1 }),
        json!({ "limit": 51 }),
        json!({ "limit": u64::MAX }),
        json!({ "limit": 1e308 }),
        json!({ "limit": 2.5 }),
        json!({ "limit": "many" }),
        json!({ "limit": true }),
        json!({ "files": ["src/[a.rs"] }),
        json!({ "since": "2026-02-30" }),
        json!({ "since": "yesterday" }),
        json!({ "since": 20_260_105 }),
        json!({ "since": "2026-03-02", "until": "2026-03-01" }),
        json!({ "like": "x".repeat(900) }),
        json!({ "like": "ack_1", "mode": "lexical" }),
        json!({ "mode": "fuzzy" }),
        json!({ "detail": "huge" }),
        json!({ "max_tokens": 199 }),
        json!({ "max_tokens": 0.5 }),
        json!({ "cursor": "garbage" }),
        json!({ "cursor": 5 }),
        json!({ "query": ["lock", ["order"]] }),
        json!({ "tags": "error handling, postgres" }),
        json!({ "tags": "null" }),
        json!({ "tags": { "0": "postgres", "2": "locks" } }),
        json!({ "status": ["approved", "staging"] }),
        json!({ "project": "[\"ledger-api\", \"kiosk\"]" , "tags": true }),
        json!({ "limit": "1,000" }),
        json!({ "limit": [5, 10] }),
        json!({ "explain": "maybe" }),
        json!({ "since": "01.05.2026" }),
        json!({ "since": ["2026-01-01", "2026-01-02"] }),
        json!({ "max_tokens": 500, "maxTokens": 600 }),
        json!({ "tags": ["a"], "concepts": ["b"] }),
        json!({ "arguments": { "query": "lock" }, "limit": 5 }),
        json!({ "data": { "query": "lock" } }),
        json!({ "q": "lock" }),
        json!({ "statuss": "all" }),
        json!({ "x".repeat(1 << 20): 1 }),
        json!({ "": 1 }),
    ];
    let get = [
        json!({}),
        json!({ "id": null }),
        json!({ "id": "" }),
        json!({ "id": "ack_1", "ids": ["ack_2"] }),
        json!({ "id": "x".repeat(1 << 20) }),
        json!({ "ids": [] }),
        json!({ "ids": (0..21).map(|n| format!("ack_{n}")).collect::<Vec<_>>() }),
        json!({ "ids": [""] }),
        json!({ "id": "ack_1", "include": "timelime" }),
        json!({ "id": "ack_1", "include": true }),
        json!({ "id": "ack_1", "include": { "timeline": true } }),
        json!({ "id": "ack_1", "status": "any" }),
        json!({ "id": "ack_1", "scope": "../platform" }),
        json!({ "memory_id": "ack_1" }),
    ];
    let scopes =
        [json!({ "scope": 5 }), json!({ "scope": "../platform" }), json!({ "name": "platform" })];
    let context = [
        json!({ "project_path": "/tmp/\0" }),
        json!({ "project_path": "x".repeat(5_000) }),
        json!({ "max_memories": 51 }),
        json!({ "max_memories": 1e30 }),
        json!({ "max_tokens": 5 }),
        json!({ "path": "." }),
    ];
    let tools = [
        ("query_memories", query.to_vec()),
        ("get_memory", get.to_vec()),
        ("list_scopes", scopes.to_vec()),
        ("get_context", context.to_vec()),
    ];
    tools
        .into_iter()
        .flat_map(|(tool, cases)| cases.into_iter().map(move |case| (tool, case)))
        .collect()
}

fn example_text(arguments: &Value) -> String {
    arguments.to_string().chars().take(120).collect()
}

/// Whether an example is a valid request, as a whole or in place of the wrong argument.
fn is_valid(service: &Service, tool: &'static str, arguments: &Value, example: &str) -> bool {
    let values: Map<String, Value> = serde_json::from_str(example).unwrap();
    let mut whole = arguments.clone();
    for (key, value) in &values {
        whole[key] = value.clone();
    }
    [Value::Object(values), whole].into_iter().any(|request| {
        let answer = call(service, tool, request);
        answer.is_ok() || answer.is_err_and(|error| error.code() == "memory_not_found")
    })
}

#[test]
fn a_hostile_argument_is_refused_in_few_words_with_its_name_and_a_valid_example() {
    let root = root();
    let service = root.service();
    let codes = "invalid_argument unknown_argument scope_not_found invalid_cursor not_available";
    for (tool, arguments) in refused() {
        let case = format!("{tool} {}", example_text(&arguments));
        let error = match call(&service, tool, arguments.clone()) {
            Ok(answer) => panic!("{case} is accepted: {answer}"),
            Err(error) => error.body(),
        };
        let code = codes.split(' ').position(|code| code == error.code);
        let is_said = code.is_some() && !error.message.is_empty();
        assert!(is_said, "{case}: {error:?}");
        if let Some(argument) = &error.argument {
            let mut given = arguments.as_object().unwrap().keys();
            let is_given = given.any(|key| key.starts_with(argument.trim_end_matches('…')));
            let is_known = is_given || ["id", "until"].contains(&argument.as_str());
            assert!(is_known, "{case}: {error:?}");
        }
        let helps = !error.allowed.is_empty() || error.hint.is_some();
        assert!(helps, "{case}: {error:?}");
        let size = json!(error).to_string().len();
        assert!(size <= 4_000, "{case}: {size} bytes");
        match &error.example {
            Some(example) => {
                let valid = is_valid(&service, tool, &arguments, example);
                assert!(valid, "{case}: the example is refused: {example}");
            }
            None => assert!(code > Some(1), "{case}: no example in {error:?}"),
        }
    }
}

#[test]
fn harmless_variations_are_accepted() {
    let root = root();
    let service = root.service();
    for arguments in [
        json!({}),
        json!({ "query": "" }),
        json!({ "query": "  \n" }),
        json!({ "query": null, "limit": null, "tags": null, "status": null, "cursor": null, "explain": null, "scope": null }),
        json!({ "tags": "postgres" }),
        json!({ "tags": [] }),
        json!({ "tags": ["", " "] }),
        json!({ "since": "", "until": "", "project": "", "type": "", "session": "" }),
        json!({ "files": "src/lib.rs" }),
        json!({ "files": [] }),
        json!({ "since": "2026-01-01", "until": "2026-01-01" }),
        json!({ "until": "9999-12-31" }),
        json!({ "scope": "", "cursor": "" }),
        json!({ "since": " 2026-01-01 " }),
        json!({ "scope": " Ledger_API " }),
        json!({ "project": "../ledger-api" }),
        json!({ "project": "a\0b" }),
        json!({ "session": "../../etc" }),
        json!({ "query": "\0\u{202e}\u{1b}[31m" }),
        json!({ "query": "x".repeat(8_000) }),
        json!({ "limit": 50, "max_tokens": 20_000 }),
        json!({ "mode": "hybrid", "query": "lock" }),
        json!({ "mode": "semantic", "query": "lock" }),
        json!({ "like": "ack_1" }),
        json!({ "like": "ack_1", "query": "lock", "expect": "ack_2" }),
    ] {
        if let Err(error) = call(&service, "query_memories", arguments.clone()) {
            panic!("{arguments}: {error}");
        }
    }
    for arguments in [
        json!({ "ids": "ack_1" }),
        json!({ "id": " ack_1 " }),
        json!({ "id": "ack_1", "scope": "" }),
        json!({ "id": "ack_1", "include": "links" }),
        json!({ "id": "ack_1", "include": [] }),
    ] {
        service.fetch(arguments);
    }
    for arguments in [
        json!({ "project_path": "" }),
        json!({ "project_path": "../.." }),
        json!({ "project_path": "no/such/folder" }),
        json!({ "focus": "" }),
    ] {
        service.brief(arguments);
    }
    let all = service.find(json!({ "scope": "", "cursor": "" }));
    assert_eq!(all["total"], 2, "{all}");
    service.scopes(json!({ "scope": "" }));
    let injected = "ack_1\"; DROP TABLE memories";
    for id in ["../../../etc/passwd", "\0", "' OR 1=1 --", injected] {
        let error = service.refused("get_memory", json!({ "id": id }));
        assert_eq!(error.code, "memory_not_found", "{id}");
    }
}

#[test]
fn a_cursor_of_another_request_is_refused() {
    let root = root();
    let service = root.service();
    let first = service.find(json!({ "limit": 1 }));
    let cursor = &first["next_cursor"];
    service.find(json!({ "limit": 5, "detail": "full", "max_tokens": 900, "cursor": cursor }));
    let arguments = json!({ "limit": 1, "status": "all", "cursor": cursor });
    let error = call(&service, "query_memories", arguments).unwrap_err();
    assert_eq!(error.code(), "invalid_cursor");
}

#[test]
fn the_example_for_a_value_with_two_meanings_has_its_parts() {
    let root = root();
    for (given, right) in [
        (json!({ "query": ["one", "two"] }), json!({ "query": "one two" })),
        (
            json!({ "tags": "error handling, postgres" }),
            json!({ "tags": ["error handling", "postgres"] }),
        ),
        (json!({ "tags": "None" }), json!({ "tags": ["None"] })),
    ] {
        let error = call(&root.service(), "query_memories", given).unwrap_err();
        let example = error.body().example.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&example).unwrap(), right);
        root.service().find(right);
    }
}

/// The tool, arguments as a client sent them, and what they mean.
type Form = (&'static str, Value, Value);

/// The arguments that a tool of a set gets, and the text of the note about them.
fn read_by(toolset: &Toolset, tool: &str, given: Value) -> (Value, String) {
    let Value::Object(given) = given else { panic!("arguments are an object") };
    let (read, note) = toolset.find(tool).unwrap().read(given).unwrap();
    let note = note.map(|note| note.message.to_string());
    (Value::Object(read), note.unwrap_or_default())
}

/// Checks that each form is read as what it means, that the answer says so if `told`, and that a
/// value in its own form is not changed.
fn check_forms(toolset: &Toolset, law: &str, told: bool, forms: &[Form]) {
    for (tool, given, meant) in forms {
        let (read, note) = read_by(toolset, tool, given.clone());
        assert_eq!(read, *meant, "{law}: {tool} {given}");
        assert_eq!(!note.is_empty(), told, "{law}: {tool} {given}: {note:?}");
        if told {
            let given = given.as_object().unwrap();
            let names = given.keys().all(|name| note.contains(&format!("`{name}`")));
            assert!(names, "{law}: {note}");
        }
        let (again, note) = read_by(toolset, tool, meant.clone());
        assert_eq!((again, note.as_str()), (meant.clone(), ""), "{law}: {tool}");
    }
}

/// [`check_forms`] for lines such as `query {"limit": "10"} => {"limit": 10}`.
fn check_table(law: &str, told: bool, table: &str) {
    let form = |line: &str| {
        let json =
            |text: &str| serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let (form, meant) = line.split_once(" => ").unwrap();
        let (tool, given) = form.split_once(' ').unwrap();
        let tool = match tool {
            "query" => "query_memories",
            "get" => "get_memory",
            "context" => "get_context",
            other => panic!("{other}"),
        };
        (tool, json(given), json(meant))
    };
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    check_forms(&Toolset::default(), law, told, &lines.map(form).collect::<Vec<Form>>());
}

#[test]
fn what_is_left_out_in_another_way_counts_as_left_out() {
    let four = Toolset::default();
    let left_out = |law: &str, told: bool, names: &str, values: &[Value]| {
        for (name, value) in
            names.split_whitespace().flat_map(|name| values.iter().map(move |value| (name, value)))
        {
            let form = ("query_memories", json!({ name: value }), json!({}));
            check_forms(&four, law, told, &[form]);
        }
    };
    let texts = "query scope project type since cursor tags files";
    let usual = [json!(null), json!(""), json!("  ")];
    left_out("usual", false, texts, &usual);
    let words = "status limit explain match_tags detail order";
    let empty = ["", "null", "None", "undefined"].map(Value::from);
    left_out("no value", true, words, &empty);
    left_out("no value", true, words, &[json!({})]);
    let names = "scope project session like cursor since type";
    left_out("a name", true, names, &[json!("null")]);
    check_table(
        "an empty list",
        false,
        r#"
        query {"tags": [], "files": ["", null]} => {}
        get {"id": "a", "ids": []} => {"id": "a"}
        query {"status": null, "limit": null} => {}
        "#,
    );
    check_table(
        "zero is the default",
        true,
        r#"
        query {"limit": 0, "max_tokens": 0} => {}
        query {"limit": "0"} => {}
        context {"max_memories": 0.0} => {}
        "#,
    );
    // A text to search for may be any word, and zero neighbours are none.
    check_table(
        "its own form",
        false,
        r#"
        query {"query": "null"} => {"query": "null"}
        query {"query": "[\"a\"]"} => {"query": "[\"a\"]"}
        query {"tags": ["null", "none"]} => {"tags": ["null", "none"]}
        context {"focus": "undefined"} => {"focus": "undefined"}
        get {"id": "a", "before": 0, "after": 0} => {"id": "a", "before": 0, "after": 0}
        "#,
    );
}

#[test]
fn a_value_of_another_type_is_read_if_it_has_one_meaning() {
    check_table(
        "numbers",
        true,
        r#"
        query {"limit": "10"} => {"limit": 10}
        query {"limit": " +10 "} => {"limit": 10}
        query {"limit": "10.0"} => {"limit": 10}
        query {"limit": [10]} => {"limit": 10}
        query {"limit": "\"10\""} => {"limit": 10}
        query {"max_tokens": "500"} => {"max_tokens": 500}
        get {"before": "0"} => {"before": 0}
        "#,
    );
    // A schema that says integer accepts 10.0.
    let whole = r#"query {"limit": 10.0} => {"limit": 10}"#;
    check_table("a whole number", false, whole);
    check_table(
        "booleans",
        true,
        r#"
        context {"include_cross_project": "true"} => {"include_cross_project": true}
        context {"include_cross_project": "True"} => {"include_cross_project": true}
        context {"include_cross_project": " FALSE "} => {"include_cross_project": false}
        context {"include_cross_project": "yes"} => {"include_cross_project": true}
        context {"include_cross_project": "off"} => {"include_cross_project": false}
        context {"include_cross_project": "1"} => {"include_cross_project": true}
        query {"explain": 1} => {"explain": true}
        query {"explain": [false]} => {"explain": false}
        "#,
    );
    check_table(
        "words",
        true,
        r#"
        query {"status": "APPROVED"} => {"status": "approved"}
        query {"status": " All "} => {"status": "all"}
        query {"status": ["staging"]} => {"status": "staging"}
        query {"order": "\"oldest\""} => {"order": "oldest"}
        query {"detail": "[\"full\"]"} => {"detail": "full"}
        "#,
    );
    check_table(
        "texts",
        true,
        r#"
        query {"query": 137} => {"query": "137"}
        query {"query": ["lock"]} => {"query": "lock"}
        query {"project": ["api"]} => {"project": "api"}
        query {"scope": "[\"api\"]"} => {"scope": "api"}
        query {"session": 5} => {"session": "5"}
        query {"type": ["bugfix", "gotcha"]} => {"type": "bugfix,gotcha"}
        get {"id": 7} => {"id": "7"}
        get {"id": "\"ack_1\""} => {"id": "ack_1"}
        get {"id": ["a", "b"]} => {"ids": ["a", "b"]}
        get {"id": "[\"a\", \"b\"]"} => {"ids": ["a", "b"]}
        "#,
    );
    check_table(
        "lists",
        true,
        r#"
        get {"ids": "[\"a\",\"b\"]"} => {"ids": ["a", "b"]}
        get {"ids": "['a', 'b']"} => {"ids": ["a", "b"]}
        get {"ids": ["[\"a\",\"b\"]"]} => {"ids": ["a", "b"]}
        get {"ids": [["a", "b"]]} => {"ids": ["a", "b"]}
        get {"ids": "a,b"} => {"ids": ["a", "b"]}
        get {"ids": " a , b, "} => {"ids": ["a", "b"]}
        get {"ids": {"0": "a", "1": "b"}} => {"ids": ["a", "b"]}
        query {"tags": "a"} => {"tags": ["a"]}
        query {"tags": "error handling"} => {"tags": ["error handling"]}
        query {"tags": [1, 2]} => {"tags": ["1", "2"]}
        query {"tags": 5} => {"tags": ["5"]}
        query {"files": "src/{a,b}.rs"} => {"files": ["src/{a,b}.rs"]}
        query {"files": "src/[ab].rs"} => {"files": ["src/[ab].rs"]}
        get {"include": "Timeline, links"} => {"include": ["timeline", "links"]}
        get {"include": [["LINKS"]]} => {"include": ["links"]}
        "#,
    );
}

#[test]
fn names_and_nesting_do_not_hide_an_argument() {
    check_table(
        "names",
        true,
        r#"
        query {"maxTokens": 500} => {"max_tokens": 500}
        query {"match-tags": "any"} => {"match_tags": "any"}
        query {"sessionId": "s"} => {"session": "s"}
        context {"ProjectPath": "/a"} => {"project_path": "/a"}
        query {"arguments": {"query": "x"}} => {"query": "x"}
        query {"input": "{\"query\": \"x\"}"} => {"query": "x"}
        "#,
    );
    let alias = r#"query {"concepts": ["a"]} => {"tags": ["a"]}"#;
    check_table("an alias", false, alias);
    let read = |given: Value| read_by(&Toolset::default(), "query_memories", given).0;
    let nested = json!({ "query": "x", "limit": "5" });
    let found = read(json!({ "name": "query_memories", "arguments": nested }));
    assert_eq!(found, json!({ "query": "x", "limit": 5 }));
    // The same twice is the same.
    let found = read(json!({ "limit": 5, "Limit": "5" }));
    assert_eq!(found, json!({ "limit": 5 }));
}

#[test]
fn an_answer_says_in_one_note_how_its_arguments_were_read() {
    let root = root();
    let answer = root.service().find(json!({ "query": "lock", "limit": "5", "status": "", "tags": "postgres", "maxTokens": 900 }));
    assert_eq!(answer["total"], 1);
    let notes = answer["notes"].as_array().unwrap();
    let read: Vec<&Value> = notes.iter().filter(|note| note["kind"] == "arguments_read").collect();
    assert_eq!(
        read,
        [&json!({
            "kind": "arguments_read",
            "message": "read `limit` \"5\" as 5; `status` \"\" as not given; `tags` \"postgres\" as [\"postgres\"]; `maxTokens` as `max_tokens`",
        })]
    );
}
