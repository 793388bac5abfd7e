//! The review desk in a browser. Opens a browser if there is a display, otherwise prints the
//! address.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tokio::sync::Notify;

use super::unwritten;
use crate::cli::caller::Caller;
use crate::cli::command::command;
use crate::cli::connect;
use crate::cli::error::CliError;
use crate::cli::output::{write_err, write_plain};
use crate::cli::{prompt, signals};
use ack_desk::Desk;
use ack_desk::choice::count_text;
use ack_desk::curate::ReviewSession;
use ack_desk::web::{Curator, PageAccess, StopReason, listen};
use ack_service::config::Config;

/// Whether the user has a display on which a browser can open.
pub fn is_wanted() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_remote = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
    let has_display = cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    std::io::stdout().is_terminal() && has_display && !is_remote
}

/// Serves the page until the end. Choices that are not written then go to a file.
pub fn show(caller: Caller<'_>, desk: Desk, session: &ReviewSession) -> Result<(), CliError> {
    let io = CliError::io("serve the review page on", "127.0.0.1");
    let curator = Curator {
        actor: session.actor.clone(),
        clock: jiff::Timestamp::now,
        notice: unreviewed_elsewhere(caller.config),
        session_text: crate::hook::session_text,
    };
    let listener = listen(desk, curator).map_err(&io)?;
    let access = listener.access();
    let entrance = Arc::clone(&access);
    unwritten::save_at_exit(caller, &listener.desk(), session, move || entrance.close());
    let interrupt = Arc::new(Notify::new());
    let notify = Arc::clone(&interrupt);
    signals::on_interrupt(move || notify.notify_one());
    answer_lines(Arc::clone(&access));
    // Whoever reads it may interrupt and type at once.
    print_address(&access).map_err(&io)?;
    let ended = listener.serve(&interrupt);
    access.close();
    let (desk, ended) = ended.map_err(&io)?;
    write_err(match ended {
        StopReason::Finished => "",
        StopReason::Idle => "the review page closed after some minutes without activity\n",
        StopReason::Interrupted => "\n",
    });
    let mut desk = desk.lock();
    if desk.unwritten() > 0 {
        let places = unwritten::candidate_folders(caller.config);
        write_err(&unwritten::save(&places, &mut desk, session));
    }
    write_plain(&match desk.written() {
        0 => "nothing was decided\n".to_owned(),
        count => count_text(count, "memory was decided\n", "memories were decided\n"),
    })
}

/// That agents see more than what is approved on this page, if other programs see to that.
fn unreviewed_elsewhere(config: &Config) -> Option<String> {
    let places = connect::places(config).ok()?;
    let installed = connect::installed(config).ok()?;
    let sources =
        installed.into_iter().flat_map(|client| connect::unreviewed(config, client, &places));
    let count = sources.count();
    let (put, doctor) =
        (count_text(count, "other source puts", "other sources put"), command("doctor"));
    let notice = format!(
        "Agents see more than what you approve here: {put} memories that nobody reviewed into \
         their sessions. `{doctor}` names them."
    );
    (count > 0).then_some(notice)
}

fn print_address(access: &PageAccess) -> std::io::Result<()> {
    let address = access.open()?;
    let is_open = is_wanted()
        && access.write_file(&address, &private_folders()).is_ok_and(|file| open(&file));
    let how = if is_open {
        "the review page is open in your browser; if it is not, or if the browser cannot read the \
         file, open"
    } else {
        "open the review page in a browser:"
    };
    write_err(&format!(
        "{how}\n\n  {address}\n\nit works once; press Enter for another one, Ctrl+C to end\n"
    ));
    Ok(())
}

/// Where a file for the browser can be, the best folder first. A browser from a snap can read only
/// its own folder; any other browser of this user can read that too.
fn private_folders() -> Vec<PathBuf> {
    let folders = directories::BaseDirs::new();
    let snaps = folders.iter().flat_map(|folders| {
        let of_snap = |name| folders.home_dir().join("snap").join(name).join("common");
        ["firefox", "chromium"].map(of_snap)
    });
    let runtime = folders.as_ref().and_then(|folders| folders.runtime_dir());
    let others = runtime.map(Path::to_owned).into_iter().chain([std::env::temp_dir()]);
    snaps.filter(|folder| folder.is_dir()).chain(others).collect()
}

/// Opens a file in the user's browser. Returns whether a program for that was found.
#[expect(
    clippy::disallowed_methods,
    reason = "a person asked for the page, and it opens in their own browser"
)]
fn open(file: &Path) -> bool {
    let browser = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut opener = Command::new(browser.unwrap_or_else(|| usual.into()));
    opener.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.spawn().is_ok()
}

/// Makes each line that is typed at the terminal, if there is one, show another address.
fn answer_lines(access: Arc<PageAccess>) {
    if !std::io::stdin().is_terminal() {
        return;
    }
    prompt::begin_reading();
    std::thread::spawn(move || {
        for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
            if let Err(error) = print_address(&access) {
                write_err(&format!("cannot create an address: {error}\n"));
            }
        }
    });
}
