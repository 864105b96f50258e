use super::*;
use crate::fed::{Extent, Outgoing, Start};
use crate::id::RoundId;
use crate::params::{EntryDecl, ModelCard, ModelSpec, Part, Preprocessing, Role};
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
    assert_eq!(&bytes[..12], &[9, 0, 0, 0, 1, 0, 7, 1, 0, 156, 3, 1]);
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
    let mut envelope = Envelope::new(Poll { session: SESSION, held: None });
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
