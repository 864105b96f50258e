//! FedPer (Arivazhagan et al. 2019; methods §7.16): the backbone is shared, every board keeps its own head.
use super::adapt::Adaptation;
use super::average::{self, Node};
use super::personal::Client;
use super::training::{Training, unconditioned};
use super::{
    Disclosure, Down, Extent, FedError, Fitted, Host, Kept, Method, Plan, Predictor, Replies, SharedPart,
    Site, Update, node,
};
use crate::id::{AUXILIARY, ClientId};
use crate::nn::{Loss, Trainer};
use crate::params::{Backbone, BackboneScope, HeadScope, Mask, ModelSpec, Params};
use crate::tensor::rng::Purpose;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The method.
#[derive(Clone, Debug)]
pub enum FedPer {}

/// Its hyper-parameters.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyper {
    /// Local training of a round.
    pub train: Training,
    /// What each board does after the last round.
    pub adapt: Adaptation,
    /// The host's auxiliary data take part in every round, with a head of their own.
    pub aux_node: bool,
}

/// The host's state.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Server {
    /// θ.
    pub backbone: Kept<BackboneScope>,
    /// The head every board begins with.
    pub initial: Kept<HeadScope>,
    /// The auxiliary node's own head.
    pub node: Option<Kept<HeadScope>>,
}

impl Method for FedPer {
    const NAME: &'static str = "fedper";
    type Hyper = Hyper;
    type Server = Server;
    type Client = Client;
    type Task = ();
    type Up = Update<BackboneScope>;

    fn discloses(_: &Hyper) -> Disclosure {
        Disclosure::Backbone
    }

    fn uplink(_: &Hyper, _: &ModelSpec) -> (Extent, usize) {
        (Extent::Backbone, 0)
    }

    fn epochs(hyper: &Hyper) -> u32 {
        hyper.train.epochs
    }

    fn check(hyper: &Hyper) -> Result<(), FedError> {
        hyper.train.check()?;
        hyper.adapt.check()
    }

    fn open(hyper: &Hyper, init: Params, _: Site, host: &mut dyn Host) -> Result<Server, FedError> {
        if hyper.aux_node {
            node::required(host, Self::NAME)?;
        }
        let initial: Kept<HeadScope> = init.head().into();
        let node = hyper.aux_node.then(|| initial.clone());
        Ok(Server { backbone: init.backbone().into(), initial, node })
    }

    fn parts<'a>(_: &Hyper, server: &'a Server) -> Vec<SharedPart<'a>> {
        vec![
            SharedPart::of(Extent::Backbone, &server.backbone),
            SharedPart::of(Extent::Head, &server.initial),
        ]
    }

    fn configure(_: &Hyper, _: &Server, _: ClientId) -> Plan<()> {
        Plan { parts: vec![0, 1], task: () }
    }

    fn aggregate(
        hyper: &Hyper,
        server: &Server,
        site: Site,
        replies: &mut dyn Replies<Update<BackboneScope>>,
        host: &mut dyn Host,
    ) -> Result<Server, FedError> {
        let mut own = None;
        if let Some(head) = &server.node {
            let start = Params::join(&server.backbone, head);
            let auxiliary = node::required(host, Self::NAME)?;
            let end =
                node::trained(&start, hyper.train, None, &unconditioned(start.spec()), site, auxiliary)?
                    .params;
            let delta = end.backbone().minus(&server.backbone);
            own = Some((Update::new(delta, auxiliary.counts().total()), end.head()));
        }
        let node = own.as_ref().map(|(update, _)| Node { id: AUXILIARY, update });
        let backbone = average::by_samples(&server.backbone.0, replies, |up| Some(up), node)?.into();
        Ok(Server { backbone, initial: server.initial.clone(), node: own.map(|(_, head)| head.into()) })
    }

    fn enroll(_: &Hyper, _: &Arc<ModelSpec>) -> Client {
        Client::default()
    }

    fn fit(
        hyper: &Hyper,
        client: &Client,
        down: Down<()>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Fitted<Self>, FedError> {
        let backbone: Backbone = down.part::<Self, _>(0, trainer.spec())?;
        let start = Params::join(&backbone, &client.head_or::<Self>(&down, 1, trainer.spec())?);
        let everything = Mask::all(trainer.spec());
        let neutral = unconditioned(trainer.spec());
        let job = hyper.train.job(&everything, site.key(Purpose::Batches), Loss::default(), &neutral);
        let trained = trainer.train(&start, &job)?;
        let up = Update::new(trained.params.backbone().minus(&backbone), trainer.counts().total());
        Ok(Fitted { client: Client::after(&trained.params, &backbone), up, loss: trained.loss })
    }

    fn adopt(
        _: &Hyper,
        client: &Client,
        down: Down<()>,
        _: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        client.adopted::<Self>(&down, trainer.spec())
    }

    fn adapt(
        hyper: &Hyper,
        client: &Client,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        client.adapted(hyper.train, hyper.adapt, site, trainer)
    }

    fn predictor(_: &Hyper, client: &Client, _: &Arc<ModelSpec>) -> Result<Predictor, FedError> {
        client.predictor()
    }
}
