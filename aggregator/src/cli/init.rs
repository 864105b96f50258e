//! `aggregator init`.
use super::output::Usage;
use crate::compute;
use crate::config::{ConfigError, MethodSettings, ModelSettings, Settings};
use crate::dir::HostDir;
use crate::disk;
use anyhow::Context;
use clap::Args;
use models::data::{Samples, labels};
use models::nn::arch;
use models::params::UpdateMode;
use onnx::runtime::Options;
use onnx::{ImportError, Kept};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  aggregator init fleet --arch cc28 --labels labels.txt --aux aux --rounds 20 --min-boards 2\n  aggregator init own --model net.onnx --head head --no-aux"
)]
pub(super) struct Init {
    /// The directory to make
    dir: PathBuf,
    /// Built-in architecture: lenet5, cc28, cc32, cc32-gn, kdhcnn, dw64, res64, mlp, har1d
    #[arg(long, required_unless_present_any = ["config", "model"])]
    arch: Option<String>,
    /// A network of your own, exported as ONNX (operator set 13 to 21); its weights are where training begins. If something below
    /// its head can't be trained here (attention, say), that part is kept as it is, run by ONNX Runtime or tract, and only the
    /// head is trained and shared
    #[arg(long, value_name = "FILE", conflicts_with_all = ["arch", "input"], requires = "head")]
    model: Option<PathBuf>,
    /// The last fully connected layer of that network, which each board keeps to itself unless only the head trains
    #[arg(long, value_name = "LAYER", requires = "model")]
    head: Option<String>,
    /// One class name a line, in the order of the outputs; a network of your own may bring them along, or do with numbers
    #[arg(long, value_name = "FILE", required_unless_present_any = ["config", "model"])]
    labels: Option<PathBuf>,
    /// Channels×height×width of an input, such as 3x32x32; by default the architecture's own
    #[arg(long, value_name = "CxHxW", value_parser = parse_input)]
    input: Option<[usize; 3]>,
    /// The host's own labelled samples: one folder of pictures per class, or an IDX pair. Inputs are standardised by their
    /// mean and deviation unless the configuration gives `model.mean` and `model.std`
    #[arg(long, value_name = "DIR", conflicts_with = "no_aux")]
    aux: Option<PathBuf>,
    /// Do without: no teacher, no recalibration
    #[arg(long)]
    no_aux: bool,
    /// Federated method
    #[arg(long)]
    method: Option<String>,
    /// What boards share: private_head, or shared_head (the default where only the head trains)
    #[arg(long)]
    profile: Option<String>,
    /// Rounds in all
    #[arg(long)]
    rounds: Option<u32>,
    /// Share of the live boards picked for a round
    #[arg(long)]
    participation: Option<f32>,
    /// Live boards needed before a round opens
    #[arg(long)]
    min_boards: Option<u32>,
    /// The most that boards are asked to train: full, last:K (the last K layers) or bias; a board whose owner allows less trains less
    #[arg(long, value_name = "MODE")]
    update: Option<UpdateMode>,
    /// Root seed of the run
    #[arg(long)]
    seed: Option<u64>,
    /// Start from this configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any other setting, by its place in the configuration file, such as rounds.quorum=0.8
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Init {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let mut settings = self.settings()?;
        let samples = self.auxiliary(&settings)?;
        if let (Some(samples), true, true) =
            (&samples, settings.model.mean.is_empty(), settings.model.std.is_empty())
        {
            (settings.model.mean, settings.model.std) = moments(samples);
        }
        let plan = settings.check()?;
        match &samples {
            Some(samples) => eprintln!("{} auxiliary samples", samples.len()),
            None => eprintln!(
                "no auxiliary data: no teacher is calibrated, so the generalist knows what boards teach it and no more"
            ),
        }
        HostDir::create(&self.dir, &settings, samples.as_ref()).await?;
        let (method, dir) = (plan.method.name(), self.dir.display());
        let boards = plan.policy.min_boards;
        eprintln!(
            "{dir}: {method} on {} ({} values), {} rounds",
            plan.spec.card().arch,
            plan.spec.len(),
            plan.policy.rounds
        );
        eprintln!(
            "next: `aggregator token {dir} > board.token` for each of at least {boards} boards, and `aggregator serve {dir}`"
        );
        Ok(())
    }

