//! Logs the resolved settings to standard error if `-v` or `ACK_MEM_LOG` is set. Standard output is
//! for answers.

use std::time::Duration;

use super::output::write_err;
use crate::config::Config;
use crate::offer::Offer;
use crate::scope::Scope;
use crate::scope::resolve::current;
use crate::service::Service;
use ack_api::memory::Visibility;
use ack_api::number::count;
use ack_api::text;
use ack_api::time;
use ack_contextual::Contextual;
use ack_search::encoder::Encoder;
use ack_store::table_version::TableVersion;

/// How many scopes to describe. The rest are counted.
const MAX_DESCRIBED: usize = 20;
/// How long to wait for a store at startup.
const STORE_TIMEOUT: Duration = Duration::from_millis(200);

/// Logs the settings that decide which scopes are searched.
pub fn settings(config: &Config) {
    let file = config.file.as_ref().map_or_else(
        || "no config.toml".to_owned(),
        |_| "config.toml read".to_owned(),
    );
    write_line(&format!(
        "root {} ({}); {file}",
        config.root.value.display(),
        config.root.source
    ));
    if let Some(db) = &config.db {
        write_line(&format!(
            "single database {} ({})",
            db.value.display(),
            db.source
        ));
    }
    match &config.pinned {
        Some(pinned) => write_line(&format!(
            "pinned to scope `{}` ({})",
            pinned.value, pinned.source
        )),
        None => write_line("not pinned to a scope"),
    }
    if let Some(current) = &config.current_scope {
        write_line(&format!(
            "current scope `{}` ({})",
            current.value, current.source
        ));
    }
    write_line(&format!(
        "project {} ({})",
        config.project.value.display(),
        config.project.source
    ));
}

/// Logs what a server serves: scopes with their stores and tables, the encoder, the tools. Opens
/// the stores.
pub fn log_served(service: &Service, offer: &Offer) {
    let discovery = service.registry.discover();
    let scopes = discovery.scopes;
    let private = scopes
        .iter()
        .filter(|scope| scope.manifest.visibility == Visibility::Private)
        .count();
    let others = match discovery.passed_over.len() as u64 {
        0 => "every entry of the folder is a scope".to_owned(),
        1 => "1 entry of the folder is not a scope".to_owned(),
        number => format!("{} of the folder are not scopes", count(number, "entry")),
    };
    write_line(&format!(
        "{}, {private} of them private; {others}",
        count(scopes.len() as u64, "scope")
    ));
    let current_scope = match current(&service.config, &scopes, None) {
        Ok(current) => match (&current.scope, &current.rule) {
            (Some(scope), Some(rule)) => {
                write_line(&format!("current scope `{}`, found by {rule}", scope.name));
                Some(scope.name.clone())
            }
            _ => {
                write_line("no current scope");
                None
            }
        },
        Err(error) => {
            write_line(&format!("current scope: {error}"));
            None
        }
    };
    let pinned = service.config.pinned.is_some();
    let (mut described, mut undescribed) = (0, 0);
    for scope in &scopes {
        let is_own = current_scope.as_ref() == Some(&scope.name);
        let searched = is_own || (!pinned && scope.manifest.visibility == Visibility::Shared);
        if searched && described < MAX_DESCRIBED {
            described += 1;
            write_line(&format!(
                "scope `{}`: {}; {}",
                scope.name,
                store_text(scope),
                table_text(scope)
            ));
        } else {
            undescribed += 1;
        }
    }
    if undescribed > 0 {
        write_line(&format!(
            "{undescribed} more scopes are not described (private, not the pinned one, or too many)"
        ));
    }
    match Encoder::embedded() {
        Some(encoder) => write_line(&format!(
            "encoders {} and {}, {} dimensions, in the binary",
            encoder.name(),
            Contextual::NAME,
            encoder.dimension()
        )),
        None => write_line("the static encoder in the binary is damaged; searches use only words"),
    }
    let tools = offer
        .toolset
        .tools()
        .iter()
        .map(|tool| tool.name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    write_line(&format!("tools ({}): {tools}", offer.toolset.set.name()));
    for upstream in &offer.upstreams {
        write_line(&format!(
            "upstream server `{}`: {}",
            upstream.name, upstream.connection
        ));
    }
}

fn store_text(scope: &Scope) -> String {
    if let Some(problem) = &scope.problem {
        return format!("not read, {problem}");
    }
    let read = scope
        .store
        .snapshot_with_timeout(STORE_TIMEOUT, |snapshot| {
            Ok((
                snapshot.layout.profile.as_str(),
                snapshot.opening.describe(),
            ))
        });
    match read {
        Ok((profile, opening)) => format!(
            "{profile} store {}, opened {opening}",
            scope.store.path().display()
        ),
        Err(error) => error.to_string(),
    }
}

fn table_text(scope: &Scope) -> String {
    let stamp = TableVersion::of(&scope.lance_folder());
    match stamp.published_at() {
        _ if !stamp.is_some() => "no vector table".to_owned(),
        Some(at) => format!("vector table published {}", time::to_rfc3339(at)),
        None => "vector table".to_owned(),
    }
}

fn write_line(line: &str) {
    write_err(&format!("ack-memory: {}\n", text::line(line, 1_000)));
}
