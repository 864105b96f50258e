//! From lanes' sums to new weights: gradients are added up and applied block by block, so that none but the block's is ever whole.
use super::Fan;
use super::plan::Plan;
use crate::nn::layer::{Lane, Wanted};
use crate::nn::optim::Sgd;
use crate::nn::{isa, loss};
use crate::tensor::Aligned;
use std::ops::Range;

/// Values of a block: its gradient stays in the second-level cache.
const BLOCK: usize = 40_000;
/// Rows of a linear layer's block come in multiples of this: whole register tiles.
const TILE: usize = 12;
/// Parts of the flat buffer that threads may work on.
const SPANS: usize = 4;

/// Rows of one trained parameter.
#[derive(Clone, Debug)]
struct Block {
    layer: usize,
    which: usize,
    rows: Range<usize>,
    range: Range<usize>,
}

/// Neighbouring blocks, and room for their gradients.
#[derive(Debug, Default)]
struct Span {
    blocks: Vec<Block>,
    range: Range<usize>,
    grad: Aligned,
    work: Vec<f32>,
    /// Value of the proximal term.
    pull: f64,
}

impl Span {
    /// Numbers that are trained; between them there may be some that aren't.
    fn trained(&self) -> usize {
        self.blocks.iter().map(|b| b.range.len()).sum()
    }

    /// Floats of the largest block's gradient, and of the scratch that computing one takes.
    fn floats(&self, plan: &Plan, samples: usize) -> (usize, usize) {
        let grad = self.blocks.iter().map(|b| b.range.len()).max().unwrap_or(0);
        let work = |b: &Block| plan.layers[b.layer].layer.own().applying.max(samples * b.rows.len());
        (grad, self.blocks.iter().map(work).max().unwrap_or(0))
    }
}

/// All trained parameters, cut into spans of blocks.
#[derive(Debug)]
pub(super) struct Update {
    spans: Vec<Span>,
}

/// A span with its weights and their velocity.
#[derive(Default)]
struct Part<'a> {
    span: Option<&'a mut Span>,
    w: &'a mut [f32],
    v: &'a mut [f32],
}

/// A proximal term, in the engine's order.
#[derive(Clone, Debug)]
pub(super) struct Pull {
    pub anchor: Vec<f32>,
    pub mu: f32,
    /// Where it pulls.
    pub on: Vec<Range<usize>>,
}

impl Pull {
    fn holds(&self, range: &Range<usize>) -> bool {
        self.on.iter().any(|on| on.start <= range.start && range.end <= on.end)
    }
}

impl Update {
    /// `samples` are the most of a lane.
    pub(super) fn of(plan: &Plan, samples: usize) -> Self {
        let blocks = blocks(plan);
        let total: usize = blocks.iter().map(|b| b.range.len()).sum();
        let mut spans: Vec<Span> = Vec::new();
        let mut done = 0;
        for block in blocks {
            let size = block.range.len();
            if spans.len() <= done * SPANS / total.max(1) {
                spans.push(Span { range: block.range.start..block.range.end, ..Span::default() });
            }
            let span = spans.last_mut().expect("the first block opens the first span");
            span.range.end = block.range.end;
            span.blocks.push(block);
            done += size;
        }
        for span in &mut spans {
            let (grad, work) = span.floats(plan, samples);
            (span.grad, span.work) = (Aligned::zeros(grad), Vec::with_capacity(work));
        }
        Self { spans }
    }

    /// How many numbers are trained.
    pub(super) fn len(&self) -> usize {
        self.spans.iter().map(Span::trained).sum()
    }

    /// Floats of a velocity and of the room for gradients.
    pub(super) fn floats(plan: &Plan, samples: usize) -> (usize, usize) {
        let update = Self::of(plan, samples);
        let room = |span: &Span| span.grad.len() + span.work.capacity();
        (update.len(), update.spans.iter().map(room).sum())
    }

    /// Takes a step; returns the value of the proximal term before it.
    pub(super) fn apply(
        &mut self,
        fan: Fan,
        (plan, packed): (&Plan, &[Aligned]),
        lanes: &[Lane],
        (sgd, pull): (Sgd, Option<&Pull>),
        (params, velocity): (&mut [f32], &mut [f32]),
    ) -> f64 {
        let mut parts: [Part<'_>; SPANS] = Default::default();
        let (mut w, mut v, mut at) = (params, velocity, 0);
        for (part, span) in parts.iter_mut().zip(&mut self.spans) {
            let gap = span.range.start - at;
            at = span.range.end;
            let (mine, rest) = w[gap..].split_at_mut(span.range.len());
            let (speed, slower) = v.split_at_mut(span.trained());
            (w, v) = (rest, slower);
            *part = Part { span: Some(span), w: mine, v: speed };
        }
        fan.each(&mut parts, &|_, Part { span, w, v }| {
            let Some(span) = span else { return };
            span.pull = 0.0;
            let (start, mut done) = (span.range.start, 0);
            for block in &span.blocks {
                let grad = &mut span.grad[..block.range.len()];
                gradient(plan, packed, lanes, block, &mut span.work, grad);
                let w = &mut w[block.range.start - start..block.range.end - start];
                let v = &mut v[done..done + w.len()];
                done += w.len();
                if let Some(pull) = pull.filter(|pull| pull.holds(&block.range)) {
                    span.pull += loss::proximal(w, &pull.anchor[block.range.clone()], pull.mu, grad);
                }
                sgd.step(w, v, grad);
            }
        });
        self.spans.iter().map(|span| span.pull).sum()
    }

    /// Adds the gradient to `to`, which has the length of all parameters.
    pub(super) fn accumulate(&mut self, plan: &Plan, packed: &[Aligned], lanes: &[Lane], to: &mut [f32]) {
        for span in &mut self.spans {
            for block in &span.blocks {
                let grad = &mut span.grad[..block.range.len()];
                gradient(plan, packed, lanes, block, &mut span.work, grad);
                to[block.range.clone()].iter_mut().zip(grad).for_each(|(to, g)| *to += *g);
            }
        }
    }
}

fn gradient(
    plan: &Plan,
    packed: &[Aligned],
    lanes: &[Lane],
    block: &Block,
    work: &mut Vec<f32>,
    grad: &mut [f32],
) {
    grad.fill(0.0);
    let wanted = Wanted { which: block.which, rows: block.rows.clone(), packed: &packed[block.layer] };
    plan.layers[block.layer].layer.gradient(isa(), &wanted, lanes, work, grad);
}

fn blocks(plan: &Plan) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (layer, trained) in &plan.trained {
        let rows = trained.range.len() / trained.row.max(1);
        let step = (BLOCK / trained.row.max(1) / TILE * TILE).max(TILE);
        for first in (0..rows).step_by(step) {
            let rows = first..rows.min(first + step);
            let place = |row: usize| trained.range.start + row * trained.row;
            let range = place(rows.start)..place(rows.end);
            blocks.push(Block { layer: *layer, which: trained.which, rows, range });
        }
    }
    blocks
}
