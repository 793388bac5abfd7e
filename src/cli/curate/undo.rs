//! The command `undo`.

use ack_api::decision::Decision;
use ack_api::text;
use serde_json::json;

use super::{decided_text, prepare, side_effect_lines};
use crate::cli::args::UndoArgs;
use crate::cli::caller::Caller;
use crate::cli::error::CliError;
use crate::cli::output::{write_json, write_plain};
use crate::cli::progress;
use crate::cli::screen::Screen;
use crate::cli::user::{system_user_name, user_name};
use ack_desk::curate::find::short_ids;
use ack_desk::curate::undo;

pub fn undo(caller: Caller<'_>, args: &UndoArgs) -> Result<(), CliError> {
    let scopes = caller.readable_scopes(args.scope.as_deref())?;
    let session = prepare(caller, args.dry_run, None)?;
    let batch = args.batch.as_deref();
    // Git may have learned the name since.
    let names = [user_name(caller.config), system_user_name()];
    let undo = progress::while_reading(|| undo::prepare(&scopes, batch, &names, &session))?;
    let side_effects = undo.run(args.dry_run)?;
    if caller.json {
        let decisions: Vec<&Decision> = undo.steps.iter().flat_map(|(_, it)| it).collect();
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
    for (scope, decisions) in &undo.steps {
        let read = scope.store.snapshot(|snapshot| {
            decisions.iter().map(|it| snapshot.by_id(&it.id)).collect::<Result<Vec<_>, _>>()
        });
        // If the store cannot be read, they have no titles.
        let memories = read.unwrap_or_default().into_iter().chain(std::iter::repeat(None));
        undone.extend(decisions.iter().zip(memories).map(|(decision, memory)| {
            let title = memory.map(|memory| text::line(&memory.title, 80)).unwrap_or_default();
            format!("  {}  {}  {title}\n", short.shortest(&decision.id), scope.name)
        }));
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
