//! The command `undo`.

use ack_api::decision::Decision;
use ack_api::text;
use serde_json::json;

use super::{decided_text, dry_run_session, side_effect_lines};
use crate::cli::args::UndoArgs;
use crate::cli::caller::Caller;
use crate::cli::error::CliError;
use crate::cli::output::{write_json, write_plain};
use crate::cli::progress;
use crate::cli::screen::Screen;
use crate::cli::user::{system_user_name, user_name};
use ack_desk::curate::find::short_ids;
use ack_desk::curate::side_effects::SideEffects;
use ack_desk::curate::{log, undo};
use ack_service::scope::Scope;
use ack_service::short_id::ShortIds;

pub fn undo(caller: Caller<'_>, args: &UndoArgs) -> Result<(), CliError> {
    let scopes = caller.readable_scopes(args.scope.as_deref())?;
    let session =
        if args.dry_run { dry_run_session(caller, None) } else { caller.session(None)? };
    let batch = args.batch.as_deref();
    // Git may have learned the name since.
    let names = [user_name(caller.config), system_user_name()];
    let undo = progress::while_reading(|| undo::prepare(&scopes, batch, &names, &session))?;
    let mut side_effects = SideEffects::default();
    if args.dry_run {
        for step in &undo.steps {
            side_effects.add(step.dry_run()?);
        }
    } else {
        log::write_scopes(&undo.steps, &undo.batch, |step| {
            side_effects.add(step.write()?);
            Ok(())
        })?;
    }
    if caller.json {
        let decisions = undo.steps.iter().flat_map(|step| &step.decisions);
        let decisions: Vec<&Decision> = decisions.collect();
        return write_json(&json!({
            "undone": undo.batch, "decisions": decisions, "dry_run": args.dry_run,
            "served_again": side_effects.served_again,
            "wait_again": side_effects.wait_again,
            "also_rejected": side_effects.also_rejected,
        }));
    }
    let short = short_ids(&scopes);
    let would = if args.dry_run { "would undo" } else { "undid" };
    let mut undone: Vec<String> = Vec::new();
    for step in &undo.steps {
        let ids = step.decisions.iter().map(|decision| decision.id.as_str());
        let ids: Vec<&str> = ids.collect();
        undone.extend(lines_about(&step.scope, &ids, &short));
    }
    let number = undone.len();
    write_plain(&format!(
        "{would} {} of batch {} ({}):\n{}{}",
        decided_text(number),
        undo.batch,
        undo.actor,
        Screen::of_output().fold(undone, &format!("undo {} --dry-run | less", undo.batch)),
        side_effect_lines(&side_effects, &short)
    ))
}

/// A line for each memory. If the store cannot be read, it has no title.
fn lines_about(scope: &Scope, ids: &[&str], short: &ShortIds) -> Vec<String> {
    let read = scope.store.snapshot(|snapshot| {
        ids.iter().map(|id| snapshot.by_id(id)).collect::<Result<Vec<_>, _>>()
    });
    let titles = read.unwrap_or_else(|_| vec![None; ids.len()]).into_iter();
    let lines = ids.iter().zip(titles).map(|(id, memory)| {
        let title = memory.map(|memory| text::line(&memory.title, 80));
        let (id, title) = (short.shortest(id), title.unwrap_or_default());
        format!("  {id}  {}  {title}\n", scope.name)
    });
    lines.collect()
}
