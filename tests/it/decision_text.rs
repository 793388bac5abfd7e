//! The text of a decision log, however it was damaged: torn lines, lines of two writers in each
//! other, bytes that are no text, huge lines. Every whole line before and after the damage counts,
//! every damaged line is reported, one that names no memory closes the scope, and a decision that a
//! damaged line may have changed approves nothing.

use std::collections::HashMap;

use ack_api::decision::{Decision, Verdict, ids_of_damaged_line};
use ack_api::memory::{Status, Unreviewed};
use ack_store::{Store, StoreSettings};
use proptest::prelude::*;

use crate::support::write_file;

/// How many memories the lines are about.
const MEMORIES: usize = 5;
/// How many damaged lines are reported.
const MAX_REPORTED: usize = 100;

fn id(memory: usize) -> String {
    // Ids that must be escaped, and one that looks like another line.
    ["obs-1", "a \"b\" \\", "größe/é", "\"id\":\"obs-1\"", "\u{1}x"][memory].to_owned()
}

/// One line of a log, or what stands in the place of one.
#[derive(Debug, Clone)]
enum Piece {
    Whole(Decision),
    /// A writer was killed in the middle of a line.
    Torn(Decision, usize),
    /// Two writers without a lock: pieces of both lines in turn.
    Interleaved(Decision, Decision, usize, usize),
    /// The line break between two decisions was lost.
    Joined(Decision, Decision),
    /// Bytes of something else.
    Bytes(Vec<u8>),
    /// What a file system leaves after a crash, and the line that was written over it.
    Zeros(usize, Option<Decision>),
    Blank(&'static str),
}

impl Piece {
    fn text(&self) -> Vec<u8> {
        let cut = |line: &str, at: usize| line.len() * at / 1_000;
        match self {
            Self::Whole(decision) => decision.to_line().into_bytes(),
            Self::Torn(decision, at) => {
                let line = decision.to_line();
                line.as_bytes()[..cut(&line, *at)].to_vec()
            }
            Self::Interleaved(one, other, at, other_at) => {
                let (one, other) = (one.to_line(), other.to_line());
                let (at, other_at) = (cut(&one, *at), cut(&other, *other_at));
                let (one, other) = (one.as_bytes(), other.as_bytes());
                [&one[..at], &other[..other_at], &one[at..], &other[other_at..]].concat()
            }
            Self::Joined(one, other) => (one.to_line() + &other.to_line()).into_bytes(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Zeros(length, decision) => {
                let line = decision.as_ref().map(Decision::to_line);
                [vec![0; *length], line.unwrap_or_default().into_bytes()].concat()
            }
            Self::Blank(text) => text.as_bytes().to_vec(),
        }
    }
}

fn decisions() -> impl Strategy<Value = Decision> {
    let verdicts = [Verdict::Approve, Verdict::Promote, Verdict::Reject, Verdict::Stage];
    let reasons = prop_oneof![
        8 => "\\PC{0,12}".prop_map(Some),
        3 => Just(None),
        2 => Just(Some("\"id\":\"obs-1\"}\n{\"id\":\"obs-1\"".to_owned())),
        // A line of more than a megabyte.
        1 => (1_000_000..1_200_000usize).prop_map(|length| Some("x".repeat(length))),
    ];
    (0..MEMORIES, proptest::sample::select(verdicts.to_vec()), 0..3u8, reasons).prop_map(
        |(memory, verdict, content, reason)| Decision {
            id: id(memory),
            digest: format!("sha256:{}", content.to_string().repeat(64)),
            text: None,
            verdict,
            was: Status::Staging,
            edit: None,
            into: None,
            until: None,
            despite: None,
            reason,
            actor: "human:ana".to_owned(),
            batch: None,
            time: "2026-03-01T10:00:00Z".to_owned(),
        },
    )
}

fn pieces() -> impl Strategy<Value = Piece> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..60);
    prop_oneof![
        8 => decisions().prop_map(Piece::Whole),
        3 => (decisions(), 0..1_000usize).prop_map(|(decision, at)| Piece::Torn(decision, at)),
        2 => (decisions(), decisions(), 0..=1_000usize, 0..=1_000usize)
            .prop_map(|(one, other, at, other_at)| Piece::Interleaved(one, other, at, other_at)),
        1 => (decisions(), decisions()).prop_map(|(one, other)| Piece::Joined(one, other)),
        2 => bytes.prop_map(Piece::Bytes),
        1 => (1..5_000usize, proptest::option::of(decisions()))
            .prop_map(|(length, decision)| Piece::Zeros(length, decision)),
        1 => proptest::sample::select(vec!["", " ", "\t", "\r", "[]", "{}", "null", "<<<<<<< HEAD"])
            .prop_map(Piece::Blank),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_whole_line_counts_and_every_damaged_one_is_reported(
        pieces in proptest::collection::vec(pieces(), 0..24),
        line_end in proptest::sample::select(vec!["\n", "\r\n"]),
        has_mark in any::<bool>(),
        ends_with_a_line_break in any::<bool>(),
    ) {
        let mut content = if has_mark { b"\xEF\xBB\xBF".to_vec() } else { Vec::new() };
        let texts: Vec<Vec<u8>> = pieces.iter().map(Piece::text).collect();
        content.extend(texts.join(line_end.as_bytes()));
        if ends_with_a_line_break {
            content.extend(line_end.as_bytes());
        }

        // What the lines say, each by itself.
        let text = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&content);
        let mut whole: HashMap<String, Vec<Decision>> = HashMap::new();
        let mut damaged: Vec<(usize, String)> = Vec::new();
        let mut is_uncertain: HashMap<String, bool> = HashMap::new();
        let mut may_be_log = false;
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let line = String::from_utf8_lossy(line);
            let line = line.trim();
            may_be_log |= line.starts_with("{\"");
            if line.is_empty() {
                continue;
            }
            match serde_json::from_str::<Decision>(line) {
                Ok(decision) => {
                    is_uncertain.insert(decision.id.clone(), false);
                    whole.entry(decision.id.clone()).or_default().push(decision);
                }
                Err(_) => damaged.push((number, line.to_owned())),
            }
            // A line that names a memory in full and is no decision makes it uncertain.
            if let Some((_, line)) = damaged.last().filter(|(last, _)| *last == number) {
                for memory in 0..MEMORIES {
                    let key = serde_json::to_string(&id(memory)).unwrap();
                    if line.contains(&format!("{{\"id\":{key}")) {
                        is_uncertain.insert(id(memory), true);
                    }
                }
            }
        }
        // Nothing but the pieces themselves is whole.
        for piece in &pieces {
            if let Piece::Whole(decision) = piece {
                prop_assert!(whole[&decision.id].contains(decision));
            }
        }

        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("decisions.jsonl");
        write_file(&log, &content);
        let store = Store::with(folder.path().join("memory.db"), Unreviewed::Staging, StoreSettings { decisions: Some(log), ..StoreSettings::default() });
        // Nobody knows what a line that names no memory rejected, so it closes the scope.
        let is_nameless = |(_, line): &(usize, String)| {
            ids_of_damaged_line(line).is_empty() || line.contains('\0')
        };
        let has_nameless = damaged.iter().any(is_nameless);
        let read = match store.decisions() {
            Ok(read) => {
                prop_assert!(!has_nameless);
                read
            }
            Err(error) => {
                // So does a file without anything like a line of a log.
                let is_no_log = whole.is_empty() && !may_be_log;
                prop_assert!(has_nameless || is_no_log, "{}", error);
                return Ok(());
            }
        };
        for memory in 0..MEMORIES {
            let id = ack_api::text::id(&id(memory));
            let known = whole.iter().filter(|(name, _)| ack_api::text::id(name) == id);
            let known: Vec<&Decision> = known.flat_map(|(_, lines)| lines).collect();
            let about: Vec<&Decision> = read.about(&id).iter().collect();
            prop_assert_eq!(about, known, "{}", id);
        }
        for (name, is_uncertain) in is_uncertain {
            let counts = read.newest().any(|decision| decision.id == name);
            prop_assert!(!(is_uncertain && counts), "{} counts after a damaged line", name);
        }
        let reported: Vec<usize> = read.damaged.iter().map(|damaged| damaged.line).collect();
        let expected: Vec<usize> = damaged.iter().map(|(number, _)| *number).take(MAX_REPORTED).collect();
        prop_assert_eq!(reported, expected);
        for damaged in &read.damaged {
            prop_assert!(damaged.reason.len() < 1_000 && !damaged.reason.contains(char::is_control));
        }
    }
}
