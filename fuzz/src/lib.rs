//! A small scope root that the targets ask: two shared scopes and a private one, with memories of
//! every status, successors, near-duplicates and several scripts. Built by `import`, so that
//! nothing here depends on the layout of a store.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ack_memory::Config;
use ack_memory::internal::{Inputs, Setting};
use ack_memory::internal::import::{self, ImportOptions};
use ack_memory::Service;
use serde_json::{Value, json};

/// Part of every text that no answer may show.
pub const SECRET: &str = "zqxunspeakable";
/// The scope that is read only when it is named.
pub const PRIVATE: &str = "diary";

const SUBJECTS: [&str; 10] = [
    "connection pool of the database",
    "`E0382` borrow of moved value",
    "flex layout in Safari 17.4",
    "データベースの接続が切れる",
    "TLS certificate chain, ERR_CERT_AUTHORITY_INVALID",
    "src/query/retrieve.rs::Fusion",
    "cron job at 02:30 during the DST change",
    "feature flag NEW_CHECKOUT=1",
    "النسخ الاحتياطي للخادم",
    "naïve café résumé e\u{301}",
];
const STATUSES: [&str; 5] = ["approved", "promoted", "staging", "rejected", "approved"];

/// A folder that is removed with the process.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| tempfile::Builder::new().prefix("ack-fuzz-").tempdir().unwrap())
        .path()
}

/// The settings of a root, for a project that no scope claims.
pub fn inputs(root: PathBuf) -> Inputs {
    Inputs {
        project: Some(Setting::flag("--project", root.join("elsewhere"))),
        working_directory: root.clone(),
        root: Some(Setting::flag("--root", root)),
        ..Inputs::default()
    }
}

/// The moment at which everything here happens.
pub fn now() -> jiff::Timestamp {
    "2026-11-21T00:00:00Z".parse().unwrap()
}

/// The service over the sample root.
pub fn service() -> &'static Service {
    static SERVICE: OnceLock<&'static Service> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let root = folder().join("root");
        for (scope, offset) in [("team", 0), ("side-project", 40), (PRIVATE, 80)] {
            let folder = root.join("scopes").join(scope);
            std::fs::create_dir_all(&folder).unwrap();
            let lines: Vec<String> = (offset..offset + 40).map(|number| memory(number, scope).to_string()).collect();
            let input = lines.join("\n");
            import::run(
                folder.join("memory.db"),
                &mut input.as_bytes(),
                ImportOptions::default(),
                now(),
            )
            .unwrap();
        }
        std::fs::write(root.join("scopes").join(PRIVATE).join("scope.toml"), "visibility = \"private\"\n").unwrap();
        Service::new(Config::load(inputs(root)).unwrap()).leak()
    })
}

fn memory(number: usize, scope: &str) -> Value {
    let (subject, status) = (SUBJECTS[number % 10], STATUSES[number / 3 % 5]);
    let hidden = if status == "rejected" || scope == PRIVATE { SECRET } else { "" };
    // Some are the same learning noted twice.
    let tag = ["rust", "css", "ops"][number % 3];
    let shown_number = if number % 7 == 0 { 7 } else { number };
    json!({
        "id": id(number, status, scope), "title": format!("{subject} fails, case {shown_number} {hidden}"), "status": status,
        "facts": [format!("seen {shown_number} times {hidden}"), format!("{subject} again")],
        "tags": [tag, "known"], "files": [format!("src/part{}/mod.rs", number % 5)],
        "type": if number % 4 == 0 { "decision" } else { "bugfix" }, "project": format!("project-{}", number % 3),
        "session": format!("s{}", number % 6), "created_at": format!("2026-{:02}-{:02}T12:00:00Z", 1 + number % 11, 1 + number % 28),
        "narrative": format!("The {subject} came back after the release. {hidden} ").repeat(1 + number % 4),
        "superseded_by": (number % 9 == 1).then(|| id(number + 1, STATUSES[(number + 1) / 3 % 5], scope)),
    })
}

fn id(number: usize, status: &str, scope: &str) -> String {
    format!(
        "{}{number}",
        if status == "rejected" {
            "rejected-"
        } else if scope == PRIVATE {
            "private-"
        } else {
            "m"
        }
    )
}
