//! Steps of training.
use super::plan::{Plan, Purpose};
use super::update::{Pull, Update};
use super::{Fan, RUN, adding, backward, forward, lane, lanes, share};
use crate::nn::data::Source;
use crate::nn::graph::{Graph, NodeId};
use crate::nn::layer::{Barrier, Lane, Pass};
use crate::nn::optim::Sgd;
use crate::nn::{isa, loss};
use crate::tensor::rng::Key;
use std::ops::Range;

/// What logits are compared with; indices are those of the source.
#[derive(Clone, Copy, Debug)]
pub(in crate::nn) struct Targets<'a> {
    pub labels: &'a [u16],
    /// Log prior added to the logits.
    pub prior: Option<&'a [f32]>,
    pub teacher: Option<Teacher<'a>>,
}

/// A frozen teacher's logits by sample of the source.
#[derive(Clone, Copy, Debug)]
pub(in crate::nn) struct Teacher<'a> {
    pub logits: &'a [f32],
    pub temperature: f32,
    pub weight: f32,
}

/// One step's samples.
#[derive(Clone, Copy, Debug)]
pub(in crate::nn) struct Batch<'a> {
    pub source: Source<'a>,
    pub picks: &'a [usize],
    pub targets: Targets<'a>,
    pub conditioning: &'a [f32],
    pub dropout: Key,
    /// What one sample's loss counts: one over the number of samples.
    pub share: f64,
}

/// A network in training.
#[derive(Debug)]
pub(in crate::nn) struct Training {
    plan: Plan,
    logits: NodeId,
    params: Vec<f32>,
    velocity: Vec<f32>,
    packed: Vec<Vec<f32>>,
    lanes: Vec<Lane>,
    run: usize,
    update: Update,
    pull: Option<Pull>,
    sgd: Sgd,
    fan: Fan,
}

impl Training {
    /// Training of the entries in `trains` from `start`, in batches of at most `batch` samples. In evaluation mode
    /// (`training` false) dropout and batch statistics are off.
    pub(in crate::nn) fn new(
        graph: &Graph,
        start: &[f32],
        (trains, training): (&[bool], bool),
        sgd: Sgd,
        batch: usize,
        fan: Fan,
    ) -> Self {
        let plan = Plan::of(graph, Purpose { trains, training, wanted: graph.outputs() });
        let (batch, params) = (batch.max(1), plan.to_engine(start));
        let count = lanes(batch);
        // A smaller batch has fewer lanes: one lane alone must hold what is just too few for two.
        let most = (1..=batch).map(|n| n.div_ceil(lanes(n))).max().unwrap_or(1);
        let run = if plan.has_barrier() { most } else { RUN.min(most) };
        Self {
            logits: graph.outputs()[0],
            velocity: vec![0.0; params.len()],
            packed: vec![vec![]; plan.layers.len()],
            lanes: (0..count).map(|_| lane(&plan, most, run)).collect(),
            run,
            update: Update::of(&plan),
            pull: None,
            sgd,
            fan,
            plan,
            params,
        }
    }

    /// Adds a proximal term: `anchor` pulls with strength `mu` where `on` says.
    pub(in crate::nn) fn pull(&mut self, anchor: &[f32], mu: f32, on: Vec<Range<usize>>) {
        self.pull = Some(Pull { anchor: self.plan.to_engine(anchor), mu, on });
    }

    /// Whether a batch of one sample can't be trained on.
    pub(in crate::nn) fn needs_two(&self) -> bool {
        self.plan.has_barrier()
    }

    /// The parameters as they are now.
    pub(in crate::nn) fn params(&self) -> Vec<f32> {
        self.plan.to_natural(self.params.clone())
    }

    /// One step; returns the loss before it.
    pub(in crate::nn) fn step(&mut self, batch: &Batch<'_>) -> f64 {
        let (loss, count) = self.passes(batch);
        let (plan, packed, lanes) = (&self.plan, &self.packed[..], &self.lanes[..count]);
        let rule = (self.sgd, self.pull.as_ref());
        let pull =
            self.update.apply(self.fan, (plan, packed), lanes, rule, (&mut self.params, &mut self.velocity));
        loss + pull
    }

    /// Adds the gradient of the batch's loss to `to`, in the engine's order; returns the loss.
    pub(in crate::nn) fn accumulate(&mut self, batch: &Batch<'_>, to: &mut [f32]) -> f64 {
        let (loss, count) = self.passes(batch);
        self.update.accumulate(&self.plan, &self.packed, &self.lanes[..count], to);
        loss
    }

    /// A gradient back in the parameters' own order.
    pub(in crate::nn) fn natural(&self, gradient: Vec<f32>) -> Vec<f32> {
        self.plan.to_natural(gradient)
    }

