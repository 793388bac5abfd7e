//! The faults that the server can inject.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::log::Request;

/// Selects requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultRule {
    /// None of them.
    Never,
    /// All of them.
    Always,
    /// This many from now on.
    Next(u32),
    /// The n-th from now on, the 2n-th, and so on.
    Every(u32),
}

/// Who may do what. The key's id is read from the `Authorization` header; the signature is not
/// verified. At Google, the token is the id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Access {
    /// Everybody may do everything, with or without a signature.
    #[default]
    Everybody,
    /// Every request must be signed with the key of this id.
    Key(String),
    /// Reading and listing need no signature; writing needs the key of this id. A request that is
    /// signed with another key is refused.
    PublicRead(String),
}

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is answered.
    Answer,
    /// It is answered after an additional delay.
    Delay(Duration),
    /// It is refused with this status and has no effect.
    Refuse(u16),
    /// Its body is cut and the connection is closed after this many bytes.
    Cut(u64),
    /// The connection is closed, and the request has no effect.
    Close,
    /// The request takes effect, and the connection is closed without an answer.
    LoseAnswer,
    /// It is never answered and has no effect.
    Hang,
}

pub(crate) type Decide = Arc<dyn Fn(&Request) -> Action + Send + Sync>;

/// A [`FaultRule`] with a counter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter {
    which: FaultRule,
    seen: u32,
}

impl From<FaultRule> for Counter {
    fn from(which: FaultRule) -> Self {
        Self { which, seen: 0 }
    }
}

impl Counter {
    /// Whether the current request is selected.
    pub(crate) fn fires(&mut self) -> bool {
        self.seen = self.seen.saturating_add(1);
        match self.which {
            FaultRule::Never => false,
            FaultRule::Always => true,
            FaultRule::Next(count) => self.seen <= count,
            FaultRule::Every(step) => step > 0 && self.seen.is_multiple_of(step),
        }
    }
}

/// All switches except freezing and the bandwidth.
pub(crate) struct Switches {
    pub(crate) delay: Duration,
    pub(crate) failures: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) cut: Option<u64>,
    pub(crate) deny_list: bool,
    pub(crate) ignore_conditions: bool,
    pub(crate) access: Access,
    pub(crate) page: usize,
    pub(crate) decide: Option<Decide>,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            failures: FaultRule::Never.into(),
            conflicts: FaultRule::Never.into(),
            cut: None,
            deny_list: false,
            ignore_conditions: false,
            access: Access::Everybody,
            page: 1000,
            decide: None,
        }
    }
}

/// The switches, which tests change while requests are running.
#[derive(Default)]
pub(crate) struct SwitchBoard(Mutex<Switches>);

impl SwitchBoard {
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Switches) -> T) -> T {
        change(&mut self.0.lock())
    }

    /// What happens to a request.
    pub(crate) fn decide(&self, request: &Request) -> Action {
        let decide = self.0.lock().decide.clone();
        decide.map_or(Action::Answer, |decide| decide(request))
    }
}

impl fmt::Debug for SwitchBoard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Board")
    }
}
