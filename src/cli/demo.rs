//! `demo`: builds the sample scopes and shows what the tools answer.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Parser as _;

use super::args::Cli;
use super::output::write_out;
use crate::cli::error::CliError;

/// The commands that are shown, each with what to look at.
const COMMANDS: [(&str, &str); 6] = [
    ("query -n 2 container killed exit code 137", "   (what another project learned)"),
    ("query -n 1 ERR_PNPM_OUTDATED_LOCKFILE", "   (an identifier match ranks first)"),
    ("query -n 2 --status staging", "   (what a curator should review)"),
    ("get ack_c03d5e_2026-05-20_006 --include links --include history --include timeline", ""),
    ("scopes", ""),
    ("context -n 3", "   (in the project ledger-api)"),
];

pub fn demo(folder: Option<&Path>, now: jiff::Timestamp) -> Result<(), CliError> {
    let (root, temporary) = match folder {
        Some(folder) => (empty_folder(folder)?, None),
        None => {
            let folder = tempfile::Builder::new()
                .prefix("ack-memory-demo-")
                .tempdir()
                .map_err(CliError::io("create", "a temporary folder"))?;
            (folder.path().to_owned(), Some(folder))
        }
    };
    crate::demo::build(&root, now)?;
    for (line, note) in COMMANDS {
        heading(&format!("ack-memory {line}{note}"))?;
        run(&root, line)?;
    }
    heading("and now")?;
    write_out(&match temporary {
        None => format!(
            "The sample scopes are in {0}.\nAsk your own: ack-memory --root {0} query \"…\"\n\
             Connect an agent: claude mcp add ack-memory -- ack-memory --root {0} serve\n",
            root.display()
        ),
        Some(_) => "The sample scopes were built in a temporary folder, which is removed now.\n\
             Keep them: ack-memory demo ./demo-root   then   ack-memory --root ./demo-root query \"…\"\n"
            .to_owned(),
    })
}

fn empty_folder(folder: &Path) -> Result<PathBuf, CliError> {
    let is_in_use = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_in_use || folder.is_file() {
        let message = format!("{} is not an empty folder", folder.display());
        let hint = "name an empty folder, or one that does not exist yet";
        return Err(CliError::usage("FOLDER", message).with_hint(hint));
    }
    std::path::absolute(folder).map_err(CliError::io("create", folder))
}

/// Runs a command over the sample scopes. The sample project's folder need not exist, because it is
/// recognised by its name.
fn run(root: &Path, line: &str) -> Result<(), CliError> {
    let project = root.join("ledger-api");
    let flags = ["ack-memory", "-q", "--root"].map(OsStr::new);
    let flags = flags.into_iter().chain([root.as_os_str(), "-C".as_ref(), project.as_os_str()]);
    let words = flags.chain(line.split(' ').map(OsStr::new));
    let mut cli =
        Cli::try_parse_from(words).map_err(|error| CliError::usage("demo", error.to_string()))?;
    cli.global.db = None;
    super::run_command(cli).map(drop)
}

fn heading(text: &str) -> Result<(), CliError> {
    let style = anstyle::AnsiColor::Magenta.on_default().bold();
    write_out(&format!("\n{style}── {text}{style:#}\n"))
}
