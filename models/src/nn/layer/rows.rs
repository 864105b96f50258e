//! Walks over the rows of a run, for layers that work number by number.
use super::{Lane, Pass, Slot};

/// Runs `f(x row, y row)` over all rows of a run: the forward pass of what works number by number.
pub(super) fn map_rows(
    pass: &Pass<'_>,
    lane: &mut Lane,
    input: Slot,
    output: Slot,
    mut f: impl FnMut(&[f32], &mut [f32]),
) {
    let mut out = std::mem::take(&mut lane.values[output.node]);
    for s in pass.run.clone() {
        let x = &lane.values[input.node][input.value(pass, s)];
        let y = &mut out[output.value(pass, s)];
        (0..output.plane.dims.height).for_each(|r| f(&x[input.plane.row(r)], &mut y[output.plane.row(r)]));
    }
    lane.values[output.node] = out;
}

/// Runs `f(x row, y row, dy row, dx row)` over all rows of a run: the backward pass of what works number by number.
pub(super) fn map_rows_back(
    pass: &Pass<'_>,
    lane: &mut Lane,
    input: Slot,
    output: Slot,
    f: impl Fn(&[f32], &[f32], &[f32], &mut [f32]),
) {
    let mut dx = std::mem::take(&mut lane.grads[input.node]);
    let len = output.plane.row_len();
    for s in pass.run.clone() {
        let x = &lane.values[input.node][input.value(pass, s)];
        let y = &lane.values[output.node][output.value(pass, s)];
        let dy = &lane.grads[output.node][output.grad(pass, s)];
        let dx = &mut dx[input.grad(pass, s)];
        for (r, (dy, dx)) in dy.chunks_exact(len).zip(dx.chunks_exact_mut(len)).enumerate() {
            f(&x[input.plane.row(r)], &y[output.plane.row(r)], dy, dx);
        }
    }
    lane.grads[input.node] = dx;
}

/// Runs `f(dy, dx)` over all samples of a run: the backward pass of what needs no values for it.
pub(super) fn map_grads(
    pass: &Pass<'_>,
    lane: &mut Lane,
    input: Slot,
    output: Slot,
    f: impl Fn(&[f32], &mut [f32]),
) {
    let mut dx = std::mem::take(&mut lane.grads[input.node]);
    for s in pass.run.clone() {
        f(&lane.grads[output.node][output.grad(pass, s)], &mut dx[input.grad(pass, s)]);
    }
    lane.grads[input.node] = dx;
}
