//! Generated memories of realistic length, the same in every run.

use std::ops::Range;
use std::path::Path;

use rusqlite::{Connection, params};

/// The public id of a memory.
pub fn id(number: usize) -> String {
    format!("ack_bench0_2026-01-01_{number:06}")
}

/// Text of realistic length: 20 words of title and facts, about 90 of narrative, words by Zipf's
/// law.
pub fn store(root: &Path, size: usize) {
    scope(root, "bench", 0..size);
}

/// One scope with the memories of these numbers.
pub fn scope(root: &Path, name: &str, numbers: Range<usize>) {
    let folder = root.join("scopes").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let connection = Connection::open(folder.join("memory.db")).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF").unwrap();
    connection.execute_batch(ack_memory::internal::import::SCHEMA).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    let mut random = Random(42 + numbers.start as u64);
    for number in numbers {
        insert(&connection, number, &mut random);
    }
    connection.execute_batch("COMMIT").unwrap();
}

/// Adds a memory.
pub fn insert(connection: &Connection, number: usize, random: &mut Random) {
    let text = |random: &mut Random, words: usize| {
        (0..words).map(|_| random.word()).collect::<Vec<_>>().join(" ")
    };
    let facts: Vec<String> = (0..3).map(|_| text(random, 9)).collect();
    let tags = [format!("tag{}", random.below(40)), format!("tag{}", random.below(12))];
    connection
        .prepare_cached(
            "INSERT INTO memories (id, project, session, type, title, subtitle, facts, concepts, files, narrative, status, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )
        .unwrap()
        .execute(params![
            id(number),
            format!("project-{}", random.below(8)),
            format!("session-{}", number / 20),
            ["decision", "bugfix", "gotcha", "howto"][random.below(4)],
            format!("{} ERR_{number:05}", text(random, 8)),
            text(random, 10),
            serde_json::to_string(&facts).unwrap(),
            serde_json::to_string(&tags).unwrap(),
            serde_json::to_string(&[format!("src/{}/{}.rs", random.word(), random.word())]).unwrap(),
            text(random, 60 + random.0 as usize % 60),
            if random.below(10) == 0 { "staging" } else { "approved" },
            format!("2025-{:02}-{:02}T10:00:00Z", 1 + random.below(12), 1 + random.below(28)),
        ])
        .unwrap();
}

/// A linear congruential generator (Knuth's MMIX constants), so that every run measures the same
/// data.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    /// A word from a vocabulary of 20,000, by Zipf's law; the frequent ones are technical terms.
    pub fn word(&mut self) -> String {
        const WORDS: [&str; 24] = [
            "connection",
            "refused",
            "deploy",
            "timeout",
            "cache",
            "lock",
            "thread",
            "config",
            "build",
            "test",
            "error",
            "retry",
            "index",
            "query",
            "server",
            "client",
            "memory",
            "token",
            "docker",
            "branch",
            "merge",
            "schema",
            "queue",
            "worker",
        ];
        let share = self.next() as f64 / f64::from(u32::MAX >> 1);
        let rank = (20_000f64.powf(share) - 1.0) as usize;
        WORDS.get(rank).map_or_else(|| syllables(rank), |word| (*word).to_owned())
    }
}

/// A different pronounceable word for every number.
fn syllables(mut number: usize) -> String {
    const SYLLABLES: [&str; 24] = [
        "ba", "ke", "lo", "mi", "nu", "par", "qui", "ros", "sta", "tem", "ul", "ver", "wan", "xen",
        "yor", "zil", "cra", "dro", "fen", "gal", "hex", "int", "jun", "ork",
    ];
    let mut word = String::new();
    while number > 0 {
        word.push_str(SYLLABLES[number % 24]);
        number /= 24;
    }
    word
}
