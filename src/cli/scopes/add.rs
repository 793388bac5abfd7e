//! `scopes add`: creates a manifest for a store elsewhere. Shows it first, writes it with `--yes`,
//! and overwrites nothing.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::set::project_path;
use crate::cli::args::AddArgs;
use crate::cli::command;
use crate::cli::error::CliError;
use crate::cli::output::{write_json, write_plain};
use crate::import::check_name;
use ack_api::memory::{Unreviewed, Visibility};
use ack_api::{ErrorCode, Hint, text};
use ack_connect::recogniser::{self, Support};
use ack_connect::{quoted, quoted_path};
use ack_desk::held_back::HeldBack;
use ack_service::bucket::is_bucket;
use ack_service::config::{Config, SettingsError};
use ack_service::scope::known::own_folder;
use ack_service::scope::manifest::Manifest;
use ack_service::scope::project::Projects;
use ack_service::scope::{DATABASE_NAMES, KnownScopes, Registry};
use ack_store::{Store, StoreError, StoreProblem, StoreSettings};
use ack_sys::files::{expand_home, make_private};
use ack_sys::text_file;

#[derive(Debug)]
pub struct PlannedScope {
    path: PathBuf,
    text: String,
    report: String,
}

pub fn run(config: &Config, args: &AddArgs, json: bool) -> Result<(), CliError> {
    let known = KnownScopes::new(&Registry::new(config).discover().scopes);
    let planned = plan(config, &known, args)?;
    if json {
        if args.yes {
            planned.write()?;
        }
        return write_json(&json!({
            "scope": args.name, "path": planned.path, "manifest": planned.text,
            "store": planned.report.trim_end(), "written": args.yes,
        }));
    }
    let indented: String = planned.text.lines().map(|line| format!("  {line}\n")).collect();
    let out = format!("{}\n{}\n{indented}\n", planned.report, planned.path.display());
    if !args.yes {
        let note = "nothing was written; run the same command with --yes to write it\n";
        return write_plain(&(out + note));
    }
    planned.write()?;
    let try_it = command::command(&format!("query --scope {} --all", quoted(&args.name)));
    write_plain(&format!("{out}written; try: {try_it}\n"))
}

/// Reads the store and builds the manifest. Writes nothing.
pub fn plan(
    config: &Config,
    known: &KnownScopes,
    args: &AddArgs,
) -> Result<PlannedScope, CliError> {
    check_name(&args.name)?;
    let folder = config.root.value.join("scopes").join(&args.name);
    let path = folder.join("scope.toml");
    if is_bucket(&args.store) {
        let address = text::line(&args.store.to_string_lossy(), 200);
        let message =
            format!("`{address}` is a bucket, and `--store` takes a database or a folder");
        let file = path.display();
        return Err(CliError::usage("--store", message).with_hint(format!(
            "write `table = \"{address}\"` in `{file}`; docs/buckets.md shows an example"
        )));
    }
    // The database in a folder, or the path itself.
    let named = absolute(config, &args.store)?;
    let mut databases = DATABASE_NAMES.iter().map(|name| named.join(name));
    let store = databases.find(|path| path.is_file()).unwrap_or_else(|| named.clone());
    if let Some(scope) = known.with_store(&store) {
        return Err(already_a_scope(&store, scope));
    }
    if let Some(scope) = known.named(&args.name) {
        let message = format!("scope `{scope}` already exists and is not overwritten");
        return Err(CliError::usage("NAME", message).with_hint("choose another name"));
    }
    refuse_elsewhere(&store, &folder)?;
    let unreviewed = args.unreviewed.unwrap_or_default();
    let report = describe(&store, unreviewed, args.reference.as_ref())?;
    let is_taken = |name: &&str| folder.join(name).exists();
    if ["scope.toml"].iter().chain(&DATABASE_NAMES).any(is_taken) {
        let message = format!("{} exists and is not overwritten", folder.display());
        return Err(CliError::usage("NAME", message).with_hint("choose another name"));
    }
    let manifest = Manifest {
        description: args.description.clone(),
        projects: Projects::of(args.projects.iter().cloned()),
        paths: args
            .paths
            .iter()
            .map(|path| project_path(config, path))
            .collect::<Result<_, _>>()?,
        remotes: args.remotes.clone(),
        visibility: if args.private { Visibility::Private } else { Visibility::Shared },
        store: Some(store),
        reference: args.reference.clone(),
        unreviewed,
        ..Manifest::default()
    };
    let text = toml::to_string(&manifest)
        .map_err(|error| SettingsError::invalid(&path, error.to_string()))?;
    Ok(PlannedScope { path, text: text.trim_end().to_owned() + "\n", report })
}

