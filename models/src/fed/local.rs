//! Local (methods §7.4): every board trains alone, from the same initial weights; nothing leaves it.
use super::training::{Training, unconditioned, within};
use super::{
    Disclosure, Down, Extent, FedError, Fitted, Host, Kept, Method, Plan, Predictor, Replies, SharedPart,
    Silent, Site,
};
use crate::id::ClientId;
use crate::nn::{Loss, Trainer};
use crate::params::{Mask, ModelSpec, Params, Whole};
use crate::tensor::rng::Purpose;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The method.
#[derive(Clone, Debug)]
pub enum Local {}

/// Its hyper-parameters.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyper {
    /// Training of a round, in which the board stays silent.
    pub train: Training,
    /// Epochs of the whole run: adaptation trains what the rounds left (0: nothing). For the budget of a federated
    /// method: rounds · participation · E.
    pub epochs: u32,
}

/// The host's state: the initial weights.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Server(pub Kept<Whole>);

/// A board's state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Client {
    /// Epochs trained so far.
    pub epochs: u32,
    /// Its model.
    pub model: Option<Kept<Whole>>,
}

impl Client {
    /// The model, or the initial one if there is none yet.
    fn or_initial(&self, down: &Down<()>, spec: &Arc<ModelSpec>) -> Result<Params, FedError> {
        match &self.model {
            Some(model) => Ok(model.0.clone()),
            None => down.part::<Local, _>(0, spec),
        }
    }
}

impl Method for Local {
    const NAME: &'static str = "local";
    type Hyper = Hyper;
    type Server = Server;
    type Client = Client;
    type Task = ();
    type Up = Silent;

    fn discloses(_: &Hyper) -> Disclosure {
        Disclosure::Nothing
    }

    fn uplink(_: &Hyper, _: &ModelSpec) -> (Extent, usize) {
        (Extent::Backbone, 0)
    }

    fn epochs(hyper: &Hyper) -> u32 {
        hyper.train.epochs
    }

    fn check(hyper: &Hyper) -> Result<(), FedError> {
        hyper.train.check()?;
        within("epochs", hyper.epochs, 0..=100_000, "must be at most 100000")
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
        _: &mut dyn Replies<Silent>,
        _: &mut dyn Host,
    ) -> Result<Server, FedError> {
        Ok(server.clone())
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
        let start = client.or_initial(&down, trainer.spec())?;
        let (model, loss) = alone(&start, hyper.train, &unconditioned(start.spec()), site, trainer)?;
        let client = Client { epochs: client.epochs + hyper.train.epochs, model: Some(model.into()) };
        Ok(Fitted { client, up: Silent::new(trainer.spec()), loss })
    }

    fn adopt(
        _: &Hyper,
        client: &Client,
        down: Down<()>,
        _: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        Ok(Client { model: Some(client.or_initial(&down, trainer.spec())?.into()), ..client.clone() })
    }

    fn adapt(
        hyper: &Hyper,
        client: &Client,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Client, FedError> {
        let left = hyper.epochs.saturating_sub(client.epochs);
        let start = client.model.as_ref().ok_or(FedError::NoModel)?;
        if left == 0 {
            return Ok(client.clone());
        }
        let (model, _) = alone(start, hyper.train.epochs(left), &unconditioned(start.spec()), site, trainer)?;
        Ok(Client { epochs: client.epochs + left, model: Some(model.into()) })
    }

    fn predictor(_: &Hyper, client: &Client, spec: &Arc<ModelSpec>) -> Result<Predictor, FedError> {
        Ok(Predictor::single(client.model.as_ref().ok_or(FedError::NoModel)?, &unconditioned(spec)))
    }
}

/// Trains the whole network on the board's own data, untouched by the federation: Local's model, and FedPrism's specialist.
///
/// # Errors
/// [`FedError::Train`].
pub fn alone(
    start: &Params,
    train: Training,
    conditioning: &[f32],
    site: Site,
    trainer: &mut dyn Trainer,
) -> Result<(Params, f64), FedError> {
    let everything = Mask::all(trainer.spec());
    let job = train.job(&everything, site.key(Purpose::Specialist), Loss::default(), conditioning);
    let trained = trainer.train(start, &job)?;
    Ok((trained.params, trained.loss))
}
