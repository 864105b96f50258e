//! Steps of training.
use super::desk::{Desks, end, lane};
use super::plan::{Plan, Purpose};
use super::report::{self, MemoryPlan};
use super::script::Extent;
use super::update::{Pull, Update};
use super::{Fan, RUN, act, barrier, lanes, share};
use crate::nn::data::Source;
use crate::nn::graph::{Graph, NodeId};
use crate::nn::layer::{Lane, Pass};
use crate::nn::optim::Sgd;
use crate::nn::{isa, loss};
use crate::tensor::Aligned;
use crate::tensor::rng::Key;
use std::borrow::Cow;
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

/// What is trained, and how much of a batch at a time.
#[derive(Clone, Copy, Debug)]
pub(in crate::nn) struct Setup<'a> {
    /// Which of the graph's entries are trained.
    pub trains: &'a [bool],
    /// Whether dropout and batch statistics are on.
    pub training: bool,
    /// The most samples of a batch.
    pub batch: usize,
    /// The most samples of a lane that go through together; fewer take less memory and change no bit.
    pub run: usize,
}

impl<'a> Setup<'a> {
    /// Training with as many samples going through together as is best.
    pub(in crate::nn) fn new(trains: &'a [bool], training: bool, batch: usize) -> Self {
        Self { trains, training, batch: batch.max(1), run: RUN }
    }

    /// The samples of a lane of a full batch. A smaller batch fills fewer lanes, none with more.
    fn per_lane(&self) -> usize {
        self.batch.div_ceil(lanes(self.batch))
    }

    fn extent(&self) -> Extent {
        let samples = self.per_lane();
        Extent { samples, run: self.run.clamp(1, samples) }
    }

    fn plan(&self, graph: &Graph) -> Plan {
        let &Self { trains, training, .. } = self;
        let purpose = Purpose { trains, training, wanted: &graph.outputs()[..1], loss: true };
        Plan::of(graph, purpose, self.extent())
    }

    /// The memory that training takes: known before any of it is taken.
    pub(in crate::nn) fn memory(&self, graph: &Graph, threads: usize) -> MemoryPlan {
        let (plan, lanes) = (self.plan(graph), lanes(self.batch));
        let update = Update::floats(&plan, self.per_lane());
        report::training(&plan, graph.len(), update, (lanes, self.per_lane()), threads.min(lanes))
    }
}

/// A network in training.
#[derive(Debug)]
pub(in crate::nn) struct Training {
    plan: Plan,
    logits: NodeId,
    params: Aligned,
    velocity: Aligned,
    packed: Vec<Aligned>,
    lanes: Vec<Lane>,
    per_lane: usize,
    desks: Desks,
    update: Update,
    pull: Option<Pull>,
    sgd: Sgd,
    fan: Fan,
}

