//! Routing: the rule's algebra, and what the two streams make of an input.
use crate::fed::{Decider, Gallery, Router, argmax};
use crate::nn::{Features, loss};

fn log(p: &[f32]) -> Vec<f32> {
    p.iter().map(|v| libm::logf(*v)).collect()
}

/// Science §8.2: where tests come from (1−ε)·π + ε·uniform, routing between S and its own de-biased self is the exact posterior.
#[test]
fn the_smoothed_prior_is_the_exact_posterior() {
    let (epsilon, pi, z) = (0.2_f32, [0.6_f32, 0.3, 0.09, 0.01], [0.3_f32, -0.2, 1.4, 2.0]);
    let mut unbiased = z.to_vec();
    loss::log_softmax(&mut unbiased);
    let mut specialist: Vec<f32> = z.iter().zip(&pi).map(|(z, p)| z + libm::logf(*p)).collect();
    loss::log_softmax(&mut specialist);
    let routed = Router::from_prior(log(&pi), epsilon).route(&specialist, &unbiased, &[]);
    let joint: Vec<f32> = unbiased
        .iter()
        .zip(&pi)
        .map(|(d, p)| libm::expf(*d) * ((1.0 - epsilon) * p + epsilon / 4.0))
        .collect();
    let total: f32 = joint.iter().sum();
    for (p, j) in routed.probabilities.iter().zip(&joint) {
        assert!((p - j / total).abs() < 1e-6);
    }
}

#[test]
fn confidence_is_never_below_chance_and_one_for_certainty() {
    let router = Router::Confidence { temperature: 1.0 };
    assert!((router.weight(&log(&[0.25; 4]), &[], &[]) - 0.25).abs() < 1e-6);
    assert!((router.weight(&log(&[1.0, 1e-30]), &[], &[]) - 1.0).abs() < 1e-6);
    let flat = Router::Confidence { temperature: 4.0 };
    assert!(flat.weight(&log(&[0.9, 0.1]), &[], &[]) < router.weight(&log(&[0.9, 0.1]), &[], &[]));
}

#[test]
fn who_decided_is_who_weighs_more_on_the_answer() {
    let router = Router::from_prior(log(&[0.999, 0.001]), 0.2);
    let (specialist, generalist) = (log(&[0.99, 0.01]), log(&[0.01, 0.99]));
    let strange = router.route(&specialist, &generalist, &[]);
    assert!(strange.unfamiliar && strange.class() == 1 && strange.decided_by == Decider::Generalist);
    let known = router.route(&specialist, &log(&[0.9, 0.1]), &[]);
    assert!(!known.unfamiliar && known.class() == 0 && known.decided_by == Decider::Specialist);
    let alone = Router::Specialist.route(&specialist, &generalist, &[]);
    assert_eq!((alone.weight, argmax(&alone.probabilities)), (1.0, 0));
    assert_eq!(alone.probabilities, alone.specialist);
}

#[test]
fn kappa_is_small_far_from_the_training_features() {
    let rows: Vec<[f32; 3]> = (0..12).map(|i| [1.0, 0.1 * i as f32 / 12.0, 0.05 * (i % 3) as f32]).collect();
    let features = Features { width: 3, values: rows.concat(), labels: vec![0; 12] };
    let gallery = Gallery::of(&features);
    let near = gallery.kappa(&[2.0, 0.1, 0.1]).unwrap();
    let far = gallery.kappa(&[0.0, 1.0, 0.0]).unwrap();
    assert!(near > -2.0 && far < -10.0, "{near} {far}");
    assert_eq!(Gallery::of(&features.select(&[0])).kappa(&[1.0, 0.0, 0.0]), None);
}
