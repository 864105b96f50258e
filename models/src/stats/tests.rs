use super::*;
use crate::id::ClientId;
use crate::tensor::rng::{Key, Purpose};

const SIDE: usize = 6;
const CLASSES: usize = 4;

/// Strokes whose place depends on the class, with noise.
fn data(n: usize, seed: u64) -> Samples {
    let mut stream = Key::new(seed, Purpose::Test).stream();
    let mut out = Samples { width: SIDE * SIDE, classes: CLASSES, ..Samples::default() };
    for _ in 0..n {
        let class = stream.below(CLASSES);
        out.labels.push(class as u16);
        out.values.extend((0..SIDE * SIDE).map(|p| {
            let on = p / SIDE == class + 1 && p % SIDE > class;
            (f32::from(u8::from(on)) * 0.6 + 0.4 * stream.unit()).min(1.0)
        }));
    }
    out
}

fn turned(samples: &Samples) -> Samples {
    let turn = |row: &[f32]| {
        (0..SIDE * SIDE).map(|p| row[(SIDE - 1 - p % SIDE) * SIDE + p / SIDE]).collect::<Vec<_>>()
    };
    Samples { values: (0..samples.len()).flat_map(|i| turn(samples.row(i))).collect(), ..samples.clone() }
}

fn relabelled(samples: &Samples) -> Samples {
    Samples { labels: samples.labels.iter().map(|l| (l + 1) % CLASSES as u16).collect(), ..samples.clone() }
}

fn far(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

#[test]
fn a_spectrum_is_what_the_covariance_says() {
    let samples = data(60, 1);
    let s = spectrum(&samples, 64);
    assert!(s.windows(2).all(|w| w[0] >= w[1]) && s.iter().all(|v| *v >= 0.0));
    let trace: f64 = (0..SIDE * SIDE + CLASSES)
        .map(|j| {
            let column: Vec<f64> = (0..60)
                .map(|i| match j.checked_sub(SIDE * SIDE) {
                    None => f64::from(samples.row(i)[j]),
                    Some(c) => f64::from(u8::from(usize::from(samples.labels[i]) == c)),
                })
                .collect();
            let mean = column.iter().sum::<f64>() / 60.0;
            column.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 59.0
        })
        .sum();
    assert!((s.iter().sum::<f64>() - trace).abs() < 1e-9, "eigenvalues sum to the total variance");
}

#[test]
fn the_gram_matrix_gives_the_same_spectrum() {
    // 30 samples of 40 numbers go by the Gram matrix; each of them twice is 60, and goes by the covariance.
    let few = data(30, 2);
    let many = few.select(&(0..30).chain(0..30).collect::<Vec<_>>());
    let (a, b) = (spectrum(&few, 20), spectrum(&many, 20));
    let rescaled: Vec<f64> = b.iter().map(|v| v * 59.0 / 60.0 * 30.0 / 29.0).collect();
    assert!(far(&a, &rescaled) < 1e-9);
}

/// The paper's statistic can't see what it is meant to see: permuting the label block or the pixels is an orthogonal change
/// of basis (methods §6, first suspicion; §10.7).
#[test]
fn v1_is_blind_to_label_permutation_right_angle_turns_and_order() {
    let samples = data(80, 3);
    let s = spectrum(&samples, 32);
    let mut order: Vec<usize> = (0..80).collect();
    order.reverse();
    for other in [relabelled(&samples), turned(&samples), samples.select(&order)] {
        assert!(far(&s, &spectrum(&other, 32)) < 1e-9);
    }
}

#[test]
fn v2_sees_label_permutation_and_turns_but_not_order() {
    let samples = data(80, 3);
    let block = label_block(&samples, 16, 7);
    let gap = |other: &Samples| {
        block.iter().zip(label_block(other, 16, 7)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    let scale = block.iter().map(|v| v.abs()).fold(0.0, f32::max);
    assert!(gap(&relabelled(&samples)) > 0.05 * scale && gap(&turned(&samples)) > 0.05 * scale);
    let mut order: Vec<usize> = (0..80).collect();
    order.reverse();
    assert!(gap(&samples.select(&order)) < 1e-6);
}

#[test]
fn the_public_normaliser_makes_a_typical_client_ordinary() {
    let key = Key::new(5, Purpose::Control);
    let normaliser = public(Statistic::V2, &data(400, 4), 16, key);
    let s = normaliser.apply(&measured(Statistic::V2, &data(150, 9), 16, 5));
    assert_eq!(s.len(), 16);
    assert!(s.iter().all(|v| v.abs() <= 3.0));
    assert_eq!(normaliser, public(Statistic::V2, &data(400, 4), 16, key));
}

#[test]
fn one_sample_has_no_spectrum_and_controls_differ_by_client() {
    assert_eq!(spectrum(&data(1, 1), 4), [0.0; 4]);
    assert_eq!(random(8, 3, ClientId(1)), random(8, 3, ClientId(1)));
    assert_ne!(random(8, 3, ClientId(1)), random(8, 3, ClientId(2)));
}
