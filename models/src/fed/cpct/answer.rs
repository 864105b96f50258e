//! How a board of `cpct` answers: its personal mixture (science §5 step 7), the generalist, and the router (§8.3).
use super::hyper::{Hyper, Mixture, RouterKind};
use crate::fed::adapt::Setting;
use crate::fed::mixture::weights;
use crate::fed::prior::log_prior;
use crate::fed::{Ensemble, FedError, Gallery, Kept, Member, Predictor, Router, Stream};
use crate::nn::{Features, Split, Trainer, head};
use crate::params::{Backbone, BackboneScope, Head, HeadScope, ModelSpec, Params, Whole};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Training features the router remembers, at most.
const GALLERY: usize = 1024;

/// What a board took over. Heads are without the board's prior.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Adopted {
    /// The chosen part with the head that personalisation starts from.
    pub(super) base: Kept<Whole>,
    /// The global part likewise, where something else was chosen.
    pub(super) global: Option<Kept<Whole>>,
    /// B: the shared model.
    pub(super) generalist: Option<Kept<Whole>>,
    /// What the network is fed beside the input.
    pub(super) fed: Vec<f32>,
}

/// One head of the mixture.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Voice {
    stream: usize,
    head: Kept<HeadScope>,
    share: f32,
}

/// The personal mixture, and what its router knows.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Answer {
    backbones: Vec<Kept<BackboneScope>>,
    voices: Vec<Voice>,
    log_prior: Vec<f32>,
    gallery: Gallery,
}

/// Candidates of the mixture as they are made.
struct Candidates<'a> {
    setting: &'a Setting<'a>,
    trainer: &'a mut dyn Trainer,
    backbones: Vec<Backbone>,
    /// Training features per backbone.
    features: Vec<Features>,
    /// Stream and head.
    heads: Vec<(usize, Head)>,
}

impl Candidates<'_> {
    /// A backbone to put heads on.
    fn stream(&mut self, backbone: Backbone) -> Result<usize, FedError> {
        let features = self.trainer.features(&backbone, self.setting.conditioning, Split::Train)?;
        self.features.push(features);
        self.backbones.push(backbone);
        Ok(self.backbones.len() - 1)
    }

    fn add(&mut self, stream: usize, head: Head) {
        self.heads.push((stream, head));
    }

    /// EA: head-only epochs on the stream's features.
    fn adapted(&mut self, stream: usize, start: &Head) -> Result<Head, FedError> {
        let head = self.setting.head_on(&self.features[stream], start)?;
        self.add(stream, head.clone());
        Ok(head)
    }

    /// w50: halfway from EA to what whole-net training makes of it.
    fn halfway(&mut self, stream: usize, head: &Head) -> Result<(), FedError> {
        let adapted = Params::join(&self.backbones[stream], head);
        let midway = self.setting.halfway(&adapted, self.trainer)?;
        let own = self.stream(midway.backbone())?;
        self.add(own, midway.head());
        Ok(())
    }

    /// `p_k(y_j | x_j)` on the validation slice.
    fn likelihoods(&mut self) -> Result<Vec<Vec<f32>>, FedError> {
        let conditioning = self.setting.conditioning;
        let mut seen = Vec::with_capacity(self.backbones.len());
        for backbone in &self.backbones {
            seen.push(self.trainer.features(backbone, conditioning, Split::Validation)?);
        }
        let of = |(stream, head): &(usize, Head)| right(&seen[*stream], head);
        Ok(self.heads.iter().map(of).collect())
    }
}

/// The probability of each sample's own class.
fn right(features: &Features, head: &Head) -> Vec<f32> {
    let p = head::probabilities(features, head);
    p.chunks_exact(head.spec().classes().max(1))
        .zip(&features.labels)
        .map(|(p, &y)| p[usize::from(y)])
        .collect()
}

