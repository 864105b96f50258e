//! The three engines give the same answers for every architecture and for a board's two streams.

use crate::common::{card, engines, ensemble, inputs, params};
use models::fed::Ensemble;
use models::infer::Outputs;
use models::nn::arch;
use onnx::{Role, export};

const TOLERANCE: f32 = 1e-4;
const SAMPLES: usize = 256;

/// The largest difference between two engines' answers.
fn difference(a: &Outputs, b: &Outputs) -> f32 {
    let pairs = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
    assert_eq!(a.log_probabilities.shape(), b.log_probabilities.shape());
    let answers = pairs(a.log_probabilities.values(), b.log_probabilities.values());
    match (&a.features, &b.features) {
        (Some(x), Some(y)) => answers.max(pairs(x.values(), y.values())),
        (x, y) => {
            assert_eq!(x, y);
            answers
        }
    }
}

/// Every engine against the first, on full batches and on a single sample.
fn agree(what: &str, ensemble: &Ensemble, role: Role) {
    let (graph, _) = arch::build(ensemble.spec.card()).unwrap();
    let bytes = export(ensemble, &graph, role).unwrap();
    let batch = inputs(ensemble.spec.card(), SAMPLES);
    let mut answers = Vec::new();
    for engine in engines() {
        let mut session = engine.prepare(&bytes).unwrap();
        let answer = session.run(batch.view()).unwrap();
        assert_eq!(answer.features.is_some(), role == Role::Specialist);
        let alone = session.run(crate::common::first(&batch).view()).unwrap();
        let row = &answer.log_probabilities.values()[..ensemble.spec.classes()];
        assert!(
            alone.log_probabilities.values().iter().zip(row).all(|(a, b)| (a - b).abs() < TOLERANCE),
            "{what}, {}",
            engine.name()
        );
        let total: f32 = row.iter().map(|l| l.exp()).sum();
        assert!((total - 1.0).abs() < 1e-5, "{what}, {}: probabilities sum to {total}", engine.name());
        answers.push((engine.name(), answer));
    }
    let (reference, first) = &answers[0];
    for (name, answer) in &answers[1..] {
        let apart = difference(first, answer);
        eprintln!("{what}: {reference} and {name} differ by {apart:e}");
        assert!(apart <= TOLERANCE, "{what}: {reference} and {name} differ by {apart:e}");
    }
}

#[test]
fn engines_agree_on_every_architecture() {
    for arch in arch::NAMES {
        let params = params(&card(arch, 0), 1);
        agree(arch, &Ensemble::single(&params, &[]), Role::Specialist);
    }
}

#[test]
fn engines_agree_on_a_mixture_and_on_conditioned_streams() {
    agree("mixture", &ensemble(&card("cc28", 0), 3), Role::Specialist);
    agree("conditioned mixture", &ensemble(&card("cc28", 8), 3), Role::Specialist);
    agree("conditioned mixture with batch norm", &ensemble(&card("cc32", 8), 2), Role::Generalist);
}
