//! What a step does, in order, and what is alive meanwhile.
//!
//! A step is a row of *phases*. In a phase each lane works on its own, run after run, through the phase's moves; between phases lanes
//! meet. A value or gradient that only one phase touches is needed for a run of samples at a time, on the desk of the thread that works; one that
//! several phases touch is kept for all of the lane's samples. Of the values that the way back looks at again, convolutions' and linear layers' are kept and what follows
//! from them cheaply is computed again.
mod cast;
mod keeping;
mod writer;

pub(super) use cast::Cast;
pub(super) use keeping::Keeping;

use crate::nn::layer::{Lane, Slot};
use crate::tensor::Aligned;
use writer::Writer;

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
    pub(super) fn of(self, lane: &mut Lane) -> &mut Aligned {
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

/// Samples in a lane, and how many of them go through together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// The most samples of a lane.
    pub samples: usize,
    /// The most that go through together.
    pub run: usize,
}

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
