//! The rules of `ack-compare`, measured on the labelled pairs in `tests/relations`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::read_text;
use ack_compare::{Profile, relate};
use ack_memory::api::RelationKind;
use rusqlite::Connection;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The sets of `ACK_TEST_EVALS` that pairs are made of.
const SETS: [&str; 7] =
    ["clippy", "devbench", "faq", "notes-two", "precisionmembench", "solutions-open", "til-jb"];
/// The least precision of `contradicts`.
const MIN_PRECISION: f64 = 0.9;
const KINDS: [RelationKind; 5] = [
    RelationKind::Same,
    RelationKind::SaysMore,
    RelationKind::Differs,
    RelationKind::Contradicts,
    RelationKind::Unrelated,
];

#[derive(Debug, Deserialize)]
struct Pair {
    n: usize,
    label: RelationKind,
    half: String,
    newer: Side,
    older: Side,
}

/// One side of a pair: a memory of an outside set, or a title and facts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Side {
    Memory { memory: String, sha: String },
    Text { text: Vec<String> },
}

fn pairs() -> Vec<Pair> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/relations");
    let names = ["pairs.jsonl", "outside.jsonl", "fresh.jsonl", "opposites.jsonl"];
    let files = names.map(|name| folder.join(name));
    let text = files.map(|path| read_text(path)).concat();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The texts of the outside sets: the title, then what else a memory says.
#[derive(Default)]
struct Memories {
    evals: Option<PathBuf>,
    real: Option<PathBuf>,
    known: BTreeMap<String, Vec<String>>,
}

impl Memories {
    fn new() -> Self {
        let folder = |name| std::env::var_os(name).map(PathBuf::from);
        let mut memories = Self {
            evals: folder("ACK_TEST_EVALS"),
            real: folder("ACK_TEST_REAL_STORES"),
            ..Self::default()
        };
        if let Some(evals) = memories.evals.clone() {
            for set in SETS {
                memories.read_set(&evals.join("dev").join(set).join("docs.jsonl"), set);
            }
        }
        if let Some(real) = memories.real.clone() {
            memories.read_claude_mem(&real.join("claude-mem/claude-mem.db"));
        }
        memories
    }

    fn read_set(&mut self, file: &Path, set: &str) {
        for line in read_text(file).lines() {
            let entry: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            let mut texts = vec![text("title"), text("body")];
            let facts = entry["facts"].as_array().into_iter().flatten();
            texts.extend(facts.filter_map(|fact| fact.as_str().map(str::to_owned)));
            self.known.insert(format!("{set}:{}", text("id")), texts);
        }
    }

    fn read_claude_mem(&mut self, file: &Path) {
        // Opening it in place would leave files next to it.
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.db");
        fs::copy(file, &copy).unwrap();
        let connection = Connection::open(&copy).unwrap();
        let mut rows = connection
            .prepare(
                "SELECT id, title, narrative, subtitle, facts FROM observations \
                 WHERE title IS NOT NULL",
            )
            .unwrap();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let id: i64 = row.get(0).unwrap();
            let text = |column| {
                let text: Option<String> = row.get(column).unwrap();
                text.unwrap_or_default()
            };
            let facts: Vec<Value> = serde_json::from_str(&text(4)).unwrap_or_default();
            let mut texts = vec![text(1), text(2), text(3)];
            texts.extend(facts.iter().filter_map(|fact| fact.as_str().map(str::to_owned)));
            self.known.insert(format!("claude-mem:{id}"), texts);
        }
    }

    /// A note of Claude Code: its description is its title.
    fn read_note(&self, path: &str) -> Option<Vec<String>> {
        let file = self.real.as_ref()?.join("auto-memory/projects").join(path);
        let text = String::from_utf8_lossy(&fs::read(file).unwrap()).replace("\r\n", "\n");
        let text = text.trim_start_matches('\u{feff}');
        let rest = text.strip_prefix("---\n").unwrap_or_default();
        let (head, body) = rest.split_once("\n---\n").unwrap_or((rest, text));
        let value = |key: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(key))?;
            let value = line.trim().trim_matches('"');
            (!["", "|"].contains(&value)).then(|| value.to_owned())
        };
        let title = value("description:").or_else(|| value("name:"));
        let first = || body.trim().lines().next().unwrap_or_default();
        let title = title.unwrap_or_else(|| first().trim_start_matches("# ").to_owned());
        Some(vec![title, body.trim().to_owned()])
    }

    fn profile(&self, side: &Side) -> Option<Profile> {
        let texts = match side {
            Side::Text { text } => text.clone(),
            Side::Memory { memory, sha } => {
                let texts = match memory.strip_prefix("auto:") {
                    Some(path) => self.read_note(path)?,
                    None => self.known.get(memory)?.clone(),
                };
                let digest = Sha256::digest(format!("{}\n{}", texts[0], texts[1]));
                let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                assert!(digest.starts_with(sha), "{memory} is another text now");
                // The long text comes last, as where a memory is read.
                let mut texts = texts;
                texts[1..].rotate_left(1);
                texts
            }
        };
        let texts = texts.iter().filter(|text| !text.is_empty());
        Some(Profile::of_texts(&texts.map(String::as_str).collect::<Vec<_>>()))
    }
}

