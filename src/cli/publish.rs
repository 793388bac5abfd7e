//! `publish`: shows the plan, asks, writes, and prints the git commands that follow.

#[cfg(feature = "bucket")]
mod bucket;

use std::iter::once;
use std::path::Path;

use ack_api::time::utc_day;
use ack_worktree::history::DEFAULT_BRANCHES;
use ack_worktree::references;
use ack_worktree::repository::Repository;
use jiff::Timestamp;
use serde_json::json;

use super::args::PublishArgs;
use super::command::command;
use super::output::{json_with, write_json, write_plain};
use super::prompt;
use super::render::{count, verb};
use super::scopes::{add, set};
use crate::cli::error::CliError;
use ack_connect::{quoted, quoted_path};
use ack_desk::publish::{self, Approved, PublishError, PublishItem, PublishOptions, PublishPlan};
use ack_service::config::Config;
use ack_service::scope::Registry;
use ack_service::scope::resolve::check_usable;

const MAX_LISTED: usize = 20;

pub fn run(config: &Config, args: &PublishArgs, json: bool) -> Result<(), CliError> {
    #[cfg(not(feature = "bucket"))]
    if let Some(address) = &args.to {
        let address = ack_api::text::line(address, 200);
        let message =
            format!("this is the light build, which cannot publish to a bucket ({address})");
        let build = ack_service::config::FULL_BUILD;
        let hint = format!("{build}; this one publishes to a folder: `--to-folder DIR`");
        return Err(CliError::usage("--to", message).with_hint(hint));
    }
    let scopes = Registry::new(config).discover().scopes;
    let scope = &set::find_scope(&scopes, &args.scope)?;
    check_usable(scope)?;
    let PublishArgs { skip_held, overwrite, only_promoted, .. } = *args;
    let today = utc_day(Timestamp::now());
    let options = PublishOptions { skip_held, overwrite, only_promoted, today };
    #[cfg(feature = "bucket")]
    if let Some(address) = &args.to {
        return bucket::run(config, scope, address, options, args, json);
    }
    let folder = args.to_folder.as_deref().unwrap_or(Path::new("."));
    let folder = add::absolute(config, folder)?;
    let plan = publish::plan(scope, &folder, options)?;
    if !json {
        write_plain(&plan_text(&plan))?;
    }
    let writes = !plan.is_empty() && !args.dry_run && confirms(args, json, "Write these files?");
    if writes {
        plan.write()?;
    }
    let commands = if plan.is_empty() { Vec::new() } else { git_commands(&plan) };
    if json {
        return write_json(&json_with(&plan, json!({ "written": writes, "commands": commands })));
    }
    if !writes {
        let why = if plan.is_empty() {
            "nothing to do"
        } else if args.dry_run {
            "nothing was written"
        } else {
            "nothing was written; --yes writes it"
        };
        return write_plain(&format!("{why}\n"));
    }
    let next: String = commands.iter().map(|command| format!("  {command}\n")).collect();
    write_plain(&format!("written; next, run:\n{next}"))
}

fn confirms(args: &PublishArgs, json: bool, question: &str) -> bool {
    args.yes || !json && prompt::is_possible() && prompt::confirm(question)
}

fn plan_text(plan: &PublishPlan) -> String {
    let lines = |items: &[PublishItem], why: &str| {
        items.iter().map(|item| format!("{} ({}){why}", item.path.display(), item.id)).collect()
    };
    let edited = "; edited in the folder, and its memory changed too: --overwrite replaces it";
    let mut out = format!("scope {} to {}\n", plan.scope, plan.folder.display());
    out += &changes_text(
        [
            ("add", lines(&plan.added, "")),
            ("change", lines(&plan.changed, "")),
            ("remove", lines(&plan.withdrawn, "")),
            ("keep", lines(&plan.kept, edited)),
        ],
        &plan.approved,
        plan.unchanged,
    );
    out + &waiting_text(&plan.scope, plan.is_empty(), &plan.approved)
}

