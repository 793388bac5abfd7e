//! Prints a panic as one line on standard error. Requests and LanceDB are guarded, so most panics
//! become error answers. The line is for a bug report; a panic of LanceDB's threads is a damaged
//! table, which the answer reports. A text that the panic quotes must not reach the terminal
//! unescaped.

use std::panic::PanicHookInfo;

use super::output::write_err;
use ack_api::text;

/// Makes panics print one line, or everything if the environment asks for backtraces.
pub fn install() {
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        let is_lance = |name: &str| name.starts_with("lance");
        if !std::thread::current().name().is_some_and(is_lance) {
            write_err(&panic_line(panic));
        }
    }));
}

fn panic_line(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload_as_str().unwrap_or("a panic");
    // Print only the file's name, because its path is private.
    let place = panic.location().map_or_else(String::new, |location| {
        let file = location.file().rsplit('/').next().unwrap_or_default();
        format!(" ({file}:{})", location.line())
    });
    format!("ack-memory: internal error{place}: {}\n", text::line(payload, 200))
}
