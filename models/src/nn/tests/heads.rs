//! Head-only work is the same arithmetic as the whole network with a frozen backbone.
use super::*;
use crate::id::ClientId;
use crate::params::{Mask, Part};
use std::sync::Arc;

#[test]
fn fitting_a_head_on_features_is_training_it_in_the_network() {
    for (arch, input) in
        [("cc28", [1, 12, 12]), ("cc32", [3, 8, 8]), ("kdhcnn", [3, 12, 12]), ("lenet5", [1, 28, 28])]
    {
        let (graph, spec) = arch::build(&card(arch, input, 5, 0)).unwrap();
        let samples = Samples::random(&graph, 5, 90);
        let data =
            Dataset::new(Inputs::Floats(samples.inputs), samples.labels, graph.input().len(), 5).unwrap();
        let mut remembering =
            LocalTrainer::new((Arc::clone(&graph), Arc::clone(&spec)), data.clone(), (1, ClientId(0)), None)
                .unwrap();
        let mut trainer = LocalTrainer::new((graph, Arc::clone(&spec)), data, (1, ClientId(0)), None)
            .unwrap()
            .with_cache(None);
        let start = init(trainer.graph(), &spec, 3);
        let (trains, order) = (Mask::part(&spec, Part::Head), Key::new(1, Purpose::Adapt));
        let (rate, momentum, prior) = (LearningRate(0.1), 0.9, Some(&[-1.0, -0.5, -2.0, -3.0, -1.5][..]));
        let loss = Loss { prior, ..Loss::default() };
        let job =
            Job { trains: &trains, epochs: 3, batch: 16, rate, momentum, order, loss, conditioning: &[] };
        let trained = trainer.train(&start, &job).unwrap();
        for _ in 0..2 {
            let remembered = remembering.train(&start, &job).unwrap();
            assert_eq!((&remembered.params, remembered.visits), (&trained.params, trained.visits), "{arch}");
            assert!((remembered.loss - trained.loss).abs() < 1e-9, "{arch}");
        }
        let whole = trained.params;
        let features = trainer.features(&start.backbone(), &[], Split::Train).unwrap();
        let alone = head::HeadJob { epochs: 3, batch: 16, rate, momentum, order, prior };
        let head = head::fit(&features, &start.head(), &alone).unwrap();
        assert_eq!(whole.head(), head, "{arch}");
        assert_eq!(whole.backbone(), start.backbone(), "{arch}");
        let metrics = trainer.evaluate(&whole, &[], Split::Train).unwrap();
        assert!((metrics.loss - head::cross_entropy(&features, &head)).abs() < 1e-12, "{arch}");
    }
}

#[test]
fn a_prior_in_the_bias_moves_probabilities_by_it() {
    let (graph, spec) = arch::build(&card("mlp", [1, 4, 4], 3, 0)).unwrap();
    let head = init(&graph, &spec, 3).head();
    let values = normal(&mut stream(4), 10 * spec.features(), 1.0);
    let features = Features { width: spec.features(), values, labels: vec![0; 10] };
    let shares = [0.2_f32, 0.5, 0.3];
    let prior = head::add_prior(&head, &shares.map(libm::logf), 1.0);
    let (plain, moved) = (head::probabilities(&features, &head), head::probabilities(&features, &prior));
    for (p, q) in plain.chunks_exact(3).zip(moved.chunks_exact(3)) {
        let total: f32 = p.iter().zip(shares).map(|(p, s)| p * s).sum();
        p.iter().zip(shares).zip(q).for_each(|((p, s), q)| assert!((p * s / total - q).abs() < 1e-6));
    }
    let back = head::add_prior(&prior, &shares.map(libm::logf), -1.0);
    back.values().iter().zip(head.values()).for_each(|(a, b)| assert!((a - b).abs() < 1e-6));
}

#[test]
fn remembered_features_are_bounded_and_never_those_of_another_backbone_or_sample() {
    let (graph, spec) = arch::build(&card("cc28", [1, 8, 8], 4, 3)).unwrap();
    let samples = Samples::random(&graph, 4, 40);
    let data = Dataset::new(Inputs::Floats(samples.inputs), samples.labels, 64, 4).unwrap();
    let trainer = |cache| {
        LocalTrainer::new((Arc::clone(&graph), Arc::clone(&spec)), data.clone(), (1, ClientId(0)), None)
            .unwrap()
            .with_cache(cache)
    };
    let row = 4 * spec.features() + 40;
    let most = 50 * row;
    let mut remembering = trainer(Some(FeatureCache::new(Precision::F32, most)));
    let mut rounding = trainer(Some(FeatureCache::new(Precision::F16, most)));
    let mut tiny = trainer(Some(FeatureCache::new(Precision::F32, 10 * row)));
    let mut fresh = trainer(None);
    for (seed, conditioning) in [(1, [0.0; 3]), (2, [0.0; 3]), (2, [1.0; 3]), (1, [0.0; 3])] {
        let backbone = init(&graph, &spec, seed).backbone();
        for split in [Split::Validation, Split::Train, Split::Probe(9), Split::Train] {
            let right = fresh.features(&backbone, &conditioning, split).unwrap();
            assert_eq!(remembering.features(&backbone, &conditioning, split).unwrap(), right);
            assert_eq!(tiny.features(&backbone, &conditioning, split).unwrap(), right);
            let near = rounding.features(&backbone, &conditioning, split).unwrap();
            assert_eq!(near.labels, right.labels);
            let close = |(a, b): (&f32, &f32)| (a - b).abs() <= b.abs() / 2048.0 + 1e-7;
            assert!(near.values.iter().zip(&right.values).all(close));
            assert!(remembering.remembered() <= most && tiny.remembered() <= 10 * row);
        }
    }
    assert!(remembering.remembered() == 40 * row && rounding.remembered() > 0);
}
