//! The host's half of `cpct`, for either scope.
use super::hyper::{Hyper, Prototype, Recalibrate};
use super::{Heads, Task};
use crate::fed::average::Node;
use crate::fed::cluster::Clustering;
use crate::fed::conditioning::Columns;
use crate::fed::fedprism::final_layer;
use crate::fed::prior::log_prior;
use crate::fed::prism::Prism;
use crate::fed::scope::Shared;
use crate::fed::sketch::remembered;
use crate::fed::streams::AlphaRule;
use crate::fed::tail::{TailMean, in_tail};
use crate::fed::{
    Either, Extent, FedError, Host, Kept, Plan, Replies, SharedPart, Site, Start, Update, argmax, node,
    recalibrate,
};
use crate::id::{AUXILIARY, ClientId, RoundId};
use crate::nn::Trainer;
use crate::params::{Entry, Head, HeadScope, ModelSpec, Params, Scope, Values, Whole};
use crate::stats::Normaliser;
use crate::tensor::rng::{Key, Purpose};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What the host keeps.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound = "")]
pub struct State<S: Scope> {
    /// The round to come.
    round: RoundId,
    /// Global part, cluster parts, assignments.
    pub prism: Prism<S>,
    /// The head that boards begin with.
    initial_head: Kept<HeadScope>,
    /// The teacher head φ, as the last round left it.
    pub(super) teacher: Option<Kept<HeadScope>>,
    /// φ calibrated on the published global part.
    calibrated: Option<Kept<HeadScope>>,
    /// The initial model, where boards train a specialist.
    initial: Option<Kept<Whole>>,
    /// What makes statistics comparable.
    normaliser: Option<Normaliser>,
    /// The auxiliary set's own measured statistic.
    measured: Option<Vec<f32>>,
    /// Means over the last rounds.
    tail: Option<Tail<S>>,
}

/// Running means over the tail.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound = "")]
struct Tail<S: Scope> {
    global: TailMean<S>,
    clusters: Vec<TailMean<S>>,
    teacher: Option<TailMean<HeadScope>>,
}

/// The auxiliary node's part in a round.
struct NodeResult<S: Scope> {
    update: Update<S>,
    end: Params,
}

impl<S: Shared> State<S> {
    pub(super) fn open(
        hyper: &Hyper,
        init: &Params,
        site: Site,
        host: &mut dyn Host,
    ) -> Result<Self, FedError> {
        hyper.statistics.check(init.spec())?;
        let initial_head: Kept<HeadScope> = init.head().into();
        let normaliser = hyper.statistics.normaliser(site, host.auxiliary());
        let measured = host.auxiliary().and_then(|aux| hyper.statistics.measured(None, site, aux));
        let taught = S::EXTENT == Extent::Backbone && hyper.aux_node;
        let has_teacher = taught || hyper.distill > 0.0 || hyper.recalibrate == Recalibrate::Every;
        let teacher = (has_teacher && host.auxiliary().is_some()).then(|| initial_head.clone());
        let initial = hyper.streams.specialist.then(|| init.clone().into());
        let prism = Prism::new(S::of(init));
        let state = Self {
            round: RoundId(0),
            prism,
            initial_head,
            teacher,
            calibrated: None,
            initial,
            normaliser,
            measured,
            tail: None,
        };
        state.recalibrated_every(hyper, site, host)
    }

