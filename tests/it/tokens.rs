//! What answers cost, counted by real vocabularies, and that the estimate by which they are cut is
//! above that.

use std::path::Path;
use std::sync::OnceLock;

use ack_api::text;
use ack_api::text::vocabulary;
use ack_memory::internal::{INSTRUCTIONS, Toolset, tools};
use base64::Engine;
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::context::project;
use crate::query::bulk;
use crate::support::{Root, memory, outside, read_text, titled, write_file};

/// The limit, in tokens, for what is read in every session.
const EVERY_SESSION: usize = 1_600;

/// The two vocabularies used for measuring.
fn vocabularies() -> &'static [CoreBPE; 2] {
    static VOCABULARIES: OnceLock<[CoreBPE; 2]> = OnceLock::new();
    VOCABULARIES
        .get_or_init(|| [tiktoken_rs::o200k_base().unwrap(), tiktoken_rs::cl100k_base().unwrap()])
}

/// The tokens of a text in the more expensive one of the two.
pub fn cost(text: &str) -> usize {
    vocabularies().iter().map(|known| known.encode_ordinary(text).len()).max().unwrap()
}

/// A piece of text as long as a memory, as an answer would hold it.
fn as_json(text: &str) -> String {
    json!({ "title": text, "facts": [text] }).to_string()
}

/// Whether a piece is a word in one case, with at most one space or sign before it.
fn is_word(piece: &[u8]) -> bool {
    let letters = match piece {
        [lead, rest @ ..] if *lead == b' ' || lead.is_ascii_punctuation() => rest,
        all => all,
    };
    let tail = letters.get(1..).unwrap_or_default();
    letters.first().is_some_and(u8::is_ascii_alphabetic)
        && (tail.iter().all(u8::is_ascii_lowercase) || letters.iter().all(u8::is_ascii_uppercase))
        && piece.len() <= vocabulary::MAX_WORD_BYTES
}

/// Whether a piece is a run of signs, with at most one space before it.
fn is_punctuation(piece: &[u8]) -> bool {
    let signs = piece.strip_prefix(b" ").unwrap_or(piece);
    !signs.is_empty()
        && signs.iter().all(u8::is_ascii_punctuation)
        && piece.len() <= vocabulary::MAX_PUNCTUATION_BYTES
}

#[test]
fn the_filters_of_common_pieces_are_those_of_the_vocabularies() {
    let [wide, narrow] = vocabularies();
    // The tokens of a byte-pair vocabulary are numbered by how common they are.
    let common: Vec<Vec<u8>> = (0..42_000)
        .filter_map(|rank| narrow.decode_bytes(&[rank]).ok())
        .filter(|piece| {
            std::str::from_utf8(piece).is_ok_and(|text| {
                [wide, narrow].map(|known| known.encode_ordinary(text).len()) == [1, 1]
            })
        })
        .collect();
    let of = |holds: fn(&[u8]) -> bool, place: std::ops::Range<usize>| {
        let pieces = common.iter().map(Vec::as_slice);
        let pieces = pieces.filter(|piece| piece.len() > 1 && holds(piece));
        vocabulary::filter(pieces, place.len())
    };
    let mut made = of(is_word, vocabulary::WORDS);
    made.extend(of(is_punctuation, vocabulary::PUNCTUATION));
    made.extend(vocabulary::characters(|c| {
        u8::try_from(cost(c.encode_utf8(&mut [0; 4]))).unwrap()
    }));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/ack-api/src/text/vocabulary.bin");
    if std::env::var_os("UPDATE_VOCABULARY").is_some() {
        write_file(&path, &made);
    }
    let kept = std::fs::read(&path).unwrap();
    assert!(kept == made, "run with UPDATE_VOCABULARY=1");
}

#[test]
fn the_docs_state_the_token_cost_of_a_session() {
    let root = Root::samples();
    let folder = project(&root, "ledger-api", "main");
    let event = crate::hook::event(&folder, "startup");
    let start = crate::hook::start(root.path(), &event).json();
    let start = start["hookSpecificOutput"]["additionalContext"].clone();
    let mut server = crate::mcp::Server::initialized(root.path());
    let query = json!({ "query": "lock timeout in the payout job" });
    let found = server.call("query_memories", query);
    let tools = json!({ "tools": tools(&Toolset::default()) });
    let text = cost(found["content"][0]["text"].as_str().unwrap());
    let structure = cost(&found["structuredContent"].to_string());
    let start = cost(start.as_str().unwrap());
    let measured = [
        ("`tools/list`", cost(&tools.to_string())),
        ("the instructions", cost(&INSTRUCTIONS)),
        ("`query_memories`, ten results of the samples, as text", text),
        ("the same as structure", structure),
        ("a session start in `ledger-api` of the samples", start),
    ];
    let every_session = measured[0].1 + measured[1].1;
    assert!(every_session < EVERY_SESSION, "{measured:?}");
    let rows = measured.map(|(what, tokens)| ("docs/benchmarks.md", what, tokens));
    let paid = "tokens that every session pays (tools and instructions)";
    let summary = ("README.md", paid, every_session);
    for (page, what, tokens) in rows.into_iter().chain([summary]) {
        let text = read_text(Path::new(env!("CARGO_MANIFEST_DIR")).join(page));
        let start = format!("| {what} | ");
        let row = text.lines().find_map(|line| line.strip_prefix(&start));
        let number = row.unwrap_or("0").trim_end_matches(" |").replace(',', "");
        let written: usize = number.parse().unwrap();
        let is_near = tokens.abs_diff(written) * 20 <= tokens;
        assert!(is_near, "{page}: {written} for {what}: {measured:?}");
    }
}

