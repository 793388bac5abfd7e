//! The last query at this terminal, for `get 1` and `query --next`. It is stored in the user's
//! cache folder, readable only by the user and never next to a store, and expires after a day.

use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;

use ack_api::{Also, QueryRequest};
use jiff::Timestamp;
use nix::unistd::ttyname;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use ack_service::config::Config;
use ack_sys::{files, text_file};

const EXPIRY_SECONDS: i64 = 24 * 3_600;
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LastQuery {
    /// In seconds since 1970.
    pub at: i64,
    pub request: QueryRequest,
    pub long: bool,
    pub next: Option<String>,
    /// The results shown on all pages so far.
    pub hits: Vec<Also>,
}

/// Where the queries of this terminal with this root are stored.
#[derive(Debug)]
pub struct LastQueryStore {
    path: PathBuf,
}

impl LastQueryStore {
    /// The place for this terminal; `None` without a terminal or a home folder.
    pub fn of(config: &Config) -> Option<Self> {
        // The terminal of this command, even if its output goes elsewhere.
        let streams: [&dyn AsFd; 3] = [&std::io::stdout(), &std::io::stderr(), &std::io::stdin()];
        let terminal = streams.into_iter().find_map(|stream| ttyname(stream.as_fd()).ok())?;
        let folders = directories::ProjectDirs::from("", "", "ack-memory")?;
        let folder = folders.cache_dir().join("last-query");
        let root = config.db.as_ref().unwrap_or(&config.root);
        let key = format!("{}\n{}", root.value.display(), terminal.display());
        // Do not write into a root that contains the cache folder.
        (!folder.starts_with(&root.value))
            .then(|| Self { path: folder.join(format!("{:016x}.json", xxh3_64(key.as_bytes()))) })
    }

    pub fn last(&self, now: Timestamp) -> Option<LastQuery> {
        let content =
            files::read(&self.path, MAX_BYTES).ok().filter(|_| !self.path.is_symlink())?;
        let recall: LastQuery = serde_json::from_slice(&content).ok()?;
        (0..EXPIRY_SECONDS).contains(&(now.as_second() - recall.at)).then_some(recall)
    }

    /// Stores a query and removes expired ones. Returns whether it was stored.
    pub fn keep(&self, recall: &LastQuery) -> bool {
        let folder = self.path.parent().unwrap_or(&self.path);
        let text = serde_json::to_string(recall).unwrap_or_default();
        let is_kept = files::make_private(folder)
            .and_then(|()| text_file::replace(&self.path, &text))
            .is_ok();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let changed = changed.ok().and_then(|time| Timestamp::try_from(time).ok());
            if changed.is_some_and(|changed| recall.at - changed.as_second() > EXPIRY_SECONDS) {
                let _ = fs::remove_file(entry.path());
            }
        }
        is_kept
    }
}
