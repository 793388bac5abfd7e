//! `index`: selects the scopes, shows the progress bar and prints the report. Also makes and
//! updates tables after other commands (see `tables`).

use std::collections::HashMap;
use std::sync::Arc;

use indicatif::ProgressState;

use super::args::{EncoderName, IndexArgs};
use super::command::command;
use super::error::CliError;
use super::output::{write_err, write_json, write_out};
use super::render::{count, grouped, verb};
use super::{progress, signals};
use ack_connect::quoted;
use ack_contextual::Contextual;
use ack_lance::Extent;
use ack_lance::build::{BuildError, EncoderChoice, Options, Report, Target, build};
use ack_service::Error;
use ack_service::config::{Config, Setting};
use ack_service::scope::resolve::{check_usable, find};
use ack_service::scope::{Registry, Scope, ScopeError};
use ack_store::open::FileState;

const MAX_NAMED: usize = 10;
/// A scope with fewer memories gets no table by itself: looking at all of them takes no time, and a
/// machine may have thousands of such scopes, one for each project.
const MIN_MEMORIES: u64 = 10;

pub fn run(config: &Config, args: &IndexArgs, json: bool) -> Result<(), CliError> {
    let registry = Registry::new(config);
    let found = registry.discover().scopes;
    let named = if args.all { config.pinned.as_ref() } else { config.named_scope() };
    let scopes: Vec<Arc<Scope>> = match (named, args.all) {
        (Some(named), false) => {
            vec![find(&found, &named.value).ok_or_else(|| missing(config, args, &found, named))?]
        }
        _ if found.is_empty() => return Err(ScopeError::no_scopes(config).into()),
        // The table of a bucket comes from the bucket.
        (None, true) => found.into_iter().filter(|scope| scope.remote.is_none()).collect(),
        (None, false) if found.len() == 1 => found,
        _ => {
            let is_pinned = args.scope.is_none() && config.pinned.is_some();
            let argument = if is_pinned { "--pin" } else { "--scope" };
            let allowed = format!("--all, or one scope by its name: {}", some_names(&found));
            let error = match args.all {
                true => CliError::invalid(argument, "given together with --all", allowed),
                false => CliError::missing(argument, allowed),
            };
            return Err(error.with_example("index --all"));
        }
    };
    let encoder = match args.encoder {
        Some(EncoderName::Contextual) => EncoderChoice::Contextual(contextual()?),
        Some(EncoderName::Static) => EncoderChoice::Static,
        None => EncoderChoice::Usual,
    };
    let options = Options { dry_run: args.dry_run, rebuild: args.rebuild, encoder };
    if !args.dry_run {
        let again = match args.rebuild {
            true => "Run `index` again, without `--rebuild`",
            false => "Run the same command again",
        };
        say_if_interrupted(format!(
            "\nInterrupted. {again}: it continues after the last completed step.\n"
        ));
    }
    let mut failed = None;
    let mut reports = Vec::new();
    for scope in &scopes {
        match index_scope(scope, config.resident.value as usize, options) {
            Ok(report) => {
                if !json {
                    write_out(&report_text(&report, args.dry_run))?;
                }
                reports.push(report);
            }
            Err(error) => {
                // Continue with the other scopes.
                if scopes.len() > 1 {
                    write_err(&format!("{}: {error}\n", scope.name));
                }
                failed = Some(error);
            }
        }
    }
    registry.close();
    if json {
        write_json(&reports)?;
    }
    failed.map_or(Ok(()), Err)
}

fn some_names(found: &[Arc<Scope>]) -> String {
    let names = found.iter().map(|scope| scope.name.as_str());
    let mut names: Vec<&str> = names.take(MAX_NAMED).collect();
    if found.len() > names.len() {
        names.push("…");
    }
    names.join(", ")
}

/// Makes Ctrl-C say that the work is not lost.
fn say_if_interrupted(note: String) {
    signals::on_interrupt(move || {
        write_err(&note);
        signals::end_by_interrupt();
    });
}

pub fn states(config: &Config) -> HashMap<String, FileState> {
    let state = |scope: &Arc<Scope>| Some((scope.name.clone(), scope.store.file_state().ok()?));
    Registry::new(config).discover().scopes.iter().filter_map(state).collect()
}

