//! The command line. Only this module reads the environment, the working directory, the clock and
//! standard input, and only this module prints. Reading commands call the same service as the tools
//! and print the same answers.

mod add;
pub mod args;
mod caller;
mod check;
mod command;
mod config_file;
mod connect;
mod curate;
mod demo;
mod doctor;
mod error;
mod eval;
mod get;
mod hook;
mod import;
#[cfg(feature = "table")]
mod index;
mod last_query;
mod output;
pub mod panics;
mod program;
mod progress;
mod prompt;
mod publish;
mod query;
mod render;
mod review;
mod scopes;
mod screen;
mod serve;
mod settings;
mod setup;
mod signals;
mod tables;
mod token;
mod user;

use std::collections::HashMap;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use clap::ColorChoice;
use clap::error::{ContextKind, ContextValue};
use directories::BaseDirs;

use self::args::{Cli, Command, ContextArgs, Global};
use self::caller::Caller;
use self::output::{print, report, untagged, write_err, write_out};
use self::render::Listing;
use self::screen::Screen;
use self::settings::{config, inputs, load};
use self::tables::{Tables, with_tables};
use crate::cli::error::CliError;
use ack_api::{ErrorCode, Resolve as _, text};
use ack_desk::choice::Choice;
use ack_service::Service;
use ack_service::config::ENV_PROJECT;
use ack_store::copies;
use ack_sys::files::expand_home;
use ack_sys::heap;

/// Closes the service at the end of a command.
struct CloseOnDrop(&'static Service);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Parses the command line and runs it. Exit codes: 0 success, 1 failure, 2 usage error.
pub fn run() -> ExitCode {
    use_every_processor();
    panics::install();
    tune_allocator();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && is_hook(std::env::args_os().skip(1)) => {
            // A hook installed by a newer version must not break a session with this one.
            let message = error.to_string();
            // The error, and the values that are allowed.
            let first = message.lines().take(2).map(str::trim).collect::<Vec<_>>().join(" ");
            let is_missing = error.kind() == clap::error::ErrorKind::MissingRequiredArgument;
            hook::print_error(match is_missing {
                true => "its event is missing; `ack-memory hook --help` lists them",
                false => &first,
            });
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            // Help and version are answers. Anything else is a usage error, which clap reports with
            // code 2.
            let code = if error.use_stderr() { 2 } else { 0 };
            if code == 2 && asks_for_json(std::env::args_os().skip(1)) {
                report(&usage_error(&error), true);
            } else {
                print_clap_error(&error);
            }
            return ExitCode::from(code);
        }
    };
    let json = cli.global.json;
    match cli.global.color {
        // The environment and the terminal decide.
        ColorChoice::Auto => {}
        ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
    }
    command::remember_flags(&cli);
    progress::set_silence(&cli.global);
    if cli.global.is_served_unasked && !cli.global.quiet {
        write_err("hint: without a command, this is `ack-memory serve`: MCP on standard input\n");
    }
    // A server handles signals itself.
    if !matches!(cli.command, Some(Command::Serve(_))) {
        signals::watch();
    }
    let checked = check_folder(&cli).and_then(|()| check_json(&cli));
    let outcome = checked.and_then(|()| run_command(cli));
    copies::shut_down();
    prompt::leave_nothing();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            report(&error, json);
            ExitCode::from(error.exit_code())
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

/// Whether the command is `hook`, for arguments that could not be parsed completely.
fn is_hook(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--root" | "--db" | "--unreviewed" | "--pin" | "--dir" | "-C" | "--color") => {
                drop(arguments.next())
            }
            Some(flag) if flag.starts_with('-') => {}
            word => return word == Some("hook"),
        }
    }
    false
}

/// Whether a command line that could not be parsed asks for JSON.
fn asks_for_json(arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let mut flags = arguments.take_while(|argument| argument != "--");
    flags.any(|argument| argument == "--json")
}

