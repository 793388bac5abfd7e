//! `publish --to`: shows the plan and its cost, asks, and publishes.

use std::sync::Arc;
use std::time::Duration;

use ack_api::remote::{RemoteSettings, check_endpoint, duration};
use ack_api::text;
use ack_bucket::BucketError;
use ack_bucket::address::Address;
use ack_bucket::publish::{
    BuiltVersion, Item, PrunePlan, RollbackChanges, Step, UploadCost, VersionSummary,
};
use indicatif::ProgressBar;
use serde_json::json;

use super::{MAX_LISTED, changes_text, confirms, waiting_text};
use crate::cli::args::{BucketArgs, PublishArgs};
use crate::cli::command::command;
use crate::cli::error::CliError;
use crate::cli::output::{json_with, write_json, write_plain};
use crate::cli::user::user_name;
use crate::cli::{progress, render};
use ack_connect::quoted;
use ack_desk::publish::PublishOptions;
use ack_desk::publish::bucket::{BucketOptions, BucketPlan, BucketPublishError, Publication};
use ack_service::config::Config;
use ack_service::scope::Scope;

const ENDPOINT_VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
const MAX_VERSIONS: usize = 50;

pub fn run(
    config: &Config,
    scope: &Arc<Scope>,
    address: &str,
    publish: PublishOptions,
    args: &PublishArgs,
    json: bool,
) -> Result<(), CliError> {
    let address: Address = address.parse()?;
    let settings = settings(scope, &args.bucket)?;
    let options = BucketOptions {
        publish,
        withdraw: args.bucket.withdraw.clone(),
        restore: args.bucket.restore.clone(),
        replace: args.bucket.replace.clone(),
        rebuild: args.bucket.reindex,
        by: user_name(config),
        resident: config.resident.value as usize,
    };
    let publication = Publication::new(scope, address, &settings, options)?;
    let request = BucketRequest { publication: &publication, args, config, json };
    match (&args.bucket.rollback, &args.bucket.prune) {
        _ if args.bucket.list => request.list(),
        (Some(version), _) => request.roll_back(version),
        (None, Some(older)) => request.prune(older),
        (None, None) => request.publish(),
    }
}

fn settings(scope: &Scope, args: &BucketArgs) -> Result<RemoteSettings, CliError> {
    let mut settings = scope.manifest.remote.clone().unwrap_or_default();
    if let Some(endpoint) = &args.endpoint {
        check(endpoint, "--endpoint")?;
        settings.endpoint = Some(endpoint.clone());
    }
    for variable in ENDPOINT_VARIABLES {
        let value = std::env::var_os(variable).filter(|value| !value.is_empty());
        if let Some(value) = value.filter(|_| settings.endpoint.is_none()) {
            let endpoint = value.to_string_lossy().into_owned();
            check(&endpoint, variable)?;
            settings.endpoint = Some(endpoint);
        }
    }
    settings.region = args.region.clone().or(settings.region);
    Ok(settings)
}

fn check(endpoint: &str, named: &str) -> Result<(), CliError> {
    check_endpoint(endpoint)
        .map_err(|allowed| CliError::invalid(named, text::line(endpoint, 100), allowed))
}

struct BucketRequest<'a> {
    publication: &'a Publication,
    args: &'a PublishArgs,
    config: &'a Config,
    json: bool,
}

