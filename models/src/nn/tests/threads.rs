//! The same bits on any number of threads, and for any cut into runs.
use super::*;
use crate::id::{ClientId, RoundId};
use crate::params::{Mask, ModelCard, Params, Preprocessing};
use std::sync::Arc;

fn pool(threads: usize) -> Arc<rayon::ThreadPool> {
    Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap())
}

/// A trainer on 61 random samples.
fn trainer(arch: &str, input: [usize; 3], pool: Option<Arc<rayon::ThreadPool>>) -> LocalTrainer {
    let (graph, spec) = arch::build(&card(arch, input, 4, 0)).unwrap();
    let samples = Samples::random(&graph, 4, 61);
    let data = Dataset::new(Inputs::Floats(samples.inputs), samples.labels, graph.input().len(), 4).unwrap();
    LocalTrainer::new((graph, spec), data, (7, ClientId(3)), pool).unwrap()
}

fn order() -> Key {
    Key::new(7, Purpose::Batches).of(RoundId(2), ClientId(3))
}

fn train(trainer: &mut LocalTrainer, batch: usize) -> Trained {
    let spec = Arc::clone(trainer.spec());
    let start = init(trainer.graph(), &spec, 1);
    let anchor = init(trainer.graph(), &spec, 2);
    let all = Mask::all(&spec);
    let prior = [-1.0, -2.0, -0.5, -3.0];
    let distill = Some(Distill { teacher: &anchor, temperature: 2.0, weight: 0.3 });
    let proximal = Some(Proximal { anchor: &anchor, mu: 0.01, on: &all });
    let loss = Loss { prior: Some(&prior), distill, proximal };
    let (rate, order) = (LearningRate(0.05), order());
    let job = Job { trains: &all, epochs: 2, batch, rate, momentum: 0.9, order, loss, conditioning: &[] };
    trainer.train(&start, &job).unwrap()
}

const NETS: [(&str, [usize; 3]); 7] = [
    ("cc28", [1, 12, 12]),
    ("cc32", [3, 8, 8]),
    ("cc32-gn", [3, 8, 8]),
    ("kdhcnn", [3, 12, 12]),
    ("har1d", [6, 1, 64]),
    ("dw64", [3, 16, 16]),
    ("res64", [3, 16, 16]),
];

#[test]
fn training_gives_the_same_bits_on_any_number_of_threads() {
    for (arch, input) in NETS {
        let alone = train(&mut trainer(arch, input, None), 40);
        for threads in [1, 2, 3] {
            let together = train(&mut trainer(arch, input, Some(pool(threads))), 40);
            assert_eq!(alone.params, together.params, "{arch} on {threads} threads");
            assert_eq!(alone.loss.to_bits(), together.loss.to_bits(), "{arch} on {threads} threads");
            assert_eq!((alone.visits, together.visits), (2 * 55, 2 * 55));
        }
    }
}

#[test]
fn evaluation_features_and_gradient_do_not_depend_on_threads() {
    for (arch, input) in NETS {
        let answers = |pool| {
            let mut trainer = trainer(arch, input, pool);
            let params = init(trainer.graph(), &Arc::clone(trainer.spec()), 1);
            let metrics = trainer.evaluate(&params, &[], Split::Train).unwrap();
            let features = trainer.features(&params.backbone(), &[], Split::Probe(20)).unwrap();
            (metrics, features, trainer.gradient(&params, &[]).unwrap())
        };
        assert!(answers(None) == answers(Some(pool(3))), "{arch}");
    }
}

