//! What a panic says on standard error: one line. Requests and LanceDB are guarded, so that most panics are answered as errors;
//! the line is for whoever reports the defect, and a text that the panic quotes must not reach the terminal as it stands.

use std::panic::PanicHookInfo;

use super::write_err;
use ack_api::text;

/// Has panics say one line; all of it where the environment asks for backtraces.
pub fn install() {
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        return;
    }
    std::panic::set_hook(Box::new(|panic| write_err(&line(panic))));
}

fn line(panic: &PanicHookInfo<'_>) -> String {
    let said = panic.payload_as_str().unwrap_or("a panic");
    // Where the file lies is nobody's business, its name is enough.
    let place = panic.location().map_or_else(String::new, |location| {
        let file = location
            .file()
            .rsplit(['/', '\\'])
            .next()
            .unwrap_or_default();
        format!(" ({file}:{})", location.line())
    });
    format!(
        "ack-memory: internal error{place}: {}\n",
        text::line(said, 200)
    )
}
