//! The decision log and its seal on disk. They are read again whenever they may have changed.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ack_sys::{disk, files};
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::seal::{DamagedSeal, Seal, seal_path};
use super::signers::Signers;
use super::{Decisions, LogProblem, lines_of, version_of};
use crate::quick_state::QuickState;
use crate::{StoreError, StoreProblem};

pub const MAX_LOG_BYTES: u64 = 256 << 20;

const MAX_SIGNERS_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub struct DecisionLog {
    path: PathBuf,
    seal: PathBuf,
    signers: Option<SignersFile>,
    loaded: Mutex<Option<LoadedLog>>,
}

/// A list of signers. Only decisions count that one of them signed.
#[derive(Debug)]
pub struct SignersFile {
    pub path: PathBuf,
    /// The name of the scope, which they sign too.
    pub scope: String,
}

#[derive(Debug)]
struct LoadedLog {
    states: Option<[FileState; 3]>,
    version: u64,
    seal_version: Option<u64>,
    signers: Option<Arc<Signers>>,
    decisions: Result<Arc<Decisions>, LogProblem>,
}

/// The metadata of a file; `None` if it is missing.
type FileState = Option<QuickState>;

/// A link that leads nowhere is an error: what it led to may have been there.
fn state_of(path: &Path) -> io::Result<FileState> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(QuickState::of(&metadata))),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Err(_) if path.is_symlink() => {
            Err(io::Error::new(ErrorKind::NotFound, "it is a link that leads nowhere"))
        }
        Err(_) => Ok(None),
    }
}

fn is_settled(state: Option<&QuickState>, path: &Path) -> bool {
    state.is_none_or(|state| state.is_settled(SystemTime::now()) && disk::is_local(path))
}

impl DecisionLog {
    pub fn new(path: PathBuf, signers: Option<SignersFile>) -> Self {
        Self { seal: seal_path(&path), path, signers, loaded: Mutex::default() }
    }

    pub const fn has_signers(&self) -> bool {
        self.signers.is_some()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The current decisions; none if there is no file. If it cannot be read, or may have lost a
    /// rejection, no status of the store is certain.
    pub fn read(&self) -> Result<Arc<Decisions>, StoreError> {
        let mut known = self.loaded.lock();
        let states = [
            state_of(&self.path).map_err(|error| self.unreadable(error))?,
            state_of(&self.seal).map_err(|error| match error.kind() {
                ErrorKind::NotFound => self.lost(LogProblem::Seal),
                _ => StoreProblem::Decisions(error).at(&self.seal),
            })?,
            match &self.signers {
                Some(signers) => state_of(&signers.path)
                    .map_err(|error| StoreProblem::Signers(error).at(&signers.path))?,
                None => None,
            },
        ];
        let [log, seal, signers] = states.each_ref().map(Option::as_ref);
        if log.is_none() && seal.is_none() && self.signers.is_none() {
            *known = None;
            return Ok(Arc::default());
        }
        if let Some(known) = known.as_ref()
            && known.states.as_ref() == Some(&states)
        {
            return known.decisions.clone().map_err(|it| self.lost(it));
        }
        let are_settled = is_settled(log, &self.path)
            && is_settled(seal, &self.seal)
            && self.signers.as_ref().is_none_or(|file| is_settled(signers, &file.path));
        // The last seal of a writer follows its log, and an older seal fits a newer log. So the seal
        // is read first.
        let sealed = Seal::text(&self.seal)
            .map_err(|error| StoreProblem::Decisions(error).at(&self.seal))?;
        let seal_version = sealed.as_deref().map(xxh3_64);
        let parse_seal = || {
            let seal = sealed.as_deref().map(Seal::parse).transpose();
            seal.map_err(|DamagedSeal| self.lost(LogProblem::Seal))
        };
        let content = if log.is_some() {
            files::read(&self.path, MAX_LOG_BYTES).map_err(|error| self.unreadable(error))?
        } else if parse_seal()?.is_some_and(|seal| !seal.fits_nothing()) {
            return Err(self.lost(LogProblem::Gone));
        } else {
            Vec::new()
        };
        let signers = self.read_signers(known.as_ref().and_then(|known| known.signers.as_ref()))?;
        // Equal content need not be parsed again.
        let version = version_of(&content, signers.as_deref());
        let is_same =
            |known: &LoadedLog| known.version == version && known.seal_version == seal_version;
        let decisions = match known.take().filter(is_same) {
            Some(known) => known.decisions,
            None => match Decisions::read(&content, parse_seal()?.as_ref(), signers.as_deref()) {
                Err(_) if is_not_a_log(&content) => {
                    let reason = "it holds no line of a decision log, for instance because Git \
                                  LFS or another encoding replaced its content";
                    return Err(self.unreadable(io::Error::new(ErrorKind::InvalidData, reason)));
                }
                read => read.map(Arc::new),
            },
        };
        *known = Some(LoadedLog {
            states: Some(states).filter(|_| are_settled),
            version,
            seal_version,
            signers,
            decisions: decisions.clone(),
        });
        decisions.map_err(|problem| self.lost(problem))
    }

    pub fn signers(&self) -> Result<Option<Arc<Signers>>, StoreError> {
        self.read_signers(None)
    }

    /// `known` is what was read before. It knows which signatures are valid.
    fn read_signers(
        &self,
        known: Option<&Arc<Signers>>,
    ) -> Result<Option<Arc<Signers>>, StoreError> {
        let Some(file) = &self.signers else { return Ok(None) };
        let content = files::read(&file.path, MAX_SIGNERS_BYTES);
        let content = content.map_err(|error| StoreProblem::Signers(error).at(&file.path))?;
        let signers = Signers::parse(&content, &file.scope);
        let known = known.filter(|known| known.version == signers.version);
        Ok(Some(known.map_or_else(|| Arc::new(signers), Arc::clone)))
    }

    fn unreadable(&self, source: io::Error) -> StoreError {
        StoreProblem::Decisions(source).at(&self.path)
    }

    fn lost(&self, problem: LogProblem) -> StoreError {
        StoreProblem::LostDecisions(problem).at(&self.path)
    }
}

/// Whether no line begins like one of a log, so that every rejection is lost.
fn is_not_a_log(content: &[u8]) -> bool {
    let begins_an_object = |line: &[u8]| {
        let rest = line.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'"' | b'}')))
    };
    let mut lines = lines_of(content).map(|(_, line)| line).peekable();
    lines.peek().is_some() && !lines.any(begins_an_object)
}
