//! What a board of `cpct` knows and receives in a task.
use super::hyper::{Hyper, Reach};
use super::{Cpct, Task};
use crate::fed::choose;
use crate::fed::conditioning::Columns;
use crate::fed::scope::Shared;
use crate::fed::{Down, FedError, Kept, mix};
use crate::nn::Trainer;
use crate::params::{BackboneScope, Head, HeadScope, ModelSpec, Params, Whole};
use std::sync::Arc;

/// A board's view of its own world.
pub(super) struct View {
    /// Its log prior, where the loss is corrected by it.
    pub(super) prior: Option<Vec<f32>>,
    pub(super) measured: Option<Vec<f32>>,
    /// Its conditioning vector.
    pub(super) vector: Vec<f32>,
    /// What it feeds: the vector, or zeros where that is folded into the bias.
    pub(super) fed: Vec<f32>,
}

/// The shared parts of a task. Backbones carry a zero head until one is seated on them.
pub(super) struct Received {
    pub(super) reach: Reach,
    pub(super) global: Params,
    pub(super) clusters: Vec<Params>,
    pub(super) mix: Option<Params>,
    pub(super) initial_head: Option<Head>,
    pub(super) teacher: Option<Head>,
    pub(super) calibrated: Option<Head>,
    pub(super) initial: Option<Params>,
}

impl Received {
    pub(super) fn of(
        hyper: &Hyper,
        down: &Down<Task>,
        view: &View,
        spec: &Arc<ModelSpec>,
    ) -> Result<Self, FedError> {
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
    pub(super) fn seat(&self, part: &Params, head: &Head) -> Params {
        match self.reach {
            Reach::Backbone => BackboneScope::complete(&part.backbone(), head),
            Reach::Whole => part.clone(),
        }
    }

    /// The board's own head, or the first of these that came.
    pub(super) fn head_or(&self, own: Option<&Kept<HeadScope>>, others: [Option<&Head>; 3]) -> Head {
        let first = others.into_iter().flatten().next();
        own.map(|h| &h.0).or(first).cloned().unwrap_or_else(|| Head::zeros(self.global.spec()))
    }

    /// B of science §8.3: the calibrated teacher on the global part, or the raw teacher on the chosen one where that is at least ten
    /// points better over the classes that the board has. Nothing without a teacher.
    pub(super) fn generalist(
        &self,
        part: Option<&Params>,
        view: &View,
        trainer: &mut dyn Trainer,
    ) -> Result<Option<Params>, FedError> {
        let chosen = part.unwrap_or(&self.global);
        let (shared, personal) = match self.reach {
            Reach::Whole => (self.global.clone(), chosen.clone()),
            Reach::Backbone => {
                let Some(raw) = &self.teacher else { return Ok(None) };
                (self.seat(&self.global, self.calibrated.as_ref().unwrap_or(raw)), self.seat(chosen, raw))
            }
        };
        if part.is_none() || !choose::clearly_better(&personal, &shared, &view.fed, trainer)? {
            return Ok(Some(shared));
        }
        Ok(Some(personal))
    }
}
