//! FedPrism (arXiv 2603.08252; methods §4): the model is a global part, a mix of cluster parts and a private delta; a specialist
//! answers beside it, weighed by its confidence.
mod hyper;

pub use hyper::Hyper;

use super::adapt::Setting;
use super::cluster::Clustering;
use super::prism::Prism;
use super::streams::{self, Streams};
use super::training::unconditioned;
use super::{
    Disclosure, Down, Ensemble, Extent, FedError, Fitted, Host, Kept, Method, Plan, Predictor, Replies,
    Router, SharedPart, Site, Update, mix,
};
use crate::id::{ClientId, RoundId};
use crate::nn::{Loss, Trainer};
use crate::params::{Mask, ModelSpec, Params, Whole};
use crate::tensor::rng::{Key, Purpose};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The method.
#[derive(Clone, Debug)]
pub enum FedPrism {}

/// The host's state.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Server {
    /// Global part, cluster parts, assignments.
    pub prism: Prism<Whole>,
    /// The round to come.
    pub round: RoundId,
    /// The initial model, where boards train a specialist.
    pub initial: Option<Kept<Whole>>,
}

/// What the host tells a board beside the parts.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Task {
    /// Weights of the cluster parts that follow the global one.
    pub mix: Vec<f32>,
    /// Which of them the board belongs to most.
    pub nearest: u16,
    /// Whether the final layer's weights are wanted: a clustering comes next.
    pub prototype: bool,
}

/// A board's state.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Client {
    /// Whether it ever trained for the host.
    pub took_part: bool,
    /// The personal parts.
    pub streams: Streams,
    /// The assembled model, as last taken over.
    pub model: Option<Kept<Whole>>,
}

/// The shared parts of a task.
struct Shared {
    global: Params,
    mix: Params,
    nearest: Params,
    initial: Option<Params>,
}

impl Shared {
    fn of(down: &Down<Task>, spec: &Arc<ModelSpec>) -> Result<Self, FedError> {
        let global: Params = down.part::<FedPrism, _>(0, spec)?;
        let k = down.task.mix.len();
        let clusters =
            (1..=k).map(|i| down.part::<FedPrism, Whole>(i, spec)).collect::<Result<Vec<_>, _>>()?;
        let mix = mix::mixed(&clusters, &down.task.mix).unwrap_or_else(|| global.clone());
        let nearest = clusters.get(usize::from(down.task.nearest)).unwrap_or(&global).clone();
        let initial =
            if down.parts.len() > k + 1 { Some(down.part::<FedPrism, _>(k + 1, spec)?) } else { None };
        Ok(Self { global, mix, nearest, initial })
    }
}

impl Method for FedPrism {
    const NAME: &'static str = "fedprism";
    type Hyper = Hyper;
    type Server = Server;
    type Client = Client;
    type Task = Task;
    type Up = Update<Whole>;

    fn discloses(_: &Hyper) -> Disclosure {
        Disclosure::FullModel
    }

    fn uplink(_: &Hyper, spec: &ModelSpec) -> (Extent, usize) {
        (Extent::Model, spec.head_weight().map_or(0, |e| e.range.len()))
    }

    fn epochs(hyper: &Hyper) -> u32 {
        hyper.train.epochs + hyper.streams.extra_epochs(hyper.train.epochs)
    }

    fn check(hyper: &Hyper) -> Result<(), FedError> {
        hyper.check()
    }

    fn open(hyper: &Hyper, init: Params, _: Site, _: &mut dyn Host) -> Result<Server, FedError> {
        let initial = hyper.streams.specialist.then(|| init.clone().into());
        Ok(Server { prism: Prism::new(init), round: RoundId(0), initial })
    }

