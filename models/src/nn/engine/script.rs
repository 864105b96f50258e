//! What a step does, in order, and what is alive meanwhile.
//!
//! A step is a row of *phases*. In a phase each lane works on its own, run after run, through the phase's moves; between phases lanes
//! meet. A value or gradient that only one phase touches is needed for a run of samples at a time, on the desk of the thread that works; one that
//! several phases touch is kept for all of the lane's samples. Of the values that the way back looks at again, convolutions' and linear layers' are kept and what follows
//! from them cheaply is computed again.
use super::plan::Placed;
use super::share::{Need, share};
use crate::nn::layer::{Lane, Recalls, Slot};
use std::ops::Range;

/// Something whose memory comes and goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Buffer {
    /// A node's value.
    Value(usize),
    /// Its gradient.
    Grad(usize),
}

impl Buffer {
    pub(super) fn node(self) -> usize {
        let (Self::Value(node) | Self::Grad(node)) = self;
        node
    }

    /// Its place among all values and then all gradients.
    fn index(self, nodes: usize) -> usize {
        match self {
            Self::Value(node) => node,
            Self::Grad(node) => nodes + node,
        }
    }

    /// Its memory in a lane.
    pub(super) fn of(self, lane: &mut Lane) -> &mut Vec<f32> {
        match self {
            Self::Value(node) => &mut lane.values[node],
            Self::Grad(node) => &mut lane.grads[node],
        }
    }
}

/// One thing to do for a run of samples; the number is a layer's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Move {
    /// Compute a value, or compute it again.
    Forward(usize),
    /// Sum up what lanes meet for.
    Collect(usize),
    /// Compare the logits.
    Loss,
    /// Compute gradients; of a layer at which lanes meet: sum up what they meet for.
    Backward(usize),
    /// Compute the gradients of a layer at which lanes have met.
    Finish(usize),
    /// Give a buffer memory from the desk.
    Take(Buffer, usize),
    /// Put it back.
    Give(Buffer, usize),
}

/// What lanes do between two meetings.
#[derive(Debug, Default)]
pub(super) struct Phase {
    /// Samples that go through together.
    pub run: usize,
    pub moves: Vec<Move>,
    /// Kept buffers whose life begins here, with their places.
    pub begins: Vec<(Buffer, usize)>,
    /// Those whose life ends here.
    pub ends: Vec<(Buffer, usize)>,
}

/// One logical buffer, for reports.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub buffer: Buffer,
    /// Floats; of one sample if it is kept.
    pub len: usize,
    /// Whether it belongs to a lane rather than to a desk.
    pub kept: bool,
    pub place: usize,
    /// First and last phase.
    pub phases: (usize, usize),
}

/// All phases of a step, and the memory that they need.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The last one has no moves: it is the time in which lanes' sums become a new model, or answers are read.
    pub phases: Vec<Phase>,
    /// Floats of each place of a lane, for one sample.
    pub lane: Vec<usize>,
    /// Floats of each place of a desk.
    pub desk: Vec<usize>,
    pub lives: Vec<Life>,
}

/// What a script is written for.
#[derive(Debug)]
pub(super) struct Cast<'a> {
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
    fn segments(&self) -> usize {
        self.starts.len()
    }

    fn segment(&self, index: usize) -> Range<usize> {
        self.starts[index]..self.starts.get(index + 1).copied().unwrap_or(self.layers.len())
    }

    /// The phase of the last segment, forward and backward.
    fn turn(&self) -> usize {
        self.segments() - 1
    }

    fn moved(&self, layer: usize) -> bool {
        self.moved[self.layers[layer].node]
    }

    fn recalls(&self, layer: usize) -> Recalls {
        let Placed { layer, .. } = &self.layers[layer];
        let recalls = layer.recalls();
        // What comes with a value, like the winners of a pooling, comes again with it; lanes that meet keep it anyway.
        let more = layer.own().bytes > 0 && layer.barrier().is_none();
        Recalls { output: recalls.output || more, ..recalls }
    }

    /// Phases in order, without what is computed again.
    fn moves(&self) -> Vec<Vec<Move>> {
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
    fn touches(&self, what: Move) -> Vec<Buffer> {
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
    fn touched_at_the_end(&self) -> Vec<Buffer> {
        let batch = self.layers.iter().filter(|placed| placed.layer.recalls().batch);
        let of = |placed: &Placed| {
            let inputs = placed.reads.iter().map(|&n| Buffer::Value(n));
            inputs.chain([Buffer::Grad(placed.node)]).collect::<Vec<_>>()
        };
        batch.flat_map(of).chain(self.wanted.iter().map(|&n| Buffer::Value(n))).collect()
    }
}

/// Which buffers are kept for all samples of a lane, and which values are computed again on the way back, by node.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    pub values: Vec<bool>,
    pub grads: Vec<bool>,
    again: Vec<bool>,
}

