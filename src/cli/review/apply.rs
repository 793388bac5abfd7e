//! `review --apply`: decisions from a file. A person at a terminal sees all of them before they are
//! written, because any program can write a file.

use std::fmt::Write as _;
use std::io::{IsTerminal, Read};
use std::path::Path;

use ack_api::text;
use ack_api::time::utc_day;

use crate::cli::caller::Caller;
use crate::cli::curate::{confirm_decision, mark_stale, report, summary};
use crate::cli::error::CliError;
use crate::cli::output::write_err;
use crate::cli::review::unwritten;
use ack_desk::Desk;
use ack_desk::apply::ListedDecision;
use ack_desk::choice::{Choice, count_text};
use ack_desk::curate::Candidate;
use ack_desk::curate::find::short_ids;
use ack_service::Service;

const MAX_APPLY_BYTES: u64 = 256 << 20;

/// Writes decisions from a file: checks every line first, and shows a person what it will write.
pub fn run(
    caller: Caller<'_>,
    service: &'static Service,
    file: &Path,
    scope: Option<&str>,
) -> Result<(), CliError> {
    let text = read(file)?;
    let text = text.trim_start_matches('\u{feff}');
    let session = caller.session(None)?;
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut lines: Vec<(usize, ListedDecision)> = Vec::new();
    let readable = caller.readable_scopes(scope)?;
    let wrong = |number: usize, reason: &str| {
        CliError::typed(format!("line {number}: {}", text::line(reason, 300)))
    };
    let raw = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    for (number, line) in raw.clone() {
        let line = ListedDecision::parse(line).map_err(|reason| wrong(number, &reason))?;
        let candidate = match line.scope.as_deref().or(scope) {
            Some(name) => line.candidate(&caller.scopes(Some(name))?),
            None => line.candidate(&readable),
        };
        let candidate = candidate.map_err(|reason| wrong(number, &reason))?;
        let is_same = |other: &Candidate| {
            other.scope.name == candidate.scope.name && other.memory().id == candidate.memory().id
        };
        if let Some((first, _)) = candidates.iter().position(is_same).and_then(|at| lines.get(at)) {
            let reason = format!("line {first} decides about {} too; keep one of them", line.id);
            return Err(wrong(number, &reason));
        }
        candidates.push(candidate);
        lines.push((number, line));
    }
    if lines.is_empty() {
        return Err(CliError::invalid(
            "--apply",
            "a file without entries",
            "entries of `review --list --json` with a `verdict`, one JSON object per line",
        ));
    }
    let mut listing = listing(&lines, &candidates, caller);
    let mut desk = Desk::with(candidates, &[], service, caller.now);
    mark_stale(&mut desk)?;
    for (position, (number, line)) in lines.into_iter().enumerate() {
        let reason = line.reason.as_deref().map(|reason| text::line(reason, 500));
        let choices = line.choices(utc_day(caller.now)).map_err(|reason| wrong(number, &reason))?;
        let serves = choices.iter().any(Choice::serves);
        for choice in choices {
            desk.choose(&[position], choice, reason.clone())
                .map_err(|error| wrong(number, &error.to_string()))?;
        }
        if let Some(entry) = listing.get_mut(position).filter(|_| serves) {
            entry.extend(desk.flags(position).map(|flag| format!("      ⚑ {flag}\n")));
        }
    }
    write_err(&listing.concat());
    let decisions = count_text(desk.unwritten(), "decision", "decisions");
    if session.is_human() && !confirm_decision(&format!("Write {decisions}?")) {
        write_err("nothing was decided\n");
        return Ok(());
    }
    let outcome = desk.write(&session);
    let left = raw.zip(desk.items()).filter(|(_, item)| item.saved.is_none());
    let rest: Vec<&str> = left.map(|((_, line), _)| line).collect();
    let is_ours = unwritten::keep_rest(file, &rest).map_err(CliError::io("write", file))?;
    report(caller, &outcome?, false)?;
    if !rest.is_empty() && file.as_os_str() != "-" {
        let count = count_text(rest.len(), "decision", "decisions");
        let state = if is_ours { "has only these now" } else { "is unchanged" };
        let file = text::line(&file.display().to_string(), 200);
        write_err(&format!("note: {count} of `{file}` not written; the file {state}\n"));
    }
    Ok(())
}

/// What a file decides: for each decision a line, and below it the text that it changes.
fn listing(
    lines: &[(usize, ListedDecision)],
    candidates: &[Candidate],
    caller: Caller<'_>,
) -> Vec<String> {
    let short = short_ids(&caller.scopes(None).unwrap_or_default());
    let entries = lines.iter().zip(candidates).map(|((_, line), candidate)| {
        let what = line.in_words(&short);
        let mut entry = format!("  {}  {what}\n", summary(candidate, &short));
        for (field, new) in line.edited() {
            let _ = writeln!(entry, "      {field}: {new}");
        }
        entry
    });
    entries.collect()
}

fn read(file: &Path) -> Result<String, CliError> {
    let io = CliError::io("read", file);
    if file.as_os_str() != "-" {
        return ack_sys::files::read_text(file, MAX_APPLY_BYTES).map_err(io);
    }
    if std::io::stdin().is_terminal() {
        write_err("reading decisions from the terminal; end with Ctrl+D\n");
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_APPLY_BYTES + 1).read_to_string(&mut text);
    if read.map_err(&io)? as u64 > MAX_APPLY_BYTES {
        return Err(io(std::io::ErrorKind::FileTooLarge.into()));
    }
    Ok(text)
}