impl Answer {
    /// Builds the mixture that `hyper` asks for: base and EA of the chosen part, EA on the global part, both halfway to fine-tuned,
    /// a specialist where there is one; weights by EM on the validation slice, EA of the chosen part being the favourite.
    pub(super) fn of(
        hyper: &Hyper,
        adopted: &Adopted,
        specialist: Option<&Kept<Whole>>,
        setting: &Setting<'_>,
        trainer: &mut dyn Trainer,
    ) -> Result<Self, FedError> {
        let prior = log_prior(trainer.counts());
        let personal = |model: &Params| {
            if hyper.prior_correction { head::add_prior(&model.head(), &prior, 1.0) } else { model.head() }
        };
        let mut all =
            Candidates { setting, trainer, backbones: Vec::new(), features: Vec::new(), heads: Vec::new() };
        let mut favourite = 0;
        let (own, base) = (all.stream(adopted.base.backbone())?, personal(&adopted.base));
        if hyper.mixture != Mixture::Ea {
            all.add(own, base.clone());
        }
        if hyper.mixture != Mixture::None {
            favourite = all.heads.len();
            let adapted = all.adapted(own, &base)?;
            let deep = matches!(hyper.mixture, Mixture::Standard | Mixture::Full);
            if let Some(global) = adopted.global.as_ref().filter(|_| deep) {
                let shared = all.stream(global.backbone())?;
                let there = all.adapted(shared, &personal(global))?;
                if hyper.mixture == Mixture::Full {
                    all.halfway(shared, &there)?;
                }
            }
            if hyper.mixture == Mixture::Full {
                all.halfway(own, &adapted)?;
            }
            if let Some(scratch) = specialist {
                let alone = all.stream(scratch.backbone())?;
                all.add(alone, scratch.head());
            }
        }
        let gallery =
            all.trainer.features(&all.backbones[own], setting.conditioning, Split::Probe(GALLERY))?;
        let shares = if all.heads.len() > 1 { weights(&all.likelihoods()?, favourite) } else { vec![1.0] };
        let voices = all.heads.into_iter().zip(shares);
        Ok(Self {
            backbones: all.backbones.into_iter().map(Kept::from).collect(),
            voices: voices.map(|((stream, h), share)| Voice { stream, head: h.into(), share }).collect(),
            log_prior: prior,
            gallery: Gallery::of(&gallery),
        })
    }

    fn ensemble(&self, fed: &[f32], spec: &Arc<ModelSpec>) -> Ensemble {
        let stream = |b: &Kept<BackboneScope>| Stream { backbone: b.0.clone(), conditioning: fed.to_vec() };
        let member = |v: &Voice| Member { stream: v.stream, head: v.head.0.clone(), share: v.share };
        Ensemble {
            spec: Arc::clone(spec),
            streams: self.backbones.iter().map(stream).collect(),
            members: self.voices.iter().map(member).collect(),
        }
    }
}

/// Specialist and generalist, or the specialist alone where there is nothing shared to ask.
pub(super) fn predictor(
    hyper: &Hyper,
    adopted: &Adopted,
    answer: Option<&Answer>,
    scratch: Option<&Kept<Whole>>,
    spec: &Arc<ModelSpec>,
) -> Predictor {
    let mixture = answer
        .map_or_else(|| Ensemble::single(&adopted.base, &adopted.fed), |a| a.ensemble(&adopted.fed, spec));
    if let Some(scratch) = scratch.filter(|_| hyper.mixture == Mixture::None) {
        let (specialist, router) = (Ensemble::single(scratch, &adopted.fed), by_specialist(hyper));
        return Predictor::DualStream { specialist, generalist: mixture, router };
    }
    let (Some(shared), Some(answer)) = (&adopted.generalist, answer) else {
        return Predictor::Single(mixture);
    };
    let shared = Ensemble::single(shared, &adopted.fed);
    let router = match hyper.router {
        RouterKind::None => return Predictor::Single(mixture),
        RouterKind::Familiarity => {
            Router::familiarity(answer.log_prior.clone(), hyper.epsilon, answer.gallery.clone())
        }
        RouterKind::Fedprism | RouterKind::Specialist => by_specialist(hyper),
    };
    Predictor::DualStream { specialist: mixture, generalist: shared, router }
}

fn by_specialist(hyper: &Hyper) -> Router {
    match hyper.router {
        RouterKind::Fedprism => Router::Confidence { temperature: hyper.router_temperature },
        _ => Router::Specialist,
    }
}
