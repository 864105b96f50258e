//! pFedKDH (arXiv 2609.17284; methods §5): a private head on a shared backbone, taught by a head that the host calibrates on
//! auxiliary data. "Fair" is the method as it is; "EA" is it followed by head-only adaptation.
use super::adapt::Adaptation;
use super::personal::Client;
use super::training::{Training, unconditioned, within};
use super::{
    Disclosure, Down, Extent, FedError, Fitted, Host, Kept, Method, Plan, Predictor, Replies, SharedPart,
    Site, Update, average, node, recalibrate,
};
use crate::id::ClientId;
use crate::nn::{Distill, Loss, Proximal, Trainer};
use crate::params::{Backbone, BackboneScope, HeadScope, Mask, ModelSpec, Params, Part};
use crate::tensor::rng::Purpose;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The method.
#[derive(Clone, Debug)]
pub enum PFedKdh {}

/// Its hyper-parameters; the paper publishes none of the first three.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyper {
    /// Weight of distillation (λ_KD).
    pub distill: f32,
    /// Its temperature (T).
    pub temperature: f32,
    /// Pull of the backbone towards the global one (μ).
    pub proximal: f32,
    /// Head epochs of the teacher's calibration, before the first round and after each.
    pub calibration_epochs: u32,
    /// Epochs in which the host trains the initial model on its auxiliary data (E_w).
    pub warmup_epochs: u32,
    /// Local training of a round.
    pub train: Training,
    /// What each board does after the last round.
    pub adapt: Adaptation,
}

impl Default for Hyper {
    fn default() -> Self {
        let (train, adapt) = (Training::default(), Adaptation::default());
        Self {
            distill: 0.5,
            temperature: 2.0,
            proximal: 0.01,
            calibration_epochs: 3,
            warmup_epochs: 0,
            train,
            adapt,
        }
    }
}

/// The host's state.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Server {
    /// θ_g.
    pub backbone: Kept<BackboneScope>,
    /// The head every board begins with.
    pub initial: Kept<HeadScope>,
    /// φ_g; nothing where the teacher has no weight.
    pub teacher: Option<Kept<HeadScope>>,
}

impl Server {
    /// This state with its teacher calibrated on the backbone as it is.
    fn calibrated(mut self, hyper: &Hyper, site: Site, host: &mut dyn Host) -> Result<Self, FedError> {
        if let Some(teacher) = &self.teacher {
            let (model, auxiliary) =
                (Params::join(&self.backbone, teacher), node::required(host, PFedKdh::NAME)?);
            let epochs = hyper.calibration_epochs;
            let neutral = unconditioned(model.spec());
            let head =
                recalibrate::recalibrated(&model, &neutral, None, hyper.train, epochs, site, auxiliary)?;
            self.teacher = Some(head.into());
        }
        Ok(self)
    }
}

impl Method for PFedKdh {
    const NAME: &'static str = "pfedkdh";
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
        within("distill", hyper.distill, 0.0..=1.0, "must be 0 to 1")?;
        within("temperature", hyper.temperature, 0.01..=100.0, "must be 0.01 to 100")?;
        within("proximal", hyper.proximal, 0.0..=100.0, "must be 0 to 100")?;
        within("calibration_epochs", hyper.calibration_epochs, 0..=1000, "must be at most 1000")?;
        within("warmup_epochs", hyper.warmup_epochs, 0..=1000, "must be at most 1000")?;
        hyper.train.check()?;
        hyper.adapt.check()
    }

    fn open(hyper: &Hyper, init: Params, site: Site, host: &mut dyn Host) -> Result<Server, FedError> {
        let mut init = init;
        if hyper.warmup_epochs > 0 {
            let auxiliary = node::required(host, Self::NAME)?;
            let train = hyper.train.epochs(hyper.warmup_epochs);
            init = node::trained(&init, train, None, &unconditioned(init.spec()), site, auxiliary)?.params;
        }
        let initial: Kept<HeadScope> = init.head().into();
        let teacher = (hyper.distill > 0.0).then(|| initial.clone());
        Server { backbone: init.backbone().into(), initial, teacher }.calibrated(hyper, site, host)
    }

    fn parts<'a>(_: &Hyper, server: &'a Server) -> Vec<SharedPart<'a>> {
        let mut parts = vec![
            SharedPart::of(Extent::Backbone, &server.backbone),
            SharedPart::of(Extent::Head, &server.initial),
        ];
        parts.extend(server.teacher.iter().map(|t| SharedPart::of(Extent::Head, t)));
        parts
    }

    fn configure(hyper: &Hyper, server: &Server, _: ClientId) -> Plan<()> {
        Plan { parts: (0..Self::parts(hyper, server).len() as u16).collect(), task: () }
    }

    fn aggregate(
        hyper: &Hyper,
        server: &Server,
        site: Site,
        replies: &mut dyn Replies<Update<BackboneScope>>,
        host: &mut dyn Host,
    ) -> Result<Server, FedError> {
        let backbone = average::by_samples(&server.backbone.0, replies, |up| Some(up), None)?.into();
        Server { backbone, ..server.clone() }.calibrated(hyper, site, host)
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
        let spec = trainer.spec().clone();
        let backbone: Backbone = down.part::<Self, _>(0, &spec)?;
        let start = Params::join(&backbone, &client.head_or::<Self>(&down, 1, &spec)?);
        let teacher = match hyper.distill > 0.0 {
            true => Some(Params::join(&backbone, &down.part::<Self, _>(2, &spec)?)),
            false => None,
        };
        let pulled = Mask::part(&spec, Part::Backbone);
        let loss =
            taught(teacher.as_ref(), &start, &pulled, hyper.distill, hyper.temperature, hyper.proximal);
        let everything = Mask::all(&spec);
        let trained = trainer.train(
            &start,
            &hyper.train.job(&everything, site.key(Purpose::Batches), loss, &unconditioned(&spec)),
        )?;
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

/// pFedKDH's loss: `(1−λ)·CE + λ T² KL(teacher ‖ student) + (μ/2)‖θ − θ_g‖²`, the last over the entries `pulled`. A term without
/// weight is not there at all, so that the reductions to FedPer are exact.
pub fn taught<'a>(
    teacher: Option<&'a Params>,
    anchor: &'a Params,
    pulled: &'a Mask,
    weight: f32,
    temperature: f32,
    mu: f32,
) -> Loss<'a> {
    let distill = teacher.filter(|_| weight > 0.0).map(|teacher| Distill { teacher, temperature, weight });
    let proximal = (mu > 0.0).then_some(Proximal { anchor, mu, on: pulled });
    Loss { prior: None, distill, proximal }
}
