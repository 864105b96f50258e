//! `aggregator models`.
use super::output::{Format, Rows, Usage};
use crate::dir::{self, HostDir};
use crate::drive;
use clap::{Args, Subcommand};
use models::fed::Extent;
use models::params::Part;
use models::round::{Event, Published};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum Models {
    /// List the states that rounds gave
    List(List),
    /// Write a state's shared parts as raw little-endian f32, with a table of contents in JSON
    Export(Export),
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  aggregator models list fleet")]
pub(super) struct List {
    /// The host's directory
    dir: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  aggregator models export fleet --out shared")]
pub(super) struct Export {
    /// The host's directory
    dir: PathBuf,
    /// Which, by its number in `models list`; by default the last
    #[arg(long)]
    version: Option<usize>,
    /// The directory to write to
    #[arg(long)]
    out: PathBuf,
}

impl Models {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List(list) => list.run().await,
            Self::Export(export) => export.run().await,
        }
    }
}

/// Every published state, with what gave it.
async fn published(dir: &HostDir) -> anyhow::Result<Vec<(&'static str, Published)>> {
    let events = drive::events(&dir.ledger().await?).await?;
    let state = |event| match event {
        Event::Ready { published } => Some(("start", published)),
        Event::Folded { published, .. } => Some(("round", published)),
        Event::Finished { published } => Some(("final", published)),
        _ => None,
    };
    Ok(events.into_iter().filter_map(state).collect())
}

impl List {
    async fn run(self) -> anyhow::Result<()> {
        let states = published(&super::existing(self.dir)?).await?;
        let row = |(version, (kind, p)): (usize, &(&str, Published))| {
            vec![version.into(), (*kind).into(), p.parts.len().into(), p.state.to_string().into()]
        };
        Rows::new(&["version", "kind", "parts", "state"], states.iter().enumerate().map(row).collect())
            .print(self.format)
    }
}

impl Export {
    async fn run(self) -> anyhow::Result<()> {
        let dir = super::existing(self.dir)?;
        let states = published(&dir).await?;
        let version = self.version.unwrap_or(states.len().saturating_sub(1));
        let Some((_, state)) = states.get(version) else {
            return Err(Usage(format!(
                "there is no version {version}; `aggregator models list` shows what there is"
            ))
            .into());
        };
        let (plan, blobs) = (dir.settings()?.check()?, dir.blobs()?);
        std::fs::create_dir_all(&self.out)?;
        let mut parts = Vec::new();
        for (index, part) in state.parts.iter().enumerate() {
            let file = format!("part-{index}.f32");
            dir::write(&self.out.join(&file), &blobs.get(part.hash, 4 * plan.spec.len()).await?)?;
            parts.push(json!({"file": file, "extent": part.extent, "sha256": part.hash.to_string()}));
        }
        let offset = |extent: Extent| if extent == Extent::Head { plan.spec.backbone_len() } else { 0 };
        let entries: Vec<_> = plan.spec.entries().iter().map(|e| json!({
            "name": e.name, "shape": e.shape.extents(), "head": e.part == Part::Head, "start": e.range.start, "end": e.range.end,
        })).collect();
        let contents = json!({
            "model": plan.spec.card(), "parts": parts, "entries": entries, "head_starts_at": offset(Extent::Head),
        });
        dir::write(&self.out.join("contents.json"), serde_json::to_string_pretty(&contents)?.as_bytes())?;
        eprintln!("{} parts of version {version} are in {}", parts.len(), self.out.display());
        Ok(())
    }
}
