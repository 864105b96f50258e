//! `lab`: the researcher's bench.
use std::process::ExitCode;

fn main() -> ExitCode {
    match lab::cli::run(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
