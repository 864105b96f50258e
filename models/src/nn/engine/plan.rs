//! From a graph to layers in place: which values there are, with which borders, what is fused, what is trained.
use super::RUN;
use super::order::Reordered;
use super::script::{Cast, Extent, Keeping, Script};
use crate::nn::graph::{Graph, Node, NodeId, Op, Window};
use crate::nn::layer::{self, After, Layer, Piece, Plane, Slot, Trained};

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
pub(super) struct Placed {
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
pub(super) struct Plan {
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
    pub(super) fn to_engine(&self, mut values: Vec<f32>) -> Vec<f32> {
        self.reordered.iter().for_each(|r| r.to_engine(&mut values));
        values
    }

    /// Parameters back in their own order.
    pub(super) fn to_natural(&self, mut values: Vec<f32>) -> Vec<f32> {
        self.reordered.iter().for_each(|r| r.to_natural(&mut values));
        values
    }

    /// Whether lanes must meet.
    pub(super) fn has_barrier(&self) -> bool {
        self.starts.len() > 1
    }

    /// The plan for at most `extent.samples` samples in a lane, of which `extent.run` go through together; where lanes meet, all of them may.
    pub(super) fn of(graph: &Graph, purpose: Purpose<'_>, extent: Extent) -> Self {
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

struct Planner<'a> {
    graph: &'a Graph,
    purpose: Purpose<'a>,
    /// Whether a wanted node depends on it.
    alive: Vec<bool>,
    moved: Vec<bool>,
    /// Living nodes that read it.
    readers: Vec<Vec<usize>>,
    /// The last node that is fused with this one.
    last: Vec<usize>,
    /// Whether it is computed by the layer of an earlier node.
    absorbed: Vec<bool>,
    after: Vec<After>,
    /// Pieces of flat vectors, as they lie.
    pieces: Vec<Vec<Piece>>,
    slots: Vec<Option<Slot>>,
    /// Wanted nodes, as numbers.
    wanted: Vec<usize>,
}

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph, purpose: Purpose<'a>) -> Self {
        let count = graph.nodes().len();
        let mut planner = Self {
            graph,
            purpose,
            alive: vec![false; count],
            moved: vec![false; count],
            readers: vec![vec![]; count],
            last: (0..count).collect(),
            absorbed: vec![false; count],
            after: vec![After::Nothing; count],
            pieces: vec![vec![]; count],
            slots: vec![None; count],
            wanted: purpose.wanted.iter().map(|n| n.0).collect(),
        };
        planner.find_living();
        planner.find_moved();
        (0..count).for_each(|n| planner.fuse(n));
        (0..count).for_each(|n| planner.pieces[n] = planner.pieces_of(n));
        planner
    }

