//! Forward passes alone.
use super::desk::{Desks, end, lane};
use super::plan::{Plan, Purpose};
use super::report::{self, MemoryPlan};
use super::script::Extent;
use super::{Fan, RUN, act, lanes, share};
use crate::nn::data::Source;
use crate::nn::graph::{Graph, NodeId};
use crate::nn::isa;
use crate::nn::layer::{Lane, Pass, Slot};
use crate::tensor::Aligned;
use crate::tensor::rng::{Key, Purpose as Draw};

/// Samples that go through together: a run for each lane.
const BATCH: usize = 4 * RUN;

/// The samples of a lane when `batch` of them are answered together.
fn per_lane(batch: usize) -> usize {
    let together = batch.clamp(1, BATCH);
    together.div_ceil(lanes(together))
}

/// A graph with weights, ready to answer.
#[derive(Debug)]
pub(in crate::nn) struct Inference {
    graph: Graph,
    plan: Plan,
    wanted: Vec<NodeId>,
    params: Aligned,
    packed: Vec<Aligned>,
    /// The most samples of a lane that there is memory for.
    room: usize,
    lanes: Vec<Lane>,
    desks: Desks,
}

impl Inference {
    fn plan(graph: &Graph, wanted: &[NodeId], samples: usize) -> Plan {
        let purpose = Purpose { trains: &[], training: false, wanted, loss: false };
        Plan::of(graph, purpose, Extent { samples, run: samples })
    }

    /// The memory that answers of `batch` samples at a time take.
    pub(in crate::nn) fn memory(graph: &Graph, batch: usize, threads: usize) -> MemoryPlan {
        let (samples, lanes) = (per_lane(batch), lanes(batch.min(BATCH)));
        let plan = Self::plan(graph, graph.outputs(), samples);
        report::answering(&plan, graph.len(), (lanes, samples), threads.min(lanes))
    }

    /// `params` are all that the wanted nodes depend on: the graph's, or a prefix of them.
    pub(in crate::nn) fn new(graph: &Graph, wanted: &[NodeId], params: Vec<f32>) -> Self {
        let plan = Self::plan(graph, wanted, 1);
        let params = Aligned::from(plan.to_engine(params));
        let mut packed = vec![Aligned::default(); plan.layers.len()];
        plan.layers.iter().zip(&mut packed).for_each(|(p, packed)| p.layer.prepare(isa(), &params, packed));
        let (graph, wanted) = (graph.clone(), wanted.to_vec());
        Self { graph, plan, wanted, params, packed, room: 1, lanes: vec![], desks: Desks::default() }
    }

    /// Takes the memory for `batch` samples at a time, unless it is there: plans anew for a larger batch than any before.
    fn furnish(&mut self, batch: usize, threads: usize) {
        let (samples, lanes) = (per_lane(batch), lanes(batch.min(BATCH)));
        if samples > self.room {
            self.plan = Self::plan(&self.graph, &self.wanted, samples);
            (self.room, self.lanes, self.desks) = (samples, vec![], Desks::default());
        }
        while self.lanes.len() < lanes {
            self.lanes.push(lane(&self.plan, self.room));
        }
        self.desks.furnish(&self.plan, threads.min(self.lanes.len()));
    }

    /// Calls `f(output, values of some samples one after the other, channel-first)` in the order of samples.
    pub(in crate::nn) fn run(
        &mut self,
        fan: Fan,
        source: Source<'_>,
        picks: &[usize],
        conditioning: &[f32],
        f: &mut dyn FnMut(usize, &[f32]),
    ) {
        self.furnish(picks.len(), fan.threads());
        let mut sample = Vec::new();
        for picks in picks.chunks(BATCH) {
            let count = lanes(picks.len());
            let (plan, params, packed, desks) = (&self.plan, &self.params, &self.packed, &self.desks);
            fan.each(&mut self.lanes[..count], &|i, lane| {
                let mine = share(picks.len(), count, i);
                lane.samples = mine.len();
                let run = 0..mine.len();
                let (picks, dropout) = (&picks[mine.clone()], Key::new(0, Draw::Dropout));
                let first = mine.start;
                let pass =
                    Pass { isa: isa(), params, packed, source, picks, first, run, conditioning, dropout };
                desks.at(plan, lane, |lane| act(plan, &plan.script.phases[0], &pass, lane, &|_, _| {}));
            });
            for lane in &self.lanes[..count] {
                for (output, node) in self.wanted.iter().enumerate() {
                    let slot = self.plan.slots[node.0].expect("what is wanted is stored");
                    for s in 0..lane.samples {
                        channel_first(&slot, s, &lane.values[node.0], &mut sample);
                        f(output, &sample);
                    }
                }
            }
            let last = self.plan.script.phases.last().expect("a script has phases");
            self.lanes[..count].iter_mut().for_each(|lane| end(last, lane));
        }
    }
}

/// Sample `s` of a buffer, channel after channel.
fn channel_first(slot: &Slot, s: usize, values: &[f32], out: &mut Vec<f32>) {
    let (plane, dims) = (slot.plane, slot.plane.dims);
    let sample = &values[s * plane.len()..(s + 1) * plane.len()];
    out.clear();
    for (c, y) in (0..dims.channels).flat_map(|c| (0..dims.height).map(move |y| (c, y))) {
        out.extend(sample[plane.row(y)][c..].iter().step_by(dims.channels));
    }
}
