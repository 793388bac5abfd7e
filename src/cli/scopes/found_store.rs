//! A store that was found on this machine: its line, the question what to do with it, and the
//! equivalent command.

use std::io::IsTerminal;
use std::path::Path;

use serde_json::json;

use super::team::Team;
use crate::cli::args::AddArgs;
use crate::cli::error::CliError;
use crate::cli::output::{json_with, write_err};
use crate::cli::render::{PLAIN, block, breakable, unbroken};
use crate::cli::screen::Screen;
use crate::cli::{command, progress, prompt};
use ack_api::memory::Unreviewed;
use ack_connect::recogniser::{FoundStore, StoreKind};
use ack_connect::{quoted, quoted_path};
use ack_desk::held_back::HeldBack;
use ack_service::scope::KnownScopes;
use ack_store::Store;
use ack_sys::files::with_tilde;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Every memory counts as approved, but what is flagged.
    Trust,
    /// Memories stay hidden until someone approves them; those already approved are shown.
    Review,
    /// What is merged counts as approved; see [`Team`].
    Join,
    Skip,
}

/// The answers about a store whose memories nobody reviewed. Enter is the first one.
const ANSWERS: [(char, &str); 6] = [
    ('t', "trust"),
    ('r', "review first"),
    ('s', "skip"),
    ('T', "trust those that follow, too"),
    ('R', "review those that follow first, too"),
    ('S', "skip those that follow, too"),
];

/// How many memories of a store agents can use if its owner trusts it.
pub struct TrustedCounts {
    trusted: u64,
    held_back: HeldBack,
    /// Those that their author does not call finished.
    drafts: u64,
}

impl TrustedCounts {
    pub fn of(found: &FoundStore) -> Result<Self, CliError> {
        let opened = Store::new(found.path.clone(), Unreviewed::Approved);
        let held_back = progress::while_reading(|| HeldBack::of_store(&opened))?;
        let counts = opened.snapshot(|snapshot| snapshot.counts_by_id())?;
        let drafts = counts.staging.saturating_sub(held_back.count() as u64);
        Ok(Self { trusted: counts.approved + counts.promoted, held_back, drafts })
    }

    /// `trust 506, hold back 2 flagged`, with these verbs, and then why: `(2 address an agent)`.
    pub fn phrases(&self, trust: &str, hold_back: &str) -> Vec<String> {
        let flagged = self.held_back.count();
        let all = [(flagged as u64, "flagged"), (self.drafts, "unfinished")];
        let all = all.iter().filter(|(count, _)| *count > 0);
        let all: Vec<String> = all.map(|(count, what)| format!("{count} {what}")).collect();
        let trusted = format!("{trust} {}", self.trusted);
        if all.is_empty() {
            return vec![trusted];
        }
        let mut phrases = vec![format!("{trusted}, {hold_back} {}", all.join(" and "))];
        if flagged > 0 {
            phrases.push(format!("({})", self.held_back.reasons()));
        }
        phrases
    }
}

/// Asks what to do with a store. Returns the answer, and whether it is also the answer about the
/// stores that follow.
pub fn ask(found: &FoundStore, home: Option<&Path>) -> Result<(Answer, bool), CliError> {
    let mut store = format!("    {}", found.kind.title());
    // If the list goes elsewhere, the question names the store.
    if !std::io::stdout().is_terminal() {
        store += &format!(", {}", with_tilde(&found.path, home));
    }
    if found.approved.is_some() {
        let keys = [('a', "add"), ('s', "skip")];
        let key = prompt::choose(&format!("{store}: (a)dd, (s)kip"), &keys);
        let answer = if key == Some('a') { Answer::Review } else { Answer::Skip };
        return Ok((answer, false));
    }
    let counts = TrustedCounts::of(found)?;
    let mut trust = counts.phrases("trust", "hold back");
    if let Some(last) = trust.last_mut() {
        last.push(':');
    }
    let reviewed = match counts.held_back.count() as u64 + counts.drafts {
        0 => "you review them when they matter".to_owned(),
        some => format!("you review the {some}, and others when they matter"),
    };
    let mut trusted: Vec<&str> = trust.iter().map(String::as_str).collect();
    trusted.extend(["agents can use them now;", &reviewed]);
    let screen = Screen::of_errors();
    for (key, phrases) in [
        ("t", trusted.as_slice()),
        ("r", &["review first:", "ack-memory shows none of them until you approve some"]),
        ("s", &["skip:", "nothing changes"]),
    ] {
        let first = format!("      {key}  ");
        let rest = " ".repeat(first.len());
        let phrases = phrases.iter().map(|phrase| unbroken(&screen, &rest, phrase));
        let phrases = phrases.collect::<Vec<_>>().join(" ");
        write_err(&breakable(&block(&screen, &phrases, (&first, &rest), PLAIN)));
    }
    write_err("      T, R, S: the same for all stores that follow; Enter: t\n");
    Ok(match prompt::choose(&store, &ANSWERS) {
        Some(key @ ('t' | 'T')) => (Answer::Trust, key == 'T'),
        Some(key @ ('r' | 'R')) => (Answer::Review, key == 'R'),
        // The end of the input skips this one.
        key => (Answer::Skip, key == Some('S')),
    })
}

