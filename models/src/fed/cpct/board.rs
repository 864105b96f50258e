//! The board's half of `cpct`.
use super::answer::{Adopted, Answer};
use super::hyper::{Hyper, Reach};
use super::{Cpct, Task};
use crate::fed::adapt::Setting;
use crate::fed::choose::{self, Test};
use crate::fed::conditioning::Columns;
use crate::fed::fedprism::final_layer;
use crate::fed::prior::log_prior;
use crate::fed::scope::Shared;
use crate::fed::streams::{AlphaRule, Round, Streams};
use crate::fed::{Down, FedError, Fitted, Kept, Predictor, Site, Start, Update, mix, pfedkdh};
use crate::nn::{Loss, Trainer};
use crate::params::{BackboneScope, Head, HeadScope, Mask, ModelSpec, Params, Part, Whole};
use crate::tensor::rng::Purpose;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A board's private state.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Client {
    /// Whether it ever trained for the host.
    took_part: bool,
    /// Its own head, as the last round left it (`private_head`).
    head: Option<Kept<HeadScope>>,
    /// In-loop personal parts.
    streams: Streams,
    /// Its measured statistic.
    measured: Option<Vec<f32>>,
    /// What it last took over.
    adopted: Option<Adopted>,
    /// What adaptation made of that.
    answer: Option<Answer>,
}

/// A board's view of its own world.
struct View {
    /// Its log prior, where the loss is corrected by it.
    prior: Option<Vec<f32>>,
    measured: Option<Vec<f32>>,
    /// Its conditioning vector.
    vector: Vec<f32>,
    /// What it feeds: the vector, or zeros where that is folded into the bias.
    fed: Vec<f32>,
}

/// The shared parts of a task. Backbones carry a zero head until one is seated on them.
struct Received {
    reach: Reach,
    global: Params,
    clusters: Vec<Params>,
    mix: Option<Params>,
    initial_head: Option<Head>,
    teacher: Option<Head>,
    calibrated: Option<Head>,
    initial: Option<Params>,
}

impl Received {
    fn of(hyper: &Hyper, down: &Down<Task>, view: &View, spec: &Arc<ModelSpec>) -> Result<Self, FedError> {
        let (k, task, reach) = (down.task.mix.len(), &down.task, hyper.reach());
        let columns = Columns::of(spec).filter(|_| hyper.freezes_columns());
        let load = |at| -> Result<Params, FedError> {
            let part = match reach {
                Reach::Backbone => Params::join(&down.part::<Cpct, _>(at, spec)?, &Head::zeros(spec)),
                Reach::Whole => down.part::<Cpct, _>(at, spec)?,
            };
            Ok(columns.as_ref().map_or(part.clone(), |c| c.folded(&part, &view.vector)))
        };
        let clusters = (1..=k).map(load).collect::<Result<Vec<_>, _>>()?;
        let mut at = k;
        let mut head = |comes: bool| -> Result<Option<Head>, FedError> {
            at += usize::from(comes);
            if comes { down.part::<Cpct, _>(at, spec).map(Some) } else { Ok(None) }
        };
        let (initial_head, teacher, calibrated) =
            (head(task.heads.initial)?, head(task.heads.teacher)?, head(task.heads.calibrated)?);
        let initial = if task.specialist { Some(down.part::<Cpct, Whole>(at + 1, spec)?) } else { None };
        let mix = mix::mixed(&clusters, &task.mix);
        Ok(Self { reach, global: load(0)?, clusters, mix, initial_head, teacher, calibrated, initial })
    }

    /// A part with a head on it; a whole model keeps its own.
    fn seat(&self, part: &Params, head: &Head) -> Params {
        match self.reach {
            Reach::Backbone => BackboneScope::complete(&part.backbone(), head),
            Reach::Whole => part.clone(),
        }
    }

    /// The board's own head, or the first of these that came.
    fn head_or(&self, own: Option<&Kept<HeadScope>>, others: [Option<&Head>; 3]) -> Head {
        let first = others.into_iter().flatten().next();
        own.map(|h| &h.0).or(first).cloned().unwrap_or_else(|| Head::zeros(self.global.spec()))
    }
}

impl Client {
    pub(super) fn new(hyper: &Hyper) -> Self {
        let streams = Streams::new(hyper.alpha);
        Self { took_part: false, head: None, streams, measured: None, adopted: None, answer: None }
    }