/// What clap says, without how to call the command.
fn usage_error(error: &clap::Error) -> CliError {
    let text = error.to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    let text = text.split("\n\nFor more").next().unwrap_or_default();
    let words = text.strip_prefix("error: ").unwrap_or(text).split_whitespace();
    let message = words.collect::<Vec<_>>().join(" ");
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => {
            CliError::usage(argument.split(' ').next().unwrap_or_default(), message)
        }
        _ => CliError::typed(message),
    }
}

/// Refuses `--json` where the answer is a text: a change to look at, or a demonstration.
fn check_json(cli: &Cli) -> Result<(), CliError> {
    let name = match cli.command {
        Some(Command::Connect(_)) => "connect",
        Some(Command::Disconnect(_)) => "disconnect",
        Some(Command::Demo(_)) => "demo",
        _ => return Ok(()),
    };
    if !cli.global.json {
        return Ok(());
    }
    let error = CliError::usage("--json", format!("`{name}` prints no JSON"));
    Err(error.with_hint("leave out --json"))
}

fn as_curator(
    global: &Global,
    run: impl FnOnce(Caller<'_>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    run(Caller { config: &load(global)?, json: global.json, now: jiff::Timestamp::now() })
}

/// Rejects a `-C` folder that does not exist, because it is probably a typo. A host may name a
/// folder that was deleted later, so hooks still answer, and a server started by a host serves the
/// shared scopes.
fn check_folder(cli: &Cli) -> Result<(), CliError> {
    let is_flag = !cli.global.variables.contains(&ENV_PROJECT);
    let Some(folder) = cli.global.dir.as_ref().filter(|_| is_flag) else {
        return Ok(());
    };
    let path = expand_home(folder, BaseDirs::new().as_ref().map(BaseDirs::home_dir));
    // If the folder cannot be checked, assume that it exists.
    let is_there = match std::fs::metadata(&path) {
        Ok(metadata) => metadata.is_dir(),
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    };
    let path = path.display();
    match cli.command {
        _ if is_there => {}
        Some(Command::Hook(_)) => {}
        Some(Command::Serve(_)) => {
            write_err(&format!("ack-memory: the `-C` folder {path} does not exist\n"));
        }
        _ => return Err(CliError::usage("-C", format!("there is no folder {path}"))),
    }
    Ok(())
}

fn show_context(global: &Global, args: &ContextArgs) -> Result<(), CliError> {
    let service = CloseOnDrop(Service::new(config(global)?).leak());
    let mut answer = progress::while_reading(|| service.0.get_context(&args.request()))?;
    answer.resolve(&command::SHELL);
    let answer = untagged(answer);
    let memories = answer.recent_memories.iter().chain(&answer.cross_project_learnings);
    let ids: Vec<&str> = memories.map(|memory| memory.id.as_str()).collect();
    let short = if global.json || ids.is_empty() {
        HashMap::new()
    } else {
        service.0.short_ids(&ids, None).unwrap_or_default()
    };
    print(&answer, global, |answer, screen| {
        render::context(answer, &Listing { short, screen: screen.clone(), ..Listing::default() })
    })
}

fn run_command(cli: Cli) -> Result<ExitCode, CliError> {
    let (global, json, now) = (&cli.global, cli.global.json, jiff::Timestamp::now());
    let outcome = match cli.command.unwrap_or_default() {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut args::command(), "ack-memory", &mut script);
            write_out(&String::from_utf8_lossy(&script))
        }
        Command::Man { folder } => std::fs::create_dir_all(&folder)
            .and_then(|()| clap_mangen::generate_to(args::command(), &folder))
            .map_err(CliError::io("write the manual pages to", &folder)),
        Command::Demo(args) => demo::demo(args.folder.as_deref(), now),
        Command::Setup(args) => {
            let config = config(global)?;
            let mode = setup::mode(&args, json)?;
            let tables = Tables::All.unless(args.no_index || args.dry_run);
            with_tables(&config, tables, || setup::run(&config, mode, json))
        }
        Command::Serve(args) => return serve::run(&args, global),
        Command::Token(args) => token::run(&args, load(global).ok().as_ref(), json),
        Command::Query(args) => return query::run(global, args),
        Command::Get(args) => return get::run(global, &args),
        Command::Scopes(args) => scopes::run(global, args),
        Command::Context(args) if args.preview => hook::preview(global, None),
        Command::Context(args) => show_context(global, &args),
        Command::Hook(args) => {
            hook::run(global, &args);
            Ok(())
        }
        Command::Connect(args) => connect::connect(global, &args),
        Command::Disconnect(args) => connect::disconnect(global, &args),
        Command::Add(args) => as_curator(global, |desk| {
            with_tables(desk.config, Tables::Changed, || add::run(desk, &args))
        }),
        Command::Edit(args) => as_curator(global, |desk| curate::edit(desk, &args)),
        Command::Approve(args) => as_curator(global, |desk| {
            let choice = if args.promote { Choice::Promote } else { Choice::Approve };
            curate::decide(desk, "approve", choice, &args.chosen)
        }),
        Command::Reject(args) => {
            as_curator(global, |desk| curate::decide(desk, "reject", Choice::Reject, &args))
        }
        Command::Stage(args) => as_curator(global, |desk| {
            let choice = args.until.map_or(Choice::Stage, |until| Choice::PutOff { until });
            curate::decide(desk, "stage", choice, &args.chosen)
        }),
        Command::Replace(args) => as_curator(global, |desk| curate::replace(desk, &args)),
        Command::Undo(args) => as_curator(global, |desk| curate::undo(desk, &args)),
        Command::Review(args) => as_curator(global, |desk| {
            let tables = Tables::Changed.unless(args.no_index || args.list);
            with_tables(desk.config, tables, || review::run(desk, args))
        }),
        Command::Publish(args) if global.offline && args.to.is_some() => {
            let message = "cannot publish to a bucket: --offline allows no connection";
            Err(CliError::new(ErrorCode::InvalidArgument, message)
                .with_hint("leave out --offline, or publish to a folder with `--to-folder`"))
        }
        Command::Publish(args) => publish::run(&config(global)?, &args, json),
        Command::Check(args) => return check::run(&config(global)?, &args, json),
        Command::Import(args) => {
            let config = config(global)?;
            let tables = Tables::Changed.unless(args.no_index || args.dry_run);
            with_tables(&config, tables, || import::run(&config, &args, json, now))
        }
        Command::Eval(args) => eval::execute(config(global)?, &args, json),
        #[cfg(feature = "table")]
        Command::Index(args) => index::run(&config(global)?, &args, json),
        #[cfg(not(feature = "table"))]
        Command::Index(_) => {
            let message = "this build of ack-memory has no vector tables";
            Err(CliError::new(ErrorCode::IndexFailed, message).with_hint(
                "searches work without one; a build with the default features can build it",
            ))
        }
        Command::Config(args) => config_file::run(global, args.action),
        Command::Doctor(args) => return doctor::run(inputs(global)?, &args, global),
    };
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Prints clap's message. Without colours if the command line contains control characters.
fn print_clap_error(error: &clap::Error) {
    let odd = |argument: std::ffi::OsString| {
        let argument = argument.to_string_lossy();
        text::safe(&argument) != argument
    };
    if std::env::args_os().any(odd) {
        write_err(&error.to_string());
    } else if error.use_stderr() {
        let (screen, text) = (Screen::of_errors(), error.render().ansi().to_string());
        let wrapped = text.lines().map(|line| render::lines(&screen, line, "", "  ").join("\n"));
        let text: String = wrapped.map(|line| line + "\n").collect();
        let _ = anstream::stderr().lock().write_all(text.as_bytes());
    } else {
        let _ = error.print();
    }
}