    /// Forward and backward; returns the loss and the number of lanes.
    fn passes(&mut self, batch: &Batch<'_>) -> (f64, usize) {
        let (samples, count) = (batch.picks.len(), lanes(batch.picks.len()));
        for (placed, packed) in self.plan.layers.iter().zip(&mut self.packed) {
            placed.layer.prepare(isa(), &self.params, packed);
        }
        for (i, lane) in self.lanes[..count].iter_mut().enumerate() {
            lane.samples = share(samples, count, i).len();
            lane.loss = 0.0;
        }
        let last = self.plan.starts.len() - 1;
        for segment in 0..last {
            self.each(batch, count, |work, pass, lane| {
                if segment == 0 {
                    work.clear(lane);
                }
                forward(work.plan, work.plan.segment(segment), pass, lane);
                work.barrier(segment + 1).collect(pass, lane);
            });
            let layer = self.plan.starts[segment + 1];
            let (params, packed) = (&mut self.params, &mut self.packed[layer]);
            barrier(&self.plan, segment + 1).meet(&self.lanes[..count], samples, params, packed);
        }
        self.each(batch, count, |work, pass, lane| work.turn(last, batch, pass, lane));
        for segment in (0..last).rev() {
            let layer = self.plan.starts[segment + 1];
            let packed = &mut self.packed[layer];
            barrier(&self.plan, segment + 1).meet_backward(
                &self.lanes[..count],
                samples,
                &self.params,
                packed,
            );
            self.each(batch, count, |work, pass, lane| {
                let placed = &work.plan.layers[work.plan.starts[segment + 1]];
                adding(placed, lane, |lane| work.barrier(segment + 1).finish_backward(pass, lane));
                backward(work.plan, work.plan.segment(segment), pass, lane);
            });
        }
        (self.lanes[..count].iter().map(|lane| lane.loss).sum::<f64>() * batch.share, count)
    }

    /// Calls `f` for each lane, with a pass over all of its samples.
    fn each(&mut self, batch: &Batch<'_>, count: usize, f: impl Fn(&Work<'_>, &Pass<'_>, &mut Lane) + Sync) {
        let work = Work { plan: &self.plan, logits: self.logits, run: self.run };
        let (params, packed) = (&self.params[..], &self.packed[..]);
        self.fan.each(&mut self.lanes[..count], &|i, lane| {
            let mine = share(batch.picks.len(), count, i);
            let pass = Pass {
                isa: isa(),
                params,
                packed,
                source: batch.source,
                picks: &batch.picks[mine.clone()],
                first: mine.start,
                run: 0..mine.len(),
                conditioning: batch.conditioning,
                dropout: batch.dropout,
            };
            f(&work, &pass, lane);
        });
    }
}

fn barrier(plan: &Plan, segment: usize) -> &dyn Barrier {
    let layer = &plan.layers[plan.starts[segment]].layer;
    layer.barrier().expect("a segment but the first starts with a barrier")
}

/// What lanes share.
struct Work<'a> {
    plan: &'a Plan,
    logits: NodeId,
    run: usize,
}

impl Work<'_> {
    fn barrier(&self, segment: usize) -> &dyn Barrier {
        barrier(self.plan, segment)
    }

    /// Sets all sums to zero.
    fn clear(&self, lane: &mut Lane) {
        for own in &mut lane.own {
            own.grad.fill(0.0);
            own.sums.fill(0.0);
        }
    }

    /// The last segment forward, the loss, and the same segment backward: run by run if it is the only one.
    fn turn(&self, segment: usize, batch: &Batch<'_>, pass: &Pass<'_>, lane: &mut Lane) {
        if segment == 0 {
            self.clear(lane);
        }
        let mut pass = pass.clone();
        for start in (0..lane.samples).step_by(self.run.max(1)) {
            pass.run = start..lane.samples.min(start + self.run);
            forward(self.plan, self.plan.segment(segment), &pass, lane);
            self.loss(batch, &pass, lane);
            backward(self.plan, self.plan.segment(segment), &pass, lane);
        }
    }

    /// The loss of a run, and its gradient with respect to the logits.
    fn loss(&self, batch: &Batch<'_>, pass: &Pass<'_>, lane: &mut Lane) {
        let node = self.logits.0;
        let slot = self.plan.slots[node].expect("the logits are stored");
        let grads = &mut lane.grads[node];
        for s in pass.run.clone() {
            let logits = &mut lane.values[node][slot.value(pass, s)];
            let place = slot.grad(pass, s);
            let grad = if grads.is_empty() { &mut [][..] } else { &mut grads[place] };
            grad.fill(0.0);
            lane.loss += batch.targets.loss(pass.picks[s], logits, batch.share, grad);
        }
    }
}

impl Targets<'_> {
    /// The loss of one sample; adds `share` times its gradient. The prior is added to `logits` for good.
    fn loss(&self, sample: usize, logits: &mut [f32], share: f64, grad: &mut [f32]) -> f64 {
        let label = usize::from(self.labels[sample]);
        let Some(teacher) = self.teacher else {
            self.add_prior(logits);
            return loss::cross_entropy(logits, label, share, grad);
        };
        let (weight, classes) = (f64::from(teacher.weight), logits.len());
        let from = &teacher.logits[sample * classes..(sample + 1) * classes];
        let pulled = loss::distillation(logits, from, teacher.temperature, share * weight, grad);
        self.add_prior(logits);
        (1.0 - weight) * loss::cross_entropy(logits, label, share * (1.0 - weight), grad) + weight * pulled
    }

    fn add_prior(&self, logits: &mut [f32]) {
        self.prior.into_iter().for_each(|prior| logits.iter_mut().zip(prior).for_each(|(z, r)| *z += r));
    }
}