    fn parts<'a>(_: &Hyper, server: &'a Server) -> Vec<SharedPart<'a>> {
        let mut parts = server.prism.parts(Extent::Model);
        parts.extend(server.initial.iter().map(|m| SharedPart::of(Extent::Model, m)));
        parts
    }

    fn configure(hyper: &Hyper, server: &Server, to: ClientId) -> Plan<Task> {
        let chosen = server.prism.mix_of(to, hyper.width());
        let mut parts: Vec<u16> =
            std::iter::once(0).chain(chosen.iter().map(|(k, _)| *k as u16 + 1)).collect();
        parts.extend(server.initial.iter().map(|_| server.prism.clusters.len() as u16 + 1));
        let mix: Vec<f32> = chosen.iter().map(|(_, w)| *w).collect();
        let nearest = if mix.is_empty() { 0 } else { super::argmax(&mix) as u16 };
        let prototype = Clustering::is_due(server.round, hyper.recluster);
        Plan { parts, task: Task { mix, nearest, prototype } }
    }

    fn aggregate(
        hyper: &Hyper,
        server: &Server,
        site: Site,
        replies: &mut dyn Replies<Update<Whole>>,
        _: &mut dyn Host,
    ) -> Result<Server, FedError> {
        let mut prism = server.prism.folded(replies, |up| Some(up), None)?;
        let spec = server.prism.global.spec();
        let trained = |up: &Update<Whole>| spec.head_weight().is_some_and(|layer| up.covers(&layer.name));
        for id in replies.ids().to_vec() {
            replies.visit(id, &mut |up| {
                if !up.prototype.is_empty() && trained(up) {
                    prism.assignments.note(id, up.prototype.clone());
                }
            })?;
        }
        if Clustering::is_due(site.round, hyper.recluster) {
            prism.recluster(&Clustering {
                clusters: hyper.clusters.into(),
                temperature: hyper.tau,
                key: Key { round: site.round.0, ..Key::new(site.seed, Purpose::Cluster) },
            });
        }
        Ok(Server { prism, round: site.round.next(), initial: server.initial.clone() })
    }

    fn enroll(hyper: &Hyper, _: &Arc<ModelSpec>) -> Client {
        Client { took_part: false, streams: Streams::new(hyper.alpha), model: None }
    }

    fn fit(
        hyper: &Hyper,
        client: &Client,
        down: Down<Task>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Fitted<Self>, FedError> {
        let spec = trainer.spec().clone();
        let (shared, everything, neutral) =
            (Shared::of(&down, &spec)?, Mask::all(&spec), unconditioned(&spec));
        let mut at = streams::Round {
            global: &shared.global,
            mix: &shared.mix,
            nearest: &shared.nearest,
            initial: shared.initial.as_ref(),
            end: &shared.global,
            train: hyper.train,
            personal: &everything,
            conditioning: &neutral,
            site,
        };
        let mut streams = client.streams.clone();
        streams.before(&hyper.streams, &at, trainer)?;
        let start = streams.assembled(&shared.global, &shared.mix);
        let job = hyper.train.job(&everything, site.key(Purpose::Batches), Loss::default(), &neutral);
        let trained = trainer.train(&start, &job)?;
        at.end = &trained.params;
        streams = streams.after(&hyper.streams, &at, trainer)?;
        let mut up = Update::new(trained.params.minus(&start), trainer.counts().total());
        if down.task.prototype {
            up.prototype = final_layer(&trained.params);
        }
        let model = Some(streams.assembled(&shared.global, &shared.mix).into());
        Ok(Fitted { client: Client { took_part: true, streams, model }, up, loss: trained.loss })
    }

    fn adopt(
        _: &Hyper,
        client: &Client,
        down: Down<Task>,
        _: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        let shared = Shared::of(&down, trainer.spec())?;
        let model = client.streams.assembled(&shared.global, &shared.mix);
        Ok(Client { model: Some(model.into()), ..client.clone() })
    }

    fn adapt(
        hyper: &Hyper,
        client: &Client,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        let model = client.model.as_ref().ok_or(FedError::NoModel)?;
        let (newcomer, neutral) = (!client.took_part, unconditioned(trainer.spec()));
        let setting =
            Setting { train: hyper.train, how: hyper.adapt, newcomer, conditioning: &neutral, site };
        Ok(Client { model: Some(setting.run(model, trainer)?.into()), ..client.clone() })
    }

    fn predictor(hyper: &Hyper, client: &Client, spec: &Arc<ModelSpec>) -> Result<Predictor, FedError> {
        let (model, neutral) = (client.model.as_ref().ok_or(FedError::NoModel)?, unconditioned(spec));
        let Some(specialist) = &client.streams.specialist else {
            return Ok(Predictor::single(model, &neutral));
        };
        Ok(Predictor::DualStream {
            specialist: Ensemble::single(specialist, &neutral),
            generalist: Ensemble::single(model, &neutral),
            router: Router::Confidence { temperature: hyper.temperature },
        })
    }
}

/// The head's weight matrix, flattened, bias excluded: FedPrism's prototype h_i.
pub fn final_layer(model: &Params) -> Vec<f32> {
    model.spec().head_weight().map_or_else(Vec::new, |e| model.values()[e.range.clone()].to_vec())
}
