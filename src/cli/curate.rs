//! The commands that decide about memories. They are for people: they refuse to write without a
//! terminal, unless the caller has the owner's token.

mod typed_ids;
mod undo;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use ack_api::decision::{Decision, Verdict};
use ack_api::memory::Status;
use ack_api::text;
use serde_json::json;

use self::typed_ids::{Places, Replacing, check_chosen};
pub use self::undo::undo;
use super::args::{ChosenArgs, DecideArgs, MergeArgs, StageArgs, SupersedeArgs};
use super::caller::{Caller, reason};
use super::output::{write_err, write_plain};
use super::render::count;
use super::{progress, prompt, signals};
use crate::cli::error::CliError;
use crate::curate::find::{Filter, queue, short_ids, unmatched};
use crate::curate::side_effects::{About, SideEffects};
use crate::curate::{Candidate, ReviewSession, stale, status_in_words, write};
use crate::desk::ReviewOutcome;
use crate::scope::Scope;
use crate::service::short_id::ShortIds;
use crate::service::{Error, Service};

/// How many memories to list before a question.
const MAX_LISTED: usize = 20;

/// Runs `approve`, `reject` and `promote`.
pub fn decide(caller: Caller<'_>, verdict: Verdict, args: ChosenArgs) -> Result<(), CliError> {
    decide_until(caller, verdict, args, None)
}

/// Runs `stage`.
pub fn stage(caller: Caller<'_>, args: StageArgs) -> Result<(), CliError> {
    decide_until(caller, Verdict::Stage, args.chosen, args.until.as_deref())
}

fn decide_until(
    caller: Caller<'_>,
    verdict: Verdict,
    args: ChosenArgs,
    until: Option<&str>,
) -> Result<(), CliError> {
    check_chosen(verdict.as_str(), &args)?;
    let by_filter = args.ids.is_empty();
    let only = args.decide.scope.as_deref();
    let scopes = caller.readable_scopes(only)?;
    let filter = Filter {
        kind: args.kind,
        project: args.project,
        tag: args.tag,
        session: args.session,
    };
    if by_filter && filter.is_empty() && !args.waiting {
        return Err(CliError::invalid(
            "ID",
            "missing",
            "ids, or --type, --project, --tag, --session or --waiting to choose among those that wait",
        ));
    }
    let candidates = progress::while_reading(|| {
        if by_filter {
            return Ok(without_duplicate_ids(
                queue(&scopes, &filter, caller.now)?.waiting,
            ));
        }
        let places = Places {
            caller,
            only,
            scopes: &scopes,
        };
        let mut named = BTreeSet::new();
        let mut found: Vec<Candidate> = Vec::new();
        for id in &args.ids {
            let candidate = places.find(id)?;
            // The same memory under its id and a part of it is still one.
            if named.insert((candidate.scope.name.clone(), candidate.memory().id.clone())) {
                found.push(candidate);
            }
        }
        Ok::<_, CliError>(found)
    })?;
    if candidates.is_empty() {
        let others = match only {
            Some(_) => caller.scopes(None).unwrap_or_default(),
            None => Vec::new(),
        };
        let unmatched =
            progress::while_reading(|| unmatched(&scopes, &others, &filter, caller.now));
        return Err(CliError::NothingWaits(unmatched?));
    }
    let dry_run = args.decide.dry_run;
    let session = prepare(caller, &args.decide)?;
    let service = Service::new(caller.config.clone());
    let staleness = service.staleness(caller.now);
    let keeps = matches!(verdict, Verdict::Approve | Verdict::Promote);
    let mut decisions = Vec::new();
    let mut known = Vec::new();
    for candidate in &candidates {
        let mut decision = session.decision(candidate, verdict);
        decision.until = until.map(str::to_owned);
        if keeps && let Some(reason) = stale::reason(candidate, &staleness)? {
            decision.despite = Some(stale::marks_kept_despite(candidate.memory(), &reason));
        }
        if repeats(candidate, &decision) {
            known.push(repeated(candidate));
            continue;
        }
        decisions.push((candidate, vec![decision]));
    }
    service.close();
    for line in known.iter().take(MAX_LISTED) {
        write_err(line);
    }
    if known.len() > MAX_LISTED {
        write_err(&format!("note: and {} more\n", known.len() - MAX_LISTED));
    }
    if decisions.is_empty() && !caller.json {
        return write_plain("nothing was decided\n");
    }
    let is_sure = !by_filter || dry_run || args.yes;
    if !is_sure && !confirm(verdict, &decisions, &short_ids(&scopes))? {
        write_err("nothing was decided\n");
        return Ok(());
    }
    carry_out(caller, &session, &decisions, dry_run)
}

