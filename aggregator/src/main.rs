//! The host's program.
use std::process::ExitCode;

fn main() -> ExitCode {
    aggregator::cli::main_from(std::env::args_os())
}
