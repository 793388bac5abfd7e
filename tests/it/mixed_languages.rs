//! Notes in German, French, Spanish and Russian among notes in English about the same subjects:
//! what the words of a question find comes first, and what means the same in another language too.

use serde_json::json;

use crate::arguments::call;
use crate::languages::root_of;
use crate::support::ids;

/// A note's title and text, and questions that it answers.
type Note = (&'static str, &'static str, &'static [&'static str]);

const GERMAN: &[Note] = &[
    (
        "Datenbankverbindung bricht nachts ab",
        "Der Router trennt ruhende Verbindungen nach zehn Minuten. Ein regelmäßiges Lebenszeichen hält sie offen.",
        &[
            "Datenbankverbindungen",
            "abgebrochene Verbindung",
            "warum brechen Verbindungen nachts ab",
        ],
    ),
    (
        "Große Dateien langsam hochgeladen",
        "Der Proxy puffert alles auf der Platte. Ohne Puffer ist das Hochladen viermal so schnell.",
        &[
            "grosse Dateien",
            "Hochladen einer großen Datei dauert lange",
        ],
    ),
    (
        "Berechtigungen fehlen nach dem Umzug",
        "Nach dem Serverumzug gehörten die Ordner dem falschen Benutzer.",
        &[
            "fehlende Berechtigung",
            "Benutzerrechte nach Serverumzug",
            "Ordnerberechtigungen",
        ],
    ),
    (
        "Warteschlange läuft voll",
        "Ein Verbraucher hing in einer Endlosschleife. Jetzt gibt es eine Zeitbegrenzung je Auftrag.",
        &[
            "Endlosschleifen im Verbraucher",
            "volle Warteschlangen",
            "Zeitbegrenzung für Aufträge",
        ],
    ),
    (
        "Fehlermeldungen ohne Zeilennummer",
        "Der Minifizierer entfernte die Quellzuordnung. Sie wird nun getrennt hochgeladen.",
        &[
            "Fehlermeldung ohne Zeilennummern",
            "Zeilennummer fehlt",
            "Quellzuordnungen",
        ],
    ),
    (
        "Speicherverbrauch wächst stetig",
        "Der Zwischenspeicher hatte keine Obergrenze. Seit der Begrenzung bleibt der Speicher bei zwei Gigabyte.",
        &[
            "Verbrauch des Speichers steigt",
            "Obergrenze Zwischenspeicher",
        ],
    ),
    (
        "Schlüssel werden vierteljährlich gewechselt",
        "Der Wechsel geschieht mit zwei gültigen Schlüsseln gleichzeitig, damit niemand ausgesperrt wird.",
        &[
            "Schlüsselwechsel",
            "wie oft werden Schluessel gewechselt",
            "zwei gültige Schlüssel",
        ],
    ),
    (
        "Umlaute in Dateinamen",
        "Auf dem Mac sind sie zerlegt gespeichert, deshalb schlug der Vergleich fehl.",
        &[
            "Umlaut im Dateinamen",
            "Dateinamen vergleichen Mac",
            "zerlegte Umlaute",
        ],
    ),
    (
        "Zahlungen doppelt gebucht",
        "Der Zahlungsanbieter wiederholt Benachrichtigungen. Jede bekommt jetzt eine eindeutige Kennung.",
        &[
            "doppelte Buchung",
            "Zahlungsanbieter wiederholt",
            "eindeutige Kennungen",
        ],
    ),
    (
        "Testabdeckung nicht erzwingen",
        "Die Quote führte zu sinnlosen Prüfungen. Das Team entscheidet bei der Durchsicht.",
        &["Abdeckung der Tests", "sinnlose Prüfung"],
    ),
    (
        "Geplante Aufgaben laufen in Weltzeit",
        "Die Sommerzeit verschob den Bericht um eine Stunde.",
        &[
            "Sommerzeit",
            "Bericht eine Stunde verschoben",
            "geplante Aufgabe Zeit",
        ],
    ),
    (
        "Protokolle nach dreißig Tagen löschen",
        "Die Datenschutzbeauftragte verlangt es. Ein Auftrag räumt sonntags auf.",
        &["Löschung der Protokolle", "Datenschutz Aufbewahrung"],
    ),
];

