//! `check`: prints the findings in notes, for people, programs and GitHub.

use std::process::ExitCode;

use super::args::{CheckArgs, CheckFormat};
use super::output::{write_json, write_out, write_plain};
use super::render::{PLAIN, block, count};
use super::scopes::add;
use super::screen::Screen;
use crate::cli::error::CliError;
use ack_api::text;
use ack_api::time::utc_day;
use ack_desk::check::{CheckReport, Finding, Severity, check};
use ack_service::config::Config;
use jiff::Timestamp;

/// Runs `check`. Exits with 1 if something must be fixed.
pub fn run(config: &Config, args: &CheckArgs, json: bool) -> Result<ExitCode, CliError> {
    let path = match &args.path {
        Some(path) => add::absolute(config, path)?,
        None => config.project.value.clone(),
    };
    let report = check(&path, utc_day(Timestamp::now())).map_err(CliError::io("check", &path))?;
    match args.format {
        _ if json => write_json(&report)?,
        CheckFormat::Text => write_plain(&report_text(&report))?,
        CheckFormat::Github => write_out(&annotations(&report))?,
    }
    Ok(ExitCode::from(u8::from(report.errors > 0 || args.strict && report.warnings > 0)))
}

fn report_text(report: &CheckReport) -> String {
    let screen = Screen::of_output();
    let findings = report.findings.iter().map(|finding| {
        let Finding { path, line, rule, message, severity } = finding;
        let (path, severity) = (path.display(), severity_name(*severity));
        let text = format!("{path}:{line}: {severity} {rule}: {message}");
        // GitHub reads a line that begins with `::` as a command.
        let text = text::line(&text, usize::MAX);
        let text = if text.starts_with("::") { format!("./{text}") } else { text };
        block(&screen, &text, ("", "  "), PLAIN)
    });
    screen.fold(findings.collect(), "check PATH | less") + &summary(report)
}

fn summary(report: &CheckReport) -> String {
    format!(
        "{} in {}: {}, {}\n",
        count(report.memories as u64, "memory"),
        count(report.files as u64, "file"),
        count(report.errors as u64, "error"),
        count(report.warnings as u64, "warning")
    )
}

const fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn annotations(report: &CheckReport) -> String {
    let lines = report.findings.iter().map(|finding| {
        let Finding { path, line, rule, message, severity } = finding;
        let path = escape_property(&text::line(&path.display().to_string(), 1_000));
        format!(
            "::{} file={path},line={line},title={}::{}\n",
            severity_name(*severity),
            escape_property(rule),
            escape_data(&text::line(message, 2_000))
        )
    });
    lines.collect::<String>() + &summary(report)
}

fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}