    fn view(&self, hyper: &Hyper, task: &Task, site: Site, trainer: &dyn Trainer) -> Result<View, FedError> {
        hyper.statistics.check(trainer.spec())?;
        let measured = hyper.statistics.measured(self.measured.as_ref(), site, trainer);
        let vector =
            hyper.statistics.vector(measured.as_ref(), task.normaliser.as_ref(), site, trainer.spec());
        let fed = if hyper.freezes_columns() { vec![0.0; vector.len()] } else { vector.clone() };
        Ok(View { prior: hyper.prior_correction.then(|| log_prior(trainer.counts())), measured, vector, fed })
    }

    /// A round (DESIGN §4): choose a start, seat the teacher head on it, train with the prior in the loss, keep the head, send what
    /// the shared part became.
    pub(super) fn fitted(
        &self,
        hyper: &Hyper,
        down: &Down<Task>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Fitted<Cpct>, FedError> {
        let (spec, view) = (trainer.spec().clone(), self.view(hyper, &down.task, site, trainer)?);
        let got = Received::of(hyper, down, &view, &spec)?;
        let own = self.head.as_ref().filter(|_| !(hyper.teacher_start && down.task.heads.teacher));
        let head = got.head_or(own, [got.initial_head.as_ref(), got.teacher.as_ref(), None]);
        let (global, mix) = (got.seat(&got.global, &head), got.mix.as_ref().map(|m| got.seat(m, &head)));
        let (everything, pulled) = (Mask::all(&spec), Mask::part(&spec, Part::Backbone));
        let mut at = Round {
            global: &global,
            mix: mix.as_ref().unwrap_or(&global),
            nearest: got.clusters.get(usize::from(down.task.nearest)).unwrap_or(&got.global),
            initial: got.initial.as_ref(),
            end: &global,
            train: hyper.train,
            personal: if got.reach == Reach::Backbone { &pulled } else { &everything },
            conditioning: &view.fed,
            site,
        };
        let mut streams = self.streams.clone();
        streams.before(&hyper.streams, &at, trainer)?;
        let began = self.choice(hyper, &got, &head, &view, site, trainer)?;
        let start = shared_start(&streams, hyper, &at, began);
        let teacher = got.teacher.as_ref().map(|t| got.seat(&got.global, t)).filter(|_| hyper.distill > 0.0);
        let taught = pfedkdh::taught(
            teacher.as_ref(),
            &start,
            &pulled,
            hyper.distill,
            hyper.distill_temperature,
            hyper.proximal,
        );
        let loss = Loss { prior: view.prior.as_deref(), ..taught };
        let job = hyper.train.job(&everything, site.key(Purpose::Batches), loss, &view.fed);
        let trained = trainer.train(&start, &job)?;
        at.end = &trained.params;
        streams = streams.after(&hyper.streams, &at, trainer)?;
        let samples = trainer.counts().total();
        let up = match got.reach {
            Reach::Backbone => upload::<BackboneScope>(&trained.params, &start, samples, began, &down.task),
            Reach::Whole => upload::<Whole>(&trained.params, &start, samples, began, &down.task),
        };
        let base = got.seat(&shared_start(&streams, hyper, &at, began), &trained.params.head());
        let client = Self {
            took_part: true,
            head: (got.reach == Reach::Backbone).then(|| trained.params.head().into()),
            streams,
            measured: view.measured,
            adopted: Some(Adopted { base: base.into(), global: None, generalist: None, fed: view.fed }),
            answer: None,
        };
        Ok(Fitted { client, up, loss: trained.loss })
    }

    /// Where this round starts: the test of science §5 step 2, made with the board's own last head.
    fn choice(
        &self,
        hyper: &Hyper,
        got: &Received,
        head: &Head,
        view: &View,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Start, FedError> {
        let Some(mix) = got.mix.as_ref().filter(|_| hyper.streams.alpha_rule == AlphaRule::Choice) else {
            return Ok(Start::Global);
        };
        if !hyper.client_choice {
            return Ok(Start::Mix);
        }
        let own = self.head.as_ref().map_or(head, |h| &h.0);
        let candidates = [got.seat(&got.global, own), got.seat(mix, own)];
        let best = test(hyper, view, site).best(&candidates, trainer)?;
        Ok(if best == 0 { Start::Global } else { Start::Mix })
    }

    /// Takes the published parts over (science §5 steps 7 and 8): the test decides between the global part and the board's mix, or
    /// every cluster part where the host doesn't know the board.
    pub(super) fn adopted(
        &self,
        hyper: &Hyper,
        down: &Down<Task>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Self, FedError> {
        let (spec, view) = (trainer.spec().clone(), self.view(hyper, &down.task, site, trainer)?);
        let got = Received::of(hyper, down, &view, &spec)?;
        let (own, initial, raw) = (self.head.as_ref(), got.initial_head.as_ref(), got.teacher.as_ref());
        let on_global = got.head_or(own, [got.calibrated.as_ref(), raw, initial]);
        let on_cluster = got.head_or(own, [raw, initial, None]);
        let parts: Vec<&Params> =
            if down.task.each { got.clusters.iter().collect() } else { got.mix.iter().collect() };
        let mut candidates = vec![got.seat(&got.global, &on_global)];
        candidates.extend(parts.iter().map(|p| got.seat(p, &on_cluster)));
        let chosen = match (hyper.streams.alpha_rule, candidates.len()) {
            (_, 1) => 0,
            (AlphaRule::Choice, 2) if !hyper.client_choice => 1,
            (AlphaRule::Choice, _) => test(hyper, &view, site).best(&candidates, trainer)?,
            _ => {
                candidates[1] = candidates[0].mixed_with(&candidates[1], self.streams.alpha);
                1
            }
        };
        let part = chosen.checked_sub(1).and_then(|i| parts.get(i).copied()).unwrap_or(&got.global);
        let generalist = generalist(&got, part, chosen == 0, &view, trainer)?;
        let global =
            (chosen != 0 && hyper.streams.alpha_rule == AlphaRule::Choice).then(|| candidates[0].clone());
        let adopted = Adopted {
            base: self.streams.with_private(&candidates[chosen]).into(),
            global: global.map(Kept::from),
            generalist: generalist.map(Kept::from),
            fed: view.fed,
        };
        Ok(Self { measured: view.measured, adopted: Some(adopted), answer: None, ..self.clone() })
    }

    /// Personalisation on the board (science §5 step 7).
    pub(super) fn adapted(
        &self,
        hyper: &Hyper,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Self, FedError> {
        let adopted = self.adopted.as_ref().ok_or(FedError::NoModel)?;
        let setting = Setting {
            train: hyper.train,
            how: hyper.adaptation(),
            newcomer: !self.took_part,
            conditioning: &adopted.fed,
            site,
        };
        let answer = Answer::of(hyper, adopted, self.streams.specialist.as_ref(), &setting, trainer)?;
        Ok(Self { answer: Some(answer), ..self.clone() })
    }

    pub(super) fn predictor(&self, hyper: &Hyper, spec: &Arc<ModelSpec>) -> Result<Predictor, FedError> {
        let adopted = self.adopted.as_ref().ok_or(FedError::NoModel)?;
        Ok(super::answer::predictor(
            hyper,
            adopted,
            self.answer.as_ref(),
            self.streams.specialist.as_ref(),
            spec,
        ))
    }
}

/// Where shared training begins: what was chosen, or α's mix, and the private delta on it.
fn shared_start(streams: &Streams, hyper: &Hyper, at: &Round<'_>, began: Start) -> Params {
    match (hyper.streams.alpha_rule, began) {
        (AlphaRule::Choice, Start::Global) => streams.with_private(at.global),
        (AlphaRule::Choice, Start::Mix) => streams.with_private(at.mix),
        _ => streams.assembled(at.global, at.mix),
    }
}

fn upload<S: Shared>(
    end: &Params,
    start: &Params,
    samples: u32,
    began: Start,
    task: &Task,
) -> crate::fed::Either {
    let mut up = Update::new(S::of(end).minus(&S::of(start)), samples);
    up.start = began;
    if task.prototype {
        up.prototype = final_layer(end);
    }
    S::wrap(up)
}

fn test<'a>(hyper: &Hyper, view: &'a View, site: Site) -> Test<'a> {
    Test { train: hyper.train, prior: view.prior.as_deref(), conditioning: &view.fed, site }
}

/// B of science §8.3: the calibrated teacher on the global part, or the raw teacher on the chosen one where that is at least ten
/// points better over the classes that the board has. Nothing without a teacher.
fn generalist(
    got: &Received,
    part: &Params,
    is_global: bool,
    view: &View,
    trainer: &mut dyn Trainer,
) -> Result<Option<Params>, FedError> {
    let (shared, personal) = match got.reach {
        Reach::Whole => (got.global.clone(), part.clone()),
        Reach::Backbone => {
            let Some(raw) = &got.teacher else { return Ok(None) };
            (got.seat(&got.global, got.calibrated.as_ref().unwrap_or(raw)), got.seat(part, raw))
        }
    };
    if is_global || !choose::clearly_better(&personal, &shared, &view.fed, trainer)? {
        return Ok(Some(shared));
    }
    Ok(Some(personal))
}
