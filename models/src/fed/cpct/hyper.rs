//! The switches of `cpct`. Their defaults are the method (science §6 and §9.3); each off or on gives an ablation or one of the papers.
use crate::fed::adapt::{Adapt, Adaptation};
use crate::fed::conditioning::Conditioning;
use crate::fed::streams::{AlphaRule, Rules};
use crate::fed::training::{Training, within};
use crate::fed::{Disclosure, FedError};
use crate::stats::Statistic;
use serde::{Deserialize, Serialize};

/// What a board shares.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// The backbone; prototypes on the projection layer.
    #[default]
    PrivateHead,
    /// The whole model; prototypes on the head.
    SharedHead,
}

/// How much of the model is decomposed and uploaded.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The backbone.
    Backbone,
    /// The whole model.
    Whole,
}

/// What clients are clustered by.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Prototype {
    /// The projection layer's change against the global part.
    Projection,
    /// The head's change against the global part.
    Head,
    /// The head's weights themselves, sent before a clustering (FedPrism).
    Weights,
}

/// When the teacher head is calibrated on the global part.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recalibrate {
    /// Never.
    Never,
    /// After the last round.
    #[default]
    End,
    /// Before the first round and after each (pFedKDH).
    Every,
}

/// How deep personalisation goes after training.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mixture {
    /// The model as it is.
    None,
    /// Head-only adaptation alone.
    Ea,
    /// Base and EA of the chosen part.
    Lite,
    /// Lite and EA on the global part.
    #[default]
    Standard,
    /// Standard and both halfway to fine-tuned.
    Full,
}

/// Who weighs the two streams.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RouterKind {
    /// Familiarity (science §8.3).
    #[default]
    Familiarity,
    /// The specialist's confidence (FedPrism).
    Fedprism,
    /// The specialist is always heard alone.
    Specialist,
    /// One stream.
    None,
}

/// Who trains the columns that statistics feed.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnsTrainedBy {
    /// The host alone, on its auxiliary data.
    #[default]
    Host,
    /// Every board (Conditional). Their updates give the statistics away.
    Boards,
}

/// All switches.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyper {
    /// What a board shares.
    pub profile: Profile,
    /// Overrides the profile's scope.
    pub scope: Option<Reach>,
    /// Overrides the profile's prototype.
    pub prototype: Option<Prototype>,
    /// A board starts each round from the host's teacher head, not from its own (`private_head`).
    pub teacher_start: bool,
    /// Number of clusters (K).
    pub clusters: u16,
    /// Clusters in a board's mix (m); 0: all.
    pub top: u16,
    /// Rounds between clusterings.
    pub recluster: u32,
    /// Temperature of the assignment (τ).
    pub tau: f32,
    /// α before the first round, where a rule learns it.
    pub alpha: f32,
    /// A board tests whether to start from the global part or its mix; off: always the mix. Needs `alpha_rule = "choice"`.
    pub client_choice: bool,
    /// In-loop personal parts of FedPrism.
    pub streams: Rules,
    /// The loss is CE(z + r, y) with the board's log prior r.
    pub prior_correction: bool,
    /// Weight of distillation from the teacher (λ_KD).
    pub distill: f32,
    /// Its temperature (T).
    pub distill_temperature: f32,
    /// Pull of the backbone towards the start (μ).
    pub proximal: f32,
    /// The auxiliary data take part in every round.
    pub aux_node: bool,
    /// When the teacher is calibrated.
    pub recalibrate: Recalibrate,
    /// Head epochs of a calibration.
    pub calibration_epochs: u32,
    /// Share of the rounds, at the end, whose mean is published.
    pub tail: f32,
    /// How deep personalisation goes.
    pub mixture: Mixture,
    /// Head-only epochs of adaptation.
    pub ea_epochs: u32,
    /// The same for a board that never took part.
    pub newcomer_epochs: u32,
    /// Whole-net epochs of `mixture = "full"`.
    pub finetune_epochs: u32,
    /// Who weighs the two streams.
    pub router: RouterKind,
    /// Share ε of unfamiliar inputs expected; `docs/results` has what other values keep and cost.
    pub epsilon: f32,
    /// Temperature of FedPrism's router.
    pub router_temperature: f32,
    /// What the network is conditioned on.
    pub statistics: Conditioning,
    /// Who trains the columns that this feeds.
    pub columns: ColumnsTrainedBy,
    /// Local training of a round.
    pub train: Training,
}

