//! Asks a scope root from a program of your own:
//! `cargo run --example embed -- ~/.ack-mem "exit code 137"`.

use std::error::Error;
use std::process::ExitCode;

use ack_memory::api::QueryRequest;
use ack_memory::{Config, Service};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(root), Some(query)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: embed ROOT QUERY");
        return ExitCode::from(2);
    };
    match ask(&root, query) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the three best matches, and what there is to know about the search.
fn ask(root: &str, query: String) -> Result<(), Box<dyn Error>> {
    let service = Service::new(Config::at(root)?.with_project(std::env::current_dir()?));
    let answer = service.query_memories(&QueryRequest {
        query: Some(query),
        limit: Some(3),
        ..QueryRequest::default()
    })?;
    for hit in &answer.results {
        println!("{} ({}): {}", hit.id, hit.scope, hit.title);
    }
    for note in &answer.notes {
        eprintln!("note: {}", note.message);
    }
    service.close();
    Ok(())
}
