//! The calls of a soak: every tool, resource and prompt, good and bad, small and as large as they
//! get.

use serde_json::{Value, json};

/// The words that memories are made of.
#[rustfmt::skip]
pub const WORDS: [&str; 24] = [
    "database", "lock", "timeout", "connection", "pool", "flex", "layout", "certificate",
    "cron", "release", "migration", "cache", "index", "socket", "thread", "branch",
    "merge", "fixture", "snapshot", "locale", "encoding", "retry", "queue", "token",
];

/// Numbers that look random and are the same in every run.
pub struct RandomSource(pub u64);

impl RandomSource {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or_default() % sides.max(1)
    }

    pub fn words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| WORDS[self.roll(WORDS.len())]).collect();
        words.join(" ")
    }
}

/// The expected outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// An answer.
    Answer,
    /// A failure, as a tool's result or as an error of the protocol.
    Failure,
    /// One or the other: it names a memory that may be removed at any moment.
    Either,
}

/// A request before it has an id.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: &'static str,
    pub params: Value,
    pub expected: Expected,
}

/// The name of a memory.
pub fn id(number: usize) -> String {
    format!("mem-{number:07}")
}

/// A call; `live` are the numbers of memories that roughly exist.
pub fn ask(
    dice: &mut RandomSource,
    live: std::ops::Range<usize>,
    cursor: &mut Option<(Value, String)>,
) -> Call {
    use Expected::{Answer, Either, Failure};
    let number = live.start + dice.roll(live.len());
    let other = |method, params, expected| Call { method, params, expected };
    let tool = |name: &str, arguments: Value, expected| {
        let params = json!({ "name": name, "arguments": arguments });
        other("tools/call", params, expected)
    };
    let query = |arguments| tool("query_memories", arguments, Answer);
    let refused = |arguments| tool("query_memories", arguments, Failure);
    let get = |arguments, expected| tool("get_memory", arguments, expected);
    let scopes = |arguments, expected| tool("list_scopes", arguments, expected);
    let read = |uri: &str, expected| other("resources/read", json!({ "uri": uri }), expected);
    let prompt = |name: &str, arguments| {
        let params = json!({ "name": name, "arguments": arguments });
        other("prompts/get", params, Answer)
    };
    match dice.roll(44) {
        0..=9 => {
            let words = 1 + dice.roll(6);
            let mode = ["hybrid", "lexical", "semantic"][dice.roll(3)];
            query(json!({ "query": dice.words(words), "mode": mode }))
        }
        10 => query(json!({ "query": format!("ERR_{number}"), "explain": true })),
        11 => query(json!({
            "query": dice.words(2), "limit": 50, "detail": "full", "max_tokens": 20000, "status": "all",
        })),
        12 => {
            let tag = WORDS[dice.roll(6)];
            query(
                json!({ "query": dice.words(2), "tags": [tag], "since": "2026-01-05", "type": "bugfix" }),
            )
        }
        13 => query(json!({ "status": "all", "limit": 50, "max_tokens": 200 })),
        14 | 15 => match cursor.take() {
            Some((mut arguments, cursor)) => {
                arguments["cursor"] = json!(cursor);
                query(arguments)
            }
            None => query(json!({ "query": dice.words(1), "limit": 5 })),
        },
        16 => tool("query_memories", json!({ "like": id(number) }), Either),
        17 => query(json!({ "query": "x".repeat(2_000) + &dice.words(40), "files": ["src/**"] })),
        18 => refused(json!({ "query": dice.words(2), "limit": -1 })),
        19 => refused(json!({ "qurey": "x" })),
        20 => refused(json!({ "query": "x", "cursor": "nonsense" })),
        21..=23 => get(json!({ "id": id(number) }), Either),
        24 => {
            let ids: Vec<String> = (0..20).map(|more| id(number + more)).collect();
            let include = ["timeline", "related", "links", "history"];
            get(json!({ "ids": ids, "status": "all", "include": include }), Either)
        }
        25 => get(json!({ "id": "no-such-memory" }), Failure),
        26 => scopes(json!({}), Answer),
        27 => scopes(json!({ "scope": "two" }), Answer),
        28 => scopes(json!({ "scope": "nowhere" }), Failure),
        29 => tool("get_context", json!({}), Answer),
        30 => {
            let arguments =
                json!({ "focus": dice.words(3), "max_memories": 20, "max_tokens": 800 });
            tool("get_context", arguments, Answer)
        }
        31 => other("resources/list", json!({}), Answer),
        32 => read("memory://scope/one", Answer),
        33 => read(&format!("memory://scope/two/memory/{}", id(number)), Either),
        34 => prompt("recall", json!({ "query": dice.words(3) })),
        35 | 36 => prompt("recall", json!({ "query": dice.words(2), "scope": "one" })),
        37 => tool("no_such_tool", json!({}), Failure),
        38 => other("no/such_method", json!({}), Failure),
        // Far too long.
        39 => refused(json!({ "project": dice.words(20_000) })),
        40 => refused(json!({ "query": "x", "session": "s".repeat(100_000) })),
        41 => refused(json!({ "tags": vec![dice.words(10); 10_000] })),
        42 => get(json!({ "id": "mem-".repeat(50_000) }), Failure),
        _ => other("tools/list", json!({}), Answer),
    }
}
