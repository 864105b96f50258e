//! `ort`: ONNX Runtime's library on this board.
use super::args::{Ort, OrtCheck, OrtInstall, OrtWhat};
use super::board::say;
use super::infer;
use crate::answers::{Answerer, Graphs};
use ::models::fed::Predictor;
use ::models::infer::Runtime;
use ::models::nn::{arch, init};
use anyhow::{Context, bail};
use onnx::runtime::Engine;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// Largest library that is unpacked: with providers it is some 400 MB.
const CAP: u64 = 2 << 30;

pub(super) fn ort(args: &Ort) -> anyhow::Result<()> {
    match &args.what {
        OrtWhat::Install(args) => install(args),
        OrtWhat::Check(args) => check(args),
    }
}

/// Where `install` puts the library and `infer` looks first, in the user's data directory.
pub(super) fn install_place() -> PathBuf {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".local/share"));
    data.or_else(home).unwrap_or_default().join("spectra/lib")
}

fn install(args: &OrtInstall) -> anyhow::Result<()> {
    let to = args.to.clone().unwrap_or_else(install_place);
    let file = crate::disk::open(&args.from).with_context(|| args.from.display().to_string())?;
    let mut wheel = ZipArchive::new(file).with_context(|| format!("{} is no wheel", args.from.display()))?;
    let all = wheel.file_names().collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = all.into_iter().map(Cow::into_owned).filter(|n| is_library(n)).collect();
    if names.is_empty() {
        bail!(
            "{} holds no libonnxruntime.so: take a wheel of the package onnxruntime for Linux",
            args.from.display()
        );
    }
    std::fs::create_dir_all(&to).with_context(|| to.display().to_string())?;
    for name in names {
        // Only the last part of the name: nothing in an archive says where to write.
        let target = to.join(Path::new(&name).file_name().unwrap_or_default());
        unpack(&mut wheel, &name, &target).with_context(|| format!("{name} to {}", target.display()))?;
        println!("{}", target.display());
    }
    check(&OrtCheck { ort_lib: Some(to) })
}

fn is_library(name: &str) -> bool {
    let file = Path::new(name).file_name().and_then(|f| f.to_str()).unwrap_or_default();
    file.starts_with("libonnxruntime") && file.contains(".so")
}

fn unpack(wheel: &mut ZipArchive<File>, name: &str, target: &Path) -> anyhow::Result<()> {
    let beside = target.with_extension("new");
    let mut from = wheel.by_name(name)?.take(CAP);
    let mut to = File::create(&beside)?;
    io::copy(&mut from, &mut to)?;
    to.sync_all()?;
    Ok(std::fs::rename(&beside, target)?)
}

fn check(args: &OrtCheck) -> anyhow::Result<()> {
    let ort = infer::engine(Engine::Ort, args.ort_lib.clone(), 1)?;
    let native = infer::engine(Engine::Native, None, 1)?;
    let difference = largest_difference(ort.as_ref(), native.as_ref())?;
    if difference > MOST_DIFFERENCE {
        bail!(
            "ONNX Runtime ({}) differs from the native engine by {difference:e}: take another version",
            ort.provider()
        );
    }
    println!("ok: {} agrees with the native engine to {difference:.1e}", ort.provider());
    say("`edge-client infer` uses it from now on (engine auto)");
    Ok(())
}

/// How far two engines may be apart on a small network.
const MOST_DIFFERENCE: f32 = 1e-4;

/// The largest difference of two engines' probabilities on a small network.
fn largest_difference(one: &dyn Runtime, other: &dyn Runtime) -> anyhow::Result<f32> {
    let (graph, spec) = arch::build(&::models::nn::bench::card("lenet5"))?;
    let predictor = Predictor::single(&init(&graph, &spec, 0), &[]);
    let graphs = Graphs::of(&predictor, &graph)?;
    let inputs: Vec<f32> = (0..graph.input().len()).map(|i| (i % 7) as f32 / 7.0).collect();
    let answer = |engine: &dyn Runtime| -> anyhow::Result<Vec<f32>> {
        let mut answerer = Answerer::new(&graphs, predictor.router().clone(), &spec, engine)?;
        Ok(answerer.answer(&inputs)?.remove(0).probabilities)
    };
    let (a, b) = (answer(one)?, answer(other)?);
    Ok(a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max))
}