/// How often each wanted class was given as each class.
type Confusion = [[u32; 5]; 5];

fn measure(half: &str) -> Confusion {
    let memories = Memories::new();
    let mut confusion = Confusion::default();
    let place = |kind| KINDS.iter().position(|known| *known == kind).unwrap();
    for pair in pairs().iter().filter(|pair| pair.half == half) {
        let sides = memories.profile(&pair.newer).zip(memories.profile(&pair.older));
        let Some((newer, older)) = sides else {
            continue;
        };
        let given = relate(&newer, &older).kind;
        let is_claim = !matches!(given, RelationKind::Differs | RelationKind::Unrelated);
        if is_claim && pair.label != given {
            println!("pair {} is called `{}`", pair.n, given.as_str());
        }
        confusion[place(pair.label)][place(given)] += 1;
    }
    confusion
}

/// Whether all texts are there. Without them the bounds do not apply.
fn has_all_sets() -> bool {
    let is_there = |name| std::env::var_os(name).is_some();
    is_there("ACK_TEST_EVALS") && is_there("ACK_TEST_REAL_STORES")
}

fn share(part: u32, all: u32) -> f64 {
    f64::from(part) / f64::from(all.max(1))
}

fn precision(confusion: &Confusion, kind: usize) -> f64 {
    let given = confusion.iter().map(|wanted| wanted[kind]).sum();
    share(confusion[kind][kind], given)
}

fn report(half: &str) -> Confusion {
    let confusion = measure(half);
    println!("{half}: wanted, given as {:?}", KINDS.map(RelationKind::as_str));
    for (kind, wanted) in confusion.iter().enumerate() {
        println!(
            "{:12} {wanted:3?} precision {:.3} recall {:.3}",
            KINDS[kind].as_str(),
            precision(&confusion, kind),
            share(wanted[kind], wanted.iter().sum())
        );
    }
    confusion
}

/// `least` is the least recall: finding nothing would be precise too.
fn holds_the_bounds(sets: &[(&str, f64)]) {
    let confusions: Vec<Confusion> = sets.iter().map(|(half, _)| report(half)).collect();
    for ((half, least), confusion) in sets.iter().zip(confusions) {
        let contradicts = precision(&confusion, 3);
        assert!(contradicts >= MIN_PRECISION, "{half}: {contradicts:.3}");
        // Word for word is no matter of opinion.
        for kind in [0, 1] {
            let wrong: u32 =
                (0..5).filter(|wanted| *wanted != kind).map(|wanted| confusion[wanted][kind]).sum();
            assert_eq!(wrong, 0, "{half}: called `{}`", KINDS[kind].as_str());
        }
        let found = share(confusion[3][3], confusion[3].iter().sum());
        assert!(found >= *least, "{half}: recall {found:.3}");
    }
}

#[test]
fn reported_contradictions_have_high_precision() {
    holds_the_bounds(&[("development", 0.5), ("fifth", 0.5)]);
}

#[test]
fn reported_contradictions_have_high_precision_on_other_texts() {
    if has_all_sets() {
        let sets = [("held_out", 0.4), ("second", 0.3), ("third", 0.3), ("fourth", 0.2)];
        holds_the_bounds(&sets);
    }
}
