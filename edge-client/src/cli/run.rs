//! `run` and `personalize`.
use super::args::{Personalize, Run};
use super::bench::system::rss;
use super::board::{self, say};
use super::frozen;
use super::output::{self, Format};
use crate::agent::{Agent, Means, Until, Uptime};
use crate::compare::compare;
use crate::config::Config;
use crate::personal::Place;
use crate::store::Store;
use crate::train::Workshop;
use crate::transport::{CallError, Link};
use ::models::id::ClientId;
use ::models::round::Backoff;
use anyhow::Context;
use serde_json::json;
use std::time::Duration;

pub(super) fn run(args: &Run) -> anyhow::Result<()> {
    let flags = [("privacy.allow", args.allow.clone()), ("train.update", args.update.map(|m| m.to_string()))];
    let config = board::config(&args.board, &args.local, &flags)?;
    let mut store = board::open(&config)?;
    let (identity, member) = store.record().enrolled(store.dir())?;
    let client = member.client;
    let mut link = board::link(identity, member, store.record(), &config)?;
    if store.record().model.is_none() {
        ask_for_model(&mut link, &mut store, args.once)?;
    }
    let mut workshop = workshop(&store, &config, client)?;
    say(&format!(
        "board {client}: {} samples, may disclose at most {:?}, trains at most {}",
        workshop.samples(),
        config.ceilings.allow,
        workshop.update()
    ));
    let until = match (args.once, args.until_finished) {
        (true, _) => Until::Idle,
        (_, true) => Until::Finished,
        _ => Until::Forever,
    };
    let mut agent = Agent {
        cache: store.blobs(config.cache),
        store: &mut store,
        link: &mut link,
        workshop: &mut workshop,
        ceilings: config.ceilings,
        means: Means { minutes: config.minutes, memory: config.memory },
        clock: &Uptime::default(),
        log: &mut say,
    };
    agent.run(until, nonce()?)?;
    if let Some(kib) = rss("VmHWM:") {
        say(&format!("at most {} MiB of memory were in use", kib >> 10));
    }
    Ok(())
}

/// Asks what the network is, until the host answers; once if so wished.
fn ask_for_model(link: &mut Link, store: &mut Store, once: bool) -> anyhow::Result<()> {
    let mut backoff = Backoff::new(u64::from(std::process::id()), 500, 300_000);
    loop {
        match board::ask_for_model(link, store) {
            Ok(_) => return Ok(()),
            Err(error) if !once && unreachable(&error) => say(&format!("{error}; trying again")),
            Err(error) => return Err(error),
        }
        std::thread::sleep(Duration::from_millis(backoff.next_ms()));
    }
}

/// Whether it may go well another time.
fn unreachable(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(CallError::Unreachable { .. }))
}

/// Tells this life of the process from others that might use the same key.
fn nonce() -> anyhow::Result<u32> {
    let bytes: [u8; 4] =
        ring::rand::generate(&ring::rand::SystemRandom::new()).ok().context("no random numbers")?.expose();
    Ok(u32::from_le_bytes(bytes))
}

pub(super) fn personalize(args: &Personalize) -> anyhow::Result<()> {
    let update = ("train.update", args.update.map(|m| m.to_string()));
    let config = board::config(&args.board, &args.local, &[update])?;
    let mut store = board::open(&config)?;
    let client = store.record().enrolled(store.dir())?.1.client;
    let mut workshop = workshop(&store, &config, client)?;
    let personal = &store.record().personal;
    let next = personal.personalize(&Place::of(&workshop), workshop.trainer(personal.seed)?)?;
    store.update(|r| r.personal = next)?;
    say(&format!("board {client}: adapted to {} samples", workshop.samples()));
    if args.compare { show_comparison(&store, &mut workshop, args.format) } else { Ok(()) }
}

/// What the board has beside what it would have had alone.
fn show_comparison(store: &Store, workshop: &mut Workshop, format: Format) -> anyhow::Result<()> {
    say("training alone for as long as this board took part, to compare");
    let personal = &store.record().personal;
    let (network, place) = (workshop.network().clone(), Place::of(workshop));
    let start = board::built(store.record(), store.dir())?.start;
    let found = compare(personal, &network, &place, workshop.trainer(personal.seed)?, start)?;
    let facts = vec![
        ("held_out_samples", json!(found.samples)),
        ("alone", json!(found.alone)),
        ("specialist", json!(found.specialist)),
        ("generalist", json!(found.generalist)),
        ("verdict", json!(found.verdict())),
    ];
    Ok(output::print_facts(format, &facts)?)
}

/// The local data, ready to be trained on.
fn workshop(store: &Store, config: &Config, client: ClientId) -> anyhow::Result<Workshop> {
    let network = board::built(store.record(), store.dir())?;
    let loaded = board::samples(config, network.spec.card())?;
    Ok(frozen::workshop(&network, loaded.samples, config, client)?.with_update(config.ceilings.update))
}