/// Whether a decision repeats the newest one about the memory.
fn repeats(candidate: &Candidate, decision: &Decision) -> bool {
    let (curated, memory) = (&candidate.curated, candidate.memory());
    let says_more = decision.reason.is_some()
        || decision.despite.is_some() && decision.despite != memory.kept_despite
        || decision.until.is_some()
        || curated.put_off_until.is_some()
        || memory.superseded_by.is_some();
    curated.is_decided && !says_more && decision.verdict.status() == Some(memory.status)
}

/// Who decided the same about a memory before.
fn repeated(candidate: &Candidate) -> String {
    let memory = candidate.memory();
    let by = memory.reviewed_by.iter().cloned();
    let day = memory
        .reviewed_at
        .map(|at| at.strftime("%Y-%m-%d").to_string());
    let decided: Vec<String> = by.chain(day).collect();
    let status = status_in_words(memory.status);
    let (id, decided) = (&memory.id, decided.join(", "));
    format!("note: {id} {status} already ({decided}); it is left as it is\n")
}

/// The memories that can be decided about. Reports those whose id several rows have.
fn without_duplicate_ids(mut waiting: Vec<Candidate>) -> Vec<Candidate> {
    waiting.retain(|candidate| {
        if let Err(error) = candidate.check_single() {
            write_err(&format!("note: left out: {error}\n"));
            return false;
        }
        true
    });
    waiting
}

/// Runs `merge`.
pub fn merge(caller: Caller<'_>, args: &MergeArgs) -> Result<(), CliError> {
    let replacing = Replacing {
        command: "merge",
        flag: "--into",
        ids: &args.ids,
        stays: args.into.as_deref(),
        args: &args.decide,
    };
    replace(caller, replacing, Verdict::Merge)
}

/// Runs `supersede`.
pub fn supersede(caller: Caller<'_>, args: &SupersedeArgs) -> Result<(), CliError> {
    let replacing = Replacing {
        command: "supersede",
        flag: "--by",
        ids: &args.ids,
        stays: args.by.as_deref(),
        args: &args.decide,
    };
    replace(caller, replacing, Verdict::Supersede)
}

fn replace(caller: Caller<'_>, replacing: Replacing<'_>, verdict: Verdict) -> Result<(), CliError> {
    let (replaced_id, successor_id) = replacing.both()?;
    let args = replacing.args;
    let only = args.scope.as_deref();
    let scopes = caller.readable_scopes(only)?;
    let places = Places {
        caller,
        only,
        scopes: &scopes,
    };
    let (replaced_memory, successor) =
        progress::while_reading(|| (places.find(replaced_id), places.find(successor_id)));
    let (replaced_memory, successor) = (replaced_memory?, successor?);
    let session = prepare(caller, args)?;
    let mut replaced = session.replacement(&replaced_memory, &successor, verdict)?;
    let merged = replaced.split_off(1);
    let mut decisions = vec![(&replaced_memory, replaced)];
    if !merged.is_empty() {
        decisions.push((&successor, merged));
    }
    successor.check_single()?;
    carry_out(caller, &session, &decisions, args.dry_run)?;
    let (old, new) = (replaced_memory.memory(), successor.memory());
    if old.status.is_served() && new.status == Status::Staging {
        let (old, new) = (text::line(&old.id, 80), text::line(&new.id, 80));
        write_err(&format!(
            "note: {old} is still served until {new} is approved\n"
        ));
    }
    Ok(())
}

