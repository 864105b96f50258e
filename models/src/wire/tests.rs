use super::*;
use crate::fed::{Coverage, Extent, Outgoing, Start};
use crate::id::RoundId;
use crate::nn::{arch, bench};
use crate::params::{EntryDecl, ModelCard, ModelSpec, Part, Preprocessing, Role, UpdateMode};
use crate::tensor::Shape;
use proptest::prelude::*;

fn spec() -> ModelSpec {
    let decl = |name: &str, extents: &[usize], part, role| EntryDecl {
        name: name.into(),
        shape: Shape::new(extents),
        part,
        role,
    };
    let card = ModelCard {
        arch: "toy".into(),
        input: [1, 1, 1],
        labels: vec!["a".into(); 4],
        statistics: 0,
        preprocessing: Preprocessing::none(1),
    };
    let declared = vec![
        decl("fc.weight", &[16, 32], Part::Backbone, Role::Trainable),
        decl("fc.bias", &[16], Part::Backbone, Role::Trainable),
        decl("bn.mean", &[16], Part::Backbone, Role::Statistic),
        decl("head.weight", &[4, 16], Part::Head, Role::Trainable),
    ];
    ModelSpec::new(card, declared).unwrap()
}

fn outgoing(extent: Extent, spec: &ModelSpec, scale: f32) -> Outgoing {
    let values = (0..extent.len(spec)).map(|i| ((i * 37 % 101) as f32 - 50.0) * scale).collect();
    Outgoing::from_wire(extent, values, 412, Start::Mix, vec![])
}

const SESSION: Session = Session { epoch: 3, nonce: 9 };

#[test]
fn exact_codecs_are_exact_and_the_others_stay_within_half_a_step() {
    let spec = spec();
    let out = outgoing(Extent::Backbone, &spec, 0.01);
    for (codec, bound) in
        [(Codec::F32, 0.0), (Codec::Bf16, 0.5 / 256.0 + 1e-9), (Codec::Int8Row, 0.5 / 127.0 * 0.5 + 1e-6)]
    {
        let bytes = encode(codec, &spec, Extent::Backbone, out.values());
        assert_eq!(bytes.len(), encoded_len(codec, &spec, Extent::Backbone));
        let back = decode(codec, &spec, Extent::Backbone, &bytes).unwrap();
        let worst = back.iter().zip(out.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst <= bound, "{codec:?}: {worst} > {bound}");
    }
    assert_eq!(encoded_len(Codec::Int8Row, &spec, Extent::Backbone), 16 * (32 + 4) + 4 * 32);
}

#[test]
fn an_update_comes_back_and_its_bytes_are_frozen() {
    let spec = spec();
    let out = outgoing(Extent::Model, &spec, 0.01);
    let bytes = seal_update(RoundId(7), Codec::F32, &spec, &out).unwrap();
    let (header, back) = open_update(&bytes, &spec).unwrap();
    assert_eq!((header.round, back), (RoundId(7), out));
    let body = submit_body(SESSION, &bytes);
    assert_eq!(split_submit(&body).unwrap(), (SESSION, &bytes[..]));
    assert_eq!(&bytes[..12], &[10, 0, 0, 0, 2, 0, 7, 1, 0, 0, 156, 3]);
}

#[test]
fn what_is_wrong_with_an_update_is_named() {
    let spec = spec();
    let seal = |out: &Outgoing| seal_update(RoundId(0), Codec::F32, &spec, out).unwrap();
    let bytes = seal(&outgoing(Extent::Backbone, &spec, 0.01));
    assert!(matches!(open_update(&bytes[..bytes.len() - 1], &spec), Err(Reject::WrongLength { .. })));
    assert_eq!(open_update(&bytes[..3], &spec).unwrap_err(), Reject::Malformed);
    let mut nan = bytes.clone();
    let at = nan.len() - 4;
    nan[at..].copy_from_slice(&f32::NAN.to_le_bytes());
    assert_eq!(open_update(&nan, &spec).unwrap_err(), Reject::NotFinite);
    for (change, steps) in [(1e30, u32::MAX), (1.5, 2)] {
        let values = vec![change; Extent::Backbone.len(&spec)];
        let astray = seal(&Outgoing::from_wire(Extent::Backbone, values, 5, Start::Global, vec![]));
        assert_eq!(open_update(&astray, &spec).unwrap_err(), Reject::Absurd { steps }, "{change}");
    }
    let weightless = Outgoing::from_wire(
        Extent::Backbone,
        vec![0.0; Extent::Backbone.len(&spec)],
        0,
        Start::Global,
        vec![],
    );
    assert_eq!(open_update(&seal(&weightless), &spec).unwrap_err(), Reject::BadWeight { samples: 0 });
}

#[test]
fn another_version_is_refused_by_name() {
    let mut envelope = Envelope::new(Poll { session: SESSION, held: None, update: UpdateMode::Full });
    assert!(envelope.clone().open().is_ok());
    envelope.version = 9;
    assert_eq!(envelope.open().unwrap_err(), Reject::Version { ours: VERSION });
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        let _ = open_update(&bytes, &spec());
        let _ = from_bytes::<Envelope<Answer>>(&bytes);
        let _ = from_bytes::<Envelope<EnrollRequest>>(&bytes);
        let _ = from_bytes::<Envelope<Decline>>(&bytes);
        let _ = part_values(&bytes);
    }

    #[test]
    fn a_flipped_byte_never_gives_a_number_that_is_not_finite(at in 0_usize..2000, with in any::<u8>()) {
        let spec = spec();
        let mut bytes = seal_update(RoundId(1), Codec::Int8Row, &spec, &outgoing(Extent::Model, &spec, 0.3)).unwrap();
        let at = at % bytes.len();
        bytes[at] = with;
        if let Ok((_, out)) = open_update(&bytes, &spec) {
            prop_assert!(out.values().iter().all(|v| v.is_finite()));
        }
    }
}

