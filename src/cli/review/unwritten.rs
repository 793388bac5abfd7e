//! Decisions of a review session that ended before they were written. They go to a file for `review
//! --apply`, in a folder that only the user can read. Other files there are not offered.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::geteuid;
use parking_lot::Mutex;

use crate::cli::caller::Caller;
use crate::cli::command::command;
use crate::cli::output::write_err;
use crate::cli::signals;
use ack_connect::quoted_path;
use ack_desk::Desk;
use ack_desk::choice::count_text;
use ack_desk::curate::ReviewSession;
use ack_service::config::Config;
use ack_sys::files::{create_private, make_private};

/// The folder in the root.
const FOLDER: &str = "unwritten";
const PREFIX: &str = "unwritten-decisions-";

/// The folders that a file may go to, the first that can be written.
pub fn candidate_folders(config: &Config) -> Vec<PathBuf> {
    let mut folders = vec![config.root.value.join(FOLDER)];
    folders.extend(config.home.clone());
    folders.push(std::env::temp_dir());
    folders
}

/// Saves the choices if the terminal is closed or the process is asked to end.
pub fn save_at_exit(
    caller: Caller<'_>,
    desk: &Arc<Mutex<Desk>>,
    session: &ReviewSession,
    clean_up: impl Fn() + Send + 'static,
) {
    let (desk, session) = (Arc::clone(desk), session.clone());
    let folders = candidate_folders(caller.config);
    signals::at_exit(move || {
        clean_up();
        // A write in progress finishes first.
        let mut desk = desk.lock();
        if desk.unwritten() > 0 {
            write_err(&format!("\n{}", save(&folders, &mut desk, &session)));
        }
    });
}

/// Saves the choices. Returns where, in a message, or the choices if no file can be written.
pub fn save(folders: &[PathBuf], desk: &mut Desk, session: &ReviewSession) -> String {
    let count = desk.unwritten();
    let lines = desk.unwritten_lines();
    let name = format!("{PREFIX}{}.jsonl", session.batch);
    // If it cannot be made, the file goes elsewhere.
    let _ = folders.first().map(|own| make_private(own));
    let file = folders.iter().find_map(|folder| {
        let file = folder.join(&name);
        create(&file, &lines).is_ok().then_some(file)
    });
    while !desk.take_back(None).is_empty() {}
    let Some(file) = file else {
        return format!("no file can be written; these lines are for `review --apply`:\n{lines}");
    };
    let decisions = count_text(count, "decision is", "decisions are");
    format!("{decisions} not written, and kept: {}\n", apply_command(&file))
}

fn apply_command(file: &Path) -> String {
    command(&format!("review --apply {}", quoted_path(file)))
}

fn create(file: &Path, lines: &str) -> std::io::Result<()> {
    let mut out = create_private(file)?;
    let result = out.write_all(lines.as_bytes()).and_then(|()| out.sync_all());
    if result.is_err() {
        // An incomplete file would look like a complete one.
        let _ = std::fs::remove_file(file);
    }
    result
}

/// Leaves in a file of [`save`] the lines that were not written. Other files stay as they are.
/// Returns whether it is such a file.
pub fn keep_rest(file: &Path, rest: &[&str]) -> std::io::Result<bool> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with(PREFIX) || !is_private(file) {
        return Ok(false);
    }
    if rest.is_empty() {
        std::fs::remove_file(file)?;
    } else {
        let new = file.with_extension("new");
        create(&new, &(rest.join("\n") + "\n"))?;
        std::fs::rename(&new, file)?;
    }
    Ok(true)
}

/// Names the files of earlier reviews. Returns whether there are any.
pub fn report_earlier(config: &Config) -> bool {
    let folder = config.root.value.join(FOLDER);
    if !is_private(&folder) {
        return false;
    }
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let ours = entries.filter(|it| it.file_name().to_string_lossy().starts_with(PREFIX));
    let mut files: Vec<PathBuf> = ours.map(|entry| entry.path()).collect();
    files.retain(|file| is_private(file));
    files.sort();
    for file in &files {
        let command = apply_command(file);
        write_err(&format!(
            "note: decisions of an earlier review were not written: {command}; delete the file \
             when you no longer need it\n"
        ));
    }
    !files.is_empty()
}

/// Whether a file or folder is the user's own, is no link, and nobody else may use it.
fn is_private(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| {
        found.uid() == geteuid().as_raw() && !found.is_symlink() && found.mode() & 0o077 == 0
    })
}
