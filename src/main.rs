//! The `ack-memory` binary. All the code is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ack_memory::internal::run_command_line()
}
