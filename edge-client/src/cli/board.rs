//! From what was typed to a configuration, a board and its way to the host.
use super::args::{Board, Local, Validate};
use crate::config::{Config, ConfigError, Raw};
use crate::data::{self, Loaded, Target};
use crate::disk;
use crate::store::{Identity, Membership, Record, Store};
use crate::transport::{Address, HostClock, Https, Link, Trust};
use ::models::params::ModelCard;
use ::models::tensor::kernel::IsaCap;
use anyhow::Context;
use onnx::Built;
use std::num::NonZeroUsize;
use std::path::Path;

/// Longest configuration file that is read.
const LONGEST_CONFIG: u64 = 1 << 20;

/// The effective configuration, with these flags over environment, file and defaults.
pub(super) fn config(
    board: &Board,
    local: &Local,
    more: &[(&str, Option<String>)],
) -> anyhow::Result<Config> {
    let mut raw = Raw::default();
    if let Some(path) = &board.config {
        let unreadable = |e| ConfigError(vec![format!("{}: {e}", path.display())]);
        let text = disk::text(path, LONGEST_CONFIG).map_err(unreadable)?;
        raw = raw.with_file(&text);
    }
    raw = raw.with_environment(|name| std::env::var(name).ok());
    let text = |path: &Path| toml::Value::String(path.to_string_lossy().into_owned());
    let paths =
        (!local.data.is_empty()).then(|| local.data.iter().map(|p| text(p)).collect::<Vec<_>>().into());
    raw = raw
        .with_flag("dir", board.dir.as_deref().map(text))
        .with_flag("data.train", paths)
        .with_flag("data.resize", local.resize.then_some(true.into()))
        .with_flag("compute.threads", local.threads.map(|n| i64::from(n).into()));
    for (key, value) in more {
        raw = raw.with_flag(key, value.clone().map(toml::Value::String));
    }
    let config = raw.check()?;
    cap_isa(config.isa.as_deref())?;
    Ok(config)
}

/// Caps the kernels' instruction set, before anything is computed.
fn cap_isa(name: Option<&str>) -> anyhow::Result<()> {
    if let Some(name) = name {
        ::models::nn::cap_isa(name.parse::<IsaCap>()?);
    }
    Ok(())
}

/// Threads to compute with.
pub(super) fn threads(asked: usize) -> NonZeroUsize {
    let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    NonZeroUsize::new(asked).unwrap_or_else(all)
}

/// Says something to the owner.
pub(super) fn say(line: &str) {
    eprintln!("{line}");
}

/// Opens the private directory for changing it, and says if it had to be recovered.
pub(super) fn open(config: &Config) -> anyhow::Result<Store> {
    let store = Store::open(&config.dir)?;
    if let Some(why) = store.recovered() {
        say(&format!(
            "{}: the newest state was damaged ({why}); going on from the one before it",
            config.dir.display()
        ));
    }
    Ok(store)
}

/// The host, as a member of its fleet.
pub(super) fn link(
    identity: &Identity,
    member: &Membership,
    record: &Record,
    config: &Config,
) -> anyhow::Result<Link> {
    let clock = HostClock::new(record.host_time);
    let trust = Trust::Member {
        authority: member.authority.clone(),
        certificate: member.certificate.clone(),
        key: identity.key.clone(),
    };
    let address: Address = identity.host.parse()?;
    let https = Https::new(address, &trust, &clock, config.timeout)?;
    Ok(Link::new(Box::new(https), clock))
}

/// The network that the host described, if it did, with the weights that it came with if it was brought along.
pub(super) fn built(record: &Record, dir: &Path) -> anyhow::Result<Built> {
    let card = card(record)?;
    let file = if card.imported().is_some() { Store::network(dir)? } else { None };
    Ok(onnx::build(card, file.as_deref())?)
}

/// Asks what the network is, with its file if it was brought along, and keeps both.
pub(super) fn ask_for_model(link: &mut Link, store: &mut Store) -> anyhow::Result<Built> {
    let card = link.model()?;
    let file = card.imported().map(|hash| link.network(hash)).transpose()?;
    let built = onnx::build(&card, file.as_deref())?;
    store.adopt_model(card, file.as_deref())?;
    Ok(built)
}

/// What the host described.
pub(super) fn card(record: &Record) -> anyhow::Result<&ModelCard> {
    record.model.as_ref().context("this board doesn't know its model yet; `edge-client run` asks the host")
}

/// What to tell the owner of a board that has not taken the final model over yet, if there is anything to answer with.
pub(super) fn not_final(record: &Record, dir: &Path) -> Option<String> {
    let personal = &record.personal;
    (personal.held.is_none() && !personal.learned.expose().is_empty()).then(|| {
        format!(
            "notice: this board doesn't have its personal model yet, only what it learned in {} round(s); `edge-client run --dir {} --data PATH --until-finished` gets it once training is over",
            personal.rounds,
            dir.display()
        )
    })
}

/// The local data, with everything said that the owner should know.
pub(super) fn samples(config: &Config, card: &ModelCard) -> anyhow::Result<Loaded> {
    let loaded = data::load(&config.data, Target::of(card, config.resize))?;
    for warning in &loaded.warnings {
        say(&format!("warning: {warning}"));
    }
    Ok(loaded)
}

/// Prints what is in force.
pub(super) fn validate(args: &Validate) -> anyhow::Result<()> {
    print!("{}", config(&args.board, &args.local, &[])?.to_toml());
    Ok(())
}
