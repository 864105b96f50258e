//! The command line.
mod args;
mod bench;
mod board;
mod data;
mod doctor;
mod enroll;
mod frozen;
mod infer;
mod models;
mod ort;
mod output;
mod run;

pub use args::Cli;

use crate::config::ConfigError;
use crate::data::LocalDataError;
use ::models::wire::Token;
use args::Command;
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// The arguments can't be meant.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

/// Runs the program: exit code 0 when done, 1 when it failed, 2 for usage or configuration.
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if args.iter().any(is_token) {
        // Nothing that follows may repeat it.
        eprintln!(
            "error: a token stands among the arguments, where other users and the shell's history see it: don't use it any more, let the host make another, put that into a file and give the file's name, or - for standard input"
        );
        return ExitCode::from(2);
    }
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
            eprintln!("error: {}", said(&error));
            ExitCode::from(if is_usage(&error) { 2 } else { 1 })
        }
    }
}

/// Whether an argument is a token, or an option with one.
fn is_token(argument: &OsString) -> bool {
    let text = argument.to_string_lossy();
    let value = text.split_once('=').map_or(&*text, |(_, value)| value);
    [&*text, value].iter().any(|text| text.parse::<Token>().is_ok())
}

/// An error and its causes, outermost first. Most messages tell their cause themselves: what was said isn't said again.
fn said(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.contains(&cause) {
        true => said,
        false if said.is_empty() => cause,
        false => format!("{said}: {cause}"),
    })
}

/// Whether another command line or configuration would help.
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<ConfigError>()
        || error.is::<Usage>()
        || matches!(error.downcast_ref(), Some(LocalDataError::NoSource))
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

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_is_told_once_whether_or_not_the_message_tells_it() {
        #[derive(Debug, thiserror::Error)]
        #[error("x: {0}")]
        struct Whole(std::io::Error);
        #[derive(Debug, thiserror::Error)]
        #[error("x: {source}")]
        struct WithSource {
            source: std::io::Error,
        }
        let cause = || std::io::Error::other("no room");
        assert_eq!(said(&Whole(cause()).into()), "x: no room");
        assert_eq!(said(&WithSource { source: cause() }.into()), "x: no room");
        assert_eq!(said(&Err::<(), _>(cause()).context("x").unwrap_err()), "x: no room");
    }

    #[test]
    fn a_token_is_known_wherever_it_stands() {
        let token =
            Token { secret: [7; 16], authority: ::models::id::Hash::of(b"a"), not_after: 1 }.to_string();
        for argument in [token.clone(), format!("--token={token}"), format!(" {token}\n")] {
            assert!(is_token(&argument.into()));
        }
        for argument in ["--token", "spectra1.token", "kitchen=token", ""] {
            assert!(!is_token(&argument.into()), "{argument}");
        }
    }
}
