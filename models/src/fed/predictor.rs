//! How a board answers: one model, or two streams and a router.
use crate::nn::Features;
use crate::params::{Backbone, Head, ModelSpec, Params};
use std::sync::Arc;

/// A backbone with its (constant) conditioning vector.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The feature extractor.
    pub backbone: Backbone,
    /// What it is conditioned on; empty if the network has no such input.
    pub conditioning: Vec<f32>,
}

/// A head on one of an ensemble's streams. Priors are folded into its bias.
#[derive(Clone, Debug)]
pub struct Member {
    /// Index of its stream.
    pub stream: usize,
    /// The head.
    pub head: Head,
    /// Its share of the answer; shares sum to one.
    pub share: f32,
}

/// A convex mixture of heads over at most a few backbones: `p(x) = Σ_k w_k softmax(head_k(stream_k(x)))`.
#[derive(Clone, Debug)]
pub struct Ensemble {
    /// The model everything is shaped by.
    pub spec: Arc<ModelSpec>,
    /// Backbones; the first is the one whose features the router looks at.
    pub streams: Vec<Stream>,
    /// Heads.
    pub members: Vec<Member>,
}

/// How two streams are weighed. Router state never leaves the board.
#[derive(Clone, Debug)]
pub enum Router {
    /// Familiarity (science §8.3): how well the input fits what the board has seen.
    Familiarity {
        /// log π_i.
        log_prior: Vec<f32>,
        /// Share ε of unfamiliar inputs expected.
        epsilon: f32,
        /// Training features (L2-normalised rows) of the specialist's first stream; empty to do without.
        gallery: Features,
        /// Mean of the leave-one-out fifth-largest cosine over the gallery.
        mean: f32,
        /// Its standard deviation.
        deviation: f32,
    },
    /// FedPrism's own rule: λ(x) = max softmax(z_specialist / T).
    Confidence {
        /// Temperature T.
        temperature: f32,
    },
    /// λ = 1 always: the specialist alone.
    Specialist,
}

/// How a board answers.
#[derive(Clone, Debug)]
pub enum Predictor {
    /// One stream.
    Single(Ensemble),
    /// Specialist and generalist, weighed by a router.
    DualStream {
        /// The board's personal model.
        specialist: Ensemble,
        /// The shared model, without the board's prior.
        generalist: Ensemble,
        /// Who is heard.
        router: Router,
    },
}

impl Ensemble {
    /// One network.
    pub fn single(model: &Params, conditioning: &[f32]) -> Self {
        let stream = Stream { backbone: model.backbone(), conditioning: conditioning.to_vec() };
        let member = Member { stream: 0, head: model.head(), share: 1.0 };
        Self { spec: Arc::clone(model.spec()), streams: vec![stream], members: vec![member] }
    }
}

impl Predictor {
    /// One network.
    pub fn single(model: &Params, conditioning: &[f32]) -> Self {
        Self::Single(Ensemble::single(model, conditioning))
    }
}
