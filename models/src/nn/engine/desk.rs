//! Where a step's numbers lie: what each lane keeps, and the desks at which threads work.
use super::plan::Plan;
use super::script::{Buffer, Phase};
use crate::nn::layer::{Lane, Own};
use crate::tensor::Aligned;
use std::sync::Mutex;

/// Memory for a run of samples. A thread takes a desk for as long as it works on a lane; nothing on it lasts.
#[derive(Debug, Default)]
pub(super) struct Desk {
    buffers: Vec<Aligned>,
    /// Bytes and scratch by layer.
    own: Vec<(Vec<u8>, Aligned)>,
    scratch: Aligned,
    spare: Aligned,
}

impl Desk {
    fn new(plan: &Plan) -> Self {
        let own = plan.layers.iter().enumerate().map(|(i, placed)| {
            let bytes = if plan.keeps_bytes(i) { 0 } else { plan.longest_run() * placed.layer.own().bytes };
            (vec![0; bytes], Aligned::zeros(placed.layer.own().work))
        });
        Self {
            buffers: plan.script.desk.iter().map(|&len| Aligned::zeros(len)).collect(),
            own: own.collect(),
            scratch: Aligned::zeros(plan.scratch()),
            spare: Aligned::zeros(plan.spare()),
        }
    }

    /// Changes places with the lane's: once to work, once more to leave.
    fn swap(&mut self, lane: &mut Lane, plan: &Plan) {
        std::mem::swap(&mut self.buffers, &mut lane.desk);
        std::mem::swap(&mut self.spare, &mut lane.spare);
        for (i, (bytes, work)) in self.own.iter_mut().enumerate() {
            let own = &mut lane.own[i];
            std::mem::swap(work, &mut own.work);
            if !plan.keeps_bytes(i) {
                std::mem::swap(bytes, &mut own.bytes);
            }
        }
        std::mem::swap(&mut self.scratch, &mut lane.scratch);
    }
}

/// As many desks as threads.
#[derive(Debug, Default)]
pub(super) struct Desks(Mutex<Vec<Desk>>);

impl Desks {
    /// `count` desks in all.
    pub(super) fn furnish(&mut self, plan: &Plan, count: usize) {
        let desks = self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        while desks.len() < count {
            desks.push(Desk::new(plan));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Desk>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Runs `work` on a lane at a free desk.
    pub(super) fn at(&self, plan: &Plan, lane: &mut Lane, work: impl FnOnce(&mut Lane)) {
        let mut desk = self
            .lock()
            .pop()
            .expect("there is a desk for each thread, and a thread works on one lane at a time");
        desk.swap(lane, plan);
        work(lane);
        desk.swap(lane, plan);
        self.lock().push(desk);
    }
}

/// A lane with what it keeps of at most `samples` samples.
pub(super) fn lane(plan: &Plan, samples: usize) -> Lane {
    let own = plan.layers.iter().enumerate().map(|(i, placed)| {
        let len = placed.layer.own();
        let bytes = if plan.keeps_bytes(i) { samples * len.bytes } else { 0 };
        Own {
            bytes: vec![0; bytes],
            grad: Aligned::zeros(len.grad),
            sums: vec![0.0; len.sums],
            ..Own::default()
        }
    });
    let none = || plan.slots.iter().map(|_| Aligned::default()).collect();
    Lane {
        values: none(),
        grads: none(),
        kept: plan.script.lane.iter().map(|&len| Aligned::zeros(samples * len)).collect(),
        own: own.collect(),
        ..Lane::default()
    }
}

/// Gives kept buffers their memory at the beginning of a phase.
pub(super) fn begin(phase: &Phase, lane: &mut Lane) {
    phase.begins.iter().for_each(|&(buffer, place)| swap_kept(lane, buffer, place));
}

/// Takes it back at the end.
pub(super) fn end(phase: &Phase, lane: &mut Lane) {
    phase.ends.iter().for_each(|&(buffer, place)| swap_kept(lane, buffer, place));
}

fn swap_kept(lane: &mut Lane, buffer: Buffer, place: usize) {
    let mut memory = std::mem::take(&mut lane.kept[place]);
    std::mem::swap(&mut memory, buffer.of(lane));
    lane.kept[place] = memory;
}

/// The same on the desk.
pub(super) fn swap_desk(lane: &mut Lane, buffer: Buffer, place: usize) {
    let mut memory = std::mem::take(&mut lane.desk[place]);
    std::mem::swap(&mut memory, buffer.of(lane));
    lane.desk[place] = memory;
}

impl Plan {
    /// Whether a layer's bytes are kept for all samples of a lane.
    pub(super) fn keeps_bytes(&self, layer: usize) -> bool {
        self.slots[self.layers[layer].node].is_some_and(|slot| slot.kept_bytes())
    }

    pub(super) fn longest_run(&self) -> usize {
        self.script.phases.iter().map(|phase| phase.run).max().unwrap_or(1)
    }

    /// Floats of the scratch that layers share.
    pub(super) fn scratch(&self) -> usize {
        self.layers.iter().map(|placed| placed.layer.own().scratch).max().unwrap_or(0)
    }

    /// Floats that hold gradients of earlier readers while a layer writes its own.
    pub(super) fn spare(&self) -> usize {
        let sample = |node: &usize| self.slots[*node].map_or(0, |slot| slot.plane.dims.len());
        let of = |adds: &Vec<usize>| adds.iter().map(sample).sum::<usize>();
        self.layers.iter().map(|placed| of(&placed.adds)).max().unwrap_or(0) * self.longest_run()
    }
}

/// Fills all memory whose content no one may rely on with numbers that spread.
#[cfg(test)]
pub(super) fn poison(plan: &Plan, lanes: &mut [Lane], desks: &mut Desks) {
    let bordered = |buffer: Buffer| matches!(buffer, Buffer::Value(node) if plan.slots[node].is_some_and(|s| s.plane.border != [0, 0]));
    let desks = desks.0.get_mut().unwrap();
    for life in plan.script.lives.iter().filter(|life| !bordered(life.buffer)) {
        for lane in lanes.iter_mut().filter(|_| life.kept) {
            lane.kept[life.place].fill(f32::NAN);
        }
        for desk in desks.iter_mut().filter(|_| !life.kept) {
            desk.buffers[life.place].fill(f32::NAN);
        }
    }
    for desk in desks {
        desk.scratch.fill(f32::NAN);
        desk.spare.fill(f32::NAN);
    }
}