#[test]
fn a_lane_of_many_runs_is_a_lane_of_one() {
    // 300 samples make lanes of 75: five runs. In one lane after the other by hand, the sums come out the same.
    let (graph, spec) = arch::build(&card("cc28", [1, 8, 8], 4, 0)).unwrap();
    let samples = Samples::random(&graph, 4, 300);
    let (start, trains) = (init(&graph, &spec, 1), vec![true; graph.entries().len()]);
    let gradient = |picks: &[usize]| {
        let mut training =
            Training::new(&graph, start.values(), Setup::new(&trains, true, picks.len()), SGD, Fan::Inline);
        let mut sum = vec![0.0; graph.len()];
        let batch = Batch { picks, share: 1.0, ..samples.batch() };
        let loss = training.accumulate(&batch, &mut sum);
        (loss, sum)
    };
    let (loss, whole) = gradient(&samples.picks);
    let mut parts = vec![0.0f64; graph.len()];
    let mut sum = 0.0;
    for picks in samples.picks.chunks(7) {
        let (loss, part) = gradient(picks);
        sum += loss;
        parts.iter_mut().zip(part).for_each(|(a, b)| *a += f64::from(b));
    }
    assert!((loss - sum).abs() < 1e-9 * loss.abs(), "{loss} {sum}");
    let largest = parts.iter().fold(0.0f64, |m, p| m.max(p.abs()));
    whole
        .iter()
        .zip(&parts)
        .for_each(|(w, p)| assert!((f64::from(*w) - p).abs() < 1e-5 * largest, "{w} {p}"));
}

#[test]
fn divergence_and_wrong_shapes_have_names() {
    let mut trainer = trainer("mlp", [1, 4, 4], None);
    let spec = Arc::clone(trainer.spec());
    let start = init(trainer.graph(), &spec, 1);
    let all = Mask::all(&spec);
    let job = |rate, conditioning| Job {
        trains: &all,
        epochs: 3,
        batch: 16,
        rate: LearningRate(rate),
        momentum: 0.9,
        order: order(),
        loss: Loss::default(),
        conditioning,
    };
    assert!(matches!(trainer.train(&start, &job(1e30, &[])), Err(TrainError::Diverged { .. })));
    assert_eq!(
        trainer.train(&start, &job(0.1, &[1.0])).unwrap_err(),
        TrainError::Conditioning { expected: 0, got: 1 }
    );
    let mut trainer = trainer.with_ceiling(10_000);
    let refused = trainer.train(&start, &job(0.1, &[])).unwrap_err();
    assert!(
        matches!(refused, TrainError::Memory { needed, allowed: 10_000 } if needed > 10_000),
        "{refused}"
    );
    let mut trainer = trainer.with_ceiling(1 << 20);
    assert!(trainer.train(&start, &job(0.1, &[])).is_ok());
    let empty = Dataset::new(Inputs::Bytes(vec![]), vec![], 16, 4).unwrap();
    let graph = Arc::clone(trainer.graph());
    let mut none = LocalTrainer::new((graph, Arc::clone(&spec)), empty, (1, ClientId(9)), None).unwrap();
    assert_eq!(
        none.train(&start, &job(0.1, &[])).unwrap_err(),
        TrainError::NoSamples { client: ClientId(9) }
    );
    assert_eq!(none.evaluate(&start, &[], Split::Validation).unwrap().samples, 0);
    let other = arch::build(&card("mlp", [1, 4, 5], 4, 0)).unwrap();
    let wrong: Params = init(&other.0, &other.1, 1);
    assert!(matches!(trainer.train(&wrong, &job(0.1, &[])), Err(TrainError::Spec(_))));
}

#[test]
fn bytes_and_floats_are_the_same_samples_and_what_is_ready_is_not_standardised() {
    let preprocessing = Preprocessing { mean: vec![0.4], std: vec![0.3] };
    let card = ModelCard { preprocessing, ..card("cc28", [1, 8, 8], 4, 0) };
    let (graph, spec) = arch::build(&card).unwrap();
    let bytes: Vec<u8> = (0..64 * 20).map(|i| (i * 37 % 256) as u8).collect();
    let floats: Vec<f32> = bytes.iter().map(|&b| f32::from(b) / 255.0).collect();
    let ready = floats.iter().map(|x| (x - 0.4) / 0.3).collect();
    let labels: Vec<u16> = (0..20).map(|i| i % 4).collect();
    let trained = |inputs| {
        let data = Dataset::new(inputs, labels.clone(), 64, 4).unwrap();
        let mut trainer =
            LocalTrainer::new((Arc::clone(&graph), Arc::clone(&spec)), data, (7, ClientId(0)), None).unwrap();
        assert_eq!((trainer.samples(Split::Train), trainer.samples(Split::Validation)), (18, 2));
        train(&mut trainer, 16).params
    };
    let from_floats = trained(Inputs::Floats(floats));
    assert_eq!(trained(Inputs::Bytes(bytes)), from_floats);
    assert_eq!(trained(Inputs::Ready(ready)), from_floats);
}
