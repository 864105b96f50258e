//! `lab`: the researcher's bench.
use std::process::ExitCode;

fn main() -> ExitCode {
    lab::cli::main_from(std::env::args_os())
}
