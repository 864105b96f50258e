use super::*;
use crate::tensor::Shape;
use proptest::prelude::*;

fn spec() -> Arc<ModelSpec> {
    let decl = |name: &str, extents: &[usize], part| EntryDecl {
        name: name.into(),
        shape: Shape::new(extents),
        part,
        role: Role::Trainable,
    };
    let card = ModelCard {
        arch: "toy".into(),
        input: [1, 1, 1],
        labels: vec!["a".into(), "b".into()],
        statistics: 0,
        preprocessing: Preprocessing::none(1),
    };
    let declared = vec![decl("head.weight", &[2, 3], Part::Head), decl("fc.weight", &[3, 1], Part::Backbone)];
    Arc::new(ModelSpec::new(card, declared).unwrap())
}

#[test]
fn the_backbone_comes_first_whatever_the_order_of_declaration() {
    let spec = spec();
    assert_eq!(spec.entries()[0].name, "fc.weight");
    assert_eq!((spec.backbone_len(), spec.len(), spec.features()), (3, 9, 3));
    let params = Params::new(spec, (0..9).map(|i| i as f32).collect()).unwrap();
    assert_eq!(params.backbone().values(), &[0.0, 1.0, 2.0]);
    assert_eq!(Params::join(&params.backbone(), &params.head()), params);
    assert_eq!(params.head().entry("head.weight").unwrap().len(), 6);
    assert!(params.head().entry("fc.weight").is_none());
}

/// A backbone may share the memory of its model, with the head behind it: nothing that can be asked of it gives the head away.
#[test]
fn a_backbone_that_shares_its_models_memory_never_shows_the_head() {
    const SECRET: f32 = 12_345.678;
    let model = Params::new(spec(), [&[1.0, 2.0, 3.0][..], &[SECRET; 6]].concat()).unwrap();
    let (backbone, zero) = (model.backbone(), Backbone::zeros(model.spec()));
    assert_eq!(backbone.minus(&zero).values(), [1.0, 2.0, 3.0]);
    assert_eq!(backbone.plus(&backbone.minus(&zero), 1.0).values(), [2.0, 4.0, 6.0]);
    assert_eq!(backbone.mixed_with(&zero, 0.5).values(), [0.5, 1.0, 1.5]);
    assert!(!format!("{backbone:?}").contains("12345"));
    let mut changed = backbone.clone();
    changed.values_mut().fill(0.0);
    assert_eq!((changed.values_mut().len(), model.values()[3]), (3, SECRET), "the model is untouched");
    assert_eq!(backbone.into_values(), [1.0, 2.0, 3.0]);
}

#[test]
fn a_wrong_length_or_an_infinite_value_is_named() {
    let spec = spec();
    let short = Params::new(spec.clone(), vec![0.0; 8]).unwrap_err();
    assert_eq!(short, SpecError::WrongLength { scope: "model", expected: 9, got: 8 });
    let mut values = vec![0.0; 6];
    values[5] = f32::NAN;
    assert_eq!(Head::new(spec, values).unwrap_err(), SpecError::NotFinite { entry: "head.weight".into() });
}

#[test]
fn a_mean_is_the_same_in_any_order_and_exact_for_constants() {
    let spec = spec();
    let everything = Mask::of(&spec, |_| true);
    let delta = |k: u32| {
        Delta::<Whole>::new(spec.clone(), (0..9).map(|i| (i * k) as f32 * 0.37 - 1.3).collect()).unwrap()
    };
    let mean = |order: &[u32]| {
        let mut sum = Accumulator::new(&spec);
        order.iter().for_each(|&k| sum.add(&delta(k), Weight::samples(k * 7), &everything));
        sum.mean().unwrap()
    };
    assert_eq!(mean(&[1, 2, 3, 4]).values(), mean(&[4, 2, 1, 3]).values());
    let mut sum = Accumulator::new(&spec);
    (1..50).for_each(|n| sum.add(&delta(5), Weight::samples(n), &everything));
    assert_eq!(sum.mean().unwrap().values(), delta(5).values());
    assert!(Accumulator::<Whole>::new(&spec).mean().is_none());
}

#[test]
fn a_share_of_one_weighs_what_the_samples_weigh() {
    assert_eq!(Weight::share(1.0, 583), Weight::samples(583));
    assert!(Weight::share(0.0, 583).is_zero());
}

