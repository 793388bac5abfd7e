//! The command line. Only this module reads the environment, the working directory, the clock and
//! standard input, and only this module prints. Reading commands call the same service as the tools
//! and print the same answers.

pub mod args;
mod check;
mod command;
mod complete;
mod config_file;
mod connect;
mod curate;
mod doctor;
mod error;
mod eval;
mod get;
mod here;
mod hook;
mod import;
#[cfg(feature = "table")]
mod index;
mod log;
mod machine;
mod model;
mod pager;
pub mod panics;
mod progress;
mod prompt;
mod publish;
mod query;
mod recall;
mod render;
mod review;
mod scopes;
mod screen;
mod serve;
mod setup;
mod show;
mod signals;
mod token;
mod words;

use ack_api::Diagnostic;
use ack_api::decision::Verdict;
use std::collections::HashMap;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use anstream::ColorChoice;
use directories::BaseDirs;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use self::args::{
    ChosenArgs, Cli, ColorArg, Command, ContextArgs, Global, ShownStatuses, StatusArg,
};
use self::render::Listing;
use self::screen::Screen;
use crate::cli::error::CliError;
use crate::config::{Config, ENV_DB, ENV_PROJECT, ENV_ROOT, ENV_SCOPE, Inputs, Source};
use crate::scope::ScopeError;
use crate::service::Error;
use crate::service::Service;
use ack_api::memory::StatusFilter;
use ack_api::text;
use ack_api::{ContextRequest, ContextResponse, ListScopesRequest, ListScopesResponse, NoteKind};
use ack_store::copies;
use ack_sys::files::expand_home;
use ack_sys::heap;

/// Parses the command line and runs it. Exit codes: 0 success, 1 failure, 2 usage error.
pub fn run() -> ExitCode {
    if let Some(code) = complete::answer() {
        return code;
    }
    use_every_processor();
    panics::install();
    tune_allocator();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && is_hook(std::env::args_os().skip(1)) => {
            // A hook installed by a newer version must not break a session with this one.
            let message = error.to_string();
            let is_help =
                error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
            hook::print_error(match message.lines().next().filter(|_| !is_help) {
                Some(first) => first,
                None => "its event is missing; `ack-memory hook --help` lists them",
            });
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            // Help and version are answers. Anything else is a usage error, which clap reports with
            // code 2.
            let code = if error.use_stderr() { 2 } else { 0 };
            print_clap_error(&error);
            return ExitCode::from(code);
        }
    };
    let json = cli.global.json;
    set_colours(cli.global.color);
    command::remember_flags(&cli);
    progress::set_silence(&cli.global);
    if !json && !cli.global.quiet && !matches!(cli.command, Command::Hook(_)) {
        for old in &cli.global.old {
            write_err(&format!("hint: {old}\n"));
        }
    }
    // A server handles signals itself.
    if !matches!(cli.command, Command::Serve(_)) {
        signals::watch();
    }
    let outcome = dispatch(cli);
    copies::shut_down();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            report(&error, json);
            ExitCode::from(if error.is_usage() { 2 } else { 1 })
        }
    }
}

/// Lets LanceDB use every processor of a small machine. By default it keeps two free for input and
/// output, so on two processors a single thread would do all the work. Larger machines, and a
/// setting in the environment, are left alone.
#[expect(
    unsafe_code,
    clippy::disallowed_methods,
    reason = "LanceDB takes this setting from the environment alone"
)]
fn use_every_processor() {
    const THREADS: &str = "LANCE_CPU_THREADS";
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors < 4 && std::env::var_os(THREADS).is_none() {
        // SAFETY: the process has not started any thread yet, so nothing else reads the
        // environment.
        unsafe { std::env::set_var(THREADS, processors.to_string()) };
    }
}

/// Makes glibc return memory to the system: large blocks as soon as they are free, and free small
/// ones on request. By default glibc raises its threshold for large blocks to the largest one freed
/// so far. Other allocators have no such settings.
#[expect(unsafe_code, reason = "glibc takes these settings from C alone")]
fn tune_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use nix::libc::{M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, mallopt};
        // SAFETY: both take plain numbers, and any thread may request trimming at any time.
        unsafe {
            mallopt(M_MMAP_THRESHOLD, 1 << 20);
            mallopt(M_TRIM_THRESHOLD, 4 << 20);
        }
        heap::set_release(|| {
            // SAFETY: as above.
            unsafe { nix::libc::malloc_trim(0) };
        });
    }
}

fn set_colours(when: ColorArg) {
    match when {
        // The environment and the terminal decide.
        ColorArg::Auto => {}
        ColorArg::Always => ColorChoice::Always.write_global(),
        ColorArg::Never => ColorChoice::Never.write_global(),
    }
}

