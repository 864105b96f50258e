//! Client-Conditional, federated (arXiv 2603.11307; methods §6): FedAvg on a network that every client feeds a fixed vector of its own.
//!
//! The vector is never sent, and still it leaves: the update of the columns it feeds, divided by that of the bias, is the vector.
//! So the method discloses statistics, whatever its name for it.
use super::adapt::{Adaptation, Setting};
use super::conditioning::Conditioning;
use super::training::Training;
use super::{
    Disclosure, Down, Extent, FedError, Fitted, Host, Kept, Method, Plan, Predictor, Replies, SharedPart,
    Site, Update, average,
};
use crate::id::ClientId;
use crate::nn::{Loss, Trainer};
use crate::params::{Mask, ModelSpec, Params, Whole};
use crate::stats::Normaliser;
use crate::tensor::rng::Purpose;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The method.
#[derive(Clone, Debug)]
pub enum Conditional {}

/// Its hyper-parameters.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyper {
    /// What each client feeds.
    pub statistics: Conditioning,
    /// Local training of a round.
    pub train: Training,
    /// What each board does after the last round.
    pub adapt: Adaptation,
}

/// The host's state.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Server {
    /// The network.
    pub model: Kept<Whole>,
    /// What makes statistics comparable.
    pub normaliser: Option<Normaliser>,
}

/// A board's state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Client {
    /// Whether it ever trained for the host.
    pub took_part: bool,
    /// Its measured statistic.
    pub measured: Option<Vec<f32>>,
    /// What it feeds.
    pub vector: Vec<f32>,
    /// The model it answers with.
    pub model: Option<Kept<Whole>>,
}

impl Client {
    /// The state with a model taken over and the vector that goes with it.
    fn with(
        &self,
        hyper: &Hyper,
        down: &Down<Option<Normaliser>>,
        site: Site,
        trainer: &dyn Trainer,
    ) -> Result<Self, FedError> {
        hyper.statistics.check(trainer.spec())?;
        let measured = hyper.statistics.measured(self.measured.as_ref(), site, trainer);
        let vector = hyper.statistics.vector(measured.as_ref(), down.task.as_ref(), site, trainer.spec());
        let model: Params = down.part::<Conditional, _>(0, trainer.spec())?;
        Ok(Self { took_part: self.took_part, measured, vector, model: Some(model.into()) })
    }
}

impl Method for Conditional {
    const NAME: &'static str = "conditional";
    type Hyper = Hyper;
    type Server = Server;
    type Client = Client;
    type Task = Option<Normaliser>;
    type Up = Update<Whole>;

    fn discloses(hyper: &Hyper) -> Disclosure {
        if hyper.statistics.kind.is_measured() { Disclosure::Statistics } else { Disclosure::FullModel }
    }

    fn uplink(_: &Hyper, _: &ModelSpec) -> (Extent, usize) {
        (Extent::Model, 0)
    }

    fn epochs(hyper: &Hyper) -> u32 {
        hyper.train.epochs
    }

    fn check(hyper: &Hyper) -> Result<(), FedError> {
        hyper.train.check()?;
        hyper.adapt.check()
    }

    fn open(hyper: &Hyper, init: Params, site: Site, host: &mut dyn Host) -> Result<Server, FedError> {
        hyper.statistics.check(init.spec())?;
        let normaliser = hyper.statistics.normaliser(site, host.auxiliary());
        if hyper.statistics.kind.is_measured() && normaliser.is_none() {
            return Err(FedError::NoAuxiliary { method: Self::NAME });
        }
        Ok(Server { model: init.into(), normaliser })
    }

    fn parts<'a>(_: &Hyper, server: &'a Server) -> Vec<SharedPart<'a>> {
        vec![SharedPart::of(Extent::Model, &server.model)]
    }

    fn configure(_: &Hyper, server: &Server, _: ClientId) -> Plan<Option<Normaliser>> {
        Plan { parts: vec![0], task: server.normaliser.clone() }
    }

    fn aggregate(
        _: &Hyper,
        server: &Server,
        _: Site,
        replies: &mut dyn Replies<Update<Whole>>,
        _: &mut dyn Host,
    ) -> Result<Server, FedError> {
        let model = average::by_samples(&server.model.0, replies, |up| Some(up), None)?.into();
        Ok(Server { model, normaliser: server.normaliser.clone() })
    }

    fn enroll(_: &Hyper, _: &Arc<ModelSpec>) -> Client {
        Client::default()
    }

    fn fit(
        hyper: &Hyper,
        client: &Client,
        down: Down<Option<Normaliser>>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Fitted<Self>, FedError> {
        let mut client = client.with(hyper, &down, site, trainer)?;
        client.took_part = true;
        let start = client.model.as_ref().ok_or(FedError::NoModel)?;
        let everything = Mask::all(trainer.spec());
        let order = site.key(Purpose::Batches);
        let job = hyper.train.job(&everything, order, Loss::default(), &client.vector);
        let trained = trainer.train(start, &job)?;
        let up = Update::new(trained.params.minus(start), trainer.counts().total());
        Ok(Fitted { client, up, loss: trained.loss })
    }

    fn adopt(
        hyper: &Hyper,
        client: &Client,
        down: Down<Option<Normaliser>>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        client.with(hyper, &down, site, trainer)
    }

    fn adapt(
        hyper: &Hyper,
        client: &Client,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        let (model, newcomer) = (client.model.as_ref().ok_or(FedError::NoModel)?, !client.took_part);
        let setting =
            Setting { train: hyper.train, how: hyper.adapt, newcomer, conditioning: &client.vector, site };
        Ok(Client { model: Some(setting.run(model, trainer)?.into()), ..client.clone() })
    }

    fn predictor(_: &Hyper, client: &Client, _: &Arc<ModelSpec>) -> Result<Predictor, FedError> {
        Ok(Predictor::single(client.model.as_ref().ok_or(FedError::NoModel)?, &client.vector))
    }
}