/// A backbone with a normed convolution and a projection, and a head.
fn layered() -> Arc<ModelSpec> {
    let decl = |name: &str, extents: &[usize], role| EntryDecl {
        name: name.into(),
        shape: Shape::new(extents),
        part: if name.starts_with("head") { Part::Head } else { Part::Backbone },
        role,
    };
    let declared = vec![
        decl("conv.weight", &[2, 3], Role::Trainable),
        decl("norm.weight", &[2], Role::Trainable),
        decl("norm.bias", &[2], Role::Trainable),
        decl("norm.mean", &[2], Role::Statistic),
        decl("norm.steps", &[1], Role::Opaque),
        decl("fc.weight", &[4, 2], Role::Trainable),
        decl("fc.bias", &[4], Role::Trainable),
        decl("head.weight", &[2, 4], Role::Trainable),
    ];
    Arc::new(ModelSpec::new(spec().card().clone(), declared).unwrap())
}

#[test]
fn statistics_and_counters_are_covered_where_their_layer_is_trained() {
    let spec = layered();
    let names = |mask: &Mask| {
        let all = spec.entries().iter().enumerate().filter(|(i, _)| mask.has(*i));
        all.map(|(_, e)| e.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let mode = |text: &str| text.parse::<UpdateMode>().unwrap();
    for (text, covered) in [
        ("full", "conv.weight norm.weight norm.bias norm.mean norm.steps fc.weight fc.bias head.weight"),
        ("last:1", "head.weight"),
        ("last:2", "fc.weight fc.bias head.weight"),
        ("last:3", "norm.weight norm.bias norm.mean norm.steps fc.weight fc.bias head.weight"),
        ("bias", "norm.bias norm.mean norm.steps fc.bias"),
        ("head", ""),
    ] {
        assert_eq!(names(&mode(text).covers(&spec)), covered, "{text}");
        let trained = mode(text).mask(&spec);
        assert!((0..8).all(|i| !trained.has(i) || spec.entries()[i].role == Role::Trainable), "{text}");
    }
    assert!(mode("last:4").suits(&spec) && !mode("last:5").suits(&spec));
    assert_eq!([mode("last:3").of(&spec), mode("last:4").of(&spec)], [mode("last:3"), UpdateMode::Full]);
}

/// Two clients, one of them with the biases alone: what both covered is the mean by samples, what one covered is that one's, and what
/// nobody covered keeps its bits.
#[test]
fn each_entry_is_divided_by_the_weight_of_those_that_cover_it() {
    let spec = layered();
    let delta = |v: f32| Delta::<Whole>::new(spec.clone(), vec![v; spec.len()]).unwrap();
    let mode = |text: &str| text.parse::<UpdateMode>().unwrap().covers(&spec);
    let mut sum = Accumulator::new(&spec);
    sum.add(&delta(1.0), Weight::samples(30), &mode("last:2"));
    sum.add(&delta(5.0), Weight::samples(10), &mode("bias"));
    let mut start = vec![0.25; spec.len()];
    start[spec.entry("conv.weight").unwrap().range.start] = -0.0;
    let start = Params::new(spec.clone(), start).unwrap();
    let end = start.plus(&sum.mean().unwrap(), 1.0);
    let of = |name: &str| end.entry(name).unwrap()[1];
    assert_eq!([of("fc.bias"), of("fc.weight"), of("head.weight")], [0.25 + 80.0 / 40.0, 1.25, 1.25]);
    assert_eq!([of("norm.bias"), of("norm.mean"), of("norm.weight")], [5.25, 5.25, 0.25]);
    let bits = |p: &Params| p.entry("conv.weight").unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&end), bits(&start), "nobody covered it");
}

proptest! {
    /// The denominators of entries change nothing where everybody covers everything: one sum, one weight, one division, as it always was.
    #[test]
    fn a_mean_of_full_updates_is_that_of_one_denominator(
        updates in proptest::collection::vec((proptest::collection::vec(-3.0_f32..3.0, 33), 1_u32..5_000), 1..6),
    ) {
        let spec = layered();
        let mut sum = Accumulator::new(&spec);
        let (mut sums, mut weight) = ([0_i128; 33], 0_u128);
        for (values, samples) in &updates {
            let delta = Delta::<Whole>::new(spec.clone(), values.clone()).unwrap();
            sum.add(&delta, Weight::samples(*samples), &UpdateMode::Full.covers(&spec));
            let factor = u64::from(*samples) << 20;
            weight += u128::from(factor);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += i128::from((f64::from(*value) * 68_719_476_736.0).round() as i64) * i128::from(factor);
            }
        }
        let scale = 1.0 / (weight as f64 * 68_719_476_736.0);
        let expected: Vec<u32> = sums.iter().map(|&s| ((s as f64 * scale) as f32).to_bits()).collect();
        let got: Vec<u32> = sum.mean().unwrap().values().iter().map(|v| v.to_bits()).collect();
        prop_assert_eq!(got, expected);
    }
}
