//! `ort`: ONNX Runtime's library on this board.
use super::args::{Ort, OrtCheck, OrtInstall, OrtWhat};
use super::board::say;
use super::infer;
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
    let file = File::open(&args.from).with_context(|| args.from.display().to_string())?;
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
    let engine = infer::engine(Engine::Ort, args.ort_lib.clone(), 1)?;
    println!("ok: {}", engine.provider());
    say("`edge-client infer` uses it from now on (engine auto)");
    Ok(())
}