/// Whether the command is `hook`, for arguments that could not be parsed completely.
fn is_hook(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some(
                "--root" | "--db" | "--unreviewed" | "--pin" | "--dir" | "-C" | "--color"
                | "--scope" | "--project",
            ) => drop(arguments.next()),
            Some(flag) if flag.starts_with('-') => {}
            word => return word == Some("hook"),
        }
    }
    false
}

fn decide(global: &Global, verdict: Verdict, args: ChosenArgs) -> Result<(), CliError> {
    run_curator_command(global, |desk| curate::decide(desk, verdict, args))
}

/// Runs a command that decides about memories.
fn run_curator_command(
    global: &Global,
    run: impl FnOnce(curate::Caller<'_>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    run(curate::Caller {
        config: &load(global)?,
        json: global.json,
        now: jiff::Timestamp::now(),
    })
}

/// Lists the scopes, or shows one of them in detail.
fn list_scopes(global: &Global, scope: Option<String>) -> Result<(), CliError> {
    let service = CloseOnDrop(Service::new(config(global)?).leak());
    let all = progress::while_reading(|| all_scopes(service.0, scope));
    let all = all.map_err(|error| match error {
        CliError::Request(Error::Scope(ScopeError::NotFound { name, known, .. })) => {
            CliError::NoScope { name, known }
        }
        error => error,
    })?;
    print(&all, global, render::scopes)?;
    here::check_database(service.0)
}

/// The scopes of all pages.
fn all_scopes(service: &Service, scope: Option<String>) -> Result<ListScopesResponse, CliError> {
    let mut request = ListScopesRequest {
        scope,
        ..ListScopesRequest::default()
    };
    let mut all = service.list_scopes(&request)?;
    while let Some(cursor) = all.next_cursor.take() {
        request.cursor = Some(cursor);
        let page = service.list_scopes(&request)?;
        all.scopes.extend(page.scopes);
        all.next_cursor = page.next_cursor;
    }
    Ok(all)
}

