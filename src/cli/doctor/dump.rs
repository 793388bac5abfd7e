//! `doctor --verbose`: the settings with their sources, and how each store was opened.

use std::fmt::Write;

use super::{DoctorReport, OfferReport, ScopeReport};
use crate::cli::command::{SHELL, command};
use crate::cli::render::how_opened;
use crate::config::ENVIRONMENT;
use crate::scope::ScopeError;
use ack_api::number::count;
use ack_api::{Diagnostic, ScopeInfo};

/// All details, as text.
pub fn dump(report: &DoctorReport<'_>) -> String {
    let mut out = format!("SQLite {}\n\nsettings\n", rusqlite::version());
    for (name, value, source) in &report.settings {
        let _ = writeln!(out, "  {name:<14} {value}  ({source})");
    }
    let variables = ENVIRONMENT.map(|(name, _)| name).join(", ");
    let _ = writeln!(out, "  environment    {variables}");
    let current = match (&report.current_scope, &report.current_rule) {
        (Some(scope), Some(rule)) => format!("{scope}  ({rule})"),
        _ => "none: no manifest claims this project (add its folder to `paths` in a scope.toml)"
            .to_owned(),
    };
    let _ = writeln!(out, "  current scope  {current}");
    out += &report
        .offer
        .as_ref()
        .map_or_else(String::new, OfferReport::text);
    let _ = writeln!(out, "\nscopes: {}", report.scopes.len());
    for scope in &report.scopes {
        out += &scope_text(scope);
    }
    for (name, reason) in &report.passed_over {
        let _ = writeln!(out, "\n  {name} [skipped]\n    {reason}");
    }
    if report.scopes.is_empty() {
        let none = ScopeError::no_scopes(report.config);
        let hint = none.hint_for(&SHELL).unwrap_or_default();
        let _ = writeln!(out, "  {none}\n  {hint}");
    }
    out
}

fn scope_text(scope: &ScopeReport<'_>) -> String {
    let info = &scope.info;
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let state = serde_json::to_value(info.health.state).unwrap_or_default();
    let mut out = format!(
        "\n  {} [{}]\n    store     {}\n",
        info.name,
        state.as_str().unwrap_or_default(),
        or_none(&info.store)
    );
    if let Some(profile) = &info.profile {
        let counts = info.counts.unwrap_or_default();
        let _ = writeln!(
            out,
            "    profile   {profile}; {}\n    memories  {} approved, {} promoted, {} staging, {} \
             rejected; last updated {}",
            how_opened(&or_none(&info.health.opened)),
            counts.approved,
            counts.promoted,
            counts.staging,
            counts.rejected,
            or_none(&info.last_updated)
        );
    }
    for line in &scope.columns {
        let _ = writeln!(out, "    columns   {line}");
    }
    let _ = writeln!(out, "    vectors   {}", vectors(info));
    for problem in &info.health.problems {
        let _ = writeln!(out, "    problem   {}", problem.text());
    }
    out
}

fn vectors(info: &ScopeInfo) -> String {
    match &info.index {
        Some(index) => format!(
            "table of {}, {:.1} % of the store, built {}",
            count(index.rows, "row"),
            index.coverage.unwrap_or_default() * 100.0,
            index.built_at.as_deref().unwrap_or("-")
        ),
        None if cfg!(feature = "table") => format!(
            "no table; built in memory (`{}` builds one, which makes the first search faster)",
            command("index")
        ),
        None => "made in memory; this build has no vector tables".to_owned(),
    }
}
