//! The hash of `golden/README.md`: weights, inputs, labels and orders that two implementations can both make.

/// 64 bits for entry `i` of a stream.
pub fn bits(stream: u64, i: u64) -> u64 {
    let mut z = i.wrapping_add(stream << 32).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// In [−1, 1), exact in `f32`.
pub fn symmetric(stream: u64, i: u64) -> f64 {
    ((bits(stream, i) >> 40) as f64 - 8_388_608.0) / 8_388_608.0
}

/// A class.
pub fn label(stream: u64, i: u64, classes: u64) -> u16 {
    (bits(stream, i) % classes) as u16
}

/// The indices 0..n sorted by their bits.
pub fn order(stream: u64, n: usize) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..n).collect();
    indices.sort_by_key(|&i| (bits(stream, i as u64), i));
    indices
}

/// `n` weights within ±`bound`.
pub fn weights(stream: u64, n: usize, bound: f64) -> Vec<f32> {
    (0..n as u64).map(|i| (symmetric(stream, i) * bound) as f32).collect()
}

/// Row `row` of class `class`: half noise, half the class's pattern.
pub fn input(noise: u64, patterns: u64, row: usize, class: u16, size: usize) -> Vec<f32> {
    let own = |j: usize| symmetric(noise, (row * size + j) as u64);
    (0..size).map(|j| ((own(j) + symmetric(patterns + u64::from(class), j as u64)) / 2.0) as f32).collect()
}
