//! What is kept, and what is computed again.
use super::{Buffer, Cast};

/// Which buffers are kept for all samples of a lane, and which values are computed again on the way back, by node.
#[derive(Debug, Default)]
pub(in crate::nn::engine) struct Keeping {
    pub values: Vec<bool>,
    pub grads: Vec<bool>,
    pub(super) again: Vec<bool>,
}

impl Keeping {
    pub(in crate::nn::engine) fn of(cast: &Cast<'_>) -> Self {
        let nodes = cast.moved.len();
        let mut phases: Vec<Vec<usize>> = vec![vec![]; 2 * nodes];
        let mut touch = |phase: usize, buffer: Buffer| {
            let phases = &mut phases[buffer.index(nodes)];
            if phases.last() != Some(&phase) {
                phases.push(phase);
            }
        };
        let moves = cast.moves();
        for (phase, moves) in moves.iter().enumerate() {
            moves.iter().flat_map(|&m| cast.touches(m)).for_each(|buffer| touch(phase, buffer));
        }
        cast.touched_at_the_end().into_iter().for_each(|buffer| touch(moves.len() - 1, buffer));
        let several = |i: usize| phases[i].len() > 1;
        let mut keeping = Self {
            values: vec![false; nodes],
            grads: (0..nodes).map(|n| several(nodes + n)).collect(),
            again: vec![false; nodes],
        };
        let mut available = vec![false; nodes];
        for (i, placed) in cast.layers.iter().enumerate() {
            let segment = cast.starts.iter().rposition(|&start| start <= i).unwrap_or(0);
            let home = [segment, 2 * cast.turn() - segment];
            let inside = phases[placed.node][..] == home[..];
            let cheap = !placed.costly && placed.reads.iter().all(|&n| available[n]);
            keeping.values[placed.node] = several(placed.node) && !(inside && cheap);
            keeping.again[placed.node] = inside && cheap;
            available[placed.node] = keeping.values[placed.node] || cheap;
        }
        keeping.mark_ancestors(cast);
        keeping
    }

    /// What is computed again needs what it reads, unless that is kept.
    fn mark_ancestors(&mut self, cast: &Cast<'_>) {
        for placed in cast.layers.iter().rev().filter(|placed| self.again[placed.node]).collect::<Vec<_>>() {
            let mut stack = placed.reads.clone();
            while let Some(node) = stack.pop() {
                if !self.values[node] && !std::mem::replace(&mut self.again[node], true) {
                    let layer = cast.layers.iter().find(|placed| placed.node == node);
                    stack.extend(layer.into_iter().flat_map(|placed| &placed.reads));
                }
            }
        }
    }

    pub(super) fn keeps(&self, buffer: Buffer) -> bool {
        match buffer {
            Buffer::Value(node) => self.values[node],
            Buffer::Grad(node) => self.grads[node],
        }
    }
}
