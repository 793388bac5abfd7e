//! The `ack-memory` binary: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ack_memory::cli::run()
}