/// Closes the service at the end of a command.
struct CloseOnDrop(&'static Service);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Rejects a `-C` folder that does not exist, because it is probably a typo. A host may name a
/// folder that was deleted later, so hooks still answer, and a server started by a host serves the
/// shared scopes.
fn check_folder(cli: &Cli) -> Result<(), CliError> {
    let folder = cli
        .global
        .setting(cli.global.dir.as_ref(), "-C", ENV_PROJECT);
    let explicit = folder.filter(|folder| matches!(folder.source, Source::Flag(_)));
    let Some(explicit) = explicit.filter(|_| !matches!(cli.command, Command::Hook(_))) else {
        return Ok(());
    };
    let home = BaseDirs::new();
    let path = expand_home(&explicit.value, home.as_ref().map(BaseDirs::home_dir));
    // If the folder cannot be checked, assume that it exists.
    let is_there = match std::fs::metadata(&path) {
        Ok(metadata) => metadata.is_dir(),
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    };
    if is_there {
        return Ok(());
    }
    let folder_text = path.display().to_string();
    if matches!(cli.command, Command::Serve(_)) {
        write_err(&format!(
            "ack-memory: the `-C` folder {folder_text} does not exist\n"
        ));
        return Ok(());
    }
    Err(CliError::usage(
        "-C",
        format!("there is no folder {folder_text}"),
    ))
}

fn dispatch(cli: Cli) -> Result<ExitCode, CliError> {
    check_folder(&cli)?;
    let json = cli.global.json;
    let outcome = match cli.command {
        Command::Completions { shell } => {
            complete::script(&shell.to_string()).and_then(|script| write_out(&script))
        }
        Command::Man { folder } => {
            let result = std::fs::create_dir_all(&folder)
                .and_then(|()| clap_mangen::generate_to(args::command(), &folder));
            result.map_err(|source| CliError::Io {
                action: "write the manual pages to",
                path: folder,
                source,
            })
        }
        Command::Demo(args) => show::demo(args.folder.as_deref(), jiff::Timestamp::now()),
        Command::Setup(args) => setup::run(&config(&cli.global)?, &args, json),
        Command::Serve(args) => serve::run(load(&cli.global)?, &args, &cli.global),
        Command::Token(args) => token::run(&args, load(&cli.global).ok().as_ref()),
        Command::Query(args) => return query::run(&cli.global, args),
        Command::Get(args) => return get::run(&cli.global, &args),
        Command::Scopes(args) => match args.command {
            Some(command) => scopes::run(&cli.global, &command),
            None => list_scopes(&cli.global, args.scope),
        },
        Command::Context(args) => {
            let service = CloseOnDrop(Service::new(config(&cli.global)?).leak());
            let answer = progress::while_reading(|| service.0.get_context(&context_request(&args)));
            let answer = untagged(answer?);
            let memories = answer.recent_memories.iter();
            let memories = memories.chain(&answer.cross_project_learnings);
            let ids: Vec<&str> = memories.map(|memory| memory.id.as_str()).collect();
            let short = match ids.as_slice() {
                [] => HashMap::new(),
                _ if json => HashMap::new(),
                ids => service.0.short_ids(ids, None).unwrap_or_default(),
            };
            print(&answer, &cli.global, |answer, screen| {
                let listing = Listing {
                    short,
                    ..Listing::plain(screen)
                };
                render::context(answer, &listing)
            })
        }
        Command::Hook(args) => {
            hook::run(&cli.global, &args);
            Ok(())
        }
        Command::PrintConfig(args) => connect::print_config(&cli.global, &args),
        Command::Connect(args) => connect::connect(&cli.global, &args),
        Command::Disconnect(args) => connect::disconnect(&cli.global, &args),
        Command::Approve(args) => decide(&cli.global, Verdict::Approve, args),
        Command::Reject(args) => decide(&cli.global, Verdict::Reject, args),
        Command::Promote(args) => decide(&cli.global, Verdict::Promote, args),
        Command::Stage(args) => run_curator_command(&cli.global, |desk| curate::stage(desk, args)),
        Command::Merge(args) => run_curator_command(&cli.global, |desk| curate::merge(desk, &args)),
        Command::Supersede(args) => {
            run_curator_command(&cli.global, |desk| curate::supersede(desk, &args))
        }
        Command::Undo(args) => run_curator_command(&cli.global, |desk| curate::undo(desk, &args)),
        Command::Review(args) => run_curator_command(&cli.global, |desk| review::run(desk, args)),
        Command::Publish(args) if cli.global.offline && args.to.is_some() => {
            Err(CliError::Offline {
                action: "publish to a bucket",
                hint: "leave out --offline, or publish to a folder with `--to-folder`",
            })
        }
        Command::Publish(args) => publish::run(&config(&cli.global)?, &args, json),
        Command::Check(args) => return check::run(&config(&cli.global)?, &args, json),
        Command::Import(args) => {
            import::run(&config(&cli.global)?, &args, json, jiff::Timestamp::now())
        }
        Command::Eval(args) => eval::execute(config(&cli.global)?, &args, json),
        #[cfg(feature = "table")]
        Command::Index(args) => index::run(&config(&cli.global)?, &args, json),
        #[cfg(not(feature = "table"))]
        Command::Index(_) => Err(CliError::NotBuilt {
            part: "vector tables",
            code: ack_api::ErrorCode::IndexFailed,
            hint: "answers are the same without one; a build with the default features can build \
                   it",
        }),
        Command::Model(_) if cli.global.offline => Err(CliError::Offline {
            action: "fetch the model",
            hint: "any copy of the model's `model.safetensors` in a folder works as well",
        }),
        Command::Model(args) => model::run(&args),
        Command::Here => here::run(&cli.global),
        Command::Config(args) => config_file::run(&cli.global, &args.command),
        Command::Doctor(args) => {
            return doctor::run(inputs(&cli.global)?, &args, &cli.global);
        }
    };
    outcome.map(|()| ExitCode::SUCCESS)
}

/// The inputs: flags, environment, home, working directory.
fn inputs(global: &Global) -> Result<Inputs, CliError> {
    if global.unreviewed.is_some() && global.db.is_none() {
        let message = "`--unreviewed` needs `--db FILE`";
        let hint = "for a scope: `ack-memory scopes set NAME unreviewed=approved`";
        return Err(CliError::usage("--unreviewed", message).with_hint(hint));
    }
    let inputs = Inputs {
        root: global.setting(global.root.as_ref(), "--root", ENV_ROOT),
        db: global.setting(global.db.as_ref(), "--db", ENV_DB),
        unreviewed: global.unreviewed,
        pinned: global.setting(global.pin.as_ref(), "--pin", ENV_SCOPE),
        project: global.setting(global.dir.as_ref(), "-C", ENV_PROJECT),
        home: BaseDirs::new().map(|dirs| dirs.home_dir().to_owned()),
        working_directory: std::path::PathBuf::new(),
    };
    match std::env::current_dir() {
        Ok(working_directory) => Ok(Inputs {
            working_directory,
            ..inputs
        }),
        // A removed working directory is no project. Only a relative path needs one.
        Err(_) if !inputs.needs_working_directory() => Ok(inputs),
        Err(source) => Err(CliError::Io {
            action: "find",
            path: "the working directory".into(),
            source,
        }),
    }
}

/// The effective settings.
fn load(global: &Global) -> Result<Config, CliError> {
    let mut config = Config::load(inputs(global)?)?;
    config.offline = global.offline;
    config.with_flags = command::in_text;
    Ok(config)
}

/// The effective settings, logged to standard error with `--verbose`.
fn config(global: &Global) -> Result<Config, CliError> {
    let config = load(global)?;
    if global.verbose {
        log::settings(&config);
    }
    Ok(config)
}

const fn status(argument: StatusArg) -> StatusFilter {
    match argument {
        StatusArg::Approved => StatusFilter::Approved,
        StatusArg::Staging => StatusFilter::Staging,
        StatusArg::All => StatusFilter::All,
    }
}

/// The status from `--status` or `--all`.
fn chosen_status(shown: ShownStatuses) -> Option<StatusFilter> {
    let status_flag = shown.status.map(status);
    status_flag.or(shown.all.then_some(StatusFilter::All))
}

fn context_request(args: &ContextArgs) -> ContextRequest {
    ContextRequest {
        project_path: None,
        include_cross_project: args.own_only.then_some(false),
        max_memories: args.max_memories,
        max_tokens: args.max_tokens,
        focus: (!args.focus.is_empty()).then(|| args.focus.join(" ")),
        by_agent: false,
    }
}

/// An answer without the tags that have a meaning for hosts, because it is inserted into
/// conversations unchanged.
fn untagged(answer: ContextResponse) -> ContextResponse {
    let Ok(mut value) = serde_json::to_value(&answer) else {
        return answer;
    };
    text::untag(&mut value);
    serde_json::from_value(value).unwrap_or(answer)
}

/// Prints an answer: the tools' JSON, or text for people.
fn print<A: Serialize + DeserializeOwned>(
    answer: &A,
    global: &Global,
    render: impl FnOnce(&A, &Screen) -> String,
) -> Result<(), CliError> {
    if global.json {
        return write_json(answer);
    }
    let screen = Screen::of_output();
    pager::show_paged(
        &render(&make_printable(answer, global)?, &screen),
        &screen,
        global,
    )
}

/// Writes an answer as JSON, safe to print.
fn write_json<A: Serialize>(answer: &A) -> Result<(), CliError> {
    let mut safe = serde_json::to_value(answer).unwrap_or_default();
    text::clean_json(&mut safe);
    write_out(&(serde_json::to_string_pretty(&safe).unwrap_or_default() + "\n"))
}

/// An answer with texts that are safe to print. With `--quiet`, most notes are left out.
fn make_printable<A: Serialize + DeserializeOwned>(
    answer: &A,
    global: &Global,
) -> Result<A, CliError> {
    let mut safe = serde_json::to_value(answer).unwrap_or_default();
    let notes = safe
        .get_mut("notes")
        .and_then(serde_json::Value::as_array_mut);
    if let Some(notes) = notes.filter(|_| global.quiet) {
        // Keep the notes that distinguish near matches from real ones.
        let nearest = [NoteKind::NoWordMatches, NoteKind::NothingCertain].map(|kind| json!(kind));
        notes.retain(|note| note.get("kind").is_some_and(|kind| nearest.contains(kind)));
    }
    text::clean_json(&mut safe);
    let safe = serde_json::from_value(safe).map_err(|error| Error::Internal {
        operation: "the answer".to_owned(),
        message: error.to_string(),
    })?;
    Ok(safe)
}

/// Writes to standard output. A closed pipe (`| head`) is not an error.
fn write_out(text: &str) -> Result<(), CliError> {
    match anstream::stdout().lock().write_all(text.as_bytes()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => Err(CliError::Io {
            action: "write to",
            path: "standard output".into(),
            source,
        }),
        _ => Ok(()),
    }
}

fn report(error: &CliError, json: bool) {
    let mut body = error.body();
    for text in [&mut body.hint, &mut body.example].into_iter().flatten() {
        *text = command::in_text(text);
    }
    let text = if json {
        serde_json::to_string_pretty(&body).unwrap_or_default() + "\n"
    } else {
        let screen = Screen::of_errors();
        render::error(&body, &screen) + &error.candidates(&screen)
    };
    // The text is styled already, and quoted words in it are safe.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Writes text without colours to standard error, safe to print. Ignores errors, because there is
/// nowhere to report them.
fn write_err(text: &str) {
    let _ = anstream::stderr()
        .lock()
        .write_all(text::safe(text).as_bytes());
}

/// Writes text without colours to standard output, safe to print.
fn write_plain(text: &str) -> Result<(), CliError> {
    write_out(&text::safe(text))
}

/// Prints clap's message. Without colours if the command line contains control characters.
fn print_clap_error(error: &clap::Error) {
    let odd = |argument: std::ffi::OsString| {
        let argument = argument.to_string_lossy();
        text::safe(&argument) != argument
    };
    if std::env::args_os().any(odd) {
        write_err(&error.to_string());
    } else {
        let _ = error.print();
    }
}