const FRENCH: &[Note] = &[
    (
        "Les connexions à la base expirent",
        "Le routeur coupe les connexions inactives après dix minutes. Un signal régulier les garde ouvertes.",
        &[
            "connexion à la base",
            "connexions coupées",
            "pourquoi la connexion expire",
        ],
    ),
    (
        "Téléversement lent des gros fichiers",
        "Le mandataire garde tout sur le disque. Sans tampon, c'est quatre fois plus rapide.",
        &[
            "gros fichier lent",
            "televersement",
            "téléverser des fichiers",
        ],
    ),
    (
        "Droits perdus après la migration du serveur",
        "Les dossiers appartenaient au mauvais utilisateur.",
        &[
            "droit perdu",
            "mauvais utilisateurs des dossiers",
            "droits du dossier",
        ],
    ),
    (
        "La file d'attente déborde",
        "Un consommateur bouclait sans fin. Chaque tâche a maintenant une durée maximale.",
        &[
            "file d'attente",
            "durée maximale des tâches",
            "boucle sans fin",
        ],
    ),
    (
        "Messages d'erreur sans numéro de ligne",
        "La minification retirait la table des sources, elle est envoyée à part.",
        &["numéros de ligne", "message d'erreur", "table des sources"],
    ),
    (
        "La mémoire augmente sans cesse",
        "Le cache n'avait pas de limite. Depuis, elle reste à deux gigaoctets.",
        &["fuite de mémoire", "mémoire qui augmente"],
    ),
    (
        "Rotation des clés chaque trimestre",
        "Deux clés valides en même temps pour n'exclure personne.",
        &["chaque trimestre"],
    ),
    (
        "Accents dans les noms de fichiers",
        "Sur Mac ils sont décomposés, la comparaison échouait donc.",
        &[
            "accent nom de fichier",
            "noms décomposés",
            "comparaisons de noms",
        ],
    ),
    (
        "Paiements enregistrés deux fois",
        "Le prestataire répète ses notifications, chacune a maintenant un identifiant unique.",
        &[
            "paiement en double",
            "notification répétée",
            "identifiants uniques",
        ],
    ),
    (
        "Les tâches planifiées tournent en temps universel",
        "L'heure d'été décalait le rapport d'une heure.",
        &["heure d'été", "rapport décalé", "tâche planifiée"],
    ),
];

const SPANISH: &[Note] = &[
    (
        "Las conexiones de la base caducan",
        "El enrutador corta las conexiones inactivas a los diez minutos. Una señal periódica las mantiene abiertas.",
        &[
            "conexión a la base",
            "conexiones cortadas",
            "por qué caduca la conexion",
        ],
    ),
    (
        "Subida lenta de archivos grandes",
        "El intermediario guarda todo en disco. Sin memoria intermedia es cuatro veces más rápido.",
        &["archivo grande", "subidas lentas", "subir archivos"],
    ),
    (
        "Permisos perdidos tras mover el servidor",
        "Las carpetas pertenecían al usuario equivocado.",
        &[
            "permiso perdido",
            "usuarios de las carpetas",
            "carpeta con permisos",
        ],
    ),
    (
        "La cola se desborda",
        "Un consumidor quedó en un bucle infinito. Cada tarea tiene ahora una duración máxima.",
        &[
            "bucles infinitos",
            "colas desbordadas",
            "duracion maxima de tareas",
        ],
    ),
    (
        "Mensajes de error sin número de línea",
        "La minificación quitaba el mapa de fuentes, ahora se envía aparte.",
        &["numeros de linea", "mensaje de error", "mapa de fuentes"],
    ),
    (
        "La memoria crece sin parar",
        "La caché no tenía límite. Desde entonces se queda en dos gigabytes.",
        &["memoria creciente"],
    ),
    (
        "Rotación de claves cada trimestre",
        "Dos claves válidas a la vez para no excluir a nadie.",
        &["rotacion de clave", "clave válida", "cada trimestre"],
    ),
    (
        "El informe del año empieza en febrero",
        "El año fiscal cierra en enero, por eso el resumen anual sale más tarde.",
        &["ano fiscal", "informes anuales", "año"],
    ),
    (
        "Pagos registrados dos veces",
        "El proveedor repite las notificaciones, cada una lleva ahora un identificador único.",
        &[
            "pago duplicado",
            "notificación repetida",
            "identificadores únicos",
        ],
    ),
    (
        "Las tareas programadas usan la hora universal",
        "El horario de verano retrasaba el informe una hora.",
        &["horario de verano", "tarea programada"],
    ),
];

