//! The command line.
mod args;
mod bench;
mod board;
mod data;
mod doctor;
mod enroll;
mod infer;
mod models;
mod ort;
mod output;
mod run;

pub use args::Cli;

use crate::config::ConfigError;
use crate::data::LocalDataError;
use args::Command;
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program: exit code 0 when done, 1 when it failed, 2 for usage or configuration.
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if is_usage(&error) { 2 } else { 1 })
        }
    }
}

/// Whether another command line or configuration would help.
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<ConfigError>() || matches!(error.downcast_ref(), Some(LocalDataError::NoSource))
}

/// Whoever read our output has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Enroll(args) => enroll::enroll(&args),
        Command::Run(args) => run::run(&args),
        Command::Personalize(args) => run::personalize(&args),
        Command::Statistics(args) => data::statistics(&args),
        Command::Export(args) => models::export(&args),
        Command::Infer(args) => infer::infer(&args),
        Command::Status(args) => models::status(&args),
        Command::Models(args) => models::list(&args),
        Command::Data(args) => data::list(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Ort(args) => ort::ort(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Validate(args) => board::validate(&args),
    }
}
