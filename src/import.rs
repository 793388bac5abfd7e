//! `import`: loads memories from JSON lines into a native store. Everything is checked first, then
//! written in one transaction. A new store appears complete or not at all.
//!
//! Only the command line uses this; no agent request reaches it.

pub mod write;

use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::write::Target;
use ack_api::import_line::{self, Row};
use ack_api::number::{count, verb};
use ack_api::{Diagnostic, ErrorCode, Hint};
use ack_store::StoreError;
use ack_store::hint::{io_hint, sqlite_hints};
use ack_store::layout::Profile;

/// Maximum length of a scope's name, in bytes.
const LONGEST_NAME: usize = 64;
const MAX_LINE_BYTES: usize = 8 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(
        "{} of {} {} refused, so nothing was imported",
        refused.len(),
        count(*lines as u64, "line"),
        verb(refused.len() as u64, "was", "were")
    )]
    Refused {
        refused: Vec<RefusedLine>,
        lines: usize,
        /// The bracket with which a file begins that is JSON, but not JSON lines, or a space.
        begins: char,
    },
    #[error("`{name}` cannot be the name of a scope")]
    BadName { name: String },
    #[error("`{}` is {} store; import writes only to native ones", path.display(), profile.with_article())]
    NotNative { path: PathBuf, profile: Profile },
    #[error("`{}` has no column `{column}` in `memories`", path.display())]
    MissingColumn { path: PathBuf, column: &'static str },
    #[error("there is no line to import")]
    NoLines,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot {action} `{}`", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("cannot write `{}`: {source}", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
}

impl Diagnostic for ImportError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Io { .. } => ErrorCode::IoError,
            Self::BadName { .. } => ErrorCode::InvalidArgument,
            _ => ErrorCode::ImportRefused,
        }
    }

    fn hints(&self) -> Vec<Hint> {
        let advice = match self {
            Self::Refused { begins: '[', .. } => {
                "`import` reads one JSON object per line; for an array, run \
                 `jq -c '.[]' FILE > memories.jsonl` and import that"
            }
            Self::Refused { begins: '{', .. } => {
                "`import` reads one JSON object per line; for objects over several lines, run \
                 `jq -c . FILE > memories.jsonl` and import that"
            }
            Self::Refused { .. } => {
                "correct the lines listed above and run the same command again, or pass --skip-refused to import the others"
            }
            Self::BadName { name } => {
                let rule =
                    "use up to 64 letters, digits, `-`, `_` and `.`, not beginning with a dot";
                let like = name_like(name).map(|like| format!("for instance `{like}`; {rule}"));
                return vec![Hint::advice(like.unwrap_or_else(|| rule.to_owned()))];
            }
            Self::NotNative { .. } => "import into a scope of its own: `--scope OTHER_NAME`",
            Self::MissingColumn { .. } => {
                "add the columns of schemas/scope.sql, or import into a new scope"
            }
            Self::NoLines => "one JSON object per line; schemas/import-line.json lists the keys",
            Self::Store(error) => return error.hints(),
            Self::Io { source, .. } => {
                let usual = Hint::advice("check that the path exists and may be used");
                return vec![io_hint(source).unwrap_or(usual)];
            }
            Self::Sqlite { source, .. } => {
                let usual = "check the folder's permissions; nothing was changed";
                return sqlite_hints(source).unwrap_or_else(|| vec![Hint::advice(usual)]);
            }
        };
        vec![Hint::advice(advice)]
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::NotNative { path, .. }
            | Self::MissingColumn { path, .. }
            | Self::Sqlite { path, .. } => Some(path),
            Self::Io { path, .. } => Some(path.as_path()).filter(|path| path.is_absolute()),
            Self::Store(error) => Some(&error.path),
            Self::Refused { .. } | Self::BadName { .. } | Self::NoLines => None,
        }
    }
}

/// The name of a scope that is similar to a text; `None` if it has no letter for one.
pub fn name_like(text: &str) -> Option<String> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.'));
    let words = words.filter(|word| !word.is_empty());
    let mut like = words.collect::<Vec<_>>().join("-");
    while like.len() > LONGEST_NAME {
        like.pop();
    }
    let like = like.trim_matches(['-', '.']);
    (!like.is_empty()).then(|| like.to_owned())
}

