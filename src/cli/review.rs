//! `review`: what waits, one memory after the other, and what is to become of it.
//!
//! Decisions are kept until the end, so that each can be changed, and are then written together.
//! It works line by line, like `git add -p`: every key is a letter and Enter, which a screen reader
//! follows and a script can type.

use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;

use ack_api::decision::{Decision, Edit, Verdict};
use ack_api::memory::Memory;
use ack_api::{QueryRequest, text};
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::ReviewArgs;
use super::curate::{Desk, carry_out, print_json};
use super::screen::Screen;
use super::{write_err, write_plain};
use crate::cli::error::CliError;
use crate::curate::find::{Filter, by_id, waiting};
use crate::curate::{Candidate, Sitting, warnings};
use crate::service::Service;

/// How many lines of a narrative a card shows.
const NARRATIVE_LINES: usize = 12;
/// How many approved memories a card shows beside its own.
const NEIGHBOURS: i64 = 3;
/// How many memories `--list` prints for people.
const LISTED: usize = 50;

/// Runs `review`.
pub fn run(desk: Desk<'_>, args: ReviewArgs) -> Result<(), CliError> {
    if let Some(file) = &args.apply {
        return apply(desk, file, args.scope.as_deref());
    }
    let scopes = desk.scopes(args.scope.as_deref())?;
    let filter = Filter {
        kind: args.kind,
        project: args.project,
        tag: args.tag,
        session: None,
    };
    let queue = waiting(&scopes, &filter)?;
    if args.list || desk.json {
        return list(desk, &queue);
    }
    if queue.is_empty() {
        return write_plain("nothing waits for review\n");
    }
    let sitting = desk.sitting(None)?;
    let service = Service::for_the_process(desk.config.clone());
    let outcome = Review {
        desk,
        queue: &queue,
        service,
        decided: Vec::new(),
        sitting,
    }
    .go_through();
    service.close();
    outcome
}

/// Prints what waits.
fn list(desk: Desk<'_>, queue: &[Candidate]) -> Result<(), CliError> {
    if desk.json {
        let entries: Vec<Value> = queue
            .iter()
            .map(|candidate| entry(desk, candidate))
            .collect();
        return print_json(&json!({ "total": queue.len(), "waiting": entries }));
    }
    if queue.is_empty() {
        return write_plain("nothing waits for review\n");
    }
    let mut out = format!("{}\n", head(desk, queue));
    for candidate in queue.iter().take(LISTED) {
        let memory = candidate.memory();
        let mark = if candidate.curated.is_outdated {
            "  changed since it was decided"
        } else {
            ""
        };
        let _ = write!(
            out,
            "\n{}{mark}\n  {}\n",
            meta(desk, candidate),
            memory.title
        );
        for warning in warnings::of(memory) {
            let _ = writeln!(out, "  ! {}", warning.as_str());
        }
    }
    if queue.len() > LISTED {
        let _ = writeln!(
            out,
            "\nand {} more; --json prints all",
            queue.len() - LISTED
        );
    }
    write_plain(&out)
}

/// A memory that waits, for scripts. With a `verdict` added, it is a line for `--apply`.
fn entry(desk: Desk<'_>, candidate: &Candidate) -> Value {
    let memory = candidate.memory();
    json!({
        "scope": candidate.scope.name,
        "id": memory.id,
        "digest": candidate.curated.digest,
        "changed": candidate.curated.is_outdated,
        "age_days": age_in_days(desk, memory),
        "project": memory.project,
        "session": memory.session.as_ref().or(memory.session_id.as_ref()),
        "type": memory.kind,
        "title": memory.title,
        "subtitle": memory.subtitle,
        "facts": memory.facts,
        "concepts": memory.concepts,
        "files": memory.files,
        "narrative": memory.narrative,
        "warnings": warnings::of(memory),
    })
}

/// One line about the whole queue.
fn head(desk: Desk<'_>, queue: &[Candidate]) -> String {
    let mut ages: Vec<i64> = queue
        .iter()
        .filter_map(|candidate| age_in_days(desk, candidate.memory()))
        .collect();
    ages.sort_unstable();
    let age = match (ages.get(ages.len() / 2), ages.last()) {
        (Some(median), Some(oldest)) => {
            format!("; median age {}, oldest {}", days(*median), days(*oldest))
        }
        _ => String::new(),
    };
    let plural = if queue.len() == 1 {
        "memory waits"
    } else {
        "memories wait"
    };
    format!("{} {plural} for review{age}", queue.len())
}

