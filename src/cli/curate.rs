//! The commands that decide about memories. They are for people: they refuse to write without a
//! terminal, unless the caller has the owner's token.

mod typed_ids;
mod undo;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use ack_api::decision::{Decision, Verdict};
use ack_api::memory::{Memory, Status};
use ack_api::text;
use serde_json::json;

use self::typed_ids::Places;
pub use self::undo::undo;
use super::add::flags;
use super::args::{ChosenArgs, EditArgs, ReplaceArgs};
use super::caller::{Caller, reason};
use super::output::{write_err, write_json, write_plain};
use super::render::{PLAIN, block, count, grouped};
use super::review::editor::edited;
use super::screen::Screen;
use super::{progress, prompt, signals};
use crate::cli::error::CliError;
use ack_desk::choice::Choice;
use ack_desk::curate::find::{Filter, queue, short_ids, unmatched};
use ack_desk::curate::side_effects::{About, SideEffects};
use ack_desk::curate::{Candidate, CurateError, ReviewSession, check_successor, stale};
use ack_desk::held_back::HeldBack;
use ack_desk::{ChangedMemory, Desk, ReviewOutcome};
use ack_service::short_id::ShortIds;
use ack_service::{Error, Service};

const MAX_LISTED: usize = 20;

/// Runs `approve`, `reject` and `stage`.
pub fn decide(
    caller: Caller<'_>,
    command: &str,
    choice: Choice,
    args: &ChosenArgs,
) -> Result<(), CliError> {
    let by_filter = args.ids.is_empty();
    let is_sure = !by_filter || args.yes || args.decide.dry_run;
    let include_flagged = !by_filter || args.include_flagged;
    let places = Places::of(caller, &args.decide)?;
    let chosen = chosen(&places, args)?;
    let session = places.session()?;
    let service = Service::new(caller.config.clone()).leak();
    let mut desk = Desk::with(chosen, &places.scopes, service, caller.now);
    if matches!(choice, Choice::Approve | Choice::Promote) {
        mark_stale(&mut desk)?;
    }
    match include_flagged {
        true => desk.include_flagged(),
        false => progress::while_reading(|| desk.find_relations()),
    }
    service.close();
    let (repeated, numbers): (Vec<usize>, Vec<usize>) =
        (0..desk.items().len()).partition(|number| desk.repeats(*number, &choice, &session));
    report_repeated(&desk, &repeated);
    let (numbers, held_back) = desk.without_flagged(&numbers);
    if held_back.count() > 0 {
        let (see, why) = (super::command::command("review --flagged"), held_back.in_words());
        write_err(&format!(
            "note: {why}: `{see}` shows them; `{command} --include-flagged` includes them\n"
        ));
    }
    if numbers.is_empty() && !caller.json {
        return write_plain("nothing was decided\n");
    }
    if !is_sure && !confirm(&mut desk, command, &choice, (&numbers, &held_back))? {
        write_err("nothing was decided\n");
        return Ok(());
    }
    desk.choose(&numbers, choice, None)?;
    places.carry_out(desk, &session)
}

fn chosen(places: &Places<'_>, args: &ChosenArgs) -> Result<Vec<Candidate>, CliError> {
    let Places { caller, scopes, .. } = places;
    if !args.ids.is_empty() {
        let find = || args.ids.iter().map(|id| places.find(id)).collect::<Result<Vec<_>, _>>();
        let mut found = progress::while_reading(find)?;
        // The same memory under its id and a part of it is still one.
        let mut known = BTreeSet::new();
        found.retain(|it| known.insert((it.scope.name.clone(), it.memory().id.clone())));
        return Ok(found);
    }
    let ChosenArgs { kind, project, tag, session, .. } = args.clone();
    let filter = Filter { kind, project, tag, session, only: None };
    if filter.is_empty() && !args.waiting {
        return Err(CliError::missing(
            "ID",
            "ids, or --type, --project, --tag, --session or --waiting to choose among the unreviewed ones",
        ));
    }
    let mut waiting = progress::while_reading(|| queue(scopes, &filter, caller.now))?.waiting;
    waiting.retain(|candidate| match candidate.check_single() {
        Ok(()) => true,
        Err(error) => {
            write_err(&format!("note: left out: {error}\n"));
            false
        }
    });
    if !waiting.is_empty() {
        return Ok(waiting);
    }
    let is_scope_named = args.decide.scope.is_some();
    let others = caller.scopes(None).ok().filter(|_| is_scope_named).unwrap_or_default();
    let unmatched = progress::while_reading(|| unmatched(scopes, &others, &filter, caller.now))?;
    let message = format!("no unreviewed memory matches{}", unmatched.in_words());
    Err(CliError::typed(message).with_hints(unmatched.hints()))
}

