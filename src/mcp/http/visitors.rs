//! Tracks the open connections and decides which one to close when another needs its place.
//!
//! A connection belongs to a stranger until one of its requests passes the gate and shows the
//! token. Strangers have limits: in total, per address, and in time. The oldest stranger makes room
//! for the next one. So clients without a token cannot keep out clients that have one. If every
//! place is taken, a stranger is closed first, then the connection that has been idle longest, then
//! the one whose request has been waited for longest.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::sleep;

/// How often to look for an idle connection while every place is taken.
const GLANCE: Duration = Duration::from_millis(20);

/// How many connections are allowed.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// In total.
    pub all: usize,
    /// Of strangers.
    pub strangers: usize,
    /// Of strangers from one address.
    pub of_one_address: usize,
    /// How long a connection may remain a stranger.
    pub patience: Duration,
}

/// The open connections.
#[derive(Debug)]
pub struct Visitors {
    places: Places,
    open: Mutex<Open>,
    /// Notified when a connection has closed.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// By number, so the oldest comes first.
    visitors: BTreeMap<u64, Arc<Visitor>>,
}

/// One connection.
#[derive(Debug)]
pub struct Visitor {
    address: IpAddr,
    known: AtomicBool,
    state: Mutex<State>,
    dismissed: Notify,
}

#[derive(Debug)]
struct State {
    /// Whether a request is being answered.
    asked: bool,
    /// Since when the rest of its request is waited for.
    reading: Option<Instant>,
    /// Whether an answer is being written.
    writing: bool,
    /// When it was last busy.
    last: Instant,
}

impl Visitors {
    /// No connections yet.
    pub fn new(places: Places) -> Arc<Self> {
        Arc::new(Self {
            places,
            open: Mutex::default(),
            freed: Notify::new(),
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place and takes it.
    pub async fn welcome(self: &Arc<Self>, address: IpAddr) -> Guest {
        loop {
            if let Some(guest) = self.admit(address) {
                return guest;
            }
            tokio::select! {
                () = self.freed.notified() => {}
                () = sleep(GLANCE) => {}
            }
        }
    }

    /// Takes a place, and closes another connection if necessary; `None` if every connection is
    /// busy.
    fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Guest> {
        let mut open = self.open();
        let strangers = || {
            open.visitors
                .iter()
                .filter(|(_, visitor)| !visitor.is_known())
        };
        let oldest = strangers().map(|(number, _)| *number).next();
        let neighbours = || strangers().filter(|(_, visitor)| visitor.address == address);
        let leaves = if neighbours().count() >= self.places.of_one_address {
            neighbours().map(|(number, _)| *number).next()
        } else if strangers().count() >= self.places.strangers {
            oldest
        } else if open.visitors.len() >= self.places.all {
            let idle = open
                .visitors
                .iter()
                .filter_map(|(number, visitor)| Some((visitor.idle_since()?, *number)));
            let incomplete = open
                .visitors
                .iter()
                .filter_map(|(number, visitor)| Some((visitor.state().reading?, *number)));
            let longest = idle.min().or_else(|| incomplete.min());
            Some(oldest.or_else(|| longest.map(|(_, number)| number))?)
        } else {
            None
        };
        if let Some(visitor) = leaves.and_then(|number| open.visitors.remove(&number)) {
            visitor.dismissed.notify_one();
        }
        let visitor = Arc::new(Visitor {
            address,
            known: AtomicBool::new(false),
            state: Mutex::new(State {
                asked: false,
                reading: None,
                writing: false,
                last: Instant::now(),
            }),
            dismissed: Notify::new(),
        });
        open.next += 1;
        let number = open.next;
        open.visitors.insert(number, Arc::clone(&visitor));
        Some(Guest {
            visitors: Arc::clone(self),
            visitor,
            number,
        })
    }
}

impl Visitor {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of the client.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Marks that it has shown the token.
    pub fn make_known(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }

    /// When it became idle; `None` while it is busy.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (!state.asked && !state.writing).then_some(state.last)
    }

    /// Sets whether an answer is being written to it.
    pub fn set_writing(&self, writing: bool) {
        let mut state = self.state();
        state.writing = writing;
        state.last = Instant::now();
    }
}

/// The place of one connection. It is free again when this is dropped.
#[derive(Debug)]
pub struct Guest {
    visitors: Arc<Visitors>,
    /// The connection that has the place.
    pub visitor: Arc<Visitor>,
    number: u64,
}

impl Guest {
    /// Waits until the connection must be closed: another one needs its place, or it has been a
    /// stranger for too long.
    pub async fn leave(&self) {
        let too_long = async {
            sleep(self.visitors.places.patience).await;
            if self.visitor.is_known() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.visitor.dismissed.notified() => {}
            () = too_long => {}
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.visitors.open().visitors.remove(&self.number);
        self.visitors.freed.notify_one();
    }
}

/// Marks that the body of a visitor's request is waited for, until this is dropped.
#[derive(Debug)]
pub struct Reading<'a>(&'a Visitor);

impl<'a> Reading<'a> {
    /// Marks the visitor.
    pub fn new(visitor: &'a Visitor) -> Self {
        visitor.state().reading = Some(Instant::now());
        Self(visitor)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.state().reading = None;
    }
}

/// Marks a visitor as being answered until this is dropped.
#[derive(Debug)]
pub struct Asking<'a>(&'a Visitor);

impl<'a> Asking<'a> {
    /// Marks the visitor.
    pub fn new(visitor: &'a Visitor) -> Self {
        visitor.state().asked = true;
        Self(visitor)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        (state.asked, state.last) = (false, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            all: 6,
            strangers: 4,
            of_one_address: 2,
            patience: Duration::from_millis(100),
        }
    }

