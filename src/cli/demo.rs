//! `demo`: builds the sample scopes and shows what the tools answer.

use crate::cli::command::SHELL;
use ack_api::Resolve as _;
use std::path::{Path, PathBuf};

use super::output::write_out;
use super::render;
use super::render::{Listing, QueryWords};
use super::screen::Screen;
use crate::cli::error::CliError;
use crate::config::{Config, Inputs, Setting};
use crate::service::Service;
use ack_api::memory::StatusFilter;
use ack_api::{ContextRequest, GetRequest, Include, ListScopesRequest, QueryRequest};

/// Runs `demo`.
pub fn demo(folder: Option<&Path>, now: jiff::Timestamp) -> Result<(), CliError> {
    let (root, temporary) = match folder {
        Some(folder) => (empty_folder(folder)?, None),
        None => {
            let folder = tempfile::Builder::new()
                .prefix("ack-memory-demo-")
                .tempdir()
                .map_err(io(Path::new("a temporary folder")))?;
            (folder.path().to_owned(), Some(folder))
        }
    };
    crate::demo::build(&root, now)?;
    // The sample project's folder need not exist, because it is recognised by its name.
    let project = root.join("ledger-api");
    let service = Service::new(Config::load(Inputs {
        root: Some(Setting::flag("--root", root.clone())),
        project: Some(Setting::flag("-C", project)),
        working_directory: root.clone(),
        ..Inputs::default()
    })?);
    let screen = Screen::of_output();
    for (title, request) in questions() {
        ask(&service, &screen, title, &request)?;
    }
    show_links(&service, &screen)?;
    heading("ack-memory scopes")?;
    let mut scopes = service.list_scopes(&ListScopesRequest::default())?;
    scopes.resolve(&SHELL);
    write_out(&render::scopes(&scopes, &screen))?;
    heading("ack-memory context   (in the project ledger-api)")?;
    let mut context = service.get_context(&ContextRequest {
        max_memories: Some(3),
        ..ContextRequest::default()
    })?;
    context.resolve(&SHELL);
    write_out(&render::context(&context, &Listing::plain(&screen)))?;
    heading("and now")?;
    write_out(&match temporary {
        None => format!(
            "The sample scopes are in {0}.\nAsk your own: ack-memory --root {0} query \"…\"\n\
             Connect an agent: claude mcp add ack-memory -- ack-memory --root {0} serve\n",
            root.display()
        ),
        Some(_) => "The sample scopes were built in a temporary folder, which is removed now.\n\
             Keep them: ack-memory demo ./demo-root   then   ack-memory --root ./demo-root query \"…\"\n"
            .to_owned(),
    })
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> CliError {
    let path = path.to_owned();
    move |source| CliError::Io {
        action: "create",
        path,
        source,
    }
}

/// The path of a folder that is empty or does not exist.
fn empty_folder(folder: &Path) -> Result<PathBuf, CliError> {
    let is_in_use = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_in_use || folder.is_file() {
        let message = format!("{} is not an empty folder", folder.display());
        let hint = "name an empty folder, or one that does not exist yet";
        return Err(CliError::usage("FOLDER", message).with_hint(hint));
    }
    std::path::absolute(folder).map_err(io(folder))
}

fn questions() -> [(&'static str, QueryRequest); 3] {
    let about = |words: &str, limit| QueryRequest {
        query: Some(words.to_owned()),
        limit: Some(limit),
        ..QueryRequest::default()
    };
    [
        (
            "ack-memory query \"container killed exit code 137\"   (what another project learned)",
            about("container killed exit code 137", 2),
        ),
        (
            "ack-memory query ERR_PNPM_OUTDATED_LOCKFILE   (an identifier match ranks first)",
            about("ERR_PNPM_OUTDATED_LOCKFILE", 1),
        ),
        (
            "ack-memory query --status staging   (what a curator should review)",
            QueryRequest {
                status: Some(StatusFilter::Staging),
                limit: Some(2),
                ..QueryRequest::default()
            },
        ),
    ]
}

fn ask(
    service: &Service,
    screen: &Screen,
    title: &str,
    request: &QueryRequest,
) -> Result<(), CliError> {
    heading(title)?;
    let mut answer = service.query_memories(request)?;
    // A reader of the samples does not need a cursor.
    answer.next_cursor = None;
    answer.resolve(&SHELL);
    let ids: Vec<&str> = answer.results.iter().map(|hit| hit.id.as_str()).collect();
    let listing = Listing {
        marks: QueryWords::of(request.query.as_deref().unwrap_or_default()),
        short: service.short_ids(&ids, None)?,
        ..Listing::plain(screen)
    };
    write_out(&render::query(&answer, &listing))
}

/// Shows a memory with its links, history and neighbours.
fn show_links(service: &Service, screen: &Screen) -> Result<(), CliError> {
    let linked = service.query_memories(&QueryRequest {
        query: Some("row lock SELECT FOR UPDATE".to_owned()),
        scope: Some("ledger-api".to_owned()),
        limit: Some(1),
        ..QueryRequest::default()
    })?;
    let Some(first) = linked.results.first() else {
        return Ok(());
    };
    let id = &first.id;
    heading(&format!(
        "ack-memory get {id} --include links --include history"
    ))?;
    let mut answer = service.get_memory(&GetRequest {
        id: Some(id.clone()),
        include: Some(vec![Include::Links, Include::History, Include::Timeline]),
        ..GetRequest::default()
    })?;
    answer.resolve(&SHELL);
    write_out(&render::get(&answer, screen))
}

fn heading(text: &str) -> Result<(), CliError> {
    let style = anstyle::AnsiColor::Magenta.on_default().bold();
    write_out(&format!("\n{style}── {text}{style:#}\n"))
}
