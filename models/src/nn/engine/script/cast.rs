//! From layers to what is done in which phase, and what each move touches.
use super::{Buffer, Move};
use crate::nn::engine::plan::Placed;
use crate::nn::layer::Recalls;
use std::ops::Range;

/// What a script is written for.
#[derive(Debug)]
pub(in crate::nn::engine) struct Cast<'a> {
    pub layers: &'a [Placed],
    /// First layers of segments.
    pub starts: &'a [usize],
    /// Whether a node depends on something trained.
    pub moved: &'a [bool],
    /// The node that the loss looks at, in training.
    pub logits: Option<usize>,
    /// Nodes whose values are read at the end.
    pub wanted: &'a [usize],
}

impl Cast<'_> {
    pub(super) fn segments(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn segment(&self, index: usize) -> Range<usize> {
        self.starts[index]..self.starts.get(index + 1).copied().unwrap_or(self.layers.len())
    }

    /// The phase of the last segment, forward and backward.
    pub(super) fn turn(&self) -> usize {
        self.segments() - 1
    }

    pub(super) fn moved(&self, layer: usize) -> bool {
        self.moved[self.layers[layer].node]
    }

    pub(super) fn recalls(&self, layer: usize) -> Recalls {
        let Placed { layer, .. } = &self.layers[layer];
        let recalls = layer.recalls();
        // What comes with a value, like the winners of a pooling, comes again with it; lanes that meet keep it anyway.
        let more = layer.own().bytes > 0 && layer.barrier().is_none();
        Recalls { output: recalls.output || more, ..recalls }
    }

    /// Phases in order, without what is computed again.
    pub(super) fn moves(&self) -> Vec<Vec<Move>> {
        let (turn, backward) = (self.turn(), |k: usize| {
            let moved = self.segment(k).rev().filter(|&i| self.moved(i));
            moved.map(Move::Backward).collect::<Vec<_>>()
        });
        let mut phases: Vec<Vec<Move>> =
            (0..=turn).map(|k| self.segment(k).map(Move::Forward).collect()).collect();
        (0..turn).for_each(|k| phases[k].push(Move::Collect(self.starts[k + 1])));
        phases[turn].extend(self.logits.map(|_| Move::Loss));
        phases[turn].extend(backward(turn));
        for k in (0..turn).rev() {
            phases.push(vec![Move::Finish(self.starts[k + 1])]);
            phases[2 * turn - k].extend(backward(k));
        }
        phases.push(vec![]);
        phases
    }

    /// The buffers that a move reads or writes.
    pub(super) fn touches(&self, what: Move) -> Vec<Buffer> {
        let reads = |layer: usize| self.layers[layer].reads.iter().map(|&n| Buffer::Value(n));
        let grads = |layer: usize| {
            self.layers[layer].reads.iter().filter(|n| self.moved[**n]).map(|&n| Buffer::Grad(n))
        };
        let recalled = |layer: usize| {
            let recalls = self.recalls(layer);
            let inputs = reads(layer).filter(move |_| recalls.inputs);
            inputs.chain(recalls.output.then_some(Buffer::Value(self.layers[layer].node)))
        };
        match what {
            Move::Forward(i) => reads(i).chain([Buffer::Value(self.layers[i].node)]).collect(),
            Move::Collect(i) => reads(i).collect(),
            Move::Loss => {
                let logits = self.logits.into_iter();
                let grads = logits.clone().filter(|n| self.moved[*n]).map(Buffer::Grad);
                logits.map(Buffer::Value).chain(grads).collect()
            }
            Move::Backward(i) if self.layers[i].layer.barrier().is_some() => {
                recalled(i).chain([Buffer::Grad(self.layers[i].node)]).collect()
            }
            Move::Backward(i) | Move::Finish(i) => {
                recalled(i).chain([Buffer::Grad(self.layers[i].node)]).chain(grads(i)).collect()
            }
            Move::Take(buffer, _) | Move::Give(buffer, _) => vec![buffer],
        }
    }

    /// What is touched after all passes.
    pub(super) fn touched_at_the_end(&self) -> Vec<Buffer> {
        let batch = self.layers.iter().filter(|placed| placed.layer.recalls().batch);
        let of = |placed: &Placed| {
            let inputs = placed.reads.iter().map(|&n| Buffer::Value(n));
            inputs.chain([Buffer::Grad(placed.node)]).collect::<Vec<_>>()
        };
        batch.flat_map(of).chain(self.wanted.iter().map(|&n| Buffer::Value(n))).collect()
    }
}
