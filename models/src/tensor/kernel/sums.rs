//! Sums per channel over channel-last pixels: bias gradients, and what batch normalisation needs of a batch in either
//! direction. They are added pixel after pixel to what is there, so a batch may come in any grouping.
use super::blocks::{block, in_blocks};
use super::dispatch::vectorised;
use super::isa::Isa;
use super::norm::{check_pixels, check_scale};
use super::pointwise::cut_if;
use super::pool::{POOL_CUT, PoolRow};

/// `sum[c] += Σ x[pixel][c]`: the gradient of a bias, among others.
pub fn add_channels(isa: Isa, x: &[f32], sum: &mut [f32]) {
    check_pixels(sum.len(), x);
    vectorised!(isa, add_channels_body(x: &[f32], sum: &mut [f32]));
}

#[inline(always)]
fn add_channels_body(x: &[f32], sum: &mut [f32]) {
    in_blocks!(sum.len(), add_channels_block(x, sum));
}

#[inline(always)]
fn add_channels_block<const B: usize>(at: usize, x: &[f32], sum: &mut [f32]) {
    let mut s: [f32; B] = block(sum, at);
    for pixel in x.chunks_exact(sum.len()) {
        let x: [f32; B] = block(pixel, at);
        for j in 0..B {
            s[j] += x[j];
        }
    }
    sum[at..][..B].copy_from_slice(&s);
}

/// `sum[c] += Σ y`, `squares[c] += Σ y²`.
pub fn channel_sums(isa: Isa, y: &[f32], sum: &mut [f32], squares: &mut [f32]) {
    check_pixels(sum.len(), y);
    assert_eq!(sum.len(), squares.len(), "channels");
    vectorised!(isa, channel_sums_body(y: &[f32], sum: &mut [f32], squares: &mut [f32]));
}

#[inline(always)]
fn channel_sums_body(y: &[f32], sum: &mut [f32], squares: &mut [f32]) {
    in_blocks!(sum.len(), channel_sums_block(y, sum, squares));
}

#[inline(always)]
fn channel_sums_block<const B: usize>(at: usize, y: &[f32], sum: &mut [f32], squares: &mut [f32]) {
    let (mut s, mut q): ([f32; B], [f32; B]) = (block(sum, at), block(squares, at));
    for pixel in y.chunks_exact(sum.len()) {
        let y: [f32; B] = block(pixel, at);
        for j in 0..B {
            s[j] += y[j];
            q[j] += y[j] * y[j];
        }
    }
    sum[at..][..B].copy_from_slice(&s);
    squares[at..][..B].copy_from_slice(&q);
}

/// `sum[c] += Σ g`, `product[c] += Σ g·y`: all that the backward pass of a normalisation needs of a batch.
pub fn grad_sums(isa: Isa, g: &[f32], y: &[f32], sum: &mut [f32], product: &mut [f32]) {
    check_pixels(sum.len(), y);
    assert!(g.len() == y.len() && sum.len() == product.len(), "gradients and values of a normalisation");
    vectorised!(isa, grad_sums_body(g: &[f32], y: &[f32], sum: &mut [f32], product: &mut [f32]));
}

#[inline(always)]
fn grad_sums_body(g: &[f32], y: &[f32], sum: &mut [f32], product: &mut [f32]) {
    in_blocks!(sum.len(), grad_sums_block(g, y, sum, product));
}

#[inline(always)]
fn grad_sums_block<const B: usize>(at: usize, g: &[f32], y: &[f32], sum: &mut [f32], product: &mut [f32]) {
    let c = sum.len();
    let (mut s, mut p): ([f32; B], [f32; B]) = (block(sum, at), block(product, at));
    for (g, y) in g.chunks_exact(c).zip(y.chunks_exact(c)) {
        let (g, y): ([f32; B], [f32; B]) = (block(g, at), block(y, at));
        for j in 0..B {
            s[j] += g[j];
            p[j] += g[j] * y[j];
        }
    }
    sum[at..][..B].copy_from_slice(&s);
    product[at..][..B].copy_from_slice(&p);
}

/// Clears `g` where the activation `scale[c]·y + shift[c]` isn't positive, then sums as [`grad_sums`].
pub fn relu_grad_sums(
    isa: Isa,
    g: &mut [f32],
    y: &[f32],
    scale: &[f32],
    shift: &[f32],
    sum: &mut [f32],
    product: &mut [f32],
) {
    check_scale(y, scale, shift, g);
    assert!(sum.len() == scale.len() && product.len() == scale.len(), "channels");
    vectorised!(isa, relu_grad_sums_body(
        g: &mut [f32], y: &[f32], scale: &[f32], shift: &[f32], sum: &mut [f32], product: &mut [f32],
    ));
}