/// Makes or updates the table of each scope whose store is not in the state that is known.
pub fn refresh(config: &Config, known: &HashMap<String, FileState>) {
    let registry = Registry::new(config);
    let options = Options { dry_run: false, rebuild: false, encoder: EncoderChoice::Usual };
    for scope in registry.discover().scopes {
        let Ok(state) = scope.store.file_state() else {
            continue;
        };
        if known.get(&scope.name) == Some(&state) || !is_worth_a_table(&scope) {
            continue;
        }
        say_if_interrupted(format!(
            "\nInterrupted while making a vector table. Searches find everything without it, and \
             `{}` goes on with it.\n",
            command("index --all")
        ));
        if let Err(error) = index_scope(&scope, config.resident.value as usize, options) {
            write_err(&format!(
                "note: {error}; searches find everything without a vector table, and `{}` tries \
                 again\n",
                command(&format!("index --scope {}", quoted(&scope.name))),
            ));
        }
    }
    registry.close();
}

/// Whether a scope has a table, which has to follow its store, or enough memories for one. The
/// table of a scope in a bucket comes from the bucket.
fn is_worth_a_table(scope: &Scope) -> bool {
    if scope.remote.is_some() || scope.problem.is_some() {
        return false;
    }
    let count = || scope.store.snapshot(|snapshot| snapshot.counts_by_id());
    scope.lance_folder().exists()
        || count()
            .is_ok_and(|counts| counts.approved + counts.promoted + counts.staging >= MIN_MEMORIES)
}

fn missing(
    config: &Config,
    args: &IndexArgs,
    found: &[Arc<Scope>],
    pinned: &Setting<String>,
) -> CliError {
    let name = pinned.value.clone();
    if found.is_empty() {
        ScopeError::no_scopes(config).into()
    } else if args.scope.as_ref() == Some(&name) || config.pinned.is_none() {
        CliError::no_scope(&name, found)
    } else {
        let by = pinned.source.to_string();
        ScopeError::PinNotFound { name, by }.into()
    }
}

fn index_scope(scope: &Scope, resident: usize, options: Options) -> Result<Report, CliError> {
    check_usable(scope)?;
    if scope.remote.is_some() {
        let message =
            format!("scope `{}` is read from a bucket, which brings its vector table", scope.name);
        return Err(CliError::usage("--scope", message));
    }
    let bar = progress::bar("{msg} {bar:30} {human_pos} of {human_len} rows, {rate}, {eta} left");
    bar.set_style(bar.style().with_key("rate", write_rate));
    bar.set_message(scope.name.clone());
    let target = Target {
        scope: &scope.name,
        folder: scope.lance_folder(),
        store: &scope.store,
        extent: Extent::Derived,
        resident,
    };
    let report = build(&target, options, &mut |added, all| {
        bar.set_length(all as u64);
        bar.set_position(added as u64);
        if added == all {
            bar.set_message(format!("{}: indexes", scope.name));
        }
    });
    bar.finish_and_clear();
    report.map_err(|error| match error {
        BuildError::Store(error) => error.into(),
        source => CliError::Index { scope: scope.name.clone(), source },
    })
}

fn contextual() -> Result<&'static Contextual, CliError> {
    let damaged = || Error::Internal {
        operation: "index".to_owned(),
        message: "the transformer inside this binary is damaged".to_owned(),
    };
    Ok(Contextual::embedded().ok_or_else(damaged)?)
}

fn report_text(report: &Report, dry_run: bool) -> String {
    let (done, was_rebuilt) = if dry_run {
        ("would be", "the table would be rebuilt")
    } else {
        (verb(report.added as u64, "was", "were"), "rebuilt")
    };
    let why = report.rebuild_reason.as_ref();
    let rebuilt = why.map_or_else(String::new, |why| format!("; {was_rebuilt}: {why}"));
    let encoder = if report.contextual { "; contextual vectors" } else { "" };
    format!(
        "{}: {} {done} added, {} removed, {} {} unchanged{encoder}{rebuilt}\n",
        report.scope,
        count(report.added as u64, "row"),
        grouped(report.removed as u64),
        grouped(report.kept as u64),
        verb(report.kept as u64, "was", "were")
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is neither negative nor larger than a number of rows"
)]
fn write_rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let _ = write!(out, "{} rows/s", grouped(state.per_sec().round() as u64));
}
