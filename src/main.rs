//! Turns the result of the command line into an exit code, and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    trestle::cli::run()
}