/// Notes why memories may be out of date, so that whoever approves them keeps them despite that.
pub fn mark_stale(desk: &mut Desk) -> Result<(), CliError> {
    let staleness = desk.service.staleness(desk.now);
    for number in 0..desk.items().len() {
        let item = desk.items().get(number);
        let reason = item.map(|item| stale::reason(&item.candidate, &staleness));
        desk.mark_stale(number, reason.transpose()?.flatten());
    }
    Ok(())
}

/// Names the memories about which the same was decided before, and who decided it.
fn report_repeated(desk: &Desk, numbers: &[usize]) {
    for item in numbers.iter().filter_map(|number| desk.items().get(*number)).take(MAX_LISTED) {
        let memory = item.memory();
        let by = memory.reviewed_by.iter().cloned();
        let day = memory.reviewed_at.map(|at| at.strftime("%Y-%m-%d").to_string());
        let decided = by.chain(day).collect::<Vec<_>>().join(", ");
        let (id, status) = (&memory.id, item.candidate.status_in_words());
        write_err(&format!("note: {id} {status} already ({decided}); it is left as it is\n"));
    }
    if numbers.len() > MAX_LISTED {
        write_err(&format!("note: and {} more\n", numbers.len() - MAX_LISTED));
    }
}

pub fn replace(caller: Caller<'_>, args: &ReplaceArgs) -> Result<(), CliError> {
    let stays = args.by.as_ref().or(args.into.as_ref()).map_or("", String::as_str);
    let places = Places::of(caller, &args.decide)?;
    let (replaced, successor) =
        progress::while_reading(|| (places.find(&args.id), places.find(stays)));
    let (replaced, successor) = (replaced?, successor?);
    let session = places.session()?;
    check_successor(&replaced, &successor)?;
    let (old, new) = (replaced.memory().clone(), successor.memory());
    let id = new.id.clone();
    let merges = args.merge || args.into.is_some();
    let choice = if merges { Choice::Merge { into: id } } else { Choice::Replace { by: id } };
    places.decide_alone(replaced, choice, &session)?;
    if old.status.is_served() && new.status == Status::Staging {
        let (old, new) = (text::line(&old.id, 80), text::line(&new.id, 80));
        write_err(&format!("note: {old} is still served until {new} is approved\n"));
    }
    Ok(())
}

pub fn edit(caller: Caller<'_>, args: &EditArgs) -> Result<(), CliError> {
    let places = Places::of(caller, &args.decide)?;
    let candidate = progress::while_reading(|| places.find(&args.id))?;
    let session = places.session()?;
    let Some(edit) = edited(&candidate)? else {
        return write_plain("nothing was changed\n");
    };
    let doubts = flags(&Memory {
        title: edit.title.clone().unwrap_or_default(),
        subtitle: edit.subtitle.clone(),
        facts: edit.facts.clone().unwrap_or_default(),
        narrative: edit.narrative.clone(),
        ..Memory::default()
    });
    doubts.say();
    if doubts.is_flagged && session.is_human() && !prompt::confirm("Approve it all the same?") {
        return write_plain("nothing was changed\n");
    }
    let choice = Choice::Edit { edit: Box::new(edit) };
    places.decide_alone(candidate, choice, &session)
}

impl Places<'_> {
    fn session(&self) -> Result<ReviewSession, CliError> {
        prepare(self.caller, self.args.dry_run, self.args.because.as_deref())
    }

    fn decide_alone(
        &self,
        candidate: Candidate,
        choice: Choice,
        session: &ReviewSession,
    ) -> Result<(), CliError> {
        let service = Service::new(self.caller.config.clone()).leak();
        let mut desk = Desk::with(vec![candidate], &self.scopes, service, self.caller.now);
        let is_repeated = desk.repeats(0, &choice, session);
        if is_repeated {
            report_repeated(&desk, &[0]);
        } else {
            desk.choose(&[0], choice, None)?;
        }
        service.close();
        if is_repeated && !self.caller.json {
            return write_plain("nothing was decided\n");
        }
        self.carry_out(desk, session)
    }

    fn carry_out(&self, mut desk: Desk, session: &ReviewSession) -> Result<(), CliError> {
        let dry_run = self.args.dry_run;
        let outcome = if dry_run { desk.dry_run(session)? } else { desk.write(session)? };
        report(self.caller, &outcome, dry_run)
    }
}

/// A session. One that writes nothing needs no permission.
fn prepare(
    caller: Caller<'_>,
    dry_run: bool,
    because: Option<&str>,
) -> Result<ReviewSession, CliError> {
    if dry_run {
        let actor = "process:dry-run".to_owned();
        return Ok(ReviewSession::begin(actor, reason(because), caller.now));
    }
    caller.session(because)
}

