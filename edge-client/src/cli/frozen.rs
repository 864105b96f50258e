//! Networks of which only the head trains: samples go through the part below it once, and what comes out is trained on.
use super::board::{self, say};
use super::infer::options;
use crate::config::Config;
use crate::train::{Network, Workshop};
use ::models::data::Samples;
use ::models::id::ClientId;
use ::models::infer::Runtime;
use ::models::nn::Dataset;
use ::models::params::ModelCard;
use anyhow::{Context, bail};
use onnx::{Built, Extractor};
use std::sync::Arc;

/// The engine that was asked for; where a part of the network is kept as it came, one that can run that.
pub(super) fn engine(
    config: &Config,
    extractor: Option<&Arc<Extractor>>,
) -> anyhow::Result<Box<dyn Runtime>> {
    let options = options(config.ort_lib.clone(), config.threads);
    Ok(match extractor {
        Some(_) => config.engine.open_frozen(&options)?,
        None => config.engine.open(&options)?,
    })
}

/// The local data, ready to be trained on.
pub(super) fn workshop(
    built: &Built,
    samples: Samples,
    config: &Config,
    client: ClientId,
) -> anyhow::Result<Workshop> {
    let network: Network = (Arc::clone(&built.graph), Arc::clone(&built.spec));
    let (ceiling, threads) =
        (usize::try_from(config.memory).unwrap_or(usize::MAX), board::threads(config.threads));
    let workshop = match &built.extractor {
        None => Workshop::new(network, samples, client, threads)?,
        Some(extractor) => {
            let data = features(extractor, &samples, built.spec.card(), config)?;
            Workshop::over(network, data, client, threads)?
        }
    };
    Ok(workshop.with_ceiling(ceiling))
}

/// The features of the samples, in bounded memory, with word of how far it is.
fn features(
    extractor: &Arc<Extractor>,
    samples: &Samples,
    card: &ModelCard,
    config: &Config,
) -> anyhow::Result<Dataset> {
    let (all, width) = (samples.len(), extractor.width());
    let bytes = 4 * (all as u64) * width as u64;
    if bytes > config.memory {
        bail!(
            "{width} features of {all} samples take {} MiB, limits.memory allows {}: give fewer samples, or raise it",
            bytes >> 20,
            config.memory >> 20
        );
    }
    let engine = engine(config, Some(extractor))?;
    say(&format!("taking {width} features of {all} samples ({})", engine.name()));
    let mut told = 0;
    let progress = &mut |done: usize| {
        if done - told >= (all / 10).max(TOLD_EACH) {
            say(&format!("{done} of {all} samples"));
            told = done;
        }
    };
    let taken = extractor.open(&*engine).and_then(|mut session| session.dataset(samples, card, progress));
    taken.with_context(|| {
        format!(
            "{} can't run the part of the network that is not trained; ONNX Runtime (`edge-client ort install`) runs more than tract",
            engine.name()
        )
    })
}

/// Word is given at each tenth, but never for fewer samples than these.
const TOLD_EACH: usize = 256;