fn prepare(caller: Caller<'_>, args: &DecideArgs) -> Result<ReviewSession, CliError> {
    if args.dry_run {
        return Ok(dry_run_session(caller, args.because.as_deref()));
    }
    caller.session(args.because.as_deref())
}

/// A session that writes nothing. It needs no permission.
fn dry_run_session(caller: Caller<'_>, because: Option<&str>) -> ReviewSession {
    ReviewSession::begin("process:dry-run".to_owned(), reason(because), caller.now)
}

/// The decisions about each scope.
fn by_scope<'a>(
    decisions: &'a [(&Candidate, Vec<Decision>)],
) -> BTreeMap<&'a str, (&'a Arc<Scope>, Vec<Decision>)> {
    let mut by_scope: BTreeMap<&str, (&Arc<Scope>, Vec<Decision>)> = BTreeMap::new();
    for (candidate, decisions) in decisions {
        let entry = by_scope
            .entry(candidate.scope.name.as_str())
            .or_insert_with(|| (&candidate.scope, Vec::new()));
        entry.1.extend(decisions.iter().cloned());
    }
    by_scope
}

/// Writes the decisions, scope by scope, and reports the result.
fn carry_out(
    caller: Caller<'_>,
    session: &ReviewSession,
    decisions: &[(&Candidate, Vec<Decision>)],
    dry_run: bool,
) -> Result<(), CliError> {
    // A dry run fails for the same reasons as a real one.
    for (candidate, _) in decisions {
        candidate.check_single()?;
    }
    let by_scope = by_scope(decisions);
    let about = decisions.iter().map(|(candidate, _)| About::of(candidate));
    let mut outcome = ReviewOutcome {
        batch: session.batch.clone(),
        about: about.collect(),
        ..ReviewOutcome::default()
    };
    if dry_run {
        for (scope, decisions) in by_scope.into_values() {
            outcome.side_effects.add(write::dry_run(scope, &decisions)?);
            outcome.decisions.extend(decisions);
        }
        outcome.written = outcome.decisions.len();
        return report(caller, &outcome, dry_run);
    }
    let scopes: Vec<&Arc<Scope>> = by_scope.values().map(|(scope, _)| *scope).collect();
    write::write_scopes(&scopes, &session.batch, |scope| {
        let decisions = by_scope
            .get(scope.name.as_str())
            .map(|(_, all)| all.as_slice());
        let write_outcome = write::write(scope, decisions.unwrap_or_default())?;
        outcome.written += write_outcome.count;
        outcome.changed.extend(write_outcome.changed);
        outcome.side_effects.add(write_outcome.side_effects);
        outcome
            .decisions
            .extend_from_slice(decisions.unwrap_or_default());
        Ok(())
    })?;
    report(caller, &outcome, dry_run)
}

/// Reports the decisions.
pub fn report(caller: Caller<'_>, outcome: &ReviewOutcome, dry_run: bool) -> Result<(), CliError> {
    let ReviewOutcome {
        batch,
        written,
        changed,
        decisions,
        about,
        side_effects,
    } = outcome;
    if caller.json {
        return print_json(&json!({
            "batch": batch, "written": written, "dry_run": dry_run, "changed": changed,
            "decisions": decisions, "served_again": side_effects.served_again,
            "wait_again": side_effects.wait_again, "also_rejected": side_effects.also_rejected,
        }));
    }
    let short = short_ids(&caller.scopes(None).unwrap_or_default());
    let wrote = if dry_run { "would write" } else { "wrote" };
    let mut text = match *written {
        0 if !changed.is_empty() => "nothing was written:\n".to_owned(),
        written => format!("{wrote} {}:\n", decided_text(written)),
    };
    let is_written = |about: &&About| !changed.contains(&about.id);
    let made: HashMap<&str, &Decision> = decisions.iter().map(|it| (it.id.as_str(), it)).collect();
    for About { id, scope, title } in about.iter().filter(is_written) {
        let decision = made.get(id.as_str());
        // A memory stays as it is if the one that would have replaced it is rejected, too.
        let unchanged = || ("not decided", String::new());
        let (what, more) = decision.map_or_else(unchanged, |made| in_words(made, &short));
        let edited = decision.and_then(|made| made.edit.as_ref()?.title.as_ref());
        let (id, title) = (short.shortest(id), text::line(edited.unwrap_or(title), 80));
        let _ = writeln!(text, "  {what}  {id}  {scope}  {title}{more}");
    }
    let consequence = match *written {
        0 => "",
        _ => ": nothing was written about it",
    };
    for id in changed {
        let id = short.shortest(id);
        let _ = writeln!(
            text,
            "  {id} changed after you read it, or somebody decided about it{consequence}"
        );
    }
    text.push_str(&side_effect_lines(side_effects, &short));
    if !dry_run && *written > 0 {
        let undo = super::command::command(&format!("undo {batch}"));
        let _ = writeln!(text, "undo: {undo}");
    }
    write_plain(&text)
}

