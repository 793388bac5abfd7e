//! `doctor --verbose`: the settings with their sources, and how each store was opened.

use crate::cli::command::{SHELL, command};
use std::fmt::Write;

use serde_json::Value;

use super::DoctorReport;
use crate::cli::render::how_opened;
use crate::config::ENVIRONMENT;
use crate::scope::ScopeError;
use ack_api::Diagnostic;
use ack_api::number::count;

/// All details, as text.
pub fn dump(report: &DoctorReport<'_>) -> String {
    let DoctorReport {
        config,
        settings,
        scopes,
        current_scope,
        current_rule,
        passed_over,
        ..
    } = report;
    let mut out = format!("SQLite {}\n\nsettings\n", rusqlite::version());
    for (name, value, source) in settings {
        let _ = writeln!(out, "  {name:<14} {value}  ({source})");
    }
    let _ = writeln!(
        out,
        "  environment    {}",
        ENVIRONMENT.map(|(name, _)| name).join(", ")
    );
    let _ = writeln!(
        out,
        "  current scope  {}",
        match (current_scope, current_rule) {
            (Some(scope), Some(rule)) => format!("{scope}  ({rule})"),
            _ =>
                "none: no manifest claims this project (add its folder to `paths` in a scope.toml)"
                    .to_owned(),
        }
    );
    out.push_str(&report.offer.0);
    let _ = writeln!(out, "\nscopes: {}", scopes.len());
    for (scope, info, layout) in scopes {
        let text = |pointer: &str| {
            info.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or("-")
                .to_owned()
        };
        let _ = writeln!(out, "\n  {} [{}]", scope.name, text("/health/state"));
        let _ = writeln!(out, "    store     {}", text("/store"));
        if info.get("profile").is_some() {
            let _ = writeln!(
                out,
                "    profile   {}; {}",
                text("/profile"),
                how_opened(&text("/health/opened"))
            );
            let counts = info.get("counts").cloned().unwrap_or_default();
            let number = |name: &str| counts.get(name).and_then(Value::as_u64).unwrap_or_default();
            let _ = writeln!(
                out,
                "    memories  {} approved, {} promoted, {} staging, {} rejected; last updated {}",
                number("approved"),
                number("promoted"),
                number("staging"),
                number("rejected"),
                text("/last_updated")
            );
        }
        for line in layout {
            let _ = writeln!(out, "    columns   {line}");
        }
        let _ = writeln!(
            out,
            "    vectors   {}",
            match info.get("index") {
                Some(index) => format!(
                    "table of {}, {:.1} % of the store, built {}",
                    count(
                        index
                            .get("rows")
                            .and_then(Value::as_u64)
                            .unwrap_or_default(),
                        "row"
                    ),
                    index
                        .get("coverage")
                        .and_then(Value::as_f64)
                        .unwrap_or_default()
                        * 100.0,
                    text("/index/built_at")
                ),
                None if cfg!(feature = "table") => format!(
                    "no table; built in memory (`{}` builds one, which makes the first search \
                     faster)",
                    command("index")
                ),
                None => "made in memory; this build has no vector tables".to_owned(),
            }
        );
        for problem in info
            .pointer("/health/problems")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            let _ = writeln!(out, "    problem   {problem}");
        }
    }
    for (name, reason) in passed_over {
        let _ = writeln!(out, "\n  {name} [skipped]\n    {reason}");
    }
    if scopes.is_empty() {
        let none = ScopeError::no_scopes(config);
        let _ = writeln!(
            out,
            "  {none}\n  {}",
            none.hint_for(&SHELL).unwrap_or_default()
        );
    }
    out
}