    fn auxiliary(&self, settings: &Settings) -> anyhow::Result<Option<Samples>> {
        let Some(dir) = &self.aux else { return Ok(None) };
        Ok(Some(compute::load_auxiliary(dir, settings.check()?.spec.card())?))
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let mut table = match &self.config {
            Some(path) => toml::from_str(&read(path)?)
                .map_err(|e| ConfigError { problems: vec![format!("{}: {e}", path.display())] })?,
            None => toml::Table::try_from(Settings::default())?,
        };
        for pair in &self.set {
            set(&mut table, pair)?;
        }
        let mut settings: Settings =
            table.try_into().map_err(|e: toml::de::Error| ConfigError { problems: vec![e.to_string()] })?;
        let kept = self.model(&mut settings.model)?;
        settings.method.name = self.method.clone().unwrap_or(settings.method.name);
        if let Some(profile) = &self.profile {
            settings.method.hyper.insert("profile".into(), profile.clone().into());
        }
        if let Some(kept) = kept {
            keep(&kept, &mut settings.method);
        }
        let rounds = &mut settings.rounds;
        rounds.rounds = self.rounds.unwrap_or(rounds.rounds);
        rounds.participation = self.participation.unwrap_or(rounds.participation);
        rounds.min_boards = self.min_boards.unwrap_or(rounds.min_boards);
        rounds.update = self.update.unwrap_or(rounds.update);
        rounds.seed = self.seed.unwrap_or(rounds.seed);
        Ok(settings)
    }

    /// Settles the network; tells what of it is kept as it came, if something is.
    fn model(&self, model: &mut ModelSettings) -> anyhow::Result<Option<Kept>> {
        let mut kept = None;
        if let (Some(path), Some(head)) = (&self.model, &self.head) {
            (*model, kept) = brought(path, head)?;
        }
        if let Some(path) = &self.labels {
            let wrong = |e| Usage(format!("{}: {e}", path.display()));
            model.labels = labels::parse(read(path)?.as_bytes()).map_err(wrong)?;
        }
        if let Some(arch) = &self.arch {
            model.arch.clone_from(arch);
        }
        model.input = match (self.input, model.input) {
            (Some(typed), _) => typed,
            (None, [0, 0, 0]) => usual_input(&model.arch),
            (None, configured) => configured,
        };
        let known = arch::NAMES.contains(&model.arch.as_str()); // another name is refused with everything else that is wrong
        if known && model.input == [0; 3] {
            return Err(Usage(format!(
                "{} takes inputs of many sizes: say which by `--input CxHxW`",
                model.arch
            ))
            .into());
        }
        Ok(kept)
    }
}

/// A network of the user's own: what its file says about itself, the file as it travels, and what of it is kept as it came.
fn brought(path: &Path, head: &str) -> anyhow::Result<(ModelSettings, Option<Kept>)> {
    let within = || path.display().to_string();
    let brought = onnx::bring(&onnx::read(path)?, head, &Options::of_process()).with_context(within)?;
    let mut settings = ModelSettings::from(&brought.card().with_context(within)?);
    if brought.network.metadata.preprocessing.is_none() {
        (settings.mean, settings.std) = (vec![], vec![]);
    }
    Ok((ModelSettings { file: Some(brought.file.into()), ..settings }, brought.kept))
}

/// Says what a network with a part that is kept as it came means for its boards, and has them share its head.
fn keep(kept: &Kept, method: &mut MethodSettings) {
    let (nodes, features) = (kept.extractor.nodes(), kept.extractor.width());
    let why = match &kept.refused {
        ImportError::UnknownOperator { node, op, .. } => {
            format!("node {node}: operator {op} is not trained here")
        }
        other => other.to_string(),
    };
    eprintln!(
        "notice: only the head is trained, on {features} features; the {nodes} operations below it stay as they are: {why}"
    );
    if !kept.engines.contains(&"tract") {
        eprintln!(
            "notice: tract can't run that part: every board needs ONNX Runtime (`edge-client ort install`)"
        );
    }
    if method.name == "cpct" && !method.hyper.contains_key("profile") && !method.hyper.contains_key("scope") {
        method.hyper.insert("profile".into(), "shared_head".into());
        eprintln!(
            "notice: boards share the head, for there is nothing else to share: each must allow it (`edge-client run --allow full_model`)"
        );
    }
}

