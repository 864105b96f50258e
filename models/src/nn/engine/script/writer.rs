//! Finds a place for every buffer, and writes down when it comes and goes.
use super::{Buffer, Cast, Keeping, Life, Move, Script};
use crate::nn::engine::share::{Need, share};
use crate::nn::layer::Slot;

/// Floats of a run on a desk that stay in a core's own cache, where a phase only passes by.
const PASSING: usize = 128 << 10;
/// The same of the phase that turns around, whose linear layers read all of their weights for each run.
const TURNING: usize = 3 << 19;

/// When a buffer is touched.
pub(super) struct Touched {
    buffer: Buffer,
    /// Floats: the most of all phases, of one sample if it is kept.
    len: usize,
    /// By phase: first and last move.
    moves: Vec<(usize, usize, usize)>,
}

pub(super) struct Writer<'a> {
    pub(super) cast: &'a Cast<'a>,
    pub(super) keeping: &'a Keeping,
    pub(super) slots: &'a [Option<Slot>],
    pub(super) run: usize,
    pub(super) lives: Vec<Touched>,
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
    pub(super) fn phase(&mut self, index: usize, moves: &[Move], turns: bool) -> usize {
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

    pub(super) fn touch(&mut self, buffer: Buffer, phase: usize, place: usize, samples: usize) {
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
    pub(super) fn place(self, script: &mut Script) {
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