    /// Global part, cluster parts, initial head, teacher, calibrated teacher, initial model: those there are.
    pub(super) fn parts(&self) -> Vec<SharedPart<'_>> {
        let mut parts = self.prism.parts(S::EXTENT);
        parts.push(SharedPart::of(Extent::Head, &self.initial_head));
        let heads = self.teacher.iter().chain(&self.calibrated);
        parts.extend(heads.map(|h| SharedPart::of(Extent::Head, h)));
        parts.extend(self.initial.iter().map(|m| SharedPart::of(Extent::Model, m)));
        parts
    }

    /// What a board of the cohort trains on.
    pub(super) fn configure(&self, hyper: &Hyper, to: ClientId) -> Plan<Task> {
        let from_teacher = hyper.teacher_start && self.teacher.is_some();
        let heads = Heads {
            initial: S::EXTENT == Extent::Backbone && !from_teacher,
            teacher: self.teacher.is_some() && (S::EXTENT == Extent::Backbone || hyper.distill > 0.0),
            calibrated: false,
        };
        let prototype =
            hyper.prototype() == Prototype::Weights && Clustering::is_due(self.round, hyper.recluster);
        self.plan(self.prism.mix_of(to, hyper.width()), &Task { heads, prototype, ..Task::default() })
    }

    /// What any board takes over: one that was never clustered gets every cluster part, to compare them itself (science §5 step 8).
    pub(super) fn offer(&self, hyper: &Hyper, to: ClientId) -> Plan<Task> {
        let stranger = !self.prism.knows(to);
        let m = if stranger { self.prism.clusters.len().max(1) } else { hyper.width() };
        let heads = Heads {
            initial: S::EXTENT == Extent::Backbone && self.teacher.is_none(),
            teacher: self.teacher.is_some(),
            calibrated: self.calibrated.is_some(),
        };
        let each = stranger && hyper.streams.alpha_rule == AlphaRule::Choice;
        self.plan(self.prism.mix_of(to, m), &Task { heads, each, ..Task::default() })
    }

    fn plan(&self, mix: Vec<(usize, f32)>, task: &Task) -> Plan<Task> {
        let heads_from = self.prism.clusters.len() + 1;
        let teacher = heads_from + 1;
        let calibrated = teacher + usize::from(self.teacher.is_some());
        let model = calibrated + usize::from(self.calibrated.is_some());
        let named = [
            (task.heads.initial, heads_from),
            (task.heads.teacher, teacher),
            (task.heads.calibrated, calibrated),
            (self.initial.is_some(), model),
        ];
        let clusters = mix.iter().map(|(k, _)| k + 1);
        let others = named.into_iter().filter_map(|(wanted, at)| wanted.then_some(at));
        let parts = std::iter::once(0).chain(clusters).chain(others).map(|at| at as u16).collect();
        let mix: Vec<f32> = mix.into_iter().map(|(_, weight)| weight).collect();
        let nearest = if mix.is_empty() { 0 } else { argmax(&mix) as u16 };
        let (specialist, normaliser) = (self.initial.is_some(), self.normaliser.clone());
        Plan { parts, task: Task { mix, nearest, specialist, normaliser, ..task.clone() } }
    }

    /// One round: fold the updates and the node's own, cluster, hand the node's head on as the teacher.
    pub(super) fn next(
        &self,
        hyper: &Hyper,
        site: Site,
        replies: &mut dyn Replies<Either>,
        host: &mut dyn Host,
    ) -> Result<Self, FedError> {
        let own = self.node_round(hyper, site, host)?;
        let node = own.as_ref().map(|n| Node { id: AUXILIARY, update: &n.update });
        let mut prism = self.prism.folded(replies, S::update, node)?;
        self.keep_columns(hyper, &mut prism, own.as_ref());
        self.note_prototypes(hyper, site, &mut prism, replies, own.as_ref())?;
        if Clustering::is_due(site.round, hyper.recluster) {
            prism.recluster(&Clustering {
                clusters: hyper.clusters.into(),
                temperature: hyper.tau,
                key: Key { round: site.round.0, ..Key::new(site.seed, Purpose::Cluster) },
            });
        }
        let teacher = match (&self.teacher, own) {
            (Some(_), Some(own)) if S::EXTENT == Extent::Backbone => Some(own.end.head().into()),
            (kept, _) => kept.clone(),
        };
        let next = Self { round: site.round.next(), prism, teacher, ..self.clone() };
        let mut next = next.recalibrated_every(hyper, site, host)?;
        if in_tail(site.round, host.rounds(), hyper.tail) {
            next.tail = Some(next.tail_with(self.tail.as_ref()));
        }
        Ok(next)
    }

    /// The auxiliary set trained as one more client, from the global part and the teacher head.
    fn node_round(
        &self,
        hyper: &Hyper,
        site: Site,
        host: &mut dyn Host,
    ) -> Result<Option<NodeResult<S>>, FedError> {
        let Some(aux) = host.auxiliary().filter(|_| hyper.aux_node) else { return Ok(None) };
        let start = S::complete(&self.prism.global, self.teacher.as_ref().unwrap_or(&self.initial_head));
        let (prior, vector) = self.view(hyper, site, aux);
        let end = node::trained(&start, hyper.train, prior.as_deref(), &vector, site, aux)?.params;
        let delta = S::of(&end).minus(&S::of(&start));
        Ok(Some(NodeResult { update: Update::new(delta, aux.counts().total()), end }))
    }

    /// The auxiliary set's log prior and conditioning vector.
    fn view(&self, hyper: &Hyper, site: Site, aux: &dyn Trainer) -> (Option<Vec<f32>>, Vec<f32>) {
        let site = Site { client: AUXILIARY, ..site };
        let prior = hyper.prior_correction.then(|| log_prior(aux.counts()));
        let vector =
            hyper.statistics.vector(self.measured.as_ref(), self.normaliser.as_ref(), site, aux.spec());
        (prior, vector)
    }

    /// The columns that statistics feed are trained by the host alone: they take the node's change whole, everywhere.
    fn keep_columns(&self, hyper: &Hyper, prism: &mut Prism<S>, own: Option<&NodeResult<S>>) {
        let Some(columns) = Columns::of(self.prism.global.spec()).filter(|_| hyper.freezes_columns()) else {
            return;
        };
        for range in columns.ranges() {
            let trained =
                own.map_or(&self.prism.global.values()[range.clone()], |n| &n.end.values()[range.clone()]);
            for part in std::iter::once(&mut prism.global).chain(&mut prism.clusters) {
                part.0.values_mut()[range.clone()].copy_from_slice(trained);
            }
        }
    }

    /// Remembers what every reply says about its client (science §5 step 5), measured against the global part of the round's
    /// start: against its own start, a client in a cluster would no longer show its cluster. An update that doesn't cover the layer says
    /// nothing of this: the client keeps its last prototype, and one that never had any counts in equal shares to every cluster.
    fn note_prototypes(
        &self,
        hyper: &Hyper,
        site: Site,
        prism: &mut Prism<S>,
        replies: &mut dyn Replies<Either>,
        own: Option<&NodeResult<S>>,
    ) -> Result<(), FedError> {
        let layer = prototype_layer(hyper.prototype(), self.prism.global.spec());
        let card = self.prism.global.spec().card();
        for id in replies.ids().to_vec() {
            replies.visit(id, &mut |reply| {
                if let Some(h) = S::update(reply).and_then(|up| self.prototype(hyper, id, up, layer)) {
                    prism.assignments.note(id, remembered(h, card, site.seed));
                }
            })?;
        }
        if let Some(own) = own {
            let h = match hyper.prototype() {
                Prototype::Weights => Some(final_layer(&own.end)),
                _ => self.prototype(hyper, AUXILIARY, &own.update, layer),
            };
            h.into_iter().for_each(|h| prism.assignments.note(AUXILIARY, remembered(h, card, site.seed)));
        }
        Ok(())
    }

    /// h_i = end_i − θ_G on `layer`, read off the delta and the bit that says where it started; nothing where the update doesn't cover it.
    fn prototype(
        &self,
        hyper: &Hyper,
        id: ClientId,
        up: &Update<S>,
        layer: Option<&Entry>,
    ) -> Option<Vec<f32>> {
        if layer.is_some_and(|e| !up.covers(&e.name)) {
            return None;
        }
        if hyper.prototype() == Prototype::Weights {
            return (!up.prototype.is_empty()).then(|| up.prototype.clone());
        }
        let at = layer.map_or(0..0, |e| place::<S>(e, up.delta.spec()));
        let mut h = up.delta.values()[at.clone()].to_vec();
        if up.start == Start::Mix {
            let start = self.prism.start_of(id, hyper.width());
            let (from, global) = (&start.values()[at.clone()], &self.prism.global.values()[at]);
            h.iter_mut().zip(from.iter().zip(global)).for_each(|(h, (m, g))| *h += m - g);
        }
        Some(h)
    }

    fn recalibrated_every(self, hyper: &Hyper, site: Site, host: &mut dyn Host) -> Result<Self, FedError> {
        if hyper.recalibrate != Recalibrate::Every {
            return Ok(self);
        }
        let teacher = self.calibrated_head(hyper, site, host)?.map(Kept::from);
        Ok(Self { teacher, ..self })
    }

    /// The teacher, calibrated on the global part.
    fn calibrated_head(
        &self,
        hyper: &Hyper,
        site: Site,
        host: &mut dyn Host,
    ) -> Result<Option<Head>, FedError> {
        let (Some(teacher), Some(aux)) = (&self.teacher, host.auxiliary()) else { return Ok(None) };
        let model = Params::join(&S::complete(&self.prism.global, teacher).backbone(), teacher);
        let (prior, vector) = self.view(hyper, site, aux);
        let epochs = hyper.calibration_epochs;
        recalibrate::recalibrated(&model, &vector, prior.as_deref(), hyper.train, epochs, site, aux).map(Some)
    }

    fn tail_with(&self, so_far: Option<&Tail<S>>) -> Tail<S> {
        let cluster =
            |(k, part): (usize, &Kept<S>)| TailMean::with(so_far.and_then(|t| t.clusters.get(k)), part);
        let teacher = |t: &Kept<HeadScope>| TailMean::with(so_far.and_then(|s| s.teacher.as_ref()), t);
        Tail {
            global: TailMean::with(so_far.map(|t| &t.global), &self.prism.global),
            clusters: self.prism.clusters.iter().enumerate().map(cluster).collect(),
            teacher: self.teacher.as_ref().map(teacher),
        }
    }

    /// What is published: the tail's means, and the teacher calibrated on the global one.
    pub(super) fn finished(&self, hyper: &Hyper, site: Site, host: &mut dyn Host) -> Result<Self, FedError> {
        let mut last = self.clone();
        if let Some(tail) = &self.tail {
            let kept = |mean: &Values<S>| Kept::from(mean.clone());
            last.prism.global = kept(tail.global.mean());
            last.prism.clusters = tail.clusters.iter().map(|t| kept(t.mean())).collect();
            last.teacher = tail.teacher.as_ref().map(|t| t.mean().clone().into());
        }
        if hyper.recalibrate == Recalibrate::End {
            last.calibrated = last.calibrated_head(hyper, site, host)?.map(Kept::from);
        }
        Ok(last)
    }
}

/// The layer that a prototype is read from.
fn prototype_layer(kind: Prototype, spec: &ModelSpec) -> Option<&Entry> {
    match kind {
        Prototype::Projection => spec.projection(),
        Prototype::Head | Prototype::Weights => spec.head_weight(),
    }
}

/// Where a layer is in the scope's own values.
fn place<S: Scope>(layer: &Entry, spec: &ModelSpec) -> Range<usize> {
    let offset = S::range(spec).start;
    layer.range.start.saturating_sub(offset)..layer.range.end.saturating_sub(offset)
}

/// What an update may carry beside its values.
pub(super) fn uplink(hyper: &Hyper, spec: &ModelSpec) -> (Extent, usize) {
    let extent = match hyper.reach() {
        super::hyper::Reach::Backbone => Extent::Backbone,
        super::hyper::Reach::Whole => Extent::Model,
    };
    let sent = hyper.prototype() == Prototype::Weights;
    (extent, if sent { spec.head_weight().map_or(0, |e| e.range.len()) } else { 0 })
}