fn days(days: i64) -> String {
    if days == 1 {
        "1 day".to_owned()
    } else {
        format!("{days} days")
    }
}

fn age_in_days(desk: Desk<'_>, memory: &Memory) -> Option<i64> {
    let seconds = desk.now.as_second() - memory.created_at?.as_second();
    Some((seconds / 86_400).max(0))
}

/// One line with what a memory is.
fn meta(desk: Desk<'_>, candidate: &Candidate) -> String {
    let memory = candidate.memory();
    let mut parts = vec![memory.id.clone(), candidate.scope.name.clone()];
    parts.extend(
        memory
            .project
            .clone()
            .filter(|project| *project != candidate.scope.name),
    );
    parts.extend(memory.kind.clone());
    parts.extend(age_in_days(desk, memory).map(|age| format!("{} old", days(age))));
    parts.join("  ")
}

/// Going through the queue.
struct Review<'a> {
    desk: Desk<'a>,
    queue: &'a [Candidate],
    service: &'static Service,
    /// What was decided, by position in the queue.
    decided: Vec<(usize, Vec<Decision>)>,
    sitting: Sitting,
}

/// What to do after a key.
enum Step {
    /// Show the same card again.
    Stay,
    /// Show another card.
    To(usize),
    /// Write what was decided.
    Finish,
}

const HELP: &str = "\
a         approve            r [WHY]   reject
p         promote            s         skip
m ID      merge into ID      u ID      ID takes its place
e         edit and approve   n         show all of its text
z         take the last one back
q         finish: write what was decided, or leave
";