const RUSSIAN: &[Note] = &[
    (
        "Соединение с базой обрывается ночью",
        "Маршрутизатор закрывает неактивные соединения через десять минут.",
        &[
            "соединения с базами",
            "обрыв соединения",
            "почему обрываются соединения",
        ],
    ),
    (
        "Медленная загрузка больших файлов",
        "Прокси пишет всё на диск. Без буфера загрузка в четыре раза быстрее.",
        &["большой файл", "загрузки файла", "буфер прокси"],
    ),
    (
        "Права потеряны после переезда сервера",
        "Папки принадлежали чужому пользователю.",
        &["потеря прав", "права папки", "чужие пользователи"],
    ),
    (
        "Очередь переполняется",
        "Потребитель завис в бесконечном цикле. Теперь у задачи есть предел времени.",
        &[
            "переполнение очереди",
            "бесконечный цикл",
            "предел времени задач",
        ],
    ),
    (
        "Ошибки без номера строки",
        "Сжатие удаляло карту исходного кода.",
        &["номера строк", "ошибка без строки", "карта кода"],
    ),
    (
        "Ключи меняются раз в квартал",
        "Два ключа действуют одновременно, чтобы никого не отключить.",
        &["смена ключа", "ключ раз в квартал", "два ключа"],
    ),
];

const ENGLISH: &[Note] = &[
    (
        "Database connections drop at night",
        "The router closes idle connections after ten minutes. A keepalive every minute keeps them open.",
        &["idle database connection"],
    ),
    (
        "Uploading large files is slow",
        "The proxy buffers the whole body on disk. Turning buffering off made uploads four times faster.",
        &["slow upload of big files"],
    ),
    (
        "Permissions lost after the server move",
        "The folders belonged to the wrong user id after rsync without --numeric-ids.",
        &["wrong folder owner"],
    ),
    (
        "Queue fills up",
        "One consumer spun in an endless loop; every job now has a timeout.",
        &["consumer endless loop"],
    ),
    (
        "Error messages without line numbers",
        "The minifier stripped the source maps; they are uploaded separately now.",
        &["source maps missing"],
    ),
    (
        "Memory usage keeps growing",
        "The cache had no bound. It stays at two gigabytes since we limited it.",
        &["memory leak cache"],
    ),
    (
        "Keys rotate every quarter",
        "Two keys are valid at the same time so that nobody is locked out.",
        &["key rotation"],
    ),
    (
        "Accents in file names",
        "macOS stores them decomposed, so the comparison failed. Normalize to NFC first.",
        &["unicode file names on mac"],
    ),
    (
        "Payments booked twice",
        "The provider repeats webhooks; each carries an idempotency key now.",
        &["duplicate webhook"],
    ),
    (
        "Do not enforce test coverage",
        "The quota led to meaningless tests. Reviewers decide.",
        &["coverage quota"],
    ),
    (
        "Scheduled jobs run in UTC",
        "Daylight saving moved the report by an hour.",
        &["daylight saving report"],
    ),
    (
        "Delete logs after thirty days",
        "The privacy officer requires it. A job cleans up on Sundays.",
        &["log retention"],
    ),
    (
        "Verbose mode in the release build",
        "Die-hard users wanted --verbose in production; it is behind a flag.",
        &["verbose flag"],
    ),
    (
        "Grossly oversized images in the registry",
        "Multi-stage builds cut the image from 1.9 GB to 140 MB.",
        &["shrink docker image"],
    ),
    (
        "Ana's onboarding notes for the mobile app",
        "Run the emulator once before the first build.",
        &["first emulator build"],
    ),
    (
        "Annotations are lost in the proto output",
        "The plugin drops comments unless include_source_info is set.",
        &["proto comments dropped"],
    ),
    (
        "Clerk session tokens",
        "They expire after sixty seconds; the middleware refreshes them.",
        &["session token expiry"],
    ),
    (
        "Connector for the ERP",
        "The connector retries three times with exponential backoff.",
        &["retry backoff connector"],
    ),
    (
        "File locks on NFS",
        "flock is advisory and not shared across clients on old kernels.",
        &["flock nfs"],
    ),
    (
        "Cola of the pipeline: notify Slack",
        "The last step posts the summary to the channel.",
        &["slack summary step"],
    ),
    (
        "Mapping of enum values",
        "Unknown variants are kept as strings when decoding.",
        &["unknown enum variant"],
    ),
    (
        "Rapport between teams",
        "Weekly sync on Thursdays, notes in the wiki.",
        &["weekly sync"],
    ),
    (
        "Base image pinned by digest",
        "Renovate opens a pull request when the digest changes.",
        &["pin base image"],
    ),
    (
        "Message size limit on the broker",
        "max.message.bytes is 5 MB in production.",
        &["broker message limit"],
    ),
    (
        "Limit of open files",
        "ulimit -n is 65536 on the workers.",
        &["open files limit"],
    ),
    (
        "Error budget policy",
        "Freeze features when less than 10 % of the budget is left.",
        &["feature freeze"],
    ),
    (
        "Table partitions by month",
        "Queries without a date scan everything.",
        &["partition scan"],
    ),
    (
        "Signal handlers in the worker",
        "SIGTERM drains the queue before exit.",
        &["sigterm drain"],
    ),
    (
        "Notification settings",
        "Users can mute a channel for a day.",
        &["mute channel"],
    ),
    (
        "Line endings in shell scripts",
        "CRLF breaks the shebang; .gitattributes forces LF.",
        &["crlf shebang"],
    ),
];

