//! Notes in German, French, Spanish and Russian among notes in English about the same subjects:
//! what the words of a question find comes first, and what means the same in another language too.

use serde_json::json;

use crate::languages::{Note, notes, root_of};
use crate::query::bulk;
use crate::support::{Ask, Root, memory, result_ids, titled};

const NOTES: &str = include_str!("mixed_languages.txt");

#[test]
fn a_question_in_another_language_finds_its_note_and_is_certain() {
    let notes = notes(NOTES);
    assert_eq!(notes.len(), 68);
    let root = root_of(&notes);
    let service = root.service();
    let (mut all, mut uncertain) = (0, Vec::new());
    for note in &notes {
        for question in &note.questions {
            let answer = service.find(json!({ "query": question, "limit": 10 }));
            let found = result_ids(&answer);
            // Each subject has a note in several languages, and the encoder knows them all.
            let language = note.id.split('-').next().unwrap();
            let mut own = found.iter().filter(|id| id.starts_with(language));
            // `Verbrauch` is taken for `Verbraucher`.
            let is_first = own.next() == Some(&note.id);
            assert!(
                is_first || *question == "Verbrauch des Speichers steigt",
                "{question}: {found:?}"
            );
            assert!(found.contains(&note.id), "{question}");
            all += 1;
            if answer["notes"].to_string().contains("no certain match") {
                uncertain.push(*question);
            }
            assert_lacks!(answer["notes"], "no_word_matches"; "{question}");
        }
    }
    // Questions of two words, one of which is in no memory.
    assert!(uncertain.len() * 50 <= all, "{uncertain:?} of {all}");
}

/// Questions in each language that the encoder knows, and the note in English that answers them.
const ACROSS: &str = "\
    en-38 Warum brechen die Datenbankverbindungen nachts ab?
    en-38 Pourquoi les connexions à la base de données sont-elles coupées la nuit ?
    en-38 ¿Por qué se cortan las conexiones a la base de datos por la noche?
    en-38 Por que as conexões com o banco de dados caem à noite?
    en-38 Perché le connessioni al database cadono di notte?
    en-38 Dlaczego połączenia z bazą danych są przerywane w nocy?
    en-38 Почему ночью обрываются соединения с базой данных?
    en-38 为什么夜间数据库连接会断开？
    en-38 夜間にデータベースの接続が切れるのはなぜですか
    en-38 밤에 데이터베이스 연결이 끊기는 이유는?
    en-38 Tại sao kết nối cơ sở dữ liệu bị ngắt vào ban đêm?
    en-39 Hochladen großer Dateien ist langsam
    en-39 上传大文件很慢
    en-39 Загрузка больших файлов медленная
    en-43 メモリ使用量が増え続ける
    en-43 メモリリーク
    en-49 supprimer les journaux après trente jours
    en-62 límite de archivos abiertos
    en-62 limite de arquivos abertos
    en-62 limite di file aperti
    en-62 limit otwartych plików
    en-62 열린 파일 제한
    en-62 giới hạn số tệp đang mở";

#[test]
fn a_question_in_any_language_of_the_encoder_finds_the_note_in_english() {
    let notes = notes(NOTES);
    let root = root_of(notes.iter().filter(|note| note.id.starts_with("en")));
    let service = root.service();
    for line in ACROSS.lines() {
        let (wanted, question) = line.trim().split_once(' ').unwrap();
        let answer = service.find(json!({ "query": question }));
        let found = result_ids(&answer);
        assert_eq!(found[0], wanted, "{question}");
        assert_lacks!(answer["suggestions"], "English"; "{question}");
        assert_lacks!(answer["notes"], "nothing_certain", "no_word_matches"; "{question}");
    }
}

/// Questions in languages that the encoder does not know.
const FOREIGN: &[&str] = &[
    "hoe herstel ik het wachtwoord van de databank?",
    "varför bryts anslutningen till databasen på natten och inte dagtid",
    "sunucu neden bu hata ile kapanıyor",
    "hogyan lehet egy kapcsolatot lezárni",
    "miksi yhteys katkeaa mutta palvelin ei kaadu",
    "איך לאפס סיסמה",
    "πώς επαναφέρω τον κωδικό",
];

const IN_ENGLISH: &str = "This language is searched by its words alone: ask in English, or with \
    names, codes and identifiers from the memory";