impl Review<'_> {
    fn go_through(mut self) -> Result<(), CliError> {
        write_err(&format!("{}\n", head(self.desk, self.queue)));
        let mut position = 0;
        let mut whole = false;
        while let Some(candidate) = self.queue.get(position) {
            write_err(&self.card(position, candidate, whole));
            whole = false;
            let Some(line) = ask("a r p s m u e n z q ? > ") else {
                break;
            };
            if line == "n" {
                whole = true;
                continue;
            }
            match self.take(position, candidate, &line) {
                Ok(Step::Stay) => {}
                Ok(Step::To(next)) => position = next,
                Ok(Step::Finish) => break,
                Err(error) => write_err(&format!("{error}\n")),
            }
        }
        self.finish()
    }

    fn take(
        &mut self,
        position: usize,
        candidate: &Candidate,
        line: &str,
    ) -> Result<Step, CliError> {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let decisions = match key {
            "a" => vec![self.sitting.decision(candidate, Verdict::Approve)],
            "p" => vec![self.sitting.decision(candidate, Verdict::Promote)],
            "r" => {
                let mut decision = self.sitting.decision(candidate, Verdict::Reject);
                decision.reason = (!rest.is_empty()).then(|| text::line(rest, 500));
                vec![decision]
            }
            "m" | "u" if !rest.is_empty() => {
                let into = by_id(&[std::sync::Arc::clone(&candidate.scope)], rest)?;
                let verdict = if key == "m" {
                    Verdict::Merge
                } else {
                    Verdict::Supersede
                };
                self.sitting.replacement(candidate, &into, verdict)?
            }
            "e" => match edited(candidate)? {
                Some(edit) => {
                    let mut decision = self.sitting.decision(candidate, Verdict::Edit);
                    decision.edit = Some(edit);
                    vec![decision]
                }
                None => {
                    write_err("nothing was changed\n");
                    return Ok(Step::Stay);
                }
            },
            "s" => return Ok(Step::To(position + 1)),
            "z" => {
                let Some((last, _)) = self.decided.pop() else {
                    write_err("nothing was decided yet\n");
                    return Ok(Step::Stay);
                };
                return Ok(Step::To(last));
            }
            "q" => return Ok(Step::Finish),
            _ => {
                write_err(HELP);
                return Ok(Step::Stay);
            }
        };
        self.decided.retain(|(decided, _)| *decided != position);
        self.decided.push((position, decisions));
        Ok(Step::To(position + 1))
    }

    /// Asks once, and writes.
    fn finish(self) -> Result<(), CliError> {
        let count = self.decided.len();
        if count == 0 {
            return write_plain("nothing was decided\n");
        }
        let plural = if count == 1 { "decision" } else { "decisions" };
        loop {
            match ask(&format!("{count} {plural}: write? [y/n] ")).as_deref() {
                Some("y" | "yes") => break,
                Some("n" | "no") | None => return write_plain("nothing was decided\n"),
                Some(_) => {}
            }
        }
        let decisions = self
            .decided
            .into_iter()
            .filter_map(|(position, decisions)| Some((self.queue.get(position)?, decisions)));
        carry_out(
            self.desk,
            &self.sitting,
            &decisions.collect::<Vec<_>>(),
            false,
        )
    }

    fn card(&self, position: usize, candidate: &Candidate, whole: bool) -> String {
        let memory = candidate.memory();
        let mut card = format!(
            "\n{}/{}  {}\n{}\n",
            position + 1,
            self.queue.len(),
            meta(self.desk, candidate),
            wrapped(&memory.title, "")
        );
        if let Some(subtitle) = &memory.subtitle {
            let _ = writeln!(card, "{}", wrapped(subtitle, "  "));
        }
        for fact in &memory.facts {
            let _ = writeln!(card, "{}", wrapped(fact, "  - "));
        }
        if let Some(narrative) = &memory.narrative {
            let text = wrapped(narrative, "  ");
            let lines: Vec<&str> = text.lines().collect();
            let shown = if whole {
                lines.len()
            } else {
                NARRATIVE_LINES.min(lines.len())
            };
            card.push('\n');
            for line in lines.iter().take(shown) {
                let _ = writeln!(card, "{line}");
            }
            if shown < lines.len() {
                let _ = writeln!(card, "  … {} more lines: n", lines.len() - shown);
            }
            card.push('\n');
        }
        for (name, values) in [("tags", &memory.concepts), ("files", &memory.files)] {
            if !values.is_empty() {
                let _ = writeln!(
                    card,
                    "{}",
                    wrapped(&format!("{name}: {}", values.join(", ")), "  ")
                );
            }
        }
        if candidate.curated.is_outdated {
            card.push_str("  ! it changed since it was decided\n");
        }
        for warning in warnings::of(memory) {
            let _ = writeln!(card, "  ! {}", warning.as_str());
        }
        card.push_str(&self.neighbours(candidate));
        if let Some((_, decisions)) = self
            .decided
            .iter()
            .find(|(decided, _)| *decided == position)
        {
            let verdict = decisions
                .first()
                .map_or("", |decision| decision.verdict.as_str());
            let _ = writeln!(card, "  decided: {verdict}");
        }
        card
    }

    /// The nearest memories that agents see already.
    fn neighbours(&self, candidate: &Candidate) -> String {
        let request = QueryRequest {
            query: Some(candidate.memory().title.clone()),
            scope: Some(candidate.scope.name.clone()),
            limit: Some(NEIGHBOURS),
            ..QueryRequest::default()
        };
        let Ok(found) = self.service.query_memories(&request) else {
            return String::new();
        };
        let mut told = String::new();
        for hit in found.results {
            let line = format!("approved: {}  {}", hit.id, hit.title);
            let _ = writeln!(told, "{}", wrapped(&line, "  "));
        }
        told
    }
}

/// Text in the width of the terminal, with an indent.
fn wrapped(text: &str, indent: &str) -> String {
    let rest = " ".repeat(indent.len());
    let width = Screen::of_errors().width.unwrap_or(80);
    let options = textwrap::Options::new(width)
        .initial_indent(indent)
        .subsequent_indent(&rest);
    textwrap::fill(text, options)
}

/// Asks on standard error; `None` at the end of the input.
fn ask(question: &str) -> Option<String> {
    write_err(question);
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(1..) => Some(line.trim().to_owned()),
        _ => None,
    }
}

