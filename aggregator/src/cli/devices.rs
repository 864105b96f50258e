//! `aggregator devices`.
use super::output::{Format, Rows};
use crate::clock;
use crate::dir::HostDir;
use crate::drive;
use crate::ledger::{Device, Ledger, Standing, TokenNote};
use clap::{Args, Subcommand};
use models::id::ClientId;
use models::params::UpdateMode;
use models::round::Event;
use models::wire::Health;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum Devices {
    /// List enrolled boards
    List(List),
    /// Let boards do nothing any more, for good: only a new key can come back
    Revoke(Revoke),
    /// Let boards read the final model but take no part in rounds
    Quarantine(Quarantine),
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  aggregator devices list fleet --format json")]
pub(super) struct List {
    /// The host's directory
    dir: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args, Debug)]
pub(super) struct Boards {
    /// The host's directory
    dir: PathBuf,
    /// Numbers of boards
    #[arg(required = true)]
    ids: Vec<u32>,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  aggregator devices revoke fleet 3")]
pub(super) struct Revoke {
    #[command(flatten)]
    boards: Boards,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  aggregator devices quarantine fleet 3 5\n  aggregator devices quarantine fleet 3 --lift"
)]
pub(super) struct Quarantine {
    #[command(flatten)]
    boards: Boards,
    /// Let them take part again
    #[arg(long)]
    lift: bool,
}

impl Devices {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List(list) => list.run().await,
            Self::Revoke(Revoke { boards }) => boards.set(Standing::Revoked).await,
            Self::Quarantine(Quarantine { boards, lift: true }) => boards.set(Standing::Active).await,
            Self::Quarantine(Quarantine { boards, lift: false }) => boards.set(Standing::Quarantined).await,
        }
    }
}

impl List {
    async fn run(self) -> anyhow::Result<()> {
        let ledger = super::existing(self.dir)?.ledger().await?;
        let (tokens, modes) = (Ledger::tokens(&ledger).await?, modes(&drive::events(&ledger).await?));
        let devices = Ledger::devices(&ledger).await?;
        let rows = devices.iter().map(|d| row(d, &tokens, modes.get(&d.id))).collect();
        Rows::new(
            &[
                "id",
                "name",
                "token",
                "standing",
                "seen_s_ago",
                "refusals",
                "update",
                "health",
                "route_decile",
                "key",
            ],
            rows,
        )
        .print(self.format)
    }
}

/// The most that each board trains, of those that were ever heard.
fn modes(events: &[Event]) -> BTreeMap<ClientId, UpdateMode> {
    let mut modes = BTreeMap::new();
    for event in events {
        match event {
            Event::Session { client, .. } => drop(modes.entry(*client).or_default()),
            Event::Mode { client, update } => drop(modes.insert(*client, *update)),
            _ => {}
        }
    }
    modes
}

fn row(device: &Device, tokens: &[TokenNote], update: Option<&UpdateMode>) -> Vec<serde_json::Value> {
    let token = tokens.iter().find(|t| t.used_by == Some(device.key)).and_then(|t| t.name.clone());
    let felt = |health: Health| match health.compared {
        1 => "better",
        -1 => "worse",
        _ => "same",
    };
    vec![
        device.id.0.into(),
        device.name.clone().into(),
        token.into(),
        device.standing.name().into(),
        (device.seen.until(clock::now()) / 1000).into(),
        device.refusals.into(),
        update.map(UpdateMode::to_string).into(),
        device.health.map(felt).into(),
        device.health.map(|h| h.route_decile).into(),
        device.key.to_string().into(),
    ]
}

impl Boards {
    async fn set(self, standing: Standing) -> anyhow::Result<()> {
        let dir: HostDir = super::existing(self.dir)?;
        let ledger = dir.ledger().await?;
        let devices = Ledger::devices(&ledger).await?;
        for id in self.ids.into_iter().map(ClientId) {
            if devices.iter().any(|d| d.id == id && d.standing == Standing::Revoked) {
                anyhow::bail!("board {id} was revoked, which is for good: enrol it with a new key");
            }
            Ledger::set_standing(&ledger, id, standing).await?;
            eprintln!("board {id} is {}", standing.name());
        }
        Ok(())
    }
}
