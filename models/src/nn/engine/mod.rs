//! Runs graphs: places their layers in a plan, then forward, and backward in training.
//!
//! A batch is dealt to a fixed number of *lanes* that depends on its size alone; each lane goes through its samples
//! depth-first, a few at a time, so that few activations are alive, and keeps sums of its own. Sums meet in the order of lanes. Threads
//! only pick up lanes: training gives the same bits on any number of them.
mod fan;
mod infer;
mod order;
mod plan;
mod train;
mod update;

pub(in crate::nn) use fan::Fan;
pub(in crate::nn) use infer::Inference;
pub(in crate::nn) use train::{Batch, Targets, Teacher, Training};

use super::layer::{Lane, Own, Pass, Slot};
use plan::{Placed, Plan};
use std::ops::Range;

/// Lanes of a full batch.
const LANES: usize = 4;
/// Samples that make another lane worth its sums.
const PER_LANE: usize = 8;
/// Samples whose activations are alive in a lane.
const RUN: usize = 16;

/// Lanes of a batch of `samples`.
fn lanes(samples: usize) -> usize {
    (samples / PER_LANE).clamp(1, LANES)
}

/// The samples of a lane.
fn share(samples: usize, lanes: usize, lane: usize) -> Range<usize> {
    samples * lane / lanes..samples * (lane + 1) / lanes
}

/// A lane's buffers for at most `samples` samples, `run` of them at a time.
fn lane(plan: &Plan, samples: usize, run: usize) -> Lane {
    let capacity = |slot: &Slot| if slot.kept { samples } else { run };
    let sized = |node: usize, gradient: bool| {
        let Some(slot) = &plan.slots[node] else { return vec![] };
        let len = if gradient { slot.plane.dims.len() } else { slot.plane.len() };
        vec![0.0; if gradient && !plan.moved[node] { 0 } else { capacity(slot) * len }]
    };
    let own = plan.layers.iter().map(|placed| {
        let len = placed.layer.own();
        let slot = plan.slots[placed.node].as_ref();
        let bytes = vec![0; len.bytes * slot.map_or(0, capacity)];
        Own { bytes, grad: vec![0.0; len.grad], work: vec![0.0; len.work], sums: vec![0.0; len.sums] }
    });
    let nodes = 0..plan.slots.len();
    Lane {
        values: nodes.clone().map(|node| sized(node, false)).collect(),
        grads: nodes.map(|node| sized(node, true)).collect(),
        own: own.collect(),
        ..Lane::default()
    }
}

/// Forward through some layers.
fn forward(plan: &Plan, layers: Range<usize>, pass: &Pass<'_>, lane: &mut Lane) {
    plan.layers[layers].iter().for_each(|placed| placed.layer.forward(pass, lane));
}

/// Backward through some layers, last to first.
fn backward(plan: &Plan, layers: Range<usize>, pass: &Pass<'_>, lane: &mut Lane) {
    for placed in plan.layers[layers].iter().rev().filter(|placed| plan.moved[placed.node]) {
        if placed.layer.barrier().is_some() {
            placed.layer.backward(pass, lane);
        } else {
            adding(placed, lane, |lane| placed.layer.backward(pass, lane));
        }
    }
}

/// Runs a layer's backward pass; where what it reads has a gradient already (of a later reader), that is added to its own.
fn adding(placed: &Placed, lane: &mut Lane, backward: impl FnOnce(&mut Lane)) {
    let before: Vec<Vec<f32>> = placed.adds.iter().map(|&node| lane.grads[node].clone()).collect();
    backward(lane);
    for (&node, before) in placed.adds.iter().zip(&before) {
        lane.grads[node].iter_mut().zip(before).for_each(|(g, b)| *g += b);
    }
}