/// Opens a memory in the user's editor. `None` if nothing was changed.
fn edited(candidate: &Candidate) -> Result<Option<Edit>, CliError> {
    let memory = candidate.memory();
    let before = Edit {
        title: Some(memory.title.clone()),
        subtitle: Some(memory.subtitle.clone().unwrap_or_default()),
        facts: Some(memory.facts.clone()),
        concepts: Some(memory.concepts.clone()),
        files: Some(memory.files.clone()),
        narrative: Some(memory.narrative.clone().unwrap_or_default()),
        kind: Some(memory.kind.clone().unwrap_or_default()),
        project: Some(memory.project.clone().unwrap_or_default()),
    };
    let io = |source| CliError::Io {
        action: "edit",
        path: "a temporary file".into(),
        source,
    };
    let file = tempfile::Builder::new()
        .prefix("ack-memory-")
        .suffix(".toml")
        .tempfile()
        .map_err(io)?;
    let text = toml::to_string_pretty(&before).unwrap_or_default();
    std::fs::write(file.path(), text).map_err(io)?;
    open_editor(file.path()).map_err(io)?;
    let text = std::fs::read_to_string(file.path()).map_err(io)?;
    let after: Edit = toml::from_str(&text).map_err(|error| {
        let said = text::line(&error.to_string(), 300);
        CliError::invalid(
            "the edited memory",
            said,
            "TOML with the keys that were there",
        )
    })?;
    fn changed<T: PartialEq>(before: &Option<T>, after: Option<T>) -> Option<T> {
        after.filter(|after| before.as_ref() != Some(after))
    }
    let new = Edit {
        title: changed(&before.title, after.title),
        subtitle: changed(&before.subtitle, after.subtitle),
        facts: changed(&before.facts, after.facts),
        concepts: changed(&before.concepts, after.concepts),
        files: changed(&before.files, after.files),
        narrative: changed(&before.narrative, after.narrative),
        kind: changed(&before.kind, after.kind),
        project: changed(&before.project, after.project),
    };
    Ok((new != Edit::default()).then(|| candidate.with_previous_edit(new)))
}

/// Runs `$VISUAL` or `$EDITOR`, which may have arguments.
#[expect(
    clippy::disallowed_methods,
    reason = "a person asked for their own editor"
)]
fn open_editor(file: &Path) -> std::io::Result<()> {
    let editor = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(|variable| std::env::var_os(variable)?.into_string().ok())
        .find(|editor| !editor.trim().is_empty())
        .unwrap_or_else(|| "vi".to_owned());
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "editor"])
        .arg(file)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!(
            "the editor ended with {status}"
        )))
    }
}

/// A line for `--apply`. Keys of `--list --json` that say nothing about the decision are ignored.
#[derive(Debug, Deserialize)]
struct ApplyLine {
    id: String,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    digest: Option<String>,
    verdict: Verdict,
    #[serde(default)]
    into: Option<String>,
    #[serde(default)]
    edit: Option<Edit>,
    #[serde(default)]
    reason: Option<String>,
}

/// Writes decisions from a file. Every line is checked before the first one is written.
fn apply(desk: Desk<'_>, file: &Path, scope: Option<&str>) -> Result<(), CliError> {
    let io = |source| CliError::Io {
        action: "read",
        path: file.to_owned(),
        source,
    };
    let mut text = String::new();
    if file.as_os_str() == "-" {
        if std::io::stdin().is_terminal() {
            write_err("reading decisions from the terminal; end with Ctrl+D\n");
        }
        std::io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map_err(io)?;
    } else {
        text = std::fs::read_to_string(file).map_err(io)?;
    }
    let sitting = desk.sitting(None)?;
    let mut decided: Vec<(Candidate, Vec<Decision>)> = Vec::new();
    for (number, line) in (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let wrong = |reason: String| {
            CliError::invalid(
                &format!("line {number}"),
                text::line(&reason, 200),
                "an entry of `review --list --json` with a `verdict`",
            )
        };
        let line: ApplyLine =
            serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        let scopes = desk.scopes(line.scope.as_deref().or(scope))?;
        let candidate = by_id(&scopes, &line.id)?;
        if line
            .digest
            .as_ref()
            .is_some_and(|digest| *digest != candidate.curated.digest)
        {
            return Err(wrong(format!("{} changed since it was listed", line.id)));
        }
        let mut decisions = match (line.verdict, &line.into) {
            (Verdict::Merge | Verdict::Supersede, Some(into)) => {
                sitting.replacement(&candidate, &by_id(&scopes, into)?, line.verdict)?
            }
            (verdict, into) => {
                let mut decision = sitting.decision(&candidate, verdict);
                decision.into.clone_from(into);
                decision.edit.clone_from(&line.edit);
                vec![decision]
            }
        };
        for decision in &mut decisions {
            decision.reason = line.reason.as_deref().map(|reason| text::line(reason, 500));
            decision
                .validate()
                .map_err(|error| wrong(error.to_string()))?;
        }
        decided.push((candidate, decisions));
    }
    let decisions = decided
        .iter()
        .map(|(candidate, decisions)| (candidate, decisions.clone()));
    carry_out(desk, &sitting, &decisions.collect::<Vec<_>>(), false)
}
