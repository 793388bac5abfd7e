//! `import`: the file, the progress bar and the report.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use indicatif::ProgressBar;
use serde_json::json;

use super::args::ImportArgs;
use super::error::CliError;
use super::output::{write_err, write_json, write_plain};
use super::progress;
use super::render::{count, grouped, verb};
use crate::import::{
    ImportError, ImportOptions, ImportReport, RefusedLine, check_name, run as import,
};
use ack_api::Hint;
use ack_connect::recogniser::{self, StoreKind, Support};
use ack_service::config::Config;
use ack_service::scope::resolve::{check_usable, find};
use ack_service::scope::{DATABASE_NAMES, Registry};

const MAX_LISTED: usize = 20;

pub fn run(
    config: &Config,
    args: &ImportArgs,
    json: bool,
    now: jiff::Timestamp,
) -> Result<(), CliError> {
    let Some(scope) = config.named_scope().map(|named| named.value.clone()) else {
        let allowed = "the name of the scope to import into, new or existing";
        return Err(CliError::missing("--scope", allowed)
            .with_example("import memories.jsonl --scope my-project"));
    };
    let path = store_of(config, &scope)?;
    let (mut input, bar) = open(args)?;
    let ImportArgs { skip_refused, update, dry_run, .. } = *args;
    let options = ImportOptions { skip_refused, update, dry_run };
    let result = import(path, &mut *input, options, now);
    bar.finish_and_clear();
    match &result {
        Err(ImportError::Refused { refused, .. }) if json => {
            write_json(&json!({ "refused": refused }))?;
        }
        Ok(ImportReport { refused, .. }) | Err(ImportError::Refused { refused, .. }) if !json => {
            write_err(&refusals_text(refused));
        }
        _ => {}
    }
    let report = result?;
    if json {
        return write_json(&report);
    }
    let (added, refused) = (report.added as u64, report.refused.len() as u64);
    let done = if args.dry_run { "would be" } else { verb(added, "was", "were") };
    write_plain(&format!(
        "{} {done} added, {} replaced, {} unchanged; {} refused\n{}\n",
        count(added, "memory"),
        grouped(report.updated as u64),
        grouped(report.unchanged as u64),
        count(refused, "line"),
        report.path.display()
    ))
}

fn store_of(config: &Config, scope: &str) -> Result<PathBuf, CliError> {
    let Some(known) = find(&Registry::new(config).discover().scopes, scope) else {
        check_name(scope)?;
        return Ok(config.root.value.join("scopes").join(scope).join(DATABASE_NAMES[0]));
    };
    // A broken manifest may name another store than the one to write to.
    check_usable(&known)?;
    if known.remote.is_some() {
        let name = &known.name;
        let message =
            format!("scope `{name}` is read from a bucket, so nothing can be imported into it");
        let hint = "import into the scope that is published there";
        return Err(CliError::usage("--scope", message).with_hint(hint));
    }
    Ok(known.store.path().to_owned())
}

fn open(args: &ImportArgs) -> Result<(Box<dyn BufRead>, ProgressBar), CliError> {
    let mut length = None;
    let input: Box<dyn BufRead> = if args.file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let io = CliError::io("read", &args.file);
        let file = File::open(&args.file).map_err(&io)?;
        let metadata = file.metadata().map_err(&io)?;
        let known = recogniser::at(&args.file).map(|found| found.kind);
        let known = known.filter(|kind| *kind != StoreKind::ImportLines);
        if metadata.is_dir() || known.is_some() {
            let (file, what) = (args.file.display(), known.map_or("a folder", StoreKind::title));
            let message = format!("{file} is {what}, and `import` reads a file of JSON lines");
            let hint = match known.map(StoreKind::support) {
                Some(Support::Served) => {
                    Hint::command("scopes add NAME --store PATH", "serves it in place")
                }
                Some(Support::Reference) => Hint::advice("hosts load this file themselves"),
                Some(Support::Import) | None => {
                    Hint::advice("schemas/import-line.json describes the lines")
                }
            };
            return Err(CliError::usage("FILE", message).with_hint(hint));
        }
        length = Some(metadata.len());
        Box::new(BufReader::new(file))
    };
    let bar =
        progress::bar("{spinner} {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left");
    length.into_iter().for_each(|length| bar.set_length(length));
    Ok((Box::new(bar.wrap_read(input)), bar))
}

fn refusals_text(refused: &[RefusedLine]) -> String {
    let listed = refused.iter().take(MAX_LISTED);
    let mut text: String =
        listed.map(|refusal| format!("line {}: {}\n", refusal.line, refusal.reason)).collect();
    if refused.len() > MAX_LISTED {
        text += &format!("and {} more\n", refused.len() - MAX_LISTED);
    }
    text
}