/// Mean and standard deviation of each channel, by which inputs are standardised; of a channel that never changes, 1.
fn moments(samples: &Samples) -> (Vec<f32>, Vec<f32>) {
    let [channels, height, width] = samples.inputs().input();
    let (mut sums, mut squares) = (vec![0.0_f64; channels], vec![0.0_f64; channels]);
    for (place, plane) in samples.inputs().to_f32().chunks_exact(height * width).enumerate() {
        sums[place % channels] += plane.iter().map(|&x| f64::from(x)).sum::<f64>();
        squares[place % channels] += plane.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    }
    let n = (samples.len() * height * width) as f64;
    let round = |x: f64| ((x * 1e4).round() / 1e4) as f32;
    let std = |(sum, square): (&f64, &f64)| match round((square / n - (sum / n) * (sum / n)).max(0.0).sqrt())
    {
        0.0 => 1.0,
        std => std,
    };
    (sums.iter().map(|sum| round(sum / n)).collect(), sums.iter().zip(&squares).map(std).collect())
}

/// What an architecture was made for; zero if it was made for no size in particular.
fn usual_input(arch: &str) -> [usize; 3] {
    match arch {
        "lenet5" | "cc28" => [1, 28, 28],
        "cc32" | "cc32-gn" | "kdhcnn" => [3, 32, 32],
        "dw64" | "res64" => [3, 64, 64],
        _ => [0; 3],
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    Ok(disk::text(path).map_err(|e| Usage(format!("{}: {e}", path.display())))?)
}

fn parse_input(text: &str) -> Result<[usize; 3], String> {
    let wrong = || format!("{text:?} is not three numbers such as 3x32x32");
    let numbers: Result<Vec<usize>, _> = text.split(['x', '×']).map(str::parse).collect();
    numbers.map_err(|_| wrong())?.try_into().map_err(|_| wrong())
}

/// Puts `a.b.c=value` in its place. The value is TOML; what isn't is a string.
fn set(table: &mut toml::Table, pair: &str) -> Result<(), Usage> {
    let wrong = |why: &str| Usage(format!("--set {pair}: {why}"));
    let (key, text) = pair.split_once('=').ok_or_else(|| wrong("must be KEY=VALUE"))?;
    let parsed = toml::from_str::<toml::Table>(&format!("x = {text}")).ok().and_then(|mut t| t.remove("x"));
    let value = parsed.unwrap_or_else(|| text.into());
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().unwrap_or(key);
    let mut place = table;
    for part in parts {
        let next = place.entry(part).or_insert_with(|| toml::Table::new().into());
        place = next.as_table_mut().ok_or_else(|| wrong("goes through something that is no table"))?;
    }
    place.insert(last.into(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::data::{Elements, Inputs};

    #[test]
    fn a_setting_finds_its_place() {
        let mut table = toml::Table::new();
        for pair in ["rounds.quorum=0.8", "method.name=fedavg", "method.hyper.train.epochs=3"] {
            set(&mut table, pair).unwrap();
        }
        assert_eq!(table["rounds"]["quorum"].as_float(), Some(0.8));
        assert_eq!(table["method"]["name"].as_str(), Some("fedavg"));
        assert_eq!(table["method"]["hyper"]["train"]["epochs"].as_integer(), Some(3));
        assert!(set(&mut table, "rounds").is_err() && set(&mut table, "method.name.x=1").is_err());
    }

    #[test]
    fn moments_are_those_of_each_channel() {
        let inputs = Inputs::new([2, 1, 2], Elements::U8(vec![0, 255, 51, 51])).unwrap();
        let samples = Samples::new(inputs, vec![0]).unwrap();
        assert_eq!(moments(&samples), (vec![0.5, 0.2], vec![0.5, 1.0]));
    }

    #[test]
    fn an_input_is_three_numbers() {
        assert_eq!(parse_input("3x32x32"), Ok([3, 32, 32]));
        assert!(["", "3x32", "3x32x32x1", "axbxc"].iter().all(|text| parse_input(text).is_err()));
    }
}