#[test]
fn the_estimate_is_an_upper_bound_for_real_texts() {
    let mut texts: Vec<String> = Vec::new();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kinds = ["jsonl", "json", "rs", "py", "md", "toml", "sql"];
    let files = |folder: &Path| {
        let entries = walkdir::WalkDir::new(folder).into_iter();
        entries.map(Result::unwrap).filter_map(|entry| {
            let kind = entry.path().extension()?.to_str()?.to_owned();
            Some((kind, entry.into_path()))
        })
    };
    for folder in ["scopes-example", "src", "schemas", "tests/it", "encoder"] {
        let all = files(&here.join(folder));
        for (_, path) in all.filter(|(kind, _)| kinds.contains(&kind.as_str())) {
            let text = read_text(path);
            if folder == "scopes-example" {
                texts.extend(text.lines().map(str::to_owned));
            }
            // Pieces of the length of a memory.
            let lines: Vec<&str> = text.lines().collect();
            texts.extend(lines.chunks(30).map(|lines| as_json(&lines.join("\n"))));
        }
    }
    for script in [
        "データベースの接続が切れる問題を修正しました。タイムアウトの設定を見直してください。",
        "数据库连接超时的问题已经修复,需要检查连接池的大小和超时设置。",
        "데이터베이스 연결이 끊어지는 문제를 수정했습니다. 연결 풀의 크기를 확인하세요.",
        "Исправлена ошибка, при которой соединение с базой данных разрывалось.",
        "تم إصلاح مشكلة انقطاع الاتصال بقاعدة البيانات. تحقق من حجم مجموعة الاتصالات.",
        "תוקנה בעיה של ניתוק החיבור למסד הנתונים.",
        "डेटाबेस कनेक्शन टूटने की समस्या ठीक कर दी गई है।",
        "แก้ไขปัญหาการเชื่อมต่อฐานข้อมูลขาดแล้ว โปรดตรวจสอบขนาดของพูล",
        "Διορθώθηκε το πρόβλημα αποσύνδεσης της βάσης δεδομένων.",
        "Die Datenbankverbindungsabbrüche wurden behoben; Überlastungsschutzmaßnahmen prüfen.",
        "Đã sửa lỗi mất kết nối cơ sở dữ liệu. Kiểm tra kích thước nhóm kết nối.",
        "Tietokantayhteyksien katkeilu korjattiin; yhteyspoolin enimmäiskoko tarkistettava.",
        "Naprawiono błąd powodujący zrywanie połączenia z bazą danych. Źdźbło, chrząszcz.",
        "Veritabanı bağlantısının kopmasına neden olan hata düzeltildi.",
        "የውሂብ ጎታ ግንኙነት ችግር ተስተካክሏል።",
        "მონაცემთა ბაზის კავშირის გაწყვეტა გამოსწორდა.",
        "ဒေတာဘေ့စ် ချိတ်ဆက်မှု ပြတ်တောက်ခြင်းကို ပြင်ဆင်ပြီးပါပြီ။",
        "🚀🎉 shipped ✅ 👩‍👩‍👧 🇩🇪 🔥❌ 128 + 9; 143",
    ] {
        texts.push(as_json(script));
    }
    if let Some(sets) = outside("ACK_TEST_EVALS") {
        for (_, path) in files(&sets).filter(|(kind, _)| kind == "jsonl") {
            let text = read_text(path);
            // Whole answers hold several: one short text that is odd does not matter.
            let lines: Vec<&str> = text.lines().collect();
            texts.extend(lines.chunks(3).step_by(3).map(|lines| lines.join("\n")));
        }
    }
    check(&texts, 115);
}