/// What `scopes add` gets for an answer.
pub fn add_args(found: &FoundStore, name: &str, answer: Answer, team: Option<&Team>) -> AddArgs {
    let team = team.filter(|_| answer == Answer::Join);
    AddArgs {
        name: name.to_owned(),
        store: found.path.clone(),
        paths: Vec::from_iter(team.map(|team| team.repository.display().to_string())),
        reference: team.map(|team| team.reference.clone()),
        unreviewed: (answer == Answer::Trust).then_some(Unreviewed::Approved),
        ..AddArgs::default()
    }
}

/// The command that does the same.
pub fn command(args: &AddArgs) -> String {
    let (name, store) = (quoted(&args.name), quoted_path(&args.store));
    let mut line = format!("scopes add {name} --store {store}");
    line.extend(args.unreviewed.map(|_| " --unreviewed approved"));
    line.extend(args.reference.iter().map(|name| format!(" --ref {}", quoted(name))));
    line.extend(args.paths.iter().map(|path| format!(" --path {}", quoted(path))));
    command::command(&(line + " --yes"))
}

pub fn store_json(found: &FoundStore, known: &KnownScopes) -> serde_json::Value {
    let support = found.kind.support();
    json_with(
        found,
        match known.with_store(&found.path) {
            Some(scope) => json!({ "support": support, "scope": scope }),
            None => json!({ "support": support }),
        },
    )
}

pub fn store_line(found: &FoundStore, home: Option<&Path>) -> String {
    format!("{}: {}, {}", found.kind.title(), found.count(), with_tilde(&found.path, home))
}

fn valid_name(name: String) -> Option<String> {
    crate::import::check_name(&name).is_ok().then_some(name)
}

fn named_after(folder: Option<&Path>, prefix: &str) -> String {
    let name = folder.and_then(Path::file_name);
    name.and_then(|name| valid_name(format!("{prefix}{}", name.to_string_lossy())))
        .unwrap_or_else(|| "memories".to_owned())
}

/// The name of its program, with that of the project that it is in.
fn named_after_program(found: &FoundStore) -> String {
    let program = found.kind.title().trim_end_matches(" memories").to_lowercase().replace(' ', "-");
    match found.path.ancestors().skip(1).find(|folder| folder.join(".git").exists()) {
        Some(project) => named_after(Some(project), &format!("{program}-")),
        None => program,
    }
}

pub fn free_name(found: &FoundStore, known: &mut KnownScopes, team: Option<&Team>) -> String {
    if let Some(team) = team {
        return known.free_name(valid_name(team.name.clone()).unwrap_or_else(|| "team".to_owned()));
    }
    known.free_name(match found.kind {
        StoreKind::ClaudeMem => "claude-mem".to_owned(),
        StoreKind::Codex
        | StoreKind::ServerMemory
        | StoreKind::BasicMemory
        | StoreKind::McpMemoryService => found.kind.title().to_lowercase().replace(' ', "-"),
        StoreKind::Solutions => named_after(found.path.ancestors().nth(2), "solutions-"),
        StoreKind::AutoMemory => {
            // `-home-ana-src-shop` is the folder that the sessions ran in.
            let slug = found.path.parent().and_then(Path::file_name).unwrap_or_default();
            let slug = slug.to_string_lossy();
            let project = slug.rsplit("-src-").next().unwrap_or_default().trim_start_matches('-');
            valid_name(format!("auto-{project}")).unwrap_or_else(|| "auto-memory".to_owned())
        }
        StoreKind::AckMemory | StoreKind::KnowledgeFormat => named_after(found.path.parent(), ""),
        _ => named_after_program(found),
    })
}
