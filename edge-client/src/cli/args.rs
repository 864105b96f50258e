//! What can be typed.
use super::output::Format;
use crate::transport::Address;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use models::params::UpdateMode;
use onnx::runtime::Engine;
use std::path::PathBuf;

/// Keeps a board's data and personal model, trains when the host asks, and answers.
#[derive(Debug, Parser)]
#[command(name = "edge-client", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Become known to a host by a one-time token
    #[command(
        after_help = "Examples:\n  edge-client enroll --host https://host.example:8443 --token kitchen.token --dir kitchen\n  edge-client enroll --host https://host.example:8443 --dir kitchen"
    )]
    Enroll(Enroll),
    /// Take part in training; resumes where it was stopped
    #[command(
        after_help = "Example:\n  edge-client run --dir kitchen --data kitchen-pictures --until-finished"
    )]
    Run(Run),
    /// Adapt the model again to the data that are here now
    #[command(after_help = "Example:\n  edge-client personalize --dir kitchen --data kitchen-pictures")]
    Personalize(Personalize),
    /// Show the statistics of the local data; they stay here
    #[command(
        after_help = "Example:\n  edge-client statistics --dir kitchen --data kitchen-pictures --format json"
    )]
    Statistics(Listing),
    /// Write the personal and the shared model as ONNX files
    #[command(after_help = "Example:\n  edge-client export --dir kitchen --out kitchen-models")]
    Export(Export),
    /// Answer: class, confidence, who decided
    #[command(
        after_help = "Examples:\n  edge-client infer --dir kitchen new-picture.png\n  edge-client infer --dir kitchen --engine native --format json pictures/"
    )]
    Infer(Infer),
    /// Tell how it goes
    #[command(after_help = "Example:\n  edge-client status --dir kitchen")]
    Status(Looking),
    /// The models on this board
    #[command(
        after_help = "Example:\n  edge-client models list --dir kitchen",
        arg_required_else_help = true
    )]
    Models(Models),
    /// The local data
    #[command(
        after_help = "Example:\n  edge-client data list --dir kitchen --data kitchen-pictures",
        arg_required_else_help = true
    )]
    Data(Data),
    /// Measure this board
    #[command(
        after_help = "Example:\n  edge-client bench train --arch cc28 --batch 64 --threads 2 --json",
        arg_required_else_help = true
    )]
    Bench(Bench),
    /// ONNX Runtime on this board
    #[command(after_help = "Example:\n  edge-client ort check", arg_required_else_help = true)]
    Ort(Ort),
    /// Check everything a board needs, and say what to do
    #[command(after_help = "Example:\n  edge-client doctor --dir kitchen")]
    Doctor(Looking),
    /// Check the configuration and print what is in force
    #[command(after_help = "Example:\n  edge-client validate --config client.toml")]
    Validate(Validate),
}

/// Which board.
#[derive(Args, Clone, Debug, Default)]
pub struct Board {
    /// Private directory of this board
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Configuration file
    #[arg(long, value_name = "FILE", env = "SPECTRA_CONFIG")]
    pub config: Option<PathBuf>,
}

/// Which data, and what to compute with.
#[derive(Args, Clone, Debug, Default)]
pub struct Local {
    /// Training data: folder with one sub-folder per class, IDX images (labels beside or as IMAGES,LABELS), CIFAR file; may be repeated
    #[arg(long, value_name = "PATH")]
    pub data: Vec<PathBuf>,
    /// Scale pictures of another size to the model's
    #[arg(long)]
    pub resize: bool,
    /// Threads to compute with [default: one for each core]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
}

/// `enroll`.
#[derive(Args, Debug)]
pub struct Enroll {
    #[command(flatten)]
    pub board: Board,
    /// Where the host is
    #[arg(long, value_name = "https://NAME:PORT")]
    pub host: Address,
    /// File with the one-time token, or - for standard input; a board that is enrolled already needs none to follow its host to
    /// a new address
    #[arg(long, value_name = "FILE|-")]
    pub token: Option<PathBuf>,
    /// How the host's operator sees this board [default: the machine's name]
    #[arg(long)]
    pub name: Option<String>,
}

/// `run`.
#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    pub board: Board,
    #[command(flatten)]
    pub local: Local,
    /// Do what there is to do now, then exit
    #[arg(long, conflicts_with = "until_finished")]
    pub once: bool,
    /// Exit when training is over and this board has the final model
    #[arg(long)]
    pub until_finished: bool,
    /// The most that may leave this board
    #[arg(long, value_name = "nothing|backbone|full_model|class_means|statistics")]
    pub allow: Option<String>,
    /// The most that training changes: full, last:K (the last K layers), head (nothing is sent) or bias
    #[arg(long, value_name = "MODE")]
    pub update: Option<UpdateMode>,
}

