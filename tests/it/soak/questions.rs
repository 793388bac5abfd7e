//! The calls of a soak: every tool, resource and prompt, good and bad, small and as large as they
//! get.

use serde_json::{Value, json};

/// The words that memories are made of.
pub const WORDS: [&str; 24] = [
    "database",
    "lock",
    "timeout",
    "connection",
    "pool",
    "flex",
    "layout",
    "certificate",
    "cron",
    "release",
    "migration",
    "cache",
    "index",
    "socket",
    "thread",
    "branch",
    "merge",
    "fixture",
    "snapshot",
    "locale",
    "encoding",
    "retry",
    "queue",
    "token",
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
    let tool = |name: &str, arguments: Value, expected| Call {
        method: "tools/call",
        params: json!({ "name": name, "arguments": arguments }),
        expected,
    };
    let other = |method, params, expected| Call {
        method,
        params,
        expected,
    };
    match dice.roll(44) {
        0..=9 => {
            let words = 1 + dice.roll(6);
            let mode = ["hybrid", "lexical", "semantic"][dice.roll(3)];
            tool(
                "query_memories",
                json!({ "query": dice.words(words), "mode": mode }),
                Answer,
            )
        }
        10 => tool(
            "query_memories",
            json!({ "query": format!("ERR_{number}"), "explain": true }),
            Answer,
        ),
        11 => tool(
            "query_memories",
            json!({ "query": dice.words(2), "limit": 50, "detail": "full", "max_tokens": 20000, "status": "all" }),
            Answer,
        ),
        12 => tool(
            "query_memories",
            json!({ "query": dice.words(2), "tags": [WORDS[dice.roll(6)]], "since": "2026-01-05", "type": "bugfix" }),
            Answer,
        ),
        13 => tool(
            "query_memories",
            json!({ "status": "all", "limit": 50, "max_tokens": 200 }),
            Answer,
        ),
        14 | 15 => match cursor.take() {
            Some((mut arguments, cursor)) => {
                arguments["cursor"] = json!(cursor);
                tool("query_memories", arguments, Answer)
            }
            None => tool(
                "query_memories",
                json!({ "query": dice.words(1), "limit": 5 }),
                Answer,
            ),
        },
        16 => tool("query_memories", json!({ "like": id(number) }), Either),
        17 => tool(
            "query_memories",
            json!({ "query": "x".repeat(2_000) + &dice.words(40), "files": ["src/**"] }),
            Answer,
        ),
        18 => tool(
            "query_memories",
            json!({ "query": dice.words(2), "limit": -1 }),
            Failure,
        ),
        19 => tool("query_memories", json!({ "qurey": "x" }), Failure),
        20 => tool(
            "query_memories",
            json!({ "query": "x", "cursor": "nonsense" }),
            Failure,
        ),
        21..=23 => tool("get_memory", json!({ "id": id(number) }), Either),
        24 => {
            let ids: Vec<String> = (0..20).map(|more| id(number + more)).collect();
            tool(
                "get_memory",
                json!({ "ids": ids, "status": "all", "include": ["timeline", "related", "links", "history"] }),
                Either,
            )
        }
        25 => tool("get_memory", json!({ "id": "no-such-memory" }), Failure),
        26 => tool("list_scopes", json!({}), Answer),
        27 => tool("list_scopes", json!({ "scope": "two" }), Answer),
        28 => tool("list_scopes", json!({ "scope": "nowhere" }), Failure),
        29 => tool("get_context", json!({}), Answer),
        30 => tool(
            "get_context",
            json!({ "focus": dice.words(3), "max_memories": 20, "max_tokens": 800 }),
            Answer,
        ),
        31 => other("resources/list", json!({}), Answer),
        32 => other(
            "resources/read",
            json!({ "uri": "memory://scope/one" }),
            Answer,
        ),
        33 => other(
            "resources/read",
            json!({ "uri": format!("memory://scope/two/memory/{}", id(number)) }),
            Either,
        ),
        34 => other(
            "prompts/get",
            json!({ "name": "recall", "arguments": { "query": dice.words(3) } }),
            Answer,
        ),
        35 => other(
            "prompts/get",
            json!({ "name": "curate_pending", "arguments": { "scope": "one" } }),
            Answer,
        ),
        36 => {
            let template =
                json!({ "type": "ref/resource", "uri": "memory://scope/{name}/memory/{id}" });
            let argument = json!({ "name": "id", "value": "mem-" });
            other(
                "completion/complete",
                json!({ "ref": template, "argument": argument, "context": { "arguments": { "name": "one" } } }),
                Answer,
            )
        }
        37 => tool("no_such_tool", json!({}), Failure),
        38 => other("no/such_method", json!({}), Failure),
        // Far too long.
        39 => tool(
            "query_memories",
            json!({ "project": dice.words(20_000) }),
            Failure,
        ),
        40 => tool(
            "query_memories",
            json!({ "query": "x", "session": "s".repeat(100_000) }),
            Failure,
        ),
        41 => tool(
            "query_memories",
            json!({ "tags": vec![dice.words(10); 10_000] }),
            Failure,
        ),
        42 => tool(
            "get_memory",
            json!({ "id": "mem-".repeat(50_000) }),
            Failure,
        ),
        _ => other("tools/list", json!({}), Answer),
    }
}
