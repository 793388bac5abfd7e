//! The review desk at a terminal: on the full screen, or line by line.

mod card;
mod device;
mod draw;
mod input;
mod keys;
mod lines;
mod plain;
mod walk;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use ack_api::Diagnostic;
use parking_lot::Mutex;

use self::device::Device;
use self::keys::Key;
use self::walk::{Found, Walk, Wanted, Wish};
use super::unwritten;
use crate::cli::caller::Caller;
use crate::cli::command::SHELL;
use crate::cli::curate::report;
use crate::cli::error::CliError;
use crate::cli::output::write_plain;
use crate::cli::progress;
use crate::cli::{prompt, signals};
use ack_desk::background::{MAX_COMPARED_FIRST, find_approved, find_need, find_relations};
use ack_desk::curate::ReviewSession;
use ack_desk::{Desk, ReviewOutcome};

const UNWRITTEN: &str = "decisions of an earlier review were not written; the command for them is \
                         shown after you leave";
/// How often the size of the terminal is looked at, and whether something was found.
const TICK: Duration = Duration::from_millis(30);
/// Who goes through the cards faster does not look at what is near them.
const UNHURRIED: Duration = Duration::from_millis(60);

#[derive(Debug, Clone, Copy)]
pub struct TerminalView {
    /// Line by line, in place of the full screen.
    pub is_plain: bool,
    /// Whether decisions of an earlier review wait in a file.
    pub has_unwritten: bool,
}

pub fn run_terminal_desk(
    caller: Caller<'_>,
    mut desk: Desk,
    session: &ReviewSession,
    view: TerminalView,
) -> Result<(), CliError> {
    desk.shorten_ids();
    let desk = Arc::new(Mutex::new(desk));
    let term = std::env::var_os("TERM");
    let is_plain = view.is_plain || !Device::is_possible(term.as_ref().and_then(|it| it.to_str()));
    let show = if is_plain { plain::run } else { on_screen };
    let (wish, outcomes) = show(caller, &desk, session, view);
    for outcome in &outcomes {
        report(caller, outcome, false)?;
    }
    let mut desk = desk.lock();
    if wish == Wish::Keep && desk.unwritten() > 0 {
        let folders = unwritten::candidate_folders(caller.config);
        write_plain(&unwritten::save(&folders, &mut desk, session))?;
    } else if outcomes.is_empty() {
        write_plain("nothing was decided\n")?;
    }
    Ok(())
}

/// Shows the desk until the person leaves. The terminal is given back in every case.
fn on_screen(
    caller: Caller<'_>,
    desk: &Arc<Mutex<Desk>>,
    session: &ReviewSession,
    view: TerminalView,
) -> (Wish, Vec<ReviewOutcome>) {
    if !has_many(desk) {
        progress::while_reading(|| find_relations(desk));
    }
    prompt::begin_reading();
    let mut device = Device::open();
    let modes = device.modes();
    unwritten::save_at_exit(caller, desk, session, move || modes.lock().end());
    let mut walk = Walk::new(desk, session);
    if view.has_unwritten {
        walk.complain(UNWRITTEN);
    }
    let helper = Helper::start(desk);
    helper.catch_interrupt();
    let mut asked = None;
    loop {
        device.draw(|screen| draw::draw(&mut walk, screen));
        let wanted = walk.wanted();
        // What is shown for a second time is asked for again.
        asked = asked.filter(|_| asked == wanted);
        let is_due = wanted.is_some() && asked.is_none();
        let mut wish = Wish::Nothing;
        match next_event(&mut device, &helper, is_due) {
            Event::Pause => {
                asked = wanted;
                let _ = wanted.map(|wanted| helper.wanted.send(wanted));
            }
            Event::Key(Key::Suspend) => device.suspend(),
            Event::Key(Key::Quit) => Device::quit(),
            Event::Key(key) => {
                if key == Key::Interrupt {
                    helper.catch_interrupt();
                }
                wish = walk.press(&key);
            }
            Event::Found(found) => walk.learn(found),
            Event::Changed => walk.look_again(),
            Event::Resized => {}
        }
        match wish {
            Wish::Leave | Wish::Keep => return (wish, walk.outcomes),
            Wish::Edit(number) => {
                device.lend(|| walk.edit(number));
                helper.catch_interrupt();
            }
            Wish::Nothing => {}
        }
    }
}

enum Event {
    Key(Key),
    /// No key has come for a moment.
    Pause,
    Found(Found),
    /// The groups or the approved memories that may be out of date are known now.
    Changed,
    Resized,
}

fn next_event(device: &mut Device, helper: &Helper, is_pause_awaited: bool) -> Event {
    let began = Instant::now();
    loop {
        if let Ok(event) = helper.events.try_recv() {
            return event;
        }
        if device.is_resized() {
            return Event::Resized;
        }
        if let Some(key) = device.key(TICK) {
            return Event::Key(key);
        }
        if is_pause_awaited && began.elapsed() >= UNHURRIED {
            return Event::Pause;
        }
    }
}

/// Looks for what takes a while, on threads of its own.
struct Helper {
    wanted: Sender<Wanted>,
    events: Receiver<Event>,
    sender: Sender<Event>,
}

impl Helper {
    fn start(desk: &Arc<Mutex<Desk>>) -> Self {
        let (sender, events) = channel();
        let (wanted, wants) = channel();
        let (shared, changes) = (Arc::clone(desk), sender.clone());
        std::thread::spawn(move || {
            let changed = || drop(changes.send(Event::Changed));
            find_need(&shared, changed);
            find_approved(&shared, changed);
            if has_many(&shared) {
                // This takes long.
                find_relations(&shared);
                changed();
            }
        });
        let (desk, answers) = (Arc::clone(desk), sender.clone());
        std::thread::spawn(move || {
            while let Ok(wanted) = wants.recv() {
                // Only what is wanted last is still looked at.
                let latest = wants.try_iter().last().unwrap_or(wanted);
                let found = Found::search(&desk, latest);
                if found.is_some_and(|found| answers.send(Event::Found(found)).is_err()) {
                    return;
                }
            }
        });
        Self { wanted, events, sender }
    }

    /// Ctrl+C of a terminal that is not ours at that moment, or an interrupt of another program.
    fn catch_interrupt(&self) {
        let sender = self.sender.clone();
        signals::on_interrupt(move || drop(sender.send(Event::Key(Key::Interrupt))));
    }
}

/// Whether those that are much alike are found while the desk is already in use.
fn has_many(desk: &Mutex<Desk>) -> bool {
    desk.lock().waiting().len() > MAX_COMPARED_FIRST
}

pub fn problem(error: &dyn Diagnostic) -> String {
    let hint = error.hint_for(&SHELL).map(|hint| format!("hint: {hint}\n"));
    format!("{error}\n{}", hint.unwrap_or_default())
}