impl BucketRequest<'_> {
    fn publish(&self) -> Result<(), CliError> {
        let bar = if self.json { ProgressBar::hidden() } else { progress::bar("{spinner} {msg}") };
        let planned = self.publication.plan(&mut |step| show(&bar, step))?;
        let nothing = planned.plan.is_empty() && !self.args.bucket.reindex;
        let made = || self.publication.make(&planned, &mut |step| show(&bar, step));
        let built = if nothing { None } else { Some(made()?) };
        bar.finish_and_clear();
        let cost = built.as_ref().map(BuiltVersion::cost);
        if !self.json {
            write_plain(&plan_text(&planned, cost))?;
        }
        let question = format!("Publish version {}?", planned.next_number());
        let writes = !nothing && !self.args.dry_run && confirms(self.args, self.json, &question);
        let mut head = None;
        if let Some(built) = built.filter(|_| writes) {
            let result = self.publication.publish(&planned, built, &mut |step| show(&bar, step));
            bar.finish_and_clear();
            head = Some(result?);
        }
        if self.json {
            let done = json!({ "cost": cost, "written": head.is_some(), "published": head });
            return write_json(&json_with(&planned, done));
        }
        match head {
            Some(head) => {
                let withdrawn = &self.args.bucket.withdraw;
                let undo = head.previous.map_or_else(String::new, |before| {
                    format!("; undo: {}", self.undo_command(before, withdrawn))
                });
                let remains = if withdrawn.is_empty() {
                    ""
                } else {
                    "the text stays in older files of the bucket until you run `publish` with \
                     --reindex and then with --prune 0d\n"
                };
                write_plain(&format!(
                    "published version {} with {}{undo}\n{remains}",
                    head.version,
                    render::count(head.rows, "memory"),
                ))
            }
            None if nothing => write_plain("nothing to do\n"),
            None if self.args.dry_run => write_plain("nothing was published\n"),
            None => write_plain("nothing was published; --yes publishes it\n"),
        }
    }

    fn undo_command(&self, version: u64, restore: &[String]) -> String {
        let mut undo = format!(
            "publish {} --to {} --rollback v-{version}",
            quoted(&self.args.scope),
            quoted(self.args.to.as_deref().unwrap_or_default())
        );
        let BucketArgs { endpoint, region, .. } = &self.args.bucket;
        // Memories that were withdrawn by hand only come back if they are named.
        let restore = restore.iter().map(|id| ("--restore", id));
        let endpoint = endpoint.iter().map(|url| ("--endpoint", url));
        let region = region.iter().map(|region| ("--region", region));
        for (flag, value) in restore.chain(endpoint).chain(region) {
            undo += &format!(" {flag} {}", quoted(value));
        }
        command(&undo)
    }

    fn list(&self) -> Result<(), CliError> {
        let versions = self.publication.publisher().list(MAX_VERSIONS)?;
        if self.json {
            return write_json(&json!({ "versions": versions }));
        }
        write_plain(&versions.iter().map(line).collect::<String>())
    }

    fn roll_back(&self, version: &str) -> Result<(), CliError> {
        let number = version.trim_start_matches("v-").trim_start_matches('v');
        let number: u64 = number.parse().map_err(|_| {
            CliError::invalid("--rollback", version, "the number of a version, such as v-12")
        })?;
        let publisher = self.publication.publisher();
        let by = user_name(self.config);
        let restore = &self.args.bucket.restore;
        let planned = publisher.roll_back(number, &by, restore, false)?;
        // A version that is damaged is a reason to go back.
        let changes = publisher.rollback_changes(number);
        let message = format!(
            "version {} {} version {number}: {}; {}\n",
            planned.version,
            if self.args.yes && !self.args.dry_run { "restores" } else { "would restore" },
            render::count(planned.rows, "memory"),
            match &changes {
                Ok(changes) => rollback_text(*changes),
                Err(error) => format!("what that changes is not known: {}", error.line()),
            }
        );
        if !self.json {
            write_plain(&message)?;
        }
        let writes = !self.args.dry_run && confirms(self.args, self.json, "Publish this version?");
        let restored =
            if writes { Some(publisher.roll_back(number, &by, restore, true)?) } else { None };
        if self.json {
            return write_json(&json!({
                "rollback": number, "version": planned.version, "rows": planned.rows,
                "changes": changes.ok(), "written": restored.is_some(),
            }));
        }
        match restored {
            Some(restored) => write_plain(&format!(
                "published version {}; undo: {}\n",
                restored.version,
                self.undo_command(restored.version.saturating_sub(1), &[])
            )),
            None => write_plain("nothing was published\n"),
        }
    }

    fn prune(&self, older: &str) -> Result<(), CliError> {
        let older = duration("prune", Some(older), Duration::ZERO).map_err(|_| {
            CliError::invalid("--prune", older, "a whole number and d, h, m or s, for instance 30d")
        })?;
        let publisher = self.publication.publisher();
        let planned = publisher.find_prunable(older)?;
        if !self.json {
            write_plain(&pruned_text(&planned))?;
        }
        let writes = planned.objects > 0
            && !self.args.dry_run
            && confirms(self.args, self.json, "Remove them for good?");
        if writes {
            publisher.remove(&planned)?;
        }
        if self.json {
            return write_json(&json_with(&planned, json!({ "written": writes })));
        }
        write_plain(if writes { "removed\n" } else { "nothing was removed\n" })
    }
}

