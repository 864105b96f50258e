//! Runs graphs: places their layers in a plan, then forward, and backward in training.
//!
//! A batch is dealt to a fixed number of *lanes* that depends on its size alone; each lane goes through its samples
//! depth-first, a few at a time, so that few activations are alive, and keeps sums of its own. Sums meet in the order of lanes. Threads
//! only pick up lanes: training gives the same bits on any number of them. All memory is planned and there before the first step.
mod desk;
mod fan;
mod infer;
mod order;
mod plan;
mod report;
mod script;
mod share;
mod train;
mod update;

pub(in crate::nn) use fan::Fan;
pub(in crate::nn) use infer::Inference;
pub use report::{MemoryPlan, Planned};
pub(in crate::nn) use train::{Batch, Setup, Targets, Teacher, Training};

use super::layer::{Lane, Pass};
use plan::{Placed, Plan};
use script::{Move, Phase};
use std::ops::Range;

/// Lanes of a full batch.
const LANES: usize = 4;
/// Samples that make another lane worth its sums.
const PER_LANE: usize = 8;
/// The most samples that go through a whole network together.
const RUN: usize = 16;

/// Lanes of a batch of `samples`.
fn lanes(samples: usize) -> usize {
    (samples / PER_LANE).clamp(1, LANES)
}

/// The samples of a lane.
fn share(samples: usize, lanes: usize, lane: usize) -> Range<usize> {
    samples * lane / lanes..samples * (lane + 1) / lanes
}

/// A lane's part of a phase: all its samples, run after run. `loss` compares the logits of a run.
fn act(plan: &Plan, phase: &Phase, pass: &Pass<'_>, lane: &mut Lane, loss: &dyn Fn(&Pass<'_>, &mut Lane)) {
    desk::begin(phase, lane);
    let (mut pass, samples) = (pass.clone(), lane.samples);
    for start in (0..samples).step_by(phase.run.max(1)) {
        pass.run = start..samples.min(start + phase.run);
        for &what in &phase.moves {
            one(plan, what, &pass, lane, loss);
        }
    }
    desk::end(phase, lane);
}

fn one(plan: &Plan, what: Move, pass: &Pass<'_>, lane: &mut Lane, loss: &dyn Fn(&Pass<'_>, &mut Lane)) {
    match what {
        Move::Take(buffer, place) | Move::Give(buffer, place) => desk::swap_desk(lane, buffer, place),
        Move::Loss => loss(pass, lane),
        Move::Forward(i) => with_scratch(i, lane, |lane| plan.layers[i].layer.forward(pass, lane)),
        Move::Collect(i) => barrier(plan, i).collect(pass, lane),
        Move::Finish(i) => {
            adding(plan, &plan.layers[i], pass, lane, |lane| barrier(plan, i).finish_backward(pass, lane));
        }
        Move::Backward(i) if plan.layers[i].layer.barrier().is_some() => {
            plan.layers[i].layer.backward(pass, lane);
        }
        Move::Backward(i) => with_scratch(i, lane, |lane| {
            adding(plan, &plan.layers[i], pass, lane, |lane| plan.layers[i].layer.backward(pass, lane));
        }),
    }
}

fn barrier(plan: &Plan, layer: usize) -> &dyn super::layer::Barrier {
    plan.layers[layer].layer.barrier().expect("only layers at which lanes meet are asked to")
}

/// Lends the shared scratch to a layer.
fn with_scratch(layer: usize, lane: &mut Lane, work: impl FnOnce(&mut Lane)) {
    std::mem::swap(&mut lane.scratch, &mut lane.own[layer].scratch);
    work(lane);
    std::mem::swap(&mut lane.scratch, &mut lane.own[layer].scratch);
}

/// Runs a layer's backward pass; where what it reads has a gradient already (of a later reader), that is added to its own.
fn adding(plan: &Plan, placed: &Placed, pass: &Pass<'_>, lane: &mut Lane, backward: impl FnOnce(&mut Lane)) {
    let mut spare = std::mem::take(&mut lane.spare);
    let places = placed.adds.iter().map(|&node| {
        let slot = plan.slots[node].expect("what is read is stored");
        (node, slot.run_grads(pass))
    });
    let mut rest = &mut spare[..];
    for (node, place) in places.clone() {
        let (before, left) = rest.split_at_mut(place.len());
        before.copy_from_slice(&lane.grads[node][place]);
        rest = left;
    }
    backward(lane);
    let mut rest = &spare[..];
    for (node, place) in places {
        let (before, left) = rest.split_at(place.len());
        lane.grads[node][place].iter_mut().zip(before).for_each(|(g, b)| *g += b);
        rest = left;
    }
    lane.spare = spare;
}