pub fn report(caller: Caller<'_>, outcome: &ReviewOutcome, dry_run: bool) -> Result<(), CliError> {
    let ReviewOutcome { batch, written, changed, decisions, about, side_effects } = outcome;
    let changed_ids: Vec<&str> = changed.iter().map(|changed| changed.id.as_str()).collect();
    if caller.json {
        return write_json(&json!({
            "batch": batch, "written": written, "dry_run": dry_run, "changed": changed_ids,
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
    let made: HashMap<&str, &Decision> = decisions.iter().map(|it| (it.id.as_str(), it)).collect();
    let (screen, mut lines) = (Screen::of_output(), Vec::new());
    for About { id, scope, title } in about {
        if changed_ids.contains(&id.as_str()) {
            continue;
        }
        let decision = made.get(id.as_str());
        // A memory stays as it is if the one that would have replaced it is rejected, too.
        let unchanged = || ("not decided", String::new());
        let (what, more) = decision.map_or_else(unchanged, |made| in_words(made, &short));
        let edited = decision.and_then(|made| made.edit.as_ref()?.title.as_ref());
        let (id, title) = (short.shortest(id), text::line(edited.unwrap_or(title), 80));
        let line = format!("{what}  {id}  {scope}  {title}{more}");
        lines.push(block(&screen, &line, ("  ", "    "), PLAIN));
    }
    if dry_run {
        let shown = screen.listed(lines.len());
        text.extend(lines.iter().take(shown).map(String::as_str));
        if lines.len() > shown {
            let more = grouped((lines.len() - shown) as u64);
            let _ = writeln!(text, "and {more} more: the same with `| less` shows all");
        }
    } else {
        text += &screen.fold(lines, &format!("undo {batch} --dry-run | less"));
    }
    let consequence = if *written == 0 { "" } else { ": nothing was written about it" };
    for ChangedMemory { id, conflict } in changed {
        let (id, what) = (short.shortest(id), conflict.of_one());
        let _ = writeln!(text, "  {id} {what} after you read it{consequence}");
    }
    text += &side_effect_lines(side_effects, &short);
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
            Some(until) => ("snoozed", format!("  (until {until})")),
            None => ("waits for review", none),
        },
    }
}

/// What else changes, a line for each.
fn side_effect_lines(side_effects: &SideEffects, short: &ShortIds) -> String {
    side_effects.lines(short).into_iter().map(|line| line + "\n").collect()
}

pub fn summary(candidate: &Candidate, short: &ShortIds) -> String {
    let memory = candidate.memory();
    let (id, title) = (short.shortest(&memory.id), text::line(&memory.title, 80));
    format!("{id}  {}  {title}", candidate.scope.name)
}

fn decided_text(number: usize) -> String {
    count(number as u64, "decision")
}

fn confirm(
    desk: &mut Desk,
    command: &str,
    choice: &Choice,
    (numbers, held_back): (&[usize], &HeldBack),
) -> Result<bool, CliError> {
    if !prompt::is_possible() {
        return Err(CliError::invalid(
            "--yes",
            "missing, and without a terminal nobody can be asked",
            "--yes (decides without asking), or --dry-run (writes nothing)",
        ));
    }
    desk.shorten_ids();
    let items = numbers.iter().filter_map(|number| desk.items().get(*number));
    let mut text = String::new();
    for item in items.take(MAX_LISTED) {
        let _ = writeln!(text, "  {}", summary(&item.candidate, &desk.short_ids));
    }
    if numbers.len() > MAX_LISTED {
        let _ = writeln!(text, "  and {} more", numbers.len() - MAX_LISTED);
    }
    for line in desk.preview(numbers, choice)?.side_effects {
        let _ = writeln!(text, "{line}");
    }
    write_err(&text);
    let (first, rest) = command.split_at(1);
    let chosen = count(numbers.len() as u64, "memory");
    let label = format!("{}{rest} {chosen}", first.to_uppercase());
    Ok(confirm_decision(&(held_back.after(&label) + "?")))
}

/// Asks before decisions are written. Ctrl-C says that there are none.
pub fn confirm_decision(question: &str) -> bool {
    signals::at_exit(|| write_err("nothing was decided\n"));
    let is_confirmed = prompt::confirm(question);
    signals::at_exit(|| {});
    is_confirmed
}

impl From<CurateError> for CliError {
    fn from(error: CurateError) -> Self {
        match error {
            CurateError::Store(error) => Self::Request(Error::from(error)),
            error => Self::Curate(error),
        }
    }
}