fn rollback_text(changes: RollbackChanges) -> String {
    let RollbackChanges { come_back, go_away, change } = changes;
    if changes == RollbackChanges::default() {
        return "nothing changes for readers".to_owned();
    }
    format!("coming back: {come_back}, changed: {change}, going away: {go_away}")
}

fn plan_text(planned: &BucketPlan, cost: Option<UploadCost>) -> String {
    let plan = &planned.plan;
    let line = |item: &Item| {
        let line = format!("{} {}", item.id, text::line(&item.title, 60));
        line.trim_end().to_owned()
    };
    let lines = |items: &[Item]| items.iter().map(line).collect();
    let away = plan.held_back.iter().map(|item| {
        let (line, id) = (line(item), quoted(&item.id));
        format!("{line}\n         was withdrawn by hand; `--restore {id}` publishes it again")
    });
    let mut out = format!("scope {} to {}\n", planned.scope, planned.to);
    out += &changes_text(
        [
            ("add", lines(&plan.added)),
            ("change", lines(&plan.changed)),
            ("remove", lines(&plan.withdrawn)),
            ("away", away.collect()),
        ],
        &planned.approved,
        plan.unchanged,
    );
    out += &waiting_text(&planned.scope, plan.is_empty(), &planned.approved);
    if let Some(cost) = cost {
        out += &format!(
            "uploads {} in {} requests; the version has {}, and each reader fetches what is new\n",
            size(cost.upload_bytes),
            cost.write_requests,
            size(cost.version_bytes)
        );
    }
    out
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn size(bytes: u64) -> String {
    if bytes < 1_000_000 {
        format!("{:.1} kB", bytes as f64 / 1e3)
    } else {
        format!("{:.1} MB", bytes as f64 / 1e6)
    }
}

fn line(summary: &VersionSummary) -> String {
    let version = &summary.version;
    let mark = if summary.is_current { "*" } else { " " };
    let changes = match version.restores {
        Some(number) => format!("what v-{number} had"),
        None => format!("+{} ~{} -{}", version.added, version.changed, version.withdrawn),
    };
    let withdrawn = match version.held_back.len() {
        0 => String::new(),
        count => format!(", {count} withdrawn by hand"),
    };
    format!(
        "{mark} v-{:<5} {} by {}: {}, {changes}{withdrawn}, {}\n",
        version.version,
        version.published_at,
        version.by,
        render::count(version.rows, "memory"),
        size(summary.bytes)
    )
}

fn pruned_text(pruned: &PrunePlan) -> String {
    let versions = pruned.versions.iter().map(|number| format!("v-{number}"));
    let versions: Vec<String> = versions.collect();
    let removed = if versions.is_empty() {
        String::new()
    } else {
        let some = render::first_of(&versions, MAX_LISTED);
        format!("; rollback to {some} is no longer possible")
    };
    format!(
        "{} with {} that no kept version needs{removed}\n",
        render::count(pruned.objects as u64, "object"),
        size(pruned.bytes)
    )
}

fn show(bar: &ProgressBar, step: Step) {
    bar.set_message(match step {
        Step::Fetching(at) => {
            format!("fetching the published version: {} of {}", size(at.fetched), size(at.total))
        }
        Step::Building(rows, all_rows) => {
            format!("building the version: {rows} of {all_rows} rows")
        }
        Step::Uploading(at) => format!("uploading {} of {}", size(at.fetched), size(at.total)),
    });
}

impl From<BucketPublishError> for CliError {
    fn from(error: BucketPublishError) -> Self {
        match error {
            BucketPublishError::Publish(error) => error.into(),
            BucketPublishError::Bucket(error) => error.into(),
        }
    }
}

impl From<BucketError> for CliError {
    fn from(error: BucketError) -> Self {
        match error {
            BucketError::Store(error) => error.into(),
            error => Self::Bucket(Box::new(error)),
        }
    }
}
