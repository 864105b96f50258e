//! The command line.
use crate::bench;
use crate::bundle::{self, Bundle, CLASSES};
use crate::camera::Angle;
use crate::demo::{self, Life};
use crate::table::Table;
use crate::world::{Board, WorldName, WorldPlan};
use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use models::fed::cpct;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The researcher's bench: the demonstration, its worlds and its data.
#[derive(Debug, Parser)]
#[command(name = "lab", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run cpct on a world with a real host and real boards, and show it beside its rivals
    ///
    /// Starts an aggregator on this machine (TLS, a ledger, blobs in a temporary directory), enrols the boards by one-time
    /// tokens, runs the rounds, trains the rivals on the same data, prints the table, then one board's exported graphs in every
    /// engine that is there and six test images with who decided.
    #[command(after_help = "Examples:\n  lab demo\n  lab demo --world labels --seeds 0-4 --json")]
    Demo(DemoArgs),
    /// Show how a world deals its data to boards
    #[command(after_help = "Example:\n  lab partition --world labels --seed 3")]
    Partition(WorldArgs),
    /// Compare the bundled data with the original files
    ///
    /// Nothing is downloaded: the demonstration needs the bundle alone. The originals are looked for in
    /// $SPECTRA_DATA/fashion-mnist, by default shared/data/fashion-mnist beside the workspace.
    #[command(after_help = "Example:\n  lab fetch --from fashion-mnist")]
    Fetch {
        /// Folder of the four original IDX files
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
    },
}

/// The demonstration.
#[derive(Args, Clone, Debug)]
struct DemoArgs {
    #[command(flatten)]
    world: WorldArgs,
    /// Several seeds, first to last, inclusive: 0-4
    #[arg(long, value_name = "FIRST-LAST", conflicts_with = "seed", value_parser = seeds)]
    seeds: Option<Seeds>,
    /// Rounds of every federated method
    #[arg(long, default_value_t = bench::ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// What boards share: backbones, or whole models
    #[arg(long, value_enum, default_value = "private_head")]
    profile: ProfileName,
    /// Keep the directories of host and boards here [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print figures as JSON lines; tables go to standard error
    #[arg(long)]
    json: bool,
    /// Run every board as a process of its own
    #[arg(long)]
    processes: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum ProfileName {
    /// Backbones only; every head stays on its board
    PrivateHead,
    /// Whole models
    SharedHead,
}

/// A range of seeds.
#[derive(Clone, Debug)]
struct Seeds(Vec<u64>);

fn seeds(text: &str) -> Result<Seeds, String> {
    let parsed =
        text.split_once('-').and_then(|(a, b)| Some((a.parse::<u64>().ok()?, b.parse::<u64>().ok()?)));
    match parsed {
        Some((first, last)) if first <= last && last - first < 100 => Ok(Seeds((first..=last).collect())),
        _ => Err("must be FIRST-LAST, such as 0-4, of at most 100 seeds".into()),
    }
}

impl DemoArgs {
    fn options(self) -> demo::Options {
        let seeds = self.seeds.map_or_else(|| vec![self.world.seed], |s| s.0);
        let profile = match self.profile {
            ProfileName::PrivateHead => cpct::Profile::PrivateHead,
            ProfileName::SharedHead => cpct::Profile::SharedHead,
        };
        let life = if self.processes { Life::Process } else { Life::Thread };
        let Self { world, rounds, dir, json, .. } = self;
        demo::Options { world, seeds, rounds, profile, dir, json, life }
    }
}

/// Which world, and what is varied about it.
#[derive(Args, Clone, Debug)]
pub struct WorldArgs {
    /// Which of the two fixed worlds
    #[arg(long, value_enum, default_value = "mixed")]
    pub world: WorldName,
    /// Varies partition, initial weights and sampling
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Boards that train [default: 12 in mixed, 10 in labels]; two more join afterwards
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub clients: Option<u32>,
    /// Concentration of the Dirichlet distribution [default: 0.3 in mixed, 0.1 in labels]
    #[arg(long, value_parser = alpha)]
    pub alpha: Option<f64>,
    /// How cameras are mounted, dealt in turn [default: 0,90,180,270 in mixed, 0 in labels]
    #[arg(long, value_delimiter = ',')]
    pub angles: Option<Vec<Angle>>,
}

impl WorldArgs {
    /// The world's plan under `seed`.
    pub fn plan(&self, seed: u64) -> WorldPlan {
        let fixed = WorldPlan::fixed(self.world, seed);
        WorldPlan {
            clients: self.clients.map_or(fixed.clients, |n| n as usize),
            alpha: self.alpha.unwrap_or(fixed.alpha),
            angles: self.angles.clone().unwrap_or(fixed.angles),
            ..fixed
        }
    }
}

fn alpha(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|a| (0.01..=1000.0).contains(a))
        .ok_or_else(|| "must be a number from 0.01 to 1000".into())
}

