//! Why a settings file cannot be used.

use std::path::{Path, PathBuf};

use ack_api::{Diagnostic, ErrorBody, ErrorCode, Hint, text};
use ack_store::hint::io_hint;

pub const LIGHT_BUILD: &str = "its memories are in a bucket, which the light build cannot read; \
    the full build can";
pub const FULL_BUILD: &str =
    "install the full build: `cargo install --path .` without `--no-default-features`";

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{}`: {message}", path.display())]
    Invalid { path: PathBuf, message: String, part: Part, nearest: Vec<String>, known: Vec<String> },
    /// It is valid, but it names a bucket, and this is the light build.
    #[error("`{}`: {LIGHT_BUILD}", path.display())]
    LightBuild { path: PathBuf },
    #[error("no home folder was found, so there is no default scope root")]
    NoHome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Line(usize),
    /// What `serve` offers: tools and upstream servers.
    Offer,
    Unknown,
}

impl SettingsError {
    /// The error for a file with a mistake that no line or key shows.
    pub fn invalid(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::Invalid {
            path: path.into(),
            message: message.into(),
            part: Part::Unknown,
            nearest: Vec::new(),
            known: Vec::new(),
        }
    }

    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Unreadable { path, .. }
            | Self::Invalid { path, .. }
            | Self::LightBuild { path } => Some(path),
            Self::NoHome => None,
        }
    }

    /// What is wrong, without the path, which only the owner should see. Safe to print.
    pub fn reason(&self) -> String {
        let reason = match self {
            Self::Unreadable { source, .. } => format!("it cannot be read: {source}"),
            Self::Invalid { message, .. } => message.clone(),
            Self::LightBuild { .. } => LIGHT_BUILD.to_owned(),
            Self::NoHome => self.to_string(),
        };
        text::line(&reason, 400)
    }

    pub fn as_offer_error(mut self) -> Self {
        if let Self::Invalid { part, .. } = &mut self {
            *part = Part::Offer;
        }
        self
    }
}

impl Diagnostic for SettingsError {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidSettings
    }

    fn hints(&self) -> Vec<Hint> {
        match self {
            Self::LightBuild { .. } => vec![Hint::advice(FULL_BUILD)],
            Self::NoHome => vec![Hint::advice("set ACK_MEM_PATH or pass --root")],
            Self::Unreadable { source, .. } => {
                let usual = Hint::advice("check that the file exists and may be read");
                vec![io_hint(source).unwrap_or(usual)]
            }
            Self::Invalid { path, part, .. } => how_to_fix(path, *part),
        }
    }

    fn path(&self) -> Option<&Path> {
        self.file()
    }

    fn details(&self, body: &mut ErrorBody) {
        if let Self::Invalid { nearest, known, .. } = self {
            body.nearest.clone_from(nearest);
            body.allowed.clone_from(known);
        }
    }
}

fn how_to_fix(path: &Path, part: Part) -> Vec<Hint> {
    let fix = match part {
        Part::Line(line) => Hint::advice(format!("fix line {line}")),
        Part::Unknown => Hint::advice("fix the file"),
        Part::Offer => {
            return vec![
                Hint::command("config edit", "opens the file to fix it"),
                Hint::command("config schema", "lists the keys"),
            ];
        }
    };
    match path.file_name().and_then(|name| name.to_str()) {
        Some("config.toml") => vec![
            fix,
            Hint::command("config edit", "opens it"),
            Hint::command("doctor", "checks everything else"),
        ],
        Some("scope.toml") => vec![fix, Hint::command("doctor", "checks every scope")],
        _ => vec![fix],
    }
}
