//! `connect` and `disconnect`: change and restore a client's configuration.

mod plan;

use super::args::{ConnectArgs, DisconnectArgs, Global};
use super::error_report::report;
use super::output::{write_err, write_out};
use super::prompt;
use super::settings::config;
use crate::cli::error::CliError;
use ack_connect::file::{self, FileAction, FileChange};
use ack_connect::unreviewed::switched_off;
use ack_connect::{Client, Extras, Launch, NAME};

pub use self::plan::{
    ConnectPlan, carry_out, installed, places, repository, settings_call_hook, unreviewed,
};
use self::plan::{connected_root, plan, root};

/// Runs `connect`, for the named clients or for all installed ones.
pub fn connect(global: &Global, args: &ConnectArgs) -> Result<(), CliError> {
    let config = config(global)?;
    let found;
    let clients = if args.clients.is_empty() {
        found = installed(&config)?;
        if found.is_empty() {
            let names: Vec<&str> = Client::ALL.iter().map(|client| client.name()).collect();
            let names = names.join(", ");
            return write_out(&format!("no known client is installed; supported: {names}\n"));
        }
        let names: Vec<&str> = found.iter().map(|client| client.name()).collect();
        write_out(&format!("installed: {}\n\n", names.join(", ")))?;
        found.as_slice()
    } else {
        args.clients.as_slice()
    };
    // A failure does not stop the other clients.
    let mut failed = None;
    let action = if args.replace { FileAction::Replace } else { FileAction::Put };
    for client in clients {
        let result = ConnectPlan::new(&config, *client, &args.entry, action)
            .and_then(|planned| connect_one(&planned, args));
        match result {
            Ok(()) => {}
            Err(error) if clients.len() == 1 => return Err(error),
            Err(error) => {
                if let Some(earlier) = failed.replace(error) {
                    report(&earlier, global.json);
                }
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

fn connect_one(planned: &ConnectPlan, args: &ConnectArgs) -> Result<(), CliError> {
    let name = planned.client.name();
    if planned.changes.is_empty() {
        for line in &planned.warnings {
            write_err(&prompt::wrapped("", line));
        }
        return write_out(&format!("{name} is already connected; nothing to change\n"));
    }
    if let Some(command) = planned.own_command.as_ref().filter(|_| args.dry_run) {
        write_out(&format!("the client's own command adds the server alone:\n\n{command}\n\n"))?;
    }
    if confirm_and_write(&planned.changes, &planned.warnings, args.dry_run, args.yes)? {
        write_out(&format!("{name} is connected\n"))?;
        if let Some(step) = &planned.next_step {
            write_out(&format!("{step}\n"))?;
        }
    }
    Ok(())
}

pub fn disconnect(global: &Global, args: &DisconnectArgs) -> Result<(), CliError> {
    let config = config(global)?;
    let places = places(&config)?;
    let extras = Extras {
        root: root(&config),
        former_roots: connected_root(args.client, &places).into_iter().collect(),
        ..Extras::all()
    };
    let files = args.client.files(&places, &Launch::by_name(), &extras);
    let mut files = files.unwrap_or_default();
    files.extend(switched_off(args.client, &places, &files)?);
    let changes = plan(&files, FileAction::Remove)?;
    for file in &files {
        if let Some(does) = file::foreign_entry(file)? {
            let path = file.path.display();
            write_err(&prompt::wrapped(
                "",
                &format!("`{path}` has an entry `{NAME}` that {does}; it stays as it is."),
            ));
        }
    }
    if changes.is_empty() {
        return write_out(&format!("{} is not connected; nothing to change\n", args.client.name()));
    }
    let warning = args.client.row().warning.clone();
    let mut warnings: Vec<String> = warning.into_iter().collect();
    if changes.iter().any(FileChange::switches_on) {
        let back = "What you had `setup` switch off is switched on again.";
        warnings.push(back.to_owned());
    }
    if confirm_and_write(&changes, &warnings, args.dry_run, args.yes)? {
        write_out(&format!("{} is disconnected\n", args.client.name()))?;
    }
    Ok(())
}

/// Shows the changes, asks if there is a terminal, and writes them. Returns whether they were
/// written.
fn confirm_and_write(
    changes: &[FileChange],
    warnings: &[String],
    dry_run: bool,
    yes: bool,
) -> Result<bool, CliError> {
    for change in changes {
        write_out(&change.shown())?;
        if let Some(backup) = change.backup_path() {
            write_out(&format!("(the current content is saved as {})\n", backup.display()))?;
        }
        write_out("\n")?;
    }
    for warning in warnings {
        write_err(&prompt::wrapped("", warning));
    }
    if dry_run {
        write_out("nothing was written\n")?;
        return Ok(false);
    }
    let agreed = yes || (prompt::is_possible() && prompt::confirm("Write this?"));
    if !agreed {
        write_out("nothing was written; run the same command with --yes to write it\n")?;
        return Ok(false);
    }
    carry_out(changes)?;
    Ok(true)
}