#[test]
fn a_question_in_another_language_without_a_certain_answer_says_what_to_write() {
    let notes = notes(NOTES);
    let of = |languages: &[&str]| {
        let is_one = |note: &&Note| languages.iter().any(|one| note.id.starts_with(one));
        root_of(notes.iter().filter(is_one))
    };
    let root = of(&["en"]);
    let service = root.service();
    let (mut empty, mut uncertain) = (0, 0);
    for question in FOREIGN {
        let answer = service.find(json!({ "query": question }));
        let list = "Use list_scopes to check available scopes";
        if result_ids(&answer).is_empty() {
            assert_eq!(answer["suggestions"], json!([IN_ENGLISH, list]), "{question}");
            empty += 1;
        } else {
            assert_eq!(answer["suggestions"], json!([IN_ENGLISH]), "{question}");
            uncertain += 1;
        }
    }
    assert!(empty > 0 && uncertain > 0, "{empty} empty, {uncertain} uncertain");
    let tokens = crate::tokens::cost(IN_ENGLISH);
    assert!(tokens <= 35, "{tokens}");
    // In English, and for a person.
    for question in [
        "who may restart the billing service",
        "kubectl rollout restart deployment",
        "xyzzy",
        "idle database connection",
    ] {
        let answer = service.find(json!({ "query": question }));
        assert_lacks!(answer["suggestions"], "English"; "{question}");
    }
    let output = crate::cli::ack(root.path(), &["query", FOREIGN[0]]).ok();
    assert_contains!(output, "ask in English");
    // A note in the question's language is certain.
    let query = json!({ "query": "warum brechen Verbindungen nachts ab" });
    let answer = of(&["en", "de"]).service().find(query);
    assert_eq!(answer.get("suggestions"), None, "{answer}");
}

#[test]
fn a_number_or_code_that_no_memory_contains_is_named() {
    let root = root_of(&notes(
        "en
Exit code 137 means out of memory
The kernel killed the process.
?

en
Port 8080 is taken by the proxy
Start the server on another port.
?

en
error[E0502]: borrowed as mutable
Clone the value before the loop.
?

en
Postgres 16 upgrade
Dump and restore, then reindex.
?",
    ));
    let service = root.service();
    for (question, unknown) in [
        ("exit code 139", Some("139")),
        ("what uses port 9200", Some("9200")),
        ("error E0382 borrow", Some("e0382")),
        ("exit code 137", None),
        ("what uses port 8080", None),
        ("error E0502 borrow", None),
        ("postgres 17 upgrade", None),
        ("postgres upgrade 2026", None),
        ("the process exits with code 137 after 98765 ms when the kernel runs out of memory", None),
    ] {
        let answer = service.find(json!({ "query": question }));
        assert!(!result_ids(&answer).is_empty(), "{question}");
        match unknown {
            Some(code) => {
                let told = format!("no certain match: no approved memory contains `{code}`");
                assert_contains!(answer["notes"], told; "{question}");
            }
            None => assert_lacks!(answer["notes"], "no certain match"; "{question}"),
        }
    }
}

#[test]
fn of_a_question_of_one_word_the_memories_that_have_it_come_first() {
    let root = Root::new();
    let notes = [
        titled("ko", "데이터베이스"),
        titled("en", "Database"),
        titled("ja", "本番のデータベースは毎晩バックアップを取り、復元を月に一度試す"),
        titled("de", "Vor der Wartung wird die Datenbank für eine Stunde nur gelesen"),
    ];
    bulk(&root, "alpha", &notes);
    let service = root.service();
    for (word, id) in [("データベース", "ja"), ("Datenbank", "de"), ("데이터베이스", "ko")]
    {
        let found = result_ids(&service.find(json!({ "query": word })));
        assert_eq!(found[0], id, "{word}: {found:?}");
        assert!(found.contains(&"en".to_owned()), "{word}: {found:?}");
    }
}

#[test]
fn a_question_with_a_month_prefers_what_was_written_in_it() {
    let root = Root::new();
    let written = |id: &str, day: &str| {
        let rest = json!({ "created_at": format!("{day}T10:00:00Z") });
        let title = format!("The retries of the {id} relay filled the queue");
        memory(id, &title, rest)
    };
    let notes = [
        written("north", "2022-11-20"),
        written("south", "2022-10-31"),
        written("east", "2026-05-01"),
    ];
    bulk(&root, "alpha", &notes);
    let service = root.service();
    for question in [
        "relay retries in November 2022",
        "relay retries, noviembre de 2022",
        "2022-11 relay retries",
    ] {
        let found = result_ids(&service.find(json!({ "query": question })));
        assert_eq!(found[0], "north", "{question}: {found:?}");
    }
}
