//! Follows what is published in a bucket, for processes that answer questions.
//!
//! A request waits for the bucket only if the local state is older than `max_age`, and never for
//! long: it then gets the version that was fetched before, and the answer says so. After a failure,
//! the bucket is not asked for 1 s, then 2 s, up to a minute; all processes of a user share that
//! state. New versions are fetched in the background.

mod freshness;
mod repair;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ack_api::remote::{Freshness, RemoteSettings, WaitPolicy};
use jiff::Timestamp;
use parking_lot::{Condvar, Mutex};

use crate::BucketError;
use crate::address::Address;
use crate::cache::{self, Cache, State};
use crate::client::{Client, ReadOutcome};
use crate::fetch::{self, Progress};
use crate::format::{HEAD, Head};
use crate::mirror;

/// How long a request waits for the bucket if there is a local version.
const FOREGROUND_TIMEOUT: Duration = Duration::from_millis(1_500);
/// The same after a failure: the bucket is probably still unreachable.
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// How long a request waits for the first version.
const FIRST_VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request waits for files that replace damaged ones, once they are being fetched.
const REPAIR: Duration = Duration::from_secs(5);
/// How long reading a small object may take.
const SMALL_OBJECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for another process that fetches the same version.
const OTHER_PROCESS_TIMEOUT: Duration = Duration::from_mins(10);
/// The longest pause after a failure.
const MAX_BACKOFF: Duration = Duration::from_mins(1);

/// The published memories of a bucket, as far as they have been fetched.
#[derive(Debug)]
pub struct Remote {
    address: Address,
    settings: RemoteSettings,
    max_age: Duration,
    offline: Duration,
    cache: Cache,
    /// What is known about the bucket, if it cannot be saved.
    unsaved: Mutex<Option<State>>,
    /// Kept, with its connections and credentials, as long as it works.
    client: Mutex<Option<Client>>,
    work: Mutex<BackgroundWork>,
    fetched: Condvar,
}

#[derive(Debug, Default)]
struct BackgroundWork {
    /// When the running work began.
    started_at: Option<Instant>,
    progress: Progress,
    /// The version whose files exist in full length.
    whole: Option<PathBuf>,
    /// The version whose files were compared with the published digests and match.
    intact: Option<PathBuf>,
}