/// Runs the program with these arguments, the first of which is its name: exit code 0 when done, 1 when it failed, 2 for usage.
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if args.get(1).is_some_and(|a| a == demo::BOARD_COMMAND) {
        return edge_client::cli::main_from(args.into_iter().skip(1));
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the tables has seen enough.
        Err(error)
            if error.downcast_ref().is_some_and(|e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(args) => demo::run(&args.options()),
        Command::Partition(world) => partition(&world),
        Command::Fetch { from } => fetch(from),
    }
}

fn partition(args: &WorldArgs) -> anyhow::Result<()> {
    let world = args.plan(args.seed).build(&Bundle::embedded());
    let heading = ["board", "camera", "train", "test", "unseen"].into_iter().chain(CLASSES);
    let mut table = Table::headed(heading);
    let row = |board: &Board| {
        let counts = board.train.counts(CLASSES.len());
        let sizes = [board.train.len(), board.own.len(), board.unseen.len()].map(|n| n.to_string());
        [board.client.to_string(), board.angle.to_string()]
            .into_iter()
            .chain(sizes)
            .chain(counts.iter().map(ToString::to_string))
            .collect::<Vec<_>>()
    };
    world.trained().iter().for_each(|board| table.row(row(board)));
    table.rule();
    world.late().iter().for_each(|board| table.row(row(board)));
    write!(io::stdout(), "{table}")?;
    if world.moved > 0 {
        eprintln!(
            "note: no draw gave every board two images; {} were moved from the largest board",
            world.moved
        );
    }
    Ok(())
}

fn fetch(from: Option<PathBuf>) -> anyhow::Result<()> {
    let folder = from.or_else(bundle::originals).with_context(|| {
        format!(
            "no original files: put the four files of Fashion-MNIST into {} or name their folder by --from",
            bundle::data_root().join("fashion-mnist").display()
        )
    })?;
    let original = Bundle::original(&folder)?;
    anyhow::ensure!(
        original == Bundle::embedded(),
        "the bundle differs from the files in {}",
        folder.display()
    );
    writeln!(
        io::stdout(),
        "the bundle equals the first {} training and {} test images in {}",
        bundle::CLIENT_IMAGES + bundle::AUXILIARY_IMAGES,
        bundle::TEST_IMAGES,
        folder.display()
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_examples_of_every_command_can_be_typed() {
        Cli::command().debug_assert();
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().expect("every command has an example").to_string();
            let examples: Vec<&str> = help.lines().filter(|l| l.starts_with("  lab ")).collect();
            assert!(!examples.is_empty());
            for example in examples {
                assert!(Cli::try_parse_from(example.split_whitespace()).is_ok(), "{example}");
            }
        }
    }

    #[test]
    fn what_is_varied_reaches_the_plan() {
        let typed = "lab demo --world labels --seeds 2-4 --clients 5 --alpha 0.5 --angles 0,180 --profile shared_head";
        let Ok(Cli { command: Command::Demo(args) }) = Cli::try_parse_from(typed.split_whitespace()) else {
            panic!("{typed} is a demonstration")
        };
        let options = args.options();
        assert_eq!((options.seeds.as_slice(), options.profile), (&[2, 3, 4][..], cpct::Profile::SharedHead));
        let plan = options.world.plan(3);
        assert_eq!((plan.clients, plan.alpha, plan.seed), (5, 0.5, 3));
        assert_eq!(plan.angles, [Angle::Upright, Angle::Half]);
        for wrong in ["--seeds 4-2", "--seeds 0-4 --seed 1", "--clients 0", "--alpha 0", "--angles 45"] {
            let typed = format!("lab demo {wrong}");
            assert!(Cli::try_parse_from(typed.split_whitespace()).is_err(), "{wrong}");
        }
    }
}
