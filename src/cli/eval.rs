//! `eval`: reads a file of queries, runs them in each mode and prints the results.

use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;

use super::args::EvalArgs;
use super::output::{write_json, write_out};
use super::render::{count, grouped, table, verb};
use super::{CloseOnDrop, progress};
use crate::cli::error::CliError;
use crate::eval::{Estimate, EvalReport, QueriesError, Scores, complete_ids, parse, run};
use ack_api::{Mode, text};
use ack_service::Service;
use ack_service::config::Config;

pub fn execute(config: Config, args: &EvalArgs, json: bool) -> Result<(), CliError> {
    let file = File::open(&args.queries).map_err(CliError::io("read", &args.queries))?;
    let mut queries = parse(BufReader::new(file)).map_err(|error| wrong(&error))?;
    let modes = [Mode::Lexical, Mode::Semantic, Mode::Hybrid];
    let service = CloseOnDrop(Service::new(config).leak());
    complete_ids(service.0, &mut queries).map_err(|error| wrong(&error))?;
    let bar = progress::bar("{bar:30} {human_pos} of {human_len} queries, {eta} left");
    bar.set_length((queries.len() * modes.len()) as u64);
    let report = run(service.0, &queries, &modes, &mut || bar.inc(1));
    bar.finish_and_clear();
    let report = report?;
    if json {
        return write_json(&report);
    }
    write_out(&render(&report))
}

fn wrong(error: &QueriesError) -> CliError {
    let hint = match error {
        QueriesError::Ambiguous { .. } => "give more characters of the id",
        QueriesError::Line { .. } | QueriesError::Empty => {
            "one JSON object per line, for instance \
             {\"text\": \"why does the build fail\", \"relevant\": [\"ack_1\"]}"
        }
    };
    CliError::usage("QUERIES", error.to_string()).with_hint(hint)
}

fn render(report: &EvalReport) -> String {
    let names = ["", "queries", "Recall@5", "Recall@10", "MRR@10", "nDCG@10"];
    let mut rows = vec![names.map(str::to_owned)];
    for mode in &report.modes {
        rows.push(row(&value_name(&mode.mode), &mode.all));
        let categories = mode.categories.iter();
        rows.extend(categories.map(|(category, scores)| row(&format!("  {category}"), scores)));
    }
    let mut out = table(&rows, 1..6, None) + "Means with 95 % intervals.\n";
    out.extend(unknown_ids(report));
    for mode in &report.modes {
        let lost = mode.lost.iter();
        let lost = lost.map(|(stage, many)| format!("{} {}", grouped(*many), value_name(stage)));
        let lost = lost.collect::<Vec<_>>().join(", ");
        let lost = if lost.is_empty() { "none" } else { &lost };
        let [half, most] = mode.milliseconds;
        let _ = writeln!(
            out,
            "{}: relevant memories not in the first ten: {lost}; {half:.1} ms per query (p99 {most:.1})",
            value_name(&mode.mode)
        );
        if mode.all.unanswerable > 0 {
            let _ = writeln!(
                out,
                "  {} without an answer got {:.1} results{}",
                count(mode.all.unanswerable, "query"),
                mode.all.noise,
                verb(mode.all.unanswerable, "", " each")
            );
        }
        if mode.leaks > 0 {
            let _ = writeln!(out, "  {}", count(mode.leaks, "forbidden result"));
        }
    }
    out
}

fn unknown_ids(report: &EvalReport) -> Option<String> {
    let ids = &report.unknown_ids;
    let first: Vec<String> = ids.iter().take(5).map(|id| text::line(id, 60)).collect();
    (!ids.is_empty()).then(|| {
        format!(
            "Warning: no searched scope contains {} ({}{}); {} counted as not found.\n",
            count(ids.len() as u64, "relevant id"),
            first.join(", "),
            if ids.len() > first.len() { ", …" } else { "" },
            verb(ids.len() as u64, "it is", "they are")
        )
    })
}

fn row(name: &str, scores: &Scores) -> [String; 6] {
    let cell = |estimate: Estimate| match scores.queries {
        0 => "-".to_owned(),
        _ => format!("{:.3} ± {:.3}", estimate.mean, estimate.margin),
    };
    [
        name.to_owned(),
        (scores.queries + scores.unanswerable).to_string(),
        cell(scores.recall_5),
        cell(scores.recall_10),
        cell(scores.mrr_10),
        cell(scores.ndcg_10),
    ]
}

/// The name of a value as in answers, with spaces.
fn value_name(value: &impl serde::Serialize) -> String {
    let word = serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned));
    word.unwrap_or_default().replace('_', " ")
}