impl Remote {
    /// The memories published at an address, kept in the folder of a scope. Nothing is contacted
    /// yet.
    pub fn new(scope: &Path, address: &str, settings: RemoteSettings) -> Result<Self, BucketError> {
        settings.check()?;
        let address: Address = address.parse()?;
        Ok(Self {
            max_age: settings.max_age()?,
            offline: settings.offline()?,
            cache: Cache::new(scope, &address),
            address,
            settings,
            unsaved: Mutex::default(),
            client: Mutex::default(),
            work: Mutex::default(),
            fetched: Condvar::new(),
        })
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The bucket and the version that is served, for display.
    pub fn title(&self) -> String {
        match self.number() {
            0 => self.address.to_string(),
            number => format!("{}, version {number}", self.address),
        }
    }

    /// The number of the version that is served; 0 if there is none.
    pub fn number(&self) -> u64 {
        self.cache.version().map_or(0, |version| version.version)
    }

    /// The database of the version that is served, whether or not it exists.
    pub fn database(&self) -> PathBuf {
        mirror::database_path(&self.cache.current())
    }

    /// The folder of the table of the version that is served. Each version has its own.
    pub fn table_folder(&self) -> PathBuf {
        let current = self.cache.current();
        mirror::table_folder(&self.cache.installed().unwrap_or(current))
    }

    /// Brings the local memories up to date, as far as that is possible without a long wait.
    pub fn prepare(self: &Arc<Self>, wait_policy: WaitPolicy) -> Freshness {
        if wait_policy == WaitPolicy::None {
            return self.freshness();
        }
        self.restore_records();
        let freshness = self.freshness();
        match freshness {
            Freshness::Current => {
                if self.is_due(self.max_age * 3 / 4) {
                    self.start_check();
                }
                Freshness::Current
            }
            Freshness::Stale { .. } | Freshness::Cold { .. } if self.is_backing_off() => freshness,
            Freshness::Stale { .. } => {
                let wait_policy = self.foreground();
                let installed = self.cache.installed();
                let is_damaged = installed.is_some_and(|folder| !self.is_complete(&folder));
                self.wait(wait_policy, if is_damaged { REPAIR } else { wait_policy });
                self.freshness()
            }
            Freshness::Cold { .. } => {
                self.wait(FIRST_VERSION_TIMEOUT, FIRST_VERSION_TIMEOUT);
                self.freshness()
            }
        }
    }

    /// Begins to ask the bucket in the background, unless the local version is current.
    pub fn begin(self: &Arc<Self>) {
        let is_current = self.freshness() == Freshness::Current;
        if !self.is_backing_off() && (!is_current || self.is_due(self.max_age * 3 / 4)) {
            self.start_check();
        }
    }

    /// How long a request may wait. Once the pauses are long, requests wait longer again, so that a
    /// bucket that is only slow is reached.
    fn foreground(&self) -> Duration {
        let failures = self.state().failures;
        if failures == 0 || pause(failures) == MAX_BACKOFF {
            FOREGROUND_TIMEOUT
        } else {
            AFTER_FAILURE
        }
    }

    /// Asks the bucket and fetches what is new, on this thread.
    pub fn refresh(&self, progress: &mut dyn FnMut(Progress)) -> Result<(), BucketError> {
        let kept = self.client.lock().clone();
        let result = kept
            .map_or_else(|| Client::new(&self.address, &self.settings, SMALL_OBJECT_TIMEOUT), Ok)
            .and_then(|client| self.check_bucket(&client, progress).map(|()| client));
        *self.client.lock() = result.as_ref().ok().cloned();
        result.map(drop).inspect_err(|error| self.record_failure(error))
    }

    /// Whether all files of a version exist in full length, which is checked once per process, and
    /// none was found damaged.
    fn is_complete(&self, folder: &Path) -> bool {
        if self.work.lock().whole.as_deref() == Some(folder) {
            return !cache::is_damaged(folder);
        }
        let is_whole = cache::is_whole(folder);
        if is_whole {
            self.work.lock().whole = Some(folder.to_owned());
        }
        is_whole
    }

    /// Whether the bucket failed recently and is not asked for a while.
    fn is_backing_off(&self) -> bool {
        let state = self.state();
        state.failures > 0 && age(state.failed_at).is_some_and(|age| age < pause(state.failures))
    }

    fn is_due(&self, after: Duration) -> bool {
        age(self.state().asked_at).is_none_or(|age| age > after)
    }

    /// Starts to ask the bucket, unless that is running already.
    fn start_check(self: &Arc<Self>) {
        let mut work = self.work.lock();
        if work.started_at.is_some() {
            return;
        }
        work.started_at = Some(Instant::now());
        work.progress = Progress::default();
        drop(work);
        let remote = Arc::clone(self);
        let run = move || {
            let _ = remote.refresh(&mut |progress| remote.work.lock().progress = progress);
            remote.work.lock().started_at = None;
            remote.fetched.notify_all();
        };
        let started = std::thread::Builder::new().name("bucket-fetch".to_owned()).spawn(run);
        if started.is_err() {
            self.work.lock().started_at = None;
        }
    }

    /// Waits until the bucket is asked, for at most `timeout` after the check began, or `fetching`
    /// once files are being fetched.
    fn wait(self: &Arc<Self>, timeout: Duration, fetching: Duration) {
        self.start_check();
        let mut work = self.work.lock();
        while let Some(began) = work.started_at {
            let limit = if work.progress.total == 0 { timeout } else { fetching };
            let remaining = limit.saturating_sub(began.elapsed());
            if remaining.is_zero() {
                // It may still answer. If this process ends first, the next one need not wait
                // again.
                if work.progress.total == 0 {
                    drop(work);
                    self.record_failure(&BucketError::Timeout {
                        address: self.address.to_string(),
                        waited: timeout,
                    });
                }
                break;
            }
            self.fetched.wait_for(&mut work, remaining);
        }
    }

    fn check_bucket(
        &self,
        client: &Client,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), BucketError> {
        let before = self.state();
        let known = before.head.as_ref().and(before.tag.clone());
        let (head, tag) = match (client.read(HEAD, known)?, before.head) {
            (ReadOutcome::Found(bytes, state), _) => {
                (fetch::parse_head(client, &bytes)?, state.e_tag)
            }
            (ReadOutcome::Unchanged, Some(head)) => (head, before.tag),
            (ReadOutcome::Unchanged | ReadOutcome::Missing, _) => {
                return Err(BucketError::NothingPublished { address: self.address.to_string() });
            }
        };
        if let Some(known) = self.cache.version()
            && head.version < known.version
        {
            return Err(self.cache.not_successor(&known, head.version, "it is older"));
        }
        if let Err(error) = self.ensure_served(client, &head, progress) {
            if error.is_about_disk() {
                self.withhold(client, &head);
            }
            return Err(error);
        }
        self.cache.clean_if_old();
        // If it cannot be saved, this process knows.
        let _ = self.save_state(&State {
            address: self.address.to_string(),
            head: Some(head),
            tag,
            asked_at: now(),
            ..State::default()
        });
        Ok(())
    }

    /// Saves which version comes: requests that wait report what is being fetched.
    fn announce(&self, head: &Head) -> Result<(), BucketError> {
        let mut coming = self.state();
        if coming.head.as_ref() != Some(head) {
            coming.head = Some(head.clone());
            coming.is_withheld = false;
        }
        coming.tag = None;
        self.save_state(&coming)
    }

    /// Ensures that the version that a head names is served.
    fn ensure_served(
        &self,
        client: &Client,
        head: &Head,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), BucketError> {
        let name = cache::version_name(head);
        let installed = || self.cache.installed().filter(|folder| cache::is_of(folder, &name));
        if installed().is_none() {
            self.announce(head)?;
        }
        let is_missing = || installed().is_none_or(|folder| !cache::is_whole(&folder));
        let lock = self.cache.wait_for_lock(OTHER_PROCESS_TIMEOUT, is_missing)?;
        // Another process may have fetched it in the meantime.
        let Some(_lock) = lock.filter(|_| is_missing()) else {
            return Ok(());
        };
        let version = fetch::fetch_version(client, head)?;
        // A bucket that was set back, by accident or on purpose, would serve memories again that
        // were withdrawn.
        if let Some(known) = self.cache.version()
            && let Some(problem) = version.contradiction(&known)
        {
            return Err(self.cache.not_successor(&known, version.version, &problem));
        }
        fetch::install(client, &self.cache, head, &version, progress)?;
        Ok(())
    }
}

/// How long a bucket is not asked after this many failures in a row.
fn pause(failures: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MAX_BACKOFF)
}

fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

/// How long ago a moment was. `None` if it is in the future: the clock was ahead when it was saved,
/// so its age is unknown.
fn age(moment: i64) -> Option<Duration> {
    u64::try_from(now().saturating_sub(moment)).ok().map(Duration::from_millis)
}
