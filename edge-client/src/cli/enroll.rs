//! `enroll`.
use super::args::{Enroll, Local};
use super::{Usage, board};
use crate::config::Config;
use crate::disk;
use crate::enrolment;
use crate::store::Store;
use crate::transport::{Address, CallError, HostClock, Https, Link, Trust};
use ::models::wire::{NotAToken, Token};
use std::io::Read;
use std::path::Path;

/// Longest token file that is read.
const LONGEST: u64 = 4096;

pub(super) fn enroll(args: &Enroll) -> anyhow::Result<()> {
    let config = board::config(&args.board, &Local::default(), &[])?;
    let address = args.host.clone();
    let token = args.token.as_deref().map(read_token).transpose()?;
    let mut store = board::open(&config)?;
    if let Ok((identity, member)) = store.record().enrolled(store.dir())
        && token.as_ref().is_none_or(|t| t.authority == member.pin && identity.host != address.to_string())
    {
        return relocate(&mut store, &config, &address);
    }
    let token = token.ok_or_else(|| {
        Usage("this board is not enrolled yet: give `--token FILE` with a token of `aggregator token`".into())
    })?;
    let name = args.name.clone().unwrap_or_else(machine_name);
    enrolment::prepare(&mut store, &address.to_string(), &name)?;
    let clock = HostClock::new(store.record().host_time);
    let https = Https::new(address, &Trust::Pin(token.authority), &clock, config.timeout)?;
    board::say(&format!("asking {} to let this board in", args.host));
    let mut link = Link::new(Box::new(https), clock);
    let client = enrolment::enroll(&mut store, &mut link, &token, &mut board::say)?;
    board::say(&format!("enrolled as board {client} of {} ({name})", args.host));
    let (identity, member) = store.record().enrolled(store.dir())?;
    let mut link = board::link(identity, member, store.record(), &config)?;
    let spec = match board::ask_for_model(&mut link, &mut store) {
        Err(error) if matches!(error.downcast_ref(), Some(CallError::Unreachable { .. })) => {
            // The board is a member already: nothing is lost.
            board::say(&format!("{error}; `edge-client run` asks it again what the model is"));
            return Ok(());
        }
        asked => asked?.spec,
    };
    let card = spec.card();
    board::say(&format!(
        "the model is {} with {} classes and {} values",
        card.arch,
        card.labels.len(),
        spec.len()
    ));
    board::say(&format!("next: edge-client run --dir {} --data PATH", store.dir().display()));
    Ok(())
}

/// The host that this board is enrolled at is somewhere else now: no token is needed, and none is used.
fn relocate(store: &mut Store, config: &Config, address: &Address) -> anyhow::Result<()> {
    let before = store.record().clone();
    enrolment::relocate(store, &address.to_string())?;
    let (identity, member) = store.record().enrolled(store.dir())?;
    let client = member.client;
    match board::link(identity, member, store.record(), config)?.model() {
        Ok(_) => board::say(&format!("board {client} finds its host at {address} from now on")),
        Err(error @ CallError::Unreachable { .. }) => board::say(&format!(
            "board {client} looks for its host at {address} from now on, but now: {error}"
        )),
        Err(error) => {
            store.update(|r| *r = before)?;
            return Err(error.into());
        }
    }
    Ok(())
}

/// The token in a file or on standard input. What was typed isn't repeated: it may be the token itself.
fn read_token(path: &Path) -> anyhow::Result<Token> {
    let read = if path == Path::new("-") { from_stdin() } else { disk::text(path, LONGEST) };
    let unreadable = |error| {
        Usage(format!(
            "the token can't be read ({error}): `--token` takes the name of a file that holds it, or - for standard input"
        ))
    };
    Ok(read.map_err(unreadable)?.parse().map_err(|e: NotAToken| Usage(e.to_string()))?)
}

fn from_stdin() -> std::io::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

fn machine_name() -> String {
    let name = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let name: String = name.trim().chars().take(60).collect();
    if name.is_empty() { "board".into() } else { name }
}