#[test]
fn the_estimate_is_an_upper_bound_for_random_text() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut roll = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_be_bytes()
    };
    let mut texts = Vec::new();
    for length in [24, 64, 400, 3_000] {
        for _ in 0..10 {
            let random = std::iter::repeat_with(&mut roll).flatten();
            let bytes: Vec<u8> = random.take(length).collect();
            let of = |letters: &[u8]| -> String {
                let letter = |byte: &u8| char::from(letters[usize::from(*byte) % letters.len()]);
                bytes.iter().map(letter).collect()
            };
            texts.push(base64::prelude::BASE64_STANDARD.encode(&bytes));
            texts.push(base64::prelude::BASE64_URL_SAFE.encode(&bytes));
            texts.push(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
            texts.push(bytes.iter().map(|byte| format!("0x{byte:02X}, ")).collect());
            texts.push(of(b"0123456789"));
            texts.push(of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"));
            texts.push(of(b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"));
            texts.push(of(b"a \n\t "));
            if length > 64 {
                // Words of letters as frequent as in English.
                texts.push(of(b"  eeeettaaooiinnssrrhdlucm"));
            }
            for script in ["\u{a1}\u{52f}", "ぁヿ", "一鿿", "가힣", "\u{900}\u{e7f}", "🌀🧿"]
            {
                let ends: Vec<u32> = script.chars().map(u32::from).collect();
                let letters = bytes.iter().zip(&bytes[1..]).filter_map(|(first, second)| {
                    let number = u32::from(*first) << 8 | u32::from(*second);
                    char::from_u32(ends[0] + number % (ends[1] - ends[0]))
                });
                texts.push(letters.collect());
            }
        }
    }
    check(&texts, 130);
}

#[track_caller]
fn check(texts: &[String], most_percent: usize) {
    let (mut estimated, mut counted) = (0, 0);
    for text in texts {
        let (estimate, real) = (text::tokens(text), cost(text));
        let start = &text[..text.floor_char_boundary(400)];
        assert!(estimate >= real, "{estimate} estimated, {real}: {start}");
        estimated += estimate;
        counted += real;
    }
    // An estimate that is far off would waste the reader's budget.
    let said = format!("{counted} tokens, {estimated} by the estimate");
    assert!(estimated * 100 <= counted * most_percent, "{said}");
    println!("{} texts: {said}", texts.len());
}

#[test]
fn tokens_without_a_number_of_results_are_filled_with_results() {
    let root = Root::new();
    let row = |n| titled(&format!("m{n}"), &format!("Payout {n}00 was late"));
    bulk(&root, "alpha", &(0..60).map(row).collect::<Vec<_>>());
    let mut server = crate::mcp::Server::initialized(root.path());
    let mut shown = |arguments: Value| {
        let answer = server.call("query_memories", arguments)["structuredContent"].clone();
        assert!(cost(&answer.to_string()) <= 1_000, "{answer}");
        answer["results"].as_array().unwrap().len()
    };
    let question = "payout was late";
    assert_eq!(shown(json!({ "query": question })), 10);
    let filled = shown(json!({ "query": question, "max_tokens": 1_000 }));
    assert!((11..=20).contains(&filled), "{filled}");
    let fewer = json!({ "query": question, "max_tokens": 1_000, "limit": 5 });
    assert_eq!(shown(fewer), 5);
}

#[test]
fn no_answer_costs_more_tokens_than_max_tokens() {
    let root = Root::samples();
    let noise = (0..9_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8);
    let blob = base64::prelude::BASE64_STANDARD.encode(noise.collect::<Vec<u8>>());
    let cjk = "データベースの接続が切れる問題を修正しました。数据库连接超时的问题已经修复。";
    let hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 ";
    let syllable = |n: u32| char::from_u32(0xac00 + n.wrapping_mul(2_654_435_761) % 11_172);
    let korean: String = (0..3_000).filter_map(syllable).collect();
    let texts = [
        ("base64", blob.as_str()),
        ("code", include_str!("tokens.rs")),
        ("cjk", &cjk.repeat(60)),
        ("hex", &hex.repeat(80)),
        ("korean", &korean),
        ("lines", &"a\n".repeat(3_000)),
    ];
    let memories: Vec<Value> = texts
        .iter()
        .flat_map(|(name, text)| {
            (0..12).map(move |n| {
                let end = text.floor_char_boundary(400 + n * 37);
                let rest = json!({ "narrative": text, "facts": [&text[..end], format!("{name} fact {n}")], "concepts": [name], "files": ["src/a.rs"] });
                memory(&format!("{name}-{n}"), &format!("{name} {n} {}", &text[..text.floor_char_boundary(60 + n)]), rest)
            })
        })
        .collect();
    bulk(&root, "odd", &memories);
    let mut server = crate::mcp::Server::initialized(root.path());
    let folder = root.path().join("odd");
    for max_tokens in [200, 300, 500, 1_000, 4_000, 20_000] {
        let mut check = |tool: &str, asked: &Value| {
            let answer = server.call(tool, asked.clone());
            // A client shows one of them to its model.
            let text = answer["content"][0]["text"].as_str().unwrap().to_owned();
            for shown in [answer["structuredContent"].to_string(), text] {
                let cost = cost(&shown);
                assert!(cost <= max_tokens, "{cost} tokens for {asked}: {shown}");
            }
        };
        for query in [
            "base64",
            "code",
            "cjk データベース",
            "hex 9f86d081",
            "payout",
            "fact",
            "korean",
            "lines",
        ] {
            for asked in [
                json!({ "query": query, "max_tokens": max_tokens }),
                json!({ "query": query, "max_tokens": max_tokens, "detail": "full", "limit": 50, "status": "all" }),
                json!({ "query": query, "max_tokens": max_tokens, "explain": true }),
            ] {
                check("query_memories", &asked);
            }
        }
        let arguments =
            json!({ "max_tokens": max_tokens, "max_memories": 20, "project_path": folder });
        check("get_context", &arguments);
    }
}