/// Every architecture, on the input it was made for.
fn every_spec() -> Vec<std::sync::Arc<ModelSpec>> {
    let small =
        |name: &str| ModelCard { labels: vec!["x".into(), "y".into(), "z".into()], ..bench::card(name) };
    arch::NAMES.iter().map(|name| arch::build(&small(name)).unwrap().1).collect()
}

fn mode(text: &str) -> UpdateMode {
    text.parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn an_update_of_every_mode_and_network_comes_back_and_carries_what_it_covers(seed in any::<u32>()) {
        for spec in every_spec() {
            let which = seed as usize;
            let extent = [Extent::Model, Extent::Backbone][which % 2];
            let codec = [Codec::F32, Codec::Bf16, Codec::Int8Row][which / 2 % 3];
            let last = format!("last:{}", 1 + which / 6 % 6);
            for mode in ["full", &last, "bias", "head"].map(mode) {
                let of = Coverage { extent, mode };
                let values: Vec<f32> = (0..extent.len(&spec)).map(|i| ((i ^ which) % 97) as f32 / 512.0).collect();
                let out = Outgoing::from_wire(of, values.clone(), 9, Start::Global, vec![]);
                let sealed = seal_update(RoundId(3), codec, &spec, &out);
                if !of.is_possible(&spec) {
                    prop_assert_eq!(sealed.unwrap_err(), Reject::BadCoverage { mode });
                    continue;
                }
                let sealed = sealed.unwrap();
                let payload = split_update(&sealed).unwrap().1.len();
                prop_assert_eq!(payload, encoded_len(codec, &spec, of));
                let saves = mode.of(&spec) != UpdateMode::Full;
                prop_assert_eq!(payload < encoded_len(codec, &spec, extent), saves);
                let (header, back) = open_update(&sealed, &spec).unwrap();
                prop_assert_eq!((header.coverage(), back.coverage()), (of, of));
                let mut places = vec![false; extent.len(&spec)];
                for range in of.mask(&spec).ranges(&spec) {
                    places[range].fill(true);
                }
                for ((sent, got), covered) in values.iter().zip(back.values()).zip(places) {
                    let off = if covered { (sent - got).abs() } else { got.abs() };
                    let most = if codec == Codec::F32 || !covered { 0.0 } else { 0.001 };
                    prop_assert!(off <= most, "{mode} {sent} {got}");
                }
            }
        }
    }
}

#[test]
fn a_coverage_that_the_model_can_not_have_is_refused_by_name() {
    let spec = spec();
    let out = outgoing(Extent::Backbone, &spec, 0.01);
    let sealed = seal_update(RoundId(0), Codec::F32, &spec, &out).unwrap();
    // The header's length, version, time, round and extent stand before the mode.
    let with = |mode: &[u8], payload: usize| {
        let header = [&sealed[4..8], mode, &sealed[9..14]].concat();
        [&(header.len() as u32).to_le_bytes()[..], &header, &vec![0; payload]].concat()
    };
    let open = |mode: &[u8], of: &str| {
        let of = Coverage { extent: Extent::Backbone, mode: of.parse().unwrap() };
        open_update(&with(mode, encoded_len(Codec::F32, &spec, of)), &spec).map(|(header, _)| header.mode)
    };
    assert_eq!(open(&[0], "full"), Ok(UpdateMode::Full));
    assert_eq!(open(&[1, 2], "last:2"), Ok(mode("last:2")));
    assert_eq!(open(&[3], "bias"), Ok(UpdateMode::Bias));
    for (bytes, named) in [(&[1, 1][..], "last:1"), (&[1, 3], "last:3"), (&[1, 9], "last:9"), (&[2], "head")]
    {
        assert_eq!(open(bytes, named), Err(Reject::BadCoverage { mode: mode(named) }), "{named}");
    }
    assert_eq!(open(&[1, 0], "full"), Err(Reject::Malformed), "no layer at all");
    assert_eq!(open(&[1, 255, 255, 255, 255, 15], "full"), Err(Reject::Malformed), "more than 65535 layers");
    assert_eq!(open(&[4], "full"), Err(Reject::Malformed), "no such mode");
    // A payload of everything under a mode that covers less, and the other way round.
    let lengths = [("full", &[3][..]), ("bias", &[0]), ("last:2", &[3])];
    for (payload, header) in lengths {
        assert!(matches!(open(header, payload), Err(Reject::WrongLength { .. })), "{payload}");
    }
    let without = ModelSpec::new(
        spec.card().clone(),
        vec![EntryDecl {
            name: "fc.weight".into(),
            shape: Shape::new([4, 4]),
            part: Part::Backbone,
            role: Role::Trainable,
        }],
    );
    let biased = Coverage { extent: Extent::Backbone, mode: UpdateMode::Bias };
    assert!(!biased.is_possible(&without.unwrap()), "there is no bias");
}

#[test]
fn what_training_may_change_is_judged_over_what_is_covered() {
    let spec = spec();
    let values = vec![1.5; Extent::Backbone.len(&spec)];
    let of = Coverage { extent: Extent::Backbone, mode: UpdateMode::Bias };
    let astray = Outgoing::from_wire(of, values, 5, Start::Global, vec![]);
    let sealed = seal_update(RoundId(0), Codec::F32, &spec, &astray).unwrap();
    assert_eq!(open_update(&sealed, &spec).unwrap_err(), Reject::Absurd { steps: 2 });
}
