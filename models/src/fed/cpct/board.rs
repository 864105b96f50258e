//! The board's half of `cpct`.
use super::answer::{Adopted, Answer};
use super::hyper::{Hyper, Reach};
use super::received::{Received, View};
use super::{Cpct, Task};
use crate::fed::adapt::Setting;
use crate::fed::choose::Test;
use crate::fed::fedprism::final_layer;
use crate::fed::prior::log_prior;
use crate::fed::scope::Shared;
use crate::fed::streams::{AlphaRule, Round, Streams};
use crate::fed::{Down, Either, FedError, Fitted, Kept, Predictor, Site, Start, Update, pfedkdh};
use crate::nn::{Loss, Trained, Trainer};
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
        let seated = |part: Option<&Params>| got.seat(part.unwrap_or(&got.global), &head);
        let nearest = got.clusters.get(usize::from(down.task.nearest));
        let (global, mix, nearest) = (seated(None), seated(got.mix.as_ref()), seated(nearest));
        let personal = match got.reach {
            Reach::Backbone => Mask::part(&spec, Part::Backbone),
            Reach::Whole => Mask::all(&spec),
        };
        let (initial, train) = (got.initial.as_ref(), hyper.train);
        let (end, personal, conditioning) = (&global, &personal, &view.fed[..]);
        let mut at = Round {
            global: &global,
            mix: &mix,
            nearest: &nearest,
            initial,
            end,
            train,
            personal,
            conditioning,
            site,
        };
        let mut streams = self.streams.clone();
        streams.before(&hyper.streams, &at, trainer)?;
        let began = self.choice(hyper, &got, &head, &view, site, trainer)?;
        let start = shared_start(&streams, hyper, &at, began);
        let trained = shared_phase(hyper, &start, &got, &view, site, trainer)?;
        at.end = &trained.params;
        streams = streams.after(&hyper.streams, &at, trainer)?;
        let up = upload(got.reach, &trained.params, &start, trainer.counts().total(), began, &down.task);
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
        let part = chosen.checked_sub(1).and_then(|i| parts.get(i).copied());
        let generalist = got.generalist(part, &view, trainer)?;
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

/// The shared phase: E epochs on cross-entropy with the board's prior, and whatever else is switched on.
fn shared_phase(
    hyper: &Hyper,
    start: &Params,
    got: &Received,
    view: &View,
    site: Site,
    trainer: &mut dyn Trainer,
) -> Result<Trained, FedError> {
    let (everything, pulled) = (Mask::all(start.spec()), Mask::part(start.spec(), Part::Backbone));
    let teacher = got.teacher.as_ref().map(|t| got.seat(&got.global, t));
    let (weight, temperature) = (hyper.distill, hyper.distill_temperature);
    let taught = pfedkdh::taught(teacher.as_ref(), start, &pulled, weight, temperature, hyper.proximal);
    let loss = Loss { prior: view.prior.as_deref(), ..taught };
    Ok(trainer.train(start, &hyper.train.job(&everything, site.key(Purpose::Batches), loss, &view.fed))?)
}

fn upload(reach: Reach, end: &Params, start: &Params, samples: u32, began: Start, task: &Task) -> Either {
    fn of<S: Shared>(
        end: &Params,
        start: &Params,
        samples: u32,
        began: Start,
        prototype: Vec<f32>,
    ) -> Either {
        let delta = S::of(end).minus(&S::of(start));
        S::wrap(Update { start: began, prototype, ..Update::new(delta, samples) })
    }
    let prototype = if task.prototype { final_layer(end) } else { Vec::new() };
    match reach {
        Reach::Backbone => of::<BackboneScope>(end, start, samples, began, prototype),
        Reach::Whole => of::<Whole>(end, start, samples, began, prototype),
    }
}

fn test<'a>(hyper: &Hyper, view: &'a View, site: Site) -> Test<'a> {
    Test { train: hyper.train, prior: view.prior.as_deref(), conditioning: &view.fed, site }
}