impl PlannedScope {
    /// Writes the manifest, readable only by its owner.
    pub fn write(&self) -> Result<(), CliError> {
        let io = CliError::io("create", &self.path);
        make_private(self.path.parent().unwrap_or(Path::new("."))).map_err(&io)?;
        text_file::replace(&self.path, &self.text).map_err(&io)
    }
}

pub fn already_a_scope(store: &Path, scope: &str) -> CliError {
    let message = format!("{} is already scope `{scope}`", store.display());
    CliError::usage("--store", message).with_example(format!("scopes --scope {}", quoted(scope)))
}

/// Refuses a store whose decisions this scope would not read, because they are in another folder.
pub fn refuse_elsewhere(store: &Path, own: &Path) -> Result<(), CliError> {
    let Some(folder) = own_folder(store).filter(|folder| folder != own) else {
        return Ok(());
    };
    let message = format!(
        "{} belongs to a scope already: its decisions are kept in {}, where no other scope \
         reads them",
        store.display(),
        folder.display()
    );
    let scopes = folder.parent().filter(|scopes| scopes.ends_with("scopes"));
    let there = match scopes.and_then(Path::parent) {
        Some(root) => format!("--root {}", quoted_path(root)),
        None => format!("--db {}", quoted_path(store)),
    };
    Err(CliError::usage("--store", message).with_hint(format!("use it where it is: `{there}`")))
}

pub fn absolute(config: &Config, path: &Path) -> Result<PathBuf, CliError> {
    let path = expand_home(path, config.home.as_deref());
    std::path::absolute(&path).map_err(CliError::io("find", &path))
}

pub fn describe(
    store: &Path,
    unreviewed: Unreviewed,
    reference: Option<&String>,
) -> Result<String, CliError> {
    let settings = StoreSettings { reference: reference.cloned(), ..StoreSettings::default() };
    let opened = Store::with(store.to_owned(), unreviewed, settings);
    let read = opened.snapshot(|snapshot| {
        let layout = &snapshot.layout;
        Ok((layout.profile, layout.has_status(), snapshot.counts_by_id()?))
    });
    let (profile, has_status, counts) = read.map_err(|error| with_program_name(store, error))?;
    let mut report = format!(
        "{} is {} store: {} approved, {} unreviewed{}\n",
        store.display(),
        profile.with_article(),
        counts.approved + counts.promoted,
        counts.staging,
        counts.rest_in_words()
    );
    // Files that were left out are reported when the store is added.
    for problem in &opened.notes_report().problems {
        report += &format!("note: {problem}\n");
    }
    match (has_status, unreviewed) {
        (false, Unreviewed::Staging) => {
            report += "it has no review status, so its memories are shown only with status staging or all;\n\
                       with --unreviewed approved, all count as approved but what is flagged\n";
        }
        (false, Unreviewed::Approved) => {
            let held_back = HeldBack::of_store(&opened)?;
            if held_back.count() > 0 {
                let see = command::command("review --flagged");
                report += &format!("{}: `{see}` shows them\n", held_back.in_words());
            }
        }
        (true, Unreviewed::Approved) if reference.is_none() => {
            report +=
                "note: --unreviewed changes nothing: the store keeps a review status of its own\n";
        }
        (true, _) => {}
    }
    Ok(report)
}

/// Names the program that the store belongs to, if it is not ours.
fn with_program_name(store: &Path, error: StoreError) -> CliError {
    if matches!(error.problem, StoreProblem::Missing) {
        let message = format!("there is no `{}`", error.path.display());
        return CliError::new(ErrorCode::StoreNotFound, message)
            .with_hint("name an existing database or folder of notes")
            .at(&error.path);
    }
    match recogniser::at(store) {
        Some(found) if found.kind.support() == Support::Import => {
            let message =
                format!("`{}` holds {}, not a store", store.display(), found.kind.title());
            CliError::new(ErrorCode::InvalidArgument, message)
                .with_hint(Hint::command("import FILE --scope NAME", "imports it"))
                .at(store)
        }
        Some(found) if found.kind.support() != Support::Served => {
            let what = found.kind.title();
            let message = format!("{} cannot be served: it is {what}", store.display());
            CliError::usage("--store", message).with_hint(found.advice())
        }
        _ => error.into(),
    }
}
