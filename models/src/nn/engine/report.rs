//! How much memory training takes, and for how long what of it is alive.
use super::plan::Plan;
use super::script::{Buffer, Life};
use crate::nn::layer::OwnLen;
use std::mem::size_of;

/// Memory that training will hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Planned {
    /// What lies there.
    pub what: String,
    /// Bytes of one copy.
    pub bytes: usize,
    /// How many there are: one for each lane, or each thread.
    pub copies: usize,
    /// Where: what has the same place shares its memory. Empty for what is there all the time.
    pub place: String,
    /// When it is alive.
    pub life: String,
}

/// All of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MemoryPlan {
    /// In the order in which things begin to live.
    pub buffers: Vec<Planned>,
    /// Bytes in all, what shares a place counted once.
    pub bytes: usize,
}

impl MemoryPlan {
    /// Adds what is gone before the rest comes.
    pub(in crate::nn) fn before(&mut self, parts: &[(&str, usize)], life: &str) {
        let planned = |&(what, bytes): &(&str, usize)| Planned {
            what: what.into(),
            bytes,
            copies: 1,
            place: "before all others".into(),
            life: life.into(),
        };
        self.buffers.splice(0..0, parts.iter().map(planned));
        self.bytes = self.bytes.max(parts.iter().map(|(_, bytes)| bytes).sum());
    }

    /// Adds what is there all the time.
    pub(in crate::nn) fn always(&mut self, what: &str, bytes: usize, copies: usize) {
        if bytes * copies > 0 {
            let (what, place, life) = (what.into(), String::new(), "always".into());
            self.buffers.push(Planned { what, bytes, copies, place, life });
            self.bytes += bytes * copies;
        }
    }
}

/// What answering by this plan takes: `params` numbers in all, in lanes of `samples` each.
pub(super) fn answering(plan: &Plan, params: usize, lanes: (usize, usize), threads: usize) -> MemoryPlan {
    let mut memory = training(plan, params, (0, 0), lanes, threads);
    for buffer in &mut memory.buffers {
        buffer.life = buffer.life.replace(phase(plan, 0).as_str(), "forward").replace("update", "answer");
    }
    memory
}

/// What training of this plan takes: `params` numbers in all, of which `update.0` are trained with `update.1` floats of room;
/// in lanes of `samples` each.
pub(super) fn training(
    plan: &Plan,
    params: usize,
    update: (usize, usize),
    (lanes, samples): (usize, usize),
    threads: usize,
) -> MemoryPlan {
    const F32: usize = size_of::<f32>();
    let own = |of: &dyn Fn(OwnLen) -> usize| plan.layers.iter().map(|p| of(p.layer.own())).sum::<usize>();
    let bytes = |kept: bool| {
        let those = plan.layers.iter().enumerate().filter(|(i, _)| plan.keeps_bytes(*i) == kept);
        those.map(|(_, p)| p.layer.own().bytes).sum::<usize>()
    };
    let mut memory = MemoryPlan::default();
    memory.always("parameters", params * F32, 1);
    memory.always("velocity", update.0 * F32, 1);
    memory.always("packed weights", own(&|own| own.packed) * F32, 1);
    memory.always("room for the gradient being applied", update.1 * F32, 1);
    memory.always("sums of gradients", own(&|own| own.grad * F32 + own.sums * size_of::<f64>()), lanes);
    memory.always("winners of poolings, units kept", bytes(true) * samples, lanes);
    memory.always("winners of poolings, run by run", bytes(false) * plan.longest_run(), threads);
    let scratch = own(&|own| own.work) + plan.scratch() + plan.spare();
    memory.always("scratch", scratch * F32, threads);
    let mut lives: Vec<&Life> = plan.script.lives.iter().collect();
    lives.sort_by_key(|life| (life.phases, life.buffer.node()));
    memory.buffers.extend(lives.into_iter().map(|life| planned(plan, life, (lanes, samples), threads)));
    let floats = |places: &[usize]| places.iter().sum::<usize>();
    memory.bytes += F32 * (lanes * samples * floats(&plan.script.lane) + threads * floats(&plan.script.desk));
    memory
}

fn planned(plan: &Plan, life: &Life, (lanes, samples): (usize, usize), threads: usize) -> Planned {
    let (kind, node) = match life.buffer {
        Buffer::Value(node) => ("value", node),
        Buffer::Grad(node) => ("gradient", node),
    };
    let (owner, how) = if life.kept { ("lane", "") } else { ("thread", ", run by run") };
    let (copies, each) = if life.kept { (lanes, samples) } else { (threads, 1) };
    let (first, last) = (phase(plan, life.phases.0), phase(plan, life.phases.1));
    let span = if first == last { first } else { format!("{first} to {last}") };
    Planned {
        what: format!("{kind} {} of node {node}", plan.names[node]),
        bytes: each * life.len * size_of::<f32>(),
        copies,
        place: format!("{owner} {}", life.place),
        life: span + how,
    }
}

/// What a phase is called.
fn phase(plan: &Plan, index: usize) -> String {
    let turn = plan.starts.len() - 1;
    match index {
        _ if index < turn => format!("forward {}", index + 1),
        _ if index == turn => "forward and backward".into(),
        _ if index <= 2 * turn => format!("backward {}", 2 * turn - index + 1),
        _ => "update".into(),
    }
}
