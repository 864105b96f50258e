//! `doctor`: everything a board needs, checked in the order in which it would fail.
use super::args::{Local, Looking};
use super::bench::system::hottest;
use super::board;
use super::frozen;
use super::infer;
use super::output::{self, Row};
use crate::config::Config;
use crate::data::{self, Target};
use crate::store::{Record, Store};
use crate::transport::HostClock;
use anyhow::bail;
use onnx::runtime;
use serde_json::json;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// How a check went.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

type Check = (&'static str, Verdict, String);

pub(super) fn doctor(args: &Looking) -> anyhow::Result<()> {
    let config = board::config(&args.board, &Local::default(), &[])?;
    let mut checks = vec![processor(), memory(), temperature()];
    checks.extend(engines(&config));
    match Store::peek(&config.dir) {
        Ok(record) => checks.extend(
            [clock(&record), enrolment(&record, &config), host(&record, &config), local(&record, &config)]
                .into_iter()
                .chain(kept(&record, &config)),
        ),
        Err(error) => checks.push(("directory", Verdict::Fail, error.to_string())),
    }
    output::print(args.format, &checks.iter().map(row).collect::<Vec<_>>())?;
    match checks.iter().filter(|c| c.1 == Verdict::Fail).count() {
        0 => Ok(()),
        failed => bail!("{failed} check(s) failed; each line says what to do"),
    }
}

fn row((name, verdict, detail): &Check) -> Row {
    let verdict = match verdict {
        Verdict::Ok => "ok",
        Verdict::Warn => "warning",
        Verdict::Fail => "failed",
    };
    vec![("check", json!(name)), ("result", json!(verdict)), ("detail", json!(detail))]
}

fn processor() -> Check {
    let (cores, isa) = (board::threads(0), ::models::nn::isa().level());
    ("processor", Verdict::Ok, format!("{}, {cores} cores, kernels for {isa}", std::env::consts::ARCH))
}

/// A number of kB from a line of /proc.
fn kilobytes(file: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|l| l.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn memory() -> Check {
    match kilobytes("/proc/meminfo", "MemAvailable:") {
        None => ("memory", Verdict::Warn, "this system doesn't say how much is free".into()),
        Some(kb) if kb < 64 << 10 => {
            ("memory", Verdict::Warn, format!("{} MiB are free; training takes some 50", kb >> 10))
        }
        Some(kb) => ("memory", Verdict::Ok, format!("{} MiB are free", kb >> 10)),
    }
}

fn temperature() -> Check {
    match hottest() {
        None => ("temperature", Verdict::Ok, "not measured on this machine".into()),
        Some(t) if t > 75.0 => {
            ("temperature", Verdict::Warn, format!("{t:.0} °C: boards slow down from 80 °C, give it air"))
        }
        Some(t) => ("temperature", Verdict::Ok, format!("{t:.0} °C")),
    }
}

fn engines(config: &Config) -> Vec<Check> {
    let all = runtime::all(&infer::options(config.ort_lib.clone(), config.threads));
    let check =
        |(engine, opened): (runtime::Engine, Result<Box<dyn ::models::infer::Runtime>, _>)| match opened {
            Ok(runtime) => (engine.name(), Verdict::Ok, runtime.provider()),
            Err(error) => (engine.name(), Verdict::Warn, format!("{error}")),
        };
    all.into_iter().map(check).collect()
}

fn clock(record: &Record) -> Check {
    let heard = HostClock::new(record.host_time).seconds();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    match now + 86_400 < heard {
        true => ("clock", Verdict::Warn, "it is behind what is surely past; certificates are checked by the host's time, so this does no harm".into()),
        false => ("clock", Verdict::Ok, "not behind what is surely past".into()),
    }
}

fn enrolment(record: &Record, config: &Config) -> Check {
    match record.enrolled(&config.dir) {
        Ok((identity, member)) => {
            ("enrolment", Verdict::Ok, format!("board {} of {}", member.client, identity.host))
        }
        Err(error) => ("enrolment", Verdict::Fail, error.to_string()),
    }
}

fn host(record: &Record, config: &Config) -> Check {
    let Ok((identity, member)) = record.enrolled(&config.dir) else {
        return ("host", Verdict::Warn, "not asked: this board is not enrolled".into());
    };
    let answer = board::link(identity, member, record, config).and_then(|mut link| Ok(link.model()?));
    match answer {
        Ok(card) if record.model.as_ref().is_none_or(|known| *known == card) => {
            ("host", Verdict::Ok, format!("answers; its model is {}", card.arch))
        }
        Ok(_) => (
            "host",
            Verdict::Fail,
            "it has another model than this board: enrol again in a new directory".into(),
        ),
        Err(error) => ("host", Verdict::Fail, error.to_string()),
    }
}

fn local(record: &Record, config: &Config) -> Check {
    let Ok(card) = board::card(record) else {
        return ("data", Verdict::Warn, "not looked at: the model is not known yet".into());
    };
    if config.data.is_empty() {
        return ("data", Verdict::Warn, "no `[data] train` is set; give `--data PATH` to run".into());
    }
    match data::load(&config.data, Target::of(card, config.resize)) {
        Ok(loaded) if loaded.warnings.is_empty() => {
            ("data", Verdict::Ok, format!("{} samples", loaded.samples.len()))
        }
        Ok(loaded) => ("data", Verdict::Warn, loaded.warnings.join("; ")),
        Err(error) => ("data", Verdict::Fail, error.to_string()),
    }
}

/// Whether the part of the network that is not trained can be run, if there is one.
fn kept(record: &Record, config: &Config) -> Option<Check> {
    record.model.as_ref()?.imported()?;
    let tried = board::built(record, &config.dir).and_then(|built| {
        let Some(extractor) = &built.extractor else { return Ok(None) };
        let engine = frozen::engine(config, Some(extractor))?;
        let dark = vec![0.0; extractor.input().iter().product()];
        extractor.open(&*engine)?.run(&dark)?;
        Ok(Some(format!("{} runs the {} operations below the head", engine.name(), extractor.nodes())))
    });
    match tried {
        Ok(detail) => Some(("network", Verdict::Ok, detail?)),
        Err(error) => Some(("network", Verdict::Fail, format!("{error:#}"))),
    }
}
