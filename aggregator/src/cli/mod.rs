//! The command line.
mod devices;
mod init;
mod output;
mod serve;
mod states;
mod status;

use crate::config::ConfigError;
use crate::dir::{DirError, HostDir};
use crate::drive::ReplayError;
use crate::server::ServeError;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::future::Future;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Parser)]
#[command(
    name = "aggregator",
    version,
    about = "The host of a Spectra fleet: enrols boards, runs rounds, keeps what a restart needs."
)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.")]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a host in a new directory
    Init(Box<init::Init>),
    /// Serve boards until told to stop
    Serve(serve::Serve),
    /// Print a one-time token by which one board may enrol
    Token(Token),
    /// Show or change what enrolled boards may do
    #[command(subcommand)]
    Devices(devices::Devices),
    /// Show or export the states that rounds gave
    #[command(subcommand)]
    Models(states::Models),
    /// Tell how the run goes
    Status(status::Status),
    /// Check the configuration and print it with every default written out
    Validate(Validate),
    /// Give the host a new certificate; boards need not be touched
    RenewLeaf(RenewLeaf),
    /// Copy the host to a new directory, also while it is served
    Backup(Backup),
    /// Make a host out of a backup
    Restore(Restore),
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  aggregator token fleet --name kitchen --ttl 24h > kitchen.token")]
struct Token {
    /// The host's directory
    dir: PathBuf,
    /// A note of whom it is for, shown by `status` and `devices list`
    #[arg(long, value_parser = parse_note)]
    name: Option<String>,
    /// How long it can be used: a number with s, m, h or d
    #[arg(long, default_value = "24h", value_parser = parse_life)]
    ttl: Duration,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  aggregator validate fleet")]
struct Validate {
    /// The host's directory
    dir: PathBuf,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  aggregator renew-leaf fleet\n\nA running host takes the new certificate up within the hour; restart it to use it at once."
)]
struct RenewLeaf {
    /// The host's directory
    dir: PathBuf,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  aggregator backup fleet fleet-monday\n\nThe copy holds the host's private keys: keep it as safe as the host."
)]
struct Backup {
    /// The host's directory
    dir: PathBuf,
    /// The directory to make
    to: PathBuf,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  aggregator restore fleet-monday fleet-again\n\nBoards that are ahead of the backup are told so and go on from there."
)]
struct Restore {
    /// The backup's directory
    from: PathBuf,
    /// The directory to make
    dir: PathBuf,
}

/// Runs the program with these arguments, the first of which is its name.
pub fn main_from<I, T>(arguments: I) -> ExitCode
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let program = match Program::try_parse_from(arguments) {
        Ok(program) => program,
        Err(error) => {
            drop(error.print()); // nothing can be done if even that fails
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    start_log();
    match run(program.command) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough.
        Err(error)
            if error.downcast_ref().is_some_and(|e: &std::io::Error| e.kind() == ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}", said(&error));
            ExitCode::from(if is_configuration(&error) { 2 } else { 1 })
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Init(init) => block(init.run()),
        Command::Serve(serve) => block(serve.run()),
        Command::Token(Token { dir, name, ttl }) => {
            block(async move { output::say(&format!("{}\n", existing(dir)?.token(name, ttl).await?)) })
        }
        Command::Devices(devices) => block(devices.run()),
        Command::Models(models) => block(models.run()),
        Command::Status(status) => block(status.run()),
        Command::Validate(Validate { dir }) => validate(dir),
        Command::RenewLeaf(RenewLeaf { dir }) => renew_leaf(dir),
        Command::Backup(Backup { dir: from, to }) | Command::Restore(Restore { from, dir: to }) => {
            block(copy(from, to))
        }
    }
}

fn validate(dir: PathBuf) -> anyhow::Result<()> {
    let settings = existing(dir)?.settings()?;
    settings.check()?;
    output::say(&settings.effective()?.to_toml()?)
}

fn renew_leaf(dir: PathBuf) -> anyhow::Result<()> {
    let dir = existing(dir)?;
    let leaf = dir.authority()?.renew_leaf(&dir.settings()?.server.names, crate::clock::now())?;
    eprintln!("the host has a new certificate, for {} days", crate::pki::LEAF_DAYS);
    tracing::debug!(issued = leaf.issued.0, "renewed");
    Ok(())
}

async fn copy(from: PathBuf, to: PathBuf) -> anyhow::Result<()> {
    existing(from)?.copy_to(&to).await?;
    eprintln!("the host is copied to {}", to.display());
    Ok(())
}

/// A directory that [`HostDir::create`] has made.
fn existing(dir: PathBuf) -> Result<HostDir, ConfigError> {
    let dir = HostDir::new(dir);
    dir.settings()?;
    Ok(dir)
}

/// Runs a command to its end. Work that is still being done off the executor isn't waited for.
fn block(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    outcome
}

/// An error and its causes, outermost first. Most messages tell their cause themselves: what was said isn't said again.
fn said(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.contains(&cause) {
        true => said,
        false if said.is_empty() => cause,
        false => format!("{said}: {cause}"),
    })
}

fn is_configuration(error: &anyhow::Error) -> bool {
    let nested = |e: &ServeError| {
        matches!(
            e,
            ServeError::Config(_)
                | ServeError::Dir(DirError::Config(_))
                | ServeError::Replay(ReplayError::AnotherRun | ReplayError::Over { .. })
        )
    };
    error.is::<ConfigError>()
        || error.is::<output::Usage>()
        || matches!(error.downcast_ref(), Some(DirError::Config(_)))
        || error.downcast_ref().is_some_and(nested)
}

fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("SPECTRA_LOG").unwrap_or_else(|_| "info".into());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .try_init();
    drop(log); // a second program in one process writes to the first one's log
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a number with s, m, h or d, such as 24h");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let count: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(u64::from(count) * seconds))
}

fn parse_life(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a token that can never be used".into()),
        life => Ok(life),
    }
}

fn parse_note(text: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if fits { Ok(text.into()) } else { Err("must be 1 to 64 printable characters".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_can_be_parsed_and_shows_an_example() {
        let program = Program::command();
        program.clone().debug_assert();
        let mut open: Vec<clap::Command> = program.get_subcommands().cloned().collect();
        while let Some(command) = open.pop() {
            if command.has_subcommands() {
                open.extend(command.get_subcommands().cloned());
                continue;
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let example = help.strip_prefix("Example:\n").or(help.strip_prefix("Examples:\n"));
            assert!(
                example.is_some_and(|e| e.starts_with("  aggregator ")),
                "{} shows none",
                command.get_name()
            );
        }
    }

    #[test]
    fn a_cause_is_told_once_whether_or_not_the_message_tells_it() {
        let cause = || std::io::Error::other("no room");
        let told = DirError::File { path: "x".into(), source: cause() };
        assert_eq!(said(&ServeError::Dir(told).into()), "x: no room");
        assert_eq!(said(&anyhow::Error::new(cause()).context("x")), "x: no room");
    }

    #[test]
    fn a_note_is_short_and_printable_and_a_token_lives_for_a_while() {
        let long = "x".repeat(65);
        assert!(["", "a\nb", "\u{1b}[2J", &long].iter().all(|text| parse_note(text).is_err()));
        assert_eq!(parse_note("küche 2"), Ok("küche 2".into()));
        assert!(parse_life("0s").is_err() && parse_life("1s").is_ok());
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse_duration("90m"), Ok(Duration::from_secs(5400)));
        assert!(["", "24", "h", "-1h", "1w", "é"].iter().all(|text| parse_duration(text).is_err()));
    }
}