impl Training {
    /// Training from `start`.
    pub(in crate::nn) fn new<'s>(
        graph: &Graph,
        start: impl Into<Cow<'s, [f32]>>,
        setup: Setup<'_>,
        sgd: Sgd,
        fan: Fan,
    ) -> Self {
        let plan = setup.plan(graph);
        let params = Aligned::from(plan.to_engine(start.into().into_owned()));
        let (count, update) = (lanes(setup.batch), Update::of(&plan, setup.per_lane()));
        let mut packed = vec![Aligned::default(); plan.layers.len()];
        plan.layers.iter().zip(&mut packed).for_each(|(p, packed)| p.layer.prepare(isa(), &params, packed));
        let mut desks = Desks::default();
        desks.furnish(&plan, fan.threads().min(count));
        Self {
            logits: graph.outputs()[0],
            velocity: Aligned::zeros(update.len()),
            packed,
            lanes: (0..count).map(|_| lane(&plan, setup.per_lane())).collect(),
            per_lane: setup.per_lane(),
            desks,
            update,
            pull: None,
            sgd,
            fan,
            plan,
            params,
        }
    }

    /// Adds a proximal term: `anchor` pulls with strength `mu` where `on` says.
    pub(in crate::nn) fn pull(&mut self, anchor: &[f32], mu: f32, on: Vec<Range<usize>>) {
        self.pull = Some(Pull { anchor: self.plan.to_engine(anchor.to_vec()), mu, on });
    }

    /// Whether a batch of one sample can't be trained on.
    pub(in crate::nn) fn needs_two(&self) -> bool {
        self.plan.has_barrier()
    }

    /// The parameters at the end.
    pub(in crate::nn) fn into_params(self) -> Vec<f32> {
        self.plan.to_natural(self.params.into_vec())
    }

    /// One step; returns the loss before it.
    pub(in crate::nn) fn step(&mut self, batch: &Batch<'_>) -> f64 {
        let (loss, count) = self.passes(batch);
        let (plan, packed, lanes) = (&self.plan, &self.packed[..], &self.lanes[..count]);
        let rule = (self.sgd, self.pull.as_ref());
        let pull =
            self.update.apply(self.fan, (plan, packed), lanes, rule, (&mut self.params, &mut self.velocity));
        self.close(count);
        loss + pull
    }

    /// Adds the gradient of the batch's loss to `to`, in the engine's order; returns the loss.
    pub(in crate::nn) fn accumulate(&mut self, batch: &Batch<'_>, to: &mut [f32]) -> f64 {
        let (loss, count) = self.passes(batch);
        self.update.accumulate(&self.plan, &self.packed, &self.lanes[..count], to);
        self.close(count);
        loss
    }

    /// Fills all memory whose content no one may rely on with numbers that spread.
    #[cfg(test)]
    pub(in crate::nn) fn poison(&mut self) {
        super::desk::poison(&self.plan, &mut self.lanes, &mut self.desks);
    }

    /// Ends the lives of what was needed up to the update.
    fn close(&mut self, count: usize) {
        let last = self.plan.script.phases.last().expect("a script has phases");
        self.lanes[..count].iter_mut().for_each(|lane| end(last, lane));
    }

    /// A gradient back in the parameters' own order.
    pub(in crate::nn) fn natural(&self, gradient: Vec<f32>) -> Vec<f32> {
        self.plan.to_natural(gradient)
    }

    /// Forward and backward; returns the loss and the number of lanes.
    fn passes(&mut self, batch: &Batch<'_>) -> (f64, usize) {
        let samples = batch.picks.len();
        let count = samples.div_ceil(self.per_lane).max(1);
        for (placed, packed) in self.plan.layers.iter().zip(&mut self.packed) {
            placed.layer.prepare(isa(), &self.params, packed);
        }
        for (i, lane) in self.lanes[..count].iter_mut().enumerate() {
            lane.samples = share(samples, count, i).len();
            lane.loss = 0.0;
        }
        let turn = self.plan.starts.len() - 1;
        for phase in 0..=2 * turn {
            if phase > turn {
                let layer = self.plan.starts[2 * turn - phase + 1];
                let (lanes, packed) = (&self.lanes[..count], &mut self.packed[layer]);
                barrier(&self.plan, layer).meet_backward(lanes, samples, &self.params, packed);
            }
            self.phase(batch, count, phase);
            if phase < turn {
                let layer = self.plan.starts[phase + 1];
                let (lanes, packed) = (&self.lanes[..count], &mut self.packed[layer]);
                barrier(&self.plan, layer).meet(lanes, samples, &mut self.params, packed);
            }
        }
        (self.lanes[..count].iter().map(|lane| lane.loss).sum::<f64>() * batch.share, count)
    }

    /// Lets each lane do its part of a phase.
    fn phase(&mut self, batch: &Batch<'_>, count: usize, index: usize) {
        let (plan, params, packed) = (&self.plan, &self.params[..], &self.packed[..]);
        let (work, desks) = (Work { plan, logits: self.logits }, &self.desks);
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
            desks.at(plan, lane, |lane| {
                if index == 0 {
                    clear(lane);
                }
                let loss = |pass: &Pass<'_>, lane: &mut Lane| work.loss(batch, pass, lane);
                act(plan, &plan.script.phases[index], &pass, lane, &loss);
            });
        });
    }
}

/// Sets all sums to zero.
fn clear(lane: &mut Lane) {
    for own in &mut lane.own {
        own.grad.fill(0.0);
        own.sums.fill(0.0);
    }
}

/// What lanes share.
struct Work<'a> {
    plan: &'a Plan,
    logits: NodeId,
}

impl Work<'_> {
    /// The loss of a run, and its gradient with respect to the logits.
    fn loss(&self, batch: &Batch<'_>, pass: &Pass<'_>, lane: &mut Lane) {
        let node = self.logits.0;
        let slot = self.plan.slots[node].expect("the logits are stored");
        let grads = &mut lane.grads[node];
        for s in pass.run.clone() {
            let logits = &mut lane.values[node][slot.value(pass, s)];
            let place = slot.grad(pass, s);
            let grad = if self.plan.moved[node] { &mut grads[place] } else { &mut [][..] };
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