    fn from(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    /// Whether the connection must be closed.
    async fn has_to_go(guest: &Guest) -> bool {
        tokio::time::timeout(Duration::from_millis(5), guest.visitor.dismissed.notified())
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn the_oldest_stranger_makes_room_first_of_its_own_address() {
        let visitors = Visitors::new(places());
        let mut guests = Vec::new();
        for address in [1, 1, 2, 3] {
            guests.push(visitors.welcome(from(address)).await);
        }
        guests.push(visitors.welcome(from(1)).await);
        assert!(
            has_to_go(&guests[0]).await,
            "the older one of the same address"
        );
        guests.push(visitors.welcome(from(4)).await);
        assert!(has_to_go(&guests[1]).await, "the oldest of all");
        for guest in &guests[2..] {
            assert!(!has_to_go(guest).await);
        }
    }

    #[tokio::test]
    async fn who_showed_a_token_stays_before_strangers_and_while_it_is_answered() {
        let visitors = Visitors::new(places());
        let mut known = Vec::new();
        for _ in 0..5 {
            known.push(visitors.welcome(from(1)).await);
            known.last().unwrap().visitor.make_known();
        }
        let stranger = visitors.welcome(from(2)).await;
        known.push(visitors.welcome(from(1)).await);
        known.last().unwrap().visitor.make_known();
        assert!(has_to_go(&stranger).await);
        // Among those that showed a token, the one that has been idle longest is closed.
        let first = Asking::new(&known[0].visitor);
        known[1].visitor.set_writing(true);
        let next = visitors.welcome(from(3)).await;
        assert!(has_to_go(&known[2]).await);
        for guest in [&known[0], &known[1], &known[3], &next] {
            assert!(!has_to_go(guest).await);
        }
        // While every connection is being answered, the next one waits.
        next.visitor.make_known();
        let busy: Vec<Asking<'_>> = [&known[3], &known[4], &known[5], &next]
            .map(|guest| Asking::new(&guest.visitor))
            .into();
        assert!(visitors.admit(from(4)).is_none());
        // One whose request is not complete makes room.
        let reading = [&known[4], &known[3]].map(|guest| Reading::new(&guest.visitor));
        let more = visitors.admit(from(4)).unwrap();
        more.visitor.make_known();
        let busy_too = Asking::new(&more.visitor);
        assert!(has_to_go(&known[4]).await && !has_to_go(&known[3]).await);
        drop(reading);
        assert!(visitors.admit(from(4)).is_none());
        drop(first);
        assert!(visitors.admit(from(4)).is_some());
        drop((busy, busy_too));
    }

    #[tokio::test]
    async fn a_stranger_goes_after_a_while() {
        let visitors = Visitors::new(places());
        let (stranger, known) = (
            visitors.welcome(from(1)).await,
            visitors.welcome(from(1)).await,
        );
        known.visitor.make_known();
        let patience = Duration::from_secs(10);
        tokio::time::timeout(patience, stranger.leave())
            .await
            .unwrap();
        assert!(
            tokio::time::timeout(places().patience * 2, known.leave())
                .await
                .is_err()
        );
        drop((stranger, known));
        assert!(visitors.open().visitors.is_empty());
    }
}