    fn node(&self, index: usize) -> &'a Node {
        &self.graph.nodes()[index]
    }

    fn find_living(&mut self) {
        let mut stack: Vec<usize> = self.purpose.wanted.iter().map(|n| n.0).collect();
        while let Some(n) = stack.pop() {
            if !std::mem::replace(&mut self.alive[n], true) {
                stack.extend(self.node(n).inputs.iter().map(|i| i.0));
            }
        }
        for n in (0..self.alive.len()).filter(|&n| self.alive[n]) {
            self.graph.nodes()[n].inputs.iter().for_each(|i| self.readers[i.0].push(n));
        }
    }

    fn trains(&self, node: &Node, which: usize) -> bool {
        node.entries.get(which).is_some_and(|&e| self.purpose.trains.get(e).copied().unwrap_or(false))
    }

    fn find_moved(&mut self) {
        for n in 0..self.moved.len() {
            let node = self.node(n);
            let own = (0..2).any(|which| self.trains(node, which));
            self.moved[n] = self.alive[n] && (own || node.inputs.iter().any(|i| self.moved[i.0]));
        }
    }

    /// The one node that reads this one, if its value is wanted for nothing else.
    fn sole_reader(&self, node: usize) -> Option<usize> {
        match self.readers[node][..] {
            [reader] if !self.purpose.wanted.contains(&NodeId(node)) => Some(reader),
            _ => None,
        }
    }

    /// Takes a following ReLU, and 2×2 max pooling after it, into the layer of a convolution, norm or linear layer.
    fn fuse(&mut self, node: usize) {
        let op = self.node(node).op;
        if !self.alive[node] || !matches!(op, Op::Conv2d(_) | Op::BatchNorm { .. } | Op::Linear { .. }) {
            return;
        }
        let Some(relu) = self.sole_reader(node).filter(|&r| self.node(r).op == Op::Relu) else { return };
        (self.after[node], self.last[node], self.absorbed[relu]) = (After::Relu, relu, true);
        let pooling = Op::MaxPool(Window::tiles([2, 2]));
        let pool = self.sole_reader(relu).filter(|&p| self.node(p).op == pooling);
        if let (Some(pool), false) = (pool, matches!(op, Op::Linear { .. })) {
            (self.after[node], self.last[node], self.absorbed[pool]) = (After::ReluPool, pool, true);
        }
    }

    /// Whether all readers of a flat vector can do with any order of its numbers.
    fn orderless(&self, node: usize) -> bool {
        let fine = |&r: &usize| match self.node(r).op {
            Op::Linear { .. } => true,
            Op::Relu | Op::Dropout { .. } | Op::Scale(_) | Op::Concat => self.orderless(r),
            _ => false,
        };
        !self.purpose.wanted.contains(&NodeId(node)) && self.readers[node].iter().all(fine)
    }

    fn pieces_of(&self, n: usize) -> Vec<Piece> {
        let node = self.node(n);
        let natural = vec![Piece { channels: node.dims.len(), pixels: 1 }];
        match node.op {
            Op::Flatten if self.orderless(n) => {
                let dims = self.node(node.inputs[0].0).dims;
                vec![Piece { channels: dims.channels, pixels: dims.pixels() }]
            }
            Op::Relu | Op::Dropout { .. } | Op::Scale(_) if node.dims.is_flat() => {
                self.pieces[node.inputs[0].0].clone()
            }
            Op::Concat if node.dims.is_flat() => {
                node.inputs.iter().flat_map(|i| self.pieces[i.0].clone()).collect()
            }
            _ => natural,
        }
    }

    /// The buffers of a node's value, if it is stored.
    fn slot(&self, node: usize) -> Option<Slot> {
        let inside =
            (0..node).any(|n| self.last[n] == node) || (self.last[node] == node && !self.absorbed[node]);
        if !self.alive[node] || !inside {
            return None;
        }
        let mut border = [0, 0];
        for &reader in &self.readers[node] {
            if let Op::Conv2d(conv) = self.node(reader).op {
                border = [0, 1].map(|i| border[i].max(conv.padding[i]));
            }
        }
        let plane = Plane { dims: self.node(node).dims, border };
        Some(Slot { node, plane, kept: false, kept_grad: false })
    }

    /// All living layers, in order.
    fn layers(&self) -> Vec<Placed> {
        let first = (0..self.alive.len()).filter(|&n| self.alive[n] && !self.absorbed[n]);
        let placed = first.enumerate().map(|(id, n)| {
            let mut reads: Vec<usize> = self.node(n).inputs.iter().map(|i| i.0).collect();
            reads.sort_unstable();
            reads.dedup();
            let costly = matches!(self.node(n).op, Op::Conv2d(_) | Op::Linear { .. } | Op::Dropout { .. });
            Placed { layer: self.place(id, n), node: self.last[n], reads, costly, adds: vec![] }
        });
        let mut layers: Vec<Placed> = placed.collect();
        self.mark_sums(&mut layers);
        layers
    }

    fn cast<'b>(&'b self, layers: &'b [Placed], starts: &'b [usize]) -> Cast<'b> {
        let logits = self.wanted.first().copied().filter(|_| self.purpose.loss);
        let wanted = if self.purpose.loss { &[][..] } else { &self.wanted };
        Cast { layers, starts, moved: &self.moved, logits, wanted }
    }

    /// The weights that follow another order of what they are multiplied with.
    fn reordered(&self) -> Vec<Reordered> {
        let linear = |n: &usize| self.alive[*n] && matches!(self.node(*n).op, Op::Linear { .. });
        let of = |n: usize| {
            let weight = self.graph.range(self.node(n), 0)?;
            Reordered::of(weight, &self.pieces[self.node(n).inputs[0].0])
        };
        (0..self.alive.len()).filter(linear).filter_map(of).collect()
    }

    fn at(&self, node: NodeId) -> Slot {
        self.slots[node.0].expect("what a living layer reads is stored")
    }

    /// The layer that starts at a node.
    fn place(&self, id: usize, n: usize) -> Box<dyn Layer> {
        let (node, output) = (self.node(n), self.at(NodeId(self.last[n])));
        let inputs: Vec<Slot> = node.inputs.iter().map(|&i| self.at(i)).collect();
        let input_grads: Vec<bool> = node.inputs.iter().map(|i| self.moved[i.0]).collect();
        let Some(&input) = inputs.first() else {
            return match node.op {
                Op::Conditioning => Box::new(layer::Conditioning { output }),
                _ => Box::new(layer::Input { output }),
            };
        };
        let input_grad = input_grads[0];
        let after = self.after[n];
        let range = |which| self.graph.range(node, which);
        let needed = |which| range(which).expect("the builder has declared it");
        let trains = [self.trains(node, 0), self.trains(node, 1)];
        match node.op {
            Op::Input | Op::Conditioning => unreachable!("sources read nothing"),
            Op::Conv2d(conv) => {
                let params = layer::ConvParams { weight: needed(0), bias: range(1), trains };
                Box::new(layer::Conv::new(id, conv, params, (input, output), after, input_grad))
            }
            Op::Linear { .. } => {
                let (weight, bias) = (needed(0), range(1));
                let relu = after == After::Relu;
                Box::new(layer::Linear { input, output, weight, bias, trains, relu, input_grad })
            }
            Op::BatchNorm { epsilon } => {
                let params = [needed(0), needed(1), needed(2), needed(3)];
                let of_batch = self.purpose.training && trains != [false; 2];
                Box::new(layer::BatchNorm {
                    id,
                    epsilon,
                    input,
                    output,
                    after,
                    params,
                    trains,
                    of_batch,
                    input_grad,
                })
            }
            Op::GroupNorm { groups, epsilon } => {
                let params = [needed(0), needed(1)];
                Box::new(layer::GroupNorm { id, groups, epsilon, input, output, params, trains, input_grad })
            }
            Op::Dropout { p } if self.purpose.training && input_grad => {
                Box::new(layer::Dropout { id, p, input, output })
            }
            Op::Dropout { .. } => Box::new(layer::Scale { input, output, factor: 1.0 }),
            Op::Relu => Box::new(layer::Relu { input, output }),
            Op::Curve(curve) => Box::new(layer::Map { curve, input, output }),
            Op::Pad([top, left, ..]) => Box::new(layer::Pad { before: [top, left], input, output }),
            Op::MaxPool(window) => Box::new(layer::MaxPool { id, window, input, output }),
            Op::AvgPool(window) => Box::new(layer::AvgPool { window, input, output }),
            Op::Flatten => Box::new(layer::Flatten { input, output, by_channel: !self.orderless(n) }),
            Op::Add => Box::new(layer::Add {
                inputs: [inputs[0], inputs[1]],
                output,
                input_grads: [input_grad, input_grads[1]],
            }),
            Op::Mul => Box::new(layer::Mul {
                inputs: [inputs[0], inputs[1]],
                output,
                input_grads: [input_grad, input_grads[1]],
            }),
            Op::Concat => Box::new(layer::Concat { inputs, output, input_grads }),
            Op::Softmax => Box::new(layer::Softmax { input, output }),
            Op::Log => Box::new(layer::Log { input, output }),
            Op::Scale(factor) => Box::new(layer::Scale { input, output, factor }),
        }
    }

    /// Marks, for each layer, the values it reads whose gradient a later layer begins.
    fn mark_sums(&self, layers: &mut [Placed]) {
        for i in 0..layers.len() {
            let later = |node: &usize| layers[i + 1..].iter().any(|placed| placed.reads.contains(node));
            let read = layers[i].reads.iter().copied().filter(|n| self.moved[*n]);
            layers[i].adds = read.filter(later).collect();
        }
    }
}