#[inline(always)]
fn relu_grad_sums_body(
    g: &mut [f32],
    y: &[f32],
    scale: &[f32],
    shift: &[f32],
    sum: &mut [f32],
    product: &mut [f32],
) {
    in_blocks!(sum.len(), relu_grad_sums_block(g, y, (scale, shift), sum, product));
}

#[inline(always)]
fn relu_grad_sums_block<const B: usize>(
    at: usize,
    g: &mut [f32],
    y: &[f32],
    (scale, shift): (&[f32], &[f32]),
    sum: &mut [f32],
    product: &mut [f32],
) {
    let c = sum.len();
    let (scale, shift): ([f32; B], [f32; B]) = (block(scale, at), block(shift, at));
    let (mut s, mut p): ([f32; B], [f32; B]) = (block(sum, at), block(product, at));
    for (g, y) in g.chunks_exact_mut(c).zip(y.chunks_exact(c)) {
        let (mut open, y): ([f32; B], [f32; B]) = (block(g, at), block(y, at));
        for j in 0..B {
            open[j] = cut_if(scale[j] * y[j] + shift[j] <= 0.0, open[j]);
            s[j] += open[j];
            p[j] += open[j] * y[j];
        }
        g[at..][..B].copy_from_slice(&open);
    }
    sum[at..][..B].copy_from_slice(&s);
    product[at..][..B].copy_from_slice(&p);
}

/// `sum[c] += Σ g` over the pooled outputs that the ReLU let through: the gradient of the bias before the pooling.
pub fn pool_channel_sums(isa: Isa, g: &[f32], argmax: &[u8], sum: &mut [f32]) {
    check_pixels(sum.len(), g);
    assert_eq!(g.len(), argmax.len(), "gradients and winners");
    vectorised!(isa, pool_channel_sums_body(g: &[f32], argmax: &[u8], sum: &mut [f32]));
}

#[inline(always)]
fn pool_channel_sums_body(g: &[f32], argmax: &[u8], sum: &mut [f32]) {
    in_blocks!(sum.len(), pool_channel_sums_block(g, argmax, sum));
}

#[inline(always)]
fn pool_channel_sums_block<const B: usize>(at: usize, g: &[f32], argmax: &[u8], sum: &mut [f32]) {
    let c = sum.len();
    let mut s: [f32; B] = block(sum, at);
    for (g, argmax) in g.chunks_exact(c).zip(argmax.chunks_exact(c)) {
        let (g, won): ([f32; B], [u32; B]) = (block(g, at), block::<u8, B>(argmax, at).map(u32::from));
        for j in 0..B {
            s[j] += cut_if(won[j] == u32::from(POOL_CUT), g[j]);
        }
    }
    sum[at..][..B].copy_from_slice(&s);
}

/// [`grad_sums`] through the pooling of one row: `sum[c] += Σ g`, `product[c] += Σ g·y` with `y` of the winner, over the
/// outputs that the ReLU let through.
pub fn pool_grad_sums(
    isa: Isa,
    row: PoolRow,
    g: &[f32],
    argmax: &[u8],
    y: &[f32],
    sum: &mut [f32],
    product: &mut [f32],
) {
    row.check(y.len(), g.len(), argmax.len());
    assert!(sum.len() == row.channels && product.len() == row.channels, "channels");
    vectorised!(isa, pool_grad_sums_body(
        row: PoolRow, g: &[f32], argmax: &[u8], y: &[f32], sum: &mut [f32], product: &mut [f32],
    ));
}

#[inline(always)]
fn pool_grad_sums_body(
    row: PoolRow,
    g: &[f32],
    argmax: &[u8],
    y: &[f32],
    sum: &mut [f32],
    product: &mut [f32],
) {
    in_blocks!(row.channels, pool_grad_sums_block(row, (g, argmax), y, sum, product));
}

#[inline(always)]
fn pool_grad_sums_block<const B: usize>(
    at: usize,
    row: PoolRow,
    (g, argmax): (&[f32], &[u8]),
    y: &[f32],
    sum: &mut [f32],
    product: &mut [f32],
) {
    let c = row.channels;
    let (mut s, mut p): ([f32; B], [f32; B]) = (block(sum, at), block(product, at));
    for (x, (g, argmax)) in g.chunks_exact(c).zip(argmax.chunks_exact(c)).enumerate() {
        let (g, won): ([f32; B], [u32; B]) = (block(g, at), block::<u8, B>(argmax, at).map(u32::from));
        let mut winner = [0.0f32; B];
        for (i, corner) in (0u32..).zip(row.corners(x)) {
            let y: [f32; B] = block(y, corner + at);
            for j in 0..B {
                winner[j] += if won[j] == i { y[j] } else { 0.0 };
            }
        }
        for j in 0..B {
            let open = cut_if(won[j] == u32::from(POOL_CUT), g[j]);
            s[j] += open;
            p[j] += open * winner[j];
        }
    }
    sum[at..][..B].copy_from_slice(&s);
    product[at..][..B].copy_from_slice(&p);
}
