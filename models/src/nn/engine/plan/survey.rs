//! What a plan must know of a graph: what is alive, what is trained below what, what is fused, in which order vectors lie.
use super::{Placed, Purpose};
use crate::nn::engine::order::Reordered;
use crate::nn::engine::script::Cast;
use crate::nn::graph::{Graph, Node, NodeId, Op, Window};
use crate::nn::layer::{After, Piece, Plane, Slot};

/// What is known about each node, before and while layers are placed.
pub(super) struct Planner<'a> {
    pub(super) graph: &'a Graph,
    pub(super) purpose: Purpose<'a>,
    /// Whether a wanted node depends on it.
    pub(super) alive: Vec<bool>,
    pub(super) moved: Vec<bool>,
    /// Living nodes that read it.
    pub(super) readers: Vec<Vec<usize>>,
    /// The last node that is fused with this one.
    pub(super) last: Vec<usize>,
    /// Whether it is computed by the layer of an earlier node.
    pub(super) absorbed: Vec<bool>,
    pub(super) after: Vec<After>,
    /// Pieces of flat vectors, as they lie.
    pub(super) pieces: Vec<Vec<Piece>>,
    pub(super) slots: Vec<Option<Slot>>,
    /// Wanted nodes, as numbers.
    pub(super) wanted: Vec<usize>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(graph: &'a Graph, purpose: Purpose<'a>) -> Self {
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

    pub(super) fn node(&self, index: usize) -> &'a Node {
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

    pub(super) fn trains(&self, node: &Node, which: usize) -> bool {
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
    pub(super) fn orderless(&self, node: usize) -> bool {
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
    pub(super) fn slot(&self, node: usize) -> Option<Slot> {
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
    pub(super) fn layers(&self) -> Vec<Placed> {
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

    pub(super) fn cast<'b>(&'b self, layers: &'b [Placed], starts: &'b [usize]) -> Cast<'b> {
        let logits = self.wanted.first().copied().filter(|_| self.purpose.loss);
        let wanted = if self.purpose.loss { &[][..] } else { &self.wanted };
        Cast { layers, starts, moved: &self.moved, logits, wanted }
    }

    /// The weights that follow another order of what they are multiplied with.
    pub(super) fn reordered(&self) -> Vec<Reordered> {
        let linear = |n: &usize| self.alive[*n] && matches!(self.node(*n).op, Op::Linear { .. });
        let of = |n: usize| {
            let weight = self.graph.range(self.node(n), 0)?;
            Reordered::of(weight, &self.pieces[self.node(n).inputs[0].0])
        };
        (0..self.alive.len()).filter(linear).filter_map(of).collect()
    }

    pub(super) fn at(&self, node: NodeId) -> Slot {
        self.slots[node.0].expect("what a living layer reads is stored")
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
