//! How this program was started, and how a client can start it.

use std::path::PathBuf;

use ack_connect::runner::{PIPX, ProgramOrigin, Runner};
use ack_connect::{ConnectError, NAME};
use ack_service::scope::known::is_same;

/// The package runner that a person started this program with, if a client can use it too.
pub fn runner() -> Option<Runner> {
    Program::find().ok()?.runner
}

/// What starts this program: itself, or the package runner that a person used.
pub struct Program {
    pub path: PathBuf,
    /// The name by which the PATH finds it, if it does.
    pub name: Option<&'static str>,
    pub runner: Option<Runner>,
}

impl Program {
    pub fn find() -> Result<Self, ConnectError> {
        let running = std::env::current_exe().map_err(|source| ConnectError::Io {
            action: "find",
            path: "this program".into(),
            source,
        })?;
        // The path of a symbolic link stays valid when a package manager installs the next version
        // elsewhere.
        if let Some(path) = this_program_on_path().filter(|path| is_same(path, &running)) {
            return Ok(Self { path, name: Some(NAME), runner: None });
        }
        let runners: &[Runner] = match ProgramOrigin::of(&running) {
            ProgramOrigin::Installed => {
                return Ok(Self { path: running, name: None, runner: None });
            }
            // `pipx run` may start the program through uv, which then need not be on the PATH.
            ProgramOrigin::Runner(runner) => &[runner, PIPX],
            ProgramOrigin::UnknownCache => &[],
        };
        let on_path = |runner: &Runner| {
            let path = program_on_path(runner.program)?;
            Some(Self { path, name: Some(runner.program), runner: Some(*runner) })
        };
        runners.iter().find_map(on_path).ok_or(ConnectError::Cache { path: running })
    }
}

/// The path of this program, as found by its name. Folders that are on the PATH only while a
/// package runner or an environment is active do not count.
pub fn this_program_on_path() -> Option<PathBuf> {
    let environment = std::env::var_os("VIRTUAL_ENV").filter(|path| !path.is_empty());
    let stays = |path: &PathBuf| {
        let is_active = environment.as_ref().is_some_and(|root| path.starts_with(root));
        let is_of_npm = path.parent().is_some_and(|folder| folder.ends_with("node_modules/.bin"));
        !is_active && !is_of_npm && ProgramOrigin::of(path) == ProgramOrigin::Installed
    };
    programs_on_path(NAME).find(stays)
}

pub fn program_on_path(name: &str) -> Option<PathBuf> {
    programs_on_path(name).next()
}

fn programs_on_path(name: &str) -> impl Iterator<Item = PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let paths: Vec<PathBuf> =
        std::env::split_paths(&folders).map(|folder| folder.join(name)).collect();
    paths.into_iter().filter(|path| path.is_absolute() && path.is_file())
}
