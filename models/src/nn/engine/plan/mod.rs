//! From a graph to layers in place: which values there are, with which borders, what is fused, what is trained.
mod place;
mod survey;

use super::RUN;
use super::order::Reordered;
use super::script::{Extent, Keeping, Script};
use crate::nn::graph::{Graph, NodeId};
use crate::nn::layer::{Layer, Slot, Trained};
use survey::Planner;

/// What a plan is for.
#[derive(Clone, Copy, Debug)]
pub(in crate::nn) struct Purpose<'a> {
    /// Which of the graph's entries are trained.
    pub trains: &'a [bool],
    /// Whether dropout drops and batch norm takes the batch's statistics, where what they read is trained.
    pub training: bool,
    /// Nodes whose values are wanted.
    pub wanted: &'a [NodeId],
    /// Whether there is a loss on the first of them rather than someone who reads them all.
    pub loss: bool,
}

/// A layer and its surroundings.
#[derive(Debug)]
pub(in crate::nn::engine) struct Placed {
    pub layer: Box<dyn Layer>,
    /// The node whose value it computes.
    pub node: usize,
    /// The nodes that it reads, each once.
    pub reads: Vec<usize>,
    /// Whether computing its value again would cost more than keeping it.
    pub costly: bool,
    /// Nodes that it reads and whose gradient a later layer has begun.
    pub adds: Vec<usize>,
}

/// A graph made ready to run.
#[derive(Debug)]
pub(in crate::nn::engine) struct Plan {
    pub layers: Vec<Placed>,
    /// Buffers by node; none for values that are never stored.
    pub slots: Vec<Option<Slot>>,
    /// Whether a node's value depends on something trained.
    pub moved: Vec<bool>,
    /// Where segments start: 0, and each layer at which lanes meet.
    pub starts: Vec<usize>,
    /// What is done in which order, in which memory.
    pub script: Script,
    /// The nodes' names.
    pub names: Vec<String>,
    /// Layers whose weights are reordered.
    pub reordered: Vec<Reordered>,
    /// What is trained, by layer, in the order of the flat buffer.
    pub trained: Vec<(usize, Trained)>,
}

impl Plan {
    /// Parameters in the engine's order.
    pub(in crate::nn::engine) fn to_engine(&self, mut values: Vec<f32>) -> Vec<f32> {
        self.reordered.iter().for_each(|r| r.to_engine(&mut values));
        values
    }

    /// Parameters back in their own order.
    pub(in crate::nn::engine) fn to_natural(&self, mut values: Vec<f32>) -> Vec<f32> {
        self.reordered.iter().for_each(|r| r.to_natural(&mut values));
        values
    }

    /// Whether lanes must meet.
    pub(in crate::nn::engine) fn has_barrier(&self) -> bool {
        self.starts.len() > 1
    }

    /// The plan for at most `extent.samples` samples in a lane, of which `extent.run` go through together; where lanes meet, all of them may.
    pub(in crate::nn::engine) fn of(graph: &Graph, purpose: Purpose<'_>, extent: Extent) -> Self {
        let mut planner = Planner::new(graph, purpose);
        planner.slots = (0..graph.nodes().len()).map(|node| planner.slot(node)).collect();
        // What is kept depends on the layers, and layers know what is kept: they are placed once to find out.
        let starts = starts(&planner.layers());
        let keeping = Keeping::of(&planner.cast(&planner.layers(), &starts));
        for slot in planner.slots.iter_mut().flatten() {
            (slot.kept, slot.kept_grad) = (keeping.values[slot.node], keeping.grads[slot.node]);
        }
        let layers = planner.layers();
        let run = if starts.len() > 1 && extent.run >= RUN { extent.samples } else { extent.run };
        let cast = planner.cast(&layers, &starts);
        let script = Script::of(&cast, &keeping, &planner.slots, run);
        let trained =
            layers.iter().enumerate().flat_map(|(i, p)| p.layer.trained().into_iter().map(move |t| (i, t)));
        let mut trained: Vec<(usize, Trained)> = trained.collect();
        trained.sort_by_key(|(_, t)| t.range.start);
        let reordered = planner.reordered();
        let names = graph.nodes().iter().map(|n| n.name.clone()).collect();
        let Planner { slots, moved, .. } = planner;
        Self { layers, slots, moved, starts, script, names, reordered, trained }
    }
}

/// Where segments of layers start.
fn starts(layers: &[Placed]) -> Vec<usize> {
    let barriers = layers.iter().enumerate().filter(|(_, p)| p.layer.barrier().is_some()).map(|(i, _)| i);
    std::iter::once(0).chain(barriers.filter(|&i| i > 0)).collect()
}