impl Keeping {
    pub(super) fn of(cast: &Cast<'_>) -> Self {
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

    fn keeps(&self, buffer: Buffer) -> bool {
        match buffer {
            Buffer::Value(node) => self.values[node],
            Buffer::Grad(node) => self.grads[node],
        }
    }
}

/// Samples in a lane, and how many of them go through together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// The most samples of a lane.
    pub samples: usize,
    /// The most that go through together.
    pub run: usize,
}

/// Floats of a run on a desk that stay in a core's own cache, where a phase only passes by.
const PASSING: usize = 128 << 10;
/// The same of the phase that turns around, whose linear layers read all of their weights for each run.
const TURNING: usize = 3 << 19;

impl Script {
    /// Of the samples of a lane, at most `run` go through together.
    pub(super) fn of(cast: &Cast<'_>, keeping: &Keeping, slots: &[Option<Slot>], run: usize) -> Self {
        let mut phases = cast.moves();
        for k in 0..cast.turn() {
            let again = cast.segment(k).filter(|&i| keeping.again[cast.layers[i].node]).map(Move::Forward);
            let back = &mut phases[2 * cast.turn() - k];
            *back = again.chain(back.iter().copied()).collect();
        }
        let end = phases.len() - 1;
        let mut writer = Writer { cast, keeping, slots, run, lives: vec![] };
        let mut script = Self::default();
        for (index, moves) in phases.iter().enumerate() {
            let run = writer.phase(index, moves, index == cast.turn());
            script.phases.push(Phase { run, moves: moves.clone(), ..Phase::default() });
        }
        cast.touched_at_the_end().into_iter().for_each(|b| writer.touch(b, end, 0, 1));
        writer.place(&mut script);
        script
    }
}

/// When a buffer is touched.
struct Touched {
    buffer: Buffer,
    /// Floats: the most of all phases, of one sample if it is kept.
    len: usize,
    /// By phase: first and last move.
    moves: Vec<(usize, usize, usize)>,
}

struct Writer<'a> {
    cast: &'a Cast<'a>,
    keeping: &'a Keeping,
    slots: &'a [Option<Slot>],
    run: usize,
    lives: Vec<Touched>,
}

