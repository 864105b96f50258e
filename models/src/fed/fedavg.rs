//! FedAvg (McMahan et al. 2017; methods §7.1): the cohort trains the whole model, the host takes the n-weighted mean.
use super::adapt::{Adaptation, Setting};
use super::training::{Training, unconditioned};
use super::{
    Disclosure, Down, Extent, FedError, Fitted, Host, Kept, Method, Plan, Predictor, Replies, SharedPart,
    Site, Update, average,
};
use crate::id::ClientId;
use crate::nn::{Loss, Trainer};
use crate::params::{Mask, ModelSpec, Params, Whole};
use crate::tensor::rng::Purpose;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The method.
#[derive(Clone, Debug)]
pub enum FedAvg {}

/// Its hyper-parameters.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyper {
    /// Local training of a round.
    pub train: Training,
    /// What each board does after the last round.
    pub adapt: Adaptation,
}

/// The host's state: w.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Server(pub Kept<Whole>);

/// A board's state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Client {
    /// Whether it ever trained for the host.
    pub took_part: bool,
    /// The model it answers with.
    pub model: Option<Kept<Whole>>,
}

impl Method for FedAvg {
    const NAME: &'static str = "fedavg";
    type Hyper = Hyper;
    type Server = Server;
    type Client = Client;
    type Task = ();
    type Up = Update<Whole>;

    fn discloses(_: &Hyper) -> Disclosure {
        Disclosure::FullModel
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

    fn open(_: &Hyper, init: Params, _: Site, _: &mut dyn Host) -> Result<Server, FedError> {
        Ok(Server(init.into()))
    }

    fn parts<'a>(_: &Hyper, server: &'a Server) -> Vec<SharedPart<'a>> {
        vec![SharedPart::of(Extent::Model, &server.0)]
    }

    fn configure(_: &Hyper, _: &Server, _: ClientId) -> Plan<()> {
        Plan { parts: vec![0], task: () }
    }

    fn aggregate(
        _: &Hyper,
        server: &Server,
        _: Site,
        replies: &mut dyn Replies<Update<Whole>>,
        _: &mut dyn Host,
    ) -> Result<Server, FedError> {
        Ok(Server(average::by_samples(&server.0, replies, |up| Some(up), None)?.into()))
    }

    fn enroll(_: &Hyper, _: &Arc<ModelSpec>) -> Client {
        Client::default()
    }

    fn fit(
        hyper: &Hyper,
        _: &Client,
        down: Down<()>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Fitted<Self>, FedError> {
        let start: Params = down.part::<Self, _>(0, trainer.spec())?;
        let everything = Mask::all(trainer.spec());
        let neutral = unconditioned(trainer.spec());
        let job = hyper.train.job(&everything, site.key(Purpose::Batches), Loss::default(), &neutral);
        let trained = trainer.train(&start, &job)?;
        let up = Update::new(trained.params.minus(&start), trainer.counts().total());
        Ok(Fitted { client: Client { took_part: true, model: Some(start.into()) }, up, loss: trained.loss })
    }

    fn adopt(
        _: &Hyper,
        client: &Client,
        down: Down<()>,
        _: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        Ok(Client { model: Some(down.part::<Self, _>(0, trainer.spec())?.into()), ..client.clone() })
    }

    fn adapt(
        hyper: &Hyper,
        client: &Client,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        let model = client.model.as_ref().ok_or(FedError::NoModel)?;
        let newcomer = !client.took_part;
        let neutral = unconditioned(trainer.spec());
        let setting =
            Setting { train: hyper.train, how: hyper.adapt, newcomer, conditioning: &neutral, site };
        Ok(Client { model: Some(setting.run(model, trainer)?.into()), ..client.clone() })
    }

    fn predictor(_: &Hyper, client: &Client, spec: &Arc<ModelSpec>) -> Result<Predictor, FedError> {
        Ok(Predictor::single(client.model.as_ref().ok_or(FedError::NoModel)?, &unconditioned(spec)))
    }
}