impl Default for Hyper {
    fn default() -> Self {
        let streams = Rules {
            private_delta: false,
            specialist: false,
            alpha_rule: AlphaRule::Choice,
            ..Rules::default()
        };
        Self {
            profile: Profile::PrivateHead,
            scope: None,
            prototype: None,
            teacher_start: true,
            clusters: 4,
            top: 0,
            recluster: 4,
            tau: 0.1,
            alpha: 0.5,
            client_choice: true,
            streams,
            prior_correction: true,
            distill: 0.0,
            distill_temperature: 2.0,
            proximal: 0.0,
            aux_node: true,
            recalibrate: Recalibrate::End,
            calibration_epochs: 5,
            tail: 0.25,
            mixture: Mixture::Standard,
            ea_epochs: 5,
            newcomer_epochs: 10,
            finetune_epochs: 4,
            router: RouterKind::Familiarity,
            epsilon: 0.03,
            router_temperature: 1.0,
            statistics: Conditioning::default(),
            columns: ColumnsTrainedBy::Host,
            train: Training::default(),
        }
    }
}

impl Hyper {
    /// What is decomposed and uploaded.
    pub fn reach(&self) -> Reach {
        self.scope.unwrap_or(match self.profile {
            Profile::PrivateHead => Reach::Backbone,
            Profile::SharedHead => Reach::Whole,
        })
    }

    /// What clients are clustered by.
    pub fn prototype(&self) -> Prototype {
        self.prototype.unwrap_or(match self.profile {
            Profile::PrivateHead => Prototype::Projection,
            Profile::SharedHead => Prototype::Head,
        })
    }

    /// Clusters in a mix.
    pub fn width(&self) -> usize {
        usize::from(if self.top == 0 { self.clusters } else { self.top })
    }

    /// Whether boards must not touch the columns that statistics feed.
    pub fn freezes_columns(&self) -> bool {
        self.statistics.kind != Statistic::None && self.columns == ColumnsTrainedBy::Host
    }

    /// Adaptation's lengths.
    pub fn adaptation(&self) -> Adaptation {
        Adaptation {
            kind: Adapt::None,
            epochs: self.ea_epochs,
            newcomer_epochs: self.newcomer_epochs,
            finetune_epochs: self.finetune_epochs,
        }
    }

    /// What boards let out.
    pub fn discloses(&self) -> Disclosure {
        let columns = if self.statistics.kind.is_measured() && !self.freezes_columns() {
            Disclosure::Statistics
        } else {
            Disclosure::Nothing
        };
        let whole = self.reach() == Reach::Whole || self.prototype() == Prototype::Weights;
        columns.max(if whole { Disclosure::FullModel } else { Disclosure::Backbone })
    }

    /// Refuses what is out of range or doesn't go together.
    ///
    /// # Errors
    /// [`FedError::Hyper`].
    pub fn check(&self) -> Result<(), FedError> {
        within("clusters", self.clusters, 1..=48, "must be 1 to 48")?;
        within("top", self.top, 0..=48, "must be at most 48 (0: all)")?;
        within("recluster", self.recluster, 1..=100_000, "must be at least 1")?;
        within("tau", self.tau, 1e-4..=100.0, "must be 0.0001 to 100")?;
        within("alpha", self.alpha, 0.0..=1.0, "must be 0 to 1")?;
        within("distill", self.distill, 0.0..=1.0, "must be 0 to 1")?;
        within("distill_temperature", self.distill_temperature, 0.01..=100.0, "must be 0.01 to 100")?;
        within("proximal", self.proximal, 0.0..=100.0, "must be 0 to 100")?;
        within("calibration_epochs", self.calibration_epochs, 0..=1000, "must be at most 1000")?;
        within("tail", self.tail, 0.0..=1.0, "must be 0 to 1")?;
        within("epsilon", self.epsilon, 1e-6..=0.999_999, "must lie between 0 and 1")?;
        within("router_temperature", self.router_temperature, 0.01..=100.0, "must be 0.01 to 100")?;
        self.adaptation().check()?;
        self.streams.check()?;
        self.train.check()?;
        self.check_combination()
    }

    fn check_combination(&self) -> Result<(), FedError> {
        let refuse = |name, value: String, must| Err(FedError::Hyper { name, value, must });
        if self.reach() == Reach::Backbone && self.prototype() == Prototype::Head {
            return refuse("prototype", "head".into(), "a backbone's update has no head: use \"projection\"");
        }
        let learned = self.streams.alpha_rule != AlphaRule::Choice;
        if learned && self.clusters > 1 && self.prototype() != Prototype::Weights {
            let must = "only \"weights\" can be read where the start is a mix that the host does not know";
            return refuse("prototype", format!("{:?}", self.prototype()), must);
        }
        Ok(())
    }
}