const LANGUAGES: [(&str, &[Note]); 5] = [
    ("de", GERMAN),
    ("fr", FRENCH),
    ("es", SPANISH),
    ("ru", RUSSIAN),
    ("en", ENGLISH),
];

#[test]
fn a_question_in_another_language_finds_its_note_and_is_certain() {
    let root = root_of(LANGUAGES.iter().flat_map(|(language, notes)| {
        let notes = notes.iter().enumerate();
        notes.map(move |(number, (title, text, _))| (format!("{language}-{number}"), *title, *text))
    }));
    let service = root.service();
    let mut missed = Vec::new();
    for (language, notes) in LANGUAGES {
        for (number, (_, _, questions)) in notes.iter().enumerate() {
            for question in *questions {
                let arguments = json!({ "query": question, "limit": 10 });
                let answer = call(&service, "query_memories", arguments).unwrap();
                let ids = ids(&answer["results"]);
                let wanted = format!("{language}-{number}");
                let notes = answer["notes"].to_string();
                let is_certain = !["nothing_certain", "no_word_matches"]
                    .iter()
                    .any(|kind| notes.contains(kind));
                if ids.first() != Some(&wanted) || !is_certain {
                    missed.push(format!("{wanted} {question}: {ids:?}, notes {notes}"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// Questions in each language that the encoder knows, and the note in English that answers them.
const ACROSS: &[(&str, &str)] = &[
    ("en-0", "Warum brechen die Datenbankverbindungen nachts ab?"),
    (
        "en-0",
        "Pourquoi les connexions à la base de données sont-elles coupées la nuit ?",
    ),
    (
        "en-0",
        "¿Por qué se cortan las conexiones a la base de datos por la noche?",
    ),
    (
        "en-0",
        "Por que as conexões com o banco de dados caem à noite?",
    ),
    ("en-0", "Perché le connessioni al database cadono di notte?"),
    (
        "en-0",
        "Dlaczego połączenia z bazą danych są przerywane w nocy?",
    ),
    ("en-0", "Почему ночью обрываются соединения с базой данных?"),
    ("en-0", "为什么夜间数据库连接会断开？"),
    ("en-0", "夜間にデータベースの接続が切れるのはなぜですか"),
    ("en-0", "밤에 데이터베이스 연결이 끊기는 이유는?"),
    ("en-0", "Tại sao kết nối cơ sở dữ liệu bị ngắt vào ban đêm?"),
    ("en-1", "Hochladen großer Dateien ist langsam"),
    ("en-1", "上传大文件很慢"),
    ("en-1", "Загрузка больших файлов медленная"),
    ("en-5", "メモリ使用量が増え続ける"),
    ("en-11", "supprimer les journaux après trente jours"),
    ("en-24", "límite de archivos abiertos"),
    ("en-24", "limite de arquivos abertos"),
    ("en-24", "limite di file aperti"),
    ("en-24", "limit otwartych plików"),
    ("en-24", "열린 파일 제한"),
    ("en-24", "giới hạn số tệp đang mở"),
];

#[test]
fn a_question_in_any_language_of_the_encoder_finds_the_note_in_english() {
    let notes = ENGLISH.iter().enumerate();
    let root =
        root_of(notes.map(|(number, (title, text, _))| (format!("en-{number}"), *title, *text)));
    let service = root.service();
    let mut missed = Vec::new();
    for (wanted, question) in ACROSS {
        let answer = call(&service, "query_memories", json!({ "query": question })).unwrap();
        let found = ids(&answer["results"]);
        let suggestions = answer["suggestions"].to_string();
        if found.first().map(String::as_str) != Some(wanted) || suggestions.contains("English") {
            missed.push(format!("{wanted} {question}: {found:?} {suggestions}"));
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// Questions in languages that the encoder does not know.
const FOREIGN: &[&str] = &[
    "hoe herstel ik het wachtwoord van de databank?",
    "varför bryts anslutningen till databasen på natten och inte dagtid",
    "sunucu neden bu hata ile kapanıyor",
    "hogyan lehet egy kapcsolatot lezárni",
    "miksi yhteys katkeaa mutta palvelin ei kaadu",
    "bagaimana cara menghapus cache dengan aman",
    "איך לאפס סיסמה",
    "πώς επαναφέρω τον κωδικό",
];

const IN_ENGLISH: &str = "This language is searched by its words alone: write `query` in English, or \
    with names, codes and identifiers from the memory";

#[test]
fn a_question_in_another_language_without_a_certain_answer_says_what_to_write() {
    let notes = |notes: &'static [Note], language: &'static str| {
        let notes = notes.iter().enumerate();
        notes.map(move |(number, (title, text, _))| (format!("{language}-{number}"), *title, *text))
    };
    let root = root_of(notes(ENGLISH, "en"));
    let service = root.service();
    let suggestions = |question: &str| {
        let arguments = json!({ "query": question });
        let answer = call(&service, "query_memories", arguments).unwrap();
        let suggestions = answer.get("suggestions").cloned().unwrap_or(json!([]));
        (ids(&answer["results"]).is_empty(), suggestions)
    };
    let (mut empty, mut uncertain) = (0, 0);
    for question in FOREIGN {
        let (is_empty, suggestions) = suggestions(question);
        if is_empty {
            let list = "Use list_scopes to check available scopes";
            assert_eq!(suggestions, json!([IN_ENGLISH, list]), "{question}");
            empty += 1;
        } else {
            assert_eq!(suggestions, json!([IN_ENGLISH]), "{question}");
            uncertain += 1;
        }
    }
    assert!(
        empty > 0 && uncertain > 0,
        "{empty} empty, {uncertain} uncertain"
    );
    let tokens = crate::tokens::cost(IN_ENGLISH);
    assert!(tokens <= 35, "{tokens}");
    // In English, and for a person.
    for question in [
        "who may restart the billing service",
        "kubectl rollout restart deployment",
        "xyzzy",
        "idle database connection",
    ] {
        let (_, suggestions) = suggestions(question);
        assert!(!suggestions.to_string().contains("English"), "{question}");
    }
    let output = crate::cli::ack(root.path(), &["query", FOREIGN[0]]).ok();
    assert!(output.contains("write `QUERY` in English"), "{output}");
}

#[test]
fn a_number_or_code_that_no_memory_contains_is_named() {
    let memories = [
        (
            "Exit code 137 means out of memory",
            "The kernel killed the process.",
        ),
        (
            "Port 8080 is taken by the proxy",
            "Start the server on another port.",
        ),
        (
            "error[E0502]: borrowed as mutable",
            "Clone the value before the loop.",
        ),
        ("Postgres 16 upgrade", "Dump and restore, then reindex."),
    ];
    let root = root_of(
        memories
            .iter()
            .enumerate()
            .map(|(number, (title, text))| (number.to_string(), *title, *text)),
    );
    let service = root.service();
    let notes = |question: &str| {
        let arguments = json!({ "query": question });
        let answer = call(&service, "query_memories", arguments).unwrap();
        assert_ne!(ids(&answer["results"]), Vec::<String>::new(), "{question}");
        answer["notes"].to_string()
    };
    for (question, code) in [
        ("exit code 139", "139"),
        ("what uses port 9200", "9200"),
        ("error E0382 borrow", "e0382"),
    ] {
        let notes = notes(question);
        let message = format!("no certain match: no approved memory contains `{code}`");
        assert!(notes.contains(&message), "{question}: {notes}");
    }
    for question in [
        "exit code 137",
        "what uses port 8080",
        "error E0502 borrow",
        "postgres 17 upgrade",
        "postgres upgrade 2026",
        "the process exits with code 137 after 98765 ms when the kernel runs out of memory",
    ] {
        let notes = notes(question);
        assert!(!notes.contains("no certain match"), "{question}: {notes}");
    }
}
