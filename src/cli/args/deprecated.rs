//! Spellings of version 0.1. They work for one more version and print the new spelling.

use std::ffi::OsString;
use std::path::Path;

use super::{Cli, Command};
use crate::config::ENV_PROJECT;

/// Renamed flags.
const RENAMED: [(&str, &str); 4] = [
    ("--in-scope", "--scope"),
    ("--in-project", "--project"),
    ("--full", "--long"),
    ("--max-memories", "--limit"),
];

impl Cli {
    /// Translates old spellings and records a message for each. `has` says whether the command has
    /// its own flag of a name.
    pub(super) fn read_old_spellings(
        &mut self,
        arguments: impl Iterator<Item = OsString>,
        has: impl Fn(&str) -> bool,
    ) {
        for argument in arguments.take_while(|argument| argument != "--") {
            let argument = argument.to_string_lossy();
            let flag = argument.split('=').next().unwrap_or_default();
            if let Some((old, new)) = RENAMED.into_iter().find(|(old, _)| *old == flag) {
                self.global.old.push(format!("`{old}` is now `{new}`"));
            }
        }
        let folder = match &mut self.command {
            Command::Query(args) => args.project.take_if(|project| is_folder(project)),
            _ => self.global.project.take().filter(|_| !has("project")),
        };
        if let Some(folder) = folder {
            self.global.dir = Some(folder.into());
            self.global.variables.retain(|name| *name != ENV_PROJECT);
            let message = "`--project DIR` is `-C DIR` now; `--project NAME` filters";
            self.global.old.push(message.to_owned());
        }
        // These commands take the scope to write to from the pin.
        let writes_store = matches!(self.command, Command::Import(_) | Command::Index(_));
        let scope = self.global.scope.take();
        if let Some(scope) = scope.filter(|_| writes_store || !has("scope")) {
            self.global.pin = Some(scope);
            if !writes_store {
                let message = "this command has no `--scope`; `--pin` limits it to one scope";
                self.global.old.push(message.to_owned());
            }
        }
        self.global.old.dedup();
    }
}

/// Whether the value of `--project` can only be a folder, since projects are given by name.
fn is_folder(value: &str) -> bool {
    let path = Path::new(value);
    path.is_absolute() || value.starts_with(['~', '.']) || (value.contains('/') && path.is_dir())
}
