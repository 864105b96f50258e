//! Pooling fused with what comes before it, against the parts one by one.
use super::floats;
use crate::tensor::kernel::*;
use proptest::prelude::*;

/// A pair of rows, whose values have ties, and everything per pooled output and per channel.
struct Case {
    row: PoolRow,
    y: Vec<f32>,
    g: Vec<f32>,
    channel: [Vec<f32>; 3],
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} y {:?} g {:?} {:?}", self.row, self.y, self.g, self.channel)
    }
}

fn case() -> impl Strategy<Value = Case> {
    (1..12usize, 1..40usize, 0..5usize).prop_flat_map(|(width, channels, gap)| {
        let row = PoolRow { width, channels, pitch: width * channels + gap };
        let coarse = floats(row.pair_len()).prop_map(|y| y.iter().map(|y| (y * 4.0).round() / 4.0).collect());
        let channel = [floats(channels), floats(channels), floats(channels)];
        (coarse, floats(row.pooled_len()), channel).prop_map(move |(y, g, channel)| Case {
            row,
            y,
            g,
            channel,
        })
    })
}

/// The winner among the four inputs of pooled output `at`, and its offset in `y`, if it is positive.
fn winner(row: PoolRow, y: &[f32], at: usize) -> Option<(u8, usize)> {
    let (x, channel) = (at / row.channels, at % row.channels);
    let corners =
        [0, row.channels, row.pitch, row.pitch + row.channels].map(|o| o + 2 * x * row.channels + channel);
    let mut best = 0;
    for i in 1..4 {
        best = if y[corners[i]] > y[corners[best]] { i } else { best };
    }
    (y[corners[best]] > 0.0).then_some((best as u8, corners[best]))
}

/// `scale·y + shift` of everything between the two rows' ends, gaps included.
fn normalised(case: &Case) -> Vec<f32> {
    let Case { row, y, channel: [scale, shift, _], .. } = case;
    let j = |at: usize| if at < row.pitch { at % row.channels } else { (at - row.pitch) % row.channels };
    y.iter().enumerate().map(|(at, y)| scale[j(at)] * y + shift[j(at)]).collect()
}

const UNTOUCHED: f32 = 7.5;

proptest! {
    #[test]
    fn pooling_takes_the_first_largest(case in case()) {
        let Case { row, y, g, channel: [scale, shift, _] } = &case;
        let z = normalised(&case);
        for isa in Isa::available() {
            let (mut out, mut argmax) = (vec![f32::NAN; g.len()], vec![9u8; g.len()]);
            relu_max_pool2(isa, *row, y, &mut out, &mut argmax);
            for at in 0..g.len() {
                let want = winner(*row, y, at).map_or((0.0, POOL_CUT), |(i, from)| (y[from], i));
                prop_assert_eq!((out[at], argmax[at]), want);
            }
            bn_relu_max_pool2(isa, *row, y, scale, shift, &mut out, &mut argmax);
            for at in 0..g.len() {
                let want = winner(*row, &z, at).map_or((0.0, POOL_CUT), |(i, from)| (z[from], i));
                prop_assert_eq!((out[at], argmax[at]), want);
            }
        }
    }

    #[test]
    fn unpooling_gives_the_winner_its_gradient(case in case()) {
        let Case { row, y, g, channel: [gain, offset, slope] } = &case;
        for isa in Isa::available() {
            let (mut out, mut argmax) = (vec![0.0; g.len()], vec![0u8; g.len()]);
            relu_max_pool2(isa, *row, y, &mut out, &mut argmax);
            let gap = row.width * row.channels..row.pitch;
            let mut want = vec![0.0; row.pair_len()];
            want[gap.clone()].fill(UNTOUCHED);
            (0..g.len()).for_each(|at| if let Some((_, to)) = winner(*row, y, at) { want[to] = g[at] });
            let mut dy = vec![UNTOUCHED; row.pair_len()];
            unpool2(isa, *row, g, &argmax, &mut dy);
            prop_assert_eq!(&dy, &want);

            let bn = BnBackward { gain, offset, slope };
            bn_unpool2(isa, *row, g, &argmax, y, row.pitch, bn, &mut dy);
            for half in [0, row.pitch] {
                let part = half..half + row.width * row.channels;
                let mut back = vec![0.0; part.len()];
                bn_backward(isa, &want[part.clone()], &y[part.clone()], bn, &mut back);
                prop_assert_eq!(&dy[part], &back);
            }
            prop_assert!(dy[gap].iter().all(|dy| *dy == UNTOUCHED));
        }
    }

    #[test]
    fn sums_through_the_pooling(case in case()) {
        let Case { row, y, g, channel: [a, b, _] } = &case;
        for isa in Isa::available() {
            let (mut out, mut argmax) = (vec![0.0; g.len()], vec![0u8; g.len()]);
            relu_max_pool2(isa, *row, y, &mut out, &mut argmax);
            let (mut sum, mut product) = (a.clone(), b.clone());
            for at in 0..g.len() {
                let Some((_, from)) = winner(*row, y, at) else { continue };
                sum[at % row.channels] += g[at];
                product[at % row.channels] += g[at] * y[from];
            }
            let (mut got, mut got_product, mut bias) = (a.clone(), b.clone(), a.clone());
            pool_grad_sums(isa, *row, g, &argmax, y, &mut got, &mut got_product);
            pool_channel_sums(isa, g, &argmax, &mut bias);
            prop_assert_eq!((&got, &got_product, &bias), (&sum, &product, &sum));
        }
    }
}
