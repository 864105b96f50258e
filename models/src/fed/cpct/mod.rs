//! `cpct`, Conditional Prism with Calibrated Teacher (DESIGN §4; science §5, §8.3, §9.3): backbone averaging with soft clusters that
//! each board chooses from, heads that stay on the board but start from the host's teacher, a personal mixture of base and
//! adapted heads, and a second, shared stream for what the board has never seen.
//!
//! `private_head` (the default) shares backbones; `shared_head` the whole model. With its switches it gives FedAvg, FedPer, pFedKDH,
//! FedPrism, Conditional and Local, bit for bit.
mod answer;
mod board;
mod host;
mod hyper;
mod received;

pub use board::Client;
pub use host::State;
pub use hyper::{ColumnsTrainedBy, Hyper, Mixture, Profile, Prototype, Reach, Recalibrate, RouterKind};

use super::{
    Disclosure, Down, Either, Extent, FedError, Fitted, Host, Method, Plan, Predictor, Replies, SharedPart,
    Site,
};
use crate::id::ClientId;
use crate::nn::Trainer;
use crate::params::{BackboneScope, ModelSpec, Params, Whole};
use crate::stats::Normaliser;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The method.
#[derive(Clone, Debug)]
pub enum Cpct {}

/// The host's state, in the scope that is shared.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Server {
    /// Backbones.
    Backbone(State<BackboneScope>),
    /// Whole models.
    Model(State<Whole>),
}

/// Which head parts a board gets, in this order.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Heads {
    /// The one that boards begin with.
    pub initial: bool,
    /// The teacher's.
    pub teacher: bool,
    /// The teacher's, calibrated on the published global part.
    pub calibrated: bool,
}

/// What the host tells a board beside the parts.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Task {
    /// Weights of the cluster parts that follow the global one.
    pub mix: Vec<f32>,
    /// Which of them the board belongs to most.
    pub nearest: u16,
    /// The host doesn't know this board: it compares the cluster parts itself.
    pub each: bool,
    /// Heads that follow the cluster parts.
    pub heads: Heads,
    /// The initial model follows, for a specialist.
    pub specialist: bool,
    /// The final layer's weights are wanted.
    pub prototype: bool,
    /// What makes statistics comparable.
    pub normaliser: Option<Normaliser>,
}

macro_rules! either {
    ($server:expr, $state:ident => $body:expr) => {
        match $server {
            Server::Backbone($state) => $body,
            Server::Model($state) => $body,
        }
    };
}

impl Method for Cpct {
    const NAME: &'static str = "cpct";
    type Hyper = Hyper;
    type Server = Server;
    type Client = Client;
    type Task = Task;
    type Up = Either;

    fn discloses(hyper: &Hyper) -> Disclosure {
        hyper.discloses()
    }

    fn uplink(hyper: &Hyper, spec: &ModelSpec) -> (Extent, usize) {
        host::uplink(hyper, spec)
    }

    fn epochs(hyper: &Hyper) -> u32 {
        hyper.train.epochs + hyper.streams.extra_epochs(hyper.train.epochs)
    }

    fn check(hyper: &Hyper) -> Result<(), FedError> {
        hyper.check()
    }

    fn open(hyper: &Hyper, init: Params, site: Site, host: &mut dyn Host) -> Result<Server, FedError> {
        match hyper.reach() {
            Reach::Backbone => State::open(hyper, &init, site, host).map(Server::Backbone),
            Reach::Whole => State::open(hyper, &init, site, host).map(Server::Model),
        }
    }

    fn parts<'a>(_: &Hyper, server: &'a Server) -> Vec<SharedPart<'a>> {
        either!(server, state => state.parts())
    }

    fn configure(hyper: &Hyper, server: &Server, to: ClientId) -> Plan<Task> {
        either!(server, state => state.configure(hyper, to))
    }

    fn offer(hyper: &Hyper, server: &Server, to: ClientId) -> Plan<Task> {
        either!(server, state => state.offer(hyper, to))
    }

    fn aggregate(
        hyper: &Hyper,
        server: &Server,
        site: Site,
        replies: &mut dyn Replies<Either>,
        host: &mut dyn Host,
    ) -> Result<Server, FedError> {
        match server {
            Server::Backbone(state) => state.next(hyper, site, replies, host).map(Server::Backbone),
            Server::Model(state) => state.next(hyper, site, replies, host).map(Server::Model),
        }
    }

    fn finish(hyper: &Hyper, server: &Server, site: Site, host: &mut dyn Host) -> Result<Server, FedError> {
        match server {
            Server::Backbone(state) => state.finished(hyper, site, host).map(Server::Backbone),
            Server::Model(state) => state.finished(hyper, site, host).map(Server::Model),
        }
    }

    fn enroll(hyper: &Hyper, _: &Arc<ModelSpec>) -> Client {
        Client::new(hyper)
    }

    fn fit(
        hyper: &Hyper,
        client: &Client,
        down: Down<Task>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Fitted<Self>, FedError> {
        client.fitted(hyper, &down, site, trainer)
    }

    fn adopt(
        hyper: &Hyper,
        client: &Client,
        down: Down<Task>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        client.adopted(hyper, &down, site, trainer)
    }

    fn adapt(
        hyper: &Hyper,
        client: &Client,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        client.adapted(hyper, site, trainer)
    }

    fn predictor(hyper: &Hyper, client: &Client, spec: &Arc<ModelSpec>) -> Result<Predictor, FedError> {
        client.predictor(hyper, spec)
    }
}