/// A decision as a participle, and what belongs to it: `merged`, ` (into obs-12)`.
fn in_words(decision: &Decision, short: &ShortIds) -> (&'static str, String) {
    let into = short.shortest(decision.into.as_deref().unwrap_or_default());
    let none = String::new();
    match decision.verdict {
        Verdict::Approve => ("approved", none),
        Verdict::Promote => ("promoted", none),
        Verdict::Reject => ("rejected", none),
        Verdict::Edit => ("edited", none),
        Verdict::Withdraw => ("left to its store", none),
        Verdict::Merge => ("merged", format!("  (into {into})")),
        Verdict::Supersede => ("replaced", format!("  (by {into})")),
        Verdict::Stage => match &decision.until {
            Some(until) => ("put off", format!("  (until {until})")),
            None => ("waits for review", none),
        },
    }
}

/// What else changes, a line for each.
fn side_effect_lines(side_effects: &SideEffects, short: &ShortIds) -> String {
    let lines = side_effects.lines(short).into_iter();
    lines.map(|line| line + "\n").collect()
}

/// One line about a memory.
pub fn summary(candidate: &Candidate, short: &ShortIds) -> String {
    let memory = candidate.memory();
    let (id, title) = (short.shortest(&memory.id), text::line(&memory.title, 80));
    format!("{id}  {}  {title}", candidate.scope.name)
}

fn decided_text(number: usize) -> String {
    count(number as u64, "decision")
}

/// Shows the selected memories and asks.
///
/// # Errors
/// There is no terminal to ask at.
fn confirm(
    verdict: Verdict,
    chosen: &[(&Candidate, Vec<Decision>)],
    short: &ShortIds,
) -> Result<bool, CliError> {
    if !prompt::is_possible() {
        return Err(CliError::invalid(
            "--yes",
            "missing, and without a terminal nobody can be asked",
            "--yes (decides without asking), or --dry-run (writes nothing)",
        ));
    }
    let mut text = String::new();
    for (candidate, _) in chosen.iter().take(MAX_LISTED) {
        let _ = writeln!(text, "  {}", summary(candidate, short));
    }
    if chosen.len() > MAX_LISTED {
        let _ = writeln!(text, "  and {} more", chosen.len() - MAX_LISTED);
    }
    for (scope, decisions) in by_scope(chosen).into_values() {
        text.push_str(&side_effect_lines(
            &write::dry_run(scope, &decisions)?,
            short,
        ));
    }
    write_err(&text);
    signals::at_exit(|| write_err("nothing was decided\n"));
    let chosen = count(chosen.len() as u64, "memory");
    let question = format!("{} {chosen}?", capitalised(verdict));
    let is_confirmed = prompt::confirm(&question);
    signals::at_exit(|| {});
    Ok(is_confirmed)
}

fn capitalised(verdict: Verdict) -> String {
    let word = verdict.as_str();
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

pub fn print_json(value: &serde_json::Value) -> Result<(), CliError> {
    write_plain(&(serde_json::to_string_pretty(value).unwrap_or_default() + "\n"))
}

/// Converts curation errors to errors of a command.
impl From<crate::curate::CurateError> for CliError {
    fn from(error: crate::curate::CurateError) -> Self {
        match error {
            crate::curate::CurateError::Store(error) => Self::Request(Error::from(error)),
            error => Self::Curate(error),
        }
    }
}