/// `personalize`.
#[derive(Args, Debug)]
pub struct Personalize {
    #[command(flatten)]
    pub board: Board,
    #[command(flatten)]
    pub local: Local,
    /// The most that training changes: full, last:K (the last K layers), head or bias
    #[arg(long, value_name = "MODE")]
    pub update: Option<UpdateMode>,
    /// Train alone as well, and show what taking part was worth on samples held out
    #[arg(long)]
    pub compare: bool,
    /// How to print the comparison
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `statistics` and `data list`.
#[derive(Args, Debug)]
pub struct Listing {
    #[command(flatten)]
    pub board: Board,
    #[command(flatten)]
    pub local: Local,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `export`.
#[derive(Args, Debug)]
pub struct Export {
    #[command(flatten)]
    pub board: Board,
    /// Folder to write specialist.onnx and generalist.onnx to
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// `infer`.
#[derive(Args, Debug)]
pub struct Infer {
    #[command(flatten)]
    pub board: Board,
    #[command(flatten)]
    pub local: Local,
    /// PNG or JPEG files, folders of them, IDX files
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// Who computes: auto, ort, native or tract [default: auto]
    #[arg(long)]
    pub engine: Option<String>,
    /// ONNX Runtime's library, or the folder that holds it
    #[arg(long, value_name = "PATH")]
    pub ort_lib: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `status` and `doctor`.
#[derive(Args, Debug)]
pub struct Looking {
    #[command(flatten)]
    pub board: Board,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `models`.
#[derive(Args, Debug)]
pub struct Models {
    /// What about them.
    #[command(subcommand)]
    pub what: ModelsWhat,
}

/// `models …`.
#[derive(Debug, Subcommand)]
pub enum ModelsWhat {
    /// What this board answers with
    #[command(after_help = "Example:\n  edge-client models list --dir kitchen")]
    List(Looking),
}

/// `data`.
#[derive(Args, Debug)]
pub struct Data {
    /// What about them.
    #[command(subcommand)]
    pub what: DataWhat,
}

/// `data …`.
#[derive(Debug, Subcommand)]
pub enum DataWhat {
    /// How many samples of which class
    #[command(after_help = "Example:\n  edge-client data list --dir kitchen --data kitchen-pictures")]
    List(Listing),
}

/// `bench`.
#[derive(Args, Debug)]
pub struct Bench {
    /// What to measure.
    #[command(subcommand)]
    pub what: BenchWhat,
}

/// `bench …`.
#[derive(Debug, Subcommand)]
pub enum BenchWhat {
    /// One training step
    #[command(
        after_help = "Examples:\n  edge-client bench train --arch cc28 --batch 64 --threads 2 --json\n  edge-client bench train --arch cc32 --plan --ram-cap 64\n  edge-client bench train --update head"
    )]
    Train(BenchTrain),
    /// One answer
    #[command(
        after_help = "Example:\n  edge-client bench infer --arch cc28 --batch 1 --engine native --json"
    )]
    Infer(BenchInfer),
}

/// What both benches take.
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Architecture
    #[arg(long, default_value = "cc28", value_parser = PossibleValuesParser::new(::models::nn::arch::NAMES))]
    pub arch: String,
    /// Samples at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch: u32,
    /// Threads to compute with [default: one for each core]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Steps that are timed, after a tenth of warming up
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(5..=1_000_000))]
    pub steps: u32,
    /// One line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What is asked of the memory plan.
#[derive(Args, Debug)]
pub struct BenchMemory {
    /// Show every buffer's size and lifetime before anything is allocated, and stop there
    #[arg(long)]
    pub plan: bool,
    /// Refuse to start where more memory would be needed
    #[arg(long, value_name = "MIB")]
    pub ram_cap: Option<u32>,
}

/// `bench train`.
#[derive(Args, Debug)]
pub struct BenchTrain {
    #[command(flatten)]
    pub bench: BenchArgs,
    #[command(flatten)]
    pub memory: BenchMemory,
    /// What changes: full, last:K (the last K layers), head or bias
    #[arg(long, default_value = "full", value_name = "MODE")]
    pub update: UpdateMode,
    /// The most samples of a lane that go through together: fewer take less memory, the result is the same [default: 16, or as many as fit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub micro_batch: Option<u32>,
}

/// `bench infer`.
#[derive(Args, Debug)]
pub struct BenchInfer {
    #[command(flatten)]
    pub bench: BenchArgs,
    /// Of the native engine; the others take what they take.
    #[command(flatten)]
    pub memory: BenchMemory,
    /// Who computes: auto, ort, native or tract
    #[arg(long, default_value = "auto")]
    pub engine: Engine,
    /// ONNX Runtime's library, or the folder that holds it
    #[arg(long, value_name = "PATH")]
    pub ort_lib: Option<PathBuf>,
}

/// `ort`.
#[derive(Args, Debug)]
pub struct Ort {
    /// What about it.
    #[command(subcommand)]
    pub what: OrtWhat,
}

/// `ort …`.
#[derive(Debug, Subcommand)]
pub enum OrtWhat {
    /// Take the library out of a Python package
    #[command(
        after_help = "Example:\n  pip download --no-deps onnxruntime\n  edge-client ort install --from onnxruntime-1.24.4-cp312-cp312-manylinux_2_28_aarch64.whl"
    )]
    Install(OrtInstall),
    /// Load the library and run a small graph
    #[command(after_help = "Example:\n  edge-client ort check --ort-lib /opt/onnxruntime/lib")]
    Check(OrtCheck),
}

/// `ort install`.
#[derive(Args, Debug)]
pub struct OrtInstall {
    /// The wheel of the Python package onnxruntime for this board
    #[arg(long, value_name = "WHEEL")]
    pub from: PathBuf,
    /// Folder to install into [default: in your data directory]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

/// `ort check`.
#[derive(Args, Debug)]
pub struct OrtCheck {
    /// ONNX Runtime's library, or the folder that holds it
    #[arg(long, value_name = "PATH")]
    pub ort_lib: Option<PathBuf>,
}

/// `validate`.
#[derive(Args, Debug)]
pub struct Validate {
    #[command(flatten)]
    pub board: Board,
    #[command(flatten)]
    pub local: Local,
}
