//! `aggregator status`: read from the ledger, so that it works whether the host is served or not.
use super::output::{Format, Rows};
use crate::clock;
use crate::drive;
use crate::ledger::{Ledger, Standing};
use clap::Args;
use models::round::{Coordinator, Phase};
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
        let run = Coordinator::replay(plan.policy.clone(), plan.charter(), now, &events).status(now);
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
            run.published.map(|p| p.state.to_string()).into(),
        ];
        let columns = &["method", "phase", "round", "rounds", "boards", "live", "failures", "model"];
        Rows::new(columns, vec![row]).print(self.format)
    }
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