impl Writer<'_> {
    /// Floats of one sample.
    fn sample(&self, buffer: Buffer) -> usize {
        let slot = self.slots[buffer.node()].as_ref();
        slot.map_or(0, |slot| match buffer {
            Buffer::Value(_) => slot.plane.len(),
            Buffer::Grad(_) => slot.plane.dims.len(),
        })
    }

    /// The most floats that are on a desk at a time for one sample.
    fn most_alive(&self, touched: &[Vec<Buffer>]) -> usize {
        let mut spans: Vec<(Buffer, usize, usize)> = vec![];
        for (place, buffers) in touched.iter().enumerate() {
            for &buffer in buffers.iter().filter(|b| !self.keeping.keeps(**b)) {
                match spans.iter_mut().find(|s| s.0 == buffer) {
                    Some(span) => span.2 = place,
                    None => spans.push((buffer, place, place)),
                }
            }
        }
        let alive = |place: usize| {
            let now = spans.iter().filter(|s| (s.1..=s.2).contains(&place));
            now.map(|s| self.sample(s.0)).sum()
        };
        (0..touched.len()).map(alive).max().unwrap_or(0)
    }

    /// Notes what a phase touches; returns its run.
    fn phase(&mut self, index: usize, moves: &[Move], turns: bool) -> usize {
        let touched: Vec<Vec<Buffer>> = moves.iter().map(|&m| self.cast.touches(m)).collect();
        let room = if turns { TURNING } else { PASSING };
        let run = (room / self.most_alive(&touched).max(1)).clamp(1, self.run.max(1));
        for (place, buffers) in touched.iter().enumerate() {
            for &buffer in buffers {
                let samples = if self.keeping.keeps(buffer) { 1 } else { run };
                self.touch(buffer, index, place, samples);
            }
        }
        run
    }

    fn touch(&mut self, buffer: Buffer, phase: usize, place: usize, samples: usize) {
        let len = samples * self.sample(buffer);
        let known = self.lives.iter().position(|l| l.buffer == buffer);
        let at = known.unwrap_or_else(|| {
            self.lives.push(Touched { buffer, len: 0, moves: vec![] });
            self.lives.len() - 1
        });
        let life = &mut self.lives[at];
        life.len = life.len.max(len);
        match life.moves.last_mut() {
            Some(last) if last.0 == phase => last.2 = place,
            _ => life.moves.push((phase, place, place)),
        }
    }

    fn need(&self, touched: &Touched, alive: Vec<(usize, usize)>) -> Need {
        let slot = self.slots[touched.buffer.node()].filter(|_| matches!(touched.buffer, Buffer::Value(_)));
        let bordered = slot.map(|slot| slot.plane).filter(|plane| plane.border != [0, 0]);
        Need { len: touched.len, bordered, alive }
    }

    /// Finds a place for each buffer and writes down where it comes from and goes to.
    fn place(self, script: &mut Script) {
        let (kept, desk): (Vec<&Touched>, Vec<&Touched>) =
            self.lives.iter().partition(|l| self.keeping.keeps(l.buffer));
        let span = |l: &Touched| (l.moves[0].0, l.moves[l.moves.len() - 1].0);
        let needs: Vec<Need> = kept.iter().map(|l| self.need(l, vec![span(l)])).collect();
        let (places, lens) = share(&needs);
        script.lane = lens;
        for (life, &place) in kept.iter().zip(&places) {
            let (first, last) = span(life);
            script.phases[first].begins.push((life.buffer, place));
            script.phases[last].ends.push((life.buffer, place));
            script.lives.push(Life {
                buffer: life.buffer,
                len: life.len,
                kept: true,
                place,
                phases: (first, last),
            });
        }
        const APART: usize = 1 << 16;
        let alive = |l: &Touched| l.moves.iter().map(|m| (m.0 * APART + m.1, m.0 * APART + m.2)).collect();
        let needs: Vec<Need> = desk.iter().map(|l| self.need(l, alive(l))).collect();
        let (places, lens) = share(&needs);
        script.desk = lens;
        for (index, phase) in script.phases.iter_mut().enumerate() {
            let here = |l: &Touched| l.moves.iter().find(|m| m.0 == index).copied();
            let comings: Vec<_> = desk
                .iter()
                .zip(&places)
                .filter_map(|(l, &place)| here(l).map(|(_, first, last)| (l.buffer, place, first, last)))
                .collect();
            let moves = std::mem::take(&mut phase.moves);
            for (at, what) in moves.into_iter().enumerate() {
                let of = |wanted: &dyn Fn(usize, usize) -> bool| {
                    comings.iter().filter(|c| wanted(c.2, c.3)).map(|c| (c.0, c.1)).collect::<Vec<_>>()
                };
                phase.moves.extend(of(&|first, _| first == at).into_iter().map(|(b, p)| Move::Take(b, p)));
                phase.moves.push(what);
                phase.moves.extend(of(&|_, last| last == at).into_iter().map(|(b, p)| Move::Give(b, p)));
            }
        }
        for (life, &place) in desk.iter().zip(&places) {
            script.lives.push(Life {
                buffer: life.buffer,
                len: life.len,
                kept: false,
                place,
                phases: span(life),
            });
        }
    }
}
