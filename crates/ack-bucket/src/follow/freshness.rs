//! How up to date the local version is, and what is known about the bucket.
//!
//! What is known is kept in a file that all processes share. If it cannot be written, this process
//! keeps it in memory, so that its answers are correct all the same.

use ack_api::Diagnostic as _;
use ack_api::hint::OwnNames;
use ack_api::remote::Freshness;
use jiff::Timestamp;

use super::{Remote, age, now};
use crate::BucketError;
use crate::cache::{self, State};
use crate::client::Client;
use crate::fetch;
use crate::format::{Head, Version};
use crate::mirror;

/// How many versions are read to find out what was withdrawn.
const MAX_VERSIONS_READ: usize = 32;

impl Remote {
    pub(super) fn state(&self) -> State {
        let kept = self.cache.state();
        let changed = |state: &State| state.asked_at.max(state.failed_at);
        let unsaved = self.unsaved.lock();
        // Another process may be able to write it.
        match unsaved.as_ref() {
            Some(unsaved) if changed(unsaved) >= changed(&kept) => unsaved.clone(),
            _ => kept,
        }
    }

    pub(super) fn save_state(&self, state: &State) -> Result<(), BucketError> {
        let saved = self.cache.save_state(state);
        *self.unsaved.lock() = saved.is_err().then(|| state.clone());
        saved
    }

    /// After a version could not be kept on this machine: if memories were withdrawn since the
    /// local version, that one is not served any more.
    pub(super) fn withhold(&self, client: &Client, head: &Head) {
        let Some(served) = self.cache.version() else {
            return;
        };
        let mut state = self.state();
        let is_known = state.is_withheld && state.head.as_ref() == Some(head);
        state.is_withheld = is_known || withdraws_since(client, head, &served);
        state.head = Some(head.clone());
        state.tag = None;
        let _ = self.save_state(&state);
    }

    pub(super) fn record_failure(&self, error: &BucketError) {
        let mut state = self.state();
        state.address = self.address.to_string();
        state.failed_at = now();
        if age(state.asked_at).is_none() {
            // The clock was ahead then. The age of the copy counts from now on.
            let max_age = i64::try_from(self.max_age.as_millis()).unwrap_or(i64::MAX);
            state.asked_at = state.failed_at.saturating_sub(max_age.saturating_add(1));
            state.is_time_unknown = true;
        }
        state.failures = state.failures.saturating_add(1);
        let again = if error.is_transient() { "; it is tried again by itself" } else { "" };
        let advice = error.hint_for(&OwnNames::Anyone).unwrap_or_default();
        state.problem = Some(format!("{}; {advice}{again}", error.line()));
        state.is_lasting = !error.is_transient();
        let _ = self.save_state(&state);
    }

    pub(super) fn freshness(&self) -> Freshness {
        let state = self.state();
        let age = age(state.asked_at);
        let asked_at = Timestamp::from_millisecond(state.asked_at)
            .ok()
            .filter(|_| state.asked_at > 0 && age.is_some() && !state.is_time_unknown);
        let Some(folder) =
            self.cache.installed().filter(|folder| mirror::database_path(folder).is_file())
        else {
            return self.cold(&state, "this machine has no copy of it yet");
        };
        if age.is_some_and(|age| age > self.offline.max(self.max_age)) {
            let problem = "the copy on this machine is older than `offline` of [remote] allows";
            return self.cold(&state, problem);
        }
        let head = state.head.as_ref();
        let is_newest = head.is_some_and(|it| cache::is_of(&folder, &cache::version_name(it)));
        if let Some(head) = head.filter(|_| state.is_withheld && !is_newest) {
            let problem = format!(
                "version {} withdraws memories and cannot be kept on this machine, so version {} \
                 is not served",
                head.version,
                self.number()
            );
            return self.cold(&state, &problem);
        }
        if !self.is_complete(&folder) {
            let damaged = "a file of it on this machine is damaged";
            let reason = match self.progress_or_problem(&state) {
                Some(trouble) => format!("{damaged}: {trouble}"),
                None => format!("{damaged} and will be fetched again"),
            };
            return Freshness::Stale { asked_at, reason };
        }
        if is_newest && age.is_some_and(|age| age <= self.max_age) {
            return Freshness::Current;
        }
        Freshness::Stale { asked_at, reason: self.reason(&state) }
    }

    /// Why the newest version is not available.
    fn reason(&self, state: &State) -> String {
        self.progress_or_problem(state).unwrap_or_else(|| {
            let served = match self.number() {
                0 => String::new(),
                number => format!("; this is version {number}"),
            };
            format!("{} was not asked (`--offline` and hooks never ask){served}", self.address)
        })
    }

    /// How far the version that is being fetched is, or why the bucket could not be asked.
    fn progress_or_problem(&self, state: &State) -> Option<String> {
        let work = self.work.lock();
        if work.started_at.is_some() && work.progress.total > 0 {
            return Some(format!(
                "version {} is being fetched: {} of {} MB",
                state.head.as_ref().map_or(0, |head| head.version),
                megabytes(work.progress.fetched),
                megabytes(work.progress.total)
            ));
        }
        state.problem.clone().filter(|_| state.failed_at > state.asked_at)
    }

    /// The state without memories that may be served.
    fn cold(&self, state: &State, problem: &str) -> Freshness {
        Freshness::Cold {
            reason: format!("{problem}: {}", self.reason(state)),
            is_lasting: state.is_lasting && state.failed_at > state.asked_at,
        }
    }
}

/// A number of bytes in megabytes, rounded down, with one digit after the point.
fn megabytes(bytes: u64) -> String {
    format!("{}.{}", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

/// Whether memories were withdrawn since a version, or may have been.
fn withdraws_since(client: &Client, head: &Head, served: &Version) -> bool {
    let mut next = fetch::fetch_version(client, head);
    for _ in 0..MAX_VERSIONS_READ {
        let Ok(version) = next else { return true };
        if version.version <= served.version {
            return version != *served;
        }
        let holds_more_back = version.held_back.iter().any(|mark| !served.holds_back(&mark.id));
        // A version that restores another one may lack what came after it.
        if version.withdrawn > 0 || version.restores.is_some() || holds_more_back {
            return true;
        }
        let Some(before) = version.before else {
            return true;
        };
        next = client.get(&before).and_then(|bytes| fetch::parse_version(client, &bytes));
    }
    true
}
