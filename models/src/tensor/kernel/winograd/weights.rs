//! Weights of a window of three, and their gradients.
use super::{A, A2, B, B2, WINOGRAD_PLANES};

/// The weights' factors.
const ZERO: f32 = 1.0 / (A2 * B2);
const INNER: f32 = 1.0 / (2.0 * A2 * (B2 - A2));
const OUTER: f32 = 1.0 / (2.0 * B2 * (B2 - A2));

/// The six weights that stand for a window of three.
pub fn winograd_weights(g: [f32; 3]) -> [f32; WINOGRAD_PLANES] {
    let (even, odd) = (g[0] + A2 * g[2], A * g[1]);
    let (outer_even, outer_odd) = (g[0] + B2 * g[2], B * g[1]);
    [
        g[0] * ZERO,
        (even + odd) * INNER,
        (even - odd) * INNER,
        g[2],
        (outer_even + outer_odd) * OUTER,
        (outer_even - outer_odd) * OUTER,
    ]
}

/// The transpose of [`winograd_weights`]: the gradient of the window from those of the six.
pub fn winograd_weight_grad(u: [f32; WINOGRAD_PLANES]) -> [f32; 3] {
    let (even, odd) = ((u[1] + u[2]) * INNER, (u[1] - u[2]) * INNER);
    let (outer_even, outer_odd) = ((u[4] + u[5]) * OUTER, (u[4] - u[5]) * OUTER);
    [u[0] * ZERO + (even + outer_even), A * odd + B * outer_odd, (A2 * even + B2 * outer_even) + u[3]]
}
