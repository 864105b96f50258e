use super::*;
use crate::tensor::Shape;

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
    let like = Params::zeros(&spec);
    let delta = |k: u32| {
        Delta::<Whole>::new(spec.clone(), (0..9).map(|i| (i * k) as f32 * 0.37 - 1.3).collect()).unwrap()
    };
    let mean = |order: &[u32]| {
        let mut sum = Accumulator::new(9);
        order.iter().for_each(|&k| sum.add(&delta(k), Weight::samples(k * 7)));
        sum.mean(&like).unwrap()
    };
    assert_eq!(mean(&[1, 2, 3, 4]).values(), mean(&[4, 2, 1, 3]).values());
    let mut sum = Accumulator::new(9);
    (1..50).for_each(|n| sum.add(&delta(5), Weight::samples(n)));
    assert_eq!(sum.mean(&like).unwrap().values(), delta(5).values());
    assert!(Accumulator::<Whole>::new(9).mean(&like).is_none());
}

#[test]
fn a_share_of_one_weighs_what_the_samples_weigh() {
    assert_eq!(Weight::share(1.0, 583), Weight::samples(583));
    assert!(Weight::share(0.0, 583).is_zero());
}