/// What is added, changed, removed and left, what is held back or should be looked at, and the
/// numbers.
fn changes_text(kinds: [(&str, Vec<String>); 4], approved: &Approved, unchanged: usize) -> String {
    let [added, changed, removed, _] = kinds.each_ref().map(|(_, lines)| lines.len());
    let mut out = String::new();
    for (verb, lines) in kinds {
        out += &listed_lines(&lines, |line| format!("  {verb:<6} {line}\n"));
    }
    for (verb, items) in [("hold", &approved.held), ("look", &approved.warnings)] {
        out += &listed_lines(items, |one| {
            format!("  {verb:<6} {} {}\n", one.id, one.reasons.join(", "))
        });
    }
    out + &format!(
        "{added} to add, {changed} to change, {removed} to remove, {unchanged} unchanged\n"
    )
}

/// What waits for review, beside a plan that is empty or if nothing is approved, and the next step.
fn waiting_text(scope: &str, is_empty: bool, approved: &Approved) -> String {
    let Approved { waiting, also_waiting, .. } = *approved;
    let review = command(&format!("review --scope {}", quoted(scope)));
    let waits = |number: usize| verb(number as u64, "waits", "wait");
    let mut out = String::new();
    if is_empty && also_waiting > 0 {
        let memories = count(also_waiting as u64, "memory");
        out += &format!("{memories} {} for review: `{review}`\n", waits(also_waiting));
    }
    match waiting {
        None => out,
        Some(0) => {
            out + &format!("no memory of scope {scope} is approved, and none waits for review\n")
        }
        Some(number) => {
            let waits = waits(number);
            out + &format!(
                "no memory of scope {scope} is approved, {number} {waits} for review; to review \
                 them, run:\n  {review}\n"
            )
        }
    }
}

fn listed_lines<T>(items: &[T], line: impl Fn(&T) -> String) -> String {
    let mut out: String = items.iter().take(MAX_LISTED).map(line).collect();
    if items.len() > MAX_LISTED {
        out += &format!("         and {} more\n", items.len() - MAX_LISTED);
    }
    out
}

/// The commands that commit the folder. This program never runs them.
fn git_commands(plan: &PublishPlan) -> Vec<String> {
    let existing = plan.folder.ancestors().find(|path| path.is_dir());
    let repository = existing.and_then(|folder| Repository::discover(folder, None));
    let Some(repository) = repository else {
        return vec![format!("git init {}", quoted_path(&plan.folder))];
    };
    let top = &repository.work_tree;
    let inside = match plan.folder.strip_prefix(top) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside,
        _ => Path::new("."),
    };
    let message = format!(
        "memory: {} added, {} changed, {} withdrawn",
        plan.added.len(),
        plan.changed.len(),
        plan.withdrawn.len()
    );
    let git = format!("git -C {}", quoted_path(top));
    let mut commands = Vec::new();
    // The default branch takes changes through pull requests.
    if repository.branch.as_deref().is_none_or(|branch| DEFAULT_BRANCHES.contains(&branch)) {
        let free = free_branch(&repository, &plan.scope);
        commands.push(format!("{git} switch -c {}", quoted(&free)));
    }
    commands.extend([
        format!("{git} add -A {}", quoted_path(inside)),
        format!("{git} commit -m {}", quoted(&message)),
        format!("{git} push -u origin HEAD"),
    ]);
    commands
}

/// A name for a new branch. If there is a branch of an earlier publication, git refuses to switch to
/// it, because the files that were just written are in its way.
fn free_branch(repository: &Repository, scope: &str) -> String {
    let name = format!("memory-{scope}");
    let is_taken = |branch: &String| {
        let mut kinds = ["heads", "remotes/origin"].iter();
        kinds.any(|kind| references::read(repository, &format!("refs/{kind}/{branch}")).is_some())
    };
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    once(name.clone()).chain(numbered).find(|branch| !is_taken(branch)).unwrap_or(name)
}

impl From<PublishError> for CliError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Store(error) => error.into(),
            error => Self::Publish(error),
        }
    }
}
