//! `aggregator status`: read from the ledger, so that it works whether the host is served or not.
use super::output::{Format, Rows};
use crate::clock;
use crate::drive;
use crate::ledger::{Ledger, Standing, TokenNote};
use clap::Args;
use models::round::{Coordinator, Event, Millis, Phase};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  aggregator status fleet --format json")]
pub(super) struct Status {
    /// The host's directory
    dir: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Status {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let dir = super::existing(self.dir)?;
        let (plan, ledger, now) = (dir.settings()?.check()?, dir.ledger().await?, clock::now());
        let events = drive::events(&ledger).await?;
        let run = Coordinator::recall(plan.policy.clone(), plan.charter(), &events).status(now);
        let tokens = Ledger::tokens(&ledger).await?;
        let devices = Ledger::devices(&ledger).await?;
        let known = devices.iter().filter(|d| d.standing != Standing::Revoked);
        let live = known.clone().filter(|d| d.seen.until(now) <= plan.policy.lease_ms).count();
        let row = vec![
            plan.method.name().into(),
            phase(&run.phase).into(),
            run.round.0.into(),
            plan.policy.rounds.into(),
            known.count().into(),
            live.into(),
            run.failures.into(),
            last_failure(&events).into(),
            open(&tokens, now).into(),
            run.published.map(|p| p.state.to_string()).into(),
        ];
        let columns = &[
            "method",
            "phase",
            "round",
            "rounds",
            "boards",
            "live",
            "failures",
            "why",
            "open_tokens",
            "model",
        ];
        Rows::new(columns, vec![row]).print(self.format)
    }
}

/// Why the last round gave nothing, if none was folded since.
fn last_failure(events: &[Event]) -> Option<String> {
    let last = events.iter().rev().find(|e| {
        matches!(
            e,
            Event::Failed { .. } | Event::Folded { .. } | Event::Ready { .. } | Event::Finished { .. }
        )
    });
    match last {
        Some(Event::Failed { why, .. }) => Some(why.to_string()),
        _ => None,
    }
}

/// Notes of the tokens that can still be used.
fn open(tokens: &[TokenNote], now: Millis) -> Option<String> {
    let open = tokens.iter().filter(|t| t.used_by.is_none() && t.not_after > now);
    let names: Vec<&str> = open.map(|t| t.name.as_deref().unwrap_or("unnamed")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn phase(phase: &Phase) -> &'static str {
    match phase {
        Phase::Preparing => "preparing",
        Phase::Gathering { .. } => "gathering",
        Phase::Collecting(_) => "collecting",
        Phase::Aggregating(_) => "aggregating",
        Phase::Finishing => "finishing",
        Phase::Stalled => "stalled",
        Phase::Finished => "finished",
    }
}