#[derive(Debug, Clone, Copy, Default)]
pub struct ImportOptions {
    /// Import the valid lines even if others are refused.
    pub skip_refused: bool,
    /// Replace existing memories whose content differs.
    pub update: bool,
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedLine {
    pub line: usize,
    pub reason: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    pub path: PathBuf,
    pub created: bool,
    pub added: usize,
    pub updated: usize,
    pub unchanged: usize,
    pub refused: Vec<RefusedLine>,
}

pub type NumberedRow = (usize, Row);

pub struct ReadLines {
    pub rows: Vec<NumberedRow>,
    pub refused: Vec<RefusedLine>,
    /// See [`ImportError::Refused`].
    begins: char,
}

/// Reads every line.
pub fn read(input: &mut dyn BufRead, now: jiff::Timestamp) -> std::io::Result<ReadLines> {
    let (mut rows, mut refused): (Vec<NumberedRow>, Vec<RefusedLine>) = (Vec::new(), Vec::new());
    let mut begins = ' ';
    let mut positions: HashMap<String, usize> = HashMap::new();
    for (number, raw) in (1..).zip(input.split(b'\n')) {
        let raw = raw?;
        let text = String::from_utf8_lossy(&raw);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            continue;
        }
        let parsed = if raw.len() > MAX_LINE_BYTES {
            Err(format!("longer than {} MB", MAX_LINE_BYTES >> 20))
        } else if std::str::from_utf8(&raw).is_err() {
            Err("not UTF-8".to_owned())
        } else {
            import_line::parse(text, now)
        };
        match parsed {
            Err(reason) => {
                let bracket = text.chars().next().filter(|c| *c == '[' || text == "{");
                if rows.is_empty() && refused.is_empty() {
                    begins = bracket.unwrap_or(begins);
                }
                refused.push(RefusedLine { line: number, reason });
            }
            Ok(row) => match positions.get(&row.id).and_then(|position| rows.get(*position)) {
                Some((_, known)) if known.line == row.line => {}
                Some((first, _)) => {
                    let reason =
                        format!("`id` is `{}`, which line {first} has with other content", row.id);
                    refused.push(RefusedLine { line: number, reason });
                }
                None => {
                    positions.insert(row.id.clone(), rows.len());
                    rows.push((number, row));
                }
            },
        }
    }
    Ok(ReadLines { rows, refused, begins })
}

/// Imports into the store at `path`, and creates the store if it is missing. After an error,
/// nothing is written.
pub fn run(
    path: PathBuf,
    input: &mut dyn BufRead,
    options: ImportOptions,
    now: jiff::Timestamp,
) -> Result<ImportReport, ImportError> {
    let io = |source| ImportError::Io { action: "read", path: "the import".into(), source };
    let ReadLines { rows, mut refused, begins } = read(input, now).map_err(io)?;
    let lines = rows.len() + refused.len();
    let target = Target::new(path);
    // A repeated import may have nothing new, but a new scope needs at least one line.
    if lines == 0 && target.is_new {
        return Err(ImportError::NoLines);
    }
    let mut plan = target.plan(rows, options.update)?;
    refused.append(&mut plan.refused);
    refused.sort_by_key(|refusal| refusal.line);
    if !refused.is_empty() && !options.skip_refused {
        return Err(ImportError::Refused { refused, lines, begins });
    }
    let has_changes = !plan.added.is_empty() || !plan.updated.is_empty();
    let writes = has_changes && !options.dry_run;
    if writes {
        target.commit(&plan, now)?;
    }
    Ok(ImportReport {
        created: writes && target.is_new,
        path: target.path,
        added: plan.added.len(),
        updated: plan.updated.len(),
        unchanged: plan.unchanged,
        refused,
    })
}

pub fn check_name(name: &str) -> Result<(), ImportError> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = (1..=LONGEST_NAME).contains(&name.len()) && !name.starts_with('.');
    if !fits || !name.chars().all(plain) {
        return Err(ImportError::BadName { name: ack_api::text::line(name, 80) });
    }
    Ok(())
}
