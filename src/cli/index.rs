//! `index`: selects the scopes, shows the progress bar and prints the report.

use ack_service::scope::ScopeError;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressState, ProgressStyle};

use super::args::{EncoderName, IndexArgs};
use super::output::{write_err, write_json, write_out};
use super::progress;
use super::render::{count, grouped, verb};
use super::signals;
use crate::cli::command::command;
use crate::cli::error::CliError;
use ack_contextual::Contextual;
use ack_lance::build::{BuildError, EncoderChoice, Options, Progress, Report, Target, build};
use ack_lance::extent::Extent;
use ack_service::Error;
use ack_service::config::{Config, Setting};
use ack_service::scope::resolve::{check_usable, find};
use ack_service::scope::{Registry, Scope};

/// How many scopes a message names.
const MAX_NAMED: usize = 10;

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
            return Err(CliError::Request(Error::InvalidArgument {
                argument: match (&args.scope, &config.pinned) {
                    (None, Some(_)) => "--pin".to_owned(),
                    _ => "--scope".to_owned(),
                },
                value: if args.all { "given together with --all" } else { "missing" }.to_owned(),
                allowed: format!("--all, or one scope by its name: {}", some_names(&found)),
                nearest: Vec::new(),
                example: Some(command("index --all")),
            }));
        }
    };
    let encoder = match args.encoder {
        Some(EncoderName::Contextual) => EncoderChoice::Contextual(contextual()?),
        Some(EncoderName::Static) => EncoderChoice::Static,
        None => EncoderChoice::Usual,
    };
    let options = Options { dry_run: args.dry_run, rebuild: args.rebuild, encoder };
    if !args.dry_run {
        say_how_to_continue(args.rebuild);
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

/// The names of the first few scopes.
fn some_names(found: &[Arc<Scope>]) -> String {
    let names = found.iter().map(|scope| scope.name.as_str());
    let mut names: Vec<&str> = names.take(MAX_NAMED).collect();
    if found.len() > names.len() {
        names.push("…");
    }
    names.join(", ")
}

/// Makes Ctrl-C say that the work is not lost.
fn say_how_to_continue(is_rebuild: bool) {
    let note = if is_rebuild {
        "\nInterrupted. Run `index` again, without `--rebuild`: it continues after the last completed step.\n"
    } else {
        "\nInterrupted. Run the same command again: it continues after the last completed step.\n"
    };
    signals::on_interrupt(move || {
        write_err(note);
        signals::end_by_interrupt();
    });
}

/// The error for a scope that does not exist.
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

/// Brings the vector table of a scope up to date, with a progress bar.
pub fn index_scope(scope: &Scope, resident: usize, options: Options) -> Result<Report, CliError> {
    check_usable(scope)?;
    if scope.remote.is_some() {
        let message =
            format!("scope `{}` is read from a bucket, which brings its vector table", scope.name);
        return Err(CliError::usage("--scope", message));
    }
    let bar = progress::bar();
    let style = ProgressStyle::with_template(
        "{msg} {bar:30} {human_pos} of {human_len} rows, {rate}, {eta} left",
    );
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.with_key("rate", write_rate));
    bar.set_message(scope.name.clone());
    bar.enable_steady_tick(Duration::from_millis(200));
    let target = Target {
        scope: &scope.name,
        folder: scope.lance_folder(),
        store: &scope.store,
        extent: Extent::Derived,
        resident,
    };
    let report = build(&target, options, &mut |progress| match progress {
        Progress::Begin(rows) => bar.set_length(rows as u64),
        Progress::Added(rows) => bar.inc(rows as u64),
        Progress::Indexing => bar.set_message(format!("{}: indexes", scope.name)),
    });
    bar.finish_and_clear();
    report.map_err(|error| match error {
        BuildError::Store(error) => error.into(),
        source => CliError::Index { scope: scope.name.clone(), source },
    })
}

/// The small transformer inside the binary.
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
    let rebuilt = match &report.rebuild_reason {
        Some(why) => format!("; {was_rebuilt}: {why}"),
        None => String::new(),
    };
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

/// Rows per second, without a fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is neither negative nor larger than a number of rows"
)]
fn write_rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let _ = write!(out, "{} rows/s", grouped(state.per_sec().round() as u64));
}
