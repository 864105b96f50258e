//! The attack on conditioned networks (DESIGN §4): an input that is constant on a board can be divided out of the update of the layer it
//! feeds.
use super::fleet::{self, Fleet};
use super::toy;
use crate::fed::conditioning::{Columns, Conditioning};
use crate::fed::cpct::{Cpct, Hyper, Profile};
use crate::fed::{Disclosure, Method, Outgoing, conditional};
use crate::params::ModelSpec;
use crate::stats::Statistic;
use std::sync::Arc;

const WIDTH: usize = 6;

fn spec() -> Arc<ModelSpec> {
    toy::spec(&[fleet::INPUTS, 8, fleet::CLASSES], WIDTH)
}

fn run<M: Method>(hyper: &M::Hyper) -> Fleet {
    let spec = spec();
    let init = toy::init(&spec, 11);
    Fleet::on::<M>(hyper, &spec, fleet::boards(&spec), Some(fleet::auxiliary(&spec)), init).run()
}

fn v2() -> Conditioning {
    Conditioning { kind: Statistic::V2, clusters: Vec::new() }
}

/// What the host reads off an update: ΔU divided by Δb, on the row whose bias moved most. With s constant, both are sums of the same
/// gradients, so the quotient is s.
fn attacked(up: &Outgoing, spec: &ModelSpec) -> Vec<f32> {
    let bias = spec.entry("fc1.bias").unwrap().range.clone();
    let moved = &up.values()[bias];
    let row = (0..moved.len()).max_by(|&a, &b| moved[a].abs().total_cmp(&moved[b].abs())).unwrap();
    let columns = Columns::of(spec).unwrap().ranges().nth(row).unwrap();
    up.values()[columns].iter().map(|u| u / moved[row]).collect()
}

#[test]
fn the_attack_recovers_the_statistics_of_conditional() {
    let hyper = conditional::Hyper { statistics: v2(), ..conditional::Hyper::default() };
    assert_eq!(conditional::Conditional::discloses(&hyper), Disclosure::Statistics);
    let fleet = run::<conditional::Conditional>(&hyper);
    for (_, id, up) in &fleet.sent {
        let truth = &fleet.predictor(id.0 as usize).specialist().streams[0].conditioning.clone();
        let found = attacked(up, &fleet.spec);
        let off = truth.iter().zip(&found).map(|(t, f)| (t - f).abs()).fold(0.0, f32::max);
        assert!(off < 1e-3, "{truth:?} {found:?}");
    }
}

#[test]
fn the_attack_finds_nothing_in_cpct_with_statistics_on() {
    for profile in [Profile::PrivateHead, Profile::SharedHead] {
        let hyper = Hyper { profile, statistics: v2(), ..Hyper::default() };
        assert!(Cpct::discloses(&hyper) < Disclosure::Statistics);
        let fleet = run::<Cpct>(&hyper);
        let columns = Columns::of(&fleet.spec).unwrap();
        for (_, _, up) in &fleet.sent {
            assert!(columns.ranges().all(|r| up.values()[r].iter().all(|v| v.to_bits() == 0)));
            assert_eq!(attacked(up, &fleet.spec), [0.0; WIDTH]);
        }
        let (start, end) =
            (toy::init(&fleet.spec, 11), fleet.method.parts(&fleet.hyper, &fleet.state).unwrap());
        let trained = columns.ranges().any(|r| end[0].1[r.clone()] != start.values()[r]);
        assert!(trained, "the host trains the columns itself");
    }
}

#[test]
fn a_folded_vector_is_the_same_network() {
    let spec = spec();
    let model = toy::init(&spec, 3);
    let vector = [0.5, -1.0, 2.0, 0.0, 0.25, -0.125];
    let folded = Columns::of(&spec).unwrap().folded(&model, &vector);
    let mut board = fleet::boards(&spec).swap_remove(0);
    use crate::nn::{Split, Trainer};
    let with = board.evaluate(&model, &vector, Split::Train).unwrap();
    let without = board.evaluate(&folded, &[0.0; WIDTH], Split::Train).unwrap();
    assert!((with.loss - without.loss).abs() < 1e-6 && with.accuracy == without.accuracy);
}
